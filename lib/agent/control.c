/* SPDX-License-Identifier: MIT */
/*
 * The control queue pair of a peer. Guarantees: a receive is posted for every message the peer
 * may send, so its queue is never held up; and no message of a peer makes memory grow.
 *
 * Requests of a program are counted against a window, and the peer reports how many it has taken.
 * Answers are outside the window: each side has receives for all answers to its own requests. So
 * two sides whose windows are both full still make progress. A received message that may need an
 * answer is handled once a send slot is free.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "channel/channel.h"
#include "engine/engine.h"
#include "multichannel/multichannel.h"

#define COMPLETIONS 16
/* A peer that was sent nothing for this long is sent a heartbeat, which detects its loss. */
#define HEARTBEAT_TIME SLUICE_S(5)
#define HEARTBEAT_STEP SLUICE_S(1)

static const bool counted[SLU_AGENT_TYPES] = {
    [SLU_AGENT_ALLOC] = true,    [SLU_AGENT_RELEASE] = true,  [SLU_AGENT_HAND] = true,
    [SLU_AGENT_RETURN] = true,   [SLU_AGENT_ANNOUNCE] = true, [SLU_AGENT_TEXT] = true,
    [SLU_AGENT_WITHDRAW] = true, [SLU_AGENT_REVOKE] = true,   [SLU_AGENT_RENEW] = true,
};

bool slu_agent_is_counted(uint32_t type)
{
    return counted[type];
}

static struct sluice_sge slot_sge(const struct sluice_agent_peer *peer, uint32_t slot,
                                  uint32_t length)
{
    return (struct sluice_sge){
        .addr = (uintptr_t)(peer->bytes + (size_t)slot * peer->slot_bytes),
        .length = length,
        .lkey = sluice_mr_lkey(peer->slab),
    };
}

static int post(struct sluice_agent_peer *peer, uint32_t opcode, uint32_t slot, uint32_t length)
{
    struct sluice_request request = {
        .opcode = opcode,
        .sge_count = 1,
        .peer = peer->index,
        .sge = slot_sge(peer, slot, length),
        .user_data = slot | (opcode == SLUICE_OP_SEND ? SLU_AGENT_SEND_BIT : 0),
    };
    int posted = peer->shares
                     ? sluice_multichannel_post(peer->agent->shared.control.wire, &request, 1,
                                                SLUICE_FOREVER, NULL)
                     : sluice_channel_post(peer->control, &request, 1, SLUICE_FOREVER, NULL);

    slu_agent_unarm(peer);
    return posted == 1 ? 0 : posted;
}

/*
 * Loses a peer with the first error of its channel as the reason, unless the channel failed only
 * because this side said goodbye. An oversized message is counted by that error as well: the
 * failed receive may not have been polled yet if a send of ours failed for the same reason.
 */
static void lose_control(struct sluice_agent_peer *peer, int error)
{
    struct sluice_error first = {.size = sizeof first};
    bool known = (peer->shares ? sluice_multichannel_peer_error(peer->agent->shared.control.wire,
                                                                peer->index, &first)
                               : sluice_channel_error(peer->control, &first)) == 1;

    peer->agent->info.oversized +=
        known && first.error_class == SLUICE_CLASS_TRUNCATED && first.opcode == SLUICE_OP_RECEIVE;
    if (peer->sent_bye)
        slu_agent_lose(peer, 0, "we have left it");
    else if (known)
        slu_agent_lose(peer, first.error, "%.220s", slu_error_reason(&first));
    else
        slu_agent_lose(peer, error, "the control queue pair failed");
}

/* Posts the receives of a peer that has its own. */
static int post_receives(struct sluice_agent_peer *peer)
{
    int error = 0;

    for (uint32_t i = 0; i < peer->receives && error == 0; i++)
        error = post(peer, SLUICE_OP_RECEIVE, i, peer->slot_bytes);
    return error;
}

int slu_agent_control_open(struct sluice_agent_peer *peer)
{
    uint32_t first_send;
    size_t bytes;

    peer->slot_bytes = slu_agent_slot_bytes(peer->agent);
    peer->receives = peer->agent->control_attr.receive_depth;
    peer->sends = peer->agent->control_attr.send_depth;
    first_send = slu_agent_is_pooled(peer) ? 0 : peer->receives;
    bytes = (size_t)(first_send + peer->sends) * peer->slot_bytes;
    peer->slab = slu_agent_take_spare(peer->agent, bytes, UINT64_MAX);
    if (peer->slab == NULL)
        peer->slab = sluice_mr_alloc(peer->agent->pd, bytes, SLUICE_ACCESS_LOCAL_WRITE);
    if (peer->slab == NULL)
        return -errno;
    peer->bytes = sluice_mr_addr(peer->slab);
    peer->free_sends = malloc(peer->sends * sizeof *peer->free_sends);
    peer->pending = calloc(peer->receives, sizeof *peer->pending);
    if (peer->free_sends == NULL || peer->pending == NULL)
        return slu_fail(ENOMEM, "no memory for a peer of the agent");
    while (peer->free_count < peer->sends) {
        peer->free_sends[peer->free_count] = first_send + peer->free_count;
        peer->free_count++;
    }
    if (peer->shares && slu_agent_shared_join(peer) < 0)
        return -ENOMEM;
    return slu_agent_is_pooled(peer) ? 0 : post_receives(peer);
}

void slu_agent_control_end(struct sluice_agent *agent, struct sluice_channel *control,
                           uint32_t index)
{
    if (control != NULL)
        sluice_channel_close(control);
    else
        slu_agent_shared_drop(agent, index);
}

void slu_agent_control_close(struct sluice_agent_peer *peer)
{
    if (peer->awaits_sends)
        slu_agent_end_send_wait(peer->agent);
    peer->awaits_sends = false;
    if (peer->control != NULL)
        sluice_channel_close(peer->control);
    else if (peer->shares)
        slu_agent_shared_leave(peer);
    peer->control = NULL;
    peer->shares = false;
    slu_agent_end_staging(peer);
    if (peer->slab != NULL)
        slu_agent_keep_spare(peer->agent, peer->slab);
    peer->slab = NULL;
    free(peer->free_sends);
    free(peer->pending);
    peer->free_sends = NULL;
    peer->pending = NULL;
    peer->free_count = peer->pending_count = 0;
}

/* Sending. */

void slu_agent_control_send(struct sluice_agent_peer *peer, struct slu_agent_message *message,
                            const void *bytes)
{
    uint32_t slot, length;
    uint8_t *at;
    int error;

    if (peer->state == SLU_AGENT_OVER || peer->free_count == 0)
        return;
    slot = peer->free_sends[--peer->free_count];
    slu_agent_count_sends(peer);
    at = peer->bytes + (size_t)slot * peer->slot_bytes;
    message->taken = peer->reported_taken = peer->taken;
    message->received = peer->reported_received = peer->received;
    message->received_bytes = peer->reported_received_bytes = peer->received_bytes;
    length = slu_agent_message_write(message, at);
    if (message->type == SLU_AGENT_TEXT && message->length > 0)
        memcpy(at + SLU_AGENT_HEAD, bytes, message->length);
    peer->sent += counted[message->type];
    peer->last_sent = slu_tick();
    error = post(peer, SLUICE_OP_SEND, slot, length);
    /* The caller may be handling received messages: the peer is lost after the rest of these. */
    if (error < 0 && peer->failed == 0)
        peer->failed = error;
}

void slu_agent_answer(struct sluice_agent_peer *peer, uint64_t id, uint32_t code, const char *words)
{
    struct slu_agent_message message = {.type = SLU_AGENT_DONE, .id = id, .code = code};

    if (words != NULL) {
        size_t count = strnlen(words, SLU_AGENT_WORDS);

        memcpy(message.words, words, count);
    }
    slu_agent_control_send(peer, &message, NULL);
}

void slu_agent_queue_answer(struct sluice_agent_peer *peer, uint64_t id, uint32_t code)
{
    if (peer->state == SLU_AGENT_OVER)
        return;
    if (peer->answer_count == SLU_AGENT_WAITS) {
        slu_agent_lose(peer, -EPROTO, "it has more than %d requests unanswered", SLU_AGENT_WAITS);
        return;
    }
    peer->answers[peer->answer_count].id = id;
    peer->answers[peer->answer_count++].code = code;
    slu_agent_control_flush(peer);
}

static void send_queued_answers(struct sluice_agent_peer *peer)
{
    while (peer->answer_count > 0 && peer->free_count > 0) {
        uint64_t id = peer->answers[0].id;
        uint32_t code = peer->answers[0].code;

        memmove(peer->answers, peer->answers + 1, --peer->answer_count * sizeof *peer->answers);
        slu_agent_answer(peer, id, code, NULL);
    }
}

bool slu_agent_may_request(const struct sluice_agent_peer *peer)
{
    return peer->state == SLU_AGENT_OPEN && peer->free_count > SLU_AGENT_RESERVE &&
           peer->sent - peer->sent_taken < peer->hello.window;
}

bool slu_agent_may_post(const struct sluice_agent_peer *peer, uint64_t bytes)
{
    return peer->posted - peer->posted_received < peer->hello.waiting &&
           peer->posted_bytes - peer->posted_received_bytes + bytes <= peer->hello.waiting_bytes;
}

static void send_hello(struct sluice_agent_peer *peer)
{
    const struct sluice_agent_attr *attr = &peer->agent->attr;
    struct slu_agent_message message = {
        .type = SLU_AGENT_HELLO,
        .hello = {.eager = attr->eager,
                  .window = attr->window,
                  .waiting = attr->max_waiting,
                  .access = attr->access & SLU_AGENT_ACCESS,
                  .waiting_bytes = attr->max_waiting_bytes,
                  .max_message = attr->max_message,
                  .quota = attr->quota,
                  .max_lease = attr->max_lease},
        .generation = peer->data.generation,
        .endpoint = peer->data.own,
    };

    peer->data.must_send_reset = false;
    slu_agent_control_send(peer, &message, NULL);
}

static void send_reset(struct sluice_agent_peer *peer)
{
    struct slu_agent_message message = {.type = SLU_AGENT_RESET,
                                        .generation = peer->data.generation,
                                        .endpoint = peer->data.own,
                                        .remote = peer->data.failed_remote};

    peer->data.must_send_reset = false;
    peer->data.failed_remote = (struct sluice_remote_mr){0};
    slu_agent_control_send(peer, &message, NULL);
}

static void send_plain(struct sluice_agent_peer *peer, uint32_t type)
{
    struct slu_agent_message message = {.type = type};

    if (type == SLU_AGENT_READY)
        message.generation = peer->data.generation;
    slu_agent_control_send(peer, &message, NULL);
}

/*
 * Returns whether the peer, by our last report, has no room to send a message, though our program
 * has received some since.
 */
static bool room_is_due(const struct sluice_agent_peer *peer)
{
    const struct sluice_agent_attr *attr = &peer->agent->attr;

    return peer->received != peer->reported_received &&
           (peer->arrived - peer->reported_received >= attr->max_waiting ||
            peer->arrived_bytes - peer->reported_received_bytes + peer->eager >
                attr->max_waiting_bytes);
}

/* Returns whether half of the window, or of the room for waiting messages, is unreported. */
static bool credit_is_due(const struct sluice_agent_peer *peer)
{
    const struct sluice_agent_attr *attr = &peer->agent->attr;

    return peer->taken - peer->reported_taken >= attr->window / 2 ||
           peer->received - peer->reported_received >= (attr->max_waiting + 1) / 2 ||
           peer->received_bytes - peer->reported_received_bytes >= attr->max_waiting_bytes / 2 ||
           room_is_due(peer);
}

static bool heartbeat_is_due(const struct sluice_agent_peer *peer)
{
    return !peer->pinged && slu_tick() - peer->last_sent >= HEARTBEAT_TIME - SLU_LONGEST_TICK &&
           slu_now() - peer->last_sent >= HEARTBEAT_TIME;
}

/* Returns the due time rounded up to a whole second, because all peers are served at each. */
static int64_t heartbeat_due(const struct sluice_agent_peer *peer)
{
    int64_t due = peer->last_sent + HEARTBEAT_TIME + HEARTBEAT_STEP - 1;

    return due - due % HEARTBEAT_STEP;
}

void slu_agent_control_flush(struct sluice_agent_peer *peer)
{
    send_queued_answers(peer);
    if (peer->data.must_send_reset && peer->free_count > 0) {
        if (peer->data.generation == 1)
            send_hello(peer);
        else
            send_reset(peer);
    }
    if (peer->data.must_send_ready && !peer->data.must_send_reset && peer->free_count > 0) {
        peer->data.must_send_ready = false;
        send_plain(peer, SLU_AGENT_READY);
    }
    if (peer->free_count > 0 && peer->state == SLU_AGENT_OPEN) {
        if (credit_is_due(peer)) {
            send_plain(peer, SLU_AGENT_CREDIT);
        } else if (heartbeat_is_due(peer)) {
            peer->pinged = true;
            send_plain(peer, SLU_AGENT_CREDIT);
        }
    }
    if (peer->must_send_bye && !peer->sent_bye && peer->free_count > 0) {
        peer->sent_bye = true;
        send_plain(peer, SLU_AGENT_BYE);
    }
    if (!peer->pinged)
        slu_agent_due(peer->agent, heartbeat_due(peer));
}

/* Receiving. */

/*
 * Handles received messages while there is a free send slot, since each may need one answer. With
 * last, handles all of them, and reposts no receives.
 */
static void handle_pending(struct sluice_agent_peer *peer, bool last)
{
    bool pooled = slu_agent_is_pooled(peer);

    while (peer->state != SLU_AGENT_OVER && peer->pending_count > 0 &&
           (last || peer->free_count > 0)) {
        uint32_t at = peer->first_pending;
        uint32_t slot = peer->pending[at].slot;
        uint8_t *copy = peer->pending[at].copy;
        int error = 0;

        peer->first_pending = (peer->first_pending + 1) % peer->receives;
        peer->pending_count--;
        slu_agent_handle(peer, slu_agent_pending_bytes(peer, at), peer->pending[at].length);
        if (pooled)
            slu_agent_shared_give_back(peer->agent, slot, copy);
        else if (peer->state != SLU_AGENT_OVER && !last)
            error = post(peer, SLUICE_OP_RECEIVE, slot, peer->slot_bytes);
        if (error < 0 && peer->failed == 0)
            peer->failed = error;
    }
    if (!pooled)
        return;
    if (peer->pending_count > 0)
        slu_agent_shared_copy_out(peer);
    if (peer->agent->shared.free_count > 0)
        slu_agent_shared_refill(peer->agent);
}

/* Returns the number of completions; fewer than COMPLETIONS if there are no more. */
static int take_some(struct sluice_agent_peer *peer)
{
    struct sluice_completion completions[COMPLETIONS];
    int count;

    slu_agent_unarm(peer);
    if (peer->shares) {
        bool some;

        if (!peer->agent->shared.control.polled)
            (void)slu_agent_shared_poll(peer->agent);
        some = peer->unserved;
        peer->unserved = false;
        return some;
    }
    count = sluice_channel_poll(peer->control, completions, COMPLETIONS);
    for (int i = 0; i < count; i++)
        slu_agent_take(peer, &completions[i]);
    return count;
}

/* Returns whether the queue pair is connected, as far as this is known. */
static bool is_ready(const struct sluice_agent_peer *peer)
{
    if (peer->shares)
        return peer->agent->shared.control.wire->base.engine->peers[peer->index].state ==
               SLUICE_STATE_READY;
    return slu_channel_seems_ready(peer->control->base.engine, 0) ||
           sluice_channel_state(peer->control) == SLUICE_STATE_READY;
}

/*
 * Loses a peer whose queue pair failed, perhaps because the peer closed it. Messages that came
 * before are handled first: their sends completed at the peer, and one may be its goodbye.
 */
static void fail(struct sluice_agent_peer *peer)
{
    peer->agent->shared.control.polled = false;
    while (take_some(peer) == COMPLETIONS) {
    }
    handle_pending(peer, true);
    if (peer->state != SLU_AGENT_OVER)
        lose_control(peer, peer->failed);
}

bool slu_agent_control_poll(struct sluice_agent_peer *peer)
{
    bool some = false;
    int count;

    do {
        count = take_some(peer);
        some |= count > 0;
        handle_pending(peer, false);
    } while (count == COMPLETIONS && peer->state != SLU_AGENT_OVER && peer->failed == 0);
    if (peer->state == SLU_AGENT_OVER)
        return some;
    if (peer->failed == 0 && !is_ready(peer))
        peer->failed = -ECONNRESET;
    if (peer->excess)
        slu_agent_lose(peer, -EPROTO, "it has sent more than %u messages that are not handled",
                       peer->receives);
    else if (peer->failed < 0)
        fail(peer);
    return some;
}

bool slu_agent_count_arrival(struct sluice_agent_peer *peer, uint64_t bytes)
{
    const struct sluice_agent_attr *attr = &peer->agent->attr;

    if (peer->arrived - peer->received >= attr->max_waiting ||
        peer->arrived_bytes - peer->received_bytes + bytes > attr->max_waiting_bytes) {
        slu_agent_refuse(peer, &peer->agent->info.oversized, "more than may wait to be received");
        return false;
    }
    peer->arrived++;
    peer->arrived_bytes += bytes;
    return true;
}

void slu_agent_received(struct sluice_agent_peer *peer, uint64_t bytes)
{
    peer->received++;
    peer->received_bytes += bytes;
    slu_agent_control_flush(peer);
}
