/* SPDX-License-Identifier: MIT */
/*
 * Two ranks on two hosts exchange blocks in lock step: every block is right, every step ends, and a
 * step takes little longer than one whose receive was posted ahead, however late the network is.
 * tests/softroce/check-hosts.sh runs it on both hosts.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../support/pair.h"
#include "../support/process.h"

#define BLOCK ((size_t)1000) /* one packet */
#define ROUNDS 4
#define STEPS 8 /* of a round, each way */
#define TIMES (ROUNDS * STEPS)

/* How much later than the other a rank begins its step, in turns, where one is to be late. */
#define LATE SLUICE_MS(30)

/*
 * The limit is for medians, which leave out the few steps that wait for a lost packet. A step is
 * one way for the block, and one back for its acknowledgement. In lock step there may be one more
 * way for the hint of a receive, or a block that came before its receive is retransmitted after a
 * pause. A step ahead need not wait at all if the other rank has had its turn, so busy machines
 * measured up to 5.2.
 */
#define WORST_RATIO 10

/* One rank; each block has a place of its own in the memory. */
struct exchange {
    struct sluice_node *node;
    struct sluice_multichannel *all;
    uint32_t rank, peer;
    struct memory memory;
    struct sluice_request send, receives[2];
    uint32_t step; /* that comes next */
    int64_t times[4][TIMES];
    uint32_t counts[4];
};

enum way { IN_LOCK_STEP, AHEAD, LATE_IN_LOCK_STEP, LATE_AHEAD };
static const char *const names[] = {"in lock step", "ahead", "in lock step of the late rank",
                                    "ahead of the late rank"};

static void exchange_open(struct exchange *exchange, struct sluice_pd *pd)
{
    memset(exchange, 0, sizeof(*exchange));
    exchange->node = made(sluice_node_open(pd, NULL, NULL, DEADLINE));
    exchange->all = sluice_node_multichannel(exchange->node);
    exchange->rank = sluice_node_rank(exchange->node);
    exchange->peer = 1 - exchange->rank;
    memory_open(&exchange->memory, pd, 3 * BLOCK);
    for (size_t i = 0; i < 3; i++) {
        struct sluice_request request = {.peer = exchange->peer, .sge_count = 1};
        request.sge = memory_sge(&exchange->memory, i * BLOCK, BLOCK);
        *(i == 2 ? &exchange->send : &exchange->receives[i]) = request;
    }
}

static void exchange_close(struct exchange *exchange)
{
    require_ok(sluice_node_shutdown(exchange->node, DEADLINE));
    memory_close(&exchange->memory);
    sluice_node_close(exchange->node);
}

static void meet(const struct exchange *exchange)
{
    int result = sluice_node_barrier(exchange->node, NULL, 0, SLUICE_BARRIER_DEFAULT, DEADLINE);
    require(result == 0, "%s", sluice_last_error());
}

static void fill_block(const struct exchange *exchange)
{
    pattern_fill(exchange->memory.bytes + 2 * BLOCK, BLOCK,
                 pattern_key(exchange->rank, exchange->step, 0));
}

/* Requires that the block of this step came from the peer; it differs from those of later steps. */
static void check_block(const struct exchange *exchange, size_t half)
{
    uint8_t *block = exchange->memory.bytes + half * BLOCK;

    pattern_check(block, BLOCK, pattern_key(exchange->peer, exchange->step, 0));
    memset(block, 0, BLOCK);
}

static void step_in_lock(struct exchange *exchange)
{
    int result = sluice_multichannel_scatter_gather(exchange->all, &exchange->send, 1,
                                                    &exchange->receives[0], 1, DEADLINE, NULL);
    require(result == 0, "step %u: %s", exchange->step, sluice_last_error());
    check_block(exchange, 0);
}

static void post_receive(struct exchange *exchange, uint32_t step, struct sluice_handle *handles)
{
    require_result(sluice_multichannel_post_gather_receive(exchange->all,
                                                           &exchange->receives[step % 2], 1,
                                                           SLUICE_FOREVER, &handles[step % 2]),
                   1);
}

static void step_ahead(struct exchange *exchange, uint32_t last, struct sluice_handle *handles)
{
    struct sluice_completion done;
    uint32_t step = exchange->step;

    if (step < last) {
        post_receive(exchange, step + 1, handles);
    }
    int result =
        sluice_multichannel_scatter_send(exchange->all, &exchange->send, 1, DEADLINE, NULL);
    require(result == 0, "step %u, ahead: %s", step, sluice_last_error());
    require_ok(sluice_multichannel_wait(exchange->all, &handles[step % 2], DEADLINE, &done));
    require_class(&done, SLUICE_CLASS_NONE);
    check_block(exchange, step % 2);
}

static void do_step(struct exchange *exchange, enum way way, uint32_t last,
                    struct sluice_handle *handles)
{
    bool one_is_late = way == LATE_IN_LOCK_STEP || way == LATE_AHEAD;
    bool late = one_is_late && exchange->step % 2 == exchange->rank;

    fill_block(exchange);
    if (late) {
        let_pass(LATE);
    }
    int64_t begin = clock_now();
    if (way == AHEAD || way == LATE_AHEAD) {
        step_ahead(exchange, last, handles);
    } else {
        step_in_lock(exchange);
    }
    if (late || !one_is_late) {
        exchange->times[way][exchange->counts[way]++] = clock_now() - begin;
    }
    exchange->step++;
}

/*
 * Runs one way of exchanging; both sides begin at the same time, with receives for this way only.
 */
static void do_round(struct exchange *exchange, enum way way)
{
    const uint32_t last = exchange->step + STEPS - 1;
    struct sluice_handle handles[2];

    if (way == AHEAD || way == LATE_AHEAD) {
        post_receive(exchange, exchange->step, handles);
    }
    meet(exchange);
    while (exchange->step <= last) {
        do_step(exchange, way, last, handles);
    }
    meet(exchange);
}

static int compare_times(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Returns the median in microseconds, and prints it. */
static int64_t median_of(struct exchange *exchange, enum way way)
{
    int64_t *times = exchange->times[way], sum = 0;
    uint32_t count = exchange->counts[way];

    qsort(times, count, sizeof(*times), compare_times);
    for (uint32_t i = 0; i < count; i++) {
        sum += times[i];
    }
    printf("# %u steps %s: median %lld us, mean %lld us, longest %lld us\n", count, names[way],
           (long long)times[count / 2] / 1000, (long long)sum / count / 1000,
           (long long)times[count - 1] / 1000);
    return times[count / 2] / 1000;
}

static void compare_ways(struct exchange *exchange, enum way lock_step, enum way ahead)
{
    int64_t least = median_of(exchange, ahead);
    int64_t took = median_of(exchange, lock_step);
    require(took <= WORST_RATIO * least, "a step %s takes %lld us, and %lld us %s",
            names[lock_step], (long long)took, (long long)least, names[ahead]);
}

TEST(lock_step_keeps_pace)
{
    static struct exchange exchange;
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = made(sluice_pd_alloc(context));

    exchange_open(&exchange, pd);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (enum way way = IN_LOCK_STEP; way <= LATE_AHEAD; way++) {
            do_round(&exchange, way);
        }
    }
    exchange_close(&exchange);
    sluice_pd_free(pd);
    sluice_context_close(context);

    compare_ways(&exchange, IN_LOCK_STEP, AHEAD);
    compare_ways(&exchange, LATE_IN_LOCK_STEP, LATE_AHEAD);
}

int main(void)
{
    const struct tests cases[] = {{"tcp", WIRE_TCP, 120}};
    const char *ranks = getenv("SLUICE_RANKS");

    if (!ranks || strcmp(ranks, "2") != 0) {
        printf("1..0 # SKIP only as one of two ranks: tests/softroce/check-hosts.sh\n");
        return EXIT_SUCCESS;
    }
    return run_groups("hosts_steps", cases, COUNT(cases));
}
