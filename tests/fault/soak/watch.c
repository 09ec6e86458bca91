/* SPDX-License-Identifier: MIT */
/*
 * Detects a standstill and reports what each rank was doing; detects growth.
 *
 * Growth. Each rank is measured about once a second, when it stands still: bytes of its heap in
 * use, resident bytes without shared memory and the messages that it holds, threads and file
 * descriptors. The first half of a long enough life is left out: queues and caches grow to what
 * they need. The least value of the last quarter must not exceed that of the quarter before by more
 * than the limits below; a leak raises the least value as well, and a message that happens to be in
 * flight does not. For threads and descriptors it is the maximum that counts, as there are fewer
 * while a peer is away: the maximum of the last quarter must not exceed that of all before, except
 * for one descriptor of each connection, which it has once something large has come through it. The
 * slope that is printed is that of a line through the second half (least squares).
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "broker.h"

#define SAMPLES_LEAST 8
#define HEAP_LIMIT (16 << 10)
#define RESIDENT_LIMIT (4 << 20)

static int64_t started;
static struct {
    uint32_t lives;
    int64_t heap, resident; /* the most that one has grown */
    double heap_slope, resident_slope;
    int32_t fds, threads;
} growth;

void begin_watch(void)
{
    started = clock_now();
}

double run_time(void)
{
    return (double)(clock_now() - started) / 1e9;
}

static void describe(uint32_t rank)
{
    const struct member *member = &members[rank];
    const struct ledger *ledger = member->ledger;
    printf("#   rank %u%s, start %u, step %llu: %s; %s %s, peer %u, %u requests, %.3f s ago\n",
           rank, member->pid ? "" : " (dead)", member->epoch, (unsigned long long)ledger->step,
           ledger->task, ledger->inside ? "in" : "after",
           call_names[ledger->call < CALLS ? ledger->call : 0], ledger->peer, ledger->count,
           (double)(clock_now() - ledger->since) / 1e9);
}

void complain(const char *format, ...)
{
    va_list arguments;
    if (broken) {
        return;
    }
    broken = true;
    printf("# after %.3f s: ", run_time());
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n# what each rank was doing:\n");
    for (uint32_t i = 0; i < RANKS_MAX; i++) {
        if (members[i].epoch) {
            describe(i);
        }
    }
}

void watch_members(const struct options *options)
{
    int64_t now = clock_now();
    for (uint32_t i = 0; i < options->ranks; i++) {
        struct member *member = &members[i];
        uint64_t beats = member->ledger->beats;
        if (!member->pid || beats != member->beats) {
            member->beats = beats;
            member->seen = now;
        } else if (now - member->seen > SLUICE_S(options->hang)) {
            complain("rank %u has hung for %u s", i, options->hang);
        }
    }
}

void begin_life(struct member *member)
{
    member->sample_count = 0;
}

void add_sample(struct member *member, const struct count *count)
{
    if (member->sample_count < SAMPLES_MAX) {
        member->samples[member->sample_count++] =
            (struct sample){run_time(), count->heap, count->resident, count->fds, count->threads};
    }
}

enum measure { HEAP, RESIDENT, FDS, THREADS };

static int64_t value_of(const struct sample *sample, enum measure measure)
{
    switch (measure) {
    case HEAP:
        return sample->heap;
    case RESIDENT:
        return sample->resident;
    case FDS:
        return sample->fds;
    default:
        return sample->threads;
    }
}

static int64_t least(const struct member *member, uint32_t from, uint32_t to, enum measure measure)
{
    int64_t value = INT64_MAX;
    for (uint32_t i = from; i < to; i++) {
        int64_t other = value_of(&member->samples[i], measure);
        value = other < value ? other : value;
    }
    return value;
}

static int64_t rise(const struct member *member, enum measure measure)
{
    uint32_t count = member->sample_count;
    return least(member, count - count / 4, count, measure) -
           least(member, count / 2, count - count / 4, measure);
}

static int64_t most(const struct member *member, uint32_t from, uint32_t to, enum measure measure)
{
    int64_t value = 0;
    for (uint32_t i = from; i < to; i++) {
        int64_t other = value_of(&member->samples[i], measure);
        value = other > value ? other : value;
    }
    return value;
}

static int64_t rise_above_all(const struct member *member, enum measure measure)
{
    uint32_t count = member->sample_count;
    return most(member, count - count / 4, count, measure) -
           most(member, 0, count - count / 4, measure);
}

/* Per second, in the second half. */
static double slope(const struct member *member, enum measure measure)
{
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (uint32_t i = member->sample_count / 2; i < member->sample_count; i++) {
        double at = member->samples[i].at;
        double value = (double)value_of(&member->samples[i], measure);
        n += 1;
        x += at;
        y += value;
        xx += at * at;
        xy += at * value;
    }
    double spread = n * xx - x * x;
    return spread > 0 ? (n * xy - x * y) / spread : 0;
}

static void note_most(int64_t *most, int64_t value)
{
    *most = value > *most ? value : *most;
}

static int64_t count_connections(void)
{
    int64_t ranks = 0;
    for (uint32_t i = 0; i < RANKS_MAX; i++) {
        ranks += members[i].epoch != 0;
    }
    return ENDS * (ranks - 1);
}

void end_life(uint32_t rank, struct member *member)
{
    if (member->sample_count < SAMPLES_LEAST) {
        return;
    }
    int64_t heap = rise(member, HEAP);
    int64_t resident = rise(member, RESIDENT);
    int64_t fds = rise_above_all(member, FDS);
    int64_t threads = rise_above_all(member, THREADS);
    growth.lives++;
    note_most(&growth.heap, heap);
    note_most(&growth.resident, resident);
    growth.fds = fds > growth.fds ? (int32_t)fds : growth.fds;
    growth.threads = threads > growth.threads ? (int32_t)threads : growth.threads;
    const struct sample *last = &member->samples[member->sample_count - 1];
    printf("# rank %u, start %u, %u samples: heap %lld KiB (rise %lld B, slope %.0f B/s),"
           " resident %lld KiB (rise %lld KiB, slope %.0f B/s), %d fds, %d threads\n",
           rank, member->epoch, member->sample_count, (long long)last->heap >> 10, (long long)heap,
           slope(member, HEAP), (long long)last->resident >> 10, (long long)resident >> 10,
           slope(member, RESIDENT), last->fds, last->threads);
    /* A sanitizer keeps freed memory. */
    if (fds > count_connections() || threads > 0 ||
        (!SANITIZED && (heap > HEAP_LIMIT || resident > RESIDENT_LIMIT))) {
        complain("rank %u grows: heap by %lld B, resident by %lld B, fds by %lld, threads by %lld",
                 rank, (long long)heap, (long long)resident, (long long)fds, (long long)threads);
    }
}

static void print_calls(void)
{
    uint64_t total = 0;
    uint32_t kinds = 0;
    for (uint32_t call = 0; call < CALLS; call++) {
        uint64_t count = 0;
        for (uint32_t i = 0; i < RANKS_MAX; i++) {
            count += members[i].ledger->calls[call];
        }
        total += count;
        kinds += count > 0;
        if (count == 0) {
            printf("# never called: %s\n", call_names[call]);
        }
    }
    printf("# %llu calls of %u of %u kinds\n", (unsigned long long)total, kinds, (unsigned)CALLS);
}

/* Returns the time in us within which a share (in hundredths) of all losses was known. */
static unsigned long long time_of(const uint64_t *losses, uint64_t all, uint32_t share)
{
    uint64_t count = 0;
    uint32_t place = 0;
    for (; place + 1 < LOSS_TIMES; place++) {
        count += losses[place];
        if (count * 100 >= all * share) {
            break;
        }
    }
    return 1ULL << place;
}

static void print_losses(void)
{
    uint64_t losses[LOSS_TIMES] = {0};
    uint64_t all = 0;
    int64_t longest = 0;
    uint64_t met_again = 0;
    for (uint32_t i = 0; i < RANKS_MAX; i++) {
        const struct ledger *ledger = members[i].ledger;
        met_again += ledger->met_again;
        longest = ledger->longest_loss > longest ? ledger->longest_loss : longest;
        for (uint32_t k = 0; k < LOSS_TIMES; k++) {
            losses[k] += ledger->losses[k];
            all += ledger->losses[k];
        }
    }
    if (all > 0) {
        printf("# %llu times somebody lost a killed peer: half knew it within %llu us, 99 %% within"
               " %llu us, all within %lld us; %llu times it was met again before that\n",
               (unsigned long long)all, time_of(losses, all, 50), time_of(losses, all, 99),
               (long long)longest / 1000, (unsigned long long)met_again);
    }
}

bool conclude_watch(const struct options *options)
{
    uint64_t bytes = 0;
    uint64_t suspected = 0;
    uint64_t ended[9] = {0};
    for (uint32_t i = 0; i < RANKS_MAX; i++) {
        bytes += members[i].ledger->bytes;
        suspected += members[i].ledger->suspected;
        for (uint32_t class = 0; class < COUNT(ended); class ++) {
            ended[class] += members[i].ledger->ended[class];
        }
    }
    print_calls();
    print_losses();
    printf(
        "# %llu requests succeeded, %.1f MiB checked; with killed or parted peers %llu ended as"
        " peer lost, %llu timeout, %llu cancelled; %llu losses were seen before they were told\n",
        (unsigned long long)ended[0], (double)bytes / 1048576,
        (unsigned long long)ended[SLUICE_CLASS_PEER_LOST],
        (unsigned long long)ended[SLUICE_CLASS_TIMEOUT],
        (unsigned long long)ended[SLUICE_CLASS_CANCELLED], (unsigned long long)suspected);
    printf("# of %u lives that were long enough, the most that one grew: heap %lld B, resident %lld"
           " KiB, fds %d, threads %d\n",
           growth.lives, (long long)growth.heap, (long long)growth.resident >> 10, growth.fds,
           growth.threads);
    if (broken) {
        printf("# seed %llu\n", (unsigned long long)options->seed);
    }
    return !broken;
}
