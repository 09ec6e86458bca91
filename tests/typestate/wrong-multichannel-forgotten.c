/* SPDX-License-Identifier: MIT */
/* expect: -Wanalyzer-malloc-leak */
#include <sluice.h>

int connect_and_forget(struct sluice_prepared_multichannel *prepared,
                       const struct sluice_endpoint *remotes)
{
    struct sluice_multichannel *mc = sluice_prepared_multichannel_handshake(prepared, remotes, 2);

    return sluice_multichannel_peer_state(mc, 1);
}
