/* SPDX-License-Identifier: MIT */
#include "fair.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"
#include "suite.h"

/* How often watchers read the clock, and how much of the time between two readings counts. */
#define TICK INT64_C(5000000)
#define CREDIT (4 * TICK)

/* The first processors of those that this process may use. */
#define WATCHERS 8

/* Instead of the time at which it last read the clock, if a watcher sleeps. */
#define ASLEEP (INT64_MAX / 2)
/* How long a caller waits for watchers that it has woken; and how often. */
#define WAKE_MOST INT64_C(1000000000)
#define WAKE_STEP INT64_C(1000000)

/* Shared with all tests, which are forked later. */
struct ticks {
    pthread_mutex_t lock;
    atomic_int watchers;
    atomic_int wanted;              /* whether the running test has asked for the time; a futex */
    _Atomic int64_t seen[WATCHERS]; /* time at which each watcher last read the clock */
    _Atomic int64_t counted;        /* time withheld until then has been added */
    _Atomic int64_t withheld;       /* since it began */
    atomic_uint turn;               /* odd while the others change */
};

static struct ticks *ticks;
static pid_t watchers[WATCHERS];

/*
 * Returns since when a processor has not run; time before that is counted. A processor whose
 * watcher sleeps is taken to run.
 */
static int64_t withheld_since(void)
{
    int64_t first = ticks->seen[0];
    for (int i = 1; i < ticks->watchers; i++) {
        int64_t seen = ticks->seen[i];
        first = seen < first ? seen : first;
    }
    return first + CREDIT > ticks->counted ? first + CREDIT : ticks->counted;
}

/* Counts what was withheld until now, and notes that the watcher looked, or that it sleeps. */
static void look(int watcher, bool sleeps)
{
    int64_t now, since;
    pthread_mutex_lock(&ticks->lock);
    now = clock_now();
    since = withheld_since();
    ticks->turn++;
    if (since < now) {
        ticks->withheld += now - since;
        ticks->counted = now;
    }
    ticks->seen[watcher] = sleeps ? ASLEEP : now;
    ticks->turn++;
    pthread_mutex_unlock(&ticks->lock);
}

/* Sleeps until a test asks for the time: few do, and to wake up 200 times a second is not free. */
static void rest(int watcher)
{
    look(watcher, true);
    while (!ticks->wanted) {
        syscall(SYS_futex, &ticks->wanted, FUTEX_WAIT, 0, NULL, NULL, 0);
    }
    look(watcher, false);
}

static bool all_awake(void)
{
    for (int i = 0; i < ticks->watchers; i++) {
        if (ticks->seen[i] == ASLEEP) {
            return false;
        }
    }
    return true;
}

static void wake_watchers(void)
{
    int64_t end = clock_now() + WAKE_MOST;
    ticks->wanted = 1;
    syscall(SYS_futex, &ticks->wanted, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    while (!all_awake() && clock_now() < end) {
        let_pass(WAKE_STEP);
    }
}

static _Noreturn void watch(pid_t parent, int watcher, int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)processor, &set);
    sched_setaffinity(0, sizeof(set), &set);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent) {
        if (!ticks->wanted) {
            rest(watcher);
        }
        let_pass(TICK);
        look(watcher, false);
    }
    _exit(0);
}

static struct ticks *make_ticks(void)
{
    pthread_mutexattr_t attr;
    struct ticks *made =
        mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) {
        return NULL;
    }
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&made->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    return made;
}

void fair_start(void)
{
    pid_t parent = getpid();
    cpu_set_t usable;
    struct ticks *made = make_ticks();
    if (!made || sched_getaffinity(0, sizeof(usable), &usable) != 0) {
        return;
    }
    ticks = made;
    for (int processor = 0; processor < CPU_SETSIZE && ticks->watchers < WATCHERS; processor++) {
        int watcher = ticks->watchers;
        if (!CPU_ISSET((size_t)processor, &usable)) {
            continue;
        }
        ticks->seen[watcher] = ASLEEP;
        watchers[watcher] = fork();
        if (watchers[watcher] == 0) {
            watch(parent, watcher, processor);
        } else if (watchers[watcher] > 0) {
            ticks->watchers++;
        }
    }
}

void fair_stop(void)
{
    for (int i = 0; ticks && i < ticks->watchers; i++) {
        kill(watchers[i], SIGKILL);
        waitpid(watchers[i], NULL, 0);
    }
    ticks = NULL;
}

void fair_rest(void)
{
    if (ticks) {
        ticks->wanted = 0;
    }
}

int64_t fair_now(void)
{
    int64_t since, withheld;
    unsigned turn;
    if (!ticks || ticks->watchers == 0) {
        return clock_now();
    }
    if (!ticks->wanted) {
        wake_watchers();
    }
    do {
        turn = ticks->turn;
        since = withheld_since();
        withheld = ticks->withheld;
    } while (turn % 2 != 0 || turn != ticks->turn);
    int64_t now = clock_now();
    /* If watchers are late themselves, they have not counted that time yet. */
    return (now < since ? now : since) - withheld;
}

struct span span_begin(void)
{
    /* The first call of a test wakes the watchers, which counts for neither clock. */
    int64_t fair = fair_now();
    return (struct span){clock_now(), fair};
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
