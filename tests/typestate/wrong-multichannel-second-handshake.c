/* SPDX-License-Identifier: MIT */
/* expect: -Wuse-after-free */
#include <stddef.h>

#include <sluice.h>

void connect_twice(struct sluice_pd *pd, const struct sluice_endpoint *remotes)
{
    struct sluice_prepared_multichannel *prepared = sluice_multichannel_prepare(pd, 2, NULL);
    struct sluice_multichannel *one = sluice_prepared_multichannel_handshake(prepared, remotes, 2);
    struct sluice_multichannel *two = sluice_prepared_multichannel_handshake(prepared, remotes, 2);

    sluice_multichannel_close(one);
    sluice_multichannel_close(two);
}
