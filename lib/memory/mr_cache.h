/* SPDX-License-Identifier: MIT */
/* What channels need of a cache of regions, beside what programs call. */
#ifndef SLU_MR_CACHE_H
#define SLU_MR_CACHE_H

#include <sluice/mr_cache.h>

#include "device/pd.h"

/* Whether channels of the domain may use it: 0, or -EINVAL. */
int slu_mr_cache_check(const struct sluice_mr_cache *cache, const struct sluice_pd *pd);
/* A channel uses it until it is released: it does not end before. */
void slu_mr_cache_hold(struct sluice_mr_cache *cache);
void slu_mr_cache_release(struct sluice_mr_cache *cache);
/* Whether receives and reads may land in its regions. */
bool slu_mr_cache_is_writable(const struct sluice_mr_cache *cache);
/* Whether the pages of a range would wrap around the end of the address space. */
bool slu_mr_cache_wraps(const struct sluice_mr_cache *cache, uint64_t addr, uint64_t length);

#endif
