/* SPDX-License-Identifier: MIT */
/* expect: -Wuse-after-free */
#include <stddef.h>

#include <sluice.h>

int ask_late(struct sluice_pd *pd, const struct sluice_endpoint *remote,
             struct sluice_endpoint *own)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);
    struct sluice_channel *channel = sluice_prepared_channel_handshake(prepared, remote);
    int result = sluice_prepared_channel_endpoint(prepared, own);

    sluice_channel_close(channel);
    return result;
}
