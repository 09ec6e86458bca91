/* SPDX-License-Identifier: MIT */
/* Works in which all processes do the same: barriers and connections. */
#include "perf.h"

int barrier_lead(struct team *team, struct run *run)
{
    if (team_meet(team) != 0)
        return -1;
    for (uint64_t i = 0; i < run->count; i++) {
        uint64_t begin = ticks_now(), taken;

        if (sluice_node_barrier(team->node, NULL, 0, SLUICE_BARRIER_DEFAULT, team->deadline) != 0)
            return team_fail(team, "barrier");
        taken = ticks_now() - begin;
        histogram_add(run->times, taken);
        run->ticks += taken;
    }
    return 0;
}

/* Measures connecting, without the exchange of endpoints, which is not part of the library. */
int connect_lead(struct team *team, struct run *run)
{
    if (team_meet(team) != 0)
        return -1;
    for (uint64_t i = 0; i < run->count; i++) {
        struct sluice_multichannel *channels = NULL;
        uint64_t taken = 0;

        if (link_connect(team, &channels, &taken) != 0)
            return -1;
        histogram_add(run->times, taken);
        run->ticks += taken;
        /* Wait for all: a process that closes early would be lost to those still connecting. */
        if (team_meet(team) != 0) {
            sluice_multichannel_close(channels);
            return -1;
        }
        sluice_multichannel_close(channels);
    }
    return 0;
}
