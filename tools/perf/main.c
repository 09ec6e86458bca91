/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "perf.h"

int main(int argc, char **argv)
{
    struct options options;
    struct team team;
    int result = options_read(&options, argc, argv);

    if (result != 0)
        return result > 0 ? EXIT_SUCCESS : 2;
    result = team_open(&team, &options);
    if (result == 0)
        result = measure_all(&team, &options);
    /* Who closes first would be lost to those who are still at work. */
    if (result == 0)
        result = team_meet(&team);
    /* Peers that this process has started end first: what it closes must not be their error. */
    if (result != 0)
        result = local_end(result);
    team_close(&team);
    if (result == 0)
        result = local_end(result);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
