/* SPDX-License-Identifier: MIT */
/* The root's decisions: which failure counts, when ranks are ended, and the exit status. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"

/* A killed rank may be reported later than one that failed as a consequence. */
#define SETTLE_TIME (SECOND / 10)
#define SETTLE_TIME_HOSTS (SECOND / 2)
/* timeout(1) signals the process and then its group: that is one signal. */
#define ONE_SIGNAL_TIME (3 * SECOND / 10)

struct outcome {
    bool ended, failed, killed;
    uint32_t status; /* of the exit, or the signal */
};

struct verdict {
    struct outcome *ranks;
    uint32_t running, failed;
    uint32_t *order; /* with --keep-going: ranks that failed, in the order of their ends */
    uint32_t ordered, reported;
    int first; /* the exit status; 0: no rank has failed */
    bool first_killed;
    bool blamed; /* the rank that counts was named */
    int refused; /* exit status because ranks could not start */
    int asked;   /* the signal that asked the ranks to end; or 0 */
    int64_t patience;
    int64_t settle_at, next_at, interrupted_at; /* 0: not set */
    int next;                                   /* the signal at next_at */
};

void verdict_init(struct launcher *launcher)
{
    struct verdict *verdict = calloc(1, sizeof *verdict);

    if (verdict != NULL) {
        verdict->ranks = calloc(launcher->job.ranks, sizeof *verdict->ranks);
        verdict->order = calloc(launcher->job.ranks, sizeof *verdict->order);
    }
    if (verdict == NULL || verdict->ranks == NULL || verdict->order == NULL)
        die(STATUS_ARGUMENTS, "no memory for %u ranks", launcher->job.ranks);
    verdict->running = launcher->job.ranks;
    verdict->patience = PATIENCE;
    launcher->verdict = verdict;
}

static void later(struct verdict *verdict, int number)
{
    verdict->next = number;
    verdict->next_at = clock_now() + verdict->patience;
}

/* Sends the ranks SIGTERM, and SIGKILL when their time is up. */
static void end_others(struct launcher *launcher)
{
    struct verdict *verdict = launcher->verdict;

    if (verdict->next == SIGKILL || verdict->running == 0)
        return;
    later(verdict, SIGKILL);
    signal_all(launcher, SIGTERM);
}

static int exit_status(const struct outcome *outcome)
{
    return (int)outcome->status + (outcome->killed ? 128 : 0);
}

/* Returns the name of a signal as kill(1) has it, or "?". */
static const char *signal_name(uint32_t number)
{
    static const char *const names[] = {
        [SIGABRT] = "ABRT",     [SIGALRM] = "ALRM", [SIGBUS] = "BUS",       [SIGFPE] = "FPE",
        [SIGHUP] = "HUP",       [SIGILL] = "ILL",   [SIGINT] = "INT",       [SIGIO] = "POLL",
        [SIGKILL] = "KILL",     [SIGPIPE] = "PIPE", [SIGPROF] = "PROF",     [SIGPWR] = "PWR",
        [SIGQUIT] = "QUIT",     [SIGSEGV] = "SEGV", [SIGSTKFLT] = "STKFLT", [SIGSYS] = "SYS",
        [SIGTERM] = "TERM",     [SIGTRAP] = "TRAP", [SIGUSR1] = "USR1",     [SIGUSR2] = "USR2",
        [SIGVTALRM] = "VTALRM", [SIGXCPU] = "XCPU", [SIGXFSZ] = "XFSZ"};

    return number < sizeof names / sizeof *names && names[number] != NULL ? names[number] : "?";
}

/* Prints how a rank failed. */
static void report(struct launcher *launcher, uint32_t rank, const char *more)
{
    const struct outcome *outcome = &launcher->verdict->ranks[rank];

    if (outcome->killed)
        say(launcher, "rank %u: killed by signal %u (%s)%s", rank, outcome->status,
            signal_name(outcome->status), more);
    else
        say(launcher, "rank %u: exit status %u%s", rank, outcome->status, more);
}

/*
 * Reports the ranks that failed since the last call: killed ones first, since others often fail
 * because of them.
 */
static void report_new(struct launcher *launcher)
{
    struct verdict *verdict = launcher->verdict;
    char more[64];

    snprintf(more, sizeof more, "; %u of %u ranks still run", verdict->running,
             launcher->job.ranks);
    for (int killed = 1; killed >= 0; killed--)
        for (uint32_t i = verdict->reported; i < verdict->ordered; i++)
            if (verdict->ranks[verdict->order[i]].killed == (killed == 1))
                report(launcher, verdict->order[i], more);
    verdict->reported = verdict->ordered;
}

/* Chooses among ranks that failed at the same time: a killed one, then the lowest rank. */
static void blame(struct launcher *launcher)
{
    struct verdict *verdict = launcher->verdict;
    uint32_t chosen = 0;

    verdict->settle_at = 0;
    if (verdict->blamed || verdict->failed == 0)
        return;
    verdict->blamed = true;
    for (uint32_t i = 0; i < launcher->job.ranks; i++) {
        const struct outcome *outcome = &verdict->ranks[i];

        if (!outcome->failed ||
            (verdict->first != 0 && (verdict->first_killed || !outcome->killed)))
            continue;
        verdict->first = exit_status(outcome);
        verdict->first_killed = outcome->killed;
        chosen = i;
    }
    report(launcher, chosen, "");
}

/* With --keep-going the first rank that exited by itself decides; a killed one if there is none. */
static void count_failed(struct verdict *verdict, const struct outcome *outcome)
{
    if (verdict->first != 0 && (!verdict->first_killed || outcome->killed))
        return;
    verdict->first = exit_status(outcome);
    verdict->first_killed = outcome->killed;
}

static bool take_outcome(struct verdict *verdict, const struct frame_ended *ended)
{
    struct outcome *outcome = &verdict->ranks[ended->rank];

    if (outcome->ended)
        return false;
    *outcome = (struct outcome){
        .ended = true,
        .failed = ended->killed || ended->status != 0,
        .killed = ended->killed,
        .status = ended->status,
    };
    verdict->running--;
    verdict->failed += outcome->failed;
    return true;
}

void verdict_ended(struct launcher *launcher, const struct frame_ended *ended)
{
    struct verdict *verdict = launcher->verdict;

    if (!take_outcome(verdict, ended) || !verdict->ranks[ended->rank].failed)
        return;
    if (launcher->keep_going) {
        verdict->order[verdict->ordered++] = ended->rank;
        count_failed(verdict, &verdict->ranks[ended->rank]);
    }
    if (!verdict->blamed && verdict->settle_at == 0)
        verdict->settle_at =
            clock_now() + (launcher->child_count > 0 ? SETTLE_TIME_HOSTS : SETTLE_TIME);
}

/*
 * Ranks that could not start make the job fail, and lost ones count as killed. Without a text the
 * ranks had not started when a signal came.
 */
void verdict_failed(struct launcher *launcher, const struct frame_failed *failed)
{
    struct verdict *verdict = launcher->verdict;
    int unstarted = verdict->asked != 0 ? verdict->asked : SIGTERM;
    uint32_t count = 0;
    char ranks[64];

    for (uint32_t i = 0; i < failed->count; i++) {
        struct frame_ended ended = {
            .rank = failed->first + i,
            .killed = true,
            .status = (uint32_t)(failed->text[0] != '\0' ? SIGKILL : unstarted),
        };

        if (take_outcome(verdict, &ended)) {
            count_failed(verdict, &verdict->ranks[ended.rank]);
            count++;
        }
    }
    snprintf(ranks, sizeof ranks, failed->count > 1 ? "ranks %u to %u" : "rank %u", failed->first,
             failed->first + failed->count - 1);
    if (failed->code == 0 && count == 0) {
        if (failed->text[0] != '\0')
            say(launcher, "%s", failed->text);
        return;
    }
    if (failed->code != 0) {
        say(launcher, "%s", failed->text);
        verdict->refused = verdict->refused != 0 ? verdict->refused : (int)failed->code;
    } else if (failed->text[0] != '\0' && launcher->keep_going) {
        say(launcher, "%s; %u of %s lost; %u of %u ranks still run", failed->text, count, ranks,
            verdict->running, launcher->job.ranks);
    } else if (failed->text[0] != '\0') {
        say(launcher, "%s; %u of %s lost", failed->text, count, ranks);
    }
    if (launcher->keep_going && failed->code == 0)
        return;
    verdict->blamed = true;
    verdict->settle_at = 0;
    verdict->patience = LOST_PATIENCE;
    end_others(launcher);
}

/*
 * Ranks that ignore SIGINT are ended as after a failure, and at once by a second one. Ranks that
 * end because of a signal do not end the others with --keep-going.
 */
void verdict_signal(struct launcher *launcher, int number)
{
    struct verdict *verdict = launcher->verdict;
    int64_t now = clock_now();

    verdict->asked = number;
    if (number != SIGINT) {
        signal_all(launcher, number);
        if (number == SIGTERM && launcher->keep_going && verdict->next != SIGKILL)
            later(verdict, SIGKILL);
    } else if (verdict->interrupted_at == 0) {
        verdict->interrupted_at = now;
        signal_all(launcher, SIGINT);
        if (verdict->next_at == 0)
            later(verdict, SIGTERM);
    } else if (now - verdict->interrupted_at > ONE_SIGNAL_TIME) {
        signal_all(launcher, SIGKILL);
    }
}

void verdict_tick(struct launcher *launcher, int64_t now)
{
    struct verdict *verdict = launcher->verdict;

    if (verdict->settle_at != 0 && now >= verdict->settle_at) {
        verdict->settle_at = 0;
        if (launcher->keep_going) {
            report_new(launcher);
        } else {
            blame(launcher);
            end_others(launcher);
        }
    }
    if (verdict->next_at != 0 && now >= verdict->next_at) {
        int number = verdict->next;

        verdict->next_at = 0;
        if (number == SIGTERM)
            later(verdict, SIGKILL);
        signal_all(launcher, number);
    }
}

int64_t verdict_next(const struct launcher *launcher)
{
    const struct verdict *verdict = launcher->verdict;
    int64_t next = verdict->settle_at;

    if (next == 0 || (verdict->next_at != 0 && verdict->next_at < next))
        next = verdict->next_at;
    return next;
}

void verdict_finish(struct launcher *launcher)
{
    struct verdict *verdict = launcher->verdict;
    uint32_t survivors = launcher->job.ranks - verdict->failed;

    report_new(launcher);
    if (verdict->refused != 0) {
        verdict->first = verdict->refused;
    } else if (!launcher->keep_going) {
        blame(launcher);
    } else if (verdict->failed > 0) {
        say(launcher, "%u of %u ranks succeeded", survivors, launcher->job.ranks);
        if (verdict->first_killed && survivors > 0 && verdict->asked == 0)
            verdict->first = STATUS_SURVIVORS;
    }
}

int verdict_status(const struct launcher *launcher)
{
    if (launcher->verdict->first == 0 && launcher->lost)
        return STATUS_LOST;
    return launcher->verdict->first;
}
