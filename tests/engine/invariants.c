/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "invariants.h"

#include <stdlib.h>

/* A walk through the lists of a pool; each slot must be met once. */
struct walk {
    const struct slu_engine *engine;
    const struct slu_pool *pool;
    enum slu_queue queue;
    bool *met;
    uint32_t count;
    uint32_t pending;       /* slots */
    uint32_t posted;        /* work requests */
    uint32_t scope_pending; /* slots */
    uint32_t detached;      /* slots */
};

/* The slot at an index of a list, whose links and id must be right. */
static const struct slu_slot *meet(struct walk *walk, uint32_t at, uint32_t previous)
{
    fake_require(at < walk->pool->slot_count, "index %u of %u", at, walk->pool->slot_count);
    const struct slu_slot *slot = &walk->pool->slots[at];
    fake_require(!walk->met[at], "slot %u is in two lists, or twice in one", at);
    fake_require(slot->prev == previous, "slot %u follows %u, not %u", at, slot->prev, previous);
    fake_require(slot->id != 0 &&
                     slu_slot_find((struct slu_engine *)walk->engine, slot->id) == slot,
                 "id of slot %u finds another", at);
    walk->met[at] = true;
    walk->count++;
    return slot;
}

static void walk_free(struct walk *walk)
{
    uint32_t previous = SLU_NONE;
    for (uint32_t at = walk->pool->free.head; at != SLU_NONE; at = walk->pool->slots[at].next) {
        /* Nobody asks for the prev of a free one. */
        const struct slu_slot *slot = meet(walk, at, walk->pool->slots[at].prev);
        fake_require(slot->state == SLU_SLOT_FREE, "free slot %u in state %d", at, slot->state);
        fake_require(slot->posted == 0 && !slot->call, "free slot %u has %u posted", at,
                     slot->posted);
        previous = at;
    }
    fake_require(walk->pool->free.tail == previous, "%u", previous);
}

static void walk_done(struct walk *walk, int owner)
{
    const struct slu_list *list = &walk->pool->done[owner];
    uint32_t previous = SLU_NONE;
    uint64_t number = 0;
    for (uint32_t at = list->head; at != SLU_NONE; at = walk->pool->slots[at].next) {
        const struct slu_slot *slot = meet(walk, at, previous);
        fake_require(slot->state == SLU_SLOT_DONE, "done slot %u in state %d", at, slot->state);
        fake_require(slot->posted == 0 && !slot->unfinished && slot->owner == owner,
                     "done slot %u: %u posted, owner %u", at, slot->posted, slot->owner);
        fake_require(slot->done_number > number, "done slot %u is out of order", at);
        fake_require((slot->result.error == 0) == (slot->result.status == SLUICE_STATUS_SUCCESS),
                     "slot %u: %d", at, slot->result.error);
        number = slot->done_number;
        previous = at;
    }
    fake_require(list->tail == previous, "%u", previous);
}

static void check_pending(const struct walk *walk, uint32_t peer, uint32_t at)
{
    const struct slu_slot *slot = &walk->pool->slots[at];
    const struct slu_peer *of = &walk->engine->peers[peer];
    fake_require(slot->state == SLU_SLOT_PENDING && slot->result.peer == peer,
                 "pending slot %u of peer %u: state %d, peer %u", at, peer, slot->state,
                 slot->result.peer);
    fake_require(slot->posted > 0 && !slot->unfinished && slot->owner != SLU_OWNER_CALL,
                 "pending slot %u: %u posted, unfinished %d, owner %u", at, slot->posted,
                 slot->unfinished, slot->owner);
    if (of->state == SLUICE_STATE_READY) {
        fake_require(walk->engine->next_deadline <= slot->deadline,
                     "the deadline of slot %u would be missed", at);
    } else {
        fake_require(of->state == SLUICE_STATE_FAILED, "work of peer %u in state %d", peer,
                     (int)of->state);
        fake_require(walk->engine->next_drain <= of->drain_by, "the drain of peer %u would last",
                     peer);
    }
}

static void walk_peer(struct walk *walk, uint32_t index)
{
    const struct slu_engine *engine = walk->engine;
    const struct slu_peer *peer = &engine->peers[index];
    const struct slu_list *list = &peer->posted[walk->queue];
    uint32_t depth =
        walk->queue == SLU_SEND_QUEUE ? engine->attr.send_depth : engine->attr.receive_depth;
    uint32_t previous = SLU_NONE;
    uint32_t posted = 0;
    for (uint32_t at = list->head; at != SLU_NONE; at = walk->pool->slots[at].next) {
        const struct slu_slot *slot = meet(walk, at, previous);
        check_pending(walk, index, at);
        walk->pending++;
        walk->scope_pending += slot->owner == SLU_OWNER_SCOPE;
        walk->detached += slot->owner == SLU_OWNER_NOBODY;
        posted += slot->posted;
        previous = at;
    }
    fake_require(list->tail == previous, "%u", previous);
    fake_require(peer->free[walk->queue] + posted == depth,
                 "peer %u, queue %d: %u free and %u posted of %u", index, (int)walk->queue,
                 peer->free[walk->queue], posted, depth);
    fake_require(peer->stall[walk->queue].index == SLU_NONE &&
                     peer->stall[walk->queue].slot == SLU_NONE && peer->need[walk->queue] == 0,
                 "peer %u, queue %d: something of a call is left", index, (int)walk->queue);
    uint32_t probes = walk->queue == SLU_SEND_QUEUE && peer->probe.id != 0;
    fake_require(peer->qp ? fake_held(peer->qp, walk->queue) <= posted + probes : posted == 0,
                 "peer %u, queue %d: the device holds more than %u", index, (int)walk->queue,
                 posted);
    walk->posted += posted;
}

/* Adds how many pending slots are of the scope, and of nobody. */
static void check_pool(const struct slu_engine *engine, enum slu_queue queue,
                       uint32_t *scope_pending, uint32_t *detached)
{
    const struct slu_pool *pool = &engine->pools[queue];
    struct walk walk = {.engine = engine, .pool = pool, .queue = queue};
    walk.met = calloc(pool->slot_count, sizeof(*walk.met));
    fake_require(walk.met, "%u", pool->slot_count);
    fake_require(engine->stalled[queue] == SLU_NONE, "peer %u is stalled", engine->stalled[queue]);
    walk_free(&walk);
    for (int owner = 0; owner < SLU_OWNERS; owner++) {
        walk_done(&walk, owner);
    }
    for (uint32_t i = 0; i < engine->peer_count; i++) {
        walk_peer(&walk, i);
    }
    fake_require(walk.count == pool->slot_count && pool->size <= pool->slot_count,
                 "%u slots in lists, of %u", walk.count, pool->slot_count);
    fake_require(walk.pending == pool->pending, "%u slots pending, not %u", walk.pending,
                 pool->pending);
    /* A pool of a test has as many slots as its share of the completion queue. */
    fake_require(pool->cq_free + walk.posted == pool->size, "%u free and %u posted of %u",
                 pool->cq_free, walk.posted, pool->size);
    free(walk.met);
    *scope_pending += walk.scope_pending;
    *detached += walk.detached;
}

static void check_failures(const struct slu_engine *engine)
{
    uint32_t unseen = 0;
    for (uint32_t i = 0; i < SLU_FAILURES; i++) {
        const struct slu_failure *failure = &engine->failures[i];
        unseen += failure->id != 0 && failure->owner != SLU_OWNER_CALL;
        fake_require(failure->id == 0 || failure->completion.error != 0, "a success was kept: %u",
                     i);
    }
    fake_require(unseen == engine->failure_count, "%u failures unseen, not %u", unseen,
                 engine->failure_count);
}

void check_engine(const struct slu_engine *engine)
{
    uint32_t scope_pending = 0;
    uint32_t detached = 0;
    uint32_t depth = 0;
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        check_pool(engine, (enum slu_queue)queue, &scope_pending, &detached);
        depth += engine->pools[queue].size;
    }
    fake_require(depth + engine->probe_limit == engine->cq->depth,
                 "shares of %u and %u probes in a queue of %u", depth, engine->probe_limit,
                 engine->cq->depth);
    fake_require(scope_pending == engine->scope.pending, "%u of the scope pending, not %u",
                 scope_pending, engine->scope.pending);
    fake_require(detached == engine->detached, "%u detached, not %u", detached, engine->detached);
    fake_require(engine->awaited == 0, "%u peers are awaited by nobody", engine->awaited);
    uint32_t probes = 0;
    uint32_t present = 0;
    for (uint32_t i = 0; i < engine->peer_count; i++) {
        const struct slu_peer *peer = &engine->peers[i];
        probes += peer->probe.id != 0;
        present += peer->state != SLUICE_STATE_REMOVED;
        fake_require(peer->state == SLUICE_STATE_REMOVED
                         ? !peer->qp
                         : peer->qp || peer->state == SLUICE_STATE_FAILED,
                     "queue pair of peer %u in state %d", i, (int)peer->state);
        fake_require((peer->state == SLUICE_STATE_FAILED) == (peer->cause_status != 0),
                     "peer %u in state %d with cause %u", i, (int)peer->state, peer->cause_status);
    }
    fake_require(present == engine->present_count, "%u peers, not %u", present,
                 engine->present_count);
    fake_require(probes + engine->probe_room == engine->probe_limit,
                 "%u probes in flight, room for %u of %u", probes, engine->probe_room,
                 engine->probe_limit);
    check_failures(engine);
}
