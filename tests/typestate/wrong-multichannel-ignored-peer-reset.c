/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <sluice.h>

void reset_blindly(struct sluice_multichannel *mc, struct sluice_endpoint *endpoint)
{
    sluice_multichannel_peer_reset(mc, 1, endpoint);
}
