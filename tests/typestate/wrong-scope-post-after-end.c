/* SPDX-License-Identifier: MIT */
/* expect: -Wuse-after-free */
#include <stddef.h>

#include <sluice.h>

int post_late(struct sluice_multichannel *mc, const struct sluice_request *request)
{
    struct sluice_scope *scope = sluice_multichannel_scope_begin(mc, SLUICE_S(1));

    sluice_scope_end(scope, NULL);
    return sluice_scope_post(scope, request, 1, NULL);
}
