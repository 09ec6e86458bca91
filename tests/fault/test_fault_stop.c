/* SPDX-License-Identifier: MIT */
/*
 * A stopped peer is not dead: its traffic waits, that of others does not, and all goes on when it
 * is continued. A deadline that passes meanwhile ends its requests, and both sides can connect
 * again.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "../support/fault.h"

/* Rank 0 works with the stopped rank; rank 1 stops it, and is the bystander. */
#define WORKER 0
#define STOPPER 1
#define STOPPED 2
#define STOPS 5

/* A list of all kinds, of which both sides submit their part, over and over. */
#define EACH 8
#define BYTES 20000
#define LIST (4 * EACH)

struct traffic {
    struct mesh mesh;
    struct memory out, in, again;
    struct sluice_remote_mr remotes[GROUP_MAX]; /* of in */
    struct sluice_sge sges[LIST];
    struct sluice_request requests[LIST];
    struct sluice_completion completions[LIST];
    pid_t pids[GROUP_MAX];
};

static void traffic_open(struct traffic *traffic, struct rank *rank)
{
    pid_t own[GROUP_MAX];
    mesh_open(&traffic->mesh, rank, NULL);
    memory_open(&traffic->out, traffic->mesh.pd, (size_t)2 * EACH * BYTES);
    memory_open(&traffic->in, traffic->mesh.pd, (size_t)2 * EACH * BYTES);
    memory_open(&traffic->again, traffic->mesh.pd, (size_t)EACH * BYTES);
    mesh_share(rank, &traffic->in, traffic->remotes);
    for (uint32_t i = 0; i < rank->size; i++) {
        own[i] = getpid();
    }
    rank_exchange(rank, own, traffic->pids, sizeof(own[0]));
}

static void traffic_close(struct traffic *traffic)
{
    memory_close(&traffic->again);
    memory_close(&traffic->in);
    memory_close(&traffic->out);
    mesh_close(&traffic->mesh);
    free(traffic);
}

static void ask(struct traffic *traffic, uint32_t at, uint32_t opcode, uint32_t peer,
                const struct memory *memory, size_t offset)
{
    traffic->sges[at] = memory_sge(memory, offset, BYTES);
    traffic->requests[at] = request_of(opcode, peer, &traffic->sges[at]);
    traffic->requests[at].user_data = at;
    if (opcode >= SLUICE_OP_WRITE) {
        require_ok(sluice_remote_mr_slice(&traffic->remotes[peer], offset, BYTES,
                                          &traffic->requests[at].remote));
    }
}

/* Messages go into the first half of the other's memory, writes into the second one. */
static void do_round(struct traffic *traffic, const struct rank *rank, uint32_t peer,
                     uint32_t round)
{
    const size_t half = (size_t)EACH * BYTES;
    uint32_t count = 0;
    for (uint32_t i = 0; i < EACH; i++) {
        size_t offset = (size_t)i * BYTES;
        ask(traffic, count++, SLUICE_OP_SEND, peer, &traffic->out, offset);
        ask(traffic, count++, SLUICE_OP_RECEIVE, peer, &traffic->in, offset);
    }
    for (uint32_t i = 0; i < EACH && rank->index == WORKER; i++) {
        size_t offset = half + (size_t)i * BYTES;
        ask(traffic, count++, SLUICE_OP_WRITE, peer, &traffic->out, offset);
    }
    pattern_fill(traffic->out.bytes, half, pattern_key(rank->index, peer, round));
    pattern_fill(traffic->out.bytes + half, half, pattern_key(rank->index, peer, round + 1));
    memset(traffic->completions, 0xcc, sizeof(traffic->completions));
    require_ok(sluice_multichannel_submit(traffic->mesh.all, traffic->requests, count, DEADLINE,
                                          traffic->completions));
    for (uint32_t i = 0; i < count; i++) {
        require_class(&traffic->completions[i], SLUICE_CLASS_NONE);
        require(traffic->completions[i].user_data == i && traffic->completions[i].bytes == BYTES,
                "request %u: user data %llu", i,
                (unsigned long long)traffic->completions[i].user_data);
    }
    pattern_check(traffic->in.bytes, half, pattern_key(peer, rank->index, round));
    if (rank->index != WORKER) {
        return;
    }
    struct sluice_remote_mr remote;
    struct sluice_sge sge = memory_sge(&traffic->again, 0, half);
    require_ok(sluice_remote_mr_slice(&traffic->remotes[peer], half, half, &remote));
    require_ok(sluice_multichannel_read(traffic->mesh.all, peer, &sge, 1, &remote, DEADLINE));
    pattern_check(traffic->again.bytes, half, pattern_key(rank->index, peer, round + 1));
}

/* In each round, tells the peer whether there is another one. */
static void work_until_told(struct traffic *traffic, const struct rank *rank)
{
    struct sluice_multichannel *all = traffic->mesh.all;
    struct sluice_request told = request_of(SLUICE_OP_RECEIVE, STOPPER, NULL);
    struct sluice_completion completion;
    struct sluice_handle handle;
    bool last = false;
    require_result(sluice_multichannel_post(all, &told, 1, SLUICE_FOREVER, &handle), 1);
    for (uint32_t round = 0; !last; round++) {
        last = sluice_multichannel_wait(all, &handle, 0, &completion) == 0;
        require_ok(sluice_multichannel_send_immediate(all, STOPPED, NULL, 0, last, DEADLINE));
        do_round(traffic, rank, STOPPED, round);
    }
    require_class(&completion, SLUICE_CLASS_NONE);
}

static void work_as_told(struct traffic *traffic, const struct rank *rank)
{
    struct sluice_completion completion = {0};
    for (uint32_t round = 0; completion.immediate == 0; round++) {
        require_ok(
            sluice_multichannel_receive(traffic->mesh.all, WORKER, NULL, 0, DEADLINE, &completion));
        do_round(traffic, rank, WORKER, round);
    }
}

static void stop_in_traffic(struct rank *rank)
{
    struct traffic *traffic = calloc(1, sizeof(*traffic));
    require(traffic, "%u", rank->index);
    traffic_open(traffic, rank);
    /* Each connection has a descriptor, also one on which nothing was sent yet. */
    require_result(sluice_multichannel_wait_connected(traffic->mesh.all, DEADLINE), 0);
    int fds = count_fds();
    rank_barrier(rank);
    if (rank->index == WORKER) {
        work_until_told(traffic, rank);
    } else if (rank->index == STOPPED) {
        work_as_told(traffic, rank);
    } else {
        for (int i = 0; i < STOPS; i++) {
            let_pass(SLUICE_MS(10) + i * SLUICE_MS(7));
            require(kill(traffic->pids[STOPPED], SIGSTOP) == 0, "%s", strerror(errno));
            let_pass(SLUICE_MS(100));
            require(kill(traffic->pids[STOPPED], SIGCONT) == 0, "%s", strerror(errno));
        }
        require_ok(sluice_multichannel_send(traffic->mesh.all, WORKER, NULL, 0, DEADLINE));
    }
    if (rank->index != STOPPED) {
        mesh_pass(&traffic->mesh, rank, WORKER, STOPPER);
    }
    rank_barrier(rank);
    require(settle_fds(fds) <= fds, "%d fds, were %d", count_fds(), fds);
    traffic_close(traffic);
}

TEST(peer_stopped_in_the_middle_of_traffic)
{
    group_run(3, stop_in_traffic, NULL, 40);
}

/* Posts sends to it, and receives and reads of it, while it is stopped. */
static void post_to_stopped(struct traffic *traffic, struct tally *tally, int64_t deadline)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < EACH; i++) {
        size_t offset = (size_t)i * BYTES;
        ask(traffic, count++, SLUICE_OP_SEND, STOPPED, &traffic->out, offset);
        ask(traffic, count++, SLUICE_OP_RECEIVE, STOPPED, &traffic->in, offset);
        ask(traffic, count++, SLUICE_OP_READ, STOPPED, &traffic->again, offset);
    }
    tally_open(tally, 0, count);
    require_result(
        sluice_multichannel_post(traffic->mesh.all, traffic->requests, count, deadline, NULL),
        (int)count);
}

/* Answers the posted requests. */
static void answer(struct traffic *traffic, const struct rank *rank)
{
    uint32_t count = 0;
    pattern_fill(traffic->out.bytes, (size_t)EACH * BYTES, 50 + rank->index);
    for (uint32_t i = 0; i < EACH; i++) {
        ask(traffic, count++, SLUICE_OP_SEND, WORKER, &traffic->out, (size_t)i * BYTES);
        ask(traffic, count++, SLUICE_OP_RECEIVE, WORKER, &traffic->in, (size_t)i * BYTES);
    }
    require_ok(
        sluice_multichannel_submit(traffic->mesh.all, traffic->requests, count, DEADLINE, NULL));
}

/* While the peer is stopped, a bystander does its transfers. */
static void pass_while_stopped(struct rank *rank)
{
    struct traffic *traffic = calloc(1, sizeof(*traffic));
    struct tally tally;
    require(traffic, "%u", rank->index);
    traffic_open(traffic, rank);
    if (rank->index == WORKER) {
        pattern_fill(traffic->out.bytes, (size_t)EACH * BYTES, 50);
        kill(traffic->pids[STOPPED], SIGSTOP);
        post_to_stopped(traffic, &tally, DEADLINE);
        mesh_pass(&traffic->mesh, rank, WORKER, STOPPER);
        require(tally.done < tally.size, "%u", tally.done);
        require_result(sluice_multichannel_peer_state(traffic->mesh.all, STOPPED),
                       SLUICE_STATE_READY);
        kill(traffic->pids[STOPPED], SIGCONT);
        tally_close_multichannel(&tally, traffic->mesh.all);
        require_result(sluice_multichannel_peer_state(traffic->mesh.all, STOPPED),
                       SLUICE_STATE_READY);
        pattern_check(traffic->in.bytes, (size_t)EACH * BYTES, 50 + STOPPED);
    } else if (rank->index == STOPPER) {
        mesh_pass(&traffic->mesh, rank, WORKER, STOPPER);
    } else {
        answer(traffic, rank);
        pattern_check(traffic->in.bytes, (size_t)EACH * BYTES, 50);
    }
    rank_barrier(rank);
    traffic_close(traffic);
}

TEST(others_go_on_while_a_peer_is_stopped)
{
    group_run(3, pass_while_stopped, NULL, 30);
}

/* Makes a new connection on both sides. */
static void connect_again(struct traffic *traffic, struct rank *rank)
{
    struct sluice_endpoint ours[GROUP_MAX] = {{{0}}};
    struct sluice_endpoint theirs[GROUP_MAX];
    uint32_t peer = rank->index == WORKER ? STOPPED : WORKER;
    if (rank->index != STOPPER) {
        require_ok(sluice_multichannel_peer_reset(traffic->mesh.all, peer, &ours[peer]));
    }
    rank_exchange(rank, ours, theirs, sizeof(ours[0]));
    if (rank->index != STOPPER) {
        require_ok(sluice_multichannel_peer_handshake(traffic->mesh.all, peer, &theirs[peer]));
    }
    rank_barrier(rank);
}

/*
 * The peer is stopped for longer than a deadline: a late answer must not be taken for that of a
 * later request.
 */
static void stop_past_deadline(struct rank *rank)
{
    struct traffic *traffic = calloc(1, sizeof(*traffic));
    struct tally tally;
    struct census census = {0};
    require(traffic, "%u", rank->index);
    traffic_open(traffic, rank);
    /* Both sides have heard each other before one is stopped. */
    if (rank->index == WORKER) {
        do_round(traffic, rank, STOPPED, 7);
    } else if (rank->index == STOPPED) {
        do_round(traffic, rank, WORKER, 7);
    }
    rank_barrier(rank);
    for (int i = 0; i < 3; i++) {
        if (rank->index == WORKER) {
            kill(traffic->pids[STOPPED], SIGSTOP);
            int64_t start = fair_now();
            post_to_stopped(traffic, &tally, SLUICE_MS(100));
            tally_close_multichannel(&tally, traffic->mesh.all);
            require(fair_now() - start < SLUICE_MS(1500) || !device_is_soft(), "%lld ms",
                    (long long)(fair_now() - start) / 1000000);
            struct sluice_error error = peer_error(traffic->mesh.all, STOPPED);
            require(error.error_class == SLUICE_CLASS_TIMEOUT &&
                        strstr(error.text, "deadline of 100 ms passed") &&
                        (!device_is_soft() || strstr(error.text, "heard last")),
                    "%s", error.text);
            mesh_pass(&traffic->mesh, rank, WORKER, STOPPER);
            kill(traffic->pids[STOPPED], SIGCONT);
        } else if (rank->index == STOPPER) {
            mesh_pass(&traffic->mesh, rank, WORKER, STOPPER);
        }
        rank_barrier(rank);
        connect_again(traffic, rank);
        if (rank->index == WORKER) {
            do_round(traffic, rank, STOPPED, 7);
        } else if (rank->index == STOPPED) {
            do_round(traffic, rank, WORKER, 7);
        }
        rank_barrier(rank);
        if (i == 0) {
            let_pass(SLUICE_MS(100));
            census = census_take();
        } else {
            census_check(&census);
        }
        /* Wait until it has been continued. */
        rank_barrier(rank);
    }
    traffic_close(traffic);
}

TEST(peer_stopped_for_longer_than_a_deadline)
{
    group_run(3, stop_past_deadline, NULL, 40);
}

/* Pages, the last one first on both sides, none adjacent to the next. */
#define PAGE 512
#define MOST_PAGES 400

struct pages {
    struct memory memory;
    uint32_t indices[MOST_PAGES];
    struct sluice_blocks blocks;
    struct sluice_request request;
};

/* The peer's memory was not used before, so it is not mapped, and requests need the peer. */
static void pages_open(struct pages *pages, const struct mesh *mesh, uint32_t opcode, uint32_t peer,
                       const struct sluice_remote_mr *remote, uint32_t count)
{
    memory_open(&pages->memory, mesh->pd, (size_t)MOST_PAGES * PAGE);
    for (uint32_t i = 0; i < count; i++) {
        pages->indices[i] = count - 1 - i;
    }
    pages->blocks = (struct sluice_blocks){
        .size = sizeof(pages->blocks),
        .local = {
            .kind = SLUICE_LAYOUT_PAGED, .count = count, .bytes = PAGE, .indices = pages->indices}};
    pages->blocks.remote = pages->blocks.local;
    pages->request = (struct sluice_request){.opcode = opcode,
                                             .peer = peer,
                                             .sge = memory_sge(&pages->memory, 0, count * PAGE),
                                             .sge_count = 1,
                                             .remote = *remote,
                                             .user_data = 4711,
                                             .blocks = &pages->blocks};
}

/* The request had one result and is no longer in flight, so its memory can be deregistered. */
static void pages_close(struct pages *pages, const struct mesh *mesh)
{
    struct sluice_completion completion;
    memset(pages->memory.bytes, 0x77, pages->memory.length);
    require_result(sluice_multichannel_poll(mesh->all, &completion, 1), 0);
    require_ok(sluice_multichannel_flush(mesh->all, 0));
    value_check(pages->memory.bytes, pages->memory.length, 0x77);
    memory_close(&pages->memory);
}

/* More pages than the queue has room for, or as many as it takes at once. */
static void run_late(struct traffic *traffic, uint32_t opcode, bool posted)
{
    static struct pages pages;
    struct sluice_multichannel *all = traffic->mesh.all;
    struct sluice_completion completion = {0};
    pages_open(&pages, &traffic->mesh, opcode, STOPPED, &traffic->remotes[STOPPED],
               posted ? 100 : MOST_PAGES);
    if (posted) {
        require_result(sluice_multichannel_post(all, &pages.request, 1, SLUICE_MS(100), NULL), 1);
        require_ok(sluice_multichannel_next(all, DEADLINE, &completion));
    } else {
        int result =
            sluice_multichannel_submit(all, &pages.request, 1, SLUICE_MS(100), &completion);
        require(result == completion.error, "%d, not %d", result, completion.error);
    }
    /* A device completes it without the program. */
    if (device_is_soft() || completion.error != 0) {
        require_class(&completion, SLUICE_CLASS_TIMEOUT);
    }
    require(completion.user_data == 4711, "%llu", (unsigned long long)completion.user_data);
    pages_close(&pages, &traffic->mesh);
}

static void stop_amid_blocks(struct rank *rank)
{
    struct traffic *traffic = calloc(1, sizeof(*traffic));
    require(traffic, "%u", rank->index);
    traffic_open(traffic, rank);
    require_ok(sluice_multichannel_wait_connected(traffic->mesh.all, DEADLINE));
    rank_barrier(rank);
    for (int i = 0; i < 4; i++) {
        if (rank->index == WORKER) {
            stop_process(traffic->pids[STOPPED]);
            run_late(traffic, i % 2 == 0 ? SLUICE_OP_WRITE : SLUICE_OP_READ, i >= 2);
            mesh_pass(&traffic->mesh, rank, WORKER, STOPPER);
            require(kill(traffic->pids[STOPPED], SIGCONT) == 0, "%s", strerror(errno));
        } else if (rank->index == STOPPER) {
            mesh_pass(&traffic->mesh, rank, WORKER, STOPPER);
        }
        rank_barrier(rank);
        connect_again(traffic, rank);
        if (rank->index != STOPPER) {
            mesh_pass(&traffic->mesh, rank, WORKER, STOPPED);
        }
        rank_barrier(rank);
    }
    traffic_close(traffic);
}

TEST(deadline_passes_in_a_request_of_blocks, .group = "blocks")
{
    group_run(3, stop_amid_blocks, NULL, 60);
}

/* One victim dies in a write of pages, the other in a read. */
static void die_amid_blocks(struct rank *rank)
{
    static struct pages pages;
    struct traffic *traffic = calloc(1, sizeof(*traffic));
    struct sluice_completion completion;
    require(traffic, "%u", rank->index);
    traffic_open(traffic, rank);
    require_ok(sluice_multichannel_wait_connected(traffic->mesh.all, DEADLINE));
    rank_barrier(rank);
    if (rank->index != WORKER) {
        rank_await_death(rank);
    }
    for (uint32_t victim = 1; victim < rank->size; victim++) {
        pages_open(&pages, &traffic->mesh, victim == 1 ? SLUICE_OP_WRITE : SLUICE_OP_READ, victim,
                   &traffic->remotes[victim], 100);
        stop_process(traffic->pids[victim]);
        require_result(
            sluice_multichannel_post(traffic->mesh.all, &pages.request, 1, DEADLINE, NULL), 1);
        rank_kill(rank, victim);
        require_ok(sluice_multichannel_next(traffic->mesh.all, DEADLINE, &completion));
        /* A device completes it without the program. */
        if (device_is_soft() || completion.error != 0) {
            require_death(&completion);
            check_lost(&traffic->mesh, victim);
        }
        require(completion.user_data == 4711, "%llu", (unsigned long long)completion.user_data);
        pages_close(&pages, &traffic->mesh);
    }
    traffic_close(traffic);
}

TEST(peer_dies_in_a_request_of_blocks, .group = "blocks")
{
    group_run(3, die_amid_blocks, NULL, 40);
}

/* A stopped peer is not dead: the send waits, and goes on. */
static void stop_in_a_send(struct rank *rank)
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
        require_result(sluice_multichannel_post(mesh.all, &send, 1, DEADLINE, &handle), 1);
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

TEST(stopped_peer_is_waited_for)
{
    group_run(2, stop_in_a_send, NULL, 25);
}

/* The last object that is closed takes the device with it. */
enum last { LAST_CONTEXT, LAST_DOMAIN, LAST_REGION, LASTS };
#define LEAVES 3
#define MUCH ((size_t)8 << 20)

static int64_t leave(struct mesh *mesh, struct memory *memory, enum last last)
{
    sluice_multichannel_close(mesh->all);
    int64_t start = fair_now();
    if (last != LAST_CONTEXT) {
        sluice_context_close(mesh->context);
    }
    if (last == LAST_REGION) {
        sluice_pd_free(mesh->pd);
    }
    memory_close(memory);
    if (last != LAST_REGION) {
        sluice_pd_free(mesh->pd);
    }
    if (last == LAST_CONTEXT) {
        sluice_context_close(mesh->context);
    }
    return fair_now() - start;
}

/* All objects are closed while the peer is stopped, in the middle of a send to it. */
static void leave_a_stopped_peer(struct rank *rank)
{
    static struct mesh meshes[LASTS * LEAVES];
    static struct memory memories[LASTS * LEAVES];
    pid_t pids[2];
    pid_t own[2] = {getpid(), getpid()};
    rank_exchange(rank, own, pids, sizeof(own[0]));
    for (size_t i = 0; i < COUNT(meshes); i++) {
        mesh_open(&meshes[i], rank, NULL);
        memory_open(&memories[i], meshes[i].pd, MUCH);
        struct sluice_sge sge = memory_sge(&memories[i], 0, MUCH);
        struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &sge);
        if (rank->index == 1) {
            require_result(
                sluice_multichannel_post(meshes[i].all, &receive, 1, SLUICE_FOREVER, NULL), 1);
        }
        require_ok(sluice_multichannel_wait_connected(meshes[i].all, DEADLINE));
    }
    rank_barrier(rank);
    if (rank->index == 0) {
        int64_t least[LASTS] = {INT64_MAX, INT64_MAX, INT64_MAX};
        require(kill(pids[1], SIGSTOP) == 0, "%s", strerror(errno));
        for (size_t i = 0; i < COUNT(meshes); i++) {
            struct sluice_sge sge = memory_sge(&memories[i], 0, MUCH);
            struct sluice_request send = request_of(SLUICE_OP_SEND, 1, &sge);
            require_result(sluice_multichannel_post(meshes[i].all, &send, 1, DEADLINE, NULL), 1);
            int64_t took = leave(&meshes[i], &memories[i], (enum last)(i % LASTS));
            least[i % LASTS] = took < least[i % LASTS] ? took : least[i % LASTS];
        }
        for (int last = 0; last < LASTS; last++) {
            require(least[last] < SLUICE_MS(500), "end %d took %lld ms at best", last,
                    (long long)least[last] / 1000000);
        }
        require(kill(pids[1], SIGCONT) == 0, "%s", strerror(errno));
        return;
    }
    for (size_t i = 0; i < COUNT(meshes); i++) {
        leave(&meshes[i], &memories[i], LAST_CONTEXT);
    }
}

TEST(nothing_waits_for_a_stopped_peer_to_end)
{
    group_run(2, leave_a_stopped_peer, NULL, 40);
}

int main(void)
{
    return RUN_GROUPS("fault_stop", {"processes", WIRE_SHM, 50}, {"blocks", WIRE_SHM, 60},
                      {"blocks", WIRE_TCP, 60});
}
