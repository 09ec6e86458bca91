/* SPDX-License-Identifier: MIT */
/*
 * Peers: setup, progress and loss. Guarantee: all that a peer had, and all that waits for it, ends
 * with its control queue pair. The object stays while the program holds the peer, or a message or
 * region of it.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/agent.h"

/* A connected peer has this long to send its greeting. */
#define GREETING_TIME SLUICE_S(10)

/* Setup. */

static void init_lists(struct sluice_agent_peer *peer)
{
    LIST_INIT(&peer->regions);
    LIST_INIT(&peer->revoked);
    TAILQ_INIT(&peer->jobs);
    STAILQ_INIT(&peer->returned);
    TAILQ_INIT(&peer->held);
    TAILQ_INIT(&peer->offered);
    TAILQ_INIT(&peer->unwanted);
    TAILQ_INIT(&peer->messages);
    TAILQ_INIT(&peer->dropped);
}

static int open_peer(struct sluice_agent_peer *peer)
{
    int error = slu_agent_data_open(peer);

    if (error == 0)
        error = slu_agent_control_open(peer);
    if (error == 0)
        error = slu_agent_watch_peer(peer->agent, peer);
    slu_agent_peer_locate(peer);
    return error;
}

struct sluice_agent_peer *slu_agent_peer_make(struct sluice_agent *agent,
                                              struct sluice_channel *control, uint32_t index,
                                              bool came)
{
    struct sluice_agent_peer *peer = calloc(1, sizeof *peer);
    int error;

    if (peer == NULL) {
        slu_agent_control_end(agent, control, index);
        return slu_fail_null(ENOMEM, "no memory for a peer of the agent");
    }
    peer->magic = SLU_MAGIC_AGENT_PEER;
    peer->references = 1;
    peer->agent = agent;
    agent->references++;
    peer->control = control;
    peer->shares = control == NULL;
    peer->index = index;
    peer->came = came;
    peer->state = SLU_AGENT_GREETING;
    peer->since = peer->last_sent = slu_now();
    init_lists(peer);
    TAILQ_INSERT_TAIL(&agent->peers, peer, links);
    agent->connected++;
    error = open_peer(peer);
    if (error < 0) {
        slu_agent_lose(peer, error, "its setup failed: %.200s", sluice_last_error());
        return slu_none(error);
    }
    slu_agent_touch(peer);
    slu_agent_due(agent, peer->since + GREETING_TIME);
    /* The peer may have left already; it is then lost by this send. */
    slu_agent_peer_hold(peer);
    slu_agent_control_flush(peer);
    error = slu_agent_peer_check(peer);
    slu_agent_peer_drop(peer);
    return error == 0 ? peer : slu_none(error);
}

/* Loss. */

/*
 * Keeps a lost peer until its messages are received. None is dropped, because their sender was
 * told that they have arrived. While max_left_bytes is reached no peers are accepted, as these
 * could leave more.
 */
static void keep(struct sluice_agent_peer *peer)
{
    struct sluice_agent *agent = peer->agent;
    bool full = slu_agent_left_is_full(agent);

    TAILQ_INSERT_TAIL(&agent->kept, peer, links);
    peer->is_kept = true;
    peer->kept_bytes = sizeof *peer + slu_agent_count_messages(peer);
    agent->info.left_bytes += peer->kept_bytes;
    if (!full && slu_agent_left_is_full(agent))
        slu_log(SLUICE_LOG_WARN,
                "agent: no more peers are accepted: unreceived messages of peers that have left, "
                "and these peers, take %llu bytes: max_left_bytes is %llu",
                (unsigned long long)agent->info.left_bytes,
                (unsigned long long)agent->attr.max_left_bytes);
}

/* Drops the agent's reference; or keeps the peer if only the agent can reach its messages. */
static void detach(struct sluice_agent_peer *peer)
{
    struct sluice_agent *agent = peer->agent;

    TAILQ_REMOVE(&agent->peers, peer, links);
    agent->connected--;
    if (peer->is_fresh)
        TAILQ_REMOVE(&agent->fresh, peer, fresh);
    peer->is_fresh = false;
    if (!peer->is_readable || peer->is_held) {
        slu_agent_peer_drop(peer);
        return;
    }
    keep(peer);
}

void slu_agent_lose(struct sluice_agent_peer *peer, int error, const char *format, ...)
{
    struct sluice_agent *agent = peer->agent;
    va_list arguments;

    if (peer->state == SLU_AGENT_OVER)
        return;
    va_start(arguments, format);
    vsnprintf(peer->why, sizeof peer->why, format, arguments);
    va_end(arguments);
    peer->state = SLU_AGENT_OVER;
    peer->error = error;
    agent->info.lost++;
    agent->news = true;
    slu_log(SLUICE_LOG_INFO, "agent: peer %s is lost: %s", peer->address, peer->why);
    slu_agent_unwatch_peer(peer);
    slu_agent_data_close(peer);
    slu_agent_control_close(peer);
    slu_agent_fail_waits(peer);
    slu_agent_end_regions(peer);
    slu_agent_end_held(peer);
    slu_agent_end_messages(peer, false);
    slu_agent_end_dropped(peer);
    slu_agent_notify(agent);
    /* This may drop the last reference, unless the caller has one. */
    detach(peer);
}

/*
 * Returns whether a peer has other work than to report what it has taken: most messages bring none.
 * What is due at some time sets needs_service.
 */
static bool has_work(const struct sluice_agent_peer *peer)
{
    const struct sluice_agent_message *first = TAILQ_FIRST(&peer->messages);

    return peer->needs_service || peer->state != SLU_AGENT_OPEN ||
           peer->data.state != SLU_AGENT_DATA_READY || peer->data.remote_generation != 0 ||
           peer->data.transfers > 0 || !TAILQ_EMPTY(&peer->jobs) || !TAILQ_EMPTY(&peer->dropped) ||
           (first != NULL && first->announced != 0) || !LIST_EMPTY(&peer->revoked) ||
           peer->has_unclean || !TAILQ_EMPTY(&peer->unwanted) || peer->agent->attr.keepalive != 0 ||
           slu_agent_data_failed(peer);
}

bool slu_agent_peer_progress(struct sluice_agent_peer *peer)
{
    bool changed;

    if (peer->state == SLU_AGENT_OVER)
        return false;
    changed = slu_agent_control_poll(peer);
    if (peer->state != SLU_AGENT_OVER && slu_agent_must_poll_data(peer))
        changed |= slu_agent_data_poll(peer);
    if (!changed && !peer->needs_service && !slu_agent_data_failed(peer))
        return false;
    if (!has_work(peer)) {
        slu_agent_control_flush(peer);
        return true;
    }
    peer->needs_service = false;
    if (peer->state != SLU_AGENT_OVER)
        changed |= slu_agent_data_progress(peer);
    if (peer->state == SLU_AGENT_OPEN) {
        slu_agent_expire(peer);
        changed |= slu_agent_run_jobs(peer);
    }
    if (peer->state == SLU_AGENT_OPEN)
        changed |= slu_agent_continue_reads(peer);
    if (peer->state == SLU_AGENT_OPEN) {
        slu_agent_notify_revoked(peer);
        slu_agent_clean_waits(peer);
        slu_agent_clean_held(peer);
    }
    if (peer->state != SLU_AGENT_OVER)
        slu_agent_control_flush(peer);
    if (peer->state == SLU_AGENT_GREETING) {
        if (slu_now() - peer->since >= GREETING_TIME)
            slu_agent_lose(peer, -ETIMEDOUT, "it sent no greeting: is it an agent?");
        else
            slu_agent_due(peer->agent, peer->since + GREETING_TIME);
    }
    return changed || peer->state == SLU_AGENT_OVER;
}
