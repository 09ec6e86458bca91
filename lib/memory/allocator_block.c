/* SPDX-License-Identifier: MIT */
/*
 * The calls for blocks. On the fast path, alloc and free use the cache of the calling thread,
 * without a lock. Guarantees: a block that requests in flight use is not freed, and freeing an
 * address that is not a block changes nothing.
 */
#include "config.h"

#include <string.h>

#include "memory/allocator.h"

#define KNOWN_REMOTE \
    (SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_ATOMIC)

/* Allocating. */

static int check_wish(const struct sluice_allocator *allocator, size_t size, size_t align)
{
    int error = slu_allocator_check(allocator);

    if (error < 0)
        return error;
    if (size == 0)
        return slu_misuse(EINVAL, "a block has at least 1 byte");
    if ((align & (align - 1)) != 0 || align > SLUICE_ALLOCATOR_MAX_ALIGN)
        return slu_misuse(EINVAL, "align is %zu, not a power of 2 up to %u", align,
                          SLUICE_ALLOCATOR_MAX_ALIGN);
    return 0;
}

/* Returns the smallest kind of that size whose blocks are aligned; a power of two always is. */
static uint32_t aligned_kind(size_t size, size_t align)
{
    uint32_t kind = slu_size_kind(size > align ? size : align);

    while ((slu_kind_size(kind) & (align - 1)) != 0)
        kind++;
    return kind;
}

static int take_one(struct sluice_allocator *allocator, uint32_t kind, void **block)
{
    struct slu_slot slot;
    int count;

    pthread_mutex_lock(&allocator->lock);
    count = slu_span_take(allocator, kind, SLU_OUT, &slot, 1);
    pthread_mutex_unlock(&allocator->lock);
    if (count < 0)
        return count;
    *block = slot.block;
    return 0;
}

static void *alloc_kind(struct sluice_allocator *allocator, uint32_t kind)
{
    struct slu_thread_cache *cache = slu_thread_cache(allocator);
    void *block = cache != NULL ? slu_thread_take(cache, kind) : NULL;
    int error = 0;

    if (block != NULL)
        return block;
    if (cache == NULL) {
        error = take_one(allocator, kind, &block);
    } else {
        error = slu_thread_refill(allocator, cache, kind);
        block = error == 0 ? slu_thread_take(cache, kind) : NULL;
    }
    return error < 0 ? slu_none(error) : block;
}

static void *alloc_long(struct sluice_allocator *allocator, size_t size, size_t align)
{
    void *block = NULL;
    int error;

    if (size > allocator->attr.slab_bytes / 2)
        return slu_alone_alloc(allocator, size, align, NULL);
    pthread_mutex_lock(&allocator->lock);
    error = slu_span_take_long(allocator, size, &block);
    pthread_mutex_unlock(&allocator->lock);
    return error < 0 ? slu_none(error) : block;
}

static SLU_COLD void *alloc_slowly(struct sluice_allocator *allocator, size_t size, size_t align)
{
    int error = check_wish(allocator, size, align);

    if (error < 0)
        return slu_none(error);
    if (align < SLU_LINE)
        align = SLU_LINE;
    return size <= SLU_LONGEST ? alloc_kind(allocator, aligned_kind(size, align))
                               : alloc_long(allocator, size, align);
}

void *sluice_allocator_alloc(struct sluice_allocator *allocator, size_t size, size_t align)
{
    void *block;

    if (SLU_UNLIKELY(!slu_is_allocator(allocator) || slu_thread_last.id != allocator->id ||
                     size - 1 >= SLU_LONGEST || align > SLU_LINE || (align & (align - 1)) != 0))
        return alloc_slowly(allocator, size, align);
    block = slu_thread_take(slu_thread_last.cache, slu_size_kind(size));
    return SLU_LIKELY(block != NULL) ? block : alloc_slowly(allocator, size, align);
}

void *sluice_allocator_alloc_zeroed(struct sluice_allocator *allocator, size_t size, size_t align)
{
    void *block = sluice_allocator_alloc(allocator, size, align);

    /* A block with a region of its own has fresh pages, which the kernel has zeroed. */
    if (block != NULL && size <= allocator->attr.slab_bytes / 2)
        memset(block, 0, size);
    return block;
}

void *sluice_allocator_alloc_shared(struct sluice_allocator *allocator, size_t size,
                                    struct sluice_remote_mr *remote)
{
    int error = check_wish(allocator, size, 0);

    if (error == 0 && remote == NULL)
        error = slu_misuse(EINVAL, "remote must not be NULL");
    if (error == 0 && (allocator->access & KNOWN_REMOTE) == 0)
        error = slu_misuse(EINVAL, "the allocator has no remote rights: peers cannot reach a block "
                                   "of it");
    return error < 0 ? slu_none(error) : slu_alone_alloc(allocator, size, SLU_LINE, remote);
}

/* Freeing. */

/* An allocated block that was looked up by an address in it. */
struct found {
    struct slu_span *span; /* NULL: it has a region of its own, or is not a block */
    uint32_t number;
    uint16_t state; /* SLU_OUT or SLU_NAMED, when it was found */
    void *block;
};

static int fail_state(const void *block, uint16_t state)
{
    if (state == SLU_GIVEN_UP)
        return slu_misuse(EINVAL, "the block at %p was released", block);
    return slu_misuse(EINVAL, "the block at %p is free: was it freed twice?", block);
}

/* Looks up a block in a span. Returns 0 with span NULL if it may have a region of its own. */
static int find_block(const struct sluice_allocator *allocator, const void *address,
                      struct found *found)
{
    found->span = slu_span_find(allocator, address);
    if (found->span == NULL)
        return 0;
    found->number = slu_span_number(found->span, address);
    if (found->number >= found->span->count)
        return slu_not_a_block(address);
    found->block = (void *)slu_span_block(found->span, found->number);
    found->state = atomic_load_explicit(&found->span->states[found->number], memory_order_relaxed);
    return found->state == SLU_OUT || found->state == SLU_NAMED ? 0
                                                                : fail_state(address, found->state);
}

/* Looks up a block as find_block() does; fails unless the address is its beginning. */
static int find_beginning(const struct sluice_allocator *allocator, const void *block,
                          struct found *found)
{
    int error = find_block(allocator, block, found);

    if (error == 0 && found->span != NULL && found->block != block)
        error = slu_misuse(EINVAL, "%p is within a block, not its beginning", block);
    return error;
}

static struct slu_memory memory_of(const struct found *found)
{
    return (struct slu_memory){.lkey = found->span->lkey,
                               .start = (uint32_t)(uintptr_t)found->block,
                               .length = found->span->size};
}

/* Returns whether requests use a block. That needs an element, which sets the state to NAMED. */
static bool is_used(const struct sluice_allocator *allocator, const struct found *found)
{
    const struct slu_memory memory = memory_of(found);

    return found->state == SLU_NAMED && slu_pd_uses(allocator->pd, &memory);
}

/* Claims a block. Returns false if another thread has claimed it, or made an element, meanwhile. */
static bool claim(const struct found *found, uint16_t state)
{
    return slu_block_claim(found->span, found->number, found->block, found->state, state);
}

static bool give_back(struct sluice_allocator *allocator, const struct found *found)
{
    if (!claim(found, SLU_IDLE))
        return false;
    pthread_mutex_lock(&allocator->lock);
    slu_span_give(allocator, found->block);
    pthread_mutex_unlock(&allocator->lock);
    return true;
}

/* Frees a block. Returns false if its state has changed, so that it must be looked up again. */
static bool keep_or_give_back(struct sluice_allocator *allocator, const struct found *found)
{
    struct slu_thread_cache *cache = slu_thread_cache(allocator);
    struct slu_span *span = found->span;

    if (cache == NULL || span->kind == SLU_SIZES)
        return give_back(allocator, found);
    if (slu_thread_keep(cache, span, found->number, found->block, found->state))
        return true;
    slu_thread_reduce(allocator, cache, span->kind);
    return slu_thread_keep(cache, span, found->number, found->block, found->state);
}

static SLU_COLD int free_slowly(struct sluice_allocator *allocator, void *block)
{
    int error = slu_allocator_check(allocator);
    struct found found;

    if (error < 0 || block == NULL)
        return error;
    do {
        error = find_beginning(allocator, block, &found);
        if (error < 0)
            return error;
        if (found.span == NULL)
            return slu_alone_free(allocator, block);
        if (is_used(allocator, &found)) {
            const struct slu_memory memory = memory_of(&found);

            return slu_pd_fail_used(allocator->pd, &memory, "the block", (uintptr_t)block, false);
        }
    } while (!keep_or_give_back(allocator, &found));
    return 0;
}

int sluice_allocator_free(struct sluice_allocator *allocator, void *block)
{
    struct slu_span *span;
    uint32_t number;

    if (SLU_UNLIKELY(!slu_is_allocator(allocator) || slu_thread_last.id != allocator->id))
        return free_slowly(allocator, block);
    span = slu_span_find(allocator, block);
    if (SLU_UNLIKELY(span == NULL || span->kind == SLU_SIZES))
        return free_slowly(allocator, block);
    number = slu_span_number(span, block);
    if (SLU_UNLIKELY(number >= span->count || slu_span_block(span, number) != (uintptr_t)block ||
                     !slu_thread_keep(slu_thread_last.cache, span, number, block, SLU_OUT)))
        return free_slowly(allocator, block);
    return 0;
}

struct freeing {
    struct sluice_allocator *allocator;
    void *block;
};

static int try_to_free(void *argument)
{
    const struct freeing *freeing = argument;

    return sluice_allocator_free(freeing->allocator, freeing->block);
}

int sluice_allocator_free_wait(struct sluice_allocator *allocator, void *block, int64_t timeout)
{
    struct freeing freeing = {.allocator = allocator, .block = block};
    int error = slu_release_wait(try_to_free, &freeing, timeout);

    return error == -ETIMEDOUT
               ? slu_fail(ETIMEDOUT, "the block at %p is still used by posted work", block)
               : error;
}

/* Copies the release first: once the block is idle, another thread may release it again. */
static void end_given_up(struct slu_release *release)
{
    const struct slu_given_up *given_up = slu_container_of(release, struct slu_given_up, release);
    struct slu_span *span = given_up->span;
    struct sluice_allocator *allocator = span->allocator;
    uint32_t number = (uint32_t)(given_up - span->given_up);
    const struct slu_release ended = *release;

    pthread_mutex_lock(&allocator->lock);
    allocator->given_up--;
    slu_span_count(allocator, span, true);
    slu_span_give(allocator, (const void *)slu_span_block(span, number));
    pthread_mutex_unlock(&allocator->lock);
    slu_release_tell(ended.released, ended.argument);
}

/* Releases a claimed block. */
static int give_up(struct sluice_allocator *allocator, const struct found *found,
                   void (*released)(void *argument), void *argument)
{
    struct slu_given_up *given_up = &found->span->given_up[found->number];

    *given_up = (struct slu_given_up){.release = {.pd = allocator->pd,
                                                  .memory = memory_of(found),
                                                  .end = end_given_up,
                                                  .released = released,
                                                  .argument = argument},
                                      .span = found->span};
    pthread_mutex_lock(&allocator->lock);
    allocator->given_up++;
    slu_span_count(allocator, found->span, false);
    pthread_mutex_unlock(&allocator->lock);
    return slu_release(&given_up->release);
}

int sluice_allocator_release(struct sluice_allocator *allocator, void *block,
                             void (*released)(void *argument), void *argument)
{
    int error = slu_allocator_check(allocator);
    struct found found;

    if (error == 0 && block == NULL)
        error = slu_misuse(EINVAL, "a block to release must not be NULL");
    while (error == 0) {
        error = find_beginning(allocator, block, &found);
        if (error < 0)
            break;
        if (found.span == NULL)
            return slu_alone_release(allocator, block, released, argument);
        if (is_used(allocator, &found)) {
            if (claim(&found, SLU_GIVEN_UP))
                return give_up(allocator, &found, released, argument);
        } else if (keep_or_give_back(allocator, &found)) {
            slu_release_tell(released, argument);
            return 0;
        }
    }
    return error;
}

/* Resizing, elements, and regions. */

/* Gets the length to which a block can grow in place. */
static int measure(struct sluice_allocator *allocator, void *block, struct found *found,
                   size_t *length)
{
    int error = find_beginning(allocator, block, found);
    const struct slu_alone *alone;

    if (error < 0)
        return error;
    if (found->span != NULL) {
        *length = found->span->size;
        return 0;
    }
    pthread_mutex_lock(&allocator->lock);
    alone = slu_alone_find(allocator, block);
    if (alone == NULL || alone->start != (uintptr_t)block)
        error = slu_not_a_block(block);
    else if (alone->shared)
        error = slu_misuse(EINVAL, "a shared block cannot be resized: peers have its address");
    else
        *length = alone->length;
    pthread_mutex_unlock(&allocator->lock);
    return error;
}

/* Returns whether a block has room for size, and wastes no more than half of it. */
static bool may_stay(const void *block, size_t length, size_t size, size_t align)
{
    return size <= length && (length <= SLU_LINE || length / 2 < size) &&
           (align == 0 || (uintptr_t)block % align == 0);
}

static void *move(struct sluice_allocator *allocator, void *block, size_t length, size_t size,
                  size_t align)
{
    void *moved = sluice_allocator_alloc(allocator, size, align);
    int error;

    if (moved == NULL)
        return NULL;
    memcpy(moved, block, length < size ? length : size);
    error = sluice_allocator_free(allocator, block);
    if (error == 0)
        return moved;
    /* The old block was freed by another thread, or is in use; the new one has no elements yet. */
    slu_none(error);
    sluice_allocator_free(allocator, moved);
    return NULL;
}

void *sluice_allocator_realloc(struct sluice_allocator *allocator, void *block, size_t size,
                               size_t align)
{
    int error = check_wish(allocator, size, align);
    struct found found;
    size_t length = 0;

    if (error == 0 && block != NULL)
        error = measure(allocator, block, &found, &length);
    if (error < 0)
        return slu_none(error);
    if (block == NULL)
        return sluice_allocator_alloc(allocator, size, align);
    return may_stay(block, length, size, align) ? block
                                                : move(allocator, block, length, size, align);
}

static int fail_range(const void *pointer, size_t length, size_t room)
{
    return slu_misuse(ERANGE, "%zu byte%s at %p: its block has %zu from there on", length,
                      SLU_S(length), pointer, room);
}

static int name_alone(struct sluice_allocator *allocator, const void *pointer, size_t length,
                      struct sluice_sge *sge)
{
    const struct slu_alone *alone;
    int error = 0;
    size_t room;

    pthread_mutex_lock(&allocator->lock);
    alone = slu_alone_find(allocator, pointer);
    room = alone != NULL ? alone->start + alone->length - (uintptr_t)pointer : 0;
    if (alone == NULL)
        error = slu_not_a_block(pointer);
    else if (length > room)
        error = fail_range(pointer, length, room);
    else
        error = sluice_mr_sge_at(alone->mr, pointer, length, sge);
    pthread_mutex_unlock(&allocator->lock);
    return error;
}

int sluice_allocator_sge(struct sluice_allocator *allocator, const void *pointer, size_t length,
                         struct sluice_sge *sge)
{
    int error = slu_allocator_check(allocator);
    struct found found;
    size_t room;

    if (error == 0 && sge == NULL)
        error = slu_misuse(EINVAL, "sge must not be NULL");
    if (error < 0)
        return error;
    do {
        error = find_block(allocator, pointer, &found);
        if (error < 0)
            return error;
        if (found.span == NULL)
            return name_alone(allocator, pointer, length, sge);
        room = (uintptr_t)found.block + found.span->size - (uintptr_t)pointer;
        if (length > room)
            return fail_range(pointer, length, room);
    } while (found.state != SLU_NAMED && !claim(&found, SLU_NAMED));
    *sge = (struct sluice_sge){
        .addr = (uintptr_t)pointer, .length = (uint32_t)length, .lkey = found.span->lkey};
    return 0;
}

static struct sluice_mr *region_alone(struct sluice_allocator *allocator, const void *pointer)
{
    const struct slu_alone *alone;
    struct sluice_mr *mr;

    pthread_mutex_lock(&allocator->lock);
    alone = slu_alone_find(allocator, pointer);
    mr = alone != NULL ? alone->mr : slu_none(slu_not_a_block(pointer));
    pthread_mutex_unlock(&allocator->lock);
    return mr;
}

struct sluice_mr *sluice_allocator_mr(struct sluice_allocator *allocator, const void *pointer)
{
    int error = slu_allocator_check(allocator);
    struct found found;

    do {
        if (error == 0)
            error = find_block(allocator, pointer, &found);
        if (error < 0)
            return slu_none(error);
        if (found.span == NULL)
            return region_alone(allocator, pointer);
    } while (found.state != SLU_NAMED && !claim(&found, SLU_NAMED));
    return found.span->slab->mr;
}
