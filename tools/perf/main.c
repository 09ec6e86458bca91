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
    /* Close only after all are done: a process that closes early would be lost to the others. */
    if (result == 0)
        result = team_meet(&team);
    /* After an error, end the started peers first: closing would make them report errors. */
    if (result != 0)
        result = local_end(result);
    team_close(&team);
    if (result == 0)
        result = local_end(result);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
