/* SPDX-License-Identifier: MIT */
/* expect: -Wanalyzer-malloc-leak */
#include <stddef.h>

#include <sluice.h>

int open_and_forget(struct sluice_exchange_info *info)
{
    struct sluice_exchange *exchange = sluice_exchange_open(NULL, SLUICE_S(1));

    return sluice_exchange_query(exchange, info);
}
