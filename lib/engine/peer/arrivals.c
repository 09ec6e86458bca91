/* SPDX-License-Identifier: MIT */
/*
 * Arrivals of immediates, counted by tag, in any order. The engine posts the receives that take
 * them. These have no bytes, no entry in a ring, and ids that belong to no ring, so they have no
 * results and no call waits for them.
 *
 * Guarantee: a connected peer has as many of these receives posted as its queue pair and its share
 * of the completion queue hold. Up to a quarter of them may be missing before more are posted. If
 * all peers share a pool of receives, all of it is for arrivals, and the same is true of the pool.
 */
#include "config.h"

#include "engine/peer/arrivals.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/peer/peer.h"

/* How many receives are posted with one call. */
#define BATCH 32
#define SESSION_BITS 30
#define SESSION_MASK ((UINT32_C(1) << SESSION_BITS) - 1)

/*
 * Sets the receives of a peer: the depth of its queue pair, or its share of the completion queue if
 * that is less.
 */
static int set_depth(struct slu_engine *engine)
{
    uint32_t share = engine->attr.receive_depth;

    if (engine->pool_limits.depth > 0)
        share = (uint32_t)slu_least(engine->pool_limits.depth, engine->cq_size[SLU_RECEIVE_QUEUE]);
    else if (engine->entries_shared &&
             engine->cq_size[SLU_RECEIVE_QUEUE] / engine->peer_count < share)
        share = engine->cq_size[SLU_RECEIVE_QUEUE] / engine->peer_count;
    engine->arrivals->depth = share;
    engine->arrivals->few = share - (share + 3) / 4;
    return share > 0 ? 0
                     : slu_fail(ENOMEM,
                                "the completion queue of device %s has room for %u receives: too "
                                "few to count the arrivals of %u peers",
                                engine->pd->context->transport->device,
                                engine->cq_size[SLU_RECEIVE_QUEUE], engine->peer_count);
}

int slu_arrivals_create(struct slu_engine *engine)
{
    if (engine->arrival_tags == 0)
        return 0;
    engine->arrivals = calloc(1, sizeof *engine->arrivals +
                                     engine->arrival_tags * sizeof engine->arrivals->counts[0]);
    return engine->arrivals != NULL
               ? set_depth(engine)
               : slu_fail(ENOMEM, "no memory for %u arrival tags", engine->arrival_tags);
}

int slu_arrivals_grow(const struct slu_engine *engine)
{
    uint32_t size = engine->cq_size[SLU_RECEIVE_QUEUE];

    if (engine->arrivals == NULL || !engine->entries_shared || engine->pool_limits.depth > 0 ||
        (uint64_t)(engine->present_count + 1) * engine->arrivals->depth <= size)
        return 0;
    return slu_fail(ENOMEM,
                    "the completion queue of device %s has room for %u receives: none is left to "
                    "count the arrivals of another peer; lower receive_depth",
                    engine->pd->context->transport->device, size);
}

static uint64_t id_of(const struct slu_engine *engine, const struct slu_peer *peer)
{
    uint64_t number =
        (uint64_t)peer->arrival_session << SLU_PEER_BITS | slu_peer_index(engine, peer);

    return number * SLU_ID_STEP | SLU_ID_ARRIVAL;
}

static int post_batch(struct slu_engine *engine, struct slu_peer *peer, uint32_t count)
{
    struct slu_receive_wr wrs[BATCH];
    struct slu_receive_wr *bad = NULL;
    int error;

    for (uint32_t i = 0; i < count; i++)
        wrs[i] = (struct slu_receive_wr){.next = i + 1 < count ? &wrs[i + 1] : NULL,
                                         .id = id_of(engine, peer)};
    error = engine->transport->post_receive(peer->qp, wrs, &bad);
    if (error < 0)
        count = bad != NULL ? (uint32_t)(bad - wrs) : 0;
    peer->arrivals_posted += count;
    return error;
}

static int fill(struct slu_engine *engine, struct slu_peer *peer)
{
    uint32_t depth = engine->arrivals->depth;
    int error = 0;

    while (error == 0 && peer->arrivals_posted < depth) {
        uint32_t count = depth - peer->arrivals_posted;

        error = post_batch(engine, peer, count < BATCH ? count : BATCH);
    }
    if (error < 0)
        slu_peer_fail_alone(engine, peer, SLUICE_STATUS_GENERAL_ERR, (uint32_t)-error, false,
                            sluice_last_error());
    return error;
}

int slu_arrivals_share(struct slu_engine *engine)
{
    struct slu_arrivals *arrivals = engine->arrivals;
    struct slu_receive_wr wrs[BATCH];
    struct slu_receive_wr *bad = NULL;
    int error = 0;

    while (error == 0 && arrivals->shared < arrivals->depth) {
        uint32_t count = (uint32_t)slu_least(arrivals->depth - arrivals->shared, BATCH);

        for (uint32_t i = 0; i < count; i++)
            wrs[i] = (struct slu_receive_wr){.next = i + 1 < count ? &wrs[i + 1] : NULL,
                                             .id = SLU_ID_STEP | SLU_ID_POOL};
        error = engine->transport->pool_post(engine->attr.pool, wrs, &bad);
        if (error < 0)
            count = bad != NULL ? (uint32_t)(bad - wrs) : 0;
        arrivals->shared += count;
    }
    return slu_listed(error);
}

int slu_arrivals_begin(struct slu_engine *engine, struct slu_peer *peer)
{
    if (engine->arrivals == NULL || engine->attr.pool != NULL)
        return 0;
    /*
     * The program gets no receive credits, so its receives never pass a fast path, which needs no
     * check of its own.
     */
    peer->free[SLU_RECEIVE_QUEUE] = 0;
    peer->arrival_session = ++engine->arrivals->session & SESSION_MASK;
    return fill(engine, peer);
}

static struct slu_peer *find_peer(struct slu_engine *engine, uint64_t id)
{
    uint64_t number = id / SLU_ID_STEP;
    uint16_t index = (uint16_t)number;
    struct slu_peer *peer;

    if (index >= engine->peer_count)
        return NULL;
    peer = &engine->peers[index];
    return peer->arrivals_posted > 0 && number >> SLU_PEER_BITS == peer->arrival_session ? peer
                                                                                         : NULL;
}

/*
 * Counts an arrival. The immediate comes from the peer, so it is range-checked and used as an index
 * only.
 */
static void count_arrival(struct slu_engine *engine, struct slu_peer *peer, const struct slu_wc *wc)
{
    if ((wc->flags & SLUICE_IMMEDIATE) != 0 && wc->immediate < engine->arrival_tags) {
        engine->arrivals->counts[wc->immediate]++;
        peer->counts.arrivals++;
    } else {
        peer->counts.strays++;
    }
    engine->arrivals->unseen = true;
}

/* Fails a peer that sent a message with bytes: the receives for arrivals have none. */
static void refuse_message(struct slu_engine *engine, struct slu_peer *peer,
                           const struct slu_wc *wc)
{
    slu_peers_alerted(engine);
    slu_peer_fail(engine, peer, wc->status, SLUICE_OP_RECEIVE, wc->vendor);
    snprintf(peer->reason, sizeof peer->reason,
             "it sent a message, and this side takes immediates alone (arrival_tags)");
}

static void fail_peer(struct slu_engine *engine, struct slu_peer *peer, const struct slu_wc *wc)
{
    if (slu_class_of(wc->status, SLUICE_OP_RECEIVE) == SLUICE_CLASS_TRUNCATED)
        refuse_message(engine, peer, wc);
    else
        slu_peer_fail_of_own(engine, peer, wc);
}

/*
 * Handles the slow path of an arrival: a failure, a peer that has failed, or time to post more
 * receives.
 */
static __attribute__((noinline)) void end_rare(struct slu_engine *engine, struct slu_peer *peer,
                                               const struct slu_wc *wc)
{
    if (wc->status != SLUICE_STATUS_SUCCESS && peer->state == SLUICE_STATE_READY)
        fail_peer(engine, peer, wc);
    if (peer->state == SLUICE_STATE_READY)
        fill(engine, peer);
    else if (peer->arrivals_posted == 0)
        peer->free[SLU_RECEIVE_QUEUE] = engine->attr.receive_depth;
}

void slu_arrival_ended(struct slu_engine *engine, const struct slu_wc *wc)
{
    struct slu_peer *peer = find_peer(engine, wc->id);

    if (SLU_UNLIKELY(peer == NULL)) {
        engine->discarded++;
        return;
    }
    peer->arrivals_posted--;
    if (SLU_LIKELY(wc->status == SLUICE_STATUS_SUCCESS))
        count_arrival(engine, peer, wc);
    if (SLU_UNLIKELY(wc->status != SLUICE_STATUS_SUCCESS || peer->state != SLUICE_STATE_READY ||
                     peer->arrivals_posted <= engine->arrivals->few))
        end_rare(engine, peer, wc);
}

/* Fails all peers, because there are fewer receives than was promised. */
static SLU_COLD void fail_all(struct slu_engine *engine, int error)
{
    for (uint32_t i = 0; i < engine->peer_count; i++)
        if (engine->peers[i].state == SLUICE_STATE_READY)
            slu_peer_fail_alone(engine, &engine->peers[i], SLUICE_STATUS_GENERAL_ERR,
                                (uint32_t)-error, false, sluice_last_error());
}

void slu_arrival_shared_ended(struct slu_engine *engine, const struct slu_wc *wc)
{
    uint32_t index = wc->flags >> SLU_WC_PEER_SHIFT;
    struct slu_arrivals *arrivals = engine->arrivals;
    int error;

    arrivals->shared--;
    if (SLU_UNLIKELY((wc->flags & SLU_WC_NO_PEER) != 0 || index >= engine->peer_count))
        engine->discarded++;
    else if (SLU_LIKELY(wc->status == SLUICE_STATUS_SUCCESS))
        count_arrival(engine, &engine->peers[index], wc);
    else if (engine->peers[index].state == SLUICE_STATE_READY)
        fail_peer(engine, &engine->peers[index], wc);
    if (SLU_LIKELY(arrivals->shared > arrivals->few))
        return;
    error = slu_arrivals_share(engine);
    if (SLU_UNLIKELY(error < 0))
        fail_all(engine, error);
}

/* Returns the credits of receives that were lost with the peer's queue pair. */
void slu_arrivals_abandon(struct slu_engine *engine, struct slu_peer *peer)
{
    if (engine->arrivals != NULL)
        peer->free[SLU_RECEIVE_QUEUE] = engine->attr.receive_depth;
    peer->arrivals_posted = 0;
}
