/* SPDX-License-Identifier: MIT */
/*
 * Regions that posted actions on buffers name. A region cannot end while such an action has not
 * ended, even if nothing of it is on the wire yet. The callback at the end of a region runs without
 * a lock.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "../support/fair.h"
#include "../support/pair.h"
#include "../support/process.h"
#include "service.h"
#include "silent.h"

#define RIGHTS (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE)
#define LENGTH ((size_t)4096)
#define LARGE ((size_t)16 << 20)
#define LONG SLUICE_S(1000)

/* An owner that answers, one that does not, and a user of both. */
enum { ANSWERS, SILENT_ONE, OWNERS };

struct world {
    struct sides sides;
    struct sluice_buffer_service *owner, *user;
    struct sluice_buffer *buffer;
    struct sluice_buffer_handle handles[OWNERS];
    uint8_t *bytes;
    int silent;
};

static struct sluice_buffer *publish(struct world *world, struct sluice_buffer_handle *handle)
{
    struct sluice_buffer *buffer = sluice_buffer_publish(world->owner, world->bytes, LARGE, RIGHTS);
    require(buffer != NULL, "%s", sluice_last_error());
    require_ok(sluice_buffer_export(buffer, handle));
    return buffer;
}

static void world_open(struct world *world)
{
    struct sluice_buffer_info info = {.size = sizeof(info)};
    sides_open(&world->sides);
    world->bytes = calloc(1, LARGE);
    require(world->bytes != NULL, "no memory");
    world->owner = open_service(world->sides.pds[0], NULL);
    sluice_buffer_release(publish(world, &world->handles[SILENT_ONE]));
    require_ok(sluice_buffer_handle_query(&world->handles[SILENT_ONE], &info));
    sluice_buffer_service_close(world->owner);
    world->silent = listen_silently(info.address);
    world->owner = open_service(world->sides.pds[0], NULL);
    world->buffer = publish(world, &world->handles[ANSWERS]);
    world->user = open_service(world->sides.pds[1], NULL);
}

static void world_close(struct world *world)
{
    sluice_buffer_service_close(world->user);
    sluice_buffer_release(world->buffer);
    sluice_buffer_service_close(world->owner);
    close(world->silent);
    free(world->bytes);
    sides_close(&world->sides);
}

static struct sluice_mr *alloc(const struct world *world, size_t length)
{
    struct sluice_mr *mr = sluice_mr_alloc(world->sides.pds[1], length, SLUICE_ACCESS_LOCAL_WRITE);
    require(mr != NULL, "%s", sluice_last_error());
    return mr;
}

static struct sluice_buffer_action action_of(const struct world *world, int owner,
                                             struct sluice_mr *mr, uint32_t opcode)
{
    return (struct sluice_buffer_action){.opcode = opcode,
                                         .handle = &world->handles[owner],
                                         .length = sluice_mr_length(mr),
                                         .addr = sluice_mr_addr(mr),
                                         .mr = mr,
                                         .user_data = (uint64_t)owner};
}

static struct sluice_buffer_batch *post_batch(const struct world *world,
                                              const struct sluice_buffer_action *actions,
                                              uint32_t count, int64_t deadline)
{
    struct sluice_buffer_batch *batch = sluice_buffer_post(world->user, actions, count, deadline);
    require(batch != NULL, "%s", sluice_last_error());
    return batch;
}

static void held(struct sluice_mr *mr)
{
    require_error(sluice_mr_deregister(mr), -EBUSY, "used by posted work: wait for it first");
}

/* Each region is held until its action has ended. A batch that is only prepared holds none. */
TEST(a_region_waits_for_its_action)
{
    struct world world;
    struct sluice_completion completion;
    world_open(&world);
    struct sluice_mr *mrs[OWNERS] = {alloc(&world, LENGTH), alloc(&world, LENGTH)};
    struct sluice_buffer_action actions[OWNERS];
    for (int i = 0; i < OWNERS; i++) {
        actions[i] = action_of(&world, i, mrs[i], SLUICE_OP_READ);
    }
    struct sluice_buffer_batch *never = sluice_buffer_batch_prepare(world.user, actions, OWNERS);
    struct sluice_buffer_batch *batch = post_batch(&world, actions, OWNERS, LONG);
    require(never != NULL, "%s", sluice_last_error());
    held(mrs[SILENT_ONE]);
    require_ok(sluice_buffer_batch_next(batch, DEADLINE, &completion));
    require(completion.user_data == ANSWERS && completion.error == 0, "%d", completion.error);
    require_ok(sluice_mr_deregister(mrs[ANSWERS]));
    held(mrs[SILENT_ONE]);
    require_error(sluice_mr_deregister_wait(mrs[SILENT_ONE], SLUICE_MS(2)), -ETIMEDOUT,
                  "used by posted work");
    require_ok(sluice_buffer_batch_cancel(batch));
    require_ok(sluice_mr_deregister(mrs[SILENT_ONE]));
    sluice_buffer_batch_free(batch);
    sluice_buffer_batch_free(never);
    world_close(&world);
}

/* Each post of a batch holds its regions, until the batch ends or its service is closed. */
TEST(each_post_holds_them, .times = 2)
{
    struct world world;
    world_open(&world);
    struct sluice_mr *mr = alloc(&world, LENGTH);
    struct sluice_buffer_action action = action_of(&world, SILENT_ONE, mr, SLUICE_OP_WRITE);
    struct sluice_buffer_batch *batch = sluice_buffer_batch_prepare(world.user, &action, 1);
    require(batch != NULL, "%s", sluice_last_error());
    for (int round = 0; round < 2; round++) {
        require_ok(sluice_buffer_batch_post(batch, LONG));
        held(mr);
        require_ok(sluice_buffer_batch_cancel(batch));
    }
    require_ok(sluice_buffer_batch_post(batch, _i == 0 ? SLUICE_MS(20) : LONG));
    held(mr);
    if (_i == 0) {
        require_ok(sluice_buffer_batch_wait(batch, DEADLINE));
    } else {
        sluice_buffer_service_close(world.user);
        world.user = open_service(world.sides.pds[1], NULL);
    }
    require_ok(sluice_mr_deregister(mr));
    sluice_buffer_batch_free(batch);
    world_close(&world);
}

/* Only the block of a region that is in use is held. */
TEST(a_block_waits_for_its_action)
{
    struct world world;
    void *blocks[2];
    world_open(&world);
    struct sluice_allocator *allocator =
        sluice_allocator_create(world.sides.pds[1], SLUICE_ACCESS_LOCAL_WRITE, NULL);
    require(allocator != NULL, "%s", sluice_last_error());
    for (int i = 0; i < 2; i++) {
        blocks[i] = sluice_allocator_alloc(allocator, 512, 0);
        require(blocks[i] != NULL, "%s", sluice_last_error());
        require(sluice_allocator_mr(allocator, blocks[i]) != NULL, "%s", sluice_last_error());
    }
    struct sluice_buffer_action action = {.opcode = SLUICE_OP_READ,
                                          .handle = &world.handles[SILENT_ONE],
                                          .length = 512,
                                          .addr = blocks[0],
                                          .mr = sluice_allocator_mr(allocator, blocks[0])};
    struct sluice_buffer_batch *batch = post_batch(&world, &action, 1, LONG);
    require_error(sluice_allocator_free(allocator, blocks[0]), -EBUSY, "used by posted work");
    require_ok(sluice_allocator_free(allocator, blocks[1]));
    sluice_buffer_batch_free(batch);
    require_ok(sluice_allocator_free(allocator, blocks[0]));
    require_ok(sluice_allocator_destroy(allocator));
    world_close(&world);
}

/* Argument of a callback at the end of a region. The callback needs the lock of the connection. */
struct told {
    struct world *world;
    atomic_uint count;
};

static void tell(void *argument)
{
    struct told *told = argument;
    level_of(told->world->user, &told->world->handles[ANSWERS]);
    atomic_fetch_add(&told->count, 1);
}

/* Waits for callbacks: a thread of the library may make them after the batch has ended. */
static void await_told(const struct told *told, unsigned count)
{
    int64_t until = fair_now() + DEADLINE;
    while (atomic_load(&told->count) < count && fair_now() < until) {
        let_pass(SLUICE_US(100));
    }
    require(atomic_load(&told->count) == count, "%u of %u", atomic_load(&told->count), count);
}

/* A batch that waits for its owner ends in each possible way. */
TEST(it_is_told_when_the_batch_ends, .times = 3)
{
    struct world world;
    struct told told = {.world = &world};
    world_open(&world);
    struct sluice_mr *mr = alloc(&world, LENGTH);
    struct sluice_buffer_action action = action_of(&world, SILENT_ONE, mr, SLUICE_OP_READ);
    struct sluice_buffer_batch *batch =
        post_batch(&world, &action, 1, _i == 0 ? SLUICE_MS(50) : LONG);
    require_result(sluice_mr_release(mr, tell, &told), 1);
    require(_i == 0 || atomic_load(&told.count) == 0, "it has ended");
    if (_i == 0) {
        require_ok(sluice_buffer_batch_wait(batch, DEADLINE));
    } else if (_i == 1) {
        require_ok(sluice_buffer_batch_cancel(batch));
    }
    sluice_buffer_batch_free(batch);
    await_told(&told, 1);
    world_close(&world);
}

/* A batch with bytes on the wire ends in a call that has the lock of the connection. */
TEST(it_is_told_without_a_lock, .times = 2)
{
    const int rounds = !device_is_soft() ? 3 : shortest_run() ? 5 : 20;
    struct world world;
    struct told told = {.world = &world};
    world_open(&world);
    for (int round = 0; round < rounds; round++) {
        struct sluice_mr *mr = alloc(&world, LARGE);
        struct sluice_buffer_action action =
            action_of(&world, ANSWERS, mr, _i == 0 ? SLUICE_OP_WRITE : SLUICE_OP_READ);
        struct sluice_buffer_batch *batch = post_batch(&world, &action, 1, 3 * DEADLINE);
        require(sluice_mr_release(mr, tell, &told) >= 0, "%s", sluice_last_error());
        require_ok(sluice_buffer_batch_wait(batch, SLUICE_FOREVER));
        require_ok(sluice_buffer_batch_results(batch, NULL));
        sluice_buffer_batch_free(batch);
        await_told(&told, (unsigned)round + 1);
    }
    world_close(&world);
}

int main(void)
{
    return run_tests("buffer_hold", 30);
}
