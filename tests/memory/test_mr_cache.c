/* SPDX-License-Identifier: MIT */
/*
 * The cache of registrations: ranges that it finds and registers, which it evicts and when, and
 * that regions in use stay; by requests, and beside a model.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../support/group.h"
#include "../support/pair.h"
#include "../support/process.h"

#define PAGES 64

static size_t page;

/* A cache beside a connection, and memory to be found in it. */
struct work {
    struct pair pair;
    struct sluice_mr_cache *cache;
    uint8_t *bytes;
};

static void work_open(struct work *work, const struct sluice_mr_cache_attr *attr)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    pair_open(&work->pair, NULL);
    work->cache = made(sluice_mr_cache_create(work->pair.sides.pds[0], ACCESS_ALL, attr));
    work->bytes =
        mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(work->bytes != MAP_FAILED, "%s", strerror(errno));
}

static void work_close(struct work *work)
{
    require_ok(sluice_mr_cache_destroy(work->cache));
    munmap(work->bytes, PAGES * page);
    pair_close(&work->pair);
}

static struct sluice_mr *get(const struct work *work, size_t from, size_t length)
{
    struct sluice_mr *mr = sluice_mr_cache_get(work->cache, work->bytes + from, length);
    struct sluice_sge sge;

    require(mr, "%zu bytes at %zu: %s", length, from, sluice_last_error());
    require_ok(sluice_mr_sge_at(mr, work->bytes + from, length, &sge));
    return mr;
}

static void put(const struct work *work, struct sluice_mr *mr)
{
    require_ok(sluice_mr_cache_put(work->cache, mr));
}

static struct sluice_mr_cache_info query(const struct work *work)
{
    struct sluice_mr_cache_info info = {.size = sizeof info};

    require_ok(sluice_mr_cache_query(work->cache, &info));
    return info;
}

/* The second time the range is found, as are all other bytes of its pages, and no others. */
TEST(registered_range_is_found)
{
    struct sluice_mr_cache_info info;
    struct sluice_mr *mr, *other;
    struct work work;

    work_open(&work, NULL);
    mr = get(&work, 100, 50);
    require(sluice_mr_length(mr) == page, "%zu", sluice_mr_length(mr));
    other = get(&work, 0, page);
    require(other == mr, "another one%s", "");
    put(&work, other);
    put(&work, mr);
    require(get(&work, page - 1, 1) == mr, "another one%s", "");
    put(&work, mr);
    other = get(&work, page, 1);
    require(other != mr, "the same%s", "");
    info = query(&work);
    require(info.hits == 2 && info.misses == 2 && info.regions == 2 && info.used == 1 &&
                info.bytes == 2 * page && info.evictions == 0,
            "%llu hits, %llu misses, %u regions", (unsigned long long)info.hits,
            (unsigned long long)info.misses, info.regions);
    put(&work, other);
    work_close(&work);
}

/* A region serves requests of both sides; regions of posted requests are not evicted. */
TEST(regions_of_the_cache_are_regions)
{
    struct sluice_completion completion;
    struct sluice_handle handle;
    struct sluice_mr *mr, *far;
    struct sluice_remote_mr remote;
    struct sluice_request receive = {.opcode = SLUICE_OP_RECEIVE, .sge_count = 1};
    struct sluice_sge sge;
    struct work work;

    work_open(&work, NULL);
    far = made(sluice_mr_alloc(work.pair.sides.pds[1], page, ACCESS_ALL));
    require_ok(sluice_mr_remote(far, &remote));
    mr = get(&work, 0, page);
    require_ok(sluice_mr_sge_at(mr, work.bytes, page, &sge));
    pattern_fill(work.bytes, page, 3);
    require_ok(sluice_channel_write(work.pair.channels[0], &sge, 1, &remote, DEADLINE));
    pattern_check(sluice_mr_addr(far), page, 3);

    receive.sge = sge;
    require_result(sluice_channel_post(work.pair.channels[0], &receive, 1, DEADLINE, &handle), 1);
    require_result(sluice_mr_cache_forget(work.cache, work.bytes, 1), -EBUSY);
    put(&work, mr);
    require_result(sluice_mr_cache_forget(work.cache, work.bytes, 1), -EBUSY);
    require_result(sluice_mr_cache_destroy(work.cache), -EBUSY);
    require(get(&work, 5, 5) == mr, "it is gone%s", "");
    put(&work, mr);
    require_ok(sluice_channel_send(work.pair.channels[1], NULL, 0, DEADLINE));
    require_ok(sluice_channel_wait(work.pair.channels[0], &handle, DEADLINE, &completion));
    require_ok(sluice_mr_cache_forget(work.cache, work.bytes, 1));
    require(query(&work).regions == 0, "%u regions", query(&work).regions);
    require_ok(sluice_mr_deregister(far));
    work_close(&work);
}

/* Maps new pages in place of others, as munmap(2) and malloc(3) may do. */
static void renew_page(const struct work *work, uint8_t value)
{
    void *again = mmap(work->bytes, page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

    require(again == work->bytes, "%s", strerror(errno));
    memset(work->bytes, value, page);
}

/* Writes the first page by a region of the cache. Returns the byte that the far side gets. */
static uint8_t write_page(const struct work *work, struct sluice_mr *far)
{
    struct sluice_mr *mr = get(work, 0, page);
    struct sluice_remote_mr remote;
    struct sluice_sge sge;
    const uint8_t *bytes = sluice_mr_addr(far);

    require_ok(sluice_mr_sge_at(mr, work->bytes, page, &sge));
    require_ok(sluice_mr_remote(far, &remote));
    require_ok(sluice_channel_write(work->pair.channels[0], &sge, 1, &remote, DEADLINE));
    put(work, mr);
    value_check(bytes, page, bytes[0]);
    return bytes[0];
}

/*
 * Shows why memory must be forgotten before it is unmapped: Soft-RoCE, like any device, goes on
 * using the registered pages.
 */
TEST(remapped_range_keeps_its_old_memory)
{
    struct sluice_mr *far;
    struct work work;

    work_open(&work, NULL);
    far = made(sluice_mr_alloc(work.pair.sides.pds[1], page, ACCESS_ALL));
    memset(work.bytes, 1, page);
    require(write_page(&work, far) == 1, "not what is there%s", "");
    renew_page(&work, 2);
    if (!device_is_soft() && !device_is_pretend())
        require(write_page(&work, far) == 1, "the new page%s", "");
    require_ok(sluice_mr_cache_forget(work.cache, work.bytes, page));
    require(write_page(&work, far) == 2, "the old page%s", "");
    require_ok(sluice_mr_cache_forget(work.cache, work.bytes, page));
    renew_page(&work, 3);
    require(write_page(&work, far) == 3, "the old page%s", "");
    require_ok(sluice_mr_deregister(far));
    work_close(&work);
}

/* A range in the middle of others replaces them; a caller that uses one of those keeps it. */
TEST(a_longer_range_takes_the_place_of_others)
{
    struct sluice_mr *first, *second, *whole;
    struct work work;

    work_open(&work, NULL);
    first = get(&work, 0, 2 * page);
    second = get(&work, 3 * page, page);
    put(&work, second);
    whole = get(&work, page, 2 * page + 1);
    require(whole != first && sluice_mr_addr(whole) == work.bytes &&
                sluice_mr_length(whole) == 4 * page,
            "%zu bytes", sluice_mr_length(whole));
    require(query(&work).regions == 2 && query(&work).bytes == 6 * page &&
                query(&work).retired == 1 && query(&work).used == 2,
            "%u regions, %u retired", query(&work).regions, query(&work).retired);
    require(get(&work, 0, 1) == whole, "the old one is found%s", "");
    put(&work, whole);
    require_result(sluice_mr_cache_forget(work.cache, work.bytes, 1), -EBUSY);
    put(&work, first);
    require(query(&work).regions == 1, "%u regions", query(&work).regions);
    put(&work, whole);
    require_result(sluice_mr_cache_put(work.cache, whole), -EINVAL);
    work_close(&work);
}

/* The least recently used regions are evicted, and none that is in use. */
TEST(limits_hold)
{
    struct sluice_mr_cache_attr attr = {.size = sizeof attr, .max_regions = 3};
    struct sluice_mr *mrs[4];
    struct work work;

    work_open(&work, &attr);
    for (size_t i = 0; i < 3; i++)
        mrs[i] = get(&work, 2 * i * page, 1);
    require_null(sluice_mr_cache_get(work.cache, work.bytes + 6 * page, 1), ENOBUFS, "3 regions");
    put(&work, mrs[1]);
    put(&work, mrs[0]);
    put(&work, mrs[2]);
    mrs[3] = get(&work, 6 * page, 1); /* in the place of 1 */
    require(query(&work).evictions == 1 && query(&work).regions == 3, "%u regions",
            query(&work).regions);
    require(get(&work, 0, 1) == mrs[0] && get(&work, 4 * page, 1) == mrs[2], "others went%s", "");
    require(query(&work).misses == 5, "%llu", (unsigned long long)query(&work).misses);
    put(&work, mrs[0]);
    put(&work, mrs[2]);
    put(&work, mrs[3]);
    work_close(&work);

    attr = (struct sluice_mr_cache_attr){.size = sizeof attr, .max_bytes = 4 * page};
    work_open(&work, &attr);
    require_null(sluice_mr_cache_get(work.cache, work.bytes, 4 * page + 1), ENOBUFS, "above");
    /* An overlapping region is evicted if both together exceed the limit. */
    put(&work, get(&work, 0, 4 * page));
    put(&work, get(&work, 3 * page, 2 * page));
    require(query(&work).regions == 1 && query(&work).bytes == 2 * page, "%llu bytes",
            (unsigned long long)query(&work).bytes);
    for (size_t i = 0; i < PAGES / 4; i++)
        put(&work, get(&work, 4 * i * page, (i % 4 + 1) * page));
    require(query(&work).bytes <= 4 * page, "%llu bytes", (unsigned long long)query(&work).bytes);
    work_close(&work);
}

/* A longer range that cannot be registered takes the place of none, used or unused. */
TEST(a_refused_range_replaces_nothing)
{
    struct sluice_mr_cache_attr attr = {.size = sizeof attr, .max_regions = 2};
    struct sluice_mr *used, *other;
    struct work work;

    work_open(&work, &attr);
    used = get(&work, 0, page);
    other = get(&work, 2 * page, page);
    require_null(sluice_mr_cache_get(work.cache, work.bytes, 2 * page), ENOBUFS, "2 regions");
    require(get(&work, 0, 1) == used && query(&work).retired == 0, "it is retired%s", "");
    put(&work, used);
    put(&work, used);
    put(&work, other);
    require(query(&work).regions == 2, "%u regions", query(&work).regions);
    work_close(&work);

    work_open(&work, NULL);
    used = get(&work, 0, page);
    other = get(&work, 2 * page, page);
    put(&work, other);
    require(mprotect(work.bytes + 3 * page, page, PROT_NONE) == 0, "%s", strerror(errno));
    require_null(sluice_mr_cache_get(work.cache, work.bytes, 4 * page), EFAULT, "mapped");
    require(get(&work, 0, 1) == used && get(&work, 2 * page, 1) == other, "others%s", "");
    require(query(&work).regions == 2 && query(&work).misses == 3, "%u", query(&work).regions);
    put(&work, other);
    put(&work, used);
    put(&work, used);
    work_close(&work);
}

/* A program may have unmapped pages of a region that it did not forget. */
TEST(a_region_of_unmapped_pages_is_replaced_by_the_range_alone)
{
    struct sluice_mr *mr;
    struct work work;

    work_open(&work, NULL);
    put(&work, get(&work, 0, 2 * page));
    require(mprotect(work.bytes, page, PROT_NONE) == 0, "%s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        mr = get(&work, page, 2 * page);
        require(sluice_mr_addr(mr) == work.bytes + page && sluice_mr_length(mr) == 2 * page,
                "%zu bytes", sluice_mr_length(mr));
        put(&work, mr);
    }
    require(query(&work).regions == 1 && query(&work).misses == 2, "%u", query(&work).regions);
    work_close(&work);
}

/* A failed registration changes nothing, except that unused regions may be evicted. */
TEST(wrong_arguments_are_refused)
{
    struct sluice_mr_cache_info info = {.size = 8};
    struct sluice_mr_cache_attr attr = {.size = 4};
    struct sluice_mr *mr, *other;
    struct work work;

    work_open(&work, NULL);
    mr = get(&work, 0, 1);
    other = sluice_mr_register(work.pair.sides.pds[0], work.bytes, page, ACCESS_ALL);
    require_null(sluice_mr_cache_get(NULL, work.bytes, 1), EINVAL, "NULL");
    require_null(sluice_mr_cache_get(work.cache, NULL, 1), EINVAL, "address");
    require_null(sluice_mr_cache_get(work.cache, work.bytes, 0), EINVAL, "at least 1");
    require_null(sluice_mr_cache_get(work.cache, work.bytes, SIZE_MAX), EINVAL, "wraps");
    require_null(sluice_mr_cache_get(work.cache, (void *)UINTPTR_MAX, 1), EINVAL, "wraps");
    require_result(sluice_mr_cache_put(work.cache, other), -EINVAL);
    require_result(sluice_mr_cache_put(work.cache, NULL), -EINVAL);
    require_result(sluice_mr_deregister(mr), -EINVAL);
    require_result(sluice_mr_cache_put(NULL, mr), -EINVAL);
    require_result(sluice_mr_cache_forget(work.cache, work.bytes, 0), -EINVAL);
    require_result(sluice_mr_cache_forget(NULL, work.bytes, 1), -EINVAL);
    require_result(sluice_mr_cache_query(work.cache, &info), -EINVAL);
    require_result(sluice_mr_cache_query(work.cache, NULL), -EINVAL);
    require_null(sluice_mr_cache_create(NULL, ACCESS_ALL, NULL), EINVAL, "domain");
    require_null(sluice_mr_cache_create(work.pair.sides.pds[0], 1u << 20, NULL), EINVAL, "access");
    require_null(sluice_mr_cache_create(work.pair.sides.pds[0], 0, &attr), EINVAL, "size");
    attr = (struct sluice_mr_cache_attr){.size = sizeof attr, .max_regions = (1u << 20) + 1};
    require_null(sluice_mr_cache_create(work.pair.sides.pds[0], 0, &attr), EINVAL, "max_regions");
    require_ok(sluice_mr_cache_destroy(NULL));
    /* Protected and not unmapped, as another thread may map something there. */
    require(mprotect(work.bytes + 8 * page, page, PROT_NONE) == 0, "%s", strerror(errno));
    require_null(sluice_mr_cache_get(work.cache, work.bytes + 7 * page, 2 * page), EFAULT,
                 "mapped");
    require(query(&work).regions == 1 && query(&work).misses == 2, "%u", query(&work).regions);
    put(&work, mr);
    require_ok(sluice_mr_deregister(other));
    work_close(&work);
}

/* A model knows which pages must be found, and which regions are held. */
TEST(random_ranges)
{
    enum { HELD = 12 };
    struct sluice_mr_cache_attr attr = {.size = sizeof attr, .max_regions = 24};
    struct sluice_mr *held[HELD] = {NULL};
    size_t from[HELD], length[HELD];
    uint64_t state = 7, gets = 0;
    struct work work;

    work_open(&work, &attr);
    for (int round = 0; round < (short_run() ? 5000 : 50000); round++) {
        size_t i = (state = state * 6364136223846793005u + 1442695040888963407u) >> 40;
        size_t at = i / 64 % (PAGES * page), most = PAGES * page - at;
        size_t slot = i % HELD;

        if (held[slot]) {
            struct sluice_sge sge;

            /* A region covers its bytes as long as it is held. */
            require_ok(sluice_mr_sge_at(held[slot], work.bytes + from[slot], length[slot], &sge));
            put(&work, held[slot]);
            held[slot] = NULL;
        } else if (i % 13 == 0) {
            int result =
                sluice_mr_cache_forget(work.cache, work.bytes + at, most < page ? most : page);

            require(result == 0 || result == -EBUSY, "%d", result);
        } else {
            from[slot] = at;
            length[slot] = i % 7 * page + 1 < most ? i % 7 * page + 1 : most;
            held[slot] = get(&work, from[slot], length[slot]);
            gets++;
        }
    }
    require(query(&work).hits + query(&work).misses == gets, "%llu gets", (unsigned long long)gets);
    for (size_t i = 0; i < HELD; i++)
        if (held[i])
            put(&work, held[i]);
    require(query(&work).used == 0, "%u used", query(&work).used);
    work_close(&work);
}

struct worker {
    const struct work *work;
    uint64_t seed;
};

static void *get_and_put(void *argument)
{
    struct worker *worker = argument;
    uint64_t state = worker->seed;

    for (int round = 0; round < (short_run() ? 2000 : 20000); round++) {
        size_t i = (state = state * 6364136223846793005u + 1442695040888963407u) >> 40;
        size_t from = i % (PAGES - 4) * page;
        struct sluice_mr *mr = get(worker->work, from, i / 64 % (3 * page) + 1);

        if (i % 17 == 0)
            (void)!sluice_mr_cache_forget(worker->work->cache, worker->work->bytes, page);
        put(worker->work, mr);
    }
    return NULL;
}

TEST(threads_share_it)
{
    enum { THREADS = 4 };
    struct sluice_mr_cache_attr attr = {.size = sizeof attr, .max_regions = 16};
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    struct work work;

    work_open(&work, &attr);
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){&work, i + 1};
        require(pthread_create(&threads[i], NULL, get_and_put, &workers[i]) == 0, "%s",
                strerror(errno));
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    require(query(&work).used == 0 && query(&work).regions <= 16, "%u regions",
            query(&work).regions);
    work_close(&work);
}

int main(void)
{
    return RUN_GROUPS("mr_cache", {"self", WIRE_SELF, 60}, {"shm", WIRE_SHM, 60},
                      {"tcp", WIRE_TCP, 60});
}
