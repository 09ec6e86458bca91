/* SPDX-License-Identifier: MIT */
/*
 * The library on a transport that does nothing: posted requests have succeeded by
 * the next poll. bench/instructions runs it under callgrind, to count the
 * instructions of the library itself.
 *
 *   bench/noop CASE COUNT
 *
 *   run_send          blocking send of 8 bytes on a channel, COUNT times
 *   run_send_late     the same, if only the third poll gives the result
 *   run_write         blocking write of 8 bytes
 *   run_read          blocking read of 8 bytes
 *   run_receive       blocking receive
 *   run_post_poll     posted send of 8 bytes, and the poll that takes its result
 *   run_post_wait     the same by handle
 *   run_scatter_send  8 bytes to each of 8 peers, in one call
 *   run_list_send     8 bytes 8 times to one peer, in one call
 *   run_post_late     posted send, and polls, of which the third gives the result
 *   run_list_poll     posted sends to 8 peers in one call, and the poll that takes their results
 *   run_scatter_gather  8 bytes to and from each of 8 peers, in one call
 *   run_multicast     the same 8 bytes to 8 peers, in one call
 *   run_prepared      8 bytes to each of 8 peers, by a prepared list
 *   run_prepared_results  the same with an array of results
 *   run_cached        a region got from a cache of 1,024, and put back
 *   run_arrivals      taking 32 arrivals, and posting their receives again
 *   run_blocks        blocking write of 64 pages that are scattered on both sides
 *   run_timed_send    run_send with histograms
 *   run_timed_scatter  run_scatter_send with histograms
 *   run_scope         a scope with sends to 8 peers, posted in one call, with no result taken
 *
 * The cases are names of functions, so that callgrind can count only while one of them
 * runs. They, and hand_out() and succeed_...() of the transport, are not part of the
 * library. The program is linked like tests/test_engine.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice.h>

#include "noop.h"

#define PEERS 8
#define DEADLINE SLUICE_S(10)
/* Arrivals that one call takes. */
#define ARRIVALS 32
/* Blocks are every second page, from the last one on, of memory that does not exist. */
#define BLOCKS 64
#define BLOCK 4096

/* The objects that the cases use. */
struct set {
    struct sluice_pd *pd;
    struct sluice_channel *channel;
    struct sluice_multichannel *multichannel;
    struct sluice_list *prepared;
    struct sluice_mr_cache *cache;
    struct sluice_sge sge;
    struct sluice_remote_mr remote;
    struct sluice_request requests[PEERS];
    struct sluice_request receives[PEERS];
    struct sluice_request list[PEERS]; /* all to peer 0 */
};

static int run_send(struct set *set, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (sluice_channel_send(set->channel, &set->sge, 1, DEADLINE) != 0)
            return -1;
    }
    return 0;
}

static int run_send_late(struct set *set, uint32_t count)
{
    noop_empty_polls = 2;
    return run_send(set, count);
}

static int run_write(struct set *set, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (sluice_channel_write(set->channel, &set->sge, 1, &set->remote, DEADLINE) != 0)
            return -1;
    }
    return 0;
}

static int run_read(struct set *set, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (sluice_channel_read(set->channel, &set->sge, 1, &set->remote, DEADLINE) != 0)
            return -1;
    }
    return 0;
}

static int run_receive(struct set *set, uint32_t count)
{
    struct sluice_completion completion;

    for (uint32_t i = 0; i < count; i++) {
        if (sluice_channel_receive(set->channel, &set->sge, 1, DEADLINE, &completion) != 0)
            return -1;
    }
    return 0;
}

static int run_post_poll(struct set *set, uint32_t count)
{
    struct sluice_completion completion;

    for (uint32_t i = 0; i < count; i++) {
        if (sluice_channel_post(set->channel, set->requests, 1, DEADLINE, NULL) != 1 ||
            sluice_channel_poll(set->channel, &completion, 1) != 1 || completion.error != 0)
            return -1;
    }
    return 0;
}

static int run_post_wait(struct set *set, uint32_t count)
{
    struct sluice_completion completion;
    struct sluice_handle handle;

    for (uint32_t i = 0; i < count; i++) {
        if (sluice_channel_post(set->channel, set->requests, 1, DEADLINE, &handle) != 1 ||
            sluice_channel_wait(set->channel, &handle, DEADLINE, &completion) != 0 ||
            completion.error != 0)
            return -1;
    }
    return 0;
}

static int run_scatter_send(struct set *set, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (sluice_multichannel_scatter_send(set->multichannel, set->requests, PEERS, DEADLINE,
                                             NULL) != 0)
            return -1;
    }
    return 0;
}

static int run_list_send(struct set *set, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (sluice_channel_submit(set->channel, set->list, PEERS, DEADLINE, NULL) != 0)
            return -1;
    }
    return 0;
}

static int run_post_late(struct set *set, uint32_t count)
{
    struct sluice_completion completion;
    int taken;

    noop_empty_polls = 2;
    for (uint32_t i = 0; i < count; i++) {
        if (sluice_channel_post(set->channel, set->requests, 1, DEADLINE, NULL) != 1)
            return -1;
        do
            taken = sluice_channel_poll(set->channel, &completion, 1);
        while (taken == 0);
        if (taken != 1 || completion.error != 0)
            return -1;
    }
    return 0;
}

static int run_list_poll(struct set *set, uint32_t count)
{
    struct sluice_completion completions[PEERS];

    for (uint32_t i = 0; i < count; i++) {
        if (sluice_multichannel_post(set->multichannel, set->requests, PEERS, DEADLINE, NULL) !=
                PEERS ||
            sluice_multichannel_poll(set->multichannel, completions, PEERS) != PEERS)
            return -1;
    }
    return 0;
}

static int run_scatter_gather(struct set *set, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (sluice_multichannel_scatter_gather(set->multichannel, set->requests, PEERS,
                                               set->receives, PEERS, DEADLINE, NULL) != 0)
            return -1;
    }
    return 0;
}

static int run_multicast(struct set *set, uint32_t count)
{
    static const uint32_t peers[PEERS] = {0, 1, 2, 3, 4, 5, 6, 7};

    for (uint32_t i = 0; i < count; i++) {
        if (sluice_multichannel_multicast_send(set->multichannel, set->requests, peers, PEERS,
                                               DEADLINE, NULL) != 0)
            return -1;
    }
    return 0;
}

static int submit_prepared(struct set *set, uint32_t count, struct sluice_completion *completions)
{
    for (uint32_t i = 0; i < count; i++) {
        if (sluice_list_submit(set->prepared, DEADLINE, completions) != 0)
            return -1;
    }
    return 0;
}

static int run_prepared(struct set *set, uint32_t count)
{
    return submit_prepared(set, count, NULL);
}

static int run_prepared_results(struct set *set, uint32_t count)
{
    struct sluice_completion completions[PEERS];

    return submit_prepared(set, count, completions);
}

static int run_scope(struct set *set, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct sluice_scope *scope = sluice_multichannel_scope_begin(set->multichannel, DEADLINE);

        if (sluice_scope_post(scope, set->requests, PEERS, NULL) != PEERS ||
            sluice_scope_end(scope, NULL) != 0)
            return -1;
    }
    return 0;
}

/* Addresses without memory: this transport registers anything. */
#define CACHED 1024
static const void *cached_at(uint32_t i)
{
    return (const void *)((uintptr_t)1 << 32 | (uintptr_t)(i % CACHED) << 13);
}

static int run_cached(struct set *set, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct sluice_mr *mr = sluice_mr_cache_get(set->cache, cached_at(i * 619), 64);

        if (!mr || sluice_mr_cache_put(set->cache, mr) != 0)
            return -1;
    }
    return 0;
}

static struct sluice_mr_cache *make_cache(struct sluice_pd *pd)
{
    struct sluice_mr_cache *cache = sluice_mr_cache_create(pd, 0, NULL);

    for (uint32_t i = 0; cache && i < CACHED; i++) {
        struct sluice_mr *mr = sluice_mr_cache_get(cache, cached_at(i), 4096);

        if (!mr || sluice_mr_cache_put(cache, mr) != 0) {
            sluice_mr_cache_destroy(cache);
            return NULL;
        }
    }
    return cache;
}

/* Every receive that it posts has arrived at once, so each call finds a batch. */
static int run_arrivals(struct set *set, uint32_t count)
{
    const struct sluice_channel_attr attr = {
        .size = sizeof(attr), .receive_depth = NOOP_RING, .arrival_tags = 1};
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(set->pd, &attr);
    struct sluice_endpoint endpoint;
    struct sluice_channel *channel;
    uint64_t came = 0;

    if (!prepared)
        return -1;
    sluice_prepared_channel_endpoint(prepared, &endpoint);
    channel = sluice_prepared_channel_handshake(prepared, &endpoint);
    for (uint32_t i = 0; channel && i < count; i++)
        if (sluice_channel_arrivals(channel, 0, &came) != 0)
            break;
    sluice_channel_close(channel);
    return came == (uint64_t)count * ARRIVALS ? 0 : -1;
}

static int run_blocks(struct set *set, uint32_t count)
{
    uint32_t indices[BLOCKS];
    const struct sluice_layout paged = {
        .kind = SLUICE_LAYOUT_PAGED, .count = BLOCKS, .bytes = BLOCK, .indices = indices};
    const struct sluice_blocks blocks = {.size = sizeof(blocks),
                                         .local = paged,
                                         .remote = paged,
                                         .local_length = UINT64_C(2) * BLOCKS * BLOCK};
    struct sluice_request request = {.opcode = SLUICE_OP_WRITE,
                                     .sge = set->sge,
                                     .sge_count = 1,
                                     .remote = set->remote,
                                     .blocks = &blocks};

    request.remote.length = blocks.local_length;
    for (uint32_t i = 0; i < BLOCKS; i++)
        indices[i] = 2 * (BLOCKS - 1 - i);
    for (uint32_t i = 0; i < count; i++) {
        if (sluice_channel_submit(set->channel, &request, 1, DEADLINE, NULL) != 0)
            return -1;
    }
    return 0;
}

static const struct sluice_channel_attr timed = {.size = sizeof(timed),
                                                 .flags = SLUICE_CHANNEL_HISTOGRAMS};

static int run_timed_send(struct set *set, uint32_t count)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(set->pd, &timed);
    struct set with = *set;
    struct sluice_endpoint endpoint;
    int result = -1;

    if (!prepared)
        return -1;
    sluice_prepared_channel_endpoint(prepared, &endpoint);
    with.channel = sluice_prepared_channel_handshake(prepared, &endpoint);
    if (with.channel)
        result = run_send(&with, count);
    sluice_channel_close(with.channel);
    return result;
}

static int run_timed_scatter(struct set *set, uint32_t count)
{
    struct sluice_prepared_multichannel *prepared =
        sluice_multichannel_prepare(set->pd, PEERS, &timed);
    struct set with = *set;
    struct sluice_endpoint endpoints[PEERS];
    int result = -1;

    if (!prepared)
        return -1;
    if (sluice_prepared_multichannel_endpoints(prepared, endpoints, PEERS) != 0) {
        sluice_prepared_multichannel_free(prepared);
        return -1;
    }
    with.multichannel = sluice_prepared_multichannel_handshake(prepared, endpoints, PEERS);
    if (with.multichannel)
        result = run_scatter_send(&with, count);
    sluice_multichannel_close(with.multichannel);
    return result;
}

static const struct {
    const char *name;
    int (*run)(struct set *set, uint32_t count);
} cases[] = {
    {"run_send", run_send},
    {"run_send_late", run_send_late},
    {"run_write", run_write},
    {"run_read", run_read},
    {"run_receive", run_receive},
    {"run_post_poll", run_post_poll},
    {"run_post_wait", run_post_wait},
    {"run_scatter_send", run_scatter_send},
    {"run_list_send", run_list_send},
    {"run_post_late", run_post_late},
    {"run_list_poll", run_list_poll},
    {"run_scatter_gather", run_scatter_gather},
    {"run_multicast", run_multicast},
    {"run_prepared", run_prepared},
    {"run_prepared_results", run_prepared_results},
    {"run_cached", run_cached},
    {"run_arrivals", run_arrivals},
    {"run_blocks", run_blocks},
    {"run_timed_send", run_timed_send},
    {"run_timed_scatter", run_timed_scatter},
    {"run_scope", run_scope},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static int connect_set(struct set *set, struct sluice_pd *pd)
{
    struct sluice_prepared_channel *one = sluice_channel_prepare(pd, NULL);
    struct sluice_prepared_multichannel *many = sluice_multichannel_prepare(pd, PEERS, NULL);
    struct sluice_endpoint endpoints[PEERS];

    if (!one || !many || sluice_prepared_multichannel_endpoints(many, endpoints, PEERS) != 0) {
        sluice_prepared_channel_free(one);
        sluice_prepared_multichannel_free(many);
        return -1;
    }
    set->channel = sluice_prepared_channel_handshake(one, endpoints);
    set->multichannel = sluice_prepared_multichannel_handshake(many, endpoints, PEERS);
    return set->channel && set->multichannel ? 0 : -1;
}

static int run_case(struct sluice_pd *pd, int (*run)(struct set *, uint32_t), uint32_t count)
{
    static uint64_t word;
    struct sluice_mr *mr = sluice_mr_register(
        pd, &word, sizeof(word), SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE);
    struct set set = {.pd = pd};
    int result = -1;

    if (mr && sluice_mr_sge(mr, 0, sizeof(word), &set.sge) == 0 &&
        sluice_mr_remote(mr, &set.remote) == 0 && connect_set(&set, pd) == 0) {
        for (uint32_t i = 0; i < PEERS; i++) {
            set.requests[i] = (struct sluice_request){
                .opcode = SLUICE_OP_SEND, .peer = i, .sges = &set.sge, .sge_count = 1};
            set.receives[i] = set.requests[i];
            set.receives[i].opcode = SLUICE_OP_RECEIVE;
            set.list[i] = set.requests[0];
        }
        set.prepared = sluice_multichannel_list_prepare(set.multichannel, set.requests, PEERS);
        set.cache = make_cache(pd);
        result = set.prepared && set.cache ? run(&set, count) : -1;
    }
    sluice_mr_cache_destroy(set.cache);
    sluice_list_free(set.prepared);
    sluice_channel_close(set.channel);
    sluice_multichannel_close(set.multichannel);
    sluice_mr_deregister(mr);
    return result;
}

int main(int argc, char **argv)
{
    uint32_t count = argc == 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    struct sluice_context *context;
    struct sluice_pd *pd = NULL;
    size_t which = 0;
    int result = -1;

    while (which < CASES && argc == 3 && strcmp(argv[1], cases[which].name) != 0)
        which++;
    if (count == 0 || which == CASES) {
        fprintf(stderr, "usage: noop CASE COUNT, of the cases");
        for (size_t i = 0; i < CASES; i++)
            fprintf(stderr, " %s", cases[i].name);
        fprintf(stderr, "\n");
        return 2;
    }
    context = sluice_context_open("noop", NULL);
    if (context)
        pd = sluice_pd_alloc(context);
    if (pd)
        result = run_case(pd, cases[which].run, count);
    if (result < 0)
        fprintf(stderr, "noop: %s: %s\n", argv[1], sluice_last_error());
    sluice_pd_free(pd);
    sluice_context_close(context);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
