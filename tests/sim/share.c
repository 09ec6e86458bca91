/* SPDX-License-Identifier: MIT */
/*
 * Large blocks of many processes that have the same bytes, as the cards of all ranks that each rank
 * has, share their pages until one of them is written to. Programs cannot notice it. A search finds
 * blocks that have become equal. A block that a process receives shares its pages as they come,
 * because thousands of processes may receive the same block at once.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "calls.h"
#include "share.h"

/*
 * The least block that is shared, the most kinds of them, and the bytes at each end that are summed
 * up. A search comes after OFTEN allocations, or after MUCH bytes were received into blocks that
 * share nothing. STEP bytes of a block are shared at a time as they are received.
 */
enum {
    LEAST = 128 * 1024,
    KINDS = 64,
    PAGE = 4096,
    END = 256,
    OFTEN = 2048,
    MUCH = 16 << 20,
    STEP = 64 * 1024,
    SIZES = 31
};

struct sim_large {
    TAILQ_ENTRY(sim_large) place; /* in own or shared */
    LIST_ENTRY(sim_large) of_process;
    char *memory;
    size_t bytes;  /* whole pages */
    size_t shared; /* of them, from the begin on */
    uint64_t sum;  /* of its ends */
};
TAILQ_HEAD(blocks, sim_large);

/* The bytes of blocks, in a file. */
struct kind {
    struct sim_large copy;
    int file;
};

static struct kind kinds[KINDS];
static int kind_count;
static struct blocks own = TAILQ_HEAD_INITIALIZER(own);       /* have pages of their own */
static struct blocks shared = TAILQ_HEAD_INITIALIZER(shared); /* have none */
static uint64_t allocations, received;
static bool any; /* something was shared in this run */

bool sim_may_share(size_t bytes)
{
    return bytes >= LEAST && bytes < (size_t)1 << 30;
}

static uint64_t add(uint64_t sum, const char *bytes)
{
    for (size_t i = 0; i < END; i += sizeof sum) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    }
    return sum;
}

/* Returns 0 if the block begins with zeros: it may not have been touched. */
static uint64_t sum_up(const struct sim_large *large)
{
    uint64_t first;
    memcpy(&first, large->memory, sizeof first);
    return first == 0 ? 0 : add(add(1, large->memory), large->memory + large->bytes - END);
}

static bool are_equal(const struct sim_large *a, const struct sim_large *b)
{
    return a->bytes == b->bytes && a->sum == b->sum && memcmp(a->memory, b->memory, a->bytes) == 0;
}

static void make_kind(const struct sim_large *large)
{
    struct kind *kind = &kinds[kind_count];
    int file = memfd_create("shared", MFD_CLOEXEC);
    if (kind_count == KINDS || file < 0 || ftruncate(file, (off_t)large->bytes) != 0) {
        close(file);
        return;
    }
    kind->copy = *large;
    kind->copy.memory = mmap(NULL, large->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    sim_require(kind->copy.memory != MAP_FAILED, "no memory to share: %m");
    memcpy(kind->copy.memory, large->memory, large->bytes);
    kind->file = file;
    kind_count++;
}

/* The pages of a block up to there are equal to those of the kind. */
static void share(struct sim_large *large, const struct kind *kind, size_t to)
{
    char *from = large->memory + large->shared;
    size_t bytes = to - large->shared;
    if (mmap(from, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
             kind->file, (off_t)large->shared) != from) {
        return; /* the host allows no more mappings: nothing has changed */
    }
    any = true;
    large->shared = to;
    if (to == large->bytes) {
        TAILQ_REMOVE(&own, large, place);
        TAILQ_INSERT_TAIL(&shared, large, place);
    }
}

/* Returns whether the block is equal to a kind, and shares its pages. */
static bool share_whole(struct sim_large *large)
{
    for (int i = 0; i < kind_count; i++) {
        if (are_equal(large, &kinds[i].copy)) {
            share(large, &kinds[i], large->bytes);
            return true;
        }
    }
    return false;
}

/* Two blocks with the same bytes make a kind, and all that are equal to it share its pages. */
static void search(void)
{
    struct sim_large *before[SIZES] = {NULL}; /* the last one of some sizes */
    struct sim_large *large, *next;
    allocations = received = 0;
    for (large = TAILQ_FIRST(&own); large != NULL; large = next) {
        struct sim_large **last = &before[large->bytes / PAGE % SIZES];
        next = TAILQ_NEXT(large, place);
        large->sum = sum_up(large);
        if (large->sum == 0 || share_whole(large)) {
            continue;
        }
        if (*last != NULL && are_equal(*last, large)) {
            make_kind(large);
        }
        *last = large;
    }
}

struct sim_large *sim_share_add(struct sim_process *process, char *memory, size_t bytes)
{
    struct sim_large *large = sim_alloc(1, sizeof *large);
    large->memory = memory;
    large->bytes = bytes & ~(size_t)(PAGE - 1);
    TAILQ_INSERT_TAIL(&own, large, place);
    LIST_INSERT_HEAD(&process->large, large, of_process);
    return large;
}

void sim_share_seldom(void)
{
    if (++allocations >= OFTEN) {
        search();
    }
}

/* Shares the pages up to there, and returns whether they are equal to those of a kind. */
static bool share_begin(struct sim_large *large, size_t to)
{
    for (int i = 0; i < kind_count; i++) {
        const struct sim_large *copy = &kinds[i].copy;
        if (copy->bytes == large->bytes &&
            memcmp(large->memory + large->shared, copy->memory + large->shared,
                   to - large->shared) == 0) {
            share(large, &kinds[i], to);
            return true;
        }
    }
    return false;
}

/* Returns the block of a process that has this byte, or NULL. */
static struct sim_large *find(const struct sim_process *process, const char *at)
{
    struct sim_large *large = LIST_FIRST(&process->large);
    while (large != NULL && (at < large->memory || at >= large->memory + large->bytes)) {
        large = LIST_NEXT(large, of_process);
    }
    return large;
}

void sim_share_received(const struct sim_process *process, const void *at, size_t bytes)
{
    struct sim_large *large = find(process, at);
    size_t to;
    if (large == NULL) {
        return;
    }
    to = ((size_t)((const char *)at - large->memory) + bytes) & ~(size_t)(PAGE - 1);
    to = to < large->bytes ? to : large->bytes;
    if (to < large->shared + STEP && (to < large->bytes || to == large->shared)) {
        return;
    }
    if (!share_begin(large, to)) {
        received += bytes;
    }
    if (received >= MUCH) {
        search();
    }
}

static char *map_empty(char *memory, size_t bytes)
{
    return mmap(memory, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void sim_share_remove(struct sim_large *large)
{
    sim_require(large->shared == 0 || map_empty(large->memory, large->shared) == large->memory,
                "no memory for a block: %m");
    TAILQ_REMOVE(large->shared == large->bytes ? &shared : &own, large, place);
    LIST_REMOVE(large, of_process);
    free(large);
}

static void free_all(struct blocks *blocks)
{
    struct sim_large *large;
    while ((large = TAILQ_FIRST(blocks)) != NULL) {
        TAILQ_REMOVE(blocks, large, place);
        free(large);
    }
}

bool sim_share_end(char *heap, size_t bytes)
{
    bool was_shared = any;
    for (int i = 0; i < kind_count; i++) {
        munmap(kinds[i].copy.memory, kinds[i].copy.bytes);
        close(kinds[i].file);
    }
    free_all(&own);
    free_all(&shared);
    kind_count = 0;
    allocations = received = 0;
    any = false;
    sim_require(!was_shared || map_empty(heap, bytes) == heap, "no heap: %m");
    return was_shared;
}
