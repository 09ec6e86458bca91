/* SPDX-License-Identifier: MIT */
/*
 * Something that others do, which is waited for until a deadline and then left to
 * itself: it is held by who waits and by who does it, and freed by the last of them.
 * The struct is the first field of what is handed over, which comes of malloc().
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
    uint32_t holds;
    bool ended;
    bool left; /* who waits has gone: what it gave must not be touched any more */
    void (*wipe)(struct slu_async_call *call); /* before it is freed; NULL: nothing is to be */
    int error;                                    /* 0 or a negative errno value, with a text */
    struct slu_text text;
};

/* Held twice. */
void slu_async_call_init(struct slu_async_call *call);
void slu_async_call_hold(struct slu_async_call *call);
void slu_async_call_drop(struct slu_async_call *call);

/*
 * Does it in a thread of its own, which gets no signals, holds it, and in which run()
 * returns 0 or a negative errno value with a text. -ENOMEM: with a text; only the
 * caller's hold is left.
 */
int slu_async_call_start(struct slu_async_call *call,
                         int (*run)(struct slu_async_call *call));

/* It is done, or has failed with the text of this thread; drops the hold of who did it. */
void slu_async_call_end(struct slu_async_call *call, int error);

/* 0; the error, with its text; or -ETIMEDOUT with this text if it is not done by then. */
int slu_async_call_wait(struct slu_async_call *call, int64_t until, const char *late);

#endif
