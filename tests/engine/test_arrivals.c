/* SPDX-License-Identifier: MIT */
/* Arrivals of immediates: counted by tag, waited for, and absent from all results. */
#include <poll.h>
#include <time.h>

#include "../support/group.h"
#include "../support/pair.h"

#define TAGS 8
#define PIECE 64
/* More than the receives that are posted at a time. */
#define MANY 300

static const struct sluice_channel_attr attr = {
    .size = sizeof(attr), .arrival_tags = TAGS, .receive_depth = 16};

/* Two channels that count arrivals, and memory of both sides. */
struct fixture {
    struct pair pair;
    struct memory near, far;
};

static void fixture_open(struct fixture *fixture)
{
    pair_open(&fixture->pair, &attr);
    fixture->near = side_memory(&fixture->pair.sides, 0, MANY * PIECE);
    fixture->far = side_memory(&fixture->pair.sides, 1, MANY * PIECE);
}

static void fixture_close(struct fixture *fixture)
{
    pair_close(&fixture->pair);
}

static struct sluice_channel *sender(const struct fixture *fixture)
{
    return fixture->pair.channels[0];
}

static struct sluice_channel *receiver(const struct fixture *fixture)
{
    return fixture->pair.channels[1];
}

static void write_tag(const struct fixture *fixture, uint32_t piece, uint32_t tag)
{
    struct sluice_sge sge = memory_sge(&fixture->near, piece * PIECE, PIECE);
    struct sluice_remote_mr remote = memory_remote(&fixture->far, piece * PIECE, PIECE);
    require_ok(sluice_channel_write_immediate(sender(fixture), &sge, 1, &remote, tag, DEADLINE));
}

static uint64_t arrived(struct sluice_channel *channel, uint32_t tag)
{
    uint64_t count = UINT64_MAX;
    require_ok(sluice_channel_arrivals(channel, tag, &count));
    return count;
}

static struct sluice_counters counters_of(const struct sluice_channel *channel)
{
    struct sluice_counters counters = channel_counters(channel);
    return counters;
}

/* Data written before the immediate is visible when it is counted. */
TEST_WITH(fixture, writes_are_counted_by_tag, ())
{
    uint64_t expected[TAGS] = {0};
    pattern_fill(fixture->near.bytes, fixture->near.length, 1);
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t tag = i * i % TAGS;
        write_tag(fixture, i, tag);
        expected[tag]++;
        if (i % 7 == 0) {
            require_ok(
                sluice_channel_wait_arrivals(receiver(fixture), tag, expected[tag], DEADLINE));
            require(
                memcmp(fixture->far.bytes + i * PIECE, fixture->near.bytes + i * PIECE, PIECE) == 0,
                "write %u", i);
        }
    }
    for (uint32_t tag = 0; tag < TAGS; tag++) {
        require_ok(sluice_channel_wait_arrivals(receiver(fixture), tag, expected[tag], DEADLINE));
        require_result((int64_t)arrived(receiver(fixture), tag), (int64_t)expected[tag]);
        require_result((int64_t)arrived(sender(fixture), tag), 0);
    }
    require(memcmp(fixture->far.bytes, fixture->near.bytes, MANY * PIECE) == 0, "data%s", "");
}

/* No result reports them, and no call waits for the receives that take them. */
TEST_WITH(fixture, results_do_not_report_arrivals, ())
{
    struct sluice_completion completion;
    write_tag(fixture, 0, 1);
    require_ok(sluice_channel_wait_arrivals(receiver(fixture), 1, 1, DEADLINE));
    require_result(sluice_channel_poll(receiver(fixture), &completion, 1), 0);
    require_error(sluice_channel_next(receiver(fixture), DEADLINE, &completion), -ENOENT, "");
    require_ok(sluice_channel_flush(receiver(fixture), DEADLINE));
    require_ok(sluice_channel_shutdown(receiver(fixture), DEADLINE));
    struct sluice_counters counters = counters_of(receiver(fixture));
    require_equal(counters.arrivals, 1, counters.strays, 0, counters.discarded, 0,
                  counters.requests[SLUICE_OP_RECEIVE], 0);
}

/* The peer chooses the tag; a tag that is not counted does no harm. */
TEST_WITH(fixture, strays_are_counted_apart, ())
{
    const uint32_t hostile[] = {TAGS, TAGS + 1, 0x80000000, UINT32_MAX};
    for (uint32_t i = 0; i < COUNT(hostile); i++) {
        write_tag(fixture, i, hostile[i]);
    }
    /* A message without an immediate is none either. */
    require_ok(sluice_channel_send(sender(fixture), NULL, 0, DEADLINE));
    write_tag(fixture, 0, TAGS - 1);
    require_ok(sluice_channel_wait_arrivals(receiver(fixture), TAGS - 1, 1, DEADLINE));
    struct sluice_counters counters = counters_of(receiver(fixture));
    require_equal(counters.strays, COUNT(hostile) + 1, counters.arrivals, 1);
    for (uint32_t tag = 0; tag < TAGS - 1; tag++) {
        require_result((int64_t)arrived(receiver(fixture), tag), 0);
    }
}

TEST_WITH(fixture, empty_messages_with_immediate_count, ())
{
    for (uint32_t i = 0; i < 40; i++) {
        require_ok(sluice_channel_send_immediate(sender(fixture), NULL, 0, 3, DEADLINE));
        require_ok(sluice_channel_wait_arrivals(receiver(fixture), 3, i + 1, DEADLINE));
    }
}

/* There is no memory for the message: both sides get an error, and counts outlive the reset. */
TEST_WITH(fixture, message_is_refused, ())
{
    write_tag(fixture, 0, 2);
    require_ok(sluice_channel_wait_arrivals(receiver(fixture), 2, 1, DEADLINE));
    struct sluice_sge sge = memory_sge(&fixture->near, 0, 1);
    require_error(sluice_channel_send(sender(fixture), &sge, 1, DEADLINE), -EMSGSIZE, "");
    require_error(sluice_channel_wait_arrivals(receiver(fixture), 2, 2, DEADLINE), -EMSGSIZE,
                  "sent a message arrival_tags");
    require_words(channel_error(receiver(fixture)).text, "sent a message");
    require_error(sluice_channel_wait_arrivals(receiver(fixture), 2, 2, DEADLINE), -ENOTCONN,
                  "no peer is connected");
    require_result((int64_t)arrived(receiver(fixture), 2), 1);
    pair_reset(&fixture->pair);
    for (uint32_t i = 0; i < 40; i++) {
        write_tag(fixture, i, 2);
        require_ok(sluice_channel_wait_arrivals(receiver(fixture), 2, i + 2, DEADLINE));
    }
}

TEST_WITH(fixture, receives_are_refused, ())
{
    struct sluice_handle handle;
    const char *words = "receives arrival_tags";
    struct sluice_channel *channel = receiver(fixture);
    struct sluice_sge sge = memory_sge(&fixture->far, 0, PIECE);
    struct sluice_request requests[2] = {request_of(SLUICE_OP_RECEIVE, 0, &sge),
                                         request_of(SLUICE_OP_RECEIVE, 0, &sge)};

    require_error(sluice_channel_receive(channel, &sge, 1, DEADLINE, NULL), -EINVAL, words);
    require_error(sluice_channel_receive(channel, NULL, 0, DEADLINE, NULL), -EINVAL, words);
    require_error(sluice_channel_post_receive(channel, &sge, 1, DEADLINE, &handle), -EINVAL, words);
    for (uint32_t count = 1; count <= 2; count++) {
        require_error(sluice_channel_submit(channel, requests, count, DEADLINE, NULL), -EINVAL,
                      words);
        require_error(sluice_channel_post(channel, requests, count, DEADLINE, NULL), -EINVAL,
                      words);
        require_null(sluice_channel_list_prepare(channel, requests, count), EINVAL, words);
    }
    requests[0] = request_of(SLUICE_OP_SEND, 0, &sge);
    require_error(sluice_channel_post(channel, requests, 2, DEADLINE, NULL), -EINVAL, words);
    require_result(counters_of(sender(fixture)).strays, 0);
    write_tag(fixture, 0, 0);
    require_ok(sluice_channel_wait_arrivals(channel, 0, 1, DEADLINE));
}

TEST_WITH(fixture, waits_end, ())
{
    struct sluice_channel *channel = receiver(fixture);
    require_ok(sluice_channel_wait_arrivals(channel, 0, 0, 0));
    require_error(sluice_channel_wait_arrivals(channel, 5, 1, 0), -ETIMEDOUT, "0 of 1 tag 5");
    write_tag(fixture, 0, 5);
    require_ok(sluice_channel_wait_arrivals(channel, 5, 1, DEADLINE));
    require_ok(sluice_channel_wait_arrivals(channel, 5, 1, 0));
    require_error(sluice_channel_wait_arrivals(channel, 5, 2, SLUICE_MS(20)), -ETIMEDOUT,
                  "1 of 2 tag 5");
    require_ok(sluice_channel_wake(channel));
    require_error(sluice_channel_wait_arrivals(channel, 5, 2, DEADLINE), -EINTR, "wake");
    require_error(sluice_channel_wait_arrivals(channel, 5, 2, 0), -ETIMEDOUT, "");
    if (device_is_soft()) {
        sluice_channel_close(fixture->pair.channels[0]);
        fixture->pair.channels[0] = NULL;
        require_error(sluice_channel_wait_arrivals(channel, 5, 2, DEADLINE), -ECONNRESET, "");
    } else {
        /* A device does not notice the loss of a peer to which it sends nothing. */
        struct sluice_sge sge = memory_sge(&fixture->far, 0, 8);
        struct sluice_request request = request_of(SLUICE_OP_WRITE, 0, &sge);
        request.remote = memory_remote(&fixture->near, 0, 8);
        request.remote.rkey ^= 0x5a5a5a5a;
        post(channel, &request);
        require_error(sluice_channel_wait_arrivals(channel, 5, 2, DEADLINE), -EACCES, "");
    }
    require_error(sluice_channel_wait_arrivals(channel, 5, 2, DEADLINE), -ENOTCONN,
                  "no peer is connected");
    require_ok(sluice_channel_wait_arrivals(channel, 5, 1, DEADLINE));
    require_result((int64_t)arrived(channel, 5), 1);
}

TEST(wrong_arguments)
{
    struct pair pair;
    uint64_t count;
    pair_open(&pair, NULL);
    require_error(sluice_channel_arrivals(pair.channels[0], 0, &count), -EINVAL, "arrival_tags 0");
    require_error(sluice_channel_wait_arrivals(pair.channels[0], 0, 0, 0), -EINVAL,
                  "arrival_tags 0");
    pair_close(&pair);
    pair_open(&pair, &attr);
    struct sluice_channel *channel = pair.channels[0];
    require_error(sluice_channel_arrivals(channel, TAGS, &count), -EINVAL, "tag 8 0..7");
    require_error(sluice_channel_arrivals(channel, 0, NULL), -EINVAL, "count NULL");
    require_error(sluice_channel_arrivals(NULL, 0, &count), -EINVAL, "channel");
    require_error(sluice_channel_wait_arrivals(channel, TAGS, 0, 0), -EINVAL, "tag 8 0..7");
    require_error(sluice_channel_wait_arrivals(channel, 0, 0, -1), -EINVAL, "timeout -1");
    require_error(sluice_channel_wait_arrivals(NULL, 0, 0, 0), -EINVAL, "channel");
    require_error(sluice_multichannel_arrivals(NULL, 0, &count), -EINVAL, "multichannel");
    require_error(sluice_multichannel_wait_arrivals(NULL, 0, 0, 0), -EINVAL, "multichannel");
    pair_close(&pair);

    struct sides sides;
    struct sluice_channel_attr wrong = attr;
    sides_open(&sides);
    wrong.arrival_tags = 1048577;
    require_null(sluice_channel_prepare(sides.pds[0], &wrong), EINVAL,
                 "arrival_tags 1048577 0..1048576");
    sides_close(&sides);
}

/* A lost peer of a hub ends a wait once; the messages of the others still arrive. */
TEST_WITH(star, peers_come_and_go, (5, &attr))
{
    const uint32_t peers = star->peers;
    uint64_t count;
    struct sluice_multichannel *hub = star->hub;
    for (uint32_t peer = 0; peer < peers; peer++) {
        for (uint32_t i = 0; i <= peer; i++) {
            require_ok(sluice_channel_send_immediate(star->spokes[peer], NULL, 0, 6, DEADLINE));
        }
    }
    require_ok(sluice_multichannel_wait_arrivals(hub, 6, 15, DEADLINE));
    for (uint32_t peer = 0; peer < peers; peer++) {
        struct sluice_counters counters = {.size = sizeof(counters)};
        require_ok(sluice_multichannel_peer_counters(hub, peer, &counters));
        require_result((int64_t)counters.arrivals, peer + 1);
    }
    if (device_is_soft()) {
        sluice_channel_close(star->spokes[2]);
        star->spokes[2] = NULL;
        require_error(sluice_multichannel_wait_arrivals(hub, 6, 16, DEADLINE), -ECONNRESET,
                      "peer 2");
    } else {
        star_break(star, 2);
    }
    require_ok(sluice_channel_send_immediate(star->spokes[1], NULL, 0, 6, DEADLINE));
    require_ok(sluice_multichannel_wait_arrivals(hub, 6, 16, DEADLINE));
    require_ok(sluice_multichannel_peer_remove(hub, 1));
    require_ok(sluice_multichannel_arrivals(hub, 6, &count));
    require_result((int64_t)count, 16);
    struct sluice_counters all = {.size = sizeof(all)};
    require_ok(sluice_multichannel_counters(hub, &all));
    require_result((int64_t)all.arrivals, 16);
}

/* The fd is readable when an arrival comes, and arm forbids to sleep while one is unread. */
TEST_WITH(fixture, event_loop_wakes_for_arrivals, ())
{
    struct sluice_completion completion;
    int64_t due;
    struct sluice_channel *channel = receiver(fixture);
    for (uint64_t round = 1; round <= 20; round++) {
        struct pollfd fd = {.fd = sluice_channel_fd(channel), .events = POLLIN};
        write_tag(fixture, 0, 4);
        while (arrived(channel, 4) < round) {
            int busy = sluice_channel_arm(channel, &due);
            require(busy >= 0, "%s", sluice_last_error());
            if (busy == 0) {
                require(poll(&fd, 1, 20000) == 1, "no event in round %llu",
                        (unsigned long long)round);
            }
        }
    }
    /* A poll for results takes arrivals as well, and they stay counted. */
    write_tag(fixture, 0, 4);
    while (counters_of(channel).arrivals < 21) {
        require_result(sluice_channel_poll(channel, &completion, 1), 0);
    }
    require_result(sluice_channel_arm(channel, &due), 1);
    require_result((int64_t)arrived(channel, 4), 21);
    while (sluice_channel_arm(channel, &due) == 1) {
        require_result((int64_t)arrived(channel, 4), 21);
    }
}

#define RANKS 4
#define ROUNDS 50

/* Each rank notifies all others in any order, and knows when all have done so. */
static void notify_all(struct rank *rank)
{
    struct mesh mesh;
    struct sluice_remote_mr remotes[GROUP_MAX];
    struct memory memory;
    mesh_open(&mesh, rank, &attr);
    memory_open(&memory, mesh.pd, (RANKS + 1) * PIECE);
    mesh_share(rank, &memory, remotes);
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        uint32_t tag = round % 2;
        uint64_t rounds = (round + tag) / 2;
        memset(memory.bytes + RANKS * PIECE, (int)round, PIECE);
        for (uint32_t peer = 0; peer < rank->size; peer++) {
            struct sluice_sge sge = memory_sge(&memory, RANKS * PIECE, PIECE);
            struct sluice_remote_mr remote;
            require_ok(sluice_remote_mr_slice(&remotes[peer], rank->index * PIECE, PIECE, &remote));
            require_ok(sluice_multichannel_write_immediate(mesh.all, peer, &sge, 1, &remote, tag,
                                                           DEADLINE));
        }
        require_ok(sluice_multichannel_wait_arrivals(mesh.all, tag, rounds * rank->size, DEADLINE));
        value_check(memory.bytes, RANKS * PIECE, (uint8_t)round);
        /* No rank writes for the next round before all have read this one. */
        mesh_barrier(&mesh, rank);
    }
    memory_close(&memory);
    mesh_close(&mesh);
}

TEST(ranks_notify_each_other, .group = "processes")
{
    group_run(RANKS, notify_all, NULL, 60);
}

/* A rank is killed while another waits for it. */
static void lose_one(struct rank *rank)
{
    struct mesh mesh;
    mesh_open(&mesh, rank, &attr);
    require_ok(sluice_multichannel_send_immediate(mesh.all, 0, NULL, 0, 0, DEADLINE));
    if (rank->index == 1) {
        rank_await_death(rank);
    }
    if (rank->index == 0) {
        require_ok(sluice_multichannel_wait_arrivals(mesh.all, 0, 3, DEADLINE));
        rank_kill(rank, 1);
        require_error(sluice_multichannel_wait_arrivals(mesh.all, 0, 5, DEADLINE), -ECONNRESET,
                      "peer 1");
        require_error(sluice_multichannel_wait_arrivals(mesh.all, 0, 5, SLUICE_MS(1)), -ETIMEDOUT,
                      "3 of 5");
    }
    rank_barrier(rank);
    mesh_close(&mesh);
}

TEST(killed_rank_ends_the_wait, .group = "processes")
{
    if (!device_is_soft()) {
        return; /* a device does not notice the loss of a peer to which it sends nothing */
    }
    group_run(3, lose_one, NULL, 60);
}

int main(void)
{
    static const struct tests groups[] = {{"self", WIRE_SELF, 20},
                                          {"tcp", WIRE_TCP, 20},
                                          {"shm", WIRE_SHM, 20},
                                          {"processes", WIRE_SHM, 60}};
    return run_groups("arrivals", groups, COUNT(groups));
}
