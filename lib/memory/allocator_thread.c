/* SPDX-License-Identifier: MIT */
/*
 * Caches of threads, so that most blocks are allocated and freed without a lock. A thread gives
 * back its blocks when it ends. Guarantee: the blocks of a cache are changed only by its thread,
 * or after the thread has ended.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "memory/allocator.h"

#define KEPT_BYTES (UINT32_C(512) * 1024)
#define LEAST_KEPT 2

/* An allocator that a thread has used; it may have been destroyed since. */
struct known_allocator {
    struct known_allocator *next;
    struct sluice_allocator *allocator; /* valid while an allocator with that id lives */
    uint64_t id;
    struct slu_thread_cache *cache;
};

_Thread_local struct slu_thread_last slu_thread_last SLU_NEAR;
static _Thread_local struct known_allocator *known_allocators;

/* Protects the variables below and the caches of allocators; taken before an allocator's lock. */
static struct slu_fork_lock lock = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct sluice_allocator *living;
static uint32_t generation;
static uint64_t last_id;
static pthread_key_t key;
static bool has_key;

/* Takes the lock. A child of fork(2) forgets the allocators of its parent. */
static void enter(void)
{
    slu_fork_lock(&lock);
    if (generation == slu_fork_generation())
        return;
    generation = slu_fork_generation();
    living = NULL;
}

static void leave(void)
{
    pthread_mutex_unlock(&lock.lock);
}

static bool is_alive(const struct known_allocator *known)
{
    const struct sluice_allocator *at = living;

    while (at != NULL && at->id != known->id)
        at = at->next;
    return at != NULL;
}

/* Bins. */

static void give_slots(struct sluice_allocator *allocator, const struct slu_slot *slots,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        slu_span_give(allocator, slots[i].block);
}

void slu_thread_flush(struct sluice_allocator *allocator, struct slu_thread_cache *cache)
{
    cache->trims = atomic_load_explicit(&allocator->trims, memory_order_relaxed);
    for (uint32_t kind = 0; kind < SLU_SIZES; kind++) {
        struct slu_bin *bin = &cache->bins[kind];

        give_slots(allocator, bin->slots, atomic_load_explicit(&bin->count, memory_order_relaxed));
        atomic_store_explicit(&bin->count, 0, memory_order_relaxed);
    }
}

/* Flushes the cache if sluice_allocator_trim() was called since the last flush. */
static void apply_trims(struct sluice_allocator *allocator, struct slu_thread_cache *cache)
{
    if (cache->trims != atomic_load_explicit(&allocator->trims, memory_order_relaxed))
        slu_thread_flush(allocator, cache);
}

int slu_thread_refill(struct sluice_allocator *allocator, struct slu_thread_cache *cache,
                      uint32_t kind)
{
    struct slu_bin *bin = &cache->bins[kind];
    int count;

    pthread_mutex_lock(&allocator->lock);
    apply_trims(allocator, cache);
    count = slu_span_take(allocator, kind, cache->tag, bin->slots, (bin->most + 1) / 2);
    if (count > 0)
        atomic_store_explicit(&bin->count, (uint32_t)count, memory_order_relaxed);
    pthread_mutex_unlock(&allocator->lock);
    return count < 0 ? count : 0;
}

/* The half that goes is the one that was kept for the longest time. */
void slu_thread_reduce(struct sluice_allocator *allocator, struct slu_thread_cache *cache,
                       uint32_t kind)
{
    struct slu_bin *bin = &cache->bins[kind];
    uint32_t count, going;

    pthread_mutex_lock(&allocator->lock);
    apply_trims(allocator, cache);
    count = atomic_load_explicit(&bin->count, memory_order_relaxed);
    going = (count + 1) / 2;
    give_slots(allocator, bin->slots, going);
    memmove(bin->slots, bin->slots + going, (count - going) * sizeof *bin->slots);
    atomic_store_explicit(&bin->count, count - going, memory_order_relaxed);
    pthread_mutex_unlock(&allocator->lock);
}

/* Caches. */

static uint32_t most_of(const struct sluice_allocator *allocator, uint32_t kind)
{
    uint32_t fit = (uint32_t)(KEPT_BYTES / slu_kind_size(kind));
    uint32_t most = fit > LEAST_KEPT ? fit : LEAST_KEPT;

    return most < allocator->attr.thread_blocks ? most : allocator->attr.thread_blocks;
}

/* Makes a cache. Returns NULL if there is no memory, or no tag left for one more thread. */
static struct slu_thread_cache *make_cache(struct sluice_allocator *allocator)
{
    struct slu_thread_cache *cache;
    uint32_t slots = 0;

    for (uint32_t kind = 0; kind < SLU_SIZES; kind++)
        slots += most_of(allocator, kind);
    if (allocator->cache_count >= UINT16_MAX - SLU_FIRST_TAG)
        return NULL;
    cache = calloc(1, sizeof *cache + slots * sizeof *cache->slots);
    if (cache == NULL)
        return NULL;
    cache->tag = (uint16_t)(SLU_FIRST_TAG + allocator->cache_count++);
    slots = 0;
    for (uint32_t kind = 0; kind < SLU_SIZES; kind++) {
        cache->bins[kind].most = most_of(allocator, kind);
        cache->bins[kind].slots = cache->slots + slots;
        slots += cache->bins[kind].most;
    }
    cache->next = allocator->caches;
    allocator->caches = cache;
    return cache;
}

static struct slu_thread_cache *take_cache(struct sluice_allocator *allocator)
{
    struct slu_thread_cache *cache = allocator->unused_caches;

    if (cache == NULL)
        return make_cache(allocator);
    allocator->unused_caches = cache->next_unused;
    return cache;
}

/* Threads. */

/* Called when a thread ends: flushes its caches, and lets other threads reuse them. */
static void end_thread(void *argument)
{
    struct known_allocator *known = argument;

    slu_thread_last = (struct slu_thread_last){0};
    known_allocators = NULL;
    enter();
    while (known != NULL) {
        struct known_allocator *next = known->next;

        if (is_alive(known)) {
            pthread_mutex_lock(&known->allocator->lock);
            slu_thread_flush(known->allocator, known->cache);
            pthread_mutex_unlock(&known->allocator->lock);
            known->cache->next_unused = known->allocator->unused_caches;
            known->allocator->unused_caches = known->cache;
        }
        free(known);
        known = next;
    }
    leave();
}

/* Forgets destroyed allocators. */
static void forget_destroyed(void)
{
    struct known_allocator **at = &known_allocators;

    while (*at != NULL) {
        struct known_allocator *known = *at;

        if (is_alive(known)) {
            at = &known->next;
            continue;
        }
        *at = known->next;
        free(known);
    }
}

static struct known_allocator *add_known(struct sluice_allocator *allocator)
{
    struct known_allocator *known = calloc(1, sizeof *known);

    enter();
    forget_destroyed();
    if (known != NULL && !has_key)
        has_key = pthread_key_create(&key, end_thread) == 0;
    if (known != NULL && has_key)
        known->cache = take_cache(allocator);
    if (known != NULL && known->cache != NULL) {
        known->allocator = allocator;
        known->id = allocator->id;
        known->next = known_allocators;
        known_allocators = known;
    }
    leave();
    /* If this fails, the blocks stay in the cache until the allocator is destroyed. */
    if (has_key)
        pthread_setspecific(key, known_allocators);
    if (known_allocators == known)
        return known;
    free(known);
    return NULL;
}

struct slu_thread_cache *slu_thread_cache(struct sluice_allocator *allocator)
{
    struct known_allocator *known = known_allocators;

    if (slu_thread_last.id == allocator->id)
        return slu_thread_last.cache;
    if (allocator->attr.thread_blocks == SLUICE_ZERO)
        return NULL;
    while (known != NULL && known->id != allocator->id)
        known = known->next;
    if (known == NULL)
        known = add_known(allocator);
    if (known == NULL)
        return NULL;
    slu_thread_last.cache = known->cache;
    slu_thread_last.id = known->id;
    return known->cache;
}

/* Allocators. */

void slu_threads_join(struct sluice_allocator *allocator)
{
    enter();
    allocator->id = ++last_id;
    allocator->next = living;
    living = allocator;
    leave();
}

void slu_threads_flush(struct sluice_allocator *allocator)
{
    enter();
    pthread_mutex_lock(&allocator->lock);
    for (struct slu_thread_cache *at = allocator->caches; at != NULL; at = at->next)
        slu_thread_flush(allocator, at);
    pthread_mutex_unlock(&allocator->lock);
    leave();
}

void slu_threads_leave(struct sluice_allocator *allocator)
{
    struct sluice_allocator **at = &living;

    enter();
    while (*at != NULL && *at != allocator)
        at = &(*at)->next;
    if (*at != NULL)
        *at = allocator->next;
    leave();
    while (allocator->caches != NULL) {
        struct slu_thread_cache *cache = allocator->caches;

        allocator->caches = cache->next;
        free(cache);
    }
}

uint64_t slu_threads_kept(const struct sluice_allocator *allocator, uint32_t kind)
{
    uint64_t kept = 0;

    enter();
    for (struct slu_thread_cache *at = allocator->caches; at != NULL; at = at->next)
        kept += atomic_load_explicit(&at->bins[kind].count, memory_order_relaxed);
    leave();
    return kept;
}
