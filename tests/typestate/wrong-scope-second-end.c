/* SPDX-License-Identifier: MIT */
/* expect: -Wuse-after-free */
#include <stddef.h>

#include <sluice.h>

int end_twice(struct sluice_channel *channel)
{
    struct sluice_scope *scope = sluice_channel_scope_begin(channel, SLUICE_S(1));

    sluice_scope_end(scope, NULL);
    return sluice_scope_end(scope, NULL);
}
