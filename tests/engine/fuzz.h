/* SPDX-License-Identifier: MIT */
/* Random sequences of calls on a device with random faults. */
#ifndef ENGINE_FUZZ_H
#define ENGINE_FUZZ_H

#include <stdint.h>

/*
 * Runs a sequence of about a hundred calls, all of whose choices follow from the seed. After each
 * call the engine is consistent, and every result agrees with the device's ledger, came once and in
 * time, and has no buffer in use.
 */
void fuzz_run(uint64_t seed);

/*
 * Runs the sequences of a fixed list of seeds. With SLUICE_FUZZ_SECONDS=n in the environment, runs
 * new ones for n seconds, and prints each seed before its sequence. A failure names its seed;
 * SLUICE_FUZZ_SEED=s runs only that sequence.
 */
void fuzz_run_all(void);
/* SLUICE_FUZZ_SECONDS, or 0. */
unsigned fuzz_seconds(void);

#endif
