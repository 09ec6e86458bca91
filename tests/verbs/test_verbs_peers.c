/* SPDX-License-Identifier: MIT */
/*
 * Probes on a device: which entries they use, how they end, and a peer that is silent because
 * nothing arrives or because the device reports nothing.
 */
#include "../support/process.h"
#include "check.h"

#define KEEPALIVE SLUICE_MS(60)
/* Twice that time, and delays of the host. */
#define NOTICED (2 * KEEPALIVE + SLUICE_MS(500))

static const struct sluice_channel_attr watchful = {.size = sizeof(watchful),
                                                    .keepalive = KEEPALIVE};

static struct fake_qp_info qp_info(uint32_t i)
{
    struct fake_qp_info info;
    require(fake_verbs_qp(i, &info), "no queue pair %u", i);
    return info;
}

/* Opens a pair of which both ends have heard from their peer. */
static void open_pair(struct pair *pair, const struct sluice_channel_attr *attr)
{
    pair_open(pair, attr);
    for (int i = 0; i < 2; i++) {
        require_ok(sluice_channel_wait_connected(pair->channels[i], DEADLINE));
    }
}

/* The link is cut, or the device withholds completions. */
TEST(silent_peer_is_lost, .times = 2)
{
    struct sluice_handle handles[2];
    struct pair pair;
    open_pair(&pair, &watchful);
    for (int i = 0; i < 2; i++) {
        handles[i] = post_of(pair.channels[0], SLUICE_OP_RECEIVE, NULL);
    }
    if (_i == 0) {
        fake_verbs_cut(qpn_of(0), true);
    } else {
        fake_verbs_hold(qpn_of(0));
    }
    struct span start = span_begin();
    int64_t most = NOTICED + (_i == 0 ? 0 : SLUICE_S(1)); /* withheld requests are drained */
    await(pair.channels[0], handles[0], SLUICE_CLASS_PEER_LOST);
    await(pair.channels[0], handles[1], SLUICE_CLASS_CANCELLED);
    struct span took = span_since(start);
    require_took(took, KEEPALIVE / 2, most);
    struct sluice_error error = channel_error(pair.channels[0]);
    require(error.status == SLUICE_STATUS_RETRY_EXC_ERR && strstr(error.text, "60 ms"), "%s",
            error.text);
    require_result(sluice_channel_wait_connected(pair.channels[0], DEADLINE), -ENOTCONN);
    fake_verbs_release(0);
    pair_reset(&pair);
    require_ok(sluice_channel_wait_connected(pair.channels[0], DEADLINE));
    pair_works(&pair);
    pair_close(&pair);
}

/*
 * No call waits for a probe whose completion the device withholds, and a late completion does no
 * harm.
 */
TEST_WITH(pair, withheld_probe_delays_nothing,
          (ON_DEVICE(NULL, fake_verbs.orphans = (enum fake_orphans)(_i % 3))), .times = 3)
{
    for (int round = 0; round < 3; round++) {
        fake_verbs_hold(qpn_of(0));
        require_result(sluice_channel_wait_connected(pair->channels[0], SLUICE_MS(5)), -ETIMEDOUT);
        await_held(qpn_of(0), FAKE_SEND, 1);
        int64_t start = fair_now();
        if (round == 1) {
            require_ok(sluice_channel_shutdown(pair->channels[0], DEADLINE));
        }
        pair_reset(pair);
        require_within(start, SLUICE_MS(700));
        fake_verbs_release(0);
    }
    pair_works(pair);
    struct sluice_counters counters = channel_counters(pair->channels[0]);
    require(counters.discarded == (fake_verbs.orphans == FAKE_LATE ? 3 : 0), "%llu discarded",
            (unsigned long long)counters.discarded);
    /* A success counts as an answer as well, until the channel is reset. */
    fake_verbs_hold(qpn_of(0));
    require_ok(sluice_channel_wait_connected(pair->channels[0], 0));
    fake_verbs_release(0);
    pair_reset(pair);
    fake_verbs_hold(qpn_of(0));
    require_result(sluice_channel_wait_connected(pair->channels[0], SLUICE_MS(5)), -ETIMEDOUT);
    int64_t start = fair_now();
    sluice_channel_close(pair->channels[0]);
    pair->channels[0] = NULL;
    require_within(start, SLUICE_MS(700));
}

/* The error of a probe, from the driver or the device, is the error of the peer. */
TEST_WITH(pair, probe_that_fails_names_the_cause, (NULL))
{
    struct sluice_handle handle = post_of(pair->channels[0], SLUICE_OP_RECEIVE, NULL);
    fake_verbs_end(qpn_of(0), FAKE_SEND, 1, IBV_WC_REM_ACCESS_ERR, 77);
    require_error(sluice_channel_wait_connected(pair->channels[0], DEADLINE), -EACCES,
                  "peer 0 remote access error");
    struct sluice_error error = channel_error(pair->channels[0]);
    require_equal(error.vendor, 77, error.status, SLUICE_STATUS_REM_ACCESS_ERR, error.opcode,
                  SLUICE_OP_NONE);
    struct sluice_completion completion = await(pair->channels[0], handle, SLUICE_CLASS_ACCESS);
    require(completion.vendor == 77, "vendor %u", completion.vendor);
    pair_reset(pair);
    fake_verbs_refuse(qpn_of(0), FAKE_SEND, 1, 0, ENOMEM);
    require_error(sluice_channel_wait_connected(pair->channels[0], DEADLINE), -EIO,
                  "peer 0 refused");
    require_result(sluice_channel_state(pair->channels[0]), SLUICE_STATE_FAILED);
    pair_reset(pair);
    require_ok(sluice_channel_wait_connected(pair->channels[0], DEADLINE));
    pair_works(pair);
}

/* The send queue has one place more than the program asked for. */
TEST(probe_has_a_place_of_its_own)
{
    static struct sluice_request writes[64];
    struct sluice_channel_attr attr = {.size = sizeof(attr), .send_depth = 64};
    struct pair pair;
    fake_verbs.device[0].max_qp_wr = 64;
    sides_open(&pair.sides);
    struct sluice_context_info info = context_info(pair.sides.contexts[0]);
    require_equal(info.max_send_depth, 63, info.max_receive_depth, 64);
    require_null(sluice_channel_prepare(pair.sides.pds[0], &attr), EINVAL, "send_depth 64 1..63");
    attr.send_depth = 63;
    pair_connect(&pair, &attr);
    require(qp_info(0).init.cap.max_send_wr == 64, "%u", qp_info(0).init.cap.max_send_wr);
    fake_verbs_hold(qpn_of(0));
    for (uint32_t i = 0; i < COUNT(writes); i++) {
        writes[i] = request_of(SLUICE_OP_WRITE, 0, NULL);
    }
    require_result(sluice_channel_post(pair.channels[0], writes, 63, DEADLINE, NULL), 63);
    require_result(sluice_channel_wait_connected(pair.channels[0], SLUICE_MS(5)), -ETIMEDOUT);
    await_held(qpn_of(0), FAKE_SEND, 64);
    require_result(sluice_channel_post(pair.channels[0], writes, 1, DEADLINE, NULL), -EAGAIN);
    fake_verbs_release(0);
    require_ok(sluice_channel_wait_connected(pair.channels[0], DEADLINE));
    pair_works(&pair);
    pair_close(&pair);
}

/*
 * On a device with few completion entries, not all peers are probed at a time, but all in the end.
 */
TEST(many_peers_on_a_small_queue)
{
    struct sides sides;
    sides_open(&sides);
    sides_close(&sides);
    fake_verbs.device[0].max_cqe = 64;
    fake_verbs.device[0].max_cq = 2;
    sides_open(&sides);
    struct sluice_multichannel *all = made(make_loop(sides.pds[0], 40, NULL));
    require_ok(sluice_multichannel_wait_connected(all, DEADLINE));
    for (uint32_t i = 0; i < 40; i++) {
        require_ok(sluice_multichannel_peer_wait_connected(all, i, 0));
        require_equal(qp_info(i).posted[FAKE_SEND], 1);
    }
    sluice_multichannel_close(all);
    sides_close(&sides);
}

/* A peer with requests in flight is not probed: the device reports if it is lost. */
TEST(busy_peers_are_not_probed)
{
    struct sluice_completion completion;
    struct pair pair;
    open_pair(&pair, &watchful);
    let_pass(2 * KEEPALIVE);
    uint32_t before = qp_info(0).posted[FAKE_SEND];
    /* The peer posted no receive for it; the first probe that is due may have come before it. */
    struct sluice_handle handle = post_of(pair.channels[0], SLUICE_OP_SEND, NULL);
    require_result(sluice_channel_wait(pair.channels[0], &handle, 6 * KEEPALIVE, &completion),
                   -ETIMEDOUT);
    uint32_t busy = qp_info(0).posted[FAKE_SEND] - before;
    require(busy <= 2, "%u requests", busy);
    require_ok(sluice_channel_receive(pair.channels[1], NULL, 0, DEADLINE, NULL));
    await(pair.channels[0], handle, SLUICE_CLASS_NONE);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    handle = post(pair.channels[0], &receive);
    require_result(sluice_channel_wait(pair.channels[0], &handle, 6 * KEEPALIVE, &completion),
                   -ETIMEDOUT);
    uint32_t idle = qp_info(0).posted[FAKE_SEND] - before - busy;
    require(idle >= 2 && idle <= 8, "%u probes", idle);
    pair_close(&pair);
}

int main(void)
{
    static const struct tests cases[] = {
        {"self", WIRE_SELF, 60},
        {"tcp", WIRE_TCP, 60},
    };
    use_pretend_device();
    return run_groups("verbs peers", cases, COUNT(cases));
}
