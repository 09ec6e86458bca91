/* SPDX-License-Identifier: MIT */
/*
 * The cause of a failure, where a device reports it in several ways or reports failures that no
 * longer matter. The program gets the same cause soon, whichever of event and completion comes
 * first.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "../support/process.h"
#include "check.h"
#include "ports.h"

#define VENDOR 0x51ce00

/* The vectors of completion queues, in the order of their making. */
#define VECTORS 16
static int vectors[VECTORS];
static uint32_t vector_count;

struct ibv_cq *__real_ibv_create_cq(struct ibv_context *ibv, int cqe, void *cq_context,
                                    struct ibv_comp_channel *channel, int vector);
struct ibv_cq *__wrap_ibv_create_cq(struct ibv_context *ibv, int cqe, void *cq_context,
                                    struct ibv_comp_channel *channel, int vector);

struct ibv_cq *__wrap_ibv_create_cq(struct ibv_context *ibv, int cqe, void *cq_context,
                                    struct ibv_comp_channel *channel, int vector)
{
    if (vector_count < VECTORS) {
        vectors[vector_count++] = vector;
    }
    return __real_ibv_create_cq(ibv, cqe, cq_context, channel, vector);
}

/* The order of an event and the completion that belongs to it. */
enum order { EVENT_FIRST, BOTH, COMPLETION_FIRST, ORDERS };

static void check_all_read(void)
{
    require(fake_verbs_unread_events() == 0, "%u events unread", fake_verbs_unread_events());
}

/* Requires that the channel's error is that of the request that failed first. */
static void check_agreement(const struct sluice_channel *channel,
                            const struct sluice_completion *completion)
{
    struct sluice_error error = channel_error(channel);
    require(
        error.status == completion->status && error.vendor == completion->vendor &&
            error.error_class == completion->error_class && error.error == completion->error,
        "request: status %u, vendor %#x, class %u; channel: status %u, vendor %#x, class %u, %s",
        completion->status, completion->vendor, completion->error_class, error.status, error.vendor,
        error.error_class, error.text);
}

static void flap(void)
{
    require(fake_verbs_port_event(0, 1, IBV_EVENT_PORT_ERR) &&
                fake_verbs_port_event(0, 1, IBV_EVENT_PORT_ACTIVE),
            "the event has no recipient");
}

static void two_contexts(struct sides *sides)
{
    for (int i = 0; i < 2; i++) {
        open_side(sides, i, NULL);
    }
}

/* The port was down and is up again before the channels are made, or before they are connected. */
TEST(port_error_of_earlier, .times = 2)
{
    bool prepared_before = _i == 1;
    struct pair pair;
    struct sluice_channel_attr attr = {.size = sizeof(attr), .wait_mode = SLUICE_WAIT_EVENT};
    struct halves halves;
    two_contexts(&pair.sides);
    if (!prepared_before) {
        flap();
    }
    halves_prepare(&halves, &pair.sides, &attr, &attr);
    if (prepared_before) {
        flap();
    }
    halves_connect(&halves, &pair);
    uint64_t polls = fake_verbs.calls[FAKE_POLL_CQ];
    require_result(sluice_channel_receive(pair.channels[0], NULL, 0, SLUICE_MS(200), NULL),
                   -ETIMEDOUT);
    polls = fake_verbs.calls[FAKE_POLL_CQ] - polls;
    /*
     * A thread that does not sleep polls millions of times; the drain at the end polls some
     * thousands of times.
     */
    require(polls < 100000, "it did not sleep, but polled %llu times", (unsigned long long)polls);
    struct sluice_error error = channel_error(pair.channels[0]);
    require(error.status == SLUICE_STATUS_DEADLINE, "%s", error.text);
    require_result(sluice_channel_state(pair.channels[1]), SLUICE_STATE_READY);
    for (int i = 0; i < 2; i++) {
        sluice_channel_close(pair.channels[i]);
    }
    pair_connect(&pair, NULL);
    pair_works(&pair);
    check_all_read();
    pair_close(&pair);
}

/* The port came back without the address that was prepared. A GID event may report that as well. */
TEST(port_error_and_the_address_has_gone, .times = 2)
{
    struct pair pair;
    struct halves halves;
    two_contexts(&pair.sides);
    halves_prepare(&halves, &pair.sides, NULL, NULL);
    flap();
    clear_gid(PORT1, 3);
    if (_i == 1) {
        fake_verbs_port_event(0, 1, IBV_EVENT_GID_CHANGE);
    }
    for (int i = 0; i < 2; i++) {
        require_null(sluice_prepared_channel_handshake(halves.prepared[i], &halves.endpoints[!i]),
                     EADDRNOTAVAIL, "lost the address fake0 port 1");
    }
    /* When prepared again, they have the next best address. */
    pair_connect(&pair, NULL);
    pair_works(&pair);
    check_all_read();
    pair_close(&pair);
}

/* A status, the event that some devices give with it, and the expected class. */
struct verdict {
    enum ibv_wc_status status;
    enum ibv_event_type event;
    enum sluice_error_class error_class;
};

static const struct verdict verdicts[] = {
    {IBV_WC_RETRY_EXC_ERR, IBV_EVENT_QP_FATAL, SLUICE_CLASS_PEER_LOST},
    {IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_REQ_ERR, SLUICE_CLASS_ACCESS},
    {IBV_WC_LOC_PROT_ERR, IBV_EVENT_QP_ACCESS_ERR, SLUICE_CLASS_LOCAL},
};

/*
 * Releases held completions of the queue pair, with the event in this order. Returns how the first
 * request ended.
 */
static struct sluice_completion release_with_event(struct sluice_channel *channel, uint32_t qpn,
                                                   struct sluice_handle first,
                                                   enum ibv_event_type event, enum order order,
                                                   enum sluice_error_class error_class)
{
    if (order != COMPLETION_FIRST) {
        require(fake_verbs_qp_event(qpn, event, false), "no queue pair");
    }
    if (order == EVENT_FIRST) {
        require_result(sluice_channel_state(channel), SLUICE_STATE_FAILED);
        require(channel_error(channel).vendor == (uint32_t)event, "the event is not the cause");
        check_all_read();
    }
    fake_verbs_release(qpn);
    struct sluice_completion completion = await(channel, first, error_class);
    check_agreement(channel, &completion);
    if (order == COMPLETION_FIRST) {
        require(fake_verbs_qp_event(qpn, event, false), "no queue pair");
        require_result(sluice_channel_state(channel), SLUICE_STATE_FAILED);
    }
    check_all_read();
    check_agreement(channel, &completion);
    return completion;
}

/* The status of the failed request counts, as it says more than the event of its queue pair. */
TEST_WITH(pair, event_with_a_status, (NULL), .times = ORDERS * (int)COUNT(verdicts))
{
    const struct verdict *verdict = &verdicts[_i / ORDERS];
    struct sluice_handle handles[2];
    uint32_t qpn = qpn_of(0);
    fake_verbs_hold(qpn);
    fake_verbs_end(qpn, FAKE_SEND, 1, verdict->status, VENDOR);
    for (int i = 0; i < 2; i++) {
        handles[i] = post_of(pair->channels[0], SLUICE_OP_SEND, NULL);
    }
    await_held(qpn, FAKE_SEND, 2);
    struct sluice_completion completion =
        release_with_event(pair->channels[0], qpn, handles[0], verdict->event,
                           (enum order)(_i % ORDERS), verdict->error_class);
    require_equal(completion.status, (uint32_t)verdict->status, completion.vendor, VENDOR);
    struct sluice_error error = channel_error(pair->channels[0]);
    require(error.opcode == SLUICE_OP_SEND, "opcode %u: %s", error.opcode, error.text);
    completion = await(pair->channels[0], handles[1], SLUICE_CLASS_CANCELLED);
    require(completion.cause == (uint32_t)verdict->status, "cause %u", completion.cause);
}

static void write_with_bad_key(struct pair *pair)
{
    struct memory near, far;
    memory_open(&near, pair->sides.pds[0], 8);
    memory_open(&far, pair->sides.pds[1], 8);
    struct sluice_sge sge = memory_sge(&near, 0, 8);
    struct sluice_remote_mr remote = memory_remote(&far, 0, 8);
    remote.rkey ^= 0x5a5a5a5a;
    require_result(sluice_channel_write(pair->channels[0], &sge, 1, &remote, DEADLINE), -EACCES);
    memory_close(&near);
    memory_close(&far);
}

/* The receives of the target are flushed; no request of its own reports the reason. */
TEST_WITH(pair, target_of_a_bad_request, (NULL), .times = ORDERS)
{
    struct sluice_handle handles[2];
    uint32_t qpn = qpn_of(1);
    for (int i = 0; i < 2; i++) {
        handles[i] = post_of(pair->channels[1], SLUICE_OP_RECEIVE, NULL);
    }
    fake_verbs_hold(qpn);
    write_with_bad_key(pair);
    await_held(qpn, FAKE_RECEIVE, 2);
    struct sluice_completion completion =
        release_with_event(pair->channels[1], qpn, handles[0], IBV_EVENT_QP_ACCESS_ERR,
                           (enum order)_i, SLUICE_CLASS_PEER_LOST);
    require(completion.status == SLUICE_STATUS_RETRY_EXC_ERR, "status %u", completion.status);
    completion = await(pair->channels[1], handles[1], SLUICE_CLASS_CANCELLED);
    require(completion.cause == SLUICE_STATUS_RETRY_EXC_ERR, "cause %u", completion.cause);
}

/* A thread that waits for its receive and never sleeps. */
struct spinner {
    pthread_t thread;
    struct sluice_channel *channel;
    struct sluice_completion completion;
    atomic_bool begun;
    int result;
};

static void *spin_on_channel(void *argument)
{
    struct spinner *spinner = argument;
    atomic_store(&spinner->begun, true);
    spinner->result =
        sluice_channel_receive(spinner->channel, NULL, 0, DEADLINE, &spinner->completion);
    return NULL;
}

TEST_WITH(pair, dead_device_and_a_wait_that_spins, (ATTR(.wait_mode = SLUICE_WAIT_SPIN)))
{
    struct spinner spinner = {.channel = pair->channels[0]};
    require_ok(pthread_create(&spinner.thread, NULL, spin_on_channel, &spinner));
    while (!atomic_load(&spinner.begun)) {
        let_pass(SLUICE_US(100));
    }
    let_pass(SLUICE_MS(5));
    int64_t start = fair_now();
    fake_verbs_port_event(0, 0, IBV_EVENT_DEVICE_FATAL);
    pthread_join(spinner.thread, NULL);
    int64_t took = fair_now() - start;
    require_result(spinner.result, -EIO);
    require_class(&spinner.completion, SLUICE_CLASS_DEVICE);
    require(took < SLUICE_S(5), "%lld ms", (long long)took / 1000000);
    check_all_read();
    check_agreement(pair->channels[0], &spinner.completion);
}

TEST_WITH(pair, dead_device_and_a_program_that_polls, (NULL))
{
    struct sluice_completion completion;
    post_of(pair->channels[0], SLUICE_OP_RECEIVE, NULL);
    require_result(sluice_channel_poll(pair->channels[0], &completion, 1), 0);
    int64_t start = fair_now();
    fake_verbs_port_event(0, 0, IBV_EVENT_DEVICE_FATAL);
    int got;
    do {
        got = sluice_channel_poll(pair->channels[0], &completion, 1);
        require(fair_now() - start < SLUICE_S(5), "the failure was not noticed");
    } while (got == 0);
    require_result(got, 1);
    require_class(&completion, SLUICE_CLASS_DEVICE);
    check_all_read();
    check_agreement(pair->channels[0], &completion);
}

/* A peer whose completion queue failed needs a new queue; a reset makes it on the same context. */
TEST_WITH(pair, reset_after_a_failed_queue, (NULL), .times = 2)
{
    require(fake_verbs_cq_event(qpn_of(0)), "no queue pair");
    if (_i == 1) {
        require_result(sluice_channel_state(pair->channels[0]), SLUICE_STATE_FAILED);
    }
    require_null(sluice_channel_reset(pair->channels[0]), EIO,
                 "completion queue fake0 failed close channel");
    require_result(sluice_channel_state(pair->channels[1]), SLUICE_STATE_READY);
    sluice_channel_close(pair->channels[1]);
    pair_connect(pair, NULL);
    pair_works(pair);
    check_all_read();
}

TEST_WITH(star, reset_of_peers_after_a_failed_queue, (3, NULL))
{
    struct sluice_endpoint endpoint;
    require(fake_verbs_cq_event(qpn_of(1)), "no queue pair");
    for (int i = 0; i < 2; i++) {
        for (uint32_t peer = 0; peer < 3; peer++) {
            require_error(sluice_multichannel_peer_reset(star->hub, peer, &endpoint), -EIO,
                          "completion queue fake0 failed close");
            require_result(sluice_multichannel_peer_state(star->hub, peer), SLUICE_STATE_FAILED);
        }
    }
    struct pair pair = {.sides = star->sides};
    pair_connect(&pair, NULL);
    pair_works(&pair);
    for (int i = 0; i < 2; i++) {
        sluice_channel_close(pair.channels[i]);
    }
}

static const char lid_subnet[] = "\xfe\x80\0\0\0\0\0\0\0\x11\x22\x33\x44\x55\x66\x77";
static const char new_subnet[] = "\xfe\xc0\0\0\0\0\0\0\0\x11\x22\x33\x44\x55\x66\x77";

static void make_infiniband(void)
{
    for (uint32_t i = 0; i < FAKE_GIDS; i++) {
        clear_gid(PORT1, i);
    }
    PORT1->link_layer = IBV_LINK_LAYER_INFINIBAND;
    PORT1->lid = 7;
    set_gid(PORT1, 0, IBV_GID_TYPE_IB, lid_subnet);
}

/* Packets routed by LID do not contain the changed GID; those routed by GID do. */
TEST(gid_of_infiniband, .times = 2)
{
    bool global = _i == 1;
    struct sluice_channel_attr attr = {.size = sizeof(attr)};
    struct pair pair;
    attr.flags = global ? SLUICE_CHANNEL_GLOBAL : 0;
    make_infiniband();
    pair_open(&pair, &attr);
    require_equal(changes_of(0).rtr.ah_attr.is_global, global);
    set_gid(PORT1, 0, IBV_GID_TYPE_IB, new_subnet);
    fake_verbs_port_event(0, 1, IBV_EVENT_GID_CHANGE);
    for (int i = 0; i < 2; i++) {
        require_result(sluice_channel_state(pair.channels[i]),
                       global ? SLUICE_STATE_FAILED : SLUICE_STATE_READY);
    }
    if (!global) {
        pair_works(&pair);
    }
    check_all_read();
    pair_close(&pair);
}

/* The GID changes before the handshake, after the peer got the old one. */
TEST(gid_of_infiniband_before_the_handshake, .times = 2)
{
    bool global = _i == 1;
    struct sluice_channel_attr attr = {.size = sizeof(attr)};
    struct halves halves;
    struct pair pair;
    attr.flags = global ? SLUICE_CHANNEL_GLOBAL : 0;
    make_infiniband();
    two_contexts(&pair.sides);
    halves_prepare(&halves, &pair.sides, &attr, &attr);
    set_gid(PORT1, 0, IBV_GID_TYPE_IB, new_subnet);
    fake_verbs_port_event(0, 1, IBV_EVENT_GID_CHANGE);
    for (int i = 0; i < 2; i++) {
        if (global) {
            require_null(
                sluice_prepared_channel_handshake(halves.prepared[i], &halves.endpoints[!i]),
                EADDRNOTAVAIL, "lost the address fake0 port 1");
            continue;
        }
        pair.channels[i] =
            made(sluice_prepared_channel_handshake(halves.prepared[i], &halves.endpoints[!i]));
    }
    if (global) {
        pair_connect(&pair, &attr);
    }
    pair_works(&pair);
    pair_close(&pair);
}

/* If the table cannot be read, the address is assumed to be there. */
TEST_WITH(pair, gid_that_cannot_be_read, (NULL))
{
    fake_verbs_fail(1, FAKE_CALL(FAKE_QUERY_GID), EMFILE);
    fake_verbs_port_event(0, 1, IBV_EVENT_GID_CHANGE);
    for (int i = 0; i < 2; i++) {
        require_result(sluice_channel_state(pair->channels[i]), SLUICE_STATE_READY);
    }
    require(fake_verbs_failed(), "it was read");
    pair_works(pair);
    check_all_read();
    /* Later the table can be read, and the address is gone. */
    clear_gid(PORT1, 3);
    fake_verbs_port_event(0, 1, IBV_EVENT_GID_CHANGE);
    require_result(sluice_channel_state(pair->channels[0]), SLUICE_STATE_FAILED);
}

/* Interrupts of successive queues go to successive vectors; the device has four. */
TEST(vectors_of_queues)
{
    struct pair pairs[4];
    sides_open(&pairs[0].sides);
    vector_count = 0; /* opening a context makes one for a test */
    for (int i = 0; i < 4; i++) {
        pairs[i].sides = pairs[0].sides;
        pair_connect(&pairs[i], NULL);
    }
    require_result(vector_count, 8);
    for (uint32_t i = 1; i < vector_count; i++) {
        require(vectors[i] == (vectors[i - 1] + 1) % 4, "vector %d after %d", vectors[i],
                vectors[i - 1]);
    }
    for (int i = 3; i > 0; i--) {
        sluice_channel_close(pairs[i].channels[0]);
        sluice_channel_close(pairs[i].channels[1]);
    }
    pair_close(&pairs[0]);
}

int main(void)
{
    return run_verbs("verbs_causes", WIRE_SELF, 60);
}
