/* SPDX-License-Identifier: MIT */
/*
 * Messages that come before their receive: the receiver spills them, and their sends complete when
 * a receive has taken them. Further ones, and longer ones, wait at the sender.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../support/group.h"
#include "../support/pair.h"

#define LARGEST 5000
#define MESSAGES 40

static uint32_t length_of(uint32_t i)
{
    static const uint32_t lengths[] = {8, 0, 255, 256, 1, 257, 64, 4096, 1000, 4097, 4095};

    return lengths[i % COUNT(lengths)];
}

static struct sluice_request send_of(const struct memory *memory, struct sluice_sge *sge,
                                     uint32_t i)
{
    struct sluice_request request;

    *sge = memory_sge(memory, (size_t)i * LARGEST, length_of(i));
    request = request_of(SLUICE_OP_SEND, 0, sge);
    if (i % 3 == 0) {
        request.flags |= SLUICE_IMMEDIATE;
        request.immediate = i;
    }
    return request;
}

TEST(early_messages_keep_their_order)
{
    struct pair pair;
    struct memory from, to;
    struct sluice_sge sge;
    struct sluice_handle sends[MESSAGES];

    pair_open(&pair, NULL);
    memory_open(&from, pair.sides.pds[0], MESSAGES * LARGEST);
    memory_open(&to, pair.sides.pds[1], LARGEST);
    for (uint32_t i = 0; i < MESSAGES * LARGEST; i++)
        from.bytes[i] = (uint8_t)(i / LARGEST + i);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct sluice_request request = send_of(&from, &sge, i);

        sends[i] = post(pair.channels[0], &request);
    }
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct sluice_completion completion;

        sge = memory_sge(&to, 0, LARGEST);
        require_ok(sluice_channel_receive(pair.channels[1], &sge, 1, SLUICE_S(10), &completion));
        require(completion.bytes == length_of(i), "%u: %llu bytes", i,
                (unsigned long long)completion.bytes);
        require(memcmp(to.bytes, from.bytes + (size_t)i * LARGEST, length_of(i)) == 0, "%u", i);
        require(((completion.flags & SLUICE_IMMEDIATE) != 0) == (i % 3 == 0), "%u", i);
        require(i % 3 != 0 || completion.immediate == i, "%u", completion.immediate);
        await(pair.channels[0], sends[i], SLUICE_CLASS_NONE);
    }
    memory_close(&from);
    memory_close(&to);
    pair_works(&pair);
    pair_close(&pair);
}

/* The write is executed when the message before it has a receive, as on a device. */
TEST(a_write_stays_behind_an_early_message)
{
    struct pair pair;
    struct memory from, to;
    struct sluice_sge sge;
    struct sluice_request send, write;
    struct sluice_remote_mr remote;
    struct sluice_handle handles[2];

    pair_open(&pair, NULL);
    memory_open(&from, pair.sides.pds[0], LARGEST);
    memory_open(&to, pair.sides.pds[1], LARGEST);
    from.bytes[8] = 7;
    sge = memory_sge(&from, 8, 8);
    send = request_of(SLUICE_OP_SEND, 0, &sge);
    write = request_of(SLUICE_OP_WRITE, 0, &sge);
    write.remote = memory_remote(&to, 8, 8);
    handles[0] = post(pair.channels[0], &send);
    handles[1] = post(pair.channels[0], &write);
    /* The other direction goes on. */
    sge = memory_sge(&to, 16, 8);
    remote = memory_remote(&from, 16, 8);
    require_ok(sluice_channel_write(pair.channels[1], &sge, 1, &remote, SLUICE_S(10)));
    require(to.bytes[8] == 0, "%u", to.bytes[8]);
    sge = memory_sge(&to, 0, 8);
    require_ok(sluice_channel_receive(pair.channels[1], &sge, 1, SLUICE_S(10), NULL));
    await(pair.channels[0], handles[0], SLUICE_CLASS_NONE);
    await(pair.channels[0], handles[1], SLUICE_CLASS_NONE);
    require(to.bytes[0] == 7 && to.bytes[8] == 7, "%u, %u", to.bytes[0], to.bytes[8]);
    memory_close(&from);
    memory_close(&to);
    pair_close(&pair);
}

TEST(an_early_message_may_be_too_long)
{
    struct pair pair;
    struct memory from, to;
    struct sluice_sge sge;
    struct sluice_request send;
    struct sluice_handle handles[2];

    pair_open(&pair, NULL);
    memory_open(&from, pair.sides.pds[0], LARGEST);
    memory_open(&to, pair.sides.pds[1], LARGEST);
    sge = memory_sge(&from, 0, 9);
    send = request_of(SLUICE_OP_SEND, 0, &sge);
    handles[0] = post(pair.channels[0], &send);
    handles[1] = post(pair.channels[0], &send);
    /* Both messages have come before this is done. */
    require_ok(sluice_channel_wait_connected(pair.channels[0], SLUICE_S(10)));
    sge = memory_sge(&to, 0, 8);
    require_result(sluice_channel_receive(pair.channels[1], &sge, 1, SLUICE_S(10), NULL),
                   -EMSGSIZE);
    await(pair.channels[0], handles[0], SLUICE_CLASS_TRUNCATED);
    await(pair.channels[0], handles[1], SLUICE_CLASS_CANCELLED);
    pair_reset(&pair);
    pair_works(&pair);
    memory_close(&from);
    memory_close(&to);
    pair_close(&pair);
}

/* A spilled message whose send timed out is not received on the next connection. */
TEST(an_early_message_ends_with_its_deadline)
{
    struct pair pair;
    struct memory from;
    struct sluice_sge sge;

    pair_open(&pair, NULL);
    memory_open(&from, pair.sides.pds[0], LARGEST);
    sge = memory_sge(&from, 0, 8);
    require_result(sluice_channel_send(pair.channels[0], &sge, 1, SLUICE_MS(50)), -ETIMEDOUT);
    pair_reset(&pair);
    pair_works(&pair);
    memory_close(&from);
    pair_close(&pair);
}

TEST(an_early_message_is_cancelled)
{
    struct pair pair;
    struct memory from;
    struct sluice_sge sge;
    struct sluice_request send;
    struct sluice_handle handle;
    struct sluice_completion done;

    pair_open(&pair, NULL);
    memory_open(&from, pair.sides.pds[0], LARGEST);
    sge = memory_sge(&from, 0, 8);
    send = request_of(SLUICE_OP_SEND, 0, &sge);
    handle = post(pair.channels[0], &send);
    require_ok(sluice_channel_wait_connected(pair.channels[0], SLUICE_S(10)));
    require_ok(sluice_channel_cancel(pair.channels[0], &handle, &done));
    require(done.status != SLUICE_STATUS_SUCCESS, "%u", done.status);
    pair_reset(&pair);
    pair_works(&pair);
    memory_close(&from);
    pair_close(&pair);
}

#define HELD 4

static void post_early(struct mesh *mesh, uint32_t peer, const struct memory *memory,
                       struct sluice_handle *handles)
{
    struct sluice_sge sge = memory_sge(memory, 0, 8);

    for (uint32_t i = 0; i < HELD; i++)
        require_ok(
            sluice_multichannel_post_send(mesh->all, peer, &sge, 1, SLUICE_FOREVER, &handles[i]));
}

static void close_lost(struct mesh *mesh, struct memory *memory)
{
    struct sluice_error error = peer_error(mesh->all, 1);

    require(error.error_class == SLUICE_CLASS_PEER_LOST, "%s", error.text);
    memory_close(memory);
    mesh_close(mesh);
}

static void outlive_receiver(struct rank *rank)
{
    struct sluice_handle handles[HELD];
    struct sluice_completion done;
    struct memory memory;
    struct mesh mesh;

    mesh_open(&mesh, rank, NULL);
    memory_open(&memory, mesh.pd, LARGEST);
    if (rank->index == 1)
        rank_await_death(rank);
    post_early(&mesh, 1, &memory, handles);
    require_result(sluice_multichannel_wait(mesh.all, &handles[0], SLUICE_MS(50), &done),
                   -ETIMEDOUT);
    rank_kill(rank, 1);
    for (uint32_t i = 0; i < HELD; i++) {
        require_ok(sluice_multichannel_wait(mesh.all, &handles[i], DEADLINE, &done));
        require(done.status != SLUICE_STATUS_SUCCESS, "%u", i);
    }
    close_lost(&mesh, &memory);
}

TEST(receiver_of_early_messages_is_killed)
{
    group_run(2, outlive_receiver, NULL, 40);
}

/* Spilled messages of a dead sender may still be received until the death is known. */
static void outlive_sender(struct rank *rank)
{
    struct sluice_handle handles[HELD];
    struct sluice_completion done;
    struct sluice_sge sge;
    struct memory memory;
    struct mesh mesh;
    uint32_t received = 0;

    mesh_open(&mesh, rank, NULL);
    memory_open(&memory, mesh.pd, LARGEST);
    memory.bytes[0] = rank->index == 1 ? 7 : 0;
    if (rank->index == 1) {
        post_early(&mesh, 0, &memory, handles);
        rank_barrier(rank);
        rank_await_death(rank);
    }
    rank_barrier(rank);
    /* This poll takes the early messages. */
    require_result(sluice_multichannel_poll(mesh.all, &done, 1), 0);
    rank_kill(rank, 1);
    sge = memory_sge(&memory, 0, 8);
    while (sluice_multichannel_receive(mesh.all, 1, &sge, 1, DEADLINE, NULL) == 0) {
        require(memory.bytes[0] == 7, "%u", memory.bytes[0]);
        memory.bytes[0] = 0;
        received++;
    }
    require(received <= HELD && memory.bytes[0] == 0, "%u received", received);
    close_lost(&mesh, &memory);
}

TEST(sender_of_early_messages_is_killed)
{
    group_run(2, outlive_sender, NULL, 40);
}

int main(void)
{
    if (!device_is_soft()) {
        puts("1..0 # SKIP it is the soft transport that sets messages aside");
        return EXIT_SUCCESS;
    }
    return run_tests("early", 30);
}
