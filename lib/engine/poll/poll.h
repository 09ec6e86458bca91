/* SPDX-License-Identifier: MIT */
/* Calls by which a program retrieves: results, arrivals, and the events of an event loop. */
#ifndef SLU_ENGINE_POLL_POLL_H
#define SLU_ENGINE_POLL_POLL_H

#include "engine/state/engine.h"

/* Take the results that there are; wait for the next one; wait until nothing is pending. */
int slu_poll(struct slu_engine *engine, struct sluice_completion *completions, uint32_t count);
/*
 * Polls once, for an event of another engine that has to come first. Returns whether nothing came,
 * and no result is unseen. This checks no clock.
 */
bool slu_poll_is_empty(struct slu_engine *engine);
int slu_next(struct slu_engine *engine, int64_t timeout, struct sluice_completion *completion);
int slu_flush(struct slu_engine *engine, int64_t timeout);
/* Wait for the request of a handle, cancel it, and detach it. */
int slu_wait_handle(struct slu_engine *engine, const struct sluice_handle *handle, int64_t timeout,
                    struct sluice_completion *completion);
int slu_cancel(struct slu_engine *engine, const struct sluice_handle *handle,
               struct sluice_completion *completion);
int slu_detach(struct slu_engine *engine, const struct sluice_handle *handle);
/*
 * Do the same as slu_poll() and slu_wait_handle(), for the work of one owner, whose handles have
 * that tag.
 */
int slu_poll_owner(struct slu_engine *engine, enum slu_owner owner,
                   struct sluice_completion *completions, uint32_t count);
int slu_wait_tagged(struct slu_engine *engine, uint64_t tag, const struct sluice_handle *handle,
                    int64_t timeout, struct sluice_completion *completion);
/* Counts the arrivals of a tag; waits until there are at least that many. */
int slu_arrivals(struct slu_engine *engine, uint32_t tag, uint64_t *count);
int slu_wait_arrivals(struct slu_engine *engine, uint32_t tag, uint64_t least, int64_t timeout);
/*
 * Returns whether an event loop should poll at once, and else when it is due: see
 * sluice_channel_arm().
 */
int slu_arm(struct slu_engine *engine, int64_t *due);
/*
 * Enters the engine for a call that only reads, and polls everything. Returns whether the engine
 * was armed, for slu_query_leave(), which arms it again. If something has come meanwhile, that
 * makes the file descriptor readable.
 */
bool slu_query_enter(struct slu_engine *engine);
void slu_query_leave(struct slu_engine *engine, bool armed);

#endif
