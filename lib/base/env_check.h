/* SPDX-License-Identifier: MIT */
/* Variables of the environment that are misspelt, and words in them: the log tells. */
#ifndef SLU_ENV_CHECK_H
#define SLU_ENV_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "base/environment.h"

/*
 * The place of the value among the words of the variable, or its default; a word that is
 * none is logged as an error.
 */
uint32_t slu_env_choice(enum slu_variable variable);

/* "a, b or c": what one of words may be. */
void slu_env_list_choices(enum slu_variable variable, char *text, size_t size);

/*
 * The next SLUICE_* of the environment, from this entry on, that is not known, and the name that
 * was probably meant, or NULL. NULL: there is none any more.
 */
char **slu_env_next_unknown(char **entry, const char **meant);

/* Once in a process: warns of each SLUICE_* that is not known, and names the nearest one. */
void slu_env_check_names(void);

#endif
