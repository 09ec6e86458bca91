/* SPDX-License-Identifier: MIT */
/* Arrivals that are counted by receives of the pool. */
#include "fixture.h"

/* Arrivals take receives of the pool, which are far fewer than the arrivals. */
static void open_counting(struct star *star)
{
    shared_star_open(star, PEERS,
                     ATTR(.receive_pool = 3, .receive_depth = SHARE, .arrival_tags = PEERS));
}

static void write_tag(struct star *star, const struct memory *from, const struct memory *to,
                      uint32_t peer, uint32_t tag)
{
    struct sluice_sge sge = memory_sge(from, peer * 64, 64);
    struct sluice_request write = request_of(SLUICE_OP_WRITE, 0, &sge);

    write.remote = memory_remote(to, peer * 64, 64);
    write.flags = SLUICE_IMMEDIATE;
    write.immediate = tag;
    post(star->spokes[peer], &write);
}

TEST(arrivals_share_receives)
{
    enum { EACH = 25 };
    struct memory here, there;
    struct sluice_handle handle;
    struct star star;

    open_counting(&star);
    here = side_memory(&star.sides, 0, (size_t)64 * PEERS);
    there = side_memory(&star.sides, 1, (size_t)64 * PEERS);
    pattern_fill(there.bytes, there.length, 5);
    for (uint32_t i = 0; i < EACH; i++)
        for (uint32_t peer = 0; peer < PEERS; peer++)
            write_tag(&star, &there, &here, peer, peer);
    for (uint32_t peer = 0; peer < PEERS; peer++)
        require_ok(sluice_multichannel_wait_arrivals(star.hub, peer, EACH, DEADLINE));
    pattern_check(here.bytes, here.length, 5);
    /* A message without bytes counts; one with bytes fails its peer, and takes no receive along. */
    require_ok(sluice_channel_flush(star.spokes[1], DEADLINE));
    handle = post_of(star.spokes[1], SLUICE_OP_SEND, NULL);
    for (uint32_t i = 0; i < 2 * SHARE; i++) {
        struct sluice_sge sge = memory_sge(&there, 0, 8);
        struct sluice_handle failing = post_of(star.spokes[0], SLUICE_OP_SEND, &sge);

        require_error(sluice_multichannel_wait_arrivals(star.hub, 0, EACH + 1, DEADLINE), -EMSGSIZE,
                      "sent a message");
        await(star.spokes[0], failing, SLUICE_CLASS_TRUNCATED);
        star_reset(&star, 0);
    }
    await(star.spokes[1], handle, SLUICE_CLASS_NONE);
    write_tag(&star, &there, &here, 0, 0);
    write_tag(&star, &there, &here, 2, 2);
    require_ok(sluice_multichannel_wait_arrivals(star.hub, 0, EACH + 1, DEADLINE));
    require_ok(sluice_multichannel_wait_arrivals(star.hub, 2, EACH + 1, DEADLINE));
    for (uint32_t peer = 0; peer < PEERS; peer++)
        require_ok(sluice_channel_flush(star.spokes[peer], DEADLINE));
    struct sluice_counters counters = {.size = sizeof counters};
    require_ok(sluice_multichannel_counters(star.hub, &counters));
    require_equal(counters.arrivals, PEERS * EACH + 2, counters.strays, 1, counters.discarded, 0);
    require_error(sluice_multichannel_post_receive_any(star.hub, NULL, 0, NULL), -EINVAL,
                  "arrivals");
    star_close(&star);
}
