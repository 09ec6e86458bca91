/* SPDX-License-Identifier: MIT */
/*
 * Lists some of whose requests fail, or are to one peer; the ids of requests; and completions of
 * queues that are all full while the program does not poll.
 */
#include <stdlib.h>

#include "../support/pair.h"

#define PEERS 3
#define DEPTH 4
#define SLOT 16
#define SLOTS 48

/* A hub with short queues, memory on both sides, and writes from slot to slot. */
struct fixture {
    struct star star;
    struct memory near, far;
    struct sluice_sge sges[SLOTS];
    struct sluice_request writes[SLOTS];
    struct sluice_completion completions[SLOTS];
    struct sluice_scope_report report;
};

static void fixture_open(struct fixture *fixture)
{
    memset(fixture, 0, sizeof(*fixture));
    star_open(&fixture->star, PEERS, ATTR(.send_depth = DEPTH, .receive_depth = DEPTH));
    fixture->near = side_memory(&fixture->star.sides, 0, SLOTS * SLOT);
    fixture->far = side_memory(&fixture->star.sides, 1, SLOTS * SLOT);
    pattern_fill(fixture->near.bytes, fixture->near.length, 1);
    for (uint32_t i = 0; i < SLOTS; i++) {
        fixture->sges[i] = memory_sge(&fixture->near, (size_t)i * SLOT, SLOT);
        fixture->writes[i] = request_of(SLUICE_OP_WRITE, i % PEERS, &fixture->sges[i]);
        fixture->writes[i].remote = memory_remote(&fixture->far, (size_t)i * SLOT, SLOT);
        fixture->writes[i].user_data = 100 + i;
    }
    fixture->report.size = sizeof(fixture->report);
    fixture->report.failures = fixture->completions;
    fixture->report.capacity = SLOTS;
}

static void fixture_close(struct fixture *fixture)
{
    star_close(&fixture->star);
}

static struct sluice_scope *begin(struct fixture *fixture)
{
    return made(sluice_multichannel_scope_begin(fixture->star.hub, DEADLINE));
}

/* Requires that a slot of the peers' memory has been written, or has not. */
static void check_slot(const struct fixture *fixture, uint32_t slot, bool written)
{
    const uint8_t *bytes = fixture->far.bytes + slot * SLOT;
    if (written) {
        require(memcmp(bytes, fixture->near.bytes + slot * SLOT, SLOT) == 0, "slot %u", slot);
    } else {
        value_check(bytes, SLOT, 0);
    }
}

TEST_WITH(fixture, duplicate_peers_in_a_list, ())
{
    /* All writes go to one place of one peer, one after the other: the last one stays. */
    for (uint32_t i = 0; i < 10; i++) {
        fixture->writes[i].peer = 1;
        fixture->writes[i].remote = fixture->writes[0].remote;
    }
    require_ok(sluice_multichannel_scatter_write(fixture->star.hub, fixture->writes, 10, DEADLINE,
                                                 fixture->completions));
    require(memcmp(fixture->far.bytes, fixture->near.bytes + 9 * SLOT, SLOT) == 0, "slot %u", 9);
    for (uint32_t i = 0; i < 10; i++) {
        require(fixture->completions[i].user_data == 100 + i, "%u", i);
    }
    struct sluice_scope *scope = begin(fixture);
    require_result(sluice_scope_post_scatter_write(scope, fixture->writes, 8, NULL), 8);
    require_ok(sluice_scope_end(scope, NULL));
    require(memcmp(fixture->far.bytes, fixture->near.bytes + 7 * SLOT, SLOT) == 0, "slot %u", 7);
}

TEST_WITH(fixture, completion_of_a_scatter_fails, ())
{
    fixture->writes[4].remote.rkey ^= 0x33333333;
    require_error(sluice_multichannel_scatter_write(fixture->star.hub, fixture->writes, 9, DEADLINE,
                                                    fixture->completions),
                  -EACCES, "write peer 1");
    for (uint32_t i = 0; i < 9; i++) {
        require_class(&fixture->completions[i], i == 4   ? SLUICE_CLASS_ACCESS
                                                : i == 7 ? SLUICE_CLASS_CANCELLED
                                                         : SLUICE_CLASS_NONE);
        require(fixture->completions[i].peer == i % PEERS, "%u", fixture->completions[i].peer);
        check_slot(fixture, i, i != 4 && i != 7);
    }
}

TEST_WITH(fixture, scope_exit_order, ())
{
    fixture->writes[4].remote.rkey ^= 0x33333333; /* this fails write 7 to the same peer as well */
    fixture->writes[2].remote.rkey ^= 0x33333333; /* this fails writes 5 and 8 as well */
    struct sluice_scope *scope = begin(fixture);
    require_result(sluice_scope_post_scatter_write(scope, fixture->writes, 9, NULL), 9);
    fixture->report.said = -EDOM;
    require_result(sluice_scope_end(scope, &fixture->report), -EDOM);
    static const uint32_t failed[] = {2, 4, 5, 7, 8};
    require_equal(fixture->report.count, COUNT(failed), fixture->report.said, -EDOM);
    for (uint32_t i = 0; i < COUNT(failed); i++) {
        require(fixture->completions[i].user_data == 100 + failed[i],
                "failure %u is of request %llu", i,
                (unsigned long long)fixture->completions[i].user_data - 100);
    }
    for (uint32_t i = 0; i < 9; i++) {
        check_slot(fixture, i, i < 2 || i == 3 || i == 6);
    }
}

static int compare_ids(const void *left, const void *right)
{
    const struct sluice_handle *one = left;
    const struct sluice_handle *other = right;
    return one->id < other->id ? -1 : one->id > other->id;
}

/* Ids of sends and receives, scoped, posted and refused, come from one space. */
TEST_WITH(fixture, request_ids, ())
{
    enum { ROUNDS = 500 };
    static struct sluice_handle handles[4 * ROUNDS];
    struct sluice_multichannel *hub = fixture->star.hub;
    star_break(&fixture->star, 2);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct sluice_handle *four = &handles[(size_t)4 * i];
        require_ok(sluice_multichannel_post_write(hub, 0, fixture->sges, 1,
                                                  &fixture->writes[0].remote, DEADLINE, &four[0]));
        require_ok(sluice_multichannel_flush(hub, DEADLINE));
        struct sluice_scope *scope = begin(fixture);
        require_ok(sluice_scope_post_receive(scope, 1, NULL, 0, &four[1]));
        require_ok(sluice_scope_post_write(scope, 1, fixture->sges, 1, &fixture->writes[0].remote,
                                           &four[2]));
        require_ok(sluice_scope_post_send(scope, 2, NULL, 0, &four[3]));
        struct sluice_request send = request_of(SLUICE_OP_SEND, 0, NULL);
        require_result(sluice_channel_post(fixture->star.spokes[1], &send, 1, DEADLINE, NULL), 1);
        require_result(sluice_scope_end(scope, NULL), -ENOTCONN);
        require_ok(sluice_channel_flush(fixture->star.spokes[1], DEADLINE));
    }
    qsort(handles, COUNT(handles), sizeof(handles[0]), compare_ids);
    require(handles[0].id != 0, "an id of %u", 0);
    for (size_t i = 1; i < COUNT(handles); i++) {
        require(handles[i - 1].id != handles[i].id, "id %llx came twice",
                (unsigned long long)handles[i].id);
    }
}

TEST_WITH(fixture, completion_queue_never_overruns, ())
{
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, NULL);
    for (uint32_t i = 0; i < PEERS * DEPTH; i++) {
        receive.peer = fixture->writes[i].peer;
        receive.user_data = 500 + i;
        require_result(sluice_multichannel_post(fixture->star.hub, &receive, 1, DEADLINE, NULL), 1);
        require_result(
            sluice_channel_post(fixture->star.spokes[receive.peer], &send, 1, DEADLINE, NULL), 1);
        require_result(
            sluice_multichannel_post(fixture->star.hub, &fixture->writes[i], 1, DEADLINE, NULL), 1);
    }
    /* All of them complete while the hub does not poll. */
    for (uint32_t i = 0; i < PEERS; i++) {
        require_ok(sluice_channel_flush(fixture->star.spokes[i], DEADLINE));
    }
    uint32_t seen[2] = {0, 0};
    for (int got = 0; got < 2 * PEERS * DEPTH;) {
        got += sluice_multichannel_poll(fixture->star.hub, fixture->completions + got,
                                        2 * PEERS * DEPTH - (uint32_t)got);
    }
    for (uint32_t i = 0; i < 2 * PEERS * DEPTH; i++) {
        require_class(&fixture->completions[i], SLUICE_CLASS_NONE);
        uint64_t data = fixture->completions[i].user_data;
        seen[data >= 500] |= UINT32_C(1) << (data >= 500 ? data - 500 : data - 100);
    }
    require(seen[0] == (1 << PEERS * DEPTH) - 1 && seen[1] == seen[0], "%x, %x", seen[0], seen[1]);
    for (uint32_t i = 0; i < PEERS; i++) {
        star_works(&fixture->star, i);
    }
}

int main(void)
{
    return run_tests("semantics", 30);
}
