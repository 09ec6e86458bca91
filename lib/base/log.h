/* SPDX-License-Identifier: MIT */
/* The log: one line at a time, to the program's function or to standard error. */
#ifndef SLU_LOG_H
#define SLU_LOG_H

#include <stdatomic.h>
#include <stdint.h>

#include <sluice/log.h>

#include "base/macros.h"

#define SLU_LOG_LEVELS (SLUICE_LOG_DEBUG + 1)

/*
 * A place in the source that logs. It writes at most SLU_LOG_BURST lines in a period; further lines
 * are counted, and their number is logged later. Errors are never held back.
 */
struct slu_log_place {
    _Atomic int64_t since; /* begin of its period; 0: it has not logged yet */
    atomic_uint count;     /* lines since */
    _Atomic uint64_t more; /* lines held back and not reported yet */
    atomic_bool listed;
    struct slu_log_place *next; /* valid if listed */
    uint32_t level;             /* this and text are protected by the lock of the log */
    char text[120];             /* the last line that was written */
};
#define SLU_LOG_PERIOD SLUICE_S(1)
#define SLU_LOG_BURST 128u

#define slu_log(level, ...)                                \
    do {                                                   \
        static struct slu_log_place slu_log_place_;        \
        slu_log_at(&slu_log_place_, (level), __VA_ARGS__); \
    } while (0)
void slu_log_at(struct slu_log_place *place, enum sluice_log_level level, const char *format, ...)
    SLU_PRINTF(3, 4);
/* Adds the rank to lines on standard error from now on. */
void slu_log_set_rank(uint32_t rank);
/* Writes a line to standard error, and adds the newline. */
void slu_say(const char *format, ...) SLU_PRINTF(1, 2);
/* sluice_log_set() for a level that was checked. */
void slu_log_set(enum sluice_log_level level, sluice_log_function function, void *user);
/* Called around fork(2). */
void slu_log_before_fork(void);
void slu_log_in_parent(void);
void slu_log_in_child(void);

#endif
