/* SPDX-License-Identifier: MIT */
/* Checks of the environment that report misspelt variables and invalid choices to the log. */
#ifndef SLU_ENV_CHECK_H
#define SLU_ENV_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "base/environment.h"

/*
 * Returns the index of the variable's value among its choices, or the default. Logs an invalid one
 * as an error.
 */
uint32_t slu_env_choice(enum slu_variable variable);

/* Writes the choices of a variable, as "a, b or c". */
void slu_env_list_choices(enum slu_variable variable, char *text, size_t size);

/*
 * Returns the next unknown SLUICE_* in the environment, from this entry on, and sets *meant to the
 * name that was probably intended, or NULL. Returns NULL if there is none.
 */
char **slu_env_next_unknown(char **entry, const char **meant);

/* Once in a process, warns of each unknown SLUICE_*, and names the most similar known one. */
void slu_env_check_names(void);

#endif
