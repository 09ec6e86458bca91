/* SPDX-License-Identifier: MIT */
/* Completion queues, and the queue pairs on them. */
#ifndef SLU_VERBS_QUEUES_H
#define SLU_VERBS_QUEUES_H

#include "transport/verbs/verbs.h"

/* cq.c */
int slu_verbs_cq_create(struct slu_tcontext *context, uint32_t depth, struct slu_cq **cq);
void slu_verbs_cq_destroy(struct slu_cq *cq);

/* parts.c */
int slu_verbs_cq_extend(struct slu_cq *cq, uint32_t entries);
void slu_verbs_cq_reduce(struct slu_cq *cq, uint32_t entries);
/* Adds a queue of the device. */
int slu_verbs_cq_add_part(struct slu_verbs_cq *cq, uint32_t entries);
/* Destroys a queue of the device. False: the device still has it. */
bool slu_verbs_cq_destroy_part(struct slu_verbs_cq *cq, struct slu_verbs_part *part);
/* Reserves room for the completions of a queue pair; *part is the queue of the device. */
int slu_verbs_cq_reserve(struct slu_verbs_cq *cq, uint32_t entries, uint32_t *part);
void slu_verbs_cq_release(struct slu_verbs_cq *cq, uint32_t entries, uint32_t part);

/* members.c */
/* Adds a queue pair to the table of its queue, so that failed completions mark it. */
void slu_verbs_cq_add(struct slu_verbs_cq *cq, struct slu_verbs_qp *qp);
/* Undoes slu_verbs_cq_add(). */
void slu_verbs_cq_remove(struct slu_verbs_cq *cq, struct slu_verbs_qp *qp);
/* Returns a queue pair by its number, or NULL if it was removed. */
struct slu_verbs_qp *slu_verbs_cq_find(struct slu_verbs_cq *cq, uint32_t qpn);
/* Marks a queue as dead. reason is static. */
void slu_verbs_cq_fail(struct slu_verbs_cq *cq, const char *reason);
/* Puts a queue pair into the error state, without a farewell. */
void slu_verbs_qp_fail(struct slu_verbs_qp *qp);
/* Posts a request of our own, when none is in flight. Returns 0, or the result of libibverbs. */
int slu_verbs_own_post(struct slu_verbs_qp *qp, struct ibv_send_wr *wr);

/* poll.c */
int slu_verbs_cq_poll(struct slu_cq *cq, struct slu_wc *wcs, uint32_t count);
int slu_verbs_cq_arm(struct slu_cq *cq);
int slu_verbs_cq_fd(struct slu_cq *cq);
/*
 * Ends requests of our own that have completed in a part, and keeps other completions for a poll.
 */
void slu_verbs_cq_end_own(struct slu_verbs_cq *cq, uint32_t part);
/*
 * Drops the completions of a destroyed queue pair and keeps all others, in order, and those of a
 * pool.
 */
void slu_verbs_cq_purge(struct slu_verbs_cq *cq, uint32_t qpn, uint32_t peer, uint32_t part);
/*
 * Ends a step of a wait and yields the processor once the wait has lasted for hot. False: it has
 * reached its maximum.
 */
bool slu_verbs_wait_on(struct slu_verbs_wait *wait, int64_t hot, int64_t most, int64_t most_in_all);

#endif
