/* SPDX-License-Identifier: MIT */
/* fork(2): locks that a child finds free, and what it is told. */
#ifndef SLU_FORK_H
#define SLU_FORK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Before anything is made; 0, -ENOMEM, or an error of slu_random(). */
int slu_fork_prepare(void);
/*
 * A lock that is free in a child of fork(2), whoever has it in the parent.
 * waits: fork(2) waits for it, and the child finds what it is about whole; it
 * is not held for long then, nor by who forks. Join it before it is taken.
 */
struct slu_fork_lock {
    pthread_mutex_t lock;
    bool waits;
    bool joined;
    struct slu_fork_lock *next;
};
void slu_fork_join(struct slu_fork_lock *joining);
void slu_fork_lock(struct slu_fork_lock *taken); /* both */
/*
 * SLU_TOKEN_BYTES random bytes that no other process has at this address, nor a child: who
 * reads them there reads the memory of this process. Once it is prepared.
 */
const void *slu_process_token(void);
/* How many parents of this process had the library before it. */
uint32_t slu_fork_generation(void);
/* For the end of a text of what is no object: it may be the parent's; or "". */
const char *slu_fork_hint(void);

#endif
