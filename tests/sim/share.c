/* SPDX-License-Identifier: MIT */
/*
 * Large blocks of many processes that have the same bytes, as the cards of all ranks that each rank
 * has, share their pages until one of them is written to. Nothing of this can be seen by a program.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "calls.h"
#include "share.h"

/*
 * The least block that is shared, the most kinds of them, the bytes at each end that are summed up,
 * and after how many allocations equal blocks are searched for.
 */
enum { LEAST = 128 * 1024, KINDS = 64, PAGE = 4096, END = 256, OFTEN = 2048, SIZES = 31 };

struct range {
    char *memory;
    size_t bytes;
    uint64_t sum; /* of its ends */
};

static struct range kinds[KINDS]; /* copies */
static int files[KINDS], kind_count;
static struct range *ranges; /* not shared */
static int range_count, range_room;
static uint64_t allocations;
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

/* Returns 0 if the range begins with zeros: it may not have been touched. */
static uint64_t sum_up(const struct range *range)
{
    uint64_t first;
    memcpy(&first, range->memory, sizeof first);
    return first == 0 ? 0 : add(add(1, range->memory), range->memory + range->bytes - END);
}

static bool are_equal(const struct range *a, const struct range *b)
{
    return a->bytes == b->bytes && a->sum == b->sum && memcmp(a->memory, b->memory, a->bytes) == 0;
}

static void make_kind(const struct range *range)
{
    int file = memfd_create("shared", MFD_CLOEXEC);
    char *copy;
    if (kind_count == KINDS || file < 0 || ftruncate(file, (off_t)range->bytes) != 0) {
        close(file);
        return;
    }
    copy = mmap(NULL, range->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    sim_require(copy != MAP_FAILED, "no memory to share: %m");
    memcpy(copy, range->memory, range->bytes);
    files[kind_count] = file;
    kinds[kind_count++] = (struct range){copy, range->bytes, range->sum};
}

static bool share(const struct range *range)
{
    for (int i = 0; i < kind_count; i++) {
        if (are_equal(range, &kinds[i])) {
            any = true;
            return mmap(range->memory, range->bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, files[i], 0) != MAP_FAILED;
        }
    }
    return false;
}

/* Two blocks with the same bytes make a kind, and all that are equal to it share its pages. */
static void search(void)
{
    struct range before[SIZES] = {{NULL, 0, 0}}; /* the last one of some sizes */
    int kept = 0;
    for (int i = 0; i < range_count; i++) {
        ranges[i].sum = sum_up(&ranges[i]);
        if (ranges[i].sum != 0 && share(&ranges[i])) {
            continue;
        }
        if (ranges[i].sum != 0) {
            struct range *last = &before[ranges[i].bytes / PAGE % SIZES];
            if (last->sum != 0 && are_equal(last, &ranges[i])) {
                make_kind(last);
            }
            *last = ranges[i];
        }
        ranges[kept++] = ranges[i];
    }
    range_count = kept;
}

void sim_share_add(char *memory, size_t bytes)
{
    if (range_count == range_room) {
        ranges = sim_grow(ranges, &range_room, sizeof *ranges);
    }
    ranges[range_count++] = (struct range){memory, bytes & ~(size_t)(PAGE - 1), 0};
}

void sim_share_seldom(void)
{
    if (++allocations % OFTEN == 0 && range_count > 1) {
        search();
    }
}

static char *map_empty(char *memory, size_t bytes)
{
    return mmap(memory, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void sim_share_remove(char *memory, size_t bytes)
{
    for (int i = range_count; i-- > 0;) {
        if (ranges[i].memory == memory) {
            ranges[i] = ranges[--range_count];
            return;
        }
    }
    bytes &= ~(size_t)(PAGE - 1);
    sim_require(map_empty(memory, bytes) == memory, "no memory for a block: %m");
}

bool sim_share_end(char *heap, size_t bytes)
{
    bool shared = any;
    for (int i = 0; i < kind_count; i++) {
        munmap(kinds[i].memory, kinds[i].bytes);
        close(files[i]);
    }
    range_count = kind_count = 0;
    allocations = 0;
    any = false;
    sim_require(!shared || map_empty(heap, bytes) == heap, "no heap: %m");
    return shared;
}
