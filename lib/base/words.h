/* SPDX-License-Identifier: MIT */
/*
 * Where the texts of a thread's failures are. They are not thread-local variables, since a
 * library that is loaded late has little room for these.
 */
#ifndef SLU_WORDS_H
#define SLU_WORDS_H

#include <stdbool.h>

#include "base/error.h"

#define SLU_WORDS_EARLIER "; earlier: "

struct slu_words {
    struct slu_text last;
    bool continues; /* the next text is of what came of the first failure */
    char hint[sizeof SLU_WORDS_EARLIER + SLU_TEXT_BYTES];
};

/* Those of this thread. NULL: there is no memory for them, as slu_words_lack() says then. */
struct slu_words *slu_words(void);
/* The same, or NULL if the thread has had no failure. */
struct slu_words *slu_words_if_any(void);
/* The text of a thread without words: "" or that there was no memory. Static. */
const char *slu_words_lack(void);

#endif
