/* SPDX-License-Identifier: MIT */
/*
 * Connecting by address: a connected channel on each side in one call, over any transport, with a
 * secret and without; refused clients get the reason; and silent, wrong, late or dead clients cost
 * nothing and leave nothing behind.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/client.h"
#include "../support/fair.h"
#include "../support/pair.h"
#include "../support/process.h"

static char secrets[2][64]; /* paths */

static void write_secrets(void)
{
    for (int i = 0; i < 2; i++) {
        snprintf(secrets[i], sizeof(secrets[i]), "/tmp/sluice-secret-XXXXXX");
        int fd = mkstemp(secrets[i]);
        require(fd >= 0, "%s", strerror(errno));
        require(dprintf(fd, "a secret that has number %d", i) > 0, "%s", strerror(errno));
        close(fd);
    }
}

static void remove_secrets(void)
{
    unlink(secrets[0]);
    unlink(secrets[1]);
}

/* Counts descriptors, after each context has opened those that it keeps. */
static int count_warm(const struct sides *sides)
{
    struct sluice_endpoint endpoint;
    for (int i = 0; i < 2; i++) {
        sluice_prepared_channel_free(prepare_channel(sides->pds[i], NULL, &endpoint));
    }
    return count_fds();
}

static const struct {
    const char *listen, *connect;
} forms[] = {
    {"127.0.0.1:0", "127.0.0.1"}, {"[::1]:0", "[::1]"}, {"localhost:0", "localhost"},
    {":0", "127.0.0.1"},          {":0", "[::1]"},      {"localhost:0", "[::1]"},
};

static bool has_ipv6(void)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool has = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return has;
}

/* Each form of an address, with a secret and without. */
TEST(one_call_on_each_side, .times = 2 * COUNT(forms))
{
    struct pair pair;
    struct client client;
    const char *secret = _i % 2 == 0 ? "" : secrets[0];
    if (strchr(forms[_i / 2].connect, '[') != NULL && !has_ipv6()) {
        return;
    }
    sides_open(&pair.sides);
    struct sluice_listener *listener = listen_with(forms[_i / 2].listen, secret);
    int fds = count_warm(&pair.sides);
    client_init(&client, NULL, pair.sides.pds[1], secret);
    snprintf(client.address, sizeof(client.address), "%s:%d", forms[_i / 2].connect,
             sluice_listener_address(listener, NULL, 0));
    client_start(&client);
    pair.channels[0] = made(sluice_accept(listener, pair.sides.pds[0], NULL, DEADLINE));
    client_join(&client, 0);
    pair.channels[1] = client.channel;
    require_result(sluice_channel_state(pair.channels[0]), SLUICE_STATE_READY);
    require_ok(sluice_channel_wait_connected(pair.channels[1], 0));
    pair_works(&pair);
    sluice_channel_close(pair.channels[0]);
    sluice_channel_close(pair.channels[1]);
    require(settle_fds(fds) <= fds, "%d left", count_fds() - fds);
    sluice_listener_close(listener);
    sides_close(&pair.sides);
}

/*
 * The address of the client, private data of both sides, and an event loop that waits for the
 * client.
 */
TEST(accept_reports_the_client)
{
    struct pair pair;
    struct client client;
    struct sluice_incoming_info info = {.size = sizeof(info)};
    struct sluice_private_data own = {.bytes = 7, .data = "welcome"};
    sides_open(&pair.sides);
    struct sluice_listener *listener = listen_with("127.0.0.1:0", secrets[0]);
    struct pollfd pollfd = {.fd = sluice_listener_fd(listener), .events = POLLIN};
    struct sluice_incoming *incoming = NULL;
    require_null(sluice_listener_next(listener, 0), ETIMEDOUT, "nobody");
    client_init(&client, listener, pair.sides.pds[1], secrets[0]);
    client.own.bytes = SLUICE_PRIVATE_DATA_BYTES;
    memset(client.own.data, 'x', SLUICE_PRIVATE_DATA_BYTES);
    client_start(&client);
    for (int i = 0; i < 1000 && incoming == NULL; i++) {
        require(poll(&pollfd, 1, 20000) == 1, "the loop sleeps");
        incoming = sluice_listener_next(listener, 0);
    }
    require(incoming != NULL, "%s", sluice_last_error());
    require_ok(sluice_incoming_query(incoming, &info));
    require(info.proven == 1 && info.channels == 1, "%u, %u", info.proven, info.channels);
    require(info.version == SLUICE_VERSION_CODE, "%x", info.version);
    require_words(info.address, "127.0.0.1:");
    require(info.private_data.bytes == SLUICE_PRIVATE_DATA_BYTES &&
                memcmp(info.private_data.data, client.own.data, SLUICE_PRIVATE_DATA_BYTES) == 0,
            "%u bytes", info.private_data.bytes);
    pair.channels[0] =
        made(sluice_incoming_accept(incoming, pair.sides.pds[0], NULL, WITH_DATA(&own), DEADLINE));
    client_join(&client, 0);
    require(client.peer.bytes == 7 && memcmp(client.peer.data, "welcome", 7) == 0, "%u bytes",
            client.peer.bytes);
    pair.channels[1] = client.channel;
    pair_works(&pair);
    sluice_listener_close(listener);
    pair_close(&pair);
}

/* Peers of a multichannel on both sides, one at a time and several at once. */
TEST(many_at_once, .times = 3)
{
    static const uint32_t counts[] = {1, 2, 5};
    uint32_t count = counts[_i], peers[5];
    struct sides sides;
    struct client client;
    struct sluice_multichannel *all[2];
    sides_open(&sides);
    struct sluice_listener *listener = listen_with("127.0.0.1:0", "");
    for (int i = 0; i < 2; i++) {
        all[i] = made(sluice_prepared_multichannel_handshake(
            sluice_multichannel_prepare(sides.pds[i], 0, NULL), NULL, 0));
    }
    for (int round = 0; round < 2; round++) {
        struct sluice_incoming *incoming = client_meet(&client, listener, all[1], count);
        require_ok(sluice_incoming_accept_into(incoming, all[0], NULL, DEADLINE, peers, count));
        client_join(&client, 0);
        for (uint32_t i = 0; i < count; i++) {
            require(peers[i] == i + (uint32_t)round * count, "index %u", peers[i]);
            require_result(sluice_multichannel_peer_state(all[0], peers[i]), SLUICE_STATE_READY);
            require_ok(sluice_multichannel_peer_wait_connected(all[1], client.peers[i], 0));
        }
    }
    /* A refused client leaves no peer, and wakes no event loop. */
    struct sluice_incoming *incoming = client_meet(&client, listener, all[1], count);
    require_error(sluice_incoming_accept_into(incoming, all[0], NULL, DEADLINE, peers, count + 1),
                  -EINVAL, "are wanted");
    client_join(&client, -ECONNREFUSED);
    require_words(client.text, "are wanted");
    require_result(sluice_multichannel_peer_state(all[1], 2 * count), SLUICE_STATE_REMOVED);
    require(sluice_multichannel_peers(all[0]) == 2 * count, "a peer is left");
    require_result(sluice_multichannel_arm(all[1], NULL), 0);
    struct pollfd pollfd = {.fd = sluice_multichannel_fd(all[1]), .events = POLLIN};
    require(poll(&pollfd, 1, 0) == 0, "the loop would not sleep");
    sluice_listener_close(listener);
    sluice_multichannel_close(all[0]);
    sluice_multichannel_close(all[1]);
    sides_close(&sides);
}

TEST(refused_client_gets_the_reason)
{
    struct sides sides;
    struct client client;
    sides_open(&sides);
    struct sluice_listener *listener = listen_with("127.0.0.1:0", secrets[0]);
    int fds = count_warm(&sides);
    client_init(&client, listener, sides.pds[1], secrets[0]);
    client_start(&client);
    struct sluice_incoming *incoming = made(sluice_listener_next(listener, DEADLINE));
    sluice_incoming_refuse(incoming, "we are \033[1mfull");
    client_join(&client, -ECONNREFUSED);
    require_words(client.text, "refused us: we are ?[1mfull");
    require(settle_fds(fds) <= fds, "%d left", count_fds() - fds);
    /* The client also fails if the listener is closed meanwhile. */
    client_start(&client);
    while ((incoming = sluice_listener_next(listener, 0)) == NULL) {
    }
    sluice_listener_close(listener);
    sluice_incoming_refuse(incoming, NULL);
    client_join(&client, -ECONNREFUSED);
    sides_close(&sides);
}

static const struct {
    int own, theirs; /* secrets; -1: none */
    const char *words;
} mismatches[] = {{0, 1, "its secret differs"},
                  {0, -1, "it requires a secret SLUICE_SECRET_FILE or secret_file"},
                  {-1, 0, "it has no secret"}};

/* The listener goes on, and lets in clients that know its secret. */
TEST(secrets_that_differ, .times = COUNT(mismatches))
{
    struct pair pair;
    struct client client, honest;
    const char *own = mismatches[_i].own < 0 ? "" : secrets[mismatches[_i].own];
    const char *theirs = mismatches[_i].theirs < 0 ? "" : secrets[mismatches[_i].theirs];
    sides_open(&pair.sides);
    struct sluice_listener *listener = listen_with("127.0.0.1:0", own);
    client_init(&client, listener, pair.sides.pds[1], theirs);
    client_init(&honest, listener, pair.sides.pds[1], own);
    client_start(&client);
    require_null(sluice_accept(listener, pair.sides.pds[0], NULL, SLUICE_MS(300)), ETIMEDOUT, "");
    client_start(&honest);
    pair.channels[0] = made(sluice_accept(listener, pair.sides.pds[0], NULL, DEADLINE));
    client_join(&client, -EACCES);
    require_words(client.text, mismatches[_i].words);
    client_join(&honest, 0);
    pair.channels[1] = honest.channel;
    pair_works(&pair);
    sluice_listener_close(listener);
    pair_close(&pair);
}

static int listen_raw(char address[64])
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t length = sizeof(at);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 16) == 0, "%s",
            strerror(errno));
    require(getsockname(fd, (struct sockaddr *)&at, &length) == 0, "%s", strerror(errno));
    snprintf(address, 64, "127.0.0.1:%d", ntohs(at.sin_port));
    return fd;
}

/* No listener, a foreign one, a silent one, and one that comes later. */
TEST(listeners_that_are_none)
{
    struct sides sides;
    struct client client;
    char address[64];
    sides_open(&sides);
    struct sluice_connect_attr options = {.size = sizeof(options), .secret_file = ""};
    int fds = count_warm(&sides);
    int fd = listen_raw(address);
    struct span begin = span_begin();
    require_null(sluice_connect(address, sides.pds[0], NULL, &options, SLUICE_MS(300)), ETIMEDOUT,
                 "127.0.0.1");
    require_took(span_since(begin), SLUICE_MS(290), SLUICE_S(3));
    client_init(&client, NULL, sides.pds[1], "");
    snprintf(client.address, sizeof(client.address), "%s", address);
    client_start(&client);
    for (int i = 0; i < 2; i++) { /* the first secret is left by the connect before */
        int other = accept(fd, NULL, NULL);
        require(other >= 0, "%s", strerror(errno));
        (void)!write(other, "SSH-2.0-OpenSSH_9.2 and so on\r\n", 31);
        if (i == 1) {
            client_join(&client, -EPROTO);
        }
        close(other);
    }
    require_words(client.text, "no listener of sluice");
    close(fd);
    begin = span_begin();
    require_null(sluice_connect(address, sides.pds[0], NULL, &options, DEADLINE), ECONNREFUSED,
                 "refused");
    require_took(span_since(begin), 0, SLUICE_S(5));
    require_null(sluice_connect("nobody.invalid:1", sides.pds[0], NULL, &options, SLUICE_S(5)),
                 ENOENT, "nobody.invalid");
    require(settle_fds(fds) <= fds, "%d left", count_fds() - fds);
    client.options.flags = SLUICE_CONNECT_WAIT;
    require_null(sluice_connect(address, sides.pds[0], NULL, &client.options, SLUICE_MS(20)),
                 ETIMEDOUT, "within 20 ms");
    require_words(sluice_last_error(), "Connection refused");
    /* The listener comes later. */
    client_start(&client);
    let_pass(SLUICE_MS(50));
    struct sluice_listener *listener = listen_with(address, "");
    struct sluice_channel *channel = made(sluice_accept(listener, sides.pds[0], NULL, DEADLINE));
    client_join(&client, 0);
    sluice_channel_close(channel);
    sluice_channel_close(client.channel);
    sluice_listener_close(listener);
    sides_close(&sides);
}

TEST(arguments)
{
    static const char *const addresses[] = {"",      "host",        "1.2.3.4", "::1:5",
                                            "[::1]", "[::1]:70000", "a:-1",    "a:b",
                                            "[]:1",  "[[::1]:1",    "[a:1",    "a]:1"};
    struct sides sides;
    struct sluice_listen_attr attr = {.size = sizeof(attr), .secret_file = ""};
    struct sluice_connect_attr options = {.size = sizeof(options), .secret_file = ""};
    struct sluice_private_data data = {.bytes = SLUICE_PRIVATE_DATA_BYTES + 1};
    char text[8];
    sides_open(&sides);
    for (size_t i = 0; i < COUNT(addresses); i++) {
        require_null(sluice_listen(addresses[i], &attr), EINVAL, "host:port");
        require_null(sluice_connect(addresses[i], sides.pds[0], NULL, &options, DEADLINE), EINVAL,
                     "host:port");
    }
    require_null(sluice_connect("127.0.0.1:0", sides.pds[0], NULL, &options, DEADLINE), EINVAL, "");
    require_null(sluice_connect(":1", sides.pds[0], NULL, &options, DEADLINE), EINVAL, "host:port");
    require_null(sluice_listen("240.0.0.1:0", &attr), EADDRNOTAVAIL, "240.0.0.1");
    attr.flags = 8;
    require_null(sluice_listen(":0", &attr), EINVAL, "flags");
    attr.flags = SLUICE_LISTEN_FD;
    attr.fd = 0;
    require_null(sluice_listen(NULL, &attr), EINVAL, "no socket");
    attr.flags = 0;
    attr.fd = 3;
    require_null(sluice_listen(":0", &attr), EINVAL, "SLUICE_LISTEN_FD is not set");
    attr.fd = -1;
    attr.backlog = 5000;
    require_null(sluice_listen(":0", &attr), EINVAL, "backlog");
    attr.backlog = 0;
    attr.secret_file = "/nowhere";
    require_null(sluice_listen(":0", &attr), EINVAL,
                 "/nowhere: No such file or directory; the attribute secret_file names this file");
    attr.secret_file = NULL;
    setenv("SLUICE_SECRET_FILE", "/nowhere", 1);
    require_null(sluice_listen(":0", &attr), EINVAL, "SLUICE_SECRET_FILE names this file");
    options.secret_file = NULL;
    require_null(sluice_connect("127.0.0.1:1", sides.pds[0], NULL, &options, DEADLINE), EINVAL,
                 "SLUICE_SECRET_FILE names this file");
    options.secret_file = "";
    unsetenv("SLUICE_SECRET_FILE");
    attr.secret_file = "/nowhere";
    options.own = &data;
    require_null(sluice_connect("127.0.0.1:1", sides.pds[0], NULL, &options, DEADLINE), EINVAL,
                 "private data");
    options.own = NULL;
    options.flags = 2;
    require_null(sluice_connect("127.0.0.1:1", sides.pds[0], NULL, &options, DEADLINE), EINVAL,
                 "flags");
    require_null(sluice_listener_next(NULL, 0), EINVAL, "not a listener");
    require_null(sluice_incoming_accept(NULL, sides.pds[0], NULL, NULL, 0), EINVAL, "not an");
    struct sluice_listener *listener = listen_with("127.0.0.1:0", "");
    require_error(sluice_listener_address(listener, text, sizeof(text)), -ERANGE, "characters");
    require(sluice_listener_address(listener, NULL, 0) > 0, "no port");
    require_null(sluice_listener_next(listener, -1), EINVAL, "negative");
    sluice_listener_close(listener);
    sluice_listener_close(NULL);
    sluice_incoming_refuse(NULL, NULL);
    sides_close(&sides);
}

static void *wake(void *listener)
{
    let_pass(SLUICE_MS(100));
    require_ok(sluice_listener_wake(listener));
    return NULL;
}

/* A wake ends a wait, also if it comes before it; and an accept ends at its deadline. */
TEST(waits_end)
{
    struct sides sides;
    pthread_t thread;
    struct client client;
    sides_open(&sides);
    struct sluice_listener *listener = listen_with("127.0.0.1:0", "");
    require(pthread_create(&thread, NULL, wake, listener) == 0, "no thread");
    require_null(sluice_accept(listener, sides.pds[0], NULL, SLUICE_FOREVER), EINTR, "wake");
    pthread_join(thread, NULL);
    require_ok(sluice_listener_wake(listener));
    require_null(sluice_listener_next(listener, SLUICE_FOREVER), EINTR, "wake");
    require_null(sluice_listener_next(listener, SLUICE_MS(20)), ETIMEDOUT, "nobody");
    /* A client that waits and is never let in, and a client without time. */
    client_init(&client, listener, sides.pds[1], "");
    client.deadline = SLUICE_MS(500);
    client_start(&client);
    client_join(&client, -ETIMEDOUT);
    client.deadline = DEADLINE;
    client_start(&client);
    struct sluice_incoming *incoming = made(sluice_listener_next(listener, DEADLINE));
    require_null(sluice_incoming_accept(incoming, sides.pds[0], NULL, NULL, 0), ETIMEDOUT, "");
    client_join(&client, -ECONNREFUSED);
    require_words(client.text, "deadline");
    sluice_listener_close(listener);
    sides_close(&sides);
}

/* Whatever makes a listener fail, the socket stays the program's, and is not changed. */
TEST(a_socket_of_a_listener_that_fails)
{
    struct {
        struct sluice_listen_attr attr;
        uint64_t newer;
    } longer = {.newer = 1};
    struct sluice_listen_attr *attr = &longer.attr;
    char address[64];
    int fd = listen_raw(address);
    int flags = fcntl(fd, F_GETFL), of_fd = fcntl(fd, F_GETFD);
    *attr = (struct sluice_listen_attr){.flags = SLUICE_LISTEN_FD, .fd = fd, .secret_file = ""};
    attr->size = sizeof(longer);
    require_null(sluice_listen(NULL, attr), E2BIG, "");
    attr->size = sizeof(*attr);
    attr->secret_file = "/dev/null";
    require_null(sluice_listen(NULL, attr), EACCES, "/dev/null");
    attr->secret_file = "";
    require_null(sluice_listen("rdmacm:127.0.0.1:0", attr), EINVAL, "SLUICE_LISTEN_FD");
    struct rlimit limit, none;
    getrlimit(RLIMIT_NOFILE, &limit);
    none = limit;
    for (none.rlim_cur = 0; none.rlim_cur < (rlim_t)fd + 20; none.rlim_cur++) {
        setrlimit(RLIMIT_NOFILE, &none);
        struct sluice_listener *listener = sluice_listen(NULL, attr);
        setrlimit(RLIMIT_NOFILE, &limit);
        require(listener != NULL || errno == EMFILE, "%s", sluice_last_error());
        if (listener != NULL) {
            require(fcntl(fd, F_GETFD) == -1 && errno == EBADF, "it is still open");
            sluice_listener_close(listener);
            return;
        }
        require(fcntl(fd, F_GETFL) == flags && fcntl(fd, F_GETFD) == of_fd, "it was changed");
    }
    require(false, "no listener with %llu descriptors", (unsigned long long)none.rlim_cur);
}

/* A socket that a launcher opened before; the listener lets one client in at a time. */
TEST(a_socket_that_listens_already)
{
    struct sides sides;
    struct client clients[4];
    struct sluice_channel *channels[4];
    struct sluice_listen_attr attr = {
        .size = sizeof(attr), .flags = SLUICE_LISTEN_FD, .backlog = 1, .secret_file = ""};
    char address[64];
    sides_open(&sides);
    int fds = count_warm(&sides);
    attr.fd = listen_raw(address);
    struct sluice_listener *listener = made(sluice_listen(NULL, &attr));
    for (int i = 0; i < 4; i++) {
        client_init(&clients[i], listener, sides.pds[1], "");
        client_start(&clients[i]);
    }
    for (int i = 0; i < 4; i++) {
        channels[i] = made(sluice_accept(listener, sides.pds[0], NULL, DEADLINE));
    }
    for (int i = 0; i < 4; i++) {
        client_join(&clients[i], 0);
        sluice_channel_close(channels[i]);
        sluice_channel_close(clients[i].channel);
    }
    sluice_listener_close(listener);
    require(settle_fds(fds) <= fds, "%d left", count_fds() - fds);
    sides_close(&sides);
}

int main(void)
{
    static const struct tests groups[] = {{"self", WIRE_SELF, 60},
                                          {"tcp", WIRE_TCP, 60},
                                          {"clients", WIRE_SHM, 200},
                                          {"clients", WIRE_TCP, 200}};
    int result;
    write_secrets();
    result = run_groups("connect", groups, COUNT(groups));
    remove_secrets();
    return result;
}
