/* SPDX-License-Identifier: MIT */
#include "fair.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"
#include "suite.h"

/* How often it looks, and how much of the time between two looks counts. */
#define TICK INT64_C(5000000)
#define CREDIT (4 * TICK)

/* Shared with all tests, which are forked later. */
struct ticks {
    _Atomic int64_t seen;     /* on the clock, when it last looked */
    _Atomic int64_t withheld; /* since it began */
    atomic_uint turn;         /* odd while the others change */
};

static struct ticks *ticks;
static pid_t watcher;

static void look(void)
{
    int64_t now = clock_now();
    int64_t late = now - ticks->seen - CREDIT;
    ticks->turn++;
    ticks->withheld += late > 0 ? late : 0;
    ticks->seen = now;
    ticks->turn++;
}

static _Noreturn void watch(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent) {
        let_pass(TICK);
        look();
    }
    _exit(0);
}

void fair_start(void)
{
    pid_t parent = getpid();
    void *page =
        mmap(NULL, sizeof(*ticks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return;
    }
    ticks = page;
    ticks->seen = clock_now();
    watcher = fork();
    if (watcher == 0) {
        watch(parent);
    }
}

void fair_stop(void)
{
    if (watcher > 0) {
        kill(watcher, SIGKILL);
        waitpid(watcher, NULL, 0);
    }
    watcher = 0;
}

int64_t fair_now(void)
{
    int64_t seen, withheld;
    unsigned turn;
    if (!ticks || watcher < 0) {
        return clock_now();
    }
    do {
        turn = ticks->turn;
        seen = ticks->seen;
        withheld = ticks->withheld;
    } while (turn % 2 != 0 || turn != ticks->turn);
    int64_t now = clock_now();
    /* If it is late itself, it has not counted that yet. */
    return (now < seen + CREDIT ? now : seen + CREDIT) - withheld;
}

struct span span_begin(void)
{
    return (struct span){clock_now(), fair_now()};
}

struct span span_between(struct span begin, struct span end)
{
    return (struct span){end.real - begin.real, end.fair - begin.fair};
}

struct span span_since(struct span begin)
{
    return span_between(begin, span_begin());
}

void check_took(const char *file, int line, struct span took, int64_t least, int64_t most)
{
    if (took.real < least || took.fair >= most) {
        fail_at(file, line, "it took %lld us, %lld of them given, not %lld to %lld",
                (long long)took.real / 1000, (long long)took.fair / 1000, (long long)least / 1000,
                (long long)most / 1000);
    }
}
