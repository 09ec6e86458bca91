/* SPDX-License-Identifier: MIT */
/*
 * Memory that an agent reuses. Spare memory is what freed long messages and control queue pairs of
 * lost peers had; no peer has a key to it. Staging memory is what a long message is copied to, for
 * the peer to read it there. Guarantee: only one peer ever has the key of staging memory, and it is
 * reused only after that peer has confirmed that it has read the message. Memory of a pool is what
 * ended regions of a peer had; it is for that peer alone, and its key was never sent.
 *
 * Registering a message takes longer than copying it. Peers on this host map the staging memory
 * and read it without our help.
 */
#include "config.h"

#include <string.h>

#include "agent/agent.h"
#include "device/pd.h"
#include "memory/mr.h"

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

/* Regions of peers. No request of this side names their keys, so none has to be waited for. */

bool slu_agent_pools(const struct sluice_agent *agent)
{
    return agent->pd->context->transport->transport->mr_part != NULL;
}

struct sluice_mr *slu_agent_make_pooled(struct sluice_pd *pd, uint64_t pages, uint64_t length,
                                        uint32_t access, struct sluice_mr **memory)
{
    struct sluice_mr *mr;
    int err;

    *memory = sluice_mr_alloc(pd, (size_t)pages, access);
    if (*memory == NULL)
        return NULL;
    mr = slu_mr_part(pd, *memory, 0, (size_t)length, access);
    if (mr != NULL)
        return mr;
    err = errno;
    slu_mr_end(*memory);
    *memory = NULL;
    errno = err;
    return NULL;
}

/* Takes memory out of the pool. */
static struct sluice_mr *remove_pooled(struct sluice_agent_peer *peer, uint32_t at)
{
    struct sluice_mr *memory = peer->pool[at].memory;

    peer->pool_count--;
    peer->pool_bytes -= sluice_mr_length(memory);
    memmove(&peer->pool[at], &peer->pool[at + 1], (peer->pool_count - at) * sizeof peer->pool[0]);
    return memory;
}

struct sluice_mr *slu_agent_take_pooled(struct sluice_agent_peer *peer, uint64_t pages,
                                        uint64_t length, uint32_t access, struct sluice_mr **memory)
{
    struct sluice_mr *mr;
    uint32_t at = 0;

    while (at < peer->pool_count &&
           (sluice_mr_length(peer->pool[at].memory) != pages || peer->pool[at].access != access))
        at++;
    if (at == peer->pool_count)
        return NULL;
    mr = slu_mr_part(peer->agent->pd, peer->pool[at].memory, 0, (size_t)length, access);
    if (mr != NULL)
        *memory = remove_pooled(peer, at);
    return mr;
}

void slu_agent_put_pooled(struct sluice_agent_peer *peer, struct sluice_mr *mr,
                          struct sluice_mr *memory)
{
    uint64_t pages = sluice_mr_length(memory);
    uint64_t taken = peer->region_bytes + peer->pool_bytes;
    size_t length = sluice_mr_length(mr);

    slu_mr_end(mr);
    if (peer->state == SLU_AGENT_OVER || taken > peer->agent->attr.quota ||
        pages > peer->agent->attr.quota - taken) {
        slu_mr_end(memory);
        return;
    }
    if (peer->pool_count == SLU_AGENT_POOLED)
        slu_mr_end(remove_pooled(peer, 0));
    memset(sluice_mr_addr(memory), 0, length);
    peer->pool[peer->pool_count++] =
        (struct slu_agent_pooled){.memory = memory, .access = memory->access};
    peer->pool_bytes += pages;
}

void slu_agent_shrink_pool(struct sluice_agent_peer *peer, uint64_t pages)
{
    uint64_t quota = peer->agent->attr.quota;

    while (peer->pool_count > 0 &&
           (pages > quota || peer->region_bytes + peer->pool_bytes > quota - pages))
        slu_mr_end(remove_pooled(peer, 0));
}
