/* SPDX-License-Identifier: MIT */
/*
 * Parts: the work requests of an item that needs several, because it is longer than a message or
 * its bytes lie in blocks. Parts are made one after the other, beginning at any byte. Bytes that
 * are contiguous on both sides are one piece. Bytes that are contiguous at the peer are one part,
 * with as many pieces as a work request may have elements.
 */
#ifndef SLU_ENGINE_REQUEST_PARTS_H
#define SLU_ENGINE_REQUEST_PARTS_H

#include "engine/request/source.h"

/* One side of an item: the current bytes, and which blocks or elements follow. */
struct slu_side {
    const struct sluice_sge *sges;      /* those that follow; NULL: the layout says what follows */
    const struct sluice_layout *layout; /* or NULL: nothing follows */
    uint64_t base;                      /* address of the memory that the blocks are in */
    uint64_t addr;                      /* of the next byte */
    uint64_t left;                      /* bytes left in the current block or element */
    uint32_t next;                      /* block that follows */
    uint32_t lkey;
};

struct slu_parts {
    struct slu_side local, remote;
    uint64_t left;      /* bytes that are in no part yet */
    uint64_t most;      /* most bytes of a part */
    uint32_t most_sges; /* most pieces of a part */
};

struct slu_part {
    uint64_t remote_addr;
    uint64_t bytes;
    uint32_t sge_count;
};

/*
 * Returns whether an item is a message with blocks, whose pieces are those of one work request: see
 * message.h.
 */
static inline bool slu_item_is_gathered(const struct slu_item *item)
{
    return item->request->blocks != NULL && item->opcode < SLUICE_OP_WRITE;
}

/*
 * Begins to make the parts of an item at an offset. The blocks of a message are handled like those
 * of a write.
 */
void slu_parts_begin(struct slu_parts *parts, const struct slu_engine *engine,
                     const struct slu_item *item, uint64_t offset);

/* Makes the next part; there must be bytes left. pieces must have room for most_sges. */
void slu_parts_next(struct slu_parts *parts, struct sluice_sge *pieces, struct slu_part *part);

/*
 * Returns how many work requests an item needs. If that is more than most, returns any number above
 * most.
 */
uint32_t slu_parts_count(const struct slu_engine *engine, const struct slu_item *item,
                         uint32_t most);

/*
 * Returns an upper bound of the same, or a number above room if the item needs more than room.
 * Blocks are visited only if a simple bound is above room.
 */
uint32_t slu_parts_need(const struct slu_engine *engine, const struct slu_item *item,
                        uint32_t room);

#endif
