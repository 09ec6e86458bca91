/* SPDX-License-Identifier: MIT */
/*
 * A rank without memory for a call that all ranks make: its next call does not meet theirs, and
 * they learn of the failure at once, where the provider can carry it.
 */
#include "config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "../support/pair.h"
#include "../support/process.h"
#include "liar.h"

#define RANKS 3

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);

/* The allocation of this thread that fails, 1 is the next one; 0: none. */
static _Thread_local unsigned failing;
static _Thread_local bool all_fail; /* those behind it as well */
static _Thread_local size_t
    of_size; /* only those of one element for each rank, of this size; 0: all */
static _Thread_local unsigned failed;

static bool fails(size_t count, size_t size)
{
    if (failing == 0 || (of_size > 0 && (size != of_size || count != RANKS)) ||
        (failing > 1 && failing-- > 1)) {
        return false;
    }
    failing = all_fail ? 1 : 0;
    failed++;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fails(1, size) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails(count, size) ? NULL : __real_calloc(count, size);
}

static void fail_allocation(unsigned number)
{
    failing = number;
    all_fail = false;
    of_size = 0;
    failed = 0;
}

/* Returns whether an allocation has failed. */
static bool has_failed(void)
{
    failing = 0;
    return failed > 0;
}

/* Requires that all calls fail without sending anything. */
static void require_broken(struct sluice_exchange *exchange)
{
    uint64_t to[RANKS] = {0}, from[RANKS];
    uint32_t rank, ranks;
    require_error(sluice_exchange_allgather(exchange, to, from, 8, LONG), -ENOTCONN, "before");
    require_error(sluice_exchange_alltoall(exchange, to, from, 8, LONG), -ENOTCONN, "before");
    require_error(sluice_exchange_barrier(exchange, LONG), -ENOTCONN, "before");
    require_error(sluice_exchange_locality(exchange, &rank, &ranks, LONG), -ENOTCONN, "before");
}

static uint32_t poor; /* the rank without memory */
static bool very;     /* it has no memory at all */

static void note(struct party *party, int error)
{
    require(party_failed(party, error), "it succeeded");
    require_broken(party->exchange);
}

static void find_places(struct party *party)
{
    uint32_t rank, ranks;
    if (party->attr.rank == poor) {
        fail_allocation(1);
        all_fail = very;
    }
    int error = sluice_exchange_locality(party->exchange, &rank, &ranks, LONG);
    require(has_failed() == (party->attr.rank == poor), "rank %u", party->attr.rank);
    note(party, error);
}

static void swap(struct party *party)
{
    uint64_t to[RANKS] = {0}, from[RANKS];
    if (party->attr.rank == 0) {
        fail_allocation(poor);
    }
    note(party, sluice_exchange_alltoall(party->exchange, to, from, sizeof(*to), LONG));
}

static void run_soon(struct parties *parties, void (*function)(struct party *party))
{
    int64_t start = fair_now();
    run_ranks(parties, RANKS, LONG, function);
    require(fair_now() - start < SOON, "%lld ms", (long long)(fair_now() - start) / 1000000);
}

TEST(each_rank_of_tcp, .group = "tcp")
{
    struct parties parties;
    char words[80];
    for (poor = 0; poor < RANKS; poor++) {
        run_soon(&parties, find_places);
        for (uint32_t i = 0; i < RANKS; i++) {
            bool own = i == poor || poor == 0;
            snprintf(words, sizeof(words),
                     own ? "rank %u cannot take part: no memory for the hosts of 3 ranks"
                         : "allgather, call 1: rank %u at 127.0.0.1: no memory to take part",
                     poor);
            party_require(&parties.party[i], -ENOMEM, words);
            party_require_missing(&parties.party[i], &poor, i == poor || poor == 0 ? 0 : 1);
        }
    }
}

TEST(rank_0_of_tcp_without_words, .group = "tcp")
{
    struct parties parties;
    poor = 0;
    very = true;
    run_soon(&parties, find_places);
    party_require(&parties.party[0], -ENOMEM, "rank 0 cannot take part");
    for (uint32_t i = 1; i < RANKS; i++) {
        party_require(&parties.party[i], -ECONNRESET, "rank 0 gone");
    }
}

TEST(alltoall_of_rank_0, .group = "tcp")
{
    struct parties parties;
    for (poor = 1; poor <= 2; poor++) {
        run_soon(&parties, swap);
        for (uint32_t i = 0; i < RANKS; i++) {
            party_require(&parties.party[i], -ENOMEM, "rank 0 no memory alltoall");
        }
    }
}

static void open_node(struct party *party)
{
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    if (party->attr.rank == poor) {
        fail_allocation(1);
        of_size = sizeof(struct sluice_node_endpoint);
    }
    struct sluice_node *node = sluice_node_open(pd, party->exchange, NULL, LONG);
    int error = node ? 0 : -errno;
    require(has_failed() == (party->attr.rank == poor), "rank %u", party->attr.rank);
    sluice_node_close(node);
    note(party, error);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(node_of_each_rank, .group = "tcp")
{
    struct parties parties;
    char words[40];
    for (poor = 0; poor < RANKS; poor++) {
        run_soon(&parties, open_node);
        snprintf(words, sizeof(words), "rank %u no memory", poor);
        for (uint32_t i = 0; i < RANKS; i++) {
            party_require(&parties.party[i], -ENOMEM, words);
        }
    }
}

static unsigned gathers;

static int gather(void *argument, const void *own, void *all, size_t bytes, int64_t deadline)
{
    (void)argument;
    (void)deadline;
    gathers++;
    for (size_t i = 0; i < RANKS; i++) {
        memcpy((char *)all + i * bytes, own, bytes);
    }
    return 0;
}

static struct sluice_exchange *wrap_gather(void)
{
    const struct sluice_exchange_provider provider = {.size = sizeof(provider),
                                                      .allgather = gather};
    struct sluice_exchange *exchange = made(sluice_exchange_wrap(&provider, NULL, 1, RANKS));
    gathers = 0;
    return exchange;
}

TEST(functions_of_the_program, .group = "tcp")
{
    uint64_t to[RANKS] = {0}, from[RANKS];
    uint32_t rank, ranks;
    struct sluice_exchange *exchange = wrap_gather();
    /* No call needs memory here, as no failure could be passed on. */
    for (size_t i = 0; i < RANKS; i++) {
        to[i] = 100 + i;
    }
    fail_allocation(1);
    require_ok(sluice_exchange_barrier(exchange, LONG));
    require_ok(sluice_exchange_allgather(exchange, NULL, NULL, 0, LONG));
    require_ok(sluice_exchange_alltoall(exchange, NULL, NULL, 0, LONG));
    require_ok(sluice_exchange_allgather(exchange, to, from, 8, LONG));
    require_result(gathers, 4);
    require_ok(sluice_exchange_alltoall(exchange, to, from, 8, LONG));
    require_result(gathers, 5);
    require(from[0] == 101 && from[2] == 101, "%llu", (unsigned long long)from[0]);
    require_ok(sluice_exchange_locality(exchange, &rank, &ranks, LONG));
    require(gathers == 6 && rank == 1 && ranks == RANKS, "%u of %u", rank, ranks);
    require(!has_failed(), "something was allocated");
    sluice_exchange_close(exchange);
    for (unsigned number = 1; number <= 3; number++) {
        const struct sluice_exchange_provider provider = {.size = sizeof(provider),
                                                          .allgather = gather};
        fail_allocation(number);
        require_null(sluice_exchange_wrap(&provider, NULL, 1, RANKS), ENOMEM, "no memory");
        require(has_failed(), "%u", number);
    }
}

/* Calls that the pretend libpmix has seen. */
static unsigned (*count_fences)(void);
static unsigned (*last_operation)(void);

static struct sluice_exchange *open_pmix(const char *wrong)
{
    const struct sluice_exchange_attr attr = {.size = sizeof(attr), .kind = SLUICE_EXCHANGE_PMIX};
    setenv("PMIX_RANK", "0", 1);
    setenv("FAKE_PMIX", wrong, 1);
    struct sluice_exchange *exchange = made(sluice_exchange_open(&attr, LONG));
    return exchange;
}

#define NO_MEMORY 3

TEST(pmix, .group = "pmix")
{
    bool more = true;
    uint64_t own = 7, all[2];
    unsigned told = 0;
    for (unsigned number = 1; more; number++) {
        struct sluice_exchange *exchange = open_pmix("");
        unsigned before = count_fences();
        fail_allocation(number);
        int error = sluice_exchange_allgather(exchange, &own, all, sizeof(own), LONG);
        more = has_failed();
        /*
         * All ranks come, in a fence for each call; the failing rank puts a report of its lack of
         * memory.
         */
        if (error != 0) {
            require_error(error, -ENOMEM, "");
            require_result(last_operation(), NO_MEMORY);
            told++;
            require_broken(exchange);
        } else {
            require(last_operation() != NO_MEMORY, "allocation %u", number);
        }
        require(count_fences() > before, "allocation %u", number);
        sluice_exchange_close(exchange);
        require(number < 20, "it has no end");
    }
    require(told >= 3, "%u", told);
}

/* The memory of one fence is reserved, so that a barrier needs none; it is used once. */
TEST(barrier_of_pmix, .group = "pmix")
{
    struct sluice_exchange *exchange = open_pmix("");
    fail_allocation(1);
    require_ok(sluice_exchange_barrier(exchange, LONG));
    require(has_failed(), "no fence was made");
    fail_allocation(1);
    require_error(sluice_exchange_barrier(exchange, LONG), -ENOMEM, "fence");
    require_broken(exchange);
    sluice_exchange_close(exchange);
}

TEST(locality_of_pmix, .group = "pmix")
{
    uint32_t rank, ranks;
    struct sluice_exchange *exchange = open_pmix("");
    unsigned before = count_fences();
    fail_allocation(1);
    require_error(sluice_exchange_locality(exchange, &rank, &ranks, LONG), -ENOMEM,
                  "rank 0 cannot take part: no memory for the hosts");
    require_result(count_fences(), before + 1);
    require_result(last_operation(), NO_MEMORY);
    require_broken(exchange);
    sluice_exchange_close(exchange);
}

/* The other rank reports that it has no memory. */
TEST(another_rank_of_pmix, .group = "pmix")
{
    uint64_t own = 7, all[2];
    struct sluice_exchange *exchange = open_pmix("memory");
    require_error(sluice_exchange_allgather(exchange, &own, all, sizeof(own), LONG), -ENOMEM,
                  "rank 1 has no memory to take part");
    require_broken(exchange);
    sluice_exchange_close(exchange);
}

/* A rank that fails on its own before it met the others has not counted the exchange. */
TEST(opening_over_pmix, .group = "pmix")
{
    const struct sluice_exchange_attr attr = {.size = sizeof(attr), .kind = SLUICE_EXCHANGE_PMIX};
    sluice_exchange_close(open_pmix(""));
    unsigned before = count_fences();
    for (unsigned number = 1;; number++) {
        fail_allocation(number);
        struct sluice_exchange *exchange = sluice_exchange_open(&attr, LONG);
        bool more = has_failed();
        if (exchange) {
            require_result(count_fences(), before + 1);
            sluice_exchange_close(exchange);
            before++;
        } else {
            require_result(errno, ENOMEM);
            require_result(count_fences(), before);
        }
        if (!more) {
            break;
        }
        require(number < 20, "it has no end");
    }
}

int main(void)
{
    static const struct tests cases[] = {{"tcp", WIRE_TCP, 90}, {"pmix", WIRE_SELF, 60}};
    size_t count = 1;
#ifdef HAVE_PMIX
    void *fake = dlopen(FAKE_PMIX, RTLD_NOW | RTLD_LOCAL);
    if (fake) {
        *(void **)&count_fences = dlsym(fake, "fake_pmix_fences");
        *(void **)&last_operation = dlsym(fake, "fake_pmix_operation");
        count = count_fences && last_operation ? 2 : 1;
    }
    if (count == 1) {
        fprintf(stderr, "no pretend libpmix: %s\n", dlerror());
        return EXIT_FAILURE;
    }
#endif
    return run_groups("exchange_memory", cases, count);
}
