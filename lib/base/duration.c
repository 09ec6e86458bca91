/* SPDX-License-Identifier: MIT */
/* Durations in texts. */
#include "config.h"

#include <stdio.h>

#include "base/clock.h"

/*
 * Writes a duration in the largest unit of which there is at least one, with up to three decimals.
 */
const char *slu_say_duration(int64_t time, char text[SLU_DURATION_BYTES])
{
    static const struct {
        int64_t size;
        const char *name;
    } units[] = {{SLUICE_S(1), "s"}, {SLUICE_MS(1), "ms"}, {SLUICE_US(1), "us"}, {1, "ns"}};
    unsigned unit = 0;
    int64_t thousandths;
    int digits = 3;

    while (unit < 3 && time < units[unit].size)
        unit++;
    thousandths = time % units[unit].size * 1000 / units[unit].size;
    while (digits > 0 && thousandths % 10 == 0) {
        thousandths /= 10;
        digits--;
    }
    if (digits == 0)
        snprintf(text, SLU_DURATION_BYTES, "%lld %s", (long long)(time / units[unit].size),
                 units[unit].name);
    else
        snprintf(text, SLU_DURATION_BYTES, "%lld.%0*lld %s", (long long)(time / units[unit].size),
                 digits, (long long)thousandths, units[unit].name);
    return text;
}
