/* SPDX-License-Identifier: MIT */
/* Peers from when they come to when they go, and the room that they need. The engine is entered. */
#ifndef SLU_MEMBERS_H
#define SLU_MEMBERS_H

#include "engine/engine.h"

/* peer.c: who it is: no other, in any process, has that number. */
int slu_peer_identify(struct slu_peer *peer);
/* Fails it, drains its work, and destroys its queue pair. */
void slu_peer_end(struct slu_engine *engine, struct slu_peer *peer);

/* Nothing of it can complete any more, once it is not busy. */
static inline bool slu_peer_over(const struct slu_peer *peer)
{
    return peer->state >= SLUICE_STATE_FAILED;
}

/* members.c: the index of a new prepared peer, whose endpoint is written, or why there is none. */
int slu_peer_add(struct slu_engine *engine, struct sluice_endpoint *endpoint);
/* Its work is drained first. */
void slu_peer_remove(struct slu_engine *engine, struct slu_peer *peer);
/* Where it is counted what becomes of a result: with its peer, unless another has the index. */
struct slu_counts *slu_counts_of(struct slu_engine *engine,
                                 const struct sluice_completion *completion);

/* room.c: for the peer of an index, which is at most one more than there are. */
int slu_room_reserve(struct slu_engine *engine, uint32_t index);
/* For the work of one more peer; and of one less, which has none and no queue pair. */
int slu_room_grow(struct slu_engine *engine);
void slu_room_shrink(struct slu_engine *engine);

#endif
