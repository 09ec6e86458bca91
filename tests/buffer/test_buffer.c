/* SPDX-License-Identifier: MIT */
/*
 * Remote buffers by name. A program that has a handle can read and write the buffer over a
 * transport that both sides have. A long request has one result. A forged or damaged handle is
 * reported as such. A handle of a released buffer is refused, and never names other memory.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../support/fair.h"
#include "../support/pair.h"
#include "../support/process.h"
#include "service.h"
#include "world.h"

#define RIGHTS (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE)
#define LENGTH ((size_t)200001)
#define MANY 500

static struct sluice_buffer_action
action_of(uint32_t opcode, const struct sluice_buffer_handle *handle, void *addr, uint64_t length)
{
    return (struct sluice_buffer_action){
        .opcode = opcode, .handle = handle, .addr = addr, .length = length};
}

/* With and without a region of the program, for memory of the program and for allocated memory. */
TEST(a_handle_is_enough, .times = 4)
{
    struct world world;
    struct memory memory;
    struct sluice_buffer_handle handle;
    uint8_t *bytes = _i < 2 ? malloc(LENGTH) : NULL;
    world_open(&world, NULL);
    memory_open(&memory, world.sides.pds[1], LENGTH);
    struct sluice_mr *mr = _i % 2 == 0 ? memory.mr : NULL;
    struct sluice_buffer *buffer = publish(world.owner, bytes, LENGTH, RIGHTS, &handle);
    uint8_t *owned = sluice_buffer_addr(buffer);
    require(bytes == NULL || owned == bytes, "%p", (void *)owned);
    pattern_fill(owned, LENGTH, pattern_key(0, 1, 1));
    struct sluice_channel_info info = {.size = sizeof(info)};
    require_error(sluice_buffer_connection_query(world.user, &handle, &info), -ENOTCONN,
                  "is not there");
    require_ok(sluice_buffer_read(world.user, &handle, 0, mr, memory.bytes, LENGTH, DEADLINE));
    pattern_check(memory.bytes, LENGTH, pattern_key(0, 1, 1));
    pattern_fill(memory.bytes, LENGTH, pattern_key(1, 0, 2));
    require_ok(
        sluice_buffer_write(world.user, &handle, 7, mr, memory.bytes + 7, LENGTH - 14, DEADLINE));
    require(memcmp(owned + 7, memory.bytes + 7, LENGTH - 14) == 0, "other bytes");
    require(owned[6] != memory.bytes[6] || owned[5] != memory.bytes[5], "bytes before it");
    require_ok(sluice_buffer_connection_query(world.user, &handle, &info));
    require(!device_is_soft() || current_wire() == WIRE_TCP ? true
                                                            : info.level == SLUICE_LEVEL_MEMORY,
            "level %u", info.level);
    sluice_buffer_release(buffer);
    memory_close(&memory);
    world_close(&world);
    free(bytes);
}

/* A process can also use its own buffers by handle. */
TEST(an_owner_is_its_own_user)
{
    struct world world;
    struct sluice_buffer_handle handle;
    uint64_t value = 41, got = 0;
    world_open(&world, NULL);
    struct sluice_buffer *buffer = publish(world.user, &value, sizeof(value), RIGHTS, &handle);
    require_ok(sluice_buffer_read(world.user, &handle, 0, NULL, &got, sizeof(got), DEADLINE));
    require(got == 41, "%llu", (unsigned long long)got);
    sluice_buffer_release(buffer);
    world_close(&world);
}

/* Without an address of the program, a service listens at that of the environment. */
TEST(a_service_listens_where_the_environment_says)
{
    struct sides sides;
    struct sluice_buffer_service *service;
    struct sluice_buffer_handle handle;
    struct sluice_buffer_info info = {.size = sizeof(info)};
    uint8_t bytes[100];
    sides_open(&sides);
    setenv("SLUICE_TCP_ADDRESS", "127.0.0.3", 1);
    service = sluice_buffer_service_open(&sides.pds[0], 1, NULL);
    require(service != NULL, "%s", sluice_last_error());
    struct sluice_buffer *buffer =
        publish(service, bytes, sizeof(bytes), SLUICE_ACCESS_REMOTE_READ, &handle);
    require_ok(sluice_buffer_handle_query(&handle, &info));
    require_words(info.address, "127.0.0.3:");
    sluice_buffer_release(buffer);
    sluice_buffer_service_close(service);
    sides_close(&sides);
}

/* A query describes a handle. A change of any byte of a handle is detected. */
TEST(handles_are_not_trusted)
{
    struct world world;
    struct sluice_buffer_handle handle, other;
    struct sluice_buffer_info info = {.size = sizeof(info)};
    struct sluice_remote_mr remote;
    uint8_t bytes[100], target[100];
    world_open(&world, NULL);
    struct sluice_buffer *buffer =
        publish(world.owner, bytes, sizeof(bytes), SLUICE_ACCESS_REMOTE_READ, &handle);
    require_ok(sluice_buffer_handle_query(&handle, &info));
    require(info.length == sizeof(bytes) && info.access == SLUICE_ACCESS_REMOTE_READ, "%llu",
            (unsigned long long)info.length);
    require_words(info.address, "127.0.0.1:");
    require_words(info.transports, device_is_soft() ? "soft" : "verbs");
    require_ok(sluice_buffer_remote(world.user, &handle, NULL, &remote));
    require(remote.length == sizeof(bytes) && remote.addr == (uintptr_t)bytes, "%#llx",
            (unsigned long long)remote.addr);
    for (size_t i = 0; i < sizeof(handle.bytes); i++) {
        other = handle;
        other.bytes[i] ^= (uint8_t)(1 << i % 8);
        require_result(sluice_buffer_handle_query(&other, &info), -EPROTO);
        other = handle;
        memset(other.bytes + i, 0, sizeof(other.bytes) - i);
        /* The rest of the handle may already be zeros. */
        other.bytes[i] ^= memcmp(&other, &handle, sizeof(other)) == 0;
        require_result(sluice_buffer_read(world.user, &other, 0, NULL, target, 1, DEADLINE),
                       -EPROTO);
    }
    for (int i = 0; i < MANY; i++) {
        for (size_t k = 0; k < sizeof(other.bytes); k++) {
            other.bytes[k] = (uint8_t)rand();
        }
        require_result(sluice_buffer_read(world.user, &other, 0, NULL, target, 1, DEADLINE),
                       -EPROTO);
    }
    sluice_buffer_release(buffer);
    world_close(&world);
}

TEST(mistakes_are_told_before_anything_begins)
{
    struct world world;
    struct memory memory;
    struct sluice_buffer_handle handle;
    struct sluice_completion completions[2];
    struct sluice_remote_mr remote;
    uint8_t bytes[100];
    world_open(&world, NULL);
    memory_open(&memory, world.sides.pds[1], 100);
    struct sluice_pd *other = sluice_pd_alloc(world.sides.contexts[1]);
    require(other, "%s", sluice_last_error());
    struct sluice_buffer *buffer = publish(world.owner, bytes, sizeof(bytes), RIGHTS, &handle);
    struct sluice_buffer_action actions[2] = {
        action_of(SLUICE_OP_WRITE, &handle, memory.bytes, 100),
        action_of(SLUICE_OP_WRITE, &handle, memory.bytes, 100)};
    memset(bytes, 1, sizeof(bytes));
    memset(memory.bytes, 2, 100);
    memset(completions, 0x55, sizeof(completions));
    actions[1].offset = 1;
    require_error(sluice_buffer_submit(world.user, actions, 2, DEADLINE, completions), -ERANGE,
                  "action 1: write of 100 bytes at offset 1 buffer 1 of 127.0.0.1: has 100 bytes");
    actions[1].offset = UINT64_MAX;
    require_error(sluice_buffer_submit(world.user, actions, 2, DEADLINE, completions), -ERANGE,
                  "offset 18446744073709551615");
    actions[1].offset = 0;
    actions[1].mr = memory.mr;
    actions[1].addr = memory.bytes + 1;
    require_error(sluice_buffer_submit(world.user, actions, 2, DEADLINE, completions), -ERANGE,
                  "outside the region");
    actions[1].addr = NULL;
    actions[1].mr = NULL;
    require_error(sluice_buffer_submit(world.user, actions, 2, DEADLINE, completions), -EINVAL,
                  "addr must not be NULL");
    actions[1].addr = memory.bytes;
    actions[1].opcode = SLUICE_OP_SEND;
    require_error(sluice_buffer_submit(world.user, actions, 2, DEADLINE, completions), -EINVAL,
                  "opcode 1");
    actions[1].opcode = SLUICE_OP_READ;
    require_error(sluice_buffer_submit(world.user, actions, 2, -1, completions), -EINVAL,
                  "deadline -1");
    require_error(sluice_buffer_submit(NULL, actions, 2, DEADLINE, completions), -EINVAL,
                  "not a buffer service");
    value_check((uint8_t *)completions, sizeof(completions), 0x55);
    value_check(bytes, sizeof(bytes), 1);
    require_ok(sluice_buffer_submit(world.user, actions, 0, DEADLINE, NULL));
    require_null(sluice_buffer_publish(world.owner, bytes, 100, SLUICE_ACCESS_LOCAL_WRITE), EINVAL,
                 "access 0x1");
    require_null(sluice_buffer_publish(world.owner, bytes, 0, RIGHTS), EINVAL, "length");
    require_null(sluice_buffer_service_open(world.sides.pds, 0, NULL), EINVAL, "0 protection");
    require_error(sluice_buffer_remote(world.user, &handle, other, &remote), -EINVAL,
                  "no protection domain of the service");
    sluice_pd_free(other);
    sluice_buffer_release(buffer);
    memory_close(&memory);
    world_close(&world);
}

/* An action that the handle does not allow is refused locally and does not cost the connection. */
TEST(rights_are_those_of_the_handle)
{
    struct world world;
    struct sluice_buffer_handle handles[2];
    struct sluice_completion completions[3];
    uint8_t bytes[2][64], target[64] = {0};
    world_open(&world, NULL);
    struct sluice_buffer *readable =
        publish(world.owner, bytes[0], 64, SLUICE_ACCESS_REMOTE_READ, &handles[0]);
    struct sluice_buffer *writable =
        publish(world.owner, bytes[1], 64, SLUICE_ACCESS_REMOTE_WRITE, &handles[1]);
    struct sluice_buffer_action actions[3] = {action_of(SLUICE_OP_WRITE, &handles[0], target, 64),
                                              action_of(SLUICE_OP_READ, &handles[1], target, 64),
                                              action_of(SLUICE_OP_WRITE, &handles[1], target, 64)};
    memset(bytes, 9, sizeof(bytes));
    actions[2].user_data = 77;
    require_error(sluice_buffer_submit(world.user, actions, 3, DEADLINE, completions), -EACCES,
                  "action 0: write of 64 bytes at offset 0 of buffer 1 of 127.0.0.1: not published "
                  "for a write");
    require_class(&completions[0], SLUICE_CLASS_ACCESS);
    require_class(&completions[1], SLUICE_CLASS_ACCESS);
    require_class(&completions[2], SLUICE_CLASS_NONE);
    require(completions[2].user_data == 77 && completions[2].bytes == 64, "%llu",
            (unsigned long long)completions[2].bytes);
    value_check(bytes[0], 64, 9);
    value_check(bytes[1], 64, 0);
    sluice_buffer_release(readable);
    sluice_buffer_release(writable);
    world_close(&world);
}

/* Requests longer than a message, and with more pieces than the queue is deep. */
TEST(long_requests_have_one_result)
{
    const struct sluice_channel_attr channel = {
        .size = sizeof(channel), .max_message = 4096, .send_depth = 8};
    const size_t length = ((size_t)1 << (device_is_soft() ? 20 : 17)) + 3;
    struct world world;
    struct memory memory;
    struct sluice_buffer_handle handle;
    struct sluice_completion completions[4];
    struct sluice_buffer_action actions[4];
    uint8_t *bytes = malloc(length);
    world_open(&world, &channel);
    memory_open(&memory, world.sides.pds[1], 4 * length);
    struct sluice_buffer *buffer = publish(world.owner, bytes, length, RIGHTS, &handle);
    pattern_fill(bytes, length, pattern_key(0, 1, 3));
    for (uint32_t i = 0; i < 4; i++) {
        actions[i] = action_of(SLUICE_OP_READ, &handle, memory.bytes + i * length, length - i);
        actions[i].offset = i;
        actions[i].mr = memory.mr;
    }
    require_ok(sluice_buffer_submit(world.user, actions, 4, 2 * DEADLINE, completions));
    for (uint32_t i = 0; i < 4; i++) {
        require(completions[i].bytes == length - i, "%llu",
                (unsigned long long)completions[i].bytes);
        require(memcmp(memory.bytes + i * length, bytes + i, length - i) == 0, "other bytes");
    }
    sluice_buffer_release(buffer);
    memory_close(&memory);
    world_close(&world);
    free(bytes);
}

/* PARTS parts of one address range, all mapped to the same memory of PART bytes. */
#define PART ((size_t)64 << 20)
#define PARTS 66

static uint8_t *map_large(void)
{
    int fd = memfd_create("large", MFD_CLOEXEC);
    uint8_t *range =
        mmap(NULL, PARTS * PART, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(fd >= 0 && range != MAP_FAILED && ftruncate(fd, (off_t)PART) == 0, "%s",
            strerror(errno));
    for (size_t i = 0; i < PARTS; i++) {
        require(mmap(range + i * PART, PART, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                     0) != MAP_FAILED,
                "%s", strerror(errno));
    }
    close(fd);
    return range;
}

TEST(more_than_4_gib_in_one_request, .unless = short_run)
{
    struct world world;
    struct sluice_buffer_handle handle;
    struct sluice_completion completion;
    uint8_t *bytes = map_large(), *target = map_large();
    world_open(&world, NULL);
    struct sluice_mr *mr =
        sluice_mr_register(world.sides.pds[1], target, PARTS * PART, SLUICE_ACCESS_LOCAL_WRITE);
    require(mr != NULL, "%s", sluice_last_error());
    struct sluice_buffer *buffer = publish(world.owner, bytes, PARTS * PART, RIGHTS, &handle);
    struct sluice_buffer_action action =
        action_of(SLUICE_OP_READ, &handle, target, PARTS * PART - 1);
    action.mr = mr;
    pattern_fill(bytes, PART, pattern_key(0, 1, 5));
    require_ok(sluice_buffer_submit(world.user, &action, 1, 10 * DEADLINE, &completion));
    require(completion.bytes == PARTS * PART - 1, "%llu", (unsigned long long)completion.bytes);
    pattern_check(target, PART, pattern_key(0, 1, 5));
    sluice_buffer_release(buffer);
    require_ok(sluice_mr_deregister(mr));
    world_close(&world);
    munmap(bytes, PARTS * PART);
    munmap(target, PARTS * PART);
}

/* Only the action that names a released buffer is refused, not the others of its batch or link. */
TEST(a_released_buffer_is_refused)
{
    struct world world;
    struct sluice_buffer_handle handles[2];
    struct sluice_completion completions[3];
    uint8_t bytes[2][4096], target[3][4096];
    world_open(&world, NULL);
    struct sluice_buffer *gone = publish(world.owner, bytes[0], 4096, RIGHTS, &handles[0]);
    struct sluice_buffer *stays = publish(world.owner, bytes[1], 4096, RIGHTS, &handles[1]);
    memset(bytes[0], 3, 4096);
    memset(bytes[1], 4, 4096);
    for (int round = 0; round < 3; round++) {
        struct sluice_buffer_action actions[3] = {
            action_of(SLUICE_OP_READ, &handles[1], target[0], 4096),
            action_of(SLUICE_OP_READ, &handles[0], target[1], 4096),
            action_of(SLUICE_OP_READ, &handles[1], target[2], 4096)};
        memset(target, 0, sizeof(target));
        require_result(sluice_buffer_submit(world.user, actions, 3, DEADLINE, completions),
                       round == 0 ? 0 : -EACCES);
        require_class(&completions[0], SLUICE_CLASS_NONE);
        require_class(&completions[1], round == 0 ? SLUICE_CLASS_NONE : SLUICE_CLASS_ACCESS);
        require_class(&completions[2], SLUICE_CLASS_NONE);
        value_check(target[0], 4096, 4);
        value_check(target[1], 4096, round == 0 ? 3 : 0);
        value_check(target[2], 4096, 4);
        if (round == 0) {
            sluice_buffer_release(gone);
        }
    }
    require_words(sluice_last_error(),
                  "action 1: read of 4096 bytes at offset 0 of buffer 1 of 127.0.0.1: "
                  "released");
    sluice_buffer_release(stays);
    world_close(&world);
}

/* The same memory is published many times: no earlier handle names it. */
TEST(no_handle_names_a_later_buffer)
{
    struct world world;
    struct sluice_buffer_handle old, handle;
    uint8_t bytes[64], target[64];
    world_open(&world, NULL);
    struct sluice_buffer *buffer = publish(world.owner, bytes, 64, RIGHTS, &old);
    for (int i = 0; i < MANY; i++) {
        struct sluice_remote_mr before, after;
        sluice_buffer_release(buffer);
        buffer = publish(world.owner, bytes, 64, RIGHTS, &handle);
        require_ok(sluice_buffer_remote(world.user, &old, NULL, &before));
        require_ok(sluice_buffer_remote(world.user, &handle, NULL, &after));
        require(before.rkey != after.rkey, "key %#x again", after.rkey);
    }
    require_result(sluice_buffer_read(world.user, &old, 0, NULL, target, 64, DEADLINE), -EACCES);
    require_ok(sluice_buffer_read(world.user, &handle, 0, NULL, target, 64, DEADLINE));
    sluice_buffer_release(buffer);
    world_close(&world);
}

/* Threads that use one service to read buffers that are published and released meanwhile. */
#define THREADS 4
#define SLOTS 3

struct market {
    struct world world;
    pthread_mutex_t lock;
    struct sluice_buffer_handle handles[SLOTS];
    uint64_t values[SLOTS]; /* the value of all words of the buffer */
    bool over;
    uint32_t reads[THREADS], refused;
};

struct reader {
    pthread_t thread;
    struct market *market;
    uint32_t index;
};

static void *keep_reading(void *argument)
{
    struct reader *reader = argument;
    struct market *market = reader->market;
    uint64_t words[1024];
    for (uint32_t at = reader->index;; at++) {
        pthread_mutex_lock(&market->lock);
        struct sluice_buffer_handle handle = market->handles[at % SLOTS];
        uint64_t value = market->values[at % SLOTS];
        bool over = market->over;
        pthread_mutex_unlock(&market->lock);
        if (over) {
            return NULL;
        }
        memset(words, 0, sizeof(words));
        /*
         * A refusal of another thread may end the connection meanwhile; the service then makes a
         * new one.
         */
        int error = sluice_buffer_read(market->world.user, &handle, 0, NULL, words, sizeof(words),
                                       THREADS * DEADLINE);
        require(error == 0 || error == -EACCES, "%d: %s", error, sluice_last_error());
        for (uint32_t i = 0; i < COUNT(words) && error == 0; i++) {
            require(words[i] == value, "word %u is %llu, not %llu", i, (unsigned long long)words[i],
                    (unsigned long long)value);
        }
        pthread_mutex_lock(&market->lock);
        (*(error == 0 ? &market->reads[reader->index] : &market->refused))++;
        pthread_mutex_unlock(&market->lock);
    }
}

static struct sluice_buffer *offer(struct market *market, uint32_t slot, uint64_t value,
                                   uint64_t *words)
{
    struct sluice_buffer_handle handle;
    for (uint32_t i = 0; i < 1024; i++) {
        words[i] = value;
    }
    struct sluice_buffer *buffer =
        publish(market->world.owner, words, 1024 * sizeof(*words), RIGHTS, &handle);
    pthread_mutex_lock(&market->lock);
    market->handles[slot] = handle;
    market->values[slot] = value;
    pthread_mutex_unlock(&market->lock);
    return buffer;
}

/* Returns whether each thread has done this many reads, and all together had this many refusals. */
static bool have_read(struct market *market, uint32_t reads, uint32_t refused)
{
    pthread_mutex_lock(&market->lock);
    bool all = market->refused >= refused;
    for (uint32_t i = 0; i < THREADS; i++) {
        all = all && market->reads[i] >= reads;
    }
    pthread_mutex_unlock(&market->lock);
    return all;
}

/* Each release waits until all threads have read since the last one, so it hits reads in flight. */
TEST(release_under_load_shows_no_other_bytes)
{
    /* Each refusal ends the connection for all threads, and the device is emulated and so slow. */
    const uint32_t rounds = !short_run() ? 100 : device_is_soft() ? 10 : 3;
    static uint64_t words[SLOTS][1024];
    struct market market = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct reader readers[THREADS];
    struct sluice_buffer *buffers[SLOTS];
    uint64_t value = 1;
    world_open(&market.world, NULL);
    for (uint32_t i = 0; i < SLOTS; i++) {
        buffers[i] = offer(&market, i, value++, words[i]);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        readers[i] = (struct reader){.market = &market, .index = i};
        require_result(pthread_create(&readers[i].thread, NULL, keep_reading, &readers[i]), 0);
    }
    for (uint32_t round = 1; round <= rounds || !have_read(&market, 0, rounds / 2); round++) {
        uint32_t slot = round % SLOTS;
        while (!have_read(&market, round, 0)) {
            let_pass(SLUICE_US(100));
        }
        sluice_buffer_release(buffers[slot]);
        buffers[slot] = offer(&market, slot, value++, words[slot]);
    }
    pthread_mutex_lock(&market.lock);
    market.over = true;
    pthread_mutex_unlock(&market.lock);
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(readers[i].thread, NULL);
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        sluice_buffer_release(buffers[i]);
    }
    world_close(&market.world);
}

/* An owner on a device and on soft is reached by users with either transport or both. */
TEST(any_transport_in_common_will_do, .times = 3, .unless = device_is_soft)
{
    struct sluice_context *contexts[2] = {open_context(), sluice_context_open("soft", NULL)};
    struct sluice_pd *pds[2] = {sluice_pd_alloc(contexts[0]), sluice_pd_alloc(contexts[1])};
    const struct sluice_buffer_service_attr attr = {.size = sizeof(attr), .address = "127.0.0.1:0"};
    struct sluice_buffer_handle both, one;
    uint8_t bytes[4096], target[4096] = {0};
    struct sluice_buffer_service *owner = sluice_buffer_service_open(pds, 2, &attr);
    struct sluice_buffer_service *user =
        sluice_buffer_service_open(_i == 2 ? &pds[1] : pds, _i == 0 ? 2 : 1, &attr);
    require(owner != NULL && user != NULL, "%s", sluice_last_error());
    struct sluice_buffer *of_both = publish(owner, bytes, sizeof(bytes), RIGHTS, &both);
    struct sluice_buffer *of_one = publish(user, bytes, sizeof(bytes), RIGHTS, &one);
    memset(bytes, 8, sizeof(bytes));
    require_ok(sluice_buffer_read(user, &both, 0, NULL, target, 4096, DEADLINE));
    value_check(target, 4096, 8);
    require_result(level_of(user, &both), _i == 2 ? SLUICE_LEVEL_MEMORY : SLUICE_LEVEL_NIC);
    /* The region of an action selects the transport. */
    struct sluice_mr *mr =
        sluice_mr_register(pds[1], target, sizeof(target), SLUICE_ACCESS_LOCAL_WRITE);
    require(mr != NULL, "%s", sluice_last_error());
    memset(target, 0, sizeof(target));
    require_result(sluice_buffer_read(owner, &one, 0, mr, target, 4096, DEADLINE),
                   _i == 1 ? -EPROTOTYPE : 0);
    value_check(target, 4096, _i == 1 ? 0 : 8);
    require_ok(sluice_mr_deregister(mr));
    require_null(sluice_buffer_publish(owner, NULL, 64, RIGHTS), EINVAL, "one domain, this has 2");
    sluice_buffer_release(of_one);
    sluice_buffer_release(of_both);
    sluice_buffer_service_close(user);
    sluice_buffer_service_close(owner);
    for (int i = 0; i < 2; i++) {
        sluice_pd_free(pds[i]);
        sluice_context_close(contexts[i]);
    }
}

/* A closed service leaves no descriptors open, nor do its connections. */
TEST(nothing_is_left)
{
    struct sides sides;
    struct sluice_buffer_handle handle;
    uint8_t bytes[64], target[64];
    int fds = 0;
    sides_open(&sides);
    for (int i = 0; i < 3; i++) {
        struct world world = {.owner = open_service(sides.pds[0], NULL),
                              .user = open_service(sides.pds[1], NULL)};
        struct sluice_buffer *buffer = publish(world.owner, bytes, 64, RIGHTS, &handle);
        require_ok(sluice_buffer_read(world.user, &handle, 0, NULL, target, 64, DEADLINE));
        sluice_buffer_service_close(world.user);
        sluice_buffer_service_close(world.owner);
        require_error(sluice_buffer_export(buffer, &handle), -ESTALE, "was closed");
        sluice_buffer_release(buffer);
        if (i == 0) {
            fds = settle_fds(0);
        }
    }
    require(settle_fds(fds) <= fds, "%d left", count_fds() - fds);
    sides_close(&sides);
}

int main(void)
{
    return run_tests("buffer", short_run() ? 40 : 120);
}
