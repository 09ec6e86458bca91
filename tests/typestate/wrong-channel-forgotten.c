/* SPDX-License-Identifier: MIT */
/* expect: -Wanalyzer-malloc-leak */
#include <sluice.h>

int connect_and_forget(struct sluice_prepared_channel *prepared,
                       const struct sluice_endpoint *remote)
{
    struct sluice_channel *channel = sluice_prepared_channel_handshake(prepared, remote);

    return sluice_channel_state(channel);
}
