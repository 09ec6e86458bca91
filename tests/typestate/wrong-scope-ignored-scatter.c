/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <stddef.h>

#include <sluice.h>

void scatter_blindly(struct sluice_scope *scope, const struct sluice_request *requests)
{
    sluice_scope_post_scatter_send(scope, requests, 2, NULL);
}
