/* SPDX-License-Identifier: MIT */
/*
 * A rank that cannot open its node: all ranks learn at once which rank failed and why, also over an
 * exchange whose calls have no deadline, and can try again.
 */
#include <errno.h>

#include "../exchange/parties.h"
#include "../support/pair.h"
#include "../support/process.h"
#include "../support/ranks.h"

#define LONG SLUICE_S(60)
/* The time for all ranks to learn of it, on a busy machine. */
#define AT_ONCE SLUICE_S(10)

/* The failure of rank 1. */
struct mishap {
    bool wrapped; /* the exchange is functions of the program */
    uint32_t barrier;
    size_t changed; /* byte changed in data from rank 0, if not 0 */
    bool sign;      /* with a checksum that is right */
    int error;
    const char *own;    /* words of its text */
    const char *others; /* and in the text of the others */
};

static const struct mishap *mishap;

static int gather(void *argument, const void *own, void *all, size_t bytes, int64_t deadline)
{
    const struct party *party = argument;
    (void)deadline;
    return sluice_exchange_allgather(party->exchange, own, all, bytes, LONG);
}

static int trade(void *argument, const void *to, void *from, size_t bytes, int64_t deadline)
{
    const struct party *party = argument;
    struct sluice_node_endpoint *endpoint = from;
    (void)deadline;
    int error = sluice_exchange_alltoall(party->exchange, to, from, bytes, LONG);
    if (mishap->changed > 0 && party->attr.rank == 1) {
        endpoint->bytes[mishap->changed] ^= 3;
    }
    if (mishap->sign && party->attr.rank == 1) {
        node_endpoint_sign(endpoint);
    }
    return error;
}

/* Opens the node twice; the second time nothing fails. */
static void open_twice(struct party *party)
{
    const struct sluice_exchange_provider provider = {
        .size = sizeof(provider), .allgather = gather, .alltoall = trade};
    uint32_t rank = party->attr.rank;
    const struct sluice_node_attr attr = {.size = sizeof(attr),
                                          .barrier = rank == 1 ? mishap->barrier : 0};
    struct sluice_exchange *own = sluice_exchange_wrap(&provider, party, rank, party->attr.ranks);
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    int64_t start = fair_now();
    if (rank == 0) {
        require_null(sluice_node_open(pd, party->exchange, &attr, 0), ETIMEDOUT, "deadline 0");
    }
    require_null(sluice_node_open(pd, mishap->wrapped ? own : party->exchange, &attr, LONG),
                 rank == 1 ? mishap->error : ECANCELED, rank == 1 ? mishap->own : mishap->others);
    require(fair_now() - start < AT_ONCE, "%lld ms", (long long)(fair_now() - start) / 1000000);
    struct sluice_node *node = sluice_node_open(pd, party->exchange, NULL, LONG);
    require(node, "rank %u: %s", rank, sluice_last_error());
    require_ok(sluice_node_shutdown(node, LONG));
    sluice_node_close(node);
    sluice_exchange_close(own);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

static void open_with(const struct mishap *one)
{
    struct parties parties;
    mishap = one;
    run_ranks(&parties, 3, LONG, open_twice);
    for (uint32_t i = 0; i < parties.count; i++) {
        require(parties.party[i].error == 0, "rank %u: %s", i, parties.party[i].text);
    }
}

/* The program passes a deadline without time left; the other ranks do not notice. */
static void open_without_time(struct party *party)
{
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    require_null(sluice_node_open(pd, party->exchange, NULL, 0), ETIMEDOUT, "0 nothing was sent");
    struct sluice_node *node = sluice_node_open(pd, party->exchange, NULL, LONG);
    require(node, "rank %u: %s", party->attr.rank, sluice_last_error());
    require_ok(sluice_node_shutdown(node, LONG));
    sluice_node_close(node);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(no_time)
{
    struct parties parties;
    run_ranks(&parties, 3, LONG, open_without_time);
    for (uint32_t i = 0; i < parties.count; i++) {
        party_require(&parties.party[i], 0, "");
    }
}

/* The exchange fails, and the text says how the ranks may differ. */
static void open_differently(struct party *party)
{
    const struct sluice_node_attr lazy = {.size = sizeof(lazy),
                                          .connect = SLUICE_NODE_CONNECT_LAZY};
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    require_null(sluice_node_open(pd, party->exchange, party->attr.rank == 1 ? &lazy : NULL, LONG),
                 EPROTO, "rank 1 allgather rank 0 alltoall sluice_node_attr.connect");
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(one_rank_is_lazy)
{
    struct parties parties;
    run_ranks(&parties, 3, LONG, open_differently);
}

TEST(a_wrong_argument)
{
    struct mishap one = {.barrier = 4,
                         .error = EINVAL,
                         .own = "sluice_node_attr.barrier 4",
                         .others = "rank 1 could not open its node argument barrier is 4"};
    open_with(&one);
    one.wrapped = true;
    open_with(&one);
}

TEST(a_wrong_endpoint)
{
    /* The rank that the endpoint is for. */
    const struct mishap one = {.wrapped = true,
                               .changed = 11,
                               .sign = true,
                               .error = EPROTO,
                               .own = "endpoint 0 is for rank 2",
                               .others = "rank 1 could not open its node endpoint 0 is for rank 2"};
    open_with(&one);
}

TEST(a_damaged_endpoint)
{
    const struct mishap one = {.wrapped = true,
                               .changed = 100,
                               .error = EPROTO,
                               .own = "rank 0: not an endpoint",
                               .others = "rank 1 could not open its node rank 0: not an endpoint"};
    open_with(&one);
}

/* The reason of a lying rank is made harmless. */
static int lie(void *argument, const void *to, void *from, size_t bytes, int64_t deadline)
{
    struct sluice_node_endpoint *endpoints = from;
    (void)argument;
    (void)deadline;
    memcpy(from, to, 2 * bytes);
    memset(&endpoints[1], 0x1b, sizeof(*endpoints));
    /* Versions of our own, and a failure with that error. */
    const uint8_t head[6] = {0, 1, 0, 0, 0, 22};
    memcpy(endpoints[1].bytes, to, 2);
    memcpy(endpoints[1].bytes + 2, head, sizeof(head));
    node_endpoint_sign(&endpoints[1]);
    return 0;
}

TEST(a_reason_of_nonsense)
{
    const struct sluice_exchange_provider provider = {
        .size = sizeof(provider), .allgather = gather, .alltoall = lie};
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_exchange *exchange = sluice_exchange_wrap(&provider, NULL, 0, 2);
    require_null(sluice_node_open(pd, exchange, NULL, DEADLINE), ECANCELED,
                 "rank 1 could not open Invalid ????");
    require(!strchr(sluice_last_error(), 0x1b), "%s", sluice_last_error());
    sluice_exchange_close(exchange);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

int main(void)
{
    return RUN_GROUPS("node_open", {"self", WIRE_SELF, 120}, {"tcp", WIRE_TCP, 120});
}
