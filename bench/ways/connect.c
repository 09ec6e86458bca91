/* SPDX-License-Identifier: MIT */
/* Connecting by address: rank 1 listens, rank 0 connects, one after the other. */
#include <stdio.h>
#include <string.h>

#include "ways.h"

struct meeting {
    struct sluice_listener *listener; /* of rank 1 */
    struct sluice_multichannel *many;
    char address[64];
};

static void make_meeting(struct rank *rank)
{
    struct meeting *meeting = MAKE(calloc(1, sizeof *meeting));
    char own[64] = "", all[2][64];

    if (rank->rank == 1) {
        meeting->listener = MAKE(sluice_listen("127.0.0.1:0", NULL));
        MUST(sluice_listener_address(meeting->listener, own, sizeof own));
    }
    share(rank, own, all, sizeof own);
    memcpy(meeting->address, all[1], sizeof own);
    meeting->many = MAKE(sluice_prepared_multichannel_handshake(
        MAKE(sluice_multichannel_prepare(rank->pd, 0, NULL)), NULL, 0));
    rank->state = meeting;
}

static void end_meeting(struct rank *rank)
{
    struct meeting *meeting = rank->state;

    meet(rank);
    sluice_multichannel_close(meeting->many);
    sluice_listener_close(meeting->listener);
    free(meeting);
}

/* Exchanges a message and its answer, as a client and its server would begin. */
static void greet(struct rank *rank, struct sluice_channel *channel)
{
    const struct sluice_sge to = place(rank, 0, 8), from = place(rank, 8, 8);

    if (rank->rank == 0)
        MUST(sluice_channel_send(channel, &to, 1, DEADLINE));
    MUST(sluice_channel_receive(channel, &from, 1, DEADLINE, NULL));
    if (rank->rank == 1)
        MUST(sluice_channel_send(channel, &to, 1, DEADLINE));
    sluice_channel_close(channel);
}

static void connect_accept(struct rank *rank, uint64_t count)
{
    const struct meeting *meeting = rank->state;

    for (uint64_t i = 0; i < count; i++)
        greet(rank, rank->rank == 0
                        ? MAKE(sluice_connect(meeting->address, rank->pd, NULL, NULL, DEADLINE))
                        : MAKE(sluice_accept(meeting->listener, rank->pd, NULL, DEADLINE)));
}

static void connect_incoming(struct rank *rank, uint64_t count)
{
    const struct meeting *meeting = rank->state;

    for (uint64_t i = 0; i < count; i++)
        greet(rank, rank->rank == 0
                        ? MAKE(sluice_connect(meeting->address, rank->pd, NULL, NULL, DEADLINE))
                        : MAKE(sluice_incoming_accept(
                              MAKE(sluice_listener_next(meeting->listener, DEADLINE)), rank->pd,
                              NULL, NULL, DEADLINE)));
}

static void connect_into(struct rank *rank, uint64_t count)
{
    const struct meeting *meeting = rank->state;
    uint32_t peer;

    for (uint64_t i = 0; i < count; i++) {
        if (rank->rank == 0)
            MUST(sluice_connect_into(meeting->address, meeting->many, NULL, DEADLINE, &peer, 1));
        else
            MUST(
                sluice_incoming_accept_into(MAKE(sluice_listener_next(meeting->listener, DEADLINE)),
                                            meeting->many, NULL, DEADLINE, &peer, 1));
        meet(rank);
        MUST(sluice_multichannel_peer_remove(meeting->many, peer));
    }
}

/* Accepts one client, as a server with an event loop does. */
static struct sluice_admitted admit(const struct rank *rank, bool into)
{
    const struct meeting *meeting = rank->state;
    struct sluice_admitted admitted = {.size = sizeof admitted};
    struct sluice_incoming *incoming = MAKE(sluice_listener_next(meeting->listener, DEADLINE));

    if (into)
        MUST(sluice_incoming_admit_into(incoming, meeting->many, NULL, DEADLINE, 0));
    else
        MUST(sluice_incoming_admit(incoming, rank->pd, NULL, NULL, DEADLINE, 0));
    MUST(sluice_listener_admitted(meeting->listener, DEADLINE, &admitted));
    MUST(admitted.error);
    return admitted;
}

static void connect_admit(struct rank *rank, uint64_t count)
{
    const struct meeting *meeting = rank->state;

    for (uint64_t i = 0; i < count; i++)
        greet(rank, rank->rank == 0
                        ? MAKE(sluice_connect(meeting->address, rank->pd, NULL, NULL, DEADLINE))
                        : admit(rank, false).channel);
}

static void connect_admit_into(struct rank *rank, uint64_t count)
{
    const struct meeting *meeting = rank->state;
    uint32_t peer;

    for (uint64_t i = 0; i < count; i++) {
        if (rank->rank == 0)
            MUST(sluice_connect_into(meeting->address, meeting->many, NULL, DEADLINE, &peer, 1));
        else
            peer = admit(rank, true).peer;
        meet(rank);
        MUST(sluice_multichannel_peer_remove(meeting->many, peer));
    }
}

static void listener_cancel(struct rank *rank, uint64_t count)
{
    const struct meeting *meeting = rank->state;

    for (uint64_t i = 0; rank->rank == 1 && i < count; i++)
        MUST(sluice_listener_cancel(meeting->listener, i));
    meet(rank);
}

static void connect_refused(struct rank *rank, uint64_t count)
{
    const struct meeting *meeting = rank->state;

    for (uint64_t i = 0; i < count; i++)
        if (rank->rank == 0) {
            struct sluice_channel *channel =
                sluice_connect(meeting->address, rank->pd, NULL, NULL, DEADLINE);

            MUST(channel == NULL ? 0 : -1);
        } else {
            sluice_incoming_refuse(MAKE(sluice_listener_next(meeting->listener, DEADLINE)), "no");
        }
}

static void listen_close(struct rank *rank, uint64_t count)
{
    (void)rank;
    for (uint64_t i = 0; i < count; i++)
        sluice_listener_close(MAKE(sluice_listen("127.0.0.1:0", NULL)));
}

static void listener_wake(struct rank *rank, uint64_t count)
{
    const struct meeting *meeting = rank->state;
    struct sluice_incoming *incoming;

    for (uint64_t i = 0; rank->rank == 1 && i < count; i++) {
        MUST(sluice_listener_wake(meeting->listener));
        incoming = sluice_listener_next(meeting->listener, DEADLINE);
        MUST(incoming == NULL ? 0 : -1);
    }
    meet(rank);
}

#define WAY(name, calls)                                         \
    {                                                            \
#name, "connect", NULL, "plain_connect", NULL, calls, 0, \
            {2 }, {8 }, make_meeting, name, end_meeting          \
    }

const struct way ways_connect[] = {
    WAY(connect_accept, "connect accept listen listener_close"),
    WAY(connect_incoming, "listener_next incoming_accept"),
    WAY(connect_into, "connect_into incoming_accept_into"),
    WAY(connect_admit, "listener_next incoming_admit listener_admitted"),
    WAY(connect_admit_into, "incoming_admit_into listener_admitted"),
    WAY(connect_refused, "incoming_refuse"),
    WAY(listener_cancel, "listener_cancel"),
    WAY(listener_wake, "listener_wake"),
    {"listen_close",
     "connect",
     NULL,
     NULL,
     NULL,
     "listen listener_close",
     0,
     {1},
     {8},
     NULL,
     listen_close,
     NULL},
    {0},
};
