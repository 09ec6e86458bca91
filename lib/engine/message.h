/* SPDX-License-Identifier: MIT */
/*
 * Messages of blocks: sends and receives whose bytes lie apart. A message is one work request,
 * so its pieces are elements of that as far as max_sge goes. The rest is staged: a send gathers
 * it in a staging buffer of its peer before it is posted, and a receive is scattered from one
 * when it is complete, by the thread that polls.
 *
 * Each queue of a peer has a staging buffer of its own, as long as the attributes say. The
 * requests of a queue end in order, so it is used as a ring, and what another peer or the other
 * queue leaves in flight takes no room of it.
 */
#ifndef SLU_ENGINE_MESSAGE_H
#define SLU_ENGINE_MESSAGE_H

#include "engine/parts.h"

/* What is staged begins at multiples of a line of the cache, and so the buffer is as long. */
#define SLU_STAGING_UNIT UINT64_C(64)

/* How a message is posted. */
struct slu_message {
    uint32_t sge_count; /* pieces that are elements themselves */
    uint32_t block;     /* the first block that is staged */
    uint64_t staged;    /* bytes from there on */
    uint64_t need;      /* bytes of the staging buffer that they take; 0: nothing is staged */
};

/* Those of an index, which stay over its peers as the rings do. 0 and none if there are none. */
int slu_staging_create(const struct slu_engine *engine, const struct slu_ring *rings,
                       struct slu_staging **made);
void slu_staging_destroy(struct slu_staging *staging);

/* Of an item that slu_item_is_gathered(). There is room for max_sge pieces. */
void slu_message_begin(struct slu_message *message, const struct slu_engine *engine,
                       const struct slu_item *item, struct sluice_sge *pieces);
/* Bytes of the staging buffer that an item takes. */
uint64_t slu_message_need(const struct slu_engine *engine, const struct slu_item *item);
/* Whether the channel can have it at all: 0, or -E2BIG, with its text. */
int slu_message_check(const struct slu_engine *engine, const struct slu_item *item, uint32_t index);
/* Whether the staging buffer has room for it now. */
bool slu_message_has_room(const struct slu_engine *engine, const struct slu_item *item);
/*
 * The same behind all that were planned since slu_message_unplan(), for a call that posts as much
 * as there is room for. If there is room, the item is planned as well.
 */
bool slu_message_plan(const struct slu_engine *engine, const struct slu_item *item);
void slu_message_unplan(const struct slu_peer *peer);
/*
 * Stages what must be of a message that is about to be posted with that id, and completes its
 * elements. False: there is no room, and nothing has happened.
 */
bool slu_message_stage(const struct slu_engine *engine, const struct slu_item *item, uint64_t id,
                       struct slu_message *message, struct sluice_sge *pieces);
/* A receive that has staged some is complete, with so many bytes in all. */
void slu_message_scatter(const struct slu_peer *peer, uint64_t id, uint64_t bytes);

#endif
