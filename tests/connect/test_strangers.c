/* SPDX-License-Identifier: MIT */
/*
 * A listener in a crowd: silent and half-finished strangers cost a client next to nothing; clients
 * killed while they connect or work harm no other; and a thousand clients come, exchange a message,
 * and go.
 */
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/fair.h"
#include "../support/pair.h"
#include "../support/process.h"

#define BYTES 64
#define NOBODY 65534

static const struct sluice_connect_attr options = {.size = sizeof(options), .secret_file = ""};

static struct sluice_listener *listen_open(void)
{
    struct sluice_listen_attr attr = {.size = sizeof(attr), .backlog = 4096, .secret_file = ""};
    struct sluice_listener *listener = made(sluice_listen("127.0.0.1:0", &attr));
    return listener;
}

static void allow_files(rlim_t count)
{
    struct rlimit limit;
    require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
    limit.rlim_cur = limit.rlim_max < count ? limit.rlim_max : count;
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
}

/* Forks a process; it changes its user if it can. */
static pid_t begin(void (*run)(int port, int argument), int port, int argument, bool stranger)
{
    pid_t pid = fork();
    require(pid >= 0, "%s", strerror(errno));
    if (pid != 0) {
        return pid;
    }
    signal(SIGTERM, SIG_DFL);
    if (stranger && geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0) {
        _exit(1);
    }
    run(port, argument);
    _exit(0);
}

static int end(pid_t pid, int signal)
{
    int status;
    if (signal != 0) {
        kill(pid, signal);
    }
    require(waitpid(pid, &status, 0) == pid, "%s", strerror(errno));
    return status;
}

static int dial(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Keeps this many connections, silent or with half a hello, and redials those that are closed. */
static void keep_up(int port, int count)
{
    static const uint8_t half[] = "sludoor?";
    int *fds = malloc((size_t)count * sizeof(*fds));
    uint8_t byte;
    allow_files(8192);
    for (int i = 0; i < count; i++) {
        fds[i] = -1;
    }
    for (int i = 0;; i = (i + 1) % count) {
        if (fds[i] >= 0 && recv(fds[i], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN) {
            continue;
        }
        if (fds[i] >= 0) {
            close(fds[i]);
        }
        fds[i] = dial(port);
        if (fds[i] >= 0 && i % 2 == 0) {
            (void)!send(fds[i], half, sizeof(half) - 1, MSG_NOSIGNAL);
        }
    }
}

static int gate[2]; /* connected clients wait at it until the test opens it */

/* Exchanges a message in each direction. */
static void talk(struct sluice_channel *channel, const struct sluice_sge *sge)
{
    struct sluice_completion completion;
    if (sluice_channel_send(channel, sge, 1, PATIENCE * SLUICE_S(60)) < 0 ||
        sluice_channel_receive(channel, sge, 1, PATIENCE * SLUICE_S(60), &completion) < 0) {
        fprintf(stderr, "# a client: %s\n", sluice_last_error());
        _exit(1);
    }
}

/* Connects this many channels, and exchanges a message on each before and after the gate. */
static void connect_some(int port, int count)
{
    static char words[BYTES];
    static struct sluice_channel *channels[64];
    char address[64], byte;
    struct sluice_sge sge;
    struct sluice_context *context = sluice_context_open("soft", NULL);
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_mr *mr = sluice_mr_register(pd, words, BYTES, SLUICE_ACCESS_LOCAL_WRITE);
    close(gate[1]);
    snprintf(address, sizeof(address), "127.0.0.1:%d", port);
    require_ok(sluice_mr_sge(mr, 0, BYTES, &sge));
    for (int i = 0; i < count; i++) {
        channels[i] = sluice_connect(address, pd, NULL, &options, PATIENCE * SLUICE_S(60));
        if (channels[i] == NULL) {
            fprintf(stderr, "# client %d: %s\n", i, sluice_last_error());
            _exit(1);
        }
        talk(channels[i], &sge);
    }
    (void)!read(gate[0], &byte, 1);
    for (int i = 0; i < count; i++) {
        talk(channels[i], &sge);
    }
}

/* Does the same with a port that it reads from a pipe. */
static void connect_later(int from, int count)
{
    int port;
    require(read(from, &port, sizeof(port)) == sizeof(port), "no port");
    connect_some(port, count);
}

/* A server of any number of clients, which echoes their messages. */
struct server {
    struct sides sides;
    struct sluice_listener *listener;
    struct sluice_multichannel *all;
    struct memory memory;
    uint32_t came, heard, answered, lost;
    int64_t longest, total;
};

static void server_open(struct server *server, uint32_t most)
{
    memset(server, 0, sizeof(*server));
    sides_open(&server->sides);
    memory_open(&server->memory, server->sides.pds[0], (size_t)most * BYTES);
    server->listener = listen_open();
    server->all = made(sluice_prepared_multichannel_handshake(
        sluice_multichannel_prepare(server->sides.pds[0], 0, NULL), NULL, 0));
}

static void server_post(struct server *server, uint32_t opcode, uint32_t peer)
{
    struct sluice_sge sge = memory_sge(&server->memory, (size_t)peer * BYTES, BYTES);
    struct sluice_request request = request_of(opcode, peer, &sge);
    if (sluice_multichannel_post(server->all, &request, 1, SLUICE_FOREVER, NULL) != 1) {
        server->lost++;
        require_ok(sluice_multichannel_peer_remove(server->all, peer));
    }
}

static void server_serve(struct server *server)
{
    struct sluice_completion done;
    struct sluice_incoming *incoming;
    uint32_t peer;
    while ((incoming = sluice_listener_next(server->listener, 0)) != NULL) {
        struct span begin = span_begin();
        if (sluice_incoming_accept_into(incoming, server->all, NULL, DEADLINE, &peer, 1) == 0) {
            int64_t took = span_since(begin).fair;
            server->came++;
            server->total += took;
            server->longest = took > server->longest ? took : server->longest;
            server_post(server, SLUICE_OP_RECEIVE, peer);
        }
    }
    while (sluice_multichannel_poll(server->all, &done, 1) == 1) {
        if ((done.flags & SLUICE_PEER_REMOVED) != 0) {
            continue;
        }
        if (done.error < 0) {
            server->lost++;
            require_ok(sluice_multichannel_peer_remove(server->all, done.peer));
        } else if (done.opcode == SLUICE_OP_RECEIVE) {
            server->heard++;
            server_post(server, SLUICE_OP_SEND, done.peer);
        } else {
            server->answered++;
            server_post(server, SLUICE_OP_RECEIVE, done.peer);
        }
    }
}

static void server_close(struct server *server)
{
    sluice_listener_close(server->listener);
    sluice_multichannel_close(server->all);
    memory_close(&server->memory);
    sides_close(&server->sides);
}

static int server_port(const struct server *server)
{
    return sluice_listener_address(server->listener, NULL, 0);
}

static void serve_until(struct server *server, const uint32_t *what, uint32_t count)
{
    struct span begun = span_begin();
    while (*what < count) {
        server_serve(server);
        require(span_since(begun).fair < PATIENCE * SLUICE_S(60), "%u came, %u answered, %u left",
                server->came, server->answered, server->lost);
    }
}

/* When all have come, a third is killed, without effect on the others. */
TEST(a_thousand_clients)
{
    enum { PROCESSES = 24 };
    int each = short_run() ? 8 : 42; /* 1,008 in all */
    uint32_t all = (uint32_t)(PROCESSES * each);
    struct server server;
    pid_t pids[PROCESSES];
    allow_files(8192);
    int before = count_fds();
    int start[2];
    require(pipe(gate) == 0 && pipe(start) == 0, "%s", strerror(errno));
    /* Forked before there is a thread, as sanitizers do not release locks of others in a child. */
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = begin(connect_later, start[0], each, false);
    }
    int pipes = count_fds() - before;
    server_open(&server, all);
    int fds = count_fds() - pipes;
    int port = server_port(&server);
    for (int i = 0; i < PROCESSES; i++) {
        require(write(start[1], &port, sizeof(port)) == sizeof(port), "%s", strerror(errno));
    }
    close(start[0]);
    close(start[1]);
    serve_until(&server, &server.answered, all);
    for (int i = 0; i < PROCESSES; i += 3) {
        require(WIFSIGNALED(end(pids[i], SIGKILL)), "process %d has ended", i);
    }
    close(gate[0]);
    close(gate[1]);
    serve_until(&server, &server.answered, all + all / 3 * 2);
    for (int i = 0; i < PROCESSES; i++) {
        require(i % 3 == 0 || end(pids[i], 0) == 0, "process %d failed", i);
    }
    serve_until(&server, &server.lost, all);
    printf("# %u clients: %lld us to let one in, at most %lld us\n", server.came,
           (long long)(server.total / server.came / 1000), (long long)(server.longest / 1000));
    fflush(stdout);
    /* The helper of the context was started for the first client. */
    require(settle_fds(fds + 8) <= fds + 8, "%d left", count_fds() - fds);
    server_close(&server);
}

static void connect_once(int port, int argument)
{
    (void)argument;
    connect_some(port, 1);
}

static void open_gate(void)
{
    require(pipe(gate) == 0, "%s", strerror(errno));
    close(gate[1]);
    gate[1] = -1;
}

/* The client is killed while it waits to be let in: the listener drops it, or its accept fails. */
TEST(client_that_is_killed_while_connecting)
{
    struct server server;
    uint32_t peer;
    open_gate();
    server_open(&server, 4);
    for (int i = 0; i < 2; i++) {
        pid_t victim = begin(connect_once, server_port(&server), 0, false);
        struct sluice_incoming *incoming = NULL;
        struct span begun = span_begin();
        while (incoming == NULL && i == 0) {
            require(span_since(begun).fair < PATIENCE * DEADLINE, "it does not come");
            incoming = sluice_listener_next(server.listener, DEADLINE);
        }
        require(WIFSIGNALED(end(victim, SIGKILL)), "it has ended before");
        if (incoming != NULL) {
            require_result(
                sluice_incoming_accept_into(incoming, server.all, NULL, DEADLINE, &peer, 1),
                -ECONNRESET);
        }
        require(sluice_listener_next(server.listener, SLUICE_MS(50)) == NULL, "it waits");
    }
    pid_t pid = begin(connect_once, server_port(&server), 0, false);
    serve_until(&server, &server.answered, 2);
    require(end(pid, 0) == 0, "the next one was not served");
    server_close(&server);
    close(gate[0]);
}

/* The mean time of eight clients, each a process, until they have their first answer. */
static int64_t time_clients(struct server *server, int64_t *worst)
{
    int64_t total = 0;
    *worst = 0;
    for (int i = 0; i < 8; i++) {
        uint32_t before = server->answered;
        struct span since = span_begin();
        pid_t client = begin(connect_once, server_port(server), 0, false);
        serve_until(server, &server->answered, before + 1);
        int64_t took = span_since(since).fair;
        serve_until(server, &server->answered, before + 2);
        require(end(client, 0) == 0, "it failed");
        *worst = took > *worst ? took : *worst;
        total += took;
    }
    return total / 8;
}

/* Thousands of strangers that send nothing, or half of a hello. */
TEST(strangers_delay_no_client)
{
    int strangers = short_run() ? 300 : 3000;
    struct server server;
    int64_t worst[2], mean[2];
    allow_files(8192);
    open_gate();
    server_open(&server, 16);
    mean[0] = time_clients(&server, &worst[0]);
    pid_t pid = begin(keep_up, server_port(&server), strangers, true);
    /* Wait until they are connected. */
    struct span begun = span_begin();
    while (span_since(begun).real < SLUICE_MS(500)) {
        server_serve(&server);
    }
    mean[1] = time_clients(&server, &worst[1]);
    for (int i = 0; i < 2; i++) {
        printf("# a process that connects, %d strangers: mean %lld us, worst %lld us\n",
               i * strangers, (long long)(mean[i] / 1000), (long long)(worst[i] / 1000));
    }
    fflush(stdout);
    require(mean[1] < mean[0] + SLUICE_S(1), "they delay by %lld ms",
            (long long)((mean[1] - mean[0]) / 1000000));
    (void)end(pid, SIGKILL);
    server_close(&server);
    close(gate[0]);
}

int main(void)
{
    static const struct tests groups[] = {{"strangers", WIRE_SELF, 240}};
    if (!device_is_soft()) {
        printf("1..0 # SKIP clients are processes that open the soft device\n");
        return 0;
    }
    return run_groups("strangers", groups, COUNT(groups));
}
