/* SPDX-License-Identifier: MIT */
/* Tests of requests that are longer than a message may be, and posted in parts. */
#ifndef ENGINE_SPLIT_H
#define ENGINE_SPLIT_H

#include <check.h>

void split_add_tests(TCase *tcase);

#endif
