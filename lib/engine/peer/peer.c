/* SPDX-License-Identifier: MIT */
/*
 * A peer of an engine: its queue pair, its state, and its first error.
 *
 *   PREPARED --connect--> READY --fail--> FAILED
 *       ^                   |                |
 *       +-------reset-------+----------------+
 *
 * In a multichannel, members.c adds --remove--> REMOVED from each of these.
 */
#include "config.h"

#include "engine/peer/peer.h"

#include <stdio.h>
#include <string.h>

uint64_t slu_peer_successes(const struct slu_peer *peer)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < SLU_COUNTED_OPCODES; i++)
        count += peer->counts.requests[i];
    return count;
}

void slu_probe_init(struct slu_peer *peer)
{
    peer->probe = (struct slu_probe){.due = SLUICE_FOREVER, .successes = slu_peer_successes(peer)};
}

/* Returns how many messages of a peer have used a receive. */
static uint64_t count_taken(const struct slu_counts *counts)
{
    return counts->requests[SLUICE_OP_RECEIVE] + counts->arrivals + counts->strays;
}

void slu_peer_init(const struct slu_engine *engine, struct slu_peer *peer)
{
    const struct slu_counts counts = peer->counts;
    const struct slu_name name = peer->name;

    memset(&peer->qp, 0, sizeof *peer - offsetof(struct slu_peer, qp));
    peer->counts = counts;
    peer->name = name;
    peer->free[SLU_SEND_QUEUE] = engine->attr.send_depth;
    peer->free[SLU_RECEIVE_QUEUE] = engine->attr.receive_depth;
    for (int queue = 0; queue < SLU_QUEUES; queue++)
        peer->stall[queue].index = SLU_NONE;
    peer->drain_by = SLUICE_FOREVER;
    slu_probe_init(peer);
    peer->taken_before = count_taken(&counts);
    peer->state = SLUICE_STATE_PREPARED;
}

void slu_peer_tell_state(const struct slu_engine *engine, const struct slu_peer *peer)
{
    SLU_PROBE5(peer_state, engine, slu_peer_index(engine, peer), peer->state, peer->cause_status,
               peer->cause_vendor);
}

void slu_peer_keep_reason(struct slu_peer *peer)
{
    snprintf(peer->reason, sizeof peer->reason, "%s", sluice_last_error());
}

uint32_t slu_peer_judge_loss(const struct slu_engine *engine, struct slu_peer *peer,
                             uint32_t status)
{
    bool closed = false;

    if (status != SLUICE_STATUS_RETRY_EXC_ERR || engine->transport->qp_loss == NULL ||
        peer->qp == NULL)
        return status;
    peer->loss = engine->transport->qp_loss(peer->qp, &closed);
    return closed ? SLUICE_STATUS_PEER_CLOSED : status;
}

static void say_farewell(const struct slu_engine *engine, const struct slu_peer *peer,
                         enum slu_farewell why)
{
    if (engine->transport->qp_farewell == NULL || peer->qp == NULL)
        return;
    peer->qp->taken = count_taken(&peer->counts) - peer->taken_before;
    engine->transport->qp_farewell(peer->qp, why);
}

void slu_peer_say_closed(const struct slu_engine *engine, const struct slu_peer *peer)
{
    if (peer->state == SLUICE_STATE_READY)
        say_farewell(engine, peer, SLU_FAREWELL_CLOSED);
}

void slu_peer_close(struct slu_engine *engine, struct slu_peer *peer)
{
    if (peer->state == SLU_PEER_ABSENT)
        return;
    slu_peer_say_closed(engine, peer);
    slu_peer_fail(engine, peer, SLUICE_STATUS_WR_FLUSH_ERR, SLUICE_OP_NONE, 0);
}

static void stop_probes(struct slu_engine *engine, struct slu_peer *peer)
{
    slu_peer_stop_awaiting(engine, peer);
    peer->probe.due = SLUICE_FOREVER;
}

void slu_peer_fail(struct slu_engine *engine, struct slu_peer *peer, uint32_t status,
                   uint32_t opcode, uint32_t vendor)
{
    bool real = status != SLUICE_STATUS_WR_FLUSH_ERR && status != SLUICE_STATUS_DEADLINE;

    if (peer->state == SLUICE_STATE_FAILED && peer->cause_inferred && real) {
        peer->cause_status = status;
        peer->cause_opcode = opcode;
        peer->cause_vendor = vendor;
        peer->cause_inferred = peer->async_error_pending = false;
        peer->reason[0] = '\0';
    }
    if (slu_peer_over(peer))
        return;
    engine->ready_count -= peer->state == SLUICE_STATE_READY;
    peer->state = SLUICE_STATE_FAILED;
    engine->epoch++;
    peer->failed_in = engine->call_number;
    peer->failed_at = slu_now();
    peer->cause_status = status;
    peer->cause_opcode = opcode;
    peer->cause_vendor = vendor;
    peer->drain_by = peer->failed_at + SLU_DRAIN_TIME;
    if (peer->drain_by < engine->next_drain)
        engine->next_drain = peer->drain_by;
    slu_peer_tell_state(engine, peer);
    stop_probes(engine, peer);
    if (!real)
        say_farewell(engine, peer, SLU_FAREWELL_GAVE_UP);
    if (peer->qp != NULL)
        engine->transport->qp_error(peer->qp);
    if (status != SLUICE_STATUS_WR_FLUSH_ERR)
        slu_log(SLUICE_LOG_DEBUG, "channel %llu, %s %u failed: %s", (unsigned long long)engine->tag,
                engine->peer_word, slu_peer_index(engine, peer), sluice_status_name(status));
}

void slu_peer_fail_alone(struct slu_engine *engine, struct slu_peer *peer, uint32_t status,
                         uint32_t vendor, bool inferred, const char *reason)
{
    bool first = peer->state != SLUICE_STATE_FAILED;

    if (peer->state == SLUICE_STATE_REMOVED || (!first && (!peer->cause_inferred || inferred)))
        return;
    slu_peer_fail(engine, peer, status, SLUICE_OP_NONE, vendor);
    snprintf(peer->reason, sizeof peer->reason, "%s", reason);
    peer->async_error_pending = first;
    peer->cause_inferred = inferred;
}

void slu_peer_fail_of_own(struct slu_engine *engine, struct slu_peer *peer, const struct slu_wc *wc)
{
    bool inferred = wc->status == SLUICE_STATUS_WR_FLUSH_ERR;
    uint32_t status = inferred ? SLUICE_STATUS_RETRY_EXC_ERR : wc->status;

    slu_peers_alerted(engine);
    if (peer->state == SLUICE_STATE_READY)
        slu_peer_fail_alone(engine, peer, slu_peer_judge_loss(engine, peer, status), wc->vendor,
                            inferred, "");
}

/* An alert without a queue pair: each may have failed. */
static void notice_losses(struct slu_engine *engine)
{
    if (!atomic_exchange(&engine->cq->alerted, false))
        return;
    for (uint32_t i = 0; i < engine->peer_count; i++)
        slu_peer_notice_loss(engine, &engine->peers[i]);
}

void slu_peers_alerted(struct slu_engine *engine)
{
    struct slu_alert alert;

    if (engine->transport->cq_alert == NULL)
        notice_losses(engine);
    while (engine->transport->cq_alert != NULL && engine->transport->cq_alert(engine->cq, &alert)) {
        struct slu_peer *peer = &engine->peers[alert.qp->peer];
        uint32_t status = slu_peer_judge_loss(engine, peer, alert.status);

        /*
         * The requests in flight will complete at once, and the oldest of them reports the failure.
         */
        if (status == SLUICE_STATUS_PEER_CLOSED && slu_peer_busy(peer))
            continue;
        /* The text of the peer's own farewell is better than that of the event that followed it. */
        slu_peer_fail_alone(engine, peer, status, alert.vendor, alert.inferred,
                            status == alert.status ? alert.reason : "");
    }
}

void slu_peer_notice_loss(struct slu_engine *engine, struct slu_peer *peer)
{
    slu_peers_alerted(engine);
    if (peer->state == SLUICE_STATE_READY &&
        engine->transport->qp_state(peer->qp) == SLU_QP_ERROR) {
        slu_peer_fail(engine, peer, slu_peer_judge_loss(engine, peer, SLUICE_STATUS_RETRY_EXC_ERR),
                      SLUICE_OP_NONE, 0);
        peer->cause_inferred = true;
    }
}

/* Returns whether the peer refused a request, which is an answer too. */
static bool has_refused(const struct slu_peer *peer)
{
    return peer->cause_status == SLUICE_STATUS_REM_INV_REQ_ERR ||
           peer->cause_status == SLUICE_STATUS_REM_ACCESS_ERR ||
           peer->cause_status == SLUICE_STATUS_REM_OP_ERR ||
           peer->cause_status == SLUICE_STATUS_RNR_RETRY_EXC_ERR;
}

bool slu_probe_heard(struct slu_peer *peer)
{
    peer->probe.answered |= slu_peer_successes(peer) != peer->probe.successes || has_refused(peer);
    return peer->probe.answered;
}

void slu_peer_doubt(struct slu_peer *peer)
{
    peer->probe.answered = false;
    peer->probe.successes = slu_peer_successes(peer);
}

void slu_peer_heard(struct slu_peer *peer)
{
    peer->probe.answered = true;
}

void slu_peer_note_late(struct slu_engine *engine, struct slu_peer *peer, int64_t time)
{
    struct slu_late *late = &peer->late;

    *late = (struct slu_late){.time = time, .stand = {.heard = -1}};
    late->heard = slu_probe_heard(peer);
    late->receives = slu_peer_has_posted(peer, SLU_RECEIVE_QUEUE) || peer->arrivals_posted > 0 ||
                     (engine->pool != NULL && engine->pool->pending > 0) ||
                     (engine->arrivals != NULL && engine->arrivals->shared > 0);
    if (engine->transport->qp_stand != NULL)
        engine->transport->qp_stand(peer->qp, &late->stand);
}

bool slu_peer_has_message(const struct slu_peer *peer)
{
    const struct slu_ring *ring = &peer->rings[SLU_SEND_QUEUE];
    const struct slu_entry *entry = slu_ring_entry(ring, ring->oldest);

    return peer->state == SLUICE_STATE_READY && ring->oldest != ring->next &&
           entry->state == SLU_ENTRY_PENDING && entry->opcode == SLUICE_OP_SEND;
}
