/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <stddef.h>

#include <sluice.h>

void post_blindly(struct sluice_scope *scope, const struct sluice_request *request)
{
    sluice_scope_post(scope, request, 1, NULL);
}
