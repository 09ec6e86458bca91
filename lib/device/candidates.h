/* SPDX-License-Identifier: MIT */
/* Internal to lib/device: the candidates of a choice, for choice.c and explain.c. */
#ifndef SLU_CANDIDATES_H
#define SLU_CANDIDATES_H

#include <stdbool.h>

#include "device/choice.h"

/* Farther than every RDMA device: ranks on different transports cannot meet. */
#define SLU_DISTANCE_OF_SOFT UINT32_MAX

struct slu_candidate {
    uint32_t index; /* in the list of devices */
    uint32_t port;  /* given in its name; 0: none */
    uint32_t distance;
    bool usable;
};

struct slu_candidates {
    uint32_t count;
    struct slu_candidate *all; /* in the order of the names, or of the list */
};

/* Reads the wish of the calling thread from names, or else the environment: 0, or -EINVAL. */
int slu_wish_read(const char *names, uint32_t port, struct slu_wish *wish);
void slu_near_read_here(struct slu_near *near);

/* Collects at least one candidate, in memory for the caller to free; or a negative errno value. */
int slu_candidates_collect(const struct sluice_device_list *list, const struct slu_wish *wish,
                           struct slu_candidates *candidates);
/* Chooses a candidate; sets usable and distance of all. Logs nothing. */
const struct slu_candidate *slu_candidates_choose(const struct sluice_device_list *list,
                                                  const struct slu_wish *wish,
                                                  const struct slu_near *near,
                                                  struct slu_candidates *candidates,
                                                  struct slu_choice *choice);

/* Returns the requested port of the candidate; 0: its first active one. */
uint32_t slu_candidate_port(const struct slu_wish *wish, const struct slu_candidate *candidate);
bool slu_candidate_is_active(const struct sluice_device_list *list, const struct slu_wish *wish,
                             const struct slu_candidate *candidate);

/* ", NUMA distance 10, 2 of 4 equally near for local rank 5 (SLURM_LOCALID)", or less. */
void slu_choice_describe(const struct slu_wish *wish, const struct slu_choice *choice, char *text,
                         size_t size);

#endif
