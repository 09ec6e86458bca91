/* SPDX-License-Identifier: MIT */
/* expect: -Wanalyzer-double-free */
#include <stddef.h>

#include <sluice.h>

void end_what_ends_itself(struct sluice_channel *channel)
{
    SLUICE_SCOPE(scope, sluice_channel_scope_begin(channel, SLUICE_S(1)), NULL) {
        sluice_scope_end(scope, NULL);
    }
}
