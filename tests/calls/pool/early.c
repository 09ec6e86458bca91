/* SPDX-License-Identifier: MIT */
/* Messages that find the pool empty: they wait within the credit of their peer. */
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "../../support/fair.h"
#include "../../support/process.h"
#include "fixture.h"

/* As many as a peer may have waiting on this side, of the longest that do. */
#define EACH 16
#define BYTES 4096

/*
 * Without stacks of new threads, of which a busy host may start one, but few pages are used; and
 * without what the C library keeps of memory that was freed.
 */
static uint64_t resident_bytes(void)
{
    FILE *file;
    unsigned long long pages = 0;

#ifdef __GLIBC__
    malloc_trim(0);
#endif
    file = fopen("/proc/self/statm", "r");
    require(file != NULL && fscanf(file, "%*s %llu", &pages) == 1, "no statm");
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Lets messages arrive while the pool is empty. */
static void let_arrive(struct shared *shared)
{
    struct sluice_completion completion;

    for (int64_t end = fair_now() + SLUICE_MS(100); fair_now() < end; let_pass(SLUICE_MS(1)))
        require_result(sluice_multichannel_poll(shared->star.hub, &completion, 1), 0);
}

/* Sends from all peers while the pool is empty. */
static void send_all(struct shared *shared, struct sluice_handle *sends, uint32_t each)
{
    for (uint32_t i = 0; i < each * STAR_PEERS; i++)
        sends[i] = post_message(shared, i % STAR_PEERS, BYTES);
    let_arrive(shared);
}

/* Takes so many of each peer by the receives of the pool. */
static void take_all(struct shared *shared, const struct sluice_handle *sends, uint32_t each)
{
    uint32_t seen[STAR_PEERS] = {0};

    for (uint32_t place = 0; place < POOL; place++)
        post_receive(shared, place, BYTES);
    for (uint32_t i = 0; i < each * STAR_PEERS; i++) {
        struct sluice_completion completion = next_result(shared);

        check_message(shared, &completion, BYTES);
        seen[completion.peer]++;
        if (i + POOL < each * STAR_PEERS)
            post_receive(shared, (uint32_t)completion.user_data, BYTES);
    }
    for (uint32_t i = 0; i < each * STAR_PEERS; i++) {
        require_equal(seen[i % STAR_PEERS], each);
        await(shared->star.spokes[i % STAR_PEERS], sends[i], SLUICE_CLASS_NONE);
    }
}

/* Sends a message of a peer, with which two processes begin to share memory. */
static void use_peer(struct shared *shared, uint32_t peer)
{
    struct sluice_handle sent;
    struct sluice_completion completion;

    post_receive(shared, 0, BYTES);
    sent = post_message(shared, peer, BYTES);
    completion = next_result(shared);
    check_message(shared, &completion, BYTES);
    await(shared->star.spokes[peer], sent, SLUICE_CLASS_NONE);
}

/*
 * Messages of all peers find the pool empty, more of each than may wait on this side. All are taken
 * in the end, and their memory is not kept for each peer.
 */
TEST_WITH(shared, messages_that_find_the_pool_empty, (STAR_PEERS, POOL))
{
    struct sluice_handle sends[(EACH + 4) * STAR_PEERS];
    uint64_t before, after;

    pattern_fill(shared->there.bytes, PLACE, 3);
    for (uint32_t peer = 0; peer < STAR_PEERS; peer++)
        use_peer(shared, peer);
    before = resident_bytes();
    for (uint32_t round = 0; round < 2; round++) {
        send_all(shared, sends, EACH + 4);
        take_all(shared, sends, EACH + 4);
    }
    /* Some of it is given back each second. */
    for (int64_t end = fair_now() + SLUICE_S(6);; let_pass(SLUICE_MS(100))) {
        after = resident_bytes();
        if (after < before + STAR_PEERS * EACH * BYTES / 2 || fair_now() > end)
            break;
    }
    /* A sanitizer maps memory of its own, and a device has threads, with arenas. */
    require(SANITIZED || !device_is_soft() || after < before + STAR_PEERS * EACH * BYTES / 2,
            "%llu bytes are kept", (unsigned long long)(after - before));
}

/* A peer that has filled what may wait of it leaves the next receive to another one. */
TEST_WITH(shared, full_peer_delays_no_other, (2, POOL))
{
    struct sluice_handle sends[EACH + 4], other;
    uint32_t seen = 0;

    pattern_fill(shared->there.bytes, PLACE, 3);
    use_peer(shared, 0);
    use_peer(shared, 1);
    for (uint32_t i = 0; i < EACH + 4; i++)
        sends[i] = post_message(shared, 0, BYTES);
    other = post_message(shared, 1, BYTES);
    let_arrive(shared);
    for (uint32_t place = 0; place < 2; place++)
        post_receive(shared, place, BYTES);
    for (uint32_t i = 0; i < EACH + 5; i++) {
        struct sluice_completion completion = next_result(shared);

        check_message(shared, &completion, BYTES);
        seen += completion.peer == 1;
        /* A device knows no turns. */
        require(!device_is_soft() || i < 3 || seen == 1, "it is not served in turn");
        post_receive(shared, (uint32_t)completion.user_data, BYTES);
    }
    require_equal(seen, 1);
    for (uint32_t i = 0; i < EACH + 4; i++)
        await(shared->star.spokes[0], sends[i], SLUICE_CLASS_NONE);
    await(shared->star.spokes[1], other, SLUICE_CLASS_NONE);
}
