/* SPDX-License-Identifier: MIT */
#include "talk.h"

#include <stdio.h>
#include <string.h>

/* In one cache line, a frame, more than a turn of the ring, and lent or split. */
static const size_t sizes[] = {1, 40, 200, 4096, 100000, 1 << 20};
#define SIZES (sizeof sizes / sizeof sizes[0])
#define MOST ((size_t)1 << 20)
/* A region: what is sent, what is received, what the peer writes, and a word for atomics. */
#define OUT 0
#define IN MOST
#define REMOTE (2 * MOST)
#define WORD (3 * MOST)
#define BYTES (3 * MOST + 64)

/* Messages in both directions at once. */
static int swap_messages(struct sluice_channel *channel, struct device *device)
{
    for (uint32_t i = 0; i < SIZES; i++) {
        struct sluice_request requests[2] = {
            {.opcode = SLUICE_OP_RECEIVE, .sge_count = 1},
            {.opcode = SLUICE_OP_SEND, .sge_count = 1},
        };

        fill(device->memory + OUT, sizes[i], side, i);
        if (sluice_mr_sge(device->mr, IN, sizes[i], &requests[0].sge) != 0 ||
            sluice_mr_sge(device->mr, OUT, sizes[i], &requests[1].sge) != 0 ||
            sluice_channel_submit(channel, requests, 2, DEADLINE, NULL) != 0)
            return complain("send and receive");
        if (!is_filled(device->memory + IN, sizes[i], 1 - side, i))
            return differ("send and receive");
    }
    return 0;
}

/* Writes go to the peer's memory, and are read back from there. */
static int write_and_read(struct sluice_channel *channel, struct device *device,
                          const struct sluice_remote_mr *remote)
{
    for (uint32_t i = 0; i < SIZES; i++) {
        struct sluice_remote_mr place;
        struct sluice_sge out, in;

        fill(device->memory + OUT, sizes[i], side, 100 + i);
        memset(device->memory + IN, 0, sizes[i]);
        if (sluice_remote_mr_slice(remote, REMOTE, sizes[i], &place) != 0 ||
            sluice_mr_sge(device->mr, OUT, sizes[i], &out) != 0 ||
            sluice_mr_sge(device->mr, IN, sizes[i], &in) != 0 ||
            sluice_channel_write(channel, &out, 1, &place, DEADLINE) != 0)
            return complain("write");
        if (sluice_channel_read(channel, &in, 1, &place, DEADLINE) != 0)
            return complain("read");
        if (!is_filled(device->memory + IN, sizes[i], side, 100 + i))
            return differ("write and read");
    }
    return 0;
}

static int add(struct sluice_channel *channel, struct device *device,
               const struct sluice_remote_mr *remote)
{
    struct sluice_remote_mr place;
    struct sluice_sge result;
    uint64_t old;

    for (uint64_t i = 0; i < 3; i++) {
        if (sluice_remote_mr_slice(remote, WORD, 8, &place) != 0 ||
            sluice_mr_sge(device->mr, WORD + 8, 8, &result) != 0 ||
            sluice_channel_fetch_add(channel, &result, &place, 5, DEADLINE) != 0)
            return complain("fetch and add");
        memcpy(&old, device->memory + WORD + 8, sizeof old);
        if (old != 5 * i)
            return differ("fetch and add");
    }
    return 0;
}

/* The word that one side adds to, the other side reads here: it was added to three times. */
static int has_sum(const struct device *device)
{
    return sluice_load_acquire64((const uint64_t *)(const void *)(device->memory + WORD)) == 15;
}

/* The side that closes first says farewell to the other one, which waits for it. */
static int part(struct sluice_channel *channel, struct device *device)
{
    struct sluice_error error = {.size = sizeof error};
    struct sluice_sge in;

    if (side == 0) {
        sluice_channel_close(channel);
        return meet("end");
    }
    if (sluice_mr_sge(device->mr, IN, 64, &in) != 0 ||
        sluice_channel_receive(channel, &in, 1, DEADLINE, NULL) == 0 ||
        sluice_channel_error(channel, &error) != 1 || error.error_class != SLUICE_CLASS_PEER_LOST) {
        printf("the end of the peer is not noticed: %s\n", sluice_last_error());
        return -1;
    }
    sluice_channel_close(channel);
    return meet("end");
}

static int use(struct sluice_channel *channel, struct device *device)
{
    uint8_t ours[SLUICE_REMOTE_MR_BYTES], theirs[SLUICE_REMOTE_MR_BYTES];
    struct sluice_remote_mr own = {0}, remote;
    struct sluice_channel_info info = {.size = sizeof info};

    if (sluice_channel_wait_connected(channel, DEADLINE) != 0)
        return complain("connect");
    if (sluice_channel_query(channel, &info) == 0)
        printf("shares %s\n", info.level == SLUICE_LEVEL_MEMORY ? "memory" : "nothing");
    if (sluice_mr_remote(device->mr, &own) != 0)
        return complain("describe the memory");
    sluice_remote_mr_pack(&own, ours);
    if (give("memory", ours, sizeof ours) != 0 || take("memory", theirs, sizeof theirs) != 0)
        return -1;
    if (sluice_remote_mr_unpack(theirs, &remote) != 0)
        return complain("the peer's memory");
    if (swap_messages(channel, device) != 0 || write_and_read(channel, device, &remote) != 0 ||
        add(channel, device, &remote) != 0 || meet("done") != 0)
        return -1;
    if (!has_sum(device))
        return differ("the sum");
    return part(channel, device);
}

static int by_endpoints(uint32_t queue_pairs)
{
    const struct sluice_channel_attr attr = {.size = sizeof attr, .queue_pairs = queue_pairs};
    struct sluice_endpoint ours, theirs;
    struct sluice_prepared_channel *prepared;
    struct sluice_channel *channel;
    struct device device;

    if (open_device(&device, BYTES) != 0)
        return -1;
    memset(device.memory + WORD, 0, 16);
    prepared = sluice_channel_prepare(device.pd, &attr);
    if (prepared == NULL)
        return complain("prepare");
    sluice_prepared_channel_endpoint(prepared, &ours);
    if (give("endpoint", &ours, sizeof ours) != 0 || take("endpoint", &theirs, sizeof theirs) != 0)
        return -1;
    channel = sluice_prepared_channel_handshake(prepared, &theirs);
    if (channel == NULL)
        return complain("handshake");
    if (meet("ready") != 0 || use(channel, &device) != 0)
        return -1;
    close_device(&device);
    return 0;
}

int talk_pair(void)
{
    return by_endpoints(0);
}

int talk_striped(void)
{
    return by_endpoints(2);
}

static struct sluice_channel *connect_by_address(struct device *device)
{
    struct sluice_listener *listener;
    struct sluice_channel *channel;
    char address[64] = "";

    if (side == 1) {
        if (take("address", address, sizeof address) != 0)
            return NULL;
        return sluice_connect(address, device->pd, NULL, NULL, DEADLINE);
    }
    listener = sluice_listen("127.0.0.1:0", NULL);
    if (listener == NULL || sluice_listener_address(listener, address, sizeof address) < 0 ||
        give("address", address, sizeof address) != 0)
        return NULL;
    channel = sluice_accept(listener, device->pd, NULL, DEADLINE);
    sluice_listener_close(listener);
    return channel;
}

int talk_connect(void)
{
    struct sluice_channel *channel;
    struct device device;

    if (open_device(&device, BYTES) != 0)
        return -1;
    memset(device.memory + WORD, 0, 16);
    channel = connect_by_address(&device);
    if (channel == NULL)
        return complain("connect");
    if (use(channel, &device) != 0)
        return -1;
    close_device(&device);
    return 0;
}
