/* SPDX-License-Identifier: MIT */
/* Reading the counters that the engine keeps. */
#include "config.h"

#include "engine/inside.h"

/* The size of sluice_counters in version 0.1. */
#define FIRST_SIZE 456
/* How many entries one of its arrays has. */
#define ROOM(array) (sizeof((struct sluice_counters *)NULL)->array / sizeof(uint64_t))

_Static_assert(SLU_OPCODES <= SLU_COUNTED_OPCODES && SLU_COUNTED_OPCODES <= ROOM(requests) &&
                   ROOM(bytes) == ROOM(requests),
               "room for each enum sluice_opcode");
_Static_assert(SLUICE_CLASS_PROTOCOL < SLU_COUNTED_CLASSES && SLU_COUNTED_CLASSES <= ROOM(failed),
               "room for each enum sluice_error_class");

static void add_peer(const struct slu_counts *counts, struct sluice_counters *counters)
{
    for (uint32_t i = 0; i < SLU_COUNTED_OPCODES; i++) {
        counters->requests[i] += counts->requests[i];
        counters->bytes[i] += counts->bytes[i];
    }
    for (uint32_t i = 0; i < SLU_COUNTED_CLASSES; i++)
        counters->failed[i] += counts->failed[i];
    counters->refused += counts->refused;
    counters->queue_full += counts->queue_full;
    counters->forgotten += counts->forgotten;
    counters->resets += counts->resets;
    counters->arrivals += counts->arrivals;
    counters->strays += counts->strays;
}

static void add_engine(const struct slu_engine *engine, struct sluice_counters *counters)
{
    for (uint32_t i = 0; i < engine->peer_count; i++)
        add_peer(&engine->peers[i].counts, counters);
    add_peer(&engine->past, counters);
    counters->discarded = engine->discarded;
    counters->polls = engine->polls;
    counters->sleeps = engine->sleeps;
    counters->wakes = engine->wakes;
}

int slu_counters(const struct slu_engine *engine, const struct slu_peer *peer,
                 struct sluice_counters *counters)
{
    struct sluice_counters known = {0};
    int error = slu_info_check(counters, sizeof known, FIRST_SIZE, "sluice_counters");

    if (error < 0)
        return error;
    if (peer != NULL)
        add_peer(&peer->counts, &known);
    else
        add_engine(engine, &known);
    slu_info_copy(counters, &known, sizeof known);
    return 0;
}
