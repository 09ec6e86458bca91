/* SPDX-License-Identifier: MIT */
/* Functions of neighbouring files that the transport table in context.c lists. */
#ifndef SLU_SOFT_TABLE_H
#define SLU_SOFT_TABLE_H

#include "transport/soft/core/soft.h"

/* device.c */
int slu_soft_device_list(struct sluice_device_list *list);

/* info.c */
void slu_soft_qp_query(const struct slu_qp *qp, struct sluice_channel_info *info);

/* diagnosis.c */
void slu_soft_qp_stand(const struct slu_qp *qp, struct slu_stand *stand);
uint32_t slu_soft_qp_moved(struct slu_qp *qp);

#endif
