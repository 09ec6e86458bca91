/* SPDX-License-Identifier: MIT */
/* Tests of the receives that count arrivals, on a device with few entries and with faults. */
#ifndef ENGINE_ARRIVALS_H
#define ENGINE_ARRIVALS_H

#include <check.h>

void arrivals_add_tests(TCase *tcase);

#endif
