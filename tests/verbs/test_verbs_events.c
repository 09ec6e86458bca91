/* SPDX-License-Identifier: MIT */
/*
 * Asynchronous events: each becomes an error of the affected channels, once, whatever the program
 * does meanwhile; other channels go on.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#include "../support/process.h"
#include "check.h"
#include "ports.h"

/* Events that some devices give to the target of a forbidden request. */
static bool is_of_peer(enum ibv_event_type event)
{
    return event == IBV_EVENT_QP_REQ_ERR || event == IBV_EVENT_QP_ACCESS_ERR;
}

static enum sluice_error_class class_of(enum ibv_event_type event)
{
    return is_of_peer(event) ? SLUICE_CLASS_PEER_LOST : SLUICE_CLASS_DEVICE;
}

static uint32_t status_of(enum ibv_event_type event)
{
    return is_of_peer(event) ? SLUICE_STATUS_RETRY_EXC_ERR : SLUICE_STATUS_FATAL_ERR;
}

/* Requires that the error is the one that an event of this type causes. */
static void check_event(const struct sluice_error *error, enum ibv_event_type event)
{
    require(error->status == status_of(event) && error->error_class == class_of(event) &&
                error->vendor == (uint32_t)event && error->opcode == SLUICE_OP_NONE,
            "status %u, class %u, error %d, vendor %u, opcode %u: %s", error->status,
            error->error_class, error->error, error->vendor, error->opcode, error->text);
}

static bool all_are_acknowledged(const void *argument)
{
    (void)argument;
    return fake_verbs_unread_events() == 0 && fake_verbs_unacked_events() == 0;
}

/* The thread that reads events may be about to acknowledge the last one. */
static void await_acknowledged(void)
{
    await_device(all_are_acknowledged, NULL, "events that are read and acknowledged");
}

static const enum ibv_event_type qp_events[] = {IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR,
                                                IBV_EVENT_QP_ACCESS_ERR};

/*
 * An event of one of three peers, with or without a failure of its queue pair. The state of the
 * peer shows it.
 */
TEST_WITH(star, event_of_a_queue_pair, (3, NULL), .times = 2 * (int)COUNT(qp_events))
{
    enum ibv_event_type event = qp_events[_i / 2];
    require(fake_verbs_qp_event(qpn_of(1), event, _i % 2), "no queue pair");
    require_result(sluice_multichannel_peer_state(star->hub, 1), SLUICE_STATE_FAILED);
    await_acknowledged();
    struct sluice_error error = peer_error(star->hub, 1);
    check_event(&error, event);
    require_result(sluice_multichannel_peer_state(star->hub, 0), SLUICE_STATE_READY);
    star_works(star, 0);
    star_works(star, 2);
    require_result(sluice_multichannel_send(star->hub, 1, NULL, 0, DEADLINE), -ENOTCONN);
    star_reset(star, 1);
    star_works(star, 1);
}

/* With requests in flight, the first has the reason, and the others are cancelled by it. */
TEST_WITH(pair, event_with_work_in_flight, (NULL), .times = 2 * (int)COUNT(qp_events))
{
    struct sluice_handle handles[3];
    struct sluice_completion completion;
    for (int i = 0; i < 3; i++) {
        handles[i] = post_of(pair->channels[0], SLUICE_OP_RECEIVE, NULL);
    }
    require(fake_verbs_qp_event(qpn_of(0), qp_events[_i / 2], _i % 2), "no queue pair");
    int64_t start = fair_now();
    require_ok(sluice_channel_wait(pair->channels[0], &handles[0], DEADLINE, &completion));
    require_class(&completion, class_of(qp_events[_i / 2]));
    require_equal(completion.vendor, (uint32_t)qp_events[_i / 2], completion.status,
                  status_of(qp_events[_i / 2]));
    for (int i = 1; i < 3; i++) {
        await(pair->channels[0], handles[i], SLUICE_CLASS_CANCELLED);
    }
    require_within(start, SLUICE_MS(900));
    await_acknowledged();
}

/* Two channels of one context, and two of another one of the same device. */
struct four {
    struct sides sides;
    struct pair near, far;
};

static void four_open(struct four *four)
{
    for (int i = 0; i < 2; i++) {
        open_side(&four->sides, i, NULL);
    }
    for (int i = 0; i < 2; i++) {
        four->near.sides.contexts[i] = four->sides.contexts[0];
        four->near.sides.pds[i] = four->sides.pds[0];
        four->far.sides.contexts[i] = four->sides.contexts[1];
        four->far.sides.pds[i] = four->sides.pds[1];
    }
    pair_connect(&four->near, NULL);
    pair_connect(&four->far, NULL);
}

static void four_close(struct four *four)
{
    for (int i = 0; i < 2; i++) {
        sluice_channel_close(four->near.channels[i]);
        sluice_channel_close(four->far.channels[i]);
        sluice_pd_free(four->sides.pds[i]);
        sluice_context_close(four->sides.contexts[i]);
    }
}

/* All channels of the context fail for good; a program that opens the device again works. */
TEST(device_that_failed)
{
    struct sluice_endpoint endpoint;
    struct pair pair;
    pair_open(&pair, NULL);
    struct sluice_prepared_channel *prepared = prepare_channel(pair.sides.pds[0], NULL, &endpoint);
    require(fake_verbs_port_event(0, 0, IBV_EVENT_DEVICE_FATAL), "the event has no recipient");
    for (int i = 0; i < 2; i++) {
        require_result(sluice_channel_state(pair.channels[i]), SLUICE_STATE_FAILED);
        struct sluice_error error = channel_error(pair.channels[i]);
        require(error.status == SLUICE_STATUS_FATAL_ERR &&
                    error.error_class == SLUICE_CLASS_DEVICE && strstr(error.text, "fake0"),
                "%s", error.text);
        require_result(sluice_channel_send(pair.channels[i], NULL, 0, DEADLINE), -ENOTCONN);
    }
    require_null(sluice_prepared_channel_handshake(prepared, &endpoint), EIO, "failed");
    require_null(sluice_channel_reset(pair.channels[0]), EIO, "failed");
    pair.channels[0] = NULL;
    require_null(sluice_channel_prepare(pair.sides.pds[0], NULL), EIO, "failed");
    await_acknowledged();
    pair_close(&pair);
    pair_open(&pair, NULL);
    pair_works(&pair);
    pair_close(&pair);
}

/* Another context, on a port of its own, is unaffected. */
TEST(port_that_went_down)
{
    struct sides sides;
    struct pair pairs[2];
    fake_verbs.device[0].ports = 2;
    open_ports(&sides, 2);
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) {
            pairs[i].sides.contexts[j] = sides.contexts[i];
            pairs[i].sides.pds[j] = sides.pds[i];
        }
        pair_connect(&pairs[i], NULL);
    }
    fake_verbs_lock();
    PORT1->state = IBV_PORT_DOWN;
    fake_verbs_unlock();
    fake_verbs_port_event(0, 1, IBV_EVENT_PORT_ERR);
    for (int i = 0; i < 2; i++) {
        require_result(sluice_channel_state(pairs[0].channels[i]), SLUICE_STATE_FAILED);
        struct sluice_error error = channel_error(pairs[0].channels[i]);
        check_event(&error, IBV_EVENT_PORT_ERR);
        require_result(sluice_channel_state(pairs[1].channels[i]), SLUICE_STATE_READY);
    }
    pair_works(&pairs[1]);
    require_null(sluice_channel_prepare(sides.pds[0], NULL), ENETDOWN, "port 1 fake0 down");
    fake_verbs_lock();
    PORT1->state = IBV_PORT_ACTIVE;
    fake_verbs_unlock();
    fake_verbs_port_event(0, 1, IBV_EVENT_PORT_ACTIVE);
    for (int i = 0; i < 2; i++) {
        sluice_channel_close(pairs[0].channels[i]);
    }
    pair_connect(&pairs[0], NULL);
    for (int i = 0; i < 2; i++) {
        pair_works(&pairs[i]);
        require_result(sluice_channel_state(pairs[i].channels[0]), SLUICE_STATE_READY);
    }
    await_acknowledged();
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) {
            sluice_channel_close(pairs[i].channels[j]);
        }
    }
    sides_close(&sides);
}

/* All peers of the multichannel that uses the queue fail, and no others. */
TEST_WITH(star, completion_queue_that_failed, (3, NULL))
{
    require(fake_verbs_cq_event(qpn_of(1)), "no queue pair");
    for (uint32_t i = 0; i < 3; i++) {
        require_result(sluice_multichannel_peer_state(star->hub, i), SLUICE_STATE_FAILED);
        struct sluice_error error = peer_error(star->hub, i);
        require(error.status == SLUICE_STATUS_FATAL_ERR && error.error_class == SLUICE_CLASS_DEVICE,
                "%s", error.text);
        require_result(sluice_channel_state(star->spokes[i]), SLUICE_STATE_READY);
    }
    await_acknowledged();
}

/* The address that the channels use is removed, or another one. */
TEST_WITH(four, gid_that_went, (), .times = 2)
{
    bool ours = _i == 0;
    clear_gid(PORT1, ours ? 3 : 1);
    fake_verbs_port_event(0, 1, IBV_EVENT_GID_CHANGE);
    for (int i = 0; i < 2; i++) {
        require_result(sluice_channel_state(four->near.channels[i]),
                       ours ? SLUICE_STATE_FAILED : SLUICE_STATE_READY);
        if (ours) {
            struct sluice_error error = channel_error(four->near.channels[i]);
            check_event(&error, IBV_EVENT_GID_CHANGE);
        }
    }
    if (!ours) {
        pair_works(&four->near);
        pair_works(&four->far);
    } else {
        /* The next best address serves as well. */
        for (int i = 0; i < 2; i++) {
            sluice_channel_close(four->near.channels[i]);
        }
        pair_connect(&four->near, NULL);
        pair_works(&four->near);
    }
}

TEST(lid_that_changed, .times = 2)
{
    bool ours = _i == 0;
    struct pair pair;
    PORT1->link_layer = IBV_LINK_LAYER_INFINIBAND;
    PORT1->lid = 7;
    PORT1->gid[0].type = 1 + IBV_GID_TYPE_IB;
    pair_open(&pair, NULL);
    pair_works(&pair);
    fake_verbs_lock();
    PORT1->lid = ours ? 9 : 7;
    fake_verbs_unlock();
    fake_verbs_port_event(0, 1, IBV_EVENT_LID_CHANGE);
    for (int i = 0; i < 2; i++) {
        require_result(sluice_channel_state(pair.channels[i]),
                       ours ? SLUICE_STATE_FAILED : SLUICE_STATE_READY);
    }
    if (ours) {
        struct sluice_error error = channel_error(pair.channels[0]);
        check_event(&error, IBV_EVENT_LID_CHANGE);
    } else {
        pair_works(&pair);
    }
    await_acknowledged();
    pair_close(&pair);
}

/* Events that report no failure change nothing, not even hundreds of them. */
TEST_WITH(four, events_that_are_no_failures, ())
{
    static const enum ibv_event_type of_port[] = {
        IBV_EVENT_PORT_ACTIVE,       IBV_EVENT_GID_CHANGE, IBV_EVENT_PKEY_CHANGE,
        IBV_EVENT_CLIENT_REREGISTER, IBV_EVENT_SM_CHANGE,  IBV_EVENT_LID_CHANGE};
    uint32_t qpn = qpn_of(0);
    for (int i = 0; i < 100; i++) {
        fake_verbs_port_event(0, 1, of_port[i % (int)COUNT(of_port)]);
        fake_verbs_port_event(0, 2, IBV_EVENT_PORT_ERR); /* a port that none of them uses */
        fake_verbs_qp_event(qpn, IBV_EVENT_COMM_EST, false);
        fake_verbs_qp_event(qpn, IBV_EVENT_SQ_DRAINED, false);
    }
    pair_works(&four->near);
    pair_works(&four->far);
    for (int i = 0; i < 2; i++) {
        require_result(sluice_channel_state(four->near.channels[i]), SLUICE_STATE_READY);
        require_result(sluice_channel_state(four->far.channels[i]), SLUICE_STATE_READY);
    }
    await_acknowledged();
}

/* In a burst of events the first one is the reason, and it is logged once. */
TEST_WITH(pair, burst, (NULL))
{
    struct sluice_completion completion;
    for (int i = 0; i < 5; i++) {
        fake_verbs_qp_event(qpn_of(0), qp_events[(i + 1) % 3], true);
        fake_verbs_port_event(0, 1, IBV_EVENT_PORT_ERR);
    }
    struct sluice_error error = channel_error(pair->channels[0]);
    check_event(&error, qp_events[1]);
    await_acknowledged();
    for (int i = 0; i < 5; i++) {
        fake_verbs_qp_event(qpn_of(0), qp_events[0], true);
        require_result(sluice_channel_poll(pair->channels[0], &completion, 1), 0);
    }
    error = channel_error(pair->channels[0]);
    check_event(&error, qp_events[1]);
}

/* Reading events is interrupted, or fails as the device is gone. */
TEST_WITH(pair, reading_is_interrupted, (NULL))
{
    fake_verbs_qp_event(qpn_of(0), IBV_EVENT_QP_FATAL, false);
    fake_verbs_fail(1, FAKE_CALL(FAKE_GET_ASYNC_EVENT), EINTR);
    require_result(sluice_channel_state(pair->channels[0]), SLUICE_STATE_FAILED);
    require(fake_verbs_failed(), "it was not");
    require_result(sluice_channel_state(pair->channels[1]), SLUICE_STATE_READY);
    fake_verbs_fail(1, FAKE_CALL(FAKE_GET_ASYNC_EVENT), ENODEV);
    require_result(sluice_channel_state(pair->channels[1]), SLUICE_STATE_FAILED);
    struct sluice_error error = channel_error(pair->channels[1]);
    require(error.error_class == SLUICE_CLASS_DEVICE, "%s", error.text);
}

/* Objects end with unread events, which are dropped. */
TEST(unread_events_at_the_end)
{
    struct pair pair;
    for (int i = 0; i < 3; i++) {
        pair_open(&pair, NULL);
        fake_verbs_cq_event(qpn_of(0));
        fake_verbs_qp_event(qpn_of(0), IBV_EVENT_QP_FATAL, true);
        fake_verbs_qp_event(qpn_of(1), IBV_EVENT_QP_ACCESS_ERR, false);
        fake_verbs_port_event(0, 1, IBV_EVENT_PORT_ERR);
        fake_verbs_port_event(0, 0, IBV_EVENT_DEVICE_FATAL);
        pair_close(&pair);
        check_nothing_left();
    }
}

/* A thread that waits for its receive, as long as it takes. */
struct sleeper {
    pthread_t thread;
    struct sluice_channel *channel;
    struct sluice_completion completion;
    atomic_int state; /* 1: it is about to wait; 2: done */
    int64_t took;
    int result;
};

static void *sleep_on_channel(void *argument)
{
    struct sleeper *sleeper = argument;
    int64_t start = fair_now();
    atomic_store(&sleeper->state, 1);
    sleeper->result =
        sluice_channel_receive(sleeper->channel, NULL, 0, DEADLINE, &sleeper->completion);
    sleeper->took = fair_now() - start;
    atomic_store(&sleeper->state, 2);
    return NULL;
}

static void put_to_sleep(struct sleeper *sleeper, struct sluice_channel *channel)
{
    *sleeper = (struct sleeper){.channel = channel};
    require_ok(pthread_create(&sleeper->thread, NULL, sleep_on_channel, sleeper));
    while (atomic_load(&sleeper->state) == 0) {
        let_pass(SLUICE_MS(1));
    }
    let_pass(SLUICE_MS(20));
}

/*
 * Two threads sleep on queues of their own. An event of one queue wakes its thread and not the
 * other, whichever of the two, or a third thread, reads it.
 */
TEST_WITH(four, sleepers_are_woken, (), .times = 2)
{
    struct sleeper concerned, other;
    put_to_sleep(&concerned, four->near.channels[0]);
    put_to_sleep(&other, four->near.channels[1]);
    fake_verbs_qp_event(qpn_of(0), IBV_EVENT_QP_FATAL, false);
    if (_i == 1) {
        struct sluice_endpoint endpoint;
        sluice_prepared_channel_free(prepare_channel(four->sides.pds[0], NULL, &endpoint));
    }
    pthread_join(concerned.thread, NULL);
    require_result(concerned.result, -EIO);
    require_class(&concerned.completion, SLUICE_CLASS_DEVICE);
    require(concerned.took < SLUICE_S(2), "%lld ms", (long long)concerned.took / 1000000);
    require(atomic_load(&other.state) == 1, "the other one woke as well: %d", other.result);
    fake_verbs_port_event(0, 0, IBV_EVENT_DEVICE_FATAL);
    pthread_join(other.thread, NULL);
    require_result(other.result, -EIO);
    require(other.took < SLUICE_S(3), "%lld ms", (long long)other.took / 1000000);
    /* The event reaches the other context, too. */
    require_result(sluice_channel_state(four->far.channels[0]), SLUICE_STATE_FAILED);
    await_acknowledged();
}

/* A device that is gone stays readable for ever; an event loop is notified once. */
TEST_WITH(pair, dead_device_in_an_event_loop, (NULL))
{
    struct sluice_completion completion;
    int seen = 0;
    struct sluice_channel *channel = pair->channels[0];
    struct pollfd fd = {.fd = sluice_channel_fd(channel), .events = POLLIN};
    post_of(channel, SLUICE_OP_RECEIVE, NULL);
    require_result(sluice_channel_arm(channel, NULL), 0);
    fake_verbs_port_event(0, 0, IBV_EVENT_DEVICE_FATAL);
    /* No call reads this event. */
    fake_verbs_port_event(0, 1, IBV_EVENT_PORT_ERR);
    require(poll(&fd, 1, 1000) == 1, "the loop was not notified");
    for (int i = 0; i < 10; i++) {
        while (sluice_channel_poll(channel, &completion, 1) == 1) {
            require_class(&completion, SLUICE_CLASS_DEVICE);
            seen++;
        }
        if (sluice_channel_arm(channel, NULL) == 0) {
            break;
        }
    }
    require(seen == 1, "%d", seen);
    require_result(sluice_channel_arm(channel, NULL), 0);
    require(poll(&fd, 1, 100) == 0, "the loop cannot sleep");
    require_ok(sluice_channel_wake(channel));
    require(poll(&fd, 1, 0) == 1, "nor be woken");
}

/* The target of a bad request gets an event, as on some devices. */
TEST_WITH(star, event_of_a_bad_request, (3, ON_DEVICE(NULL, fake_verbs.responder_events = true)))
{
    star_break(star, 1);
    require_result(sluice_channel_state(star->spokes[1]), SLUICE_STATE_FAILED);
    struct sluice_error error = channel_error(star->spokes[1]);
    check_event(&error, IBV_EVENT_QP_ACCESS_ERR);
    star_works(star, 0);
    star_works(star, 2);
    star_reset(star, 1);
    star_works(star, 1);
    await_acknowledged();
}

int main(void)
{
    return run_verbs("verbs_events", WIRE_SELF, 60);
}
