/* SPDX-License-Identifier: MIT */
/* The seam between completion queues and the requests of our own that complete on them. */
#ifndef SLU_VERBS_SEAM_H
#define SLU_VERBS_SEAM_H

#include "transport/verbs/verbs.h"

/*
 * words: after a message took a receive of a pool: if its peer waits for hints of receives, says
 * once that it need not.
 */
void slu_verbs_hint_pooled(struct slu_verbs_qp *qp);
/*
 * words: handles the end of a request of our own, and posts the next one that is due. Returns
 * whether *to has to be delivered.
 */
bool slu_verbs_own_ended(struct slu_verbs_cq *cq, const struct ibv_wc *from, struct slu_wc *to);

#endif
