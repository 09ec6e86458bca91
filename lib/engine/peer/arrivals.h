/* SPDX-License-Identifier: MIT */
/* The receives that take immediates where arrivals are counted. */
#ifndef SLU_ENGINE_PEER_ARRIVALS_H
#define SLU_ENGINE_PEER_ARRIVALS_H

#include "engine/state/engine.h"

/*
 * slu_arrivals_create() makes the array of counters, if arrivals are counted; slu_arrivals_begin()
 * posts the receives of a peer that has just connected.
 */
int slu_arrivals_create(struct slu_engine *engine);
/* Checks whether there is room for the receives of one more peer. */
int slu_arrivals_grow(const struct slu_engine *engine);
int slu_arrivals_begin(struct slu_engine *engine, struct slu_peer *peer);
/* Posts receives of the pool that all peers share, until all of it is posted. */
int slu_arrivals_share(struct slu_engine *engine);
/* Handles the completion of a receive of that pool, and replaces it. */
void slu_arrival_shared_ended(struct slu_engine *engine, const struct slu_wc *wc);
/* Handles the completion of a receive for arrivals, by its id. */
void slu_arrival_ended(struct slu_engine *engine, const struct slu_wc *wc);
void slu_arrivals_abandon(struct slu_engine *engine, struct slu_peer *peer);

#endif
