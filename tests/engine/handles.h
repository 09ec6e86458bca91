/* SPDX-License-Identifier: MIT */
/* Tests of handles when the generation of ids wraps, and of handles that were never given out. */
#ifndef ENGINE_HANDLES_H
#define ENGINE_HANDLES_H

#include <check.h>

void handles_add_tests(TCase *tcase);

#endif
