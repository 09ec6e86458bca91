/* SPDX-License-Identifier: MIT */
#include "ring.h"

#include <stdlib.h>

bool ring_connect(struct ring *ring)
{
    char own[64] = "", *all = calloc(sim_ranks(), sizeof own);
    int port = sluice_agent_address(ring->agent, NULL, 0);
    int64_t began = sim_own_time();
    bool well = works(port > 0, "address") && works(all != NULL, "memory");
    if (!all_well(well)) {
        free(all);
        return false;
    }
    write_address(own, sizeof own, port);
    sim_allgather(own, all, sizeof own);
    ring->next = sluice_agent_connect(
        ring->agent, all + (sim_rank() + 1) % sim_ranks() * sizeof own, NULL, PATIENCE);
    in_time(began, PATIENCE, "connect");
    free(all);
    if (!works(ring->next != NULL, "connect")) {
        return false;
    }
    ring->before = sluice_agent_next_peer(ring->agent, PATIENCE);
    return works(ring->before != NULL, "next peer");
}

bool ring_begin(struct ring *ring, const struct sluice_agent_attr *attr)
{
    struct sluice_agent_attr chosen = *attr;

    ring->context = sluice_context_open(NULL, NULL);
    ring->pd = works(ring->context != NULL, "open") ? sluice_pd_alloc(ring->context) : NULL;
    ring->mr =
        ring->pd != NULL ? sluice_mr_alloc(ring->pd, 2 * REGION, SLUICE_ACCESS_LOCAL_WRITE) : NULL;
    if (!works(ring->mr != NULL, "memory")) {
        return false;
    }
    ring->memory = sluice_mr_addr(ring->mr);
    /* Ranks share receives among their peers, or do not. A device of the fabric cannot. */
    if (below(2)) {
        chosen.receive_pool = 16 + (uint32_t)below(64);
        chosen.receive_share = 1 + (uint32_t)below(16);
    }
    ring->agent = sluice_agent_open(ring->pd, &chosen);
    return works(ring->agent != NULL, "agent") &&
           works(sluice_agent_listen(ring->agent, ":0", NULL) == 0, "listen");
}

void ring_end(struct ring *ring)
{
    sluice_agent_peer_close(ring->next);
    sluice_agent_peer_close(ring->before);
    sluice_agent_close(ring->agent);
    must(ring->mr == NULL || sluice_mr_deregister(ring->mr) == 0, "deregister: %s",
         sluice_last_error());
    sluice_pd_free(ring->pd);
    sluice_context_close(ring->context);
}
