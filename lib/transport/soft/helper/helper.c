/* SPDX-License-Identifier: MIT */
/*
 * The helper thread of a context. When there is nothing to do it sleeps without a timeout.
 *
 * Serving a CQ may touch the program's memory, so it is a turn that the watchdog observes.
 */
#include "transport/soft/helper/helper.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"

#define LINGER_TICK SLUICE_MS(LINGER_MS)
#define DOOR_MS 100
#define DOOR_TICK SLUICE_MS(DOOR_MS)

void slu_soft_helper_kick(struct soft_cq *cq)
{
    struct soft_helper *helper = slu_soft_cq_context(cq)->helper;
    pthread_mutex_lock(&helper->lock);
    bool first = !cq->kicked;
    if (first) {
        slu_soft_cq_hold(cq);
        cq->kicked = true;
        cq->kick_next = helper->kicks;
        helper->kicks = cq;
    }
    pthread_mutex_unlock(&helper->lock);
    if (first)
        slu_soft_helper_wake(helper->context);
}

/* Returns the next CQ that was kicked, or NULL. */
static struct soft_cq *next_kicked(struct soft_helper *helper)
{
    pthread_mutex_lock(&helper->lock);
    struct soft_cq *cq = helper->kicked;
    if (cq != NULL) {
        helper->kicked = cq->kick_next;
        cq->kicked = false;
    }
    pthread_mutex_unlock(&helper->lock);
    return cq;
}

/*
 * Takes all kicks. CQs that a replaced leader left over come first; those kicked since are taken as
 * well, because the event that announced them was cleared.
 */
static void take_kicks(struct soft_helper *helper)
{
    pthread_mutex_lock(&helper->lock);
    struct soft_cq **end = &helper->kicked;
    while (*end != NULL)
        end = &(*end)->kick_next;
    *end = helper->kicks;
    helper->kicks = NULL;
    pthread_mutex_unlock(&helper->lock);
}

static void serve_kicks(struct soft_helper *helper)
{
    struct soft_cq *cq;
    take_kicks(helper);
    while (slu_soft_leading() && (cq = next_kicked(helper)) != NULL) {
        slu_soft_watch_kicked(helper, cq);
        slu_soft_cq_release(cq);
    }
}

/* The loop. */

static void clear_event(struct soft_helper *helper)
{
    uint64_t count;
    if (read(helper->event, &count, sizeof(count)) < 0 && errno != EAGAIN)
        slu_log(SLUICE_LOG_ERROR, "cannot read the event of the helper thread: %s",
                strerrordesc_np(errno));
}

static void dispatch(struct soft_helper *helper, uint64_t data)
{
    uint32_t index = (uint32_t)data;
    switch ((enum helper_event)(data >> 32)) {
    case HELPER_WAKE:
        clear_event(helper);
        break;
    case HELPER_DOOR:
        slu_acceptor_event(&helper->acceptor, index);
        break;
    case HELPER_MEETING:
        slu_soft_meet_event(helper, index);
        break;
    case HELPER_CQ:
        slu_soft_watch_fired(helper, index);
        break;
    }
}

static bool is_due(int64_t *last, int64_t period, int64_t now)
{
    if (now - *last < period)
        return false;
    *last = now;
    return true;
}

static void run_timers(struct soft_helper *helper)
{
    int64_t now = slu_now();
    if (slu_soft_watch_ticks(helper) &&
        is_due(&helper->last_tick, slu_soft_watch_time(helper), now))
        slu_soft_watch_tick(helper);
    if (!slu_soft_leading())
        return;
    if (atomic_load(&helper->lingers) && is_due(&helper->last_linger, LINGER_TICK, now))
        slu_soft_linger_tick(helper);
    if (atomic_exchange(&helper->context->meet_due, false) || now >= helper->meet_next)
        helper->meet_next = slu_soft_meet_tick(helper, now);
    if (slu_acceptor_is_busy(&helper->acceptor) && is_due(&helper->last_door, DOOR_TICK, now))
        slu_acceptor_tick(&helper->acceptor, now);
    slu_soft_tidy_tick(helper);
}

/* Returns the milliseconds until a time, rounded up and limited to most. */
static int time_until(int64_t when, int most)
{
    int64_t left = when - slu_now();
    if (left <= 0)
        return 0;
    return left < SLUICE_MS(most) ? (int)((left + SLUICE_MS(1) - 1) / SLUICE_MS(1)) : most;
}

static int next_timeout(const struct soft_helper *helper)
{
    bool busy = slu_acceptor_is_busy(&helper->acceptor);
    if (atomic_load(&helper->context->meet_due))
        return 0;
    if (slu_soft_watch_ticks(helper))
        return time_until(
            slu_earlier(helper->last_tick + slu_soft_watch_time(helper), helper->meet_next),
            DOOR_MS);
    if (atomic_load(&helper->lingers))
        return LINGER_MS;
    if (helper->meet_next != INT64_MAX)
        return time_until(helper->meet_next, busy ? DOOR_MS : 60000);
    return busy ? DOOR_MS : -1;
}

/*
 * Limits a timeout, or -1 for none, to the next tick of idle.c. If the wait were a whole tick each
 * time, each event meanwhile would delay what is given back.
 */
static int timeout_of(const struct soft_helper *helper)
{
    int timeout = next_timeout(helper);
    int64_t next = slu_soft_tidy_next(helper);
    return next == INT64_MAX ? timeout : time_until(next, timeout < 0 ? 1000 : timeout);
}

static void dispatch_all(struct soft_helper *helper)
{
    while (slu_soft_leading() && helper->event_next < helper->event_count)
        dispatch(helper, helper->events[helper->event_next++].data.u64);
}

/* Runs one round. Work that a stopped leader left in the middle of a round comes first. */
static void lead_once(struct soft_helper *helper)
{
    int timeout = timeout_of(helper);
    if (helper->event_next < helper->event_count || helper->kicked != NULL)
        timeout = 0;
    dispatch_all(helper);
    if (slu_soft_leading() && helper->look_after > 0) {
        slu_soft_watch_look(helper);
        timeout = 0;
    }
    if (!slu_soft_leading())
        return;
    /* Others set meet_due or lingers and read wakes_at, so one of both threads notices. */
    atomic_store(&helper->wakes_at, timeout < 0 ? INT64_MAX : slu_now() + SLUICE_MS(timeout));
    if (atomic_load(&helper->context->meet_due))
        timeout = 0;
    else if (atomic_load(&helper->lingers) && (timeout < 0 || timeout > LINGER_MS))
        timeout = LINGER_MS;
    int count = epoll_wait(helper->epoll, helper->events, HELPER_EVENTS, timeout);
    helper->event_next = 0;
    helper->event_count = count > 0 ? (uint32_t)count : 0;
    dispatch_all(helper);
    if (slu_soft_leading())
        serve_kicks(helper);
    if (slu_soft_leading())
        run_timers(helper);
}

static void lead(struct soft_helper *helper)
{
    while (slu_soft_leading() && !atomic_load(&helper->stop))
        lead_once(helper);
}

static void *run_watcher(void *argument)
{
    struct soft_helper *helper = argument;
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    slu_soft_inbox_never_visit();
    while (slu_soft_follow(helper)) {
        /* The stopped leader may have cleared the event that announced these. */
        serve_kicks(helper);
        lead(helper);
    }
    return NULL;
}

static void *run(void *argument)
{
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    slu_soft_inbox_never_visit();
    slu_soft_lead();
    lead(argument);
    return run_watcher(argument);
}

static int start_thread(struct soft_helper *helper)
{
    int err = slu_thread_start(&helper->thread, "sluice-soft", run, helper);
    if (err != 0)
        return slu_fail(err, "cannot start the helper thread: %s%s", strerrordesc_np(err),
                        err == EAGAIN ? " (ulimit -u, or the limit of pids of a cgroup)" : "");
    return 0;
}

static int open_fds(struct soft_helper *helper)
{
    int none = 0;
    helper->event = -1;
    if ((helper->epoll = slu_fd_epoll()) < 0 || (helper->event = slu_fd_event()) < 0)
        none = errno;
    int err = none != 0 ? slu_fail(none, "the helper thread needs file descriptors: %s",
                                   strerrordesc_np(none))
                        : slu_soft_meet_listen(helper->context, &helper->acceptor, helper->epoll,
                                               (uint64_t)HELPER_DOOR << 32);
    if (err != 0 && helper->event >= 0)
        slu_fd_close(helper->event);
    if (err != 0 && helper->epoll >= 0)
        slu_fd_close(helper->epoll);
    return err;
}

static void close_fds(struct soft_helper *helper)
{
    slu_acceptor_close(&helper->acceptor);
    slu_fd_close(helper->event);
    slu_fd_close(helper->epoll);
}

static void make_locks(struct soft_helper *helper)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&helper->watch, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&helper->lock, NULL);
}

static void destroy_locks(struct soft_helper *helper)
{
    pthread_mutex_destroy(&helper->lock);
    pthread_cond_destroy(&helper->watch);
}

static int start(struct soft_context *context)
{
    struct soft_helper *helper = calloc(1, sizeof(*helper));
    if (helper == NULL)
        return slu_fail(ENOMEM, "no memory for the helper thread");
    helper->context = context;
    helper->meet_next = INT64_MAX;
    atomic_init(&helper->wakes_at, INT64_MAX);
    helper->watch_routine = run_watcher;
    make_locks(helper);
    int err = open_fds(helper);
    if (err != 0)
        goto free_helper;
    if (slu_soft_helper_add(helper, EPOLL_CTL_ADD, helper->event, EPOLLIN, HELPER_WAKE, 0) != 0) {
        err = slu_fail(errno, "the helper thread cannot watch its sockets: %s",
                       strerrordesc_np(errno));
        goto close_fds;
    }
    err = start_thread(helper);
    if (err != 0)
        goto close_fds;
    context->helper = helper;
    return 0;

close_fds:
    close_fds(helper);
free_helper:
    destroy_locks(helper);
    free(helper);
    return err;
}

int slu_soft_helper_start(struct soft_context *context)
{
    pthread_mutex_lock(&context->lock);
    bool first = context->helper == NULL;
    int err = first ? start(context) : 0;
    if ((err == -EMFILE || err == -ENFILE) && slu_soft_spares_drop(context))
        err = start(context);
    atomic_store(&context->helped, err == 0);
    pthread_mutex_unlock(&context->lock);
    /* It frees what is kept from now on. */
    if (first)
        slu_soft_spares_drop(context);
    return err;
}

/*
 * Releases a CQ that no thread serves any more. Messages in its inbox hold queue pairs, which hold
 * CQs: they are executed first, or none of these would end.
 */
static void release_cq(struct soft_cq *cq)
{
    if (slu_soft_cq_take(cq)) {
        cq->drained = 0;
        slu_soft_inbox_drain(cq);
        atomic_store(&cq->owner, SOFT_FREE);
    }
    slu_soft_cq_release(cq);
}

static void release_ticks(struct soft_cq *cq)
{
    while (cq != NULL) {
        struct soft_cq *next = cq->tick_next;
        release_cq(cq);
        cq = next;
    }
}

/* Messages that are executed may kick further CQs. */
static void release_cqs(struct soft_helper *helper)
{
    struct soft_cq *cq;
    release_ticks(helper->ticks);
    release_ticks(helper->looking);
    for (take_kicks(helper); (cq = next_kicked(helper)) != NULL; take_kicks(helper))
        release_cq(cq);
}

void slu_soft_helper_stop(struct soft_context *context)
{
    struct soft_helper *helper = context->helper;
    if (helper == NULL)
        return;
    pthread_mutex_lock(&helper->lock);
    atomic_store(&helper->stop, true);
    pthread_cond_broadcast(&helper->watch);
    pthread_mutex_unlock(&helper->lock);
    slu_soft_helper_wake(context);
    pthread_join(helper->thread, NULL);
    if (helper->has_watcher)
        pthread_join(helper->watcher, NULL);
    release_cqs(helper);
    slu_soft_linger_end(helper);
    close_fds(helper);
    destroy_locks(helper);
    free(helper);
    context->helper = NULL;
}

int slu_soft_helper_watch(struct soft_cq *cq)
{
    struct soft_context *context = slu_soft_cq_context(cq);
    int err = slu_soft_helper_start(context);
    if (err != 0)
        return err;
    if (slu_soft_helper_add(context->helper, EPOLL_CTL_ADD, cq->epoll, EPOLLIN | EPOLLONESHOT,
                            HELPER_CQ, cq->slot) != 0)
        return slu_fail(errno, "cannot watch a completion queue: %s", strerrordesc_np(errno));
    return 0;
}

void slu_soft_helper_unwatch(struct soft_cq *cq)
{
    struct soft_context *context = slu_soft_cq_context(cq);
    SLU_KEEP_ERRNO;
    atomic_store(&cq->dead, true);
    epoll_ctl(context->helper->epoll, EPOLL_CTL_DEL, cq->epoll, NULL);
}
