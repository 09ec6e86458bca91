/* SPDX-License-Identifier: MIT */
/* Making an engine and its peers: what the files of this folder share alone. */
#ifndef SLU_ENGINE_LIFE_H
#define SLU_ENGINE_LIFE_H

#include "engine/state/engine.h"

/* Applies defaults, checks ranges and the device's limits, and takes a reference to the cache. */
int slu_channel_attr_apply(struct slu_engine *engine, const struct sluice_channel_attr *attr);
/* Make and free what belongs to an index and outlives its peers: rings, times, staging buffers. */
int slu_index_create(struct slu_engine *engine, struct slu_peer *peer, uint32_t index);
void slu_index_destroy(const struct slu_engine *engine, struct slu_peer *peer);
/* Creates a peer with a queue pair. */
int slu_peer_create(struct slu_engine *engine, struct slu_peer *peer);
/* Gives the peer a random identity, unique across processes. */
int slu_peer_identify(struct slu_peer *peer);
/* Fails a peer, drains its work, and destroys its queue pair. */
void slu_peer_end(struct slu_engine *engine, struct slu_peer *peer);
/* Makes room in the arrays for the peer of an index, which is at most one past the last. */
int slu_room_reserve(struct slu_engine *engine, uint32_t index);
/*
 * Adjust the room for work: for one more peer, and for one less, which has no work and no queue
 * pair.
 */
int slu_room_grow(struct slu_engine *engine);
void slu_room_shrink(struct slu_engine *engine);

#endif
