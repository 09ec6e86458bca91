/* SPDX-License-Identifier: MIT */
/*
 * Completion queues: ownership, turns, and sleeping on a queue.
 *
 * The owner word of a CQ grants access to the CQ and all its queue pairs. The program takes it with
 * one atomic operation when it enters the library, gives it back with one when it leaves, and
 * serves the CQ itself in between. The helper, and threads that bring a message, take it only while
 * it is free, for a bounded turn. See inbox.c for why no message is left lying.
 */
#include "transport/soft/core/soft.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Rounds in which a thread that leaves drains messages that were pushed meanwhile. */
#define ROUNDS 16

/*
 * True while this thread drains the inbox of a CQ that it only visits; always in a helper thread.
 */
static _Thread_local bool visiting;

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
    int err = 0;
    cq->event = cq->fd = -1;
    /* One check of the standard streams is enough for all three. */
    slu_fd_guard();
    if ((cq->epoll = slu_fd_epoll()) < 0 || (cq->event = slu_fd_event()) < 0 ||
        (cq->fd = slu_fd_epoll()) < 0 || add_to_fd(cq, cq->epoll) != 0 ||
        add_to_fd(cq, cq->event) != 0)
        err = errno;
    slu_fd_unguard();
    if (err == 0)
        return 0;
    close_fds(cq);
    return slu_fail(err, "a completion queue needs file descriptors: %s", strerrordesc_np(err));
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
    slu_soft_cq_free_ring(cq);
    free(cq);
}

int slu_soft_cq_create(struct slu_tcontext *context, uint32_t depth, struct slu_cq **made)
{
    struct soft_cq *cq = calloc(1, sizeof(*cq));
    if (cq == NULL)
        return slu_fail(ENOMEM, "no memory for a completion queue");
    cq->base.context = context;
    cq->base.depth = depth;
    atomic_init(&cq->references, 1);
    atomic_init(&cq->watch, SOFT_WATCH_ARMED);
    int err = slu_soft_cq_set_ring(cq, slu_soft_ring_size(depth));
    if (err != 0)
        goto free_struct;
    err = open_fds(cq);
    if ((err == -EMFILE || err == -ENFILE) && slu_soft_spares_drop((struct soft_context *)context))
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
    slu_soft_cq_free_ring(cq);
free_struct:
    free(cq);
    return err;
}

void slu_soft_cq_destroy(struct slu_cq *base)
{
    struct soft_cq *cq = (struct soft_cq *)base;
    /* The helper finds CQs by slot: after this, it has only CQs that it already holds. */
    delist(cq);
    slu_soft_helper_unwatch(cq);
    /* No later turn comes: drain what the last one left. */
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
 * Does not take the CQ while the program waits for it: a thread that is always awake would win
 * again and again. The program serves the CQ itself when it gets it.
 */
bool slu_soft_cq_take(struct soft_cq *cq)
{
    return atomic_load(&cq->waiting) == 0 && take(cq, SOFT_HELPER);
}

/*
 * Gives the CQ back. If only the epoll set wakes the helper, every connection with shared memory
 * must be set to wake it; if one keeps having more, the helper polls it. The helper also continues
 * where messages are pushed as fast as they are drained, as this thread has other work to do, and
 * where the system had no memory for a send.
 */
void slu_soft_cq_give_back(struct soft_cq *cq)
{
    bool restless = false, all;
    int round = 0;
    cq->drained = 0;
    do {
        all = !slu_soft_has_messages(cq) || (slu_soft_inbox_drain(cq) && ++round < ROUNDS);
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
    restless = restless || (slu_soft_is_starved(cq) && !atomic_load(&cq->dead));
    if (restless)
        atomic_store(&cq->restless, true);
    if (restless || !all || atomic_load(&cq->watch) == SOFT_WATCH_OFF)
        slu_soft_helper_kick(cq);
}

/* Waits for the end of another thread's turn, which is bounded except for page faults. */
static void wait_for_turn(struct soft_cq *cq)
{
    atomic_fetch_add(&cq->waiting, 1);
    for (unsigned time = 0; !take(cq, SOFT_PROGRAM); time++)
        slu_soft_pause(time);
    atomic_fetch_sub(&cq->waiting, 1);
}

void slu_soft_cq_enter(struct slu_cq *base)
{
    struct soft_cq *cq = (struct soft_cq *)base;
    if (SLU_UNLIKELY(!take(cq, SOFT_PROGRAM)))
        wait_for_turn(cq);
    slu_soft_count_up(&cq->entries);
}

/*
 * Returns whether nothing but what was published has to be settled before the program leaves: the
 * helper polls the CQ, and there are no messages and no completions.
 */
static inline bool is_calm(struct soft_cq *cq)
{
    return atomic_load_explicit(&cq->watch, memory_order_relaxed) == SOFT_WATCH_TICK &&
           cq->head == cq->tail && cq->urgent == NULL && !slu_soft_has_messages(cq) &&
           !slu_soft_is_starved(cq);
}

/* Gives back a CQ that needs no more than slu_soft_cq_give_back() does after the store. */
static inline void set_free(struct soft_cq *cq)
{
    atomic_store(&cq->owner, SOFT_FREE);
    if (SLU_UNLIKELY(!slu_soft_inbox_empty(cq)) && slu_soft_cq_take(cq))
        slu_soft_cq_give_back(cq);
    else if (SLU_UNLIKELY(atomic_load(&cq->watch) == SOFT_WATCH_OFF))
        slu_soft_helper_kick(cq);
}

void slu_soft_cq_leave(struct slu_cq *base)
{
    struct soft_cq *cq = (struct soft_cq *)base;
    if (SLU_UNLIKELY(!is_calm(cq))) {
        slu_soft_cq_give_back(cq);
        return;
    }
    if (cq->unsettled != NULL)
        slu_soft_shm_settle(cq);
    set_free(cq);
}

/*
 * Returns whether nothing has come, and nothing is to be settled. All connections are cold, so the
 * helper is woken for what comes next.
 */
static bool has_nothing(struct soft_cq *cq)
{
    return cq->head == cq->tail && cq->hot == NULL && cq->urgent == NULL && cq->unsettled == NULL &&
           cq->held == NULL && cq->pool == NULL && !cq->overrun && !slu_soft_has_messages(cq) &&
           !slu_soft_is_starved(cq) &&
           atomic_load_explicit(&cq->armed, memory_order_relaxed) == 0 &&
           !atomic_load_explicit(&cq->signaled, memory_order_relaxed) && slu_soft_shm_is_still(cq);
}

/* Leaves the CQ as it was: what has come is for a poll, or for the helper. */
bool slu_soft_cq_is_quiet(struct slu_cq *base)
{
    struct soft_cq *cq = (struct soft_cq *)base;
    if (!take(cq, SOFT_PROGRAM))
        return false;
    bool quiet = has_nothing(cq);
    set_free(cq);
    return quiet;
}

/*
 * Makes the event readable. The write cannot fail: the counter would have to be full. signaled is
 * set before the write, because the thread that it wakes may run at once and must know that there
 * is an event to clear. It is set again after the write, because a thread that checked in between
 * cleared the flag and found nothing to read.
 */
static void signal_event(struct soft_cq *cq)
{
    uint64_t one = 1;
    SLU_KEEP_ERRNO;

    atomic_store(&cq->signaled, true);
    (void)!SLU_UNCANCELLED(write(cq->event, &one, sizeof(one)));
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

int slu_soft_cq_fd(struct slu_cq *cq)
{
    return ((struct soft_cq *)cq)->fd;
}

void slu_soft_inbox_never_visit(void)
{
    visiting = true;
}

void slu_soft_inbox_notify(struct soft_cq *cq)
{
    if (atomic_load(&cq->owner) != SOFT_FREE) {
        slu_soft_cq_wake(cq);
        return;
    }
    /* Visits do not nest, as their depth would have no bound: the helper serves this CQ. */
    if (visiting) {
        slu_soft_helper_kick(cq);
        return;
    }
    /* If another thread takes it first, it checks the inbox when it leaves. */
    if (slu_soft_cq_take(cq)) {
        visiting = true;
        slu_soft_cq_give_back(cq);
        visiting = false;
    }
}

void slu_soft_send(struct soft_cq *cq, struct soft_message *message, const struct soft_cq *current)
{
    if (cq == current) {
        slu_soft_inbox_push(cq, message);
        return;
    }
    /* Hold the CQ: once the message is pushed, its receiver may release it. */
    slu_soft_cq_hold(cq);
    slu_soft_inbox_push(cq, message);
    slu_soft_inbox_notify(cq);
    slu_soft_cq_release(cq);
}
