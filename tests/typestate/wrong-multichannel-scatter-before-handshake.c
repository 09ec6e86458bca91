/* SPDX-License-Identifier: MIT */
/* expect: -Wincompatible-pointer-types */
#include <stddef.h>

#include <sluice.h>

int scatter_early(struct sluice_prepared_multichannel *prepared,
                  const struct sluice_request *requests)
{
    return sluice_multichannel_scatter_send(prepared, requests, 2, SLUICE_S(1), NULL);
}
