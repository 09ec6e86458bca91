/* SPDX-License-Identifier: MIT */
/*
 * The transport table that times requests. Guarantee: each request that succeeds is counted once,
 * with the time from its first work request to the completion of its last, no matter which call
 * posted it or how the device reports it. Posting and polling allocate no memory and take no lock
 * for it.
 */
#include "config.h"

#include "engine/statistics/timing.h"

#include <stdlib.h>

#include "engine/request/opcode.h"
#include "engine/ring/ring.h"
#include "engine/statistics/histogram.h"

/* A request in flight, at the same place as its entry in the ring. */
struct stamp {
    int64_t posted;  /* 0: no request, or it has ended */
    uint32_t number; /* of its id, to recognise stamps of earlier requests */
    uint16_t opcode;
    uint16_t parts; /* work requests that have not ended */
};

struct slu_times {
    struct stamp *stamps[SLU_RINGS]; /* behind this struct */
    uint64_t seen[SLU_RINGS]; /* no request before this id is in flight, as far as was polled */
    struct sluice_histogram histograms[SLU_OPCODES];
};

struct slu_timing {
    const struct slu_transport *inner;
    struct slu_transport table;
    struct slu_engine *engine;
    struct sluice_histogram
        past[SLU_OPCODES]; /* of removed peers whose index was used again by later ones */
};

static inline uint32_t number_of(uint64_t id)
{
    return (uint32_t)(id / SLU_ID_STEP);
}

static inline struct slu_times *times_of(const struct slu_engine *engine, uint64_t id)
{
    return engine->peers[slu_id_peer(id)].times;
}

static inline struct stamp *stamp_at(struct slu_times *times, const struct slu_ring *ring,
                                     uint64_t id)
{
    return &times->stamps[slu_id_ring(id)][number_of(id) & ring->mask];
}

/*
 * Stamps a request at its first work request. Ids without a ring belong to no request: for example
 * those of receives for arrivals.
 */
static inline void note_post(const struct slu_engine *engine, uint64_t id, uint32_t opcode,
                             int64_t now)
{
    bool part = slu_id_is_part(id);
    uint64_t request = part ? slu_part_request(engine, id) : id;
    const struct slu_ring *ring = slu_ring_of(engine, request);
    struct stamp *stamp;

    if (ring == NULL)
        return;
    stamp = stamp_at(times_of(engine, request), ring, request);
    if (!part || stamp->posted == 0 || stamp->number != number_of(request))
        *stamp =
            (struct stamp){.posted = now, .number = number_of(request), .opcode = (uint16_t)opcode};
    stamp->parts++;
}

/*
 * Returns the stamp of a request that has not ended, by its entry in the ring or in aside.c; else
 * NULL.
 */
static inline struct stamp *find_stamp(const struct slu_engine *engine, struct slu_times *times,
                                       const struct slu_ring *ring, uint64_t id)
{
    const struct slu_entry *entry = slu_ring_find(engine, ring, id);
    struct stamp *stamp = stamp_at(times, ring, id);

    return entry != NULL && entry->state == SLU_ENTRY_PENDING && stamp->posted != 0 &&
                   stamp->number == number_of(id)
               ? stamp
               : NULL;
}

/*
 * Returns whether a request has failed. The driver may have refused it, whatever the device
 * reports. The entry of a blocking call on its fast path has no operation, and its marks are not
 * set.
 */
static inline bool has_failed(const struct slu_entry *entry)
{
    return entry->opcode != SLUICE_OP_NONE && entry->marks.failed;
}

static inline void count_success(struct slu_times *times, const struct slu_ring *ring, uint64_t id,
                                 int64_t now)
{
    struct stamp *stamp = stamp_at(times, ring, id);

    if (!has_failed(slu_ring_entry(ring, id)))
        slu_histogram_count(&times->histograms[stamp->opcode], (uint64_t)(now - stamp->posted));
    stamp->posted = 0;
}

/*
 * Counts the requests before one that was done, or failed for a reason of its own, as successes:
 * sends complete in order.
 */
static inline void end_earlier(const struct slu_engine *engine, struct slu_times *times,
                               const struct slu_ring *ring, uint64_t id, int64_t now)
{
    uint64_t *seen = &times->seen[slu_id_ring(id)];

    for (uint64_t at = *seen > ring->oldest ? *seen : ring->oldest; at < id; at += SLU_ID_STEP)
        if (find_stamp(engine, times, ring, at) != NULL)
            count_success(times, ring, at, now);
    *seen = id;
}

/* Counts the work requests that have ended: one whole request, or a chain of parts. */
static inline uint16_t count_ended(const struct stamp *stamp, uint32_t part)
{
    uint32_t ended = part == 0 ? 1 : part % SLU_PART_LAST;

    return ended < stamp->parts ? (uint16_t)ended : stamp->parts;
}

static inline void note_end(const struct slu_engine *engine, const struct slu_wc *wc, int64_t now)
{
    uint32_t part = slu_id_is_part(wc->id) ? slu_part_of(wc->id) : 0;
    uint64_t id = part != 0 ? slu_part_request(engine, wc->id) : wc->id;
    const struct slu_ring *ring = slu_ring_of(engine, id);
    struct slu_times *times;
    struct stamp *stamp;

    if (ring == NULL)
        return;
    times = times_of(engine, id);
    stamp = find_stamp(engine, times, ring, id);
    if (stamp == NULL)
        return;
    if (slu_id_ring(id) != SLU_RECEIVE_QUEUE && wc->status != SLUICE_STATUS_WR_FLUSH_ERR)
        end_earlier(engine, times, ring, id, now);
    stamp->parts -= count_ended(stamp, part);
    if (wc->status != SLUICE_STATUS_SUCCESS)
        stamp->posted = 0;
    /* More parts may be in flight, or still to be posted. */
    else if (stamp->parts == 0 && (part == 0 || !slu_ring_entry(ring, id)->marks.unfinished))
        count_success(times, ring, id, now);
}

static int post_send(struct slu_qp *qp, struct slu_send_wr *chain, struct slu_send_wr **bad)
{
    const struct slu_timing *timing = qp->cq->timing;
    int64_t now = slu_now();

    for (const struct slu_send_wr *wr = chain; wr != NULL; wr = wr->next)
        note_post(timing->engine, wr->id, wr->opcode, now);
    return timing->inner->post_send(qp, chain, bad);
}

static int post_receive(struct slu_qp *qp, struct slu_receive_wr *chain,
                        struct slu_receive_wr **bad)
{
    const struct slu_timing *timing = qp->cq->timing;
    int64_t now = slu_now();

    for (const struct slu_receive_wr *wr = chain; wr != NULL; wr = wr->next)
        note_post(timing->engine, wr->id, SLUICE_OP_RECEIVE, now);
    return timing->inner->post_receive(qp, chain, bad);
}

static int poll_cq(struct slu_cq *cq, struct slu_wc *wcs, uint32_t count)
{
    const struct slu_timing *timing = cq->timing;
    int taken = timing->inner->cq_poll(cq, wcs, count);
    int64_t now = taken > 0 ? slu_now() : 0;

    for (int i = 0; i < taken; i++)
        note_end(timing->engine, &wcs[i], now);
    return taken;
}

int slu_timing_create(struct slu_engine *engine)
{
    struct slu_timing *timing;

    if ((engine->attr.flags & SLUICE_CHANNEL_HISTOGRAMS) == 0)
        return 0;
    timing = calloc(1, sizeof *timing);
    if (timing == NULL)
        return slu_fail(ENOMEM, "no memory for histograms");
    timing->engine = engine;
    timing->inner = engine->transport;
    timing->table = *engine->transport;
    timing->table.post_send = post_send;
    timing->table.post_receive = post_receive;
    timing->table.cq_poll = poll_cq;
    engine->timing = timing;
    engine->transport = &timing->table;
    return 0;
}

void slu_timing_destroy(struct slu_engine *engine)
{
    free(engine->timing);
}

int slu_times_create(const struct slu_engine *engine, const struct slu_ring *rings,
                     struct slu_times **made)
{
    size_t entries = 0;
    struct slu_times *times;
    struct stamp *next;

    if (engine->timing == NULL)
        return 0;
    for (uint32_t i = 0; i < SLU_RINGS; i++)
        entries += rings[i].size;
    times = calloc(1, sizeof *times + entries * sizeof *next);
    if (times == NULL)
        return slu_fail(ENOMEM, "no memory for the histograms of a peer");
    next = (void *)(times + 1);
    for (uint32_t i = 0; i < SLU_RINGS; i++) {
        times->stamps[i] = next;
        next += rings[i].size;
    }
    *made = times;
    return 0;
}

void slu_times_destroy(struct slu_times *times)
{
    free(times);
}

void slu_times_pass_on(struct slu_engine *engine, struct slu_peer *peer)
{
    for (uint32_t i = 0; engine->timing != NULL && i < SLU_OPCODES; i++) {
        slu_histogram_add(&engine->timing->past[i], &peer->times->histograms[i]);
        slu_histogram_clear(&peer->times->histograms[i]);
    }
}

static int check_timed(const struct slu_engine *engine)
{
    return engine->timing != NULL
               ? 0
               : slu_fail(EOPNOTSUPP, "histograms need SLUICE_CHANNEL_HISTOGRAMS in the flags of "
                                      "the attributes it is prepared with");
}

static void add_peer(const struct slu_peer *peer, uint32_t opcode, struct sluice_histogram *sum)
{
    slu_histogram_add(sum, &peer->times->histograms[opcode]);
}

int slu_histogram_read(const struct slu_engine *engine, const struct slu_peer *peer,
                       uint32_t opcode, struct sluice_histogram *histogram)
{
    struct sluice_histogram known = {0};
    int error = SLU_INFO_CHECK(sluice_histogram, histogram);

    if (error == 0 && (opcode == SLUICE_OP_NONE || opcode >= SLU_OPCODES))
        error = slu_misuse(EINVAL, "opcode %u is no operation", opcode);
    if (error == 0)
        error = check_timed(engine);
    if (error < 0)
        return error;
    if (peer != NULL && peer->times != NULL)
        add_peer(peer, opcode, &known);
    for (uint32_t i = 0; peer == NULL && i < engine->peer_count; i++)
        if (engine->peers[i].times != NULL)
            add_peer(&engine->peers[i], opcode, &known);
    if (peer == NULL)
        slu_histogram_add(&known, &engine->timing->past[opcode]);
    slu_info_copy(histogram, &known, sizeof known);
    return 0;
}

int slu_histogram_reset(struct slu_engine *engine)
{
    int error = check_timed(engine);

    for (uint32_t opcode = 0; error == 0 && opcode < SLU_OPCODES; opcode++) {
        for (uint32_t i = 0; i < engine->peer_count; i++)
            if (engine->peers[i].times != NULL)
                slu_histogram_clear(&engine->peers[i].times->histograms[opcode]);
        slu_histogram_clear(&engine->timing->past[opcode]);
    }
    return error;
}
