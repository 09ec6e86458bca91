/* SPDX-License-Identifier: MIT */
/*
 * Posts in a scope, beyond those of test_forms: more than there is room for; and that no other call
 * may use its channel or multichannel meanwhile.
 */
#include "../support/pair.h"
#include "../support/process.h"

#define PEERS 3
#define DEPTH 4
#define SLOT 64
#define SLOTS 60

/* Slot i of the hub's memory, and of the memory that all its peers share. */
struct fixture {
    struct star star;
    struct memory near, far;
    struct sluice_sge sges[SLOTS], far_sges[SLOTS];
    struct sluice_request requests[SLOTS];
    struct sluice_handle handles[SLOTS];
    struct sluice_completion failures[SLOTS];
    struct sluice_scope_report report;
};

static void fixture_open(struct fixture *fixture)
{
    struct sluice_channel_attr attr =
        *ATTR(.flags = SLUICE_CHANNEL_HISTOGRAMS, .send_depth = DEPTH, .receive_depth = DEPTH);
    memset(fixture, 0, sizeof(*fixture));
    star_open(&fixture->star, PEERS, &attr);
    struct sluice_context_info info = context_info(fixture->star.sides.contexts[0]);
    uint32_t access =
        info.atomics != SLUICE_ATOMICS_NONE ? ACCESS_ALL | SLUICE_ACCESS_REMOTE_ATOMIC : ACCESS_ALL;
    fixture->near = side_memory(&fixture->star.sides, 0, SLOTS * SLOT);
    fixture->far = side_memory_at(&fixture->star.sides, 1, SLOTS * SLOT, access, 0);
    pattern_fill(fixture->near.bytes, fixture->near.length, 1);
    pattern_fill(fixture->far.bytes, fixture->far.length, 2);
    for (uint32_t i = 0; i < SLOTS; i++) {
        fixture->sges[i] = memory_sge(&fixture->near, (size_t)i * SLOT, SLOT);
        fixture->far_sges[i] = memory_sge(&fixture->far, (size_t)i * SLOT, SLOT);
        fixture->requests[i] = request_of(SLUICE_OP_NONE, i % PEERS, &fixture->sges[i]);
        fixture->requests[i].remote = memory_remote(&fixture->far, (size_t)i * SLOT, SLOT);
        fixture->requests[i].user_data = 100 + i;
    }
    fixture->report.size = sizeof(fixture->report);
    fixture->report.failures = fixture->failures;
    fixture->report.capacity = SLOTS;
}

static void fixture_close(struct fixture *fixture)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        star_works(&fixture->star, i);
    }
    star_close(&fixture->star);
}

static struct sluice_scope *begin(struct fixture *fixture)
{
    return made(sluice_multichannel_scope_begin(fixture->star.hub, DEADLINE));
}

static void end(struct fixture *fixture, struct sluice_scope *scope, uint32_t posted)
{
    require_ok(sluice_scope_end(scope, &fixture->report));
    require(fixture->report.posted == posted, "%u, not %u", fixture->report.posted, posted);
}

/* Requires that slot i of one side has arrived in slot j of the other. */
static void check_slot(const struct fixture *fixture, uint32_t near, uint32_t far)
{
    require(memcmp(fixture->near.bytes + near * SLOT, fixture->far.bytes + far * SLOT, SLOT) == 0,
            "slots %u and %u", near, far);
}

static void wait_for(struct fixture *fixture, struct sluice_scope *scope, uint32_t index,
                     uint32_t opcode, uint32_t peer, uint64_t user_data)
{
    struct sluice_completion completion;
    require_ok(sluice_scope_wait(scope, &fixture->handles[index], DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
    require(completion.opcode == opcode && completion.peer == peer &&
                completion.user_data == user_data &&
                completion.bytes == fixture->sges[index].length,
            "handle %u: opcode %u, peer %u, user data %llu, %llu bytes", index, completion.opcode,
            completion.peer, (unsigned long long)completion.user_data,
            (unsigned long long)completion.bytes);
}

/* Posts the peer's side of a request of the hub. */
static void post_to_hub(struct fixture *fixture, uint32_t peer, uint32_t opcode, uint32_t slot)
{
    struct sluice_request request = request_of(opcode, 0, &fixture->far_sges[slot]);
    post(fixture->star.spokes[peer], &request);
}

/* Far more than the queues have room for. */
TEST_WITH(fixture, lists_of_writes_and_reads, ())
{
    struct sluice_scope *scope = begin(fixture);
    uint32_t half = SLOTS / 2;
    require_result(sluice_scope_post_scatter_write(scope, fixture->requests, half, NULL), half);
    require_result(
        sluice_scope_post_gather_read(scope, fixture->requests + half, half, fixture->handles),
        half);
    end(fixture, scope, SLOTS);
    for (uint32_t i = 0; i < SLOTS; i++) {
        check_slot(fixture, i, i);
    }
    pattern_check(fixture->far.bytes, half * SLOT, 1);
}

TEST_WITH(fixture, multicasts, ())
{
    uint32_t peers[SLOTS];
    struct sluice_peer_remote_mr remotes[SLOTS];
    memset(remotes, 0, sizeof(remotes));
    for (uint32_t i = 0; i < SLOTS; i++) {
        peers[i] = PEERS - 1 - i % PEERS;
        remotes[i].peer = peers[i];
        remotes[i].remote = fixture->requests[i].remote;
    }
    for (uint32_t i = 0; i < 2 * PEERS; i++) {
        post_to_hub(fixture, i % PEERS, SLUICE_OP_RECEIVE, i);
    }
    struct sluice_scope *scope = begin(fixture);
    require_result(sluice_scope_post_multicast_send(scope, &fixture->requests[7], peers, 2 * PEERS,
                                                    fixture->handles),
                   2 * PEERS);
    for (uint32_t i = 0; i < 2 * PEERS; i++) {
        wait_for(fixture, scope, i, SLUICE_OP_SEND, peers[i], 107);
    }
    for (uint32_t i = 0; i < 2 * PEERS; i++) {
        check_slot(fixture, 7, i);
    }
    require_result(sluice_scope_post_multicast_write(scope, &fixture->requests[9], remotes, SLOTS,
                                                     fixture->handles),
                   SLOTS);
    end(fixture, scope, 2 * PEERS + SLOTS);
    for (uint32_t i = 0; i < SLOTS; i++) {
        check_slot(fixture, 9, i);
    }
}

/* A peer that takes nothing delays no other one, even if the list names it first. */
TEST_WITH(fixture, full_queue_holds_back_no_other, ())
{
    for (uint32_t i = 0; i < 20; i++) {
        fixture->requests[i].opcode = i < 10 ? SLUICE_OP_RECEIVE : SLUICE_OP_WRITE;
        fixture->requests[i].peer = i < 10 ? 0 : i < 15 ? 1 : 2;
    }
    struct sluice_scope *scope =
        sluice_multichannel_scope_begin(fixture->star.hub, SLUICE_MS(short_run() ? 1000 : 200));
    require_result(sluice_scope_post(scope, fixture->requests, 20, fixture->handles), 20);
    require_result(sluice_scope_end(scope, &fixture->report), -ETIMEDOUT);
    require_equal(fixture->report.posted, 20, fixture->report.failed, 10, fixture->report.count,
                  10);
    for (uint32_t i = 0; i < 10; i++) {
        require_equal(fixture->failures[i].user_data, 100 + i);
        require_class(&fixture->failures[i], SLUICE_CLASS_TIMEOUT);
        check_slot(fixture, 10 + i, 10 + i);
    }
    star_reset(&fixture->star, 0);
}

/* Other requests fill the queue until the deadline: the peer is not at fault, and stays ready. */
TEST_WITH(fixture, request_without_room_fails_alone, ())
{
    struct sluice_completion completion;
    for (uint32_t i = 0; i < DEPTH; i++) {
        require_ok(sluice_multichannel_post_receive(fixture->star.hub, 1, &fixture->sges[i], 1,
                                                    DEADLINE, NULL));
    }
    struct sluice_scope *scope = sluice_multichannel_scope_begin(fixture->star.hub, SLUICE_MS(30));
    require_ok(sluice_scope_post_receive(scope, 1, &fixture->sges[9], 1, &fixture->handles[9]));
    require_ok(sluice_scope_wait(scope, &fixture->handles[9], 0, &completion));
    require_equal(completion.error, -ETIMEDOUT, completion.cause, SLUICE_STATUS_DEADLINE);
    require_ok(sluice_scope_end(scope, NULL));
    require_result(sluice_multichannel_peer_state(fixture->star.hub, 1), SLUICE_STATE_READY);
    for (uint32_t i = 0; i < DEPTH; i++) {
        post_to_hub(fixture, 1, SLUICE_OP_SEND, i);
    }
    require_ok(sluice_multichannel_flush(fixture->star.hub, DEADLINE));
}

#define refused(call) require_error(call, -EBUSY, "scope")

/* Further calls, beside the operations of test_forms. */
static void check_channel_is_busy(struct sluice_channel *channel, struct fixture *fixture,
                                  struct sluice_handle *handle)
{
    struct sluice_completion completion;
    refused(sluice_channel_submit(channel, fixture->requests, 1, DEADLINE, &completion));
    refused(sluice_channel_submit(channel, NULL, 0, DEADLINE, NULL));
    refused(sluice_channel_post(channel, fixture->requests, 1, DEADLINE, NULL));
    refused(sluice_channel_post(channel, fixture->requests, 3, DEADLINE, NULL));
    refused(sluice_channel_poll(channel, &completion, 1));
    refused(sluice_channel_wait(channel, handle, 0, &completion));
    refused(sluice_channel_next(channel, 0, &completion));
    refused(sluice_channel_cancel(channel, handle, &completion));
    refused(sluice_channel_detach(channel, handle));
    refused(sluice_channel_flush(channel, 0));
    refused(sluice_channel_wait_connected(channel, 0));
    refused(sluice_channel_shutdown(channel, 0));
}

/* Calls that only read are allowed, and refused calls had no effect. */
TEST_WITH(fixture, channel_is_busy, ())
{
    struct sluice_error error = {.size = sizeof(error)};
    struct sluice_channel *channel = fixture->star.spokes[1];
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    receive.user_data = 5;
    struct sluice_handle handle = post(channel, &receive);
    struct sluice_scope *scope = sluice_channel_scope_begin(channel, DEADLINE);
    fixture->requests[0].opcode = SLUICE_OP_WRITE;
    check_channel_is_busy(channel, fixture, &handle);
    require_result(sluice_channel_state(channel), SLUICE_STATE_READY);
    require_result(sluice_channel_error(channel, &error), 0);
    channel_info(channel);
    channel_counters(channel);
    require(sluice_channel_fd(channel) >= 0, "%s", sluice_last_error());
    require_ok(sluice_channel_wake(channel));
    require_ok(sluice_scope_end(scope, &fixture->report));
    require(fixture->report.posted == 0, "%u", fixture->report.posted);
    require_ok(sluice_multichannel_send(fixture->star.hub, 1, NULL, 0, DEADLINE));
    require(await(channel, handle, SLUICE_CLASS_NONE).user_data == 5, "%u", 5);
    pattern_check(fixture->near.bytes, fixture->near.length, 1);
    pattern_check(fixture->far.bytes, fixture->far.length, 2);
}

TEST_WITH(fixture, multichannel_is_busy, ())
{
    struct sluice_endpoint endpoint = {{0}};
    struct sluice_completion completion;
    struct sluice_handle handle = {0};
    struct sluice_multichannel *hub = fixture->star.hub;
    struct sluice_scope *scope = begin(fixture);
    refused(sluice_multichannel_submit(hub, fixture->requests, 0, DEADLINE, NULL));
    refused(sluice_multichannel_scatter_gather(hub, fixture->requests, 2, fixture->requests, 2,
                                               DEADLINE, NULL));
    fixture->requests[0].opcode = SLUICE_OP_READ;
    refused(sluice_multichannel_post(hub, fixture->requests, 1, DEADLINE, NULL));
    refused(sluice_multichannel_poll(hub, &completion, 1));
    refused(sluice_multichannel_wait(hub, &handle, 0, &completion));
    refused(sluice_multichannel_next(hub, 0, &completion));
    refused(sluice_multichannel_flush(hub, 0));
    refused(sluice_multichannel_peer_reset(hub, 1, &endpoint));
    refused(sluice_multichannel_peer_handshake(hub, 1, &endpoint));
    refused(sluice_multichannel_shutdown(hub, 0));
    for (uint32_t i = 0; i < PEERS; i++) {
        require_result(sluice_multichannel_peer_state(hub, i), SLUICE_STATE_READY);
    }
    end(fixture, scope, 0);
    pattern_check(fixture->near.bytes, fixture->near.length, 1);
    pattern_check(fixture->far.bytes, fixture->far.length, 2);
}

/* A wake ends the wait for one request, and no other wait of a scope. */
TEST_WITH(fixture, woken_in_a_scope, ())
{
    struct sluice_completion completion;
    struct sluice_scope *scope = begin(fixture);
    require_ok(sluice_scope_post_receive(scope, 1, &fixture->sges[0], 1, &fixture->handles[0]));
    require_ok(sluice_multichannel_wake(fixture->star.hub));
    require_result(sluice_scope_wait(scope, &fixture->handles[0], DEADLINE, &completion), -EINTR);
    /* It ends one wait, and no result is lost. */
    require_result(sluice_scope_wait(scope, &fixture->handles[0], SLUICE_MS(5), &completion),
                   -ETIMEDOUT);
    post_to_hub(fixture, 1, SLUICE_OP_SEND, 0);
    wait_for(fixture, scope, 0, SLUICE_OP_RECEIVE, 1, 0);
    check_slot(fixture, 0, 0);
    require_ok(sluice_multichannel_wake(fixture->star.hub));
    require_result(sluice_scope_post_scatter_write(scope, fixture->requests, SLOTS, NULL), SLOTS);
    end(fixture, scope, SLOTS + 1);
    for (uint32_t i = 1; i < SLOTS; i++) {
        check_slot(fixture, i, i);
    }
}

int main(void)
{
    return run_tests("scope_posts", 30);
}
