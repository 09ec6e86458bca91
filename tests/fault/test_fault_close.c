/* SPDX-License-Identifier: MIT */
/*
 * Both sides end a connection at once, with requests of all kinds in flight: both ends return soon,
 * each request completes once, no buffer is touched afterwards, nothing is left behind, and other
 * peers are unaffected.
 */
#include <pthread.h>
#include <stdlib.h>

#include "../support/fault.h"

#define EACH 4
#define KINDS 4
#define REQUESTS (EACH * KINDS)
#define BYTES ((size_t)1 << 17)

/* One side of a connection between two threads. */
struct side {
    pthread_t thread;
    pthread_barrier_t *together;
    struct sluice_channel **channel;
    struct memory own;
    struct sluice_sge sges[REQUESTS];
    struct sluice_request requests[REQUESTS];
    struct tally tally;
    int64_t took;
};

/* The call that each side makes at the same time. */
typedef void end_side(struct side *side);

/* Posts requests of all kinds, more of each than the other side will take. */
static void post_all(struct side *side, const struct memory *theirs, uint32_t first)
{
    static const uint32_t kinds[KINDS] = {SLUICE_OP_SEND, SLUICE_OP_RECEIVE, SLUICE_OP_WRITE,
                                          SLUICE_OP_READ};
    for (uint32_t i = 0; i < REQUESTS; i++) {
        side->sges[i] = memory_sge(&side->own, i * BYTES, BYTES);
        side->requests[i] = request_of(kinds[i % KINDS], 0, &side->sges[i]);
        side->requests[i].user_data = first + i;
        if (kinds[i % KINDS] >= SLUICE_OP_WRITE) {
            side->requests[i].remote = memory_remote(theirs, 0, BYTES);
        }
    }
    tally_open(&side->tally, first, REQUESTS);
    require_result(sluice_channel_post(*side->channel, side->requests, REQUESTS, DEADLINE, NULL),
                   REQUESTS);
}

static void close_side(struct side *side)
{
    sluice_channel_close(*side->channel);
    *side->channel = NULL;
}

static void shut_side(struct side *side)
{
    int result = sluice_channel_shutdown(*side->channel, SLUICE_MS(1));
    require(result == 0 || result == -ETIMEDOUT, "%d: %s", result, sluice_last_error());
    tally_close_channel(&side->tally, *side->channel);
    close_side(side);
}

static void reset_side(struct side *side)
{
    struct sluice_endpoint endpoint;
    struct sluice_prepared_channel *prepared = made(sluice_channel_reset(*side->channel));
    *side->channel = NULL;
    require_ok(sluice_prepared_channel_endpoint(prepared, &endpoint));
    sluice_prepared_channel_free(prepared);
}

struct task {
    struct side *side;
    end_side *end;
};

static void *end_together(void *argument)
{
    struct task *task = argument;
    pthread_barrier_wait(task->side->together);
    int64_t start = fair_now();
    task->end(task->side);
    task->side->took = fair_now() - start;
    /* After the end, its buffers are free for reuse. */
    memset(task->side->own.bytes + REQUESTS * BYTES / 2, 0x77, REQUESTS * BYTES / 2);
    return NULL;
}

static void end_both(struct star *star, uint32_t peer, end_side *end)
{
    pthread_barrier_t together;
    struct pair pair = {.sides = star->sides};
    struct side sides[2];
    memset(sides, 0, sizeof(sides));
    pair_connect(&pair, NULL);
    pthread_barrier_init(&together, NULL, 2);
    for (int i = 0; i < 2; i++) {
        sides[i].channel = &pair.channels[i];
        sides[i].together = &together;
        memory_open(&sides[i].own, pair.sides.pds[i], REQUESTS * BYTES);
    }
    for (int i = 0; i < 2; i++) {
        post_all(&sides[i], &sides[!i].own, 100 * (uint32_t)(i + 1));
    }
    struct task tasks[2] = {{&sides[0], end}, {&sides[1], end}};
    for (int i = 0; i < 2; i++) {
        pthread_create(&sides[i].thread, NULL, end_together, &tasks[i]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(sides[i].thread, NULL);
        require(sides[i].took < SLUICE_MS(1500) || SANITIZED || !device_is_soft(), "%lld ms",
                (long long)sides[i].took / 1000000);
    }
    star_works(star, peer);
    for (int i = 0; i < 2; i++) {
        value_check(sides[i].own.bytes + REQUESTS * BYTES / 2, REQUESTS * BYTES / 2, 0x77);
        memory_close(&sides[i].own);
    }
    pthread_barrier_destroy(&together);
}

/* Ends connections again and again, beside one of the same contexts that works on. */
static void end_often(end_side *end)
{
    struct census census = {0};
    struct star star;
    star_open(&star, 2, NULL);
    for (int i = 0; i < (short_run() ? 4 : 12); i++) {
        end_both(&star, (uint32_t)i % 2, end);
        if (i == 1) {
            let_pass(SLUICE_MS(100));
            census = census_take();
        }
    }
    census_check(&census);
    star_pass(&star, 0);
    star_close(&star);
}

TEST(both_sides_close_at_once)
{
    end_often(close_side);
}

TEST(both_sides_shut_down_at_once)
{
    end_often(shut_side);
}

TEST(both_sides_reset_at_once)
{
    end_often(reset_side);
}

/* All at once, with work on its way. */
static void close_while_busy(struct rank *rank)
{
    struct mesh mesh;
    struct memory memory;
    struct sluice_remote_mr remotes[GROUP_MAX];
    size_t length = (size_t)4 << 20;
    mesh_open(&mesh, rank, NULL);
    /* The memory stays in this process: it is checked after its region has ended. */
    memory_open_at(&memory, mesh.pd, length, ACCESS_ALL, 8);
    mesh_share(rank, &memory, remotes);
    struct sluice_sge sge = memory_sge(&memory, 0, length);
    for (uint32_t i = 0; i < rank->size; i++) {
        struct sluice_request requests[3] = {request_of(SLUICE_OP_READ, i, &sge),
                                             request_of(SLUICE_OP_SEND, i, &sge),
                                             request_of(SLUICE_OP_RECEIVE, i, &sge)};
        requests[0].remote = remotes[i];
        int result = sluice_multichannel_post(mesh.all, requests, 3, DEADLINE, NULL);
        require(result > 0 || result == -ENOTCONN, "%d: %s", result, sluice_last_error());
    }
    int64_t start = fair_now();
    sluice_multichannel_close(mesh.all);
    /* The time of an emulated device depends on other processes. */
    require(fair_now() - start < SLUICE_MS(1500) || !device_is_soft(), "%lld ms",
            (long long)(fair_now() - start) / 1000000);
    require_ok(sluice_mr_deregister(memory.mr));
    memset(memory.bytes, 0x77, length);
    rank_barrier(rank);
    value_check(memory.bytes, length, 0x77);
    memory_check_guards(&memory);
    free(memory.whole);
    sluice_pd_free(mesh.pd);
    sluice_context_close(mesh.context);
}

TEST(all_close_at_once_while_busy, .group = "processes")
{
    group_run(3, close_while_busy, NULL, 25);
}

/*
 * A side refuses a request, and closes as soon as it has: the requester still gets the refusal, and
 * before it the answers to its earlier requests.
 */
enum asking { A_WRITE, A_READ, AN_ATOMIC, BEHIND_WRITES, BEHIND_READS, AGAINST_A_SEND, ASKINGS };

static const uint32_t wrong_kinds[ASKINGS] = {SLUICE_OP_WRITE, SLUICE_OP_READ, SLUICE_OP_FETCH_ADD,
                                              SLUICE_OP_WRITE, SLUICE_OP_READ, SLUICE_OP_WRITE};

struct refuser {
    pthread_t thread;
    struct pair *pair;
    struct sluice_handle parked;
    bool all; /* closes its context, too */
    struct memory memory;
};

static void *refuse_and_close(void *argument)
{
    struct refuser *refuser = argument;
    struct pair *pair = refuser->pair;
    struct sluice_completion completion;
    require_ok(sluice_channel_wait(pair->channels[0], &refuser->parked, DEADLINE, &completion));
    sluice_channel_close(pair->channels[0]);
    pair->channels[0] = NULL;
    memory_close(&refuser->memory);
    if (refuser->all) {
        sides_close(&(struct sides){{pair->sides.contexts[0], NULL}, {pair->sides.pds[0], NULL}});
        pair->sides.pds[0] = NULL;
        pair->sides.contexts[0] = NULL;
    }
    return NULL;
}

/* Makes some good requests, and a refused one behind them. */
static void ask_for_what_is_refused(struct pair *pair, const struct sluice_remote_mr *remote,
                                    const struct memory *memory, enum asking asking)
{
    struct sluice_handle handles[EACH];
    struct sluice_sge sges[EACH], word = memory_sge(memory, 0, 8);
    uint32_t good = asking == BEHIND_WRITES || asking == BEHIND_READS ? EACH : 0;
    for (uint32_t i = 0; i < good; i++) {
        sges[i] = memory_sge(memory, i * BYTES, BYTES);
        struct sluice_request request = request_of(wrong_kinds[asking], 0, &sges[i]);
        request.remote = *remote;
        handles[i] = post(pair->channels[1], &request);
    }
    struct sluice_request wrong = request_of(wrong_kinds[asking], 0, &word);
    wrong.remote = *remote;
    wrong.remote.rkey ^= 0x5a5a;
    struct sluice_handle handle = post(pair->channels[1], &wrong);
    for (uint32_t i = 0; i < good; i++) {
        await(pair->channels[1], handles[i], SLUICE_CLASS_NONE);
    }
    await(pair->channels[1], handle, SLUICE_CLASS_ACCESS);
}

/* The refusing side sends a large message, which need not arrive. */
static void begin_a_send(struct pair *pair, const struct refuser *refuser,
                         const struct memory *memory)
{
    struct sluice_sge sges[2] = {memory_sge(&refuser->memory, 0, BYTES),
                                 memory_sge(memory, 0, BYTES)};
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, &sges[0]);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &sges[1]);
    post(pair->channels[1], &receive);
    post(pair->channels[0], &send);
}

static void refuse_once(enum asking asking, bool all)
{
    struct pair pair;
    struct refuser refuser = {.pair = &pair, .all = all};
    struct memory memory;
    pair_open(&pair, NULL);
    memory_open(&refuser.memory, pair.sides.pds[0], BYTES);
    memory_open(&memory, pair.sides.pds[1], EACH * BYTES);
    struct sluice_remote_mr remote = memory_remote(&refuser.memory, 0, BYTES);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    refuser.parked = post(pair.channels[0], &receive);
    if (asking == AGAINST_A_SEND) {
        begin_a_send(&pair, &refuser, &memory);
    }
    require(pthread_create(&refuser.thread, NULL, refuse_and_close, &refuser) == 0, "no thread");
    ask_for_what_is_refused(&pair, &remote, &memory, asking);
    require(pthread_join(refuser.thread, NULL) == 0, "no end");
    sluice_channel_close(pair.channels[1]);
    pair.channels[1] = NULL;
    memory_close(&memory);
    pair_close(&pair);
}

TEST(refusal_comes_before_the_end, .times = 2 * ASKINGS)
{
    int rounds = short_run() ? 5 : 30;
    for (int round = 0; round < rounds; round++) {
        refuse_once((enum asking)(_i / 2), _i % 2 == 1 && current_wire() != WIRE_SELF);
    }
}

int main(void)
{
    static const struct tests cases[] = {
        {"self", WIRE_SELF, 40},
        {"tcp", WIRE_TCP, 40},
        {"shm", WIRE_SHM, 40},
        {"processes", WIRE_SHM, 40},
    };
    /* The peers of the pretend device are within the process. */
    return run_groups("fault_close", cases, COUNT(cases) - device_is_pretend());
}
