/* SPDX-License-Identifier: MIT */
/*
 * Probes: beside the program's work, the engine asks a peer for a sign of life. A wait for a
 * connection probes once, keep-alive again and again.
 *
 * A probe refers to no memory and is nobody's work: no drain and no close waits for it, and its
 * completion is recognised by an id that no request can have. It uses an entry of the completion
 * queue until it completes, or until its queue pair is destroyed.
 *
 * Keep-alive judges a peer only after its first sign of life. Before that, the peer may not have
 * reached its handshake; the transport, or the wait for the connection, decides whether it is
 * absent or late. If probes are requests, keep-alive does not even send one then, since the device
 * would give the connection up.
 */
#include "config.h"

#include "engine/peer/probe.h"

#include <stdio.h>

#include "engine/peer/peer.h"

/*
 * If probes are requests, a device gives up a peer that does not answer. This is how late the
 * peer's first sign of life may be before keep-alive probes it all the same.
 */
#define LATE_TIME SLUICE_S(10)

/*
 * Makes the id of a probe. It belongs to no ring, and the low bits of its number are the peer's
 * index.
 */
static uint64_t next_id(struct slu_engine *engine, const struct slu_peer *peer)
{
    uint64_t number = ++engine->probe_number << SLU_PEER_BITS | slu_peer_index(engine, peer);

    return number * SLU_ID_STEP | SLU_ID_PROBE;
}

static struct slu_peer *find_peer(struct slu_engine *engine, uint64_t id)
{
    uint64_t index = id / SLU_ID_STEP % (1 << SLU_PEER_BITS);

    if (id % SLU_ID_STEP != SLU_ID_PROBE || index >= engine->peer_count ||
        engine->peers[index].probe.id != id)
        return NULL;
    return &engine->peers[index];
}

/* Sets when to check the peer next. */
static void set_due(struct slu_engine *engine, struct slu_peer *peer, int64_t due)
{
    peer->probe.due = due;
    if (due < engine->next_probe)
        engine->next_probe = due;
}

/*
 * Returns what has moved on the connection since the last call. A success is a sign of the peer, or
 * of its memory: reads and writes succeed even if no thread of the peer polls, here as on a device
 * that answers by itself.
 */
static uint32_t take_signs(const struct slu_engine *engine, struct slu_peer *peer)
{
    uint64_t successes = slu_peer_successes(peer);
    uint32_t signs =
        engine->transport->qp_moved != NULL ? engine->transport->qp_moved(peer->qp) : 0;

    if (successes != peer->probe.successes)
        signs |= SLU_MOVED_IN;
    peer->probe.successes = successes;
    peer->probe.answered |= (signs & SLU_MOVED_IN) != 0;
    return signs;
}

static void give_up_id(struct slu_engine *engine, struct slu_peer *peer)
{
    engine->probe_room += peer->probe.id != 0;
    peer->probe.id = 0;
}

bool slu_probe_ask(struct slu_engine *engine, struct slu_peer *peer)
{
    struct slu_probe *probe = &peer->probe;
    int error;

    if (probe->id != 0)
        return true;
    if (engine->probe_room == 0)
        return false;
    engine->probe_room--;
    probe->id = next_id(engine, peer);
    probe->probe_grace = false;
    error = engine->transport->qp_probe(peer->qp, probe->id);
    if (error < 0) {
        slu_peer_fail_alone(engine, peer, SLUICE_STATUS_GENERAL_ERR, (uint32_t)-error, false,
                            sluice_last_error());
        return true;
    }
    if (engine->keepalive > 0) {
        /* The probe that was just sent is no sign of the peer: clear what has moved. */
        take_signs(engine, peer);
        set_due(engine, peer, slu_now() + engine->keepalive);
    }
    return true;
}

int slu_probe_check(const struct slu_engine *engine, uint32_t peer, uint32_t access)
{
    if ((access & (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE)) == 0)
        return slu_fail(EOPNOTSUPP,
                        "%s %u cannot be asked for a sign of life, which keepalive and waits for a "
                        "connection need: access of its attributes has neither reads nor writes; "
                        "allow one of them there",
                        engine->peer_word, peer);
    if (engine->probe_limit == 0)
        return slu_fail(EOPNOTSUPP,
                        "%s %u cannot be asked for a sign of life: the completion queue of "
                        "device %s is too small",
                        engine->peer_word, peer, engine->pd->context->transport->device);
    return 0;
}

void slu_probe_connected(struct slu_engine *engine, struct slu_peer *peer, uint32_t access)
{
    slu_probe_init(peer);
    peer->probe.access = access;
    if (engine->keepalive == 0)
        return;
    set_due(engine, peer, slu_now());
    peer->probe.late_after = peer->probe.due + LATE_TIME;
}

void slu_probe_abandon(struct slu_engine *engine, struct slu_peer *peer)
{
    give_up_id(engine, peer);
}

bool slu_probe_ended(struct slu_engine *engine, const struct slu_wc *wc)
{
    struct slu_peer *peer = find_peer(engine, wc->id);

    if (peer == NULL)
        return false;
    give_up_id(engine, peer);
    if (peer->state != SLUICE_STATE_READY)
        return true;
    if (wc->status != SLUICE_STATUS_SUCCESS) {
        slu_peer_fail_of_own(engine, peer, wc);
        return true;
    }
    peer->probe.answered = true;
    slu_peer_stop_awaiting(engine, peer);
    return true;
}

static void lose_peer(struct slu_engine *engine, struct slu_peer *peer)
{
    char reason[sizeof peer->reason];

    snprintf(reason, sizeof reason,
             "no sign of life within %lld ms (keep-alive): its process is dead or stopped, or its "
             "host or the network is silent",
             (long long)(engine->keepalive / SLUICE_MS(1)));
    slu_peer_fail_alone(engine, peer, SLUICE_STATUS_RETRY_EXC_ERR, 0, false, reason);
}

/* Judges a peer that is due and whose probe was not answered. */
static void judge(struct slu_engine *engine, struct slu_peer *peer, int64_t now)
{
    struct slu_probe *probe = &peer->probe;
    uint32_t signs = take_signs(engine, peer);
    /* If this check is late, the answer may still be on its way: allow one more period. */
    bool late = now - probe->due > engine->keepalive && !probe->probe_grace;

    probe->probe_grace |= late;
    if (probe->answered && signs == 0 && !late)
        lose_peer(engine, peer);
    else
        set_due(engine, peer, now + engine->keepalive);
}

/*
 * Returns whether to probe a peer now. A probe that is a request waits behind earlier sends, which
 * may wait for receives of the peer.
 */
static bool may_ask(const struct slu_engine *engine, struct slu_peer *peer, int64_t now)
{
    if (!engine->transport->probe_is_request)
        return true;
    return !slu_peer_has_posted(peer, SLU_SEND_QUEUE) &&
           (slu_probe_heard(peer) || now >= peer->probe.late_after);
}

static void look_after(struct slu_engine *engine, struct slu_peer *peer, int64_t now)
{
    /* A peer of a lazy node that has no connection, and no use for one, needs none for a probe. */
    bool rests =
        engine->lazy != NULL && slu_deferred_real(peer->qp) == NULL && !slu_peer_busy(peer);

    if (rests || !may_ask(engine, peer, now))
        set_due(engine, peer, now + engine->keepalive);
    else if (peer->probe.id != 0)
        judge(engine, peer, now);
    else if (!slu_probe_ask(engine, peer))
        set_due(engine, peer, now + engine->keepalive / 8);
}

/*
 * Checks the peers whose keep-alive is due. Peers that are due soon are probed at the same time,
 * but none is judged early.
 */
void slu_probe_peers(struct slu_engine *engine, int64_t now)
{
    int64_t soon = now + engine->keepalive / 8;

    engine->next_probe = SLUICE_FOREVER;
    for (uint32_t i = 0; i < engine->peer_count; i++) {
        struct slu_peer *peer = &engine->peers[i];
        bool due = peer->probe.due <= (peer->probe.id != 0 ? now : soon);

        if (due && peer->state == SLUICE_STATE_READY)
            look_after(engine, peer, now);
        else if (peer->probe.due < engine->next_probe)
            engine->next_probe = peer->probe.due;
    }
}
