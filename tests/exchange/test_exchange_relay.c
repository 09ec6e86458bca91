/* SPDX-License-Identifier: MIT */
/*
 * Allgathers of many ranks, whose result is passed on along a tree: every rank gets it, whatever
 * happens to the ranks that pass it on, and failures are those of an exchange without a tree.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../support/memory.h"
#include "../support/process.h"
#include "liar.h"

#define MANY 40
#define BYTES_EACH 192
#define BODY 56

enum { RELAY = 8, TAKEN = 9, DONE = 11 };

static void gather_many(struct party *party)
{
    static __thread uint8_t all[MANY * BYTES_EACH];
    uint8_t own[BYTES_EACH];
    for (uint32_t round = 0; round < 3; round++) {
        memset(own, (int)(party->attr.rank + round), sizeof(own));
        int error =
            sluice_exchange_allgather(party->exchange, own, all, sizeof(own), party->deadline);
        if (party_failed(party, error)) {
            return;
        }
        for (uint32_t i = 0; i < party->attr.ranks; i++) {
            value_check(all + (size_t)i * BYTES_EACH, BYTES_EACH, (uint8_t)(i + round));
        }
    }
}

TEST(every_rank_gets_all)
{
    static const uint32_t counts[] = {31, 32, 33, MANY};
    for (size_t i = 0; i < COUNT(counts); i++) {
        static struct parties parties;
        run_ranks(&parties, counts[i], LONG, gather_many);
        require_all_ok(&parties);
    }
}

/* Rank 1 is the test's own, and passes results on at this port. */
struct liar {
    struct parties *parties;
    int fd, listener;
    uint16_t port;
};

static void liar_open(struct liar *liar, struct parties *parties, int64_t deadline)
{
    uint8_t started[FRAME];
    parties_make(parties, MANY, deadline);
    parties->party[1].absent = true;
    parties_start(parties, gather_many);
    liar->parties = parties;
    liar->fd = join(parties, MANY, 1);
    liar->port = 0;
    liar->listener = listen_at(&liar->port);
    require(hear(liar->fd, started, FRAME) && started[0] == STARTED, "it does not start");
}

/* Gives its part of a round, and receives the whole, which comes from rank 0. */
static void liar_gather(const struct liar *liar, uint64_t round)
{
    static uint8_t all[MANY * BYTES_EACH];
    uint8_t frame[FRAME + BYTES_EACH], answer[FRAME + BODY];
    make_frame(frame, ALLGATHER, round + 1, BYTES_EACH);
    frame[1] = (uint8_t)(liar->port >> 8);
    frame[2] = (uint8_t)liar->port;
    memset(frame + FRAME, (int)(1 + round), BYTES_EACH);
    say(liar->fd, frame, sizeof(frame));
    require(hear(liar->fd, answer, sizeof(answer)) && answer[0] == RELAY, "no result");
    require(hear(liar->fd, all, sizeof(all)), "no result");
    value_check(all + 5 * BYTES_EACH, BYTES_EACH, (uint8_t)(5 + round));
}

static void liar_take(const struct liar *liar, uint64_t round)
{
    uint8_t frame[FRAME];
    make_frame(frame, TAKEN, round + 1, BYTES_EACH);
    say(liar->fd, frame, sizeof(frame));
    require(hear(liar->fd, frame, sizeof(frame)) && frame[0] == DONE, "not all have taken it");
}

/* Ways of a rank not to pass the result on. */
enum { REFUSES, HANGS_UP, LIES, IS_SILENT, WAYS };

static void fail_children(struct liar *liar, int way)
{
    static const uint8_t wrong[16];
    if (way == REFUSES) {
        close(liar->listener);
        return;
    }
    for (int i = 0; i < 8 && way != IS_SILENT; i++) {
        int fd = accept(liar->listener, NULL, NULL);
        require(fd >= 0, "%m");
        if (way == LIES) {
            say(fd, wrong, sizeof(wrong));
        }
        close(fd);
    }
}

TEST(a_rank_that_does_not_pass_it_on, .times = WAYS)
{
    static struct parties parties;
    struct liar liar;
    liar_open(&liar, &parties, LONG);
    for (uint64_t round = 0; round < 3; round++) {
        liar_gather(&liar, round);
        if (round == 0) {
            fail_children(&liar, _i);
        }
        /* From the second round on it has no port. */
        liar.port = 0;
        liar_take(&liar, round);
    }
    parties_join(&parties);
    for (uint32_t i = 0; i < MANY; i++) {
        require(i == 1 || parties.party[i].error == 0, "rank %u: %s", i, parties.party[i].text);
    }
    close(liar.fd);
    if (_i != REFUSES) {
        close(liar.listener);
    }
}

TEST(a_rank_that_dies_before_it_has_the_result)
{
    static struct parties parties;
    struct liar liar;
    liar_open(&liar, &parties, LONG);
    liar_gather(&liar, 0);
    close(liar.fd);
    close(liar.listener);
    parties_join(&parties);
    for (uint32_t i = 0; i < MANY; i++) {
        if (i != 1) {
            party_require(&parties.party[i], -ECONNRESET, "rank 1 gone");
        }
    }
}

TEST(a_rank_that_does_not_take_the_result)
{
    static const uint32_t missing[] = {1};
    static struct parties parties;
    struct liar liar;
    liar_open(&liar, &parties, SLUICE_S(8));
    liar_gather(&liar, 0);
    close(liar.listener);
    parties_join(&parties);
    for (uint32_t i = 0; i < MANY; i++) {
        if (i != 1) {
            party_require(&parties.party[i], -ETIMEDOUT, "rank 1 did not take the result");
            party_require_missing(&parties.party[i], missing, 1);
        }
    }
    close(liar.fd);
}

/* A rank that gives up while the result is passed on ends the call for all, at once. */
TEST(a_rank_that_gives_up_meanwhile)
{
    static struct parties parties;
    struct liar liar;
    uint8_t frame[FRAME];
    int64_t start = fair_now();
    liar_open(&liar, &parties, LONG);
    liar_gather(&liar, 0);
    make_frame(frame, GAVE_UP, 1, 0);
    say(liar.fd, frame, sizeof(frame));
    close(liar.listener);
    parties_join(&parties);
    require(fair_now() - start < SOON, "%lld ms", (long long)(fair_now() - start) / 1000000);
    for (uint32_t i = 0; i < MANY; i++) {
        if (i != 1) {
            party_require(&parties.party[i], -ETIMEDOUT, "rank 1");
        }
    }
    close(liar.fd);
}

/*
 * Rank 0 is the test's own, and stops in the middle of what it sends. At its deadline, rank 1 says
 * so and leaves: what comes then has no place any more.
 */
TEST(a_deadline_in_the_middle_of_a_result, .times = 2)
{
    static struct parties parties;
    static uint8_t part[2000];
    uint8_t frame[FRAME + BYTES_EACH];
    struct talk talk;
    uint16_t port = 0;
    int listener = listen_at(&port), fd;
    parties_make(&parties, MANY, SLUICE_S(1));
    snprintf(parties.root, sizeof(parties.root), "127.0.0.1:%u", port);
    party_start(&parties.party[1], gather_many);
    fd = accept(listener, NULL, NULL);
    require(fd >= 0, "%m");
    let_in(fd, &talk);
    make_frame(frame, STARTED, 0, 0);
    say(fd, frame, FRAME);
    require(hear(fd, frame, sizeof(frame)) && frame[0] == ALLGATHER, "it gives nothing");
    make_frame(frame, RELAY, 1, BYTES_EACH);
    say(fd, frame, FRAME);
    /* A part of the tree's body, or all of it, and a part of the result. */
    say(fd, part, _i == 0 ? BODY / 2 : BODY + 1000);
    require(hear(fd, frame, FRAME) && frame[0] == GAVE_UP, "word %u", frame[0]);
    say(fd, part, sizeof(part));
    pthread_join(parties.party[1].thread, NULL);
    party_require(&parties.party[1], -ETIMEDOUT, "deadline of rank 1 in the middle of the result");
    close(fd);
    close(listener);
}

/* Ranks that came over a Unix socket have no address at which others could find them. */
TEST(ranks_of_a_unix_socket)
{
    static struct parties parties;
    char root[24];
    snprintf(root, sizeof(root), "@%016llx", (unsigned long long)clock_now() << 20 | getpid());
    parties_make(&parties, MANY, SOON);
    for (uint32_t i = 0; i < MANY; i++) {
        parties.party[i].attr.root = root;
    }
    parties_run(&parties, gather_many);
    require_all_ok(&parties);
}

/* Returns the number of listeners of this process, and of those at all addresses. */
static uint32_t count_listeners(uint32_t *everywhere)
{
    static const struct in6_addr any;
    uint32_t count = 0;
    *everywhere = 0;
    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_storage at;
        const struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&at;
        const struct sockaddr_in *in = (struct sockaddr_in *)&at;
        socklen_t length = sizeof(at), size = sizeof(int);
        int listens = 0;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0 ||
            getsockname(fd, (struct sockaddr *)&at, &length) != 0) {
            continue;
        }
        count++;
        *everywhere += at.ss_family == AF_INET ? in->sin_addr.s_addr == INADDR_ANY
                                               : memcmp(&in6->sin6_addr, &any, sizeof(any)) == 0;
    }
    return count;
}

static uint32_t listeners, listeners_everywhere;

static void count_in_rank_0(struct party *party)
{
    gather_many(party);
    if (party->attr.rank == 0) {
        listeners = count_listeners(&listeners_everywhere);
    }
    party_failed(party, sluice_exchange_barrier(party->exchange, party->deadline));
}

/* Ranks listen where rank 0 sees them, unless SLUICE_TCP_ADDRESS wants another address. */
TEST(listeners_at_one_address)
{
    static const char *const allowed[] = {NULL, "127.0.0.1", "127.0.0.2"};
    for (size_t i = 0; i < COUNT(allowed); i++) {
        static struct parties parties;
        uint32_t before_everywhere, before = count_listeners(&before_everywhere);
        if (allowed[i] != NULL) {
            setenv("SLUICE_TCP_ADDRESS", allowed[i], 1);
        }
        run_ranks(&parties, MANY, LONG, count_in_rank_0);
        require_all_ok(&parties);
        require(listeners_everywhere == before_everywhere, "%u listeners at all addresses",
                listeners_everywhere);
        require(listeners - before == (i < 2 ? MANY - 1 : 0), "%u listeners with address %s",
                listeners - before, allowed[i]);
    }
    unsetenv("SLUICE_TCP_ADDRESS");
}

int main(void)
{
    const struct tests cases[] = {{"tcp", WIRE_TCP, 90}};
    if (sluice_log_set(SLUICE_LOG_ERROR, NULL, NULL) != 0) {
        return EXIT_FAILURE;
    }
    return run_groups("exchange_relay", cases, COUNT(cases));
}
