/* SPDX-License-Identifier: MIT */
/*
 * Names of scopes. What a program holds of a scope is a number and no address:
 * it is looked up and never followed, so that one of a scope that has ended is
 * told from all others, whatever has become of its channel.
 *
 * A name has, from its highest bits down, a generation, the index of a place,
 * and a 1, which no address of an object has. The place has the same number
 * while the scope is open, and after its end all of it but the 1. Each engine
 * has a place as long as it is there, and the next one that gets it goes on
 * with the generations. Places are never freed.
 */
#include "config.h"

#include <stdlib.h>

#include "scope/scope.h"

#define PLACE_BITS 20
#define MAX_PLACES (UINT32_C(1) << PLACE_BITS)
#define OPEN ((uintptr_t)1)
#define GENERATION ((uintptr_t)1 << (PLACE_BITS + 1))

/* Level i has FIRST_PLACES << i of them, which come after those of the levels below. */
#define FIRST_BITS 6
#define FIRST_PLACES (UINT32_C(1) << FIRST_BITS)
_Static_assert(PLACE_BITS - FIRST_BITS + 1 == SLU_PLACE_LEVELS, "the last level has them all");
/* A process has so many generations, and one that it forks begins behind them. */
#define LIFE_BITS 34

/* The name is atomic for threads that ask for an old one; only the engine's changes it. */
struct place {
    _Atomic uintptr_t name; /* of the last scope here */
    struct slu_scope_object *object;
    uint32_t next_free; /* as slu_living.free_place */
};

/*
 * Of places that are of no engine, and of slu_living: places that were ever taken,
 * the index + 1 of one that is free, or 0, and each level, NULL if it is not there. In a child of
 * fork(2) there are none, and no scope of its parent is found.
 */
static struct slu_fork_lock lock = {.lock = PTHREAD_MUTEX_INITIALIZER, .waits = true};

static uintptr_t first_generation(void)
{
    return ((uintptr_t)slu_fork_generation() << LIFE_BITS) % (UINTPTR_MAX / GENERATION + 1);
}

static unsigned level_of(uint32_t index)
{
    return 31 - (unsigned)__builtin_clz(index / FIRST_PLACES + 1);
}

/* NULL if there are not so many. */
static struct place *find_place(uint32_t index)
{
    unsigned level = level_of(index);
    struct place *places = atomic_load_explicit(&slu_living.places[level], memory_order_acquire);

    return places != NULL ? places + (index - (FIRST_PLACES << level) + FIRST_PLACES) : NULL;
}

/* That of a scope with this name, open or not. */
static struct place *place_of(uintptr_t name)
{
    return find_place((uint32_t)(name / (OPEN << 1)) % MAX_PLACES);
}

/* One that nobody ever had; NULL if there is no memory for it. The lock is held. */
static struct place *add_place(void)
{
    uint32_t index = slu_living.place_count;
    struct place *place = find_place(index);

    if (place == NULL) {
        unsigned level = level_of(index);

        place = calloc(FIRST_PLACES << level, sizeof *place);
        if (place == NULL)
            return NULL;
        atomic_store_explicit(&slu_living.places[level], place, memory_order_release);
    }
    atomic_store_explicit(&place->name,
                          first_generation() * GENERATION + (uintptr_t)index * (OPEN << 1),
                          memory_order_relaxed);
    slu_living.place_count++;
    return place;
}

int slu_name_reserve(struct slu_scope_object *object)
{
    struct place *place = NULL;

    slu_fork_lock(&lock);
    if (slu_living.free_place != 0) {
        place = find_place(slu_living.free_place - 1);
        slu_living.free_place = place->next_free;
    } else if (slu_living.place_count < MAX_PLACES) {
        place = add_place();
    }
    if (place != NULL)
        place->object = object;
    pthread_mutex_unlock(&lock.lock);
    if (place == NULL)
        return slu_fail(
            ENOMEM,
            "no memory for the scopes of one more channel, or %u channels have scopes already",
            MAX_PLACES);
    object->name = atomic_load_explicit(&place->name, memory_order_relaxed);
    return 0;
}

void slu_name_release(const struct slu_scope_object *object)
{
    struct place *place = place_of(object->name);

    slu_fork_lock(&lock);
    place->object = NULL;
    place->next_free = slu_living.free_place;
    slu_living.free_place = (uint32_t)(object->name / (OPEN << 1)) % MAX_PLACES + 1;
    pthread_mutex_unlock(&lock.lock);
}

struct sluice_scope *slu_name_open(struct slu_scope_object *object)
{
    object->name = (object->name + GENERATION) | OPEN;
    atomic_store_explicit(&place_of(object->name)->name, object->name, memory_order_relaxed);
    return (struct sluice_scope *)object->name;
}

void slu_name_close(struct slu_scope_object *object)
{
    object->name &= ~OPEN;
    atomic_store_explicit(&place_of(object->name)->name, object->name, memory_order_relaxed);
}

/* NULL for what no scope ever had as its name. */
static const struct place *place_named(const struct sluice_scope *scope)
{
    uintptr_t name = (uintptr_t)scope;

    return SLU_LIKELY((name & OPEN) != 0) ? place_of(name) : NULL;
}

struct slu_scope_object *slu_name_find(const struct sluice_scope *scope)
{
    const struct place *place = place_named(scope);

    if (SLU_UNLIKELY(place == NULL ||
                     atomic_load_explicit(&place->name, memory_order_relaxed) != (uintptr_t)scope))
        return NULL;
    return place->object;
}

int slu_name_unknown(const struct sluice_scope *scope)
{
    const struct place *place = place_named(scope);
    uintptr_t generation = (uintptr_t)scope / GENERATION;

    if (place != NULL && generation > first_generation() &&
        generation <= atomic_load_explicit(&place->name, memory_order_relaxed) / GENERATION)
        return slu_misuse(ESTALE, "this scope has ended before");
    return slu_misuse(EINVAL, "not a scope%s", slu_none_hint(scope));
}
