/* SPDX-License-Identifier: MIT */
/*
 * How the helper watches completion queues.
 *
 * A CQ's epoll fd is in the helper's epoll set as one-shot. If it fires while the program owns the
 * CQ, or has polled it since the last check, the fd is not armed again: that would wake the helper
 * for each message. Instead the helper checks the CQ every millisecond (TICK), and sooner at first:
 * a program that has just polled may now wait outside for memory to change. Once the program has
 * not polled for a tick, the helper serves the CQ and arms it (ARMED). A program that stays inside
 * the library needs no helper: after some ticks the CQ is OFF, until the program leaves it and
 * kicks the helper.
 *
 * While a program goes on polling, ticks grow to BUSY_TICK: helpers of many programs on one host
 * would otherwise take much of its processors. If more programs wait than there are processors, all
 * helpers would still tick between each two turns of a program: then a tick is TURNS_OF_TICK turns
 * long, up to CROWDED_TICK.
 */
#include "transport/soft/helper/helper.h"

#include <poll.h>

#define TICK SLUICE_MS(1)
#define BUSY_TICKS 8
#define BUSY_TICK SLUICE_MS(4)
#define CROWDED_TICK SLUICE_MS(8)
#define TURNS_OF_TICK 16
#define INSIDE_TICKS 8
#define FIRST_LOOK 20000

/* Only the helper writes watch. */

/* Serves a CQ that the caller has taken. */
static void serve_turn(struct soft_helper *helper, struct soft_cq *cq)
{
    uint64_t turn = slu_soft_turn_begin(helper);
    slu_soft_cq_serve(cq);
    /*
     * From now on a thread that leaves the CQ, beginning with this one, lets its epoll set wake the
     * helper.
     */
    atomic_store(&cq->watch, SOFT_WATCH_ARMED);
    slu_soft_cq_give_back(cq);
    /* This fails if the CQ was destroyed meanwhile, as it then is in no set. */
    slu_soft_helper_add(helper, EPOLL_CTL_MOD, cq->epoll, EPOLLIN | EPOLLONESHOT, HELPER_CQ,
                        cq->slot);
    slu_soft_turn_end(helper, turn);
}

static void add_tick(struct soft_helper *helper, struct soft_cq *cq)
{
    cq->ticks = true;
    cq->tick_next = helper->ticks;
    helper->ticks = cq;
}

/*
 * The CQ may tick already: a leader that was replaced in its turn sets ARMED at the end of it,
 * while the new leader has begun to tick because of a kick.
 */
static void start_ticking(struct soft_helper *helper, struct soft_cq *cq)
{
    atomic_store(&cq->watch, SOFT_WATCH_TICK);
    cq->looks_early = false;
    cq->active_ticks = cq->inside_ticks = 0;
    if (cq->ticks)
        return;
    slu_soft_cq_hold(cq);
    add_tick(helper, cq);
}

/* Serves a CQ whose fd has fired, or starts ticking if the program is polling it. */
static void serve_fired(struct soft_helper *helper, struct soft_cq *cq)
{
    unsigned activity = atomic_load(&cq->activity);
    if (atomic_load(&cq->watch) != SOFT_WATCH_ARMED)
        return;
    if (activity == cq->tick_activity && slu_soft_cq_take(cq)) {
        serve_turn(helper, cq);
        return;
    }
    cq->tick_activity = activity;
    start_ticking(helper, cq);
    /*
     * A program that connects, or sends its first message, waits inside the library, and not for
     * memory to change.
     */
    cq->looks_early = cq->fired;
    cq->fired = atomic_load_explicit(&cq->opened, memory_order_relaxed);
    if (cq->looks_early)
        helper->look_after = FIRST_LOOK;
}

void slu_soft_watch_fired(struct soft_helper *helper, uint32_t slot)
{
    /* A late event may find another CQ in the slot, which is harmless. */
    struct soft_cq *cq = slu_soft_cq_find(helper->context, slot);
    if (cq == NULL)
        return;
    serve_fired(helper, cq);
    slu_soft_cq_release(cq);
}

void slu_soft_watch_kicked(struct soft_helper *helper, struct soft_cq *cq)
{
    unsigned watch = atomic_load(&cq->watch);
    if (watch == SOFT_WATCH_OFF) {
        /* The program has only just left and may return at once. */
        cq->tick_activity = atomic_load(&cq->activity);
        start_ticking(helper, cq);
    } else if (watch == SOFT_WATCH_ARMED && atomic_exchange(&cq->restless, false)) {
        cq->tick_activity = atomic_load(&cq->activity);
        start_ticking(helper, cq);
    } else if (slu_soft_cq_take(cq)) {
        uint64_t turn = slu_soft_turn_begin(helper);
        slu_soft_cq_give_back(cq);
        slu_soft_turn_end(helper, turn);
    }
}

/* Returns whether the program has stayed inside the library since the last tick. */
static bool stays_inside(struct soft_cq *cq)
{
    unsigned entries = atomic_load(&cq->entries);
    bool same = entries == cq->tick_entries;
    cq->tick_entries = entries;
    return same && atomic_load(&cq->owner) == SOFT_PROGRAM;
}

static bool switch_off(struct soft_cq *cq)
{
    /*
     * A thread that leaves writes owner and reads watch; this one does the reverse, so one of both
     * notices.
     */
    atomic_store(&cq->watch, SOFT_WATCH_OFF);
    if (atomic_load(&cq->owner) == SOFT_PROGRAM)
        return true;
    atomic_store(&cq->watch, SOFT_WATCH_TICK);
    return false;
}

/* A program that has not yielded since the last tick does not know that processors are short. */
static void forget_turn(struct soft_cq *cq)
{
    int64_t turn = atomic_load_explicit(&cq->base.turn, memory_order_relaxed);
    if (turn != 0 && turn == cq->tick_turn)
        atomic_store_explicit(&cq->base.turn, 0, memory_order_relaxed);
    cq->tick_turn = turn;
}

/* Checks a ticking CQ, and serves it if no thread polls. Returns whether to check it again. */
static bool tick(struct soft_helper *helper, struct soft_cq *cq)
{
    unsigned activity = atomic_load(&cq->activity);
    if (atomic_load(&cq->dead)) {
        if (slu_soft_cq_take(cq))
            slu_soft_cq_give_back(cq);
        return false;
    }
    if (stays_inside(cq)) {
        if (!slu_soft_is_starved(cq))
            return ++cq->inside_ticks < INSIDE_TICKS || !switch_off(cq);
        slu_soft_cq_wake(cq);
        return true;
    }
    cq->inside_ticks = 0;
    forget_turn(cq);
    if (activity != cq->tick_activity) {
        cq->tick_activity = activity;
        cq->active_ticks++;
        return true;
    }
    if (!slu_soft_cq_take(cq))
        return true;
    serve_turn(helper, cq);
    return false;
}

/* Checks a CQ before its first tick, and serves it if idle. Returns whether to check it again. */
static bool look_early(struct soft_helper *helper, struct soft_cq *cq)
{
    unsigned activity = atomic_load(&cq->activity);
    bool idle = activity == cq->tick_activity;
    if (!cq->looks_early)
        return true;
    cq->tick_activity = activity;
    if (!idle || !slu_soft_cq_take(cq))
        return true;
    serve_turn(helper, cq);
    return false;
}

static void check_all(struct soft_helper *helper,
                      bool (*look)(struct soft_helper *helper, struct soft_cq *cq))
{
    if (helper->looking == NULL) {
        helper->looking = helper->ticks;
        helper->ticks = NULL;
    }
    while (slu_soft_leading() && helper->looking != NULL) {
        struct soft_cq *cq = helper->looking;
        helper->looking = cq->tick_next;
        cq->ticks = false;
        if (look(helper, cq))
            add_tick(helper, cq);
        else
            slu_soft_cq_release(cq);
    }
}

void slu_soft_watch_tick(struct soft_helper *helper)
{
    check_all(helper, tick);
}

void slu_soft_watch_look(struct soft_helper *helper)
{
    struct pollfd waiting = {.fd = helper->epoll, .events = POLLIN};
    struct timespec pause = {0, helper->look_after};
    helper->look_after = helper->look_after < TICK / 2 ? helper->look_after * 2 : 0;
    ppoll(&waiting, 1, &pause, NULL);
    check_all(helper, look_early);
}

/* Returns the time between two ticks of a CQ. */
static int64_t tick_of(const struct soft_cq *cq)
{
    int64_t turns = TURNS_OF_TICK * atomic_load_explicit(&cq->base.turn, memory_order_relaxed);
    int64_t time = cq->active_ticks < BUSY_TICKS ? TICK : BUSY_TICK;
    return turns > time ? slu_earlier(turns, CROWDED_TICK) : time;
}

/* The shortest time that a CQ needs. */
int64_t slu_soft_watch_time(const struct soft_helper *helper)
{
    int64_t time = helper->looking != NULL ? TICK : CROWDED_TICK;
    for (struct soft_cq *cq = helper->ticks; cq != NULL && time > TICK; cq = cq->tick_next)
        time = slu_earlier(time, tick_of(cq));
    return time;
}
