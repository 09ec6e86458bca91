/* SPDX-License-Identifier: MIT */
/* The fast path of a blocking call with one action. */
#ifndef SLU_BUFFER_QUICK_H
#define SLU_BUFFER_QUICK_H

#include "buffer/batch.h"

/*
 * Does an action. Returns 1 if it succeeded. Returns 0 if it goes on: it is then the only action of
 * the batch, which is posted. Returns -EAGAIN without a text if a batch has to do all of it; the
 * batch is then not touched.
 */
int slu_quick_move(struct sluice_buffer_service *service, struct slu_batch *batch,
                   const struct sluice_buffer_action *action, int64_t deadline);
/* Remembers the handle of the only action of a batch, which has succeeded. */
void slu_quick_learn(struct slu_batch *batch, const struct sluice_buffer_action *action);

#endif
