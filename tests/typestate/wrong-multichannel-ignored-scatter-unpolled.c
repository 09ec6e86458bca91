/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <stddef.h>

#include <sluice.h>

/* Whoever does not look how many were posted takes the rest for posted, too. */
void scatter(struct sluice_multichannel *multichannel, const struct sluice_request *requests,
             uint32_t count)
{
    sluice_multichannel_scatter_send_unpolled(multichannel, requests, count, SLUICE_S(1), NULL);
}
