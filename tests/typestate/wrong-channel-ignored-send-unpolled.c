/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <stddef.h>

#include <sluice.h>

/* It may be that it was not posted at all. */
void send_unpolled(struct sluice_channel *channel, const struct sluice_sge *sge)
{
    sluice_channel_send_unpolled(channel, sge, 1, SLUICE_S(1), NULL);
}
