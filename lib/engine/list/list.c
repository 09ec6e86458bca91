/* SPDX-License-Identifier: MIT */
/* Prepared lists: making and ending them. aim.c aims them, post.c posts them. */
#include "config.h"

#include "engine/list/list.h"
#include "engine/peer/peer.h"

#include <stdlib.h>
#include <string.h>

#include "engine/post/chain.h"
#include "engine/request/borrow.h"
#include "engine/request/check.h"
#include "engine/request/message.h"
#include "engine/ring/entry.h"

/*
 * Sizes of the arrays that a list owns beside its requests; also used to count how much of each is
 * handed out.
 */
struct extent {
    size_t blocks, indices, items, pieces;
};

static size_t count_sges(const struct sluice_request *requests, uint32_t count)
{
    size_t sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += requests[i].sge_count;
    return sum;
}

static inline bool is_paged(const struct sluice_layout *layout)
{
    return layout->kind == SLUICE_LAYOUT_PAGED;
}

/*
 * Counts the work requests of all requests, and the rest of the extent. Pieces are counted as if
 * none of them touched.
 */
static int measure(const struct slu_list *list, const struct slu_source *source,
                   struct extent *extent)
{
    const struct slu_engine *engine = list->engine;

    *extent = (struct extent){0};
    for (uint32_t i = 0; i < source->count; i++) {
        const struct sluice_blocks *blocks = source->lists[0][i].blocks;
        struct slu_item item;
        uint32_t parts;

        slu_source_any_item(source, i, &item);
        parts = slu_parts_count(engine, &item, engine->attr.send_depth);
        if (blocks == NULL && parts > 1)
            return slu_fail(E2BIG, "request %u has %llu bytes, a message has at most %llu", i,
                            (unsigned long long)item.bytes,
                            (unsigned long long)engine->attr.max_message);
        if (parts > engine->attr.send_depth && parts > 1)
            return slu_fail(E2BIG,
                            "request %u has blocks that need more than %u work requests: raise "
                            "send_depth",
                            i, engine->attr.send_depth);
        extent->items += parts;
        if (blocks == NULL)
            continue;
        extent->blocks++;
        extent->pieces += (size_t)parts * engine->attr.max_sge;
        extent->indices += is_paged(&blocks->local) ? blocks->local.count : 0;
        extent->indices += is_paged(&blocks->remote) ? blocks->remote.count : 0;
    }
    return extent->items <= INT32_MAX
               ? 0
               : slu_fail(E2BIG, "the list needs %zu work requests", extent->items);
}

static void copy_layout(struct slu_list *list, struct sluice_layout *layout, struct extent *taken)
{
    if (!is_paged(layout) || layout->count == 0)
        return;
    memcpy(&list->indices[taken->indices], layout->indices,
           layout->count * sizeof *layout->indices);
    layout->indices = &list->indices[taken->indices];
    taken->indices += layout->count;
}

static void copy_blocks(struct slu_list *list, struct sluice_request *own, struct extent *taken)
{
    struct sluice_blocks *blocks = &list->blocks[taken->blocks++];

    /* Cannot fail: the size was checked. */
    (void)SLU_ATTR_COPY(sluice_blocks, blocks, own->blocks);
    blocks->size = sizeof *blocks;
    copy_layout(list, &blocks->local, taken);
    copy_layout(list, &blocks->remote, taken);
    own->blocks = blocks;
}

static int make_room(struct slu_list *list, const struct sluice_request *requests, uint32_t count,
                     const struct extent *extent)
{
    list->requests = calloc(count, sizeof *list->requests);
    list->items = calloc(extent->items, sizeof *list->items);
    list->places = calloc(count, sizeof *list->places);
    list->lengths = calloc(count, sizeof *list->lengths);
    list->rooms = calloc(count, sizeof *list->rooms);
    list->sges = calloc(count_sges(requests, count) + 1, sizeof *list->sges);
    list->blocks = calloc(extent->blocks + 1, sizeof *list->blocks);
    list->indices = calloc(extent->indices + 1, sizeof *list->indices);
    list->pieces = calloc(extent->pieces + 1, sizeof *list->pieces);
    if (list->requests == NULL || list->items == NULL || list->places == NULL ||
        list->lengths == NULL || list->rooms == NULL || list->sges == NULL ||
        list->blocks == NULL || list->indices == NULL || list->pieces == NULL)
        return slu_fail(ENOMEM, "no memory for a list of %u request%s", count, SLU_S(count));
    return 0;
}

/* Copies the requests, with elements and blocks of the list's own. */
static int copy_requests(struct slu_list *list, const struct slu_source *source)
{
    const struct sluice_request *requests = source->lists[0];
    uint32_t count = source->count;
    struct extent extent, taken = {0};
    struct sluice_sge *next;
    int error = measure(list, source, &extent);

    if (error == 0)
        error = make_room(list, requests, count, &extent);
    if (error < 0)
        return error;
    next = list->sges;
    for (uint32_t i = 0; i < count; i++) {
        struct sluice_request *own = &list->requests[i];

        *own = requests[i];
        if (own->blocks != NULL)
            copy_blocks(list, own, &taken);
        if (own->sge_count == 0)
            continue;
        memcpy(next, slu_request_sges(&requests[i]), own->sge_count * sizeof *next);
        own->sges = next;
        list->lengths[i] = list->rooms[i] = next->length;
        next += own->sge_count;
    }
    list->source =
        (struct slu_source){.lists = {list->requests}, .counts = {count}, .count = count};
    return 0;
}

/* Fills in what all work requests of an item have in common. */
static void lay_common(struct slu_list *list, struct slu_listed *listed,
                       const struct slu_item *item, uint32_t index)
{
    const struct slu_name *name = &list->engine->peers[item->peer].name;

    listed->peer = item->peer;
    listed->queue = slu_item_queue(item);
    listed->index_generation = name->index_generation;
    listed->generation = name->generation;
    listed->head = slu_pending_head(SLU_OWNER_CALL, item->opcode, 0);
    listed->index = index;
    listed->bytes = item->bytes;
    list->counts[listed->queue]++;
}

/* Fills in one part. Parts are signaled as mark_parts() of post/chain.c signals them. */
static void lay_part(struct slu_listed *listed, const struct slu_item *item,
                     const struct sluice_sge *pieces, const struct slu_part *part, uint32_t number,
                     bool signaled, bool last)
{
    slu_fill_send(&listed->send, 0, item, pieces, part->sge_count);
    listed->send.remote_addr = part->remote_addr;
    listed->part = (uint8_t)(number | (signaled ? SLU_PART_LAST : 0));
    if (listed->parts == 0)
        listed->send.flags &= ~SLUICE_FENCE;
    if (!signaled)
        listed->send.flags &= ~SLU_SIGNALED;
    if (!last)
        listed->send.flags &= ~(SLUICE_IMMEDIATE | SLUICE_SOLICITED);
}

/* Fills in all parts of a request. Returns how many there are. */
static uint32_t lay_parts(struct slu_list *list, struct slu_listed *first,
                          const struct slu_item *item, uint32_t index, struct extent *taken)
{
    uint32_t together = slu_chain_parts(list->engine);
    uint32_t count = 0;
    struct slu_parts parts;

    first->parts = slu_parts_count(list->engine, item, UINT32_MAX - 1);
    slu_parts_begin(&parts, list->engine, item, 0);
    for (; parts.left > 0; count++) {
        struct sluice_sge *pieces = &list->pieces[taken->pieces];
        uint32_t number = count % together + 1;
        struct slu_part part;
        bool last;

        slu_parts_next(&parts, pieces, &part);
        taken->pieces += part.sge_count;
        last = parts.left == 0;
        lay_common(list, &first[count], item, index);
        lay_part(&first[count], item, pieces, &part, number, last || number == together, last);
    }
    list->has_parts = true;
    return count;
}

/*
 * Fills in a message with blocks. The pieces are found at each post, because some of them may be
 * staged.
 */
static uint32_t lay_gathered(struct slu_list *list, struct slu_listed *listed,
                             const struct slu_item *item, uint32_t index, struct extent *taken)
{
    struct sluice_sge *pieces = &list->pieces[taken->pieces];

    taken->pieces += list->engine->attr.max_sge;
    lay_common(list, listed, item, index);
    if (listed->queue == SLU_RECEIVE_QUEUE)
        slu_fill_receive(&listed->receive, 0, pieces, 0);
    else
        slu_fill_send(&listed->send, 0, item, pieces, 0);
    listed->gathered = list->gathers = true;
    return 1;
}

/* Fills in the work requests of one request. Returns how many there are. */
static uint32_t lay_item(struct slu_list *list, struct slu_listed *listed, uint32_t index,
                         struct extent *taken)
{
    uint32_t sge_count;
    struct slu_item item;

    slu_source_any_item(&list->source, index, &item);
    if (slu_item_is_gathered(&item))
        return lay_gathered(list, listed, &item, index, taken);
    if (item.request->blocks != NULL && item.bytes > 0)
        return lay_parts(list, listed, &item, index, taken);
    sge_count = item.request->blocks == NULL ? item.request->sge_count : 0;
    lay_common(list, listed, &item, index);
    if (listed->queue == SLU_RECEIVE_QUEUE)
        slu_fill_receive(&listed->receive, 0, item.sges, sge_count);
    else
        slu_fill_send(&listed->send, 0, &item, item.sges, sge_count);
    return 1;
}

/* Returns whether two neighbours are posted together. */
static bool share_chain(const struct slu_listed *one, const struct slu_listed *other)
{
    return one->peer == other->peer && one->queue == other->queue;
}

/* Links neighbours that go to one queue of one peer. */
static void link_chains(struct slu_list *list)
{
    for (uint32_t i = 0; i < list->item_count; i++) {
        struct slu_listed *listed = &list->items[i];
        struct slu_listed *next = listed + 1;

        listed->last = i + 1 == list->item_count || !share_chain(listed, next);
        if (listed->queue == SLU_RECEIVE_QUEUE)
            listed->receive.next = listed->last ? NULL : &next->receive;
        else
            listed->send.next = listed->last ? NULL : &next->send;
    }
}

/*
 * Counts how much room the list needs in each queue of each peer, and notes it with the first
 * request for that queue.
 */
static int count_needs(struct slu_list *list)
{
    struct slu_engine *engine = list->engine;
    struct slu_listed *(*first)[SLU_QUEUES] = calloc(engine->peer_count, sizeof *first);
    int error = 0;

    if (first == NULL)
        return slu_fail(ENOMEM, "no memory to count the requests of %u peers", engine->peer_count);
    for (uint32_t i = 0; i < list->item_count && error == 0; i++) {
        struct slu_listed *listed = &list->items[i];
        struct slu_listed **head = &first[listed->peer][listed->queue];
        uint32_t depth = slu_queue_depth(engine, (enum slu_queue)listed->queue);

        if (*head == NULL)
            *head = listed;
        if (++(*head)->needed > depth)
            error =
                slu_fail(E2BIG, "more than %u %ss of the list are for %s %u: raise %s_depth", depth,
                         listed->queue == SLU_SEND_QUEUE ? "send" : "receive", engine->peer_word,
                         listed->peer, listed->queue == SLU_SEND_QUEUE ? "send" : "receive");
    }
    free(first);
    return error;
}

/* Checks that the staging buffers, when empty, have room for all of the list. */
static int check_staging(const struct slu_list *list)
{
    const struct slu_engine *engine = list->engine;
    uint64_t(*sums)[SLU_QUEUES] = calloc(engine->peer_count, sizeof *sums);
    int error = 0;

    if (sums == NULL)
        return slu_fail(ENOMEM, "no memory to count the blocks of %u peers", engine->peer_count);
    for (uint32_t i = 0; i < list->item_count && error == 0; i++) {
        const struct slu_listed *listed = &list->items[i];
        struct slu_item item;

        if (!listed->gathered)
            continue;
        slu_source_any_item(&list->source, listed->index, &item);
        sums[listed->peer][listed->queue] += slu_message_need(engine, &item);
        if (sums[listed->peer][listed->queue] > engine->staging)
            error = slu_fail(E2BIG,
                             "the blocks of the list for %s %u need more than %llu bytes of a "
                             "staging buffer: raise sluice_channel_attr.staging",
                             engine->peer_word, listed->peer, (unsigned long long)engine->staging);
    }
    free(sums);
    return error;
}

/* Fills in all work requests: receives first, then sends, each in the order of the list. */
static int lay_out(struct slu_list *list)
{
    struct extent taken = {0};
    uint32_t next = 0;

    for (int queue = SLU_QUEUES; queue-- > 0;)
        for (uint32_t i = 0; i < list->source.count; i++)
            if ((int)slu_opcode_queue(list->requests[i].opcode) == queue) {
                list->places[i] = next;
                list->requests_of[queue]++;
                next += lay_item(list, &list->items[next], i, &taken);
            }
    list->item_count = next;
    /* A list without receives waits only for its sends. */
    for (uint32_t i = 0; list->counts[SLU_RECEIVE_QUEUE] == 0 && i < next; i++)
        if ((list->items[i].send.flags & SLU_SIGNALED) != 0)
            list->items[i].send.flags |= SLU_WAITED;
    link_chains(list);
    if (list->gathers) {
        int error = check_staging(list);

        if (error < 0)
            return error;
    }
    return count_needs(list);
}

/* Adds the list to the engine, which pins its memory from then on. */
static void join(struct slu_list *list)
{
    struct slu_engine *engine = list->engine;

    pthread_mutex_lock(&engine->pd->lock);
    list->next = engine->lists;
    engine->lists = list;
    pthread_mutex_unlock(&engine->pd->lock);
}

static void leave(struct slu_list *list)
{
    struct slu_engine *engine = list->engine;
    struct slu_list **at = &engine->lists;

    pthread_mutex_lock(&engine->pd->lock);
    while (*at != list)
        at = &(*at)->next;
    *at = list->next;
    pthread_mutex_unlock(&engine->pd->lock);
    list->engine = NULL;
}

static void free_list(struct slu_list *list)
{
    free(list->requests);
    free(list->items);
    free(list->places);
    free(list->lengths);
    free(list->rooms);
    free(list->sges);
    free(list->blocks);
    free(list->indices);
    free(list->pieces);
    free(list);
}

/*
 * Returns the error of a list that is wrong, or makes a list that names plain memory. The list then
 * pins the regions.
 */
static int create_aside(struct slu_engine *engine, const struct slu_source *given, int why,
                        struct slu_list **made)
{
    struct slu_borrowed borrowed;
    int error;

    if (why != SLU_NAMES_PLAIN)
        return why;
    error = slu_borrow(engine, given, &borrowed);
    if (error < 0)
        return error;
    error = slu_list_create(engine, borrowed.requests, given->count, made);
    return slu_give_back(&borrowed, error);
}

/* A list is laid out for the peers that it names, so they must be there. */
static void find_peers(struct slu_engine *engine, const struct slu_source *source)
{
    if (engine->lazy == NULL)
        return;
    slu_engine_enter(engine);
    for (uint32_t i = 0; i < source->count; i++)
        slu_peer_takes(engine, &engine->peers[slu_source_peer(source, i)]);
    slu_engine_leave(engine);
}

int slu_list_create(struct slu_engine *engine, const struct sluice_request *requests,
                    uint32_t count, struct slu_list **made)
{
    struct slu_source given = {.lists = {requests}, .counts = {count}, .count = count};
    struct slu_list *list;
    int error;

    if (count == 0)
        return slu_misuse(EINVAL, "a list needs at least one request");
    if (count > INT32_MAX)
        return slu_misuse(EINVAL, "count %u is above 2^31 - 1", count);
    error = slu_source_check(engine, &given, SLUICE_FOREVER);
    if (error < 0)
        return create_aside(engine, &given, error, made);
    find_peers(engine, &given);
    list = calloc(1, sizeof *list);
    if (list == NULL)
        return slu_fail(ENOMEM, "no memory for a list");
    list->engine = engine;
    list->queues = error;
    error = copy_requests(list, &given);
    if (error == 0)
        error = lay_out(list);
    if (error < 0) {
        free_list(list);
        return error;
    }
    join(list);
    *made = list;
    return 0;
}

/*
 * Pins the memory of a request in flight by its entry instead of by the list. If the entry already
 * has keys, these stay: they are the memory from when it was posted, and the list was aimed since.
 */
static void pin_entry(struct slu_list *list, const struct slu_ring *ring, struct slu_entry *entry,
                      enum slu_owner owner)
{
    const struct sluice_request *request = &list->requests[entry->index];
    uint32_t own = entry->key_count;
    uint32_t keys = own > 0 ? 0 : slu_key_count(request);

    slu_entry_pend(list->engine, ring, entry, slu_pending_head(owner, entry->opcode, own + keys),
                   request->sges, keys);
}

static void pin_for_call(struct slu_list *list, const struct slu_ring *ring,
                         struct slu_entry *entry)
{
    pin_entry(list, ring, entry, SLU_OWNER_CALL);
}

/* Detaches a request in flight, whose result is discarded. */
static void detach_entry(struct slu_list *list, const struct slu_ring *ring,
                         struct slu_entry *entry)
{
    entry->deadline = list->call.deadline;
    entry->time = list->call.time;
    pin_entry(list, ring, entry, SLU_OWNER_NOBODY);
    list->engine->detached++;
}

/* Calls act on each request of the list that is in flight in the queue of an item. */
static void for_entries(struct slu_list *list, const struct slu_listed *listed,
                        void (*act)(struct slu_list *, const struct slu_ring *, struct slu_entry *))
{
    struct slu_ring *ring = &list->engine->peers[listed->peer].rings[listed->queue];

    for (uint64_t id = ring->oldest; id != ring->next; id += SLU_ID_STEP) {
        struct slu_entry *entry = slu_ring_entry(ring, id);

        if (entry->state == SLU_ENTRY_PENDING && entry->owner == SLU_OWNER_CALL &&
            entry->call == &list->call)
            act(list, ring, entry);
    }
}

static void detach(struct slu_list *list)
{
    for (uint32_t i = 0; i < list->item_count; i++)
        for_entries(list, &list->items[i], detach_entry);
}

void slu_list_destroy(struct slu_list *list)
{
    if (list->engine != NULL) {
        if (slu_list_in_flight(list))
            detach(list);
        leave(list);
    }
    free_list(list);
}

int slu_list_closed(void)
{
    return slu_fail(ESTALE, "the list is stale: its channel was closed");
}

void slu_list_pin(struct slu_list *list, const struct slu_listed *listed)
{
    if (SLU_UNLIKELY(slu_list_in_flight(list)))
        for_entries(list, listed, pin_for_call);
}

static bool uses(const struct slu_list *list, const struct slu_memory *memory)
{
    for (uint32_t i = 0; i < list->source.count; i++)
        for (uint32_t k = 0; k < list->requests[i].sge_count; k++) {
            const struct sluice_sge *sge = &list->requests[i].sges[k];
            uint64_t addr = __atomic_load_n(&sge->addr, __ATOMIC_ACQUIRE);

            if (slu_memory_has(memory, sge->lkey, (uint32_t)addr))
                return true;
        }
    return false;
}

bool slu_lists_use(const struct slu_engine *engine, const struct slu_memory *memory)
{
    for (const struct slu_list *list = engine->lists; list != NULL; list = list->next)
        if (uses(list, memory))
            return true;
    return false;
}

uint32_t slu_lists_pending(const struct slu_engine *engine)
{
    uint32_t pending = 0;

    for (const struct slu_list *list = engine->lists; list != NULL; list = list->next)
        pending += list->call.incomplete;
    return pending;
}

bool slu_lists_done(const struct slu_engine *engine)
{
    for (const struct slu_list *list = engine->lists; list != NULL; list = list->next)
        if (list->life == SLU_LIST_POSTED && !slu_list_in_flight(list))
            return true;
    return false;
}

void slu_lists_close(struct slu_engine *engine)
{
    while (engine->lists != NULL)
        leave(engine->lists);
}
