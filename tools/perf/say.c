/* SPDX-License-Identifier: MIT */
#include <stdarg.h>

#include "perf.h"

static void say_who(const struct team *team)
{
    if (team->ranks > 1)
        fprintf(stderr, "sluice-perf: rank %u: ", team->rank);
    else
        fputs("sluice-perf: ", stderr);
}

int team_complain(const struct team *team, const char *format, ...)
{
    va_list arguments;

    say_who(team);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return -1;
}

int team_fail(const struct team *team, const char *what)
{
    return team_complain(team, "%s: %s", what, sluice_last_error());
}
