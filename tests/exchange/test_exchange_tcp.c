/* SPDX-License-Identifier: MIT */
/*
 * The exchange over TCP: the data of each rank reach all, in any order of arrival; and when a rank
 * is late, missing, gone or passes other arguments, all get the reason.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../support/group.h"
#include "../support/process.h"
#include "parties.h"

#define LONG SLUICE_S(30)
/* Time of calls that must end long before a deadline of LONG. */
#define SOON SLUICE_S(10)

static const uint32_t counts[] = {2, 5, 16};

static void call_all_sizes(struct party *party)
{
    static const size_t sizes[] = {0, 1, 256, 320, 65536};
    struct sluice_exchange_info info = {.size = sizeof(info)};
    uint32_t local_rank, local_ranks;
    require_ok(sluice_exchange_query(party->exchange, &info));
    require(info.kind == SLUICE_EXCHANGE_TCP && info.rank == party->attr.rank &&
                info.ranks == party->attr.ranks && info.source[0],
            "kind %u, rank %u of %u", info.kind, info.rank, info.ranks);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        party_calls(party, sizes[i]);
    }
    require_ok(
        sluice_exchange_locality(party->exchange, &local_rank, &local_ranks, party->deadline));
    require(local_rank == info.rank && local_ranks == info.ranks, "%u of %u", local_rank,
            local_ranks);
    require_result(sluice_exchange_missing(party->exchange, NULL, 0), 0);
}

TEST(all_calls_of_all_sizes, .times = COUNT(counts))
{
    struct parties parties;
    parties_make(&parties, counts[_i], LONG);
    int fds = count_fds();
    parties_run(&parties, call_all_sizes);
    require_all_ok(&parties);
    require(settle_fds(fds) == fds, "%d fds, were %d", count_fds(), fds);
}

static void call_large(struct party *party)
{
    party_calls(party, SLUICE_MAX_EXCHANGE_BYTES);
    party_calls(party, 3);
}

/* More bytes than rank 0 holds at once. */
TEST(the_largest_blocks)
{
    struct parties parties;
    run_ranks(&parties, 5, LONG, call_large);
    require_all_ok(&parties);
}

TEST(a_single_rank_needs_no_root)
{
    struct parties parties;
    parties_make(&parties, 1, LONG);
    parties.party[0].attr.root = NULL;
    parties_run(&parties, call_all_sizes);
    require_all_ok(&parties);
}

TEST(roots_by_name_and_by_ipv6, .times = 2)
{
    static const char *const hosts[] = {"localhost", "[::1]"};
    struct parties parties;
    parties_make(&parties, 3, SLUICE_S(5));
    snprintf(parties.root, sizeof(parties.root), "%s:%u", hosts[_i], parties.port);
    parties_run(&parties, call_all_sizes);
    if (_i == 1 && parties.party[0].error == -EINVAL) {
        /* A host without IPv6. */
        party_require(&parties.party[0], -EINVAL, "listen ::1");
        return;
    }
    require_all_ok(&parties);
}

/* Rank 0, or rank 3. */
/* The program passes a deadline without time left; the other ranks do not notice such a call. */
static void call_without_time(struct party *party)
{
    uint64_t to[3] = {0}, from[3];
    uint32_t rank, ranks;
    for (uint32_t i = 0; i <= party->attr.rank; i++) {
        require_error(sluice_exchange_alltoall(party->exchange, to, from, 8, 0), -ETIMEDOUT, "0");
        require_error(sluice_exchange_barrier(party->exchange, 0), -ETIMEDOUT, "nothing was sent");
        require_error(sluice_exchange_locality(party->exchange, &rank, &ranks, 0), -ETIMEDOUT, "0");
    }
    party_calls(party, 100);
    require_error(sluice_exchange_allgather(party->exchange, to, from, 8, 0), -ETIMEDOUT, "0");
    party_calls(party, 100);
}

TEST(calls_without_time)
{
    struct parties parties;
    run_ranks(&parties, 3, 0, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        party_require(&parties.party[i], -ETIMEDOUT, "deadline is 0 no other rank");
    }
    run_ranks(&parties, 3, LONG, call_without_time);
    require_all_ok(&parties);
}

TEST(a_late_rank, .times = 2)
{
    struct parties parties;
    parties_make(&parties, 5, LONG);
    parties.party[_i == 0 ? 0 : 3].delay = SLUICE_MS(400);
    parties_run(&parties, call_all_sizes);
    require_all_ok(&parties);
}

static void call_slowly(struct party *party)
{
    for (int i = 0; i < 4; i++) {
        if (party->attr.rank == 3) {
            let_pass(SLUICE_MS(100));
        }
        party_calls(party, 320);
    }
}

TEST(a_slow_rank)
{
    struct parties parties;
    run_ranks(&parties, 5, LONG, call_slowly);
    require_all_ok(&parties);
}

static void leave_or_call(struct party *party)
{
    uint8_t own[64] = {0};
    uint8_t all[PARTIES * 64];
    party_calls(party, 16);
    if (party->attr.rank == 2) {
        return;
    }
    int error = sluice_exchange_allgather(party->exchange, own, all, sizeof(own), party->deadline);
    require(party_failed(party, error), "it succeeded");
    require_error(sluice_exchange_barrier(party->exchange, party->deadline), -ENOTCONN, "failed");
}

TEST(a_rank_that_left_is_named_to_all)
{
    static const uint32_t gone[] = {2};
    struct parties parties;
    parties_make(&parties, 5, LONG);
    int64_t start = fair_now();
    parties_run(&parties, leave_or_call);
    require(fair_now() - start < SOON, "they waited for the deadline");
    for (uint32_t i = 0; i < 5; i++) {
        if (i != 2) {
            party_require(&parties.party[i], -ECONNRESET, "rank 2 gone");
            party_require_missing(&parties.party[i], gone, 1);
        }
    }
}

static void leave_root(struct party *party)
{
    if (party->attr.rank != 0) {
        require(party_failed(party, sluice_exchange_barrier(party->exchange, party->deadline)),
                "it succeeded");
    }
}

TEST(rank_0_that_left_is_named)
{
    static const uint32_t root[] = {0};
    struct parties parties;
    run_ranks(&parties, 3, LONG, leave_root);
    for (uint32_t i = 1; i < 3; i++) {
        party_require(&parties.party[i], -ECONNRESET, "rank 0 gone");
        party_require_missing(&parties.party[i], root, 1);
    }
}

static pthread_barrier_t meeting;

/* Ranks 1 and 3 have opened the exchange, and make no call. */
static void miss_call(struct party *party)
{
    uint32_t rank = party->attr.rank;
    party_calls(party, 16);
    if (rank != 1 && rank != 3) {
        int error = sluice_exchange_barrier(party->exchange, SLUICE_S(1));
        require(party_failed(party, error), "it succeeded");
    }
    pthread_barrier_wait(&meeting);
}

TEST(deadline_names_the_missing_ranks)
{
    static const uint32_t missing[] = {1, 3};
    struct parties parties;
    parties_make(&parties, 5, LONG);
    pthread_barrier_init(&meeting, NULL, 5);
    parties_run(&parties, miss_call);
    pthread_barrier_destroy(&meeting);
    for (uint32_t i = 0; i < 5; i += 2) {
        party_require(&parties.party[i], -ETIMEDOUT, "barrier ranks 1 and 3 did not come");
        party_require_missing(&parties.party[i], missing, 2);
    }
}

/* Rank 0 has opened the exchange and does not call; it gets the error in its next call. */
static void miss_root(struct party *party)
{
    int64_t deadline = party->attr.rank == 0 ? party->deadline : SLUICE_MS(200);
    if (party->attr.rank == 0) {
        pthread_barrier_wait(&meeting);
    }
    int error = sluice_exchange_barrier(party->exchange, deadline);
    require(party_failed(party, error), "it succeeded");
    if (party->attr.rank != 0) {
        pthread_barrier_wait(&meeting);
    }
}

TEST(rank_0_that_does_not_call_is_missing)
{
    static const uint32_t root[] = {0};
    struct parties parties;
    parties_make(&parties, 2, LONG);
    pthread_barrier_init(&meeting, NULL, 2);
    parties_run(&parties, miss_root);
    pthread_barrier_destroy(&meeting);
    party_require(&parties.party[1], -ETIMEDOUT,
                  "rank 0 did not come before the deadline of rank 1 (200 ms)");
    party_require_missing(&parties.party[1], root, 1);
    party_require(&parties.party[0], -ETIMEDOUT, "deadline of rank 1");
}

/* Rank 1 has given up when rank 0 comes; the others wait, except rank 3 of a job with a name. */
static void come_late(struct party *party)
{
    uint32_t rank = party->attr.rank;
    bool absent = rank == 3 && party->attr.job;
    int64_t deadline = rank == 1 ? SLUICE_MS(100) : party->deadline;
    party_calls(party, 16);
    if (rank == 0) {
        let_pass(SLUICE_MS(400));
    }
    if (!absent) {
        require(party_failed(party, sluice_exchange_barrier(party->exchange, deadline)),
                "it succeeded");
    }
    pthread_barrier_wait(&meeting);
}

TEST(a_late_rank_0_names_itself, .times = 2)
{
    static const uint32_t missing[] = {0, 3};
    struct parties parties;
    parties_make(&parties, 4, LONG);
    for (uint32_t i = 0; i < 4; i++) {
        parties.party[i].attr.job = _i == 0 ? NULL : "without rank 3";
    }
    pthread_barrier_init(&meeting, NULL, 4);
    parties_run(&parties, come_late);
    pthread_barrier_destroy(&meeting);
    for (uint32_t i = 0; i < 3U + (_i == 0); i++) {
        if (i != 1) {
            party_require(&parties.party[i], -ETIMEDOUT,
                          _i == 0
                              ? "rank 0 came after the deadline of rank 1"
                              : "rank 0 came after the deadline of rank 1; missing too: rank 3");
            party_require_missing(&parties.party[i], missing, 1 + (uint32_t)_i);
        }
    }
    party_require(&parties.party[1], -ETIMEDOUT, "rank 0 deadline of rank 1 (100 ms)");
}

/*
 * Rank 4 has opened the exchange and makes no call: the others have sent their data of the first
 * round.
 */
static void miss_alltoall(struct party *party)
{
    size_t bytes = SLUICE_MAX_EXCHANGE_BYTES;
    uint8_t *to = calloc(5, bytes);
    uint8_t *from = calloc(5, bytes);
    require(to && from, "no memory");
    if (party->attr.rank != 4) {
        int64_t deadline = party->attr.rank == 0 ? SLUICE_S(1) : party->deadline;
        int error = sluice_exchange_alltoall(party->exchange, to, from, bytes, deadline);
        require(party_failed(party, error), "it succeeded");
    }
    pthread_barrier_wait(&meeting);
    free(to);
    free(from);
}

TEST(deadline_in_a_round_names_the_missing_ranks)
{
    static const uint32_t missing[] = {4};
    struct parties parties;
    parties_make(&parties, 5, LONG);
    pthread_barrier_init(&meeting, NULL, 5);
    parties_run(&parties, miss_alltoall);
    pthread_barrier_destroy(&meeting);
    for (uint32_t i = 0; i < 4; i++) {
        party_require(&parties.party[i], -ETIMEDOUT, "alltoall rank 4 did not come");
        party_require_missing(&parties.party[i], missing, 1);
    }
}

TEST(more_ranks_than_file_descriptors)
{
    struct parties parties;
    struct rlimit limit, low;
    int64_t start = fair_now();
    parties_make(&parties, 1, LONG);
    parties.party[0].attr.ranks = 64;
    require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "%m");
    low = limit;
    low.rlim_cur = 66;
    require(setrlimit(RLIMIT_NOFILE, &low) == 0, "%m");
    parties_run(&parties, NULL);
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%m");
    party_require(&parties.party[0], -EMFILE, "rank 0 of 64 ranks needs 64 limit is 66");
    require(fair_now() - start < SOON, "it waited for the deadline");
}

TEST(a_rank_that_never_comes_is_named_to_all)
{
    struct parties parties;
    parties_make(&parties, 5, LONG);
    parties.party[3].absent = true;
    parties.party[1].deadline = SLUICE_S(2); /* it gives up on behalf of all */
    int64_t start = fair_now();
    parties_run(&parties, NULL);
    require(fair_now() - start < SOON, "they waited for their own deadlines");
    for (uint32_t i = 0; i < 5; i++) {
        if (i != 3) {
            party_require(&parties.party[i], -ETIMEDOUT, "rank 3 did not come");
        }
    }
}

TEST(rank_0_that_never_comes_is_named)
{
    struct parties parties;
    parties_make(&parties, 3, SLUICE_MS(300));
    parties.party[0].absent = true;
    parties_run(&parties, NULL);
    party_require(&parties.party[1], -ETIMEDOUT, "rank 0 did not come");
    party_require(&parties.party[2], -ETIMEDOUT, "rank 0 did not come");
}

static void call_other(struct party *party)
{
    uint8_t own[8] = {0};
    uint8_t all[PARTIES * 8];
    bool odd = party->attr.rank == 1;
    int error;
    if (odd && party->attr.job[0] == 'k') {
        error = sluice_exchange_barrier(party->exchange, party->deadline);
    } else if (odd && party->attr.job[0] == 'b') {
        error = sluice_exchange_allgather(party->exchange, own, all, 4, party->deadline);
    } else {
        error = sluice_exchange_allgather(party->exchange, own, all, 8, party->deadline);
    }
    require(party_failed(party, error), "it succeeded");
}

/* Another kind of call, and another number of bytes. */
TEST(ranks_that_disagree_on_a_call, .times = 2)
{
    static const char *const words[] = {"rank 1 call 1, barrier rank 0 allgather of 8 bytes",
                                        "rank 1 call 1, allgather of 4 bytes rank 0 of 8 bytes"};
    struct parties parties;
    parties_make(&parties, 4, LONG);
    for (uint32_t i = 0; i < 4; i++) {
        parties.party[i].attr.job = _i == 0 ? "kind" : "bytes";
    }
    parties_run(&parties, call_other);
    for (uint32_t i = 0; i < 4; i++) {
        party_require(&parties.party[i], -EPROTO, words[_i]);
    }
}

/* The processes of a group, of which one is killed in the middle of a call. */
static void be_killed(struct rank *rank)
{
    struct party party = {.attr = {.size = sizeof(party.attr),
                                   .kind = SLUICE_EXCHANGE_TCP,
                                   .rank = rank->index,
                                   .ranks = rank->size,
                                   .root = rank->argument}};
    party.deadline = LONG;
    party.exchange = made(sluice_exchange_open(&party.attr, LONG));
    party_calls(&party, 320);
    rank_barrier(rank);
    if (rank->index == 3) {
        rank_await_death(rank);
    }
    if (rank->index == 1) {
        rank_kill(rank, 3);
    }
    require_error(sluice_exchange_barrier(party.exchange, LONG), -ECONNRESET, "rank 3 gone");
    sluice_exchange_close(party.exchange);
}

TEST(a_process_that_is_killed)
{
    char root[64];
    snprintf(root, sizeof(root), "127.0.0.1:%u", find_port());
    group_run(5, be_killed, root, 20);
}

int main(void)
{
    return RUN_GROUPS("exchange_tcp", {"tcp", WIRE_TCP, 60});
}
