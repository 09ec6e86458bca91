/* SPDX-License-Identifier: MIT */
/* The state of a peer: signs of life, failing it, and its error. */
#ifndef SLU_ENGINE_PEER_PEER_H
#define SLU_ENGINE_PEER_PEER_H

#include "engine/ring/ring.h"

/* Initialises an empty peer, without a queue pair. */
void slu_peer_init(const struct slu_engine *engine, struct slu_peer *peer);
/* Initialises the probes of a peer that is not connected. */
void slu_probe_init(struct slu_peer *peer);
/* Fires the trace probe for a changed state. */
void slu_peer_tell_state(const struct slu_engine *engine, const struct slu_peer *peer);
/* Copies the text of the thread's last failure to the peer, for sluice_error.text. */
void slu_peer_keep_reason(struct slu_peer *peer);
/*
 * Returns whether the oldest request in the peer's send queue is a message that the peer has not
 * received yet.
 */
bool slu_peer_has_message(const struct slu_peer *peer);

static inline bool slu_peer_has_posted(const struct slu_peer *peer, enum slu_queue queue)
{
    const struct slu_ring *own = &peer->rings[SLU_OWN_RING];

    return peer->rings[queue].oldest != peer->rings[queue].next ||
           (queue == SLU_SEND_QUEUE && own->oldest != own->next);
}

/*
 * Returns the queue pair of a peer, or NULL if it has none any more, or is not connected yet. If
 * the peer has several, this is the first, which alone carries messages.
 */
static inline struct slu_qp *slu_peer_first_qp(const struct slu_engine *engine, uint32_t peer)
{
    struct slu_qp *qp = engine->peers[peer].qp;

    if (qp != NULL && engine->lazy != NULL)
        return slu_deferred_real(qp);
    return qp != NULL && engine->attr.queue_pairs > 1 ? slu_stripes_first(qp) : qp;
}

static inline bool slu_peer_busy(const struct slu_peer *peer)
{
    return slu_peer_has_posted(peer, SLU_SEND_QUEUE) ||
           slu_peer_has_posted(peer, SLU_RECEIVE_QUEUE) || peer->arrivals_posted > 0;
}

/*
 * Returns whether the peer has failed or was removed: nothing of it can complete once it is not
 * busy.
 */
static inline bool slu_peer_over(const struct slu_peer *peer)
{
    return peer->state >= SLUICE_STATE_FAILED;
}

/*
 * Returns whether the peer takes requests. A peer that is absent appears first, so the engine must
 * be entered.
 */
static inline bool slu_peer_takes(struct slu_engine *engine, struct slu_peer *peer)
{
    return SLU_LIKELY(peer->state == SLUICE_STATE_READY) ||
           (peer->state == SLU_PEER_ABSENT && slu_peer_appear(engine, peer));
}

/* Moves the peer to FAILED, with this cause unless it already has one. Idempotent. */
void slu_peer_fail(struct slu_engine *engine, struct slu_peer *peer, uint32_t status,
                   uint32_t opcode, uint32_t vendor);
/*
 * Returns the status of a lost peer: SLUICE_STATUS_PEER_CLOSED if the peer said that it closes.
 * Statuses that are no loss are returned unchanged.
 */
uint32_t slu_peer_judge_loss(const struct slu_engine *engine, struct slu_peer *peer,
                             uint32_t status);
/*
 * Sends the peer a note that the program ends the connection. Callers send it to several peers
 * before they close the first.
 */
void slu_peer_say_closed(const struct slu_engine *engine, const struct slu_peer *peer);
/* Sends that note, then moves the peer to FAILED, because the program ends the connection. */
void slu_peer_close(struct slu_engine *engine, struct slu_peer *peer);
/* Does the same as slu_peer_fail(), for a failure that no request reported. reason is its text. */
void slu_peer_fail_alone(struct slu_engine *engine, struct slu_peer *peer, uint32_t status,
                         uint32_t vendor, bool inferred, const char *reason);
/*
 * Fails a peer because a work request of the library itself has failed. A queue pair that fails
 * without a reason has lost its peer.
 */
void slu_peer_fail_of_own(struct slu_engine *engine, struct slu_peer *peer,
                          const struct slu_wc *wc);
/* Fails the peers for which the device has raised an event. */
void slu_peers_alerted(struct slu_engine *engine);
/* Fails a peer whose queue pair has failed since the last poll. */
void slu_peer_notice_loss(struct slu_engine *engine, struct slu_peer *peer);
/* Counts the requests of the peer that have succeeded. */
uint64_t slu_peer_successes(const struct slu_peer *peer);
/* Returns whether the peer has shown a sign of life since it was connected. */
bool slu_probe_heard(struct slu_peer *peer);
/* Forgets the signs of life that a connected peer has shown, so the next wait for it probes it. */
void slu_peer_doubt(struct slu_peer *peer);
/* Notes that a connected peer has shown a sign of life by other means: it needs no probe. */
void slu_peer_heard(struct slu_peer *peer);

/* Ends the part of a peer in a wait for connections. */
static inline void slu_peer_stop_awaiting(struct slu_engine *engine, struct slu_peer *peer)
{
    engine->awaited -= peer->probe.awaited;
    peer->probe.awaited = false;
}

/* Notes the state of a peer because a deadline, given as time, is about to end its connection. */
void slu_peer_note_late(struct slu_engine *engine, struct slu_peer *peer, int64_t time);

#endif
