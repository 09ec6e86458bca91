/* SPDX-License-Identifier: MIT */
/*
 * The log: decisions and observations of the library. Errors of calls are returned, not logged. If
 * the program sets no function, lines go to stderr, with the level, the host, the process and the
 * rank before the text; nothing is ever written to stdout. If one place of the library floods the
 * log, further lines of it are counted, and their number is logged.
 */
#ifndef SLUICE_LOG_H
#define SLUICE_LOG_H

#include <stdint.h>

#include <sluice/macros.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sluice_log_level {
    SLUICE_LOG_NONE = 0,
    SLUICE_LOG_ERROR = 1,
    SLUICE_LOG_WARN = 2, /* the default; SLUICE_LOG in the environment overrides it */
    SLUICE_LOG_INFO = 3,
    SLUICE_LOG_DEBUG = 4
};

/*
 * Receives one line, without its newline. Any thread that is inside the library and the library's
 * own threads may call it, never two at once. It must not call the library.
 */
typedef void (*sluice_log_function)(uint32_t level, const char *line, void *user);

/*
 * Sends lines of the level and below to the function, or to stderr if it is
 * NULL. Process-wide; any thread may call it. -EINVAL: no such level.
 */
SLUICE_EXPORT int sluice_log_set(uint32_t level, sluice_log_function function, void *user);

#ifdef __cplusplus
}
#endif

#endif
