/* SPDX-License-Identifier: MIT */
#include "random.h"

static uint64_t state[SIM_STREAMS];

/* SplitMix64: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators". */
uint64_t sim_next(uint64_t *at)
{
    uint64_t mixed = *at += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

void sim_random_begin(uint64_t seed)
{
    for (int i = 0; i < SIM_STREAMS; i++) {
        state[i] = sim_next(&seed);
    }
}

uint64_t sim_random(enum sim_stream stream)
{
    return sim_next(&state[stream]);
}

uint64_t sim_below(enum sim_stream stream, uint64_t limit)
{
    return sim_random(stream) % limit;
}

bool sim_once_in(enum sim_stream stream, uint64_t calls)
{
    return sim_below(stream, calls) == 0;
}

uint64_t sim_spread(enum sim_stream stream, uint64_t most)
{
    uint64_t bits = 64 - (uint64_t)__builtin_clzll(most | 1);
    uint64_t drawn = sim_random(stream) & ((UINT64_C(2) << sim_below(stream, bits)) - 1);
    return drawn <= most ? drawn : most;
}
