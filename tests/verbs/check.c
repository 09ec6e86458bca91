/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <stdlib.h>

#include "../support/process.h"

int run_verbs(const char *name, enum wire wire, unsigned seconds)
{
    const struct tests group = {name, wire, seconds};
    use_pretend_device();
    return run_groups(name, &group, 1);
}

void use_pretend_device(void)
{
    setenv("SLUICE_TEST_DEVICE", "fake0", 1);
    each_test(fake_verbs_reset, check_nothing_left);
}

void check_nothing_left(void)
{
    const struct fake_live *live = &fake_verbs.live;
    require(fake_verbs_alive() == 0,
            "left: %u lists, %u contexts, %u domains, %u regions, %u channels, %u queues, %u queue "
            "pairs",
            live->device_lists, live->contexts, live->pds, live->mrs, live->channels, live->cqs,
            live->qps);
    require_equal(fake_verbs_unacked_events(), 0);
    require(fake_verbs.overruns == 0 && fake_verbs.complaints == 0, "%s", fake_verbs.complaint);
    require_equal(fake_verbs.psn_mismatches, 0, fake_verbs.mtu_mismatches, 0,
                  fake_verbs.read_mismatches, 0);
}

uint32_t qpn_of(uint32_t i)
{
    struct fake_qp_info info;
    require(fake_verbs_qp(i, &info), "there is no queue pair %u", i);
    return info.qpn;
}

void await_device(bool (*done)(const void *argument), const void *argument, const char *what)
{
    int64_t start = fair_now();
    while (!done(argument)) {
        require(fair_now() - start < DEADLINE, "%s", what);
        let_pass(SLUICE_US(100));
    }
}

struct held {
    uint32_t qpn, count;
    enum fake_queue queue;
};

static bool is_held(const void *argument)
{
    const struct held *held = argument;
    return fake_verbs_held(held->qpn, held->queue) >= held->count;
}

void await_held(uint32_t qpn, enum fake_queue queue, uint32_t count)
{
    struct held held = {.qpn = qpn, .count = count, .queue = queue};
    await_device(is_held, &held, "completions that are held");
}

#define LOOP_PEERS 256

struct sluice_multichannel *make_loop(struct sluice_pd *pd, uint32_t peers,
                                      const struct sluice_channel_attr *attr)
{
    static struct sluice_endpoint endpoints[LOOP_PEERS], remotes[LOOP_PEERS];
    struct sluice_prepared_multichannel *prepared = sluice_multichannel_prepare(pd, peers, attr);
    require(peers <= LOOP_PEERS && peers % 2 == 0, "%u peers", peers);
    if (!prepared) {
        return NULL;
    }
    require_ok(sluice_prepared_multichannel_endpoints(prepared, endpoints, peers));
    for (uint32_t i = 0; i < peers; i++) {
        remotes[i] = endpoints[i ^ 1];
    }
    return sluice_prepared_multichannel_handshake(prepared, remotes, peers);
}
