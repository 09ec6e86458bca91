/* SPDX-License-Identifier: MIT */
/*
 * Results that nobody has taken, found in the order of completion, of all peers together. They
 * stay in the rings; ring.c says for how long.
 */
#include "config.h"

#include <stdlib.h>

#include "engine/inside.h"

uint32_t slu_power_of_two(uint32_t least)
{
    uint32_t size = 1;

    while (size < least)
        size *= 2;
    return size;
}

static int grow_order(struct slu_order *order, uint32_t size)
{
    uint64_t *ids;

    if (order->ids != NULL && size <= order->mask + 1)
        return 0;
    ids = calloc(size, sizeof *ids);
    if (ids == NULL)
        return slu_fail(ENOMEM, "no memory for the results of %u requests", size);
    for (uint32_t i = order->tail; i != order->head; i++)
        ids[i & (size - 1)] = order->ids[i & order->mask];
    free(order->ids);
    order->ids = ids;
    order->mask = size - 1;
    return 0;
}

int slu_orders_grow(struct slu_engine *engine, uint32_t peers)
{
    uint32_t results =
        slu_ring_size(engine, SLU_SEND_QUEUE) + slu_ring_size(engine, SLU_RECEIVE_QUEUE);
    uint32_t size = slu_power_of_two(2 * peers * results);
    int error = 0;

    for (int owner = 0; owner < SLU_OWNERS_KEEP && error == 0; owner++)
        error = grow_order(&engine->orders[owner], size);
    return error;
}

void slu_orders_destroy(struct slu_engine *engine)
{
    for (int owner = 0; owner < SLU_OWNERS_KEEP; owner++)
        free(engine->orders[owner].ids);
}

/* The entry of an id of an order, if it still has that result and nobody has taken it. */
static struct slu_entry *find_unseen(const struct slu_engine *engine, uint64_t id)
{
    struct slu_entry *entry = slu_order_entry(engine, id);

    return entry->state == SLU_ENTRY_DONE && entry->id == id ? entry : NULL;
}

void slu_order_tidy(struct slu_engine *engine, struct slu_order *order)
{
    uint32_t to = order->tail;

    for (uint32_t from = order->tail; from != order->head; from++) {
        uint64_t id = order->ids[from & order->mask];

        if (find_unseen(engine, id) != NULL)
            order->ids[to++ & order->mask] = id;
    }
    order->head = to;
}

struct slu_entry *slu_order_first(struct slu_engine *engine, enum slu_owner owner)
{
    struct slu_order *order = &engine->orders[owner];
    struct slu_entry *entry = NULL;

    if (order->unseen == 0) {
        order->tail = order->head;
        return NULL;
    }
    while (entry == NULL) {
        entry = find_unseen(engine, order->ids[order->tail & order->mask]);
        order->tail += entry == NULL;
    }
    return entry;
}

void slu_order_take(struct slu_engine *engine, enum slu_owner owner,
                    struct sluice_completion *completion)
{
    struct slu_order *order = &engine->orders[owner];
    uint64_t id = order->ids[order->tail++ & order->mask];
    struct slu_entry *entry = slu_order_entry(engine, id);

    slu_entry_result(entry, slu_id_peer(id), entry->marks.failed, completion);
    slu_entry_seen(engine, entry);
}

bool slu_take_done(struct slu_engine *engine, enum slu_owner owner,
                   struct sluice_completion *completion)
{
    const struct slu_entry *first = slu_order_first(engine, owner);
    uint64_t before = first != NULL ? first->number : UINT64_MAX;

    if (engine->failure_count > 0 && slu_failure_take(engine, owner, before, completion))
        return true;
    if (first == NULL)
        return false;
    slu_order_take(engine, owner, completion);
    return true;
}
