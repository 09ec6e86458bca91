/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "invariants.h"
#include "rig.h"

#define KEEPALIVE SLUICE_MS(10)
/* Two polls in a row, each of which may advance the clock of the device. */
#define SLACK SLUICE_MS(5)

/* Opens peers with keep-alive on a device that completes by hand. */
static void open_watchful(struct rig *rig, uint32_t peers)
{
    struct sluice_endpoint endpoint;
    fake.by_hand = true;
    rig_open(rig, peers, 4);
    rig->engine->keepalive = KEEPALIVE;
    for (uint32_t i = 0; i < peers; i++) {
        require_ok(sluice_multichannel_peer_reset(rig->channel, i, &endpoint));
        require_ok(sluice_multichannel_peer_handshake(rig->channel, i, &endpoint));
    }
}

static void poll_once(struct rig *rig)
{
    struct sluice_completion completion;
    require_result(sluice_multichannel_poll(rig->channel, &completion, 1), 0);
    check_engine(rig->engine);
}

static uint32_t asked(const struct rig *rig, uint32_t peer)
{
    return fake_held(rig_qp(rig, peer), SLU_SEND_QUEUE);
}

static void answer(struct rig *rig, uint32_t peer)
{
    require(fake_complete(rig_qp(rig, peer), SLU_SEND_QUEUE, SLUICE_STATUS_SUCCESS),
            "peer %u was not asked", peer);
    poll_once(rig);
}

/* Peers are probed only after they have answered once. */
static void get_answer(struct rig *rig, uint32_t peer)
{
    require_error(sluice_multichannel_peer_wait_connected(rig->channel, peer, 0), -ETIMEDOUT,
                  "not answered");
    answer(rig, peer);
}

/* Polls at intervals until the peer has failed. Returns how long that took. */
static int64_t await_loss(struct rig *rig, uint32_t peer)
{
    int64_t start = fake.now;
    while (sluice_multichannel_peer_state(rig->channel, peer) == SLUICE_STATE_READY) {
        fake.now += SLUICE_US(100);
        poll_once(rig);
        require(fake.now - start < 10 * KEEPALIVE, "it is not lost%s", "");
    }
    return fake.now - start;
}

TEST(peer_is_probed_in_time_and_lost_in_time)
{
    struct rig rig;
    open_watchful(&rig, 1);
    get_answer(&rig, 0);
    for (uint32_t i = 2; i < 6; i++) {
        fake.now += KEEPALIVE / 2;
        poll_once(&rig);
        require(asked(&rig, 0) == 0, "asked too early, %u", i);
        fake.now += KEEPALIVE / 2;
        poll_once(&rig);
        require(asked(&rig, 0) == 1 && fake.probes == i, "asked %u times", asked(&rig, 0));
        answer(&rig, 0);
    }
    int64_t took = await_loss(&rig, 0);
    require(took > KEEPALIVE && took <= 2 * KEEPALIVE + SLACK, "%lld us", (long long)took / 1000);
    require(fake.probes == 6, "asked %llu times", (unsigned long long)fake.probes);
    rig_close(&rig);
}

/*
 * After a long time without polls, an answer may already be waiting, so the peer gets time again.
 */
TEST(peer_gets_time_after_a_long_absence)
{
    struct rig rig;
    open_watchful(&rig, 1);
    get_answer(&rig, 0);
    for (int round = 0; round < 3; round++) {
        fake.now += KEEPALIVE;
        poll_once(&rig);
        require(asked(&rig, 0) == 1, "asked %u times", asked(&rig, 0));
        fake.now += 100 * KEEPALIVE;
        poll_once(&rig);
        require_result(sluice_multichannel_peer_state(rig.channel, 0), SLUICE_STATE_READY);
        answer(&rig, 0);
    }
    fake.now += KEEPALIVE;
    poll_once(&rig);
    fake.now += 100 * KEEPALIVE;
    int64_t took = await_loss(&rig, 0);
    require(took > KEEPALIVE / 2 && took <= KEEPALIVE + SLACK, "%lld us", (long long)took / 1000);
    rig_close(&rig);
}

/* Keep-alive never loses a peer that has not answered. */
TEST(peer_that_never_answered_is_never_lost)
{
    struct rig rig;
    open_watchful(&rig, 2);
    for (int i = 0; i < 50; i++) {
        fake.now += KEEPALIVE / 3;
        poll_once(&rig);
        require(asked(&rig, 0) == 0 && asked(&rig, 1) == 0, "asked %u times", asked(&rig, 0));
        require_result(sluice_multichannel_peer_state(rig.channel, 0), SLUICE_STATE_READY);
    }
    get_answer(&rig, 0);
    await_loss(&rig, 0);
    require_result(sluice_multichannel_peer_state(rig.channel, 1), SLUICE_STATE_READY);
    /* A message of the peer counts as much as an answer. */
    struct sluice_completion completion;
    rig_post(&rig, receive_of(1, 1), LONG);
    fake_complete(rig_qp(&rig, 1), SLU_RECEIVE_QUEUE, SLUICE_STATUS_SUCCESS);
    require_result(sluice_multichannel_poll(rig.channel, &completion, 1), 1);
    require_ok(sluice_multichannel_peer_wait_connected(rig.channel, 1, 0));
    int64_t took = await_loss(&rig, 1);
    require(took > KEEPALIVE && took <= 2 * KEEPALIVE + SLACK, "%lld us", (long long)took / 1000);
    rig_close(&rig);
}

/* If completion entries are scarce, few probes are in flight, and peers are probed in turn. */
TEST_WITH(rig, probes_share_few_entries,
          (4, ON_DEVICE(4, fake.max_cq_depth = 9, fake.by_hand = true)))
{
    require(rig->engine->probe_limit == 1, "%u probes", rig->engine->probe_limit);
    for (uint32_t i = 0; i < 4; i++) {
        require_error(sluice_multichannel_wait_connected(rig->channel, 0), -ETIMEDOUT,
                      "not answered");
        check_engine(rig->engine);
        require(asked(rig, i) == 1 && fake.probes == i + 1, "%llu probes",
                (unsigned long long)fake.probes);
        answer(rig, i);
    }
    require_ok(sluice_multichannel_wait_connected(rig->channel, 0));
}

/* If there is not even room for one probe, no peer can be probed, and the log says so. */
TEST_WITH(rig, no_room_for_a_probe, (1, ON_DEVICE(4, fake.max_cq_depth = 2)))
{
    require_error(sluice_multichannel_wait_connected(rig->channel, SLUICE_MS(1)), -EOPNOTSUPP,
                  "completion queue");
    rig_works(rig, 0);
}
