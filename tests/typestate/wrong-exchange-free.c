/* SPDX-License-Identifier: MIT */
/* expect: -Wmismatched-dealloc */
#include <stdlib.h>

#include <sluice.h>

void free_exchange(void)
{
    struct sluice_exchange *exchange = sluice_exchange_open(NULL, SLUICE_S(1));

    free(exchange);
}
