/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "engine/list/list.h"
#include "engine/statistics/timing.h"
#include "invariants.h"

/* Sums over the rings of all peers. */
struct sums {
    uint32_t pending[SLU_QUEUES]; /* requests */
    uint32_t posted[SLU_QUEUES];  /* work requests */
    uint32_t scope_pending, scope_failures, detached, done[SLU_OWNERS_KEEP][SLU_QUEUES];
    uint32_t held[SLU_QUEUES]; /* places of results */
};

/* Outside of calls, only lists can have pending entries. */
static bool of_a_list(const struct slu_engine *engine, const struct slu_entry *entry)
{
    const struct slu_list *list = engine->lists;
    while (list && (entry->call != &list->call || list->life != SLU_LIST_POSTED)) {
        list = list->next;
    }
    return list;
}

static void check_pending(const struct slu_engine *engine, uint32_t peer, uint32_t ring,
                          const struct slu_entry *entry)
{
    const struct slu_peer *of = &engine->peers[peer];
    fake_require(entry->posted > 0 && !entry->marks.unfinished &&
                     (entry->owner != SLU_OWNER_CALL || of_a_list(engine, entry)) &&
                     (ring != SLU_OWN_RING || entry->owner == SLU_OWNER_NOBODY),
                 "a pending entry: %u posted, unfinished %d, owner %u", entry->posted,
                 entry->marks.unfinished, entry->owner);
    if (of->state == SLUICE_STATE_READY) {
        fake_require(engine->next_deadline <= slu_entry_deadline(engine, entry),
                     "a deadline would be missed%s", "");
    } else {
        fake_require(of->state == SLUICE_STATE_FAILED, "work of peer %u in state %d", peer,
                     (int)of->state);
        fake_require(engine->next_drain <= of->drain_by, "the drain of peer %u would last", peer);
    }
}

static bool of_this_scope(const struct slu_engine *engine, const struct slu_entry *entry)
{
    return entry->owner != SLU_OWNER_SCOPE ||
           (engine->scope.open && entry->tag == engine->scope.tag);
}

/* Pending entries lie between the oldest and the next one. */
static void check_ring(const struct slu_engine *engine, uint32_t peer, uint32_t number,
                       struct sums *sums, uint32_t *posted)
{
    const struct slu_ring *ring = &engine->peers[peer].rings[number];
    uint32_t pending = 0;
    uint32_t oldest = ring->size - slu_ring_room(ring);
    fake_require(oldest <= ring->size, "%u of %u places", oldest, ring->size);
    for (uint64_t age = 1; age <= ring->size; age++) {
        uint64_t id = ring->next - age * SLU_ID_STEP;
        const struct slu_entry *entry = slu_entry_find(engine, id);
        fake_require(entry && slu_ring_age(ring, id) == age, "entry %llu of ring %u of peer %u",
                     (unsigned long long)age, number, peer);
        if (entry->state == SLU_ENTRY_PENDING) {
            check_pending(engine, peer, number, entry);
            fake_require(age <= oldest, "one is pending before the oldest of peer %u", peer);
            pending++;
            sums->scope_pending += entry->owner == SLU_OWNER_SCOPE;
            sums->detached += entry->owner == SLU_OWNER_NOBODY;
            sums->held[slu_ring_queue(number)] += entry->owner < SLU_OWNERS_KEEP;
            *posted += entry->posted;
        } else if (entry->state == SLU_ENTRY_DONE) {
            fake_require(entry->posted == 0 && !entry->marks.unfinished &&
                             entry->owner < SLU_OWNERS_KEEP,
                         "a done entry: %u posted, owner %u", entry->posted, entry->owner);
            if (of_this_scope(engine, entry)) {
                sums->done[entry->owner][slu_ring_queue(number)]++;
                sums->scope_failures += entry->owner == SLU_OWNER_SCOPE && entry->marks.failed;
            }
        }
        fake_require(age != oldest || entry->state == SLU_ENTRY_PENDING,
                     "the oldest of peer %u is in state %d", peer, entry->state);
    }
    sums->pending[slu_ring_queue(number)] += pending;
}

/* Returns how much the device holds for a peer; with several queue pairs, for the first of them. */
static uint32_t held_of(const struct slu_engine *engine, const struct slu_peer *peer, int queue)
{
    struct slu_qp *qp = engine->attr.queue_pairs > 1 ? slu_stripes_first(peer->qp) : peer->qp;
    return fake_held(qp, queue);
}

/*
 * The engine knows how many receives the device holds. While it holds any, no other peer may use
 * their room.
 */
static void check_arrivals(const struct slu_engine *engine, const struct slu_peer *peer)
{
    uint32_t posted = peer->arrivals_posted;
    bool ready = peer->state == SLUICE_STATE_READY;
    fake_require(posted <= engine->arrivals->depth && (posted > 0 || !ready), "%u of %u posted",
                 posted, engine->arrivals->depth);
    fake_require(peer->qp ? held_of(engine, peer, SLU_RECEIVE_QUEUE) <= posted : posted == 0,
                 "the device holds more than %u receives", posted);
    fake_require(peer->free[SLU_RECEIVE_QUEUE] ==
                     (posted > 0 ? 0 : slu_queue_depth(engine, SLU_RECEIVE_QUEUE)),
                 "%u free, with %u posted", peer->free[SLU_RECEIVE_QUEUE], posted);
}

static void check_peer(const struct slu_engine *engine, uint32_t index, struct sums *sums)
{
    const struct slu_peer *peer = &engine->peers[index];
    uint32_t posted[SLU_QUEUES] = {0};
    for (uint32_t i = 0; i < SLU_RINGS; i++) {
        check_ring(engine, index, i, sums, &posted[slu_ring_queue(i)]);
    }
    for (int i = 0; i < SLU_QUEUES; i++) {
        enum slu_queue queue = (enum slu_queue)i;
        uint32_t probes = queue == SLU_SEND_QUEUE && peer->probe.id != 0;
        if (queue == SLU_RECEIVE_QUEUE && engine->arrivals) {
            check_arrivals(engine, peer);
            continue;
        }
        fake_require(peer->free[queue] + posted[queue] == slu_queue_depth(engine, queue),
                     "peer %u, queue %d: %u free and %u posted of %u", index, i, peer->free[queue],
                     posted[queue], slu_queue_depth(engine, queue));
        fake_require(peer->stall[queue].index == SLU_NONE && peer->stall[queue].id == 0 &&
                         peer->need[queue] == 0,
                     "peer %u, queue %d: something of a call is left", index, i);
        fake_require(peer->qp ? held_of(engine, peer, queue) <= posted[queue] + probes
                              : posted[queue] == 0,
                     "peer %u, queue %d: the device holds more than %u", index, i, posted[queue]);
        sums->posted[queue] += posted[queue];
    }
}

/* Unread results are in it, in the order of completion. */
static void check_order(const struct slu_engine *engine, uint32_t owner, int queue, uint32_t done)
{
    const struct slu_order *order = &engine->orders[owner][queue];
    uint64_t number = 0;
    uint32_t unseen = 0;
    for (uint32_t at = order->tail; at != order->head; at++) {
        const struct slu_entry *entry = slu_entry_find(engine, order->ids[at & order->mask]);
        if (!entry || entry->state != SLU_ENTRY_DONE || entry->owner != owner) {
            continue;
        }
        fake_require(entry->number > number, "done %llu is out of order",
                     (unsigned long long)entry->number);
        number = entry->number;
        unseen++;
    }
    fake_require(unseen == order->unseen && unseen == done, "%u unseen in order, %u, %u in rings",
                 unseen, order->unseen, done);
}

/* Checks spilled successes, whose places were needed: each is found by its id. */
static void check_aside(const struct slu_engine *engine, struct sums *sums)
{
    const struct slu_aside *aside = &engine->aside;
    for (uint32_t i = 0; i < aside->used; i++) {
        const struct slu_aside_place *place = &aside->places[i];
        const struct slu_entry *entry = &place->entry;
        fake_require(slu_entry_find(engine, place->id) == entry, "place %u is not found by its id",
                     i);
        if (slu_entry_is_unseen(engine, entry)) {
            fake_require(!entry->marks.failed, "what is kept in place %u is no success", i);
            sums->done[entry->owner][slu_opcode_queue(entry->opcode)]++;
        }
    }
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

/* Each request that succeeded was timed once. */
static void check_times(const struct slu_engine *engine, const struct slu_peer *peer)
{
    static struct sluice_histogram histogram = {.size = sizeof(histogram)};
    static struct sluice_counters counters = {.size = sizeof(counters)};
    require_ok(slu_counters(engine, peer, &counters));
    for (uint32_t opcode = SLUICE_OP_SEND; engine->timing && opcode < SLU_OPCODES; opcode++) {
        require_ok(slu_histogram_read(engine, peer, opcode, &histogram));
        fake_require(histogram.count == counters.requests[opcode],
                     "%llu of operation %u timed, not %llu", (unsigned long long)histogram.count,
                     opcode, (unsigned long long)counters.requests[opcode]);
    }
}

void check_engine(const struct slu_engine *engine)
{
    struct sums sums = {0};
    uint32_t depth = 0;
    uint32_t further = slu_stripes_entries(engine->attr.queue_pairs) * engine->further_peers;
    for (uint32_t i = 0; i < engine->peer_count; i++) {
        check_peer(engine, i, &sums);
        check_times(engine, &engine->peers[i]);
    }
    check_times(engine, NULL);
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        fake_require(engine->stalled[queue] == SLU_NONE, "peer %u is stalled",
                     engine->stalled[queue]);
        fake_require(sums.pending[queue] == engine->pending[queue], "%u pending, not %u",
                     sums.pending[queue], engine->pending[queue]);
        fake_require(engine->cq_free[queue] + sums.posted[queue] == engine->cq_size[queue],
                     "%u free and %u posted of %u", engine->cq_free[queue], sums.posted[queue],
                     engine->cq_size[queue]);
        depth += engine->cq_size[queue];
    }
    check_aside(engine, &sums);
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        for (uint32_t owner = 0; owner < SLU_OWNERS_KEEP; owner++) {
            check_order(engine, owner, queue, sums.done[owner][queue]);
            sums.held[queue] += sums.done[owner][queue];
        }
        fake_require(sums.held[queue] == engine->held[queue], "%u places held, not %u",
                     sums.held[queue], engine->held[queue]);
        /* Where entries are scarce, a split request of a scope may have waited for them. */
        uint32_t more = engine->entries_shared ? engine->peer_count : 0;
        fake_require(engine->held[queue] <= engine->places[queue] + more, "%u of %u places held",
                     engine->held[queue], engine->places[queue]);
    }
    fake_require(depth + engine->probe_limit + further == engine->cq->depth,
                 "shares of %u and %u probes in a queue of %u", depth, engine->probe_limit,
                 engine->cq->depth);
    fake_require(sums.scope_pending == engine->scope.pending, "%u of the scope pending, not %u",
                 sums.scope_pending, engine->scope.pending);
    fake_require(!engine->scope.open || sums.scope_failures == engine->scope.failures,
                 "%u failures of the scope, not %u", sums.scope_failures, engine->scope.failures);
    fake_require(sums.detached == engine->detached, "%u detached, not %u", sums.detached,
                 engine->detached);
    fake_require(engine->awaited == 0, "%u peers are awaited outside of a call", engine->awaited);
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
