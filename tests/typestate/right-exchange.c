/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include <sluice.h>

int swap_once(const void *to, void *from, size_t bytes)
{
    struct sluice_exchange *exchange = sluice_exchange_open(NULL, SLUICE_S(60));
    int error;

    if (exchange == NULL)
        return -1;
    error = sluice_exchange_alltoall(exchange, to, from, bytes, SLUICE_S(60));
    sluice_exchange_close(exchange);
    return error;
}
