/* SPDX-License-Identifier: MIT */
/*
 * Owners of buffers that die, come back, fall silent or were never there. Each request ends by its
 * deadline with the reason, and requests to other owners are not held up.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../support/fair.h"
#include "../support/group.h"
#include "../support/pair.h"
#include "../support/process.h"
#include "service.h"
#include "silent.h"

#define RIGHTS (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE)
#define LENGTH ((size_t)1 << 16)
/* Allowance beyond a deadline on a busy machine, for the bound on draining and its patience. */
#define SLACK SLUICE_S(10)

static struct sluice_buffer_service *open_at(struct sluice_pd *pd, const char *address)
{
    struct sluice_buffer_service_attr attr = {.size = sizeof(attr), .address = address};
    struct sluice_buffer_service *service = sluice_buffer_service_open(&pd, 1, &attr);
    require(service != NULL, "%s", sluice_last_error());
    return service;
}

static struct sluice_buffer *publish(struct sluice_buffer_service *service, void *addr,
                                     size_t length, struct sluice_buffer_handle *handle)
{
    struct sluice_buffer *buffer = sluice_buffer_publish(service, addr, length, RIGHTS);
    require(buffer != NULL, "%s", sluice_last_error());
    require_ok(sluice_buffer_export(buffer, handle));
    return buffer;
}

static struct sluice_buffer_action read_of(const struct sluice_buffer_handle *handle, void *addr,
                                           uint64_t length)
{
    return (struct sluice_buffer_action){
        .opcode = SLUICE_OP_READ, .handle = handle, .addr = addr, .length = length};
}

/* Gets the address at which the owner of a handle listens. */
static void address_of(const struct sluice_buffer_handle *handle, char address[64])
{
    struct sluice_buffer_info info = {.size = sizeof(info)};
    require_ok(sluice_buffer_handle_query(handle, &info));
    snprintf(address, 64, "%s", info.address);
}

/* A handle does not fit another owner at the same address, whatever that one publishes. */
TEST(an_owner_that_comes_again_is_another_one)
{
    struct sides sides;
    struct sluice_buffer_handle old, handle;
    struct sluice_completion completion;
    char address[64];
    uint8_t bytes[64], target[64];
    sides_open(&sides);
    struct sluice_buffer_service *owner = open_at(sides.pds[0], "127.0.0.1:0");
    struct sluice_buffer_service *user = open_at(sides.pds[1], "127.0.0.1:0");
    struct sluice_buffer *buffer = publish(owner, bytes, sizeof(bytes), &old);
    memset(bytes, 1, sizeof(bytes));
    require_ok(sluice_buffer_read(user, &old, 0, NULL, target, 64, DEADLINE));
    value_check(target, 64, 1);
    address_of(&old, address);
    sluice_buffer_service_close(owner);
    sluice_buffer_release(buffer);
    memset(bytes, 2, sizeof(bytes));
    struct sluice_buffer_action action = read_of(&old, target, 64);
    /* A device that has not seen the farewell has its own reason. */
    require_error(sluice_buffer_submit(user, &action, 1, DEADLINE, &completion), -ECONNREFUSED,
                  device_is_soft() ? "owner was lost (closed by the peer), and cannot be made again"
                                   : "owner was lost and cannot be made again");
    require_result((int)completion.error_class, SLUICE_CLASS_PEER_LOST);
    owner = open_at(sides.pds[0], address);
    buffer = publish(owner, bytes, sizeof(bytes), &handle);
    require_error(sluice_buffer_submit(user, &action, 1, DEADLINE, &completion), -ESTALE,
                  "of buffer 1: its owner is gone: who listens at 127.0.0.1");
    require_result((int)completion.error_class, SLUICE_CLASS_ACCESS);
    value_check(target, 64, 1);
    require_ok(sluice_buffer_read(user, &handle, 0, NULL, target, 64, DEADLINE));
    value_check(target, 64, 2);
    sluice_buffer_release(buffer);
    sluice_buffer_service_close(user);
    sluice_buffer_service_close(owner);
    sides_close(&sides);
}

/* One owner of a batch does not answer and one is gone: the action on the third one succeeds. */
TEST(a_silent_owner_holds_up_nobody)
{
    struct sides sides;
    struct sluice_buffer_handle handles[3];
    struct sluice_buffer_service *owners[3];
    struct sluice_buffer *buffers[3];
    struct sluice_completion completions[3];
    struct sluice_buffer_action actions[3];
    uint8_t bytes[3][64], target[3][64] = {{0}};
    char address[64];
    sides_open(&sides);
    struct sluice_buffer_service *user = open_at(sides.pds[1], "127.0.0.1:0");
    for (int i = 0; i < 3; i++) {
        owners[i] = open_at(sides.pds[0], "127.0.0.1:0");
        buffers[i] = publish(owners[i], bytes[i], 64, &handles[i]);
        memset(bytes[i], 10 + i, 64);
        actions[i] = read_of(&handles[i], target[i], 64);
    }
    address_of(&handles[1], address);
    sluice_buffer_service_close(owners[0]);
    sluice_buffer_service_close(owners[1]);
    int silent = listen_silently(address);
    struct span begin = span_begin();
    require_error(sluice_buffer_submit(user, actions, 3, SLUICE_S(4), completions), -ECONNREFUSED,
                  "cannot connect to its owner");
    require_took(span_since(begin), SLUICE_S(4), SLUICE_S(4) + SLACK);
    require_result((int)completions[0].error_class, SLUICE_CLASS_PEER_LOST);
    require_class(&completions[1], SLUICE_CLASS_TIMEOUT);
    require_class(&completions[2], SLUICE_CLASS_NONE);
    value_check(target[0], 64, 0);
    value_check(target[1], 64, 0);
    value_check(target[2], 64, 12);
    /* The silent owner holds up no later call either, whatever the state of its connection. */
    require_error(sluice_buffer_read(user, &handles[1], 0, NULL, target[1], 64, SLUICE_MS(50)),
                  -ETIMEDOUT, "read of 64 bytes");
    require_ok(sluice_buffer_read(user, &handles[2], 0, NULL, target[2], 64, DEADLINE));
    require_error(sluice_buffer_read(user, &handles[2], 0, NULL, target[2], 64, 0), -ETIMEDOUT,
                  "deadline");
    require_ok(sluice_buffer_read(user, &handles[2], 0, NULL, target[2], 64, DEADLINE));
    close(silent);
    for (int i = 0; i < 3; i++) {
        sluice_buffer_release(buffers[i]);
    }
    sluice_buffer_service_close(owners[2]);
    sluice_buffer_service_close(user);
    sides_close(&sides);
}

/* A shortage: all descriptors below the limit are in use until it ends. */
#define DESCRIPTORS 64

struct shortage {
    struct rlimit limit;
    int fds[DESCRIPTORS];
    uint32_t count;
};

/* Leaves enough that poll() accepts the library's calls: RLIMIT_NOFILE limits its entries, too. */
static void shortage_prepare(struct shortage *shortage)
{
    shortage->count = 0;
    require(getrlimit(RLIMIT_NOFILE, &shortage->limit) == 0, "%s", strerror(errno));
    for (int fd = 0; fd < DESCRIPTORS - 1;) {
        fd = dup(STDERR_FILENO);
        require(fd >= 0, "%s", strerror(errno));
        shortage->fds[shortage->count++] = fd;
    }
}

static void shortage_begin(const struct shortage *shortage)
{
    struct rlimit limit = shortage->limit;
    limit.rlim_cur = DESCRIPTORS;
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
}

static void shortage_end(const struct shortage *shortage)
{
    require(setrlimit(RLIMIT_NOFILE, &shortage->limit) == 0, "%s", strerror(errno));
    for (uint32_t i = 0; i < shortage->count; i++) {
        close(shortage->fds[i]);
    }
}

/*
 * The buffer of the first action was released, so the action ends while most of it is not posted.
 * The second action cannot continue, because no connection can be made. Each has its own error.
 */
TEST(what_ended_amid_its_pieces_ends_once)
{
    struct sluice_channel_attr channel = {
        .size = sizeof(channel), .max_message = 4096, .send_depth = 4};
    struct sluice_buffer_service_attr attr = {
        .size = sizeof(attr), .address = "127.0.0.1:0", .channel = &channel};
    static uint8_t bytes[2][LENGTH], target[2][LENGTH];
    struct sides sides;
    struct shortage shortage;
    struct sluice_buffer_handle handles[2];
    struct sluice_completion completions[2];
    shortage_prepare(&shortage);
    sides_open(&sides);
    struct sluice_buffer_service *owner = open_at(sides.pds[0], "127.0.0.1:0");
    struct sluice_buffer_service *user = sluice_buffer_service_open(&sides.pds[1], 1, &attr);
    require(user != NULL, "%s", sluice_last_error());
    struct sluice_buffer *gone = publish(owner, bytes[0], LENGTH, &handles[0]);
    struct sluice_buffer *stays = publish(owner, bytes[1], LENGTH, &handles[1]);
    struct sluice_buffer_action actions[2] = {read_of(&handles[0], target[0], LENGTH),
                                              read_of(&handles[1], target[1], LENGTH)};
    require_ok(sluice_buffer_submit(user, actions, 2, DEADLINE, completions));
    sluice_buffer_release(gone);
    shortage_begin(&shortage);
    require_error(sluice_buffer_submit(user, actions, 2, DEADLINE, completions), -EACCES,
                  "action 0: read of 65536 bytes at offset 0 of buffer 1 of 127.0.0.1: released");
    require_class(&completions[0], SLUICE_CLASS_ACCESS);
    require_result(completions[0].error, -EACCES);
    require_result((int)completions[1].error_class, SLUICE_CLASS_LOCAL);
    require_result(completions[1].error, -EMFILE);
    shortage_end(&shortage);
    require_result(sluice_buffer_submit(user, actions, 2, DEADLINE, completions), -EACCES);
    require_class(&completions[1], SLUICE_CLASS_NONE);
    sluice_buffer_release(stays);
    sluice_buffer_service_close(user);
    sluice_buffer_service_close(owner);
    sides_close(&sides);
}

/* Many owners, and threads that read all of them in batches, each in an order of its own. */
#define OWNERS 12
#define THREADS 3
#define ROUNDS 20

struct crowd {
    struct sluice_buffer_service *user;
    struct sluice_buffer_handle handles[OWNERS];
};

struct reader {
    pthread_t thread;
    const struct crowd *crowd;
    uint32_t index;
};

static void *read_all(void *argument)
{
    const struct reader *reader = argument;
    struct sluice_buffer_action actions[2 * OWNERS];
    struct sluice_completion completions[2 * OWNERS];
    static uint8_t targets[THREADS][2 * OWNERS][4096];
    uint8_t(*target)[4096] = targets[reader->index];
    for (int round = 0; round < ROUNDS; round++) {
        memset(target, 0, sizeof(targets[0]));
        for (uint32_t i = 0; i < 2 * OWNERS; i++) {
            uint32_t owner = (i * (reader->index + 1) + (uint32_t)round) % OWNERS;
            actions[i] = read_of(&reader->crowd->handles[owner], target[i], 4096);
            actions[i].user_data = owner;
        }
        require_ok(sluice_buffer_submit(reader->crowd->user, actions, 2 * OWNERS, 3 * DEADLINE,
                                        completions));
        for (uint32_t i = 0; i < 2 * OWNERS; i++) {
            require(completions[i].bytes == 4096, "%llu", (unsigned long long)completions[i].bytes);
            value_check(target[i], 4096, (uint8_t)(1 + completions[i].user_data));
        }
    }
    return NULL;
}

TEST(many_owners_are_read_by_many_threads)
{
    static uint8_t bytes[OWNERS][4096];
    struct sides sides;
    struct crowd crowd;
    struct reader readers[THREADS];
    struct sluice_buffer_service *owners[OWNERS];
    struct sluice_buffer *buffers[OWNERS];
    sides_open(&sides);
    crowd.user = open_at(sides.pds[1], "127.0.0.1:0");
    for (uint32_t i = 0; i < OWNERS; i++) {
        owners[i] = open_at(sides.pds[0], "127.0.0.1:0");
        memset(bytes[i], 1 + (int)i, sizeof(bytes[i]));
        buffers[i] = publish(owners[i], bytes[i], sizeof(bytes[i]), &crowd.handles[i]);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        readers[i] = (struct reader){.crowd = &crowd, .index = i};
        require_result(pthread_create(&readers[i].thread, NULL, read_all, &readers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(readers[i].thread, NULL);
    }
    for (uint32_t i = 0; i < OWNERS; i++) {
        sluice_buffer_release(buffers[i]);
        sluice_buffer_service_close(owners[i]);
    }
    sluice_buffer_service_close(crowd.user);
    sides_close(&sides);
}

/* A thread that reads in large requests until the owner is gone. */
#define STREAM ((size_t)8 << 20)

struct streamer {
    pthread_t thread;
    struct sluice_buffer_service *user;
    struct sluice_buffer_handle handle;
    atomic_uint reads;
};

static void *stream(void *argument)
{
    struct streamer *streamer = argument;
    uint8_t *target = malloc(STREAM);
    int error = 0;
    while (error == 0) {
        error = sluice_buffer_read(streamer->user, &streamer->handle, 0, NULL, target, STREAM,
                                   DEADLINE);
        atomic_fetch_add(&streamer->reads, 1);
    }
    /* A service that closes ends its buffers before its connections. */
    require(error == -EACCES || error == -ECONNREFUSED, "%d: %s", error, sluice_last_error());
    free(target);
    return NULL;
}

/* Waits for the next completion as an event loop does. Returns the number of sleeps. */
static int await_in_loop(struct sluice_buffer_batch *batch, struct sluice_completion *completion)
{
    struct pollfd fd = {.fd = sluice_buffer_batch_fd(batch), .events = POLLIN};
    int sleeps = 0;
    while (sluice_buffer_batch_poll(batch, completion, 1) == 0) {
        if (sluice_buffer_batch_arm(batch, NULL) == 0) {
            require_result(poll(&fd, 1, -1), 1);
            sleeps++;
        }
    }
    return sleeps;
}

/* Arms the batch, after all that is due. Returns false if the batch had a completion instead. */
static bool arm(struct sluice_buffer_batch *batch)
{
    struct sluice_completion completion;
    int result;
    while ((result = sluice_buffer_batch_arm(batch, NULL)) == 1) {
        if (sluice_buffer_batch_poll(batch, &completion, 1) > 0) {
            return false;
        }
    }
    require_ok(result);
    return true;
}

/*
 * Once an owner's part of a batch is done, other batches to that owner do not wake the first batch.
 */
TEST(a_descriptor_forgets_an_owner_that_is_done)
{
    static uint8_t bytes[STREAM], target[2][STREAM];
    struct sides sides;
    struct sluice_buffer_handle handles[2];
    struct sluice_completion completion;
    char address[64];
    int slept = 0;
    sides_open(&sides);
    struct sluice_buffer_service *user = open_at(sides.pds[1], "127.0.0.1:0");
    struct sluice_buffer_service *owner = open_at(sides.pds[0], "127.0.0.1:0");
    struct sluice_buffer_service *silent = open_at(sides.pds[0], "127.0.0.1:0");
    struct sluice_buffer *buffer = publish(owner, bytes, STREAM, &handles[0]);
    sluice_buffer_release(publish(silent, bytes, STREAM, &handles[1]));
    address_of(&handles[1], address);
    sluice_buffer_service_close(silent);
    int listener = listen_silently(address);
    for (int round = 0; round < 5; round++) {
        struct sluice_buffer_action actions[2] = {read_of(&handles[0], target[0], STREAM),
                                                  read_of(&handles[1], target[1], STREAM)};
        struct sluice_buffer_batch *batch = sluice_buffer_post(user, actions, 2, SLUICE_S(1000));
        require(batch != NULL, "%s", sluice_last_error());
        slept += await_in_loop(batch, &completion);
        require(completion.error == 0 && completion.bytes == STREAM, "%d", completion.error);
        require(arm(batch), "it has ended");
        actions[0].addr = target[1];
        struct sluice_buffer_batch *other = sluice_buffer_post(user, actions, 1, DEADLINE);
        require(other != NULL, "%s", sluice_last_error());
        struct pollfd fds[2] = {{.fd = sluice_buffer_batch_fd(other), .events = POLLIN},
                                {.fd = sluice_buffer_batch_fd(batch), .events = POLLIN}};
        if (arm(other)) {
            require_result(poll(fds, 1, -1), 1);
            require_result(poll(&fds[1], 1, 0), 0);
        }
        sluice_buffer_batch_free(other);
        sluice_buffer_batch_free(batch);
    }
    require(current_wire() != WIRE_TCP || slept > 0, "nothing was waited for");
    close(listener);
    sluice_buffer_release(buffer);
    sluice_buffer_service_close(owner);
    sluice_buffer_service_close(user);
    sides_close(&sides);
}

/* Streaming users keep neither other users out nor the service from closing. */
TEST(a_busy_owner_lets_others_in_and_ends)
{
    static uint8_t bytes[STREAM];
    struct streamer streamers[2] = {0};
    struct sides sides;
    struct sluice_buffer_handle handle;
    uint8_t target[64];
    sides_open(&sides);
    struct sluice_buffer_service *owner = open_at(sides.pds[0], "127.0.0.1:0");
    struct sluice_buffer *buffer = publish(owner, bytes, sizeof(bytes), &handle);
    memset(bytes, 6, 64);
    for (uint32_t i = 0; i < COUNT(streamers); i++) {
        streamers[i].user = open_at(sides.pds[1], "127.0.0.1:0");
        streamers[i].handle = handle;
        require_result(pthread_create(&streamers[i].thread, NULL, stream, &streamers[i]), 0);
        while (atomic_load(&streamers[i].reads) == 0) {
            let_pass(SLUICE_US(100));
        }
    }
    struct sluice_buffer_service *late = open_at(sides.pds[1], "127.0.0.1:0");
    require_ok(sluice_buffer_read(late, &handle, 0, NULL, target, 64, DEADLINE));
    value_check(target, 64, 6);
    sluice_buffer_service_close(owner);
    for (uint32_t i = 0; i < COUNT(streamers); i++) {
        pthread_join(streamers[i].thread, NULL);
        sluice_buffer_service_close(streamers[i].user);
    }
    sluice_buffer_release(buffer);
    sluice_buffer_service_close(late);
    sides_close(&sides);
}

/* Users that connect at the same time to an owner with places for some of them. */
#define PLACES 2
#define COMERS 8

struct comer {
    pthread_t thread;
    pthread_barrier_t *barrier;
    struct sluice_buffer_service *user;
    struct sluice_buffer_handle handle;
    int error;
};

static void *come(void *argument)
{
    struct comer *comer = argument;
    uint64_t value = 0;
    (void)pthread_barrier_wait(comer->barrier);
    comer->error =
        sluice_buffer_read(comer->user, &comer->handle, 0, NULL, &value, sizeof(value), DEADLINE);
    require(comer->error < 0 || value == 41, "%llu", (unsigned long long)value);
    if (comer->error < 0) {
        require_words(sluice_last_error(), "as many peers use its buffers as may, 2 (max_peers)");
    }
    return NULL;
}

static void come_together(struct sluice_pd *pd, const struct sluice_buffer_handle *handle)
{
    struct comer comers[COMERS];
    pthread_barrier_t barrier;
    uint32_t in = 0;
    uint64_t value;
    require(pthread_barrier_init(&barrier, NULL, COMERS) == 0, "no barrier");
    for (int i = 0; i < COMERS; i++) {
        comers[i] = (struct comer){
            .barrier = &barrier, .user = open_at(pd, "127.0.0.1:0"), .handle = *handle};
        require_result(pthread_create(&comers[i].thread, NULL, come, &comers[i]), 0);
    }
    for (int i = 0; i < COMERS; i++) {
        pthread_join(comers[i].thread, NULL);
        require(comers[i].error == 0 || comers[i].error == -ECONNREFUSED ||
                    comers[i].error == -ECONNABORTED,
                "%d", comers[i].error);
        in += comers[i].error == 0;
    }
    require(in == PLACES, "%u of %d got in, and there are places for %d", in, COMERS, PLACES);
    /* Users that were let in stay connected, and no other is let in later. */
    for (int i = 0; i < COMERS; i++) {
        int again =
            sluice_buffer_read(comers[i].user, handle, 0, NULL, &value, sizeof(value), DEADLINE);
        require((again == 0) == (comers[i].error == 0), "%d, and then %d", comers[i].error, again);
        require((level_of(comers[i].user, handle) > 0) == (again == 0), "%d", again);
    }
    for (int i = 0; i < COMERS; i++) {
        sluice_buffer_service_close(comers[i].user);
    }
    pthread_barrier_destroy(&barrier);
}

/* The first users get in, all others receive the reason, and none is let in for a short time. */
TEST(no_more_get_in_than_have_a_place)
{
    const int rounds = !device_is_soft() ? 2 : short_run() ? 5 : 50;
    const struct sluice_buffer_service_attr attr = {
        .size = sizeof(attr), .address = "127.0.0.1:0", .max_peers = PLACES};
    struct sides sides;
    struct sluice_buffer_handle handle;
    uint64_t value = 41;
    sides_open(&sides);
    for (int round = 0; round < rounds; round++) {
        struct sluice_buffer_service *owner = sluice_buffer_service_open(&sides.pds[0], 1, &attr);
        require(owner, "%s", sluice_last_error());
        struct sluice_buffer *buffer = publish(owner, &value, sizeof(value), &handle);
        come_together(sides.pds[1], &handle);
        sluice_buffer_release(buffer);
        sluice_buffer_service_close(owner);
    }
    sides_close(&sides);
}

/* Processes: rank 0 uses the buffers of the other ranks, and kills them one after another. */
#define RANKS 4

struct place {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_buffer_service *service;
    struct sluice_buffer *buffer;
};

static void place_open(struct place *place, struct rank *rank,
                       struct sluice_buffer_handle handles[RANKS])
{
    struct sluice_buffer_handle own[RANKS];
    place->context = open_context();
    place->pd = sluice_pd_alloc(place->context);
    place->service = open_at(place->pd, NULL);
    place->buffer = publish(place->service, NULL, LENGTH, &own[0]);
    memset(sluice_buffer_addr(place->buffer), (int)rank->index, LENGTH);
    for (uint32_t i = 1; i < RANKS; i++) {
        own[i] = own[0];
    }
    rank_exchange(rank, own, handles, sizeof(own[0]));
}

static void place_close(struct place *place)
{
    sluice_buffer_release(place->buffer);
    sluice_buffer_service_close(place->service);
    sluice_pd_free(place->pd);
    sluice_context_close(place->context);
}

/* Reads from all owners. Dead ones are noticed soon; each other one returns its own bytes. */
static void read_ranks(const struct place *place, const struct sluice_buffer_handle *handles,
                       uint32_t dead)
{
    static uint8_t targets[RANKS][LENGTH];
    struct sluice_buffer_action actions[RANKS];
    struct sluice_completion completions[RANKS];
    int64_t end = fair_now() + SLUICE_S(2);
    memset(targets, 0xee, sizeof(targets));
    for (uint32_t i = 0; i < RANKS; i++)
        actions[i] = read_of(&handles[i], targets[i], LENGTH);
    /* The memory of an owner on this host can be read until its end is noticed. */
    do {
        (void)!sluice_buffer_submit(place->service, actions, RANKS, DEADLINE, completions);
    } while (dead > 0 && completions[dead].error_class == SLUICE_CLASS_NONE && fair_now() < end);
    for (uint32_t i = 0; i < RANKS; i++) {
        if (i == 0 || i > dead) {
            require_class(&completions[i], SLUICE_CLASS_NONE);
            value_check(targets[i], LENGTH, (uint8_t)i);
        } else {
            require(completions[i].error_class == SLUICE_CLASS_PEER_LOST, "rank %u: class %u", i,
                    completions[i].error_class);
        }
    }
}

static void use_and_kill(struct rank *rank)
{
    /* A device takes seconds to detect each death. */
    bool hasty = short_run() && !device_is_soft();
    struct sluice_buffer_handle handles[RANKS];
    struct place place;
    place_open(&place, rank, handles);
    if (rank->index > 0)
        rank_await_death(rank);
    read_ranks(&place, handles, 0);
    for (uint32_t victim = 1; victim < RANKS; victim++) {
        rank_kill(rank, victim);
        if (victim == 1 || !hasty) {
            read_ranks(&place, handles, victim);
            read_ranks(&place, handles, victim);
        }
    }
    place_close(&place);
}

TEST(owners_that_are_killed_are_lost, .group = "processes", .unless = device_is_pretend)
{
    group_run(RANKS, use_and_kill, NULL, 30);
}

int main(void)
{
    static const struct tests groups[] = {{"self", WIRE_SELF, 30},
                                          {"tcp", WIRE_TCP, 30},
                                          {"shm", WIRE_SHM, 30},
                                          {"processes", WIRE_SELF, 60}};
    return run_groups("buffer_owners", groups, COUNT(groups));
}
