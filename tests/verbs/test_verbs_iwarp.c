/* SPDX-License-Identifier: MIT */
/*
 * A pretend iWARP device, whose queue pairs a pretend rdma_cm connects: it refuses requests without
 * elements, immediates and atomic operations, and a failed attempt uses up the queue pair.
 */
#include <stdio.h>

#include "../support/client.h"
#include "../support/process.h"
#include "check.h"
#include "fake_rdmacm.h"

static struct sluice_listener *begin(struct sides *sides)
{
    fake_rdmacm_reset();
    fake_verbs.device[0].transport_type = IBV_TRANSPORT_IWARP;
    fake_verbs.device[0].atomic_cap = IBV_ATOMIC_NONE;
    fake_verbs.device[0].max_sge_rd = 1;
    fake_verbs.hurry = 8;
    sides_open(sides);
    return listen_with("rdmacm:192.0.2.1:0", "");
}

static void end(struct sides *sides, struct sluice_listener *listener)
{
    sluice_listener_close(listener);
    sides_close(sides);
    fake_rdmacm_end();
}

static void start(struct client *client, const struct sluice_listener *listener,
                  struct sluice_pd *pd)
{
    client_init(client, NULL, pd, "");
    snprintf(client->address, sizeof(client->address), "rdmacm:192.0.2.1:%d",
             sluice_listener_address(listener, NULL, 0));
    client_start(client);
}

static struct sluice_listener *begin_pair(struct pair *pair)
{
    struct sluice_listener *listener = begin(&pair->sides);
    struct client client;
    start(&client, listener, pair->sides.pds[1]);
    pair->channels[0] = made(sluice_accept(listener, pair->sides.pds[0], NULL, DEADLINE));
    client_join(&client, 0);
    pair->channels[1] = client.channel;
    return listener;
}

static void end_pair(struct pair *pair, struct sluice_listener *listener)
{
    sluice_channel_close(pair->channels[0]);
    sluice_channel_close(pair->channels[1]);
    end(&pair->sides, listener);
}

TEST(both_sides_of_sluice)
{
    struct pair pair;
    struct sluice_listener *listener = begin_pair(&pair);
    pair_works(&pair);
    require_null(sluice_channel_reset(pair.channels[0]), EOPNOTSUPP, "fake0 is iWARP rdma_cm");
    pair.channels[0] = NULL;
    end_pair(&pair, listener);
}

/* A read or a receive of no bytes has an empty element, also that of a probe. */
TEST(requests_of_no_bytes)
{
    const struct sluice_remote_mr none = {.length = 0};
    struct pair pair;
    struct sluice_listener *listener = begin_pair(&pair);
    struct sluice_handle handle = post_of(pair.channels[1], SLUICE_OP_RECEIVE, NULL);
    require_ok(sluice_channel_read(pair.channels[0], NULL, 0, &none, DEADLINE));
    require_ok(sluice_channel_write(pair.channels[0], NULL, 0, &none, DEADLINE));
    require_ok(sluice_channel_send(pair.channels[0], NULL, 0, DEADLINE));
    await(pair.channels[1], handle, SLUICE_CLASS_NONE);
    require_ok(sluice_channel_wait_connected(pair.channels[0], DEADLINE));
    require_ok(sluice_channel_wait_connected(pair.channels[1], DEADLINE));
    end_pair(&pair, listener);
}

/* So does a receive of a pool, which peers of a multichannel share. */
TEST(receives_of_a_pool_without_elements)
{
    const struct sluice_channel_attr attr = {.size = sizeof(attr), .receive_pool = 4};
    struct sluice_request none = {.user_data = 7};
    struct sluice_completion completion;
    struct sluice_incoming *incoming;
    struct sluice_multichannel *hub;
    struct client client;
    struct sides sides;
    struct sluice_listener *listener = begin(&sides);
    uint32_t peer = UINT32_MAX;
    hub = made(sluice_prepared_multichannel_handshake(
        sluice_multichannel_prepare(sides.pds[0], 0, &attr), NULL, 0));
    start(&client, listener, sides.pds[1]);
    incoming = made(sluice_listener_next(listener, DEADLINE));
    require_ok(sluice_incoming_accept_into(incoming, hub, NULL, DEADLINE, &peer, 1));
    client_join(&client, 0);
    require_result(sluice_multichannel_post_receive_any(hub, &none, 1, NULL), 1);
    require_ok(sluice_channel_send(client.channel, NULL, 0, DEADLINE));
    require_ok(sluice_multichannel_next(hub, DEADLINE, &completion));
    require(completion.error == 0 && completion.user_data == 7, "error %d", completion.error);
    sluice_channel_close(client.channel);
    sluice_multichannel_close(hub);
    end(&sides, listener);
}

/* A read is answered by a write of the peer, to memory that the program has not shared. */
TEST(sink_of_a_read)
{
    static uint8_t bytes[64];
    struct pair pair;
    struct sluice_listener *listener = begin_pair(&pair);
    struct memory far = side_memory(&pair.sides, 1, 64);
    struct sluice_mr *mr = made(
        sluice_mr_register(pair.sides.pds[0], bytes, sizeof(bytes), SLUICE_ACCESS_LOCAL_WRITE));
    struct sluice_remote_mr own, remote = memory_remote(&far, 0, 64);
    struct memory near = side_memory(&pair.sides, 1, 64);
    struct sluice_sge sge = memory_sge(&near, 0, 64);
    require_ok(sluice_mr_remote(mr, &own));
    require_ok(sluice_channel_write(pair.channels[1], &sge, 1, &own, DEADLINE));
    require_ok(sluice_mr_sge(mr, 0, 64, &sge));
    pattern_fill(far.bytes, 64, 5);
    require_ok(sluice_channel_read(pair.channels[0], &sge, 1, &remote, DEADLINE));
    pattern_check(bytes, 64, 5);
    require_ok(sluice_mr_deregister(mr));
    end_pair(&pair, listener);
}

/* The listener refuses, or no process listens. The next attempt has a new queue pair. */
TEST(attempts_use_up_queue_pairs, .times = 2)
{
    struct sides sides;
    struct client client;
    struct pair pair;
    struct sluice_listener *listener = begin(&sides);
    int port = sluice_listener_address(listener, NULL, 0);
    pair.sides = sides;
    client_init(&client, NULL, sides.pds[1], "");
    snprintf(client.address, sizeof(client.address), "rdmacm:192.0.2.1:%d", port);
    client.options.flags = SLUICE_CONNECT_WAIT;
    if (_i == 0) {
        sluice_listener_close(listener);
    }
    client_start(&client);
    if (_i == 0) {
        let_pass(SLUICE_MS(30));
        listener = listen_with(client.address, "");
    } else {
        sluice_incoming_refuse(made(sluice_listener_next(listener, DEADLINE)),
                               "too many wait at this listener: try again");
    }
    pair.channels[0] = made(sluice_accept(listener, sides.pds[0], NULL, DEADLINE));
    client_join(&client, 0);
    pair.channels[1] = client.channel;
    require_equal(channel_counters(pair.channels[1]).resets, 0);
    pair_works(&pair);
    end_pair(&pair, listener);
}

/* The other side closes: rdma_cm says so, and ends what is posted. */
TEST(close_is_noticed)
{
    struct pair pair;
    struct sluice_listener *listener = begin_pair(&pair);
    struct sluice_handle handle = post_of(pair.channels[0], SLUICE_OP_RECEIVE, NULL);
    sluice_channel_close(pair.channels[1]);
    pair.channels[1] = NULL;
    await(pair.channels[0], handle, SLUICE_CLASS_PEER_LOST);
    end_pair(&pair, listener);
}

int main(void)
{
    return run_verbs("verbs_iwarp", WIRE_TCP, 30);
}
