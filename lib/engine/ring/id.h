/* SPDX-License-Identifier: MIT */
/*
 * Ids of requests. struct slu_ring says what the id of a request consists of. Other ids belong to
 * no ring: of refused requests, probes, arrivals, parts of requests, and receives of the pool.
 */
#ifndef SLU_ENGINE_RING_ID_H
#define SLU_ENGINE_RING_ID_H

#include "engine/state/engine.h"

#define SLU_RING_BITS 2
#define SLU_PEER_BITS 16
#define SLU_NUMBER_BITS (64 - SLU_PEER_BITS - SLU_RING_BITS)

/* The distance from one id of a ring to the next. */
#define SLU_ID_STEP (UINT64_C(1) << (SLU_PEER_BITS + SLU_RING_BITS))

/* Kinds of ids that belong to no ring. */
#define SLU_ID_REFUSED (UINT64_C(1) << SLU_RING_BITS)
#define SLU_ID_PROBE (UINT64_C(2) << SLU_RING_BITS)
#define SLU_ID_ARRIVAL (UINT64_C(3) << SLU_RING_BITS)
#define SLU_ID_PART (UINT64_C(4) << SLU_RING_BITS)
_Static_assert(SLU_ID_POOL == UINT64_C(5) << SLU_RING_BITS && SLU_ID_POOL_MASK == SLU_ID_STEP - 1,
               "as the transports know those of the pool");
_Static_assert(SLU_ID_OWN % SLU_ID_STEP > SLU_ID_POOL && SLU_ID_OWN % (1 << SLU_RING_BITS) == 0 &&
                   SLU_ID_OWN_MASK % SLU_ID_STEP == SLU_ID_STEP - 1,
               "of no ring either: those of a transport");
_Static_assert(SLUICE_MAX_PEERS <= 1 << SLU_PEER_BITS, "an id names its peer");
_Static_assert(SLU_RINGS < 1 << SLU_RING_BITS, "and its ring");

static inline uint32_t slu_id_ring(uint64_t id)
{
    return (uint32_t)(id % (1 << SLU_RING_BITS)) - 1;
}

static inline bool slu_id_is_of(uint64_t id, enum slu_queue queue)
{
    return id % (1 << SLU_RING_BITS) == (uint64_t)queue + 1;
}

static inline uint16_t slu_id_peer(uint64_t id)
{
    return (uint16_t)(id >> SLU_RING_BITS);
}

_Static_assert(SLU_PEER_BITS == 16, "what a uint16_t has");

static inline enum slu_queue slu_ring_queue(uint32_t ring)
{
    return ring == SLU_RECEIVE_QUEUE ? SLU_RECEIVE_QUEUE : SLU_SEND_QUEUE;
}

static inline void slu_give_handle(struct sluice_handle *handle, uint64_t id, uint64_t owner)
{
    *handle = (struct sluice_handle){.id = id, .owner = owner};
}

/*
 * The id of a part in flight. Only the last of the parts posted together is signaled. The id has
 * the part's number among these, from 1 on, and whether it is the last, so its completion says how
 * many are done. The id also has enough bits of the request's id to distinguish the request from
 * others in flight.
 */
#define SLU_PART_BITS 7
#define SLU_PART_LAST (UINT32_C(1) << SLU_PART_BITS)
#define SLU_PART_NUMBER_BITS (SLU_NUMBER_BITS - SLU_PEER_BITS - SLU_PART_BITS - 1)
#define SLU_PART_NUMBER_MASK ((UINT64_C(1) << SLU_PART_NUMBER_BITS) - 1)

/* Returns the id of a part. part may include SLU_PART_LAST. */
static inline uint64_t slu_part_id(uint64_t id, uint32_t part)
{
    uint64_t number = (id / SLU_ID_STEP & SLU_PART_NUMBER_MASK) << (SLU_PART_BITS + 1) | part;

    return (number << SLU_PEER_BITS | slu_id_peer(id)) * SLU_ID_STEP | SLU_ID_PART;
}

static inline bool slu_id_is_part(uint64_t id)
{
    return id % SLU_ID_STEP == SLU_ID_PART;
}

/* Returns the peer of a request, a part or a probe. */
static inline uint32_t slu_id_any_peer(uint64_t id)
{
    bool is_of_ring = slu_id_ring(id) < SLU_RINGS;

    return is_of_ring ? slu_id_peer(id) : (uint32_t)(id / SLU_ID_STEP) % (1 << SLU_PEER_BITS);
}

/* Returns the part of an id, with SLU_PART_LAST if it is set. */
static inline uint32_t slu_part_of(uint64_t id)
{
    return (uint32_t)(id / SLU_ID_STEP >> SLU_PEER_BITS) % (2 * SLU_PART_LAST);
}

/* Returns the id of the request that a part belongs to; 0: there is no such request. */
static inline uint64_t slu_part_request(const struct slu_engine *engine, uint64_t id)
{
    uint32_t peer = (uint32_t)(id / SLU_ID_STEP) % (1 << SLU_PEER_BITS);
    uint64_t number = id / SLU_ID_STEP >> (SLU_PEER_BITS + SLU_PART_BITS + 1);
    const struct slu_ring *ring;
    uint64_t age;

    if (peer >= engine->peer_count)
        return 0;
    ring = &engine->peers[peer].rings[SLU_SEND_QUEUE];
    age = (ring->next / SLU_ID_STEP - number) & SLU_PART_NUMBER_MASK;
    return age - 1 < ring->size ? ring->next - age * SLU_ID_STEP : 0;
}

#endif
