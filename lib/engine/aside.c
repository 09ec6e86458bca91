/* SPDX-License-Identifier: MIT */
/*
 * Successes that nobody has seen and whose entries were needed: by calls that block, or
 * because the program has looked at later ones first. They are found as if they were in
 * their rings still. There are more places than there can be unseen results.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/inside.h"

int slu_aside_grow(struct slu_engine *engine, uint32_t results)
{
    struct slu_aside *aside = &engine->aside;
    struct slu_aside_place *places;
    uint32_t size = aside->size > 0 ? aside->size : 1;

    while (size < 2 * results)
        size *= 2;
    if (size == aside->size)
        return 0;
    places = calloc(size, sizeof *places);
    if (places == NULL)
        return slu_fail(ENOMEM, "no memory for the results of %u requests", results);
    /* What was never used is not touched: most programs need none of it. */
    if (aside->used > 0)
        memcpy(places, aside->places, aside->used * sizeof *places);
    free(aside->places);
    aside->places = places;
    aside->size = size;
    return 0;
}

void slu_aside_destroy(struct slu_engine *engine)
{
    free(engine->aside.places);
}

/* Those of a ring are a list, the oldest first; the links are numbers of places, 0: none. */
static void link_last(struct slu_aside *aside, struct slu_ring *ring, uint32_t number)
{
    struct slu_aside_place *place = &aside->places[number - 1];

    place->next = 0;
    place->prev = ring->last_aside;
    if (ring->last_aside != 0)
        aside->places[ring->last_aside - 1].next = number;
    else
        ring->first_aside = number;
    ring->last_aside = number;
}

static void unlink_place(struct slu_aside *aside, struct slu_ring *ring,
                         struct slu_aside_place *place)
{
    if (place->prev != 0)
        aside->places[place->prev - 1].next = place->next;
    else
        ring->first_aside = place->next;
    if (place->next != 0)
        aside->places[place->next - 1].prev = place->prev;
    else
        ring->last_aside = place->prev;
}

/* One that was seen, or never used: half of them are, so it is near. */
static uint32_t find_place(struct slu_aside *aside)
{
    uint32_t number;

    if (aside->used < aside->size)
        return ++aside->used;
    do {
        number = aside->cursor % aside->size + 1;
        aside->cursor = number;
    } while (aside->places[number - 1].entry.state == SLU_ENTRY_DONE);
    return number;
}

void slu_aside_keep(struct slu_engine *engine, struct slu_ring *ring, uint64_t id,
                    const struct slu_entry *entry)
{
    struct slu_aside *aside = &engine->aside;
    uint32_t number = find_place(aside);
    struct slu_aside_place *place = &aside->places[number - 1];

    if (place->id != 0)
        unlink_place(aside, slu_ring_of(engine, place->id), place);
    memcpy(&place->entry, entry, sizeof *entry);
    place->id = id;
    aside->unseen++;
    link_last(aside, ring, number);
}

struct slu_entry *slu_aside_find(const struct slu_engine *engine, const struct slu_ring *ring,
                                 uint64_t id)
{
    uint64_t age = slu_ring_age(ring, id);
    uint32_t number = ring->first_aside;

    while (number != 0) {
        struct slu_aside_place *place = &engine->aside.places[number - 1];

        if (place->id == id)
            return &place->entry;
        /* Those that follow are younger still. */
        if (slu_ring_age(ring, place->id) < age)
            return NULL;
        number = place->next;
    }
    return NULL;
}

void slu_aside_seen(struct slu_engine *engine, const struct slu_entry *entry)
{
    const struct slu_aside *aside = &engine->aside;
    uintptr_t offset = (uintptr_t)entry - (uintptr_t)aside->places;

    engine->aside.unseen -= offset < aside->size * sizeof *aside->places;
}

void slu_aside_remove_peer(struct slu_engine *engine, uint32_t peer)
{
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        uint32_t number = engine->peers[peer].rings[queue].first_aside;

        while (number != 0) {
            struct slu_aside_place *place = &engine->aside.places[number - 1];

            place->entry.marks.flags |= SLUICE_PEER_REMOVED;
            number = place->next;
        }
    }
}

void slu_aside_end_scope(struct slu_engine *engine)
{
    struct slu_aside *aside = &engine->aside;

    for (uint32_t i = 0; aside->unseen > 0 && i < aside->used; i++) {
        struct slu_entry *entry = &aside->places[i].entry;

        if (entry->state != SLU_ENTRY_DONE || entry->owner != SLU_OWNER_SCOPE)
            continue;
        entry->state = SLU_ENTRY_SEEN;
        aside->unseen--;
    }
}
