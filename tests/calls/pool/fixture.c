/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <stdlib.h>

const size_t lengths[LENGTHS] = {0, 8, 256, 257, 4096, 4097, 65536, PLACE};

void shared_star_open(struct star *star, uint32_t peers, const struct sluice_channel_attr *attr)
{
    struct sluice_prepared_channel *prepared[STAR_PEERS];
    struct sluice_endpoint ours[STAR_PEERS], theirs[STAR_PEERS];
    struct sluice_prepared_multichannel *hub;

    memset(star, 0, sizeof *star);
    sides_open(&star->sides);
    star->peers = peers;
    hub = made(sluice_multichannel_prepare(star->sides.pds[0], peers, attr));
    require_ok(sluice_prepared_multichannel_endpoints(hub, ours, peers));
    for (uint32_t i = 0; i < peers; i++)
        prepared[i] = prepare_channel(
            star->sides.pds[1],
            ATTR(.queue_pairs = attr->queue_pairs, .stripe_least = attr->stripe_least), &theirs[i]);
    star->hub = made(sluice_prepared_multichannel_handshake(hub, theirs, peers));
    for (uint32_t i = 0; i < peers; i++)
        star->spokes[i] = made(sluice_prepared_channel_handshake(prepared[i], &ours[i]));
}

static void open_with(struct shared *shared, uint32_t peers, uint32_t pool, uint32_t queue_pairs)
{
    shared_star_open(&shared->star, peers,
                     ATTR(.receive_pool = pool, .receive_depth = SHARE, .queue_pairs = queue_pairs,
                          .stripe_least = STRIPE_LEAST));
    shared->here = side_memory(&shared->star.sides, 0, POOL * PLACE);
    shared->there = side_memory(&shared->star.sides, 1, PLACE);
}

/* All tests of the pool run with stripes as well, by hand. */
void shared_open(struct shared *shared, uint32_t peers, uint32_t pool)
{
    const char *stripes = getenv("SLUICE_TEST_POOL_STRIPES");

    open_with(shared, peers, pool, stripes != NULL ? (uint32_t)atoi(stripes) : 1);
}

void striped_open(struct striped *striped, uint32_t peers, uint32_t pool)
{
    open_with(&striped->shared, peers, pool, STRIPES);
}

void striped_close(struct striped *striped)
{
    shared_close(&striped->shared);
}

void shared_close(struct shared *shared)
{
    /* Receives may be posted: they end with the multichannel, and then the memory can. */
    sluice_multichannel_close(shared->star.hub);
    shared->star.hub = NULL;
    star_close(&shared->star);
}

static struct sluice_request receive_at(struct shared *shared, struct sluice_sge *sge,
                                        uint32_t place, size_t length)
{
    *sge = memory_sge(&shared->here, place * PLACE, length);
    struct sluice_request request = request_of(SLUICE_OP_RECEIVE, 12345, sge);
    request.user_data = place;
    return request;
}

struct sluice_handle post_receive(struct shared *shared, uint32_t place, size_t length)
{
    struct sluice_handle handle;
    struct sluice_sge sge;
    struct sluice_request request = receive_at(shared, &sge, place, length);

    require_result(sluice_multichannel_post_receive_any(shared->star.hub, &request, 1, &handle), 1);
    return handle;
}

struct sluice_handle post_message(struct shared *shared, uint32_t peer, size_t length)
{
    struct sluice_sge sge = memory_sge(&shared->there, 0, length);
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, length > 0 ? &sge : NULL);

    send.flags = SLUICE_IMMEDIATE;
    send.immediate = peer;
    return post(shared->star.spokes[peer], &send);
}

struct sluice_completion next_result(struct shared *shared)
{
    struct sluice_completion completion;

    require_ok(sluice_multichannel_next(shared->star.hub, DEADLINE, &completion));
    return completion;
}

void check_message(const struct shared *shared, const struct sluice_completion *completion,
                   size_t length)
{
    require_class(completion, SLUICE_CLASS_NONE);
    require_equal(completion->bytes, length, completion->flags, SLUICE_IMMEDIATE,
                  completion->immediate, completion->peer, completion->opcode, SLUICE_OP_RECEIVE);
    pattern_check(shared->here.bytes + completion->user_data * PLACE, length, 3);
}
