/* SPDX-License-Identifier: MIT */
/*
 * The cache of registrations. The index has disjoint regions sorted by address, so that one search
 * finds the only region that can cover a range. A new region replaces those it overlaps, and
 * covers all of them. A replaced region that is still in use is retired: it is released once it is
 * put back. Unused regions are in a list, least recently put back first.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "memory/mr_cache.h"

#include "memory/mr.h"

#define DEFAULT_REGIONS 1024
#define MOST_REGIONS (UINT32_C(1) << 20)
#define FIRST_ROOM 16

struct range {
    uintptr_t start, end; /* end is behind the last byte */
};

/* The list that a region is in. */
enum place {
    NOWHERE, /* in none: it is in use */
    UNUSED,
    RETIRED, /* not in the index; in use, or used by requests in flight */
    PLACES
};

struct slu_cached {
    struct sluice_mr_cache *cache;
    struct sluice_mr *mr;
    struct range range;
    uint32_t uses;
    enum place place;
    TAILQ_ENTRY(slu_cached) links;
};

TAILQ_HEAD(cached_list, slu_cached);

struct sluice_mr_cache {
    uint32_t magic;
    uint32_t access;
    struct sluice_pd *pd;
    struct sluice_mr_cache_attr attr;
    uintptr_t page;
    atomic_uint channels; /* that use the cache */
    pthread_mutex_t lock; /* protects the fields below */
    struct slu_cached **index;
    uintptr_t *ends;                  /* of the regions in the index, for the search */
    uint32_t count, room;             /* of both arrays */
    struct cached_list lists[PLACES]; /* that of NOWHERE stays empty */
    struct sluice_mr_cache_info info;
};

static void move(struct sluice_mr_cache *cache, struct slu_cached *cached, enum place place)
{
    cache->info.retired += (place == RETIRED) - (cached->place == RETIRED);
    if (cached->place != NOWHERE)
        TAILQ_REMOVE(&cache->lists[cached->place], cached, links);
    cached->place = place;
    if (place != NOWHERE)
        TAILQ_INSERT_TAIL(&cache->lists[place], cached, links);
}

/* The index. */

/* Returns the index of the first region that ends after an address. */
static uint32_t search(const struct sluice_mr_cache *cache, uintptr_t addr)
{
    const uintptr_t *ends = cache->ends;
    uint32_t left = cache->count;

    /* Written so that the compiler makes no branch, which could not be predicted. */
    for (; left > 1; left -= left / 2)
        ends += ends[left / 2 - 1] <= addr ? left / 2 : 0;
    return (uint32_t)(ends - cache->ends) + (left == 1 && *ends <= addr);
}

/* Returns whether there is a region at a place, from search() on, that overlaps a range. */
static bool overlaps(const struct sluice_mr_cache *cache, uint32_t at, struct range range)
{
    return at < cache->count && cache->index[at]->range.start < range.end;
}

static bool make_index_room(struct sluice_mr_cache *cache)
{
    uint32_t room = cache->room == 0 ? FIRST_ROOM : cache->room * 2;
    struct slu_cached **index;
    uintptr_t *ends;

    if (cache->count < cache->room)
        return true;
    index = realloc(cache->index, room * sizeof *index);
    if (index == NULL)
        return false;
    cache->index = index;
    ends = realloc(cache->ends, room * sizeof *ends);
    if (ends == NULL)
        return false;
    cache->ends = ends;
    cache->room = room;
    return true;
}

static void insert(struct sluice_mr_cache *cache, struct slu_cached *cached)
{
    uint32_t at = search(cache, cached->range.start);
    size_t behind = cache->count - at;

    memmove(cache->index + at + 1, cache->index + at, behind * sizeof *cache->index);
    memmove(cache->ends + at + 1, cache->ends + at, behind * sizeof *cache->ends);
    cache->index[at] = cached;
    cache->ends[at] = cached->range.end;
    cache->count++;
}

static void take_out(struct sluice_mr_cache *cache, uint32_t at)
{
    size_t behind = --cache->count - at;

    memmove(cache->index + at, cache->index + at + 1, behind * sizeof *cache->index);
    memmove(cache->ends + at, cache->ends + at + 1, behind * sizeof *cache->ends);
}

/* Releasing regions. */

/* Releases a region. Returns false if requests in flight use it. */
static bool release(struct sluice_mr_cache *cache, struct slu_cached *cached)
{
    cached->mr->cached = NULL; /* a region of a cache is refused by the next call */
    if (sluice_mr_deregister(cached->mr) != 0) {
        cached->mr->cached = cached;
        return false;
    }
    move(cache, cached, NOWHERE);
    cache->info.regions--;
    cache->info.bytes -= cached->range.end - cached->range.start;
    free(cached);
    return true;
}

/* Takes a region out of the index, so that gets do not find it, and releases it if unused. */
static void retire(struct sluice_mr_cache *cache, uint32_t at)
{
    struct slu_cached *cached = cache->index[at];

    take_out(cache, at);
    if (cached->uses == 0 && release(cache, cached))
        return;
    move(cache, cached, RETIRED);
}

/* Releases retired regions that were used by requests in flight before. */
static void release_retired(struct sluice_mr_cache *cache)
{
    struct slu_cached *next;

    for (struct slu_cached *cached = TAILQ_FIRST(&cache->lists[RETIRED]); cached; cached = next) {
        next = TAILQ_NEXT(cached, links);
        if (cached->uses == 0)
            release(cache, cached);
    }
}

/* Releases the least recently put back region that no request in flight uses. */
static bool evict_one(struct sluice_mr_cache *cache)
{
    struct slu_cached *cached = TAILQ_FIRST(&cache->lists[UNUSED]);

    for (; cached != NULL; cached = TAILQ_NEXT(cached, links)) {
        uint32_t at = search(cache, cached->range.start);

        if (!release(cache, cached))
            continue;
        take_out(cache, at);
        cache->info.evictions++;
        return true;
    }
    return false;
}

static bool has_room(const struct sluice_mr_cache *cache, uint64_t bytes)
{
    return cache->info.regions < cache->attr.max_regions &&
           (cache->attr.max_bytes == 0 ||
            (bytes <= cache->attr.max_bytes && cache->info.bytes <= cache->attr.max_bytes - bytes));
}

static bool overlap(struct range a, struct range b)
{
    return a.start < b.end && b.start < a.end;
}

/* Releases the regions of the index that overlap a range. Returns whether all could be. */
static bool forget_found(struct sluice_mr_cache *cache, struct range range)
{
    bool gone = true;

    for (uint32_t at = search(cache, range.start); overlaps(cache, at, range);) {
        struct slu_cached *cached = cache->index[at];

        if (cached->uses == 0 && release(cache, cached)) {
            take_out(cache, at);
        } else {
            gone = false;
            at++;
        }
    }
    return gone;
}

/* Makes room for a region in place of those that overlap the range: these go first. */
static int make_room(struct sluice_mr_cache *cache, struct range own, uint64_t bytes)
{
    if (cache->attr.max_bytes != 0 && bytes > cache->attr.max_bytes)
        return slu_fail(ENOBUFS,
                        "%llu bytes, in whole pages, are above max_bytes of the cache, %llu",
                        (unsigned long long)bytes, (unsigned long long)cache->attr.max_bytes);
    if (!has_room(cache, bytes))
        forget_found(cache, own);
    while (!has_room(cache, bytes))
        if (!evict_one(cache))
            return slu_fail(ENOBUFS,
                            "all %u regions of the cache, %llu bytes, are in use: no room for "
                            "another %llu bytes",
                            cache->info.regions, (unsigned long long)cache->info.bytes,
                            (unsigned long long)bytes);
    return 0;
}

/* Getting. */

static bool covers(struct range whole, struct range part)
{
    return whole.start <= part.start && part.end <= whole.end;
}

static struct slu_cached *find(const struct sluice_mr_cache *cache, struct range range)
{
    uint32_t at = search(cache, range.start);

    return at < cache->count && covers(cache->index[at]->range, range) ? cache->index[at] : NULL;
}

/* Returns the whole pages of a range. */
static struct range pages_of(const struct sluice_mr_cache *cache, struct range range)
{
    return (struct range){range.start & ~(cache->page - 1),
                          (range.end + cache->page - 1) & ~(cache->page - 1)};
}

/*
 * Returns the range to register: whole pages, extended by all regions that overlap them. If that is
 * longer than max_bytes, it is not extended.
 */
static struct range extend(const struct sluice_mr_cache *cache, struct range own)
{
    struct range whole = own;

    for (uint32_t at = search(cache, own.start); overlaps(cache, at, own); at++) {
        const struct range *other = &cache->index[at]->range;

        whole.start = other->start < whole.start ? other->start : whole.start;
        whole.end = other->end > whole.end ? other->end : whole.end;
    }
    return cache->attr.max_bytes != 0 && whole.end - whole.start > cache->attr.max_bytes ? own
                                                                                         : whole;
}

/*
 * Registers a range in place of the regions that overlap its own pages. If that fails, these stay,
 * except unused ones that made room: a limit on locked memory counts a page that two regions have
 * twice. Leaves out what the others have if a page of that may have been unmapped meanwhile.
 */
static int register_range(struct sluice_mr_cache *cache, struct slu_cached *cached,
                          struct range own)
{
    struct range *range = &cached->range;
    bool again = overlaps(cache, search(cache, own.start), own);
    int error = make_room(cache, own, range->end - range->start);

    if (error < 0)
        return error;
    while ((cached->mr = slu_mr_register(cache->pd, (void *)range->start, range->end - range->start,
                                         cache->access)) == NULL) {
        if (!again)
            return -errno;
        again = false;
        if (errno == ENOMEM)
            forget_found(cache, own);
        else
            *range = own;
    }
    cached->mr->cached = cached;
    return 0;
}

static int add(struct sluice_mr_cache *cache, struct range range, struct slu_cached **added)
{
    const struct range own = pages_of(cache, range);
    struct slu_cached *cached = calloc(1, sizeof *cached);
    int error;

    if (cached == NULL || !make_index_room(cache)) {
        free(cached);
        return slu_fail(ENOMEM, "no memory for a region of a cache");
    }
    release_retired(cache);
    cached->cache = cache;
    cached->range = extend(cache, own);
    error = register_range(cache, cached, own);
    if (error < 0) {
        free(cached);
        return error;
    }
    for (uint32_t at = search(cache, own.start); overlaps(cache, at, own);)
        retire(cache, at);
    insert(cache, cached);
    cache->info.regions++;
    cache->info.bytes += cached->range.end - cached->range.start;
    *added = cached;
    return 0;
}

static int find_or_add(struct sluice_mr_cache *cache, struct range range, struct slu_cached **found)
{
    *found = find(cache, range);
    if (SLU_LIKELY(*found != NULL)) {
        cache->info.hits++;
        return 0;
    }
    cache->info.misses++;
    return add(cache, range, found);
}

/* Arguments. */

static SLU_COLD int not_a_cache(const struct sluice_mr_cache *cache)
{
    if (cache == NULL)
        return slu_misuse(EINVAL, "not a cache of regions, but NULL%s", slu_none_hint(cache));
    return slu_misuse(EINVAL, "not a cache of regions, or one that was destroyed%s",
                      slu_none_hint(cache));
}

static inline int check_cache(const struct sluice_mr_cache *cache)
{
    return SLU_LIKELY(cache != NULL && cache->magic == SLU_MAGIC_MR_CACHE) ? 0 : not_a_cache(cache);
}

bool slu_mr_cache_wraps(const struct sluice_mr_cache *cache, uint64_t addr, uint64_t length)
{
    return addr > UINTPTR_MAX - cache->page || length > UINTPTR_MAX - cache->page - addr;
}

static int check_range(const struct sluice_mr_cache *cache, const void *addr, size_t length)
{
    int error = check_cache(cache);

    if (error < 0)
        return error;
    if (addr == NULL || length == 0)
        return slu_misuse(EINVAL, "memory of a cache has an address and at least 1 byte");
    if (slu_mr_cache_wraps(cache, (uintptr_t)addr, length))
        return slu_misuse(EINVAL, "memory of %zu bytes at %p wraps the address space", length,
                          addr);
    return 0;
}

static int check_attr(struct sluice_mr_cache_attr *attr)
{
    if (attr->max_regions > MOST_REGIONS)
        return slu_misuse(EINVAL, "max_regions is %u, above %u", attr->max_regions, MOST_REGIONS);
    if (attr->max_regions == 0)
        attr->max_regions = DEFAULT_REGIONS;
    return 0;
}

/* The calls. */

struct sluice_mr_cache *sluice_mr_cache_create(struct sluice_pd *pd, uint32_t access,
                                               const struct sluice_mr_cache_attr *given)
{
    SLU_UNCANCELLED_BLOCK;
    struct sluice_mr_cache_attr attr;
    struct sluice_mr_cache *cache;
    int error = slu_mr_check(pd, 1, access);

    if (error == 0)
        error = SLU_ATTR_COPY(sluice_mr_cache_attr, &attr, given);
    if (error == 0)
        error = check_attr(&attr);
    if (error < 0)
        return slu_none(error);
    cache = calloc(1, sizeof *cache);
    if (cache == NULL)
        return slu_fail_null(ENOMEM, "no memory for a cache of regions");
    cache->magic = SLU_MAGIC_MR_CACHE;
    cache->access = access;
    cache->attr = attr;
    cache->page = (uintptr_t)sysconf(_SC_PAGESIZE);
    cache->pd = pd;
    slu_pd_hold(pd);
    for (int i = 0; i < PLACES; i++)
        TAILQ_INIT(&cache->lists[i]);
    pthread_mutex_init(&cache->lock, NULL);
    slu_made();
    return cache;
}

struct sluice_mr *sluice_mr_cache_get(struct sluice_mr_cache *cache, const void *addr,
                                      size_t length)
{
    SLU_UNCANCELLED_BLOCK;
    int error = check_range(cache, addr, length);
    struct range range = {(uintptr_t)addr, (uintptr_t)addr + length};
    struct slu_cached *cached = NULL;

    if (error < 0)
        return slu_none(error);
    pthread_mutex_lock(&cache->lock);
    error = find_or_add(cache, range, &cached);
    if (SLU_LIKELY(error == 0)) {
        cache->info.used += cached->uses == 0;
        cached->uses++;
        if (cached->place != NOWHERE)
            move(cache, cached, NOWHERE);
    }
    pthread_mutex_unlock(&cache->lock);
    return error == 0 ? cached->mr : slu_none(error);
}

static void put(struct sluice_mr_cache *cache, struct slu_cached *cached)
{
    if (--cached->uses > 0)
        return;
    cache->info.used--;
    if (cached->place == RETIRED)
        release(cache, cached);
    else
        move(cache, cached, UNUSED);
}

int sluice_mr_cache_put(struct sluice_mr_cache *cache, struct sluice_mr *mr)
{
    SLU_UNCANCELLED_BLOCK;
    int error = check_cache(cache);
    struct slu_cached *cached;
    bool given;

    if (error < 0)
        return error;
    if (mr == NULL || mr->magic != SLU_MAGIC_MR)
        return slu_misuse(EINVAL, "put: not a memory region%s", slu_none_hint(mr));
    cached = mr->cached;
    if (cached == NULL || cached->cache != cache)
        return slu_misuse(EINVAL, "put: the region is not of this cache");
    pthread_mutex_lock(&cache->lock);
    given = cached->uses > 0;
    if (given)
        put(cache, cached);
    pthread_mutex_unlock(&cache->lock);
    if (!given)
        return slu_misuse(EINVAL, "put: the region was put back before");
    return 0;
}

static bool forget_retired(struct sluice_mr_cache *cache, struct range range)
{
    struct slu_cached *next;
    bool gone = true;

    for (struct slu_cached *cached = TAILQ_FIRST(&cache->lists[RETIRED]); cached; cached = next) {
        next = TAILQ_NEXT(cached, links);
        if (overlap(cached->range, range) && (cached->uses > 0 || !release(cache, cached)))
            gone = false;
    }
    return gone;
}

int sluice_mr_cache_forget(struct sluice_mr_cache *cache, const void *addr, size_t length)
{
    SLU_UNCANCELLED_BLOCK;
    struct range range = {(uintptr_t)addr, (uintptr_t)addr + length};
    int error = check_range(cache, addr, length);
    bool gone;

    if (error < 0)
        return error;
    pthread_mutex_lock(&cache->lock);
    gone = forget_found(cache, range);
    gone = forget_retired(cache, range) && gone;
    pthread_mutex_unlock(&cache->lock);
    if (!gone)
        return slu_fail(EBUSY,
                        "memory of %zu bytes at %p is in use: put its regions back once their "
                        "work is complete",
                        length, addr);
    return 0;
}

int sluice_mr_cache_query(struct sluice_mr_cache *cache, struct sluice_mr_cache_info *info)
{
    struct sluice_mr_cache_info now;
    int error = check_cache(cache);

    if (error == 0)
        error = SLU_INFO_CHECK(sluice_mr_cache_info, info);
    if (error < 0)
        return error;
    pthread_mutex_lock(&cache->lock);
    now = cache->info;
    pthread_mutex_unlock(&cache->lock);
    slu_info_copy(info, &now, sizeof now);
    return 0;
}

int sluice_mr_cache_destroy(struct sluice_mr_cache *cache)
{
    SLU_UNCANCELLED_BLOCK;
    static const struct range all = {0, UINTPTR_MAX};
    uint32_t channels;
    bool gone;
    int error;

    if (cache == NULL)
        return 0;
    error = check_cache(cache);
    if (error < 0)
        return error;
    channels = atomic_load(&cache->channels);
    if (channels > 0)
        return slu_fail(EBUSY, "the cache of regions is used by %u channel%s: close them first",
                        channels, SLU_S(channels));
    gone = forget_found(cache, all);
    gone = forget_retired(cache, all) && gone;
    if (!gone)
        return slu_fail(
            EBUSY, "the cache has %u regions in use: put them back once their work is complete",
            cache->info.regions);
    cache->magic = SLU_MAGIC_DEAD;
    pthread_mutex_destroy(&cache->lock);
    free(cache->index);
    free(cache->ends);
    slu_pd_release(cache->pd);
    free(cache);
    return 0;
}

/* Calls for channels. */

int slu_mr_cache_check(const struct sluice_mr_cache *cache, const struct sluice_pd *pd)
{
    int error = check_cache(cache);

    if (error == 0 && cache->pd != pd)
        error = slu_misuse(EINVAL, "the cache of a channel is of another protection domain");
    return error;
}

void slu_mr_cache_hold(struct sluice_mr_cache *cache)
{
    atomic_fetch_add(&cache->channels, 1);
}

void slu_mr_cache_release(struct sluice_mr_cache *cache)
{
    atomic_fetch_sub(&cache->channels, 1);
}

bool slu_mr_cache_is_writable(const struct sluice_mr_cache *cache)
{
    return (cache->access & SLUICE_ACCESS_LOCAL_WRITE) != 0;
}
