/* SPDX-License-Identifier: MIT */
/*
 * How long requests take, where a channel asks for it. A table of its own stands between the
 * engine and the table of the transport, as that of the stripes does: it notes when what is
 * posted was given to the transport, and counts the time in the histogram of its operation
 * when its completion is polled. So nothing else of the engine knows of it, and who does not
 * ask for it pays nothing. What it notes of a request is in memory of its peer that is as old
 * as the ring.
 */
#ifndef SLU_ENGINE_TIMING_H
#define SLU_ENGINE_TIMING_H

#include <sluice/histogram.h>

#include "engine/engine.h"

/* Puts the table in its place, if attributes of the engine ask for it; its queue is to name it. */
int slu_timing_create(struct slu_engine *engine);
void slu_timing_destroy(struct slu_engine *engine);

/* Beside the rings of an index, and as long as they. 0 and none if requests are not timed. */
int slu_times_create(const struct slu_engine *engine, const struct slu_ring *rings,
                     struct slu_times **times);
void slu_times_destroy(struct slu_times *times);
/* Another peer has the index from now on. What was counted stays in the sum of all. */
void slu_times_pass_on(struct slu_engine *engine, struct slu_peer *peer);

/* Of a peer, or of all if it is NULL: see sluice/histogram.h. */
int slu_histogram_read(const struct slu_engine *engine, const struct slu_peer *peer,
                       uint32_t opcode, struct sluice_histogram *histogram);
int slu_histogram_reset(struct slu_engine *engine);

#endif
