/* SPDX-License-Identifier: MIT */
/* Regions that are released, or waited for, while posted requests name them. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/pair.h"
#include "driver.h"

#define BYTES 4096

/* The callback of a release: how often it was called, and in which thread. */
struct told {
    atomic_uint count;
    pthread_t thread;
    void *memory; /* freed then, if it is not NULL */
};

static void tell(void *argument)
{
    struct told *told = argument;
    told->thread = pthread_self();
    free(told->memory);
    told->memory = NULL;
    atomic_fetch_add(&told->count, 1);
}

/* Registers memory of the program that is freed with the region. */
static struct sluice_mr *own_region(struct sluice_pd *pd, struct told *told, struct sluice_sge *sge)
{
    *told = (struct told){.memory = malloc(BYTES)};
    require(told->memory, "no memory%s", "");
    memset(told->memory, 0, BYTES);
    struct sluice_mr *mr = made(sluice_mr_register(pd, told->memory, BYTES, ACCESS_ALL));
    require_ok(sluice_mr_sge(mr, 0, 64, sge));
    return mr;
}

/* A receive on it is posted. */
static struct sluice_mr *busy_region(struct pair *pair, struct told *told)
{
    struct sluice_sge sge;
    struct sluice_mr *mr = own_region(pair->sides.pds[0], told, &sge);
    require_result(sluice_channel_post_receive(pair->channels[0], &sge, 1, DEADLINE, NULL), 0);
    return mr;
}

static void look_until_told(struct sluice_channel *channel, struct told *told, uint32_t count)
{
    struct sluice_completion completion;
    while (atomic_load(&told->count) < count) {
        require(sluice_channel_poll(channel, &completion, 1) >= 0, "%s", sluice_last_error());
    }
}

TEST(unused_region_ends_at_once)
{
    struct pair pair;
    struct told told;
    struct sluice_sge sge;
    pair_open(&pair, NULL);
    struct sluice_mr *mr = own_region(pair.sides.pds[0], &told, &sge);
    require_result(sluice_mr_release(mr, tell, &told), 0);
    require_result(told.count, 1);
    mr = sluice_mr_alloc(pair.sides.pds[0], BYTES, ACCESS_ALL);
    require_result(sluice_mr_release(mr, NULL, NULL), 0);
    pair_works(&pair);
    pair_close(&pair);
    require_result(told.count, 1);
}

/* A region ends with the last request that uses it, and not before. */
TEST(region_ends_behind_its_work)
{
    struct pair pair;
    struct told told;
    struct sluice_completion completion;
    pair_open(&pair, NULL);
    struct sluice_mr *mr = busy_region(&pair, &told);
    require_result(sluice_mr_release(mr, tell, &told), 1);
    for (uint32_t i = 0; i < 1000; i++) {
        require_result(sluice_channel_poll(pair.channels[0], &completion, 1), 0);
    }
    require_result(told.count, 0);
    require_error(sluice_mr_deregister(mr), -EINVAL, "");
    require_ok(sluice_channel_send(pair.channels[1], NULL, 0, DEADLINE));
    look_until_told(pair.channels[0], &told, 1);
    require(pthread_equal(told.thread, pthread_self()), "another thread%s", "");
    pair_works(&pair);
    pair_close(&pair);
    require_result(told.count, 1);
}

/* Several regions, each of which ends at its own time; other requests go on. */
TEST(many_regions_end_one_by_one)
{
    enum { REGIONS = 20 };
    struct pair pair;
    struct told told[REGIONS];
    pair_open(&pair, NULL);
    for (uint32_t i = 0; i < REGIONS; i++) {
        require_result(sluice_mr_release(busy_region(&pair, &told[i]), tell, &told[i]), 1);
    }
    for (uint32_t i = 0; i < REGIONS; i++) {
        require_ok(sluice_channel_send(pair.channels[1], NULL, 0, DEADLINE));
        look_until_told(pair.channels[0], &told[i], 1);
        for (uint32_t later = i + 1; later < REGIONS; later++) {
            require_result(told[later].count, 0);
        }
    }
    pair_close(&pair);
}

TEST(flush_and_arm_end_them)
{
    struct pair pair;
    struct told told;
    pair_open(&pair, NULL);
    require_result(sluice_mr_release(busy_region(&pair, &told), tell, &told), 1);
    require_ok(sluice_channel_send(pair.channels[1], NULL, 0, DEADLINE));
    require_ok(sluice_channel_flush(pair.channels[0], DEADLINE));
    require_result(told.count, 1);

    struct sluice_completion completion;
    require_result(sluice_mr_release(busy_region(&pair, &told), tell, &told), 1);
    require_ok(sluice_channel_send(pair.channels[1], NULL, 0, DEADLINE));
    require_ok(sluice_channel_next(pair.channels[0], DEADLINE, &completion));
    require_ok(sluice_channel_next(pair.channels[0], DEADLINE, &completion));
    require(sluice_channel_arm(pair.channels[0], NULL) >= 0, "%s", sluice_last_error());
    require_result(told.count, 1);
    pair_close(&pair);
}

/* Cancelled requests name no memory any more, however they were cancelled. */
TEST(close_ends_them)
{
    struct pair pair;
    struct told told;
    pair_open(&pair, NULL);
    require_result(sluice_mr_release(busy_region(&pair, &told), tell, &told), 1);
    sluice_channel_close(pair.channels[0]);
    pair.channels[0] = NULL;
    require_result(told.count, 1);
    pair_close(&pair);
}

TEST(reset_ends_them)
{
    struct pair pair;
    struct told told;
    pair_open(&pair, NULL);
    require_result(sluice_mr_release(busy_region(&pair, &told), tell, &told), 1);
    pair_reset(&pair);
    look_until_told(pair.channels[0], &told, 1);
    pair_works(&pair);
    pair_close(&pair);
}

/* A prepared list names its memory until it is freed. */
TEST(list_holds_its_memory)
{
    struct pair pair;
    struct told told;
    struct sluice_sge sge;
    pair_open(&pair, NULL);
    struct sluice_mr *mr = own_region(pair.sides.pds[0], &told, &sge);
    struct sluice_request request = request_of(SLUICE_OP_SEND, 0, &sge);
    struct sluice_list *list = made(sluice_channel_list_prepare(pair.channels[0], &request, 1));
    require_result(sluice_mr_release(mr, tell, &told), 1);
    require_ok(sluice_channel_flush(pair.channels[0], DEADLINE));
    require_result(told.count, 0);
    sluice_list_free(list);
    require_result(told.count, 1);
    pair_close(&pair);
}

/* The callback may make and release regions itself. */
struct chain {
    struct sluice_pd *pd;
    uint32_t left;
};

static void release_next(void *argument)
{
    struct chain *chain = argument;
    if (chain->left-- == 0) {
        return;
    }
    struct sluice_mr *mr = made(sluice_mr_alloc(chain->pd, BYTES, ACCESS_ALL));
    require_result(sluice_mr_release(mr, release_next, chain), 0);
}

TEST(function_releases_the_next)
{
    struct pair pair;
    struct sluice_sge sge;
    struct told told;
    pair_open(&pair, NULL);
    struct chain chain = {.pd = pair.sides.pds[0], .left = 5};
    struct sluice_mr *mr = own_region(pair.sides.pds[0], &told, &sge);
    require_result(sluice_channel_post_receive(pair.channels[0], &sge, 1, DEADLINE, NULL), 0);
    require_result(sluice_mr_release(mr, release_next, &chain), 1);
    require_ok(sluice_channel_send(pair.channels[1], NULL, 0, DEADLINE));
    require_ok(sluice_channel_flush(pair.channels[0], DEADLINE));
    require(chain.left == UINT32_MAX, "%u left", chain.left);
    free(told.memory);
    pair_close(&pair);
}

/* One thread drives the channel, and another releases its memory or waits for it. */
TEST(another_thread_drives)
{
    enum { REGIONS = 16 };
    struct pair pair;
    struct told told[2 * REGIONS];
    struct sluice_mr *mrs[2 * REGIONS];
    pthread_t thread;
    pair_open(&pair, NULL);
    struct driver driver = {.pair = &pair};
    for (uint32_t i = 0; i < 2 * REGIONS; i++) {
        mrs[i] = busy_region(&pair, &told[i]);
    }
    require_error(sluice_mr_deregister_wait(mrs[0], 0), -ETIMEDOUT, "used");
    require_error(sluice_mr_deregister_wait(mrs[0], SLUICE_MS(5)), -ETIMEDOUT, "used");
    require(pthread_create(&thread, NULL, drive, &driver) == 0, "no thread%s", "");
    for (uint32_t i = 0; i < REGIONS; i++) {
        require_result(sluice_mr_release(mrs[2 * i], tell, &told[2 * i]), 1);
        require_ok(sluice_channel_send(pair.channels[1], NULL, 0, DEADLINE));
        require_ok(sluice_channel_send(pair.channels[1], NULL, 0, DEADLINE));
        require_ok(sluice_mr_deregister_wait(mrs[2 * i + 1], DEADLINE));
        free(told[2 * i + 1].memory);
    }
    for (uint32_t i = 0; i < REGIONS; i++) {
        while (atomic_load(&told[2 * i].count) == 0) {
            sched_yield();
        }
    }
    atomic_store(&driver.stop, true);
    pthread_join(thread, NULL);
    pair_close(&pair);
    for (uint32_t i = 0; i < REGIONS; i++) {
        require_result(told[2 * i].count, 1);
    }
}

/* Each thread looks for released regions in both channels, and neither delays the other. */
TEST(two_threads_end_released_regions)
{
    enum { THREADS = 2, ROUNDS = 20 };
    struct pair pairs[THREADS];
    struct driver drivers[THREADS];
    struct told told[THREADS];
    pthread_t threads[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        pair_open(&pairs[i], NULL);
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < THREADS; i++) {
            require_result(sluice_mr_release(busy_region(&pairs[i], &told[i]), tell, &told[i]), 1);
            drivers[i] = (struct driver){.pair = &pairs[i]};
            require(pthread_create(&threads[i], NULL, drive, &drivers[i]) == 0, "no thread%s", "");
        }
        for (uint32_t i = 0; i < THREADS; i++) {
            require_ok(sluice_channel_send(pairs[i].channels[1], NULL, 0, DEADLINE));
            while (atomic_load(&told[i].count) == 0) {
                sched_yield();
            }
        }
        for (uint32_t i = 0; i < THREADS; i++) {
            atomic_store(&drivers[i].stop, true);
            pthread_join(threads[i], NULL);
            require_result(told[i].count, 1);
        }
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pair_close(&pairs[i]);
    }
}

/* The child has none of the parent's regions, and calls no callback. */
TEST(child_of_fork_forgets_them)
{
    struct pair pair;
    struct told told;
    int status;
    pair_open(&pair, NULL);
    require_result(sluice_mr_release(busy_region(&pair, &told), tell, &told), 1);
    pid_t child = fork();
    if (child == 0) {
        struct sluice_context *context = sluice_context_open(test_device(), NULL);
        struct sluice_pd *pd = sluice_pd_alloc(context);
        struct sluice_mr *mr = sluice_mr_alloc(pd, BYTES, ACCESS_ALL);
        int result = mr ? sluice_mr_release(mr, NULL, NULL) : -1;
        _exit(result == 0 && told.count == 0 ? 0 : 1);
    }
    require(child > 0 && waitpid(child, &status, 0) == child, "%s", strerror(errno));
    require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", (unsigned)status);
    require_ok(sluice_channel_send(pair.channels[1], NULL, 0, DEADLINE));
    require_ok(sluice_channel_flush(pair.channels[0], DEADLINE));
    require_result(told.count, 1);
    pair_close(&pair);
}

TEST(wrong_arguments)
{
    struct pair pair;
    struct told told;
    struct sluice_sge sge;
    pair_open(&pair, NULL);
    struct sluice_mr *mr = own_region(pair.sides.pds[0], &told, &sge);
    require_error(sluice_mr_release(NULL, tell, &told), -EINVAL, "NULL");
    require_error(sluice_mr_release((struct sluice_mr *)(void *)&pair, tell, &told), -EINVAL,
                  "not a memory region");
    require_error(sluice_mr_deregister_wait(mr, -1), -EINVAL, "timeout -1");
    require_ok(sluice_mr_deregister_wait(NULL, 0));
    require_error(sluice_mr_deregister_wait((struct sluice_mr *)(void *)&pair, 0), -EINVAL,
                  "not a memory region");
    struct sluice_mr_cache *cache = sluice_mr_cache_create(pair.sides.pds[0], ACCESS_ALL, NULL);
    struct sluice_mr *cached = made(sluice_mr_cache_get(cache, told.memory, BYTES));
    require_error(sluice_mr_release(cached, tell, &told), -EINVAL, "cache");
    require_error(sluice_mr_deregister_wait(cached, 0), -EINVAL, "cache");
    require_ok(sluice_mr_cache_put(cache, cached));
    require_ok(sluice_mr_cache_destroy(cache));
    require_result(told.count, 0);
    require_ok(sluice_mr_deregister_wait(mr, 0));
    free(told.memory);
    pair_close(&pair);
}

int main(void)
{
    return run_tests("release", 20);
}
