/* SPDX-License-Identifier: MIT */
/*
 * Blocks with a region of their own: shared blocks, which peers may access, and blocks that are
 * too long for a slab. Guarantee: the pages of such a block come fresh from the kernel, and return
 * to it only after the region was deregistered, when no peer can access them.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "memory/allocator.h"

int slu_not_a_block(const void *block)
{
    return slu_misuse(EINVAL, "%p is no block of this allocator", block);
}

/* Returns the index of the first block that begins after an address. */
static uint32_t search(const struct sluice_allocator *allocator, uintptr_t address)
{
    uint32_t low = 0, high = allocator->alone_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (allocator->alone[middle]->start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct slu_alone *slu_alone_find(const struct sluice_allocator *allocator, const void *address)
{
    uint32_t at = search(allocator, (uintptr_t)address);
    struct slu_alone *alone = at > 0 ? allocator->alone[at - 1] : NULL;

    return alone != NULL && (uintptr_t)address - alone->start < alone->length ? alone : NULL;
}

static int make_room(struct sluice_allocator *allocator)
{
    uint32_t room = allocator->alone_room == 0 ? 16 : 2 * allocator->alone_room;
    struct slu_alone **more;

    if (allocator->alone_count < allocator->alone_room)
        return 0;
    more = realloc(allocator->alone, room * sizeof *more);
    if (more == NULL)
        return slu_fail(ENOMEM, "no memory for %u regions of an allocator", room);
    allocator->alone = more;
    allocator->alone_room = room;
    return 0;
}

static int insert(struct sluice_allocator *allocator, struct slu_alone *alone)
{
    int error = make_room(allocator);
    uint32_t at;

    if (error < 0)
        return error;
    at = search(allocator, alone->start);
    memmove(allocator->alone + at + 1, allocator->alone + at,
            (allocator->alone_count - at) * sizeof(struct slu_alone *));
    allocator->alone[at] = alone;
    allocator->alone_count++;
    allocator->alone_bytes += alone->length;
    allocator->registrations++;
    return 0;
}

static void take_out(struct sluice_allocator *allocator, const struct slu_alone *alone)
{
    uint32_t at = search(allocator, alone->start) - 1;

    allocator->alone_count--;
    memmove(allocator->alone + at, allocator->alone + at + 1,
            (allocator->alone_count - at) * sizeof(struct slu_alone *));
    allocator->alone_bytes -= alone->length;
}

/* Registers a block; its bytes are reserved already. */
static int register_alone(const struct sluice_allocator *allocator, struct slu_alone *alone,
                          size_t bytes, size_t align)
{
    uint32_t access = allocator->access;

    if (!alone->shared)
        access &= SLUICE_ACCESS_LOCAL_WRITE;
    if ((allocator->attr.flags & SLUICE_ALLOCATOR_HUGE_PAGES) != 0)
        access |= SLUICE_MR_HUGE_PAGES;
    alone->mr = slu_mr_alloc(allocator->pd, bytes, access, allocator->node);
    if (alone->mr == NULL)
        return -errno;
    alone->mr->allocated = true;
    alone->start = ((uintptr_t)sluice_mr_addr(alone->mr) + align - 1) & ~(uintptr_t)(align - 1);
    return 0;
}

static void unreserve(struct sluice_allocator *allocator, size_t bytes)
{
    pthread_mutex_lock(&allocator->lock);
    allocator->registered -= bytes;
    pthread_mutex_unlock(&allocator->lock);
}

/* Frees a block that is not in the list. */
static void end_alone(struct slu_alone *alone)
{
    struct sluice_allocator *allocator = alone->allocator;
    size_t bytes = sluice_mr_length(alone->mr);

    slu_mr_end(alone->mr);
    unreserve(allocator, bytes);
    free(alone);
}

/* Makes a block, and registers it without the lock, so that no other thread waits for that. */
static int make_alone(struct sluice_allocator *allocator, struct slu_alone *alone, size_t bytes,
                      size_t align)
{
    int error;

    pthread_mutex_lock(&allocator->lock);
    error = slu_allocator_reserve(allocator, bytes);
    pthread_mutex_unlock(&allocator->lock);
    if (error < 0) {
        free(alone);
        return error;
    }
    error = register_alone(allocator, alone, bytes, align);
    if (error < 0) {
        unreserve(allocator, bytes);
        free(alone);
        return error;
    }
    pthread_mutex_lock(&allocator->lock);
    error = insert(allocator, alone);
    pthread_mutex_unlock(&allocator->lock);
    if (error < 0)
        end_alone(alone);
    return error;
}

void *slu_alone_alloc(struct sluice_allocator *allocator, size_t size, size_t align,
                      struct sluice_remote_mr *remote)
{
    size_t more = align > SLU_LINE ? align : 0; /* pages are always aligned to a line */
    struct slu_alone *alone;
    uintptr_t start;
    int error;

    if (size > PTRDIFF_MAX - SLUICE_ALLOCATOR_MAX_ALIGN)
        return slu_fail_null(ENOMEM, "no memory for a block of %zu bytes", size);
    alone = calloc(1, sizeof *alone);
    if (alone == NULL)
        return slu_fail_null(ENOMEM, "no memory for the metadata of a block");
    alone->allocator = allocator;
    alone->length = size;
    alone->shared = remote != NULL;
    error = make_alone(allocator, alone, size + more, align);
    if (error < 0)
        return slu_none(error);
    start = alone->start;
    if (remote != NULL)
        sluice_mr_remote(alone->mr, remote);
    return (void *)start;
}

static struct slu_memory memory_of(const struct slu_alone *alone)
{
    return (struct slu_memory){.lkey = sluice_mr_lkey(alone->mr), .length = SLU_WHOLE};
}

/* Finds a block by its beginning and takes it off the list; if it is used, only with used_too. */
static int find_to_end(struct sluice_allocator *allocator, const void *block, bool used_too,
                       struct slu_alone **found)
{
    struct slu_alone *alone = slu_alone_find(allocator, block);
    struct slu_memory memory;

    if (alone == NULL)
        return slu_not_a_block(block);
    if (alone->start != (uintptr_t)block)
        return slu_misuse(EINVAL, "%p is within a block, not its beginning", block);
    memory = memory_of(alone);
    if (!used_too && slu_pd_uses(allocator->pd, &memory))
        return slu_pd_fail_used(allocator->pd, &memory, "the block", alone->start, false);
    take_out(allocator, alone);
    *found = alone;
    return 0;
}

int slu_alone_free(struct sluice_allocator *allocator, void *block)
{
    struct slu_alone *alone;
    int error;

    pthread_mutex_lock(&allocator->lock);
    error = find_to_end(allocator, block, false, &alone);
    pthread_mutex_unlock(&allocator->lock);
    if (error == 0)
        end_alone(alone);
    return error;
}

static void end_release(struct slu_release *release)
{
    struct slu_alone *alone = slu_container_of(release, struct slu_alone, release);
    struct sluice_allocator *allocator = alone->allocator;
    const struct slu_release ended = *release;

    end_alone(alone);
    pthread_mutex_lock(&allocator->lock);
    allocator->given_up--;
    pthread_mutex_unlock(&allocator->lock);
    slu_release_tell(ended.released, ended.argument);
}

int slu_alone_release(struct sluice_allocator *allocator, void *block,
                      void (*released)(void *argument), void *argument)
{
    struct slu_alone *alone;
    int error;

    pthread_mutex_lock(&allocator->lock);
    error = find_to_end(allocator, block, true, &alone);
    if (error == 0)
        allocator->given_up++;
    pthread_mutex_unlock(&allocator->lock);
    if (error < 0)
        return error;
    alone->release = (struct slu_release){.pd = allocator->pd,
                                          .memory = memory_of(alone),
                                          .end = end_release,
                                          .released = released,
                                          .argument = argument};
    return slu_release(&alone->release);
}
