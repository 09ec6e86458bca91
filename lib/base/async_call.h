/* SPDX-License-Identifier: MIT */
/*
 * An operation that another thread performs. The caller waits for it until a deadline, and abandons
 * it after that. Both hold a reference, and the last to drop its reference frees the struct, which
 * comes from malloc() and must be the first field of the caller's own struct.
 */
#ifndef SLU_ASYNC_CALL_H
#define SLU_ASYNC_CALL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct slu_async_call {
    pthread_mutex_t lock;
    pthread_cond_t ended_now;
    uint32_t references;
    bool ended;
    bool abandoned; /* the caller has timed out: its memory must not be touched any more */
    void (*wipe)(struct slu_async_call *call); /* called before it is freed; may be NULL */
    int error;                                 /* 0 or a negative errno value, with a text */
    struct slu_text text;
};

/* Initializes with two references, one of the caller and one of the operation. */
void slu_async_call_init(struct slu_async_call *call);
void slu_async_call_hold(struct slu_async_call *call);
void slu_async_call_drop(struct slu_async_call *call);

/*
 * Runs the operation in a thread of its own, which gets no signals. run() returns 0, or a negative
 * errno value with a text. Returns -ENOMEM with a text if no thread could be started; only the
 * caller's reference is left then.
 */
int slu_async_call_start(struct slu_async_call *call, int (*run)(struct slu_async_call *call));

/* Ends the operation, with the text of this thread if error is not 0, and drops its reference. */
void slu_async_call_end(struct slu_async_call *call, int error);

/*
 * Waits for the operation. Returns 0; its error, with its text; or -ETIMEDOUT with the text `late`.
 */
int slu_async_call_wait(struct slu_async_call *call, int64_t until, const char *late);

#endif
