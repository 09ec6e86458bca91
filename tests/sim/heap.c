/* SPDX-License-Identifier: MIT */
/* The heap of a process: what it has not freed is known, and it ends with the process. */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "report.h"
#include "system.h"

/* The most bytes that are filled in, so that what is not initialised, or freed, does harm. */
enum { FILLED = 16384, FEW_RANKS = 16 };

/*
 * The table of descriptors and that of names of scopes, which the library keeps for good. A table
 * may be in several parts, each of its own size.
 */
enum { MAY_STAY = 2 };

#define ALIVE UINT64_C(0x736c756963652121)

struct sim_block {
    struct sim_block *next, **at;
    void *memory; /* as the host gave it */
    size_t bytes;
    uint64_t number;    /* of the allocation, in its process */
    const char *caller; /* in the module */
    uint64_t alive;
};

void sim_heap_begin(uint32_t ranks)
{
    mallopt(M_MMAP_MAX, INT_MAX);
    /*
     * Few ranks use memory again that was freed. For many, blocks of zeros are mapped, so that the
     * host has no page of them that is not used: each rank has a ring for each other rank.
     */
    mallopt(M_MMAP_THRESHOLD, ranks > FEW_RANKS ? 8 << 10 : 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

static void *allocate(size_t alignment, size_t bytes, bool zeroed, const char *caller)
{
    struct sim_process *process = sim_task->process;
    size_t head = (sizeof(struct sim_block) + alignment - 1) & ~(alignment - 1);
    struct sim_block *block;
    char *memory;
    process->allocations++;
    if (sim_fault_is_due("malloc")) {
        sim_error(ENOMEM);
        return NULL;
    }
    if (bytes > SIZE_MAX / 2) {
        sim_error(ENOMEM);
        return NULL;
    }
    memory = zeroed ? calloc(1, head + bytes)
                    : aligned_alloc(alignment, (head + bytes + alignment - 1) & ~(alignment - 1));
    sim_require(memory != NULL, "no memory for %zu bytes of a process", bytes);
    if (!zeroed) {
        memset(memory + head, 0xa5, bytes < FILLED ? bytes : FILLED);
    }
    block = (struct sim_block *)(void *)(memory + head) - 1;
    *block = (struct sim_block){process->blocks,      &process->blocks, memory, bytes,
                                process->allocations, caller,           ALIVE};
    if (block->next != NULL) {
        block->next->at = &block->next;
    }
    process->blocks = block;
    process->bytes += bytes;
    return memory + head;
}

static struct sim_block *block_of(void *memory)
{
    struct sim_block *block = (struct sim_block *)memory - 1;
    sim_require(block->alive == ALIVE, "free(3) of %p, which is not allocated", memory);
    return block;
}

void *sys_malloc(size_t bytes)
{
    return allocate(16, bytes, false, __builtin_return_address(0));
}

void *sys_calloc(size_t count, size_t bytes)
{
    return allocate(16, __builtin_mul_overflow(count, bytes, &bytes) ? SIZE_MAX : bytes, true,
                    __builtin_return_address(0));
}

void *sys_aligned_alloc(size_t alignment, size_t bytes)
{
    return allocate(alignment < 16 ? 16 : alignment, bytes, false, __builtin_return_address(0));
}

void sys_free(void *memory)
{
    struct sim_block *block;
    if (memory == NULL) {
        return;
    }
    block = block_of(memory);
    sim_task->process->bytes -= block->bytes;
    *block->at = block->next;
    if (block->next != NULL) {
        block->next->at = block->at;
    }
    block->alive = 0;
    memset(memory, 0x5a, block->bytes < FILLED ? block->bytes : FILLED);
    free(block->memory);
}

void *sys_realloc(void *memory, size_t bytes)
{
    void *grown = sys_malloc(bytes);
    if (memory != NULL && grown != NULL) {
        size_t old = block_of(memory)->bytes;
        memcpy(grown, memory, old < bytes ? old : bytes);
        sys_free(memory);
    }
    return grown;
}

char *sys_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = sys_malloc(bytes);
    return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

ssize_t sys_getdelim(char **line, size_t *room, int delimiter, FILE *file)
{
    size_t count = 0;
    int byte = 0;
    while (byte != delimiter && (byte = getc(file)) != EOF) {
        if (count + 2 > *room) {
            char *grown = sys_realloc(*line, 2 * *room + 128);
            if (grown == NULL) {
                return -1;
            }
            *line = grown;
            *room = 2 * *room + 128;
        }
        (*line)[count++] = (char)byte;
        (*line)[count] = '\0';
    }
    return count > 0 ? (ssize_t)count : -1;
}

ssize_t sys_getline(char **line, size_t *room, FILE *file)
{
    return sys_getdelim(line, room, '\n', file);
}

void sim_heap_free(struct sim_process *process)
{
    while (process->blocks != NULL) {
        struct sim_block *block = process->blocks;
        process->blocks = block->next;
        free(block->memory);
    }
    process->bytes = 0;
}

/* Counts a block: 1, or 0 if a part of its table comes later, or too many if it is none. */
static size_t count_block(const struct sim_block *block)
{
    for (const struct sim_block *at = block->next; at != NULL; at = at->next) {
        if (at->caller == block->caller) {
            return at->bytes == block->bytes ? MAY_STAY + 1 : 0;
        }
    }
    return 1;
}

const char *sim_heap_leaks(const struct sim_process *process)
{
    static char text[400];
    size_t length = 0, count = 0;
    for (const struct sim_block *at = process->blocks; at != NULL; at = at->next) {
        if (length < sizeof text) {
            length += (size_t)snprintf(text + length, sizeof text - length,
                                       "%zu bytes of malloc(3) %lu at %#lx; ", at->bytes,
                                       (unsigned long)at->number,
                                       (unsigned long)(at->caller - process->image.base));
        }
        count += count > MAY_STAY ? 0 : count_block(at);
    }
    return count > MAY_STAY ? text : NULL;
}
