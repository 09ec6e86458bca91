/* SPDX-License-Identifier: MIT */
/*
 * The variables of the environment that the library has, sluice_environment(7), and what
 * they are now: for programs that write down what they ran with.
 * The environment must not be changed by another thread meanwhile.
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
    SLUICE_VARIABLE_SET = 2,    /* and its value is one that it can have */
    SLUICE_VARIABLE_WRONG = 3,  /* its value is none that it can have, as reason says */
    SLUICE_VARIABLE_UNKNOWN = 4 /* its name begins with SLUICE_, and the library has no such */
};

/* Of one that is not known only state, name, nearest and reason are there. */
struct sluice_variable_info {
    uint32_t size;    /* set to sizeof(struct sluice_variable_info) by the caller */
    uint32_t state;   /* enum sluice_variable_state */
    char name[64];    /* such as "SLUICE_DEVICE" */
    char what[64];    /* what it is for */
    char value[256];  /* the beginning of it; empty: not set, not known, or of a secret */
    char preset[64];  /* what counts where it is not set, in words */
    char allowed[64]; /* what it can be, in words */
    char nearest[64]; /* of one that is not known: the one that was probably meant, or empty */
    char reason[256]; /* what is wrong with it; empty: nothing */
};

/*
 * Describes the variable at the index: from 0 those that the library has, then those that
 * begin with SLUICE_ and that it has not. A file that one names is looked at. Set info->size
 * first. -ERANGE: there is none any more; -EINVAL: NULL or too small a size; -E2BIG: a size
 * above 4096.
 */
SLUICE_EXPORT int sluice_environment_variable(uint32_t index, struct sluice_variable_info *info);

#ifdef __cplusplus
}
#endif

#endif
