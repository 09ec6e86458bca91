/* SPDX-License-Identifier: MIT */
/*
 * The exchange over TCP with ranks that are impossible, come twice, late, or never: a false rank is
 * refused alone, and all ranks get the names of the missing ones.
 */
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/process.h"
#include "liar.h"

TEST(d3_another_job)
{
    static struct party stranger;
    struct parties parties;
    start_root_of(&parties, 3, LONG);
    stranger = parties.party[2];
    stranger.attr.job = "another";
    party_start(&stranger, call_all);
    pthread_join(stranger.thread, NULL);
    party_require(&stranger, -EPROTO, "job \"\", not \"another\"");
    finish_all(&parties);
}

/*
 * A process that claims a rank already there is refused with the reason; the others are not
 * delayed.
 */
TEST(d4_a_rank_twice)
{
    static const char *words = "rank 2: one at 127.0.0.1: one at 127.0.0.1:";
    static struct party twin;
    struct parties parties;
    start_root_of(&parties, 4, LONG);
    twin = parties.party[2];
    int fd = join(&parties, 4, 2);
    party_start(&twin, call_all);
    pthread_join(twin.thread, NULL);
    party_require(&twin, -EEXIST, words);
    close(fd);
    finish_all(&parties);
}

/* All ranks that are present, and those that come later, get the reason in the end. */
TEST(d4_other_numbers_of_ranks)
{
    struct parties parties;
    start_root_of(&parties, 4, SLUICE_S(2));
    int fd = join(&parties, 4, 1);
    parties.party[2].attr.ranks = 3;
    party_start(&parties.party[2], call_all);
    pthread_join(parties.party[2].thread, NULL);
    party_require(&parties.party[2], -EPROTO, "rank 2 at 127.0.0.1: 3 ranks, rank 0 says 4");
    parties.party[2].absent = true;
    party_start(&parties.party[3], call_all);
    parties_join(&parties);
    party_require(&parties.party[0], -EPROTO, "3 ranks, rank 0 says 4 refused missing: rank 2");
    party_require(&parties.party[3], -EPROTO, "3 ranks, rank 0 says 4 refused missing: rank 2");
    require_verdict(fd, "there are 3 ranks, rank 0 says 4");
}

/* One hello of a stranger who speaks the protocol ends no run. */
TEST(d4_impossible_ranks, .times = 4)
{
    static const uint32_t ranks[] = {0, 4, UINT32_MAX, 1};
    struct parties parties;
    struct talk talk;
    char words[60];
    start_root_of(&parties, 4, LONG);
    int liar = dial_port(parties.port);
    make_hello(talk.said, _i == 3 ? 5 : 4, ranks[_i]);
    say(liar, talk.said, HELLO);
    snprintf(words, sizeof(words), "rank %u, which can be 1 to 3", ranks[_i]);
    require_refused(liar, &talk, 0, _i == 3 ? "there are 5 ranks, rank 0 says 4" : words, "a liar");
    finish_all(&parties);
}

/*
 * Processes that claim a present rank again and again are refused, and the ranks become complete.
 */
TEST(d4_false_ranks_without_end)
{
    struct parties parties;
    struct talk talk;
    int liars[100];
    size_t count = 0;
    int64_t start = fair_now();
    parties_make(&parties, 3, LONG);
    party_start(&parties.party[0], NULL);
    int fd = join(&parties, 3, 1);
    party_start(&parties.party[2], NULL);
    /* Continue until rank 0 no longer listens. */
    uint8_t started[FRAME];
    while (recv(fd, started, FRAME, MSG_PEEK | MSG_DONTWAIT) < 0 && count < COUNT(liars)) {
        uint16_t port = parties.port;
        liars[count] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (connect(liars[count], (struct sockaddr *)&at, sizeof(at)) == 0) {
            make_hello(talk.said, 3, 1);
            say(liars[count], talk.said, HELLO);
            (void)prove(liars[count], &talk);
        }
        count++;
        let_pass(SLUICE_MS(300));
    }
    require(hear(fd, started, FRAME) && started[0] == STARTED, "they did not become complete");
    require(fair_now() - start < SOON, "the liars held them up");
    close(fd);
    parties_join(&parties);
    party_require(&parties.party[2], 0, "");
    for (size_t i = 0; i < count; i++) {
        close(liars[i]);
    }
}

/* Rank 3 of 4 misbehaves; requires that ranks 0 to 2 fail and name it. */
static void require_all(struct parties *parties, int error, const char *words)
{
    parties_join(parties);
    for (uint32_t i = 0; i < parties->count - 1; i++) {
        party_require(&parties->party[i], error, words);
    }
}

static void start_without_last(struct parties *parties, int64_t deadline)
{
    parties_make(parties, 4, deadline);
    parties->party[3].absent = true;
    parties_start(parties, call_all);
}

/* Lets rank 3 come, unless it has come, and requires success. */
static void finish_last(struct parties *parties)
{
    if (parties->party[3].absent) {
        party_start(&parties->party[3], call_all);
    }
    parties_join(parties);
    require_all_ok(parties);
}

TEST(d5_missing)
{
    struct parties parties;
    start_without_last(&parties, SLUICE_S(1));
    require_all(&parties, -ETIMEDOUT, "rank 3 did not come");
}

TEST(d5_late)
{
    struct parties parties;
    parties_make(&parties, 4, LONG);
    parties.party[3].delay = short_run() ? SLUICE_MS(700) : SLUICE_S(20);
    parties_run(&parties, call_all);
    require_all(&parties, 0, "");
}

TEST(d5_dying)
{
    struct parties parties;
    /* If all had come before this rank is gone, they would have started. */
    start_root_of(&parties, 4, SLUICE_MS(700));
    close(join(&parties, 4, 3));
    party_start(&parties.party[1], call_all);
    party_start(&parties.party[2], call_all);
    require_all(&parties, -ETIMEDOUT, "rank 3 did not come rank 3 at 127.0.0.1: there and is gone");
}

/*
 * Connections as of a rank that gave up waiting for rank 0: they are closed, and their hellos still
 * arrive.
 */
TEST(d5_dialing_again)
{
    struct parties parties;
    uint8_t hello[HELLO];
    start_root_of(&parties, 4, LONG);
    make_hello(hello, 4, 3);
    for (int i = 0; i < 20; i++) {
        int fd = dial_port(parties.port);
        say(fd, hello, HELLO);
        close(fd);
    }
    close(join(&parties, 4, 3));
    finish_all(&parties);
}

/* The second connection is there before the end of the first one. */
TEST(d5_dialing_again_early)
{
    struct parties parties;
    start_root_of(&parties, 4, LONG);
    int fd = join(&parties, 4, 3);
    party_start(&parties.party[3], call_all);
    let_pass(SLUICE_MS(200));
    close(fd);
    party_start(&parties.party[1], call_all);
    party_start(&parties.party[2], call_all);
    finish_last(&parties);
}

/* The missing ranks in the log. */
static char missing[4096];

static void keep_missing(uint32_t level, const char *line, void *user)
{
    const char *found = strstr(line, "missing ranks ");
    (void)user;
    if (level == SLUICE_LOG_ERROR && found) {
        size_t length = strlen(missing);
        snprintf(missing + length, sizeof(missing) - length, "%s%s", length > 0 ? "," : "",
                 found + strlen("missing ranks "));
    }
}

/* Odd ranks and the last ones are missing, more than fit into a line of the log. */
TEST(d5_all_that_are_missing)
{
    struct parties parties;
    char expected[4096] = "1";
    int fds[149];
    parties_make(&parties, 2, SLUICE_S(8));
    parties.party[0].attr.ranks = 400;
    parties.party[1].absent = true;
    require_ok(sluice_log_set(SLUICE_LOG_ERROR, keep_missing, NULL));
    parties_start(&parties, NULL);
    for (uint32_t i = 0; i < COUNT(fds); i++) {
        size_t length = strlen(expected);
        fds[i] = join(&parties, 400, 2 * i + 2);
        snprintf(expected + length, sizeof(expected) - length, ",%u", 2 * i + 3);
    }
    parties_join(&parties);
    strcat(expected, "-399");
    party_require(&parties.party[0], -ETIMEDOUT, "ranks 1, 3, 5, 7, 9, 11, 13, 15 and 242 others");
    require(strcmp(missing, expected) == 0, "'%s', not '%s'", missing, expected);
    for (uint32_t i = 0; i < COUNT(fds); i++) {
        close(fds[i]);
    }
}

/* Rank 0 cannot accept rank 1, though it had descriptors when it began. */
TEST(d5_no_file_descriptor)
{
    struct parties parties;
    struct rlimit limit, low;
    uint8_t hello[HELLO];
    require_ok(sluice_log_set(SLUICE_LOG_NONE, NULL, NULL));
    start_root_of(&parties, 3, SLUICE_S(5));
    int stranger = dial_port(parties.port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    close(join(&parties, 3, 2));
    let_pass(SLUICE_MS(50));
    require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "%m");
    low = limit;
    low.rlim_cur = 3;
    require(setrlimit(RLIMIT_NOFILE, &low) == 0, "%m");
    dial_with(fd, parties.port);
    make_hello(hello, 3, 1);
    say(fd, hello, HELLO);
    parties_join(&parties);
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%m");
    party_require(&parties.party[0], -EMFILE, "could not accept all ranks missing: ranks 1 and 2");
    close(fd);
    close(stranger);
}

/* Strangers in another process take no descriptor that a rank needs. */
TEST(d5_few_file_descriptors)
{
    struct parties parties;
    struct rlimit limit, low;
    require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "%m");
    low = limit;
    low.rlim_cur = 64;
    require(setrlimit(RLIMIT_NOFILE, &low) == 0, "%m");
    start_root_of(&parties, 4, LONG);
    pid_t strangers = fork();
    if (strangers == 0) {
        setrlimit(RLIMIT_NOFILE, &limit);
        for (int i = 0; i < 200; i++) {
            dial_port(parties.port);
        }
        pause();
        _exit(0);
    }
    let_pass(SLUICE_MS(200));
    int64_t start = fair_now();
    finish_all(&parties);
    require(fair_now() - start < SOON, "the strangers held them up");
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%m");
    kill(strangers, SIGKILL);
    waitpid(strangers, NULL, 0);
}

/* One byte every 20 ms: the greeting is incomplete at the deadline. */
TEST(d5_slow)
{
    struct parties parties;
    uint8_t hello[HELLO];
    start_without_last(&parties, SLUICE_S(1));
    int fd = dial_port(parties.port);
    make_hello(hello, 4, 3);
    for (int i = 0; i < 60; i++) {
        say(fd, hello + i, 1);
        let_pass(SLUICE_MS(20));
    }
    require_all(&parties, -ETIMEDOUT, "rank 3 did not come");
    close(fd);
}

static pthread_barrier_t meeting;

static void gather_large(struct party *party)
{
    size_t bytes = SLUICE_MAX_EXCHANGE_BYTES;
    uint8_t *own = calloc(1, bytes);
    uint8_t *all = calloc(party->attr.ranks, bytes);
    require(own && all, "no memory");
    int64_t deadline = party->attr.rank == 0 ? SLUICE_S(6) : party->deadline;
    int error = sluice_exchange_allgather(party->exchange, own, all, bytes, deadline);
    if (!party_failed(party, error)) {
        /* A rank that has its result gets the error in its next call. */
        error = sluice_exchange_barrier(party->exchange, party->deadline);
        require(party_failed(party, error), "it succeeded");
    }
    pthread_barrier_wait(&meeting);
    free(own);
    free(all);
}

/*
 * Rank 7 sends its part and never reads its result, which is larger than the buffers of a socket.
 */
TEST(d5_result_that_is_not_read)
{
    static const uint32_t deaf[] = {7};
    struct parties parties;
    uint8_t frame[FRAME];
    uint8_t *bytes = calloc(1, SLUICE_MAX_EXCHANGE_BYTES);
    require(bytes, "no memory");
    parties_make(&parties, 8, LONG);
    parties.party[7].absent = true;
    pthread_barrier_init(&meeting, NULL, 7);
    parties_start(&parties, gather_large);
    int fd = join(&parties, 8, 7);
    require(hear(fd, frame, FRAME) && frame[0] == STARTED, "it does not start");
    make_frame(frame, ALLGATHER, 1, SLUICE_MAX_EXCHANGE_BYTES);
    say(fd, frame, FRAME);
    say(fd, bytes, SLUICE_MAX_EXCHANGE_BYTES);
    require_all(&parties, -ETIMEDOUT, "rank 7 did not take the result");
    for (uint32_t i = 0; i < 7; i++) {
        party_require_missing(&parties.party[i], deaf, 1);
    }
    pthread_barrier_destroy(&meeting);
    close(fd);
    free(bytes);
}

int main(void)
{
    const struct tests cases[] = {{"tcp", WIRE_TCP, 90}};
    /* Each refusal logs a warning, and there are many. */
    if (sluice_log_set(SLUICE_LOG_ERROR, NULL, NULL) != 0) {
        return EXIT_FAILURE;
    }
    return run_groups("exchange_refused", cases, COUNT(cases));
}
