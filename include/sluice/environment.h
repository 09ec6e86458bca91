/* SPDX-License-Identifier: MIT */
/*
 * The environment variables of the library, sluice_environment(7), and their present values, for
 * programs that record their settings. No other thread may change the environment during these
 * calls.
 */
#ifndef SLUICE_ENVIRONMENT_H
#define SLUICE_ENVIRONMENT_H

#include <stdint.h>

#include <sluice/macros.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sluice_variable_state {
    SLUICE_VARIABLE_UNSET = 1,  /* or set to nothing, which is the same */
    SLUICE_VARIABLE_SET = 2,    /* and its value is valid */
    SLUICE_VARIABLE_WRONG = 3,  /* its value is not valid: see reason */
    SLUICE_VARIABLE_UNKNOWN = 4 /* its name begins with SLUICE_, but the library does not know it */
};

/* For an unknown variable only state, name, nearest and reason are set. */
struct sluice_variable_info {
    uint32_t size;    /* set to sizeof(struct sluice_variable_info) by the caller */
    uint32_t state;   /* enum sluice_variable_state */
    char name[64];    /* such as "SLUICE_DEVICE" */
    char what[64];    /* purpose of the variable */
    char value[256];  /* the beginning of the value; empty: not set, not known, or secret */
    char preset[64];  /* default if it is not set, in words */
    char allowed[64]; /* valid values, in words */
    char nearest[64]; /* if unknown: the variable that was probably meant, or empty */
    char reason[256]; /* what is wrong with it; empty: nothing */
};

/*
 * Describes the variable at the index: from 0 those of the library, then unknown ones that begin
 * with SLUICE_. A file that a variable names is checked. Set info->size first. -ERANGE: there are
 * no more variables; -EINVAL: NULL or too small a size; -E2BIG: a size above 4096.
 */
SLUICE_EXPORT int sluice_environment_variable(uint32_t index, struct sluice_variable_info *info);

#ifdef __cplusplus
}
#endif

#endif
