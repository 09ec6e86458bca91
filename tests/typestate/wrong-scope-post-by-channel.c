/* SPDX-License-Identifier: MIT */
/* expect: -Wincompatible-pointer-types */
#include <stddef.h>

#include <sluice.h>

int send_by_channel(struct sluice_channel *channel, const struct sluice_sge *sge)
{
    SLUICE_SCOPE(scope, sluice_channel_scope_begin(channel, SLUICE_S(1)), NULL) {
        return sluice_scope_post_send(channel, 0, sge, 1, NULL);
    }
    return -1;
}
