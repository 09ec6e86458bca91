/* SPDX-License-Identifier: MIT */
/* expect: -Wuse-after-free */
#include <sluice.h>

int send_late(struct sluice_prepared_channel *prepared, const struct sluice_endpoint *remote,
              const struct sluice_sge *sge)
{
    struct sluice_channel *channel = sluice_prepared_channel_handshake(prepared, remote);

    sluice_channel_close(channel);
    return sluice_channel_send(channel, sge, 1, SLUICE_S(1));
}
