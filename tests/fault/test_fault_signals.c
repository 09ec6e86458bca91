/* SPDX-License-Identifier: MIT */
/*
 * A SIGALRM every millisecond without SA_RESTART: each call does the same as without signals, none
 * returns -EINTR, no wait ends early, nothing is done twice, and nothing is left behind.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "../support/fault.h"

#define PEERS 3
#define BYTES ((size_t)5000)
/* Alarms that come during a call, or during several of its kind. */
#define ALARMS 5

/* The tested calls are the hub's; its peers do their part late, so that calls sleep. */
struct work {
    struct star star;
    struct memory near, far, word;
    struct sluice_sge near_sge, far_sge, result;
    struct sluice_request sends[PEERS], receives[PEERS], writes[PEERS], reads[PEERS];
    struct sluice_peer_remote_mr remotes[PEERS];
    struct sluice_remote_mr remote, word_remote;
    bool atomics;
    pthread_t late;
    uint32_t late_opcode, late_peers;
};

static const uint32_t all_peers[PEERS] = {0, 1, 2};

static void work_open(struct work *work)
{
    memset(work, 0, sizeof(*work));
    star_open(&work->star, PEERS, NULL);
    memory_open(&work->near, work->star.sides.pds[0], BYTES);
    memory_open(&work->far, work->star.sides.pds[1], BYTES);
    work->near_sge = memory_sge(&work->near, 0, BYTES);
    work->far_sge = memory_sge(&work->far, 0, BYTES);
    work->remote = memory_remote(&work->far, 0, BYTES);
    work->atomics = context_info(work->star.sides.contexts[1]).atomics != SLUICE_ATOMICS_NONE;
    if (work->atomics) {
        memory_open_at(&work->word, work->star.sides.pds[1], 8,
                       ACCESS_ALL | SLUICE_ACCESS_REMOTE_ATOMIC, 0);
        work->word_remote = memory_remote(&work->word, 0, 8);
        work->result = memory_sge(&work->near, 0, 8);
    }
    for (uint32_t i = 0; i < PEERS; i++) {
        work->sends[i] = request_of(SLUICE_OP_SEND, i, &work->near_sge);
        work->receives[i] = request_of(SLUICE_OP_RECEIVE, i, &work->near_sge);
        work->writes[i] = request_of(SLUICE_OP_WRITE, i, &work->near_sge);
        work->reads[i] = request_of(SLUICE_OP_READ, i, &work->near_sge);
        work->writes[i].remote = work->reads[i].remote = work->remote;
        work->remotes[i] = (struct sluice_peer_remote_mr){.peer = i, .remote = work->remote};
    }
}

static void work_close(struct work *work)
{
    if (work->atomics) {
        memory_close(&work->word);
    }
    memory_close(&work->near);
    memory_close(&work->far);
    star_close(&work->star);
}

static void *come_late(void *argument)
{
    struct work *work = argument;
    struct sluice_request request = request_of(work->late_opcode, 0, &work->far_sge);
    let_pass(SLUICE_MS(4));
    for (uint32_t i = 0; i < work->late_peers; i++) {
        await(work->star.spokes[i], post(work->star.spokes[i], &request), SLUICE_CLASS_NONE);
    }
    return NULL;
}

/* Starts a thread in which this many peers each do this; the thread blocks SIGALRM. */
static void begin_late(struct work *work, uint32_t opcode, uint32_t peers)
{
    sigset_t alarm, old;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    work->late_opcode = opcode;
    work->late_peers = peers;
    pthread_sigmask(SIG_BLOCK, &alarm, &old);
    require(pthread_create(&work->late, NULL, come_late, work) == 0, "%u", peers);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void end_late(struct work *work)
{
    pthread_join(work->late, NULL);
}

/* One kind of call each. */

static void call_two_sided(struct work *work)
{
    struct sluice_multichannel *hub = work->star.hub;
    begin_late(work, SLUICE_OP_RECEIVE, 1);
    require_ok(sluice_multichannel_send(hub, 0, &work->near_sge, 1, DEADLINE));
    end_late(work);
    begin_late(work, SLUICE_OP_RECEIVE, 1);
    require_ok(sluice_multichannel_send_immediate(hub, 0, &work->near_sge, 1, 5, DEADLINE));
    end_late(work);
    begin_late(work, SLUICE_OP_SEND, 1);
    require_ok(sluice_multichannel_receive(hub, 0, &work->near_sge, 1, DEADLINE, NULL));
    end_late(work);
}

static void call_one_sided(struct work *work)
{
    struct sluice_multichannel *hub = work->star.hub;
    pattern_fill(work->near.bytes, BYTES, 9);
    require_ok(sluice_multichannel_write(hub, 0, &work->near_sge, 1, &work->remote, DEADLINE));
    memset(work->near.bytes, 0, BYTES);
    require_ok(sluice_multichannel_read(hub, 0, &work->near_sge, 1, &work->remote, DEADLINE));
    pattern_check(work->near.bytes, BYTES, 9);
    begin_late(work, SLUICE_OP_RECEIVE, 1);
    require_ok(sluice_multichannel_write_immediate(hub, 0, &work->near_sge, 1, &work->remote, 5,
                                                   DEADLINE));
    end_late(work);
}

static void call_atomics(struct work *work)
{
    struct sluice_multichannel *hub = work->star.hub;
    uint64_t old, before, after;
    if (!work->atomics) {
        return;
    }
    /* Each addition is done once, however often it was interrupted. */
    memcpy(&before, work->word.bytes, 8);
    for (uint64_t i = 0; i < 20; i++) {
        require_ok(
            sluice_multichannel_fetch_add(hub, 0, &work->result, &work->word_remote, 1, DEADLINE));
        memcpy(&old, work->near.bytes, 8);
        require(old == before + i, "%llu", (unsigned long long)old);
    }
    require_ok(sluice_multichannel_compare_swap(hub, 0, &work->result, &work->word_remote,
                                                before + 20, before + 21, DEADLINE));
    require_result(sluice_multichannel_peer_state(hub, 0), SLUICE_STATE_READY);
    memcpy(&after, work->word.bytes, 8);
    require(after == before + 21, "%llu", (unsigned long long)after);
}

static void call_lists(struct work *work)
{
    struct sluice_multichannel *hub = work->star.hub;
    begin_late(work, SLUICE_OP_RECEIVE, PEERS);
    require_ok(sluice_multichannel_scatter_send(hub, work->sends, PEERS, DEADLINE, NULL));
    end_late(work);
    begin_late(work, SLUICE_OP_SEND, PEERS);
    require_ok(sluice_multichannel_gather_receive(hub, work->receives, PEERS, DEADLINE, NULL));
    end_late(work);
    begin_late(work, SLUICE_OP_RECEIVE, PEERS);
    require_ok(
        sluice_multichannel_multicast_send(hub, &work->sends[0], all_peers, PEERS, DEADLINE, NULL));
    end_late(work);
    require_ok(sluice_multichannel_scatter_write(hub, work->writes, PEERS, DEADLINE, NULL));
    require_ok(sluice_multichannel_gather_read(hub, work->reads, PEERS, DEADLINE, NULL));
    require_ok(sluice_multichannel_multicast_write(hub, &work->writes[0], work->remotes, PEERS,
                                                   DEADLINE, NULL));
    begin_late(work, SLUICE_OP_SEND, PEERS);
    require_ok(
        sluice_multichannel_scatter_gather(hub, NULL, 0, work->receives, PEERS, DEADLINE, NULL));
    end_late(work);
    begin_late(work, SLUICE_OP_RECEIVE, PEERS);
    require_ok(sluice_multichannel_submit(hub, work->sends, PEERS, DEADLINE, NULL));
    end_late(work);
}

static void call_posted(struct work *work)
{
    struct sluice_multichannel *hub = work->star.hub;
    struct sluice_completion completion;
    struct sluice_handle handles[PEERS];
    struct tally tally;
    tally_open(&tally, 7000, PEERS);
    begin_late(work, SLUICE_OP_RECEIVE, PEERS);
    require_result(sluice_multichannel_post(hub, work->sends, PEERS, DEADLINE, handles), PEERS);
    require_ok(sluice_multichannel_wait(hub, &handles[2], DEADLINE, &completion));
    tally_count(&tally, &completion);
    for (int i = 0; i < 2; i++) {
        require_ok(sluice_multichannel_next(hub, DEADLINE, &completion));
        tally_count(&tally, &completion);
    }
    require_result(sluice_multichannel_next(hub, DEADLINE, &completion), -ENOENT);
    end_late(work);
    begin_late(work, SLUICE_OP_SEND, PEERS);
    require_result(
        sluice_multichannel_post_gather_receive(hub, work->receives, PEERS, DEADLINE, handles),
        PEERS);
    require_ok(sluice_multichannel_detach(hub, &handles[1]));
    require_ok(sluice_multichannel_flush(hub, DEADLINE));
    end_late(work);
    tally_open(&tally, 7000, PEERS);
    tally.ends[1] = 1;
    tally.done = 1;
    tally_close_multichannel(&tally, hub);
}

static void call_scope(struct work *work)
{
    struct sluice_scope_report report = {.size = sizeof(report)};
    struct sluice_completion completion;
    struct sluice_handle handle;
    struct sluice_scope *scope = made(sluice_multichannel_scope_begin(work->star.hub, DEADLINE));
    begin_late(work, SLUICE_OP_RECEIVE, PEERS);
    require_result(sluice_scope_post(scope, work->sends, 1, &handle), 1);
    require_result(sluice_scope_post(scope, &work->sends[1], PEERS - 1, NULL), PEERS - 1);
    require_ok(sluice_scope_wait(scope, &handle, DEADLINE, &completion));
    require_ok(sluice_scope_end(scope, &report));
    require(report.posted == PEERS && report.unseen == PEERS - 1 && report.failed == 0,
            "%u posted, %u unseen, %u failed", report.posted, report.unseen, report.failed);
    end_late(work);
}

/* No wait is shorter because of signals, and none ends without a wake. */
static void call_waits(struct work *work)
{
    struct sluice_multichannel *hub = work->star.hub;
    struct sluice_completion completion;
    struct sluice_handle handle;
    int64_t start = clock_now();
    require_result(sluice_multichannel_post(hub, work->receives, 1, DEADLINE, &handle), 1);
    require_result(sluice_multichannel_wait(hub, &handle, SLUICE_MS(10), &completion), -ETIMEDOUT);
    require_result(sluice_multichannel_next(hub, SLUICE_MS(10), &completion), -ETIMEDOUT);
    require_result(sluice_multichannel_flush(hub, SLUICE_MS(10)), -ETIMEDOUT);
    require(clock_now() - start >= SLUICE_MS(30), "%lld ns", (long long)(clock_now() - start));
    begin_late(work, SLUICE_OP_SEND, 1);
    require_ok(sluice_multichannel_wait(hub, &handle, DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
    end_late(work);
    require_ok(sluice_multichannel_wait_connected(hub, DEADLINE));
    require_ok(sluice_multichannel_peer_wait_connected(hub, 1, DEADLINE));
}

/* A deadline holds at its time, and not before; then the peer is reset. */
static void call_deadlines(struct work *work)
{
    struct sluice_multichannel *hub = work->star.hub;
    struct sluice_completion completion;
    struct sluice_handle handle;
    int64_t start = clock_now();
    require_result(
        sluice_multichannel_receive(hub, 2, &work->near_sge, 1, SLUICE_MS(10), &completion),
        -ETIMEDOUT);
    require(clock_now() - start >= SLUICE_MS(10), "%lld ns", (long long)(clock_now() - start));
    star_reset(&work->star, 2);
    require_result(sluice_multichannel_post(hub, &work->receives[2], 1, DEADLINE, &handle), 1);
    require_ok(sluice_multichannel_cancel(hub, &handle, &completion));
    require_class(&completion, SLUICE_CLASS_CANCELLED);
    star_reset(&work->star, 2);
    require_ok(sluice_multichannel_peer_wait_connected(hub, 2, DEADLINE));
}

/* Makes and closes all objects. */
static void call_constructors(struct work *work)
{
    struct pair pair;
    struct memory memory;
    (void)work;
    struct sluice_device_list *list = made(sluice_device_list_get());
    sluice_device_list_free(list);
    pair_open(&pair, NULL);
    memory_open(&memory, pair.sides.pds[0], BYTES);
    require_ok(sluice_channel_wait_connected(pair.channels[0], DEADLINE));
    pair_works(&pair);
    pair_reset(&pair);
    pair_works(&pair);
    require_ok(sluice_channel_shutdown(pair.channels[0], DEADLINE));
    memory_close(&memory);
    pair_close(&pair);
}

static const struct {
    const char *name;
    void (*call)(struct work *work);
} kinds[] = {
    {"two-sided calls", call_two_sided},
    {"one-sided calls", call_one_sided},
    {"atomics", call_atomics},
    {"lists", call_lists},
    {"posted work", call_posted},
    {"a scope", call_scope},
    {"waits", call_waits},
    {"deadlines", call_deadlines},
    {"constructors", call_constructors},
};

TEST(every_kind_of_call_in_a_storm)
{
    struct census census = {0};
    struct storm storm;
    struct work work;
    storm_begin(&storm);
    work_open(&work);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT(kinds); i++) {
            unsigned before = storm_alarms();
            int64_t end = clock_now() + DEADLINE;
            do {
                kinds[i].call(&work);
                require(clock_now() < end, "%u alarms in %s", storm_alarms() - before,
                        kinds[i].name);
            } while (storm_alarms() - before < ALARMS);
        }
        if (round == 0) {
            let_pass(SLUICE_MS(50));
            census = census_take();
        } else {
            census_check(&census);
        }
    }
    for (uint32_t i = 0; i < PEERS; i++) {
        star_pass(&work.star, i);
    }
    work_close(&work);
    storm_end(&storm);
}

static void work_in_a_storm(struct rank *rank)
{
    struct mesh mesh;
    struct memory memory;
    struct storm storm;
    size_t length = short_run() ? 10000 : 1 << 20;
    storm_begin(&storm);
    mesh_open(&mesh, rank, NULL);
    memory_open(&memory, mesh.pd, 2 * length * rank->size);
    for (uint32_t round = 0; round < 30; round++) {
        struct sluice_sge sges[2 * GROUP_MAX];
        struct sluice_request requests[2 * GROUP_MAX];
        for (uint32_t i = 0; i < rank->size; i++) {
            sges[i] = memory_sge(&memory, i * length, length);
            sges[rank->size + i] = memory_sge(&memory, (rank->size + i) * length, length);
            requests[i] = request_of(SLUICE_OP_SEND, i, &sges[i]);
            requests[rank->size + i] = request_of(SLUICE_OP_RECEIVE, i, &sges[rank->size + i]);
            pattern_fill(memory.bytes + i * length, length, pattern_key(rank->index, i, round));
        }
        require_ok(sluice_multichannel_submit(mesh.all, requests, 2 * rank->size, DEADLINE, NULL));
        for (uint32_t i = 0; i < rank->size; i++) {
            pattern_check(memory.bytes + (rank->size + i) * length, length,
                          pattern_key(i, rank->index, round));
        }
    }
    /* A sleeping wait is not shorter because of signals. */
    struct sluice_completion completion;
    struct sluice_handle handle;
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    require_result(sluice_multichannel_post(mesh.all, &receive, 1, DEADLINE, &handle), 1);
    int64_t start = clock_now();
    require_result(sluice_multichannel_wait(mesh.all, &handle, SLUICE_MS(100), &completion),
                   -ETIMEDOUT);
    require(clock_now() - start >= SLUICE_MS(100), "%lld ns", (long long)(clock_now() - start));
    require(storm_alarms() >= 20, "%u alarms", storm_alarms());
    rank_barrier(rank);
    memory_close(&memory);
    mesh_close(&mesh);
    storm_end(&storm);
}

TEST(processes_exchange_in_a_storm, .group = "processes")
{
    group_run(3, work_in_a_storm, NULL, 40);
}

int main(void)
{
    static const struct tests cases[] = {
        {"self", WIRE_SELF, 60},
        {"tcp", WIRE_TCP, 60},
        {"processes", WIRE_SHM, 60},
    };
    /* The peers of the pretend device are within the process. */
    return run_groups("fault_signals", cases, COUNT(cases) - device_is_pretend());
}
