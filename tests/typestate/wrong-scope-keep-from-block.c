/* SPDX-License-Identifier: MIT */
/* expect: -Wuse-after-free */
#include <stddef.h>

#include <sluice.h>

int post_after_block(struct sluice_channel *channel, const struct sluice_sge *sge)
{
    struct sluice_scope *kept = NULL;

    SLUICE_SCOPE(scope, sluice_channel_scope_begin(channel, SLUICE_S(1)), NULL) {
        kept = scope;
    }
    return sluice_scope_post_send(kept, 0, sge, 1, NULL);
}
