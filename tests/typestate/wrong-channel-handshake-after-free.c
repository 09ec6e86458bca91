/* SPDX-License-Identifier: MIT */
/* expect: -Wuse-after-free */
#include <stddef.h>

#include <sluice.h>

struct sluice_channel *connect_freed(struct sluice_pd *pd, const struct sluice_endpoint *remote)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);

    sluice_prepared_channel_free(prepared);
    return sluice_prepared_channel_handshake(prepared, remote);
}
