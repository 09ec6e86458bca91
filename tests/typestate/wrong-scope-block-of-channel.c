/* SPDX-License-Identifier: MIT */
/* expect: -Wincompatible-pointer-types */
#include <stddef.h>

#include <sluice.h>

int send_in_channel(struct sluice_channel *channel, const struct sluice_sge *sge)
{
    SLUICE_SCOPE(scope, channel, NULL) {
        return sluice_scope_post_send(scope, 0, sge, 1, NULL);
    }
    return -1;
}
