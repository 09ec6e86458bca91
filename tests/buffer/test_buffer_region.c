/* SPDX-License-Identifier: MIT */
/*
 * Published parts of regions. Peers reach the published bytes with the rights of the buffer, over
 * all wires, and no other bytes of the region, however they change the handle. The region cannot
 * end before the buffer does.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/fair.h"
#include "../support/pair.h"
#include "../support/process.h"
#include "handle.h"
#include "service.h"

#define RIGHTS (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE)
#define PAGE ((size_t)4096)
#define WHOLE (64 * PAGE)
/* A part that begins and ends within pages. */
#define AT (5 * PAGE + 104)
#define LENGTH (9 * PAGE + 11)
/* Number of reads after which a peer on the same host has mapped all that it may. */
#define SETTLED 8

/* An owner with a region, and a user, on the wire of the test. */
struct world {
    struct sides sides;
    struct sluice_buffer_service *owner, *user;
    struct sluice_mr *mr;
    uint8_t *bytes;
    uint8_t target[WHOLE];
};

static struct world *world_open(uint32_t access)
{
    struct world *world = calloc(1, sizeof(*world));
    require(world != NULL, "no memory");
    sides_open(&world->sides);
    world->owner = open_service(world->sides.pds[0], NULL);
    world->user = open_service(world->sides.pds[1], NULL);
    world->mr = sluice_mr_alloc(world->sides.pds[0], WHOLE, access | SLUICE_ACCESS_LOCAL_WRITE);
    require(world->mr != NULL, "%s", sluice_last_error());
    world->bytes = sluice_mr_addr(world->mr);
    pattern_fill(world->bytes, WHOLE, 1);
    return world;
}

static void world_close(struct world *world)
{
    require_ok(sluice_mr_deregister(world->mr));
    sluice_buffer_service_close(world->user);
    sluice_buffer_service_close(world->owner);
    sides_close(&world->sides);
    free(world);
}

static struct sluice_buffer *publish(const struct world *world, struct sluice_mr *mr, size_t offset,
                                     size_t length, uint32_t access,
                                     struct sluice_buffer_handle *handle)
{
    struct sluice_buffer *buffer =
        sluice_buffer_publish_mr(world->owner, mr, offset, length, access);
    require(buffer != NULL, "%s", sluice_last_error());
    require_ok(sluice_buffer_export(buffer, handle));
    return buffer;
}

static int read_of(struct world *world, const struct sluice_buffer_handle *handle, uint64_t offset,
                   uint64_t length)
{
    return sluice_buffer_read(world->user, handle, offset, NULL, world->target, length, DEADLINE);
}

static int write_of(struct world *world, const struct sluice_buffer_handle *handle, uint64_t offset,
                    uint64_t length)
{
    return sluice_buffer_write(world->user, handle, offset, NULL, world->target, length, DEADLINE);
}

/* Reads and writes a buffer of these bytes, more often than a peer needs before it maps them. */
static void use(struct world *world, const struct sluice_buffer_handle *handle, uint8_t *bytes,
                size_t length)
{
    for (uint32_t i = 0; i < SETTLED; i++) {
        size_t at = i % 3 * (length / 7);
        pattern_fill(bytes, length, 100 + i);
        memset(world->target, 0, length);
        require_ok(read_of(world, handle, at, length - at));
        require(memcmp(world->target, bytes + at, length - at) == 0, "other bytes, read %u", i);
        pattern_fill(world->target, length, 200 + i);
        require_ok(write_of(world, handle, at, length - at));
        require(memcmp(world->target, bytes + at, length - at) == 0, "other bytes, write %u", i);
    }
}

/* Checks that the region is unchanged outside these bytes. */
static void check_neighbours(const struct world *world, size_t at, size_t length)
{
    uint8_t *wanted = malloc(WHOLE);
    require(wanted != NULL, "no memory");
    pattern_fill(wanted, WHOLE, 1);
    require(memcmp(world->bytes, wanted, at) == 0, "bytes before it");
    require(memcmp(world->bytes + at + length, wanted + at + length, WHOLE - at - length) == 0,
            "bytes behind it");
    free(wanted);
}

static const struct {
    size_t at, length;
} parts[] = {{0, WHOLE}, {2 * PAGE, 3 * PAGE}, {AT, LENGTH}, {WHOLE - 9, 9}, {0, 8}};

TEST(all_of_it_and_parts, .times = COUNT(parts))
{
    struct world *world = world_open(RIGHTS);
    struct sluice_buffer_handle handle;
    size_t at = parts[_i].at, length = parts[_i].length;
    struct sluice_buffer *buffer = publish(world, world->mr, at, length, RIGHTS, &handle);
    require(sluice_buffer_addr(buffer) == world->bytes + at, "%p", sluice_buffer_addr(buffer));
    use(world, &handle, world->bytes + at, length);
    check_neighbours(world, at, length);
    require_error(read_of(world, &handle, 1, length), -ERANGE, "goes beyond buffer 1");
    require_error(read_of(world, &handle, UINT64_MAX, 1), -ERANGE, "goes beyond buffer 1");
    sluice_buffer_release(buffer);
    require_result(read_of(world, &handle, 0, length), -EACCES);
    world_close(world);
}

/* Regions of huge pages if there are any, of memory of the program, and of a cache. */
TEST(regions_of_other_kinds, .times = 3)
{
    struct world *world = world_open(RIGHTS);
    struct sluice_pd *pd = world->sides.pds[0];
    struct sluice_mr_cache *cache =
        sluice_mr_cache_create(pd, RIGHTS | SLUICE_ACCESS_LOCAL_WRITE, NULL);
    struct sluice_buffer_handle handle;
    uint8_t *plain = malloc(WHOLE);
    struct sluice_mr *mr = NULL;
    require(plain != NULL && cache != NULL, "%s", sluice_last_error());
    if (_i == 0) {
        mr = sluice_mr_alloc(pd, WHOLE, RIGHTS | SLUICE_ACCESS_LOCAL_WRITE | SLUICE_MR_HUGE_PAGES);
    } else if (_i == 1) {
        mr = sluice_mr_register(pd, plain, WHOLE, RIGHTS | SLUICE_ACCESS_LOCAL_WRITE);
    } else {
        mr = sluice_mr_cache_get(cache, plain, WHOLE);
    }
    require(mr != NULL, "%s", sluice_last_error());
    uint8_t *bytes = sluice_mr_addr(mr);
    size_t at = AT + (size_t)(plain - bytes) * (_i == 2);
    struct sluice_buffer *buffer = publish(world, mr, at, LENGTH, RIGHTS, &handle);
    if (_i == 2) {
        sluice_mr_cache_put(cache, mr);
    } else {
        require_error(sluice_mr_deregister(mr), -EBUSY, "published as buffer 1");
    }
    use(world, &handle, bytes + at, LENGTH);
    sluice_buffer_release(buffer);
    if (_i < 2) {
        require_ok(sluice_mr_deregister(mr));
    }
    require_ok(sluice_mr_cache_destroy(cache));
    free(plain);
    world_close(world);
}

/* A handle with the right key but a larger range than was published gives access to none of it. */
TEST(neighbours_are_out_of_reach, .times = 2)
{
    struct world *world = world_open(RIGHTS);
    struct sluice_buffer_handle handle;
    struct sluice_buffer *buffer = publish(world, world->mr, AT, LENGTH, RIGHTS, &handle);
    uint64_t addr = (uintptr_t)world->bytes + AT;
    const struct {
        uint64_t addr, length, offset, bytes;
    } forged[] = {
        {addr - 1, LENGTH + 1, 0, 1},
        {addr - AT, WHOLE, 0, WHOLE},
        {addr, LENGTH + 1, LENGTH, 1},
        {addr, LENGTH + 1, 0, LENGTH + 1},
        {addr, PAGE * 32, LENGTH, PAGE},
        {addr - PAGE, PAGE, 0, PAGE},
        {addr - 8, LENGTH + 16, 0, 9},
        {0, UINT64_C(1) << 47, addr - PAGE, 8},
        {addr, UINT64_C(1) << 40, WHOLE * 2, 8},
    };
    for (uint32_t i = 0; i < COUNT(forged); i++) {
        struct sluice_buffer_handle other = handle;
        handle_set(&other, HANDLE_ADDR, forged[i].addr, 8);
        handle_set(&other, HANDLE_LENGTH, forged[i].length, 8);
        handle_seal(&other);
        for (int k = 0; k < SETTLED && _i == 1; k++) {
            require_ok(read_of(world, &handle, 0, LENGTH));
        }
        memset(world->target, 7, WHOLE);
        require_error(read_of(world, &other, forged[i].offset, forged[i].bytes), -EACCES,
                      "buffer 1");
        value_check(world->target, WHOLE, 7);
        for (int k = 0; k < SETTLED && _i == 1; k++) {
            require_ok(read_of(world, &handle, 0, LENGTH));
        }
        require_result(write_of(world, &other, forged[i].offset, forged[i].bytes), -EACCES);
        pattern_fill(world->target, WHOLE, 1);
        require(memcmp(world->target, world->bytes, WHOLE) == 0, "handle %u has written", i);
    }
    sluice_buffer_release(buffer);
    world_close(world);
}

/* Only peers of the service can use the key of a buffer, and they can use no key of a region. */
TEST(keys_are_of_their_domains)
{
    struct sluice_channel_attr attr = {.size = sizeof(attr), .access = RIGHTS};
    struct world *world = world_open(RIGHTS);
    struct pair pair = {.sides = world->sides};
    struct memory memory;
    struct sluice_buffer_handle handle, other;
    struct sluice_remote_mr raw, region;
    struct sluice_buffer *buffer = publish(world, world->mr, AT, LENGTH, RIGHTS, &handle);
    pair_connect(&pair, &attr);
    memory_open(&memory, world->sides.pds[1], PAGE);
    struct sluice_sge sge = memory_sge(&memory, 0, PAGE);
    require_ok(sluice_buffer_remote(world->user, &handle, NULL, &raw));
    require_ok(sluice_mr_remote(world->mr, &region));
    require(raw.addr == (uintptr_t)world->bytes + AT && raw.length == LENGTH &&
                raw.rkey != region.rkey,
            "key %#x", raw.rkey);
    raw.length = PAGE;
    require_result(sluice_channel_read(pair.channels[1], &sge, 1, &raw, DEADLINE), -EACCES);
    other = handle;
    handle_set(&other, HANDLE_RKEY, region.rkey, 4);
    handle_seal(&other);
    require_result(read_of(world, &other, 0, 8), -EACCES);
    require_ok(read_of(world, &handle, 0, LENGTH));
    for (int i = 0; i < 2; i++) {
        sluice_channel_close(pair.channels[i]);
    }
    memory_close(&memory);
    sluice_buffer_release(buffer);
    world_close(world);
}

/* Two buffers of the same bytes: one can only be read, the other can also be written. */
TEST(each_buffer_has_its_rights)
{
    struct world *world = world_open(RIGHTS);
    struct sluice_buffer_handle read, both, forged;
    struct sluice_buffer *readable =
        publish(world, world->mr, AT, LENGTH, SLUICE_ACCESS_REMOTE_READ, &read);
    struct sluice_buffer *writable = publish(world, world->mr, AT, LENGTH, RIGHTS, &both);
    use(world, &both, world->bytes + AT, LENGTH);
    for (uint32_t i = 0; i < SETTLED; i++) {
        pattern_fill(world->bytes + AT, LENGTH, i);
        require_ok(read_of(world, &read, 0, LENGTH));
        pattern_check(world->target, LENGTH, i);
    }
    require_error(write_of(world, &read, 0, LENGTH), -EACCES, "not published for a write");
    forged = read;
    handle_set(&forged, HANDLE_ACCESS, RIGHTS, 4);
    handle_seal(&forged);
    memset(world->target, 9, LENGTH);
    require_result(write_of(world, &forged, 0, LENGTH), -EACCES);
    pattern_check(world->bytes + AT, LENGTH, SETTLED - 1);
    use(world, &both, world->bytes + AT, LENGTH);
    sluice_buffer_release(writable);
    require_result(write_of(world, &both, 0, LENGTH), -EACCES);
    require_ok(read_of(world, &read, 0, LENGTH));
    sluice_buffer_release(readable);
    check_neighbours(world, AT, LENGTH);
    world_close(world);
}

TEST(mistakes_are_found)
{
    struct world *world = world_open(SLUICE_ACCESS_REMOTE_READ);
    struct memory memory;
    memory_open(&memory, world->sides.pds[1], 64);
    struct sluice_pd *other = sluice_pd_alloc(world->sides.contexts[0]);
    require(other != NULL, "%s", sluice_last_error());
    struct sluice_mr *foreign = sluice_mr_alloc(other, 64, RIGHTS | SLUICE_ACCESS_LOCAL_WRITE);
    struct sluice_mr *none = sluice_mr_alloc(world->sides.pds[0], 64, SLUICE_ACCESS_LOCAL_WRITE);
    require(foreign != NULL && none != NULL, "%s", sluice_last_error());
    require_null(sluice_buffer_publish_mr(world->owner, world->mr, 0, 8, RIGHTS), EACCES,
                 "0x6 more than the region 0x4");
    require_null(sluice_buffer_publish_mr(world->owner, none, 0, 8, SLUICE_ACCESS_REMOTE_READ),
                 EACCES, "is 0");
    require_null(sluice_buffer_publish_mr(world->owner, foreign, 0, 8, RIGHTS), EINVAL,
                 "no protection domain of the service");
    require_null(sluice_buffer_publish_mr(world->owner, world->mr, 0, 0, SLUICE_ACCESS_REMOTE_READ),
                 EINVAL, "length 0");
    require_null(
        sluice_buffer_publish_mr(world->owner, world->mr, 1, WHOLE, SLUICE_ACCESS_REMOTE_READ),
        ERANGE, "outside the region of 262144 bytes");
    require_null(
        sluice_buffer_publish_mr(world->owner, world->mr, SIZE_MAX, 2, SLUICE_ACCESS_REMOTE_READ),
        ERANGE, "outside");
    require_null(sluice_buffer_publish_mr(world->owner, world->mr, 0, 8, SLUICE_ACCESS_LOCAL_WRITE),
                 EINVAL, "access 0x1");
    require_null(sluice_buffer_publish_mr(world->owner, NULL, 0, 8, RIGHTS), EINVAL, "mr is not");
    require_null(sluice_buffer_publish_mr(NULL, world->mr, 0, 8, RIGHTS), EINVAL,
                 "not a buffer service");
    require_ok(sluice_mr_deregister(foreign));
    require_ok(sluice_mr_deregister(none));
    sluice_pd_free(other);
    memory_close(&memory);
    world_close(world);
}

static void count_release(void *argument)
{
    atomic_fetch_add((atomic_uint *)argument, 1);
}

/* Waits until the region is released, perhaps by another thread. */
static void require_released(atomic_uint *released)
{
    for (int i = 0; atomic_load(released) == 0 && i < 10000; i++)
        let_pass(SLUICE_MS(1));
    require(atomic_load(released) == 1, "released %u times", atomic_load(released));
}

/* The region outlasts its buffers, whether they or the service end first. */
TEST(a_region_waits_for_its_buffers, .times = 2)
{
    struct world *world = world_open(RIGHTS);
    struct sluice_buffer_handle handles[2];
    atomic_uint released = 0;
    struct sluice_mr *mr =
        sluice_mr_alloc(world->sides.pds[0], WHOLE, RIGHTS | SLUICE_ACCESS_LOCAL_WRITE);
    require(mr != NULL, "%s", sluice_last_error());
    uint8_t *bytes = sluice_mr_addr(mr);
    struct sluice_buffer *buffers[2] = {publish(world, mr, 0, PAGE, RIGHTS, &handles[0]),
                                        publish(world, mr, AT, LENGTH, RIGHTS, &handles[1])};
    require_error(sluice_mr_deregister(mr), -EBUSY, "published as buffer");
    require_error(sluice_mr_deregister_wait(mr, SLUICE_MS(2)), -ETIMEDOUT, "published as buffer");
    sluice_buffer_release(buffers[1]);
    require_error(sluice_mr_deregister(mr), -EBUSY, "published as buffer 1: release it first");
    buffers[1] = publish(world, mr, AT, LENGTH, RIGHTS, &handles[1]);
    require_result(sluice_mr_release(mr, count_release, &released), 1);
    require_null(sluice_buffer_publish_mr(world->owner, mr, 0, 8, RIGHTS), EINVAL, "mr is not");
    use(world, &handles[1], bytes + AT, LENGTH);
    sluice_buffer_release(buffers[0]);
    require(atomic_load(&released) == 0, "it has ended");
    use(world, &handles[1], bytes + AT, LENGTH);
    if (_i == 0) {
        sluice_buffer_release(buffers[1]);
    } else {
        sluice_buffer_service_close(world->owner);
        sluice_buffer_release(buffers[1]);
        world->owner = open_service(world->sides.pds[0], NULL);
    }
    require_released(&released);
    require(read_of(world, &handles[1], 0, LENGTH) < 0, "it is read");
    world_close(world);
}

/*
 * A shared block can be published. A block of a slab cannot, because its neighbours have other
 * users.
 */
TEST(blocks_of_an_allocator)
{
    struct world *world = world_open(RIGHTS);
    struct sluice_allocator *allocator =
        sluice_allocator_create(world->sides.pds[0], RIGHTS | SLUICE_ACCESS_LOCAL_WRITE, NULL);
    struct sluice_allocator *local =
        sluice_allocator_create(world->sides.pds[1], SLUICE_ACCESS_LOCAL_WRITE, NULL);
    struct sluice_buffer_handle handle;
    struct sluice_remote_mr remote;
    require(allocator != NULL && local != NULL, "%s", sluice_last_error());
    uint8_t *block = sluice_allocator_alloc_shared(allocator, WHOLE, &remote);
    uint8_t *small = sluice_allocator_alloc(allocator, 100, 0);
    uint8_t *own = sluice_allocator_alloc(local, LENGTH, 0);
    require(block != NULL && small != NULL && own != NULL, "%s", sluice_last_error());
    struct sluice_mr *mr = sluice_allocator_mr(allocator, block + 9);
    require(mr != NULL && sluice_mr_addr(mr) == block, "%s", sluice_last_error());
    struct sluice_buffer *buffer = publish(world, mr, AT, LENGTH, RIGHTS, &handle);
    use(world, &handle, block + AT, LENGTH);
    require_error(sluice_allocator_free(allocator, block), -EBUSY, "published as buffer 1");
    require_error(sluice_mr_deregister(mr), -EINVAL, "of an allocator");
    require_result(sluice_mr_release(mr, NULL, NULL), -EINVAL);
    struct sluice_mr *slab = sluice_allocator_mr(allocator, small);
    require(slab != NULL && slab != mr, "%s", sluice_last_error());
    require_null(sluice_buffer_publish_mr(world->owner, slab, 0, 8, SLUICE_ACCESS_REMOTE_READ),
                 EACCES, "more than the region");
    /* A block can also be the local memory of an action. */
    struct sluice_mr *of_own = sluice_allocator_mr(local, own);
    require(of_own != NULL, "%s", sluice_last_error());
    pattern_fill(block + AT, LENGTH, 3);
    require_ok(sluice_buffer_read(world->user, &handle, 0, of_own, own, LENGTH, DEADLINE));
    pattern_check(own, LENGTH, 3);
    require_null(sluice_allocator_mr(allocator, own), EINVAL, "no block");
    require_null(sluice_allocator_mr(allocator, NULL), EINVAL, "no block");
    require_null(sluice_allocator_mr(NULL, own), EINVAL, "allocator");
    atomic_uint released = 0;
    require_result(sluice_allocator_release(allocator, block, count_release, &released), 1);
    require_ok(read_of(world, &handle, 0, LENGTH));
    pattern_check(world->target, LENGTH, 3);
    sluice_buffer_release(buffer);
    require_released(&released);
    require_ok(sluice_allocator_free(allocator, small));
    require_ok(sluice_allocator_free(local, own));
    require_ok(sluice_allocator_destroy(allocator));
    require_ok(sluice_allocator_destroy(local));
    world_close(world);
}

/* A thread that reads or writes a buffer until it is released. */
struct worker {
    pthread_t thread;
    struct sluice_buffer_service *user;
    struct sluice_buffer_handle handle;
    bool writes;
    atomic_uint times;
};

/* All words of a read are those of the published buffer. */
static void *keep_working(void *argument)
{
    struct worker *worker = argument;
    uint64_t *words = malloc(WHOLE);
    int error = 0;
    require(words != NULL, "no memory");
    memset(words, 3, WHOLE);
    while (error == 0) {
        error = worker->writes ? sluice_buffer_write(worker->user, &worker->handle, 0, NULL, words,
                                                     LENGTH, DEADLINE)
                               : sluice_buffer_read(worker->user, &worker->handle, 0, NULL, words,
                                                    LENGTH, DEADLINE);
        for (uint32_t i = 0; i < LENGTH / 8 && error == 0 && !worker->writes; i++) {
            require(words[i] == UINT64_C(0x0101010101010101), "word %u is %#llx", i,
                    (unsigned long long)words[i]);
        }
        atomic_fetch_add(&worker->times, 1);
    }
    require(error == -EACCES, "%d: %s", error, sluice_last_error());
    free(words);
    return NULL;
}

/* Returns when the worker has begun, or has also mapped all that it may. */
static void worker_start(struct worker *worker, bool settled)
{
    require_result(pthread_create(&worker->thread, NULL, keep_working, worker), 0);
    while (atomic_load(&worker->times) < (settled ? 2 * SETTLED : 1)) {
        let_pass(SLUICE_US(100));
    }
}

/* After the release returns, the program changes the bytes, and no reader receives the new ones. */
TEST(released_while_it_is_read, .times = 3)
{
    struct world *world = world_open(RIGHTS);
    struct worker reader = {.user = world->user};
    memset(world->bytes + AT, 1, LENGTH);
    struct sluice_buffer *buffer =
        publish(world, world->mr, AT, LENGTH, SLUICE_ACCESS_REMOTE_READ, &reader.handle);
    worker_start(&reader, _i > 0);
    sluice_buffer_release(buffer);
    if (_i == 2) {
        /* The region ends, too, and so its pages are unmapped. */
        require_ok(sluice_mr_deregister(world->mr));
        world->mr = sluice_mr_alloc(world->sides.pds[0], WHOLE, SLUICE_ACCESS_LOCAL_WRITE);
        require(world->mr != NULL, "%s", sluice_last_error());
        world->bytes = sluice_mr_addr(world->mr);
    }
    memset(world->bytes, 2, WHOLE);
    pthread_join(reader.thread, NULL);
    world_close(world);
}

/* After the release returns, no write changes the bytes, also one that was under way. */
TEST(released_while_it_is_written, .times = 3)
{
    struct world *world = world_open(RIGHTS);
    struct worker writer = {.user = world->user, .writes = true};
    struct sluice_buffer *buffer =
        publish(world, world->mr, AT, LENGTH, SLUICE_ACCESS_REMOTE_WRITE, &writer.handle);
    worker_start(&writer, _i > 0);
    sluice_buffer_release(buffer);
    memset(world->bytes, 2, WHOLE);
    pthread_join(writer.thread, NULL);
    for (uint32_t i = 0; i < WHOLE; i++) {
        require(world->bytes[i] == 2, "byte %u is %u", i, world->bytes[i]);
    }
    world_close(world);
}

/* In a child of fork(2) the parent's objects are invalid, and calls on them end nothing. */
TEST(a_child_ends_nothing)
{
    struct world *world = world_open(RIGHTS);
    struct sluice_buffer_handle handle;
    int status;
    struct sluice_buffer *buffer = publish(world, world->mr, AT, LENGTH, RIGHTS, &handle);
    require_ok(read_of(world, &handle, 0, LENGTH));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int error = sluice_mr_deregister(world->mr);
        const struct sluice_buffer *made =
            sluice_buffer_publish_mr(world->owner, world->mr, 0, 8, RIGHTS);
        sluice_buffer_release(buffer);
        sluice_buffer_service_close(world->owner);
        _exit(error == -EINVAL && made == NULL ? 0 : 1);
    }
    require(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "the child: %#x", status);
    use(world, &handle, world->bytes + AT, LENGTH);
    require_error(sluice_mr_deregister(world->mr), -EBUSY, "published");
    sluice_buffer_release(buffer);
    check_neighbours(world, AT, LENGTH);
    world_close(world);
}

/* A service with two domains: the region is in one, and its bytes can be reached over both. */
TEST(all_domains_of_the_service_have_it, .times = 2, .unless = device_is_soft)
{
    struct sluice_context *contexts[2] = {open_context(), sluice_context_open("soft", NULL)};
    struct sluice_pd *pds[2] = {sluice_pd_alloc(contexts[0]), sluice_pd_alloc(contexts[1])};
    const struct sluice_buffer_service_attr attr = {.size = sizeof(attr), .address = "127.0.0.1:0"};
    struct sluice_buffer_service *owner = sluice_buffer_service_open(pds, 2, &attr);
    struct sluice_mr *mr = sluice_mr_alloc(pds[_i], WHOLE, RIGHTS | SLUICE_ACCESS_LOCAL_WRITE);
    struct sluice_buffer_handle handle;
    static uint8_t target[LENGTH];
    require(owner != NULL && mr != NULL, "%s", sluice_last_error());
    struct sluice_buffer *buffer = sluice_buffer_publish_mr(owner, mr, AT, LENGTH, RIGHTS);
    require(buffer != NULL, "%s", sluice_last_error());
    require_ok(sluice_buffer_export(buffer, &handle));
    for (int i = 0; i < 2; i++) {
        struct sluice_buffer_service *user = sluice_buffer_service_open(&pds[i], 1, &attr);
        require(user != NULL, "%s", sluice_last_error());
        pattern_fill((uint8_t *)sluice_mr_addr(mr) + AT, LENGTH, 40 + (uint64_t)i);
        for (int k = 0; k < SETTLED; k++) {
            require_ok(sluice_buffer_read(user, &handle, 0, NULL, target, LENGTH, DEADLINE));
        }
        pattern_check(target, LENGTH, 40 + (uint64_t)i);
        require_result(level_of(user, &handle), i == 0 ? SLUICE_LEVEL_NIC : SLUICE_LEVEL_MEMORY);
        sluice_buffer_service_close(user);
    }
    sluice_buffer_release(buffer);
    require_ok(sluice_mr_deregister(mr));
    sluice_buffer_service_close(owner);
    for (int i = 0; i < 2; i++) {
        sluice_pd_free(pds[i]);
        sluice_context_close(contexts[i]);
    }
}

/* No descriptors are left open: neither those of parts nor those passed to peers. */
TEST(nothing_is_left)
{
    struct world *world = world_open(RIGHTS);
    struct sluice_buffer_handle handle;
    int fds = 0;
    for (int i = 0; i < 10; i++) {
        struct sluice_buffer *buffer = publish(
            world, world->mr, AT, LENGTH, i % 2 == 0 ? SLUICE_ACCESS_REMOTE_READ : RIGHTS, &handle);
        for (int k = 0; k < SETTLED; k++) {
            require_ok(read_of(world, &handle, 0, LENGTH));
        }
        sluice_buffer_release(buffer);
        if (i == 1) {
            fds = settle_fds(0);
        }
    }
    require(settle_fds(fds) <= fds, "%d left", count_fds() - fds);
    world_close(world);
}

int main(void)
{
    return run_tests("buffer_region", short_run() ? 40 : 60);
}
