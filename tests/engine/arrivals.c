/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "invariants.h"
#include "rig.h"

#define DEPTH 16
#define TAGS 4

static uint32_t posted(const struct rig *rig, uint32_t peer)
{
    return fake_held(rig_qp(rig, peer), SLU_RECEIVE_QUEUE);
}

static void poll_once(struct rig *rig)
{
    uint64_t count;
    require_ok(sluice_multichannel_arrivals(rig->channel, 0, &count));
    check_engine(rig->engine);
}

static struct sluice_counters counters_of(const struct rig *rig)
{
    struct sluice_counters counters = {.size = sizeof(counters)};
    require_ok(sluice_multichannel_counters(rig->channel, &counters));
    return counters;
}

/* The device reports no immediates, so arrivals show as strays. */
static uint64_t count_strays(const struct rig *rig)
{
    return counters_of(rig).strays;
}

static void arrive(struct rig *rig, uint32_t peer, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        require(fake_complete(rig_qp(rig, peer), SLU_RECEIVE_QUEUE, SLUICE_STATUS_SUCCESS),
                "no receive of peer %u", peer);
    }
}

TEST(receives_are_posted_anew)
{
    struct rig rig;
    fake.by_hand = true;
    rig_open_counting(&rig, 3, DEPTH, TAGS);
    for (uint32_t round = 1; round <= 20; round++) {
        for (uint32_t peer = 0; peer < 3; peer++) {
            require(posted(&rig, peer) >= DEPTH / 4 * 3, "%u posted", posted(&rig, peer));
            arrive(&rig, peer, DEPTH / 2);
        }
        poll_once(&rig);
        require(count_strays(&rig) == 3 * DEPTH / 2 * round, "%llu came",
                (unsigned long long)count_strays(&rig));
    }
    rig_close(&rig);
}

/* Each peer has a share of few entries, also a peer that is connected last. */
TEST(few_entries_are_shared)
{
    struct rig rig;
    struct sluice_endpoint endpoint;
    fake.by_hand = true;
    fake.max_cq_depth = 18; /* 8 for sends, 8 for receives, 2 for probes */
    rig_open_counting(&rig, 4, DEPTH, TAGS);
    for (uint32_t peer = 0; peer < 4; peer++) {
        require(posted(&rig, peer) == 2, "%u posted", posted(&rig, peer));
    }
    require_error(sluice_multichannel_peer_add(rig.channel, &endpoint), -ENOMEM,
                  "8 receives receive_depth");
    for (uint32_t round = 0; round < 10; round++) {
        arrive(&rig, round % 4, 2);
        poll_once(&rig);
        require(posted(&rig, round % 4) == 2, "%u posted", posted(&rig, round % 4));
    }
    require_ok(sluice_multichannel_peer_remove(rig.channel, 1));
    require_result(sluice_multichannel_peer_add(rig.channel, &endpoint), 1);
    require_ok(sluice_multichannel_peer_handshake(rig.channel, 1, &endpoint));
    require(posted(&rig, 1) == 2, "%u posted", posted(&rig, 1));
    rig_close(&rig);
}

TEST(too_few_entries_are_refused)
{
    struct sluice_channel_attr attr =
        *ATTR(.send_depth = 4, .receive_depth = 4, .arrival_tags = TAGS);
    fake.max_cq_depth = 18;
    struct sluice_context *context = sluice_context_open("soft", NULL);
    struct sluice_pd *pd = sluice_pd_alloc(context);
    require_null(sluice_multichannel_prepare(pd, 20, &attr), ENOMEM, "few arrivals 20 peers");
    sluice_pd_free(pd);
    sluice_context_close(context);
    require(fake.objects == 0, "%u objects are left", fake.objects);
}

/* A peer whose receives cannot be posted is not connected, or fails. */
TEST(refused_receives_fail_the_peer)
{
    struct rig rig;
    struct sluice_endpoint endpoint;
    fake.by_hand = true;
    rig_open_counting(&rig, 2, DEPTH, TAGS);
    fake.chances.refuse = 1000;
    arrive(&rig, 1, DEPTH / 2);
    poll_once(&rig);
    require_result(sluice_multichannel_peer_state(rig.channel, 1), SLUICE_STATE_FAILED);
    require_result(sluice_multichannel_peer_state(rig.channel, 0), SLUICE_STATE_READY);
    require_ok(sluice_multichannel_peer_reset(rig.channel, 1, &endpoint));
    require_error(sluice_multichannel_peer_handshake(rig.channel, 1, &endpoint), -ENOMEM,
                  FAKE_REFUSAL);
    require_result(sluice_multichannel_peer_state(rig.channel, 1), SLUICE_STATE_FAILED);
    fake.chances.refuse = 0;
    require_ok(sluice_multichannel_peer_reset(rig.channel, 1, &endpoint));
    require_ok(sluice_multichannel_peer_handshake(rig.channel, 1, &endpoint));
    arrive(&rig, 1, DEPTH);
    poll_once(&rig);
    rig_close(&rig);
}

/* A queue pair that does not flush them is given up within the drain bound. */
TEST(receives_that_stick_delay_no_other)
{
    struct rig rig;
    struct sluice_endpoint endpoint;
    rig_open_counting(&rig, 2, DEPTH, TAGS);
    fake.never_flush = true;
    int64_t start = fake.now;
    require_ok(sluice_multichannel_peer_reset(rig.channel, 0, &endpoint));
    require(fake.now - start < 2 * SLU_DRAIN_TIME, "%lld ns", (long long)(fake.now - start));
    require_ok(sluice_multichannel_peer_handshake(rig.channel, 0, &endpoint));
    check_engine(rig.engine);
    rig_close(&rig);
}

/* Peers are lost and reset in all ways; completions come late, twice, or without a request. */
static void lose_and_reset(uint64_t seed)
{
    struct rig rig;
    struct sluice_endpoint endpoint;
    fake_reset(seed);
    rig_open_counting(&rig, RIG_PEERS, DEPTH, TAGS);
    fake.chances = (struct fake_chances){.hold = 200,
                                         .fail = 20,
                                         .lose = 20,
                                         .stick = 200,
                                         .repeat = 50,
                                         .invent = 100,
                                         .late = 300,
                                         .flush_at_once = 300};
    for (uint32_t i = 0; i < 400; i++) {
        uint32_t peer = fake_random(RIG_PEERS);
        poll_once(&rig);
        if (sluice_multichannel_peer_state(rig.channel, peer) != SLUICE_STATE_READY) {
            require_ok(sluice_multichannel_peer_reset(rig.channel, peer, &endpoint));
            require_ok(sluice_multichannel_peer_handshake(rig.channel, peer, &endpoint));
        }
        check_engine(rig.engine);
    }
    fake_require(count_strays(&rig) > 100, "%llu came", (unsigned long long)count_strays(&rig));
    fake.chances = (struct fake_chances){0};
    rig_close(&rig);
}

TEST(faults_at_random)
{
    for (uint64_t seed = 1; seed <= (short_run() ? 5 : 20); seed++) {
        lose_and_reset(seed);
    }
}
