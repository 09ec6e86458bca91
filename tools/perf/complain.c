/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "perf.h"

/* Prints the line in one write, so that lines of several ranks do not mix. */
int team_complain(const struct team *team, const char *format, ...)
{
    char text[1024], who[32] = "";
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (team->ranks > 1)
        snprintf(who, sizeof who, "rank %u: ", team->rank);
    dprintf(STDERR_FILENO, "sluice-perf: %s%s\n", who, text);
    return -1;
}

int team_fail(const struct team *team, const char *what)
{
    return team_complain(team, "%s: %s", what, sluice_last_error());
}
