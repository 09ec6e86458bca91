/* SPDX-License-Identifier: MIT */
/* Invariants of an engine that hold between any two calls, whatever happened before. */
#ifndef ENGINE_INVARIANTS_H
#define ENGINE_INVARIANTS_H

#include "fake.h"

/*
 * Every slot is in exactly one list and in the state of that list; credits in hand and in flight
 * add up; nothing of a finished call is left; spilled results are counted; the clock will be read
 * before anything is due; and the device holds nothing that is unknown to the engine.
 */
void check_engine(const struct slu_engine *engine);

#endif
