/* SPDX-License-Identifier: MIT */
/*
 * Memory that an agent reuses. Spare memory is what freed long messages and control queue pairs of
 * lost peers had; no peer has a key to it. Staging memory is what a long message is copied to, for
 * the peer to read it there. Guarantee: only one peer ever has the key of staging memory, and it is
 * reused only after that peer has confirmed that it has read the message.
 *
 * Registering a message takes longer than copying it. Peers on this host map the staging memory
 * and read it without our help.
 */
#include "config.h"

#include <string.h>

#include "agent/agent.h"

void slu_agent_keep_spare(struct sluice_agent *agent, struct sluice_mr *mr)
{
    uint32_t at = 0;

    while (at < SLU_AGENT_SPARES && agent->spares[at] != NULL)
        at++;
    if (at < SLU_AGENT_SPARES && !agent->closed && sluice_mr_length(mr) <= SLU_AGENT_SPARE_BYTES)
        agent->spares[at] = mr;
    else
        (void)sluice_mr_release(mr, NULL, NULL);
}

void slu_agent_end_spares(struct sluice_agent *agent)
{
    for (uint32_t i = 0; i < SLU_AGENT_SPARES; i++) {
        if (agent->spares[i] != NULL)
            (void)sluice_mr_release(agent->spares[i], NULL, NULL);
        agent->spares[i] = NULL;
    }
}

struct sluice_mr *slu_agent_take_spare(struct sluice_agent *agent, uint64_t length, uint64_t most)
{
    struct sluice_mr *mr;

    for (uint32_t i = 0; i < SLU_AGENT_SPARES; i++) {
        mr = agent->spares[i];
        if (mr == NULL || sluice_mr_length(mr) < length || sluice_mr_length(mr) > most ||
            sluice_mr_length(mr) / 4 > length)
            continue;
        agent->spares[i] = NULL;
        return mr;
    }
    /* None fits: release one, so that memory of a size in use now can be kept. */
    mr = agent->spares[SLU_AGENT_SPARES - 1];
    agent->spares[SLU_AGENT_SPARES - 1] = NULL;
    if (mr != NULL)
        (void)sluice_mr_release(mr, NULL, NULL);
    return NULL;
}

struct sluice_mr *slu_agent_stage(struct sluice_agent_peer *peer, const void *bytes, size_t length)
{
    struct sluice_mr *mr = atomic_exchange(&peer->staging, NULL);

    if (mr == NULL)
        mr = sluice_mr_alloc(peer->agent->pd, (size_t)peer->staged, SLUICE_ACCESS_REMOTE_READ);
    if (mr != NULL)
        memcpy(sluice_mr_addr(mr), bytes, length);
    return mr;
}

void slu_agent_unstage(struct sluice_agent_peer *peer, struct sluice_mr *mr)
{
    struct sluice_mr *none = NULL;

    if (peer->state == SLU_AGENT_OVER || !atomic_compare_exchange_strong(&peer->staging, &none, mr))
        (void)sluice_mr_release(mr, NULL, NULL);
}

void slu_agent_end_staging(struct sluice_agent_peer *peer)
{
    struct sluice_mr *mr = atomic_exchange(&peer->staging, NULL);

    if (mr != NULL)
        (void)sluice_mr_release(mr, NULL, NULL);
}
