/* SPDX-License-Identifier: MIT */
/*
 * Names of scopes. The handle of a scope is a number and not an address. It is looked up
 * and never dereferenced, so that a scope that has ended is recognised even if its channel
 * was freed.
 *
 * A name has, from its highest bits down, a generation, the index of a place, and a 1,
 * which no address of an object has. While the scope is open the place has the same
 * number; afterwards the same without the 1. Each engine owns a place while it exists. The
 * next owner of the place continues its generations. Places are never freed.
 */
#include "config.h"

#include <stdlib.h>

#include "scope/scope.h"

#define PLACE_BITS 20
#define MAX_PLACES (UINT32_C(1) << PLACE_BITS)
#define OPEN ((uintptr_t)1)
#define GENERATION ((uintptr_t)1 << (PLACE_BITS + 1))

/* Level i has FIRST_PLACES << i places; their indexes follow those of the level below. */
#define FIRST_BITS 6
#define FIRST_PLACES (UINT32_C(1) << FIRST_BITS)
_Static_assert(PLACE_BITS - FIRST_BITS + 1 == SLU_PLACE_LEVELS, "the last level has them all");
/* A process uses up to 2^LIFE_BITS generations; a forked child begins after them. */
#define LIFE_BITS 34

/* The name is atomic because any thread may look up an old one; only the engine's sets it. */
struct place {
    _Atomic uintptr_t name; /* of the last scope here */
    struct slu_scope_object *object;
    uint32_t next_free; /* as slu_living.free_place */
};

/*
 * Protects free places, and of slu_living the number of places ever taken, the index + 1 of the
 * first free one (0: none), and the levels (NULL: not allocated). A child of fork(2) starts
 * without places, so it finds no scope of its parent.
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

/* Returns the place; NULL if its level is not allocated. */
static struct place *find_place(uint32_t index)
{
    unsigned level = level_of(index);
    struct place *places = atomic_load_explicit(&slu_living.places[level], memory_order_acquire);

    return places != NULL ? places + (index - (FIRST_PLACES << level) + FIRST_PLACES) : NULL;
}

/* Returns the place of a name, whether its scope is open or not. */
static struct place *place_of(uintptr_t name)
{
    return find_place((uint32_t)(name / (OPEN << 1)) % MAX_PLACES);
}

/* Adds a new place. Returns NULL if there is no memory. The caller has the lock. */
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
            "no memory for the scopes of another channel, or the limit of %u channels is reached",
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

/* Returns the place of a scope's name; NULL if the value cannot be a name. */
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
