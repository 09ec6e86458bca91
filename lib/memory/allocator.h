/* SPDX-License-Identifier: MIT */
/*
 * The allocator inside. A slab is a region that is cut into units of 64 KiB; a span is some
 * units of a slab for blocks of one size. What is known of a block is in its span, and nothing of
 * it in the block. An address finds its span in a tree of two levels that is read without a lock.
 *
 * A block goes from its span to a thread, to the program, and back, in that order:
 *
 *   IDLE --refill--> tag of a thread --alloc--> OUT --sge--> NAMED
 *    ^                     |  ^                  |             |
 *    +-------flush---------+  +-------free-------+-------------+  (unless posted work names it)
 *    +-----------------------------end of a release-------- GIVEN_UP
 *
 * Whoever takes it from the program does so by one exchange of its state: if two threads free it
 * at once, one of them has it, and the other finds that it is free. The tag says which thread
 * keeps it, and nobody else changes that.
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
/* Up to a unit in steps of a line and then of a fourth; longer ones are alone in their span. */
#define SLU_SIZES 36
#define SLU_FINE_SIZES 8
#define SLU_LONGEST SLU_UNIT
/* An address of 48 bits has 32 for the unit. */
#define SLU_TREE_BITS 16
#define SLU_TREE_WIDTH (1U << SLU_TREE_BITS)
/* From where on the quotient of an offset in a span is taken. */
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

/* What a block that is given up is written to: there is one for each, or giving up could fail. */
struct slu_given_up {
    struct slu_release release;
    struct slu_span *span;
};

/* One that is not used any more is kept for the next of its kind: somebody may look at it. */
struct slu_span {
    _Atomic uintptr_t base;
    size_t size;      /* of a block */
    uint64_t inverse; /* of the size; 0: there is only one block */
    uint32_t lkey;
    uint32_t units;
    uint32_t kind;  /* of its size; SLU_SIZES: alone */
    uint32_t count; /* blocks */
    uint32_t idle;  /* of these, in the stack */
    struct slu_slab *slab;
    struct sluice_allocator *allocator;
    struct slu_given_up *given_up; /* by number; not touched before */
    TAILQ_ENTRY(slu_span) links;   /* of those that have idle blocks, or are not used */
    uint16_t *stack;               /* numbers of idle blocks */
    _Atomic uint16_t states[];     /* slu_block_state, or a tag */
};

TAILQ_HEAD(slu_span_list, slu_span);

/* Where an address finds its span. */
struct slu_leaf {
    _Atomic(struct slu_span *) spans[SLU_TREE_WIDTH];
};

/* A free block that a thread keeps, whose tag its state is. */
struct slu_slot {
    void *block;
    _Atomic uint16_t *state;
};

struct slu_bin {
    _Atomic uint32_t count; /* others read it */
    uint32_t most;
    struct slu_slot *slots;
};

/* What a thread keeps of an allocator, whose they are: it stays for another thread. */
struct slu_thread_cache {
    struct slu_thread_cache *next; /* of all of the allocator */
    struct slu_thread_cache *next_unused;
    uint32_t trims; /* of the allocator, when this gave back what it had */
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
    uint64_t id; /* no other one of the process has it */
    struct sluice_pd *pd;
    _Atomic(struct slu_leaf *) *tree;
    struct sluice_allocator_attr attr;
    int32_t node;
    pthread_mutex_t lock; /* of what follows */
    TAILQ_HEAD(slu_slab_list, slu_slab) slabs;
    struct slu_span_list partial[SLU_SIZES + 1]; /* that have idle blocks */
    struct slu_span_list unused[SLU_SIZES + 1];
    struct slu_span *whole[SLU_SIZES]; /* one of which no block is taken, or NULL */
    uint64_t taken[SLU_SIZES];         /* blocks that are not idle, nor given up */
    uint64_t long_blocks, long_bytes;  /* the same of those alone in a span */
    struct slu_alone **alone;          /* by address */
    uint32_t alone_count, alone_room;
    uint64_t alone_bytes;
    uint32_t slab_count;
    uint32_t given_up;
    atomic_uint trims;
    uint64_t registered, registrations;
    struct slu_thread_cache *caches; /* under the lock of allocator_thread.c, as are the next */
    struct slu_thread_cache *unused_caches;
    uint32_t cache_count;
    struct sluice_allocator *next; /* of all */
};

static inline bool slu_is_allocator(const struct sluice_allocator *allocator)
{
    return SLU_LIKELY(allocator != NULL && allocator->magic == SLU_MAGIC_ALLOCATOR);
}
/* 0, or -EINVAL with a text. */
int slu_allocator_check(const struct sluice_allocator *allocator);

/* Of a number of bytes that is at most SLU_LONGEST, and not 0. */
static inline uint32_t slu_size_kind(size_t size)
{
    uint32_t last = (uint32_t)size - 1;
    uint32_t bit;

    if (last < SLU_FINE_SIZES * SLU_LINE)
        return last / SLU_LINE;
    bit = 31 - (uint32_t)__builtin_clz(last);
    return SLU_FINE_SIZES + (bit - 9) * 4 + (last >> (bit - 2)) - 4;
}

/* The bytes of a kind. */
static inline size_t slu_kind_size(uint32_t kind)
{
    uint32_t coarse = kind - SLU_FINE_SIZES;

    return kind < SLU_FINE_SIZES ? (size_t)(kind + 1) * SLU_LINE
                                 : (size_t)(5 + coarse % 4) << (7 + coarse / 4);
}

/* Whatever the address is; NULL: it is of no span. */
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

/* It is elsewhere once it is used again. */
static inline uintptr_t slu_span_base(const struct slu_span *span)
{
    return atomic_load_explicit(&span->base, memory_order_relaxed);
}

/* The number of the block of a span that has this byte of it, or of what is behind the last. */
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
 * Takes the block with that number from the program, which has it in the state from: false if
 * somebody else was first. From then on its span stays where it is; that it was elsewhere when
 * it was found, and this is another block, is found here.
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
/* Some idle blocks of a kind, at most count, which get that state: how many, or why none. */
int slu_span_take(struct sluice_allocator *allocator, uint32_t kind, uint16_t state,
                  struct slu_slot *slots, uint32_t count);
/* One of whole units. */
int slu_span_take_long(struct sluice_allocator *allocator, size_t size, void **block);
/* A block of it is taken, or not any more, as far as blocks are counted. */
void slu_span_count(struct sluice_allocator *allocator, const struct slu_span *span, bool taken);
/* A block that the caller has taken from the program, or keeps, is idle. */
void slu_span_give(struct sluice_allocator *allocator, const void *block);
/* Deregisters slabs that are not used. */
void slu_slabs_trim(struct sluice_allocator *allocator);
/* Room for a region of so many bytes, which are counted; or -ENOBUFS. */
int slu_allocator_reserve(struct sluice_allocator *allocator, size_t bytes);
void slu_slabs_destroy(struct sluice_allocator *allocator);

/* allocator_alone.c. */
void *slu_alone_alloc(struct sluice_allocator *allocator, size_t size, size_t align,
                      struct sluice_remote_mr *remote);
/* Under the lock: the one that has this byte, or NULL. */
struct slu_alone *slu_alone_find(const struct sluice_allocator *allocator, const void *address);
int slu_alone_free(struct sluice_allocator *allocator, void *block);
int slu_alone_release(struct sluice_allocator *allocator, void *block,
                      void (*released)(void *argument), void *argument);
int slu_not_a_block(const void *block);

/* allocator_thread.c. */
/* The last allocator that the thread used, and what it keeps of it. */
struct slu_thread_last {
    uint64_t id;
    struct slu_thread_cache *cache;
};
/* Without a call, where a library that is loaded late may have such variables. */
#ifdef __GLIBC__
#define SLU_NEAR __attribute__((tls_model("initial-exec")))
#else
#define SLU_NEAR
#endif
extern _Thread_local struct slu_thread_last slu_thread_last SLU_NEAR;

/* What this thread keeps of it; NULL: nothing. */
struct slu_thread_cache *slu_thread_cache(struct sluice_allocator *allocator);
/* More blocks of a kind: 0, or why there are none. */
int slu_thread_refill(struct sluice_allocator *allocator, struct slu_thread_cache *cache,
                      uint32_t kind);
/* Less of it. */
void slu_thread_reduce(struct sluice_allocator *allocator, struct slu_thread_cache *cache,
                       uint32_t kind);
/* Gives back all of it; under the lock of the allocator. */
void slu_thread_flush(struct sluice_allocator *allocator, struct slu_thread_cache *cache);
/* It begins, and ends, for all threads. */
void slu_threads_join(struct sluice_allocator *allocator);
/* Gives back what all threads keep; none of them uses it now. */
void slu_threads_flush(struct sluice_allocator *allocator);
void slu_threads_leave(struct sluice_allocator *allocator);
/* Bytes of a kind that threads keep, in blocks. */
uint64_t slu_threads_kept(const struct sluice_allocator *allocator, uint32_t kind);

/* Takes a block in that state from the program, if there is room for it and nobody was first. */
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

/* One of it that is this thread's; NULL: it has none. */
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
