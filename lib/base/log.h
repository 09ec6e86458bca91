/* SPDX-License-Identifier: MIT */
/* The log: one line at a time, to the program's function or to standard error. */
#ifndef SLU_LOG_H
#define SLU_LOG_H

#include <sluice/log.h>

#include "base/macros.h"

#define SLU_LOG_LEVELS (SLUICE_LOG_DEBUG + 1)

void slu_log(enum sluice_log_level level, const char *format, ...) SLU_PRINTF(2, 3);
/* A line to standard error, whose end is added. */
void slu_say(const char *format, ...) SLU_PRINTF(1, 2);
/* What sluice_log_set() does, of a level that is one. */
void slu_log_set(enum sluice_log_level level, sluice_log_function function, void *user);
/* Around fork(2). */
void slu_log_before_fork(void);
void slu_log_in_parent(void);
void slu_log_in_child(void);

#endif
