/* SPDX-License-Identifier: MIT */
/*
 * Regions that the program has given up while posted work named them. Nothing is counted for
 * them where work is posted and completes: whoever finds nothing more to do, or closes
 * something, looks whether they are named still, as deregistering does.
 *
 * Guarantee: each ends once, and its function is called once, by one thread, without a lock.
 */
#include "config.h"

#include <errno.h>
#include <time.h>

#include "memory/mr.h"
#include "memory/release.h"

#define SHORTEST_NAP SLUICE_US(16)
#define LONGEST_NAP SLUICE_US(1024)

atomic_uint slu_releases;

/* Of the list; who looks has it to himself, and others then find it empty. */
static struct slu_fork_lock lock = {.lock = PTHREAD_MUTEX_INITIALIZER, .waits = true};
static struct sluice_mr *waiting;
static uint32_t generation;
/* Looks that were begun: what completed during one is seen by it, or by the next. */
static atomic_uint looks;

/* What is there in a child of fork(2) is the parent's. */
static void enter(void)
{
    slu_fork_lock(&lock);
    if (generation == slu_fork_generation())
        return;
    generation = slu_fork_generation();
    waiting = NULL;
    atomic_store(&slu_releases, 0);
}

static void leave(void)
{
    pthread_mutex_unlock(&lock.lock);
}

/* So many of them are new. */
static void append(struct sluice_mr *list, unsigned more)
{
    struct sluice_mr **at = &waiting;

    enter();
    while (*at != NULL)
        at = &(*at)->next_released;
    *at = list;
    atomic_fetch_add(&slu_releases, more);
    leave();
}

static struct sluice_mr *take_all(void)
{
    struct sluice_mr *list;

    enter();
    list = waiting;
    waiting = NULL;
    leave();
    return list;
}

/* Its memory may be freed in that function, and it may be called again there. */
static void finish(struct sluice_mr *mr)
{
    void (*released)(void *argument) = mr->released;
    void *argument = mr->argument;

    slu_mr_end(mr);
    if (released != NULL)
        released(argument);
}

static void look_once(void)
{
    struct sluice_mr *list = take_all();
    struct sluice_mr *busy = NULL;
    struct sluice_mr *unused = NULL;
    uint32_t ours = slu_fork_generation();

    while (list != NULL) {
        struct sluice_mr *mr = list;
        struct sluice_mr **where = slu_pd_uses_key(mr->pd, mr->transport->lkey) ? &busy : &unused;

        list = mr->next_released;
        mr->next_released = *where;
        *where = mr;
    }
    if (busy != NULL)
        append(busy, 0);
    /* A function that forked goes on in the child, too, where none of them is. */
    while (unused != NULL && slu_fork_generation() == ours) {
        struct sluice_mr *mr = unused;

        unused = mr->next_released;
        atomic_fetch_sub(&slu_releases, 1);
        finish(mr);
    }
}

void slu_releases_look(void)
{
    unsigned look;

    do {
        look = atomic_fetch_add(&looks, 1) + 1;
        look_once();
    } while (slu_has_releases() && atomic_load(&looks) != look);
}

int sluice_mr_release(struct sluice_mr *mr, void (*released)(void *argument), void *argument)
{
    int error = slu_mr_may_end(mr);

    if (error < 0)
        return error;
    if (mr == NULL)
        return slu_misuse(EINVAL, "a memory region to release must not be NULL");
    mr->magic = SLU_MAGIC_DEAD;
    mr->released = released;
    mr->argument = argument;
    mr->next_released = NULL;
    if (!slu_pd_uses_key(mr->pd, mr->transport->lkey)) {
        finish(mr);
        return 0;
    }
    append(mr, 1);
    /* The last work may have completed before it was in the list. */
    slu_releases_look();
    return 1;
}

/* Whoever drives the channels is another thread: there is nothing to be woken by. */
int sluice_mr_deregister_wait(struct sluice_mr *mr, int64_t timeout)
{
    struct timespec nap = {.tv_nsec = SHORTEST_NAP};
    int64_t until;
    int error;

    if (timeout < 0)
        return slu_misuse(EINVAL, "timeout %lld is negative", (long long)timeout);
    until = slu_after(timeout);
    while ((error = sluice_mr_deregister(mr)) == -EBUSY) {
        if (slu_now() >= until)
            return slu_fail(ETIMEDOUT, "memory region at %#llx is named by posted work still",
                            (unsigned long long)mr->transport->iova);
        nanosleep(&nap, NULL);
        if (nap.tv_nsec < LONGEST_NAP)
            nap.tv_nsec *= 2;
    }
    return error;
}
