/* SPDX-License-Identifier: MIT */
/* expect: -Wanalyzer-malloc-leak */
#include <stddef.h>

#include <sluice.h>

int prepare_and_forget(struct sluice_pd *pd, struct sluice_endpoint *endpoints)
{
    struct sluice_prepared_multichannel *prepared = sluice_multichannel_prepare(pd, 2, NULL);

    return sluice_prepared_multichannel_endpoints(prepared, endpoints, 2);
}
