/* SPDX-License-Identifier: MIT */
/* expect: -Wincompatible-pointer-types */
#include <sluice.h>

int write_to_local(struct sluice_channel *channel, const struct sluice_sge *sge,
                   const struct sluice_mr *mr)
{
    return sluice_channel_write(channel, sge, 1, mr, SLUICE_S(1));
}
