/* SPDX-License-Identifier: MIT */
/*
 * Memory that long messages are copied to, for the peer to read them there. Guarantee: only one
 * peer ever has the key of that memory, and it is reused only after that peer has confirmed that
 * it has read the message.
 *
 * Registering a message takes longer than copying it. Peers on this host map the staging memory
 * and read it without our help.
 */
#include "config.h"

#include "agent/staging.h"

#include <string.h>

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
