/* SPDX-License-Identifier: MIT */
/*
 * The calls to many peers: each rank sends a different block to each rank, itself included, all at
 * once; every byte and result is checked.
 */
#include <stdlib.h>

#include "../support/group.h"
#include "../support/pair.h"

/* The memory of a rank: block i of both regions is to and from rank i. */
struct fixture {
    struct rank *rank;
    struct mesh mesh;
    struct memory out, in;
    struct sluice_remote_mr remote_outs[GROUP_MAX], remote_ins[GROUP_MAX];
    size_t size;
    struct sluice_sge sges[4 * GROUP_MAX];
    struct sluice_request requests[4 * GROUP_MAX];
    struct sluice_completion completions[4 * GROUP_MAX];
};

typedef void operation(struct fixture *fixture);

static const size_t sizes[] = {0, 1, 8, 4096, 65537, 1 << 20, (8 << 20) + 1};

/* Large sizes for few ranks only. */
static size_t size_count(uint32_t ranks)
{
    if (short_run()) {
        return 4;
    }
    return ranks <= 2 ? COUNT(sizes) : ranks <= 3 ? COUNT(sizes) - 1 : COUNT(sizes) - 2;
}

static uint64_t key_of(const struct fixture *fixture, uint32_t from, uint32_t to)
{
    return pattern_key(from, to, (uint32_t)fixture->size);
}

static void fill_blocks(struct fixture *fixture)
{
    for (uint32_t i = 0; i < fixture->rank->size; i++) {
        pattern_fill(fixture->out.bytes + i * fixture->size, fixture->size,
                     key_of(fixture, fixture->rank->index, i));
    }
    memset(fixture->in.bytes, 0, fixture->rank->size * fixture->size);
}

static void check_blocks(const struct fixture *fixture)
{
    for (uint32_t i = 0; i < fixture->rank->size; i++) {
        pattern_check(fixture->in.bytes + i * fixture->size, fixture->size,
                      key_of(fixture, i, fixture->rank->index));
        pattern_check(fixture->out.bytes + i * fixture->size, fixture->size,
                      key_of(fixture, fixture->rank->index, i));
    }
    memory_check_guards(&fixture->out);
    memory_check_guards(&fixture->in);
}

/* Makes the request at this place: with block peer of out or in. */
static void ask(struct fixture *fixture, uint32_t at, uint32_t opcode, uint32_t peer)
{
    uint32_t to_us = opcode == SLUICE_OP_RECEIVE || opcode == SLUICE_OP_READ;
    fixture->sges[at] =
        memory_sge(to_us ? &fixture->in : &fixture->out, peer * fixture->size, fixture->size);
    fixture->requests[at] = request_of(opcode, peer, &fixture->sges[at]);
    fixture->requests[at].user_data = 100 + at;
    const struct sluice_remote_mr *remote =
        opcode == SLUICE_OP_WRITE ? &fixture->remote_ins[peer] : &fixture->remote_outs[peer];
    if (opcode == SLUICE_OP_WRITE || opcode == SLUICE_OP_READ) {
        require_ok(sluice_remote_mr_slice(remote, fixture->rank->index * fixture->size,
                                          fixture->size, &fixture->requests[at].remote));
    }
}

static void ask_all(struct fixture *fixture, uint32_t at, uint32_t opcode)
{
    for (uint32_t i = 0; i < fixture->rank->size; i++) {
        ask(fixture, at + i, opcode, i);
    }
}

static void check_results(const struct fixture *fixture, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct sluice_completion *completion = &fixture->completions[i];
        require_class(completion, SLUICE_CLASS_NONE);
        require_equal(completion->user_data, 100 + i, completion->peer, fixture->requests[i].peer,
                      completion->opcode, fixture->requests[i].opcode, completion->bytes,
                      fixture->size, completion->flags, 0);
    }
}

/* Opens a fixture in this rank and does the operation in each size. */
static void work(struct rank *rank)
{
    operation *const *operate = rank->argument;
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    require(fixture, "%u", rank->index);
    size_t count = size_count(rank->size);
    size_t whole = sizes[count - 1] * rank->size;
    fixture->rank = rank;
    mesh_open(&fixture->mesh, rank, NULL);
    memory_open(&fixture->out, fixture->mesh.pd, whole);
    memory_open(&fixture->in, fixture->mesh.pd, whole);
    mesh_share(rank, &fixture->out, fixture->remote_outs);
    mesh_share(rank, &fixture->in, fixture->remote_ins);
    for (size_t i = 0; i < count; i++) {
        fixture->size = sizes[i];
        fill_blocks(fixture);
        mesh_barrier(&fixture->mesh, rank);
        (*operate)(fixture);
        mesh_barrier(&fixture->mesh, rank);
        check_blocks(fixture);
    }
    memory_close(&fixture->in);
    memory_close(&fixture->out);
    mesh_close(&fixture->mesh);
    free(fixture);
}

static void do_scatter_gather(struct fixture *fixture)
{
    uint32_t n = fixture->rank->size;
    ask_all(fixture, 0, SLUICE_OP_SEND);
    ask_all(fixture, n, SLUICE_OP_RECEIVE);
    require_ok(sluice_multichannel_scatter_gather(fixture->mesh.all, fixture->requests, n,
                                                  fixture->requests + n, n, DEADLINE,
                                                  fixture->completions));
    check_results(fixture, 2 * n);
}

static void do_scatter_write(struct fixture *fixture)
{
    ask_all(fixture, 0, SLUICE_OP_WRITE);
    require_ok(sluice_multichannel_scatter_write(
        fixture->mesh.all, fixture->requests, fixture->rank->size, DEADLINE, fixture->completions));
    check_results(fixture, fixture->rank->size);
}

static void do_gather_read(struct fixture *fixture)
{
    ask_all(fixture, 0, SLUICE_OP_READ);
    require_ok(sluice_multichannel_gather_read(
        fixture->mesh.all, fixture->requests, fixture->rank->size, DEADLINE, fixture->completions));
    check_results(fixture, fixture->rank->size);
}

/* Takes n posted completions, in whatever order they come. */
static void take(struct fixture *fixture, struct sluice_handle *handles, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        require_ok(sluice_multichannel_wait(fixture->mesh.all, &handles[i], DEADLINE,
                                            &fixture->completions[i]));
    }
    check_results(fixture, count);
}

/* All post their receives and then block in a scatter, or the other way round. */
static void do_scatter_then_gather(struct fixture *fixture)
{
    struct sluice_handle handles[GROUP_MAX];
    uint32_t n = fixture->rank->size;
    ask_all(fixture, 0, SLUICE_OP_RECEIVE);
    require_result(
        sluice_multichannel_post(fixture->mesh.all, fixture->requests, n, DEADLINE, handles), n);
    ask_all(fixture, n, SLUICE_OP_SEND);
    require_ok(sluice_multichannel_scatter_send(fixture->mesh.all, fixture->requests + n, n,
                                                DEADLINE, fixture->completions));
    take(fixture, handles, n);
    check_blocks(fixture);
    memset(fixture->in.bytes, 0, n * fixture->size);
    mesh_barrier(&fixture->mesh, fixture->rank);

    ask_all(fixture, 0, SLUICE_OP_SEND);
    require_result(
        sluice_multichannel_post(fixture->mesh.all, fixture->requests, n, DEADLINE, handles), n);
    struct sluice_request sends[GROUP_MAX];
    memcpy(sends, fixture->requests, n * sizeof(sends[0]));
    ask_all(fixture, 0, SLUICE_OP_RECEIVE);
    for (uint32_t i = 0; i < n; i++) {
        fixture->requests[i].opcode = SLUICE_OP_NONE;
    }
    require_ok(sluice_multichannel_gather_receive(fixture->mesh.all, fixture->requests, n, DEADLINE,
                                                  fixture->completions));
    for (uint32_t i = 0; i < n; i++) {
        fixture->requests[i].opcode = SLUICE_OP_RECEIVE;
    }
    check_results(fixture, n);
    memcpy(fixture->requests, sends, n * sizeof(sends[0]));
    take(fixture, handles, n);
}

/* The main job of many programs: rank 0 scatters, all ranks work, rank 0 gathers. */
static void do_root(struct fixture *fixture)
{
    struct sluice_multichannel *all = fixture->mesh.all;
    uint32_t n = fixture->rank->size;
    struct sluice_sge sge;
    if (fixture->rank->index == 0) {
        ask_all(fixture, 0, SLUICE_OP_SEND);
        ask_all(fixture, n, SLUICE_OP_RECEIVE);
        require_ok(sluice_multichannel_scatter_send(all, fixture->requests + 1, n - 1, DEADLINE,
                                                    fixture->completions + 1));
        require_ok(sluice_multichannel_gather_receive(all, fixture->requests + n + 1, n - 1,
                                                      DEADLINE, fixture->completions + n + 1));
        for (uint32_t i = 1; i < n; i++) {
            require_class(&fixture->completions[i], SLUICE_CLASS_NONE);
            require_class(&fixture->completions[n + i], SLUICE_CLASS_NONE);
        }
        memcpy(fixture->in.bytes, fixture->out.bytes, fixture->size);
    } else {
        sge = memory_sge(&fixture->in, 0, fixture->size);
        require_ok(sluice_multichannel_receive(all, 0, &sge, 1, DEADLINE, NULL));
        sge = memory_sge(&fixture->out, 0, fixture->size);
        require_ok(sluice_multichannel_send(all, 0, &sge, 1, DEADLINE));
        for (uint32_t i = 1; i < n; i++) {
            pattern_fill(fixture->in.bytes + i * fixture->size, fixture->size,
                         key_of(fixture, i, fixture->rank->index));
        }
    }
}

/* Each rank sends its block 0 to all. */
static void do_multicast_send(struct fixture *fixture)
{
    struct sluice_handle handles[GROUP_MAX];
    uint32_t peers[GROUP_MAX];
    uint32_t n = fixture->rank->size;
    ask_all(fixture, 0, SLUICE_OP_RECEIVE);
    require_result(
        sluice_multichannel_post(fixture->mesh.all, fixture->requests, n, DEADLINE, handles), n);
    for (uint32_t i = 0; i < n; i++) {
        peers[i] = n - 1 - i;
    }
    ask(fixture, n, SLUICE_OP_SEND, 0);
    require_ok(sluice_multichannel_multicast_send(fixture->mesh.all, &fixture->requests[n], peers,
                                                  n, DEADLINE, fixture->completions));
    for (uint32_t i = 0; i < n; i++) {
        require_class(&fixture->completions[i], SLUICE_CLASS_NONE);
        require(fixture->completions[i].peer == peers[i], "%u", fixture->completions[i].peer);
    }
    take(fixture, handles, n);
    for (uint32_t i = 0; i < n; i++) {
        pattern_check(fixture->in.bytes + i * fixture->size, fixture->size, key_of(fixture, i, 0));
        pattern_fill(fixture->in.bytes + i * fixture->size, fixture->size,
                     key_of(fixture, i, fixture->rank->index));
    }
}

static void do_multicast_write(struct fixture *fixture)
{
    struct sluice_peer_remote_mr remotes[GROUP_MAX] = {{0}};
    uint32_t n = fixture->rank->size;
    for (uint32_t i = 0; i < n; i++) {
        remotes[i].peer = n - 1 - i;
        require_ok(sluice_remote_mr_slice(&fixture->remote_ins[n - 1 - i],
                                          fixture->rank->index * fixture->size, fixture->size,
                                          &remotes[i].remote));
    }
    ask(fixture, 0, SLUICE_OP_WRITE, 0);
    fixture->requests[0].opcode = SLUICE_OP_NONE;
    require_ok(sluice_multichannel_multicast_write(fixture->mesh.all, &fixture->requests[0],
                                                   remotes, n, DEADLINE, fixture->completions));
    for (uint32_t i = 0; i < n; i++) {
        require_class(&fixture->completions[i], SLUICE_CLASS_NONE);
        require_equal(fixture->completions[i].peer, remotes[i].peer);
    }
    mesh_barrier(&fixture->mesh, fixture->rank);
    for (uint32_t i = 0; i < n; i++) {
        pattern_check(fixture->in.bytes + i * fixture->size, fixture->size, key_of(fixture, i, 0));
        pattern_fill(fixture->in.bytes + i * fixture->size, fixture->size,
                     key_of(fixture, i, fixture->rank->index));
    }
}

/* One list of all kinds, with sends before the receives that their peers wait for. */
static void do_submit(struct fixture *fixture)
{
    static const uint32_t mixed[] = {SLUICE_OP_SEND, SLUICE_OP_READ, SLUICE_OP_RECEIVE};
    struct memory again;
    uint32_t n = fixture->rank->size;
    uint32_t at = 0;
    memory_open(&again, fixture->mesh.pd, n * fixture->size + 1);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t kind = 0; kind < COUNT(mixed); kind++) {
            ask(fixture, at, mixed[kind], i);
            if (mixed[kind] == SLUICE_OP_READ) {
                fixture->sges[at] = memory_sge(&again, i * fixture->size, fixture->size);
            }
            at++;
        }
    }
    require_ok(sluice_multichannel_submit(fixture->mesh.all, fixture->requests, at, DEADLINE,
                                          fixture->completions));
    check_results(fixture, at);
    check_blocks(fixture);
    require(n * fixture->size == 0 ||
                memcmp(again.bytes, fixture->in.bytes, n * fixture->size) == 0,
            "what was read is not what was received%s", "");
    memory_close(&again);
    mesh_barrier(&fixture->mesh, fixture->rank);
    memset(fixture->in.bytes, 0, n * fixture->size);
    mesh_barrier(&fixture->mesh, fixture->rank);
    ask_all(fixture, 0, SLUICE_OP_WRITE);
    require_ok(sluice_multichannel_submit(fixture->mesh.all, fixture->requests, n, DEADLINE, NULL));
}

static operation *const operations[] = {
    do_scatter_gather, do_scatter_then_gather, do_root,   do_scatter_write, do_gather_read,
    do_multicast_send, do_multicast_write,     do_submit,
};

TEST(all_to_all_in_processes, .times = COUNT(operations), .group = "processes")
{
    static const uint32_t peers[] = {1, 2, 3, 5, 8};
    for (size_t i = 0; i < COUNT(peers) && !(short_run() && peers[i] > 3); i++) {
        group_run(peers[i], work, &operations[_i], 40);
    }
}

/* 16 peers within the process, and 8 rounds. */
TEST_WITH(star, sixteen_peers, (STAR_PEERS, NULL))
{
    struct sluice_sge sges[2][STAR_PEERS];
    struct sluice_request requests[2][STAR_PEERS];
    struct sluice_handle handles[STAR_PEERS];
    struct sluice_completion completions[STAR_PEERS];
    size_t size = 5000;
    struct memory out = side_memory(&star->sides, 0, STAR_PEERS * size);
    struct memory in = side_memory(&star->sides, 1, STAR_PEERS * size);
    for (uint32_t round = 0; round < 8; round++) {
        pattern_fill(out.bytes, out.length, round);
        for (uint32_t i = 0; i < STAR_PEERS; i++) {
            sges[0][i] = memory_sge(&out, i * size, size);
            sges[1][i] = memory_sge(&in, i * size, size);
            requests[0][i] = request_of(SLUICE_OP_NONE, i, &sges[0][i]);
            requests[1][i] = request_of(SLUICE_OP_RECEIVE, 0, &sges[1][i]);
            handles[i] = post(star->spokes[i], &requests[1][i]);
        }
        require_ok(sluice_multichannel_scatter_send(star->hub, requests[0], STAR_PEERS, DEADLINE,
                                                    completions));
        for (uint32_t i = 0; i < STAR_PEERS; i++) {
            require_class(&completions[i], SLUICE_CLASS_NONE);
            await(star->spokes[i], handles[i], SLUICE_CLASS_NONE);
            requests[0][i].remote = memory_remote(&in, i * size, size);
        }
        pattern_check(in.bytes, in.length, round);
        memset(out.bytes, 0, out.length);
        require_ok(sluice_multichannel_gather_read(star->hub, requests[0], STAR_PEERS, DEADLINE,
                                                   completions));
        pattern_check(out.bytes, out.length, round);
    }
}

int main(void)
{
    static const struct tests cases[] = {
        {"processes", WIRE_SHM, 120},
        {"self", WIRE_SELF, 30},
        {"tcp", WIRE_TCP, 30},
    };
    return run_groups("scatter", cases, COUNT(cases));
}
