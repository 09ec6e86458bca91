/* SPDX-License-Identifier: MIT */
/*
 * Exchanges over PMIx whose server misbehaves: a pretend libpmix is loaded before the library asks
 * for one of this name. check-launch.sh tests a real server.
 */
#include "config.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/process.h"
#include "../support/suite.h"

#define SOON SLUICE_MS(200)
#define LIMIT SLUICE_S(20)

static unsigned warnings;
static char last_line[512];

static void count_line(uint32_t level, const char *line, void *user)
{
    (void)user;
    warnings += level <= SLUICE_LOG_WARN;
    snprintf(last_line, sizeof(last_line), "%s", line);
}

/* Sets the variables of a launcher of two ranks, and the fault of its server. */
static void start(const char *wrong)
{
    setenv("PMIX_RANK", "0", 1);
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("FAKE_PMIX", wrong, 1);
    require_ok(sluice_log_set(SLUICE_LOG_WARN, count_line, NULL));
}

static struct sluice_exchange *open_as(uint32_t kind, int64_t deadline)
{
    struct sluice_exchange_attr attr = {.size = sizeof(attr), .kind = kind};
    return sluice_exchange_open(&attr, deadline);
}

static struct sluice_exchange *open_well(void)
{
    struct sluice_exchange *exchange = made(sluice_exchange_open(NULL, LIMIT));
    struct sluice_exchange_info info = {.size = sizeof(info)};
    require_ok(sluice_exchange_query(exchange, &info));
    require_result(info.kind, SLUICE_EXCHANGE_PMIX);
    require_result(info.ranks, 2);
    return exchange;
}

/* Requires an end within a second after the deadline, as the page documents. */
static void require_soon(int64_t since)
{
    int64_t taken = clock_now() - since;
    require(taken >= SOON && taken < SOON + SLUICE_S(1), "%lld ns", (long long)taken);
}

static void give_up_opening(const char *wrong, const char *text)
{
    int64_t since;
    start(wrong);
    since = clock_now();
    require_null(sluice_exchange_open(NULL, SOON), ETIMEDOUT, text);
    require_soon(since);
    since = clock_now();
    require_null(open_as(SLUICE_EXCHANGE_PMIX, SOON), ETIMEDOUT, text);
    require_soon(since);
    require(warnings == 0, "%s", last_line);
}

TEST(init_without_end)
{
    give_up_opening("init", "PMIx server did not answer deadline");
}

/* While PMIx_Init() hangs, it gets no descriptor of a standard stream, nor keeps one afterwards. */
TEST(init_without_end_or_input)
{
    close(STDIN_FILENO);
    give_up_opening("init", "PMIx server did not answer deadline");
    require(fcntl(STDIN_FILENO, F_GETFD) < 0, "something stands in place of the input");
}

TEST(size_without_end)
{
    give_up_opening("size", "PMIx server did not answer deadline");
}

TEST(fence_without_end)
{
    give_up_opening("fence", "PMIx not all ranks came deadline");
}

TEST(get_without_end)
{
    struct sluice_exchange *exchange;
    uint64_t own = 7, all[2];
    int64_t since;
    start("get");
    exchange = open_well();
    since = clock_now();
    require_error(sluice_exchange_allgather(exchange, &own, all, sizeof(own), SOON), -ETIMEDOUT,
                  "PMIx server did not answer deadline");
    require_soon(since);
    require_result(sluice_exchange_barrier(exchange, SOON), -ENOTCONN);
    sluice_exchange_close(exchange);
}

static void check_calls(struct sluice_exchange *exchange)
{
    uint64_t own = 7, all[2] = {0}, to[2] = {3, 4}, from[2] = {0};
    require_ok(sluice_exchange_allgather(exchange, &own, all, sizeof(own), LIMIT));
    require(all[0] == 7 && all[1] == 7, "%llu, %llu", (unsigned long long)all[0],
            (unsigned long long)all[1]);
    require_ok(sluice_exchange_alltoall(exchange, to, from, sizeof(*to), LIMIT));
    require(from[0] == 3 && from[1] == 3, "%llu, %llu", (unsigned long long)from[0],
            (unsigned long long)from[1]);
    require_ok(sluice_exchange_barrier(exchange, LIMIT));
    require_ok(sluice_exchange_allgather(exchange, NULL, NULL, 0, LIMIT));
}

TEST(one_at_a_time)
{
    struct sluice_exchange *exchange;
    start("");
    exchange = open_well();
    require_null(sluice_exchange_open(NULL, LIMIT), EBUSY, "PMIx already close it first");
    require_null(open_as(SLUICE_EXCHANGE_PMIX, LIMIT), EBUSY, "PMIx already close it first");
    require_error(sluice_exchange_barrier(exchange, 0), -ETIMEDOUT, "nothing was sent");
    check_calls(exchange);
    sluice_exchange_close(exchange);
    require_null(sluice_exchange_open(NULL, 0), ETIMEDOUT, "deadline is 0");
    exchange = open_well();
    check_calls(exchange);
    sluice_exchange_close(exchange);
}

/* A failed open does not count as an exchange, so another one may be opened. */
TEST(another_after_a_failure)
{
    start("fence");
    require_null(sluice_exchange_open(NULL, SOON), ETIMEDOUT, "not all ranks came");
    setenv("FAKE_PMIX", "", 1);
    sluice_exchange_close(open_well());
}

static bool refused(uint32_t kind, int error, const char *text)
{
    struct sluice_exchange *exchange = open_as(kind, SLUICE_S(5));
    return !exchange && errno == error && strstr(sluice_last_error(), text);
}

/* Runs a check in a child, which must end quickly and succeed. */
static void in_child(bool (*good)(void))
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        alarm(10);
        _exit(good() ? 0 : 1);
    }
    require_result(waitpid(child, &status, 0), child);
    require(status == 0, "status %x", (unsigned)status);
}

static bool child_of_client(void)
{
    struct sluice_exchange_attr alone = {
        .size = sizeof(alone), .kind = SLUICE_EXCHANGE_TCP, .ranks = 1};
    struct sluice_exchange *exchange = sluice_exchange_open(&alone, LIMIT);
    sluice_exchange_close(exchange);
    return exchange && refused(SLUICE_EXCHANGE_AUTO, ENOTCONN, "fork()") &&
           refused(SLUICE_EXCHANGE_PMIX, ENOTCONN, "fork()");
}

static struct sluice_exchange *of_parent;

static bool child_that_uses_it(void)
{
    uint64_t own = 7, all[2];
    return sluice_exchange_allgather(of_parent, &own, all, sizeof(own), LIMIT) == -EINVAL &&
           strstr(sluice_last_error(), "before fork(2)");
}

static bool child_that_waits(void)
{
    return sluice_exchange_barrier(of_parent, LIMIT) == -EINVAL &&
           strstr(sluice_last_error(), "before fork(2)");
}

TEST(children_of_a_client)
{
    struct sluice_exchange *exchange;
    start("");
    exchange = open_well();
    in_child(child_of_client);
    of_parent = exchange;
    in_child(child_that_uses_it);
    in_child(child_that_waits);
    check_calls(exchange);
    sluice_exchange_close(exchange);
    in_child(child_of_client);
}

TEST(children_while_it_begins)
{
    start("init");
    require_null(sluice_exchange_open(NULL, SOON), ETIMEDOUT, "did not answer");
    in_child(child_of_client);
}

static bool child_of_none(void)
{
    return refused(SLUICE_EXCHANGE_AUTO, EINVAL, "where rank 0 of 2 ranks is") &&
           refused(SLUICE_EXCHANGE_PMIX, ENOENT, "of which this is a child");
}

/* The exchange falls back to TCP, and logs that. */
TEST(no_server)
{
    start("none");
    require_null(sluice_exchange_open(NULL, LIMIT), EINVAL,
                 "where rank 0 of 2 ranks is PMIx: no server answers: UNREACHABLE");
    require(warnings == 1 && strstr(last_line, "PMIx: no server answers: UNREACHABLE") &&
                strstr(last_line, "PMIX_RANK"),
            "%u, %s", warnings, last_line);
    require_null(open_as(SLUICE_EXCHANGE_PMIX, LIMIT), ENOENT, "PMIx: no server answers");
    in_child(child_of_none);
    /* The server may come up later. */
    setenv("FAKE_PMIX", "", 1);
    sluice_exchange_close(open_well());
}

int main(void)
{
    static const struct tests cases[] = {{"pmix", WIRE_SELF, 30}};
#ifndef HAVE_PMIX
    puts("1..0 # SKIP built without PMIx");
    return 0;
#endif
    if (!dlopen(FAKE_PMIX, RTLD_NOW | RTLD_LOCAL)) {
        printf("1..0 # SKIP %s\n", dlerror());
        return 0;
    }
    return run_groups("pmix", cases, COUNT(cases));
}
