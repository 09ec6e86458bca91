/* SPDX-License-Identifier: MIT */
/* Protection domains and regions, for the table in verbs.c. */
#ifndef SLU_VERBS_TABLE_H
#define SLU_VERBS_TABLE_H

#include "transport/verbs/verbs.h"

/* memory.c */
int slu_verbs_pd_alloc(struct slu_tcontext *context, struct slu_tpd **pd);
void slu_verbs_pd_free(struct slu_tpd *pd);
bool slu_verbs_pds_share_keys(const struct slu_tpd *a, const struct slu_tpd *b);
int slu_verbs_mr_register(struct slu_tpd *pd, void *addr, size_t length, uint32_t access,
                          struct slu_tmr **mr);
int slu_verbs_mr_register_dmabuf(struct slu_tpd *pd, const struct slu_dmabuf *dmabuf,
                                 uint32_t access, struct slu_tmr **mr);
int slu_verbs_mr_alloc(struct slu_tpd *pd, size_t length, uint32_t access, int32_t node,
                       struct slu_tmr **mr);
void slu_verbs_mr_deregister(struct slu_tmr *mr);

#endif
