/* SPDX-License-Identifier: MIT */
/*
 * Peers that die: exactly their requests fail, soon and with the right class,
 * all others arrive, and a failed peer can be made new.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/group.h"
#include "support/pair.h"
#include "support/process.h"

#define BLOCK ((size_t)1 << 18)
#define ROUNDS 3

/* From the death of a process to the end of its requests. */
#define NOTICE SLUICE_MS(1500)

static void check_cause(const struct mesh *mesh, uint32_t peer)
{
    struct sluice_error error = peer_error(mesh->all, peer);
    char number[16];
    snprintf(number, sizeof(number), "%u", peer);
    require(error.error_class == SLUICE_CLASS_PEER_LOST && error.error == -ECONNRESET, "%s",
            error.text);
    require(strstr(error.text, number), "peer %u is not in '%s'", peer, error.text);
    require_result(sluice_multichannel_peer_state(mesh->all, peer), SLUICE_STATE_FAILED);
}

/* Rank 0 sends to 1, 2 and 3; so many rounds. */
static void make_sends(struct memory *memory, struct sluice_sge *sges,
                       struct sluice_request *requests)
{
    for (uint32_t i = 0; i < 3 * ROUNDS; i++) {
        sges[i] = memory_sge(memory, 0, BLOCK);
        requests[i] = request_of(SLUICE_OP_SEND, 1 + i % 3, &sges[i]);
        requests[i].user_data = i;
    }
}

/* Takes count messages from rank 0. */
static void take(struct mesh *mesh, struct memory *memory, int count)
{
    struct sluice_sge sge = memory_sge(memory, 0, BLOCK);
    for (int i = 0; i < count; i++) {
        memset(memory->bytes, 0, BLOCK);
        require_ok(sluice_multichannel_receive(mesh->all, 0, &sge, 1, DEADLINE, NULL));
        pattern_check(memory->bytes, BLOCK, 11);
    }
}

/* How the requests of the scatter ended: those of peer 2 after its death. */
static void check_scatter(const struct mesh *mesh, const struct sluice_completion *completions,
                          uint32_t arrived)
{
    uint32_t of_victim = 0;
    for (uint32_t i = 0; i < 3 * ROUNDS; i++) {
        const struct sluice_completion *completion = &completions[i];
        require(completion->user_data == i && completion->peer == 1 + i % 3, "%u", i);
        if (completion->peer != 2 || of_victim++ < arrived) {
            require_class(completion, SLUICE_CLASS_NONE);
        } else if (of_victim == arrived + 1) {
            require_class(completion, SLUICE_CLASS_PEER_LOST);
        } else {
            require_class(completion, SLUICE_CLASS_CANCELLED);
            require(completion->cause == peer_error(mesh->all, 2).status, "cause %u",
                    completion->cause);
        }
    }
    check_cause(mesh, 2);
}

static void die_in_unpolled_scatter(struct rank *rank)
{
    struct mesh mesh;
    struct memory memory;
    signal(SIGPIPE, SIG_DFL);
    mesh_open(&mesh, rank, NULL);
    memory_open(&memory, mesh.pd, BLOCK);
    if (rank->index == 0) {
        struct sluice_sge sges[3 * ROUNDS];
        struct sluice_request requests[3 * ROUNDS];
        struct sluice_handle handles[3 * ROUNDS];
        struct sluice_completion completions[3 * ROUNDS];
        pattern_fill(memory.bytes, BLOCK, 11);
        make_sends(&memory, sges, requests);
        require_ok(
            sluice_multichannel_post(mesh.all, requests, COUNT(requests), DEADLINE, handles));
        require_ok(sluice_multichannel_wait(mesh.all, &handles[1], DEADLINE, &completions[1]));
        rank_kill(rank, 2);
        int64_t killed = clock_now();
        for (uint32_t i = 1; i < COUNT(requests); i += 3) {
            require_ok(sluice_multichannel_wait(mesh.all, &handles[i], DEADLINE, &completions[i]));
        }
        int64_t took = clock_now() - killed;
        require(took < NOTICE || !device_is_soft(), "noticed after %lld ms",
                (long long)took / 1000000);
        for (uint32_t i = 0; i < COUNT(requests); i++) {
            require_ok(sluice_multichannel_wait(mesh.all, &handles[i], DEADLINE, &completions[i]));
        }
        check_scatter(&mesh, completions, 1);
    } else if (rank->index == 2) {
        take(&mesh, &memory, 1);
        rank_await_death(rank);
    } else {
        take(&mesh, &memory, ROUNDS);
    }
    rank_barrier(rank);
    memory_close(&memory);
    mesh_close(&mesh);
}

START_TEST(peer_dies_in_an_unpolled_scatter)
{
    group_run(4, die_in_unpolled_scatter, NULL, 25);
}
END_TEST

/* Rank 0 is blocked meanwhile; rank 1 kills. */
static void die_in_blocking_scatter(struct rank *rank)
{
    struct mesh mesh;
    struct memory memory;
    mesh_open(&mesh, rank, NULL);
    memory_open(&memory, mesh.pd, BLOCK);
    if (rank->index == 0) {
        struct sluice_sge sges[3 * ROUNDS];
        struct sluice_request requests[3 * ROUNDS];
        struct sluice_completion completions[3 * ROUNDS];
        pattern_fill(memory.bytes, BLOCK, 11);
        make_sends(&memory, sges, requests);
        int64_t start = clock_now();
        require_result(sluice_multichannel_scatter_send(mesh.all, requests, COUNT(requests),
                                                        DEADLINE, completions),
                       -ECONNRESET);
        require(clock_now() - start < DEADLINE / 2, "%lld ns", (long long)(clock_now() - start));
        check_scatter(&mesh, completions, 0);
    } else if (rank->index == 1) {
        take(&mesh, &memory, 1);
        rank_kill(rank, 2);
        take(&mesh, &memory, ROUNDS - 1);
    } else if (rank->index == 2) {
        rank_await_death(rank);
    } else {
        take(&mesh, &memory, ROUNDS);
    }
    rank_barrier(rank);
    memory_close(&memory);
    mesh_close(&mesh);
}

START_TEST(peer_dies_in_a_blocking_scatter)
{
    group_run(4, die_in_blocking_scatter, NULL, 25);
}
END_TEST

/* Reads from a dead peer, and writes to it, after its death was or was not noticed. */
static void use_dead_memory(struct rank *rank)
{
    struct mesh mesh;
    struct memory memory;
    struct sluice_remote_mr remotes[GROUP_MAX];
    mesh_open(&mesh, rank, NULL);
    memory_open(&memory, mesh.pd, BLOCK);
    mesh_share(rank, &memory, remotes);
    if (rank->index != 0) {
        rank_await_death(rank);
    }
    struct sluice_sge sge = memory_sge(&memory, 0, BLOCK);
    struct sluice_request requests[3];
    struct sluice_completion completions[3];
    for (uint32_t i = 0; i < 3; i++) {
        requests[i] = request_of(SLUICE_OP_READ, i, &sge);
        requests[i].remote = remotes[i];
    }
    struct sluice_sge own = memory_sge(&memory, 0, 0);
    requests[0].sges = &own;
    rank_kill(rank, 1);
    rank_kill(rank, 2);
    int64_t start = clock_now();
    int result = sluice_multichannel_gather_read(mesh.all, requests, 3, DEADLINE, completions);
    require(result == -ECONNRESET || result == -ENOTCONN, "%d", result);
    require(clock_now() - start < NOTICE || !device_is_soft(), "%lld ms",
            (long long)(clock_now() - start) / 1000000);
    require_class(&completions[0], SLUICE_CLASS_NONE);
    for (uint32_t i = 1; i < 3; i++) {
        require(completions[i].error_class == SLUICE_CLASS_PEER_LOST ||
                    completions[i].error == -ENOTCONN,
                "peer %u: %s", i, sluice_error_class_name(completions[i].error_class));
        check_cause(&mesh, i);
        require_result(sluice_multichannel_write(mesh.all, i, &sge, 1, &remotes[i], DEADLINE),
                       -ENOTCONN);
    }
    memory_close(&memory);
    mesh_close(&mesh);
}

START_TEST(reads_from_dead_peers_end)
{
    group_run(3, use_dead_memory, NULL, 25);
}
END_TEST

/* A receive that is parked ends when its peer dies, and only that one. */
static void park_receive(struct rank *rank)
{
    struct mesh mesh;
    struct sluice_completion completion;
    struct sluice_handle handles[3];
    mesh_open(&mesh, rank, NULL);
    if (rank->index != 0) {
        rank_barrier(rank);
        if (rank->index == 2) {
            require_ok(sluice_multichannel_send(mesh.all, 0, NULL, 0, DEADLINE));
        }
    } else {
        for (uint32_t i = 1; i < 3; i++) {
            struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, i, NULL);
            require_ok(
                sluice_multichannel_post(mesh.all, &receive, 1, SLUICE_FOREVER, &handles[i]));
        }
        rank_kill(rank, 1);
        int64_t killed = clock_now();
        require_ok(sluice_multichannel_wait(mesh.all, &handles[1], DEADLINE, &completion));
        require(clock_now() - killed < NOTICE, "noticed after %lld ms",
                (long long)(clock_now() - killed) / 1000000);
        require_class(&completion, SLUICE_CLASS_PEER_LOST);
        check_cause(&mesh, 1);
        require_result(sluice_multichannel_wait(mesh.all, &handles[2], 0, &completion), -ETIMEDOUT);
        rank_barrier(rank);
        require_ok(sluice_multichannel_wait(mesh.all, &handles[2], DEADLINE, &completion));
        require_class(&completion, SLUICE_CLASS_NONE);
    }
    rank_barrier(rank);
    mesh_close(&mesh);
}

START_TEST(parked_receive_of_a_dead_peer_ends)
{
    if (device_is_soft()) { /* a device does not tell an idle survivor */
        group_run(3, park_receive, NULL, 25);
    }
}
END_TEST

/* Nothing is in flight at all: the state tells. */
static void watch_state(struct rank *rank)
{
    struct mesh mesh;
    mesh_open(&mesh, rank, NULL);
    if (rank->index == 1) {
        rank_await_death(rank);
    }
    struct sluice_completion completion;
    require_result(sluice_multichannel_poll(mesh.all, &completion, 1), 0);
    require_result(sluice_multichannel_peer_state(mesh.all, 1), SLUICE_STATE_READY);
    rank_kill(rank, 1);
    int64_t killed = clock_now();
    while (sluice_multichannel_peer_state(mesh.all, 1) == SLUICE_STATE_READY) {
        require(clock_now() - killed < NOTICE, "not noticed after %lld ms",
                (long long)NOTICE / 1000000);
        let_pass(SLUICE_MS(2));
        require_result(sluice_multichannel_poll(mesh.all, &completion, 1), 0);
    }
    check_cause(&mesh, 1);
    require_result(sluice_multichannel_send(mesh.all, 1, NULL, 0, DEADLINE), -ENOTCONN);
    mesh_close(&mesh);
}

START_TEST(idle_death_shows_in_the_state)
{
    if (device_is_soft()) {
        group_run(2, watch_state, NULL, 25);
    }
}
END_TEST

/* The place of a dead peer is taken by a channel of a process that lives. */
static void replace_dead_peer(struct rank *rank)
{
    struct mesh mesh;
    struct sluice_endpoint ours[GROUP_MAX] = {{{0}}};
    struct sluice_endpoint theirs[GROUP_MAX];
    struct sluice_prepared_channel *prepared = NULL;
    mesh_open(&mesh, rank, NULL);
    if (rank->index == 1) {
        rank_await_death(rank);
    }
    int fds = 0;
    for (int cycle = 0; cycle < 6; cycle++) {
        if (rank->index == 0) {
            if (cycle == 0) {
                rank_kill(rank, 1);
                require_result(sluice_multichannel_send(mesh.all, 1, NULL, 0, DEADLINE),
                               -ECONNRESET);
            }
            require_ok(sluice_multichannel_peer_reset(mesh.all, 1, &ours[2]));
        } else {
            prepared = prepare_channel(mesh.pd, NULL, &ours[0]);
        }
        rank_exchange(rank, ours, theirs, sizeof(ours[0]));
        if (rank->index == 0) {
            require_ok(sluice_multichannel_peer_handshake(mesh.all, 1, &theirs[2]));
            rank_barrier(rank);
            require_ok(sluice_multichannel_send(mesh.all, 1, NULL, 0, DEADLINE));
        } else {
            struct sluice_channel *channel =
                sluice_prepared_channel_handshake(prepared, &theirs[0]);
            require(channel, "%s", sluice_last_error());
            rank_barrier(rank);
            require_ok(sluice_channel_receive(channel, NULL, 0, DEADLINE, NULL));
            /* rxe completes a receive before it acknowledges it: closed now, it might not. */
            rank_barrier(rank);
            sluice_channel_close(channel);
        }
        if (rank->index == 0) {
            rank_barrier(rank);
        }
        if (cycle == 0) {
            let_pass(SLUICE_MS(100));
            fds = count_fds();
        }
    }
    require(settle_fds(fds) <= fds, "%d fds, were %d", count_fds(), fds);
    struct sluice_sge none = {0};
    if (rank->index == 0) {
        require_ok(sluice_multichannel_send(mesh.all, 2, &none, 0, DEADLINE));
    } else {
        require_ok(sluice_multichannel_receive(mesh.all, 0, NULL, 0, DEADLINE, NULL));
    }
    rank_barrier(rank);
    mesh_close(&mesh);
}

START_TEST(dead_peer_is_replaced)
{
    group_run(3, replace_dead_peer, NULL, 25);
}
END_TEST

/* A peer that is stopped is not dead: it is waited for, and goes on. */
static void stop_and_go_on(struct rank *rank)
{
    struct mesh mesh;
    struct memory memory;
    struct sluice_completion completion;
    pid_t pids[GROUP_MAX];
    pid_t own[GROUP_MAX];
    mesh_open(&mesh, rank, NULL);
    memory_open(&memory, mesh.pd, 1000);
    for (uint32_t i = 0; i < rank->size; i++) {
        own[i] = getpid();
    }
    rank_exchange(rank, own, pids, sizeof(own[0]));
    struct sluice_sge sge = memory_sge(&memory, 0, 1000);
    if (rank->index == 0) {
        struct sluice_request send = request_of(SLUICE_OP_SEND, 1, &sge);
        struct sluice_handle handle;
        pattern_fill(memory.bytes, 1000, 12);
        kill(pids[1], SIGSTOP);
        require_ok(sluice_multichannel_post(mesh.all, &send, 1, DEADLINE, &handle));
        /* A device takes the message while its program is stopped, if a receive was posted. */
        int waited = sluice_multichannel_wait(mesh.all, &handle, SLUICE_MS(300), &completion);
        require(waited == -ETIMEDOUT || (waited == 0 && !device_is_soft()), "%d", waited);
        require_result(sluice_multichannel_peer_state(mesh.all, 1), SLUICE_STATE_READY);
        kill(pids[1], SIGCONT);
        require_ok(sluice_multichannel_wait(mesh.all, &handle, DEADLINE, &completion));
        require_class(&completion, SLUICE_CLASS_NONE);
    } else {
        require_ok(sluice_multichannel_receive(mesh.all, 0, &sge, 1, DEADLINE, NULL));
        pattern_check(memory.bytes, 1000, 12);
    }
    rank_barrier(rank);
    memory_close(&memory);
    mesh_close(&mesh);
}

START_TEST(stopped_peer_is_waited_for)
{
    group_run(2, stop_and_go_on, NULL, 25);
}
END_TEST

/* All at once, with work on its way. */
static void close_while_busy(struct rank *rank)
{
    struct mesh mesh;
    struct memory memory;
    struct sluice_remote_mr remotes[GROUP_MAX];
    size_t length = (size_t)4 << 20;
    mesh_open(&mesh, rank, NULL);
    memory_open(&memory, mesh.pd, length);
    mesh_share(rank, &memory, remotes);
    struct sluice_sge sge = memory_sge(&memory, 0, length);
    for (uint32_t i = 0; i < rank->size; i++) {
        struct sluice_request requests[3] = {request_of(SLUICE_OP_READ, i, &sge),
                                             request_of(SLUICE_OP_SEND, i, &sge),
                                             request_of(SLUICE_OP_RECEIVE, i, &sge)};
        requests[0].remote = remotes[i];
        int result = sluice_multichannel_post(mesh.all, requests, 3, DEADLINE, NULL);
        require(result == 0 || result == -ENOTCONN, "%d: %s", result, sluice_last_error());
    }
    int64_t start = clock_now();
    sluice_multichannel_close(mesh.all);
    require(clock_now() - start < SLUICE_MS(1500), "%lld ms",
            (long long)(clock_now() - start) / 1000000);
    require_ok(sluice_mr_deregister(memory.mr));
    memset(memory.bytes, 0x77, length);
    rank_barrier(rank);
    value_check(memory.bytes, length, 0x77);
    memory_check_guards(&memory);
    free(memory.whole);
    sluice_pd_free(mesh.pd);
    sluice_context_close(mesh.context);
}

START_TEST(all_close_at_once_while_busy)
{
    group_run(3, close_while_busy, NULL, 25);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, peer_dies_in_an_unpolled_scatter);
    tcase_add_test(tcase, peer_dies_in_a_blocking_scatter);
    tcase_add_test(tcase, reads_from_dead_peers_end);
    tcase_add_test(tcase, parked_receive_of_a_dead_peer_ends);
    tcase_add_test(tcase, idle_death_shows_in_the_state);
    tcase_add_test(tcase, dead_peer_is_replaced);
    tcase_add_test(tcase, stopped_peer_is_waited_for);
    tcase_add_test(tcase, all_close_at_once_while_busy);
}

int main(void)
{
    static const struct cases cases[] = {{"processes", WIRE_TCP, 40, add_tests}};
    return run_cases("faults", cases, COUNT(cases));
}
