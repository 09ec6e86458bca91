/* SPDX-License-Identifier: MIT */
/* Queue pairs. */
#ifndef SLU_VERBS_PAIRS_H
#define SLU_VERBS_PAIRS_H

#include "transport/verbs/verbs.h"

/* qp.c */
int slu_verbs_qp_create(struct slu_tpd *pd, struct slu_cq *cq, const struct slu_qp_attr *attr,
                        struct slu_qp **qp);
void slu_verbs_qp_endpoint(const struct slu_qp *qp, struct slu_endpoint *endpoint);
int slu_verbs_qp_state(const struct slu_qp *qp);
void slu_verbs_qp_query(const struct slu_qp *qp, struct sluice_channel_info *info);
void slu_verbs_qp_error(struct slu_qp *qp);
void slu_verbs_qp_destroy(struct slu_qp *qp);

/* connect.c */
/* Returns whether our packets must have a GRH even if the peer and its LID need none. */
bool slu_verbs_wants_grh(const struct slu_verbs_qp *qp);
int slu_verbs_qp_connect(struct slu_qp *qp, const struct slu_endpoint *remote);

/* post.c */
int slu_verbs_post_send(struct slu_qp *qp, struct slu_send_wr *chain, struct slu_send_wr **bad);
int slu_verbs_post_receive(struct slu_qp *qp, struct slu_receive_wr *chain,
                           struct slu_receive_wr **bad);
int slu_verbs_qp_probe(struct slu_qp *qp, uint64_t id);
/* iwarp: a receive without elements gets an empty one. */
void slu_verbs_translate_receive(const struct slu_receive_wr *from, struct ibv_recv_wr *to,
                                 bool iwarp);

/* pool.c */
int slu_verbs_pool_create(struct slu_tpd *pd, struct slu_cq *cq, const struct slu_pool_attr *attr,
                          struct slu_tpool **pool);
void slu_verbs_pool_destroy(struct slu_tpool *pool);
int slu_verbs_pool_post(struct slu_tpool *pool, struct slu_receive_wr *chain,
                        struct slu_receive_wr **bad);

/* alert.c */
bool slu_verbs_cq_alert(struct slu_cq *cq, struct slu_alert *alert);

/* agreed.c: what rdma_cm negotiates. In a build without rdma_cm there is none of it. */
/* Prepares a queue pair for rdma_cm. Returns 0, or an error if attributes conflict with it. */
int slu_verbs_qp_expect(struct slu_qp *qp);
/*
 * Applies the parameters that rdma_cm negotiated: those of our side to the queue pair, and those of
 * the peer to an endpoint for a handshake. -EINVAL: an attribute of the channel asks for something
 * else.
 */
int slu_verbs_qp_agree(struct slu_qp *qp, struct slu_cm *cm, struct slu_endpoint *remote);
/* Checks that a connection uses the context's device and port; otherwise -EADDRNOTAVAIL. */
int slu_verbs_cm_check(const struct slu_tcontext *context, const struct slu_cm *cm,
                       const char *who);

#endif
