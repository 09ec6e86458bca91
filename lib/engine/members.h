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
struct slu_counts *slu_counts_of(struct slu_engine *engine, uint32_t peer, uint32_t flags);

/* room.c: for the peer of an index, which is at most one more than there are. */
int slu_room_reserve(struct slu_engine *engine, uint32_t index);
/* For the work of one more peer; and of one less, which has none and no queue pair. */
int slu_room_grow(struct slu_engine *engine);
void slu_room_shrink(struct slu_engine *engine);

/* probe.c: of a peer that is not connected. */
void slu_probe_init(struct slu_peer *peer);
/* Whether a peer that gives us these rights can be asked: 0, or -EOPNOTSUPP. */
int slu_probe_check(const struct slu_engine *engine, uint32_t peer, uint32_t access);
/* The peer is connected, and gives us these rights. */
void slu_probe_connected(struct slu_engine *engine, struct slu_peer *peer, uint32_t access);
/* Since it was connected. */
bool slu_probe_heard(struct slu_peer *peer);
/* Whether a completion that is of no request is of a probe; then it is done with. */
bool slu_probe_ended(struct slu_engine *engine, const struct slu_wc *wc);
/* The peer has failed; its queue pair is gone. */
void slu_probe_failed(struct slu_engine *engine, struct slu_peer *peer);
void slu_probe_abandon(struct slu_engine *engine, struct slu_peer *peer);
/* Looks after the peers that are due. */
void slu_probe_peers(struct slu_engine *engine, int64_t now);

#endif
