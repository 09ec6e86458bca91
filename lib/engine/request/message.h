/* SPDX-License-Identifier: MIT */
/*
 * Messages of blocks: sends and receives whose bytes are not contiguous. A message is one work
 * request, so its pieces become elements of that, up to max_sge. The rest is staged: a send is
 * gathered in a staging buffer of its peer before it is posted. A receive is scattered from one
 * when it is complete, by the thread that polls.
 *
 * Each queue of a peer has a staging buffer of its own, whose size is an attribute. The requests of
 * a queue end in order, so the buffer is used as a ring. Requests in flight to other peers or in
 * the other queue take no room of it.
 */
#ifndef SLU_ENGINE_MESSAGE_H
#define SLU_ENGINE_MESSAGE_H

#include "engine/request/parts.h"

/*
 * Staged bytes begin at multiples of a cache line, and so the size of a buffer is a multiple as
 * well.
 */
#define SLU_STAGING_UNIT UINT64_C(64)

static inline uint64_t slu_staging_round(uint64_t bytes)
{
    return (bytes + SLU_STAGING_UNIT - 1) & ~(SLU_STAGING_UNIT - 1);
}

/* How a message is posted. */
struct slu_message {
    uint32_t sge_count; /* pieces that are elements */
    uint32_t block;     /* the first block that is staged */
    uint64_t staged;    /* bytes from that block on */
    uint64_t need;      /* bytes of the staging buffer; 0: nothing is staged */
};

/*
 * Makes the staging buffers of an index, which outlive its peers as the rings do. Returns 0 and no
 * buffers if the channel has none.
 */
int slu_staging_create(const struct slu_engine *engine, const struct slu_ring *rings,
                       struct slu_staging **made);
void slu_staging_destroy(struct slu_staging *staging);

/*
 * Plans a message, which must be an item for which slu_item_is_gathered() is true. pieces must have
 * room for max_sge.
 */
void slu_message_begin(struct slu_message *message, const struct slu_engine *engine,
                       const struct slu_item *item, struct sluice_sge *pieces);
/* Returns the bytes of the staging buffer that an item takes. */
uint64_t slu_message_need(const struct slu_engine *engine, const struct slu_item *item);
/* Checks whether the channel can stage an item at all: 0, or -E2BIG with its text. */
int slu_message_check(const struct slu_engine *engine, const struct slu_item *item, uint32_t index);
/* Returns whether the staging buffer has room for an item now. */
bool slu_message_has_room(const struct slu_engine *engine, const struct slu_item *item);
/*
 * Returns the same, behind all items planned since slu_message_unplan(), for a call that counts
 * what it can post. If there is room, the item is planned as well.
 */
bool slu_message_plan(const struct slu_engine *engine, const struct slu_item *item);
void slu_message_unplan(const struct slu_peer *peer);
/*
 * Stages the rest of a message that is about to be posted with that id, and completes its elements.
 * Returns false if there is no room; then nothing has changed.
 */
bool slu_message_stage(const struct slu_engine *engine, const struct slu_item *item, uint64_t id,
                       struct slu_message *message, struct sluice_sge *pieces);
/* Scatters the staged bytes of a receive that is complete, with that many bytes in all. */
void slu_message_scatter(const struct slu_peer *peer, uint64_t id, uint64_t bytes);

#endif
