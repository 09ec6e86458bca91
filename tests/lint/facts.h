/* SPDX-License-Identifier: MIT */
/*
 * Facts about functions of lib/base/, for analyzers that see one file at a time: scripts/lint
 * includes this before each file except those that define them. Without it, an analyzer takes a
 * failure for a possible success, and outputs that are set only on success for unset.
 */
#ifndef LINT_FACTS_H
#define LINT_FACTS_H

#include "config.h"

#include "base/error.h"
#include "base/misuse.h"

static inline int fact_negative(int error)
{
    if (error >= 0)
        __builtin_unreachable();
    return error;
}

#define slu_fail(...) fact_negative(slu_fail(__VA_ARGS__))
#define slu_misuse(...) fact_negative(slu_misuse(__VA_ARGS__))
#define slu_none(error) ((void)slu_none(error), (void *)0)

#endif
