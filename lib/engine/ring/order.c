/* SPDX-License-Identifier: MIT */
/*
 * Unseen results, in the order of completion across all peers. Results are kept while there are
 * places for them. Sends and receives each have as many places as could ever be in flight at most;
 * a pending request whose result will be kept holds a place as well. If none is left, the oldest
 * unseen success is forgotten.
 */
#include "config.h"

#include "engine/ring/order.h"

#include "base/zeroed.h"
#include "engine/ring/result.h"

static void destroy_order(const struct slu_order *order)
{
    slu_zeroed_free(order->ids, (size_t)order->mask + 1, sizeof *order->ids);
}

/*
 * Grows an order. In a scope each peer may need one more than there are places, for a split request
 * with no work in flight.
 */
static int grow_order(struct slu_order *order, uint32_t places, uint32_t peers)
{
    uint32_t size = slu_power_of_two(places + places / 4 + peers);
    uint64_t *ids;

    if (order->ids != NULL && size <= order->mask + 1)
        return 0;
    ids = slu_zeroed_alloc(size, sizeof *ids);
    if (ids == NULL)
        return slu_fail(ENOMEM, "no memory for the results of %u requests", places);
    for (uint32_t i = order->tail; i != order->head; i++)
        ids[i & (size - 1)] = order->ids[i & order->mask];
    destroy_order(order);
    order->ids = ids;
    order->mask = size - 1;
    return 0;
}

int slu_places_grow(struct slu_engine *engine, const uint32_t places[SLU_QUEUES], uint32_t peers)
{
    int error = 0;

    for (int queue = 0; queue < SLU_QUEUES; queue++)
        for (int owner = 0; owner < SLU_OWNERS_KEEP && error == 0; owner++)
            error = grow_order(&engine->orders[owner][queue], places[queue], peers);
    if (error == 0)
        error = slu_aside_grow(engine, places[SLU_SEND_QUEUE] + places[SLU_RECEIVE_QUEUE] + peers);
    return error;
}

void slu_places_destroy(struct slu_engine *engine)
{
    for (int queue = 0; queue < SLU_QUEUES; queue++)
        for (int owner = 0; owner < SLU_OWNERS_KEEP; owner++)
            destroy_order(&engine->orders[owner][queue]);
    slu_aside_destroy(engine);
}

/* Returns the entry of an id in an order of that owner, if it is still done and unseen. */
static struct slu_entry *find_unseen(const struct slu_engine *engine, enum slu_owner owner,
                                     uint64_t id)
{
    struct slu_entry *entry = slu_entry_find(engine, id);

    return entry != NULL && entry->state == SLU_ENTRY_DONE && entry->owner == owner ? entry : NULL;
}

void slu_order_tidy(struct slu_engine *engine, enum slu_owner owner, struct slu_order *order)
{
    uint32_t to = order->tail;

    for (uint32_t from = order->tail; from != order->head; from++) {
        uint64_t id = order->ids[from & order->mask];

        if (find_unseen(engine, owner, id) != NULL)
            order->ids[to++ & order->mask] = id;
    }
    order->head = to;
    order->failed = order->tail;
}

struct slu_entry *slu_order_first(const struct slu_engine *engine, enum slu_owner owner,
                                  struct slu_order *order)
{
    struct slu_entry *entry = NULL;

    if (order->unseen == 0) {
        order->tail = order->failed = order->head;
        return NULL;
    }
    while (entry == NULL) {
        entry = find_unseen(engine, owner, order->ids[order->tail & order->mask]);
        order->tail += entry == NULL;
    }
    return entry;
}

struct slu_first slu_order_find(struct slu_engine *engine, enum slu_owner owner,
                                bool (*is_earlier)(const struct slu_entry *one,
                                                   const struct slu_entry *other))
{
    struct slu_order *sends = &engine->orders[owner][SLU_SEND_QUEUE];
    struct slu_order *receives = &engine->orders[owner][SLU_RECEIVE_QUEUE];
    struct slu_entry *sent = slu_order_first(engine, owner, sends);
    struct slu_entry *received = slu_order_first(engine, owner, receives);

    return received != NULL && (sent == NULL || is_earlier(received, sent))
               ? (struct slu_first){received, receives}
               : (struct slu_first){sent, sends};
}

void slu_order_take(struct slu_engine *engine, const struct slu_first *first,
                    struct sluice_completion *completion)
{
    struct slu_order *order = first->order;

    slu_entry_result(first->entry,
                     slu_entry_peer(order->ids[order->tail++ & order->mask], first->entry),
                     first->entry->marks.failed, completion);
    slu_entry_seen(engine, first->entry);
}

static bool was_done_earlier(const struct slu_entry *one, const struct slu_entry *other)
{
    return one->number < other->number;
}

bool slu_take_done(struct slu_engine *engine, enum slu_owner owner,
                   struct sluice_completion *completion)
{
    struct slu_first first = slu_order_find(engine, owner, was_done_earlier);
    uint64_t before = first.entry != NULL ? first.entry->number : UINT64_MAX;

    if (engine->failure_count > 0 && slu_failure_take(engine, owner, before, completion))
        return true;
    if (first.entry == NULL)
        return false;
    slu_order_take(engine, &first, completion);
    return true;
}

/* Takes results of one queue, in order, while the other queue has none to compare them with. */
static uint32_t take_alike(struct slu_engine *engine, enum slu_owner owner, struct slu_order *order,
                           struct sluice_completion *completions, uint32_t count)
{
    uint32_t taken = 0;

    while (taken < count && order->unseen > 0) {
        uint64_t id = order->ids[order->tail++ & order->mask];
        struct slu_entry *entry = slu_entry_find(engine, id);

        if (SLU_UNLIKELY(entry == NULL || entry->state != SLU_ENTRY_DONE || entry->owner != owner))
            continue;
        slu_entry_result(entry, slu_entry_peer(id, entry), entry->marks.failed,
                         &completions[taken++]);
        slu_entry_seen(engine, entry);
    }
    return taken;
}

uint32_t slu_take_all_done(struct slu_engine *engine, enum slu_owner owner,
                           struct sluice_completion *completions, uint32_t count)
{
    struct slu_order *orders = engine->orders[owner];
    uint32_t taken = 0;

    while (taken < count) {
        if (engine->failure_count == 0 && orders[SLU_SEND_QUEUE].unseen == 0)
            return taken + take_alike(engine, owner, &orders[SLU_RECEIVE_QUEUE],
                                      completions + taken, count - taken);
        if (engine->failure_count == 0 && orders[SLU_RECEIVE_QUEUE].unseen == 0)
            return taken + take_alike(engine, owner, &orders[SLU_SEND_QUEUE], completions + taken,
                                      count - taken);
        if (!slu_take_done(engine, owner, &completions[taken]))
            break;
        taken++;
    }
    return taken;
}

/* Releases the place of an entry. No handle refers to it any more. */
static void give_place(struct slu_engine *engine, struct slu_entry *entry)
{
    slu_entry_seen(engine, entry);
    entry->owner = SLU_OWNER_NOBODY;
}

/* Moves a failure to failure.c, and a success to aside.c. */
void slu_entry_displace(struct slu_engine *engine, struct slu_ring *ring, struct slu_entry *entry)
{
    uint64_t id = ring->next - (uint64_t)ring->size * SLU_ID_STEP;

    if (!entry->marks.failed) {
        slu_aside_keep(engine, id, entry);
        return;
    }
    slu_failure_keep_entry(engine, id, entry);
    slu_entry_seen(engine, entry);
}

static void forget(struct slu_engine *engine, uint64_t id, struct slu_entry *entry)
{
    if (entry->owner == SLU_OWNER_SCOPE)
        engine->scope.forgotten++;
    else
        slu_counts_of(engine, slu_entry_peer(id, entry), entry->marks.flags)->forgotten++;
    give_place(engine, entry);
}

/*
 * Forgets the oldest success of an order. Returns false if it has none. order->failed passes each
 * failure only once.
 */
static bool forget_success(struct slu_engine *engine, enum slu_owner owner, struct slu_order *order)
{
    if (order->unseen == 0)
        return false;
    /* order->failed falls behind the tail while nothing is forgotten. */
    if (order->failed - order->tail > order->head - order->tail)
        order->failed = order->tail;
    while (order->failed != order->head) {
        uint64_t id = order->ids[order->failed & order->mask];
        struct slu_entry *entry = find_unseen(engine, owner, id);
        bool succeeded = entry != NULL && !entry->marks.failed;

        order->tail += order->tail == order->failed && (entry == NULL || succeeded);
        order->failed++;
        if (succeeded) {
            forget(engine, id, entry);
            return true;
        }
    }
    return false;
}

/* Moves the oldest failure of an order to failure.c. Returns false if it has none. */
static bool keep_failure(struct slu_engine *engine, enum slu_owner owner, struct slu_order *order)
{
    struct slu_entry *entry = slu_order_first(engine, owner, order);

    if (entry == NULL)
        return false;
    slu_failure_keep_entry(engine, order->ids[order->tail & order->mask], entry);
    give_place(engine, entry);
    return true;
}

void slu_place_clear(struct slu_engine *engine, enum slu_queue queue)
{
    for (int owner = 0; owner < SLU_OWNERS_KEEP; owner++)
        if (forget_success(engine, (enum slu_owner)owner, &engine->orders[owner][queue]))
            return;
    /*
     * No success is left, so move a failure. There may be none either, if a split request of a
     * scope holds a place with no work in flight.
     */
    for (int owner = 0; owner < SLU_OWNERS_KEEP; owner++)
        if (keep_failure(engine, (enum slu_owner)owner, &engine->orders[owner][queue]))
            return;
}
