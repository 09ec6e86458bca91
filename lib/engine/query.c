/* SPDX-License-Identifier: MIT */
/*
 * Describing a channel, or a peer of a multichannel, to the program: the attributes in use, what
 * was negotiated, the first error, and the counters.
 */
#include "config.h"

#include <string.h>

#include "engine/engine.h"
#include "engine/progress/progress.h"

int slu_peer_query(struct slu_engine *engine, struct slu_peer *peer,
                   struct sluice_channel_info *info)
{
    const struct slu_qp_attr *attr = &engine->attr;

    struct sluice_channel_info known = {
        .send_depth = attr->send_depth,
        .receive_depth = attr->pool != NULL ? attr->pool_share : attr->receive_depth,
        .max_sge = attr->max_sge,
        .max_inline = attr->max_inline,
        .max_message = attr->max_message,
        .gid_index = -1,
        .queue_pairs = attr->queue_pairs,
        .stripe_least = attr->stripe_least,
        .staging = engine->staging,
    };
    int error = SLU_INFO_CHECK(sluice_channel_info, info);
    bool armed;

    if (error < 0)
        return error;
    armed = slu_query_enter(engine);
    if (peer->qp != NULL && engine->transport->qp_query != NULL)
        engine->transport->qp_query(peer->qp, &known);
    slu_query_leave(engine, armed);
    slu_info_copy(info, &known, sizeof known);
    return 0;
}

int slu_peer_first_error(struct slu_engine *engine, struct slu_peer *peer,
                         struct sluice_error *error)
{
    struct sluice_error known;
    int found = SLU_INFO_CHECK(sluice_error, error);
    bool armed;

    if (found < 0)
        return found;
    armed = slu_query_enter(engine);
    slu_peer_notice_loss(engine, peer);
    found = slu_peer_error(engine, peer, &known) ? 1 : 0;
    slu_query_leave(engine, armed);
    slu_info_copy(error, &known, sizeof known);
    return found;
}

/* How many entries one of its arrays has. */
#define ROOM(array) (sizeof((struct sluice_counters *)NULL)->array / sizeof(uint64_t))

_Static_assert(SLU_OPCODES <= SLU_COUNTED_OPCODES && SLU_COUNTED_OPCODES <= ROOM(requests) &&
                   ROOM(bytes) == ROOM(requests),
               "room for each enum sluice_opcode");
_Static_assert(SLUICE_CLASS_PROTOCOL < SLU_COUNTED_CLASSES && SLU_COUNTED_CLASSES <= ROOM(failed),
               "room for each enum sluice_error_class");

/* Writes the counters of a peer, or sums of them, for the program. */
static void copy_counts(const struct slu_counts *counts, struct sluice_counters *counters)
{
    memcpy(counters->requests, counts->requests, sizeof counts->requests);
    memcpy(counters->bytes, counts->bytes, sizeof counts->bytes);
    memcpy(counters->failed, counts->failed, sizeof counts->failed);
    counters->refused = counts->refused;
    counters->queue_full = counts->queue_full;
    counters->forgotten = counts->forgotten;
    counters->resets = counts->resets;
    counters->arrivals = counts->arrivals;
    counters->strays = counts->strays;
}

static void add_up(const struct slu_engine *engine, struct sluice_counters *counters)
{
    struct slu_counts sum = engine->past;

    for (uint32_t i = 0; i < engine->peer_count; i++)
        slu_counts_add(&sum, &engine->peers[i].counts);
    copy_counts(&sum, counters);
    counters->discarded = engine->discarded;
    counters->polls = engine->polls;
    counters->sleeps = engine->sleeps;
    counters->wakes = engine->wakes;
}

int slu_counters(const struct slu_engine *engine, const struct slu_peer *peer,
                 struct sluice_counters *counters)
{
    struct sluice_counters known = {0};
    int error = SLU_INFO_CHECK(sluice_counters, counters);

    if (error < 0)
        return error;
    if (peer != NULL)
        copy_counts(&peer->counts, &known);
    else
        add_up(engine, &known);
    slu_info_copy(counters, &known, sizeof known);
    return 0;
}
