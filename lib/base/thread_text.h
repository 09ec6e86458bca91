/* SPDX-License-Identifier: MIT */
/*
 * Where the texts of a thread's failures are. They are not thread-local variables, since a
 * library that is loaded late has little room for these.
 */
#ifndef SLU_THREAD_TEXT_H
#define SLU_THREAD_TEXT_H

#include <stdbool.h>

#include "base/error.h"

#define SLU_TEXT_EARLIER "; earlier: "

struct slu_thread_text {
    struct slu_text last;
    bool continues; /* the next text is of what came of the first failure */
    char hint[sizeof SLU_TEXT_EARLIER + SLU_TEXT_BYTES];
};

/* Those of this thread. NULL: there is no memory for them, as slu_thread_text_missing() says then. */
struct slu_thread_text *slu_thread_text(void);
/* The same, or NULL if the thread has had no failure. */
struct slu_thread_text *slu_thread_text_if_any(void);
/* The text of a thread without words: "" or that there was no memory. Static. */
const char *slu_thread_text_missing(void);

#endif
