/* SPDX-License-Identifier: MIT */
/*
 * Repeated blocking calls on one handle: each is checked like the first, and threads that share the
 * connection do not mix their bytes.
 */
#include <pthread.h>

#include "../support/pair.h"
#include "world.h"

/*
 * A handle that calls have used is checked like a new one: its range, its rights, its bytes, the
 * region, and whether the owner has released it.
 */
TEST(a_handle_in_use_is_checked_each_time)
{
    struct world world;
    struct memory memory;
    struct sluice_buffer_handle handle, other;
    uint64_t values[32] = {0}, plain;
    world_open(&world, NULL);
    memory_open(&memory, world.sides.pds[1], 256);
    struct sluice_buffer *buffer =
        publish(world.owner, values, sizeof(values), SLUICE_ACCESS_REMOTE_READ, &handle);
    for (uint64_t i = 0; i < 200; i++) {
        values[i % 32] = i;
        require_ok(sluice_buffer_read(world.user, &handle, i % 32 * 8, memory.mr, memory.bytes, 8,
                                      DEADLINE));
        require(memcmp(memory.bytes, &values[i % 32], 8) == 0, "read %llu", (unsigned long long)i);
        require_ok(sluice_buffer_read(world.user, &handle, i % 32 * 8, NULL, &plain, 8, DEADLINE));
        require(plain == i, "read %llu into plain memory", (unsigned long long)i);
    }
    require_result(
        sluice_buffer_read(world.user, &handle, 256, memory.mr, memory.bytes, 8, DEADLINE),
        -ERANGE);
    require_result(
        sluice_buffer_read(world.user, &handle, UINT64_MAX, memory.mr, memory.bytes, 8, DEADLINE),
        -ERANGE);
    require_result(
        sluice_buffer_read(world.user, &handle, 0, memory.mr, memory.bytes + 249, 8, DEADLINE),
        -ERANGE);
    require_result(
        sluice_buffer_read(world.user, &handle, 0, memory.mr, memory.bytes - 1, 8, DEADLINE),
        -ERANGE);
    require_result(
        sluice_buffer_write(world.user, &handle, 0, memory.mr, memory.bytes, 8, DEADLINE), -EACCES);
    require_result(sluice_buffer_read(world.user, &handle, 0, memory.mr, memory.bytes, 8, -1),
                   -EINVAL);
    require_result(sluice_buffer_read(world.user, &handle, 0, memory.mr, memory.bytes, 8, 0),
                   -ETIMEDOUT);
    require_result(sluice_buffer_read(world.user, &handle, 0, NULL, NULL, 8, DEADLINE), -EINVAL);
    require_result(
        sluice_buffer_read(world.user, &handle, 0, NULL, (void *)(UINTPTR_MAX - 6), 8, DEADLINE),
        -EINVAL);
    other = handle;
    other.bytes[70] ^= 1;
    require_result(sluice_buffer_read(world.user, &other, 0, memory.mr, memory.bytes, 8, DEADLINE),
                   -EPROTO);
    require_ok(sluice_buffer_read(world.user, &handle, 0, memory.mr, memory.bytes, 256, DEADLINE));
    sluice_buffer_release(buffer);
    require_result(sluice_buffer_read(world.user, &handle, 0, memory.mr, memory.bytes, 8, DEADLINE),
                   -EACCES);
    memory_close(&memory);
    world_close(&world);
}

struct reader {
    struct world *world;
    const struct sluice_buffer_handle *handle;
    uint64_t failures;
};

static void *read_often(void *argument)
{
    struct reader *reader = argument;
    struct memory memory;
    memory_open(&memory, reader->world->sides.pds[1], 8);
    for (int i = 0; i < 2000; i++) {
        int error = sluice_buffer_read(reader->world->user, reader->handle, 8, memory.mr,
                                       memory.bytes, 8, DEADLINE);
        reader->failures += error != 0 || memory.bytes[0] != 7;
    }
    memory_close(&memory);
    return NULL;
}

/* Threads that read one after another, each with memory of its own, get what they asked for. */
TEST(threads_share_a_connection)
{
    struct world world;
    struct sluice_buffer_handle handle;
    uint8_t bytes[16] = {[8] = 7};
    struct reader readers[3];
    pthread_t threads[3];
    world_open(&world, NULL);
    struct sluice_buffer *buffer =
        publish(world.owner, bytes, sizeof(bytes), SLUICE_ACCESS_REMOTE_READ, &handle);
    for (int i = 0; i < 3; i++) {
        readers[i] = (struct reader){.world = &world, .handle = &handle};
        require(pthread_create(&threads[i], NULL, read_often, &readers[i]) == 0, "no thread");
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        require(readers[i].failures == 0, "thread %d: %llu reads failed", i,
                (unsigned long long)readers[i].failures);
    }
    sluice_buffer_release(buffer);
    world_close(&world);
}

int main(void)
{
    return run_tests("buffer quick", short_run() ? 40 : 60);
}
