/* SPDX-License-Identifier: MIT */
/* Probes: asking a peer for a sign of life. */
#ifndef SLU_ENGINE_PEER_PROBE_H
#define SLU_ENGINE_PEER_PROBE_H

#include "engine/state/engine.h"

/* Checks whether a peer that grants these rights can be probed: 0, or -EOPNOTSUPP. */
int slu_probe_check(const struct slu_engine *engine, uint32_t peer, uint32_t access);
/* Probes a peer that is ready. Returns false if there is no room for another probe yet. */
bool slu_probe_ask(struct slu_engine *engine, struct slu_peer *peer);
/* Notes that the peer has connected and grants these rights, and begins keep-alive if it is on. */
void slu_probe_connected(struct slu_engine *engine, struct slu_peer *peer, uint32_t access);
/*
 * Returns whether a completion that belongs to no request belongs to a probe, which is then
 * finished.
 */
bool slu_probe_ended(struct slu_engine *engine, const struct slu_wc *wc);
/* Stops probing a peer, because its queue pair has been destroyed. */
void slu_probe_abandon(struct slu_engine *engine, struct slu_peer *peer);
/* Checks the peers whose keep-alive is due. */
void slu_probe_peers(struct slu_engine *engine, int64_t now);

#endif
