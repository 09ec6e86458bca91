/* SPDX-License-Identifier: MIT */
/* Memory of the program: handing it to a peer, revoking it, and receiving it back. */
#include "config.h"

#include <stdlib.h>

#include "agent/agent.h"

static int check_hand(const struct sluice_agent_peer *peer, const struct sluice_mr *mr,
                      size_t offset, size_t length, uint32_t access, int64_t lease)
{
    struct sluice_sge sge;

    if (length == 0)
        return slu_misuse(EINVAL, "a region to hand over needs a length of at least 1 byte");
    if (access == 0 || (access & ~SLU_AGENT_ACCESS) != 0)
        return slu_misuse(EINVAL, "access %#x: must be some of %#x", access, SLU_AGENT_ACCESS);
    if (lease <= 0)
        return slu_misuse(EINVAL, "lease %lld: must be 1 ns at least", (long long)lease);
    if (length > UINT32_MAX) {
        int error = sluice_mr_sge(mr, offset, 0, &sge);

        if (error < 0)
            return error;
        if (length > sluice_mr_length(mr) - offset)
            return slu_misuse(ERANGE, "%zu bytes at %zu are outside of the region", length, offset);
    } else {
        int error = sluice_mr_sge(mr, offset, length, &sge);

        if (error < 0)
            return error;
    }
    if (sluice_mr_addr(mr) == NULL)
        return slu_fail(EOPNOTSUPP, "a dmabuf cannot be handed to peer %s: it has no address",
                        peer->address);
    return 0;
}

/* Registers the range for this peer alone, so that its key gives access to nothing else. */
static struct slu_agent_region *register_region(struct sluice_agent *agent,
                                                const struct sluice_mr *mr, size_t offset,
                                                size_t length, uint32_t access)
{
    struct slu_agent_region *region = calloc(1, sizeof *region);

    if (region == NULL)
        return slu_fail_null(ENOMEM, "no memory for a region");
    region->mr = sluice_mr_register(agent->pd, (uint8_t *)sluice_mr_addr(mr) + offset, length,
                                    slu_agent_registered_access(access));
    if (region->mr == NULL) {
        free(region);
        return NULL;
    }
    sluice_mr_remote(region->mr, &region->remote);
    region->access = access;
    region->expires = SLUICE_FOREVER;
    return region;
}

static int hand_over(struct sluice_agent_peer *peer, struct slu_agent_region *region, int64_t lease,
                     int64_t until, uint64_t *id)
{
    struct slu_agent_message message = {
        .type = SLU_AGENT_HAND, .remote = region->remote, .lease = lease, .access = region->access};
    int error = slu_agent_peer_check(peer);

    if (error < 0) {
        (void)sluice_mr_release(region->mr, NULL, NULL);
        free(region);
        return error;
    }
    slu_agent_add_region(peer, region);
    message.region = *id = region->id;
    error = slu_agent_request_and_wait(peer, &message, until);
    region = slu_agent_find_region(peer, *id);
    if (error < 0 && region != NULL)
        slu_agent_revoke(peer, region);
    else if (region != NULL)
        /* The lease begins here no earlier than at the peer. */
        slu_agent_lend(peer, region, lease);
    return error;
}

int sluice_agent_send_local_mr(struct sluice_agent_peer *peer, const struct sluice_mr *mr,
                               size_t offset, size_t length, uint32_t access, int64_t lease,
                               int64_t deadline, uint64_t *id)
{
    SLU_KEEP_ERRNO;
    struct slu_agent_region *region;
    struct sluice_agent *agent;
    uint64_t name;
    int error;

    if (!slu_is_agent_peer(peer))
        return slu_not_an_agent_peer(peer);
    error = slu_agent_check_time(deadline, "deadline");
    if (error == 0)
        error = check_hand(peer, mr, offset, length, access, lease);
    if (error < 0)
        return error;
    agent = peer->agent;
    region = register_region(agent, mr, offset, length, access);
    if (region == NULL)
        return -errno;
    slu_agent_enter(agent);
    error = hand_over(peer, region, lease, slu_after(deadline), id != NULL ? id : &name);
    slu_agent_leave(agent);
    return error;
}

int sluice_agent_revoke_mr(struct sluice_agent_peer *peer, uint64_t id)
{
    SLU_KEEP_ERRNO;
    struct slu_agent_region *region;
    int error;

    if (!slu_is_agent_peer(peer))
        return slu_not_an_agent_peer(peer);
    slu_agent_enter(peer->agent);
    error = slu_agent_peer_check(peer);
    region = slu_agent_find_region(peer, id);
    if (error == 0 && region == NULL)
        error = slu_fail(ENOENT, "peer %s has no region %llu of ours", peer->address,
                         (unsigned long long)id);
    if (error == 0)
        slu_agent_revoke(peer, region);
    slu_agent_leave(peer->agent);
    return error;
}

/* Regions that were sent back. */

struct returning {
    struct sluice_agent *agent;
    struct sluice_agent_peer *peer; /* NULL: any that the program holds, as the result names it */
    struct slu_agent_returned *next;
};

static bool has_returned(void *argument)
{
    struct returning *returning = argument;
    struct sluice_agent_peer *peer = returning->peer;

    if (peer == NULL)
        TAILQ_FOREACH(peer, &returning->agent->returning, returning)
    if (peer->is_held)
        break;
    returning->next = peer != NULL ? STAILQ_FIRST(&peer->returned) : NULL;
    return returning->next != NULL ||
           (returning->peer != NULL && returning->peer->state == SLU_AGENT_OVER);
}

/* Waits for the next region. Called with the lock. */
static int receive(struct returning *returning, int64_t until, struct sluice_agent_local *local)
{
    struct sluice_agent_peer *peer;
    int error = slu_agent_await(returning->agent, has_returned, returning, until, true);

    if (error == -ETIMEDOUT)
        return slu_fail(ETIMEDOUT, "no region of ours has been sent back yet");
    if (error < 0)
        return error;
    if (returning->next == NULL)
        return slu_agent_peer_check(returning->peer);
    *local = returning->next->local;
    peer = local->peer;
    slu_agent_end_returned(peer, returning->next);
    slu_agent_received(peer, 0);
    return 0;
}

int sluice_agent_receive_local_mr(struct sluice_agent *agent, struct sluice_agent_peer *peer,
                                  int64_t timeout, struct sluice_agent_local *local)
{
    SLU_KEEP_ERRNO;
    struct returning returning = {.agent = agent, .peer = peer};
    struct sluice_agent_local known;
    int error = slu_agent_check_receive(agent, peer, timeout);

    if (error == 0)
        error = SLU_INFO_CHECK(sluice_agent_local, local);
    if (error < 0)
        return error;
    slu_agent_enter(agent);
    error = receive(&returning, slu_after(timeout), &known);
    slu_agent_leave(agent);
    if (error < 0)
        return error;
    known.size = sizeof known;
    slu_info_copy(local, &known, sizeof known);
    return 0;
}
