/* SPDX-License-Identifier: MIT */
/*
 * Parts: the work requests of an item that needs several, because it is longer than a message
 * or its bytes lie in blocks. They are made one after the other, from any byte on: what
 * touches on both sides is one part, and what touches in the peer's memory alone is one as
 * well, of as many pieces as a work request may have.
 */
#ifndef SLU_ENGINE_PARTS_H
#define SLU_ENGINE_PARTS_H

#include <sluice/blocks.h>

#include "engine/inside.h"

/* One side of an item: the bytes at hand, and which blocks follow. */
struct slu_side {
    const struct sluice_sge *sges;      /* those that follow; NULL: layout says where it goes on */
    const struct sluice_layout *layout; /* or NULL: nothing follows */
    uint64_t base;                      /* address of the memory that the blocks are in */
    uint64_t addr;                      /* of the next byte */
    uint64_t left;                      /* bytes from there on, of the block at hand */
    uint32_t next;                      /* block that follows */
    uint32_t lkey;
};

struct slu_parts {
    struct slu_side local, remote;
    uint64_t left;      /* bytes that are still to be made parts of */
    uint64_t most;      /* bytes of a part */
    uint32_t most_sges; /* and its pieces */
};

struct slu_part {
    uint64_t remote_addr;
    uint64_t bytes;
    uint32_t sge_count;
};

/* Whether it is a message that has blocks: those are pieces of one work request, see message.h. */
static inline bool slu_item_is_gathered(const struct slu_item *item)
{
    return item->request->blocks != NULL && item->opcode < SLUICE_OP_WRITE;
}

/* From a byte of the item on. What lies in blocks of a message is gathered as if for a write. */
void slu_parts_begin(struct slu_parts *parts, const struct slu_engine *engine,
                     const struct slu_item *item, uint64_t offset);
/* The next one; something is left. There is room for most_sges pieces. */
void slu_parts_next(struct slu_parts *parts, struct sluice_sge *pieces, struct slu_part *part);
/* How many work requests an item needs; if they are more than most, some number above it. */
uint32_t slu_parts_count(const struct slu_engine *engine, const struct slu_item *item,
                         uint32_t most);
/*
 * The same without a look at each block where that does: at most as many as are said, if
 * that is at most the room.
 */
uint32_t slu_parts_need(const struct slu_engine *engine, const struct slu_item *item,
                        uint32_t room);

/*
 * The id that a part of a request has on its way. Only the last of those that are posted
 * together is signaled, so it says which of these it is, from 1 on, and whether it is the
 * last: so many are done when it is. Of the request's own id it has what tells the request
 * from others that are in flight.
 */
#define SLU_PART_BITS 7
#define SLU_PART_LAST (UINT32_C(1) << SLU_PART_BITS)
#define SLU_PART_NUMBER_BITS (SLU_NUMBER_BITS - SLU_PEER_BITS - SLU_PART_BITS - 1)
#define SLU_PART_NUMBER_MASK ((UINT64_C(1) << SLU_PART_NUMBER_BITS) - 1)
/* part may have SLU_PART_LAST. */
static inline uint64_t slu_part_id(uint64_t id, uint32_t part)
{
    uint64_t number = (id / SLU_ID_STEP & SLU_PART_NUMBER_MASK) << (SLU_PART_BITS + 1) | part;

    return (number << SLU_PEER_BITS | slu_id_peer(id)) * SLU_ID_STEP | SLU_ID_PART;
}

static inline bool slu_id_is_part(uint64_t id)
{
    return id % SLU_ID_STEP == SLU_ID_PART;
}

/* With SLU_PART_LAST. */
static inline uint32_t slu_part_of(uint64_t id)
{
    return (uint32_t)(id / SLU_ID_STEP >> SLU_PEER_BITS) % (2 * SLU_PART_LAST);
}

/* The id of the request that a part is of; 0: of none that there is. */
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
