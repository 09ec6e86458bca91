/* SPDX-License-Identifier: MIT */
/*
 * Completion queues: who serves one, taking turns, and sleeping on one.
 *
 * The owner word says who may touch a CQ and all its queue pairs. The program
 * takes it with one atomic when it enters the library and gives it back with
 * one when it leaves; in between it serves the CQ itself. The helper, and
 * threads that bring a message, take it only while it is free, for a bounded
 * turn. See inbox.c for why nothing is left lying.
 */
#include "transport/soft/soft.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "transport/soft/tcp.h"

#define EVENTS 32
/* Polls of a lone socket, or of shared memory, between two looks at the whole epoll set. */
#define LONE_POLLS 64
/*
 * To look at so many connections costs less than to ask the kernel for their sockets, which
 * tell of the end of a peer: that is not to be missed for longer than this.
 */
#define FEW_CONNECTIONS 8
#define SOCKETS_TIME SLUICE_US(100)
/* Entries of a CQ that are used again and again while there are never more. */
#define NEAR_ENTRIES 256
/*
 * Requests that were done as they were posted, and bytes of theirs, between two looks at
 * the connections and their sockets.
 */
#define DIRECTS 64
#define DIRECT_BYTES (UINT64_C(4) << 20)
/* How often a thread that leaves comes back for what others have pushed meanwhile. */
#define ROUNDS 16

static int add_to_fd(struct soft_cq *cq, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(cq->fd, EPOLL_CTL_ADD, fd, &event);
}

static void close_fds(struct soft_cq *cq)
{
    if (cq->fd >= 0)
        slu_fd_close(cq->fd);
    if (cq->event >= 0)
        slu_fd_close(cq->event);
    if (cq->epoll >= 0)
        slu_fd_close(cq->epoll);
}

static int open_fds(struct soft_cq *cq)
{
    cq->epoll = slu_fd_epoll();
    cq->event = slu_fd_event();
    cq->fd = slu_fd_epoll();
    if (cq->epoll >= 0 && cq->event >= 0 && cq->fd >= 0 && add_to_fd(cq, cq->epoll) == 0 &&
        add_to_fd(cq, cq->event) == 0)
        return 0;
    int err = slu_fail(errno, "a completion queue needs file descriptors: %m");
    close_fds(cq);
    return err;
}

static int enlist(struct soft_cq *cq)
{
    struct soft_context *context = slu_soft_cq_context(cq);
    pthread_mutex_lock(&context->lock);
    int err = slu_soft_slot_take(&context->cqs, cq, &cq->slot);
    pthread_mutex_unlock(&context->lock);
    return err == 0 ? 0 : slu_fail(ENOMEM, "no memory for a completion queue");
}

static void delist(struct soft_cq *cq)
{
    struct soft_context *context = slu_soft_cq_context(cq);
    pthread_mutex_lock(&context->lock);
    slu_soft_slot_free(&context->cqs, cq->slot);
    pthread_mutex_unlock(&context->lock);
}

static void free_cq(struct soft_cq *cq)
{
    slu_soft_keys_remove_reader(&slu_soft_cq_context(cq)->keys, &cq->reader);
    close_fds(cq);
    free(cq->staging);
    free(cq->ring);
    free(cq);
}

int slu_soft_cq_create(struct slu_tcontext *context, uint32_t depth, struct slu_cq **made)
{
    uint32_t size = 1;
    while (size < depth)
        size *= 2;
    struct soft_cq *cq = calloc(1, sizeof(*cq));
    if (cq == NULL)
        return slu_fail(ENOMEM, "no memory for a completion queue");
    cq->base.context = context;
    cq->base.depth = depth;
    cq->mask = size - 1;
    atomic_init(&cq->references, 1);
    atomic_init(&cq->watch, SOFT_WATCH_ARMED);
    int err = -ENOMEM;
    cq->ring = calloc(size, sizeof(*cq->ring));
    if (cq->ring == NULL) {
        slu_fail(ENOMEM, "no memory for a completion queue of %u entries", depth);
        goto free_struct;
    }
    err = open_fds(cq);
    if (err != 0)
        goto free_ring;
    err = enlist(cq);
    if (err != 0)
        goto close_fds;
    err = slu_soft_helper_watch(cq);
    if (err != 0)
        goto delist;
    slu_soft_keys_add_reader(&slu_soft_cq_context(cq)->keys, &cq->reader);
    *made = &cq->base;
    return 0;

delist:
    delist(cq);
close_fds:
    close_fds(cq);
free_ring:
    free(cq->ring);
free_struct:
    free(cq);
    return err;
}

void slu_soft_cq_destroy(struct slu_cq *base)
{
    struct soft_cq *cq = (struct soft_cq *)base;
    /* The helper finds CQs by slot: after this only those it holds already. */
    delist(cq);
    slu_soft_helper_unwatch(cq);
    /* What a turn has left is for nobody else now. */
    if (slu_soft_cq_take(cq))
        slu_soft_cq_give_back(cq);
    slu_soft_cq_release(cq);
}

void slu_soft_cq_hold(struct soft_cq *cq)
{
    atomic_fetch_add_explicit(&cq->references, 1, memory_order_relaxed);
}

void slu_soft_cq_release(struct soft_cq *cq)
{
    if (atomic_fetch_sub_explicit(&cq->references, 1, memory_order_acq_rel) == 1)
        free_cq(cq);
}

struct soft_cq *slu_soft_cq_find(struct soft_context *context, uint32_t slot)
{
    struct soft_cq *cq = NULL;
    pthread_mutex_lock(&context->lock);
    if (slot < context->cqs.size)
        cq = context->cqs.items[slot];
    if (cq != NULL)
        slu_soft_cq_hold(cq);
    pthread_mutex_unlock(&context->lock);
    return cq;
}

static bool take(struct soft_cq *cq, unsigned owner)
{
    unsigned expected = SOFT_FREE;
    return atomic_compare_exchange_strong(&cq->owner, &expected, owner);
}

/*
 * Not while the program waits for it: who is awake all the time would get it again and again.
 * What the program then leaves, it has looked at.
 */
bool slu_soft_cq_take(struct soft_cq *cq)
{
    return atomic_load(&cq->waiting) == 0 && take(cq, SOFT_HELPER);
}

/* Mostly there are none, which is seen here. */
static inline bool has_messages(struct soft_cq *cq)
{
    return cq->rest != NULL || atomic_load(&cq->inbox) != NULL;
}

/*
 * While only the epoll set wakes the helper, all connections with shared memory must; if
 * one has more again and again, the helper looks itself. It goes on, too, where others push
 * messages as fast as they are taken: this thread has something else to do.
 */
void slu_soft_cq_give_back(struct soft_cq *cq)
{
    bool restless = false, all;
    int round = 0;
    cq->drained = 0;
    do {
        all = !has_messages(cq) || (slu_soft_inbox_drain(cq) && ++round < ROUNDS);
        bool armed = atomic_load(&cq->watch) == SOFT_WATCH_ARMED;
        if (armed)
            slu_soft_tcp_flush_all(cq);
        else
            slu_soft_tcp_flush_urgent(cq);
        if (cq->hot != NULL && armed)
            restless = !slu_soft_shm_leave(cq);
        if (cq->head != cq->tail)
            slu_soft_cq_wake(cq);
        atomic_store(&cq->owner, SOFT_FREE);
    } while (all && !slu_soft_inbox_empty(cq) && slu_soft_cq_take(cq));
    if (restless)
        atomic_store(&cq->restless, true);
    if (restless || !all || atomic_load(&cq->watch) == SOFT_WATCH_OFF)
        slu_soft_helper_kick(cq);
}

void slu_soft_pause(unsigned time)
{
    if (time < 100) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    } else if (time < 200) {
        sched_yield();
    } else {
        struct timespec pause = {0, time < 1000 ? 50000 : 1000000};
        int saved = errno;
        SLU_UNCANCELLED(nanosleep(&pause, NULL));
        errno = saved;
    }
}

/* Waits for the end of a turn of another thread, which is bounded, but for page faults. */
static void wait_for_turn(struct soft_cq *cq)
{
    atomic_fetch_add(&cq->waiting, 1);
    for (unsigned time = 0; !take(cq, SOFT_PROGRAM); time++)
        slu_soft_pause(time);
    atomic_fetch_sub(&cq->waiting, 1);
}

/* Written by the program only, read by the helper. */
static void count_up(atomic_uint *counter)
{
    unsigned count = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, count + 1, memory_order_relaxed);
}

void slu_soft_cq_enter(struct slu_cq *base)
{
    struct soft_cq *cq = (struct soft_cq *)base;
    if (SLU_UNLIKELY(!take(cq, SOFT_PROGRAM)))
        wait_for_turn(cq);
    count_up(&cq->entries);
}

void slu_soft_cq_leave(struct slu_cq *cq)
{
    slu_soft_cq_give_back((struct soft_cq *)cq);
}

/*
 * It cannot fail: the counter would have to be full. It says so before the write, for whom that
 * wakes may take this processor at once, and would not sleep again while there is something that
 * he does not know of; and after it, for who looked in between has found nothing to read.
 */
static void signal_event(struct soft_cq *cq)
{
    uint64_t one = 1;
    int saved = errno;
    ssize_t written;

    atomic_store(&cq->signaled, true);
    written = SLU_UNCANCELLED(write(cq->event, &one, sizeof(one)));
    (void)written;
    errno = saved;
    atomic_store(&cq->signaled, true);
}

void slu_soft_cq_wake(struct soft_cq *cq)
{
    if (atomic_load(&cq->armed) != 0 && atomic_exchange(&cq->armed, 0) != 0)
        signal_event(cq);
}

void slu_soft_cq_interrupt(struct slu_cq *cq)
{
    signal_event((struct soft_cq *)cq);
}

static void clear_event(struct soft_cq *cq)
{
    uint64_t count;
    int saved = errno;
    atomic_store(&cq->signaled, false);
    if (SLU_UNCANCELLED(read(cq->event, &count, sizeof(count))) < 0 && errno != EAGAIN)
        slu_log(SLUICE_LOG_ERROR, "cannot read the event of a completion queue: %m");
    errno = saved;
}

/* The helper has asked for it. */
static void tidy(struct soft_cq *cq)
{
    if (SLU_UNLIKELY(atomic_load_explicit(&cq->tidies, memory_order_relaxed))) {
        atomic_store(&cq->tidies, false);
        slu_soft_shm_tidy(cq);
    }
}

/* Returns how many sockets had something. */
static int serve_sockets(struct soft_cq *cq)
{
    struct epoll_event events[EVENTS];
    int saved = errno;
    int count = SLU_UNCANCELLED(epoll_wait(cq->epoll, events, EVENTS, 0));
    for (int i = 0; i < count; i++)
        slu_soft_tcp_event(events[i].data.ptr, events[i].events);
    errno = saved;
    tidy(cq);
    return count > 0 ? count : 0;
}

/*
 * Connections that nobody looks at any more, in a program that polls all the same: whether a
 * look at all of them does, and there was nothing.
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

/* due: all sockets are to be looked at */
static void progress(struct soft_cq *cq, bool due)
{
    if (has_messages(cq))
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
    /* Sockets that only wake are looked at now and then. */
    if (cq->hot != NULL && (slu_soft_shm_poll(cq) || cq->shared == cq->sockets) &&
        ++cq->polls % LONE_POLLS != 0)
        return;
    /* One socket: reading it costs one system call, asking first makes it two. */
    if (cq->sockets == 1 && ++cq->polls % LONE_POLLS != 0 && slu_soft_tcp_poll(cq->connections))
        return;
    serve_sockets(cq);
}

void slu_soft_cq_serve(struct soft_cq *cq)
{
    cq->drained = 0;
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
        completion->qp->unpolled--;
    }
    /* It is as long as all peers together may need: what was used before is in the cache. */
    if (cq->head == cq->tail && cq->head >= NEAR_ENTRIES)
        cq->head = cq->tail = 0;
    return taken;
}

/* It did so much at once that it is time to look at all that others may want. */
static bool is_due(const struct soft_cq *cq)
{
    return cq->directs >= DIRECTS || cq->copied >= DIRECT_BYTES;
}

/* Who has some, of requests that were done at once, need not look for more each time. */
static bool has_enough(const struct soft_cq *cq, uint32_t count)
{
    uint32_t here = cq->tail - cq->head;
    return here > 0 && !is_due(cq) && (here >= count || cq->directs > 0);
}

/* slept: what has woken the program may be on a socket. */
static void look(struct soft_cq *cq, bool slept)
{
    bool due = slept || is_due(cq);
    cq->directs = 0;
    cq->copied = 0;
    cq->drained = 0;
    count_up(&cq->activity);
    if (cq->held != NULL)
        slu_soft_tcp_flush_held(cq);
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
    return (int)take_completions(cq, wcs, count);
}

/*
 * To sleep between the pieces of a large message costs as much as to receive them. But
 * whoever sends them may need this processor.
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
    slu_soft_tcp_flush_all(cq);
    if (awaits_piece(cq))
        return 1;
    bool more = cq->hot != NULL && !slu_soft_shm_sleep(cq);
    atomic_store(&cq->armed, 1);
    return more || cq->head != cq->tail || has_messages(cq) || cq->overrun;
}

int slu_soft_cq_fd(struct slu_cq *cq)
{
    return ((struct soft_cq *)cq)->fd;
}

void slu_soft_cq_forget(struct soft_qp *qp)
{
    struct soft_cq *cq = slu_soft_cq_of(qp);
    if (qp->unpolled == 0)
        return;
    uint32_t kept = cq->head;
    for (uint32_t i = cq->head; i != cq->tail; i++) {
        if (cq->ring[i & cq->mask].qp != qp)
            cq->ring[kept++ & cq->mask] = cq->ring[i & cq->mask];
    }
    cq->tail = kept;
    qp->unpolled = 0;
}
