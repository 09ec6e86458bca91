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

/*
 * Of the list, while it is looked through as well: who comes meanwhile waits, and then looks
 * himself, so that no end of work is missed. A child of fork(2) finds it free.
 */
static struct slu_fork_lock lock = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct sluice_mr *waiting;
static uint32_t generation;

/* What the list has in a child of fork(2) is the parent's. */
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

static void append(struct sluice_mr *mr)
{
    enter();
    mr->next_released = waiting;
    waiting = mr;
    atomic_fetch_add(&slu_releases, 1);
    leave();
}

static struct sluice_mr *take_unused(void)
{
    struct sluice_mr **at = &waiting;
    struct sluice_mr *unused = NULL;

    enter();
    while (*at != NULL) {
        struct sluice_mr *mr = *at;

        if (slu_pd_uses_key(mr->pd, mr->transport->lkey)) {
            at = &mr->next_released;
            continue;
        }
        *at = mr->next_released;
        mr->next_released = unused;
        unused = mr;
        atomic_fetch_sub(&slu_releases, 1);
    }
    leave();
    return unused;
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

void slu_releases_look(void)
{
    struct sluice_mr *unused = take_unused();
    uint32_t ours = slu_fork_generation();

    /* A function that forked goes on in the child, too, where none of them is. */
    while (unused != NULL && slu_fork_generation() == ours) {
        struct sluice_mr *mr = unused;

        unused = mr->next_released;
        finish(mr);
    }
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
    if (!slu_pd_uses_key(mr->pd, mr->transport->lkey)) {
        finish(mr);
        return 0;
    }
    append(mr);
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
