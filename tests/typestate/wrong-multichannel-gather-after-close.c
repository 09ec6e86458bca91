/* SPDX-License-Identifier: MIT */
/* expect: -Wuse-after-free */
#include <stddef.h>

#include <sluice.h>

int gather_late(struct sluice_prepared_multichannel *prepared,
                const struct sluice_endpoint *remotes, const struct sluice_request *requests)
{
    struct sluice_multichannel *mc = sluice_prepared_multichannel_handshake(prepared, remotes, 2);

    sluice_multichannel_close(mc);
    return sluice_multichannel_gather_receive(mc, requests, 2, SLUICE_S(1), NULL);
}
