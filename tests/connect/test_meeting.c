/* SPDX-License-Identifier: MIT */
/*
 * How two sides of the soft transport meet over TCP, whatever listens at the other addresses of the
 * peer, whichever side leads, and if only one side can be reached. Contexts of one process would
 * meet over a Unix socket, so each is made to believe that the other is in a process that it cannot
 * see.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../support/hostile.h"
#include "../support/process.h"

/* Two prepared sides, and the endpoint that each gets of the other. */
struct couple {
    struct pair pair;
    struct sluice_prepared_channel *prepared[2];
    struct sluice_endpoint endpoints[2];
};

#define ADDRESS_AT 92
#define ADDRESS_BYTES 20

static uint8_t *address_of(struct sluice_endpoint *endpoint, int index)
{
    return endpoint->bytes + ADDRESS_AT + (ptrdiff_t)index * ADDRESS_BYTES;
}

/* An address on the loopback interface, port 0: none. */
static void set_address(struct sluice_endpoint *endpoint, int index, uint16_t port)
{
    static const uint8_t loopback[4] = {127, 0, 0, 1};
    uint8_t *address = address_of(endpoint, index);
    memset(address, 0, ADDRESS_BYTES);
    address[1] = port != 0 ? 4 : 0;
    address[2] = (uint8_t)(port >> 8);
    address[3] = (uint8_t)port;
    if (port != 0) {
        memcpy(address + 4, loopback, sizeof(loopback));
    }
}

static uint16_t port_of(struct sluice_endpoint *endpoint)
{
    const uint8_t *address = address_of(endpoint, 0);
    return (uint16_t)(address[2] << 8 | address[3]);
}

/*
 * Makes the endpoint look remote, so that the peer is met over TCP, at the addresses in it and no
 * others.
 */
static void estrange(struct sluice_endpoint *endpoint)
{
    endpoint->bytes[187] ^= 1;
    memset(endpoint->bytes + 200, 0, 4);
    seal(endpoint);
}

static void couple_prepare(struct couple *couple)
{
    for (int i = 0; i < 2; i++) {
        couple->prepared[i] =
            prepare_channel(couple->pair.sides.pds[i], NULL, &couple->endpoints[i]);
        uint16_t port = port_of(&couple->endpoints[i]);
        for (int j = 0; j < 4; j++) {
            set_address(&couple->endpoints[i], j, j == 0 ? port : 0);
        }
        estrange(&couple->endpoints[i]);
    }
}

static void shake(struct couple *couple, int side)
{
    couple->pair.channels[side] =
        made(sluice_prepared_channel_handshake(couple->prepared[side], &couple->endpoints[!side]));
}

/* Requires that both sides have met, once, and work. */
static void couple_works(struct couple *couple)
{
    for (int i = 0; i < 2; i++) {
        require_ok(sluice_channel_wait_connected(couple->pair.channels[i], DEADLINE));
    }
    pair_works(&couple->pair);
    for (int i = 0; i < 2; i++) {
        sluice_channel_close(couple->pair.channels[i]);
    }
}

static int listen_with(int backlog, uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    require(bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, backlog) == 0 &&
                getsockname(fd, (struct sockaddr *)&address, &length) == 0,
            "%s", strerror(errno));
    *port = ntohs(address.sin_port);
    return fd;
}

/* A multicast address of IPv6: no host has a route to it for TCP. */
static void set_address_without_route(struct sluice_endpoint *endpoint, int index)
{
    uint8_t *address = address_of(endpoint, index);
    memset(address, 0, ADDRESS_BYTES);
    address[1] = 6;
    address[3] = 1;
    address[4] = 0xff;
    address[5] = 0x0e;
    address[19] = 1;
}

/* What listens at an address of a peer, beside or instead of the peer. */
enum place {
    NOBODY,     /* refuses */
    SILENT,     /* accepts connections, and is silent */
    BLACK_HOLE, /* drops all packets */
    PLACES
};

struct trap {
    uint16_t port;
    int listener;
    int full[4];
};

static void trap_open(struct trap *trap, enum place place)
{
    trap->listener = listen_with(place == BLACK_HOLE ? 0 : 64, &trap->port);
    for (int i = 0; i < 4; i++) {
        trap->full[i] = -1;
    }
    if (place == NOBODY) {
        close(trap->listener);
        trap->listener = -1;
    }
    for (int i = 0; place == BLACK_HOLE && i < 4; i++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(trap->port)};
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        trap->full[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        require(connect(trap->full[i], (struct sockaddr *)&address, sizeof(address)) == 0 ||
                    errno == EINPROGRESS,
                "%s", strerror(errno));
    }
}

static void trap_close(struct trap *trap)
{
    for (int i = 0; i < 4; i++) {
        if (trap->full[i] >= 0) {
            close(trap->full[i]);
        }
    }
    if (trap->listener >= 0) {
        close(trap->listener);
    }
}

/* Three other addresses come before the peer's own in the list of each. */
TEST(other_addresses_delay_no_meeting, .times = PLACES)
{
    struct couple couple;
    struct trap traps[3];
    sides_open(&couple.pair.sides);
    for (int i = 0; i < 3; i++) {
        trap_open(&traps[i], (enum place)_i);
    }
    for (int round = 0; round < 4; round++) {
        couple_prepare(&couple);
        for (int i = 0; i < 2; i++) {
            uint16_t port = port_of(&couple.endpoints[i]);
            for (int j = 0; j < 3; j++) {
                set_address(&couple.endpoints[i], j, traps[j].port);
            }
            set_address(&couple.endpoints[i], 3, port);
            seal(&couple.endpoints[i]);
        }
        int64_t start = fair_now();
        shake(&couple, round % 2);
        shake(&couple, !(round % 2));
        couple_works(&couple);
        require(fair_now() - start < SLUICE_S(5), "round %d took %lld ms", round,
                (long long)(fair_now() - start) / 1000000);
    }
    for (int i = 0; i < 3; i++) {
        trap_close(&traps[i]);
    }
    sides_close(&couple.pair.sides);
}

/* Only one of them can be dialed, whichever leads. */
TEST(one_side_can_be_reached, .times = PLACES)
{
    struct couple couple;
    struct trap trap;
    sides_open(&couple.pair.sides);
    trap_open(&trap, (enum place)_i);
    for (int round = 0; round < 20; round++) {
        couple_prepare(&couple);
        set_address(&couple.endpoints[round % 2], 0, trap.port);
        seal(&couple.endpoints[round % 2]);
        shake(&couple, round / 2 % 2);
        shake(&couple, !(round / 2 % 2));
        couple_works(&couple);
    }
    trap_close(&trap);
    sides_close(&couple.pair.sides);
}

/*
 * Both sides dial: the second handshake comes when the first side, if it follows, begins to dial.
 */
TEST(both_dial_and_one_connection_stays)
{
    struct couple couple;
    int prepared = 0;
    sides_open(&couple.pair.sides);
    for (int round = 0; round < (short_run() ? 12 : 40); round++) {
        couple_prepare(&couple);
        /* Sockets of the round before may still be closing, but none of the first. */
        prepared = round == 0 ? count_fds() : settle_fds(prepared);
        shake(&couple, 0);
        let_pass(SLUICE_MS(196) + SLUICE_MS(1) * (round % 9));
        shake(&couple, 1);
        for (int i = 0; i < 2; i++) {
            require_ok(sluice_channel_wait_connected(couple.pair.channels[i], DEADLINE));
        }
        int now = settle_fds(prepared + 2);
        require(now == prepared + 2, "%d fds, were %d", now, prepared);
        couple_works(&couple);
    }
    sides_close(&couple.pair.sides);
}

/* One side comes long before the other one, and may leave before it has come. */
TEST(waiting_side_gets_the_error)
{
    struct couple couple;
    sides_open(&couple.pair.sides);
    for (int round = 0; round < 4; round++) {
        couple_prepare(&couple);
        shake(&couple, 0);
        let_pass(SLUICE_MS(400));
        require_result(sluice_channel_wait_connected(couple.pair.channels[0], SLUICE_MS(10)),
                       -ETIMEDOUT);
        int64_t start = fair_now();
        sluice_prepared_channel_free(couple.prepared[1]);
        require_result(sluice_channel_wait_connected(couple.pair.channels[0], DEADLINE),
                       -ECONNRESET);
        require(fair_now() - start < SLUICE_S(1), "noticed after %lld ms",
                (long long)(fair_now() - start) / 1000000);
        sluice_channel_close(couple.pair.channels[0]);
    }
    sides_close(&couple.pair.sides);
}

/* An address that this host has no route to does not make up for one that refuses. */
TEST(peer_that_left_is_lost_in_spite_of_no_route)
{
    struct couple couple;
    struct trap trap;
    sides_open(&couple.pair.sides);
    trap_open(&trap, NOBODY);
    couple_prepare(&couple);
    set_address(&couple.endpoints[1], 0, trap.port);
    set_address_without_route(&couple.endpoints[1], 1);
    seal(&couple.endpoints[1]);
    int64_t start = fair_now();
    shake(&couple, 0);
    require_result(sluice_channel_wait_connected(couple.pair.channels[0], SLUICE_S(30)),
                   -ECONNRESET);
    require(fair_now() - start < SLUICE_S(9), "noticed after %lld ms",
            (long long)(fair_now() - start) / 1000000);
    sluice_channel_close(couple.pair.channels[0]);
    sluice_prepared_channel_free(couple.prepared[1]);
    trap_close(&trap);
    sides_close(&couple.pair.sides);
}

/*
 * More connect to one endpoint than it has seats, and its side does not: each that comes makes
 * another one leave, which comes again. That costs little.
 */
#define DIALERS 25

TEST(many_that_hope_for_one_peer_cost_little)
{
    struct sides sides;
    struct sluice_endpoint endpoint, ignored;
    struct sluice_channel *channels[DIALERS];
    sides_open(&sides);
    struct sluice_prepared_channel *prepared = prepare_channel(sides.pds[0], NULL, &endpoint);
    for (int i = 0; i < DIALERS; i++) {
        channels[i] = made(sluice_prepared_channel_handshake(
            prepare_channel(sides.pds[1], NULL, &ignored), &endpoint));
    }
    /* Pauses grow meanwhile. */
    let_pass(SLUICE_S(1));
    int64_t used = cpu_used();
    let_pass(SLUICE_S(1));
    used = cpu_used() - used;
    require(used < SLUICE_MS(250), "%lld us of a second", (long long)(used / 1000));
    for (int i = 0; i < DIALERS; i++) {
        sluice_channel_close(channels[i]);
    }
    sluice_prepared_channel_free(prepared);
    sides_close(&sides);
}

int main(void)
{
    return RUN_ON_SOFT("meeting", {"tcp", WIRE_TCP, 60});
}
