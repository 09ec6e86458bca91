/* SPDX-License-Identifier: MIT */
/*
 * Works of many ranks: exchanges in lockstep, lists to all peers, barriers and allgathers.
 * An iteration is one step of all ranks.
 */
#include <errno.h>
#include <string.h>

#include "ways.h"

struct lists {
    struct sluice_request sends[16], receives[2][16];
    struct sluice_handle handles[2][16];
    struct sluice_peer_remote_mr shared[16];
    uint32_t peers[16], count; /* the others */
    uint64_t messages[16];     /* of each rank, in this measurement */
    bool posted;
};

/* Makes lists of blocks of the size: to each rank, and from it, twice. */
static void make_lists(struct rank *rank)
{
    struct lists *lists = MAKE(calloc(1, sizeof *lists));

    MUST(sluice_node_share_mr(rank->node, rank->mr, lists->shared, DEADLINE));
    for (uint32_t i = 0; i < rank->ranks; i++) {
        const size_t at = (size_t)i * rank->size, half = (size_t)rank->ranks * rank->size;
        struct sluice_request request = {.peer = i, .sge_count = 1};
        uint32_t k = lists->count;

        if (i == rank->rank)
            continue;
        lists->peers[k] = i;
        request.sge = place(rank, at, rank->size);
        lists->sends[k] = request;
        request.sge = place(rank, half + at, rank->size);
        lists->receives[0][k] = request;
        request.sge = place(rank, 2 * half + at, rank->size);
        lists->receives[1][k] = request;
        lists->count++;
    }
    rank->state = lists;
}

static void free_lists(struct rank *rank)
{
    free(rank->state);
}

/* Uses the call that the tutorial teaches first. */
static void exchange_step(struct rank *rank, uint64_t count)
{
    const struct lists *lists = rank->state;

    for (uint64_t i = 0; i < count; i++)
        MUST(sluice_multichannel_scatter_gather(rank->all, lists->sends, lists->count,
                                                lists->receives[0], lists->count, DEADLINE, NULL));
}

static void post_receives(struct rank *rank, struct lists *lists, uint64_t step)
{
    uint32_t posted = 0;

    while (posted < lists->count)
        posted += (uint32_t)MUST(sluice_multichannel_post_gather_receive(
            rank->all, lists->receives[step & 1] + posted, lists->count - posted, SLUICE_FOREVER,
            lists->handles[step & 1] + posted));
}

/* Posts the receives of the next step before the sends of this one. */
static void exchange_ahead(struct rank *rank, uint64_t count)
{
    struct lists *lists = rank->state;
    struct sluice_completion done;

    if (!lists->posted)
        post_receives(rank, lists, 0);
    lists->posted = true;
    meet(rank);
    for (uint64_t step = 0; step < count; step++) {
        post_receives(rank, lists, step + 1);
        MUST(sluice_multichannel_scatter_send(rank->all, lists->sends, lists->count, DEADLINE,
                                              NULL));
        for (uint32_t i = 0; i < lists->count; i++)
            MUST(
                sluice_multichannel_wait(rank->all, &lists->handles[step & 1][i], DEADLINE, &done));
    }
    if (count & 1)
        for (uint32_t i = 0; i < lists->count; i++)
            lists->handles[0][i] = lists->handles[1][i];
}

/* Sends to all without taking the results, and receives. */
static void exchange_untaken(struct rank *rank, uint64_t count)
{
    struct lists *lists = rank->state;

    for (uint64_t i = 0; i < count; i++) {
        MUST(sluice_multichannel_post_scatter_send(rank->all, lists->sends, lists->count, DEADLINE,
                                                   NULL));
        MUST(sluice_multichannel_gather_receive(rank->all, lists->receives[0], lists->count,
                                                DEADLINE, NULL));
        MUST(sluice_multichannel_flush(rank->all, DEADLINE));
    }
}

/* Does the same with one call for each peer. */
static void exchange_calls(struct rank *rank, uint64_t count)
{
    struct lists *lists = rank->state;
    struct sluice_completion done;

    for (uint64_t step = 0; step < count; step++) {
        for (uint32_t i = 0; i < lists->count; i++)
            MUST(sluice_multichannel_post_receive(rank->all, lists->peers[i],
                                                  &lists->receives[0][i].sge, 1, DEADLINE,
                                                  &lists->handles[0][i]));
        for (uint32_t i = 0; i < lists->count; i++)
            MUST(sluice_multichannel_post_send(rank->all, lists->peers[i], &lists->sends[i].sge, 1,
                                               DEADLINE, NULL));
        for (uint32_t i = 0; i < lists->count; i++)
            MUST(sluice_multichannel_wait(rank->all, &lists->handles[0][i], DEADLINE, &done));
        MUST(sluice_multichannel_flush(rank->all, DEADLINE));
    }
}

static void exchange_multicast(struct rank *rank, uint64_t count)
{
    struct lists *lists = rank->state;
    const struct sluice_request message = {.sge_count = 1, .sge = lists->sends[0].sge};

    for (uint64_t i = 0; i < count; i++) {
        MUST(sluice_multichannel_post_multicast_send(rank->all, &message, lists->peers,
                                                     lists->count, DEADLINE, NULL));
        MUST(sluice_multichannel_gather_receive(rank->all, lists->receives[0], lists->count,
                                                DEADLINE, NULL));
        MUST(sluice_multichannel_flush(rank->all, DEADLINE));
    }
}

/* One rank sends to all others, which answer, so that steps do not pile up. */
static void scatter_and_gather(struct rank *rank, uint64_t count, bool multicast)
{
    struct lists *lists = rank->state;
    const struct sluice_request message = {.sge_count = 1, .sge = lists->sends[0].sge};

    for (uint64_t i = 0; i < count; i++)
        if (rank->rank != 0) {
            MUST(sluice_multichannel_receive(rank->all, 0, &lists->receives[0][0].sge, 1, DEADLINE,
                                             NULL));
            MUST(sluice_multichannel_send(rank->all, 0, &lists->sends[0].sge, 1, DEADLINE));
        } else {
            if (multicast)
                MUST(sluice_multichannel_multicast_send(rank->all, &message, lists->peers,
                                                        lists->count, DEADLINE, NULL));
            else
                MUST(sluice_multichannel_scatter_send(rank->all, lists->sends, lists->count,
                                                      DEADLINE, NULL));
            MUST(sluice_multichannel_gather_receive(rank->all, lists->receives[0], lists->count,
                                                    DEADLINE, NULL));
        }
}

static void scatter_then_gather(struct rank *rank, uint64_t count)
{
    scatter_and_gather(rank, count, false);
}

static void multicast_then_gather(struct rank *rank, uint64_t count)
{
    scatter_and_gather(rank, count, true);
}

static void answer_immediate(struct rank *rank, uint64_t count)
{
    struct lists *lists = rank->state;

    for (uint64_t i = 0; i < count; i++)
        if (rank->rank == 0)
            MUST(sluice_multichannel_scatter_gather(rank->all, lists->sends, lists->count,
                                                    lists->receives[0], lists->count, DEADLINE,
                                                    NULL));
        else {
            MUST(sluice_multichannel_receive(rank->all, 0, &lists->receives[0][0].sge, 1, DEADLINE,
                                             NULL));
            MUST(sluice_multichannel_send_immediate(rank->all, 0, &lists->sends[0].sge, 1, 1,
                                                    DEADLINE));
        }
}

/* One-sided operations on all peers, which sleep. */
enum act { WRITES, READS, MULTICAST, WRITES_POSTED, READS_POSTED, MULTICAST_POSTED, LIST };

static void post_one_sided(struct rank *rank, struct lists *lists, enum act act)
{
    const struct sluice_request *requests = lists->sends;
    const uint32_t count = lists->count;

    switch (act) {
    case WRITES:
        MUST(sluice_multichannel_scatter_write(rank->all, requests, count, DEADLINE, NULL));
        break;
    case READS:
        MUST(sluice_multichannel_gather_read(rank->all, requests, count, DEADLINE, NULL));
        break;
    case MULTICAST:
        MUST(sluice_multichannel_multicast_write(rank->all, requests, lists->shared + 1, count,
                                                 DEADLINE, NULL));
        break;
    case WRITES_POSTED:
        MUST(sluice_multichannel_post_scatter_write(rank->all, requests, count, DEADLINE, NULL));
        break;
    case READS_POSTED:
        MUST(sluice_multichannel_post_gather_read(rank->all, requests, count, DEADLINE, NULL));
        break;
    case MULTICAST_POSTED:
        MUST(sluice_multichannel_post_multicast_write(rank->all, requests, lists->shared + 1, count,
                                                      DEADLINE, NULL));
        break;
    case LIST:
        break;
    }
    if (act >= WRITES_POSTED)
        MUST(sluice_multichannel_flush(rank->all, DEADLINE));
}

static void one_sided(struct rank *rank, uint64_t count, enum act act)
{
    struct lists *lists = rank->state;
    struct sluice_list *list = NULL;

    if (rank->rank != 0)
        return;
    for (uint32_t i = 0; i < lists->count; i++) {
        lists->sends[i].remote = remote(rank, lists->peers[i], 0, rank->size);
        if (act == LIST)
            lists->sends[i].opcode = SLUICE_OP_WRITE;
    }
    if (act == LIST)
        list = MAKE(sluice_multichannel_list_prepare(rank->all, lists->sends, lists->count));
    for (uint64_t i = 0; i < count; i++)
        if (act == LIST)
            MUST(sluice_list_submit(list, DEADLINE, NULL));
        else
            post_one_sided(rank, lists, act);
    sluice_list_free(list);
}

#define ONE_SIDED(name, act)                            \
    static void name(struct rank *rank, uint64_t count) \
    {                                                   \
        one_sided(rank, count, act);                    \
    }

ONE_SIDED(scatter_write, WRITES)
ONE_SIDED(gather_read, READS)
ONE_SIDED(multicast_write, MULTICAST)
ONE_SIDED(scatter_write_flush, WRITES_POSTED)
ONE_SIDED(gather_read_flush, READS_POSTED)
ONE_SIDED(multicast_write_flush, MULTICAST_POSTED)
ONE_SIDED(prepared_writes, LIST)

/* Many small requests to each peer in one list, with the generic calls. */
static void many_requests(struct rank *rank, uint64_t count, bool submit)
{
    const struct lists *lists = rank->state;
    struct sluice_request requests[128];
    const uint32_t all = 8 * lists->count;

    if (rank->rank != 0)
        return;
    for (uint32_t i = 0; i < all; i++) {
        requests[i] = lists->sends[i % lists->count];
        requests[i].opcode = SLUICE_OP_WRITE;
        requests[i].remote = remote(rank, requests[i].peer, 0, rank->size);
    }
    for (uint64_t i = 0; i < count; i++)
        if (submit) {
            MUST(sluice_multichannel_submit(rank->all, requests, all, DEADLINE, NULL));
        } else {
            for (uint32_t posted = 0; posted < all;)
                posted += (uint32_t)MUST(sluice_multichannel_post(rank->all, requests + posted,
                                                                  all - posted, DEADLINE, NULL));
            MUST(sluice_multichannel_flush(rank->all, DEADLINE));
        }
}

static void small_to_many(struct rank *rank, uint64_t count)
{
    many_requests(rank, count, true);
}

static void small_to_many_flush(struct rank *rank, uint64_t count)
{
    many_requests(rank, count, false);
}

/* Each rank writes to all, and waits until all have written to it. */
static void exchange_arrivals(struct rank *rank, uint64_t count)
{
    const struct lists *lists = rank->state;
    uint64_t before;

    MUST(sluice_multichannel_arrivals(rank->all, 2, &before));
    meet(rank);
    for (uint64_t step = 1; step <= count; step++) {
        for (uint32_t i = 0; i < lists->count; i++) {
            const struct sluice_remote_mr there =
                remote(rank, lists->peers[i], (size_t)rank->rank * rank->size, rank->size);

            MUST(sluice_multichannel_write_immediate(rank->all, lists->peers[i],
                                                     &lists->sends[i].sge, 1, &there, 2, DEADLINE));
        }
        MUST(sluice_multichannel_wait_arrivals(rank->all, 2, before + step * lists->count,
                                               DEADLINE));
    }
}

/* Posts receives of the pool to all places for messages but the first. */
static void post_pool(struct rank *rank, struct lists *lists)
{
    struct sluice_request requests[POOL_COUNT - 1];

    for (uint32_t i = 0; i < POOL_COUNT - 1; i++)
        requests[i] = lists->receives[i / lists->count % 2][i % lists->count];
    if (!lists->posted)
        MUST(sluice_multichannel_post_receive_any(rank->all, requests, POOL_COUNT - 1, NULL));
    lists->posted = true;
}

/* Takes one message and posts a receive in its place. */
static void take_any(struct rank *rank, struct lists *lists)
{
    struct sluice_completion done;

    MUST(sluice_multichannel_next(rank->all, DEADLINE, &done));
    if (done.opcode != SLUICE_OP_RECEIVE)
        return;
    MUST(done.error);
    lists->messages[done.peer]++;
    MUST(sluice_multichannel_post_receive_any(rank->all, lists->receives[0], 1, NULL));
}

/* Each rank sends to all, and takes their messages from its pool, whoever is first. */
static void exchange_any(struct rank *rank, uint64_t count)
{
    struct lists *lists = rank->state;

    post_pool(rank, lists);
    meet(rank);
    for (uint64_t step = 1; step <= count; step++) {
        MUST(sluice_multichannel_scatter_send(rank->all, lists->sends, lists->count, DEADLINE,
                                              NULL));
        for (uint32_t i = 0; i < lists->count; i++)
            while (lists->messages[lists->peers[i]] < step)
                take_any(rank, lists);
    }
    memset(lists->messages, 0, sizeof lists->messages);
    meet(rank);
}

/* Waits for one message. A device, which takes no receive back, has the second way alone. */
static void receive_any(struct rank *rank, const struct sluice_request *request)
{
    struct sluice_completion done;
    int result = sluice_multichannel_receive_any(rank->all, &request->sge, 1, DEADLINE, NULL);

    if (result != -EOPNOTSUPP) {
        MUST(result);
        return;
    }
    MUST(sluice_multichannel_post_receive_any(rank->all, request, 1, NULL));
    MUST(sluice_multichannel_next(rank->all, DEADLINE, &done));
    MUST(done.error);
}

/* Two ranks send and receive in turn, with receives of the pool. */
static void echo_any(struct rank *rank, uint64_t count)
{
    const struct lists *lists = rank->state;
    const struct sluice_sge *to = &lists->sends[0].sge;

    for (uint64_t i = 0; i < count; i++) {
        if (rank->rank == 0)
            MUST(sluice_multichannel_send(rank->all, 1, to, 1, DEADLINE));
        receive_any(rank, &lists->receives[0][0]);
        if (rank->rank == 1)
            MUST(sluice_multichannel_send(rank->all, 0, to, 1, DEADLINE));
    }
}

static void node_barrier(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        MUST(sluice_node_barrier(rank->node, NULL, 0, SLUICE_BARRIER_DEFAULT, DEADLINE));
}

static void node_allgather(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        MUST(sluice_node_allgather(rank->node, rank->memory, rank->memory + rank->size, rank->size,
                                   DEADLINE));
}

static void node_alltoall(struct rank *rank, uint64_t count)
{
    char *values = rank->memory;
    size_t all = rank->size * rank->ranks;

    for (uint64_t i = 0; i < count; i++)
        MUST(sluice_node_alltoall(rank->node, values, values + all, rank->size, DEADLINE));
}

static void node_share(struct rank *rank, uint64_t count)
{
    struct sluice_peer_remote_mr shared[16];

    for (uint64_t i = 0; i < count; i++)
        MUST(sluice_node_share_mr(rank->node, rank->mr, shared, DEADLINE));
}

static void atomics_posted(struct rank *rank, uint64_t count)
{
    const struct sluice_sge result = place(rank, 0, 8);

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++) {
        MUST(sluice_multichannel_post_fetch_add(rank->all, 1, &result, &rank->remotes[1], 1,
                                                DEADLINE, NULL));
        MUST(sluice_multichannel_post_compare_swap(rank->all, 1, &result, &rank->remotes[1], 0, 0,
                                                   DEADLINE, NULL));
        MUST(sluice_multichannel_post_read(rank->all, 1, &result, 1, &rank->remotes[1], DEADLINE,
                                           NULL));
        if (i % 16 == 15 || i + 1 == count)
            MUST(sluice_multichannel_flush(rank->all, DEADLINE));
    }
}

#define WAY(name, against, mpi, calls, needs, ranks, sizes)                                        \
    {                                                                                              \
#name, "group", against, NULL, mpi, calls, NODE | (needs), ranks, sizes, make_lists, name, \
            free_lists                                                                             \
    }
#define FEW     \
    {           \
        2, 4, 8 \
    }
#define FOUR \
    {        \
        4    \
    }
#define TWO \
    {       \
        2   \
    }
#define STEP_SIZES              \
    {                           \
        8, 1024, 65536, 1048576 \
    }
#define STEP(name, calls) WAY(name, "exchange_ahead", "exchange", calls, 0, FEW, SMALL)
#define SIDE(name, calls) WAY(name, "prepared_writes", NULL, calls, 0, FOUR, SMALL)

const struct way ways_group[] = {
    WAY(exchange_step, "exchange_ahead", "exchange", "multichannel_scatter_gather", 0, FEW,
        STEP_SIZES),
    WAY(exchange_ahead, "exchange_ahead", "exchange",
        "multichannel_post_gather_receive multichannel_scatter_send multichannel_wait", 0, FEW,
        STEP_SIZES),
    STEP(exchange_untaken,
         "multichannel_post_scatter_send multichannel_gather_receive multichannel_flush"),
    STEP(exchange_calls, "multichannel_post_receive multichannel_post_send"),
    STEP(exchange_multicast, "multichannel_post_multicast_send"),
    WAY(exchange_arrivals, "exchange_ahead", "exchange",
        "multichannel_write_immediate multichannel_wait_arrivals multichannel_arrivals", ARRIVALS,
        FEW, SMALL),
    WAY(exchange_any, "exchange_ahead", "exchange",
        "multichannel_post_receive_any multichannel_next multichannel_scatter_send", POOL, FEW,
        STEP_SIZES),
    WAY(echo_any, "echo_blocking", NULL, "multichannel_receive_any", POOL, TWO, SIZES),
    WAY(scatter_then_gather, "answer_immediate", "scatter_gather",
        "multichannel_scatter_send multichannel_receive multichannel_send "
        "multichannel_gather_receive",
        0, FEW, SMALL),
    WAY(multicast_then_gather, "answer_immediate", "scatter_gather", "multichannel_multicast_send",
        0, FOUR, SMALL),
    WAY(answer_immediate, "answer_immediate", "scatter_gather",
        "multichannel_send_immediate multichannel_scatter_gather", 0, FEW, SMALL),
    SIDE(prepared_writes, "multichannel_list_prepare list_submit"),
    SIDE(scatter_write, "multichannel_scatter_write"),
    SIDE(multicast_write, "multichannel_multicast_write"),
    SIDE(scatter_write_flush, "multichannel_post_scatter_write"),
    SIDE(multicast_write_flush, "multichannel_post_multicast_write"),
    WAY(gather_read, "gather_read", "gather_read", "multichannel_gather_read", 0, FOUR, SMALL),
    WAY(gather_read_flush, "gather_read", "gather_read", "multichannel_post_gather_read", 0, FOUR,
        SMALL),
    WAY(small_to_many, "small_to_many", NULL, "multichannel_submit", 0, FOUR, SMALL),
    WAY(small_to_many_flush, "small_to_many", NULL, "multichannel_post multichannel_flush", 0, FOUR,
        SMALL),
    WAY(atomics_posted, "atomics_posted", NULL,
        "multichannel_post_fetch_add multichannel_post_compare_swap "
        "multichannel_post_read",
        0, TWO, SMALL),
    WAY(node_barrier, "node_barrier", "barrier", "node_barrier", 0, FEW, SMALL),
    WAY(node_allgather, "node_barrier", NULL, "node_allgather", 0, FEW, SMALL),
    WAY(node_alltoall, "node_barrier", NULL, "node_alltoall", 0, FEW, SMALL),
    WAY(node_share, "node_barrier", NULL, "node_share_mr", 0, FOUR, SMALL),
    {0},
};
