/* SPDX-License-Identifier: MIT */
/*
 * Contention: several threads or processes use one word by atomic operations, and no operation is
 * lost or done twice.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../support/group.h"
#include "../support/words.h"

/* Threads, each with a channel of its own to one word. */
#define ADDERS 2

struct adder {
    pthread_t thread;
    struct pair pair;
    struct memory near;
    struct sluice_remote_mr remote; /* a lock or counter, and a number */
    uint32_t rounds;
    uint64_t number;
    uint64_t sum; /* of the values it found */
};

static uint32_t many(void)
{
    return short_run() ? 2000 : 100000;
}

static void open_adders(struct adder *adders, struct sides *sides, struct memory *far,
                        uint32_t rounds)
{
    sides_open(sides);
    memory_open_at(far, sides->pds[1], BYTES, ACCESS, 0);
    for (uint32_t i = 0; i < ADDERS; i++) {
        adders[i] = (struct adder){.pair.sides = *sides, .number = i + 1, .rounds = rounds};
        pair_connect(&adders[i].pair, NULL);
        memory_open(&adders[i].near, sides->pds[0], BYTES);
        adders[i].remote = memory_remote(far, 0, BYTES);
    }
}

static void run_adders(struct adder *adders, void *(*function)(void *argument))
{
    for (uint32_t i = 0; i < ADDERS; i++) {
        require(pthread_create(&adders[i].thread, NULL, function, &adders[i]) == 0, "thread %u", i);
    }
}

static void join_adders(struct adder *adders)
{
    for (uint32_t i = 0; i < ADDERS; i++) {
        pthread_join(adders[i].thread, NULL);
    }
}

static void close_adders(struct adder *adders, struct sides *sides, struct memory *far)
{
    for (uint32_t i = 0; i < ADDERS; i++) {
        memory_close(&adders[i].near);
        sluice_channel_close(adders[i].pair.channels[0]);
        sluice_channel_close(adders[i].pair.channels[1]);
    }
    memory_close(far);
    sides_close(sides);
}

/* Threads that are not done yet. */
static atomic_uint at_work;

/*
 * Adds 1 in a loop. The value it finds grows, by more than one if other threads added in between.
 */
static void *add_ones(void *argument)
{
    struct adder *adder = argument;
    struct sluice_sge sge = memory_sge(&adder->near, 0, 8);
    const uint64_t *result = (const uint64_t *)(void *)adder->near.bytes;
    uint64_t last = 0;
    for (uint32_t i = 0; i < adder->rounds; i++) {
        require_ok(
            sluice_channel_fetch_add(adder->pair.channels[0], &sge, &adder->remote, 1, DEADLINE));
        require(i == 0 || *result > last, "%llu after %llu", (unsigned long long)*result,
                (unsigned long long)last);
        last = *result;
        adder->sum += last;
    }
    atomic_fetch_sub(&at_work, 1);
    return NULL;
}

/* If the device promises it, the processor adds to the word as well. */
TEST(threads_add)
{
    struct adder adders[ADDERS];
    struct sides sides;
    struct memory far;
    uint64_t n = (uint64_t)many() * ADDERS, sum = 0;
    open_adders(adders, &sides, &far, many());
    bool global = context_info(sides.contexts[0]).atomics == SLUICE_ATOMICS_GLOBAL;
    uint64_t *word = (uint64_t *)(void *)far.bytes;
    atomic_store(&at_work, ADDERS);
    run_adders(adders, add_ones);
    for (; global && atomic_load(&at_work) > 0; n++) {
        sum += __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
        if (n % 4096 == 0) {
            sched_yield();
        }
    }
    join_adders(adders);
    for (uint32_t i = 0; i < ADDERS; i++) {
        sum += adders[i].sum;
    }
    require_word(__atomic_load_n(word, __ATOMIC_SEQ_CST), n, "the counter");
    /* Each value was found by exactly one of them. */
    require_word(sum, n * (n - 1) / 2, "the sum of what they found");
    close_adders(adders, &sides, &far);
}

/* Takes a lock, adds to the number behind it without atomics, and releases the lock. */
static void *add_locked(void *argument)
{
    struct adder *adder = argument;
    struct sluice_channel *channel = adder->pair.channels[0];
    struct sluice_sge found = memory_sge(&adder->near, 0, 8);
    struct sluice_sge number = memory_sge(&adder->near, 8, 8);
    uint64_t *words = (uint64_t *)(void *)adder->near.bytes;
    struct sluice_remote_mr behind;
    require_ok(sluice_remote_mr_slice(&adder->remote, 8, 8, &behind));
    for (uint32_t i = 0; i < adder->rounds; i++) {
        do {
            require_ok(sluice_channel_compare_swap(channel, &found, &adder->remote, 0,
                                                   adder->number, DEADLINE));
            require(words[0] != adder->number, "it has the lock already");
        } while (words[0] != 0);
        require_ok(sluice_channel_read(channel, &number, 1, &behind, DEADLINE));
        words[1]++;
        require_ok(sluice_channel_write(channel, &number, 1, &behind, DEADLINE));
        require_ok(sluice_channel_compare_swap(channel, &found, &adder->remote, adder->number, 0,
                                               DEADLINE));
        require_word(words[0], adder->number, "the holder of the lock");
    }
    return NULL;
}

TEST(threads_lock)
{
    struct adder adders[ADDERS];
    struct sides sides;
    struct memory far;
    uint32_t rounds = short_run() ? 200 : 3000;
    open_adders(adders, &sides, &far, rounds);
    run_adders(adders, add_locked);
    join_adders(adders);
    const uint64_t *words = (const uint64_t *)(void *)far.bytes;
    require_word(words[0], 0, "the lock");
    require_word(words[1], (uint64_t)rounds * ADDERS, "the number behind the lock");
    close_adders(adders, &sides, &far);
}

/* Processes: all add to a word of rank 0, whose program does nothing for it. */
#define LIST 50

static void add_from_afar(struct mesh *mesh, const struct memory *memory,
                          const struct sluice_remote_mr *remote, uint32_t rounds)
{
    struct sluice_request requests[LIST];
    struct sluice_sge sges[LIST];
    const uint64_t *old = (const uint64_t *)(void *)memory->bytes;
    for (uint32_t i = 0; i < LIST; i++) {
        sges[i] = memory_sge(memory, i * sizeof(uint64_t), sizeof(uint64_t));
        requests[i] = request_of(SLUICE_OP_FETCH_ADD, 0, &sges[i]);
        requests[i].remote = *remote;
        requests[i].operand[0] = 1;
    }
    for (uint32_t done = 0; done < rounds; done += LIST) {
        require_ok(sluice_multichannel_submit(mesh->all, requests, LIST, DEADLINE, NULL));
        for (uint32_t i = 1; i < LIST; i++) {
            require(old[i] > old[i - 1], "%llu after %llu", (unsigned long long)old[i],
                    (unsigned long long)old[i - 1]);
        }
    }
}

static void add_in_ranks(struct rank *rank)
{
    struct mesh mesh;
    struct memory memory;
    struct sluice_remote_mr remotes[GROUP_MAX];
    mesh_open(&mesh, rank, NULL);
    memory_open_at(&memory, mesh.pd, LIST * sizeof(uint64_t), ACCESS, 0);
    mesh_share(rank, &memory, remotes);
    if (rank->index > 0) {
        add_from_afar(&mesh, &memory, &remotes[0], many());
    }
    mesh_barrier(&mesh, rank);
    if (rank->index == 0) {
        require_word(__atomic_load_n((uint64_t *)(void *)memory.bytes, __ATOMIC_SEQ_CST),
                     (uint64_t)many() * (rank->size - 1), "the counter");
    }
    mesh_barrier(&mesh, rank);
    memory_close(&memory);
    mesh_close(&mesh);
}

TEST(processes_add, .group = "processes")
{
    group_run(3, add_in_ranks, NULL, 100);
}

int main(void)
{
    static const struct tests cases[] = {
        {"self", WIRE_SELF, 100},
        {"tcp", WIRE_TCP, 100},
        {"processes", WIRE_SHM, 120},
    };
    if (!device_has_atomics()) {
        puts("1..0 # SKIP the device has no atomic operations");
        return EXIT_SUCCESS;
    }
    /* The queue pairs of a pretend device are all in one process. */
    return run_groups("contention", cases, COUNT(cases) - (getenv("SLUICE_FAKE_VERBS") != NULL));
}
