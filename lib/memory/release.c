/* SPDX-License-Identifier: MIT */
/*
 * Memory that the program has released while requests in flight used it. Posting and completing
 * requests counts nothing for it. Instead, calls that find no more completions, and calls that
 * close an object, check whether the memory is still used, as deregistering does.
 *
 * Guarantee: each release ends once, and calls its function once, from one thread, without a lock.
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
 * Protects the list, also during a check of all of it. A thread that comes meanwhile waits and
 * then checks again, so that no completion is missed. The lock is free in a child of fork(2).
 */
static struct slu_fork_lock lock = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct slu_release *waiting;
static uint32_t generation;

/* Takes the lock. A child of fork(2) forgets the releases of its parent. */
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

/* Twice the number of locks that this thread holds; odd: it is to look when it holds none. */
static _Thread_local uint32_t deferred;

void slu_releases_defer(void)
{
    deferred += 2;
}

void slu_releases_resume(void)
{
    deferred -= 2;
    if (deferred != 1)
        return;
    deferred = 0;
    slu_releases_look();
}

void slu_releases_look(void)
{
    struct slu_release *unused;
    uint32_t ours = slu_fork_generation();

    if (deferred > 1) {
        deferred |= 1;
        return;
    }
    unused = take_unused();
    /* If a callback forks, this loop goes on in the child too, which has none of the releases. */
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
    /* The last request may have completed before the release was in the list. */
    slu_releases_look();
    return 1;
}

/* Ends the release of a region, which frees the release as well, and then notifies the program. */
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

/* Polls with naps: the completions are polled by other threads, which do not notify this one. */
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

int sluice_mr_deregister_wait(struct sluice_mr *mr, int64_t timeout)
{
    SLU_UNCANCELLED_BLOCK;
    int error = slu_release_wait(deregister, mr, timeout);

    return error == -ETIMEDOUT ? slu_mr_fail_used(mr, true) : error;
}
