/* SPDX-License-Identifier: MIT */
/*
 * Messages longer than their receive, on channels that drop these: only the receive fails, and
 * reports the length; the send succeeds; and the connection goes on with the messages before and
 * behind. This exists without a device only; a device refuses it.
 */
#include <sys/socket.h>

#include "../support/hostile.h"
#include "../support/pair.h"

#define ROOM (((size_t)3 << 20) + 4096)

static const struct sluice_channel_attr drops = {.size = sizeof drops,
                                                 .flags = SLUICE_CHANNEL_DROP_LONG};

/* The first side sends, the second one receives and drops. */
struct scene {
    struct pair pair;
    struct memory here, there;
};

static void scene_open(struct scene *scene, const struct sluice_channel_attr *attr)
{
    pair_open(&scene->pair, attr);
    memory_open(&scene->here, scene->pair.sides.pds[0], ROOM);
    memory_open(&scene->there, scene->pair.sides.pds[1], ROOM);
    pattern_fill(scene->here.bytes, ROOM, 3);
}

static void scene_close(struct scene *scene)
{
    pair_works(&scene->pair);
    pair_close(&scene->pair);
    memory_close(&scene->here);
    memory_close(&scene->there);
}

static struct sluice_handle post_receive(struct scene *scene, size_t at, uint32_t length)
{
    struct sluice_sge sge = memory_sge(&scene->there, at, length);

    return post_of(scene->pair.channels[1], SLUICE_OP_RECEIVE, &sge);
}

static struct sluice_handle post_send(struct scene *scene, uint32_t length)
{
    struct sluice_sge sge = memory_sge(&scene->here, 0, length);
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, &sge);

    send.flags = SLUICE_IMMEDIATE;
    send.immediate = length;
    return post(scene->pair.channels[0], &send);
}

/*
 * Requires that a receive was dropped: it has the length of the message, and is otherwise as any
 * receive whose message was too long.
 */
static void check_dropped(struct scene *scene, struct sluice_handle handle, uint64_t length)
{
    struct sluice_completion completion;
    struct sluice_error error = {.size = sizeof error};

    require_ok(sluice_channel_wait(scene->pair.channels[1], &handle, DEADLINE, &completion));
    require_equal(completion.bytes, length, completion.error_class, SLUICE_CLASS_TRUNCATED,
                  completion.status, SLUICE_STATUS_LOC_LEN_ERR, completion.cause, completion.status,
                  completion.error, -EMSGSIZE, completion.vendor, 0, completion.flags, 0);
    require_result(sluice_channel_error(scene->pair.channels[1], &error), 0);
    require(sluice_channel_state(scene->pair.channels[1]) == SLUICE_STATE_READY, "it has failed");
}

static void check_received(struct scene *scene, struct sluice_handle handle, size_t at,
                           uint32_t length)
{
    struct sluice_completion completion = await(scene->pair.channels[1], handle, SLUICE_CLASS_NONE);

    require_equal(completion.bytes, length, completion.immediate, length);
    pattern_check(scene->there.bytes + at, length, 3);
}

/*
 * One length for each way of a message: small, in a frame, in pieces, and from the sender's memory.
 */
static const uint32_t lengths[] = {1, 48, 256, 257, 4096, 65536, 1 << 20, 3 << 20};

/* The receive comes before the message, with no bytes or one too few; others are around it. */
TEST_WITH(scene, receives_that_are_too_short, (&drops))
{
    for (size_t i = 0; i < 2 * COUNT(lengths); i++) {
        uint32_t length = lengths[i / 2], room = i % 2 == 0 ? 0 : length - 1;

        memset(scene->there.bytes, 0xee, ROOM);
        struct sluice_handle before = post_receive(scene, 0, 8);
        struct sluice_handle dropped = post_receive(scene, 8, room);
        struct sluice_handle behind = post_receive(scene, 16, length);
        struct sluice_handle sends[3] = {post_send(scene, 8), post_send(scene, length),
                                         post_send(scene, length)};
        check_received(scene, before, 0, 8);
        check_dropped(scene, dropped, length);
        check_received(scene, behind, 16, length);
        for (size_t k = 0; k < COUNT(sends); k++)
            await(scene->pair.channels[0], sends[k], SLUICE_CLASS_NONE);
        value_check(scene->there.bytes + 8, 8, 0xee);
    }
}

/* The messages come first, some spilled by the receiver, and their receives are too short. */
TEST_WITH(scene, messages_that_come_first, (&drops))
{
    struct sluice_handle sends[8], receives[8];

    for (uint32_t i = 0; i < 8; i++)
        sends[i] = post_send(scene, 10 + i * (i < 6 ? 20 : 2000));
    for (uint32_t i = 0; i < 8; i++)
        receives[i] = post_receive(scene, i * 20000, i % 2 == 0 ? 9 : 20000);
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t length = 10 + i * (i < 6 ? 20 : 2000);

        if (i % 2 == 0)
            check_dropped(scene, receives[i], length);
        else
            check_received(scene, receives[i], i * 20000, length);
        await(scene->pair.channels[0], sends[i], SLUICE_CLASS_NONE);
    }
}

/* A blocking call returns the error, and a list has each result in its place. */
TEST_WITH(scene, calls_that_block, (&drops))
{
    struct sluice_sge tiny = memory_sge(&scene->there, 0, 7);
    struct sluice_handle send = post_send(scene, 1000);
    struct sluice_completion completion;
    require_error(sluice_channel_receive(scene->pair.channels[1], &tiny, 1, DEADLINE, &completion),
                  -EMSGSIZE, "receive message of 1000 bytes longer truncated dropped goes on");
    require(completion.bytes == 1000 && completion.error == -EMSGSIZE, "%d", completion.error);
    await(scene->pair.channels[0], send, SLUICE_CLASS_NONE);

    struct sluice_sge large = memory_sge(&scene->there, 0, 1000);
    struct sluice_request requests[3] = {request_of(SLUICE_OP_RECEIVE, 0, &tiny),
                                         request_of(SLUICE_OP_RECEIVE, 0, &large),
                                         request_of(SLUICE_OP_RECEIVE, 0, &tiny)};
    struct sluice_completion completions[3];
    struct sluice_handle sends[3];
    for (uint32_t i = 0; i < 3; i++)
        sends[i] = post_send(scene, 998 + i);
    require_result(
        sluice_channel_submit(scene->pair.channels[1], requests, 3, DEADLINE, completions),
        -EMSGSIZE);
    for (uint32_t i = 0; i < 3; i++) {
        require(completions[i].bytes == 998 + i && completions[i].error == (i == 1 ? 0 : -EMSGSIZE),
                "%u: %llu", i, (unsigned long long)completions[i].bytes);
        await(scene->pair.channels[0], sends[i], SLUICE_CLASS_NONE);
    }
}

/* Results that stay unread for long keep the length of the message. */
TEST_WITH(scene, results_that_are_kept, (&drops))
{
    struct sluice_handle late;

    late = post_receive(scene, 0, 1);
    struct sluice_handle send = post_send(scene, 77);
    await(scene->pair.channels[0], send, SLUICE_CLASS_NONE);
    for (uint32_t i = 0; i < 300; i++) {
        struct sluice_handle receive = post_receive(scene, 0, 64);

        send = post_send(scene, 64);
        check_received(scene, receive, 0, 64);
        await(scene->pair.channels[0], send, SLUICE_CLASS_NONE);
    }
    check_dropped(scene, late, 77);
}

/* All other errors still end the connection; so does a long message without the flag. */
TEST(errors_that_still_end_the_connection)
{
    struct scene scene;

    for (int plain = 0; plain < 2; plain++) {
        scene_open(&scene, plain ? NULL : &drops);
        struct sluice_sge wrong = memory_sge(&scene.there, 0, 100);
        if (!plain)
            wrong.lkey ^= 0x5a5a5a;
        wrong.length = plain ? 10 : 100;
        struct sluice_handle handle = post_of(scene.pair.channels[1], SLUICE_OP_RECEIVE, &wrong);
        struct sluice_handle send = post_send(&scene, 100);
        struct sluice_completion completion = await(
            scene.pair.channels[1], handle, plain ? SLUICE_CLASS_TRUNCATED : SLUICE_CLASS_LOCAL);
        require(completion.bytes == 0, "%llu", (unsigned long long)completion.bytes);
        await(scene.pair.channels[0], send, SLUICE_CLASS_TRUNCATED);
        require(sluice_channel_state(scene.pair.channels[1]) == SLUICE_STATE_FAILED, "it goes on");
        pair_close(&scene.pair);
        memory_close(&scene.here);
        memory_close(&scene.there);
    }
}

/* Several queue pairs per peer behave as one. */
TEST(several_queue_pairs)
{
    const struct sluice_channel_attr attr = {
        .size = sizeof attr, .flags = SLUICE_CHANNEL_DROP_LONG, .queue_pairs = 3};
    struct scene scene;

    scene_open(&scene, &attr);
    for (uint32_t i = 0; i < 20; i++) {
        struct sluice_handle dropped = post_receive(&scene, 0, i);
        struct sluice_handle behind = post_receive(&scene, 0, 1 << 20);
        struct sluice_handle sends[2] = {post_send(&scene, (i + 1) * 1000),
                                         post_send(&scene, 1 << 20)};

        check_dropped(&scene, dropped, (i + 1) * 1000);
        check_received(&scene, behind, 0, 1 << 20);
        await(scene.pair.channels[0], sends[0], SLUICE_CLASS_NONE);
        await(scene.pair.channels[0], sends[1], SLUICE_CLASS_NONE);
    }
    scene_close(&scene);
}

/* A message announced as long is dropped as it arrives, and ends with its peer. */
TEST(half_a_message_that_is_dropped, .group = "hostile")
{
    static const size_t payloads[] = {0, 1, 101, 4000};
    struct victim victim;

    victim_open_with(&victim, 0xff, &drops);
    for (size_t i = 0; i < COUNT(payloads); i++) {
        const struct frame frame = {.type = SEND, .length = UINT64_C(1) << 31};

        connect_hostile(&victim, NOTHING);
        say_frame(victim.fd, &frame, payloads[i]);
        shutdown(victim.fd, SHUT_WR);
        expect_untouched(&victim, MASK(PEER_LOST), "half of a message that is dropped");
    }
    victim_close(&victim);
}

TEST_WITH(sides, devices_refuse, (), .group = "refusals")
{
    struct sluice_channel_attr attr = drops;

    if (!device_is_soft())
        require_null(sluice_channel_prepare(sides->pds[0], &attr), EOPNOTSUPP,
                     "flags DROP_LONG device ends the connection");
    attr.arrival_tags = 4;
    if (device_is_soft())
        require_null(sluice_channel_prepare(sides->pds[0], &attr), EINVAL,
                     "flags DROP_LONG arrival_tags (4)");
}

int main(void)
{
    static const struct tests all[] = {{"self", WIRE_SELF, 60},
                                       {"tcp", WIRE_TCP, 60},
                                       {"shm", WIRE_SHM, 60},
                                       {"hostile", WIRE_TCP, 60},
                                       {"refusals", WIRE_SELF, 60}};
    static const struct tests device[] = {{"refusals", WIRE_SELF, 60}};

    return device_is_soft() ? run_groups("drop_long", all, COUNT(all))
                            : run_groups("drop_long", device, COUNT(device));
}
