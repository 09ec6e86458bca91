/* SPDX-License-Identifier: MIT */
/* Tests of handles when the generation of ids starts again, and of handles that nobody gave out. */
#ifndef ENGINE_HANDLES_H
#define ENGINE_HANDLES_H

#include <check.h>

void handles_add_tests(TCase *tcase);

#endif
