/* SPDX-License-Identifier: MIT */
/*
 * An operation of another thread, awaited until a deadline. The waiter gets whichever comes first,
 * the result or the timeout. A result that comes after the timeout is discarded.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/async_call.h"
#include "base/clock.h"
#include "base/thread.h"

#define NANOSECONDS INT64_C(1000000000)

struct start {
    struct slu_async_call *call;
    int (*run)(struct slu_async_call *call);
};

void slu_async_call_init(struct slu_async_call *call)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&call->ended_now, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&call->lock, NULL);
    call->references = 2;
    call->ended = false;
    call->abandoned = false;
    call->wipe = NULL;
    call->error = 0;
}

void slu_async_call_hold(struct slu_async_call *call)
{
    pthread_mutex_lock(&call->lock);
    call->references++;
    pthread_mutex_unlock(&call->lock);
}

void slu_async_call_drop(struct slu_async_call *call)
{
    bool last;

    pthread_mutex_lock(&call->lock);
    last = --call->references == 0;
    pthread_mutex_unlock(&call->lock);
    if (!last)
        return;
    if (call->wipe != NULL)
        call->wipe(call);
    pthread_cond_destroy(&call->ended_now);
    pthread_mutex_destroy(&call->lock);
    free(call);
}

static void *run_thread(void *argument)
{
    struct start start = *(struct start *)argument;

    pthread_detach(pthread_self());
    free(argument);
    slu_async_call_end(start.call, start.run(start.call));
    return NULL;
}

int slu_async_call_start(struct slu_async_call *call, int (*run)(struct slu_async_call *call))
{
    struct start *start = malloc(sizeof *start);
    pthread_t thread;
    int error = ENOMEM;

    if (start != NULL) {
        *start = (struct start){.call = call, .run = run};
        error = slu_thread_start(&thread, NULL, run_thread, start);
    }
    if (error == 0)
        return 0;
    free(start);
    slu_async_call_drop(call);
    return slu_fail(ENOMEM, "no thread can be started: %s", strerrordesc_np(error));
}

void slu_async_call_end(struct slu_async_call *call, int error)
{
    pthread_mutex_lock(&call->lock);
    call->error = error;
    if (error < 0)
        slu_text_save(&call->text);
    call->ended = true;
    pthread_cond_broadcast(&call->ended_now);
    pthread_mutex_unlock(&call->lock);
    slu_async_call_drop(call);
}

/* Waits with the lock held. Returns whether the operation has ended. */
static bool wait_until(struct slu_async_call *call, int64_t until)
{
    do {
        int64_t next = slu_sleep_until(until);
        struct timespec limit = {.tv_sec = next / NANOSECONDS, .tv_nsec = next % NANOSECONDS};

        if (!call->ended)
            pthread_cond_timedwait(&call->ended_now, &call->lock, &limit);
    } while (!call->ended && !slu_is_late(until));
    return call->ended;
}

int slu_async_call_wait(struct slu_async_call *call, int64_t until, const char *late)
{
    int error;

    pthread_mutex_lock(&call->lock);
    if (wait_until(call, until)) {
        error = call->error;
        if (error < 0)
            slu_text_restore(&call->text);
    } else {
        call->abandoned = true;
        error = slu_fail(ETIMEDOUT, "%s", late);
    }
    pthread_mutex_unlock(&call->lock);
    return error;
}
