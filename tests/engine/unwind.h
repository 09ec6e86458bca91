/* SPDX-License-Identifier: MIT */
/* A life of each kind of object, cut short by a failure. */
#ifndef ENGINE_UNWIND_H
#define ENGINE_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

enum failing {
    FAIL_CALL,      /* of the library to the device */
    FAIL_ALLOCATION /* of memory, by the library or the device */
};

/*
 * Makes, uses and ends everything. The n-th step that can fail does, which must be reported and
 * leave nothing behind. Returns false if there is no n-th step: then all succeeded.
 */
bool unwinds(uint32_t n, enum failing what);

#endif
