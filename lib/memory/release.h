/* SPDX-License-Identifier: MIT */
/* Releases: memory that is freed once no request in flight uses it. */
#ifndef SLU_RELEASE_H
#define SLU_RELEASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/pd.h"

/* A pending release, embedded in the object that is released; under the lock of release.c. */
struct slu_release {
    struct slu_release *next;
    const struct sluice_pd *pd;
    struct slu_memory memory;
    void (*end)(struct slu_release *release); /* frees the memory, and this */
    void (*released)(void *argument);         /* end() calls it last; or NULL */
    void *argument;
};

/*
 * Ends a release now and returns 0, or later and returns 1 if requests in flight use the memory.
 * Any thread may call it, without a lock of the library, because end() takes such locks.
 */
int slu_release(struct slu_release *release);
/* For end(): notifies the program that the memory is free. */
static inline void slu_release_tell(void (*released)(void *argument), void *argument)
{
    if (released != NULL)
        released(argument);
}
/*
 * Calls attempt(argument) until it returns another value than -EBUSY, for at most timeout
 * nanoseconds. Returns that value, or -ETIMEDOUT without a text.
 */
int slu_release_wait(int (*attempt)(void *argument), void *argument, int64_t timeout);

/* The number of pending releases of the process. */
extern atomic_uint slu_releases;

static inline bool slu_has_releases(void)
{
    return atomic_load_explicit(&slu_releases, memory_order_relaxed) != 0;
}

/*
 * Ends the releases whose memory is not used any more. Any thread may call it, without a lock of
 * the library, and not while it serves a transport.
 */
void slu_releases_look(void);

/*
 * Between these two, which nest, the thread has a lock of the library's that is held across calls
 * that look: these look at the end of the last one, when the lock is free again.
 */
void slu_releases_defer(void);
void slu_releases_resume(void);

#endif
