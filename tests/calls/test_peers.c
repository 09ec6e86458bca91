/* SPDX-License-Identifier: MIT */
/* Peers that come late or not at all: waiting for one to be connected. */
#include "../support/pair.h"
#include "../support/process.h"

/* Makes a device soon retransmit packets that a peer dropped. */
#define QUICK .ack_timeout = 17 /* 0.5 s */

/* One end is connected, the other is not yet. */
struct half {
    struct sides sides;
    struct sluice_endpoint ours;
    struct sluice_prepared_channel *late;
    struct sluice_channel *channel, *peer; /* the peer once it is there */
};

static void half_open(struct half *half, const struct sluice_channel_attr *attr)
{
    struct sluice_endpoint theirs;
    sides_open(&half->sides);
    half->peer = NULL;
    struct sluice_prepared_channel *prepared =
        prepare_channel(half->sides.pds[0], attr, &half->ours);
    half->late = prepare_channel(half->sides.pds[1], attr, &theirs);
    half->channel = made(sluice_prepared_channel_handshake(prepared, &theirs));
}

static struct sluice_channel *half_complete(struct half *half)
{
    half->peer = made(sluice_prepared_channel_handshake(half->late, &half->ours));
    half->late = NULL;
    return half->peer;
}

static void half_close(struct half *half)
{
    sluice_channel_close(half->channel);
    sluice_channel_close(half->peer);
    sluice_prepared_channel_free(half->late);
    sides_close(&half->sides);
}

TEST(connected_peers_answer)
{
    struct pair pair;
    struct star star;
    pair_open(&pair, NULL);
    for (int round = 0; round < 3; round++) {
        require_ok(sluice_channel_wait_connected(pair.channels[0], DEADLINE));
        require_ok(sluice_channel_wait_connected(pair.channels[1], round > 0 ? 0 : DEADLINE));
    }
    pair_works(&pair);
    /* The probe is not counted as a request. */
    struct sluice_counters counters = channel_counters(pair.channels[0]);
    require_equal(counters.requests[SLUICE_OP_WRITE], 0, counters.requests[SLUICE_OP_READ], 0,
                  counters.discarded, 0);
    pair_reset(&pair);
    require_ok(sluice_channel_wait_connected(pair.channels[0], DEADLINE));
    pair_close(&pair);
    star_open(&star, 5, NULL);
    require_ok(sluice_multichannel_peer_wait_connected(star.hub, 4, DEADLINE));
    require_ok(sluice_multichannel_wait_connected(star.hub, DEADLINE));
    for (uint32_t i = 0; i < 5; i++) {
        require_ok(sluice_multichannel_peer_wait_connected(star.hub, i, 0));
        star_works(&star, i);
    }
    star_close(&star);
}

/* A wait that times out does no harm, and the peer may come at any later time. */
TEST_WITH(half, late_peer_is_awaited, (ATTR(QUICK)))
{
    for (int round = 0; round < 3; round++) {
        int64_t start = clock_now();
        require_error(sluice_channel_wait_connected(half->channel, SLUICE_MS(10)), -ETIMEDOUT,
                      "peer 0 not answered");
        require(clock_now() - start >= SLUICE_MS(10), "%lld ns", (long long)(clock_now() - start));
        require_result(sluice_channel_wait_connected(half->channel, 0), -ETIMEDOUT);
        require_result(sluice_channel_state(half->channel), SLUICE_STATE_READY);
    }
    struct sluice_channel *peer = half_complete(half);
    require_ok(sluice_channel_wait_connected(half->channel, DEADLINE));
    require_ok(sluice_channel_wait_connected(peer, DEADLINE));
    struct pair pair = {half->sides, {half->channel, peer}};
    pair_works(&pair);
}

/* Polling at intervals, as an event loop does, ends too. */
TEST_WITH(half, late_peer_is_polled_for, (ATTR(QUICK)))
{
    require_result(sluice_channel_wait_connected(half->channel, 0), -ETIMEDOUT);
    half_complete(half);
    int result = -ETIMEDOUT;
    for (int64_t start = clock_now(); result == -ETIMEDOUT && clock_now() - start < DEADLINE;) {
        let_pass(SLUICE_MS(1));
        result = sluice_channel_wait_connected(half->channel, 0);
    }
    require_ok(result);
}

/* The probe has an entry beside the program's depth, and is sent before or behind its requests. */
TEST_WITH(half, probe_takes_no_place_of_a_request,
          (ATTR(QUICK, .send_depth = 1, .receive_depth = 1)))
{
    struct sluice_request write = request_of(SLUICE_OP_WRITE, 0, NULL);
    struct sluice_handle handles[2];
    require_result(sluice_channel_wait_connected(half->channel, SLUICE_MS(5)), -ETIMEDOUT);
    handles[0] = post(half->channel, &write);
    handles[1] = post_of(half->channel, SLUICE_OP_RECEIVE, NULL);
    require_result(sluice_channel_post(half->channel, &write, 1, DEADLINE, NULL), -EAGAIN);
    require_result(sluice_channel_wait_connected(half->channel, SLUICE_MS(5)), -ETIMEDOUT);
    struct sluice_channel *peer = half_complete(half);
    require_ok(sluice_channel_wait_connected(half->channel, DEADLINE));
    await(half->channel, handles[0], SLUICE_CLASS_NONE);
    require_ok(sluice_channel_send(peer, NULL, 0, DEADLINE));
    await(half->channel, handles[1], SLUICE_CLASS_NONE);
}

/* Peers without a connection are left out; a failed peer ends the wait with its error. */
TEST_WITH(star, some_peers_are_missing, (4, ATTR(QUICK)))
{
    struct sluice_endpoint endpoint;
    star_break(star, 2);
    require_error(sluice_multichannel_wait_connected(star->hub, DEADLINE), -ENOTCONN,
                  "peer 2 had failed before");
    require_error(sluice_multichannel_peer_wait_connected(star->hub, 2, DEADLINE), -ENOTCONN,
                  "peer 2");
    /* The wait before has probed peer 3, too. */
    require_ok(sluice_multichannel_peer_wait_connected(star->hub, 3, 0));
    require_ok(sluice_multichannel_peer_reset(star->hub, 2, &endpoint));
    require_ok(sluice_multichannel_wait_connected(star->hub, DEADLINE));
    require_error(sluice_multichannel_peer_wait_connected(star->hub, 2, DEADLINE), -ENOTCONN,
                  "peer 2 handshake");
}

/* The peer is gone without ever having connected. */
TEST(peer_is_gone)
{
    for (int i = 0; i < (device_is_soft() ? 6 : 1); i++) {
        struct half half;
        half_open(&half, ATTR(QUICK, .retry_count = 1));
        sluice_prepared_channel_free(half.late);
        half.late = NULL;
        require_error(sluice_channel_wait_connected(half.channel, DEADLINE), -ECONNRESET, "peer 0");
        struct sluice_error error = channel_error(half.channel);
        require(error.error_class == SLUICE_CLASS_PEER_LOST && error.opcode == SLUICE_OP_NONE,
                "class %u, opcode %u: %s", error.error_class, error.opcode, error.text);
        require_result(sluice_channel_wait_connected(half.channel, DEADLINE), -ENOTCONN);
        half_close(&half);
    }
}

/* No call waits for a probe: it is not counted as work, and its peer may never answer. */
TEST(unanswered_probe_delays_nothing)
{
    struct sluice_endpoint endpoint;
    for (int i = 0; i < 3; i++) {
        struct half half;
        half_open(&half, ATTR(QUICK, .keepalive = SLUICE_MS(50)));
        require_result(sluice_channel_wait_connected(half.channel, SLUICE_MS(5)), -ETIMEDOUT);
        int64_t start = fair_now();
        if (i == 0) {
            require_ok(sluice_channel_shutdown(half.channel, DEADLINE));
            require_result(sluice_channel_wait_connected(half.channel, DEADLINE), -ENOTCONN);
        } else if (i == 1) {
            struct sluice_prepared_channel *prepared = made(sluice_channel_reset(half.channel));
            require_ok(sluice_prepared_channel_endpoint(prepared, &endpoint));
            sluice_prepared_channel_free(prepared);
            half.channel = NULL;
        }
        sluice_channel_close(half.channel);
        half.channel = NULL;
        require(fair_now() - start < SLUICE_MS(700), "%d took %lld ms", i,
                (long long)(fair_now() - start) / 1000000);
        half_close(&half);
    }
}

/* A device cannot probe a peer that allows no access to its memory, so no transport does. */
TEST(peers_without_remote_rights)
{
    static const uint32_t rights[] = {SLUICE_ACCESS_NONE, SLUICE_ACCESS_REMOTE_READ,
                                      SLUICE_ACCESS_REMOTE_WRITE};
    for (size_t i = 0; i < COUNT(rights); i++) {
        const struct sluice_channel_attr attr = {.size = sizeof(attr), .access = rights[i]};
        struct pair pair;
        pair_open(&pair, &attr);
        if (rights[i] == SLUICE_ACCESS_NONE) {
            require_error(sluice_channel_wait_connected(pair.channels[0], DEADLINE), -EOPNOTSUPP,
                          "peer 0 keepalive access neither reads nor writes");
        } else {
            require_ok(sluice_channel_wait_connected(pair.channels[0], DEADLINE));
        }
        pair_works(&pair);
        pair_close(&pair);
    }
    struct sluice_channel_attr closed = {.size = sizeof(closed), .access = SLUICE_ACCESS_NONE};
    struct sluice_channel_attr careful = {.size = sizeof(careful), .keepalive = SLUICE_S(1)};
    struct sluice_endpoint ours, theirs;
    struct sides sides;
    sides_open(&sides);
    struct sluice_prepared_channel *prepared = prepare_channel(sides.pds[0], &careful, &ours);
    struct sluice_prepared_channel *peer = prepare_channel(sides.pds[1], &closed, &theirs);
    require_null(sluice_prepared_channel_handshake(prepared, &theirs), EOPNOTSUPP,
                 "keepalive access neither reads nor writes");
    sluice_prepared_channel_free(peer);
    sides_close(&sides);
}

TEST(wrong_arguments_and_places)
{
    static const int64_t wrong[] = {-1, 1, 999999, 3600000000001, SLUICE_FOREVER};
    struct pair pair;
    struct star star;
    require_result(sluice_channel_wait_connected(NULL, 0), -EINVAL);
    require_result(sluice_multichannel_wait_connected(NULL, 0), -EINVAL);
    require_result(sluice_multichannel_peer_wait_connected(NULL, 0, 0), -EINVAL);
    pair_open(&pair, NULL);
    require_error(sluice_channel_wait_connected(pair.channels[0], -1), -EINVAL, "timeout -1");
    struct sluice_scope *scope = sluice_channel_scope_begin(pair.channels[0], DEADLINE);
    require_result(sluice_channel_wait_connected(pair.channels[0], 0), -EBUSY);
    require_ok(sluice_scope_end(scope, NULL));
    require_ok(sluice_channel_wait_connected(pair.channels[0], DEADLINE));
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct sluice_channel_attr attr = {.size = sizeof(attr), .keepalive = wrong[i]};
        require_null(sluice_channel_prepare(pair.sides.pds[0], &attr), EINVAL,
                     "keepalive must be in 1000000..3600000000000");
    }
    pair_close(&pair);
    star_open(&star, 2, NULL);
    require_error(sluice_multichannel_peer_wait_connected(star.hub, 2, 0), -EINVAL, "peer 2");
    require_result(sluice_multichannel_peer_wait_connected(star.hub, 1, -1), -EINVAL);
    require_result(sluice_multichannel_wait_connected(star.hub, -1), -EINVAL);
    star_close(&star);
}

TEST_WITH(half, waiting_is_interrupted, (ATTR(QUICK)))
{
    require_ok(sluice_channel_wake(half->channel));
    int64_t start = fair_now();
    require_result(sluice_channel_wait_connected(half->channel, DEADLINE), -EINTR);
    require_within(start, SLUICE_S(5));
    require_result(sluice_channel_wait_connected(half->channel, SLUICE_MS(10)), -ETIMEDOUT);
    half_complete(half);
    require_ok(sluice_channel_wait_connected(half->channel, DEADLINE));
}

int main(void)
{
    return run_tests("peers", 60);
}
