/* SPDX-License-Identifier: MIT */
/* expect: -Wincompatible-pointer-types */
#include <sluice.h>

int send_early(struct sluice_prepared_channel *prepared, const struct sluice_sge *sge)
{
    return sluice_channel_send(prepared, sge, 1, SLUICE_S(1));
}
