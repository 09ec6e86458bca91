/* SPDX-License-Identifier: MIT */
/*
 * Posting a prepared list. The checks come first, so that the rest is only copying: whether its
 * peers are the same and ready, and whether there is room.
 */
#include "config.h"

#include "engine/list/list.h"
#include "engine/post/call.h"
#include "engine/post/post.h"
#include "engine/post/work.h"
#include "engine/progress/wait.h"
#include "engine/request/message.h"
#include "engine/ring/entry.h"

static int fail_stale(const struct slu_list *list, const struct slu_listed *listed)
{
    return slu_fail(ESTALE, "the list is stale: %s %u was reset or removed since it was prepared",
                    list->engine->peer_word, listed->peer);
}

/*
 * Checks that all peers of a list are the ones it was prepared for: 0, or -ESTALE. If all are ready
 * too, notes that for the current epoch.
 */
static int look_at_peers(struct slu_list *list)
{
    const struct slu_engine *engine = list->engine;
    bool ready = true;

    for (uint32_t i = 0; i < list->item_count; i++) {
        const struct slu_listed *listed = &list->items[i];
        const struct slu_peer *peer = &engine->peers[listed->peer];

        if (peer->name.index_generation != listed->index_generation ||
            peer->name.generation != listed->generation || peer->state == SLUICE_STATE_REMOVED)
            return fail_stale(list, listed);
        ready &= peer->state == SLUICE_STATE_READY;
    }
    if (ready)
        list->epoch = engine->epoch;
    return 0;
}

/* Makes the item of a request with blocks. */
static void find_item(const struct slu_list *list, const struct slu_listed *listed,
                      struct slu_item *item)
{
    slu_source_any_item(&list->source, listed->index, item);
}

/* Returns whether all messages with blocks can be staged. */
static __attribute__((noinline)) bool has_staging(const struct slu_list *list)
{
    const struct slu_engine *engine = list->engine;
    bool has = true;

    for (uint32_t i = 0; i < list->item_count && has; i++) {
        struct slu_item item;

        if (!list->items[i].gathered)
            continue;
        find_item(list, &list->items[i], &item);
        has = slu_message_plan(engine, &item);
    }
    for (uint32_t i = 0; i < list->item_count; i++)
        slu_message_unplan(&engine->peers[list->items[i].peer]);
    return has;
}

/* Returns whether all of a list can be posted, whose peers must be ready. */
static inline bool has_room(const struct slu_list *list)
{
    const struct slu_engine *engine = list->engine;
    const struct slu_listed *end = list->items + list->item_count;

    /*
     * Nothing is pending, so all queues are empty. That is the common case of programs that work in
     * rounds.
     */
    if (SLU_LIKELY(slu_nothing_pends(engine) && !engine->entries_shared))
        return true;
    if (engine->cq_free[SLU_SEND_QUEUE] < list->counts[SLU_SEND_QUEUE] ||
        engine->cq_free[SLU_RECEIVE_QUEUE] < list->counts[SLU_RECEIVE_QUEUE])
        return false;
    for (const struct slu_listed *listed = list->items; listed < end; listed++)
        if (engine->peers[listed->peer].free[listed->queue] < listed->needed)
            return false;
    return SLU_LIKELY(!list->gathers) || has_staging(list);
}

/* Turns the next entry of a ring into that of a request of the list. */
static SLU_INLINE void take_entry(struct slu_list *list, struct slu_ring *ring,
                                  const struct slu_listed *listed)
{
    struct slu_entry *entry =
        slu_entry_begin(list->engine, ring, listed->head, NULL, 0, listed->bytes);

    entry->index = listed->index;
    entry->call = &list->call;
}

/*
 * Posts the chain that begins with first. If the peer was failed by an earlier chain, nothing is
 * posted: the entries are taken, and end when the peer is drained. Returns the next chain. queue is
 * a constant.
 */
static SLU_INLINE struct slu_listed *post_chain(struct slu_list *list, struct slu_listed *first,
                                                const enum slu_queue queue)
{
    struct slu_engine *engine = list->engine;
    struct slu_peer *peer = &engine->peers[first->peer];
    struct slu_ring *ring = &peer->rings[queue];
    struct slu_listed *listed = first;

    for (;; listed++) {
        uint64_t id = ring->next;

        if (queue == SLU_RECEIVE_QUEUE)
            listed->receive.id = id;
        else
            listed->send.id = id;
        SLU_PROBE2(post, engine, id);
        take_entry(list, ring, listed);
        peer->free[queue]--;
        if (listed->last)
            break;
    }
    if (SLU_UNLIKELY(peer->state != SLUICE_STATE_READY))
        return listed + 1;
    if (queue == SLU_RECEIVE_QUEUE)
        slu_post_receives(engine, peer, &first->receive);
    else
        slu_post_sends(engine, peer, &first->send);
    return listed + 1;
}

/* Gathers the elements of a message with blocks, for which there is room. */
static void gather(struct slu_list *list, struct slu_listed *listed, struct slu_entry *entry,
                   uint64_t id)
{
    bool receives = listed->queue == SLU_RECEIVE_QUEUE;
    /* These pieces belong to the list, which has max_sge of them for each such message. */
    struct sluice_sge *pieces =
        (struct sluice_sge *)(receives ? listed->receive.sges : listed->send.sges);
    struct slu_message message;
    struct slu_item item;

    find_item(list, listed, &item);
    slu_message_begin(&message, list->engine, &item, pieces);
    slu_message_stage(list->engine, &item, id, &message, pieces);
    entry->marks.staged = message.need > 0 && receives;
    if (receives)
        listed->receive.sge_count = message.sge_count;
    else
        listed->send.sge_count = message.sge_count;
}

static inline void set_id(struct slu_listed *listed, uint64_t id)
{
    if (listed->queue == SLU_RECEIVE_QUEUE)
        listed->receive.id = id;
    else
        listed->send.id = listed->part == 0 ? id : slu_part_id(id, listed->part);
}

/*
 * Does the same for a chain that has parts, where all parts of a request share an entry, or
 * messages with blocks. This is no form of post_chain(), so that lists without them pay nothing for
 * it.
 */
static __attribute__((noinline)) struct slu_listed *post_rare(struct slu_list *list,
                                                              struct slu_listed *first)
{
    struct slu_engine *engine = list->engine;
    struct slu_peer *peer = &engine->peers[first->peer];
    struct slu_ring *ring = &peer->rings[first->queue];
    struct slu_listed *listed = first;
    uint64_t id = 0;

    for (;; listed++) {
        if (listed->part == 0 || listed->parts > 0) {
            id = ring->next;
            SLU_PROBE2(post, engine, id);
            take_entry(list, ring, listed);
        }
        if (listed->parts > 0)
            slu_ring_entry(ring, id)->posted = listed->parts;
        if (listed->gathered)
            gather(list, listed, slu_ring_entry(ring, id), id);
        set_id(listed, id);
        peer->free[listed->queue]--;
        if (listed->last)
            break;
    }
    if (SLU_UNLIKELY(peer->state != SLUICE_STATE_READY))
        return listed + 1;
    if (first->queue == SLU_RECEIVE_QUEUE)
        slu_post_receives(engine, peer, &first->receive);
    else
        slu_post_sends(engine, peer, &first->send);
    return listed + 1;
}

static SLU_COLD void set_blocking(struct slu_list *list, bool blocking)
{
    for (uint32_t i = list->counts[SLU_RECEIVE_QUEUE]; i < list->item_count; i++)
        list->items[i].send.flags ^= SLU_BLOCKING;
    list->blocking = blocking;
}

/* Posts all of a list, for which there must be room. blocking is whether the call waits for it. */
static void post_all(struct slu_list *list, bool blocking)
{
    struct slu_engine *engine = list->engine;
    struct slu_listed *listed = list->items;
    struct slu_listed *sends = listed + list->counts[SLU_RECEIVE_QUEUE];
    struct slu_listed *end = listed + list->item_count;

    if (SLU_UNLIKELY(list->blocking != blocking))
        set_blocking(list, blocking);
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        engine->cq_free[queue] -= list->counts[queue];
        engine->pending[queue] += list->requests_of[queue];
    }
    while (SLU_UNLIKELY(list->gathers) && listed < end)
        listed = post_rare(list, listed);
    while (listed < sends)
        listed = post_chain(list, listed, SLU_RECEIVE_QUEUE);
    while (SLU_UNLIKELY(list->has_parts) && listed < end)
        listed = post_rare(list, listed);
    while (listed < end)
        listed = post_chain(list, listed, SLU_SEND_QUEUE);
}

static SLU_COLD int fail_busy(void)
{
    return slu_fail(EBUSY, "the list is still in flight: wait for it");
}

static int check_list(const struct slu_list *list, int64_t deadline)
{
    if (list->engine == NULL)
        return slu_list_closed();
    if (list->engine->scope.open)
        return slu_scope_in_use();
    if (slu_list_in_flight(list))
        return fail_busy();
    if (deadline < 0)
        return slu_misuse(EINVAL, "deadline %lld is negative", (long long)deadline);
    return 0;
}

int slu_list_check_scope(struct slu_list *list)
{
    if (list->engine == NULL)
        return slu_list_closed();
    if (slu_list_in_flight(list))
        return fail_busy();
    return list->epoch != list->engine->epoch ? look_at_peers(list) : 0;
}

/* Returns whether a list can be posted at once: 1 or 0; or -ESTALE. */
static inline int is_plain(struct slu_list *list, int64_t deadline)
{
    int error = 0;

    if (SLU_UNLIKELY(list->epoch != list->engine->epoch))
        error = look_at_peers(list);
    if (error < 0)
        return error;
    return list->epoch == list->engine->epoch && deadline > 0 && has_room(list);
}

int slu_list_submit(struct slu_list *list, int64_t deadline, struct sluice_completion *completions)
{
    int error = check_list(list, deadline);
    int plain = 0;

    if (SLU_LIKELY(error == 0))
        plain = is_plain(list, deadline);
    if (SLU_UNLIKELY(error < 0 || plain < 0))
        return error < 0 ? error : plain;
    list->life = SLU_LIST_NEW;
    if (SLU_UNLIKELY(plain == 0 || list->engine->entries_shared))
        return slu_submit(list->engine, &list->source, deadline, completions);
    slu_call_begin(&list->call, list->engine, &list->source, deadline, completions);
    slu_engine_enter(list->engine);
    post_all(list, deadline >= SLU_BLOCKING_LEAST);
    return slu_call_finish(&list->call);
}

/* Returns the first request whose peer is not connected; NULL: all are. */
static const struct slu_listed *find_unready(const struct slu_list *list)
{
    for (uint32_t i = 0; i < list->item_count; i++)
        if (list->engine->peers[list->items[i].peer].state != SLUICE_STATE_READY)
            return &list->items[i];
    return NULL;
}

/*
 * Returns the first request whose peer has no room for all that the list has for it; NULL: all
 * have.
 */
static const struct slu_listed *find_full(const struct slu_list *list)
{
    for (uint32_t i = 0; i < list->item_count; i++) {
        const struct slu_listed *listed = &list->items[i];

        if (list->engine->peers[listed->peer].free[listed->queue] < listed->needed)
            return listed;
    }
    return NULL;
}

static const char *plural_of(uint32_t queue)
{
    return queue == SLU_SEND_QUEUE ? "sends" : "receives";
}

/* Returns the error of a list without room: -E2BIG if there will never be room, else -EAGAIN. */
static int fail_room(const struct slu_list *list)
{
    struct slu_engine *engine = list->engine;
    const struct slu_listed *full = find_full(list);

    for (uint32_t queue = 0; queue < SLU_QUEUES; queue++)
        if (list->counts[queue] > engine->cq_size[queue])
            return slu_fail(E2BIG,
                            "the list has %u %s, the completion queue has room for %u: submit it, "
                            "or lower the depths",
                            list->counts[queue], plural_of(queue), engine->cq_size[queue]);
    engine->peers[full != NULL ? full->peer : list->items[0].peer].counts.queue_full++;
    if (full != NULL)
        return slu_fail(EAGAIN, "no room for the %s of the list in the queue of %s %u now",
                        plural_of(full->queue), engine->peer_word, full->peer);
    if (list->gathers && !has_staging(list))
        return slu_fail(EAGAIN, "no room for the blocks of the list in a staging buffer now");
    return slu_fail(EAGAIN, "no room for the list in the completion queue now");
}

/* Returns the reason why a list was not posted as a whole. */
static int fail_post(const struct slu_list *list, int64_t deadline)
{
    struct slu_engine *engine = list->engine;
    const struct slu_listed *unready = find_unready(list);

    if (unready != NULL) {
        engine->peers[unready->peer].counts.refused++;
        return slu_fail(ENOTCONN, "request %u of the list: %s %u is not connected", unready->index,
                        engine->peer_word, unready->peer);
    }
    if (deadline > 0)
        return fail_room(list);
    engine->peers[list->items[0].peer].counts.refused++;
    return slu_fail(ETIMEDOUT, "the deadline is 0: nothing was posted");
}

int slu_list_post(struct slu_list *list, int64_t deadline, struct sluice_completion *completions)
{
    int error = check_list(list, deadline);
    int plain;

    if (error < 0)
        return error;
    slu_engine_enter(list->engine);
    plain = is_plain(list, deadline);
    /* Credits may have come back since the last poll. */
    if (SLU_UNLIKELY(plain == 0)) {
        slu_progress(list->engine);
        plain = is_plain(list, deadline);
    }
    if (SLU_LIKELY(plain > 0)) {
        slu_call_begin(&list->call, list->engine, &list->source, deadline, completions);
        slu_call_set_due(&list->call);
        post_all(list, false);
        list->life = SLU_LIST_POSTED;
    }
    error = plain > 0 ? 0 : plain < 0 ? plain : fail_post(list, deadline);
    slu_engine_leave(list->engine);
    return error;
}

static bool is_complete(void *argument)
{
    const struct slu_call *call = argument;

    return call->incomplete == 0;
}

/* Returns the first request in a ring that belongs to the list and is in flight, or NULL. */
static const struct sluice_request *find_pending_in(const struct slu_list *list,
                                                    const struct slu_ring *ring)
{
    for (uint64_t id = ring->oldest; id != ring->next; id += SLU_ID_STEP) {
        const struct slu_entry *entry = slu_ring_entry(ring, id);

        if (entry->state == SLU_ENTRY_PENDING && entry->owner == SLU_OWNER_CALL &&
            entry->call == &list->call)
            return &list->requests[entry->index];
    }
    return NULL;
}

static const struct sluice_request *find_pending(const struct slu_list *list)
{
    const struct slu_engine *engine = list->engine;
    const struct sluice_request *found = NULL;

    for (uint32_t i = 0; i < engine->peer_count && found == NULL; i++)
        for (uint32_t queue = 0; queue < SLU_QUEUES && found == NULL; queue++)
            found = find_pending_in(list, &engine->peers[i].rings[queue]);
    return found;
}

static int fail_in_flight(const struct slu_list *list)
{
    const struct sluice_request *first = find_pending(list);

    if (first == NULL)
        return slu_fail(ETIMEDOUT, "%u of the %u requests of the list are still in flight",
                        list->call.incomplete, list->source.count);
    return slu_fail(ETIMEDOUT, "%u of the %u requests of the list are still in flight: %s %s %u",
                    list->call.incomplete, list->source.count, slu_opcode_phrase(first->opcode),
                    list->engine->peer_word, first->peer);
}

int slu_list_wait(struct slu_list *list, int64_t timeout)
{
    struct slu_engine *engine = list->engine;
    int result;

    if (engine == NULL)
        return slu_list_closed();
    if (engine->scope.open)
        return slu_scope_in_use();
    if (timeout < 0)
        return slu_misuse(EINVAL, "timeout %lld is negative", (long long)timeout);
    if (list->life == SLU_LIST_NEW)
        return slu_fail(ENOENT, "the list was not posted: there is nothing to wait for");
    slu_engine_enter(engine);
    result = slu_wait_interruptible(engine, is_complete, &list->call, slu_after(timeout));
    if (result == 0)
        result = fail_in_flight(list);
    else if (result > 0)
        list->life = SLU_LIST_SEEN;
    slu_engine_leave(engine);
    return result < 0 ? result : 0;
}

int slu_list_result(struct slu_list *list)
{
    if (list->engine == NULL)
        return slu_list_closed();
    if (list->life == SLU_LIST_NEW)
        return slu_fail(ENOENT, "the list was not posted: it has no result");
    if (slu_list_in_flight(list))
        return fail_busy();
    list->life = SLU_LIST_SEEN;
    return slu_call_error(&list->call);
}
