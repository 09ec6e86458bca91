/* SPDX-License-Identifier: MIT */
/* The ranks that were missing when a call of an exchange failed, and the deadline that passed. */
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

/* Returns where the length of the deadline belongs in a text; NULL: nowhere. */
static const char *find_deadline(const struct sluice_exchange *exchange, const char *text)
{
    static const char named[] = "the deadline", of[] = " of rank ";
    const char *at = strstr(text, named);
    char *end;

    if (at == NULL)
        return NULL;
    at += sizeof named - 1;
    if (strncmp(at, of, sizeof of - 1) == 0) {
        if (strtoul(at + sizeof of - 1, &end, 10) != exchange->rank)
            return NULL;
        at = end;
    }
    return strncmp(at, " (", 2) != 0 ? at : NULL;
}

int slu_exchange_say_time(const struct sluice_exchange *exchange, int error)
{
    char time[SLU_DURATION_BYTES];
    struct slu_text text;
    const char *at;

    if (error != -ETIMEDOUT || exchange->time == 0)
        return error;
    slu_text_save(&text);
    at = find_deadline(exchange, text.bytes);
    if (at == NULL)
        return error;
    return slu_fail(ETIMEDOUT, "%.*s (%s)%s", (int)(at - text.bytes), text.bytes,
                    slu_say_duration(exchange->time, time), at);
}
