/* SPDX-License-Identifier: MIT */
/*
 * The slow path of posting: requests that are refused, wait for room, or are split. Each of them
 * gets a result, and none overtakes another request to the same peer.
 */
#include "config.h"

#include "engine/post/chain.h"

#include "engine/post/post.h"
#include "engine/progress/progress.h"
#include "engine/request/message.h"
#include "engine/ring/entry.h"
#include "transport/cut.h"

/*
 * If the completion queue has too few entries for all that the peers may have in flight, half of it
 * is divided among them, with at least one entry for each. A blocking list leaves each peer its
 * share, since a peer that does not answer would otherwise use up the entries that the others need.
 * Lists of a scope ignore the shares: the request that lets the peer answer may be posted after the
 * list.
 */
uint32_t slu_chain_share(const struct slu_engine *engine, enum slu_queue queue)
{
    uint32_t size = engine->cq_size[queue];
    uint32_t share;

    if (size >= (uint64_t)engine->present_count * slu_queue_depth(engine, queue))
        return UINT32_MAX;
    share = size / engine->present_count / 2;
    return share > 0 ? share : 1;
}

static inline uint32_t in_flight(const struct slu_chain *chain, const struct slu_peer *peer)
{
    return slu_queue_depth(chain->engine, chain->queue) - peer->free[chain->queue];
}

/* Returns how many entries are free and not reserved by the unused shares of ready peers. */
static int64_t count_spare(const struct slu_chain *chain)
{
    const struct slu_engine *engine = chain->engine;
    int64_t spare = engine->cq_free[chain->queue];

    for (uint32_t i = 0; i < engine->peer_count; i++) {
        const struct slu_peer *peer = &engine->peers[i];
        uint32_t used = in_flight(chain, peer);

        if (peer->state == SLUICE_STATE_READY && used < chain->share)
            spare -= chain->share - used;
    }
    return spare;
}

/*
 * Returns whether the peer may have one more request. add_work() subtracts it from the spare
 * entries.
 */
static inline bool has_share(struct slu_chain *chain, const struct slu_peer *peer)
{
    if (SLU_LIKELY(chain->share == UINT32_MAX || in_flight(chain, peer) < chain->share))
        return true;
    if (chain->spare == SLU_SPARE_UNKNOWN)
        chain->spare = count_spare(chain);
    return chain->spare > 0;
}

/*
 * Fails the peer of a refused request. The driver may run the request all the same (rxe advances
 * its queue before the doorbell fails), so its buffers are in use until the queue pair is
 * destroyed. That is due at once.
 */
void slu_post_refused(struct slu_engine *engine, struct slu_peer *peer, struct slu_entry *entry,
                      int error)
{
    slu_peer_keep_reason(peer);
    slu_entry_fail(entry, SLUICE_STATUS_GENERAL_ERR, (uint32_t)-error);
    slu_peer_fail(engine, peer, SLUICE_STATUS_GENERAL_ERR, entry->opcode, (uint32_t)-error);
    peer->refused_in = engine->call_number;
    peer->drain_by = slu_now();
    engine->next_drain = 0;
}

void slu_chain_refused(struct slu_engine *engine, struct slu_peer *peer, uint64_t id, int error)
{
    if (slu_id_is_part(id))
        id = slu_part_request(engine, id);
    slu_post_refused(engine, peer, slu_entry_find(engine, id), error);
}

static void add_work(struct slu_chain *chain, uint64_t id, const struct slu_item *item,
                     const struct sluice_sge *sges, uint32_t sge_count)
{
    uint32_t at = chain->count++;

    chain->peer->free[chain->queue]--;
    chain->engine->cq_free[chain->queue]--;
    if (SLU_UNLIKELY(chain->spare != SLU_SPARE_UNKNOWN))
        chain->spare--;
    if (chain->queue == SLU_RECEIVE_QUEUE) {
        chain->receives[at].next = &chain->receives[at + 1];
        slu_fill_receive(&chain->receives[at], id, sges, sge_count);
    } else {
        chain->sends[at].next = &chain->sends[at + 1];
        slu_fill_send(&chain->sends[at], id, item, sges, sge_count);
        chain->sends[at].flags |= chain->send_flags;
    }
}

/* Returns whether a part can be posted now. */
static inline bool may_post_part(struct slu_chain *chain)
{
    return slu_post_room(chain->engine, chain->peer, chain->queue, 1) &&
           has_share(chain, chain->peer) && chain->peer->state == SLUICE_STATE_READY;
}

/*
 * Sets the flags of the parts in a chain. Only the last part of a chain is signaled, since the
 * others need no completion of their own. Only the first part of a request keeps the fence, because
 * the others wait behind it. Only the last part of a request keeps the flags that notify the peer.
 */
static void mark_parts(struct slu_chain *chain, uint64_t id, bool begins, bool ends)
{
    uint32_t count = chain->count;

    for (uint32_t i = 0; i < count; i++) {
        struct slu_send_wr *wr = &chain->sends[i];
        bool last = i + 1 == count;

        wr->id = slu_part_id(id, (i + 1) | (last ? SLU_PART_LAST : 0));
        if (!begins || i > 0)
            wr->flags &= ~SLUICE_FENCE;
        if (!last)
            wr->flags &= ~(SLU_SIGNALED | SLU_WAITED);
        if (!last || !ends) {
            wr->flags &= ~(SLUICE_IMMEDIATE | SLUICE_SOLICITED);
            wr->flags |= SLU_MORE;
        }
    }
}

/*
 * Posts as many parts as there is room for, with one doorbell. begins is whether none was posted
 * before.
 */
static void post_part_chain(struct slu_chain *chain, uint64_t id, struct slu_entry *entry,
                            const struct slu_item *item, struct slu_parts *parts, bool begins)
{
    struct sluice_sge pieces[SLU_PART_CHAIN + SLU_MAX_SGE];
    uint32_t most = slu_chain_parts(chain->engine);
    uint32_t used = 0;

    while (parts->left > 0 && chain->count < most && may_post_part(chain) &&
           used + parts->most_sges <= SLU_PART_CHAIN + SLU_MAX_SGE) {
        struct slu_part part;

        slu_parts_next(parts, &pieces[used], &part);
        add_work(chain, id, item, &pieces[used], part.sge_count);
        chain->sends[chain->count - 1].remote_addr = part.remote_addr;
        used += part.sge_count;
    }
    mark_parts(chain, id, begins, parts->left == 0);
    entry->posted += chain->count;
    entry->marks.unfinished = parts->left > 0;
    slu_chain_flush(chain);
}

/*
 * Posts parts of a read or write that is longer than a message may be, or has blocks, from offset
 * on, while there is room. Returns the offset that it reached.
 */
static uint64_t post_parts(struct slu_chain *chain, uint64_t id, struct slu_entry *entry,
                           const struct slu_item *item, uint64_t offset)
{
    struct slu_parts parts;

    slu_chain_flush(chain);
    slu_parts_begin(&parts, chain->engine, item, offset);
    for (bool begins = offset == 0; parts.left > 0 && may_post_part(chain); begins = false)
        post_part_chain(chain, id, entry, item, &parts, begins);
    return item->bytes - parts.left;
}

/* Takes the entry of an item of which nothing is posted yet. */
static struct slu_entry *take_entry(struct slu_chain *chain, const struct slu_item *item,
                                    uint32_t index)
{
    struct slu_ring *ring = &chain->peer->rings[chain->queue];
    struct slu_entry *entry;

    if (chain->owner < SLU_OWNERS_KEEP)
        slu_find_place(chain->engine, chain->queue);
    entry =
        slu_entry_take(chain->engine, ring, chain->owner, item->opcode, item->request, item->bytes);
    slu_count_taken(chain->engine, chain->queue, chain->owner, 1);
    slu_entry_own(chain->call, entry, chain->owner, index, item->request);
    entry->posted = 0;
    SLU_PROBE2(post, chain->engine, ring->next - SLU_ID_STEP);
    if (chain->call->handles != NULL)
        slu_give_handle(&chain->call->handles[index], ring->next - SLU_ID_STEP,
                        slu_owner_tag(chain->engine, chain->owner));
    return entry;
}

/* Posts an item that needs one work request and has room for it. */
static void post_whole(struct slu_chain *chain, const struct slu_item *item, uint32_t index)
{
    uint64_t id = chain->peer->rings[chain->queue].next;
    struct slu_entry *entry = take_entry(chain, item, index);

    entry->posted = 1;
    /*
     * The element of a request with blocks only says where they are, and such an item has no bytes.
     */
    add_work(chain, id, item, item->sges,
             item->request->blocks == NULL ? item->request->sge_count : 0);
}

/*
 * Posts a message that has blocks. It goes in a chain of its own, because its pieces are on the
 * stack. There must be room for its work request, and the chain must be empty. Returns false if the
 * staging buffer has no room.
 */
static __attribute__((noinline)) bool post_gathered(struct slu_chain *chain,
                                                    const struct slu_item *item, uint32_t index)
{
    uint64_t id = chain->peer->rings[chain->queue].next;
    struct sluice_sge pieces[SLU_MAX_SGE];
    struct slu_message message;
    struct slu_entry *entry;

    slu_message_begin(&message, chain->engine, item, pieces);
    if (!slu_message_stage(chain->engine, item, id, &message, pieces))
        return false;
    entry = take_entry(chain, item, index);
    entry->posted = 1;
    entry->marks.staged = message.need > 0 && chain->queue == SLU_RECEIVE_QUEUE;
    add_work(chain, id, item, pieces, message.sge_count);
    slu_chain_flush(chain);
    return true;
}

/* Returns whether an item is one work request with the elements of the request. */
static inline bool is_whole(const struct slu_chain *chain, const struct slu_item *item)
{
    return item->request->blocks == NULL || slu_item_is_gathered(item)
               ? slu_item_parts(chain->engine, item) == 1
               : item->bytes == 0;
}

static void stall_peer(struct slu_chain *chain, uint32_t index, uint64_t id, uint64_t offset)
{
    struct slu_engine *engine = chain->engine;
    struct slu_stall *stall = &chain->peer->stall[chain->queue];

    if (stall->index == SLU_NONE) {
        stall->next = engine->stalled[chain->queue];
        engine->stalled[chain->queue] = slu_peer_index(engine, chain->peer);
        chain->peer->counts.queue_full++;
    }
    stall->index = index;
    stall->id = id;
    stall->offset = offset;
}

/*
 * Makes the result of a request that is not posted. A peer that failed before the call refuses it
 * (ENOTCONN). A peer that failed during the call cancels it, unless the deadline was the reason.
 */
static void complete_unposted(const struct slu_engine *engine, const struct slu_item *item,
                              bool expired, int64_t deadline, struct sluice_completion *completion)
{
    struct slu_peer *peer = &engine->peers[item->peer];
    bool during = peer->state == SLUICE_STATE_FAILED && peer->failed_in == engine->call_number;
    bool usable = peer->state == SLUICE_STATE_READY || peer->state == SLU_PEER_ABSENT;
    bool late = (expired && usable) || (during && peer->cause_status == SLUICE_STATUS_DEADLINE &&
                                        deadline <= peer->failed_at);

    peer->counts.refused++;
    *completion = (struct sluice_completion){
        .user_data = item->request->user_data,
        .peer = item->peer,
        .opcode = item->opcode,
        .error = late     ? -ETIMEDOUT
                 : during ? -ECANCELED
                          : -ENOTCONN,
        .error_class = late ? SLUICE_CLASS_TIMEOUT : SLUICE_CLASS_CANCELLED,
        .status = late ? SLUICE_STATUS_DEADLINE : SLUICE_STATUS_WR_FLUSH_ERR,
        .vendor = peer->cause_vendor,
    };
    /* A failure must not have success as its cause. */
    completion->cause =
        peer->cause_status != SLUICE_STATUS_SUCCESS ? peer->cause_status : completion->status;
}

/* Completes an item without posting it. The result says why. */
static void refuse_item(struct slu_call *call, const struct slu_item *item, uint32_t index)
{
    struct slu_engine *engine = call->engine;
    struct sluice_completion completion;
    uint64_t id;

    complete_unposted(engine, item, call->expired, call->deadline, &completion);
    if (call->owner == SLU_OWNER_CALL) {
        slu_call_result(call, index, &completion);
        return;
    }
    id = slu_failure_keep_refused(engine, call->owner, call->first + index, &completion);
    if (call->handles != NULL)
        slu_give_handle(&call->handles[index], id, engine->scope.tag);
}

/*
 * Posts an item on the slow path: refuses it, posts it whole or in parts, or stalls the peer.
 * Returns false if the peer stalls.
 */
static bool post_rare(struct slu_chain *chain, const struct slu_item *item, uint32_t index)
{
    struct slu_peer *peer = chain->peer;
    struct slu_entry *entry;
    uint64_t offset, id;

    if (slu_item_is_gathered(item))
        slu_chain_flush(chain);
    if (chain->call->expired || !slu_peer_takes(chain->engine, peer)) {
        refuse_item(chain->call, item, index);
        return true;
    }
    if (!slu_post_room(chain->engine, peer, chain->queue, 1) || !has_share(chain, peer)) {
        stall_peer(chain, index, 0, 0);
        return false;
    }
    if (slu_item_is_gathered(item)) {
        if (post_gathered(chain, item, index))
            return true;
        stall_peer(chain, index, 0, 0);
        return false;
    }
    if (is_whole(chain, item)) {
        post_whole(chain, item, index);
        return true;
    }
    id = peer->rings[chain->queue].next;
    entry = take_entry(chain, item, index);
    /* The request is unfinished until its last part is posted, even if flushing the chain fails. */
    entry->marks.unfinished = true;
    offset = post_parts(chain, id, entry, item, 0);
    if (offset < item->bytes)
        stall_peer(chain, index, id, offset);
    return offset == item->bytes;
}

/* Posts one item of a call, or part of it. Returns false if it does not fit and the peer stalls. */
static bool post_item(struct slu_chain *chain, const struct slu_item *item, uint32_t index)
{
    slu_chain_set_peer(chain, &chain->engine->peers[item->peer]);
    return post_rare(chain, item, index);
}

void slu_chain_post_item(struct slu_chain *chain, const struct slu_item *item, uint32_t index)
{
    const struct slu_peer *peer = &chain->engine->peers[item->peer];

    /* An absent peer has all zeros there. */
    if (peer->state == SLU_PEER_ABSENT || peer->stall[chain->queue].index == SLU_NONE)
        post_item(chain, item, index);
}

/*
 * Goes on with a request of which parts are in flight. If the peer has failed since, no more parts
 * follow, and the result comes from those in flight. Returns false if the peer stays stalled.
 */
static bool resume_parts(struct slu_chain *chain, const struct slu_item *item)
{
    struct slu_peer *peer = chain->peer;
    struct slu_stall *stall = &peer->stall[chain->queue];
    struct slu_entry *entry = slu_entry_find(chain->engine, stall->id);
    uint64_t id = stall->id;

    /* The deadline has passed: wait until the check of the clock fails the peer. */
    if (peer->state == SLUICE_STATE_READY && chain->call->expired)
        return false;
    if (peer->state == SLUICE_STATE_READY) {
        stall->offset = post_parts(chain, id, entry, item, stall->offset);
        if (stall->offset < item->bytes && peer->state == SLUICE_STATE_READY)
            return false;
    }
    stall->id = 0;
    if (!entry->marks.unfinished)
        return true;
    /* Some parts were never posted, so the request has failed even if those in flight succeed. */
    entry->marks.unfinished = false;
    if (!entry->marks.failed)
        slu_entry_fail(entry, SLUICE_STATUS_WR_FLUSH_ERR, 0);
    if (entry->posted == 0)
        slu_fail_unposted(chain->engine, peer, id, entry);
    return true;
}

/* Resumes a stalled peer. Returns true if all its requests are posted or refused. */
static bool resume_peer(struct slu_chain *chain, struct slu_peer *peer)
{
    struct slu_stall *stall = &peer->stall[chain->queue];
    const struct slu_source *source = chain->call->source;
    uint32_t index = stall->index;
    struct slu_item item;

    slu_chain_set_peer(chain, peer);
    if (stall->id != 0) {
        slu_source_any_item(source, index, &item);
        if (!resume_parts(chain, &item))
            return false;
        index++;
    }
    for (; index < source->count; index++) {
        if (&chain->engine->peers[slu_source_peer(source, index)] != peer)
            continue;
        if (slu_opcode_queue(slu_source_opcode(source, index)) != chain->queue)
            continue;
        slu_source_any_item(source, index, &item);
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
    struct slu_chain chain;

    slu_chain_begin(&chain, call, queue);
    slu_note_deadline(engine, call->deadline);
    while (next != SLU_NONE) {
        struct slu_peer *peer = &engine->peers[next];
        uint32_t this = next;
        bool able = (slu_post_room(engine, peer, queue, 1) && has_share(&chain, peer)) ||
                    peer->state != SLUICE_STATE_READY || call->expired;

        next = peer->stall[queue].next;
        if (!able || !resume_peer(&chain, peer)) {
            peer->stall[queue].next = still;
            still = this;
        }
    }
    slu_chain_flush(&chain);
    engine->stalled[queue] = still;
}

void slu_post_stalled(struct slu_call *call)
{
    if (call->engine->stalled[SLU_RECEIVE_QUEUE] != SLU_NONE)
        resume_queue(call, SLU_RECEIVE_QUEUE);
    if (call->engine->stalled[SLU_SEND_QUEUE] != SLU_NONE)
        resume_queue(call, SLU_SEND_QUEUE);
}

/*
 * Posts a posted item in parts. If nothing of it can be posted, because its peer has failed
 * since it was counted, it fails.
 */
static void post_split(struct slu_chain *chain, const struct slu_item *item, uint32_t index)
{
    uint64_t id = chain->peer->rings[chain->queue].next;
    struct slu_entry *entry = take_entry(chain, item, index);

    entry->marks.unfinished = true;
    /* A message with blocks is posted whole, or not at all. */
    if (!slu_item_is_gathered(item))
        post_parts(chain, id, entry, item, 0);
    entry->marks.unfinished = false;
    if (entry->posted == 0)
        slu_fail_unposted(chain->engine, chain->peer, id, entry);
}

void slu_chain_post_posted(struct slu_chain *chain, const struct slu_item *item, uint32_t index)
{
    bool whole;

    if (slu_item_is_gathered(item))
        slu_chain_flush(chain);
    whole = is_whole(chain, item) && chain->peer->state == SLUICE_STATE_READY &&
            slu_post_room(chain->engine, chain->peer, chain->queue, 1);
    if (whole && slu_item_is_gathered(item))
        whole = post_gathered(chain, item, index);
    else if (whole)
        post_whole(chain, item, index);
    if (!whole)
        post_split(chain, item, index);
}
