/* SPDX-License-Identifier: MIT */
/* expect: -Wanalyzer-malloc-leak */
#include <sluice.h>

int begin_and_leave(struct sluice_channel *channel)
{
    struct sluice_scope *scope = sluice_channel_scope_begin(channel, SLUICE_S(1));

    return scope ? 0 : -1;
}
