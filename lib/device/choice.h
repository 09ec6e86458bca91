/* SPDX-License-Identifier: MIT */
/*
 * The device that a process takes: one of the nearest usable devices, of those that are
 * named or else of all. The processes of a host take these in turn, by their local ranks.
 */
#ifndef SLU_CHOICE_H
#define SLU_CHOICE_H

#include <stdint.h>

#include <sluice/device.h>

#include "device/near.h"

/* The request of the caller or of the environment. */
struct slu_wish {
    const char *names;    /* as SLUICE_DEVICE has them; NULL: any */
    const char *source;   /* where the names come from, for texts */
    uint32_t port;        /* overrides the ports in the names; 0: none */
    uint32_t local_rank;  /* of this process */
    const char *local_by; /* where the local rank comes from; NULL: unknown, and it is 0 */
};

struct slu_choice {
    uint32_t index; /* in the list */
    uint32_t port;  /* 0: the first active one */
    /* The device is number place, from 1, of equals devices at the same distance. */
    uint32_t distance, place, equals;
};

/*
 * Chooses a device, and logs those that were passed over. Returns 0, -EINVAL if names is
 * malformed, -ENODEV if no device has one of these names, or -ENOMEM.
 */
int slu_choose(const struct sluice_device_list *list, const struct slu_wish *wish,
               const struct slu_near *near, struct slu_choice *choice);

/*
 * Does the same for the calling thread: names is SLUICE_DEVICE if NULL, and the local rank is
 * that of the environment. Logs the choice. Returns -EINVAL also if a variable is wrong.
 */
int slu_choose_here(const struct sluice_device_list *list, const char *names, uint32_t port,
                    struct slu_choice *choice);

/* Returns 0 if names has the syntax of SLUICE_DEVICE, or -EINVAL with a text. */
int slu_names_check(const char *names, const char *source);

/*
 * local_rank.c: gets the number of this process among those on its host, from
 * SLUICE_LOCAL_RANK or else from the first launcher that sets it; source is the variable.
 * Without one, rank is 0 and source NULL. Returns -EINVAL, with a text, if the variable is
 * malformed.
 */
int slu_local_rank(uint32_t *rank, const char **source);

#endif
