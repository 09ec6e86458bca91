/* SPDX-License-Identifier: MIT */
/*
 * Batches are cancelled at every stage, thousands of times. When the cancel returns, the memory is
 * taken away or filled with something else, and nothing accesses it any more. Requests of others on
 * the same connection complete with the right bytes.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../support/group.h"
#include "../support/pair.h"
#include "../support/process.h"
#include "service.h"

#define PAGE ((size_t)16384)
#define PAGES 64
#define BYTES (PAGES * PAGE)
#define BYSTANDERS 2
#define SECONDS 300
#define THEIRS 16
/* Bytes in the memory of a batch before it is posted, and after it was cancelled. */
#define BEFORE 0xb0
#define AFTER 0xa0

/* The stage of a batch at its cancel. */
enum stage {
    QUEUED,      /* most of it waits for room in the queue */
    DIALING,     /* there is no connection yet */
    ON_THE_WIRE, /* some pages have arrived */
    HALF_COPIED, /* by another thread, within a large action */
    STOPPED,     /* the owner was stopped by SIGSTOP before the post */
    LATE,        /* its deadline passes at about the same time */
    STAGES
};

/* The memory after the cancel: protected, filled with other bytes, or replaced by a new mapping. */
enum aftermath { PROTECTED, REFILLED, REPLACED, AFTERMATHS };

/* Sent by the owner: handles of memory to read and to write, and its process. */
struct card {
    struct sluice_buffer_handle reads, writes;
    pid_t pid;
};

struct place {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_buffer_service *service;
};

struct bystander {
    pthread_t thread;
    struct user *user;
    uint32_t batches;
};

struct user {
    struct place place;
    struct card card;
    uint8_t *memory; /* of the batches that are cancelled */
    struct sluice_mr *mr;
    atomic_bool over;
    struct bystander bystanders[BYSTANDERS];
    uint64_t random;
    uint32_t done, cancelled, late; /* actions, by how they ended */
};

static uint8_t content(uint64_t page)
{
    return (uint8_t)(1 + page % 120);
}

static uint32_t pick(struct user *user, uint32_t below)
{
    user->random = user->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(user->random >> 33) % below;
}

/* A small queue, so that most of a batch waits for room. */
static const struct sluice_channel_attr narrow = {.size = sizeof(narrow), .send_depth = 16};

static void place_open(struct place *place)
{
    place->context = open_context();
    place->pd = sluice_pd_alloc(place->context);
    place->service = open_service(place->pd, &narrow);
}

static void place_close(struct place *place)
{
    sluice_buffer_service_close(place->service);
    sluice_pd_free(place->pd);
    sluice_context_close(place->context);
}

/* The owner. */

static struct sluice_buffer *publish(const struct place *place, void *bytes, uint32_t access,
                                     struct sluice_buffer_handle *handle)
{
    struct sluice_buffer *buffer = sluice_buffer_publish(place->service, bytes, BYTES, access);
    require(buffer != NULL, "%s", sluice_last_error());
    require_ok(sluice_buffer_export(buffer, handle));
    return buffer;
}

static void own(struct rank *rank)
{
    static uint8_t bytes[2][BYTES];
    struct card cards[2], received[2];
    struct place place;
    place_open(&place);
    for (size_t page = 0; page < PAGES; page++) {
        memset(bytes[0] + page * PAGE, content(page), PAGE);
    }
    memset(&cards[0], 0, sizeof(cards[0]));
    struct sluice_buffer *reads =
        publish(&place, bytes[0], SLUICE_ACCESS_REMOTE_READ, &cards[0].reads);
    struct sluice_buffer *writes =
        publish(&place, bytes[1], SLUICE_ACCESS_REMOTE_WRITE, &cards[0].writes);
    cards[0].pid = getpid();
    cards[1] = cards[0];
    rank_exchange(rank, cards, received, sizeof(cards[0]));
    rank_barrier(rank);
    sluice_buffer_release(reads);
    sluice_buffer_release(writes);
    /* Writes moved only bytes that the memory had before the cancel. */
    for (size_t i = 0; i < BYTES; i++) {
        require(bytes[1][i] == 0 || bytes[1][i] == BEFORE, "byte %zu is %#x", i, bytes[1][i]);
    }
    place_close(&place);
}

/* Bystanders: batches of other threads to the same owner. */

static void *stand_by(void *argument)
{
    struct bystander *bystander = argument;
    struct user *user = bystander->user;
    uint8_t *bytes = malloc(THEIRS * PAGE);
    struct sluice_buffer_action actions[THEIRS];
    for (uint64_t i = 0; i < THEIRS; i++) {
        actions[i] = (struct sluice_buffer_action){.opcode = SLUICE_OP_READ,
                                                   .handle = &user->card.reads,
                                                   .offset = i * PAGE,
                                                   .length = PAGE,
                                                   .addr = bytes + i * PAGE,
                                                   .user_data = i};
    }
    struct sluice_buffer_batch *batch =
        sluice_buffer_batch_prepare(user->place.service, actions, THEIRS);
    require(batch != NULL, "%s", sluice_last_error());
    while (!user->over) {
        struct sluice_completion completion;
        memset(bytes, 0, THEIRS * PAGE);
        require_ok(sluice_buffer_batch_post(batch, 6 * DEADLINE));
        for (uint32_t i = 0; i < THEIRS; i++) {
            require_ok(sluice_buffer_batch_next(batch, SLUICE_FOREVER, &completion));
            require(completion.error == 0 && completion.bytes == PAGE, "page %llu: %d",
                    (unsigned long long)completion.user_data, completion.error);
            value_check(bytes + completion.user_data * PAGE, PAGE, content(completion.user_data));
        }
        bystander->batches++;
    }
    sluice_buffer_batch_free(batch);
    free(bytes);
    return NULL;
}

/* The user. */

static void map_memory(struct user *user)
{
    uint8_t *memory =
        mmap(user->memory, BYTES, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | (user->memory != NULL ? MAP_FIXED : 0), -1, 0);
    require(memory != MAP_FAILED, "%s", strerror(errno));
    user->memory = memory;
}

static uint32_t make_actions(const struct user *user, enum stage stage, bool write,
                             struct sluice_buffer_action *actions)
{
    uint32_t count = stage == HALF_COPIED ? 1 : PAGES;
    for (uint32_t i = 0; i < count; i++) {
        actions[i] =
            (struct sluice_buffer_action){.opcode = write ? SLUICE_OP_WRITE : SLUICE_OP_READ,
                                          .handle = write ? &user->card.writes : &user->card.reads,
                                          .offset = i * PAGE,
                                          .length = BYTES / count,
                                          .addr = user->memory + i * PAGE,
                                          .mr = user->mr,
                                          .user_data = i};
    }
    return count;
}

static void *cancel(void *batch)
{
    require_ok(sluice_buffer_batch_cancel(batch));
    return NULL;
}

/* Polls for this long, which moves some pages. */
static void poll_for(struct sluice_buffer_batch *batch, int64_t nanoseconds)
{
    struct sluice_completion completions[PAGES];
    int64_t until = clock_now() + nanoseconds;
    while (clock_now() < until) {
        require(sluice_buffer_batch_poll(batch, completions, PAGES) >= 0, "%s",
                sluice_last_error());
    }
}

static void cancel_amid(struct user *user, struct sluice_buffer_batch *batch, enum stage stage)
{
    pthread_t thread;
    if (stage == ON_THE_WIRE || stage == STOPPED) {
        poll_for(batch, SLUICE_US(pick(user, 400)));
    }
    if (stage != HALF_COPIED) {
        require_ok(sluice_buffer_batch_cancel(batch));
        return;
    }
    require_result(pthread_create(&thread, NULL, cancel, batch), 0);
    require_ok(sluice_buffer_batch_wait(batch, SLUICE_FOREVER));
    pthread_join(thread, NULL);
}

/* Checks that each action has ended, and that the bytes of successful ones are there. */
static void check_ends(struct user *user, struct sluice_buffer_batch *batch, uint32_t count)
{
    struct sluice_completion completions[PAGES];
    require_ok(sluice_buffer_batch_wait(batch, 0));
    (void)!sluice_buffer_batch_results(batch, completions);
    for (uint32_t i = 0; i < count; i++) {
        const struct sluice_completion *completion = &completions[i];
        const uint8_t *bytes = user->memory + i * PAGE;
        user->done += completion->error == 0;
        user->cancelled += completion->error == -ECANCELED;
        user->late += completion->error == -ETIMEDOUT;
        require(completion->error == 0 || completion->error_class == SLUICE_CLASS_CANCELLED ||
                    completion->error_class == SLUICE_CLASS_TIMEOUT,
                "action %u: %d, class %u: %s", i, completion->error, completion->error_class,
                sluice_last_error());
        if (completion->error == 0 && completion->opcode == SLUICE_OP_READ) {
            size_t last = completion->bytes - 1;
            require(bytes[0] == content(i) && bytes[last] == content(i + last / PAGE),
                    "page %u: %#x, %#x", i, bytes[0], bytes[last]);
        }
    }
}

static void take_away(struct user *user, enum aftermath aftermath)
{
    if (aftermath == PROTECTED) {
        memset(user->memory, AFTER, BYTES);
        require(mprotect(user->memory, BYTES, PROT_NONE) == 0, "%s", strerror(errno));
    } else if (aftermath == REPLACED) {
        /* One call replaces the mapping, so that no other thread gets the range in between. */
        map_memory(user);
        memset(user->memory, AFTER, BYTES);
    } else {
        memset(user->memory, AFTER, BYTES);
    }
}

/* A later read over the same connection ensures that all earlier bytes have arrived. */
static void give_back(struct user *user, enum aftermath aftermath)
{
    uint8_t page[PAGE];
    require_ok(sluice_buffer_read(user->place.service, &user->card.reads, 0, NULL, page, PAGE,
                                  6 * DEADLINE));
    value_check(page, PAGE, content(0));
    if (aftermath == PROTECTED) {
        require(mprotect(user->memory, BYTES, PROT_READ | PROT_WRITE) == 0, "%s", strerror(errno));
    }
    value_check(user->memory, BYTES, AFTER);
}

static void do_round(struct user *user, enum stage stage, enum aftermath aftermath, bool write,
                     bool plain)
{
    struct sluice_buffer_service *service = user->place.service;
    struct sluice_buffer_action actions[PAGES];
    memset(user->memory, BEFORE, BYTES);
    if (!plain) {
        user->mr =
            sluice_mr_register(user->place.pd, user->memory, BYTES, SLUICE_ACCESS_LOCAL_WRITE);
        require(user->mr != NULL, "%s", sluice_last_error());
    }
    uint32_t count = make_actions(user, stage, write, actions);
    if (stage == DIALING) {
        service = open_service(user->place.pd, &narrow);
    }
    if (stage == STOPPED) {
        stop_process(user->card.pid);
    }
    struct sluice_buffer_batch *batch = sluice_buffer_post(
        service, actions, count, stage == LATE ? SLUICE_US(1 + pick(user, 500)) : DEADLINE);
    require(batch != NULL, "%s", sluice_last_error());
    cancel_amid(user, batch, stage);
    check_ends(user, batch, count);
    take_away(user, aftermath);
    if (stage == STOPPED) {
        require(kill(user->card.pid, SIGCONT) == 0, "%s", strerror(errno));
    }
    give_back(user, aftermath);
    sluice_buffer_batch_free(batch);
    if (stage == DIALING) {
        sluice_buffer_service_close(service);
    }
    require_ok(sluice_mr_deregister(user->mr));
    user->mr = NULL;
}

static void start_bystanders(struct user *user)
{
    for (uint32_t i = 0; i < BYSTANDERS; i++) {
        user->bystanders[i].user = user;
        require_result(
            pthread_create(&user->bystanders[i].thread, NULL, stand_by, &user->bystanders[i]), 0);
    }
}

static void end_bystanders(struct user *user)
{
    user->over = true;
    for (uint32_t i = 0; i < BYSTANDERS; i++) {
        pthread_join(user->bystanders[i].thread, NULL);
        require(user->bystanders[i].batches > 0, "bystander %u has done nothing", i);
    }
}

/*
 * Returns the number of rounds. The shortest run tries each combination that use() makes once.
 * SLUICE_TEST_CANCELS=10000 takes 90 seconds.
 */
static uint32_t rounds(void)
{
    const char *value = getenv("SLUICE_TEST_CANCELS");
    if (value != NULL) {
        return (uint32_t)atoi(value);
    }
    if (!device_is_soft()) {
        return 48;
    }
    return shortest_run() ? STAGES * AFTERMATHS * 6 : short_run() ? 240 : 600;
}

static void use(struct rank *rank)
{
    struct card cards[2], received[2];
    static struct user user;
    memset(cards, 0, sizeof(cards));
    place_open(&user.place);
    rank_exchange(rank, cards, received, sizeof(cards[0]));
    user.card = received[1];
    user.random = 1;
    map_memory(&user);
    start_bystanders(&user);
    for (uint32_t round = 0; round < rounds(); round++) {
        /*
         * Combines each stage with each aftermath, for reads and writes, with and without a region.
         */
        uint32_t turn = round / STAGES;
        do_round(&user, (enum stage)(round % STAGES), (enum aftermath)(turn % AFTERMATHS),
                 turn / AFTERMATHS % 3 == 2, turn % 2 == 0);
    }
    end_bystanders(&user);
    printf("# of the actions %u were done, %u cancelled, %u late; others did %u and %u batches\n",
           user.done, user.cancelled, user.late, user.bystanders[0].batches,
           user.bystanders[1].batches);
    require(user.cancelled > 0, "nothing was cancelled");
    rank_barrier(rank);
    munmap(user.memory, BYTES);
    place_close(&user.place);
}

static void take_part(struct rank *rank)
{
    if (rank->index == 0) {
        use(rank);
    } else {
        own(rank);
    }
}

TEST(cancelled_batches_touch_nothing, .unless = device_is_pretend)
{
    group_run(2, take_part, NULL, SECONDS);
}

int main(void)
{
    static const struct tests groups[] = {{"shm", WIRE_SHM, SECONDS}, {"tcp", WIRE_TCP, SECONDS}};
    return run_groups("buffer_cancel", groups, COUNT(groups));
}
