/* SPDX-License-Identifier: MIT */
/*
 * Polling and arming a completion queue. A program that polls serves its connections and its inbox
 * itself, where something may have arrived, and then takes the completions.
 */
#include "transport/soft/core/pool.h"

#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS 32
/* Polls of a lone socket, or of shared memory, between two polls of the whole epoll set. */
#define LONE_POLLS 64
/*
 * Polling this many connections in memory costs less than asking the kernel for their sockets.
 * Sockets report the end of a peer, so they are polled at least every SOCKETS_TIME.
 */
#define FEW_CONNECTIONS 8
#define SOCKETS_TIME SLUICE_US(100)
/* Ring positions restart at 0 after this many entries, so that they stay in the cache. */
#define NEAR_ENTRIES 256
/*
 * Requests executed as they were posted, and their bytes, between two polls of the connections and
 * their sockets.
 */
#define DIRECTS 64
#define DIRECT_BYTES (UINT64_C(4) << 20)

static void clear_event(struct soft_cq *cq)
{
    uint64_t count;
    SLU_KEEP_ERRNO;
    atomic_store(&cq->signaled, false);
    if (SLU_UNCANCELLED(read(cq->event, &count, sizeof(count))) < 0 && errno != EAGAIN)
        slu_log(SLUICE_LOG_ERROR, "cannot read the event of a completion queue: %s",
                strerrordesc_np(errno));
}

/* Gives back rings that are idle, if the helper has asked for it. */
static void tidy(struct soft_cq *cq)
{
    if (SLU_UNLIKELY(atomic_load_explicit(&cq->tidies, memory_order_relaxed))) {
        atomic_store(&cq->tidies, false);
        slu_soft_shm_tidy(cq);
    }
}

/* Serves the sockets that have events and returns their number. */
static int serve_sockets(struct soft_cq *cq)
{
    struct epoll_event events[EVENTS];
    SLU_KEEP_ERRNO;
    int count = SLU_UNCANCELLED(epoll_wait(cq->epoll, events, EVENTS, 0));
    for (int i = 0; i < count; i++)
        slu_soft_tcp_event(events[i].data.ptr, events[i].events);
    tidy(cq);
    return count > 0 ? count : 0;
}

/*
 * Returns whether a poll can end here: all connections are cold, their memory has nothing new, and
 * their sockets were polled recently enough.
 */
static bool are_quiet(struct soft_cq *cq)
{
    if (cq->hot != NULL || cq->shared != cq->sockets || cq->sockets > FEW_CONNECTIONS ||
        slu_soft_shm_stir(cq) || ++cq->polls % LONE_POLLS == 0)
        return false;
    int64_t now = slu_now();
    if (now - cq->served < SOCKETS_TIME)
        return true;
    cq->served = now;
    return false;
}

/* Serves inbox and connections. due: all sockets are to be polled. */
static void progress(struct soft_cq *cq, bool due)
{
    if (slu_soft_has_messages(cq))
        slu_soft_inbox_drain(cq);
    if (cq->sockets == 0)
        return;
    if (SLU_UNLIKELY(due)) {
        if (cq->hot != NULL)
            slu_soft_shm_poll(cq);
        serve_sockets(cq);
        return;
    }
    if (are_quiet(cq))
        return;
    /* Sockets that only wake are polled once in LONE_POLLS. */
    if (cq->hot != NULL && (slu_soft_shm_poll(cq) || cq->shared == cq->sockets) &&
        ++cq->polls % LONE_POLLS != 0)
        return;
    /* A lone socket is read directly: one system call instead of two. */
    if (cq->sockets == 1 && ++cq->polls % LONE_POLLS != 0 && slu_soft_tcp_poll(cq->connections))
        return;
    serve_sockets(cq);
}

void slu_soft_cq_serve(struct soft_cq *cq)
{
    cq->drained = 0;
    if (slu_soft_is_starved(cq))
        slu_soft_tcp_feed(cq);
    for (int turns = 0; turns < 16; turns++) {
        bool all = slu_soft_inbox_drain(cq);
        int served = serve_sockets(cq);
        if (cq->hot != NULL)
            served += slu_soft_shm_poll(cq);
        slu_soft_tcp_flush_all(cq);
        if (served == 0 || !all)
            break;
    }
}

static uint32_t take_completions(struct soft_cq *cq, struct slu_wc *wcs, uint32_t count)
{
    uint32_t taken = 0;
    for (; taken < count && cq->head != cq->tail; taken++, cq->head++) {
        struct soft_completion *completion = &cq->ring[cq->head & cq->mask];
        wcs[taken] = completion->wc;
        completion->qp->posted--;
    }
    /*
     * The ring is as long as all peers together may need. Start again at entries that are in the
     * cache.
     */
    if (cq->head == cq->tail && cq->head >= NEAR_ENTRIES)
        cq->head = cq->tail = 0;
    return taken;
}

/* Returns whether so much was executed at once that the other connections have to be served. */
static bool is_due(const struct soft_cq *cq)
{
    return cq->directs >= DIRECTS || cq->copied >= DIRECT_BYTES;
}

/*
 * Returns whether the completions of requests that were executed at once are enough for this poll.
 */
static bool has_enough(const struct soft_cq *cq, uint32_t count)
{
    uint32_t here = cq->tail - cq->head;
    return here > 0 && !is_due(cq) && (here >= count || cq->directs > 0);
}

/* Polls connections again whose acknowledgements were let lie, once something waits for them. */
static inline void end_patience(struct soft_cq *cq)
{
    if (SLU_UNLIKELY(cq->patient) && !atomic_load_explicit(&cq->base.patient, memory_order_relaxed))
        slu_soft_shm_hurry(cq);
}

/* Serves the queue for a poll. slept: the event that woke the program may be on a socket. */
static void look(struct soft_cq *cq, bool slept)
{
    bool due = slept || is_due(cq);
    cq->directs = 0;
    cq->copied = 0;
    cq->drained = 0;
    slu_soft_count_up(&cq->activity);
    end_patience(cq);
    if (cq->held != NULL)
        slu_soft_tcp_flush_held(cq);
    if (SLU_UNLIKELY(slu_soft_is_starved(cq)))
        slu_soft_tcp_feed(cq);
    progress(cq, due);
}

int slu_soft_cq_poll(struct slu_cq *base, struct slu_wc *wcs, uint32_t count)
{
    struct soft_cq *cq = (struct soft_cq *)base;
    bool slept = atomic_load_explicit(&cq->armed, memory_order_relaxed) != 0;
    if (SLU_UNLIKELY(slept))
        atomic_store_explicit(&cq->armed, 0, memory_order_relaxed);
    if (SLU_UNLIKELY(atomic_load_explicit(&cq->signaled, memory_order_acquire)))
        clear_event(cq);
    if (!has_enough(cq, count))
        look(cq, slept);
    if (SLU_UNLIKELY(cq->overrun))
        return slu_fail(EIO, "the completion queue of %u entries has overrun", cq->base.depth);
    if (cq->urgent != NULL || cq->unsettled != NULL)
        slu_soft_tcp_flush_urgent(cq);
    uint32_t taken = take_completions(cq, wcs, count);
    if (SLU_UNLIKELY(cq->pool != NULL))
        slu_soft_pool_polled(cq);
    return (int)taken;
}

/*
 * Returns whether to poll again instead of sleeping: the next piece of a large message is due, and
 * sleeping between pieces costs as much as receiving them. Yields, as the sender may need this
 * processor.
 */
static bool awaits_piece(struct soft_cq *cq)
{
    if (cq->more_until == 0)
        return false;
    if (slu_now() < cq->more_until) {
        sched_yield();
        return true;
    }
    cq->more_until = 0;
    return false;
}

int slu_soft_cq_arm(struct slu_cq *base)
{
    struct soft_cq *cq = (struct soft_cq *)base;
    tidy(cq);
    end_patience(cq);
    slu_soft_tcp_flush_all(cq);
    if (awaits_piece(cq))
        return 1;
    bool more = cq->hot != NULL && !slu_soft_shm_sleep(cq);
    if (slu_soft_is_starved(cq)) {
        atomic_store(&cq->restless, true);
        slu_soft_helper_kick(cq);
    }
    atomic_store(&cq->armed, 1);
    return more || cq->head != cq->tail || slu_soft_has_messages(cq) || cq->overrun ||
           (cq->pool != NULL && (cq->pool->lost || atomic_load(&base->alerted)));
}

/* Completed receives of a pool stay: their buffers are the program's, which has no other word. */
void slu_soft_cq_forget(struct soft_qp *qp)
{
    struct soft_cq *cq = slu_soft_cq_of(qp);
    if (qp->posted == 0)
        return;
    uint32_t kept = cq->head;
    for (uint32_t i = cq->head; i != cq->tail; i++) {
        struct soft_completion *completion = &cq->ring[i & cq->mask];
        if (cq->pool != NULL && completion->qp == qp && slu_id_is_pool(completion->wc.id)) {
            completion->qp = slu_soft_pool_heir(cq);
            completion->qp->posted++;
        }
        if (completion->qp != qp)
            cq->ring[kept++ & cq->mask] = *completion;
    }
    cq->tail = kept;
    qp->posted = 0;
}
