/* SPDX-License-Identifier: MIT */
/* expect: -Wanalyzer-malloc-leak */
#include <stddef.h>

#include <sluice.h>

int prepare_and_forget(struct sluice_pd *pd, struct sluice_endpoint *endpoint)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);

    return sluice_prepared_channel_endpoint(prepared, endpoint);
}
