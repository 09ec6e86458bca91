/* SPDX-License-Identifier: MIT */
/*
 * The engine as a whole: creating it from a completion queue, rings and peers, and ending it so
 * that no buffer is left in flight.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/life.h"
#include "engine/list/list.h"
#include "engine/peer/arrivals.h"
#include "engine/progress/progress.h"
#include "engine/request/message.h"
#include "engine/ring/pool.h"
#include "engine/statistics/timing.h"
#include "memory/mr_cache.h"
#include "memory/release.h"

uint64_t slu_next_tag(void)
{
    static _Atomic uint64_t last;

    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

/*
 * Returns how many probes may be in flight if entries are scarce: as many as the requests leave
 * entries for, but at least an eighth of the entries, and at least one if there are more than two
 * entries. One for each peer is the most.
 */
static uint32_t limit_probes(uint32_t peers, uint64_t requests, uint64_t entries)
{
    uint64_t limit = entries / 8;

    if (requests < entries && entries - requests > limit)
        limit = entries - requests;
    if (limit == 0 && entries > 2)
        limit = 1;
    return limit < peers ? (uint32_t)limit : peers;
}

/*
 * Sizes the completion queue so that it holds every request that can be in flight. If the device
 * has too few entries, the queue gets as many as one queue can have, and sends and receives share
 * them in proportion to their depths. Each peer adds an entry for a probe, or fewer if entries are
 * scarce, and the entries for its further queue pairs, which are not shared.
 */
static uint32_t share_queue(struct slu_engine *engine, const struct slu_tcontext *device,
                            uint64_t further)
{
    uint32_t max_depth = device->max_cq_depth;
    uint64_t sends = (uint64_t)engine->attr.send_depth * engine->peer_count;
    uint64_t receives =
        (uint64_t)engine->attr.receive_depth * engine->peer_count + engine->pool_limits.depth;
    uint64_t total = sends + receives;

    engine->entries_shared = total + engine->peer_count + further > device->max_cq_entries;
    engine->probe_limit = engine->peer_count;
    engine->attr.scarce = engine->entries_shared;
    if (engine->entries_shared) {
        max_depth -= (uint32_t)slu_least(further, max_depth / 2);
        engine->probe_limit = limit_probes(engine->peer_count, total, max_depth);
        max_depth -= engine->probe_limit;
    }
    if (total > max_depth && engine->entries_shared) {
        sends = sends * max_depth / total;
        if (sends == 0)
            sends = 1;
        if (sends == max_depth)
            sends--;
        receives = max_depth - sends;
        slu_log(
            SLUICE_LOG_INFO,
            "channel %llu: completion queue holds %u of %llu requests: %llu sends, %llu receives",
            (unsigned long long)engine->tag, max_depth, (unsigned long long)total,
            (unsigned long long)sends, (unsigned long long)receives);
    }
    engine->cq_free[SLU_SEND_QUEUE] = engine->cq_size[SLU_SEND_QUEUE] = (uint32_t)sends;
    engine->cq_free[SLU_RECEIVE_QUEUE] = engine->cq_size[SLU_RECEIVE_QUEUE] = (uint32_t)receives;
    engine->places[SLU_SEND_QUEUE] = engine->cq_size[SLU_SEND_QUEUE];
    engine->places[SLU_RECEIVE_QUEUE] = engine->cq_size[SLU_RECEIVE_QUEUE];
    engine->probe_room = engine->probe_limit;
    engine->further_peers = engine->peer_count;
    return (uint32_t)(sends + receives + further) + engine->probe_limit;
}

/*
 * Checks that the entries of further queue pairs leave at least half of all for requests, if
 * entries are scarce.
 */
static int check_further(const struct slu_engine *engine, const struct slu_tcontext *device,
                         uint64_t further)
{
    if (!engine->entries_shared || further < device->max_cq_depth / 2)
        return 0;
    return slu_fail(ENOMEM,
                    "the completion queues of device %s have %u entries: too few for %u queue "
                    "pairs of each of %u peers",
                    device->device, device->max_cq_entries, engine->attr.queue_pairs,
                    engine->peer_count);
}

static int create_queues(struct slu_engine *engine)
{
    const struct slu_tcontext *device = engine->pd->context->transport;
    uint64_t further = (uint64_t)slu_stripes_entries(engine->attr.queue_pairs) * engine->peer_count;
    uint32_t depth = share_queue(engine, device, further);
    int error = check_further(engine, device, further);

    if (error == 0)
        error = slu_listed(
            engine->transport->cq_create(engine->pd->context->transport, depth, &engine->cq));
    if (error == 0)
        engine->cq->timing = engine->timing;
    return error;
}

/*
 * Creates the rings and the places for results. The library's own requests need entries, but no
 * places, since their results are discarded.
 */
static int create_rings(struct slu_engine *engine)
{
    int error = slu_places_grow(engine, engine->places, engine->peer_count);

    for (uint32_t i = 0; i < engine->peer_count && error == 0; i++)
        error = slu_index_create(engine, &engine->peers[i], i);
    return error;
}

static int create_peers(struct slu_engine *engine)
{
    uint32_t count = engine->peer_count;
    int error = 0;

    engine->peer_room = count > 0 ? count : 1;
    engine->peers = calloc(engine->peer_room, sizeof *engine->peers);
    if (engine->peers == NULL)
        return slu_fail(ENOMEM, "no memory for %u peer%s", count, SLU_S(count));
    error = create_rings(engine);
    for (uint32_t i = 0; i < count && error == 0; i++)
        error = slu_peer_identify(&engine->peers[i]);
    for (uint32_t i = 0; i < count; i++)
        slu_peer_init(engine, &engine->peers[i]);
    slu_engine_enter(engine);
    for (uint32_t i = 0; i < count && error == 0; i++)
        error = slu_peer_create(engine, &engine->peers[i]);
    slu_engine_leave(engine);
    return error;
}

static bool uses(const struct slu_memory_user *user, const struct slu_memory *memory)
{
    const struct slu_engine *engine = slu_container_of(user, struct slu_engine, memory_user);
    /*
     * Check the lists first. Aiming a list pins its requests in flight in the rings before it
     * changes the address in the list, so this order misses neither.
     */
    bool used = slu_lists_use(engine, memory) || slu_pool_uses(engine, memory);

    for (uint32_t i = 0; i < engine->peer_count && !used; i++)
        for (uint32_t k = 0; k < SLU_RINGS && !used; k++)
            used = slu_ring_uses(&engine->peers[i].rings[k], engine->attr.max_sge, memory);
    return used;
}

static bool lists(const struct slu_memory_user *user, const struct slu_memory *memory)
{
    return slu_lists_use(slu_container_of(user, struct slu_engine, memory_user), memory);
}

/*
 * Creates the pool, which the queue pairs of all peers will use. Its receives are the program's,
 * unless arrivals are counted.
 */
static int create_pool(struct slu_engine *engine)
{
    const struct slu_pool_attr attr = {.depth = engine->pool_limits.depth,
                                       .low = engine->pool_limits.low,
                                       .max_sge = engine->attr.max_sge};
    int error = 0;

    engine->no_receives = engine->arrivals != NULL || attr.depth > 0;
    if (attr.depth == 0)
        return 0;
    if (engine->arrivals == NULL)
        error = slu_pool_make(engine);
    if (error == 0)
        error = slu_listed(engine->transport->pool_create(engine->pd->transport, engine->cq, &attr,
                                                          &engine->attr.pool));
    if (error < 0 || engine->arrivals == NULL)
        return error;
    slu_engine_enter(engine);
    error = slu_arrivals_share(engine);
    slu_engine_leave(engine);
    return error;
}

static void join_pd(struct slu_engine *engine)
{
    engine->memory_user.uses = uses;
    engine->memory_user.lists = lists;
    slu_pd_enter(engine->pd, &engine->memory_user);
}

static void use_stripes(struct slu_engine *engine)
{
    if (engine->attr.queue_pairs == 1)
        return;
    slu_stripes_over(engine->transport, &engine->striped);
    engine->transport = &engine->striped;
}

struct slu_engine *slu_engine_create(struct sluice_pd *pd, uint32_t peers, uint32_t own,
                                     const struct sluice_channel_attr *attr)
{
    struct slu_engine *engine;
    int error;

    if (pd == NULL || pd->magic != SLU_MAGIC_PD)
        return slu_misuse_null(EINVAL, "a channel needs a protection domain%s", slu_none_hint(pd));
    engine = calloc(1, sizeof *engine);
    if (engine == NULL)
        return slu_fail_null(ENOMEM, "no memory for a channel");
    slu_pd_hold(pd);
    engine->pd = pd;
    engine->transport = pd->context->transport->transport;
    engine->guarded = engine->transport->cq_enter != NULL;
    engine->tag = slu_next_tag();
    engine->epoch = 1;
    engine->peer_word = "peer";
    engine->own_size = own;
    engine->peer_count = engine->present_count = peers;
    engine->next_deadline = engine->next_drain = engine->next_probe = SLUICE_FOREVER;
    engine->stalled[SLU_SEND_QUEUE] = engine->stalled[SLU_RECEIVE_QUEUE] = SLU_NONE;
    error = slu_channel_attr_apply(engine, attr);
    engine->plain_sges = engine->attr.max_read_sge;
    engine->max_plain =
        engine->attr.max_message < UINT32_MAX ? engine->attr.max_message : UINT32_MAX;
    if (error == 0)
        use_stripes(engine);
    if (error == 0)
        error = slu_timing_create(engine);
    if (error == 0)
        error = create_queues(engine);
    if (error == 0)
        error = slu_arrivals_create(engine);
    if (error == 0)
        error = create_pool(engine);
    if (error == 0)
        error = slu_scope_create(engine);
    if (error == 0)
        error = create_peers(engine);
    if (error < 0) {
        slu_engine_destroy(engine);
        return slu_none(error);
    }
    join_pd(engine);
    slu_made();
    return engine;
}

static bool all_idle(void *argument)
{
    const struct slu_engine *engine = argument;

    return slu_nothing_pends(engine);
}

/* Closes these peers. All of them are notified before the first goes to error. */
static void close_peers(struct slu_engine *engine, const uint8_t *which)
{
    for (uint32_t i = 0; i < engine->peer_count; i++)
        if (which == NULL || which[i] != 0)
            slu_peer_say_closed(engine, &engine->peers[i]);
    for (uint32_t i = 0; i < engine->peer_count; i++)
        if (which == NULL || which[i] != 0)
            slu_peer_close(engine, &engine->peers[i]);
}

void slu_engine_begin_drain(struct slu_engine *engine, const uint8_t *which)
{
    slu_engine_enter(engine);
    close_peers(engine, which);
    slu_engine_leave(engine);
}

/* Moves all peers to error together, so that they drain at the same time. */
static void drain_all(struct slu_engine *engine)
{
    SLU_PROBE4(drain_begin, engine, SLU_NONE, engine->pending[SLU_SEND_QUEUE],
               engine->pending[SLU_RECEIVE_QUEUE]);
    close_peers(engine, NULL);
    slu_wait(engine, all_idle, engine, SLUICE_FOREVER);
    SLU_PROBE4(drain_end, engine, SLU_NONE, engine->pending[SLU_SEND_QUEUE],
               engine->pending[SLU_RECEIVE_QUEUE]);
}

/* Ends an engine. The error text is kept: a failure may be why the engine is destroyed. */
void slu_engine_destroy(struct slu_engine *engine)
{
    struct slu_text text;

    slu_text_save(&text);
    if (engine->peers != NULL) {
        slu_engine_enter(engine);
        drain_all(engine);
        for (uint32_t i = 0; i < engine->peer_count; i++)
            if (engine->peers[i].state != SLU_PEER_ABSENT)
                slu_peer_abandon(engine, &engine->peers[i]);
        slu_engine_leave(engine);
    }
    slu_scope_destroy(engine);
    slu_lists_close(engine);
    slu_pd_leave(engine->pd, &engine->memory_user);
    if (slu_has_releases())
        slu_releases_look();
    if (engine->attr.pool != NULL)
        engine->transport->pool_destroy(engine->attr.pool);
    if (engine->cq != NULL)
        engine->transport->cq_destroy(engine->cq);
    if (engine->discarded > 0)
        slu_log(SLUICE_LOG_INFO,
                "channel %llu: %llu completions of unknown requests were discarded",
                (unsigned long long)engine->tag, (unsigned long long)engine->discarded);
    for (uint32_t i = 0; engine->peers != NULL && i < engine->peer_count; i++)
        slu_index_destroy(engine, &engine->peers[i]);
    slu_timing_destroy(engine);
    slu_places_destroy(engine);
    if (engine->cache != NULL)
        slu_mr_cache_release(engine->cache);
    free(engine->arrivals);
    slu_pool_free(engine);
    free(engine->peers);
    slu_pd_release(engine->pd);
    free(engine);
    slu_text_restore(&text);
}

int slu_engine_shutdown(struct slu_engine *engine, int64_t deadline)
{
    bool idle;

    if (engine->scope.open)
        return slu_scope_in_use();
    if (deadline < 0)
        return slu_misuse(EINVAL, "deadline %lld is negative", (long long)deadline);
    slu_engine_enter(engine);
    idle = slu_wait(engine, all_idle, engine, slu_after(deadline));
    drain_all(engine);
    slu_engine_leave(engine);
    return idle ? 0 : slu_fail(ETIMEDOUT, "work was still pending, and was cancelled");
}
