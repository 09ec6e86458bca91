/* SPDX-License-Identifier: MIT */
/*
 * The texts of the first threads that fail are in static memory, those of further threads are
 * allocated. A thread that ends gives its texts back.
 */
#include "config.h"

#include "base/thread_text.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define STATIC_TEXTS 16

static struct slu_thread_text own[STATIC_TEXTS];
static atomic_bool taken[STATIC_TEXTS];
static pthread_key_t key;
static bool has_key;

/* Stands for the texts of a thread for which there was no memory. */
static struct slu_thread_text none;

static _Thread_local struct slu_thread_text *texts;

static void give_back(void *argument)
{
    const struct slu_thread_text *given = argument;

    texts = NULL;
    for (uint32_t i = 0; i < STATIC_TEXTS; i++) {
        if (given == &own[i]) {
            atomic_store_explicit(&taken[i], false, memory_order_release);
            return;
        }
    }
    free(argument);
}

/* Without a key the texts of threads that end are leaked. */
static __attribute__((constructor)) void make_key(void)
{
    has_key = pthread_key_create(&key, give_back) == 0;
}

static struct slu_thread_text *take(void)
{
    for (uint32_t i = 0; i < STATIC_TEXTS; i++) {
        if (!atomic_exchange_explicit(&taken[i], true, memory_order_acquire)) {
            own[i] = (struct slu_thread_text){.continues = false};
            return &own[i];
        }
    }
    return calloc(1, sizeof *texts);
}

struct slu_thread_text *slu_thread_text(void)
{
    int saved = errno;

    if (texts == NULL || texts == &none) {
        struct slu_thread_text *made = take();

        if (made != NULL && has_key)
            (void)pthread_setspecific(key, made);
        texts = made != NULL ? made : &none;
        errno = saved;
    }
    return slu_thread_text_if_any();
}

struct slu_thread_text *slu_thread_text_if_any(void)
{
    return texts != &none ? texts : NULL;
}

const char *slu_thread_text_missing(void)
{
    return texts == &none ? "there is no memory for the text of the error" : "";
}
