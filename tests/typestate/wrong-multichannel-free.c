/* SPDX-License-Identifier: MIT */
/* expect: -Wmismatched-dealloc */
#include <stdlib.h>

#include <sluice.h>

void free_multichannel(struct sluice_prepared_multichannel *prepared,
                       const struct sluice_endpoint *remotes)
{
    struct sluice_multichannel *mc = sluice_prepared_multichannel_handshake(prepared, remotes, 2);

    free(mc);
}
