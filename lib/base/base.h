/* SPDX-License-Identifier: MIT */
/*
 * Declarations that all parts of the library share. Files of this folder include by name what they
 * depend on; files of other folders may include all at once by this header.
 *
 *   macros, bytes, clock, probe, uncancelled  depend on nothing
 *   error, thread_text, descriptor   on these
 *   random, environment, library     on error
 *   caller_name, thread              on descriptor
 *   log                              on environment and caller_name
 *   misuse, env_check                on log
 *   attr, fork                       on misuse, log and descriptor
 *   object, async_call               on fork
 */
#ifndef SLU_BASE_H
#define SLU_BASE_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/misuse.h"
#include "base/object.h"
#include "base/probe.h"
#include "base/random.h"
#include "base/uncancelled.h"

#endif
