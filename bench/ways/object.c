/* SPDX-License-Identifier: MIT */
/* Objects: making them, connecting them if they connect, and ending them. */
#include <string.h>
#include <unistd.h>

#include "ways.h"

static void context_open(struct rank *rank, uint64_t count)
{
    struct sluice_context_info info = {.size = sizeof info};

    MUST(sluice_context_query(rank->context, &info));
    for (uint64_t i = 0; i < count; i++)
        sluice_context_close(MAKE(sluice_context_open(info.device, NULL)));
}

static void pd_alloc(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        sluice_pd_free(MAKE(sluice_pd_alloc(rank->context)));
}

static void device_list(struct rank *rank, uint64_t count)
{
    (void)rank;
    for (uint64_t i = 0; i < count; i++)
        sluice_device_list_free(MAKE(sluice_device_list_get()));
}

static void channel_prepare(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        sluice_prepared_channel_free(MAKE(sluice_channel_prepare(rank->pd, NULL)));
}

static void multichannel_prepare(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        sluice_prepared_multichannel_free(MAKE(sluice_multichannel_prepare(rank->pd, 4, NULL)));
}

static void node_prepare(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        sluice_prepared_node_free(MAKE(sluice_node_prepare(rank->pd, 0, 4, NULL)));
}

/* Connects both sides; endpoints are exchanged over a socket of the program. */
static void channel_handshake(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct sluice_channel *channel = connect_channel(rank, NULL);

        meet(rank);
        sluice_channel_close(channel);
    }
}

static void channel_reset(struct rank *rank, uint64_t count)
{
    struct sluice_channel *channel = connect_channel(rank, NULL);
    struct sluice_endpoint own, all[2];

    for (uint64_t i = 0; i < count; i++) {
        struct sluice_prepared_channel *prepared = MAKE(sluice_channel_reset(channel));

        MUST(sluice_prepared_channel_endpoint(prepared, &own));
        share(rank, &own, all, sizeof own);
        channel = MAKE(sluice_prepared_channel_handshake(prepared, &all[other(rank)]));
        MUST(sluice_channel_wait_connected(channel, DEADLINE));
        meet(rank);
    }
    sluice_channel_close(channel);
}

static void channel_shutdown(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct sluice_channel *channel = connect_channel(rank, NULL);

        meet(rank);
        MUST(sluice_channel_shutdown(channel, DEADLINE));
        sluice_channel_close(channel);
    }
}

static struct sluice_multichannel *connect_many(struct rank *rank)
{
    struct sluice_prepared_multichannel *prepared =
        MAKE(sluice_multichannel_prepare(rank->pd, 1, NULL));
    struct sluice_endpoint own, all[2];
    struct sluice_multichannel *many;

    MUST(sluice_prepared_multichannel_endpoints(prepared, &own, 1));
    share(rank, &own, all, sizeof own);
    many = MAKE(sluice_prepared_multichannel_handshake(prepared, &all[other(rank)], 1));
    MUST(sluice_multichannel_wait_connected(many, DEADLINE));
    return many;
}

static void multichannel_handshake(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct sluice_multichannel *many = connect_many(rank);

        meet(rank);
        MUST(sluice_multichannel_shutdown(many, DEADLINE));
        sluice_multichannel_close(many);
    }
}

static void join(struct rank *rank, struct sluice_multichannel *many, uint32_t peer,
                 const struct sluice_endpoint *own)
{
    struct sluice_endpoint all[2];

    share(rank, own, all, sizeof *own);
    MUST(sluice_multichannel_peer_handshake(many, peer, &all[other(rank)]));
    MUST(sluice_multichannel_peer_wait_connected(many, peer, DEADLINE));
    meet(rank);
}

static void peer_add(struct rank *rank, uint64_t count)
{
    struct sluice_multichannel *many = connect_many(rank);
    struct sluice_endpoint own;

    for (uint64_t i = 0; i < count; i++) {
        uint32_t peer = (uint32_t)MUST(sluice_multichannel_peer_add(many, &own));

        join(rank, many, peer, &own);
        MUST(sluice_multichannel_peer_remove(many, peer));
    }
    sluice_multichannel_close(many);
}

static void peer_reset(struct rank *rank, uint64_t count)
{
    struct sluice_multichannel *many = connect_many(rank);
    struct sluice_endpoint own;

    for (uint64_t i = 0; i < count; i++) {
        MUST(sluice_multichannel_peer_reset(many, 0, &own));
        join(rank, many, 0, &own);
    }
    sluice_multichannel_close(many);
}

static void node_open(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct sluice_node *node = MAKE(sluice_node_open(rank->pd, rank->exchange, NULL, DEADLINE));

        MUST(sluice_node_shutdown(node, DEADLINE));
        sluice_node_close(node);
    }
}

/* Opens a node whose ranks are not connected, and connects them. */
static void node_reach(struct rank *rank, uint64_t count)
{
    const struct sluice_node_attr attr = {.size = sizeof attr, .connect = SLUICE_NODE_CONNECT_LAZY};
    const uint32_t other = 1 - rank->rank;

    for (uint64_t i = 0; i < count; i++) {
        struct sluice_node *node =
            MAKE(sluice_node_open(rank->pd, rank->exchange, &attr, DEADLINE));

        MUST(sluice_node_reach(node, &other, 1, DEADLINE));
        MUST(sluice_node_shutdown(node, DEADLINE));
        sluice_node_close(node);
    }
}

/* Connects a second multichannel again, whose connections are all in order. */
static void node_connect(struct rank *rank, uint64_t count)
{
    struct sluice_node *node = MAKE(sluice_node_open(rank->pd, rank->exchange, NULL, DEADLINE));

    for (uint64_t i = 0; i < count; i++) {
        struct sluice_multichannel *more =
            MAKE(sluice_node_multichannel_open(node, NULL, DEADLINE));

        MUST(sluice_node_multichannel_reconnect(node, more, DEADLINE));
        sluice_multichannel_close(more);
    }
    MUST(sluice_node_shutdown(node, DEADLINE));
    sluice_node_close(node);
}

/* Rank 1 comes to the node of rank 0, and leaves it again. */
static void node_grow(struct rank *rank, uint64_t count)
{
    const struct sluice_node_attr attr = {
        .size = sizeof attr, .connect = SLUICE_NODE_CONNECT_LAZY, .max_ranks = 2};
    struct sluice_node_endpoint own[2], all[2];
    const uint32_t one = 1;
    struct sluice_node *node = NULL;

    for (uint64_t i = 0; i < count; i++) {
        struct sluice_prepared_node *prepared = NULL;

        if (node == NULL) {
            prepared = MAKE(sluice_node_prepare(rank->pd, rank->rank, 2, &attr));
            MUST(sluice_prepared_node_endpoints(prepared, own, 2));
        }
        if (rank->rank == 0 && node == NULL) {
            memset(all, 0, sizeof all);
            node = MAKE(sluice_prepared_node_handshake(prepared, all, 2));
        }
        if (rank->rank == 0)
            MUST(sluice_node_own_endpoint(node, own));
        share(rank, own, all, sizeof own[0]);
        if (rank->rank == 0) {
            MUST(sluice_node_grow(node, &all[1], 1));
        } else {
            node = MAKE(sluice_prepared_node_handshake(prepared, all, 2));
            MUST(sluice_node_barrier_reset(node));
        }
        MUST(sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_DEFAULT, DEADLINE));
        meet(rank);
        if (rank->rank == 0) {
            MUST(sluice_node_shrink(node, &one, 1));
        } else {
            sluice_node_close(node);
            node = NULL;
        }
        meet(rank);
    }
    sluice_node_close(node);
}

static struct sluice_node *connect_node(struct rank *rank)
{
    struct sluice_node_endpoint own[16], all[16];
    struct sluice_prepared_node *prepared =
        MAKE(sluice_node_prepare(rank->pd, rank->rank, rank->ranks, NULL));
    struct sluice_node *node;

    MUST(sluice_prepared_node_endpoints(prepared, own, rank->ranks));
    MUST(sluice_exchange_alltoall(rank->exchange, own, all, sizeof own[0], DEADLINE));
    node = MAKE(sluice_prepared_node_handshake(prepared, all, rank->ranks));
    MUST(sluice_multichannel_wait_connected(sluice_node_multichannel(node), DEADLINE));
    return node;
}

static void node_handshake(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct sluice_node *node = connect_node(rank);

        MUST(sluice_node_shutdown(node, DEADLINE));
        sluice_node_close(node);
    }
}

static void node_peer_reset(struct rank *rank, uint64_t count)
{
    struct sluice_node *node = connect_node(rank);
    struct sluice_node_endpoint own, all[2];

    for (uint64_t i = 0; i < count; i++) {
        meet(rank);
        MUST(sluice_node_peer_reset(node, other(rank), &own));
        share(rank, &own, all, sizeof own);
        MUST(sluice_node_peer_handshake(node, other(rank), &all[other(rank)]));
        meet(rank);
        MUST(sluice_node_barrier_reset(node));
        meet(rank);
        MUST(sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_DEFAULT, DEADLINE));
    }
    meet(rank);
    sluice_node_close(node);
}

/* Cancels a pending request, which ends its connection as well. */
static void channel_cancel(struct rank *rank, uint64_t count)
{
    const struct sluice_sge sge = place(rank, 0, 8);
    struct sluice_completion done;
    struct sluice_handle handle;

    for (uint64_t i = 0; i < count; i++) {
        struct sluice_channel *channel = connect_channel(rank, NULL);

        MUST(sluice_channel_post_receive(channel, &sge, 1, DEADLINE, &handle));
        meet(rank);
        if (rank->rank == 0)
            MUST(sluice_channel_cancel(channel, &handle, &done));
        meet(rank);
        sluice_channel_close(channel);
    }
}

static void multichannel_cancel(struct rank *rank, uint64_t count)
{
    const struct sluice_sge sge = place(rank, 0, 8);
    struct sluice_completion done;
    struct sluice_handle handle;

    for (uint64_t i = 0; i < count; i++) {
        struct sluice_multichannel *many = connect_many(rank);

        MUST(sluice_multichannel_post_receive(many, 0, &sge, 1, DEADLINE, &handle));
        meet(rank);
        if (rank->rank == 0)
            MUST(sluice_multichannel_cancel(many, &handle, &done));
        meet(rank);
        sluice_multichannel_close(many);
    }
}

static void wake(struct rank *rank, uint64_t count)
{
    struct sluice_completion done;

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++) {
        const struct sluice_sge sge = place(rank, 0, 8);

        MUST(sluice_multichannel_wake(rank->all));
        MUST(sluice_multichannel_post_write(rank->all, 1, &sge, 1, &rank->remotes[1], DEADLINE,
                                            NULL));
        while (sluice_multichannel_poll(rank->all, &done, 1) == 0)
            ;
    }
}

static void channel_wake(struct rank *rank, uint64_t count)
{
    struct sluice_completion done;

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++) {
        const struct sluice_sge sge = place(rank, 0, 8);

        MUST(sluice_channel_wake(rank->channel));
        MUST(sluice_channel_post_write(rank->channel, &sge, 1, &rank->remotes[1], DEADLINE, NULL));
        while (sluice_channel_poll(rank->channel, &done, 1) == 0)
            ;
    }
}

#define WAY(name, ranks, calls, needs)                                                  \
    {                                                                                   \
#name, "object", NULL, (ranks)> 1 ? "plain_connect" : NULL, NULL, calls, needs, \
            {ranks }, {8 }, NULL, name, NULL                                            \
    }

const struct way ways_object[] = {
    WAY(context_open, 1, "context_open context_close", 0),
    WAY(pd_alloc, 1, "pd_alloc pd_free", 0),
    WAY(device_list, 1, "device_list_get device_list_free", 0),
    WAY(channel_prepare, 1, "channel_prepare prepared_channel_free", 0),
    WAY(multichannel_prepare, 1, "multichannel_prepare prepared_multichannel_free", 0),
    WAY(node_prepare, 1, "node_prepare prepared_node_free", 0),
    WAY(channel_handshake, 2,
        "channel_prepare prepared_channel_handshake channel_wait_connected channel_close", 0),
    WAY(channel_reset, 2, "channel_reset prepared_channel_handshake", 0),
    WAY(channel_shutdown, 2, "channel_shutdown", 0),
    WAY(multichannel_handshake, 2,
        "multichannel_prepare prepared_multichannel_handshake multichannel_wait_connected "
        "multichannel_shutdown multichannel_close",
        0),
    WAY(peer_add, 2,
        "multichannel_peer_add multichannel_peer_handshake multichannel_peer_wait_connected "
        "multichannel_peer_remove",
        0),
    WAY(peer_reset, 2, "multichannel_peer_reset multichannel_peer_handshake", 0),
    WAY(node_open, 2, "node_open node_shutdown node_close", 0),
    WAY(node_reach, 2, "node_reach", 0),
    WAY(node_connect, 2, "node_multichannel_open node_multichannel_reconnect", 0),
    WAY(node_grow, 2, "node_grow node_shrink node_own_endpoint", 0),
    WAY(node_handshake, 2, "node_prepare prepared_node_handshake exchange_alltoall", 0),
    WAY(node_peer_reset, 2, "node_peer_reset node_peer_handshake node_barrier_reset", 0),
    WAY(channel_cancel, 2, "channel_cancel", 0),
    WAY(multichannel_cancel, 2, "multichannel_cancel", 0),
    {"channel_wake",
     "object",
     "write_poll",
     NULL,
     NULL,
     "channel_wake",
     CHANNEL,
     {2},
     {8},
     NULL,
     channel_wake,
     NULL},
    {"wake",
     "object",
     "many_write_poll",
     NULL,
     NULL,
     "multichannel_wake",
     NODE,
     {2},
     {8},
     NULL,
     wake,
     NULL},
    {0},
};
