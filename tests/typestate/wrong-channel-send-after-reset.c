/* SPDX-License-Identifier: MIT */
/* expect: -Wuse-after-free */
#include <sluice.h>

int send_after_reset(struct sluice_prepared_channel *prepared, const struct sluice_endpoint *remote,
                     const struct sluice_sge *sge)
{
    struct sluice_channel *channel = sluice_prepared_channel_handshake(prepared, remote);
    struct sluice_prepared_channel *again = sluice_channel_reset(channel);
    int result = sluice_channel_send(channel, sge, 1, SLUICE_S(1));

    sluice_prepared_channel_free(again);
    return result;
}
