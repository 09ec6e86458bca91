/* SPDX-License-Identifier: MIT */
/* Prepared lists on a device that refuses, that is small, or whose peers go. */
#ifndef ENGINE_LISTS_H
#define ENGINE_LISTS_H

#include <check.h>

void lists_add_tests(TCase *tcase);

#endif
