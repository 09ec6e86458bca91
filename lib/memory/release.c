/* SPDX-License-Identifier: MIT */
/*
 * Memory that the program has given up while posted work named it. Nothing is counted for
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
static struct slu_release *waiting;
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

static void append(struct slu_release *release)
{
    enter();
    release->next = waiting;
    waiting = release;
    atomic_fetch_add(&slu_releases, 1);
    leave();
}

static struct slu_release *take_unused(void)
{
    struct slu_release **at = &waiting;
    struct slu_release *unused = NULL;

    enter();
    while (*at != NULL) {
        struct slu_release *release = *at;

        if (slu_pd_uses(release->pd, &release->memory)) {
            at = &release->next;
            continue;
        }
        *at = release->next;
        release->next = unused;
        unused = release;
        atomic_fetch_sub(&slu_releases, 1);
    }
    leave();
    return unused;
}

void slu_releases_look(void)
{
    struct slu_release *unused = take_unused();
    uint32_t ours = slu_fork_generation();

    /* A function that forked goes on in the child, too, where none of them is. */
    while (unused != NULL && slu_fork_generation() == ours) {
        struct slu_release *release = unused;

        unused = release->next;
        release->end(release);
    }
}

int slu_release(struct slu_release *release)
{
    if (!slu_pd_uses(release->pd, &release->memory)) {
        release->end(release);
        return 0;
    }
    append(release);
    /* The last work may have completed before it was in the list. */
    slu_releases_look();
    return 1;
}

/* Its memory may be freed in the function of the program, and that may be called again there. */
static void end_region(struct slu_release *release)
{
    const struct slu_release ended = *release;

    slu_mr_end(slu_container_of(release, struct sluice_mr, release));
    slu_release_tell(ended.released, ended.argument);
}

int sluice_mr_release(struct sluice_mr *mr, void (*released)(void *argument), void *argument)
{
    int error = slu_mr_may_end(mr);

    if (error < 0)
        return error;
    if (mr == NULL)
        return slu_misuse(EINVAL, "a memory region to release must not be NULL");
    mr->magic = SLU_MAGIC_DEAD;
    mr->release = (struct slu_release){.pd = mr->pd,
                                       .memory = {.lkey = mr->transport->lkey, .length = SLU_WHOLE},
                                       .end = end_region,
                                       .released = released,
                                       .argument = argument};
    return slu_release(&mr->release);
}

/* Whoever drives the channels is another thread: there is nothing to be woken by. */
int slu_release_wait(int (*attempt)(void *argument), void *argument, int64_t timeout)
{
    struct timespec nap = {.tv_nsec = SHORTEST_NAP};
    int64_t until;
    int error;

    if (timeout < 0)
        return slu_misuse(EINVAL, "timeout %lld is negative", (long long)timeout);
    until = slu_after(timeout);
    while ((error = attempt(argument)) == -EBUSY) {
        if (slu_now() >= until)
            return -ETIMEDOUT;
        SLU_UNCANCELLED(nanosleep(&nap, NULL));
        if (nap.tv_nsec < LONGEST_NAP)
            nap.tv_nsec *= 2;
    }
    return error;
}

static int deregister(void *argument)
{
    return sluice_mr_deregister(argument);
}

static int fail_late(const struct sluice_mr *mr)
{
    const struct slu_memory memory = {.lkey = mr->transport->lkey, .length = SLU_WHOLE};
    uint64_t buffer = slu_pd_publisher(mr->pd, &memory);

    if (buffer != 0)
        return slu_fail(ETIMEDOUT, "memory region at %#llx is published as buffer %llu still",
                        (unsigned long long)mr->transport->iova, (unsigned long long)buffer);
    return slu_fail(ETIMEDOUT, "memory region at %#llx is named by posted work still",
                    (unsigned long long)mr->transport->iova);
}

int sluice_mr_deregister_wait(struct sluice_mr *mr, int64_t timeout)
{
    SLU_UNCANCELLED_BLOCK;
    int error = slu_release_wait(deregister, mr, timeout);

    return error == -ETIMEDOUT ? fail_late(mr) : error;
}
