/* SPDX-License-Identifier: MIT */
/* What is known of requests that the device did not report, and what remains unknown. */
#ifndef ENGINE_PROOF_H
#define ENGINE_PROOF_H

#include <check.h>

void proof_add_tests(TCase *tcase);

#endif
