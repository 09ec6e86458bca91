/* SPDX-License-Identifier: MIT */
/* Tests of results that nobody takes: which are kept, and for how long. */
#ifndef ENGINE_RESULTS_H
#define ENGINE_RESULTS_H

#include <check.h>

void results_add_tests(TCase *tcase);

#endif
