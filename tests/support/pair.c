/* SPDX-License-Identifier: MIT */
#include "pair.h"

#include <stdlib.h>

#include "iwarp.h"

void sides_open(struct sides *sides)
{
    memset(sides, 0, sizeof(*sides));
    for (int i = 0; i < 2; i++) {
        if (i == 1 && current_wire() == WIRE_SELF) {
            sides->contexts[1] = sides->contexts[0];
            sides->pds[1] = sides->pds[0];
            return;
        }
        sides->contexts[i] = open_context();
        sides->pds[i] = made(sluice_pd_alloc(sides->contexts[i]));
    }
}

/* The memory of all sides that are open, which is found by the domain. */
static struct side_region {
    const struct sluice_pd *pd; /* NULL: none */
    struct memory memory;
} side_regions[32];

struct memory side_memory_at(struct sides *sides, int side, size_t length, uint32_t access,
                             size_t shift)
{
    for (size_t i = 0; i < COUNT(side_regions); i++) {
        if (!side_regions[i].pd) {
            side_regions[i].pd = sides->pds[side];
            memory_open_at(&side_regions[i].memory, sides->pds[side], length, access, shift);
            return side_regions[i].memory;
        }
    }
    fail_at(__FILE__, __LINE__, "more than %zu regions", COUNT(side_regions));
}

struct memory side_memory(struct sides *sides, int side, size_t length)
{
    return side_memory_at(sides, side, length, ACCESS_ALL, 0);
}

static void close_memories(const struct sides *sides)
{
    for (size_t i = 0; i < COUNT(side_regions); i++) {
        struct side_region *region = &side_regions[i];
        if (region->pd && (region->pd == sides->pds[0] || region->pd == sides->pds[1])) {
            memory_close(&region->memory);
            region->pd = NULL;
        }
    }
}

void sides_close(struct sides *sides)
{
    close_memories(sides);
    for (int i = 0; i < 2; i++) {
        if (i == 0 || sides->contexts[1] != sides->contexts[0]) {
            sluice_pd_free(sides->pds[i]);
            sluice_context_close(sides->contexts[i]);
        }
    }
    memset(sides, 0, sizeof(*sides));
}

struct sluice_prepared_channel *prepare_channel(struct sluice_pd *pd,
                                                const struct sluice_channel_attr *attr,
                                                struct sluice_endpoint *endpoint)
{
    struct sluice_prepared_channel *prepared = made(sluice_channel_prepare(pd, attr));
    require_ok(sluice_prepared_channel_endpoint(prepared, endpoint));
    return prepared;
}

static struct sluice_channel *handshake(struct sluice_prepared_channel *prepared,
                                        const struct sluice_endpoint *remote)
{
    return made(sluice_prepared_channel_handshake(prepared, remote));
}

void halves_prepare(struct halves *halves, const struct sides *sides,
                    const struct sluice_channel_attr *first,
                    const struct sluice_channel_attr *second)
{
    halves->prepared[0] = prepare_channel(sides->pds[0], first, &halves->endpoints[0]);
    halves->prepared[1] = prepare_channel(sides->pds[1], second, &halves->endpoints[1]);
}

void halves_connect(struct halves *halves, struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        pair->channels[i] = handshake(halves->prepared[i], &halves->endpoints[!i]);
    }
}

void pair_connect(struct pair *pair, const struct sluice_channel_attr *attr)
{
    struct halves halves;
    if (device_is_iwarp()) {
        iwarp_connect_pair(pair, attr);
        return;
    }
    halves_prepare(&halves, &pair->sides, attr, attr);
    halves_connect(&halves, pair);
}

void pair_open(struct pair *pair, const struct sluice_channel_attr *attr)
{
    sides_open(&pair->sides);
    pair_connect(pair, attr);
}

/* Resets a channel and returns its endpoint. */
static struct sluice_prepared_channel *reset_channel(struct sluice_channel *channel,
                                                     struct sluice_endpoint *endpoint)
{
    struct sluice_prepared_channel *prepared = made(sluice_channel_reset(channel));
    require_ok(sluice_prepared_channel_endpoint(prepared, endpoint));
    return prepared;
}

void pair_reset(struct pair *pair)
{
    struct halves halves;
    for (int i = 0; i < 2; i++) {
        halves.prepared[i] = reset_channel(pair->channels[i], &halves.endpoints[i]);
    }
    halves_connect(&halves, pair);
}

static void check_times(const struct sluice_counters *counters, uint32_t opcode, int result,
                        const struct sluice_histogram *histogram)
{
    uint64_t sum = 0;
    require_ok(result);
    for (uint32_t i = 0; i < SLUICE_HISTOGRAM_BUCKETS; i++) {
        sum += histogram->buckets[i];
    }
    require(histogram->count == counters->requests[opcode] && sum == histogram->count,
            "operation %u: %llu timed, %llu in buckets, %llu counted", opcode,
            (unsigned long long)histogram->count, (unsigned long long)sum,
            (unsigned long long)counters->requests[opcode]);
    require(histogram->min <= histogram->max && histogram->max <= histogram->sum,
            "operation %u: %llu to %llu, sum %llu", opcode, (unsigned long long)histogram->min,
            (unsigned long long)histogram->max, (unsigned long long)histogram->sum);
}

void channel_is_timed(const struct sluice_channel *channel)
{
    struct sluice_histogram histogram = {.size = sizeof(histogram)};
    struct sluice_counters counters = {.size = sizeof(counters)};
    require_ok(sluice_channel_counters(channel, &counters));
    for (uint32_t i = SLUICE_OP_SEND; i < OPCODES; i++) {
        int result = sluice_channel_histogram(channel, i, &histogram);
        if (result == -EOPNOTSUPP) {
            return;
        }
        check_times(&counters, i, result, &histogram);
    }
}

static void peer_is_timed(const struct sluice_multichannel *multichannel, uint32_t peer)
{
    struct sluice_histogram histogram = {.size = sizeof(histogram)};
    struct sluice_counters counters = {.size = sizeof(counters)};
    require_ok(sluice_multichannel_peer_counters(multichannel, peer, &counters));
    for (uint32_t i = SLUICE_OP_SEND; i < OPCODES; i++) {
        check_times(&counters, i,
                    sluice_multichannel_peer_histogram(multichannel, peer, i, &histogram),
                    &histogram);
    }
}

void multichannel_is_timed(const struct sluice_multichannel *multichannel)
{
    struct sluice_histogram histogram = {.size = sizeof(histogram)};
    struct sluice_counters counters = {.size = sizeof(counters)};
    require_ok(sluice_multichannel_counters(multichannel, &counters));
    for (uint32_t i = SLUICE_OP_SEND; i < OPCODES; i++) {
        int result = sluice_multichannel_histogram(multichannel, i, &histogram);
        if (result == -EOPNOTSUPP) {
            return;
        }
        check_times(&counters, i, result, &histogram);
    }
    for (uint32_t i = 0; i < sluice_multichannel_peers(multichannel); i++) {
        peer_is_timed(multichannel, i);
    }
}

void pair_close(struct pair *pair)
{
    close_memories(&pair->sides);
    for (int i = 0; i < 2; i++) {
        if (pair->channels[i]) {
            channel_is_timed(pair->channels[i]);
        }
    }
    sluice_channel_close(pair->channels[0]);
    sluice_channel_close(pair->channels[1]);
    sides_close(&pair->sides);
}

struct sluice_request request_of(uint32_t opcode, uint32_t peer, const struct sluice_sge *sge)
{
    struct sluice_request request = {.opcode = opcode, .peer = peer, .user_data = 7000 + peer};
    request.sges = sge;
    request.sge_count = sge ? 1 : 0;
    return request;
}

struct sluice_handle post(struct sluice_channel *channel, const struct sluice_request *request)
{
    struct sluice_handle handle = {0};
    require_result(sluice_channel_post(channel, request, 1, DEADLINE, &handle), 1);
    return handle;
}

struct sluice_handle post_of(struct sluice_channel *channel, uint32_t opcode,
                             const struct sluice_sge *sge)
{
    struct sluice_request request = request_of(opcode, 0, sge);
    return post(channel, &request);
}

void await_list(struct sluice_list *list)
{
    require_ok(sluice_list_wait(list, DEADLINE));
    require_ok(sluice_list_result(list));
}

struct sluice_counters channel_counters(const struct sluice_channel *channel)
{
    struct sluice_counters counters = {.size = sizeof(counters)};
    require_ok(sluice_channel_counters(channel, &counters));
    return counters;
}

struct sluice_channel_info channel_info(const struct sluice_channel *channel)
{
    struct sluice_channel_info info = {.size = sizeof(info)};
    require_ok(sluice_channel_query(channel, &info));
    return info;
}

struct sluice_completion await(struct sluice_channel *channel, struct sluice_handle handle,
                               enum sluice_error_class error_class)
{
    struct sluice_completion completion = {0};
    require_ok(sluice_channel_wait(channel, &handle, DEADLINE, &completion));
    require_class(&completion, error_class);
    return completion;
}

static void pass(struct sluice_channel *from, struct sluice_channel *to, struct memory *source,
                 struct memory *target)
{
    struct sluice_sge send_sge = memory_sge(source, 0, source->length);
    struct sluice_sge receive_sge = memory_sge(target, 0, target->length);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &receive_sge);
    pattern_fill(source->bytes, source->length, 99);
    memset(target->bytes, 0, target->length);
    struct sluice_handle handle = post(to, &receive);
    require_ok(sluice_channel_send(from, &send_sge, 1, DEADLINE));
    await(to, handle, SLUICE_CLASS_NONE);
    pattern_check(target->bytes, target->length, 99);
}

void pair_works(struct pair *pair)
{
    struct memory memories[2];
    for (int i = 0; i < 2; i++) {
        /* Works without a free descriptor. */
        memory_open_at(&memories[i], pair->sides.pds[i], 1000, ACCESS_ALL, 8);
    }
    pass(pair->channels[0], pair->channels[1], &memories[0], &memories[1]);
    pass(pair->channels[1], pair->channels[0], &memories[1], &memories[0]);
    for (int i = 0; i < 2; i++) {
        memory_close(&memories[i]);
    }
}

void star_open(struct star *star, uint32_t peers, const struct sluice_channel_attr *attr)
{
    struct sluice_endpoint ours[STAR_PEERS], theirs[STAR_PEERS];
    struct sluice_prepared_channel *prepared[STAR_PEERS];
    require(peers <= STAR_PEERS, "%u", peers);
    memset(star, 0, sizeof(*star));
    sides_open(&star->sides);
    star->peers = peers;
    if (device_is_iwarp()) {
        iwarp_connect_star(star, attr);
        return;
    }
    struct sluice_prepared_multichannel *hub =
        made(sluice_multichannel_prepare(star->sides.pds[0], peers, attr));
    require_ok(sluice_prepared_multichannel_endpoints(hub, ours, peers));
    for (uint32_t i = 0; i < peers; i++) {
        prepared[i] = prepare_channel(star->sides.pds[1], attr, &theirs[i]);
    }
    star->hub = made(sluice_prepared_multichannel_handshake(hub, theirs, peers));
    for (uint32_t i = 0; i < peers; i++) {
        star->spokes[i] = handshake(prepared[i], &ours[i]);
    }
}

void star_close(struct star *star)
{
    close_memories(&star->sides);
    if (star->hub) {
        multichannel_is_timed(star->hub);
    }
    for (uint32_t i = 0; i < star->peers; i++) {
        if (star->spokes[i]) {
            channel_is_timed(star->spokes[i]);
        }
    }
    sluice_multichannel_close(star->hub);
    for (uint32_t i = 0; i < star->peers; i++) {
        sluice_channel_close(star->spokes[i]);
    }
    sides_close(&star->sides);
}

void star_works(struct star *star, uint32_t peer)
{
    struct memory near, far;
    struct sluice_handle arrival;
    struct sluice_completion completion = {0};
    memory_open(&near, star->sides.pds[0], 1000);
    memory_open(&far, star->sides.pds[1], 1000);
    struct sluice_sge near_sge = memory_sge(&near, 0, near.length);
    struct sluice_sge far_sge = memory_sge(&far, 0, far.length);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &far_sge);
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, &far_sge);

    pattern_fill(near.bytes, near.length, pattern_key(0, peer, 1));
    struct sluice_handle handle = post(star->spokes[peer], &receive);
    require_ok(sluice_multichannel_send(star->hub, peer, &near_sge, 1, DEADLINE));
    await(star->spokes[peer], handle, SLUICE_CLASS_NONE);
    pattern_check(far.bytes, far.length, pattern_key(0, peer, 1));

    memset(near.bytes, 0, near.length);
    receive = request_of(SLUICE_OP_RECEIVE, peer, &near_sge);
    if (device_is_iwarp()) {
        /* A message must not come before its receive. */
        require_result(sluice_multichannel_post(star->hub, &receive, 1, DEADLINE, &arrival), 1);
    }
    handle = post(star->spokes[peer], &send);
    if (!device_is_iwarp()) {
        require_ok(
            sluice_multichannel_receive(star->hub, peer, &near_sge, 1, DEADLINE, &completion));
    } else {
        require_ok(sluice_multichannel_wait(star->hub, &arrival, DEADLINE, &completion));
    }
    require_class(&completion, SLUICE_CLASS_NONE);
    require_equal(completion.peer, peer, completion.bytes, near.length);
    await(star->spokes[peer], handle, SLUICE_CLASS_NONE);
    pattern_check(near.bytes, near.length, pattern_key(0, peer, 1));
    memory_close(&near);
    memory_close(&far);
}

void star_reset(struct star *star, uint32_t peer)
{
    struct sluice_endpoint ours, theirs;
    struct sluice_prepared_channel *prepared = reset_channel(star->spokes[peer], &theirs);
    require_ok(sluice_multichannel_peer_reset(star->hub, peer, &ours));
    require_ok(sluice_multichannel_peer_handshake(star->hub, peer, &theirs));
    star->spokes[peer] = handshake(prepared, &ours);
}

void star_break(struct star *star, uint32_t peer)
{
    struct memory near, far;
    memory_open(&near, star->sides.pds[0], 8);
    memory_open(&far, star->sides.pds[1], 8);
    struct sluice_sge sge = memory_sge(&near, 0, 8);
    struct sluice_remote_mr remote = memory_remote(&far, 0, 8);
    remote.rkey ^= 0x5a5a5a5a;
    require_result(sluice_multichannel_write(star->hub, peer, &sge, 1, &remote, DEADLINE), -EACCES);
    require_result(sluice_multichannel_peer_state(star->hub, peer), SLUICE_STATE_FAILED);
    memory_close(&near);
    memory_close(&far);
}

struct sluice_multichannel *loop_open(struct sluice_pd *pd, uint32_t peers,
                                      const struct sluice_channel_attr *attr)
{
    struct sluice_prepared_multichannel *prepared =
        made(sluice_multichannel_prepare(pd, peers, attr));
    struct sluice_endpoint *endpoints = calloc(peers, sizeof(*endpoints));
    struct sluice_endpoint *remotes = calloc(peers, sizeof(*remotes));
    require(endpoints && remotes && peers % 2 == 0, "%u peers", peers);
    require_ok(sluice_prepared_multichannel_endpoints(prepared, endpoints, peers));
    for (uint32_t i = 0; i < peers; i++) {
        remotes[i] = endpoints[i ^ 1];
    }
    struct sluice_multichannel *multichannel =
        made(sluice_prepared_multichannel_handshake(prepared, remotes, peers));
    free(endpoints);
    free(remotes);
    return multichannel;
}

struct sluice_error channel_error(const struct sluice_channel *channel)
{
    struct sluice_error error = {.size = sizeof(error)};
    require_result(sluice_channel_error(channel, &error), 1);
    require(memchr(error.text, 0, sizeof(error.text)) && error.text[0], "no text");
    return error;
}

struct sluice_error peer_error(const struct sluice_multichannel *multichannel, uint32_t peer)
{
    struct sluice_error error = {.size = sizeof(error)};
    require_result(sluice_multichannel_peer_error(multichannel, peer, &error), 1);
    require(error.peer == peer, "peer %u", error.peer);
    require(memchr(error.text, 0, sizeof(error.text)) && error.text[0], "no text");
    return error;
}
