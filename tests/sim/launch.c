/* SPDX-License-Identifier: MIT */
#include "launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum { MOST = 16, OWN = 5 };

const char *const *sim_launch_environment(uint32_t rank, uint32_t ranks, const char *const *more)
{
    struct {
        const char *list[MOST + 1]; /* the first field */
        char own[OWN][64];
    } *made = sim_alloc(1, sizeof *made);
    uint32_t count = 0;
    snprintf(made->own[0], sizeof made->own[0], "SLUICE_RANK=%u", rank);
    snprintf(made->own[1], sizeof made->own[1], "SLUICE_RANKS=%u", ranks);
    /* Rank 0 is on the first host. */
    snprintf(made->own[2], sizeof made->own[2], "SLUICE_ROOT=10.0.0.1:7470");
    snprintf(made->own[3], sizeof made->own[3], "SLUICE_JOB=launch-1-7470");
    snprintf(made->own[4], sizeof made->own[4], "SLUICE_SECRET_FILE=/run/secret");
    for (; count < OWN; count++) {
        made->list[count] = made->own[count];
    }
    for (; more != NULL && *more != NULL && count < MOST; more++) {
        made->list[count++] = *more;
    }
    return made->list;
}

void sim_launch_environment_free(const char *const *environment)
{
    free((void *)(uintptr_t)environment);
}

bool sim_launch_file(const char *path, char *text, size_t room)
{
    bool wrong = strcmp(path, "/run/wrong-secret") == 0;
    if (!wrong && strcmp(path, "/run/secret") != 0) {
        return false;
    }
    snprintf(text, room, "the %s secret of all ranks\n", wrong ? "wrong" : "right");
    return true;
}
