/* SPDX-License-Identifier: MIT */
/*
 * Processes that must not get in over the soft transport, and must learn nothing: another user with
 * the leftovers of a dead peer, with one endpoint or both, with a recording, with reflected words,
 * or at the address of the peer. Also thousands of silent strangers.
 */
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/group.h"
#include "../support/hostile.h"
#include "../support/process.h"

#define NOBODY 65534

/* Changes root to another user, which can neither read nor trace the victim. */
static void become_nobody(void)
{
    if (geteuid() == 0) {
        require(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0,
                "%s", strerror(errno));
    }
}

/* The Unix socket of a context, and its TCP port. */
static socklen_t name_of(const struct sluice_endpoint *endpoint, struct sockaddr_un *address)
{
    uint64_t context = 0;
    for (int i = 0; i < 8; i++) {
        context = context << 8 | endpoint->bytes[56 + i];
    }
    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    int length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
                          "sluice-%016" PRIx64, context);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static uint16_t port_of(const struct sluice_endpoint *endpoint)
{
    return (uint16_t)(endpoint->bytes[94] << 8 | endpoint->bytes[95]);
}

static int listen_as(const void *address, socklen_t length, int family)
{
    int one = 1;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    bool bound = bind(fd, address, length) == 0 && listen(fd, 64) == 0;
    /* Another program on this host may have the port at this time; it receives nothing either. */
    require(bound || (family == AF_INET && errno == EADDRINUSE), "%s", strerror(errno));
    return fd;
}

static int listen_at_port(uint16_t port, uint32_t host)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(host);
    return listen_as(&address, sizeof(address), AF_INET);
}

/* Requires that no connection to this listener has sent a byte. */
static void expect_silence(int listener)
{
    int fd;
    uint8_t byte;
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        ssize_t got = recv(fd, &byte, 1, 0);
        require(got <= 0, "it learned of a byte, %02x", byte);
        close(fd);
    }
}

/*
 * Rank 1 dies, and rank 2, another user, takes its port and its name before rank 0 shakes hands
 * with it.
 */
static void take_over(struct rank *rank)
{
    struct sluice_endpoint endpoints[3];
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_prepared_channel *prepared = prepare_channel(pd, NULL, &endpoints[0]);
    int listeners[2] = {-1, -1};
    endpoints[1] = endpoints[2] = endpoints[0];
    rank_exchange(rank, endpoints, endpoints, sizeof(endpoints[0]));
    if (rank->index == 1) {
        rank_await_death(rank);
    }
    if (rank->index == 0) {
        rank_kill(rank, 1);
    }
    rank_barrier(rank);
    if (rank->index == 2) {
        struct sockaddr_un name;
        socklen_t length = name_of(&endpoints[1], &name);
        become_nobody();
        listeners[0] = listen_as(&name, length, AF_UNIX);
        listeners[1] = listen_at_port(port_of(&endpoints[1]), INADDR_ANY);
    }
    rank_barrier(rank);
    if (rank->index == 0) {
        struct sluice_channel *channel =
            made(sluice_prepared_channel_handshake(prepared, &endpoints[1]));
        require_result(sluice_channel_wait_connected(channel, DEADLINE), -ECONNRESET);
        sluice_channel_close(channel);
        prepared = NULL;
    }
    rank_barrier(rank);
    for (int i = 0; i < 2 && rank->index == 2; i++) {
        expect_silence(listeners[i]);
    }
    sluice_prepared_channel_free(prepared);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(a_port_and_a_name_that_are_taken_over)
{
    group_run(3, take_over, NULL, 30);
}

/* Rank 2 has both endpoints, but is another process and user: it is not rank 1. */
static void impersonate(struct rank *rank)
{
    struct sluice_endpoint endpoints[3];
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_prepared_channel *prepared = prepare_channel(pd, NULL, &endpoints[0]);
    struct sluice_channel *channel = NULL;
    endpoints[1] = endpoints[2] = endpoints[0];
    rank_exchange(rank, endpoints, endpoints, sizeof(endpoints[0]));
    if (rank->index == 0) {
        channel = made(sluice_prepared_channel_handshake(prepared, &endpoints[1]));
    }
    rank_barrier(rank);
    if (rank->index == 2) {
        struct greeting greeting = {&endpoints[1], &endpoints[0], {0}};
        struct sockaddr_un name;
        socklen_t length = name_of(&endpoints[0], &name);
        uint8_t byte;
        become_nobody();
        for (int way = 0; way < 2; way++) {
            int fd =
                way == 0 ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : dial(&endpoints[0]);
            require(way == 1 || connect(fd, (struct sockaddr *)&name, length) == 0, "%s",
                    strerror(errno));
            require(greet(&greeting, fd), "it is denied: %s", strerror(errno));
            require(!hear(fd, &byte, 1), "way %d: it is believed", way);
            close(fd);
        }
    }
    rank_barrier(rank);
    if (rank->index == 1) {
        channel = made(sluice_prepared_channel_handshake(prepared, &endpoints[0]));
    }
    if (rank->index < 2) {
        require_ok(sluice_channel_wait_connected(channel, DEADLINE));
    } else {
        sluice_prepared_channel_free(prepared);
    }
    rank_barrier(rank);
    sluice_channel_close(channel);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(another_user_with_both_endpoints)
{
    group_run(3, impersonate, NULL, 30);
}

/* The peer listens at one address only; the same port of another address is free for others. */
static void listen_beside(struct rank *rank)
{
    struct sluice_context_attr attr = {.size = sizeof(attr)};
    struct sluice_endpoint endpoints[2];
    bool estranged = *(const int *)rank->argument != 0;
    int listener = -1;
    attr.address = "127.0.0.2";
    struct sluice_context *context = made(sluice_context_open(test_device(), &attr));
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_prepared_channel *prepared = prepare_channel(pd, NULL, &endpoints[0]);
    endpoints[1] = endpoints[0];
    rank_exchange(rank, endpoints, endpoints, sizeof(endpoints[0]));
    if (rank->index == 0) {
        listener = listen_at_port(port_of(&endpoints[1]), INADDR_LOOPBACK);
    }
    rank_barrier(rank);
    if (estranged) {
        endpoints[!rank->index].bytes[187] ^= 1;
        seal(&endpoints[!rank->index]);
    }
    struct sluice_channel *channel =
        made(sluice_prepared_channel_handshake(prepared, &endpoints[!rank->index]));
    require_ok(sluice_channel_wait_connected(channel, DEADLINE));
    rank_barrier(rank);
    if (rank->index == 0) {
        require(accept(listener, NULL, NULL) < 0, "the listener was dialed");
    }
    sluice_channel_close(channel);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(a_free_port_beside_the_peer, .times = 2)
{
    group_run(2, listen_beside, &_i, 30);
}

/* Lets the victim wait for a peer that leads, or that follows. */
static void await_hostile(struct victim *victim)
{
    require_ok(sluice_multichannel_peer_reset(victim->star.hub, 0, &victim->endpoint));
    reset_hostile(victim);
    require_ok(sluice_multichannel_peer_handshake(victim->star.hub, 0, &victim->forged));
}

static void end_waiting(struct victim *victim)
{
    require_ok(sluice_multichannel_peer_reset(victim->star.hub, 0, &victim->endpoint));
    star_works(&victim->star, 1);
    victim_close(victim);
}

/* The endpoint claims another host, with an address that this host has as well. */
TEST(an_address_that_two_hosts_share, .times = 2)
{
    struct victim victim;
    uint8_t byte;
    victim_open(&victim, (uint8_t)(_i == 0 ? 0 : 0xff));
    victim.forged.bytes[32 + _i * 16] ^= 1; /* another host, or another network */
    await_hostile(&victim);
    for (int i = 0; i < 5; i++) {
        int fd = accept(victim.listener, NULL, NULL);
        require(fd >= 0 && !hear(fd, &byte, 1), "it learned of a byte, %02x", byte);
        close(fd);
    }
    /* A process that dials from this host is not believed either, though it has both endpoints. */
    struct greeting greeting = {&victim.forged, &victim.endpoint, {0}};
    int fd = dial(&victim.endpoint);
    require(greet(&greeting, fd) && !hear(fd, &byte, 1), "it is believed");
    close(fd);
    end_waiting(&victim);
}

/* Requires that the stranger had no effect: the peer is still awaited, and others can connect. */
static void expect_waiting(struct victim *victim)
{
    struct sluice_multichannel *hub = victim->star.hub;
    require(sluice_multichannel_peer_state(hub, 0) != SLUICE_STATE_FAILED, "it is lost");
    require_result(sluice_multichannel_peer_wait_connected(hub, 0, SLUICE_MS(1)), -ETIMEDOUT);
    star_works(&victim->star, 1);
}

/* Returns whether the victim has hung up, and has sent no more than its own proof before. */
static bool is_dropped(int fd)
{
    uint8_t bytes[PROOF_BYTES + 1];
    size_t got = 0;
    ssize_t count;
    do {
        count = recv(fd, bytes + got, sizeof(bytes) - got, 0);
        got += count > 0 ? (size_t)count : 0;
    } while (count > 0 && got < sizeof(bytes));
    return (got == 0 || got == PROOF_BYTES) &&
           (count == 0 || (count < 0 && (errno == ECONNRESET || errno == EPIPE)));
}

/*
 * Neither a proof that was valid once nor one that is almost right is accepted. A near victim
 * that does not lead sends its own proof with its challenge.
 */
TEST(invalid_proofs, .times = 2)
{
    enum { REPLAYED, WRONG_BIT, OF_OTHER_PART, OF_OTHER_NUMBER, ONE_KEY, OTHER_NAME, WAYS };
    struct victim victim;
    victim_open(&victim, (uint8_t)(_i == 0 ? 0 : 0xff));
    await_hostile(&victim);
    for (int way = 0; way < WAYS; way++) {
        struct sluice_endpoint claimed = victim.forged;
        struct greeting greeting = {&claimed, &victim.endpoint, {0}};
        uint8_t proof[PROOF_BYTES];
        int fd = dial(&victim.endpoint);
        claimed.bytes[7] ^= way == OF_OTHER_NUMBER;
        claimed.bytes[76] ^= way == ONE_KEY;
        claimed.bytes[72] ^= way == OTHER_NAME;
        make_hello(&greeting);
        say(fd, greeting.said, HELLO_BYTES);
        require(hear(fd, greeting.said + HELLO_BYTES, CHALLENGE_BYTES), "way %d: no challenge",
                way);
        make_proof(&greeting, way == OF_OTHER_PART ? OF_ACCEPTOR : OF_DIALER, proof);
        proof[31] ^= way == WRONG_BIT;
        if (way == REPLAYED) { /* of a greeting that was never finished */
            uint8_t again[CHALLENGE_BYTES];
            close(fd);
            fd = dial(&victim.endpoint);
            say(fd, greeting.said, HELLO_BYTES);
            require(hear(fd, again, sizeof(again)), "no challenge");
            require(memcmp(again, greeting.said + HELLO_BYTES, sizeof(again)) != 0,
                    "the same challenge");
        }
        say(fd, proof, sizeof(proof));
        require(is_dropped(fd), "way %d: it is believed", way);
        close(fd);
        expect_waiting(&victim);
    }
    end_waiting(&victim);
}

/* The victim dials a stranger, which sends back the words of this or an earlier greeting. */
TEST(reflected_words, .times = 2)
{
    struct victim victim;
    victim_open(&victim, (uint8_t)(_i == 0 ? 0 : 0xff));
    await_hostile(&victim);
    struct greeting greeting = {&victim.endpoint, &victim.forged, {0}};
    uint8_t proof[PROOF_BYTES], old[PROOF_BYTES] = {0}, byte;
    for (int way = 0; way < 4; way++) {
        int fd = accept(victim.listener, NULL, NULL);
        require(hear(fd, greeting.said, HELLO_BYTES), "no hello: %s", strerror(errno));
        if (way == 0) {
            say(fd, greeting.said, CHALLENGE_BYTES);
            require(!hear(fd, &byte, 1), "it goes on");
            close(fd);
            continue;
        }
        make_challenge(&greeting);
        say(fd, greeting.said + HELLO_BYTES, CHALLENGE_BYTES);
        require(hear(fd, proof, sizeof(proof)), "way %d: no proof", way);
        if (way == 1) {
            make_proof(&greeting, OF_ACCEPTOR, old);
        }
        if (way == 3) {
            make_proof(&greeting, OF_CHOICE, proof);
        }
        say(fd, way == 2 ? old : proof, sizeof(proof));
        require(!hear(fd, &byte, 1), "way %d: it is believed", way);
        close(fd);
        expect_waiting(&victim);
    }
    end_waiting(&victim);
}

/*
 * A recorded hello of a queue pair that is not connected yet is answered each time. It delays
 * neither others that replay it nor the real peer.
 */
TEST(replayed_hellos, .times = 2)
{
    enum { TIMES = 1000, OPEN = 300 };
    struct victim victim;
    uint8_t challenge[CHALLENGE_BYTES];
    int fds[OPEN];
    memset(fds, -1, sizeof(fds));
    victim_open(&victim, (uint8_t)(_i == 0 ? 0 : 0xff));
    await_hostile(&victim);
    struct greeting greeting = {&victim.forged, &victim.endpoint, {0}};
    make_hello(&greeting);
    struct span begin = span_begin();
    for (int i = 0; i < TIMES; i++) {
        int *fd = &fds[i % OPEN];
        if (*fd >= 0) {
            close(*fd);
        }
        *fd = dial(&victim.endpoint);
        say(*fd, greeting.said, HELLO_BYTES);
        require(hear(*fd, challenge, sizeof(challenge)), "time %d: no challenge", i);
    }
    require_took(span_since(begin), 0, SLUICE_S(4));
    for (int i = 0; i < OPEN; i++) {
        close(fds[i]);
    }
    end_waiting(&victim);
}

/* Strangers. */

#define STRANGERS 3000
#define HANDSHAKES 20

static void connect_stranger(int epoll, int i, const struct sockaddr *address, socklen_t length,
                             int *fds)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.u32 = (uint32_t)i};
    if (fds[i] > 0) {
        close(fds[i]);
    }
    fds[i] = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(fds[i], address, length);
    epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event);
}

/* Keeps this many silent connections open, in another process and as another user. */
static pid_t start_strangers(const struct sluice_endpoint *endpoint, bool is_unix, int count)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons(port_of(endpoint))};
    struct sockaddr_un name;
    socklen_t length = name_of(endpoint, &name);
    int ready[2];
    char byte;
    in4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    require(pipe(ready) == 0, "%s", strerror(errno));
    pid_t child = fork();
    require(child >= 0, "%s", strerror(errno));
    if (child == 0) {
        static int fds[STRANGERS];
        const struct sockaddr *address =
            is_unix ? (const struct sockaddr *)&name : (const struct sockaddr *)&in4;
        struct epoll_event events[256];
        int epoll = epoll_create1(0);
        become_nobody();
        if (!is_unix) {
            length = sizeof(in4);
        }
        for (int i = 0; i < count; i++) {
            connect_stranger(epoll, i, address, length, fds);
        }
        if (write(ready[1], "r", 1) != 1) {
            _exit(1);
        }
        for (;;) {
            int got = epoll_wait(epoll, events, 256, 1000);
            for (int i = 0; i < got; i++) {
                connect_stranger(epoll, (int)events[i].data.u32, address, length, fds);
            }
        }
    }
    require(read(ready[0], &byte, 1) == 1, "no strangers");
    close(ready[0]);
    close(ready[1]);
    return child;
}

/* Measures mean and worst of some handshakes, over the Unix socket or over TCP. */
static void time_handshakes(struct sides *sides, bool is_unix, int64_t *mean, int64_t *worst)
{
    *mean = *worst = 0;
    for (int i = 0; i < HANDSHAKES; i++) {
        struct pair pair = {.sides = *sides};
        struct sluice_prepared_channel *prepared[2];
        struct sluice_endpoint endpoints[2];
        for (int j = 0; j < 2; j++) {
            prepared[j] = prepare_channel(sides->pds[j], NULL, &endpoints[j]);
            endpoints[j].bytes[187] ^= !is_unix;
            seal(&endpoints[j]);
        }
        int64_t start = fair_now();
        for (int j = 0; j < 2; j++) {
            pair.channels[j] = made(sluice_prepared_channel_handshake(prepared[j], &endpoints[!j]));
        }
        for (int j = 0; j < 2; j++) {
            require_ok(sluice_channel_wait_connected(pair.channels[j], DEADLINE));
        }
        int64_t took = fair_now() - start;
        *mean += took / HANDSHAKES;
        *worst = took > *worst ? took : *worst;
        sluice_channel_close(pair.channels[0]);
        sluice_channel_close(pair.channels[1]);
    }
}

/*
 * Both contexts have strangers. The test may run again, as other load on the host is not measured.
 */
TEST(silent_strangers, .times = 2)
{
    bool is_unix = _i != 0;
    struct sides sides;
    struct sluice_endpoint endpoints[2];
    struct sluice_prepared_channel *prepared[2];
    struct rlimit limit = {8192, 8192};
    pid_t strangers[2];
    int count = short_run() ? 500 : STRANGERS;
    int64_t mean = 0, worst = 0;
    /*
     * The limit is for a busy machine; if the handshake waited for strangers, it would take
     * seconds.
     */
    const int64_t most = SLUICE_MS(500);
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < 2 * STRANGERS) {
        count = limit.rlim_max / 4 < STRANGERS ? (int)(limit.rlim_max / 4) : STRANGERS;
    }
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    sides_open(&sides);
    for (int i = 0; i < 2; i++) {
        prepared[i] = prepare_channel(sides.pds[i], NULL, &endpoints[i]);
    }
    time_handshakes(&sides, is_unix, &mean, &worst);
    printf("# %s, nobody else: mean %" PRId64 " us, worst %" PRId64 " us\n",
           is_unix ? "Unix" : "TCP", mean / 1000, worst / 1000);
    for (int i = 0; i < 2; i++) {
        strangers[i] = start_strangers(&endpoints[i], is_unix, count / 2);
    }
    for (int i = 0; i < 10 && (i == 0 || mean > most); i++) {
        time_handshakes(&sides, is_unix, &mean, &worst);
        printf("# %s, %d strangers: mean %" PRId64 " us, worst %" PRId64 " us\n",
               is_unix ? "Unix" : "TCP", count, mean / 1000, worst / 1000);
    }
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        kill(strangers[i], SIGKILL);
        waitpid(strangers[i], NULL, 0);
        sluice_prepared_channel_free(prepared[i]);
    }
    require(mean <= most, "a handshake takes %" PRId64 " us", mean / 1000);
    sides_close(&sides);
}

int main(void)
{
    return RUN_ON_SOFT("door", {"near", WIRE_SHM, 60});
}
