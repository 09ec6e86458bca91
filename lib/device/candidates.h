/* SPDX-License-Identifier: MIT */
/* Inside of a choice: what is chosen from, for who chooses and who explains. */
#ifndef SLU_CANDIDATES_H
#define SLU_CANDIDATES_H

#include <stdbool.h>

#include "device/choice.h"

/* Farther than every RDMA device: ranks on different transports cannot meet. */
#define SLU_DISTANCE_OF_SOFT UINT32_MAX

struct slu_candidate {
    uint32_t index; /* in the list of devices */
    uint32_t port;  /* that its name gives; 0: none */
    uint32_t distance;
    bool usable;
};

struct slu_candidates {
    uint32_t count;
    struct slu_candidate *all; /* in the order of the names, or of the list */
};

/* What this thread wants, by names or the environment: 0, or -EINVAL. */
int slu_wish_read(const char *names, uint32_t port, struct slu_wish *wish);
void slu_near_read_here(struct slu_near *near);

/* Those that are chosen from: at least one, to be freed; or a negative errno value. */
int slu_candidates_collect(const struct sluice_device_list *list, const struct slu_wish *wish,
                           struct slu_candidates *candidates);
/* Chooses of them, and marks them by what the choice hangs on; nothing is logged. */
const struct slu_candidate *slu_candidates_choose(const struct sluice_device_list *list,
                                                  const struct slu_wish *wish,
                                                  const struct slu_near *near,
                                                  struct slu_candidates *candidates,
                                                  struct slu_choice *choice);

/* The port that is asked for with it; 0: none, the first active one. */
uint32_t slu_candidate_port(const struct slu_wish *wish, const struct slu_candidate *candidate);
bool slu_candidate_is_active(const struct sluice_device_list *list, const struct slu_wish *wish,
                             const struct slu_candidate *candidate);

/* ", NUMA distance 10, 2 of 4 equally near for local rank 5 (SLURM_LOCALID)", or less. */
void slu_choice_describe(const struct slu_wish *wish, const struct slu_choice *choice, char *text,
                         size_t size);

#endif
