/* SPDX-License-Identifier: MIT */
/* What a program is told of the counts that the engine keeps on its way. */
#include "config.h"

#include "engine.h"

_Static_assert(sizeof((struct sluice_counters *)NULL)->requests ==
                   SLU_COUNTED_OPCODES * sizeof(uint64_t),
               "one count for each operation");
_Static_assert(sizeof((struct sluice_counters *)NULL)->failed ==
                   SLU_COUNTED_CLASSES * sizeof(uint64_t),
               "one count for each class");

static void add_peer(const struct slu_counts *counts, struct sluice_counters *counters)
{
    for (uint32_t i = 0; i < SLU_COUNTED_OPCODES; i++) {
        counters->requests[i] += counts->done[i].requests;
        counters->bytes[i] += counts->done[i].bytes;
    }
    for (uint32_t i = 0; i < SLU_COUNTED_CLASSES; i++)
        counters->failed[i] += counts->failed[i];
    counters->refused += counts->refused;
    counters->queue_full += counts->queue_full;
    counters->forgotten += counts->forgotten;
    counters->resets += counts->resets;
}

int slu_counters(const struct slu_engine *engine, const struct slu_peer *peer,
                 struct sluice_counters *counters)
{
    if (counters == NULL || counters->size != sizeof *counters)
        return slu_misuse(EINVAL, "counters is NULL, or its size is not %zu", sizeof *counters);
    *counters = (struct sluice_counters){.size = sizeof *counters};
    if (peer != NULL) {
        add_peer(&peer->counts, counters);
        return 0;
    }
    for (uint32_t i = 0; i < engine->peer_count; i++)
        add_peer(&engine->peers[i].counts, counters);
    counters->discarded = engine->discarded;
    counters->polls = engine->polls;
    counters->sleeps = engine->sleeps;
    counters->wakes = engine->wakes;
    return 0;
}
