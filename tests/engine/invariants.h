/* SPDX-License-Identifier: MIT */
/* What holds of an engine between any two calls, whatever happened before. */
#ifndef ENGINE_INVARIANTS_H
#define ENGINE_INVARIANTS_H

#include "fake.h"

/*
 * Every slot is in exactly one list and in the state of that list; credits in
 * hand and in flight add up; nothing of a finished call is left; what is kept
 * aside is counted; the clock will be looked at before anything is due; and the
 * device holds nothing that the engine does not know of.
 */
void check_engine(const struct slu_engine *engine);

#endif
