/* SPDX-License-Identifier: MIT */
/*
 * Between processes: peers are served while their program is elsewhere, small
 * writes become visible whole and in order, and long lists stream both ways.
 */
#include <sched.h>

#include "../support/group.h"
#include "../support/pair.h"
#include "../support/process.h"

#define BLOCK 100000

/* Rank 1 and up wait in a barrier, which is outside of the library. */
static void use_absent_peers(struct rank *rank)
{
    struct mesh mesh;
    struct memory memory;
    struct sluice_remote_mr remotes[GROUP_MAX];
    mesh_open(&mesh, rank, NULL);
    memory_open(&memory, mesh.pd, BLOCK);
    pattern_fill(memory.bytes, BLOCK, rank->index);
    mesh_share(rank, &memory, remotes);
    mesh_barrier(&mesh, rank);
    if (rank->index == 0) {
        struct memory own;
        struct sluice_sge sges[GROUP_MAX];
        struct sluice_request requests[GROUP_MAX];
        memory_open(&own, mesh.pd, (size_t)rank->size * BLOCK);
        for (uint32_t i = 0; i < rank->size; i++) {
            sges[i] = memory_sge(&own, (size_t)i * BLOCK, BLOCK);
            requests[i] = request_of(SLUICE_OP_NONE, i, &sges[i]);
            requests[i].remote = remotes[i];
        }
        require_ok(sluice_multichannel_gather_read(mesh.all, requests, rank->size, DEADLINE, NULL));
        for (uint32_t i = 0; i < rank->size; i++) {
            pattern_check(own.bytes + (size_t)i * BLOCK, BLOCK, i);
            pattern_fill(own.bytes + (size_t)i * BLOCK, BLOCK, 100 + i);
        }
        require_ok(
            sluice_multichannel_scatter_write(mesh.all, requests, rank->size, DEADLINE, NULL));
        memory_close(&own);
    }
    mesh_barrier(&mesh, rank);
    pattern_check(memory.bytes, BLOCK, 100 + rank->index);
    rank_barrier(rank);
    memory_close(&memory);
    mesh_close(&mesh);
}

TEST(one_sided_work_needs_no_target)
{
    group_run(4, use_absent_peers, NULL, 20);
}

/* The same, of a peer that polled once and then computes. */
static void poll_once_and_leave(struct rank *rank)
{
    struct mesh mesh;
    struct memory memory;
    struct sluice_remote_mr remotes[GROUP_MAX];
    struct sluice_completion completion;
    mesh_open(&mesh, rank, NULL);
    memory_open(&memory, mesh.pd, 64);
    mesh_share(rank, &memory, remotes);
    if (rank->index == 1) {
        require_result(sluice_multichannel_poll(mesh.all, &completion, 1), 0);
    }
    rank_barrier(rank);
    struct sluice_sge sge = memory_sge(&memory, 0, 64);
    if (rank->index == 0) {
        pattern_fill(memory.bytes, 64, 5);
        require_ok(sluice_multichannel_write(mesh.all, 1, &sge, 1, &remotes[1], DEADLINE));
        memset(memory.bytes, 0, 64);
        require_ok(sluice_multichannel_read(mesh.all, 1, &sge, 1, &remotes[1], DEADLINE));
        pattern_check(memory.bytes, 64, 5);
    }
    rank_barrier(rank);
    memory_close(&memory);
    mesh_close(&mesh);
}

TEST(a_peer_that_polled_once_serves_on)
{
    group_run(2, poll_once_and_leave, NULL, 20);
}

/* The writer writes bytes that hold the round, and then the counter. */
#define DATA 3000

static void write_rounds(struct mesh *mesh, const struct sluice_remote_mr *remote, uint64_t rounds)
{
    struct memory memory;
    struct sluice_sge sges[2];
    struct sluice_request requests[2];
    memory_open(&memory, mesh->pd, DATA + 8);
    sges[0] = memory_sge(&memory, 0, DATA);
    sges[1] = memory_sge(&memory, DATA, 8);
    for (int i = 0; i < 2; i++) {
        requests[i] = request_of(SLUICE_OP_WRITE, 1, &sges[i]);
        require_ok(
            sluice_remote_mr_slice(remote, i ? DATA : 0, sges[i].length, &requests[i].remote));
    }
    for (uint64_t round = 1; round <= rounds; round++) {
        uint64_t counter = round | round << 32;
        memset(memory.bytes, (uint8_t)round, DATA);
        memcpy(memory.bytes + DATA, &counter, 8);
        require_ok(sluice_multichannel_submit(mesh->all, requests, 2, DEADLINE, NULL));
    }
    memory_close(&memory);
}

/* The data are at least as new as the counter; the writer does not wait for the reader. */
static void check_data(const uint8_t *data, const uint64_t *counter, uint64_t round)
{
    uint8_t copy[DATA];
    for (int i = 0; i < DATA; i++) {
        copy[i] = __atomic_load_n(&data[i], __ATOMIC_RELAXED);
    }
    if ((sluice_load_acquire64(counter) >> 32) - round > 100) {
        return; /* a byte cannot distinguish rounds that are so far apart */
    }
    for (int i = 0; i < DATA; i++) {
        require((uint8_t)(copy[i] - (uint8_t)round) < 128, "byte %d is %u in round %llu", i,
                copy[i], (unsigned long long)round);
    }
}

static void watch_rounds(const struct memory *memory, uint64_t rounds)
{
    const uint64_t *counter = (const uint64_t *)(const void *)(memory->bytes + DATA);
    int64_t end = clock_now() + DEADLINE;
    uint64_t seen = 0;
    while (seen != rounds) {
        uint64_t now = sluice_load_acquire64(counter);
        /* rxe copies with memcpy(), which may go by bytes; a device on a bus writes words. */
        if ((now & 0xffffffff) != now >> 32 && !device_is_soft()) {
            continue;
        }
        require((now & 0xffffffff) == now >> 32, "torn: %llx", (unsigned long long)now);
        require(now >> 32 >= seen, "%llu after %llu", (unsigned long long)now >> 32,
                (unsigned long long)seen);
        require(clock_now() < end, "round %llu", (unsigned long long)seen);
        if (now >> 32 == seen) {
            sched_yield();
            continue;
        }
        seen = now >> 32;
        check_data(memory->bytes, counter, seen);
    }
}

static void hammer_counter(struct rank *rank)
{
    uint64_t rounds = short_run() ? 500 : 5000;
    struct mesh mesh;
    struct memory memory;
    struct sluice_remote_mr remotes[GROUP_MAX];
    mesh_open(&mesh, rank, NULL);
    memory_open(&memory, mesh.pd, DATA + 8);
    mesh_share(rank, &memory, remotes);
    if (rank->index == 0) {
        write_rounds(&mesh, &remotes[1], rounds);
    } else {
        watch_rounds(&memory, rounds);
    }
    rank_barrier(rank);
    memory_close(&memory);
    mesh_close(&mesh);
}

TEST(words_are_visible_whole_and_in_order)
{
    group_run(2, hammer_counter, NULL, 40);
}

/* Each rank streams a long list to the other through queues of four. */
#define STREAM 500

static void stream(struct rank *rank)
{
    static struct sluice_sge sges[2 * STREAM];
    static struct sluice_request requests[2 * STREAM];
    static struct sluice_completion completions[2 * STREAM];
    struct sluice_channel_attr attr = {.size = sizeof(attr), .send_depth = 4, .receive_depth = 4};
    struct mesh mesh;
    struct memory out, in;
    size_t size = 1500;
    mesh_open(&mesh, rank, &attr);
    memory_open(&out, mesh.pd, STREAM * size);
    memory_open(&in, mesh.pd, STREAM * size);
    pattern_fill(out.bytes, out.length, rank->index);
    for (uint32_t i = 0; i < STREAM; i++) {
        uint32_t length = i % 7 == 0 ? 0 : (uint32_t)size;
        sges[i] = memory_sge(&out, i * size, length);
        sges[STREAM + i] = memory_sge(&in, i * size, size);
        requests[i] = request_of(SLUICE_OP_SEND, !rank->index, &sges[i]);
        requests[STREAM + i] = request_of(SLUICE_OP_RECEIVE, !rank->index, &sges[STREAM + i]);
    }
    require_ok(sluice_multichannel_submit(mesh.all, requests, 2 * STREAM, DEADLINE, completions));
    pattern_fill(out.bytes, out.length, !rank->index);
    for (uint32_t i = 0; i < STREAM; i++) {
        size_t length = i % 7 == 0 ? 0 : size;
        require_class(&completions[i], SLUICE_CLASS_NONE);
        require_class(&completions[STREAM + i], SLUICE_CLASS_NONE);
        require(completions[STREAM + i].bytes == length, "message %u", i);
        require(memcmp(in.bytes + i * size, out.bytes + i * size, length) == 0, "message %u", i);
    }
    rank_barrier(rank);
    memory_close(&in);
    memory_close(&out);
    mesh_close(&mesh);
}

TEST(long_lists_stream_both_ways)
{
    group_run(2, stream, NULL, 40);
}

int main(void)
{
    static const struct tests cases[] = {{"processes", WIRE_SHM, 60}};
    return run_groups("progress", cases, COUNT(cases));
}
