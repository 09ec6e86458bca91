/* SPDX-License-Identifier: MIT */
/*
 * Batches in flight. Completions come one by one, in waits, in polls and in event loops. A prepared
 * batch is posted again without an allocation. An early end of a batch ends all of it, and nothing
 * else.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/fair.h"
#include "../support/pair.h"
#include "../support/process.h"
#include "service.h"
#include "silent.h"

#define RIGHTS (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE)
#define PAGE ((size_t)4096)
#define PAGES 32
/* Longer than any wait of a test takes. */
#define LONG SLUICE_S(1000)

#if defined(__GLIBC__) && !SANITIZED
#define COUNTS_ALLOCATIONS
#endif

static atomic_bool counting;
static atomic_ullong allocations;

#ifdef COUNTS_ALLOCATIONS
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
    allocations += counting;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    allocations += counting;
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    allocations += counting;
    return __libc_realloc(old, size);
}
#endif

/* An owner of pages, a user, and room for the pages. */
struct world {
    struct sides sides;
    struct sluice_buffer_service *owner, *user;
    struct sluice_buffer *buffer;
    struct sluice_buffer_handle handle;
    struct memory memory;
    uint8_t *pages;
};

static void publish_pages(struct world *world)
{
    world->buffer = sluice_buffer_publish(world->owner, world->pages, PAGES * PAGE, RIGHTS);
    require(world->buffer != NULL, "%s", sluice_last_error());
    require_ok(sluice_buffer_export(world->buffer, &world->handle));
}

static void world_open(struct world *world)
{
    sides_open(&world->sides);
    world->owner = open_service(world->sides.pds[0], NULL);
    world->user = open_service(world->sides.pds[1], NULL);
    world->pages = malloc(PAGES * PAGE);
    for (uint32_t i = 0; i < PAGES; i++) {
        memset(world->pages + i * PAGE, 1 + (int)i, PAGE);
    }
    publish_pages(world);
    memory_open(&world->memory, world->sides.pds[1], PAGES * PAGE);
}

static void world_close(struct world *world)
{
    if (world->user != NULL) {
        sluice_buffer_service_close(world->user);
    }
    sluice_buffer_release(world->buffer);
    sluice_buffer_service_close(world->owner);
    memory_close(&world->memory);
    free(world->pages);
    sides_close(&world->sides);
}

/*
 * Makes actions that read page i of the buffer into page i of the memory. plain: without a region.
 */
static void pages_of(const struct world *world, struct sluice_buffer_action *actions, bool plain)
{
    for (uint32_t i = 0; i < PAGES; i++) {
        actions[i] = (struct sluice_buffer_action){.opcode = SLUICE_OP_READ,
                                                   .handle = &world->handle,
                                                   .offset = i * PAGE,
                                                   .length = PAGE,
                                                   .addr = world->memory.bytes + i * PAGE,
                                                   .mr = plain ? NULL : world->memory.mr,
                                                   .user_data = 100 + i};
    }
}

static struct sluice_buffer_batch *post_pages(const struct world *world, int64_t deadline)
{
    struct sluice_buffer_action actions[PAGES];
    pages_of(world, actions, false);
    struct sluice_buffer_batch *batch = sluice_buffer_post(world->user, actions, PAGES, deadline);
    require(batch != NULL, "%s", sluice_last_error());
    return batch;
}

static void page_check(const struct world *world, const struct sluice_completion *completion)
{
    uint64_t page = completion->user_data - 100;
    require(page < PAGES && completion->bytes == PAGE && completion->opcode == SLUICE_OP_READ,
            "page %llu: %llu bytes", (unsigned long long)page,
            (unsigned long long)completion->bytes);
    require_class(completion, SLUICE_CLASS_NONE);
    value_check(world->memory.bytes + page * PAGE, PAGE, (uint8_t)(1 + page));
}

static void results_check(const struct world *world, struct sluice_buffer_batch *batch)
{
    struct sluice_completion completions[PAGES];
    require_ok(sluice_buffer_batch_results(batch, completions));
    for (uint32_t i = 0; i < PAGES; i++) {
        require(completions[i].user_data == 100 + i, "%llu",
                (unsigned long long)completions[i].user_data);
        page_check(world, &completions[i]);
    }
}

TEST(pages_come_one_by_one)
{
    struct world world;
    struct sluice_completion completion;
    bool seen[PAGES] = {false};
    world_open(&world);
    struct sluice_buffer_batch *batch = post_pages(&world, DEADLINE);
    for (uint32_t i = 0; i < PAGES; i++) {
        require_ok(sluice_buffer_batch_next(batch, DEADLINE, &completion));
        page_check(&world, &completion);
        require(!seen[completion.user_data - 100], "page %u twice", i);
        seen[completion.user_data - 100] = true;
    }
    require_error(sluice_buffer_batch_next(batch, 0, &completion), -ENOENT, "all completions");
    require_result(sluice_buffer_batch_poll(batch, &completion, 1), 0);
    require_ok(sluice_buffer_batch_wait(batch, 0));
    results_check(&world, batch);
    require_ok(sluice_buffer_batch_cancel(batch));
    results_check(&world, batch);
    sluice_buffer_batch_free(batch);
    world_close(&world);
}

/* Actions that end before anything is posted have completions as well, for each post. */
TEST(each_action_has_its_end, .times = 2)
{
    struct world world;
    struct sluice_buffer_action actions[PAGES];
    struct sluice_completion completions[PAGES];
    struct sluice_buffer_handle readable;
    world_open(&world);
    struct sluice_buffer *other =
        sluice_buffer_publish(world.owner, world.pages, PAGE, SLUICE_ACCESS_REMOTE_READ);
    require_ok(sluice_buffer_export(other, &readable));
    pages_of(&world, actions, _i == 1);
    actions[3].handle = &readable;
    actions[3].opcode = SLUICE_OP_WRITE;
    actions[3].offset = 0;
    actions[5].length = 0;
    struct sluice_buffer_batch *batch = sluice_buffer_batch_prepare(world.user, actions, PAGES);
    require(batch != NULL, "%s", sluice_last_error());
    require_error(sluice_buffer_batch_wait(batch, 0), -ENOENT, "never posted");
    require_error(sluice_buffer_batch_results(batch, completions), -ENOENT, "never posted");
    require_result(sluice_buffer_batch_poll(batch, completions, PAGES), 0);
    for (int round = 0; round < 3; round++) {
        uint32_t count = 0;
        memset(world.memory.bytes, 0, PAGES * PAGE);
        require_ok(sluice_buffer_batch_post(batch, DEADLINE));
        while (count < PAGES) {
            int taken = sluice_buffer_batch_poll(batch, completions, PAGES);
            require(taken >= 0, "%s", sluice_last_error());
            for (int i = 0; i < taken; i++) {
                require_result(completions[i].error, completions[i].user_data == 103 ? -EACCES : 0);
            }
            count += (uint32_t)taken;
        }
        require_result(sluice_buffer_batch_poll(batch, completions, PAGES), 0);
        require_error(sluice_buffer_batch_results(batch, completions), -EACCES,
                      "action 3: write of 4096 bytes at offset 0 of buffer 2 of 127.0.0.1:");
        require_class(&completions[3], SLUICE_CLASS_ACCESS);
        require(completions[5].bytes == 0 && completions[5].error == 0, "%d", completions[5].error);
        page_check(&world, &completions[31]);
    }
    sluice_buffer_batch_free(batch);
    sluice_buffer_release(other);
    world_close(&world);
}

TEST(a_prepared_batch_allocates_nothing)
{
    const uint32_t rounds = !short_run() ? 10000 : device_is_soft() ? 1000 : 50;
    struct world world;
    struct sluice_buffer_action actions[PAGES];
    world_open(&world);
    pages_of(&world, actions, false);
    struct sluice_buffer_batch *batch = sluice_buffer_batch_prepare(world.user, actions, PAGES);
    require(batch != NULL, "%s", sluice_last_error());
    for (uint32_t round = 0; round < rounds; round++) {
        world.pages[0] = (uint8_t)round;
        /* The first rounds connect, and a connection allocates when it is first used. */
        counting = round >= rounds / 2;
        require_ok(sluice_buffer_batch_post(batch, DEADLINE));
        require_ok(sluice_buffer_batch_wait(batch, DEADLINE));
        counting = false;
        require_ok(sluice_buffer_batch_results(batch, NULL));
        require(world.memory.bytes[0] == (uint8_t)round, "round %u: %u", round,
                world.memory.bytes[0]);
    }
    require(!device_is_soft() || allocations == 0, "%llu allocations",
            (unsigned long long)allocations);
    world.pages[0] = 1;
    require_ok(sluice_buffer_batch_post(batch, DEADLINE));
    require_ok(sluice_buffer_batch_wait(batch, DEADLINE));
    results_check(&world, batch);
    sluice_buffer_batch_free(batch);
    world_close(&world);
}

/* A sanitizer reports polled memory as a race, and a pretend device moves no bytes. */
static bool cannot_look(void)
{
    return SANITIZED || device_is_pretend();
}

/* In the first run there is no connection yet. The test makes no call until all pages are there. */
TEST(pages_come_while_the_program_is_elsewhere, .times = 2, .unless = cannot_look)
{
    struct world world;
    world_open(&world);
    if (_i == 1) {
        require_ok(sluice_buffer_read(world.user, &world.handle, 0, NULL, world.memory.bytes, PAGE,
                                      DEADLINE));
    }
    memset(world.memory.bytes, 0, PAGES * PAGE);
    struct sluice_buffer_batch *batch = post_pages(&world, DEADLINE);
    for (uint32_t i = 0; i < PAGES; i++) {
        const uint8_t *last = world.memory.bytes + (i + 1) * PAGE - 1;
        int64_t until = clock_now() + DEADLINE;
        while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != 1 + i && clock_now() < until) {
            let_pass(SLUICE_MS(1));
        }
        require(*last == 1 + i, "page %u has not come", i);
    }
    require_ok(sluice_buffer_batch_wait(batch, DEADLINE));
    results_check(&world, batch);
    sluice_buffer_batch_free(batch);
    world_close(&world);
}

/* One loop for two batches sleeps only on their descriptors, and misses no page. */
TEST(event_loops_miss_nothing)
{
    const int rounds = short_run() ? 20 : 500;
    struct world world, worlds[2]; /* copies, with memory for each batch */
    struct sluice_completion completions[PAGES];
    world_open(&world);
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct sluice_buffer_batch *batches[2];
    for (uint32_t i = 0; i < 2; i++) {
        struct epoll_event event = {.events = EPOLLIN | (i == 1 ? EPOLLET : 0)};
        worlds[i] = world;
        memory_open(&worlds[i].memory, world.sides.pds[1], PAGES * PAGE);
        batches[i] = post_pages(&worlds[i], DEADLINE);
        int fd = sluice_buffer_batch_fd(batches[i]);
        require(fd >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0, "%d", fd);
        require_result(sluice_buffer_batch_fd(batches[i]), fd);
    }
    for (int round = 0; round < rounds; round++) {
        uint32_t left[2] = {PAGES, PAGES};
        while (left[0] + left[1] > 0) {
            int64_t due = SLUICE_FOREVER, until;
            bool armed = true;
            for (uint32_t i = 0; i < 2; i++) {
                int taken = sluice_buffer_batch_poll(batches[i], completions, 5);
                require(taken >= 0, "%s", sluice_last_error());
                for (int k = 0; k < taken; k++) {
                    page_check(&worlds[i], &completions[k]);
                }
                left[i] -= (uint32_t)taken;
                int result = left[i] > 0 ? sluice_buffer_batch_arm(batches[i], &until) : 0;
                require(result == 0 || result == 1, "%s", sluice_last_error());
                armed = armed && result == 0;
                due = left[i] > 0 && result == 0 && until < due ? until : due;
            }
            if (armed && left[0] + left[1] > 0) {
                struct epoll_event event;
                require(due > 0 && due <= DEADLINE, "%lld", (long long)due);
                require(epoll_wait(set, &event, 1, (int)(due / 1000000) + 1) == 1, "quiet");
            }
        }
        for (uint32_t i = 0; i < 2; i++) {
            require_result(sluice_buffer_batch_arm(batches[i], NULL), 1);
            results_check(&worlds[i], batches[i]);
            require_ok(sluice_buffer_batch_post(batches[i], DEADLINE));
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        sluice_buffer_batch_free(batches[i]);
        memory_close(&worlds[i].memory);
    }
    close(set);
    world_close(&world);
}

/* Threads with batches of their own to the same owner. One thread cancels every second batch. */
#define THREADS 3

struct reader {
    pthread_t thread;
    struct world *world;
    uint32_t index, rounds;
};

static void *keep_reading(void *argument)
{
    struct reader *reader = argument;
    struct world world = *reader->world;
    memory_open(&world.memory, world.sides.pds[1], PAGES * PAGE);
    for (uint32_t round = 0; round < reader->rounds; round++) {
        memset(world.memory.bytes, 0, PAGES * PAGE);
        struct sluice_buffer_batch *batch = post_pages(&world, 3 * DEADLINE);
        if (reader->index == 0 && round % 2 == 0) {
            require_ok(sluice_buffer_batch_cancel(batch));
            require_ok(sluice_buffer_batch_wait(batch, 0));
        } else {
            require_ok(sluice_buffer_batch_wait(batch, SLUICE_FOREVER));
            results_check(&world, batch);
        }
        sluice_buffer_batch_free(batch);
    }
    memory_close(&world.memory);
    return NULL;
}

TEST(threads_share_a_connection)
{
    struct world world;
    struct reader readers[THREADS];
    world_open(&world);
    for (uint32_t i = 0; i < THREADS; i++) {
        readers[i] = (struct reader){
            .world = &world, .index = i, .rounds = device_is_soft() ? short_run() ? 50 : 500 : 5};
        require_result(pthread_create(&readers[i].thread, NULL, keep_reading, &readers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(readers[i].thread, NULL);
    }
    world_close(&world);
}

/* Posts a batch to an owner that does not answer, so the batch ends before any byte arrives. */
static struct sluice_buffer_batch *post_to_nobody(struct world *world, int *silent)
{
    struct sluice_buffer_info info = {.size = sizeof(info)};
    require_ok(sluice_buffer_handle_query(&world->handle, &info));
    sluice_buffer_release(world->buffer);
    sluice_buffer_service_close(world->owner);
    *silent = listen_silently(info.address);
    struct sluice_buffer_batch *batch = post_pages(world, LONG);
    world->owner = open_service(world->sides.pds[0], NULL);
    publish_pages(world);
    return batch;
}

static void *cancel_soon(void *argument)
{
    let_pass(SLUICE_MS(20));
    require_ok(sluice_buffer_batch_cancel(argument));
    return NULL;
}

static void cancelled_check(struct sluice_buffer_batch *batch, const char *words)
{
    struct sluice_completion completions[PAGES];
    require_error(sluice_buffer_batch_results(batch, completions), -ECANCELED, words);
    for (uint32_t i = 0; i < PAGES; i++) {
        require_result(completions[i].error, -ECANCELED);
        require_class(&completions[i], SLUICE_CLASS_CANCELLED);
        require(completions[i].user_data == 100 + i, "%llu",
                (unsigned long long)completions[i].user_data);
    }
    require_result(sluice_buffer_batch_poll(batch, completions, PAGES), PAGES);
    require_result(sluice_buffer_batch_poll(batch, completions, PAGES), 0);
}

/* A cancel ends a wait of another thread, and the batch can be posted again. */
TEST(any_thread_may_cancel)
{
    struct world world;
    struct sluice_completion completion;
    pthread_t thread;
    int silent;
    world_open(&world);
    struct sluice_buffer_batch *batch = post_to_nobody(&world, &silent);
    require_error(sluice_buffer_batch_wait(batch, SLUICE_MS(1)), -ETIMEDOUT, "in flight");
    require_error(sluice_buffer_batch_next(batch, 0, &completion), -ETIMEDOUT, "in flight");
    require_error(sluice_buffer_batch_post(batch, DEADLINE), -EBUSY, "in flight");
    require_error(sluice_buffer_batch_results(batch, NULL), -EBUSY, "in flight");
    require_result(pthread_create(&thread, NULL, cancel_soon, batch), 0);
    require_ok(sluice_buffer_batch_wait(batch, SLUICE_FOREVER));
    pthread_join(thread, NULL);
    cancelled_check(batch, "action 0: read of 4096 bytes at offset 0 of buffer 1 of 127.0.0.1: "
                           "the batch was cancelled when 0 of 4096 bytes were moved");
    require_ok(sluice_buffer_batch_post(batch, 0));
    require_ok(sluice_buffer_batch_wait(batch, 0));
    require_error(sluice_buffer_batch_results(batch, NULL), -ETIMEDOUT, "the deadline passed");
    require_ok(sluice_buffer_batch_post(batch, SLUICE_MS(30)));
    require_ok(sluice_buffer_batch_wait(batch, SLUICE_FOREVER));
    require_error(sluice_buffer_batch_results(batch, NULL), -ETIMEDOUT, "the deadline passed");
    sluice_buffer_batch_free(batch);
    close(silent);
    world_close(&world);
}

/* A cancel also wakes the event loop of another thread. */
TEST(cancelling_wakes_an_event_loop)
{
    struct world world;
    pthread_t thread;
    int silent;
    world_open(&world);
    struct sluice_buffer_batch *batch = post_to_nobody(&world, &silent);
    struct pollfd fd = {.fd = sluice_buffer_batch_fd(batch), .events = POLLIN};
    require_result(sluice_buffer_batch_arm(batch, NULL), 0);
    require_result(pthread_create(&thread, NULL, cancel_soon, batch), 0);
    require_result(poll(&fd, 1, -1), 1);
    require_ok(sluice_buffer_batch_wait(batch, SLUICE_FOREVER));
    pthread_join(thread, NULL);
    cancelled_check(batch, "the batch was cancelled");
    sluice_buffer_batch_free(batch);
    close(silent);
    world_close(&world);
}

TEST(an_interrupted_wait_leaves_the_batch_in_flight)
{
    struct world world;
    struct sluice_completion completion;
    int flag = 1, silent;
    world_open(&world);
    struct sluice_buffer_batch *batch = post_to_nobody(&world, &silent);
    sluice_interrupt_set(&flag);
    require_error(sluice_buffer_batch_wait(batch, SLUICE_FOREVER), -EINTR, "goes on");
    require_error(sluice_buffer_batch_next(batch, SLUICE_FOREVER, &completion), -EINTR, "goes on");
    require_result(sluice_buffer_batch_poll(batch, &completion, 1), 0);
    struct sluice_buffer_batch *other = post_pages(&world, DEADLINE);
    sluice_interrupt_set(NULL);
    require_ok(sluice_buffer_batch_wait(other, SLUICE_FOREVER));
    results_check(&world, other);
    require_error(sluice_buffer_batch_wait(batch, 0), -ETIMEDOUT, "in flight");
    sluice_buffer_batch_free(batch);
    sluice_buffer_batch_free(other);
    close(silent);
    world_close(&world);
}

/* Batches in all states: waiting for the owner, done, never posted, and moving. */
TEST(closing_a_service_ends_its_batches)
{
    struct world world;
    struct sluice_buffer_action actions[PAGES];
    struct sluice_completion completion;
    int silent;
    world_open(&world);
    struct sluice_buffer_batch *waits = post_to_nobody(&world, &silent);
    struct sluice_buffer_batch *done = post_pages(&world, DEADLINE);
    pages_of(&world, actions, true);
    struct sluice_buffer_batch *never = sluice_buffer_batch_prepare(world.user, actions, PAGES);
    require_ok(sluice_buffer_batch_wait(done, SLUICE_FOREVER));
    struct sluice_buffer_batch *moving = post_pages(&world, DEADLINE);
    require(sluice_buffer_batch_fd(waits) >= 0, "%s", sluice_last_error());
    require_result(sluice_buffer_batch_arm(waits, NULL), 0);
    sluice_buffer_service_close(world.user);
    world.user = NULL;
    require_ok(sluice_buffer_batch_wait(waits, SLUICE_FOREVER));
    require_result(sluice_buffer_batch_arm(waits, NULL), 1);
    cancelled_check(waits, "the service was closed");
    results_check(&world, done);
    require_ok(sluice_buffer_batch_wait(moving, 0));
    require_error(sluice_buffer_batch_post(done, DEADLINE), -ESTALE, "was closed");
    require_error(sluice_buffer_batch_post(never, DEADLINE), -ESTALE, "was closed");
    require_error(sluice_buffer_batch_next(never, 0, &completion), -ENOENT, "never posted");
    require_ok(sluice_buffer_batch_cancel(never));
    sluice_buffer_batch_free(waits);
    sluice_buffer_batch_free(done);
    sluice_buffer_batch_free(never);
    sluice_buffer_batch_free(moving);
    close(silent);
    world_close(&world);
}

/* In a forked child, batches are not valid objects; the parent is not affected. */
TEST(a_child_has_no_batches)
{
    struct world world;
    int status;
    world_open(&world);
    struct sluice_buffer_batch *batch = post_pages(&world, DEADLINE);
    pid_t child = fork();
    if (child == 0) {
        int result = sluice_buffer_batch_cancel(batch);
        result = result == -EINVAL ? sluice_buffer_batch_wait(batch, SLUICE_FOREVER) : result;
        sluice_buffer_batch_free(batch);
        _exit(result == -EINVAL ? 0 : 1);
    }
    require(child > 0 && waitpid(child, &status, 0) == child && status == 0, "%#x", status);
    require_ok(sluice_buffer_batch_wait(batch, SLUICE_FOREVER));
    results_check(&world, batch);
    sluice_buffer_batch_free(batch);
    world_close(&world);
}

/* The memory is released and published again between two posts: the old handle cannot read it. */
TEST(a_prepared_batch_never_reads_a_later_buffer)
{
    struct world world;
    struct sluice_completion completions[PAGES];
    world_open(&world);
    struct sluice_buffer_batch *batch = post_pages(&world, DEADLINE);
    require_ok(sluice_buffer_batch_wait(batch, SLUICE_FOREVER));
    for (int round = 0; round < 3; round++) {
        sluice_buffer_release(world.buffer);
        memset(world.pages, 0xdd, PAGES * PAGE);
        publish_pages(&world);
        memset(world.memory.bytes, 0, PAGES * PAGE);
        require_ok(sluice_buffer_batch_post(batch, DEADLINE));
        require_ok(sluice_buffer_batch_wait(batch, SLUICE_FOREVER));
        require_error(sluice_buffer_batch_results(batch, completions), -EACCES, "released");
        for (uint32_t i = 0; i < PAGES; i++) {
            require_class(&completions[i], SLUICE_CLASS_ACCESS);
        }
        value_check(world.memory.bytes, PAGES * PAGE, 0);
    }
    sluice_buffer_batch_free(batch);
    world_close(&world);
}

/* A freed batch has nothing in flight any more, and leaves no descriptors. */
TEST(a_batch_in_flight_can_be_freed)
{
    const int rounds = device_is_soft() ? 50 : 5;
    struct world world;
    struct sluice_buffer_action actions[PAGES];
    int fds = 0;
    world_open(&world);
    pages_of(&world, actions, true);
    for (int round = 0; round < rounds; round++) {
        struct sluice_buffer_batch *batch =
            sluice_buffer_post(world.user, actions, PAGES, DEADLINE);
        require(batch != NULL, "%s", sluice_last_error());
        require(sluice_buffer_batch_fd(batch) >= 0, "%s", sluice_last_error());
        (void)!sluice_buffer_batch_arm(batch, NULL);
        sluice_buffer_batch_free(batch);
        memset(world.memory.bytes, 0xaa, PAGES * PAGE);
        require_ok(sluice_buffer_read(world.user, &world.handle, 0, NULL, world.memory.bytes, PAGE,
                                      DEADLINE));
        value_check(world.memory.bytes + PAGE, (PAGES - 1) * PAGE, 0xaa);
        if (round == 2) {
            fds = settle_fds(0);
        }
    }
    require(settle_fds(fds) <= fds, "%d left", count_fds() - fds);
    world_close(&world);
}

int main(void)
{
    return run_tests("buffer_batch", short_run() ? 30 : 60);
}
