/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <stddef.h>

#include <sluice.h>

void gather_blindly(struct sluice_exchange *exchange, const void *own, void *all)
{
    sluice_exchange_allgather(exchange, own, all, 8, SLUICE_S(1));
}
