/* SPDX-License-Identifier: MIT */
/* The heap of a process: what it has not freed is known, and it ends with the process. */
#include <stdio.h>
#include <sys/mman.h>

#include "calls.h"
#include "share.h"

/*
 * The table of descriptors and that of names of scopes, which the library keeps for good. A table
 * may be in several parts, each of its own size.
 */
enum { MAY_STAY = 2 };

/* The most bytes that are filled in, so that what is not initialised, or freed, does harm. */
enum { FILLED = 16384 };

#define ALIVE UINT64_C(0x736c756963652121)

struct sim_block {
    LIST_ENTRY(sim_block) place; /* in its process, or among those that are not used */
    char *memory;                /* where it begins, with this header */
    size_t bytes;
    uint64_t number;         /* of the allocation, in its process */
    const char *caller;      /* in the module */
    struct sim_large *large; /* or NULL */
    uint64_t alive;
    uint32_t class;
};

/*
 * Blocks of all processes lie in one range, from its begin on in each run, so that a run has the
 * same addresses whatever ran before. A freed block goes to the list of its class.
 */
enum { SMALL = 1024, CLASSES = 512 };
#define HEAP_BYTES (UINT64_C(1) << 38)
#define KEPT_BYTES (UINT64_C(256) << 20)

static char *heap, *heap_next, *heap_used; /* used: by this run or an earlier one */
static LIST_HEAD(, sim_block) unused[CLASSES];

void sim_heap_begin(void)
{
    if (heap == NULL) {
        heap = heap_used = sim_reserve(SIM_HEAP, HEAP_BYTES);
        sim_require(mprotect(heap, HEAP_BYTES, PROT_READ | PROT_WRITE) == 0, "no heap: %m");
    }
    if (heap_next != NULL && sim_share_end(heap, (size_t)(heap_used - heap))) {
        heap_used = heap;
    }
    if (heap_next != NULL && (size_t)(heap_used - heap) > KEPT_BYTES) {
        madvise(heap, (size_t)(heap_used - heap), MADV_DONTNEED);
        heap_used = heap;
    }
    heap_next = heap;
    memset(unused, 0, sizeof unused);
}

/* Rounds a size up to one of few: multiples of 16, then four steps for each power of two. */
static uint32_t classify(size_t *bytes)
{
    uint32_t bits;
    size_t step;
    if (*bytes <= SMALL) {
        *bytes = (*bytes + 15) & ~(size_t)15;
        return (uint32_t)(*bytes / 16);
    }
    bits = 63 - (uint32_t)__builtin_clzll(*bytes - 1);
    step = (size_t)1 << (bits - 2);
    *bytes = (*bytes + step - 1) & ~(step - 1);
    return SMALL / 16 + 4 * bits + (uint32_t)((*bytes - 1) >> (bits - 2) & 3);
}

/* Checks that nobody has written to a block since it was freed. */
static void check_unused(const struct sim_block *block)
{
    const char *bytes = (const char *)(block + 1);
    size_t count = block->bytes < FILLED ? block->bytes : FILLED;
    sim_require(count == 0 || (bytes[0] == 0x5a && memcmp(bytes, bytes + 1, count - 1) == 0),
                "memory was written to after it was freed: %zu bytes of malloc(3) %lu",
                block->bytes, (unsigned long)block->number);
}

/* Returns memory with room for a header and so many bytes, and whether it was used before. */
static char *take(size_t bytes, uint32_t *class, bool *used)
{
    char *memory;
    *class = classify(&bytes);
    sim_require(*class < CLASSES && bytes < HEAP_BYTES - (size_t)(heap_next - heap),
                "no memory for %zu bytes of a process", bytes);
    if (!LIST_EMPTY(&unused[*class])) {
        struct sim_block *block = LIST_FIRST(&unused[*class]);
        check_unused(block);
        LIST_REMOVE(block, place);
        *used = true;
        return block->memory;
    }
    memory = heap_next;
    *used = memory < heap_used;
    heap_next += bytes;
    heap_used = heap_next > heap_used ? heap_next : heap_used;
    return memory;
}

static void *allocate(size_t alignment, size_t bytes, bool zeroed, const char *caller)
{
    struct sim_process *process = sim_task->process;
    struct sim_block *block;
    uint32_t class;
    char *memory, *begin;
    bool used;
    process->allocations++;
    sim_share_seldom();
    alignment = sim_may_share(bytes) ? 4096 : alignment;
    if (sim_fault_is_due("malloc") || bytes > HEAP_BYTES / 2) {
        sim_error(ENOMEM);
        return NULL;
    }
    begin = take(sizeof *block + alignment + bytes, &class, &used);
    memory = (char *)(((uintptr_t)begin + sizeof *block + alignment - 1) & ~(alignment - 1));
    if (!zeroed) {
        memset(memory, 0xa5, bytes < FILLED ? bytes : FILLED);
    } else if (used) {
        memset(memory, 0, bytes);
    }
    block = (struct sim_block *)(void *)memory - 1;
    *block = (struct sim_block){.memory = begin,
                                .bytes = bytes,
                                .number = process->allocations,
                                .caller = caller,
                                .alive = ALIVE,
                                .class = class};
    LIST_INSERT_HEAD(&process->blocks, block, place);
    process->bytes += bytes;
    if (sim_may_share(bytes)) {
        block->large = sim_share_add(process, memory, bytes);
    }
    return memory;
}

static struct sim_block *block_of(void *memory)
{
    struct sim_block *block = (struct sim_block *)memory - 1;
    sim_require(block->alive == ALIVE, "free(3) of %p, which is not allocated", memory);
    return block;
}

SYS(void *, malloc, size_t bytes)
{
    return allocate(16, bytes, false, __builtin_return_address(0));
}

SYS(void *, calloc, size_t count, size_t bytes)
{
    return allocate(16, __builtin_mul_overflow(count, bytes, &bytes) ? SIZE_MAX : bytes, true,
                    __builtin_return_address(0));
}

SYS(void *, aligned_alloc, size_t alignment, size_t bytes)
{
    return allocate(alignment < 16 ? 16 : alignment, bytes, false, __builtin_return_address(0));
}

SYS(void, free, void *memory)
{
    struct sim_block *block;
    if (memory == NULL) {
        return;
    }
    block = block_of(memory);
    sim_task->process->bytes -= block->bytes;
    LIST_REMOVE(block, place);
    block->alive = 0;
    if (block->large != NULL) {
        sim_share_remove(block->large);
    }
    memset(memory, 0x5a, block->bytes < FILLED ? block->bytes : FILLED);
    LIST_INSERT_HEAD(&unused[block->class], block, place);
}

SYS(void *, realloc, void *memory, size_t bytes)
{
    void *grown = sys_malloc(bytes);
    if (memory != NULL && grown != NULL) {
        size_t old = block_of(memory)->bytes;
        memcpy(grown, memory, old < bytes ? old : bytes);
        sys_free(memory);
    }
    return grown;
}

SYS(char *, strdup, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = sys_malloc(bytes);
    return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

SYS(ssize_t, __getdelim, char **line, size_t *room, int delimiter, FILE *file)
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

SYS(ssize_t, getline, char **line, size_t *room, FILE *file)
{
    return sys___getdelim(line, room, '\n', file);
}

/* Counts a block: 1, or 0 if a part of its table comes later, or too many if it is none. */
static size_t count_block(const struct sim_block *block)
{
    for (const struct sim_block *at = block; (at = LIST_NEXT(at, place)) != NULL;) {
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
    const struct sim_block *at;
    LIST_FOREACH(at, &process->blocks, place)
    {
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
