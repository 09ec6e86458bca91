/* SPDX-License-Identifier: MIT */
/* A memory region as a program has it. */
#ifndef SLU_MR_H
#define SLU_MR_H

#include <sluice/mr.h>

#include "device/pd.h"

struct sluice_mr {
    uint32_t magic;
    struct sluice_pd *pd;
    struct slu_tmr *transport;
};

#endif
