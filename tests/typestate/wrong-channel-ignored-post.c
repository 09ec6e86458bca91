/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <stddef.h>

#include <sluice.h>

void post_blindly(struct sluice_channel *channel, const struct sluice_request *request)
{
    sluice_channel_post(channel, request, 1, SLUICE_S(1), NULL);
}
