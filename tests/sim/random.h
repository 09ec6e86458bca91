/* SPDX-License-Identifier: MIT */
/*
 * Random numbers that follow from the seed. Each purpose has a stream of its own, so that a fault
 * that is left out does not change the schedule up to where it was.
 */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

enum sim_stream {
    SIM_SCHEDULE,
    SIM_NETWORK,
    SIM_FAULTS,
    SIM_PROGRAM,
    SIM_SYSTEM,
    SIM_FABRIC,
    SIM_STREAMS
};

extern uint64_t sim_random_states[SIM_STREAMS];

void sim_random_begin(uint64_t seed);

/*
 * The step of the generator, also for streams that others keep. SplitMix64: G. Steele, D. Lea,
 * C. Flood, "Fast splittable pseudorandom number generators".
 */
static inline uint64_t sim_next(uint64_t *at)
{
    uint64_t mixed = *at += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

static inline uint64_t sim_random(enum sim_stream stream)
{
    return sim_next(&sim_random_states[stream]);
}

/* Returns a number below a limit, which is not 0. A multiplication is cheaper than a division. */
static inline uint64_t sim_below(enum sim_stream stream, uint64_t limit)
{
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)sim_random(stream) * limit >> 64);
}

/* Returns true once in so many calls. */
static inline bool sim_once_in(enum sim_stream stream, uint64_t calls)
{
    return sim_below(stream, calls) == 0;
}

/* Returns a number up to most; small ones are as likely as large ones. */
uint64_t sim_spread(enum sim_stream stream, uint64_t most);

#endif
