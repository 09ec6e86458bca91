/* SPDX-License-Identifier: MIT */
/* Receives that all peers share: posting them, waiting for one, and taking one back. */
#ifndef SLU_ENGINE_POST_POOL_H
#define SLU_ENGINE_POST_POOL_H

#include "engine/request/check.h"

/* Posts the longest prefix of a list for which there is room. Returns its length. */
int slu_pool_post(struct slu_engine *engine, const struct sluice_request *requests, uint32_t count,
                  struct sluice_handle *handles);
/* Posts one receive and waits for its message. */
int slu_pool_receive(struct slu_engine *engine, const struct sluice_sge *sges, uint32_t sge_count,
                     int64_t deadline, struct sluice_completion *completion);
/*
 * Returns how many receives can be posted; 0 while more than the program's limit are posted. An
 * error if there is no pool.
 */
int slu_pool_refill(const struct slu_engine *engine);
/*
 * Waits until the entry of a receive of the pool is not pending: 1, 0 if the time is up, -EINTR, or
 * -ENOTCONN if no peer is connected any more.
 */
int slu_pool_await(struct slu_engine *engine, const struct slu_entry *entry, int64_t until);
/* Takes back a pending receive for the program, which gets its result. 0, or -EOPNOTSUPP. */
int slu_pool_cancel(struct slu_engine *engine, uint64_t id, struct slu_entry *entry);

#endif
