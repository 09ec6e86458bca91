/* SPDX-License-Identifier: MIT */
/*
 * The internals of the allocator. A slab is a region that is cut into units of 64 KiB; a span is
 * some units of a slab for blocks of one size. All metadata of a block is in its span, none in the
 * block. A tree of two levels, which is read without a lock, maps an address to its span.
 *
 * A block goes from its span to a thread, to the program, and back, in that order:
 *
 *   IDLE --refill--> tag of a thread --alloc--> OUT --sge--> NAMED
 *    ^                     |  ^                  |             |
 *    +-------flush---------+  +-------free-------+-------------+  (unless requests use it)
 *    +-----------------------------end of a release-------- GIVEN_UP
 *
 * A free takes the block from the program with one compare-and-exchange of its state. If two
 * threads free a block at once, one succeeds and the other finds the block free. The tag says
 * which thread's cache has the block; only that thread changes it.
 */
#ifndef SLU_ALLOCATOR_H
#define SLU_ALLOCATOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include <sluice/allocator.h>

#include "memory/mr.h"
#include "memory/pages.h"

#define SLU_LINE 64
#define SLU_UNIT_BITS 16
#define SLU_UNIT ((size_t)1 << SLU_UNIT_BITS)
/* Block sizes up to a unit: 8 in steps of a line, then 4 for each power of two. A longer block has
   a span of its own. */
#define SLU_SIZES 36
#define SLU_FINE_SIZES 8
#define SLU_LONGEST SLU_UNIT
/* In an address of 48 bits, 32 bits are the number of the unit. */
#define SLU_TREE_BITS 16
#define SLU_TREE_WIDTH (1U << SLU_TREE_BITS)
/* Fraction bits of slu_span.inverse, which divides an offset by the block size. */
#define SLU_QUOTIENT_BITS 40

enum slu_block_state { SLU_IDLE, SLU_OUT, SLU_NAMED, SLU_GIVEN_UP, SLU_FIRST_TAG };

struct slu_slab {
    struct sluice_mr *mr;
    uintptr_t base; /* of the first whole unit */
    uint32_t units;
    uint32_t free; /* of these */
    TAILQ_ENTRY(slu_slab) links;
    bool used[];
};

/* A released block that requests still use. Each block has one, so that a release cannot fail. */
struct slu_given_up {
    struct slu_release release;
    struct slu_span *span;
};

/* A span. Never freed before the allocator, as another thread may still read it; reused by kind. */
struct slu_span {
    _Atomic uintptr_t base;
    size_t size;      /* of a block */
    uint64_t inverse; /* of the size; 0: there is only one block */
    uint32_t lkey;
    uint32_t units;
    uint32_t kind;  /* index of the block size; SLU_SIZES: one long block */
    uint32_t count; /* blocks */
    uint32_t idle;  /* blocks in the stack */
    struct slu_slab *slab;
    struct sluice_allocator *allocator;
    struct slu_given_up *given_up; /* by number; uninitialised until a block is released */
    TAILQ_ENTRY(slu_span) links;   /* in the list partial or unused */
    uint16_t *stack;               /* numbers of idle blocks */
    _Atomic uint16_t states[];     /* slu_block_state, or a tag */
};

TAILQ_HEAD(slu_span_list, slu_span);

/* The second level of the tree. */
struct slu_leaf {
    _Atomic(struct slu_span *) spans[SLU_TREE_WIDTH];
};

/* A free block in the cache of a thread; its state is the tag of that cache. */
struct slu_slot {
    void *block;
    _Atomic uint16_t *state;
};

struct slu_bin {
    _Atomic uint32_t count; /* atomic because other threads read it */
    uint32_t most;
    struct slu_slot *slots;
};

/* Free blocks that a thread keeps. The allocator owns this; another thread may reuse it later. */
struct slu_thread_cache {
    struct slu_thread_cache *next; /* in the list of all caches of the allocator */
    struct slu_thread_cache *next_unused;
    uint32_t trims; /* trims of the allocator when this cache was last flushed */
    uint16_t tag;
    struct slu_bin bins[SLU_SIZES];
    struct slu_slot slots[];
};

/* A block in a region of its own. */
struct slu_alone {
    struct sluice_allocator *allocator;
    struct sluice_mr *mr;
    uintptr_t start;
    size_t length;
    bool shared;
    struct slu_release release;
};

struct sluice_allocator {
    uint32_t magic;
    uint32_t access;
    uint64_t id; /* unique in the process */
    struct sluice_pd *pd;
    _Atomic(struct slu_leaf *) *tree;
    struct sluice_allocator_attr attr;
    int32_t node;
    pthread_mutex_t lock; /* protects the fields below */
    TAILQ_HEAD(slu_slab_list, slu_slab) slabs;
    struct slu_span_list partial[SLU_SIZES + 1]; /* spans with idle blocks */
    struct slu_span_list unused[SLU_SIZES + 1];  /* spans without memory */
    struct slu_span *whole[SLU_SIZES];           /* the span without a taken block, or NULL */
    uint64_t taken[SLU_SIZES];                   /* blocks neither idle nor given up */
    uint64_t long_blocks, long_bytes;            /* the same for spans with one long block */
    struct slu_alone **alone;                    /* sorted by address */
    uint32_t alone_count, alone_room;
    uint64_t alone_bytes;
    uint32_t slab_count;
    uint32_t given_up;
    atomic_uint trims;
    uint64_t registered, registrations;
    struct slu_thread_cache *caches; /* this and the rest: under the lock of allocator_thread.c */
    struct slu_thread_cache *unused_caches;
    uint32_t cache_count;
    struct sluice_allocator *next; /* in the list of all allocators */
};

static inline bool slu_is_allocator(const struct sluice_allocator *allocator)
{
    return SLU_LIKELY(allocator != NULL && allocator->magic == SLU_MAGIC_ALLOCATOR);
}
/* 0, or -EINVAL with a text. */
int slu_allocator_check(const struct sluice_allocator *allocator);

/* Returns the smallest kind that fits size, which must be in 1..SLU_LONGEST. */
static inline uint32_t slu_size_kind(size_t size)
{
    uint32_t last = (uint32_t)size - 1;
    uint32_t bit;

    if (last < SLU_FINE_SIZES * SLU_LINE)
        return last / SLU_LINE;
    bit = 31 - (uint32_t)__builtin_clz(last);
    return SLU_FINE_SIZES + (bit - 9) * 4 + (last >> (bit - 2)) - 4;
}

/* Returns the block size of a kind, in bytes. */
static inline size_t slu_kind_size(uint32_t kind)
{
    uint32_t coarse = kind - SLU_FINE_SIZES;

    return kind < SLU_FINE_SIZES ? (size_t)(kind + 1) * SLU_LINE
                                 : (size_t)(5 + coarse % 4) << (7 + coarse / 4);
}

/* Returns the span of any address; NULL if it is in none. */
static inline struct slu_span *slu_span_find(const struct sluice_allocator *allocator,
                                             const void *address)
{
    uintptr_t unit = (uintptr_t)address >> SLU_UNIT_BITS;
    struct slu_leaf *leaf;

    if (SLU_UNLIKELY(unit >> (2 * SLU_TREE_BITS) != 0))
        return NULL;
    leaf = atomic_load_explicit(&allocator->tree[unit >> SLU_TREE_BITS], memory_order_acquire);
    return SLU_LIKELY(leaf != NULL)
               ? atomic_load_explicit(&leaf->spans[unit % SLU_TREE_WIDTH], memory_order_acquire)
               : NULL;
}

/* Returns the base, which changes when a span is reused. */
static inline uintptr_t slu_span_base(const struct slu_span *span)
{
    return atomic_load_explicit(&span->base, memory_order_relaxed);
}

/* Returns the number of the block at an address; count or more if it is behind the last block. */
static inline uint32_t slu_span_number(const struct slu_span *span, const void *address)
{
    return (uint32_t)(((uintptr_t)address - slu_span_base(span)) * span->inverse >>
                      SLU_QUOTIENT_BITS);
}

static inline uintptr_t slu_span_block(const struct slu_span *span, uint32_t number)
{
    return slu_span_base(span) + (uintptr_t)number * span->size;
}

/*
 * Takes a block in the state from out of the program's hands. Returns false if another thread
 * was first, or if the span was reused since it was looked up, so that number is another block.
 * Once the block is claimed its span cannot be reused.
 */
static inline bool slu_block_claim(struct slu_span *span, uint32_t number, const void *block,
                                   uint16_t from, uint16_t to)
{
    uint16_t state = from;

    if (SLU_UNLIKELY(!atomic_compare_exchange_strong_explicit(
            &span->states[number], &state, to, memory_order_relaxed, memory_order_relaxed)))
        return false;
    if (SLU_LIKELY(slu_span_block(span, number) == (uintptr_t)block))
        return true;
    atomic_store_explicit(&span->states[number], from, memory_order_relaxed);
    return false;
}

/* allocator_slab.c; all but the last under the lock of the allocator. */
/* Takes up to count idle blocks and sets their state. Returns how many, or an error if none. */
int slu_span_take(struct sluice_allocator *allocator, uint32_t kind, uint16_t state,
                  struct slu_slot *slots, uint32_t count);
/* Takes a block of whole units. */
int slu_span_take_long(struct sluice_allocator *allocator, size_t size, void **block);
/* Counts a block of the span as taken, or as no longer taken. */
void slu_span_count(struct sluice_allocator *allocator, const struct slu_span *span, bool taken);
/* Returns a block to its span; the caller has claimed it or has it in its cache. */
void slu_span_give(struct sluice_allocator *allocator, const void *block);
/* Deregisters slabs without used units. */
void slu_slabs_trim(struct sluice_allocator *allocator);
/* Counts bytes as registered; -ENOBUFS if they exceed max_bytes. */
int slu_allocator_reserve(struct sluice_allocator *allocator, size_t bytes);
void slu_slabs_destroy(struct sluice_allocator *allocator);

/* allocator_alone.c. */
void *slu_alone_alloc(struct sluice_allocator *allocator, size_t size, size_t align,
                      struct sluice_remote_mr *remote);
/* Returns the block that contains an address, or NULL. The caller has the lock. */
struct slu_alone *slu_alone_find(const struct sluice_allocator *allocator, const void *address);
int slu_alone_free(struct sluice_allocator *allocator, void *block);
int slu_alone_release(struct sluice_allocator *allocator, void *block,
                      void (*released)(void *argument), void *argument);
int slu_not_a_block(const void *block);

/* allocator_thread.c. */
/* The allocator that the thread used last, and the thread's cache of it. */
struct slu_thread_last {
    uint64_t id;
    struct slu_thread_cache *cache;
};
/* Makes access free of calls. glibc has static TLS left for libraries that are loaded late. */
#define SLU_NEAR __attribute__((tls_model("initial-exec")))
extern _Thread_local struct slu_thread_last slu_thread_last SLU_NEAR;

/* Returns the cache of the calling thread; NULL: it has none and works without. */
struct slu_thread_cache *slu_thread_cache(struct sluice_allocator *allocator);
/* Fills half of an empty bin: 0, or an error. */
int slu_thread_refill(struct sluice_allocator *allocator, struct slu_thread_cache *cache,
                      uint32_t kind);
/* Gives back half of a bin. */
void slu_thread_reduce(struct sluice_allocator *allocator, struct slu_thread_cache *cache,
                       uint32_t kind);
/* Gives back all blocks of a cache. The caller has the lock of the allocator. */
void slu_thread_flush(struct sluice_allocator *allocator, struct slu_thread_cache *cache);
/* Adds an allocator to those that threads may cache. */
void slu_threads_join(struct sluice_allocator *allocator);
/* Gives back the blocks of all caches; no thread may use the allocator meanwhile. */
void slu_threads_flush(struct sluice_allocator *allocator);
void slu_threads_leave(struct sluice_allocator *allocator);
/* Returns the number of blocks of a kind that threads keep. */
uint64_t slu_threads_kept(const struct sluice_allocator *allocator, uint32_t kind);

/* Claims a block in that state for the cache. Returns false if the bin is full or this fails. */
static inline bool slu_thread_keep(struct slu_thread_cache *cache, struct slu_span *span,
                                   uint32_t number, void *block, uint16_t state)
{
    struct slu_bin *bin = &cache->bins[span->kind];
    uint32_t count = atomic_load_explicit(&bin->count, memory_order_relaxed);

    if (SLU_UNLIKELY(count >= bin->most ||
                     !slu_block_claim(span, number, block, state, cache->tag)))
        return false;
    bin->slots[count].block = block;
    bin->slots[count].state = &span->states[number];
    atomic_store_explicit(&bin->count, count + 1, memory_order_relaxed);
    return true;
}

/* Takes a block from the cache of the calling thread; NULL if it has none of that kind. */
static inline void *slu_thread_take(struct slu_thread_cache *cache, uint32_t kind)
{
    struct slu_bin *bin = &cache->bins[kind];
    uint32_t count = atomic_load_explicit(&bin->count, memory_order_relaxed);
    const struct slu_slot *slot;

    if (SLU_UNLIKELY(count == 0))
        return NULL;
    slot = &bin->slots[--count];
    atomic_store_explicit(&bin->count, count, memory_order_relaxed);
    atomic_store_explicit(slot->state, SLU_OUT, memory_order_relaxed);
    return slot->block;
}

#endif
