/* SPDX-License-Identifier: MIT */
/* The ranks that were missing when a call of an exchange failed. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange/exchange.h"

void slu_exchange_set_missing(struct sluice_exchange *exchange, const bool *missing)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < exchange->ranks; i++)
        count += missing[i];
    free(exchange->missing);
    exchange->missing_count = 0;
    exchange->missing = count > 0 ? malloc(count * sizeof *exchange->missing) : NULL;
    if (exchange->missing == NULL)
        return;
    for (uint32_t i = 0; i < exchange->ranks; i++)
        if (missing[i])
            exchange->missing[exchange->missing_count++] = i;
}

/* Writes the next range of ranks, as "3" or "3-7". Returns how many ranks it has. */
static uint32_t name_range(const uint32_t *ranks, uint32_t count, char text[24])
{
    uint32_t length = 1;

    while (length < count && ranks[length] == ranks[length - 1] + 1)
        length++;
    if (length == 1)
        snprintf(text, 24, "%u", ranks[0]);
    else
        snprintf(text, 24, "%u-%u", ranks[0], ranks[length - 1]);
    return length;
}

void slu_exchange_log_missing(const struct sluice_exchange *exchange)
{
    char line[400] = "", range[24];
    struct slu_text text;
    uint32_t at = 0;

    slu_text_save(&text);
    while (at < exchange->missing_count) {
        size_t length = strlen(line);

        at += name_range(exchange->missing + at, exchange->missing_count - at, range);
        snprintf(line + length, sizeof line - length, "%s%s", length > 0 ? "," : "", range);
        if (at < exchange->missing_count && length < sizeof line - 2 * sizeof range)
            continue;
        slu_log(SLUICE_LOG_ERROR, "rank %u of %u: missing ranks %s", exchange->rank,
                exchange->ranks, line);
        line[0] = '\0';
    }
    slu_text_restore(&text);
}
