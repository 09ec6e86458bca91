/* SPDX-License-Identifier: MIT */
/*
 * The error texts of each thread. They are not thread-local variables, because a library that is
 * loaded late has little room for those.
 */
#ifndef SLU_THREAD_TEXT_H
#define SLU_THREAD_TEXT_H

#include <stdbool.h>

#include "base/error.h"

#define SLU_TEXT_EARLIER "; earlier: "

struct slu_thread_text {
    struct slu_text last;
    bool continues; /* the next text is about a consequence of the first failure */
    char hint[sizeof SLU_TEXT_EARLIER + SLU_TEXT_BYTES];
};

/* Returns the texts of this thread. NULL: no memory, as slu_thread_text_missing() then says. */
struct slu_thread_text *slu_thread_text(void);
/* The same, or NULL if the thread has had no failure. */
struct slu_thread_text *slu_thread_text_if_any(void);
/* Returns the text of a thread without texts: "", or that there was no memory. Static. */
const char *slu_thread_text_missing(void);

#endif
