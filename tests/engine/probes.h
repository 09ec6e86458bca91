/* SPDX-License-Identifier: MIT */
/* Tests of probes: when a peer is probed, and when it is lost. */
#ifndef ENGINE_PROBES_H
#define ENGINE_PROBES_H

#include <check.h>

void probes_add_tests(TCase *tcase);

#endif
