/* SPDX-License-Identifier: MIT */
/*
 * How a peer left, as the other side sees it: closing, resetting or removing the connection has a
 * status of its own; giving up, or the end of the process, is the loss of a peer. The class is the
 * same, and messages sent before are not lost. On a device the loss of a peer shows in the next
 * request that is sent to it.
 */
#include <stdlib.h>
#include <unistd.h>

#include "../support/fault.h"

/* A connected pair, memory on both sides, and a receive that waits on the first side. */
struct scene {
    struct pair pair;
    struct memory here, there;
    struct sluice_handle receive;
};

static void scene_open(struct scene *scene, const struct sluice_channel_attr *attr)
{
    pair_open(&scene->pair, attr);
    memory_open(&scene->here, scene->pair.sides.pds[0], 1 << 20);
    memory_open(&scene->there, scene->pair.sides.pds[1], 1 << 20);
    pair_works(&scene->pair);
    struct sluice_sge sge = memory_sge(&scene->here, 0, 1 << 20);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &sge);
    scene->receive = post(scene->pair.channels[0], &receive);
}

static void scene_close(struct scene *scene)
{
    pair_close(&scene->pair);
    memory_close(&scene->here);
    memory_close(&scene->there);
}

/*
 * Requires that the receive ended because of the peer, with that status, and these words in the
 * text.
 */
static void check_end(struct scene *scene, uint32_t status, const char *words)
{
    struct sluice_channel *channel = scene->pair.channels[0];
    struct sluice_completion completion = await(channel, scene->receive, SLUICE_CLASS_PEER_LOST);
    struct sluice_error error = channel_error(channel);

    require(completion.status == status && completion.cause == status &&
                completion.error == -ECONNRESET,
            "status %u, cause %u", completion.status, completion.cause);
    require(error.status == status && error.error_class == SLUICE_CLASS_PEER_LOST &&
                strstr(error.text, words),
            "status %u: %s", error.status, error.text);
    require_result(sluice_channel_send(channel, NULL, 0, DEADLINE), -ENOTCONN);
    require(strstr(sluice_last_error(), words), "%s", sluice_last_error());
}

static void close_it(struct sluice_channel **channel)
{
    sluice_channel_close(*channel);
    *channel = NULL;
}

static void shut_it_down(struct sluice_channel **channel)
{
    require_ok(sluice_channel_shutdown(*channel, DEADLINE));
}

static void reset_it(struct sluice_channel **channel)
{
    struct sluice_prepared_channel *prepared = made(sluice_channel_reset(*channel));

    *channel = NULL;
    sluice_prepared_channel_free(prepared);
}

static void (*const ends[])(struct sluice_channel **channel) = {close_it, shut_it_down, reset_it};

TEST(orderly_ends)
{
    for (size_t i = 0; i < COUNT(ends); i++) {
        struct scene scene;

        scene_open(&scene, NULL);
        ends[i](&scene.pair.channels[1]);
        check_end(&scene, SLUICE_STATUS_PEER_CLOSED, "the peer closed the connection");
        scene_close(&scene);
    }
}

/* No request is in flight; the state of the channel shows the end. */
TEST(end_of_an_idle_channel)
{
    struct pair pair;

    pair_open(&pair, NULL);
    pair_works(&pair);
    close_it(&pair.channels[1]);
    for (int64_t start = fair_now(); sluice_channel_state(pair.channels[0]) != SLUICE_STATE_FAILED;)
        require(fair_now() - start < DEADLINE, "the end was not noticed");
    struct sluice_error error = channel_error(pair.channels[0]);
    require(error.status == SLUICE_STATUS_PEER_CLOSED &&
                error.error_class == SLUICE_CLASS_PEER_LOST,
            "%s", error.text);
    pair_close(&pair);
}

/* Messages sent before the end still arrive. */
TEST(end_behind_a_message)
{
    static const uint32_t lengths[] = {8, 4096, 1 << 20};

    for (size_t i = 0; i < COUNT(lengths); i++) {
        struct scene scene;
        struct sluice_completion completion;

        scene_open(&scene, NULL);
        struct sluice_sge out = memory_sge(&scene.there, 0, lengths[i]);
        pattern_fill(scene.there.bytes, lengths[i], 7);
        struct sluice_sge in = memory_sge(&scene.here, 0, 8);
        struct sluice_request next = request_of(SLUICE_OP_RECEIVE, 0, &in);
        struct sluice_handle handle = post(scene.pair.channels[0], &next);
        require_ok(sluice_channel_send(scene.pair.channels[1], &out, 1, DEADLINE));
        close_it(&scene.pair.channels[1]);
        completion = await(scene.pair.channels[0], scene.receive, SLUICE_CLASS_NONE);
        require(completion.bytes == lengths[i], "%llu", (unsigned long long)completion.bytes);
        pattern_check(scene.here.bytes, lengths[i], 7);
        scene.receive = handle;
        check_end(&scene, SLUICE_STATUS_PEER_CLOSED, "the peer closed the connection");
        scene_close(&scene);
    }
}

static void take(const struct scene *scene, struct sluice_handle handle,
                 struct sluice_completion *completion)
{
    require_ok(sluice_channel_wait(scene->pair.channels[0], &handle, DEADLINE, completion));
    require(completion->error < 0 && completion->cause == SLUICE_STATUS_PEER_CLOSED,
            "error %d, cause %u", completion->error, completion->cause);
}

/*
 * Requests of this side wait at the peer when it closes: the one that ends first has the reason. It
 * is the oldest one; on a device it may be the receive.
 */
TEST(end_before_a_receive)
{
    struct scene scene;
    struct sluice_handle handles[20];
    struct sluice_completion completion;
    uint32_t lost;

    scene_open(&scene, NULL);
    struct sluice_sge out = memory_sge(&scene.here, 0, 8);
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, &out);
    for (size_t i = 0; i < COUNT(handles); i++)
        handles[i] = post(scene.pair.channels[0], &send);
    close_it(&scene.pair.channels[1]);
    take(&scene, scene.receive, &completion);
    lost = completion.error_class == SLUICE_CLASS_PEER_LOST;
    require(lost == 0 || !device_is_soft(), "the receive has the reason");
    for (size_t i = 0; i < COUNT(handles); i++) {
        take(&scene, handles[i], &completion);
        require(completion.error_class == SLUICE_CLASS_CANCELLED || i == 0, "request %zu", i);
        lost += completion.error_class == SLUICE_CLASS_PEER_LOST;
    }
    require(lost == 1, "%u requests have the reason", lost);
    scene_close(&scene);
}

/* It has closed already when a request is posted, of which nothing was known yet. */
TEST(end_before_a_request)
{
    static const uint32_t opcodes[] = {SLUICE_OP_RECEIVE, SLUICE_OP_SEND};

    for (size_t i = 0; i < COUNT(opcodes); i++) {
        struct pair pair;
        struct sluice_request request = request_of(opcodes[i], 0, NULL);
        struct sluice_completion completion;

        pair_open(&pair, NULL);
        pair_works(&pair);
        close_it(&pair.channels[1]);
        int result = sluice_channel_submit(pair.channels[0], &request, 1, DEADLINE, &completion);
        require(result == -ECONNRESET, "%d: %s", result, sluice_last_error());
        require(completion.cause == SLUICE_STATUS_PEER_CLOSED, "cause %u: %s", completion.cause,
                sluice_last_error());
        pair_close(&pair);
    }
}

/* It closes with a full queue of messages, all of which have receives: they are there, or not. */
TEST(end_behind_a_full_queue)
{
    enum { DEPTH = 16 };
    const struct sluice_channel_attr attr = {
        .size = sizeof(attr), .send_depth = DEPTH, .receive_depth = 2 * DEPTH};
    struct sluice_handle handles[DEPTH];
    struct sluice_completion completion;
    struct scene scene;
    uint32_t in = 1;

    scene_open(&scene, &attr);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, NULL);
    for (size_t i = 0; i < DEPTH; i++)
        handles[i] = post(scene.pair.channels[0], &receive);
    for (size_t i = 0; i < DEPTH; i++)
        post(scene.pair.channels[1], &send);
    close_it(&scene.pair.channels[1]);
    await(scene.pair.channels[0], scene.receive, SLUICE_CLASS_NONE);
    for (size_t i = 0; i < DEPTH; i++) {
        require_ok(sluice_channel_wait(scene.pair.channels[0], &handles[i], DEADLINE, &completion));
        in += completion.error == 0;
        require(completion.error == 0 || completion.cause == SLUICE_STATUS_PEER_CLOSED,
                "request %zu: cause %u", i, completion.cause);
    }
    require(in <= DEPTH, "%u of %d messages", in, DEPTH);
    require(channel_error(scene.pair.channels[0]).status == SLUICE_STATUS_PEER_CLOSED, "%s",
            channel_error(scene.pair.channels[0]).text);
    scene_close(&scene);
}

/* Several queue pairs end as one. */
TEST(end_of_stripes)
{
    const struct sluice_channel_attr attr = {.size = sizeof attr, .queue_pairs = 3};
    struct scene scene;

    scene_open(&scene, &attr);
    close_it(&scene.pair.channels[1]);
    check_end(&scene, SLUICE_STATUS_PEER_CLOSED, "the peer closed the connection");
    scene_close(&scene);
}

static void miss_a_deadline(struct scene *scene)
{
    require_result(sluice_channel_receive(scene->pair.channels[1], NULL, 0, SLUICE_MS(20), NULL),
                   -ETIMEDOUT);
}

static void cancel_a_request(struct scene *scene)
{
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_handle handle = post(scene->pair.channels[1], &receive);
    struct sluice_completion completion;

    require_ok(sluice_channel_cancel(scene->pair.channels[1], &handle, &completion));
}

static void name_memory_wrongly(struct scene *scene)
{
    struct sluice_sge sge = memory_sge(&scene->there, 0, 8);

    sge.lkey ^= 0x5a5a5a;
    require_result(sluice_channel_send(scene->pair.channels[1], &sge, 1, DEADLINE), -EFAULT);
}

/* The peer ended for another reason first, and closing it afterwards does not change that. */
TEST(ends_for_another_reason)
{
    static const struct {
        void (*end)(struct scene *scene);
        const char *words;
    } causes[] = {
        {miss_a_deadline, "a deadline of its own passed"},
        {cancel_a_request, "it cancelled a request"},
        {name_memory_wrongly, "one of its requests failed"},
    };

    for (size_t i = 0; i < COUNT(causes) && device_is_soft(); i++) {
        struct scene scene;

        scene_open(&scene, NULL);
        causes[i].end(&scene);
        close_it(&scene.pair.channels[1]);
        check_end(&scene, SLUICE_STATUS_RETRY_EXC_ERR, causes[i].words);
        scene_close(&scene);
    }
}

/* If one peer of a multichannel is removed, only that one is notified. */
TEST(peer_that_is_removed)
{
    struct star star;
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_handle handle;

    star_open(&star, 2, NULL);
    star_works(&star, 0);
    star_works(&star, 1);
    handle = post(star.spokes[0], &receive);
    require_ok(sluice_multichannel_peer_remove(star.hub, 0));
    await(star.spokes[0], handle, SLUICE_CLASS_PEER_LOST);
    require(channel_error(star.spokes[0]).status == SLUICE_STATUS_PEER_CLOSED, "%s",
            channel_error(star.spokes[0]).text);
    star_works(&star, 1);
    star_close(&star);
}

/* All peers of a multichannel are told when it is closed. */
TEST(peers_of_a_multichannel_that_is_closed)
{
    enum { PEERS = 3 };
    struct sluice_handle handles[PEERS];
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct star star;

    star_open(&star, PEERS, NULL);
    for (uint32_t i = 0; i < PEERS; i++) {
        star_works(&star, i);
        handles[i] = post(star.spokes[i], &receive);
    }
    sluice_multichannel_close(star.hub);
    star.hub = NULL;
    for (uint32_t i = 0; i < PEERS; i++) {
        await(star.spokes[i], handles[i], SLUICE_CLASS_PEER_LOST);
        require(channel_error(star.spokes[i]).status == SLUICE_STATUS_PEER_CLOSED, "spoke %u: %s",
                i, channel_error(star.spokes[i]).text);
    }
    star_close(&star);
}

/* Lets rank 1 leave in this way, and checks the status that rank 0 gets. */
static void leave(struct rank *rank, struct mesh *mesh, int way)
{
    rank_barrier(rank);
    switch (way) {
    case 0:
        sluice_multichannel_close(mesh->all);
        mesh->all = NULL;
        break;
    case 1:
        exit(EXIT_SUCCESS);
    case 2:
        _exit(EXIT_SUCCESS);
    default:
        rank_await_death(rank);
    }
}

static void mourn(struct rank *rank, struct mesh *mesh, int way)
{
    struct sluice_completion completion;
    bool told = way == 0 || device_is_soft();
    struct sluice_request last = request_of(told ? SLUICE_OP_RECEIVE : SLUICE_OP_SEND, 1, NULL);
    uint32_t status = way == 0 ? SLUICE_STATUS_PEER_CLOSED : SLUICE_STATUS_RETRY_EXC_ERR;
    const char *words = way == 0 ? "the peer closed the connection"
                        : told   ? "the peer's process ended"
                                 : sluice_status_name(status);

    rank_barrier(rank);
    if (way == 3)
        rank_kill(rank, 1);
    require_result(sluice_multichannel_submit(mesh->all, &last, 1, DEADLINE, &completion),
                   -ECONNRESET);
    require(completion.status == status && completion.error_class == SLUICE_CLASS_PEER_LOST,
            "way %d: status %u: %s", way, completion.status, sluice_last_error());
    require(strstr(sluice_last_error(), words), "way %d: %s", way, sluice_last_error());
}

static void leave_or_mourn(struct rank *rank)
{
    int way = *(const int *)rank->argument;
    struct mesh mesh;

    mesh_open(&mesh, rank, NULL);
    require_ok(sluice_multichannel_peer_wait_connected(mesh.all, 1 - rank->index, DEADLINE));
    if (rank->index == 1)
        leave(rank, &mesh, way);
    else
        mourn(rank, &mesh, way);
    mesh_close(&mesh);
}

/*
 * By shared memory and over a socket: the end of a process is not reported as a close. A pretend
 * device has one process.
 */
TEST(processes_that_leave, .group = "processes", .unless = device_is_pretend)
{
    for (int way = 0; way < 4; way++) {
        group_run(2, leave_or_mourn, &way, 60);
        if (!device_is_soft())
            continue;
        setenv("SLUICE_WIRE", "tcp", 1);
        group_run(2, leave_or_mourn, &way, 60);
        setenv("SLUICE_WIRE", "shm", 1);
    }
}

int main(void)
{
    return RUN_GROUPS("farewell", {"self", WIRE_SELF, 60}, {"tcp", WIRE_TCP, 60},
                      {"shm", WIRE_SHM, 60}, {"processes", WIRE_SHM, 120});
}
