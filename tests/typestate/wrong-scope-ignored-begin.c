/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <sluice.h>

void begin_nothing(struct sluice_channel *channel)
{
    sluice_channel_scope_begin(channel, SLUICE_S(1));
}
