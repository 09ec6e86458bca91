/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <stddef.h>

#include <sluice.h>

void exchange_blindly(struct sluice_multichannel *mc, const struct sluice_request *sends,
                      const struct sluice_request *receives)
{
    sluice_multichannel_scatter_gather(mc, sends, 2, receives, 2, SLUICE_S(1), NULL);
}
