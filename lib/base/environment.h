/* SPDX-License-Identifier: MIT */
/*
 * The library's environment variables, SLUICE_*. All are in the table of environment.c, with their
 * allowed values. sluice_environment(7) describes them.
 */
#ifndef SLU_ENVIRONMENT_H
#define SLU_ENVIRONMENT_H

#include <stdint.h>

/* In the order of the table. */
enum slu_variable {
    SLU_ENV_DEVICE,
    SLU_ENV_EXCHANGE,
    SLU_ENV_HOST_FILE,
    SLU_ENV_JOB,
    SLU_ENV_LOCAL_RANK,
    SLU_ENV_LOG,
    SLU_ENV_MISUSE,
    SLU_ENV_MUNGE,
    SLU_ENV_RANK,
    SLU_ENV_RANKS,
    SLU_ENV_ROOT,
    SLU_ENV_SECRET_FILE,
    SLU_ENV_TCP_ADDRESS,
    SLU_ENV_WIRE,
    SLU_ENV_COUNT
};

const char *slu_env_name(enum slu_variable variable);
/* Returns what the variable is for. */
const char *slu_env_purpose(enum slu_variable variable);
/*
 * Returns the choices of a variable, ended by NULL, and sets *preset to the index of the default.
 */
const char *const *slu_env_choices(enum slu_variable variable, uint32_t *preset);

/* Returns the default, as shown to users. */
const char *slu_env_default(enum slu_variable variable);
/* Sets the bounds of a number; of a text, *high is the most bytes. */
void slu_env_range(enum slu_variable variable, uint32_t *low, uint32_t *high);

/* Read a variable. One that is set to nothing counts as not set, and gives NULL. */
const char *slu_getenv(const char *name);
const char *slu_env_value(enum slu_variable variable);

/* Returns the index of a value among the choices of the variable, or -1. Never logs. */
int slu_env_find_choice(enum slu_variable variable, const char *value);

/*
 * Read variables that have no sensible default. Return 1 and the value, 0 if it is not set, or
 * -EINVAL with a text that names variable, value and what is allowed.
 */
int slu_env_number(enum slu_variable variable, uint32_t *value);
int slu_env_text(enum slu_variable variable, const char **value);

/* Parses decimal digits and nothing else, of low to high. Returns 0, or -EINVAL without a text. */
int slu_parse_number(const char *text, uint32_t low, uint32_t high, uint32_t *value);

#endif
