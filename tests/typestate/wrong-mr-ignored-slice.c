/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <sluice.h>

void cut_blindly(const struct sluice_remote_mr *remote, struct sluice_remote_mr *slice)
{
    sluice_remote_mr_slice(remote, 0, 64, slice);
}
