/* SPDX-License-Identifier: MIT */
/*
 * Calls on regions of peers: requesting, receiving, renewing, and giving back. Guarantee: a region
 * that was granted is never lost, whether or not the call waited for it.
 */
#include "config.h"

#include "agent/agent.h"

static void hold_mr(struct sluice_agent_mr *mr)
{
    TAILQ_INSERT_TAIL(&mr->peer->held, mr, links);
    mr->peer->held_count++;
    mr->peer->agent->info.held++;
}

/* Takes a region off the list of held ones. */
static void let_go(struct sluice_agent_mr *mr)
{
    TAILQ_REMOVE(&mr->peer->held, mr, links);
    mr->peer->held_count--;
    mr->peer->agent->info.held--;
}

/* Requesting memory. */

static int check_request(uint64_t length, uint32_t access, int64_t lease, int64_t deadline)
{
    if (length == 0 || length > SLU_AGENT_MOST_BYTES)
        return slu_misuse(EINVAL, "%llu bytes: must be in 1..2^60", (unsigned long long)length);
    if (access == 0 || (access & ~SLU_AGENT_ACCESS) != 0)
        return slu_misuse(EINVAL, "access %#x: must be some of %#x", access, SLU_AGENT_ACCESS);
    if (lease < 0)
        return slu_misuse(EINVAL, "lease %lld is negative", (long long)lease);
    return slu_agent_check_time(deadline, "deadline");
}

/* Returns when the granted lease ends; counted from before the request, so never too late. */
static int64_t end_of(const struct slu_agent_wait *wait)
{
    return wait->lease > SLUICE_FOREVER - wait->asked ? SLUICE_FOREVER : wait->asked + wait->lease;
}

/* Returns whether the owner granted what was requested. */
static bool fits(const struct slu_agent_wait *wait, uint64_t length, uint32_t access, int64_t lease)
{
    return wait->remote.length == length && wait->access == access &&
           (lease == 0 || wait->lease <= lease);
}

/* Requests memory. Called with the lock; mr is made first, so a granted region is never lost. */
static int request(struct sluice_agent_mr *mr, uint64_t length, int64_t lease, int64_t until)
{
    struct sluice_agent_peer *peer = mr->peer;
    struct slu_agent_message message = {
        .type = SLU_AGENT_ALLOC, .bytes = length, .access = mr->access, .lease = lease};
    struct slu_agent_wait *wait;
    int error = slu_agent_request(peer, &message, until, &wait);

    if (error < 0)
        return error;
    error = slu_agent_wait_for(peer, wait, until);
    if (error == 0 && !fits(wait, length, mr->access, lease)) {
        slu_agent_refuse(peer, &peer->agent->info.malformed, "memory that was not requested");
        error = slu_fail(EPROTO, "peer %s granted other memory than was requested", peer->address);
    }
    if (error == 0) {
        mr->id = wait->region;
        mr->remote = wait->remote;
        mr->expires = end_of(wait);
        mr->over = peer->state == SLU_AGENT_OVER;
        hold_mr(mr);
    }
    if (!wait->abandoned)
        slu_agent_wait_end(wait);
    return error;
}

struct sluice_agent_mr *sluice_agent_request_mr(struct sluice_agent_peer *peer, uint64_t length,
                                                uint32_t access, int64_t lease, int64_t deadline)
{
    struct sluice_agent_mr *mr;
    struct sluice_agent *agent;
    int error;

    if (!slu_is_agent_peer(peer))
        return slu_none(slu_not_an_agent_peer(peer));
    error = check_request(length, access, lease, deadline);
    if (error < 0)
        return slu_none(error);
    agent = peer->agent;
    slu_agent_enter(agent);
    mr = slu_agent_mr_make(peer);
    error = mr == NULL ? -ENOMEM : 0;
    if (mr != NULL) {
        mr->access = access;
        error = request(mr, length, lease, slu_after(deadline));
        if (error < 0)
            slu_agent_mr_free(mr);
    }
    slu_agent_leave(agent);
    if (error < 0)
        return slu_none(error);
    slu_made();
    return mr;
}

/* Renewing a lease. */

static int check_renewal(const struct sluice_agent_mr *mr)
{
    int error = slu_agent_peer_check(mr->peer);

    if (error < 0)
        return error;
    if (slu_agent_lease_left(mr) == 0)
        return slu_fail(EACCES, "region %llu of peer %s cannot be renewed: %s",
                        (unsigned long long)mr->id, mr->peer->address,
                        mr->over ? "its owner took it back" : "its lease is over");
    if (mr->expires == SLUICE_FOREVER)
        return slu_misuse(EINVAL, "region %llu of peer %s has no lease that ends",
                          (unsigned long long)mr->id, mr->peer->address);
    return 0;
}

static int renew(struct sluice_agent_mr *mr, int64_t lease, int64_t until)
{
    struct sluice_agent_peer *peer = mr->peer;
    struct slu_agent_message message = {.type = SLU_AGENT_RENEW, .region = mr->id, .lease = lease};
    struct slu_agent_wait *wait;
    int error = check_renewal(mr);

    if (error == 0)
        error = slu_agent_request(peer, &message, until, &wait);
    if (error < 0)
        return error;
    error = slu_agent_wait_for(peer, wait, until);
    if (error == 0 && lease != 0 && wait->lease > lease) {
        slu_agent_refuse(peer, &peer->agent->info.malformed, "a lease that was not requested");
        error =
            slu_fail(EPROTO, "peer %s granted a longer lease than was requested", peer->address);
    }
    if (error == 0 && end_of(wait) > mr->expires)
        mr->expires = end_of(wait);
    if (!wait->abandoned)
        slu_agent_wait_end(wait);
    return error == -ENOENT ? -EACCES : error;
}

int sluice_agent_mr_renew(struct sluice_agent_mr *mr, int64_t lease, int64_t deadline)
{
    SLU_KEEP_ERRNO;
    struct sluice_agent *agent;
    int error;

    if (!slu_is_agent_mr(mr))
        return slu_not_an_agent_mr(mr);
    if (lease < 0)
        return slu_misuse(EINVAL, "lease %lld is negative", (long long)lease);
    error = slu_agent_check_time(deadline, "deadline");
    if (error < 0)
        return error;
    agent = mr->peer->agent;
    slu_agent_enter(agent);
    error = renew(mr, lease, slu_after(deadline));
    slu_agent_leave(agent);
    return error;
}

/* Releasing a region, or sending it back. */

static int send_back(struct sluice_agent_mr *mr, uint32_t type, int64_t until, bool *asked)
{
    struct sluice_agent_peer *peer = mr->peer;
    struct slu_agent_message message = {.type = type, .region = mr->id};
    struct slu_agent_wait *wait;
    int error = slu_agent_peer_check(peer);

    if (error == 0 && type == SLU_AGENT_RETURN && slu_agent_lease_left(mr) == 0)
        error = slu_fail(EACCES, "region %llu of peer %s cannot be sent back: %s",
                         (unsigned long long)mr->id, peer->address,
                         mr->over ? "its owner took it back" : "its lease is over");
    if (error == 0)
        error = slu_agent_request(peer, &message, until, &wait);
    if (error < 0)
        return error;
    *asked = true;
    error = slu_agent_wait_for(peer, wait, until);
    if (!wait->abandoned)
        slu_agent_wait_end(wait);
    if (error == -ENOENT)
        return type == SLU_AGENT_RELEASE ? 0 : -EACCES;
    return error;
}

/* Ends a held region. If the owner could not be sent the message, that is retried later. */
static int part_with(struct sluice_agent_mr *mr, uint32_t type, int64_t deadline)
{
    struct sluice_agent_peer *peer = mr->peer;
    struct sluice_agent *agent = peer->agent;
    int error = slu_agent_check_time(deadline, "deadline");
    bool asked = false;

    slu_agent_enter(agent);
    let_go(mr);
    mr->magic = SLU_MAGIC_DEAD;
    if (error == 0)
        error = send_back(mr, type, slu_after(deadline), &asked);
    if (asked || peer->state == SLU_AGENT_OVER) {
        slu_agent_mr_free(mr);
    } else {
        TAILQ_INSERT_TAIL(&peer->unwanted, mr, links);
        slu_agent_clean_held(peer);
    }
    slu_agent_leave(agent);
    return error;
}

int sluice_agent_mr_release(struct sluice_agent_mr *mr, int64_t deadline)
{
    SLU_KEEP_ERRNO;

    return slu_is_agent_mr(mr) ? part_with(mr, SLU_AGENT_RELEASE, deadline)
                               : slu_not_an_agent_mr(mr);
}

int sluice_agent_mr_send_back(struct sluice_agent_mr *mr, int64_t deadline)
{
    SLU_KEEP_ERRNO;

    return slu_is_agent_mr(mr) ? part_with(mr, SLU_AGENT_RETURN, deadline)
                               : slu_not_an_agent_mr(mr);
}

int sluice_agent_mr_query(struct sluice_agent_mr *mr, struct sluice_agent_mr_info *info)
{
    SLU_KEEP_ERRNO;
    struct sluice_agent_mr_info known = {.size = sizeof known};
    int error;

    if (!slu_is_agent_mr(mr))
        return slu_not_an_agent_mr(mr);
    error = SLU_INFO_CHECK(sluice_agent_mr_info, info);
    if (error < 0)
        return error;
    slu_agent_enter(mr->peer->agent);
    known.access = mr->access;
    known.id = mr->id;
    known.lease = slu_agent_lease_left(mr);
    known.remote = mr->remote;
    slu_agent_leave(mr->peer->agent);
    slu_info_copy(info, &known, sizeof known);
    return 0;
}

/* Regions that a peer hands over. */

struct offering {
    struct sluice_agent *agent;
    struct sluice_agent_peer *peer; /* NULL: any */
    struct sluice_agent_mr *next;
};

static bool has_offered(void *argument)
{
    struct offering *offering = argument;
    const struct sluice_agent_peer *peer =
        offering->peer != NULL ? offering->peer : TAILQ_FIRST(&offering->agent->offering);

    offering->next = peer != NULL ? TAILQ_FIRST(&peer->offered) : NULL;
    return offering->next != NULL ||
           (offering->peer != NULL && offering->peer->state == SLU_AGENT_OVER);
}

/* Waits for the next region. Called with the lock. */
static int receive(struct offering *offering, int64_t until)
{
    struct sluice_agent_mr *mr;
    int error = slu_agent_await(offering->agent, has_offered, offering, until, true);

    if (error == -ETIMEDOUT)
        return slu_fail(ETIMEDOUT, "no region has been handed over yet");
    if (error < 0)
        return error;
    mr = offering->next;
    if (mr == NULL)
        return slu_agent_peer_check(offering->peer);
    TAILQ_REMOVE(&mr->peer->offered, mr, links);
    slu_agent_list_offering(mr->peer);
    hold_mr(mr);
    slu_agent_received(mr->peer, 0);
    return 0;
}

struct sluice_agent_mr *sluice_agent_receive_remote_mr(struct sluice_agent *agent,
                                                       struct sluice_agent_peer *peer,
                                                       int64_t timeout)
{
    struct offering offering = {.agent = agent, .peer = peer};
    int error = slu_agent_check_receive(agent, peer, timeout);

    if (error < 0)
        return slu_none(error);
    slu_agent_enter(agent);
    error = receive(&offering, slu_after(timeout));
    slu_agent_leave(agent);
    if (error < 0)
        return slu_none(error);
    slu_made();
    return offering.next;
}

struct sluice_agent_peer *sluice_agent_mr_peer(const struct sluice_agent_mr *mr)
{
    if (slu_is_agent_mr(mr))
        return mr->peer;
    (void)slu_not_an_agent_mr(mr);
    return NULL;
}
