/* SPDX-License-Identifier: MIT */
/* A transport that does nothing, in the place of those of the library; one queue at a time. */
#ifndef BENCH_NOOP_H
#define BENCH_NOOP_H

#include "engine/engine.h"

/* At most so many completions wait to be polled. */
#define NOOP_RING 64

/* So many polls give nothing before one gives what there is. */
extern uint32_t noop_empty_polls;

#endif
