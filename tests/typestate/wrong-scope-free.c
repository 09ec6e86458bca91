/* SPDX-License-Identifier: MIT */
/* expect: -Wmismatched-dealloc */
#include <stdlib.h>

#include <sluice.h>

void free_scope(struct sluice_channel *channel)
{
    struct sluice_scope *scope = sluice_channel_scope_begin(channel, SLUICE_S(1));

    free(scope);
}
