/* SPDX-License-Identifier: MIT */
/* fork(2): locks that are free in a child, and what identifies a process. */
#ifndef SLU_FORK_H
#define SLU_FORK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Called before the first object is made. Returns 0, -ENOMEM, or an error of slu_random(). */
int slu_fork_prepare(void);
/*
 * A lock that is free in a child of fork(2), even if a thread of the parent holds it. If waits is
 * set, fork(2) waits for the lock, so the child finds what it protects consistent; then it must
 * never be held for long, nor by the thread that forks. slu_fork_join() must come before it is
 * first taken.
 */
struct slu_fork_lock {
    pthread_mutex_t lock;
    bool waits;
    bool joined;
    struct slu_fork_lock *next;
};
void slu_fork_join(struct slu_fork_lock *joining);
void slu_fork_lock(struct slu_fork_lock *taken); /* joins and locks */
/*
 * Returns SLU_TOKEN_BYTES random bytes, which no other process and no child has at this address:
 * whoever reads them there reads the memory of this process. Valid after slu_fork_prepare().
 */
const void *slu_process_token(void);
/* Returns how many ancestors of this process have used the library. */
uint32_t slu_fork_generation(void);
/* Returns the end of a text about an invalid object, which may be the parent's; or "". */
const char *slu_fork_hint(void);

#endif
