/* SPDX-License-Identifier: MIT */
/* expect: -Wanalyzer-malloc-leak */
#include <stddef.h>

#include <sluice.h>

int wrap_and_forget(const struct sluice_exchange_provider *provider,
                    struct sluice_exchange_info *info)
{
    struct sluice_exchange *exchange = sluice_exchange_wrap(provider, NULL, 0, 2);

    return sluice_exchange_query(exchange, info);
}
