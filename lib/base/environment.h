/* SPDX-License-Identifier: MIT */
/*
 * The library's own variables of the environment, SLUICE_*: all of them stand in
 * the one table of environment.c, with what they may be. sluice_environment(7)
 * describes them.
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
/* It is for this. */
const char *slu_env_purpose(enum slu_variable variable);
/* What it may be, up to a NULL, and the place of its default. Of one of words. */
const char *const *slu_env_choices(enum slu_variable variable, uint32_t *preset);

/* What counts where it is not set, in words. */
const char *slu_env_default(enum slu_variable variable);
/* Of a number its bounds; of a text the second is its most bytes. */
void slu_env_range(enum slu_variable variable, uint32_t *low, uint32_t *high);

/* A variable of any name: what is set to nothing counts as not set, which is NULL. */
const char *slu_getenv(const char *name);
const char *slu_env_value(enum slu_variable variable);

/* The place of this value among the words of the variable, or -1. It never logs. */
int slu_env_find_choice(enum slu_variable variable, const char *value);

/*
 * Those without a sane default: 1 and the value, 0 (not set), or -EINVAL with a text
 * that names variable, value and what is allowed. A text is no longer than the table
 * allows.
 */
int slu_env_number(enum slu_variable variable, uint32_t *value);
int slu_env_text(enum slu_variable variable, const char **value);

/* Decimal digits and nothing else, of low to high: 0, or -EINVAL without a text. */
int slu_parse_number(const char *text, uint32_t low, uint32_t high, uint32_t *value);

#endif
