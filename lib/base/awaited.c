/* SPDX-License-Identifier: MIT */
/*
 * Something is done, or its deadline passes: who waits sees one of both, and what is
 * done afterwards is seen by nobody.
 */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/awaited.h"
#include "base/interrupt.h"

#define NANOSECONDS INT64_C(1000000000)

struct start {
    struct slu_awaited *awaited;
    int (*run)(struct slu_awaited *awaited);
};

void slu_awaited_init(struct slu_awaited *awaited)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&awaited->ended_now, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&awaited->lock, NULL);
    awaited->holds = 2;
    awaited->ended = false;
    awaited->left = false;
    awaited->wipe = NULL;
    awaited->error = 0;
}

void slu_awaited_hold(struct slu_awaited *awaited)
{
    pthread_mutex_lock(&awaited->lock);
    awaited->holds++;
    pthread_mutex_unlock(&awaited->lock);
}

void slu_awaited_drop(struct slu_awaited *awaited)
{
    bool last;

    pthread_mutex_lock(&awaited->lock);
    last = --awaited->holds == 0;
    pthread_mutex_unlock(&awaited->lock);
    if (!last)
        return;
    if (awaited->wipe != NULL)
        awaited->wipe(awaited);
    pthread_cond_destroy(&awaited->ended_now);
    pthread_mutex_destroy(&awaited->lock);
    free(awaited);
}

static void *run_thread(void *argument)
{
    struct start start = *(struct start *)argument;

    free(argument);
    slu_awaited_end(start.awaited, start.run(start.awaited));
    return NULL;
}

/* What it creates in turn has its signals blocked as well. */
static int create_thread(struct start *start)
{
    pthread_attr_t attr;
    sigset_t all, before;
    pthread_t thread;
    int error;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &attr, run_thread, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return error;
}

int slu_awaited_start(struct slu_awaited *awaited, int (*run)(struct slu_awaited *awaited))
{
    struct start *start = malloc(sizeof *start);
    int error = ENOMEM;

    if (start != NULL) {
        *start = (struct start){.awaited = awaited, .run = run};
        error = create_thread(start);
    }
    if (error == 0)
        return 0;
    free(start);
    slu_awaited_drop(awaited);
    return slu_fail(ENOMEM, "no thread can be started: %s", strerrordesc_np(error));
}

void slu_awaited_end(struct slu_awaited *awaited, int error)
{
    pthread_mutex_lock(&awaited->lock);
    awaited->error = error;
    if (error < 0)
        slu_text_save(&awaited->text);
    awaited->ended = true;
    pthread_cond_broadcast(&awaited->ended_now);
    pthread_mutex_unlock(&awaited->lock);
    slu_awaited_drop(awaited);
}

/* Whether it is done by then; the lock is held. */
static bool wait_until(struct slu_awaited *awaited, int64_t until)
{
    do {
        int64_t next = slu_sleep_until(until);
        struct timespec limit = {.tv_sec = next / NANOSECONDS, .tv_nsec = next % NANOSECONDS};

        if (!awaited->ended)
            pthread_cond_timedwait(&awaited->ended_now, &awaited->lock, &limit);
    } while (!awaited->ended && !slu_is_late(until));
    return awaited->ended;
}

int slu_awaited_wait(struct slu_awaited *awaited, int64_t until, const char *late)
{
    int error;

    pthread_mutex_lock(&awaited->lock);
    if (wait_until(awaited, until)) {
        error = awaited->error;
        if (error < 0)
            slu_text_restore(&awaited->text);
    } else {
        awaited->left = true;
        error = slu_fail(ETIMEDOUT, "%s", late);
    }
    pthread_mutex_unlock(&awaited->lock);
    return error;
}
