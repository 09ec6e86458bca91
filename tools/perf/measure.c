/* SPDX-License-Identifier: MIT */
/*
 * Measures one work after the other, in each size: first some iterations to warm up, and
 * then phases until the iterations are done, or the duration is over. The leader sends the
 * number of iterations of each phase to the others.
 */
#include "perf.h"

/* The warm-up is a tenth of the iterations, within these limits. */
#define LEAST_WARM_UP 10
#define MOST_WARM_UP 1000
/* The share of the duration that a phase should take, and the share that is enough to stop. */
#define PHASE_SHARE 0.3
#define ENOUGH_SHARE 0.97

static int run_phase(struct team *team, struct run *run, uint64_t count)
{
    bool idle = (run->work->flags & WORK_PAIR) != 0 && team->role > 1;
    int result;

    if (team_broadcast(team, &count, sizeof count) != 0)
        return -1;
    run->count = count;
    run->ticks = 0;
    if (count == 0)
        return 0;
    if (idle)
        result = team_meet(team);
    else
        result = (team->role == 0 ? run->work->lead : run->work->follow)(team, run);
    return result;
}

static uint64_t warm_up_of(const struct plan *plan)
{
    uint64_t warm_up = plan->iterations / 10;

    if (plan->warm_up != 0)
        return plan->warm_up;
    if (plan->iterations == 0 || warm_up < LEAST_WARM_UP)
        return LEAST_WARM_UP;
    return warm_up < MOST_WARM_UP ? warm_up : MOST_WARM_UP;
}

/* Returns the iterations of the next phase, from the time of the last one; 0 to stop. */
static uint64_t next_count(const struct team *team, const struct run *run, double seconds)
{
    double duration = (double)team->plan.duration / 1e9;
    double each = (double)run->ticks * run->tick_length / 1e9 / (double)run->count;
    double wanted = duration * PHASE_SHARE;

    if (team->plan.iterations != 0)
        return run->done == 0 ? team->plan.iterations : 0;
    if (run->done != 0 && seconds >= duration * ENOUGH_SHARE)
        return 0;
    wanted = wanted < duration - seconds ? wanted : duration - seconds;
    if (each <= 0 || wanted / each > 1e9)
        return UINT64_C(1000000);
    return wanted / each >= 1 ? (uint64_t)(wanted / each) : 1;
}

static void conclude(const struct team *team, const struct run *run, double seconds,
                     struct result *result)
{
    const struct histogram *times = run->times;
    double us = ticks_length() / 1000 / ((run->work->flags & WORK_HALF) != 0 ? 2 : 1);
    double messages = (double)run->done * run->work->blocks *
                      ((run->work->flags & WORK_PAIR) != 0 ? 1 : team->peers) *
                      ((run->work->flags & WORK_HALF) != 0 ? 2 : 1);

    *result = (struct result){
        .work = run->work,
        .size = run->size,
        .iterations = run->done,
        .seconds = seconds,
        .mean = histogram_mean(times) * us,
        .least = histogram_least(times) * us,
        .median = histogram_quantile(times, 0.5) * us,
        .p99 = histogram_quantile(times, 0.99) * us,
        .p999 = histogram_quantile(times, 0.999) * us,
        .most = histogram_most(times) * us,
    };
    if (seconds > 0) {
        result->rate = messages / seconds;
        result->bandwidth = messages * (double)run->size / seconds / (1 << 20);
    }
}

/* Runs all phases as the leader, which alone records times. */
static int lead_all(struct team *team, const struct options *options, struct run *run)
{
    struct result result;
    struct histogram *times = run->times;
    double seconds = 0;
    uint64_t count;

    histogram_clear(times);
    run->times = NULL;
    if (run_phase(team, run, warm_up_of(&team->plan)) != 0)
        return -1;
    run->times = times;
    while ((count = next_count(team, run, seconds)) != 0) {
        report_progress(options, run, seconds * 1e9 / (double)team->plan.duration);
        if (run_phase(team, run, count) != 0)
            return -1;
        run->done += count;
        run->tick_length = ticks_length();
        seconds += (double)run->ticks * run->tick_length / 1e9;
    }
    report_progress(options, NULL, 0);
    if (run_phase(team, run, 0) != 0)
        return -1;
    conclude(team, run, seconds, &result);
    report_result(team, options, &result);
    return 0;
}

static int follow_all(struct team *team, struct run *run)
{
    do {
        if (run_phase(team, run, 0) != 0)
            return -1;
    } while (run->count != 0);
    return 0;
}

static int measure_one(struct team *team, const struct options *options, const struct work *work,
                       size_t size, struct histogram *times)
{
    struct run run = {.work = work, .size = size, .times = times, .tick_length = ticks_length()};

    team->same_for_all = (work->flags & WORK_SAME) != 0;
    if (size > 0)
        team_shape(team, size);
    if (team->role == 0)
        return lead_all(team, options, &run);
    run.times = NULL;
    return follow_all(team, &run);
}

int measure_all(struct team *team, const struct options *options)
{
    const struct plan *plan = &team->plan;
    struct histogram *times = histogram_make();
    int result = times != NULL ? 0 : team_complain(team, "no memory");

    if (team->role == 0 && result == 0)
        report_begin(team, options);
    for (uint32_t i = 0; result == 0 && i < plan->work_count; i++) {
        const struct work *work = &perf_works[plan->works[i]];
        bool sizeless = (work->flags & WORK_SIZELESS) != 0;

        for (uint32_t j = 0; result == 0 && j < (sizeless ? 1 : plan->size_count); j++)
            result =
                measure_one(team, options, work, sizeless ? work->least : plan->sizes[j], times);
    }
    if (team->role == 0 && result == 0)
        report_end(options);
    histogram_free(times);
    return result;
}
