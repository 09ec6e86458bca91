/* SPDX-License-Identifier: MIT */
#include "random.h"

uint64_t sim_random_states[SIM_STREAMS];

void sim_random_begin(uint64_t seed)
{
    for (int i = 0; i < SIM_STREAMS; i++) {
        sim_random_states[i] = sim_next(&seed);
    }
}

uint64_t sim_spread(enum sim_stream stream, uint64_t most)
{
    uint64_t bits = 64 - (uint64_t)__builtin_clzll(most | 1);
    uint64_t drawn = sim_random(stream) & ((UINT64_C(2) << sim_below(stream, bits)) - 1);
    return drawn <= most ? drawn : most;
}
