/* SPDX-License-Identifier: MIT */
/* expect: -Wmismatched-dealloc */
#include <stdlib.h>

#include <sluice.h>

void free_channel(struct sluice_prepared_channel *prepared, const struct sluice_endpoint *remote)
{
    struct sluice_channel *channel = sluice_prepared_channel_handshake(prepared, remote);

    free(channel);
}
