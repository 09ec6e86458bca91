/* SPDX-License-Identifier: MIT */
/* Failures by mistakes of the program. */
#ifndef SLU_MISUSE_H
#define SLU_MISUSE_H

#include "base/error.h"
#include "base/macros.h"

/*
 * slu_fail() and slu_fail_null() for mistakes of the program, which no device, peer or load can
 * cause or cure. With SLUICE_MISUSE=abort they do not return, but name the call. sluice_errors(7)
 * lists them.
 */
int slu_misuse(int err, const char *format, ...) SLU_PRINTF(2, 3);
#define slu_misuse_null(...) slu_none(slu_misuse(__VA_ARGS__))

#endif
