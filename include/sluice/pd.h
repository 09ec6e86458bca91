/* SPDX-License-Identifier: MIT */
/*
 * A protection domain: memory regions and queue pairs work together only if
 * they share one. Peers of one domain are not isolated from each other: a
 * remote key given to one can be used by all. Any thread may call these.
 */
#ifndef SLUICE_PD_H
#define SLUICE_PD_H

#include <sluice/context.h>
#include <sluice/macros.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_pd;

/* Gives up the caller's hold on a domain, which is freed with its last region or channel. */
SLUICE_EXPORT void sluice_pd_free(struct sluice_pd *pd);

/*
 * Allocates a domain. NULL and errno on failure: EINVAL (NULL context), ENOMEM,
 * or an error of the driver.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_pd_free)
struct sluice_pd *sluice_pd_alloc(struct sluice_context *context);

#ifdef __cplusplus
}
#endif

#endif
