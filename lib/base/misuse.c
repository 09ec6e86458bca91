/* SPDX-License-Identifier: MIT */
/*
 * Mistakes of the program. They are reported as other failures are, or abort, as SLUICE_MISUSE
 * says.
 */
#include "config.h"

#include "base/misuse.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/caller_name.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/log.h"
#include "base/probe.h"

static bool misuse_aborts;
static char misuse_ignored[64]; /* an unknown value of SLUICE_MISUSE; empty: none */

static void read_environment(void)
{
    const char *value = slu_env_value(SLU_ENV_MISUSE);

    if (value == NULL)
        return;
    misuse_aborts = slu_env_find_choice(SLU_ENV_MISUSE, value) >= 0;
    if (!misuse_aborts)
        snprintf(misuse_ignored, sizeof misuse_ignored, "%s", value);
}

/* Logs an unknown value of SLUICE_MISUSE once, at the first misuse, and keeps the thread's text. */
static void log_ignored(void)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    struct slu_text text;

    if (atomic_flag_test_and_set(&logged))
        return;
    slu_text_save(&text);
    slu_log(SLUICE_LOG_WARN, "SLUICE_MISUSE=%s is not abort, and is ignored", misuse_ignored);
    slu_text_restore(&text);
}

/* Aborts if SLUICE_MISUSE asks for it. The thread's text describes the mistake. */
static void stop_at_misuse(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *name;

    pthread_once(&once, read_environment);
    if (misuse_ignored[0] != '\0')
        log_ignored();
    if (!misuse_aborts)
        return;
    name = slu_caller_name();
    slu_say("sluice: misuse: %s%s%s", name != NULL ? name : "", name != NULL ? ": " : "",
            sluice_last_error());
    abort();
}

int slu_misuse(int err, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    slu_set_text(format, arguments);
    va_end(arguments);
    SLU_PROBE2(failure, err, sluice_last_error());
    stop_at_misuse();
    return -err;
}

/* Here and not in log.c, because misuse depends on the log. */
int sluice_log_set(uint32_t level, sluice_log_function function, void *user)
{
    if (level >= SLU_LOG_LEVELS)
        return slu_misuse(EINVAL, "log level %u is not in 0..%u", level, SLU_LOG_LEVELS - 1);
    slu_log_set(level, function, user);
    return 0;
}
