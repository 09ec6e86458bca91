/* SPDX-License-Identifier: MIT */
/* expect: -Wuse-after-free */
#include <stddef.h>

#include <sluice.h>

void connect_twice(struct sluice_pd *pd, const struct sluice_endpoint *remote)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);
    struct sluice_channel *one = sluice_prepared_channel_handshake(prepared, remote);
    struct sluice_channel *two = sluice_prepared_channel_handshake(prepared, remote);

    sluice_channel_close(one);
    sluice_channel_close(two);
}
