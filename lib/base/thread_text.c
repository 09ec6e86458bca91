/* SPDX-License-Identifier: MIT */
/*
 * Words of the first threads that fail are in the library, those of further threads in memory.
 * A thread that ends gives them back.
 */
#include "config.h"

#include "base/thread_text.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define OWN_WORDS 16

static struct slu_thread_text own[OWN_WORDS];
static atomic_bool taken[OWN_WORDS];
static pthread_key_t key;
static bool has_key;

/* Those of a thread for which there was no memory. */
static struct slu_thread_text none;

static _Thread_local struct slu_thread_text *words;

static void give_back(void *argument)
{
    const struct slu_thread_text *given = argument;

    words = NULL;
    for (uint32_t i = 0; i < OWN_WORDS; i++) {
        if (given == &own[i]) {
            atomic_store_explicit(&taken[i], false, memory_order_release);
            return;
        }
    }
    free(argument);
}

/* Without a key the words of threads that end are lost. */
static __attribute__((constructor)) void make_key(void)
{
    has_key = pthread_key_create(&key, give_back) == 0;
}

static struct slu_thread_text *take(void)
{
    for (uint32_t i = 0; i < OWN_WORDS; i++) {
        if (!atomic_exchange_explicit(&taken[i], true, memory_order_acquire)) {
            own[i] = (struct slu_thread_text){.continues = false};
            return &own[i];
        }
    }
    return calloc(1, sizeof *words);
}

struct slu_thread_text *slu_thread_text(void)
{
    int saved = errno;

    if (words == NULL || words == &none) {
        struct slu_thread_text *made = take();

        if (made != NULL && has_key)
            (void)pthread_setspecific(key, made);
        words = made != NULL ? made : &none;
        errno = saved;
    }
    return slu_thread_text_if_any();
}

struct slu_thread_text *slu_thread_text_if_any(void)
{
    return words != &none ? words : NULL;
}

const char *slu_thread_text_missing(void)
{
    return words == &none ? "there is no memory for the text of the error" : "";
}
