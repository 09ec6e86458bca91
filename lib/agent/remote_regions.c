/* SPDX-License-Identifier: MIT */
/*
 * Regions of peers that this agent holds, or could receive. Guarantee: no request of ours names a
 * region after its lease, or after its owner has revoked it.
 */
#include "config.h"

#include <stdlib.h>

#include "agent/agent.h"

bool slu_is_agent_mr(const struct sluice_agent_mr *mr)
{
    return mr != NULL && mr->magic == SLU_MAGIC_AGENT_MR;
}

int slu_not_an_agent_mr(const struct sluice_agent_mr *mr)
{
    return slu_misuse(EINVAL, "not a region of a peer, or one that was given back%s",
                      slu_none_hint(mr));
}

int64_t slu_agent_lease_left(const struct sluice_agent_mr *mr)
{
    int64_t now;

    if (mr->over)
        return 0;
    if (mr->expires == SLUICE_FOREVER)
        return SLUICE_FOREVER;
    now = slu_now();
    return now < mr->expires ? mr->expires - now : 0;
}

struct sluice_agent_mr *slu_agent_mr_make(struct sluice_agent_peer *peer)
{
    struct sluice_agent_mr *mr = calloc(1, sizeof *mr);

    if (mr == NULL)
        return slu_fail_null(ENOMEM, "no memory for a region of peer %s", peer->address);
    mr->magic = SLU_MAGIC_AGENT_MR;
    mr->peer = peer;
    slu_agent_peer_hold(peer);
    return mr;
}

void slu_agent_mr_free(struct sluice_agent_mr *mr)
{
    mr->magic = SLU_MAGIC_DEAD;
    slu_agent_peer_drop(mr->peer);
    free(mr);
}

void slu_agent_list_offering(struct sluice_agent_peer *peer)
{
    struct slu_agent_peers *list = &peer->agent->offering;

    if (peer->is_offering)
        TAILQ_REMOVE(list, peer, offering);
    peer->is_offering = !TAILQ_EMPTY(&peer->offered);
    if (peer->is_offering)
        TAILQ_INSERT_TAIL(list, peer, offering);
}

void slu_agent_end_held(struct sluice_agent_peer *peer)
{
    struct sluice_agent_mr *mr;

    TAILQ_FOREACH(mr, &peer->held, links)
    mr->over = true;
    while ((mr = TAILQ_FIRST(&peer->offered)) != NULL) {
        TAILQ_REMOVE(&peer->offered, mr, links);
        slu_agent_mr_free(mr);
    }
    slu_agent_list_offering(peer);
    while ((mr = TAILQ_FIRST(&peer->unwanted)) != NULL) {
        TAILQ_REMOVE(&peer->unwanted, mr, links);
        slu_agent_mr_free(mr);
    }
}

void slu_agent_clean_held(struct sluice_agent_peer *peer)
{
    struct sluice_agent_mr *mr;

    while ((mr = TAILQ_FIRST(&peer->unwanted)) != NULL) {
        struct slu_agent_message message = {.type = SLU_AGENT_RELEASE, .region = mr->id};

        if (!slu_agent_request_detached(peer, &message))
            return;
        TAILQ_REMOVE(&peer->unwanted, mr, links);
        slu_agent_mr_free(mr);
    }
}

void slu_agent_handle_hand(struct sluice_agent_peer *peer, const struct slu_agent_message *message)
{
    struct sluice_agent_mr *mr;

    if (!slu_agent_count_arrival(peer, 0)) {
        slu_agent_answer(peer, message->id, SLU_AGENT_BUSY,
                         "too many messages wait for its program");
        return;
    }
    mr = slu_agent_mr_make(peer);
    if (mr == NULL) {
        slu_agent_received(peer, 0);
        slu_agent_answer(peer, message->id, SLU_AGENT_NO_MEMORY, "it has no memory for a region");
        return;
    }
    mr->id = message->region;
    mr->remote = message->remote;
    mr->access = message->access;
    mr->expires = slu_after(message->lease);
    TAILQ_INSERT_TAIL(&peer->offered, mr, links);
    if (!peer->is_offering)
        slu_agent_list_offering(peer);
    peer->agent->news = true;
    slu_agent_answer(peer, message->id, SLU_AGENT_OK, NULL);
}

void slu_agent_handle_revoke(struct sluice_agent_peer *peer,
                             const struct slu_agent_message *message)
{
    struct sluice_agent_mr *mr;

    TAILQ_FOREACH(mr, &peer->held, links)
    if (mr->id == message->region)
        mr->over = true;
    TAILQ_FOREACH(mr, &peer->offered, links)
    if (mr->id == message->region)
        break;
    if (mr == NULL)
        return;
    TAILQ_REMOVE(&peer->offered, mr, links);
    slu_agent_list_offering(peer);
    slu_agent_mr_free(mr);
    slu_agent_received(peer, 0);
}
