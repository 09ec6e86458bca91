/* SPDX-License-Identifier: MIT */
/* expect: -Wuse-after-free */
#include <stddef.h>

#include <sluice.h>

int meet_late(void)
{
    struct sluice_exchange *exchange = sluice_exchange_open(NULL, SLUICE_S(1));

    sluice_exchange_close(exchange);
    return sluice_exchange_barrier(exchange, SLUICE_S(1));
}
