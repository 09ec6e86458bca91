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

void sim_random_begin(uint64_t seed);
uint64_t sim_random(enum sim_stream stream);
/* Returns a number below a limit, which is not 0. */
uint64_t sim_below(enum sim_stream stream, uint64_t limit);
/* Returns true once in so many calls. */
bool sim_once_in(enum sim_stream stream, uint64_t calls);
/* Returns a number up to most; small ones are as likely as large ones. */
uint64_t sim_spread(enum sim_stream stream, uint64_t most);
/* The step of the generator, for streams that others keep. */
uint64_t sim_next(uint64_t *state);

#endif
