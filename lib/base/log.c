/* SPDX-License-Identifier: MIT */
/* The log: one line at a time, to the program's function or to stderr. */
#include "config.h"

#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "base/called.h"
#include "base/environment.h"

static const char *const level_names[SLU_LOG_LEVELS] = {"none", "error", "warn", "info", "debug"};

/*
 * The lock is held while a line is given out, so that two never mix; no fork(2)
 * waits for it, for a function of the program may take its time, and may fork.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool giving; /* this thread holds it */
/* Taken while the next ones are changed, with the lock. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic uint32_t threshold = SLUICE_LOG_WARN;
static sluice_log_function function;
static void *function_user;

/*
 * By one write(2), so that lines of several processes do not mix, and not by
 * dprintf(3), which loses its buffer if standard error is closed.
 */
void slu_say(const char *format, ...)
{
    char line[640];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    if ((size_t)length > sizeof line - 2)
        length = sizeof line - 2;
    line[length++] = '\n';
    while (write(STDERR_FILENO, line, (size_t)length) < 0 && errno == EINTR)
        ;
}

static void read_environment(void)
{
    const char *value = slu_env_value(SLU_ENV_LOG);
    int level = value != NULL ? slu_env_find_word(SLU_ENV_LOG, value) : SLUICE_LOG_WARN;

    if (level >= 0)
        atomic_store(&threshold, (uint32_t)level);
    else
        slu_say("sluice: SLUICE_LOG=%s is not none, error, warn, info or debug; using warn", value);
}

void slu_log_set(enum sluice_log_level level, sluice_log_function new_function, void *user)
{
    pthread_once(&once, read_environment);
    pthread_mutex_lock(&lock);
    pthread_mutex_lock(&changing);
    atomic_store(&threshold, (uint32_t)level);
    function = new_function;
    function_user = user;
    pthread_mutex_unlock(&changing);
    pthread_mutex_unlock(&lock);
}

void slu_log(enum sluice_log_level level, const char *format, ...)
{
    int saved = errno;
    char line[512];
    va_list arguments;

    pthread_once(&once, read_environment);
    if ((uint32_t)level > atomic_load(&threshold))
        return;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&lock);
    giving = true;
    if (function != NULL) {
        slu_program_enter();
        function(level, line, function_user);
        slu_program_leave();
    } else {
        slu_say("sluice: %s: %s", level_names[level], line);
    }
    giving = false;
    pthread_mutex_unlock(&lock);
    errno = saved;
}

void slu_log_before_fork(void)
{
    pthread_mutex_lock(&changing);
}

void slu_log_in_parent(void)
{
    pthread_mutex_unlock(&changing);
}

/* Another thread that was giving out a line is not there to end it. */
void slu_log_in_child(void)
{
    pthread_mutex_unlock(&changing);
    if (!giving)
        pthread_mutex_init(&lock, NULL);
}
