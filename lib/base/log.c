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

#include "base/caller_name.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/uncancelled.h"

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
static _Atomic int64_t rank = -1; /* or it is not known */
static char host[65];
/* Places that have held lines back once: they stay, since each is for ever. */
static _Atomic(struct slu_log_place *) listed;

/*
 * By one write(2), so that lines of several processes do not mix, and not by
 * dprintf(3), which loses its buffer if standard error is closed.
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

/* What is known better than by the environment stays: it is read when it is first needed. */
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

/* The lock is held. Lines of many processes can be told apart when they are put together. */
static void give_out(uint32_t level, const char *line)
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

/* The lock is held: tells how many lines of the place were held back, if any were. */
static void tell_more(struct slu_log_place *place, int64_t since, int64_t now)
{
    uint64_t more = atomic_exchange(&place->more, 0);
    char line[240];

    if (more == 0)
        return;
    snprintf(line, sizeof line, "%llu more like this in %.1f s: %s", (unsigned long long)more,
             (double)(now - since) / 1e9, place->text);
    give_out(place->level, line);
}

/* Places whose flood has lasted that long, of which no line may come any more that tells it. */
static void tell_all(int64_t now, int64_t least)
{
    for (struct slu_log_place *at = atomic_load(&listed); at != NULL; at = at->next) {
        int64_t since = atomic_load(&at->since);

        if (now - since >= least)
            tell_more(at, since, now);
    }
}

void slu_log_set(enum sluice_log_level level, sluice_log_function new_function, void *user)
{
    int saved = errno;

    pthread_once(&once, read_environment);
    pthread_mutex_lock(&lock);
    /* Whoever heard of the others hears of these. */
    giving = true;
    tell_all(slu_now(), 0);
    giving = false;
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
 * Whether a line may pass: the first of each period and a few more, and whatever is an
 * error. *since is when the period began in which what is not told yet was held back.
 */
static bool passes(struct slu_log_place *place, uint32_t level, int64_t now, int64_t *since)
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
    if (!passes(place, level, now, &since)) {
        hold_back(place);
        return;
    }
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&lock);
    giving = true;
    if (now - since >= SLU_LOG_PERIOD)
        tell_more(place, since, now);
    tell_all(now, SLU_LOG_PERIOD);
    give_out(level, line);
    place->level = level;
    snprintf(place->text, sizeof place->text, "%.119s", line);
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
    /* What the parent held back it tells itself. */
    for (struct slu_log_place *at = atomic_load(&listed); at != NULL; at = at->next)
        atomic_store(&at->more, 0);
}
