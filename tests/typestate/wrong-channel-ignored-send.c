/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <sluice.h>

void send_blindly(struct sluice_channel *channel, const struct sluice_sge *sge)
{
    sluice_channel_send(channel, sge, 1, SLUICE_S(1));
}
