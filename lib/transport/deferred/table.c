/* SPDX-License-Identifier: MIT */
/*
 * The table, and the lock of a completion queue. The queue itself is the transport's. Functions
 * that are not replaced here are the transport's, without an indirection.
 */
#include "config.h"

#include <stdlib.h>

#include "transport/deferred/inside.h"

struct slu_deferred *slu_deferred_create(struct slu_tpd *pd, const struct slu_qp_attr *attr,
                                         uint32_t count, struct slu_deferred_user *user)
{
    struct slu_deferred *deferred =
        calloc(1, sizeof *deferred + count * sizeof(struct deferred_slot));
    uint16_t *live = calloc(count, sizeof *live);
    int error;

    if (deferred == NULL || live == NULL) {
        free(deferred);
        free(live);
        return slu_fail_null(ENOMEM, "no memory for the connections to %u peers", count);
    }
    deferred->live = live;
    deferred->inner = pd->context->transport;
    deferred->pd = pd;
    deferred->attr = attr;
    deferred->count = count;
    deferred->user = user;
    error = slu_random(&deferred->identity, sizeof deferred->identity);
    if (error < 0) {
        free(live);
        free(deferred);
        return slu_none(error);
    }
    deferred->identity |= 1; /* never 0 */
    pthread_mutex_init(&deferred->lock, NULL);
    return deferred;
}

void slu_deferred_free(struct slu_deferred *deferred)
{
    if (deferred == NULL)
        return;
    pthread_mutex_destroy(&deferred->lock);
    free(deferred->set_aside);
    free(deferred->live);
    free(deferred);
}

void slu_deferred_take(struct slu_cq *cq, struct slu_deferred *deferred)
{
    cq->deferred = deferred;
    deferred->cq = cq;
}

static void enter_inner(const struct slu_deferred *deferred)
{
    if (deferred->inner->cq_enter != NULL)
        deferred->inner->cq_enter(deferred->cq);
}

static void leave_inner(const struct slu_deferred *deferred)
{
    if (deferred->inner->cq_leave != NULL)
        deferred->inner->cq_leave(deferred->cq);
}

static void work(struct slu_deferred *deferred)
{
    if (!deferred->working && atomic_exchange(&deferred->asked, false)) {
        deferred->working = true;
        deferred->user->work(deferred->user);
        deferred->working = false;
    }
}

/*
 * Works unless another thread has the queue. That thread finds the request when it leaves, because
 * the fence puts the request before the attempt to lock, and the other's unlock before its look.
 */
static void work_if_free(struct slu_deferred *deferred)
{
    atomic_thread_fence(memory_order_seq_cst);
    while (SLU_UNLIKELY(atomic_load(&deferred->asked)) &&
           pthread_mutex_trylock(&deferred->lock) == 0) {
        enter_inner(deferred);
        work(deferred);
        leave_inner(deferred);
        pthread_mutex_unlock(&deferred->lock);
        atomic_thread_fence(memory_order_seq_cst);
    }
}

void slu_deferred_ask(struct slu_deferred *deferred)
{
    atomic_store(&deferred->asked, true);
    work_if_free(deferred);
    /* The program may sleep on the queue, or on its descriptor while something was completed. */
    deferred->inner->cq_wake(deferred->cq);
}

static void enter(struct slu_cq *cq)
{
    pthread_mutex_lock(&cq->deferred->lock);
    enter_inner(cq->deferred);
}

static void leave(struct slu_cq *cq)
{
    leave_inner(cq->deferred);
    pthread_mutex_unlock(&cq->deferred->lock);
    work_if_free(cq->deferred);
}

static int poll_inner(struct slu_deferred *deferred, struct slu_wc *wcs, uint32_t count)
{
    int got;

    if (SLU_UNLIKELY(deferred->aside_count > 0))
        return (int)slu_deferred_take_aside(deferred, wcs, count);
    got = deferred->inner->cq_poll(deferred->cq, wcs, count);
    if (got > 0)
        slu_deferred_note_ends(deferred, wcs, (uint32_t)got);
    return got;
}

static int poll_cq(struct slu_cq *cq, struct slu_wc *wcs, uint32_t count)
{
    struct slu_deferred *deferred = cq->deferred;

    if (SLU_UNLIKELY(atomic_load_explicit(&deferred->asked, memory_order_relaxed))) {
        if (deferred->most > 0)
            slu_deferred_close_failed(deferred);
        work(deferred);
    }
    if (SLU_UNLIKELY(deferred->flushing != NULL)) {
        uint32_t flushed = slu_deferred_flush(deferred, wcs, count);

        if (flushed > 0)
            return (int)flushed;
    }
    return poll_inner(deferred, wcs, count);
}

/* What was asked for before the queue was armed is seen here, and what comes later wakes it. */
static int arm(struct slu_cq *cq)
{
    int result = cq->deferred->inner->cq_arm(cq);

    return result != 0 || cq->deferred->flushing != NULL || cq->deferred->aside_count > 0 ||
           atomic_load(&cq->deferred->asked);
}

/* A connection that the engine does not use yet fails without notice: see slu_deferred_attach(). */
static bool take_inner_alert(struct slu_deferred *deferred, struct slu_alert *alert)
{
    while (deferred->inner->cq_alert(deferred->cq, alert)) {
        const struct deferred_slot *slot = &deferred->slots[alert->qp->peer];

        if (slot->qp != NULL && slot->qp->real == alert->qp)
            return true;
    }
    return false;
}

static bool take_alert(struct slu_cq *cq, struct slu_alert *alert)
{
    struct slu_deferred *deferred = cq->deferred;

    if (deferred->inner->cq_alert == NULL)
        atomic_store(&cq->alerted, false);
    else if (take_inner_alert(deferred, alert))
        return true;
    for (uint32_t i = 0; deferred->alerts > 0 && i < deferred->count; i++) {
        struct deferred_qp *qp = deferred->slots[i].qp;

        if (qp == NULL || !qp->alerts)
            continue;
        *alert = qp->alert;
        qp->alerts = false;
        deferred->alerts--;
        return true;
    }
    return false;
}

static void destroy_cq(struct slu_cq *cq)
{
    struct slu_deferred *deferred = cq->deferred;

    enter_inner(deferred);
    while (deferred->live_count > 0)
        slu_deferred_end(deferred, &deferred->slots[deferred->live[deferred->live_count - 1]]);
    leave_inner(deferred);
    deferred->inner->cq_destroy(cq);
    slu_deferred_free(deferred);
}

/* The entries of a peer come with the queue pair of the transport. */
static int extend_cq(struct slu_cq *cq, uint32_t entries)
{
    (void)cq;
    (void)entries;
    return 0;
}

static void reduce_cq(struct slu_cq *cq, uint32_t entries)
{
    (void)cq;
    (void)entries;
}

static int state_of(const struct slu_qp *base)
{
    const struct deferred_qp *qp = deferred_const_qp_of(base);

    if (qp->failed)
        return SLU_QP_ERROR;
    return qp->real != NULL ? qp->owner->inner->qp_state(qp->real) : SLU_QP_CONNECTED;
}

static void query(const struct slu_qp *base, struct sluice_channel_info *info)
{
    const struct deferred_qp *qp = deferred_const_qp_of(base);

    if (qp->real != NULL)
        qp->owner->inner->qp_query(qp->real, info);
}

static void be_slow(struct slu_qp *base)
{
    const struct deferred_qp *qp = deferred_qp_of(base);

    if (qp->real != NULL)
        qp->owner->inner->qp_slow(qp->real);
}

static uint32_t take_moved(struct slu_qp *base)
{
    const struct deferred_qp *qp = deferred_qp_of(base);

    return qp->real != NULL ? qp->owner->inner->qp_moved(qp->real) : 0;
}

static void take_stand(const struct slu_qp *base, struct slu_stand *stand)
{
    const struct deferred_qp *qp = deferred_const_qp_of(base);
    uint8_t flags = deferred_slot_of(qp)->flags;

    if (qp->real != NULL && qp->owner->inner->qp_stand != NULL)
        qp->owner->inner->qp_stand(qp->real, stand);
    else if (qp->real == NULL && (flags & DEFERRED_NO_ROOM) != 0)
        stand->waits = "it waits for a connection: there are as many as max_connections of the "
                       "node's attributes, and none is idle";
    else if (qp->real == NULL && (flags & DEFERRED_BUSY) != 0)
        stand->waits = "the peer cannot be connected yet: as many connections of it are in use as "
                       "max_connections of its attributes, or it does not know this process";
}

static const char *find_loss(const struct slu_qp *base, bool *closed)
{
    const struct deferred_qp *qp = deferred_const_qp_of(base);

    return qp->real != NULL ? qp->owner->inner->qp_loss(qp->real, closed) : NULL;
}

static void say_farewell(struct slu_qp *base, enum slu_farewell why)
{
    const struct deferred_qp *qp = deferred_qp_of(base);

    if (qp->real == NULL)
        return;
    /* The engine counts over all connections of the peer. */
    qp->real->taken = deferred_slot_of(qp)->taken;
    qp->owner->inner->qp_farewell(qp->real, why);
}

static bool find_untaken(const struct slu_qp *base, uint64_t *untaken)
{
    const struct deferred_qp *qp = deferred_const_qp_of(base);

    return qp->real != NULL && qp->owner->inner->qp_untaken(qp->real, untaken);
}

void slu_deferred_over(const struct slu_transport *inner, struct slu_transport *table)
{
    *table = *inner;
    table->cq_enter = enter;
    table->cq_leave = leave;
    table->cq_poll = poll_cq;
    table->cq_is_quiet = NULL;
    table->cq_arm = arm;
    table->cq_alert = take_alert;
    table->cq_extend = extend_cq;
    table->cq_reduce = reduce_cq;
    table->cq_destroy = destroy_cq;
    table->qp_create = slu_deferred_qp_create;
    table->qp_destroy = slu_deferred_qp_destroy;
    table->qp_state = state_of;
    table->qp_query = inner->qp_query != NULL ? query : NULL;
    table->qp_probe = slu_deferred_qp_probe;
    table->qp_slow = inner->qp_slow != NULL ? be_slow : NULL;
    table->qp_moved = inner->qp_moved != NULL ? take_moved : NULL;
    table->qp_stand = take_stand;
    table->qp_loss = inner->qp_loss != NULL ? find_loss : NULL;
    table->qp_farewell = inner->qp_farewell != NULL ? say_farewell : NULL;
    table->qp_untaken = inner->qp_untaken != NULL ? find_untaken : NULL;
    table->qp_error = slu_deferred_qp_error;
    table->post_send = slu_deferred_post_send;
    table->post_receive = slu_deferred_post_receive;
}
