/* SPDX-License-Identifier: MIT */
/*
 * Which device a process takes. Of those that are named, or else of all, it is one of
 * the nearest that can be used; the processes of a host go round these, by their local
 * ranks.
 */
#ifndef SLU_CHOICE_H
#define SLU_CHOICE_H

#include <stdint.h>

#include <sluice/device.h>

#include "device/near.h"

/* What is asked for. */
struct slu_wish {
    const char *names;    /* as SLUICE_DEVICE has them; NULL: any */
    const char *source;   /* who named them, in words */
    uint32_t port;        /* goes before those of the names; 0: none */
    uint32_t local_rank;  /* of this process */
    const char *local_by; /* who told the local rank; NULL: nobody, and it is 0 */
};

struct slu_choice {
    uint32_t index; /* in the list */
    uint32_t port;  /* 0: the first active one */
    /* It is number place, from 1, of so many that are equally near. */
    uint32_t distance, place, equals;
};

/*
 * Chooses, and logs what was passed over. -EINVAL: the names are no list, -ENODEV:
 * there is none of them, -ENOMEM. The text says which.
 */
int slu_choose(const struct sluice_device_list *list, const struct slu_wish *wish,
               const struct slu_near *near, struct slu_choice *choice);

/*
 * The same for the calling thread, by SLUICE_DEVICE if names is NULL and by the local rank
 * of the environment; logs the choice. -EINVAL as well: a variable is wrong.
 */
int slu_choose_here(const struct sluice_device_list *list, const char *names, uint32_t port,
                    struct slu_choice *choice);

/* Whether the names are a list as SLUICE_DEVICE has them: 0, or -EINVAL with a text. */
int slu_names_check(const char *names, const char *source);

/*
 * local_rank.c: which of the processes on its host this one is, by SLUICE_LOCAL_RANK or else
 * by the first launcher that tells it; source is the variable. 0, with NULL, if none does.
 * -EINVAL: the variable that counts is wrong, which the text names.
 */
int slu_local_rank(uint32_t *rank, const char **source);

#endif
