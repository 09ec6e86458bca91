/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <sluice.h>

void make_blindly(const struct sluice_mr *mr, struct sluice_sge *sge)
{
    sluice_mr_sge(mr, 4096, 4096, sge);
}
