/* SPDX-License-Identifier: MIT */
/*
 * Threads: each uses channels of its own; context, domain and regions are shared. Partners are
 * threads as well, so both sides make progress at the same time.
 */
#include <pthread.h>
#include <stdio.h>

#include "../support/pair.h"

#define PAIRS 3
#define LENGTH 20000

struct worker {
    pthread_t thread;
    struct sluice_pd *pd;
    struct sluice_channel *channel;
    struct memory memory;
    struct sluice_remote_mr remote; /* of the partner */
    int number;
    bool first; /* of the two */
};

static int rounds(void)
{
    return short_run() ? 50 : 300;
}

static void send_pattern(struct worker *worker, int round)
{
    struct sluice_sge sge = memory_sge(&worker->memory, 0, LENGTH);
    pattern_fill(worker->memory.bytes, LENGTH, pattern_key(1, 2, (uint32_t)round));
    require_ok(sluice_channel_send(worker->channel, &sge, 1, DEADLINE));
}

static void receive_pattern(struct worker *worker, int round)
{
    struct sluice_sge sge = memory_sge(&worker->memory, 0, LENGTH);
    struct sluice_completion completion;
    memset(worker->memory.bytes, 0, LENGTH);
    require_ok(sluice_channel_receive(worker->channel, &sge, 1, DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
    pattern_check(worker->memory.bytes, LENGTH, pattern_key(1, 2, (uint32_t)round));
}

static void *ping_pong(void *argument)
{
    struct worker *worker = argument;
    for (int round = 0; round < rounds(); round++) {
        if (worker->first == (round % 2 == 0)) {
            send_pattern(worker, round);
        } else {
            receive_pattern(worker, round);
        }
    }
    return NULL;
}

/* The partner writes the first half and reads the second one; then both notify each other. */
static void *write_and_tell(void *argument)
{
    struct worker *worker = argument;
    uint32_t half = LENGTH / 2;
    struct sluice_sge sge = memory_sge(&worker->memory, half, half);
    struct sluice_remote_mr remote;
    require_ok(sluice_remote_mr_slice(&worker->remote, 0, half, &remote));
    for (int round = 0; round < rounds(); round++) {
        if (worker->first == (round % 2 == 0)) {
            pattern_fill(worker->memory.bytes + half, half, pattern_key(3, 4, (uint32_t)round));
            require_ok(sluice_channel_write_immediate(worker->channel, &sge, 1, &remote,
                                                      (uint32_t)round, DEADLINE));
        } else {
            struct sluice_completion completion;
            require_ok(sluice_channel_receive(worker->channel, NULL, 0, DEADLINE, &completion));
            require(completion.immediate == (uint32_t)round, "%u", completion.immediate);
            pattern_check(worker->memory.bytes, half, pattern_key(3, 4, (uint32_t)round));
        }
    }
    return NULL;
}

/* Both ends post lists all the time, without waiting. */
static void *exchange_lists(void *argument)
{
    struct worker *worker = argument;
    struct sluice_sge sges[2] = {memory_sge(&worker->memory, 0, 100),
                                 memory_sge(&worker->memory, 200, 100)};
    for (int round = 0; round < rounds(); round++) {
        struct sluice_request requests[2] = {request_of(SLUICE_OP_SEND, 0, &sges[0]),
                                             request_of(SLUICE_OP_RECEIVE, 0, &sges[1])};
        pattern_fill(worker->memory.bytes, 100, (uint64_t)round);
        require_ok(sluice_channel_submit(worker->channel, requests, 2, DEADLINE, NULL));
        pattern_check(worker->memory.bytes + 200, 100, (uint64_t)round);
    }
    return NULL;
}

/* Objects are made and closed while other threads work. */
static void *make_and_unmake(void *argument)
{
    struct worker *worker = argument;
    for (int round = 0; round < rounds() / 5; round++) {
        struct sluice_endpoint endpoint;
        struct memory memory;
        struct sluice_prepared_channel *prepared = prepare_channel(worker->pd, NULL, &endpoint);
        struct sluice_channel *channel =
            made(sluice_prepared_channel_handshake(prepared, &endpoint));
        memory_open(&memory, worker->pd, 2000);
        struct sluice_sge sges[2] = {memory_sge(&memory, 0, 1000), memory_sge(&memory, 1000, 1000)};
        struct sluice_request requests[2] = {request_of(SLUICE_OP_SEND, 0, &sges[0]),
                                             request_of(SLUICE_OP_RECEIVE, 0, &sges[1])};
        require_ok(sluice_channel_submit(channel, requests, 2, DEADLINE, NULL));
        if (round % 2) {
            sluice_channel_close(channel);
            memory_close(&memory);
        } else {
            memory_close(&memory);
            sluice_channel_close(channel);
        }
    }
    return NULL;
}

/* Runs a function in both threads of each pair, and another thread beside them. */
static void run_threads(void *(*function)(void *))
{
    struct sides sides;
    struct worker workers[2 * PAIRS];
    struct worker other = {.number = 99};
    struct sluice_endpoint endpoints[2 * PAIRS];
    struct sluice_prepared_channel *prepared[2 * PAIRS];
    sides_open(&sides);
    other.pd = sides.pds[0];
    for (int i = 0; i < 2 * PAIRS; i++) {
        workers[i] = (struct worker){.pd = sides.pds[i % 2], .number = i, .first = i % 2 == 0};
        prepared[i] = prepare_channel(workers[i].pd, NULL, &endpoints[i]);
        memory_open(&workers[i].memory, workers[i].pd, LENGTH);
    }
    for (int i = 0; i < 2 * PAIRS; i++) {
        workers[i].channel =
            made(sluice_prepared_channel_handshake(prepared[i], &endpoints[i ^ 1]));
        workers[i].remote = memory_remote(&workers[i ^ 1].memory, 0, LENGTH);
    }
    for (int i = 0; i < 2 * PAIRS; i++) {
        require(pthread_create(&workers[i].thread, NULL, function, &workers[i]) == 0, "%d", i);
    }
    require(pthread_create(&other.thread, NULL, make_and_unmake, &other) == 0, "%d", 99);
    pthread_join(other.thread, NULL);
    for (int i = 0; i < 2 * PAIRS; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    for (int i = 0; i < 2 * PAIRS; i++) {
        sluice_channel_close(workers[i].channel);
        memory_close(&workers[i].memory);
    }
    sides_close(&sides);
}

TEST(ping_pong_between_threads)
{
    run_threads(ping_pong);
}

TEST(writes_between_threads)
{
    run_threads(write_and_tell);
}

TEST(lists_between_threads)
{
    run_threads(exchange_lists);
}

/* Each thread has an error text of its own. */
static void *fail_alone(void *argument)
{
    struct sluice_remote_mr remote = {.addr = 1000, .length = 100};
    struct worker *worker = argument;
    char wanted[40];
    require(sluice_last_error()[0] == 0, "%s", sluice_last_error());
    snprintf(wanted, sizeof(wanted), "%d", 1000 + worker->number);
    for (int i = 0; i < 1000; i++) {
        require_error(sluice_remote_mr_slice(&remote, 0, 1000 + (uint64_t)worker->number, &remote),
                      -ERANGE, wanted);
    }
    return NULL;
}

TEST(texts_of_threads)
{
    struct worker workers[4];
    for (int i = 0; i < 4; i++) {
        workers[i].number = i;
        require(pthread_create(&workers[i].thread, NULL, fail_alone, &workers[i]) == 0, "%d", i);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(workers[i].thread, NULL);
    }
}

/* Contexts are opened and closed by many threads at a time. */
static void *open_and_close(void *argument)
{
    struct worker *worker = argument;
    for (int i = 0; i < 20; i++) {
        struct sluice_context *context = open_context();
        struct sluice_pd *pd = sluice_pd_alloc(context);
        require(pd, "thread %d: %s", worker->number, sluice_last_error());
        sluice_context_close(context);
        sluice_pd_free(pd);
    }
    return NULL;
}

TEST(contexts_of_threads)
{
    struct worker workers[4];
    for (int i = 0; i < 4; i++) {
        workers[i].number = i;
        require(pthread_create(&workers[i].thread, NULL, open_and_close, &workers[i]) == 0, "%d",
                i);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(workers[i].thread, NULL);
    }
}

int main(void)
{
    return run_tests("threads", 60);
}
