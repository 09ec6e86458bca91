/* SPDX-License-Identifier: MIT */
/*
 * Timing of requests, for channels that ask for it. A transport table of its own lies between the
 * engine and the table of the transport, as that of the stripes does. It notes when work is given
 * to the transport, and when its completion is polled it counts the time in the histogram of the
 * operation. So no other part of the engine is involved, and channels without timing pay nothing.
 * The notes of a peer's requests live as long as its rings.
 */
#ifndef SLU_ENGINE_TIMING_H
#define SLU_ENGINE_TIMING_H

#include <sluice/histogram.h>

#include "engine/state/engine.h"

/* Installs the table, if the engine's attributes ask for it. The caller then sets cq->timing. */
int slu_timing_create(struct slu_engine *engine);
void slu_timing_destroy(struct slu_engine *engine);

/*
 * Makes the notes of an index, as long as its rings. Returns 0 and no notes if requests are not
 * timed.
 */
int slu_times_create(const struct slu_engine *engine, const struct slu_ring *rings,
                     struct slu_times **times);
void slu_times_destroy(struct slu_times *times);
/*
 * Clears the histograms of an index for its next peer. The times counted so far stay in the sum of
 * all.
 */
void slu_times_pass_on(struct slu_engine *engine, struct slu_peer *peer);

/* Reads the histogram of a peer, or of all if peer is NULL: see sluice/histogram.h. */
int slu_histogram_read(const struct slu_engine *engine, const struct slu_peer *peer,
                       uint32_t opcode, struct sluice_histogram *histogram);
int slu_histogram_reset(struct slu_engine *engine);

#endif
