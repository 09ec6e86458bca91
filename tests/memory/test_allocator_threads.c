/* SPDX-License-Identifier: MIT */
/* Threads and allocators: threads that pass blocks on, end, wait, free twice at once, or fork. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocator.h"
#include "driver.h"

TEST(free_waits_for_another_thread)
{
    enum { BLOCKS = 16 };
    void *blocks[BLOCKS];
    pthread_t thread;
    struct work work;

    work_open(&work, NULL);
    struct driver driver = {.pair = &work.pair};
    for (uint32_t i = 0; i < BLOCKS; i++) {
        blocks[i] = alloc(&work, 500, 0);
        struct sluice_sge sge = sge_of(&work, blocks[i], 500);
        post_receive(&work, &sge, 1);
    }
    require_error(sluice_allocator_free_wait(work.allocator, blocks[0], 0), -ETIMEDOUT, "used");
    require_result(sluice_allocator_free_wait(work.allocator, blocks[0], -1), -EINVAL);
    require_result(sluice_allocator_free_wait(work.allocator, &work, SLUICE_S(1)), -EINVAL);
    require(pthread_create(&thread, NULL, drive, &driver) == 0, "no thread%s", "");
    for (uint32_t i = 0; i < BLOCKS; i++) {
        require_ok(sluice_channel_send(work.pair.channels[1], NULL, 0, DEADLINE));
        require_ok(sluice_allocator_free_wait(work.allocator, blocks[i], DEADLINE));
    }
    atomic_store(&driver.stop, true);
    pthread_join(thread, NULL);
    work_close(&work);
}

/* Threads that pass blocks on. */
struct exchange {
    struct work *work;
    _Atomic(uint8_t *) places[64];
    uint32_t rounds;
    atomic_uint freed;
};

static void *exchange_blocks(void *argument)
{
    struct exchange *exchange = argument;
    uint64_t state = (uintptr_t)&state;

    for (uint32_t i = 0; i < exchange->rounds; i++) {
        size_t random = (state = state * 6364136223846793005u + 1442695040888963407u) >> 33;
        size_t size = 8 + random / 64 % (random % 50 == 0 ? 80000 : 2000);
        uint8_t *block = alloc(exchange->work, size, 0);

        memcpy(block, &size, sizeof size);
        memset(block + sizeof size, (int)size, size - sizeof size);
        block = atomic_exchange(&exchange->places[random % 64], block);
        if (block == NULL)
            continue;
        memcpy(&size, block, sizeof size);
        value_check(block + sizeof size, size - sizeof size, (uint8_t)size);
        if (i % 5 == 0)
            sge_of(exchange->work, block, 1);
        free_block(exchange->work, block);
        if (i % 1000 == 999)
            require_ok(sluice_allocator_trim(exchange->work->allocator));
    }
    return NULL;
}

/* Blocks that a thread keeps are returned when it ends. thread_blocks: some, the fewest, none. */
TEST(threads_pass_blocks_on, .times = 3)
{
    static const uint32_t kept[] = {0, 2, SLUICE_ZERO};
    const struct sluice_allocator_attr attr = {
        .size = sizeof attr, .slab_bytes = SLAB, .thread_blocks = kept[_i]};
    pthread_t threads[4];
    struct exchange exchange = {.rounds = short_run() ? 1000 : 30000};
    struct work work;

    work_open(&work, &attr);
    exchange.work = &work;
    for (uint32_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT(threads); i++)
            require(pthread_create(&threads[i], NULL, exchange_blocks, &exchange) == 0,
                    "no thread%s", "");
        for (size_t i = 0; i < COUNT(threads); i++)
            pthread_join(threads[i], NULL);
        require(query(&work).kept_bytes == 0, "%llu bytes",
                (unsigned long long)query(&work).kept_bytes);
    }
    for (size_t i = 0; i < COUNT(exchange.places); i++)
        free_block(&work, exchange.places[i]);
    require_ok(sluice_allocator_trim(work.allocator));
    require(query(&work).slabs == 0 && query(&work).blocks == 0, "%u slabs, %llu blocks",
            query(&work).slabs, (unsigned long long)query(&work).blocks);
    work_close(&work);
}

/* A block that is refused was freed by the other thread, perhaps during this call. */
static void *free_all(void *argument)
{
    struct exchange *exchange = argument;

    for (size_t i = 0; i < COUNT(exchange->places); i++) {
        int error =
            sluice_allocator_free(exchange->work->allocator, atomic_load(&exchange->places[i]));

        require(error == 0 || error == -EINVAL, "%d: %s", error, sluice_last_error());
        if (error == 0)
            atomic_fetch_add(&exchange->freed, 1);
        if (i % 16 == 15)
            require_ok(sluice_allocator_trim(exchange->work->allocator));
    }
    return NULL;
}

/*
 * Two threads free the same blocks at once: one succeeds, and the other gets an error. Of some
 * sizes a thread keeps many blocks; of others few are in a span, which is released; or a block is
 * alone in its span.
 */
TEST(block_freed_twice_at_once_is_freed_once, .times = 6)
{
    enum { BLOCKS = 64 };
    static const size_t sizes[] = {64, 60000, 200000};
    static const uint32_t kept[] = {0, SLUICE_ZERO};
    const struct sluice_allocator_attr attr = {.size = sizeof attr, .thread_blocks = kept[_i / 3]};
    const size_t size = sizes[_i % 3];
    struct exchange exchange = {0};
    pthread_t threads[2];
    struct work work;

    work_open(&work, &attr);
    exchange.work = &work;
    for (uint32_t round = 0; round < (short_run() ? 6 : 100); round++) {
        uint8_t *blocks[2 * BLOCKS];

        atomic_store(&exchange.freed, 0);
        for (size_t i = 0; i < BLOCKS; i++)
            exchange.places[i] = alloc(&work, size, 0);
        if (round % 2 != 0)
            sge_of(&work, exchange.places[round % BLOCKS], 1);
        for (size_t i = 0; i < 2; i++)
            require(pthread_create(&threads[i], NULL, free_all, &exchange) == 0, "no thread%s", "");
        for (size_t i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        require(exchange.freed == BLOCKS, "%u were freed", exchange.freed);
        require(query(&work).blocks == 0, "%llu blocks", (unsigned long long)query(&work).blocks);
        for (size_t i = 0; i < 2 * BLOCKS; i++) {
            blocks[i] = alloc(&work, size, 0);
            *blocks[i] = 0;
        }
        for (size_t i = 0; i < 2 * BLOCKS; i++)
            require(++*blocks[i] == 1, "it was given out twice%s", "");
        for (size_t i = 0; i < 2 * BLOCKS; i++)
            free_block(&work, blocks[i]);
    }
    work_close(&work);
}

/* Several allocators in one thread, which end in any order while other threads use them. */
static void *use_both(void *argument)
{
    struct sluice_allocator **allocators = argument;

    for (uint32_t i = 0; i < 100; i++) {
        void *block = sluice_allocator_alloc(allocators[i % 2], 64, 0);

        require(block, "%s", sluice_last_error());
        require_ok(sluice_allocator_free(allocators[i % 2], block));
        require_result(sluice_allocator_free(allocators[i % 2], block), -EINVAL);
        require_result(sluice_allocator_free(allocators[1 - i % 2], block), -EINVAL);
    }
    return NULL;
}

TEST(allocators_come_and_go)
{
    struct sluice_allocator *allocators[2];
    struct sides sides;
    pthread_t thread;

    sides_open(&sides);
    for (uint32_t round = 0; round < 8; round++) {
        for (uint32_t i = 0; i < 2; i++)
            require(allocators[i] = sluice_allocator_create(sides.pds[0], 0, NULL), "%s",
                    sluice_last_error());
        use_both(allocators);
        require(pthread_create(&thread, NULL, use_both, allocators) == 0, "no thread%s", "");
        pthread_join(thread, NULL);
        for (uint32_t i = 0; i < 2; i++)
            require_ok(sluice_allocator_destroy(allocators[(i + round) % 2]));
    }
    sides_close(&sides);
}

/*
 * The allocator belongs to the parent; the child makes one of its own, and exits without closing
 * it.
 */
TEST(child_has_its_own)
{
    struct work work;
    int status;

    work_open(&work, NULL);
    uint8_t *block = alloc(&work, 64, 0);
    pid_t child = fork();
    require(child >= 0, "%s", strerror(errno));
    if (child == 0) {
        struct sluice_allocator *own;
        struct sides sides;
        void *mine;

        if (sluice_allocator_free(work.allocator, block) != -EINVAL ||
            sluice_allocator_alloc(work.allocator, 64, 0) != NULL)
            _exit(1);
        sides_open(&sides);
        own = sluice_allocator_create(sides.pds[0], 0, NULL);
        mine = own ? sluice_allocator_alloc(own, 64, 0) : NULL;
        if (mine == NULL || sluice_allocator_free(own, mine) != 0 ||
            sluice_allocator_destroy(own) != 0)
            _exit(2);
        _exit(0);
    }
    require(waitpid(child, &status, 0) == child && status == 0, "status %#x", status);
    free_block(&work, block);
    work_close(&work);
}

int main(void)
{
    return run_tests("allocator_threads", 20);
}
