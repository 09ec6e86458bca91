/* SPDX-License-Identifier: MIT */
/* Variables of the environment that are misspelt, and words in them: the log tells. */
#ifndef SLU_SPELLING_H
#define SLU_SPELLING_H

#include <stdint.h>

#include "base/environment.h"

/*
 * The place of the value among the words of the variable, or its default; a word that is
 * none is logged as an error.
 */
uint32_t slu_env_word(enum slu_variable variable);

/* Once in a process: warns of each SLUICE_* that is not known, and names the nearest one. */
void slu_env_check_names(void);

#endif
