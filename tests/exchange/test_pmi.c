/* SPDX-License-Identifier: MIT */
/*
 * Finding rank 0 by a server of PMI-1, here a made-up one: the parent serves its children, the
 * ranks, and gives one wrong answer.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/suite.h"

#define MOST 4
#define LONG SLUICE_S(20)
#define SHORT SLUICE_MS(300)
#define SILENCE NULL
#define HANG_UP ""

/* A false answer of the server to commands with this beginning. */
struct lie {
    const char *to;
    const char *answer; /* SILENCE, HANG_UP, or some lines */
};

struct server {
    const char *name; /* of the space of keys */
    struct lie lie;
    bool piecemeal; /* sends each byte by itself */
    uint32_t count, waiting, barriers, finalized;
    uint32_t pairs;
    int fds[MOST];
    pid_t ranks[MOST];
    int results[MOST];
    char keys[MOST][64], values[MOST][1024];
};

/* A rank: how it opens. */
struct opening {
    uint32_t rank, ranks;
    uint32_t exchanges;
    int64_t deadline;
    bool stumbles;     /* its first attempt finds no server */
    const char *alone; /* of MPI_LOCALNRANKS, or NULL */
    const char *secret_file;
};

static void clear_environment(void)
{
    static const char *const names[] = {
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK",          "PMI_JOBID",
        "SLUICE_EXCHANGE",      "SLUICE_HOST_FILE",     "SLUICE_JOB",         "SLUICE_RANK",
        "SLUICE_RANKS",         "SLUICE_ROOT",          "SLUICE_SECRET_FILE", "SLURM_PROCID",
        "SLURM_NTASKS",         "MPI_LOCALNRANKS",
    };
    for (size_t i = 0; i < COUNT(names); i++) {
        unsetenv(names[i]);
    }
}

static void set_number(const char *name, uint32_t number)
{
    char text[16];
    snprintf(text, sizeof(text), "%u", number);
    setenv(name, text, 1);
}

/* Opens exchanges in the child, and reports the result; "0" for success. */
static void be_rank(const struct opening *opening, int result)
{
    uint32_t own = opening->rank;
    uint32_t all[MOST] = {0};
    for (uint32_t i = 0; i < opening->exchanges; i++) {
        struct sluice_exchange *exchange = sluice_exchange_open(NULL, opening->deadline);
        if (!exchange) {
            dprintf(result, "%d %s", errno, sluice_last_error());
            exit(0);
        }
        if (sluice_exchange_allgather(exchange, &own, all, sizeof(own), opening->deadline) < 0) {
            dprintf(result, "1 allgather: %s", sluice_last_error());
            exit(0);
        }
        for (uint32_t rank = 0; rank < opening->ranks; rank++) {
            if (all[rank] != rank) {
                dprintf(result, "1 allgather brought %u", all[rank]);
                exit(0);
            }
        }
        sluice_exchange_close(exchange);
    }
    dprintf(result, "0");
    exit(0);
}

static void start_rank(struct server *server, const struct opening *opening)
{
    int pair[2];
    int result[2];
    require_ok(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    require_ok(pipe(result));
    pid_t child = fork();
    require(child >= 0, "%m");
    if (child == 0) {
        for (uint32_t i = 0; i < server->count; i++) {
            close(server->fds[i]);
        }
        close(pair[1]);
        close(result[0]);
        clear_environment();
        set_number("PMI_RANK", opening->rank);
        set_number("PMI_SIZE", opening->ranks);
        if (opening->stumbles) {
            set_number("PMI_FD", 1000);
            require_null(sluice_exchange_open(NULL, SHORT), EINVAL, "PMI_FD 1000 no socket");
        }
        set_number("PMI_FD", (uint32_t)pair[0]);
        if (opening->alone) {
            setenv("MPI_LOCALNRANKS", opening->alone, 1);
        }
        if (opening->secret_file) {
            setenv("SLUICE_SECRET_FILE", opening->secret_file, 1);
        }
        be_rank(opening, result[1]);
    }
    close(pair[0]);
    close(result[1]);
    server->fds[server->count] = pair[1];
    server->results[server->count] = result[0];
    server->ranks[server->count++] = child;
}

static void answer(const struct server *server, uint32_t rank, const char *text)
{
    size_t step = server->piecemeal ? 1 : strlen(text);
    for (size_t i = 0; text[i] != '\0'; i += step) {
        if (send(server->fds[rank], text + i, step, MSG_NOSIGNAL) < 0) {
            return;
        }
    }
}

static const char *find_value(const struct server *server, const char *key)
{
    for (uint32_t i = 0; i < server->pairs; i++) {
        if (strcmp(server->keys[i], key) == 0) {
            return server->values[i];
        }
    }
    return NULL;
}

/* Takes keys once: a second exchange must not use those of the first one. */
static void take_pair(struct server *server, uint32_t rank, const char *line)
{
    char format[300];
    char key[64];
    char value[1024];
    snprintf(format, sizeof(format), "cmd=put kvsname=%.200s key=%%63s value=%%1023s",
             server->name);
    bool taken = sscanf(line, format, key, value) == 2 && !find_value(server, key);
    require(taken, "%s", line);
    memcpy(server->keys[server->pairs], key, sizeof(key));
    memcpy(server->values[server->pairs++], value, sizeof(value));
    answer(server, rank, "cmd=put_result rc=0 msg=success\n");
}

static void give_value(struct server *server, uint32_t rank, const char *line)
{
    char format[300];
    char text[1100];
    char key[64];
    snprintf(format, sizeof(format), "cmd=get kvsname=%.200s key=%%63s", server->name);
    require(sscanf(line, format, key) == 1, "%s", line);
    const char *value = find_value(server, key);
    snprintf(text, sizeof(text),
             value ? "cmd=get_result rc=0 msg=success value=%s\n"
                   : "cmd=get_result rc=-1 msg=key_%s_not_found\n",
             value ? value : key);
    answer(server, rank, text);
}

static void serve_line(struct server *server, uint32_t rank, const char *line)
{
    char text[600];
    if (server->lie.to && strncmp(line, server->lie.to, strlen(server->lie.to)) == 0) {
        if (server->lie.answer == SILENCE) {
            return;
        }
        if (*server->lie.answer == '\0') {
            shutdown(server->fds[rank], SHUT_RDWR);
        } else {
            answer(server, rank, server->lie.answer);
        }
    } else if (strcmp(line, "cmd=init pmi_version=1 pmi_subversion=1") == 0) {
        answer(server, rank, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    } else if (strcmp(line, "cmd=get_maxes") == 0) {
        answer(server, rank, "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n");
    } else if (strcmp(line, "cmd=get_my_kvsname") == 0) {
        snprintf(text, sizeof(text), "cmd=my_kvsname kvsname=%s\n", server->name);
        answer(server, rank, text);
    } else if (strcmp(line, "cmd=barrier_in") == 0) {
        server->waiting++;
    } else if (strcmp(line, "cmd=finalize") == 0) {
        server->finalized++;
        answer(server, rank, "cmd=finalize_ack\n");
    } else if (strncmp(line, "cmd=put ", 8) == 0) {
        take_pair(server, rank, line);
    } else {
        give_value(server, rank, line);
    }
    if (server->waiting == server->count) {
        server->waiting = 0;
        server->barriers++;
        for (uint32_t i = 0; i < server->count; i++) {
            answer(server, i, "cmd=barrier_out\n");
        }
    }
}

/* A rank waits for each answer, and so sends a line at a time. */
static bool serve_rank(struct server *server, uint32_t rank)
{
    char line[2048];
    size_t count = 0;
    while (count == 0 || line[count - 1] != '\n') {
        ssize_t got = recv(server->fds[rank], line + count, sizeof(line) - 1 - count, 0);
        if (got <= 0) {
            return false;
        }
        count += (size_t)got;
        line[count] = '\0';
        require(count < sizeof(line) - 1, "%s", line);
    }
    line[count - 1] = '\0';
    require(!strchr(line, '\n'), "%s", line);
    serve_line(server, rank, line);
    return true;
}

/* Serves until all ranks have exited. */
static void serve(struct server *server)
{
    struct pollfd pollfds[MOST];
    uint32_t left = server->count;
    for (uint32_t i = 0; i < server->count; i++) {
        pollfds[i] = (struct pollfd){.fd = server->fds[i], .events = POLLIN};
    }
    while (left > 0) {
        require(poll(pollfds, server->count, 60000) > 0, "%u ranks run for ever", left);
        for (uint32_t i = 0; i < server->count; i++) {
            if (pollfds[i].fd >= 0 && pollfds[i].revents && !serve_rank(server, i)) {
                pollfds[i].fd = -1;
                left--;
            }
        }
    }
}

/* Reads the last words of a rank. */
static void hear_end(struct server *server, uint32_t rank, char *text, size_t size)
{
    int status;
    ssize_t got = read(server->results[rank], text, size - 1);
    require(waitpid(server->ranks[rank], &status, 0) == server->ranks[rank], "%m");
    require(got > 0 && status == 0, "rank %u, status %#x", rank, status);
    text[got] = '\0';
    close(server->fds[rank]);
    close(server->results[rank]);
}

/* Requires that the rank ended with this errno value, and these words in this order. */
static void expect_end(struct server *server, uint32_t rank, int error, const char *words)
{
    char text[500];
    char copy[200];
    char *rest;
    hear_end(server, rank, text, sizeof(text));
    require(atoi(text) == error, "rank %u, not errno %d: '%s'", rank, error, text);
    const char *at = text;
    snprintf(copy, sizeof(copy), "%s", words);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        at = strstr(at, word);
        require(at, "rank %u, not '%s': '%s'", rank, words, text);
        at += strlen(word);
    }
}

/* With unusual names, in pieces or not, within a host or not, and again. */
TEST(d3_pmi_ranks_find_each_other, .times = 4)
{
    static const char *const names[] = {"kvs_1", "k=/;:\"'$(x){}~\\*,=key=", "kvs_1", "kvs_2"};
    struct server server = {.name = names[_i], .piecemeal = _i == 1};
    for (uint32_t rank = 0; rank < 3; rank++) {
        const struct opening opening = {.rank = rank,
                                        .ranks = 3,
                                        .exchanges = _i == 3 ? 3 : 1,
                                        .deadline = LONG,
                                        .alone = _i == 2 ? NULL : "3"};
        start_rank(&server, &opening);
    }
    serve(&server);
    for (uint32_t rank = 0; rank < 3; rank++) {
        expect_end(&server, rank, 0, "");
    }
    require(server.finalized == 3, "%u said so", server.finalized);
    require(server.barriers == (_i == 3 ? 3 : 1), "%u barriers", server.barriers);
}

#define TEXT_64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define TEXT_512 TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64
#define TEXT_4096 TEXT_512 TEXT_512 TEXT_512 TEXT_512 TEXT_512 TEXT_512 TEXT_512 TEXT_512

/* Rank 1 of 2 meets a server without another rank. */
static const struct {
    struct lie lie;
    int error;
    const char *words;
} lies[] = {
    {{"cmd=init", SILENCE}, ETIMEDOUT, "cmd=init deadline"},
    {{"cmd=init", HANG_UP}, ECONNRESET, "hung up cmd=init"},
    {{"cmd=init", "\n"}, EPROTO, "cmd=init no cmd"},
    {{"cmd=init", "hello there\n"}, EPROTO, "no cmd"},
    {{"cmd=init", "cmd=\n"}, EPROTO, "no cmd"},
    {{"cmd=init", "cmd=finalize_ack\n"}, EPROTO, "cmd=finalize_ack cmd=response_to_init"},
    {{"cmd=init", "cmd=response_to_init rc=0\n"}, EPROTO, "no pmi_version"},
    {{"cmd=init", "cmd=response_to_init pmi_version=2 rc=0\n"}, EPROTO, "version 2"},
    {{"cmd=init", "cmd=response_to_init pmi_version=1\n"}, EPROTO, "no rc"},
    {{"cmd=init", "cmd=response_to_init pmi_version=1 rc=-1\n"}, EPROTO, "refuses rc=-1"},
    {{"cmd=init", "cmd=response_to_init pmi_version=1 rc=0\nmore"}, EPROTO, "more than a line"},
    {{"cmd=init", "cmd=response_to_init\tpmi_version=1\n"}, EPROTO, "byte 0x09"},
    {{"cmd=init", "cmd=response_to_\xc3\xa4\n"}, EPROTO, "cmd=response_to_init"},
    {{"cmd=init", "cmd=response_to_init" TEXT_4096 "\n"}, EPROTO, "more than 4096 bytes"},
    {{"cmd=init", "cmd=" TEXT_64 "\n"}, EPROTO, "cmd more than 63 bytes"},
    {{"cmd=get_maxes", SILENCE}, ETIMEDOUT, "cmd=get_maxes"},
    {{"cmd=get_maxes", "cmd=maxes keylen_max=64 vallen_max=99\n"}, EPROTO, "no kvsname_max"},
    {{"cmd=get_maxes", "cmd=maxes kvsname_max=9x keylen_max=64 vallen_max=99\n"},
     EPROTO,
     "kvsname_max '9x'"},
    {{"cmd=get_maxes", "cmd=maxes kvsname_max=99 keylen_max=-1 vallen_max=99\n"},
     EPROTO,
     "keylen_max '-1'"},
    {{"cmd=get_maxes", "cmd=maxes kvsname_max=99 keylen_max=64 vallen_max=4294967296\n"},
     EPROTO,
     "vallen_max '4294967296'"},
    {{"cmd=get_maxes", "cmd=maxes kvsname_max=99 keylen_max=4 vallen_max=99\n"},
     EPROTO,
     "keys of 4 bytes"},
    {{"cmd=get_maxes", "cmd=maxes kvsname_max=3 keylen_max=64 vallen_max=99\n"},
     EPROTO,
     "kvsname more than 3"},
    {{"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=\n"}, EPROTO, "no kvsname"},
    {{"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=" TEXT_512 "\n"},
     EPROTO,
     "kvsname more than 511 bytes"},
    {{"cmd=barrier_in", SILENCE}, ETIMEDOUT, "not all ranks came"},
    {{"cmd=barrier_in", HANG_UP}, ECONNRESET, "hung up cmd=barrier_in"},
    {{"cmd=barrier_in", "cmd=barrier_out"}, ETIMEDOUT, "not all ranks came"},
    {{"cmd=get kvs", SILENCE}, ETIMEDOUT, "cmd=get"},
    {{"cmd=get kvs", "cmd=get_result rc=-1 msg=no_such_key value=unknown\n"},
     EPROTO,
     "refuses cmd=get rc=-1 no_such_key"},
    {{"cmd=get kvs", "cmd=get_result rc=-1\n"}, EPROTO, "rc=-1 does not say why"},
    {{"cmd=get kvs", "cmd=get_result rc=0\n"}, EPROTO, "no value"},
    {{"cmd=get kvs", "cmd=get_result rc=0 value=" TEXT_512 TEXT_512 "\n"},
     EPROTO,
     "value more than 1023"},
    {{"cmd=get kvs", "cmd=get_result rc=0 value=unknown\n"}, EPROTO, "sluice-0 not an address"},
    {{"cmd=get kvs", "cmd=get_result rc=0 value=2/80/-/127.0.0.1\n"},
     EPROTO,
     "sluice-0 from version 2 on this library knows version 1"},
    {{"cmd=get kvs", "cmd=get_result rc=0 value=1/0/-/127.0.0.1\n"}, EPROTO, "not an address"},
    {{"cmd=get kvs", "cmd=get_result rc=0 value=1/65536/-/127.0.0.1\n"}, EPROTO, "not an address"},
    {{"cmd=get kvs", "cmd=get_result rc=0 value=1/80/-/\n"}, EPROTO, "not an address"},
    {{"cmd=get kvs", "cmd=get_result rc=0 value=1/80/-/localhost\n"}, EPROTO, "not an address"},
    {{"cmd=get kvs", "cmd=get_result rc=0 value=1/80//127.0.0.1\n"}, EPROTO, "not an address"},
    {{"cmd=get kvs", "cmd=get_result rc=0 value=1/80/" TEXT_64 "/127.0.0.1\n"},
     EPROTO,
     "not an address"},
    {{"cmd=get kvs", "cmd=get_result rc=0 "
                     "value=1/80/-/127.1.0.1,127.1.0.2,127.1.0.3,127.1.0.4,"
                     "127.1.0.5,127.1.0.6,127.1.0.7,127.1.0.8,127.1.0.9\n"},
     EPROTO,
     "not an address"},
    /* The answer is right, but rank 0 is not there: the error names the first of its addresses. */
    {{"cmd=get kvs", "cmd=get_result rc=0 value=1/9/-/127.0.0.1,::1\n"},
     ETIMEDOUT,
     "rank 0 127.0.0.1:9"},
};

TEST(d3_pmi_answers_that_make_no_sense, .times = COUNT(lies))
{
    struct server server = {.name = "kvs_1", .lie = lies[_i].lie};
    const struct opening opening = {
        .rank = 1, .ranks = 2, .exchanges = 1, .deadline = SHORT, .alone = "2"};
    start_rank(&server, &opening);
    serve(&server);
    expect_end(&server, 0, lies[_i].error, lies[_i].words);
    require(server.finalized == (lies[_i].error == ECONNRESET ? 0 : 1), "%u said so",
            server.finalized);
}

/* Rank 0 may not put its address, or waits for a rank that never comes. */
TEST(d3_pmi_puts_are_refused, .times = 5)
{
    static const struct {
        struct lie lie;
        int error;
        const char *words;
    } cases[] = {
        {{"cmd=put", "cmd=put_result rc=-1 msg=no_room\n"},
         EPROTO,
         "refuses cmd=put rc=-1 no_room"},
        {{"cmd=put", "cmd=put_result\n"}, EPROTO, "cmd=put no rc"},
        {{"cmd=put", SILENCE}, ETIMEDOUT, "cmd=put"},
        {{"cmd=get_maxes", "cmd=maxes kvsname_max=99 keylen_max=64 vallen_max=10\n"},
         EPROTO,
         "values of 10 bytes"},
        {{NULL, NULL}, ETIMEDOUT, "rank 1"},
    };
    struct server server = {.name = "kvs_1", .lie = cases[_i].lie};
    const struct opening opening = {
        .rank = 0, .ranks = 2, .exchanges = 1, .deadline = SHORT, .alone = "2"};
    start_rank(&server, &opening);
    serve(&server);
    expect_end(&server, 0, cases[_i].error, cases[_i].words);
}

/* One rank tries in vain before the ranks meet: it still looks under the key of the others. */
TEST(d3_pmi_attempt_that_never_began, .times = 2)
{
    struct server server = {.name = "kvs_1"};
    for (uint32_t rank = 0; rank < 2; rank++) {
        const struct opening opening = {.rank = rank,
                                        .ranks = 2,
                                        .exchanges = 2,
                                        .deadline = LONG,
                                        .stumbles = rank == (uint32_t)_i,
                                        .alone = "2"};
        start_rank(&server, &opening);
    }
    serve(&server);
    expect_end(&server, 0, 0, "");
    expect_end(&server, 1, 0, "");
}

static void open_alone(const char *fd, int error, const char *words)
{
    clear_environment();
    setenv("PMI_RANK", "0", 1);
    setenv("PMI_SIZE", "2", 1);
    setenv("PMI_FD", fd, 1);
    require_null(sluice_exchange_open(NULL, SHORT), error, words);
}

TEST(d3_pmi_fd_that_is_no_socket)
{
    open_alone("", EINVAL, "where rank 0 of 2 ranks SLUICE_ROOT");
    open_alone("3x", EINVAL, "PMI_FD '3x'");
    open_alone("-1", EINVAL, "PMI_FD '-1'");
    open_alone("1000", EINVAL, "PMI_FD 1000 no socket SLUICE_ROOT");
    int fds[2];
    char text[16];
    require_ok(pipe(fds));
    snprintf(text, sizeof(text), "%d", fds[0]);
    open_alone(text, EINVAL, "PMI_FD no socket");
    /* A rank that failed before any word was sent may try again. */
    require_ok(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
    snprintf(text, sizeof(text), "%d", fds[0]);
    close(fds[1]);
    open_alone(text, ECONNRESET, "hung up cmd=init");
    open_alone(text, ECONNRESET, "earlier attempt failed");
}

/* A secret from a file is not given to the server; without a file, each run gives it a new one. */
TEST(d3_pmi_secrets, .times = 2)
{
    char path[] = "/tmp/sluice-secret-XXXXXX";
    char secrets[2][70] = {"", ""};
    int fd = mkstemp(path);
    require(fd >= 0 && write(fd, "sixteen bytes it", 16) == 16, "%m");
    close(fd);
    struct server server = {.name = "kvs_1"};
    for (uint32_t rank = 0; rank < 2; rank++) {
        const struct opening opening = {.rank = rank,
                                        .ranks = 2,
                                        .exchanges = 2,
                                        .deadline = LONG,
                                        .alone = "2",
                                        .secret_file = _i == 1 ? path : NULL};
        start_rank(&server, &opening);
    }
    serve(&server);
    unlink(path);
    for (uint32_t i = 0; i < server.pairs; i++) {
        require(sscanf(server.values[i], "1/%*[0-9]/%69[^/]/127.0.0.1", secrets[i]) == 1, "%s",
                server.values[i]);
    }
    if (_i == 1) {
        require(strcmp(secrets[0], "-") == 0, "%s", secrets[0]);
        expect_end(&server, 0, 0, "");
        expect_end(&server, 1, 0, "");
        return;
    }
    require(strlen(secrets[0]) == 64 && strcmp(secrets[0], secrets[1]) != 0, "%s and %s",
            secrets[0], secrets[1]);
    expect_end(&server, 0, 0, "");
    expect_end(&server, 1, 0, "");
}

int main(void)
{
    return RUN_GROUPS("pmi", {"tcp", WIRE_TCP, 60});
}
