/* SPDX-License-Identifier: MIT */
/*
 * The data queue pair of a peer. Each reset begins a new generation, numbered one higher. Over
 * the control queue pair both sides send their generation with its endpoint, and then confirm
 * that they are connected. A side that finds the pair failed begins the next generation, and the
 * other one follows. If both begin at once, they use the same generation. Requests are posted
 * once both sides are connected.
 *
 * It is reset at most ten times a second, so that a peer that keeps failing it costs little.
 */
#include "config.h"

#include <stdio.h>

#include "agent/agent.h"
#include "engine/engine.h"
#include "multichannel/multichannel.h"

#define COMPLETIONS 16
#define LEAST_GAP SLUICE_MS(100)
/*
 * A side whose own requests did not fail waits this long for the other one to begin. A side that
 * has requests in flight when the other one begins lets them complete first. A reset would lose
 * the error that tells why the pair failed.
 */
#define CAUSE_TIME SLUICE_S(5)
/* With keepalive: a peer that does not answer on this pair must reset it at least this fast. */
#define LEAST_PATIENCE SLUICE_S(1)
/* Likewise, added for a peer that was not silent before: it need only confirm its connection. */
#define LATE_TIME SLUICE_S(10)

/* Requests in flight. */

/* Keeps the last error: the polling thread may not be the one that posted, or have its own text. */
void slu_agent_explain(struct sluice_agent_peer *peer, const struct sluice_completion *completion,
                       char *text, size_t size)
{
    struct slu_text kept;

    slu_text_save(&kept);
    (void)slu_fail_completion(peer->data.wire->base.engine, completion, SLUICE_FOREVER);
    snprintf(text, size, "peer %s: %s", peer->address, sluice_last_error());
    slu_text_restore(&kept);
}

static void transferred(const struct sluice_completion *completion)
{
    struct slu_agent_posted *posted = (struct slu_agent_posted *)(uintptr_t)completion->user_data;
    struct sluice_agent_peer *peer = posted->peer;

    peer->data.transfers--;
    peer->data.ours |= completion->error < 0;
    if (completion->error_class == SLUICE_CLASS_ACCESS)
        peer->data.failed_remote = posted->remote;
    posted->ended(peer, posted, completion);
    /* The poll may have been for another peer. */
    peer->data.completed = true;
    slu_agent_unarm(peer);
    slu_agent_notify(peer->agent);
}

static int64_t time_left(int64_t until)
{
    int64_t now;

    if (until == SLUICE_FOREVER)
        return SLUICE_FOREVER;
    now = slu_now();
    return now < until ? until - now : 0;
}

int slu_agent_post(struct sluice_agent_peer *peer, struct slu_agent_posted *posted,
                   struct sluice_request *request, int64_t until)
{
    struct slu_agent_data *data = &peer->data;
    int result;

    if (data->state != SLU_AGENT_DATA_READY || data->transfers >= SLU_AGENT_TRANSFERS)
        return 0;
    posted->peer = peer;
    posted->remote = request->remote;
    request->peer = data->index;
    request->user_data = (uintptr_t)posted;
    result = sluice_multichannel_post(data->wire, request, 1, time_left(until), NULL);
    slu_agent_unarm_data(peer);
    /* The failed queue pair is reset before anything else is posted. */
    if (result == -EAGAIN || result == -ENOTCONN)
        return 0;
    data->transfers += result == 1;
    return result;
}

static void poll_wire(struct sluice_multichannel *wire)
{
    struct sluice_completion completions[COMPLETIONS];
    int count;

    do {
        count = sluice_multichannel_poll(wire, completions, COMPLETIONS);
        for (int i = 0; i < count; i++)
            transferred(&completions[i]);
    } while (count == COMPLETIONS);
}

/* Marks the peers whose data queue pairs have failed: one without requests completes none. */
static void notice_failures(struct sluice_agent *agent)
{
    const struct slu_engine *engine = agent->shared.data.wire->base.engine;
    struct sluice_agent_peer *peer;

    if (agent->shared.data.epoch == engine->epoch)
        return;
    agent->shared.data.epoch = engine->epoch;
    TAILQ_FOREACH(peer, &agent->peers, links)
    if (peer->data.shares && slu_agent_data_failed(peer))
        slu_agent_touch(peer);
}

void slu_agent_shared_data_poll(struct sluice_agent *agent)
{
    agent->shared.data.armed = false;
    poll_wire(agent->shared.data.wire);
    notice_failures(agent);
}

bool slu_agent_data_poll(struct sluice_agent_peer *peer)
{
    struct sluice_agent *agent = peer->agent;
    bool some;

    slu_agent_unarm(peer);
    if (!peer->data.shares) {
        peer->data.armed = false;
        poll_wire(peer->data.wire);
    } else if (!agent->shared.data.polled) {
        slu_agent_shared_data_poll(agent);
    }
    some = peer->data.completed;
    peer->data.completed = false;
    return some;
}

int slu_agent_data_open(struct sluice_agent_peer *peer)
{
    struct slu_agent_data *data = &peer->data;
    struct sluice_agent *agent = peer->agent;
    struct sluice_multichannel *wire =
        agent->shared.data.wire != NULL ? agent->shared.data.wire : slu_agent_make_data(agent);
    int index;

    if (wire == NULL)
        return -errno;
    index = sluice_multichannel_peer_add(wire, &data->own);
    if (index < 0) {
        if (agent->shared.data.wire == NULL)
            sluice_multichannel_close(wire);
        return index;
    }
    data->wire = wire;
    data->index = (uint32_t)index;
    data->shares = wire == agent->shared.data.wire;
    data->ignored = data->shares;
    data->state = SLU_AGENT_DATA_MADE;
    data->generation = 1;
    data->must_send_reset = true;
    data->since = slu_now();
    return 0;
}

/* Removing the peer cancels the requests in flight; the poll hands out their completions. */
void slu_agent_data_close(struct sluice_agent_peer *peer)
{
    struct slu_agent_data *data = &peer->data;

    if (data->wire == NULL)
        return;
    (void)!sluice_multichannel_peer_remove(data->wire, data->index);
    peer->agent->shared.data.polled = false;
    slu_agent_data_poll(peer);
    if (!data->shares)
        sluice_multichannel_close(data->wire);
    data->wire = NULL;
    peer->data.state = SLU_AGENT_DATA_NONE;
}

void slu_agent_data_connect(struct sluice_agent_peer *peer, const struct sluice_endpoint *remote)
{
    struct slu_agent_data *data = &peer->data;
    int error = sluice_multichannel_peer_handshake(data->wire, data->index, remote);

    slu_agent_unarm_data(peer);
    slu_agent_touch(peer);
    if (error < 0) {
        slu_agent_lose(peer, error, "its data queue pair cannot be connected: %.160s",
                       sluice_last_error());
        return;
    }
    data->state = SLU_AGENT_DATA_CONNECTED;
    data->must_send_ready = true;
}

/* Makes our end of the next generation. Returns false if it is too early, or has failed. */
static bool make_anew(struct sluice_agent_peer *peer)
{
    struct slu_agent_data *data = &peer->data;
    int64_t now = slu_now();
    int error;

    if (now < data->earliest) {
        slu_agent_due(peer->agent, data->earliest);
        return false;
    }
    data->earliest = now + LEAST_GAP;
    error = sluice_multichannel_peer_reset(data->wire, data->index, &data->own);
    slu_agent_touch(peer);
    peer->agent->shared.data.polled = false;
    slu_agent_data_poll(peer);
    if (error < 0) {
        slu_log(SLUICE_LOG_WARN, "agent: the data queue pair to %s cannot be reset yet: %s",
                peer->address, sluice_last_error());
        slu_agent_due(peer->agent, data->earliest);
        return false;
    }
    data->state = SLU_AGENT_DATA_MADE;
    data->generation++;
    data->must_send_reset = true;
    data->must_send_ready = false;
    data->ours = false;
    data->patience = 0;
    data->since = now;
    peer->reconnects++;
    peer->agent->info.reconnects++;
    /* A long message that is being read from this peer may now give its room to others. */
    if (peer->is_readable)
        slu_agent_notify_room(peer->agent);
    return true;
}

bool slu_agent_data_end(struct sluice_agent_peer *peer)
{
    if (peer->data.state != SLU_AGENT_DATA_READY || !make_anew(peer))
        return false;
    slu_log(SLUICE_LOG_INFO,
            "agent: the data queue pair to %s is reset: a read of a message took too long",
            peer->address);
    return true;
}

/* Returns whether to wait longer for the cause of a failure; the first call begins the wait. */
static bool awaits_cause(struct sluice_agent_peer *peer)
{
    struct slu_agent_data *data = &peer->data;

    if (data->patience == 0)
        data->patience = slu_after(CAUSE_TIME);
    if (slu_now() >= data->patience)
        return false;
    slu_agent_due(peer->agent, data->patience);
    return true;
}

/* Resets a failed queue pair, once its cause is known or was waited for. */
static bool begin_anew(struct sluice_agent_peer *peer)
{
    struct sluice_error first = {.size = sizeof first};

    if (sluice_multichannel_peer_error(peer->data.wire, peer->data.index, &first) == 1)
        peer->data.lost_peer = first.error_class == SLUICE_CLASS_PEER_LOST;
    /* If our own request failed, or the peer is silent, there is no other cause to wait for. */
    if (!peer->data.ours && !peer->data.lost_peer && awaits_cause(peer))
        return false;
    if (!make_anew(peer))
        return false;
    slu_log(SLUICE_LOG_INFO, "agent: the data queue pair to %s failed, and is reset: %s",
            peer->address, slu_error_reason(&first));
    return true;
}

/* Connects to the peer's new end; begins its generation first if we are one behind. */
static void follow_reset(struct sluice_agent_peer *peer)
{
    struct slu_agent_data *data = &peer->data;
    struct sluice_endpoint remote = data->remote;
    bool next = data->remote_generation == data->generation + 1;

    if (next && data->transfers > 0 && awaits_cause(peer))
        return;
    if (next && !make_anew(peer))
        return;
    data->remote_generation = 0;
    slu_agent_data_connect(peer, &remote);
}

void slu_agent_handle_reset(struct sluice_agent_peer *peer, const struct slu_agent_message *message)
{
    struct slu_agent_data *data = &peer->data;
    bool meets = message->generation == data->generation && data->state == SLU_AGENT_DATA_MADE;

    if (data->remote_generation != 0 || (!meets && message->generation != data->generation + 1) ||
        message->generation == 1) {
        slu_agent_refuse(peer, &peer->agent->info.unasked,
                         "a reset of the data queue pair out of order");
        return;
    }
    if (message->remote.length > 0)
        slu_agent_log_late_use(peer, &message->remote);
    data->remote = message->endpoint;
    data->remote_generation = message->generation;
    follow_reset(peer);
}

void slu_agent_handle_ready(struct sluice_agent_peer *peer, const struct slu_agent_message *message)
{
    struct slu_agent_data *data = &peer->data;

    /* It confirms a generation that we have left since. */
    if (message->generation < data->generation)
        return;
    if (message->generation > data->generation || data->state != SLU_AGENT_DATA_CONNECTED) {
        slu_agent_refuse(peer, &peer->agent->info.unasked,
                         "the confirmation of a data queue pair that does not exist");
        return;
    }
    data->state = SLU_AGENT_DATA_READY;
    data->lost_peer = false;
    /* Start keepalive now, although nothing has come over the queue pair itself yet. */
    if (sluice_multichannel_peer_state(data->wire, data->index) == SLUICE_STATE_READY)
        slu_peer_heard(&data->wire->base.engine->peers[data->index]);
    /* A long message that comes next can be read now. */
    peer->agent->news |= peer->is_readable;
}

/* With keepalive, loses a peer that does not confirm the data queue pair in time. */
static void lose_silent(struct sluice_agent_peer *peer)
{
    int64_t patience = peer->agent->attr.keepalive;

    if (patience == 0 || peer->data.state == SLU_AGENT_DATA_READY)
        return;
    if (patience < LEAST_PATIENCE)
        patience = LEAST_PATIENCE;
    if (!peer->data.lost_peer)
        patience += LATE_TIME;
    if (slu_now() - peer->data.since >= patience)
        slu_agent_lose(peer, -ECONNRESET, "it was silent for longer than keepalive allows");
    else
        slu_agent_due(peer->agent, peer->data.since + patience);
}

bool slu_agent_data_failed(const struct sluice_agent_peer *peer)
{
    return peer->data.state != SLU_AGENT_DATA_NONE &&
           !slu_channel_seems_ready(peer->data.wire->base.engine, peer->data.index) &&
           sluice_multichannel_peer_state(peer->data.wire, peer->data.index) == SLUICE_STATE_FAILED;
}

bool slu_agent_data_progress(struct sluice_agent_peer *peer)
{
    struct slu_agent_data *data = &peer->data;
    bool some = false;

    if (data->remote_generation != 0)
        follow_reset(peer);
    else if (slu_agent_data_failed(peer))
        some |= begin_anew(peer);
    if (peer->state == SLU_AGENT_OPEN)
        lose_silent(peer);
    return some;
}
