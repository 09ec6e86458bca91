/* SPDX-License-Identifier: MIT */
/*
 * What is true of functions of lib/base/, for programs that look at one file at a time:
 * scripts/lint includes this before each file but those that define them. Without it a failure
 * may be a success to them, and each output that is set on success alone is not set.
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
#define slu_fail_null(...) ((void)slu_fail_null(__VA_ARGS__), (void *)0)
#define slu_misuse_null(...) ((void)slu_misuse_null(__VA_ARGS__), (void *)0)
#define slu_none(error) ((void)slu_none(error), (void *)0)

#endif
