/* SPDX-License-Identifier: MIT */
/*
 * No call of the library is a cancellation point of pthread_cancel(3): a thread that ended within
 * one would keep its locks and queues for ever. A thread that is cancelled during a call ends at
 * its next cancellation point after it.
 */
#ifndef SLU_UNCANCELLED_H
#define SLU_UNCANCELLED_H

#include <pthread.h>

static inline int slu_cancel_hold(void)
{
    int state;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

static inline void slu_cancel_restore(const int *state)
{
    pthread_setcancelstate(*state, NULL);
}

/* At the head of a function: disables cancellation until its end. */
#define SLU_UNCANCELLED_BLOCK                                                       \
    __attribute__((cleanup(slu_cancel_restore), unused)) const int slu_kept_state = \
        slu_cancel_hold()

/* Around one system call, on paths that often make none. */
#define SLU_UNCANCELLED(call)  \
    __extension__({            \
        SLU_UNCANCELLED_BLOCK; \
        (call);                \
    })

#endif
