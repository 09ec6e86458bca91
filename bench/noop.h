/* SPDX-License-Identifier: MIT */
/* A transport that does nothing, which replaces those of the library; one queue at a time. */
#ifndef BENCH_NOOP_H
#define BENCH_NOOP_H

#include "engine/engine.h"

/* Maximum number of completions that wait to be polled. */
#define NOOP_RING 64

/* Number of empty polls before each poll that returns the completions. */
extern uint32_t noop_empty_polls;

#endif
