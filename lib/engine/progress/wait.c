/* SPDX-License-Identifier: MIT */
/*
 * Waiting: a wait polls, spins for a while if it may, and then sleeps on the transport's event. No
 * sleep misses an event: arming finds what came before, and what comes later ends the sleep.
 *
 * A wake sets a flag and then writes to the event, in this order. A wait that is not interruptible
 * may consume the event; the flag stays until an interruptible wait has taken it, or until the
 * program polls.
 */
#include "config.h"

#include "engine/progress/wait.h"

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include "engine/progress/progress.h"

/* A wait checks the clock once in this many polls. */
#define SPIN_POLLS 8
/*
 * A spin does not yield during the transport's hot_spin, in which a quick answer comes. Then it
 * yields between polls, so that if ranks outnumber the processors, waiting ones do not slow down
 * those that work. A yield costs little if nothing else can run.
 */
/* A yield that took longer than this, and than a quarter of hot_spin, ran another thread. */
#define EMPTY_YIELD SLUICE_US(1)
/*
 * A yield that took this long ran a thread that computes. The spin then ends, because a sleeper
 * gets the processor back sooner than a spinner. But many peers that yield in turn take as long
 * together: at most PEER_TURN each, so the limit grows with their number up to LONGEST_TURN. A wait
 * for what makes no event could only sleep blindly, so it goes on for longer.
 */
#define LONG_TURN SLUICE_MS(1)
#define PEER_TURN SLUICE_US(20)
#define PATIENT_TURN SLUICE_US(100)
#define LONGEST_TURN SLUICE_MS(32)
/*
 * While peers that wait yield to each other, a spin takes none of them the processor for long, and
 * a sleep costs its peers a system call. So it then lasts this many times longer.
 */
#define CROWDED_FACTOR 16
/*
 * After this many spins in a row that ended in a sleep, or with the time of their wait, waits sleep
 * at once, except those that begin in the first PROBING_TIME of each PROBING_PERIOD. If two ranks
 * share a processor, spins may be in vain: the kernel then lets a thread that yields go on at once,
 * and only a sleep lets the other rank work. Where yields work, they do so only if all ranks spin:
 * one that wakes a sleeper lets it run for longer than a yield does. So all ranks of a host probe
 * at the same time.
 */
#define VAIN_SPINS 8
#define PROBING_PERIOD (INT64_C(1) << 27)
#define PROBING_TIME (PROBING_PERIOD / 32)

/* Sleeps until the queue has an event or something is due. It may also return for no reason. */
static void sleep_on_queue(struct slu_engine *engine, bool interruptible, int64_t until)
{
    struct pollfd fd = {.fd = slu_fd(engine), .events = POLLIN};
    struct timespec timeout;
    int64_t due = slu_earlier(slu_next_due(engine), until);
    int64_t left;

    slu_end_regions(engine);
    if (engine->transport->cq_arm(engine->cq) != 0 || (interruptible && slu_is_woken(engine)))
        return;
    left = due == SLUICE_FOREVER ? 0 : due - slu_now();
    if (due != SLUICE_FOREVER && left <= 0)
        return;
    timeout.tv_sec = left / SLUICE_S(1);
    timeout.tv_nsec = left % SLUICE_S(1);
    engine->sleeps++;
    SLU_PROBE2(sleep_begin, engine, due);
    SLU_UNCANCELLED(ppoll(&fd, 1, due == SLUICE_FOREVER ? NULL : &timeout, NULL));
    SLU_PROBE1(sleep_end, engine);
}

/* All ranks of a host probe at the same time: they have one clock. */
static bool is_probing(int64_t now)
{
    return now % PROBING_PERIOD < PROBING_TIME;
}

static void begin_spin(const struct slu_engine *engine, struct slu_spin *spin, int64_t now)
{
    int64_t time = engine->wait_mode == SLUICE_WAIT_EVENT ? 0 : engine->spin_time;

    if (engine->crowded || (engine->vain > VAIN_SPINS && is_probing(now)))
        time *= CROWDED_FACTOR;
    /*
     * If processors are short, what this waits for comes from a thread that needs one: yield at
     * once.
     */
    spin->hot = engine->crowded ? now : now + engine->transport->hot_spin;
    spin->until =
        engine->wait_mode == SLUICE_WAIT_SPIN ? SLUICE_FOREVER : now + time * (spin->patience + 1);
}

/*
 * Notifies the transport of peers that have not received a message yet: perhaps they have posted no
 * receives.
 */
static SLU_COLD void tell_slow(struct slu_engine *engine)
{
    if (engine->transport->qp_slow == NULL || engine->pending[SLU_SEND_QUEUE] == 0)
        return;
    for (uint32_t i = 0; i < engine->peer_count; i++)
        if (slu_peer_has_message(&engine->peers[i]))
            engine->transport->qp_slow(engine->peers[i].qp);
}

static int64_t processors(void)
{
    static atomic_long known;
    long count = atomic_load_explicit(&known, memory_order_relaxed);

    if (SLU_UNLIKELY(count == 0)) {
        count = sysconf(_SC_NPROCESSORS_ONLN);
        count = count > 0 ? count : 1;
        atomic_store_explicit(&known, count, memory_order_relaxed);
    }
    return count;
}

/* Returns whether a yield of this time was longer than one that runs only peers that wait. */
static bool is_long_turn(const struct slu_engine *engine, const struct slu_spin *spin, int64_t took)
{
    int64_t peers;

    if (SLU_LIKELY(took <= LONG_TURN) || took > LONGEST_TURN)
        return took > LONG_TURN;
    peers = engine->peer_count / processors();
    return took > peers * (spin->patience > 0 ? PATIENT_TURN : PEER_TURN);
}

/* Yields. Returns whether the spin goes on. */
static bool yield(struct slu_engine *engine, struct slu_spin *spin, int64_t now)
{
    int64_t took;
    bool computes;

    sched_yield();
    took = slu_now() - now;
    spin->turn = took;
    computes = is_long_turn(engine, spin, took) && !is_probing(now);
    engine->crowded = !computes && took > EMPTY_YIELD && took > engine->transport->hot_spin / 4;
    atomic_store_explicit(&engine->cq->turn, engine->crowded ? took : 0, memory_order_relaxed);
    if (spin->until == SLUICE_FOREVER)
        return true;
    /* The time of other threads does not count as that of the spin. */
    spin->until = computes ? now : spin->until + took;
    return !computes;
}

bool slu_spin(struct slu_engine *engine, struct slu_spin *spin, int64_t now)
{
    if (spin->until == 0)
        begin_spin(engine, spin, now);
    if (now < spin->hot && now < spin->until)
        return true;
    if (!spin->slow)
        tell_slow(engine);
    spin->slow = true;
    if (now >= spin->until)
        return false;
    return yield(engine, spin, now);
}

void slu_nap(struct slu_engine *engine, int64_t until)
{
    sleep_on_queue(engine, false, until);
}

/* Begins a wait's spin, or ends it at once if the last ones were in vain. */
static void begin_wait(struct slu_engine *engine, struct slu_spin *spin, int64_t now)
{
    if (engine->spinning) /* the last one ended with what its wait was for, or with other work */
        engine->vain = 0;
    engine->spinning = engine->vain < VAIN_SPINS || is_probing(now);
    engine->vain++;
    if (!engine->spinning && engine->wait_mode != SLUICE_WAIT_SPIN)
        spin->until = now;
}

static void spin_or_sleep(struct slu_engine *engine, struct slu_spin *spin, bool interruptible,
                          int64_t until, int64_t now)
{
    if (spin->until == 0)
        begin_wait(engine, spin, now);
    if (slu_spin(engine, spin, now))
        return;
    engine->spinning = false;
    sleep_on_queue(engine, interruptible, until);
}

/* The condition of a wait: ready() returns true, or one request is not pending. */
struct awaited {
    const struct slu_entry *entry; /* or NULL */
    uint64_t id;                   /* of a request of the program, whose result is taken; or 0 */
    int64_t timeout;               /* of the wait for an entry: counts from the first reading */
    bool (*ready)(void *argument);
    void *argument;
};

static inline bool is_ready(const struct awaited *awaited)
{
    return awaited->entry != NULL ? awaited->entry->state != SLU_ENTRY_PENDING
                                  : awaited->ready(awaited->argument);
}

/*
 * Polls up to SPIN_POLLS times until something is complete, because the caller then checks the
 * clock, which costs more than a poll. Polls once if the caller then sleeps, or yields at once.
 * A pause instruction between polls would cost as much as several of them, and many times that in a
 * virtual machine.
 */
static SLU_INLINE int poll_often(struct slu_engine *engine, const struct awaited *awaited)
{
    int polls = engine->wait_mode == SLUICE_WAIT_EVENT || engine->crowded ? 1 : SPIN_POLLS;
    uint32_t most = awaited->entry != NULL ? 1 : UINT32_MAX; /* completions */
    int count;

    if (slu_id_is_of(awaited->id, SLU_RECEIVE_QUEUE)) {
        do
            slu_poll_next(engine, SLU_RECEIVE_QUEUE, awaited->id, &count);
        while (count == 0 && --polls > 0);
    } else if (slu_id_is_of(awaited->id, SLU_SEND_QUEUE)) {
        do
            slu_poll_next(engine, SLU_SEND_QUEUE, awaited->id, &count);
        while (count == 0 && --polls > 0);
    } else {
        do
            count = slu_poll_queue(engine, most);
        while (count == 0 && --polls > 0);
    }
    return count;
}

/* Waits: 1 if ready, 0 if the time is up, -EINTR if woken. */
static int wait_until(struct slu_engine *engine, const struct awaited *awaited, bool interruptible,
                      int64_t until)
{
    struct slu_spin spin = {0};
    int64_t now = 0;

    for (;;) {
        bool busy = poll_often(engine, awaited) > 0;

        if (busy) {
            slu_look_at_clock(engine, 1);
        } else {
            now = slu_now();
            slu_act_on_time(engine, now);
        }
        if (is_ready(awaited))
            return 1;
        if (interruptible && slu_is_woken(engine)) {
            slu_wake_seen(engine);
            return slu_fail(EINTR, "the wait was ended by a wake; nothing was lost");
        }
        if (busy)
            spin.until = 0;
        /* Other traffic must not keep this wait from noticing that its time is up. */
        if (busy && engine->busy_polls != 0)
            continue;
        if (busy)
            now = slu_now();
        if (awaited->entry != NULL && until == SLUICE_FOREVER)
            until = slu_add_time(now, awaited->timeout);
        if (now >= until) {
            if (spin.until != 0)
                engine->spinning = false;
            return 0;
        }
        spin_or_sleep(engine, &spin, interruptible, until, now);
    }
}

bool slu_wait(struct slu_engine *engine, bool (*ready)(void *argument), void *argument,
              int64_t until)
{
    const struct awaited awaited = {.ready = ready, .argument = argument};

    return wait_until(engine, &awaited, false, until) > 0;
}

int slu_wait_interruptible(struct slu_engine *engine, bool (*ready)(void *argument), void *argument,
                           int64_t until)
{
    const struct awaited awaited = {.ready = ready, .argument = argument};

    return wait_until(engine, &awaited, true, until);
}

void slu_wait_entry(struct slu_engine *engine, const struct slu_entry *entry)
{
    const struct awaited awaited = {.entry = entry, .timeout = SLUICE_FOREVER};

    wait_until(engine, &awaited, false, SLUICE_FOREVER);
}

int slu_wait_result(struct slu_engine *engine, const struct slu_entry *entry, uint64_t id,
                    int64_t timeout)
{
    const struct awaited awaited = {
        .entry = entry, .id = entry->owner == SLU_OWNER_PROGRAM ? id : 0, .timeout = timeout};

    return wait_until(engine, &awaited, true, SLUICE_FOREVER);
}

static bool peer_idle(void *argument)
{
    return !slu_peer_busy(argument);
}

void slu_peer_await_idle(struct slu_engine *engine, struct slu_peer *peer)
{
    slu_wait(engine, peer_idle, peer, SLUICE_FOREVER);
}

void slu_wake(struct slu_engine *engine)
{
    atomic_store(&engine->woken, true);
    engine->transport->cq_wake(engine->cq);
}

void slu_wake_take(struct slu_engine *engine)
{
    /* An exchange, so that all that a waker did before its wake is visible from here on. */
    if (atomic_exchange(&engine->woken, false))
        engine->wakes++;
}
