/* SPDX-License-Identifier: MIT */
/*
 * The log: the beginning of its lines, and its treatment of a flood. Guarantee: every line of one
 * place is printed or counted, and the counts are logged; all errors are printed.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#include "../support/process.h"
#include "../support/suite.h"

#define THREADS 4
#define FLOOD 2000

struct heard {
    uint32_t lines;
    uint64_t told; /* by "more like this" */
    uint32_t level;
    char last[256];
};

static void hear(uint32_t level, const char *line, void *user)
{
    struct heard *heard = user;
    unsigned long long more;
    heard->level = level;
    snprintf(heard->last, sizeof(heard->last), "%s", line);
    if (strstr(line, "more like this") && sscanf(line, "%llu more", &more) == 1) {
        heard->told += more;
    } else {
        heard->lines++;
    }
}

static void log_one(int number)
{
    slu_log(SLUICE_LOG_WARN, "flood %d", number);
}

/* Waits until the period of all lines logged so far is over. */
static void pass_period(void)
{
    int64_t end = clock_now() + SLU_LOG_PERIOD + SLUICE_MS(10);
    while (clock_now() < end) {
        usleep(20000);
    }
}

static void *flood(void *unused)
{
    for (int i = 0; i < FLOOD; i++) {
        log_one(i);
    }
    return unused;
}

/*
 * The first line is printed; the others are counted, and reported with the next line of the place.
 */
TEST(flood_is_counted)
{
    struct heard heard = {0};
    require_ok(sluice_log_set(SLUICE_LOG_WARN, hear, &heard));
    log_one(0);
    require(heard.lines == 1 && strcmp(heard.last, "flood 0") == 0, "%s", heard.last);
    flood(NULL);
    require(heard.lines >= SLU_LOG_BURST, "%u", heard.lines);
    pass_period();
    log_one(1);
    require(strcmp(heard.last, "flood 1") == 0, "%s", heard.last);
    require(heard.lines + heard.told == FLOOD + 2 && heard.told > 0, "%u lines, %llu told",
            heard.lines, (unsigned long long)heard.told);
    require_ok(sluice_log_set(SLUICE_LOG_WARN, NULL, NULL));
}

/* If the place logs nothing more, the next line of another place reports the count. */
TEST(line_of_another_place_reports_the_count)
{
    struct heard heard = {0};
    require_ok(sluice_log_set(SLUICE_LOG_WARN, hear, &heard));
    flood(NULL);
    pass_period();
    slu_log(SLUICE_LOG_ERROR, "something else");
    require(heard.lines + heard.told == FLOOD + 1 && heard.told > 0, "%u lines, %llu told",
            heard.lines, (unsigned long long)heard.told);
    require(strcmp(heard.last, "something else") == 0 && heard.level == SLUICE_LOG_ERROR, "%s",
            heard.last);
    require_ok(sluice_log_set(SLUICE_LOG_WARN, NULL, NULL));
}

/* Setting another function reports the count to the old one. */
TEST(setting_a_function_reports_the_count)
{
    struct heard heard = {0};
    struct heard later = {0};
    require_ok(sluice_log_set(SLUICE_LOG_WARN, hear, &heard));
    flood(NULL);
    require_ok(sluice_log_set(SLUICE_LOG_WARN, hear, &later));
    require(heard.lines + heard.told == FLOOD && heard.level == SLUICE_LOG_WARN,
            "%u lines, %llu told", heard.lines, (unsigned long long)heard.told);
    require_words(heard.last, "more like this in s: flood");
    require(later.lines == 0 && later.told == 0, "%u lines", later.lines);
    require_ok(sluice_log_set(SLUICE_LOG_WARN, NULL, NULL));
}

TEST(all_errors_are_printed)
{
    struct heard heard = {0};
    require_ok(sluice_log_set(SLUICE_LOG_WARN, hear, &heard));
    for (int i = 0; i < FLOOD; i++) {
        slu_log(SLUICE_LOG_ERROR, "error %d", i);
    }
    require(heard.lines == FLOOD && heard.told == 0, "%u lines", heard.lines);
    require_ok(sluice_log_set(SLUICE_LOG_WARN, NULL, NULL));
}

/* Lines below the level are not counted. */
TEST(lines_below_the_level_are_not_counted)
{
    struct heard heard = {0};
    require_ok(sluice_log_set(SLUICE_LOG_ERROR, hear, &heard));
    flood(NULL);
    require_ok(sluice_log_set(SLUICE_LOG_WARN, hear, &heard));
    log_one(7);
    require(heard.lines == 1 && heard.told == 0, "%u lines, %llu told", heard.lines,
            (unsigned long long)heard.told);
    require_ok(sluice_log_set(SLUICE_LOG_WARN, NULL, NULL));
}

/* Threads that log the same line at once: no line is lost, and none is reported twice. */
TEST(threads_that_log_the_same)
{
    struct heard heard = {0};
    pthread_t threads[THREADS];
    require_ok(sluice_log_set(SLUICE_LOG_WARN, hear, &heard));
    for (int i = 0; i < THREADS; i++) {
        require_ok(pthread_create(&threads[i], NULL, flood, NULL));
    }
    for (int i = 0; i < THREADS; i++) {
        require_ok(pthread_join(threads[i], NULL));
    }
    require_ok(sluice_log_set(SLUICE_LOG_WARN, NULL, NULL));
    require(heard.lines + heard.told == THREADS * FLOOD, "%u lines, %llu told", heard.lines,
            (unsigned long long)heard.told);
}

/* A child that is forked during a flood logs on, and does not report lines of its parent. */
static void child_logs(void)
{
    struct heard heard = {0};
    if (sluice_log_set(SLUICE_LOG_WARN, hear, &heard) != 0 || heard.told != 0) {
        _exit(1);
    }
    flood(NULL);
    if (sluice_log_set(SLUICE_LOG_WARN, NULL, NULL) != 0) {
        _exit(2);
    }
    _exit(heard.lines + heard.told == FLOOD ? 0 : 3);
}

/* ThreadSanitizer does not understand locks that a child initializes anew. */
static bool instrumented(void)
{
    return SANITIZED;
}

TEST(children_of_a_flood, .unless = instrumented)
{
    struct heard heard = {0};
    pthread_t threads[THREADS];
    struct sluice_context *context = open_context();
    require_ok(sluice_log_set(SLUICE_LOG_WARN, hear, &heard));
    for (int i = 0; i < THREADS; i++) {
        require_ok(pthread_create(&threads[i], NULL, flood, NULL));
    }
    for (int i = 0; i < 5; i++) {
        int status;
        pid_t child = fork();
        require(child >= 0, "fork: %s", strerror(errno));
        if (child == 0) {
            child_logs();
        }
        require(waitpid(child, &status, 0) == child && WIFEXITED(status) &&
                    WEXITSTATUS(status) == 0,
                "status %#x", status);
    }
    for (int i = 0; i < THREADS; i++) {
        require_ok(pthread_join(threads[i], NULL));
    }
    require_ok(sluice_log_set(SLUICE_LOG_WARN, NULL, NULL));
    require(heard.lines + heard.told == THREADS * FLOOD, "%u lines, %llu told", heard.lines,
            (unsigned long long)heard.told);
    sluice_context_close(context);
}

/* Lines on standard error: level, host, process and rank. */
TEST(standard_error)
{
    char host[65] = "", wanted[256], line[256];
    int ends[2], status;
    ssize_t length;
    require_ok(gethostname(host, sizeof(host) - 1));
    require_ok(pipe(ends));
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[1]);
        slu_log(SLUICE_LOG_WARN, "one");
        slu_log_set_rank(7);
        slu_log(SLUICE_LOG_ERROR, "two");
        slu_log(SLUICE_LOG_INFO, "three");
        _exit(0);
    }
    close(ends[1]);
    require(waitpid(child, &status, 0) == child && status == 0, "status %#x", status);
    length = read(ends[0], line, sizeof(line) - 1);
    require(length > 0, "nothing was written");
    line[length] = '\0';
    snprintf(wanted, sizeof(wanted),
             "sluice: warn: %.64s pid %ld: one\nsluice: error: %.64s pid %ld rank 7: two\n", host,
             (long)child, host, (long)child);
    require(strcmp(line, wanted) == 0, "%s, not %s", line, wanted);
    close(ends[0]);
}

/* Reads what a child printed to its standard error; the child must end well. */
static void hear_child(void (*function)(void), char *said, size_t size)
{
    int ends[2], status;
    ssize_t length;
    require_ok(pipe(ends));
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[1]);
        function();
        _exit(0);
    }
    close(ends[1]);
    require(waitpid(child, &status, 0) == child && status == 0, "status %#x", status);
    length = read(ends[0], said, size - 1);
    require(length > 0, "nothing was written");
    said[length] = '\0';
    close(ends[0]);
}

static void know_better(void)
{
    setenv("SLUICE_RANK", "0", 1);
    slu_log_set_rank(3);
    slu_log(SLUICE_LOG_WARN, "one");
}

/* The first line reads the environment; a rank that attributes set before it must stay. */
TEST(rank_of_attributes_stays)
{
    char said[256];
    hear_child(know_better, said, sizeof(said));
    require(strstr(said, " rank 3: one"), "%s", said);
}

static void keep_errno(void)
{
    errno = EXDEV;
    slu_log(SLUICE_LOG_INFO, "nobody hears of it");
    if (errno != EXDEV)
        _exit(1);
    for (int i = 0; i < 1000; i++)
        slu_log(SLUICE_LOG_WARN, "many");
    close(STDERR_FILENO);
    errno = EXDEV;
    if (sluice_log_set(SLUICE_LOG_WARN, NULL, NULL) != 0 || errno != EXDEV)
        _exit(2);
}

TEST(errno_is_kept)
{
    char said[256];
    hear_child(keep_errno, said, sizeof(said));
    require(strstr(said, "many"), "%s", said);
}

int main(void)
{
    static const struct tests groups[] = {{"log", WIRE_SELF, 30}};
    unsetenv("SLUICE_RANK");
    unsetenv("SLUICE_LOG");
    return run_groups("log", groups, COUNT(groups));
}
