/* SPDX-License-Identifier: MIT */
/*
 * Something that others do, which is waited for until a deadline and then left to
 * itself: it is held by who waits and by who does it, and freed by the last of them.
 * The struct is the first field of what is handed over, which comes of malloc().
 */
#ifndef SLU_AWAITED_H
#define SLU_AWAITED_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct slu_awaited {
    pthread_mutex_t lock;
    pthread_cond_t ended_now;
    uint32_t holds;
    bool ended;
    bool left; /* who waits has gone: what it gave must not be touched any more */
    void (*wipe)(struct slu_awaited *awaited); /* before it is freed; NULL: nothing is to be */
    int error;                                 /* 0 or a negative errno value, with a text */
    struct slu_text text;
};

/* Held twice. */
void slu_awaited_init(struct slu_awaited *awaited);
void slu_awaited_hold(struct slu_awaited *awaited);
void slu_awaited_drop(struct slu_awaited *awaited);

/*
 * Does it in a thread of its own, which gets no signals, holds it, and in which run()
 * returns 0 or a negative errno value with a text. -ENOMEM: with a text; only the
 * caller's hold is left.
 */
int slu_awaited_start(struct slu_awaited *awaited, int (*run)(struct slu_awaited *awaited));

/* It is done, or has failed with the text of this thread; drops the hold of who did it. */
void slu_awaited_end(struct slu_awaited *awaited, int error);

/* 0; the error, with its text; or -ETIMEDOUT with this text if it is not done by then. */
int slu_awaited_wait(struct slu_awaited *awaited, int64_t until, const char *late);

#endif
