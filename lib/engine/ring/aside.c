/* SPDX-License-Identifier: MIT */
/*
 * Unseen successes whose entries were needed, by blocking calls or because the program retrieved
 * later results first. Finding them by id works as if they were still in their rings. There are
 * twice as many places as there can be unseen results, so a free one is near, and as many chains as
 * places, so chains are short.
 */
#include "config.h"

#include <string.h>

#include "base/zeroed.h"
#include "engine/ring/order.h"

/* Returns the chain of an id: the number of its first place; 0: none. */
static uint32_t *chain_of(const struct slu_aside *aside, uint64_t id)
{
    uint64_t hash = id * 0x9e3779b97f4a7c15;

    return &aside->chains[(uint32_t)(hash >> 32) & (aside->size - 1)];
}

static void link_place(struct slu_aside *aside, uint32_t number)
{
    struct slu_aside_place *place = &aside->places[number - 1];
    uint32_t *chain = chain_of(aside, place->id);

    place->next = *chain;
    *chain = number;
}

static void unlink_place(struct slu_aside *aside, uint32_t number)
{
    const struct slu_aside_place *place = &aside->places[number - 1];
    uint32_t *link = chain_of(aside, place->id);

    while (*link != number)
        link = &aside->places[*link - 1].next;
    *link = place->next;
}

static void free_places(const struct slu_aside *aside)
{
    slu_zeroed_free(aside->places, aside->size, sizeof *aside->places);
    slu_zeroed_free(aside->chains, aside->size, sizeof *aside->chains);
}

int slu_aside_grow(struct slu_engine *engine, uint32_t results)
{
    struct slu_aside *aside = &engine->aside;
    struct slu_aside grown = *aside;

    if (results > UINT32_MAX / 4)
        return slu_fail(ENOMEM, "no memory for the results of %u requests", results);
    grown.size = slu_power_of_two(2 * results);
    if (grown.size <= aside->size)
        return 0;
    grown.places = slu_zeroed_alloc(grown.size, sizeof *grown.places);
    grown.chains = slu_zeroed_alloc(grown.size, sizeof *grown.chains);
    if (grown.places == NULL || grown.chains == NULL) {
        free_places(&grown);
        return slu_fail(ENOMEM, "no memory for the results of %u requests", results);
    }
    /*
     * Copy used places only: the others were never touched, so programs that need none use no
     * memory for them.
     */
    if (aside->used > 0)
        memcpy(grown.places, aside->places, aside->used * sizeof *grown.places);
    for (uint32_t number = 1; number <= aside->used; number++)
        link_place(&grown, number);
    slu_aside_destroy(engine);
    *aside = grown;
    return 0;
}

void slu_aside_destroy(struct slu_engine *engine)
{
    free_places(&engine->aside);
}

/*
 * Takes a place that was never used, or one whose result was seen. At least half are free, so one
 * is near.
 */
static uint32_t find_place(struct slu_engine *engine)
{
    struct slu_aside *aside = &engine->aside;

    if (aside->used < aside->size)
        return ++aside->used;
    do {
        aside->cursor = (aside->cursor & (aside->size - 1)) + 1;
    } while (slu_entry_is_unseen(engine, &aside->places[aside->cursor - 1].entry));
    unlink_place(aside, aside->cursor);
    return aside->cursor;
}

void slu_aside_keep(struct slu_engine *engine, uint64_t id, const struct slu_entry *entry)
{
    uint32_t number = find_place(engine);
    struct slu_aside_place *place = &engine->aside.places[number - 1];

    memcpy(&place->entry, entry, sizeof *entry);
    place->id = id;
    link_place(&engine->aside, number);
}

/* Returns whether the peer of that id was removed; another peer may have its index now. */
static bool was_removed(const struct slu_engine *engine, uint64_t id)
{
    const struct slu_ring *ring = slu_ring_of(engine, id);
    const struct slu_peer *peer;

    /* Results of the pool are marked when their peer is removed. */
    if (ring == NULL)
        return false;
    peer = &engine->peers[slu_id_peer(id)];
    return peer->state == SLUICE_STATE_REMOVED || !slu_ring_is_of_today(ring, id);
}

struct slu_entry *slu_aside_find(const struct slu_engine *engine, uint64_t id)
{
    const struct slu_aside *aside = &engine->aside;
    uint32_t number = *chain_of(aside, id);
    struct slu_aside_place *place;

    while (number != 0 && aside->places[number - 1].id != id)
        number = aside->places[number - 1].next;
    if (number == 0)
        return NULL;
    place = &aside->places[number - 1];
    if (SLU_UNLIKELY(was_removed(engine, id)))
        place->entry.marks.flags |= SLUICE_PEER_REMOVED;
    return &place->entry;
}
