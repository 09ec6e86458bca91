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
 * A place in the source that logs, which only so many lines in a period get by: further ones
 * are counted, and their number is told later. Errors are never held back.
 */
struct slu_log_place {
    _Atomic int64_t since; /* begin of its period; 0: it has logged nothing */
    atomic_uint count;     /* lines since */
    _Atomic uint64_t more; /* that were held back, and were not told */
    atomic_bool listed;
    struct slu_log_place *next; /* of those listed, once it is */
    uint32_t level;             /* this and the next under the lock of the log */
    char text[120];             /* of the last line that was given out */
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
/* Lines to standard error have it from now on. */
void slu_log_set_rank(uint32_t rank);
/* A line to standard error, whose end is added. */
void slu_say(const char *format, ...) SLU_PRINTF(1, 2);
/* What sluice_log_set() does, of a level that is one. */
void slu_log_set(enum sluice_log_level level, sluice_log_function function, void *user);
/* Around fork(2). */
void slu_log_before_fork(void);
void slu_log_in_parent(void);
void slu_log_in_child(void);

#endif
