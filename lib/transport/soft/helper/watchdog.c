/* SPDX-License-Identifier: MIT */
/*
 * Decides which of the two threads of a helper leads. The leader counts up twice for a turn that
 * may touch memory: to odd when it begins, and to even when it ends. If the other one, the watcher,
 * finds the same turn again after LOOK_TIME, it ends that turn itself and leads from then on. The
 * thread that was stopped notices this when it continues, and becomes the watcher. A thread that
 * does not lead touches none of the leader's fields, and objects in use during a turn are reachable
 * by the thread of that turn alone.
 *
 * The watcher is created when it is first needed. If both threads are stopped, there is no third:
 * no number of threads would be enough then.
 */
#include "transport/soft/helper/helper.h"

#include <string.h>
#include <time.h>

#include "base/thread.h"

/* A turn that takes longer than this counts as stopped by a page fault. */
#define LOOK_TIME SLUICE_MS(100)

static _Thread_local bool leading;

bool slu_soft_leading(void)
{
    return leading;
}

static void start_watcher(struct soft_helper *helper)
{
    int err = slu_thread_start(&helper->watcher, "sluice-soft", helper->watch_routine, helper);
    helper->has_watcher = err == 0;
    if (err != 0)
        slu_log(SLUICE_LOG_WARN,
                "no thread to watch the helper thread, a page fault may stop it: %s",
                strerrordesc_np(err));
}

/* Wakes the watcher, or starts it the first time. */
static void wake_watcher(struct soft_helper *helper)
{
    pthread_mutex_lock(&helper->lock);
    atomic_store(&helper->watched, true);
    if (!helper->watcher_tried)
        start_watcher(helper);
    helper->watcher_tried = true;
    pthread_cond_signal(&helper->watch);
    pthread_mutex_unlock(&helper->lock);
}

uint64_t slu_soft_turn_begin(struct soft_helper *helper)
{
    uint64_t turn = atomic_fetch_add(&helper->turn, 1) + 1;
    if (!atomic_load(&helper->watched))
        wake_watcher(helper);
    return turn;
}

void slu_soft_turn_end(struct soft_helper *helper, uint64_t turn)
{
    leading = atomic_compare_exchange_strong(&helper->turn, &turn, turn + 1);
    if (!leading)
        slu_log(SLUICE_LOG_INFO, "a helper thread that was replaced is back");
}

/* Waits until turns have begun. False: the helper stops. */
static bool await_turns(struct soft_helper *helper)
{
    pthread_mutex_lock(&helper->lock);
    while (!atomic_load(&helper->watched) && !atomic_load(&helper->stop))
        pthread_cond_wait(&helper->watch, &helper->lock);
    pthread_mutex_unlock(&helper->lock);
    return !atomic_load(&helper->stop);
}

static void pause_watching(struct soft_helper *helper)
{
    struct timespec until;
    int64_t end = slu_now() + LOOK_TIME;
    until.tv_sec = end / SLUICE_S(1);
    until.tv_nsec = end % SLUICE_S(1);
    pthread_mutex_lock(&helper->lock);
    if (!atomic_load(&helper->stop))
        pthread_cond_timedwait(&helper->watch, &helper->lock, &until);
    pthread_mutex_unlock(&helper->lock);
}

static bool is_turn(uint64_t turn)
{
    return turn % 2 != 0;
}

/*
 * Watches until no turn has begun for LOOK_TIME, or one does not end. True: this thread leads now.
 */
static bool watch_turns(struct soft_helper *helper)
{
    uint64_t last = atomic_load(&helper->turn);
    while (!atomic_load(&helper->stop)) {
        pause_watching(helper);
        uint64_t turn = atomic_load(&helper->turn);
        if (turn != last) {
            last = turn;
        } else if (is_turn(turn)) {
            leading = atomic_compare_exchange_strong(&helper->turn, &turn, turn + 1);
            if (leading)
                return true;
        } else {
            /*
             * A thread that begins a turn writes turn and reads watched; this one does the reverse.
             */
            atomic_store(&helper->watched, false);
            if (atomic_load(&helper->turn) == turn)
                return false;
            atomic_store(&helper->watched, true);
        }
    }
    return false;
}

bool slu_soft_follow(struct soft_helper *helper)
{
    leading = false;
    while (await_turns(helper)) {
        if (!watch_turns(helper))
            continue;
        slu_log(SLUICE_LOG_INFO,
                "a helper thread does not come back from memory that it touches for a peer, "
                "and is replaced");
        return true;
    }
    return false;
}

void slu_soft_lead(void)
{
    leading = true;
}
