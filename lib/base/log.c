/* SPDX-License-Identifier: MIT */
/* The log: one line at a time, to the program's function or to standard error. */
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

#include "base/caller_name.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/uncancelled.h"

static const char *const level_names[SLU_LOG_LEVELS] = {"none", "error", "warn", "info", "debug"};

/*
 * Held while a line is written, so that two never mix. fork(2) does not wait for it, since a log
 * function of the program may take long, and may fork.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool writing; /* this thread holds the lock */
/* Held, with the lock, while the variables below are changed. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic uint32_t threshold = SLUICE_LOG_WARN;
static sluice_log_function function;
static void *function_user;
static _Atomic int64_t rank = -1; /* -1: not known */
static char host[65];
/* Places that have held back a line. They are never removed, since places are static. */
static _Atomic(struct slu_log_place *) listed;

/*
 * Writes a line by one write(2), so that lines of several processes do not mix. dprintf(3) would
 * lose its buffer if standard error is closed.
 */
void slu_say(const char *format, ...)
{
    char line[768];
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
    while (SLU_UNCANCELLED(write(STDERR_FILENO, line, (size_t)length)) < 0 && errno == EINTR)
        ;
}

/* Read when it is first needed. A rank that was set before takes precedence. */
static void read_environment(void)
{
    int saved = errno;
    int64_t none = -1;
    const char *value = slu_env_value(SLU_ENV_LOG);
    int level = value != NULL ? slu_env_find_choice(SLU_ENV_LOG, value) : SLUICE_LOG_WARN;
    const char *given = slu_env_value(SLU_ENV_RANK);
    uint32_t known;

    if (given != NULL && slu_parse_number(given, 0, UINT32_MAX, &known) == 0)
        atomic_compare_exchange_strong(&rank, &none, (int64_t)known);
    if (gethostname(host, sizeof host) < 0)
        snprintf(host, sizeof host, "?");
    if (level >= 0)
        atomic_store(&threshold, (uint32_t)level);
    else
        slu_say("sluice: SLUICE_LOG=%s is not none, error, warn, info or debug; using warn", value);
    errno = saved;
}

void slu_log_set_rank(uint32_t new_rank)
{
    atomic_store(&rank, (int64_t)new_rank);
}

/* The lock is held. Host, process and rank tell lines of many processes apart. */
static void write_line(uint32_t level, const char *line)
{
    char ranked[32] = "";
    int64_t known = atomic_load(&rank);

    if (function != NULL) {
        slu_program_enter();
        function(level, line, function_user);
        slu_program_leave();
        return;
    }
    if (known >= 0)
        snprintf(ranked, sizeof ranked, " rank %lld", (long long)known);
    slu_say("sluice: %s: %s pid %ld%s: %s", level_names[level], host, (long)getpid(), ranked, line);
}

/* Logs how many lines of a place were held back, if any. The lock is held. */
static void report_held_back(struct slu_log_place *place, int64_t since, int64_t now)
{
    uint64_t more = atomic_exchange(&place->more, 0);
    char line[240];

    if (more == 0)
        return;
    snprintf(line, sizeof line, "%llu more like this in %.1f s: %s", (unsigned long long)more,
             (double)(now - since) / 1e9, place->text);
    write_line(place->level, line);
}

/* Reports all places whose period has lasted this long, since they may never log again. */
static void report_all_held_back(int64_t now, int64_t least)
{
    for (struct slu_log_place *at = atomic_load(&listed); at != NULL; at = at->next) {
        int64_t since = atomic_load(&at->since);

        if (now - since >= least)
            report_held_back(at, since, now);
    }
}

void slu_log_set(enum sluice_log_level level, sluice_log_function new_function, void *user)
{
    int saved = errno;

    pthread_once(&once, read_environment);
    pthread_mutex_lock(&lock);
    /*
     * The old function got the first lines of a place, so it also gets the number of those held
     * back.
     */
    writing = true;
    report_all_held_back(slu_now(), 0);
    writing = false;
    pthread_mutex_lock(&changing);
    atomic_store(&threshold, (uint32_t)level);
    function = new_function;
    function_user = user;
    pthread_mutex_unlock(&changing);
    pthread_mutex_unlock(&lock);
    errno = saved;
}

static void hold_back(struct slu_log_place *place)
{
    atomic_fetch_add(&place->more, 1);
    if (atomic_exchange(&place->listed, true))
        return;
    place->next = atomic_load(&listed);
    while (!atomic_compare_exchange_weak(&listed, &place->next, place))
        ;
}

/*
 * Tells whether a line may pass: the first ones of each period, and every error. *since is set to
 * the begin of the period whose held back lines have not been reported.
 */
static bool may_pass(struct slu_log_place *place, uint32_t level, int64_t now, int64_t *since)
{
    bool expired;

    *since = atomic_load(&place->since);
    expired = *since == 0 || now - *since >= SLU_LOG_PERIOD;
    if (expired && atomic_compare_exchange_strong(&place->since, since, now)) {
        atomic_store(&place->count, 1);
        return true;
    }
    return atomic_fetch_add(&place->count, 1) < SLU_LOG_BURST || level <= SLUICE_LOG_ERROR;
}

void slu_log_at(struct slu_log_place *place, enum sluice_log_level level, const char *format, ...)
{
    int saved = errno;
    int64_t now, since;
    char line[512];
    va_list arguments;

    pthread_once(&once, read_environment);
    if ((uint32_t)level > atomic_load(&threshold))
        return;
    now = slu_now();
    if (!may_pass(place, level, now, &since)) {
        hold_back(place);
        return;
    }
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&lock);
    writing = true;
    if (now - since >= SLU_LOG_PERIOD)
        report_held_back(place, since, now);
    report_all_held_back(now, SLU_LOG_PERIOD);
    write_line(level, line);
    place->level = level;
    snprintf(place->text, sizeof place->text, "%.119s", line);
    writing = false;
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

/* A thread that was writing a line does not exist in the child. */
void slu_log_in_child(void)
{
    pthread_mutex_unlock(&changing);
    if (!writing)
        pthread_mutex_init(&lock, NULL);
    /* The parent itself reports what it held back. */
    for (struct slu_log_place *at = atomic_load(&listed); at != NULL; at = at->next)
        atomic_store(&at->more, 0);
}
