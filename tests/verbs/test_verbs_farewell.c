/* SPDX-License-Identifier: MIT */
/*
 * Farewells on a pretend device: a close that has nobody to tell lasts no longer than it may, and
 * a peer that does not know farewells is not told.
 */
#include "../support/process.h"
#include "check.h"
#include "endpoint/endpoint.h"

/* Where a peer is told, behind the two words of hints. */
#define WORD 2
/* A farewell is awaited for 50 ms; and what else the host has to do. */
#define MOST (SLUICE_MS(50) + SLUICE_S(2))

static struct sluice_endpoint endpoints[2];

/* What channel 0 is told if the other one closes. */
static uint64_t farewell;

static struct slu_endpoint decoded(void)
{
    struct slu_endpoint endpoint;
    require(slu_endpoint_decode(&endpoints[0], &endpoint) == 0, "%s", sluice_last_error());
    return endpoint;
}

/* Channels of one context; knows: whether the endpoint of channel 0 says what it is to be told. */
static void open_pair(struct pair *pair, bool knows)
{
    struct sluice_prepared_channel *prepared[2];
    fake_verbs_lock();
    fake_verbs.eager = true; /* however busy the host is */
    fake_verbs_unlock();
    sides_open(&pair->sides);
    for (int i = 0; i < 2; i++) {
        prepared[i] = prepare_channel(pair->sides.pds[i], NULL, &endpoints[i]);
    }
    struct slu_endpoint endpoint = decoded();
    farewell = endpoint.verbs.farewell;
    require(farewell != 0, "it is told nothing");
    endpoint.verbs.farewell = knows ? farewell : 0;
    slu_endpoint_encode(&endpoint, &endpoints[0]);
    for (int i = 0; i < 2; i++) {
        pair->channels[i] = made(sluice_prepared_channel_handshake(prepared[i], &endpoints[!i]));
    }
    pair_works(pair);
}

/* What channel 0 was told. */
static volatile uint64_t *word(void)
{
    return (volatile uint64_t *)(uintptr_t)decoded().verbs.hint_addr + WORD;
}

static void check_told(bool told)
{
    require(*word() == (told ? farewell : 0), "it was told %llu", (unsigned long long)*word());
}

static void close_timed(struct sluice_channel **channel)
{
    struct span start = span_begin();
    sluice_channel_close(*channel);
    *channel = NULL;
    struct span took = span_since(start);
    require_took(took, 0, MOST);
}

static void close_pair(struct pair *pair)
{
    pair_close(pair);
}

/* A library of an earlier version does not look at the word, and its connection is left alone. */
TEST(peer_that_does_not_know_is_not_told)
{
    struct sluice_completion completion;
    struct pair pair;
    open_pair(&pair, false);
    struct sluice_handle handle = post_of(pair.channels[0], SLUICE_OP_RECEIVE, NULL);
    close_timed(&pair.channels[1]);
    check_told(false);
    require_result(sluice_channel_wait(pair.channels[0], &handle, SLUICE_MS(100), &completion),
                   -ETIMEDOUT);
    require(sluice_channel_state(pair.channels[0]) == SLUICE_STATE_READY, "it failed");
    close_pair(&pair);
}

/* The link is cut, or the device says nothing of the word: the peer is told nothing, or all. */
TEST(farewell_that_is_not_answered, .times = 2)
{
    struct pair pair;
    open_pair(&pair, true);
    if (_i == 0) {
        fake_verbs_cut(qpn_of(0), true);
    } else {
        fake_verbs_hold(qpn_of(1));
    }
    close_timed(&pair.channels[1]);
    check_told(_i == 1);
    fake_verbs_release(0);
    close_pair(&pair);
}

/* A message without a receive is before it: the peer is lost, as ever. */
TEST(farewell_behind_a_message_without_a_receive)
{
    struct pair pair;
    open_pair(&pair, true);
    post_of(pair.channels[1], SLUICE_OP_SEND, NULL);
    close_timed(&pair.channels[1]);
    check_told(false);
    require_result(sluice_channel_send(pair.channels[0], NULL, 0, DEADLINE), -ECONNRESET);
    struct sluice_error error = channel_error(pair.channels[0]);
    require(error.status == SLUICE_STATUS_RETRY_EXC_ERR, "%s", error.text);
    close_pair(&pair);
}

/* The driver refuses the word, or what follows it. */
TEST(refused_farewell, .times = 2)
{
    struct pair pair;
    open_pair(&pair, true);
    fake_verbs_refuse(qpn_of(1), FAKE_SEND, _i + 1, 1, ENOMEM);
    close_timed(&pair.channels[1]);
    check_told(_i == 1);
    close_pair(&pair);
}

static uint64_t calls_of_posts(void)
{
    fake_verbs_lock();
    uint64_t calls = fake_verbs.calls[FAKE_POST_SEND];
    fake_verbs_unlock();
    return calls;
}

/* The peer has closed when a side does: there is nobody to tell. */
TEST(close_after_the_peer)
{
    struct pair pair;
    open_pair(&pair, true);
    close_timed(&pair.channels[1]);
    check_told(true);
    uint64_t posts = calls_of_posts();
    close_timed(&pair.channels[0]);
    require(calls_of_posts() == posts, "it told a peer that has gone");
    close_pair(&pair);
}

/*
 * The device has not acknowledged messages that the other side has taken before it closes. Their
 * sends are flushed, and are successes; the one that was not taken fails.
 */
TEST(sends_that_were_taken_before_a_close)
{
    struct sluice_handle sends[3], receives[2];
    struct pair pair;
    open_pair(&pair, true);
    fake_verbs_lock();
    fake_verbs.late_acks = true;
    fake_verbs_unlock();
    fake_verbs_hold(qpn_of(0));
    for (int i = 0; i < 2; i++) {
        receives[i] = post_of(pair.channels[1], SLUICE_OP_RECEIVE, NULL);
    }
    for (int i = 0; i < 3; i++) {
        sends[i] = post_of(pair.channels[0], SLUICE_OP_SEND, NULL);
    }
    for (int i = 0; i < 2; i++) {
        await(pair.channels[1], receives[i], SLUICE_CLASS_NONE);
    }
    close_timed(&pair.channels[1]);
    check_told(true);
    fake_verbs_release(0);
    for (int i = 0; i < 3; i++) {
        await(pair.channels[0], sends[i], i < 2 ? SLUICE_CLASS_NONE : SLUICE_CLASS_PEER_LOST);
    }
    close_pair(&pair);
}

/* The same, if the other side counts arrivals. */
TEST(arrivals_that_were_counted_before_a_close)
{
    struct sluice_prepared_channel *prepared[2];
    struct sluice_handle sends[3];
    struct pair pair;
    fake_verbs_lock();
    fake_verbs.eager = fake_verbs.late_acks = true;
    fake_verbs_unlock();
    sides_open(&pair.sides);
    for (int i = 0; i < 2; i++) {
        prepared[i] = prepare_channel(pair.sides.pds[i], i == 0 ? NULL : ATTR(.arrival_tags = 2),
                                      &endpoints[i]);
    }
    farewell = decoded().verbs.farewell;
    for (int i = 0; i < 2; i++) {
        pair.channels[i] = made(sluice_prepared_channel_handshake(prepared[i], &endpoints[!i]));
    }
    fake_verbs_hold(qpn_of(0));
    for (uint32_t i = 0; i < 3; i++) {
        /* The first one is of no tag: it is counted as well, as a stray. */
        struct sluice_request send = request_of(SLUICE_OP_SEND, 0, NULL);
        send.flags = SLUICE_IMMEDIATE;
        send.immediate = 2 - i;
        sends[i] = post(pair.channels[0], &send);
    }
    for (uint32_t tag = 0; tag < 2; tag++) {
        require_ok(sluice_channel_wait_arrivals(pair.channels[1], tag, 1, DEADLINE));
    }
    close_timed(&pair.channels[1]);
    check_told(true);
    fake_verbs_release(0);
    for (int i = 0; i < 3; i++) {
        await(pair.channels[0], sends[i], SLUICE_CLASS_NONE);
    }
    close_pair(&pair);
}

/* Returns the processor time of this thread, which others of a busy machine do not lengthen. */
static int64_t thread_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return SLUICE_S(now.tv_sec) + now.tv_nsec;
}

/* Posts sends of which the peer takes half, lets it close, and returns how long the flush takes. */
static int64_t flush_taken(uint32_t depth)
{
    const struct sluice_channel_attr attr = {
        .size = sizeof(attr), .send_depth = depth, .receive_depth = depth};
    struct sluice_prepared_channel *prepared[2];
    struct sluice_completion completion;
    struct sluice_handle handle;
    struct pair pair;
    int64_t start;
    fake_verbs_lock();
    fake_verbs.eager = fake_verbs.late_acks = true;
    fake_verbs_unlock();
    sides_open(&pair.sides);
    for (int i = 0; i < 2; i++) {
        prepared[i] = prepare_channel(pair.sides.pds[i], &attr, &endpoints[i]);
    }
    for (int i = 0; i < 2; i++) {
        pair.channels[i] = made(sluice_prepared_channel_handshake(prepared[i], &endpoints[!i]));
    }
    fake_verbs_hold(qpn_of(0));
    for (uint32_t i = 0; i < depth / 2; i++) {
        handle = post_of(pair.channels[1], SLUICE_OP_RECEIVE, NULL);
    }
    for (uint32_t i = 0; i < depth; i++) {
        post_of(pair.channels[0], SLUICE_OP_SEND, NULL);
    }
    await(pair.channels[1], handle, SLUICE_CLASS_NONE);
    close_timed(&pair.channels[1]);
    fake_verbs_release(0);
    start = thread_time();
    for (uint32_t i = 0; i < depth; i++) {
        require_ok(sluice_channel_next(pair.channels[0], DEADLINE, &completion));
        require((completion.error == 0) == (i < depth / 2), "send %u of %u: %d", i, depth,
                completion.error);
    }
    start = thread_time() - start;
    close_pair(&pair);
    return start;
}

/* The time grows with the depth, not with its square: 16 times as many take less than 64 times. */
TEST(many_sends_that_were_taken)
{
    int64_t few = flush_taken(512), many = flush_taken(8192);
    require(many < 64 * few, "%lld us for 512 sends, %lld us for 8192", (long long)few / 1000,
            (long long)many / 1000);
}

/* The device has an event of the refused write as well, which is no reason of its own. */
TEST(farewell_with_an_event)
{
    struct sluice_error error;
    struct pair pair;
    open_pair(&pair, true);
    fake_verbs_lock();
    fake_verbs.responder_events = true;
    fake_verbs_unlock();
    struct sluice_handle handle = post_of(pair.channels[0], SLUICE_OP_RECEIVE, NULL);
    close_timed(&pair.channels[1]);
    struct sluice_completion completion = await(pair.channels[0], handle, SLUICE_CLASS_PEER_LOST);
    error = channel_error(pair.channels[0]);
    require(completion.status == SLUICE_STATUS_PEER_CLOSED &&
                error.status == SLUICE_STATUS_PEER_CLOSED &&
                strstr(error.text, "the peer closed the connection"),
            "status %u: %s", completion.status, error.text);
    close_pair(&pair);
}

/*
 * The peer's device ended our queue pair before it was ready to send: a driver then refuses that
 * step. The handshake is done all the same, and the channel tells that the peer has left.
 */
TEST(peer_that_leaves_amid_a_handshake)
{
    struct sluice_prepared_channel *prepared[2];
    struct pair pair = {.channels = {NULL, NULL}};
    sides_open(&pair.sides);
    for (int i = 0; i < 2; i++) {
        prepared[i] = prepare_channel(pair.sides.pds[i], NULL, &endpoints[i]);
    }
    *word() = decoded().verbs.farewell;
    fake_verbs_fail(2, FAKE_CALL(FAKE_MODIFY_QP), EINVAL);
    pair.channels[0] = made(sluice_prepared_channel_handshake(prepared[0], &endpoints[1]));
    require(fake_verbs_failed() != NULL, "no step was refused");
    require(sluice_channel_state(pair.channels[0]) == SLUICE_STATE_FAILED, "it did not fail");
    require(channel_error(pair.channels[0]).status == SLUICE_STATUS_PEER_CLOSED, "%s",
            channel_error(pair.channels[0]).text);
    sluice_prepared_channel_free(prepared[1]);
    pair_close(&pair);
    require(fake_verbs_alive() == 0, "%u objects are left", fake_verbs_alive());
}

/* Peers may write to each other's places: a number that is not the peer's ends nothing. */
TEST(forged_farewell)
{
    struct pair pair;
    open_pair(&pair, true);
    for (uint64_t i = 1; i < 4; i++) {
        *word() = farewell ^ i;
        require(sluice_channel_state(pair.channels[0]) == SLUICE_STATE_READY, "it failed");
        pair_works(&pair);
    }
    *word() = farewell;
    require(sluice_channel_state(pair.channels[0]) == SLUICE_STATE_FAILED, "it did not fail");
    close_pair(&pair);
}

/*
 * Another peer may write the number of messages that this one has taken, but does not know the word
 * that is part of it: messages that the peer did not take fail.
 */
TEST(forged_number_of_messages)
{
    struct sluice_completion completion;
    struct sluice_handle sends[3];
    struct pair pair;
    open_pair(&pair, true);
    fake_verbs_hold(qpn_of(0));
    for (int i = 0; i < 3; i++) {
        sends[i] = post_of(pair.channels[0], SLUICE_OP_SEND, NULL);
    }
    *word() = farewell;
    word()[1] = 4;
    fake_verbs_cut(qpn_of(0), true);
    require(sluice_channel_state(pair.channels[0]) == SLUICE_STATE_FAILED, "it did not fail");
    fake_verbs_release(0);
    for (int i = 0; i < 3; i++) {
        require_ok(sluice_channel_wait(pair.channels[0], &sends[i], DEADLINE, &completion));
        require(completion.error != 0, "send %d is a success", i);
    }
    close_pair(&pair);
}

int main(void)
{
    return run_verbs("verbs_farewell", WIRE_SELF, 60);
}
