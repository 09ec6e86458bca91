/* SPDX-License-Identifier: MIT */
/* expect: -Wincompatible-pointer-types */
#include <sluice.h>

struct sluice_channel *connect_connected(struct sluice_channel *channel,
                                         const struct sluice_endpoint *remote)
{
    return sluice_prepared_channel_handshake(channel, remote);
}
