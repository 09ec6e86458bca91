/* SPDX-License-Identifier: MIT */
/*
 * Posting: items become slots and work requests. Neighbours in a list that go
 * to one peer are posted as one chain, with one doorbell. Whoever calls has
 * seen to it that the peer is ready; room is checked here.
 */
#include "config.h"

#include "engine/engine.h"

#define CHAIN 16

#define SPARE_UNKNOWN INT64_MIN

/* What is gathered for one queue of one peer. */
struct chain {
    struct slu_engine *engine;
    struct slu_call *call; /* of OWNER_CALL and OWNER_SCOPE, or NULL */
    enum slu_queue queue;
    enum slu_slot_owner owner;
    int64_t time; /* the deadline as it was given */
    int64_t deadline;
    struct slu_peer *peer;
    uint32_t share; /* requests that a peer may have in flight in any case */
    int64_t spare;  /* entries of the completion queue beside what the shares need; see has_share */
    uint32_t count;
    struct slu_slot *slots[CHAIN];
    union {
        struct slu_send_wr sends[CHAIN];
        struct slu_receive_wr receives[CHAIN];
    };
};

static void begin_chain(struct chain *chain, struct slu_engine *engine, enum slu_queue queue,
                        enum slu_slot_owner owner, int64_t time, int64_t deadline)
{
    chain->engine = engine;
    chain->call = NULL;
    chain->queue = queue;
    chain->owner = owner;
    chain->time = time;
    chain->deadline = deadline;
    chain->peer = NULL;
    chain->share = UINT32_MAX;
    chain->spare = SPARE_UNKNOWN;
    chain->count = 0;
}

/*
 * Where the completion queue has no room for all that the peers may have in
 * flight, half of it is shared out among them (but one entry at least to each),
 * and a blocking list leaves to each peer its share: one that does not do its
 * part would else take what the others need. In a scope, what makes the peer do
 * its part may be posted after the list.
 */
static uint32_t share_of_peer(const struct slu_engine *engine, enum slu_queue queue)
{
    uint32_t size = engine->pools[queue].size;
    uint32_t share;

    if (size >= (uint64_t)engine->present_count * slu_queue_depth(engine, queue))
        return UINT32_MAX;
    share = size / engine->present_count / 2;
    return share > 0 ? share : 1;
}

static uint32_t in_flight(const struct chain *chain, const struct slu_peer *peer)
{
    return slu_queue_depth(chain->engine, chain->queue) - peer->free[chain->queue];
}

/* What is free beside what other peers have not used of their shares. */
static int64_t count_spare(const struct chain *chain)
{
    const struct slu_engine *engine = chain->engine;
    int64_t spare = slu_pool_room(&engine->pools[chain->queue]);

    for (uint32_t i = 0; i < engine->peer_count; i++) {
        const struct slu_peer *peer = &engine->peers[i];
        uint32_t used = in_flight(chain, peer);

        if (peer->state == SLUICE_STATE_READY && used < chain->share)
            spare -= chain->share - used;
    }
    return spare;
}

/* Whether one more request may go to the peer; add_work() takes it from the spare. */
static bool has_share(struct chain *chain, const struct slu_peer *peer)
{
    if (SLU_LIKELY(in_flight(chain, peer) < chain->share))
        return true;
    if (chain->spare == SPARE_UNKNOWN)
        chain->spare = count_spare(chain);
    return chain->spare > 0;
}

static void begin_chain_of_call(struct chain *chain, struct slu_call *call, enum slu_queue queue)
{
    begin_chain(chain, call->engine, queue, call->owner, call->time, call->deadline);
    chain->call = call;
    if (call->owner == SLU_OWNER_CALL)
        chain->share = share_of_peer(call->engine, queue);
}

/* Index in the chain of the first request the driver did not take; count if it took all. */
static uint32_t post_sends(struct chain *chain, int *error)
{
    struct slu_send_wr *bad = NULL;

    for (uint32_t i = 0; i + 1 < chain->count; i++)
        chain->sends[i].next = &chain->sends[i + 1];
    chain->sends[chain->count - 1].next = NULL;
    *error = chain->engine->transport->post_send(chain->peer->qp, chain->sends, &bad);
    return *error == 0 ? chain->count : bad != NULL ? (uint32_t)(bad - chain->sends) : 0;
}

static uint32_t post_receives(struct chain *chain, int *error)
{
    struct slu_receive_wr *bad = NULL;

    for (uint32_t i = 0; i + 1 < chain->count; i++)
        chain->receives[i].next = &chain->receives[i + 1];
    chain->receives[chain->count - 1].next = NULL;
    *error = chain->engine->transport->post_receive(chain->peer->qp, chain->receives, &bad);
    return *error == 0 ? chain->count : bad != NULL ? (uint32_t)(bad - chain->receives) : 0;
}

/*
 * A request that the driver refused may run all the same (rxe advances its
 * queue before the doorbell fails), so its buffers are in use until the queue
 * pair is destroyed; it is due for that at once.
 */
void slu_post_refused(struct slu_engine *engine, struct slu_peer *peer, struct slu_slot *slot,
                      int error)
{
    slu_peer_keep_reason(peer);
    slot->result.status = SLUICE_STATUS_GENERAL_ERR;
    slot->result.vendor = (uint32_t)-error;
    slu_peer_fail(engine, peer, SLUICE_STATUS_GENERAL_ERR, slot->result.opcode, (uint32_t)-error);
    peer->drain_by = slu_now();
    engine->next_drain = 0;
}

static void flush_chain(struct chain *chain)
{
    uint32_t taken;
    int error = 0;

    if (chain->count == 0)
        return;
    taken = chain->queue == SLU_RECEIVE_QUEUE ? post_receives(chain, &error)
                                              : post_sends(chain, &error);
    if (SLU_UNLIKELY(error < 0))
        slu_post_refused(chain->engine, chain->peer,
                         chain->slots[taken < chain->count ? taken : chain->count - 1], error);
    chain->count = 0;
}

static void add_work(struct chain *chain, struct slu_slot *slot, const struct slu_item *item,
                     const struct sluice_sge *sges, uint32_t sge_count)
{
    struct slu_engine *engine = chain->engine;
    uint32_t at = chain->count++;

    slot->posted++;
    chain->peer->free[chain->queue]--;
    engine->pools[chain->queue].cq_free--;
    chain->spare -= chain->spare != SPARE_UNKNOWN;
    chain->slots[at] = slot;
    if (chain->queue == SLU_RECEIVE_QUEUE)
        slu_fill_receive(&chain->receives[at], slot->id, sges, sge_count);
    else
        slu_fill_send(&chain->sends[at], slot->id, item, sges, sge_count);
}

/* The pieces of an SGE list that hold the bytes offset to offset + length - 1. */
static uint32_t cut_sges(const struct slu_item *item, uint64_t offset, uint64_t length,
                         struct sluice_sge *pieces)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < item->request->sge_count && length > 0; i++) {
        struct sluice_sge piece = item->sges[i];

        if (offset >= piece.length) {
            offset -= piece.length;
            continue;
        }
        piece.addr += offset;
        piece.length -= (uint32_t)offset;
        offset = 0;
        if (piece.length > length)
            piece.length = (uint32_t)length;
        length -= piece.length;
        pieces[count++] = piece;
    }
    return count;
}

/*
 * Posts parts of a read or write that is longer than a message may be, from
 * offset on, while there is room. Only the last part carries the immediate.
 * Returns the offset it came to.
 */
static uint64_t post_parts(struct chain *chain, struct slu_slot *slot, const struct slu_item *item,
                           uint64_t offset)
{
    uint64_t max = chain->engine->attr.max_message;
    struct sluice_sge pieces[SLU_MAX_SGE];

    flush_chain(chain);
    while (offset < item->bytes && chain->peer->free[chain->queue] > 0 &&
           chain->engine->pools[chain->queue].cq_free > 0 && has_share(chain, chain->peer) &&
           chain->peer->state == SLUICE_STATE_READY) {
        uint64_t length = item->bytes - offset < max ? item->bytes - offset : max;
        uint32_t count = cut_sges(item, offset, length, pieces);

        add_work(chain, slot, item, pieces, count);
        chain->sends[0].remote_addr += offset;
        if (offset + length < item->bytes)
            chain->sends[0].flags &= ~(SLUICE_IMMEDIATE | SLUICE_SOLICITED);
        offset += length;
        slot->unfinished = offset < item->bytes;
        flush_chain(chain);
    }
    return offset;
}

static void give_handle(const struct slu_call *call, uint32_t index, uint64_t id)
{
    if (call->handles != NULL)
        call->handles[index] = (struct sluice_handle){.id = id, .owner = call->engine->scope.tag};
}

static struct slu_slot *take_slot(struct chain *chain, const struct slu_item *item, uint32_t index)
{
    struct slu_engine *engine = chain->engine;
    struct slu_slot *slot = slu_slot_take(engine, chain->queue, item, chain->owner);

    slot->time = chain->time;
    if (chain->owner == SLU_OWNER_SCOPE) {
        slu_slot_join(engine, slot, NULL, chain->call->first + index, chain->deadline);
        give_handle(chain->call, index, slot->id);
        engine->scope.pending++;
    } else {
        slu_slot_join(engine, slot, chain->call, index, chain->deadline);
    }
    return slot;
}

static void chain_set_peer(struct chain *chain, struct slu_peer *peer)
{
    if (chain->count == CHAIN || chain->peer != peer)
        flush_chain(chain);
    chain->peer = peer;
}

/* Posts an item that needs one work request and has room for it. */
static struct slu_slot *post_whole(struct chain *chain, const struct slu_item *item, uint32_t index)
{
    struct slu_slot *slot = take_slot(chain, item, index);

    add_work(chain, slot, item, item->sges, item->request->sge_count);
    return slot;
}

/* A request of which nothing is in flight, and nothing will be: its peer failed. */
static void fail_unposted(struct chain *chain, struct slu_slot *slot)
{
    if (slot->result.status == SLUICE_STATUS_SUCCESS)
        slot->result.status = SLUICE_STATUS_WR_FLUSH_ERR;
    slu_slot_failed(chain->peer, slot);
    slu_list_remove(&chain->engine->pools[chain->queue], &chain->peer->posted[chain->queue], slot);
    slu_slot_done(chain->engine, chain->queue, slot);
}

static void stall_peer(struct chain *chain, uint32_t index, struct slu_slot *slot, uint64_t offset)
{
    struct slu_engine *engine = chain->engine;
    struct slu_stall *stall = &chain->peer->stall[chain->queue];

    if (stall->index == SLU_NONE) {
        stall->next = engine->stalled[chain->queue];
        engine->stalled[chain->queue] = slu_peer_index(engine, chain->peer);
        chain->peer->counts.queue_full++;
    }
    stall->index = index;
    stall->slot = slot != NULL ? (uint32_t)(slot - engine->pools[chain->queue].slots) : SLU_NONE;
    stall->offset = offset;
}

/* An item that is not posted has a result all the same. */
static void refuse_item(struct slu_call *call, const struct slu_item *item, uint32_t index)
{
    struct slu_engine *engine = call->engine;
    struct sluice_completion completion;
    uint64_t id;

    slu_complete_unposted(engine, item, call->expired, call->deadline, &completion);
    if (call->owner == SLU_OWNER_CALL) {
        slu_call_result(call, index, &completion);
        return;
    }
    id = slu_failure_keep_refused(engine, call->owner, call->first + index, &completion);
    give_handle(call, index, id);
}

/* Posts one item of a call, or part of it; false if it does not fit and the peer stalls. */
static bool post_item(struct chain *chain, const struct slu_item *item, uint32_t index)
{
    struct slu_peer *peer = &chain->engine->peers[item->peer];
    struct slu_slot *slot;
    uint64_t offset;

    chain_set_peer(chain, peer);
    if (peer->state != SLUICE_STATE_READY || chain->call->expired) {
        refuse_item(chain->call, item, index);
        return true;
    }
    if (!slu_post_room(chain->engine, item, 1) || !has_share(chain, peer)) {
        stall_peer(chain, index, NULL, 0);
        return false;
    }
    if (slu_item_parts(chain->engine, item) == 1) {
        post_whole(chain, item, index);
        return true;
    }
    slot = take_slot(chain, item, index);
    /* Until its last part is posted, whatever becomes of the chain before it. */
    slot->unfinished = true;
    offset = post_parts(chain, slot, item, 0);
    if (offset < item->bytes)
        stall_peer(chain, index, slot, offset);
    return offset == item->bytes;
}

void slu_post_call(struct slu_call *call, enum slu_queue queue)
{
    struct slu_engine *engine = call->engine;
    struct chain chain;
    struct slu_item item;

    begin_chain_of_call(&chain, call, queue);
    for (uint32_t i = 0; i < call->source->count; i++) {
        if (slu_opcode_queue(slu_source_opcode(call->source, i)) != queue)
            continue;
        slu_source_item(call->source, i, &item);
        if (SLU_LIKELY(engine->peers[item.peer].stall[queue].index == SLU_NONE))
            post_item(&chain, &item, i);
    }
    flush_chain(&chain);
}

/*
 * Goes on with a request of which parts are in flight. If the peer has failed
 * meanwhile, no more parts follow, and what is in flight answers for it.
 */
static bool resume_parts(struct chain *chain, const struct slu_item *item)
{
    struct slu_peer *peer = chain->peer;
    struct slu_stall *stall = &peer->stall[chain->queue];
    struct slu_slot *slot = &chain->engine->pools[chain->queue].slots[stall->slot];

    /* Once the deadline has passed, the clock is about to fail the peer. */
    if (peer->state == SLUICE_STATE_READY && chain->call->expired)
        return false;
    if (peer->state == SLUICE_STATE_READY) {
        stall->offset = post_parts(chain, slot, item, stall->offset);
        if (stall->offset < item->bytes && peer->state == SLUICE_STATE_READY)
            return false;
    }
    stall->slot = SLU_NONE;
    if (!slot->unfinished)
        return true;
    /* Parts of it were never posted, however well those in flight may end. */
    slot->unfinished = false;
    if (slot->result.status == SLUICE_STATUS_SUCCESS)
        slot->result.status = SLUICE_STATUS_WR_FLUSH_ERR;
    if (slot->posted == 0)
        fail_unposted(chain, slot);
    return true;
}

/* True if all requests of the peer are posted or refused. */
static bool resume_peer(struct chain *chain, struct slu_peer *peer)
{
    struct slu_stall *stall = &peer->stall[chain->queue];
    const struct slu_source *source = chain->call->source;
    uint32_t index = stall->index;
    struct slu_item item;

    chain_set_peer(chain, peer);
    if (stall->slot != SLU_NONE) {
        slu_source_item(source, index, &item);
        if (!resume_parts(chain, &item))
            return false;
        index++;
    }
    for (; index < source->count; index++) {
        if (&chain->engine->peers[slu_source_peer(source, index)] != peer)
            continue;
        if (slu_opcode_queue(slu_source_opcode(source, index)) != chain->queue)
            continue;
        slu_source_item(source, index, &item);
        if (!post_item(chain, &item, index))
            return false;
    }
    stall->index = SLU_NONE;
    return true;
}

static void resume_queue(struct slu_call *call, enum slu_queue queue)
{
    struct slu_engine *engine = call->engine;
    uint32_t next = engine->stalled[queue];
    uint32_t still = SLU_NONE;
    struct chain chain;

    begin_chain_of_call(&chain, call, queue);
    while (next != SLU_NONE) {
        struct slu_peer *peer = &engine->peers[next];
        uint32_t this = next;
        bool able = (peer->free[queue] > 0 && engine->pools[queue].cq_free > 0 &&
                     has_share(&chain, peer)) ||
                    peer->state != SLUICE_STATE_READY || call->expired;

        next = peer->stall[queue].next;
        if (!able || !resume_peer(&chain, peer)) {
            peer->stall[queue].next = still;
            still = this;
        }
    }
    flush_chain(&chain);
    engine->stalled[queue] = still;
}

void slu_post_stalled(struct slu_call *call)
{
    if (call->engine->stalled[SLU_RECEIVE_QUEUE] != SLU_NONE)
        resume_queue(call, SLU_RECEIVE_QUEUE);
    if (call->engine->stalled[SLU_SEND_QUEUE] != SLU_NONE)
        resume_queue(call, SLU_SEND_QUEUE);
}

/* Posts an item for which there is room, if its peer has not failed on the way. */
static struct slu_slot *post_owned_item(struct chain *chain, const struct slu_item *item,
                                        uint32_t index)
{
    bool whole = slu_item_parts(chain->engine, item) == 1;
    struct slu_slot *slot;

    chain_set_peer(chain, &chain->engine->peers[item->peer]);
    if (whole && chain->peer->state == SLUICE_STATE_READY)
        return post_whole(chain, item, index);
    slot = take_slot(chain, item, index);
    post_parts(chain, slot, item, 0);
    slot->unfinished = false;
    if (slot->posted == 0)
        fail_unposted(chain, slot);
    return slot;
}

void slu_post_owned(struct slu_engine *engine, const struct slu_source *source, uint32_t from,
                    uint32_t count, enum slu_queue queue, enum slu_slot_owner owner, int64_t time,
                    int64_t deadline, struct sluice_handle *handles)
{
    struct slu_slot *slot;
    struct slu_item item;
    struct chain chain;

    begin_chain(&chain, engine, queue, owner, time, deadline);
    for (uint32_t i = from; i < from + count; i++) {
        if (slu_opcode_queue(slu_source_opcode(source, i)) != queue)
            continue;
        slu_source_item(source, i, &item);
        slot = post_owned_item(&chain, &item, i);
        if (handles != NULL)
            handles[i] = (struct sluice_handle){.id = slot->id, .owner = engine->tag};
    }
    flush_chain(&chain);
}
