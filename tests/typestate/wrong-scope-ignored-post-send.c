/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <stddef.h>

#include <sluice.h>

void send_blindly(struct sluice_scope *scope, const struct sluice_sge *sge)
{
    sluice_scope_post_send(scope, 0, sge, 1, NULL);
}
