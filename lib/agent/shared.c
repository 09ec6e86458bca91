/* SPDX-License-Identifier: MIT */
/*
 * Control queue pairs that are the peers of one multichannel. One poll then takes the messages of
 * all peers, one arm prepares a sleep, and a peer needs no completion queue of its own. All peers
 * of an agent on soft are such peers, and those that share receives on a device.
 *
 * With receive_pool they share receives: the pool of the multichannel takes the messages of all.
 * Guarantees: the memory of receives does not depend on the number of peers; and a message that
 * cannot be handled yet keeps no receive from other peers, because it is copied.
 *
 * A connection is a peer of the multichannel before it is one of the agent. With a pool, its
 * messages are kept until the agent has the peer, or the index has another one. Without one it has
 * no receives until then.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "device/pd.h"
#include "engine/engine.h"
#include "multichannel/multichannel.h"

#define COMPLETIONS 16

static const struct slu_peer *wire_peer(const struct sluice_agent *agent, uint32_t index)
{
    return &agent->shared.control.wire->base.engine->peers[index];
}

static uint32_t generation_of(const struct sluice_agent *agent, uint32_t index)
{
    return wire_peer(agent, index)->name.index_generation;
}

/* Opening and closing. */

static int make_slots(struct sluice_agent *agent)
{
    struct slu_agent_shared *shared = &agent->shared;
    uint32_t slot_bytes = slu_agent_slot_bytes(agent);

    shared->slots = agent->attr.receive_pool;
    shared->free_slots = malloc(shared->slots * sizeof *shared->free_slots);
    if (shared->free_slots == NULL)
        return slu_fail(ENOMEM, "no memory for %u receives of the agent", shared->slots);
    shared->slab =
        sluice_mr_alloc(agent->pd, (size_t)shared->slots * slot_bytes, SLUICE_ACCESS_LOCAL_WRITE);
    if (shared->slab == NULL)
        return -errno;
    shared->bytes = sluice_mr_addr(shared->slab);
    /* The last one is taken first. */
    while (shared->free_count < shared->slots) {
        shared->free_slots[shared->free_count] = shared->slots - 1 - shared->free_count;
        shared->free_count++;
    }
    return 0;
}

/* Returns whether peers share receives. */
static bool has_pool(const struct sluice_agent *agent)
{
    const struct slu_tcontext *device = agent->pd->context->transport;

    if (agent->attr.receive_pool == 0)
        return false;
    if (device->max_pool_depth >= agent->attr.receive_pool && !device->by_rdmacm)
        return true;
    slu_log(SLUICE_LOG_INFO,
            "agent: device %s has no %u receives that peers share: each peer has its own",
            device->device, agent->attr.receive_pool);
    return false;
}

/*
 * Returns whether the peers share a completion queue, even if they share no receives. On a device
 * its entries are limited, and connecting may take long, which the agent's lock would cover.
 */
static bool shares_queue(const struct sluice_agent *agent)
{
    return agent->pd->context->transport->level == SLUICE_LEVEL_TCP;
}

struct sluice_multichannel *slu_agent_make_data(struct sluice_agent *agent)
{
    struct sluice_prepared_multichannel *prepared =
        sluice_multichannel_prepare(agent->pd, 0, &agent->data_attr);

    return prepared != NULL ? sluice_prepared_multichannel_handshake(prepared, NULL, 0) : NULL;
}

static void set_patience(struct sluice_agent *agent)
{
    struct slu_cq *cq = agent->shared.control.wire->base.engine->cq;

    atomic_store_explicit(&cq->patient, agent->shared.send_waits == 0, memory_order_relaxed);
}

int slu_agent_shared_open(struct sluice_agent *agent)
{
    struct sluice_channel_attr attr = agent->control_attr;
    struct sluice_prepared_multichannel *prepared;
    bool pool = has_pool(agent);
    int error;

    if (!pool && !shares_queue(agent))
        return 0;
    if (pool) {
        attr.receive_pool = agent->attr.receive_pool;
        attr.receive_depth = agent->attr.receive_share;
    }
    prepared = sluice_multichannel_prepare(agent->pd, 0, &attr);
    if (prepared != NULL)
        agent->shared.control.wire = sluice_prepared_multichannel_handshake(prepared, NULL, 0);
    if (agent->shared.control.wire == NULL)
        return -errno;
    agent->shared.control.epoch = agent->shared.control.wire->base.engine->epoch;
    if (shares_queue(agent)) {
        agent->shared.data.wire = slu_agent_make_data(agent);
        if (agent->shared.data.wire == NULL)
            return -errno;
        agent->shared.data.epoch = agent->shared.data.wire->base.engine->epoch;
        agent->shared.data_ignored = true;
    }
    agent->shared.control.wire->base.engine->cq->messages_only = true;
    set_patience(agent);
    error = pool ? make_slots(agent) : 0;
    if (error < 0)
        return error;
    slu_agent_shared_refill(agent);
    return slu_agent_watch_shared(agent);
}

static void drop_early(struct sluice_agent *agent, struct slu_agent_early *early)
{
    TAILQ_REMOVE(&agent->shared.early, early, links);
    free(early);
}

void slu_agent_shared_close(struct sluice_agent *agent)
{
    struct slu_agent_shared *shared = &agent->shared;

    if (shared->control.wire != NULL)
        sluice_multichannel_close(shared->control.wire);
    shared->control.wire = NULL;
    if (shared->data.wire != NULL)
        sluice_multichannel_close(shared->data.wire);
    shared->data.wire = NULL;
    while (!TAILQ_EMPTY(&shared->early))
        drop_early(agent, TAILQ_FIRST(&shared->early));
    if (shared->slab != NULL)
        (void)sluice_mr_release(shared->slab, NULL, NULL);
    shared->slab = NULL;
    free(shared->free_slots);
    free(shared->peers);
    shared->free_slots = NULL;
    shared->peers = NULL;
    shared->free_count = shared->peer_room = 0;
}

/* Receives. */

void slu_agent_shared_give_back(struct sluice_agent *agent, uint32_t slot, uint8_t *copy)
{
    if (copy != NULL)
        free(copy);
    else
        agent->shared.free_slots[agent->shared.free_count++] = slot;
}

void slu_agent_shared_refill(struct sluice_agent *agent)
{
    struct slu_agent_shared *shared = &agent->shared;
    uint32_t bytes = slu_agent_slot_bytes(agent);
    int posted = 1;

    while (shared->free_count > 0 && posted > 0) {
        struct sluice_request requests[COMPLETIONS];
        uint32_t count = (uint32_t)slu_least(shared->free_count, COMPLETIONS);

        for (uint32_t i = 0; i < count; i++) {
            uint32_t slot = shared->free_slots[shared->free_count - 1 - i];

            requests[i] = (struct sluice_request){
                .sge_count = 1,
                .sge = {.addr = (uintptr_t)(shared->bytes + (size_t)slot * bytes),
                        .length = bytes,
                        .lkey = sluice_mr_lkey(shared->slab)},
                .user_data = slot};
        }
        posted = sluice_multichannel_post_receive_any(shared->control.wire, requests, count, NULL);
        shared->free_count -= posted > 0 ? (uint32_t)posted : 0;
        shared->control.armed = false;
    }
}

uint8_t *slu_agent_pending_bytes(const struct sluice_agent_peer *peer, uint32_t at)
{
    const struct slu_agent_shared *shared = &peer->agent->shared;
    uint8_t *slots = slu_agent_is_pooled(peer) ? shared->bytes : peer->bytes;

    return peer->pending[at].copy != NULL
               ? peer->pending[at].copy
               : slots + (size_t)peer->pending[at].slot * peer->slot_bytes;
}

void slu_agent_shared_copy_out(struct sluice_agent_peer *peer)
{
    for (uint32_t i = 0; i < peer->pending_count; i++) {
        uint32_t at = (peer->first_pending + i) % peer->receives;
        uint8_t *copy;

        if (peer->pending[at].copy != NULL)
            continue;
        copy = malloc(peer->pending[at].length + 1);
        /* Without memory the message keeps its receive until it is handled. */
        if (copy == NULL)
            return;
        memcpy(copy, slu_agent_pending_bytes(peer, at), peer->pending[at].length);
        slu_agent_shared_give_back(peer->agent, peer->pending[at].slot, NULL);
        peer->pending[at].copy = copy;
    }
}

/* Completions. */

static void keep(struct sluice_agent_peer *peer, uint32_t slot, uint32_t length, uint8_t *copy)
{
    uint32_t at = (peer->first_pending + peer->pending_count) % peer->receives;

    /* A peer with receives of its own cannot send more than these. */
    if (peer->pending_count == peer->receives) {
        if (slu_agent_is_pooled(peer))
            slu_agent_shared_give_back(peer->agent, slot, copy);
        peer->excess = true;
        return;
    }
    peer->pending_count++;
    peer->pending[at].slot = slot;
    peer->pending[at].length = length;
    peer->pending[at].copy = copy;
    peer->pinged = false;
}

void slu_agent_begin_send_wait(struct sluice_agent *agent)
{
    agent->shared.send_waits++;
    /* The next poll takes what was let lie, and the next sleep ends for what comes. */
    agent->shared.control.armed = false;
    if (agent->shared.control.wire != NULL)
        set_patience(agent);
}

void slu_agent_end_send_wait(struct sluice_agent *agent)
{
    agent->shared.send_waits--;
    if (agent->shared.control.wire != NULL)
        set_patience(agent);
}

bool slu_agent_is_flushed(void *argument)
{
    const struct sluice_agent_peer *peer = argument;

    return peer->state == SLU_AGENT_OVER ||
           (peer->free_count == peer->sends && peer->sent_bye == peer->must_send_bye &&
            peer->answer_count == 0);
}

void slu_agent_count_sends(struct sluice_agent_peer *peer)
{
    uint32_t few = peer->sends / 2;
    bool awaits;

    /* A program that sleeps until then is woken also if another call took the completion. */
    if (SLU_UNLIKELY(peer->flushing) && slu_agent_is_flushed(peer)) {
        peer->flushing = false;
        slu_agent_notify_room(peer->agent);
    }
    /* Once short, it stays so for some more, as each change costs a look at all connections. */
    if (peer->awaits_sends)
        few += few / 2;
    awaits = peer->shares && (peer->flushing || peer->free_count <= few);
    if (SLU_LIKELY(awaits == peer->awaits_sends))
        return;
    peer->awaits_sends = awaits;
    if (awaits)
        slu_agent_begin_send_wait(peer->agent);
    else
        slu_agent_end_send_wait(peer->agent);
}

static void give_send(struct sluice_agent_peer *peer, uint32_t slot)
{
    peer->free_sends[peer->free_count++] = slot;
    slu_agent_count_sends(peer);
}

void slu_agent_take(struct sluice_agent_peer *peer, const struct sluice_completion *done)
{
    uint32_t slot = (uint32_t)done->user_data;

    if (done->error < 0)
        peer->failed = peer->failed < 0 ? peer->failed : done->error;
    else if ((done->user_data & SLU_AGENT_SEND_BIT) != 0)
        give_send(peer, slot);
    else
        keep(peer, slot, (uint32_t)done->bytes, NULL);
}

static void mark(struct sluice_agent_peer *peer)
{
    peer->unserved = true;
    slu_agent_unarm(peer);
}

static struct sluice_agent_peer *find_peer(const struct sluice_agent *agent, uint32_t index)
{
    return index < agent->shared.peer_room ? agent->shared.peers[index] : NULL;
}

/* Keeps a message of a connection that is no peer yet, and drops those that it cannot be of. */
static void keep_early(struct sluice_agent *agent, const struct sluice_completion *done)
{
    struct slu_agent_early *early, *next;
    uint32_t count = 0, length = (uint32_t)done->bytes;

    for (early = TAILQ_FIRST(&agent->shared.early); early != NULL; early = next) {
        next = TAILQ_NEXT(early, links);
        if (early->generation != generation_of(agent, early->index) ||
            wire_peer(agent, early->index)->state == SLUICE_STATE_REMOVED)
            drop_early(agent, early);
        else
            count += early->index == done->peer;
    }
    early = count < SLU_AGENT_EARLY ? malloc(sizeof *early + length) : NULL;
    if (early == NULL)
        return;
    early->index = done->peer;
    early->generation = generation_of(agent, done->peer);
    early->length = length;
    memcpy(early->bytes,
           agent->shared.bytes + (size_t)done->user_data * slu_agent_slot_bytes(agent), length);
    TAILQ_INSERT_TAIL(&agent->shared.early, early, links);
}

static void take_shared(struct sluice_agent *agent, const struct sluice_completion *done)
{
    bool sent = (done->user_data & SLU_AGENT_SEND_BIT) != 0;
    bool gone = (done->flags & SLUICE_PEER_REMOVED) != 0 || done->peer == UINT32_MAX;
    bool pool = agent->shared.slab != NULL;
    struct sluice_agent_peer *peer = gone ? NULL : find_peer(agent, done->peer);

    if (peer != NULL) {
        slu_agent_take(peer, done);
        mark(peer);
    } else if (pool && !gone && !sent && done->error == 0) {
        keep_early(agent, done);
    }
    if (pool && !sent && (peer == NULL || done->error < 0))
        slu_agent_shared_give_back(agent, (uint32_t)done->user_data, NULL);
}

/* Marks the peers whose connections have failed: a peer without sends in flight completes none. */
static void notice_losses(struct sluice_agent *agent)
{
    struct slu_agent_shared *shared = &agent->shared;

    if (shared->control.epoch == shared->control.wire->base.engine->epoch)
        return;
    shared->control.epoch = shared->control.wire->base.engine->epoch;
    for (uint32_t i = 0; i < shared->peer_room; i++)
        if (shared->peers[i] != NULL && wire_peer(agent, i)->state != SLUICE_STATE_READY)
            mark(shared->peers[i]);
}

bool slu_agent_shared_poll(struct sluice_agent *agent)
{
    struct sluice_completion completions[COMPLETIONS];
    bool some = false;
    int count;

    do {
        count = sluice_multichannel_poll(agent->shared.control.wire, completions, COMPLETIONS);
        for (int i = 0; i < count; i++)
            take_shared(agent, &completions[i]);
        some |= count > 0;
    } while (count == COMPLETIONS);
    agent->shared.control.armed = false;
    notice_losses(agent);
    if (agent->shared.free_count > 0)
        slu_agent_shared_refill(agent);
    return some;
}

/* Peers. */

static bool grow_peers(struct slu_agent_shared *shared, uint32_t index)
{
    uint32_t room = shared->peer_room > 0 ? shared->peer_room : 8;
    struct sluice_agent_peer **grown;

    while (room <= index)
        room *= 2;
    if (room == shared->peer_room)
        return true;
    grown = realloc(shared->peers, room * sizeof *grown);
    if (grown == NULL)
        return false;
    memset(grown + shared->peer_room, 0, (room - shared->peer_room) * sizeof *grown);
    shared->peers = grown;
    shared->peer_room = room;
    return true;
}

int slu_agent_shared_join(struct sluice_agent_peer *peer)
{
    struct sluice_agent *agent = peer->agent;
    struct slu_agent_early *early, *next;

    if (!grow_peers(&agent->shared, peer->index))
        return slu_fail(ENOMEM, "no memory for a peer of the agent");
    agent->shared.peers[peer->index] = peer;
    for (early = TAILQ_FIRST(&agent->shared.early); early != NULL; early = next) {
        next = TAILQ_NEXT(early, links);
        if (early->index != peer->index)
            continue;
        if (early->generation == generation_of(agent, peer->index)) {
            uint8_t *copy = malloc(early->length + 1);

            if (copy == NULL)
                return slu_fail(ENOMEM, "no memory for a message to the agent");
            memcpy(copy, early->bytes, early->length);
            keep(peer, 0, early->length, copy);
        }
        drop_early(agent, early);
    }
    /* It may have failed meanwhile. */
    mark(peer);
    return 0;
}

/* Removing polls for all peers, so whoever sleeps next has to arm again. */
void slu_agent_shared_drop(struct sluice_agent *agent, uint32_t index)
{
    (void)!sluice_multichannel_peer_remove(agent->shared.control.wire, index);
    agent->shared.control.armed = false;
}

void slu_agent_shared_leave(struct sluice_agent_peer *peer)
{
    struct sluice_agent *agent = peer->agent;

    if (peer->index < agent->shared.peer_room && agent->shared.peers[peer->index] == peer)
        agent->shared.peers[peer->index] = NULL;
    slu_agent_shared_drop(agent, peer->index);
    while (peer->pending_count > 0) {
        uint32_t at = (peer->first_pending + --peer->pending_count) % peer->receives;

        if (slu_agent_is_pooled(peer))
            slu_agent_shared_give_back(agent, peer->pending[at].slot, peer->pending[at].copy);
    }
    slu_agent_shared_refill(agent);
}
