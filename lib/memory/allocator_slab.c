/* SPDX-License-Identifier: MIT */
/*
 * Slabs and spans: which memory of an allocator is idle, and in which block sizes. Guarantee: no
 * span is freed before the allocator, so that threads may read one without a lock.
 */
#include "config.h"

#include <stdlib.h>

#include "memory/allocator.h"

/* Blocks of a span, unless one unit has more. */
#define FEW 8

static struct slu_leaf *make_leaf(struct sluice_allocator *allocator, uintptr_t unit)
{
    _Atomic(struct slu_leaf *) *at = &allocator->tree[unit >> SLU_TREE_BITS];
    struct slu_leaf *leaf = atomic_load_explicit(at, memory_order_relaxed);

    if (leaf == NULL) {
        leaf = calloc(1, sizeof *leaf);
        atomic_store_explicit(at, leaf, memory_order_release);
    }
    return leaf;
}

/* Makes the leaves for all addresses of a slab: 0, or -ENOMEM. */
static int make_leaves(struct sluice_allocator *allocator, const struct slu_slab *slab)
{
    uintptr_t first = slab->base >> SLU_UNIT_BITS;

    if ((first + slab->units) >> (2 * SLU_TREE_BITS) != 0)
        return slu_fail(ENOMEM, "a slab at %#llx: the allocator needs memory below 2^48",
                        (unsigned long long)slab->base);
    for (uintptr_t unit = first; unit < first + slab->units; unit++)
        if (make_leaf(allocator, unit) == NULL)
            return slu_fail(ENOMEM, "no memory for the metadata of a slab");
    return 0;
}

/* Maps the addresses of a span to a span, or to NULL. */
static void enter_span(struct sluice_allocator *allocator, const struct slu_span *span,
                       struct slu_span *entered)
{
    uintptr_t first = slu_span_base(span) >> SLU_UNIT_BITS;

    for (uintptr_t unit = first; unit < first + span->units; unit++)
        atomic_store_explicit(&allocator->tree[unit >> SLU_TREE_BITS]->spans[unit % SLU_TREE_WIDTH],
                              entered, memory_order_release);
}

/* Slabs. */

static struct slu_slab *fail_slab(struct sluice_allocator *allocator, struct slu_slab *slab)
{
    struct slu_text text;
    int err = errno;

    slu_text_save(&text);
    if (slab != NULL && slab->mr != NULL)
        slu_mr_end(slab->mr);
    free(slab);
    allocator->registered -= allocator->attr.slab_bytes;
    slu_text_restore(&text);
    errno = err;
    return NULL;
}

/* Makes a slab; its bytes are reserved already. */
static struct slu_slab *make_slab(struct sluice_allocator *allocator)
{
    size_t bytes = allocator->attr.slab_bytes;
    uint32_t access = allocator->access & SLUICE_ACCESS_LOCAL_WRITE;
    struct slu_slab *slab = calloc(1, sizeof *slab + bytes / SLU_UNIT * sizeof slab->used[0]);
    uintptr_t start;

    if ((allocator->attr.flags & SLUICE_ALLOCATOR_HUGE_PAGES) != 0)
        access |= SLUICE_MR_HUGE_PAGES;
    if (slab == NULL)
        slu_none(slu_fail(ENOMEM, "no memory for a slab"));
    else
        slab->mr = slu_mr_alloc(allocator->pd, bytes, access, allocator->node);
    if (slab == NULL || slab->mr == NULL)
        return fail_slab(allocator, slab);
    slab->mr->allocated = true;
    start = (uintptr_t)sluice_mr_addr(slab->mr);
    slab->base = (start + SLU_UNIT - 1) & ~(uintptr_t)(SLU_UNIT - 1);
    slab->units = slab->free = (uint32_t)((start + bytes - slab->base) / SLU_UNIT);
    if (make_leaves(allocator, slab) < 0) {
        errno = ENOMEM;
        return fail_slab(allocator, slab);
    }
    return slab;
}

static int add_slab(struct sluice_allocator *allocator)
{
    int error = slu_allocator_reserve(allocator, allocator->attr.slab_bytes);
    struct slu_slab *slab;

    if (error < 0)
        return error;
    slab = make_slab(allocator);
    if (slab == NULL)
        return -errno;
    TAILQ_INSERT_HEAD(&allocator->slabs, slab, links);
    allocator->slab_count++;
    allocator->registrations++;
    return 0;
}

/* Returns the first of that many adjacent free units; slab->units if there are none. */
static uint32_t find_run(const struct slu_slab *slab, uint32_t units)
{
    uint32_t run = 0;

    for (uint32_t i = 0; slab->free >= units && i < slab->units; i++) {
        run = slab->used[i] ? 0 : run + 1;
        if (run == units)
            return i + 1 - units;
    }
    return slab->units;
}

static bool take_units(struct sluice_allocator *allocator, struct slu_span *span)
{
    struct slu_slab *slab;

    TAILQ_FOREACH(slab, &allocator->slabs, links)
    {
        uint32_t first = find_run(slab, span->units);

        if (first == slab->units)
            continue;
        for (uint32_t i = 0; i < span->units; i++)
            slab->used[first + i] = true;
        slab->free -= span->units;
        span->slab = slab;
        span->lkey = sluice_mr_lkey(slab->mr);
        atomic_store_explicit(&span->base, slab->base + (uintptr_t)first * SLU_UNIT,
                              memory_order_relaxed);
        return true;
    }
    return false;
}

static void free_slab(struct sluice_allocator *allocator, struct slu_slab *slab)
{
    TAILQ_REMOVE(&allocator->slabs, slab, links);
    allocator->slab_count--;
    allocator->registered -= allocator->attr.slab_bytes;
    slu_mr_end(slab->mr);
    free(slab);
}

/* Spans. */

static uint32_t units_of(uint32_t kind)
{
    size_t units = slu_kind_size(kind) * FEW / SLU_UNIT;
    uint32_t power = 1;

    while (power < units)
        power *= 2;
    return power;
}

/* Returns an unused span, or a new one, without memory. */
static struct slu_span *find_span(struct sluice_allocator *allocator, uint32_t kind)
{
    struct slu_span *span = TAILQ_FIRST(&allocator->unused[kind]);
    uint32_t units = kind < SLU_SIZES ? units_of(kind) : 0;
    uint32_t count = kind < SLU_SIZES ? (uint32_t)(units * SLU_UNIT / slu_kind_size(kind)) : 1;

    if (span != NULL) {
        TAILQ_REMOVE(&allocator->unused[kind], span, links);
        return span;
    }
    span = calloc(1, sizeof *span + 2 * count * sizeof span->states[0]);
    if (span == NULL)
        return slu_fail_null(ENOMEM, "no memory for the metadata of blocks");
    span->given_up = malloc(count * sizeof *span->given_up);
    if (span->given_up == NULL) {
        free(span);
        return slu_fail_null(ENOMEM, "no memory for the metadata of blocks");
    }
    span->allocator = allocator;
    span->stack = (uint16_t *)(void *)(span->states + count);
    span->kind = kind;
    span->units = units;
    span->count = count;
    if (kind < SLU_SIZES) {
        span->size = slu_kind_size(kind);
        span->inverse = ((UINT64_C(1) << SLU_QUOTIENT_BITS) + span->size - 1) / span->size;
    }
    return span;
}

static void drop_span(struct sluice_allocator *allocator, struct slu_span *span)
{
    TAILQ_INSERT_HEAD(&allocator->unused[span->kind], span, links);
}

/* Gives a span memory, of a new slab if no other one has room. */
static int place_span(struct sluice_allocator *allocator, struct slu_span *span)
{
    int error;

    if (take_units(allocator, span))
        return 0;
    error = add_slab(allocator);
    if (error == 0 && !take_units(allocator, span))
        error = slu_fail(ENOMEM, "no memory for %u units in a slab", span->units);
    return error;
}

static int add_span(struct sluice_allocator *allocator, uint32_t kind)
{
    struct slu_span *span = find_span(allocator, kind);
    int error = span != NULL ? place_span(allocator, span) : -ENOMEM;

    if (error < 0) {
        if (span != NULL)
            drop_span(allocator, span);
        return error;
    }
    for (uint32_t i = 0; i < span->count; i++)
        span->stack[i] = (uint16_t)(span->count - 1 - i);
    span->idle = span->count;
    TAILQ_INSERT_HEAD(&allocator->partial[kind], span, links);
    allocator->whole[kind] = span;
    enter_span(allocator, span, span);
    return 0;
}

/* Gives up the memory of a span that has no taken block and is in no list. */
static void free_span(struct sluice_allocator *allocator, struct slu_span *span)
{
    struct slu_slab *slab = span->slab;
    uint32_t first = (uint32_t)((slu_span_base(span) - slab->base) / SLU_UNIT);

    enter_span(allocator, span, NULL);
    for (uint32_t i = 0; i < span->units; i++)
        slab->used[first + i] = false;
    slab->free += span->units;
    drop_span(allocator, span);
}

static uint32_t take_blocks(struct sluice_allocator *allocator, struct slu_span *span,
                            uint16_t state, struct slu_slot *slots, uint32_t count)
{
    uint32_t taken = 0;

    if (allocator->whole[span->kind] == span)
        allocator->whole[span->kind] = NULL;
    for (; taken < count && span->idle > 0; taken++) {
        uint32_t number = span->stack[--span->idle];

        slots[taken] = (struct slu_slot){.block = (void *)slu_span_block(span, number),
                                         .state = &span->states[number]};
        atomic_store_explicit(slots[taken].state, state, memory_order_relaxed);
    }
    if (span->idle == 0)
        TAILQ_REMOVE(&allocator->partial[span->kind], span, links);
    allocator->taken[span->kind] += taken;
    return taken;
}

int slu_span_take(struct sluice_allocator *allocator, uint32_t kind, uint16_t state,
                  struct slu_slot *slots, uint32_t count)
{
    uint32_t taken = 0;
    int error = 0;

    while (taken < count && error == 0) {
        struct slu_span *span = TAILQ_FIRST(&allocator->partial[kind]);

        if (span != NULL)
            taken += take_blocks(allocator, span, state, slots + taken, count - taken);
        else if (taken == 0)
            error = add_span(allocator, kind);
        else
            break;
    }
    return error < 0 ? error : (int)taken;
}

void slu_span_count(struct sluice_allocator *allocator, const struct slu_span *span, bool taken)
{
    uint64_t *blocks =
        span->kind < SLU_SIZES ? &allocator->taken[span->kind] : &allocator->long_blocks;

    *blocks = taken ? *blocks + 1 : *blocks - 1;
    if (span->kind == SLU_SIZES)
        allocator->long_bytes =
            taken ? allocator->long_bytes + span->size : allocator->long_bytes - span->size;
}

int slu_span_take_long(struct sluice_allocator *allocator, size_t size, void **block)
{
    struct slu_span *span = find_span(allocator, SLU_SIZES);
    int error;

    if (span == NULL)
        return -ENOMEM;
    span->units = (uint32_t)((size + SLU_UNIT - 1) / SLU_UNIT);
    span->size = span->units * SLU_UNIT;
    error = place_span(allocator, span);
    if (error < 0) {
        drop_span(allocator, span);
        return error;
    }
    atomic_store_explicit(&span->states[0], SLU_OUT, memory_order_relaxed);
    enter_span(allocator, span, span);
    slu_span_count(allocator, span, true);
    *block = (void *)slu_span_base(span);
    return 0;
}

/*
 * Keeps one span of each kind that has no taken block. Otherwise a program that allocates and
 * frees a single block would make a span each time.
 */
static void keep_whole(struct sluice_allocator *allocator, struct slu_span *span)
{
    struct slu_span *other = allocator->whole[span->kind];

    allocator->whole[span->kind] = span;
    if (other == NULL)
        return;
    TAILQ_REMOVE(&allocator->partial[span->kind], other, links);
    free_span(allocator, other);
}

static void give_to_span(struct sluice_allocator *allocator, struct slu_span *span, uint32_t number)
{
    atomic_store_explicit(&span->states[number], SLU_IDLE, memory_order_relaxed);
    slu_span_count(allocator, span, false);
    if (span->kind == SLU_SIZES) {
        free_span(allocator, span);
        return;
    }
    span->stack[span->idle++] = (uint16_t)number;
    if (span->idle == 1)
        TAILQ_INSERT_HEAD(&allocator->partial[span->kind], span, links);
    if (span->idle == span->count)
        keep_whole(allocator, span);
}

void slu_span_give(struct sluice_allocator *allocator, const void *block)
{
    struct slu_span *span = slu_span_find(allocator, block);

    give_to_span(allocator, span, slu_span_number(span, block));
}

void slu_slabs_trim(struct sluice_allocator *allocator)
{
    struct slu_slab *slab, *next;

    for (uint32_t kind = 0; kind < SLU_SIZES; kind++) {
        struct slu_span *span = allocator->whole[kind];

        if (span == NULL)
            continue;
        TAILQ_REMOVE(&allocator->partial[kind], span, links);
        allocator->whole[kind] = NULL;
        free_span(allocator, span);
    }
    for (slab = TAILQ_FIRST(&allocator->slabs); slab != NULL; slab = next) {
        next = TAILQ_NEXT(slab, links);
        /* The program may use an element with this key that it has made itself. */
        if (slab->free == slab->units && !slu_pd_uses_key(allocator->pd, sluice_mr_lkey(slab->mr)))
            free_slab(allocator, slab);
    }
}

static bool has_room(const struct sluice_allocator *allocator, uint64_t bytes)
{
    uint64_t most = allocator->attr.max_bytes;

    return most == 0 || (bytes <= most && allocator->registered <= most - bytes);
}

int slu_allocator_reserve(struct sluice_allocator *allocator, size_t bytes)
{
    if (!has_room(allocator, bytes))
        slu_slabs_trim(allocator);
    if (!has_room(allocator, bytes))
        return slu_fail(ENOBUFS,
                        "no room for %zu bytes: %llu are registered, and max_bytes is %llu", bytes,
                        (unsigned long long)allocator->registered,
                        (unsigned long long)allocator->attr.max_bytes);
    allocator->registered += bytes;
    return 0;
}

static void free_spans(struct slu_span_list *list)
{
    while (!TAILQ_EMPTY(list)) {
        struct slu_span *span = TAILQ_FIRST(list);

        TAILQ_REMOVE(list, span, links);
        free(span->given_up);
        free(span);
    }
}

void slu_slabs_destroy(struct sluice_allocator *allocator)
{
    for (uint32_t kind = 0; kind <= SLU_SIZES; kind++) {
        free_spans(&allocator->partial[kind]);
        free_spans(&allocator->unused[kind]);
    }
    while (!TAILQ_EMPTY(&allocator->slabs))
        free_slab(allocator, TAILQ_FIRST(&allocator->slabs));
    for (uint32_t i = 0; i < SLU_TREE_WIDTH; i++)
        free(atomic_load_explicit(&allocator->tree[i], memory_order_relaxed));
    free(allocator->tree);
}
