/* SPDX-License-Identifier: MIT */
/* Memory that ends when no posted work names it any more. */
#ifndef SLU_RELEASE_H
#define SLU_RELEASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/pd.h"

/* One that waits for that, in whatever it is about; under the lock of release.c. */
struct slu_release {
    struct slu_release *next;
    const struct sluice_pd *pd;
    struct slu_memory memory;
    void (*end)(struct slu_release *release); /* of the memory, and of this */
    void (*released)(void *argument);         /* for end() to call at last, or NULL */
    void *argument;
};

/*
 * Ends it now if nothing names it: 0; or else later: 1. By any thread, but without a lock of the
 * library's, which end() may take.
 */
int slu_release(struct slu_release *release);
/* The program is told, by end(), when nothing of the memory is left. */
static inline void slu_release_tell(void (*released)(void *argument), void *argument)
{
    if (released != NULL)
        released(argument);
}
/*
 * Until attempt(argument) returns another value than -EBUSY, for at most timeout nanoseconds:
 * that value, or -ETIMEDOUT without a text.
 */
int slu_release_wait(int (*attempt)(void *argument), void *argument, int64_t timeout);

/* How many there are, in the process. */
extern atomic_uint slu_releases;

static inline bool slu_has_releases(void)
{
    return atomic_load_explicit(&slu_releases, memory_order_relaxed) != 0;
}

/*
 * Ends those that nothing names, and tells the program; by any thread, but without a lock of
 * the library's, and outside of the turn of a transport.
 */
void slu_releases_look(void);

#endif
