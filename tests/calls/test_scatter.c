/* SPDX-License-Identifier: MIT */
/*
 * The calls to many peers: every rank sends another block to every rank,
 * itself included, all at once, and every byte and result is looked at.
 */
#include <stdlib.h>

#include "../support/group.h"
#include "../support/pair.h"

/* What a rank works with: block i of both memories is to and from rank i. */
struct desk {
    struct rank *rank;
    struct mesh mesh;
    struct memory out;
    struct memory in;
    struct sluice_remote_mr remote_outs[GROUP_MAX];
    struct sluice_remote_mr remote_ins[GROUP_MAX];
    size_t size;
    struct sluice_sge sges[4 * GROUP_MAX];
    struct sluice_request requests[4 * GROUP_MAX];
    struct sluice_completion completions[4 * GROUP_MAX];
};

typedef void operation(struct desk *desk);

static const size_t sizes[] = {0, 1, 8, 4096, 65537, 1 << 20, (8 << 20) + 1};

/* Large sizes for few ranks only. */
static size_t size_count(uint32_t ranks)
{
    if (short_run()) {
        return 4;
    }
    return ranks <= 2 ? COUNT(sizes) : ranks <= 3 ? COUNT(sizes) - 1 : COUNT(sizes) - 2;
}

static uint64_t key_of(const struct desk *desk, uint32_t from, uint32_t to)
{
    return pattern_key(from, to, (uint32_t)desk->size);
}

static void fill_blocks(struct desk *desk)
{
    for (uint32_t i = 0; i < desk->rank->size; i++) {
        pattern_fill(desk->out.bytes + i * desk->size, desk->size,
                     key_of(desk, desk->rank->index, i));
    }
    memset(desk->in.bytes, 0, desk->rank->size * desk->size);
}

static void check_blocks(const struct desk *desk)
{
    for (uint32_t i = 0; i < desk->rank->size; i++) {
        pattern_check(desk->in.bytes + i * desk->size, desk->size,
                      key_of(desk, i, desk->rank->index));
        pattern_check(desk->out.bytes + i * desk->size, desk->size,
                      key_of(desk, desk->rank->index, i));
    }
    memory_check_guards(&desk->out);
    memory_check_guards(&desk->in);
}

/* Request number at: with block peer of out or in. */
static void ask(struct desk *desk, uint32_t at, uint32_t opcode, uint32_t peer)
{
    uint32_t to_us = opcode == SLUICE_OP_RECEIVE || opcode == SLUICE_OP_READ;
    desk->sges[at] = memory_sge(to_us ? &desk->in : &desk->out, peer * desk->size, desk->size);
    desk->requests[at] = request_of(opcode, peer, &desk->sges[at]);
    desk->requests[at].user_data = 100 + at;
    const struct sluice_remote_mr *remote =
        opcode == SLUICE_OP_WRITE ? &desk->remote_ins[peer] : &desk->remote_outs[peer];
    if (opcode == SLUICE_OP_WRITE || opcode == SLUICE_OP_READ) {
        require_ok(sluice_remote_mr_slice(remote, desk->rank->index * desk->size, desk->size,
                                          &desk->requests[at].remote));
    }
}

static void ask_all(struct desk *desk, uint32_t at, uint32_t opcode)
{
    for (uint32_t i = 0; i < desk->rank->size; i++) {
        ask(desk, at + i, opcode, i);
    }
}

static void check_results(const struct desk *desk, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct sluice_completion *completion = &desk->completions[i];
        require_class(completion, SLUICE_CLASS_NONE);
        require(completion->user_data == 100 + i && completion->peer == desk->requests[i].peer &&
                    completion->opcode == desk->requests[i].opcode &&
                    completion->bytes == desk->size && completion->flags == 0,
                "completion %u: user data %llu, peer %u, opcode %u, bytes %llu", i,
                (unsigned long long)completion->user_data, completion->peer, completion->opcode,
                (unsigned long long)completion->bytes);
    }
}

/* Opens a desk in this rank and does the operation in each size. */
static void work(struct rank *rank)
{
    operation *const *operate = rank->argument;
    struct desk *desk = calloc(1, sizeof(*desk));
    require(desk, "%u", rank->index);
    size_t count = size_count(rank->size);
    size_t whole = sizes[count - 1] * rank->size;
    desk->rank = rank;
    mesh_open(&desk->mesh, rank, NULL);
    memory_open(&desk->out, desk->mesh.pd, whole);
    memory_open(&desk->in, desk->mesh.pd, whole);
    mesh_share(rank, &desk->out, desk->remote_outs);
    mesh_share(rank, &desk->in, desk->remote_ins);
    for (size_t i = 0; i < count; i++) {
        desk->size = sizes[i];
        fill_blocks(desk);
        mesh_barrier(&desk->mesh, rank);
        (*operate)(desk);
        mesh_barrier(&desk->mesh, rank);
        check_blocks(desk);
    }
    memory_close(&desk->in);
    memory_close(&desk->out);
    mesh_close(&desk->mesh);
    free(desk);
}

static void run_in_processes(operation *operate)
{
    static const uint32_t peers[] = {1, 2, 3, 5, 8};
    for (size_t i = 0; i < COUNT(peers) && !(short_run() && peers[i] > 3); i++) {
        group_run(peers[i], work, &operate, 40);
    }
}

static void do_scatter_gather(struct desk *desk)
{
    uint32_t n = desk->rank->size;
    ask_all(desk, 0, SLUICE_OP_SEND);
    ask_all(desk, n, SLUICE_OP_RECEIVE);
    require_ok(sluice_multichannel_scatter_gather(
        desk->mesh.all, desk->requests, n, desk->requests + n, n, DEADLINE, desk->completions));
    check_results(desk, 2 * n);
}

static void do_scatter_write(struct desk *desk)
{
    ask_all(desk, 0, SLUICE_OP_WRITE);
    require_ok(sluice_multichannel_scatter_write(desk->mesh.all, desk->requests, desk->rank->size,
                                                 DEADLINE, desk->completions));
    check_results(desk, desk->rank->size);
}

static void do_gather_read(struct desk *desk)
{
    ask_all(desk, 0, SLUICE_OP_READ);
    require_ok(sluice_multichannel_gather_read(desk->mesh.all, desk->requests, desk->rank->size,
                                               DEADLINE, desk->completions));
    check_results(desk, desk->rank->size);
}

/* Takes n unpolled completions, in whatever order they come. */
static void take(struct desk *desk, struct sluice_handle *handles, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        require_ok(
            sluice_multichannel_wait(desk->mesh.all, &handles[i], DEADLINE, &desk->completions[i]));
    }
    check_results(desk, count);
}

/* All post their receives, and then all block in a scatter; and the other way round. */
static void do_scatter_then_gather(struct desk *desk)
{
    struct sluice_handle handles[GROUP_MAX];
    uint32_t n = desk->rank->size;
    ask_all(desk, 0, SLUICE_OP_RECEIVE);
    require_result(sluice_multichannel_post(desk->mesh.all, desk->requests, n, DEADLINE, handles),
                   n);
    ask_all(desk, n, SLUICE_OP_SEND);
    require_ok(sluice_multichannel_scatter_send(desk->mesh.all, desk->requests + n, n, DEADLINE,
                                                desk->completions));
    take(desk, handles, n);
    check_blocks(desk);
    memset(desk->in.bytes, 0, n * desk->size);
    mesh_barrier(&desk->mesh, desk->rank);

    ask_all(desk, 0, SLUICE_OP_SEND);
    require_result(sluice_multichannel_post(desk->mesh.all, desk->requests, n, DEADLINE, handles),
                   n);
    struct sluice_request sends[GROUP_MAX];
    memcpy(sends, desk->requests, n * sizeof(sends[0]));
    ask_all(desk, 0, SLUICE_OP_RECEIVE);
    for (uint32_t i = 0; i < n; i++) {
        desk->requests[i].opcode = SLUICE_OP_NONE;
    }
    require_ok(sluice_multichannel_gather_receive(desk->mesh.all, desk->requests, n, DEADLINE,
                                                  desk->completions));
    for (uint32_t i = 0; i < n; i++) {
        desk->requests[i].opcode = SLUICE_OP_RECEIVE;
    }
    check_results(desk, n);
    memcpy(desk->requests, sends, n * sizeof(sends[0]));
    take(desk, handles, n);
}

/* The main job of many programs: rank 0 scatters, all work, rank 0 gathers. */
static void do_root(struct desk *desk)
{
    struct sluice_multichannel *all = desk->mesh.all;
    uint32_t n = desk->rank->size;
    struct sluice_sge sge;
    if (desk->rank->index == 0) {
        ask_all(desk, 0, SLUICE_OP_SEND);
        ask_all(desk, n, SLUICE_OP_RECEIVE);
        require_ok(sluice_multichannel_scatter_send(all, desk->requests + 1, n - 1, DEADLINE,
                                                    desk->completions + 1));
        require_ok(sluice_multichannel_gather_receive(all, desk->requests + n + 1, n - 1, DEADLINE,
                                                      desk->completions + n + 1));
        for (uint32_t i = 1; i < n; i++) {
            require_class(&desk->completions[i], SLUICE_CLASS_NONE);
            require_class(&desk->completions[n + i], SLUICE_CLASS_NONE);
        }
        memcpy(desk->in.bytes, desk->out.bytes, desk->size);
    } else {
        sge = memory_sge(&desk->in, 0, desk->size);
        require_ok(sluice_multichannel_receive(all, 0, &sge, 1, DEADLINE, NULL));
        sge = memory_sge(&desk->out, 0, desk->size);
        require_ok(sluice_multichannel_send(all, 0, &sge, 1, DEADLINE));
        for (uint32_t i = 1; i < n; i++) {
            pattern_fill(desk->in.bytes + i * desk->size, desk->size,
                         key_of(desk, i, desk->rank->index));
        }
    }
}

/* Everybody sends its block 0 to all. */
static void do_multicast_send(struct desk *desk)
{
    struct sluice_handle handles[GROUP_MAX];
    uint32_t peers[GROUP_MAX];
    uint32_t n = desk->rank->size;
    ask_all(desk, 0, SLUICE_OP_RECEIVE);
    require_result(sluice_multichannel_post(desk->mesh.all, desk->requests, n, DEADLINE, handles),
                   n);
    for (uint32_t i = 0; i < n; i++) {
        peers[i] = n - 1 - i;
    }
    ask(desk, n, SLUICE_OP_SEND, 0);
    require_ok(sluice_multichannel_multicast_send(desk->mesh.all, &desk->requests[n], peers, n,
                                                  DEADLINE, desk->completions));
    for (uint32_t i = 0; i < n; i++) {
        require_class(&desk->completions[i], SLUICE_CLASS_NONE);
        require(desk->completions[i].peer == peers[i], "%u", desk->completions[i].peer);
    }
    take(desk, handles, n);
    for (uint32_t i = 0; i < n; i++) {
        pattern_check(desk->in.bytes + i * desk->size, desk->size, key_of(desk, i, 0));
        pattern_fill(desk->in.bytes + i * desk->size, desk->size,
                     key_of(desk, i, desk->rank->index));
    }
}

static void do_multicast_write(struct desk *desk)
{
    struct sluice_peer_remote_mr remotes[GROUP_MAX] = {{0}};
    uint32_t n = desk->rank->size;
    for (uint32_t i = 0; i < n; i++) {
        remotes[i].peer = n - 1 - i;
        require_ok(sluice_remote_mr_slice(&desk->remote_ins[n - 1 - i],
                                          desk->rank->index * desk->size, desk->size,
                                          &remotes[i].remote));
    }
    ask(desk, 0, SLUICE_OP_WRITE, 0);
    desk->requests[0].opcode = SLUICE_OP_NONE;
    require_ok(sluice_multichannel_multicast_write(desk->mesh.all, &desk->requests[0], remotes, n,
                                                   DEADLINE, desk->completions));
    for (uint32_t i = 0; i < n; i++) {
        require_class(&desk->completions[i], SLUICE_CLASS_NONE);
        require(desk->completions[i].peer == remotes[i].peer, "%u", desk->completions[i].peer);
    }
    mesh_barrier(&desk->mesh, desk->rank);
    for (uint32_t i = 0; i < n; i++) {
        pattern_check(desk->in.bytes + i * desk->size, desk->size, key_of(desk, i, 0));
        pattern_fill(desk->in.bytes + i * desk->size, desk->size,
                     key_of(desk, i, desk->rank->index));
    }
}

/* One list of all kinds, the sends before the receives that their peers wait for. */
static void do_submit(struct desk *desk)
{
    static const uint32_t mixed[] = {SLUICE_OP_SEND, SLUICE_OP_READ, SLUICE_OP_RECEIVE};
    struct memory again;
    uint32_t n = desk->rank->size;
    uint32_t at = 0;
    memory_open(&again, desk->mesh.pd, n * desk->size + 1);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t kind = 0; kind < COUNT(mixed); kind++) {
            ask(desk, at, mixed[kind], i);
            if (mixed[kind] == SLUICE_OP_READ) {
                desk->sges[at] = memory_sge(&again, i * desk->size, desk->size);
            }
            at++;
        }
    }
    require_ok(sluice_multichannel_submit(desk->mesh.all, desk->requests, at, DEADLINE,
                                          desk->completions));
    check_results(desk, at);
    check_blocks(desk);
    require(n * desk->size == 0 || memcmp(again.bytes, desk->in.bytes, n * desk->size) == 0,
            "what was read is not what was received%s", "");
    memory_close(&again);
    mesh_barrier(&desk->mesh, desk->rank);
    memset(desk->in.bytes, 0, n * desk->size);
    mesh_barrier(&desk->mesh, desk->rank);
    ask_all(desk, 0, SLUICE_OP_WRITE);
    require_ok(sluice_multichannel_submit(desk->mesh.all, desk->requests, n, DEADLINE, NULL));
}

START_TEST(scatter_gather_of_all_to_all)
{
    run_in_processes(do_scatter_gather);
}
END_TEST

START_TEST(scatter_send_and_gather_receive)
{
    run_in_processes(do_scatter_then_gather);
}
END_TEST

START_TEST(one_rank_scatters_and_gathers)
{
    run_in_processes(do_root);
}
END_TEST

START_TEST(scatter_write_of_all_to_all)
{
    run_in_processes(do_scatter_write);
}
END_TEST

START_TEST(gather_read_of_all_from_all)
{
    run_in_processes(do_gather_read);
}
END_TEST

START_TEST(multicast_send_of_all_to_all)
{
    run_in_processes(do_multicast_send);
}
END_TEST

START_TEST(multicast_write_of_all_to_all)
{
    run_in_processes(do_multicast_write);
}
END_TEST

START_TEST(submit_of_all_kinds)
{
    run_in_processes(do_submit);
}
END_TEST

/* 16 peers within the process, and 8 rounds. */
START_TEST(sixteen_peers)
{
    struct star star;
    struct memory out;
    struct memory in;
    struct sluice_sge sges[2][STAR_PEERS];
    struct sluice_request requests[2][STAR_PEERS];
    struct sluice_handle handles[STAR_PEERS];
    struct sluice_completion completions[STAR_PEERS];
    size_t size = 5000;
    star_open(&star, STAR_PEERS, NULL);
    memory_open(&out, star.sides.pds[0], STAR_PEERS * size);
    memory_open(&in, star.sides.pds[1], STAR_PEERS * size);
    for (uint32_t round = 0; round < 8; round++) {
        pattern_fill(out.bytes, out.length, round);
        for (uint32_t i = 0; i < STAR_PEERS; i++) {
            sges[0][i] = memory_sge(&out, i * size, size);
            sges[1][i] = memory_sge(&in, i * size, size);
            requests[0][i] = request_of(SLUICE_OP_NONE, i, &sges[0][i]);
            requests[1][i] = request_of(SLUICE_OP_RECEIVE, 0, &sges[1][i]);
            handles[i] = post(star.spokes[i], &requests[1][i]);
        }
        require_ok(sluice_multichannel_scatter_send(star.hub, requests[0], STAR_PEERS, DEADLINE,
                                                    completions));
        for (uint32_t i = 0; i < STAR_PEERS; i++) {
            require_class(&completions[i], SLUICE_CLASS_NONE);
            await(star.spokes[i], handles[i], SLUICE_CLASS_NONE);
            requests[0][i].remote = memory_remote(&in, i * size, size);
        }
        pattern_check(in.bytes, in.length, round);
        memset(out.bytes, 0, out.length);
        require_ok(sluice_multichannel_gather_read(star.hub, requests[0], STAR_PEERS, DEADLINE,
                                                   completions));
        pattern_check(out.bytes, out.length, round);
    }
    memory_close(&in);
    memory_close(&out);
    star_close(&star);
}
END_TEST

static void add_processes(TCase *tcase)
{
    tcase_add_test(tcase, scatter_gather_of_all_to_all);
    tcase_add_test(tcase, scatter_send_and_gather_receive);
    tcase_add_test(tcase, one_rank_scatters_and_gathers);
    tcase_add_test(tcase, scatter_write_of_all_to_all);
    tcase_add_test(tcase, gather_read_of_all_from_all);
    tcase_add_test(tcase, multicast_send_of_all_to_all);
    tcase_add_test(tcase, multicast_write_of_all_to_all);
    tcase_add_test(tcase, submit_of_all_kinds);
}

static void add_star(TCase *tcase)
{
    tcase_add_test(tcase, sixteen_peers);
}

int main(void)
{
    static const struct cases cases[] = {
        {"processes", WIRE_TCP, 120, add_processes},
        {"self", WIRE_SELF, 30, add_star},
        {"tcp", WIRE_TCP, 30, add_star},
    };
    return run_cases("scatter", cases, COUNT(cases));
}
