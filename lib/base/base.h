/* SPDX-License-Identifier: MIT */
/*
 * The ground floor: what all parts of the library share. Each file of this folder
 * includes what it stands on by name; those above it may include all at once.
 *
 *   macros, bytes, clock, interrupt, probe, uncancelled  stand on nothing
 *   error, words, descriptor   on these
 *   random, environment        on error
 *   called                     on descriptor
 *   log                        on environment and called
 *   misuse, spelling           on log
 *   attr, fork                 on misuse, and on log and descriptor
 *   object, awaited            on fork
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
#include "base/interrupt.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/misuse.h"
#include "base/object.h"
#include "base/probe.h"
#include "base/random.h"
#include "base/uncancelled.h"

#endif
