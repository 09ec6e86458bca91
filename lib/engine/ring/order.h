/* SPDX-License-Identifier: MIT */
/*
 * Unseen results: their order, the places for them, and where they go when their entries are
 * needed.
 */
#ifndef SLU_ENGINE_RING_ORDER_H
#define SLU_ENGINE_RING_ORDER_H

#include "engine/ring/ring.h"

/* Makes room for that many results of each queue, for that many peers. */
int slu_places_grow(struct slu_engine *engine, const uint32_t places[SLU_QUEUES], uint32_t peers);
void slu_places_destroy(struct slu_engine *engine);
/* Frees a place of a queue whose places are all held: forgets the oldest unseen success. */
void slu_place_clear(struct slu_engine *engine, enum slu_queue queue);
/* Moves the unseen result of an entry elsewhere, because the entry is needed. */
void slu_entry_displace(struct slu_engine *engine, struct slu_ring *ring, struct slu_entry *entry);
/*
 * Returns the oldest unseen entry of an order of that owner, whose id is at the tail afterwards;
 * NULL: none.
 */
struct slu_entry *slu_order_first(const struct slu_engine *engine, enum slu_owner owner,
                                  struct slu_order *order);

/* The earliest unseen entry of both queues, by a rule that each order is sorted by. */
struct slu_first {
    struct slu_entry *entry; /* NULL: there is none */
    struct slu_order *order;
};

struct slu_first slu_order_find(struct slu_engine *engine, enum slu_owner owner,
                                bool (*is_earlier)(const struct slu_entry *one,
                                                   const struct slu_entry *other));
/* Takes the entry that was found, of which there must be one: it is seen from then on. */
void slu_order_take(struct slu_engine *engine, const struct slu_first *first,
                    struct sluice_completion *completion);
/* Drops the ids of results that are not unseen any more. */
void slu_order_tidy(struct slu_engine *engine, enum slu_owner owner, struct slu_order *order);
/* Takes the oldest unseen result of an owner. Returns false if there is none. */
bool slu_take_done(struct slu_engine *engine, enum slu_owner owner,
                   struct sluice_completion *completion);

/* Takes up to count of them, and returns how many. */
uint32_t slu_take_all_done(struct slu_engine *engine, enum slu_owner owner,
                           struct sluice_completion *completions, uint32_t count);

/* Counts the unseen results of an owner, without the failures of failure.c. */
static inline uint32_t slu_unseen(const struct slu_engine *engine, enum slu_owner owner)
{
    const struct slu_order *orders = engine->orders[owner];

    return orders[SLU_SEND_QUEUE].unseen + orders[SLU_RECEIVE_QUEUE].unseen;
}

/*
 * Makes sure that there is a place for one more result. If none is left, the oldest is forgotten.
 */
static inline void slu_find_place(struct slu_engine *engine, enum slu_queue queue)
{
    if (SLU_UNLIKELY(engine->held[queue] >= engine->places[queue]))
        slu_place_clear(engine, queue);
}

/* Returns the room in the completion queue, limited to the free places for results. */
static inline uint32_t slu_room_and_places(const struct slu_engine *engine, enum slu_queue queue)
{
    uint32_t places = engine->places[queue] - engine->held[queue];

    return engine->held[queue] >= engine->places[queue] ? 0
           : places < engine->cq_free[queue]            ? places
                                                        : engine->cq_free[queue];
}

static inline void slu_order_push(struct slu_engine *engine, enum slu_owner owner,
                                  struct slu_order *order, uint64_t id)
{
    if (SLU_UNLIKELY(order->head - order->tail > order->mask))
        slu_order_tidy(engine, owner, order);
    order->ids[order->head++ & order->mask] = id;
    order->unseen++;
}

/* aside.c, for successes: makes places for that many results. */
int slu_aside_grow(struct slu_engine *engine, uint32_t results);
void slu_aside_destroy(struct slu_engine *engine);
void slu_aside_keep(struct slu_engine *engine, uint64_t id, const struct slu_entry *entry);
/* failure.c, for failures: keeps that of an entry. */
void slu_failure_keep_entry(struct slu_engine *engine, uint64_t id, const struct slu_entry *entry);
/* Keeps the failure of a request that never had an entry. Returns its id. */
uint64_t slu_failure_keep_refused(struct slu_engine *engine, enum slu_owner owner, uint32_t index,
                                  const struct sluice_completion *completion);
/* Takes the owner's oldest failure, if it is older than that number. It is seen from then on. */
bool slu_failure_take(struct slu_engine *engine, enum slu_owner owner, uint64_t before,
                      struct sluice_completion *completion);
/* Marks a failure as seen. */
void slu_failure_see(struct slu_engine *engine, struct slu_failure *failure);
/* Returns whether there is a failure of that id, which is seen, or dropped, from then on. */
bool slu_failure_find(struct slu_engine *engine, uint64_t id, bool drop,
                      struct sluice_completion *completion);

#endif
