/* SPDX-License-Identifier: MIT */
/* Internal calls of channels on a cache of regions. */
#ifndef SLU_MR_CACHE_H
#define SLU_MR_CACHE_H

#include <sluice/mr_cache.h>

#include "device/pd.h"

/* Checks that channels of the domain may use the cache: 0, or -EINVAL. */
int slu_mr_cache_check(const struct sluice_mr_cache *cache, const struct sluice_pd *pd);
/* Hold the cache for a channel, and release it; a held cache cannot be destroyed. */
void slu_mr_cache_hold(struct sluice_mr_cache *cache);
void slu_mr_cache_release(struct sluice_mr_cache *cache);
/* Returns whether receives and reads may write to its regions. */
bool slu_mr_cache_is_writable(const struct sluice_mr_cache *cache);
/* Returns whether the pages of a range would wrap around the end of the address space. */
bool slu_mr_cache_wraps(const struct sluice_mr_cache *cache, uint64_t addr, uint64_t length);

#endif
