/* SPDX-License-Identifier: MIT */
/* Agents in a ring: each has connected to the next one, and is the next one of another. */
#ifndef SIM_RING_H
#define SIM_RING_H

#include "programs.h"

enum { REGION = 20000 };

struct ring {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_mr *mr;
    uint8_t *memory; /* 2 * REGION bytes */
    struct sluice_agent *agent;
    struct sluice_agent_peer *next, *before;
    uint32_t steps;
};

/* Makes an agent with these attributes, which listens. */
bool ring_begin(struct ring *ring, const struct sluice_agent_attr *attr);
/* Connects to the next rank, and takes the one before. */
bool ring_connect(struct ring *ring);
void ring_end(struct ring *ring);

#endif
