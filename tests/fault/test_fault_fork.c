/* SPDX-License-Identifier: MIT */
/*
 * Fork with requests in flight: a child that ends at once, becomes another program, or lives on
 * affects neither the requests of its parent, which complete once and with its own data, nor the
 * connection, nor others.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/fault.h"

static const struct sluice_context_attr with_fork = {.size = sizeof(with_fork),
                                                     .flags = SLUICE_CONTEXT_FORK};

/* Of each kind; the peer does its part after the fork. */
#define EACH 4
#define BYTES ((size_t)3 * 4096)
#define HALF (EACH * BYTES)

/* Memory of both sides to send from and to receive into, page by page. */
struct work {
    struct pair pair;
    struct star star; /* the bystander, of the same contexts */
    struct memory out[2], in[2];
    struct sluice_sge sges[2][4 * EACH];
    struct sluice_request requests[2][4 * EACH];
    struct tally tally;
};

static void open_sides(struct sides *sides)
{
    memset(sides, 0, sizeof(*sides));
    for (int i = 0; i < 2; i++) {
        if (i == 1 && current_wire() == WIRE_SELF) {
            sides->contexts[1] = sides->contexts[0];
            sides->pds[1] = sides->pds[0];
            return;
        }
        sides->contexts[i] = made(sluice_context_open(test_device(), &with_fork));
        sides->pds[i] = made(sluice_pd_alloc(sides->contexts[i]));
    }
}

static void work_open(struct work *work)
{
    open_sides(&work->pair.sides);
    for (int i = 0; i < 2; i++) {
        memory_open(&work->out[i], work->pair.sides.pds[i], 2 * HALF);
        memory_open(&work->in[i], work->pair.sides.pds[i], 2 * HALF);
    }
}

static void work_close(struct work *work)
{
    for (int i = 0; i < 2; i++) {
        memory_close(&work->out[i]);
        memory_close(&work->in[i]);
    }
    sides_close(&work->pair.sides);
}

static uint32_t ask(struct work *work, int side, uint32_t at, uint32_t opcode,
                    const struct memory *memory, size_t offset)
{
    work->sges[side][at] = memory_sge(memory, offset, BYTES);
    work->requests[side][at] = request_of(opcode, 0, &work->sges[side][at]);
    work->requests[side][at].user_data = at;
    return at + 1;
}

/* Messages wait for receives of the peer; requests behind them wait, too. */
static void post_first_side(struct work *work)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < EACH; i++) {
        count = ask(work, 0, count, SLUICE_OP_SEND, &work->out[0], i * BYTES);
        count = ask(work, 0, count, SLUICE_OP_RECEIVE, &work->in[0], i * BYTES);
    }
    for (uint32_t i = 0; i < EACH; i++) {
        size_t offset = HALF + i * BYTES;
        struct sluice_remote_mr remote = memory_remote(&work->in[1], offset, BYTES);
        count = ask(work, 0, count, SLUICE_OP_WRITE, &work->out[0], offset);
        work->requests[0][count - 1].remote = remote;
        remote = memory_remote(&work->out[1], offset, BYTES);
        count = ask(work, 0, count, SLUICE_OP_READ, &work->in[0], offset);
        work->requests[0][count - 1].remote = remote;
    }
    tally_open(&work->tally, 0, count);
    require_result(
        sluice_channel_post(work->pair.channels[0], work->requests[0], count, DEADLINE, NULL),
        (int)count);
}

static void submit_second_side(struct work *work)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < EACH; i++) {
        count = ask(work, 1, count, SLUICE_OP_SEND, &work->out[1], i * BYTES);
        count = ask(work, 1, count, SLUICE_OP_RECEIVE, &work->in[1], i * BYTES);
    }
    require_ok(
        sluice_channel_submit(work->pair.channels[1], work->requests[1], count, DEADLINE, NULL));
}

/* The work of the child until it ends. The parent closes ends when it has its data. */
typedef void child(struct work *work, int ends);

static void end_at_once(struct work *work, int ends)
{
    (void)work;
    (void)ends;
    _exit(7);
}

static void become_another(struct work *work, int ends)
{
    (void)work;
    (void)ends;
    execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
    _exit(1);
}

/* Writes to its copy of the memory, and lives until the parent has done its work, and longer. */
static void live_on(struct work *work, int ends)
{
    char byte;
    for (int i = 0; i < 2; i++) {
        memset(work->out[i].bytes, 0x77, 2 * HALF);
        memset(work->in[i].bytes, 0x77, 2 * HALF);
    }
    bool ended = read(ends, &byte, 1) == 0;
    let_pass(short_run() ? SLUICE_MS(100) : SLUICE_S(1));
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < 2 * HALF; k++) {
            ended &= work->in[i].bytes[k] == 0x77 && work->out[i].bytes[k] == 0x77;
        }
    }
    _exit(ended ? 7 : 1);
}

static void fork_once(struct work *work, child *function, bool wait_first)
{
    int fds[2];
    int status = 0;
    pair_connect(&work->pair, NULL);
    for (int i = 0; i < 2; i++) {
        pattern_fill(work->out[i].bytes, 2 * HALF, 20 + (uint64_t)i);
        memset(work->in[i].bytes, 0, 2 * HALF);
    }
    post_first_side(work);
    require(pipe2(fds, O_CLOEXEC) == 0, "%s", strerror(errno));
    pid_t pid = fork();
    require(pid >= 0, "%s", strerror(errno));
    if (pid == 0) {
        close(fds[1]);
        function(work, fds[0]);
    }
    close(fds[0]);
    /* Shared pages are written to: one of the processes gets copies. */
    pattern_fill(work->out[0].bytes, HALF, 20);
    work->in[0].bytes[HALF - 1] = 1;
    if (wait_first) {
        require(waitpid(pid, &status, 0) == pid, "%s", strerror(errno));
    }
    submit_second_side(work);
    tally_close_channel(&work->tally, work->pair.channels[0]);
    for (int i = 0; i < 2; i++) {
        pattern_check(work->in[i].bytes, HALF, 20 + (uint64_t)!i);
        pattern_check(work->out[i].bytes, 2 * HALF, 20 + (uint64_t)i);
    }
    require(memcmp(work->in[1].bytes + HALF, work->out[0].bytes + HALF, HALF) == 0, "writes%s", "");
    require(memcmp(work->in[0].bytes + HALF, work->out[1].bytes + HALF, HALF) == 0, "reads%s", "");
    close(fds[1]);
    pair_works(&work->pair);
    if (!wait_first) {
        require(waitpid(pid, &status, 0) == pid, "%s", strerror(errno));
    }
    require(WIFEXITED(status) && WEXITSTATUS(status) == 7, "the child ended with %#x", status);
    pair_works(&work->pair);
    sluice_channel_close(work->pair.channels[0]);
    sluice_channel_close(work->pair.channels[1]);
}

static void fork_often(child *function, bool wait_first)
{
    struct census census = {0};
    struct work work;
    struct star star;
    memset(&work, 0, sizeof(work));
    work_open(&work);
    star_open(&star, 2, NULL);
    for (int i = 0; i < (short_run() ? 2 : 4); i++) {
        fork_once(&work, function, wait_first);
        if (i == 0) {
            let_pass(SLUICE_MS(50));
            census = census_take();
        } else {
            census_check(&census);
        }
    }
    star_pass(&star, 1);
    star_close(&star);
    work_close(&work);
}

TEST(child_ends_at_once)
{
    fork_often(end_at_once, true);
}

TEST(child_becomes_another_program)
{
    fork_often(become_another, true);
}

TEST(child_lives_on)
{
    fork_often(live_on, false);
}

/* Forks a process that has all descriptors open as well, and ends soon after the test. */
static pid_t fork_holder(void)
{
    pid_t pid = fork();
    require(pid >= 0, "%s", strerror(errno));
    if (pid == 0) {
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
        let_pass(SLUICE_S(6));
        _exit(EXIT_SUCCESS);
    }
    return pid;
}

/* Makes a device give up soon on data that a peer does not acknowledge. */
static const struct sluice_channel_attr impatient = {.size = sizeof(impatient), .ack_timeout = 16};

/* Rank 0 has a child and ends the connection; rank 1 must notice that as if there were no child. */
static void close_with_child(struct rank *rank)
{
    struct mesh mesh;
    mesh_open(&mesh, rank, &impatient);
    if (rank->index == 0) {
        pid_t pid = fork_holder();
        mesh_pass(&mesh, rank, 0, 1);
        rank_barrier(rank);
        mesh_close(&mesh);
        rank_barrier(rank);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return;
    }
    struct sluice_request requests[2] = {request_of(SLUICE_OP_RECEIVE, 0, NULL),
                                         request_of(SLUICE_OP_SEND, 0, NULL)};
    struct tally tally;
    mesh_pass(&mesh, rank, 0, 1);
    for (uint32_t i = 0; i < 2; i++) {
        requests[i].user_data = i;
    }
    tally_open(&tally, 0, 2);
    require_result(sluice_multichannel_post(mesh.all, requests, 2, DEADLINE, NULL), 2);
    rank_barrier(rank);
    int64_t start = fair_now();
    tally_close_multichannel(&tally, mesh.all);
    require(fair_now() - start < NOTICE || !device_is_soft(), "noticed after %lld ms",
            (long long)(fair_now() - start) / 1000000);
    check_lost(&mesh, 0);
    rank_barrier(rank);
    mesh_close(&mesh);
}

TEST(parent_closes_while_its_child_lives, .group = "processes")
{
    group_run(2, close_with_child, NULL, 30);
}

/*
 * Rank 0 is killed while its child lives, which has closed what it had open: on soft that is
 * noticed as if there were no child. A device may keep the connection for the child: then the
 * deadline decides, and again each request ends once.
 */
static void die_with_child(struct rank *rank)
{
    struct mesh mesh;
    mesh_open(&mesh, rank, &impatient);
    if (rank->index == 0) {
        fork_holder();
        mesh_pass(&mesh, rank, 0, 1);
        rank_await_death(rank);
    }
    struct sluice_request requests[2] = {request_of(SLUICE_OP_RECEIVE, 0, NULL),
                                         request_of(SLUICE_OP_SEND, 0, NULL)};
    struct tally tally;
    if (rank->index == 1) {
        mesh_pass(&mesh, rank, 0, 1);
        for (uint32_t i = 0; i < 2; i++) {
            requests[i].user_data = i;
        }
        tally_open(&tally, 0, 2);
        rank_kill(rank, 0);
        int64_t start = fair_now();
        int64_t deadline = device_is_soft() ? DEADLINE : SLUICE_MS(700);
        require_result(sluice_multichannel_post(mesh.all, requests, 2, deadline, NULL), 2);
        tally_close_multichannel(&tally, mesh.all);
        require(fair_now() - start < NOTICE || !device_is_soft(), "noticed after %lld ms",
                (long long)(fair_now() - start) / 1000000);
        struct sluice_error error = peer_error(mesh.all, 0);
        require(error.error_class == SLUICE_CLASS_PEER_LOST ||
                    (error.error_class == SLUICE_CLASS_TIMEOUT && !device_is_soft()),
                "%s", error.text);
        mesh_pass(&mesh, rank, 1, 2);
    } else {
        mesh_pass(&mesh, rank, 1, 2);
    }
    rank_barrier(rank);
    mesh_close(&mesh);
}

TEST(parent_dies_while_its_child_lives, .group = "processes")
{
    group_run(3, die_with_child, NULL, 30);
}

int main(void)
{
    static const struct tests cases[] = {
        {"self", WIRE_SELF, 40},
        {"tcp", WIRE_TCP, 40},
        {"processes", WIRE_SHM, 40},
    };
    /* The peers of the pretend device are within the process. */
    return run_groups("fault_fork", cases, COUNT(cases) - device_is_pretend());
}
