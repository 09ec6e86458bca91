/* SPDX-License-Identifier: MIT */
/* Prepared lists on a device that refuses posts, that is small, or whose peers are removed. */
#ifndef ENGINE_LISTS_H
#define ENGINE_LISTS_H

#include <check.h>

void lists_add_tests(TCase *tcase);

#endif
