/* SPDX-License-Identifier: MIT */
/*
 * Completion queues. Guarantees: cq_arm answers 0 only if the queue was empty
 * after it was armed, so a sleep on the fd cannot miss anything; and no
 * completion of a destroyed queue pair is delivered.
 *
 * Both need completions taken from the device before the engine asks: these
 * are held here, in order, and come first at the next poll.
 */
#include "config.h"

#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "verbs.h"

#define BATCH 32
/* Acknowledging takes a lock, so events are acknowledged by the many. */
#define ACK_BATCH 64

static struct slu_verbs_qp **bucket_of(struct slu_verbs_cq *cq, uint32_t qpn)
{
    return &cq->qps[qpn & (SLU_VERBS_BUCKETS - 1)];
}

void slu_verbs_cq_add(struct slu_verbs_cq *cq, struct slu_verbs_qp *qp)
{
    struct slu_verbs_qp **bucket = bucket_of(cq, qp->ibv->qp_num);

    qp->next = *bucket;
    *bucket = qp;
}

void slu_verbs_cq_remove(struct slu_verbs_cq *cq, struct slu_verbs_qp *qp)
{
    struct slu_verbs_qp **link = bucket_of(cq, qp->ibv->qp_num);

    while (*link != qp)
        link = &(*link)->next;
    *link = qp->next;
}

/* A failed request takes its queue pair to the error state: the device says so only here. */
static void mark_failed(struct slu_verbs_cq *cq, uint32_t qpn)
{
    for (struct slu_verbs_qp *qp = *bucket_of(cq, qpn); qp; qp = qp->next) {
        if (qp->ibv->qp_num == qpn) {
            qp->state = SLU_QP_ERROR;
            return;
        }
    }
}

static int mark_dead(struct slu_verbs_cq *cq)
{
    cq->dead = true;
    for (uint32_t i = 0; i < SLU_VERBS_BUCKETS; i++) {
        for (struct slu_verbs_qp *qp = cq->qps[i]; qp; qp = qp->next)
            qp->state = SLU_QP_ERROR;
    }
    return -EIO;
}

/* Of a failed completion a device fills in only id, status, vendor code and queue pair. */
static void deliver(struct slu_verbs_cq *cq, const struct ibv_wc *from, struct slu_wc *to)
{
    *to = (struct slu_wc){.id = from->wr_id, .status = (uint32_t)from->status};
    if (SLU_UNLIKELY(from->status != IBV_WC_SUCCESS)) {
        to->vendor = from->vendor_err;
        mark_failed(cq, from->qp_num);
        return;
    }
    if (!(from->opcode & IBV_WC_RECV))
        return;
    to->bytes = from->byte_len;
    /* Not every provider sets the flag where the opcode says it already. */
    if (from->wc_flags & IBV_WC_WITH_IMM || from->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
        to->flags = SLUICE_IMMEDIATE;
        to->immediate = be32toh(from->imm_data);
    }
}

static uint32_t deliver_held(struct slu_verbs_cq *cq, struct slu_wc *wcs, uint32_t count)
{
    uint32_t taken = slu_verbs_min(count, cq->held_count);

    for (uint32_t i = 0; i < taken; i++)
        deliver(cq, &cq->held[cq->held_first + i], &wcs[i]);
    cq->held_first += taken;
    cq->held_count -= taken;
    return taken;
}

int slu_verbs_cq_poll(struct slu_cq *base, struct slu_wc *wcs, uint32_t count)
{
    struct slu_verbs_cq *cq = slu_verbs_cq_of(base);
    uint32_t taken = SLU_UNLIKELY(cq->held_count) ? deliver_held(cq, wcs, count) : 0;
    struct ibv_wc batch[BATCH];

    while (taken < count && !cq->dead) {
        int wanted = (int)slu_verbs_min(count - taken, BATCH);
        int got = ibv_poll_cq(cq->ibv, wanted, batch);

        if (SLU_UNLIKELY(got < 0))
            mark_dead(cq);
        for (int i = 0; i < got; i++)
            deliver(cq, &batch[i], &wcs[taken++]);
        if (got < wanted)
            break;
    }
    if (SLU_UNLIKELY(cq->dead && taken == 0))
        return slu_fail(EIO, "the completion queue on %s is dead", base->context->device);
    return (int)taken;
}

/* Room for count more held completions behind the last one. */
static bool reserve_held(struct slu_verbs_cq *cq, uint32_t count)
{
    uint32_t needed = cq->held_count + count;
    struct ibv_wc *grown;

    if (cq->held_first > 0)
        memmove(cq->held, cq->held + cq->held_first, cq->held_count * sizeof(*cq->held));
    cq->held_first = 0;
    if (needed <= cq->held_capacity)
        return true;
    needed = needed > 2 * cq->held_capacity ? needed : 2 * cq->held_capacity;
    grown = realloc(cq->held, needed * sizeof(*grown));
    if (!grown)
        return false;
    cq->held = grown;
    cq->held_capacity = needed;
    return true;
}

/* Moves up to count completions from the device to the held ones: their number, or below 0. */
static int hold(struct slu_verbs_cq *cq, uint32_t count)
{
    int got;

    if (!reserve_held(cq, count))
        return -ENOMEM;
    got = ibv_poll_cq(cq->ibv, (int)count, cq->held + cq->held_count);
    if (got < 0)
        return mark_dead(cq);
    cq->held_count += (uint32_t)got;
    return got;
}

/* Keeps those of the held completions from start on that are not of the queue pair. */
static void drop_held(struct slu_verbs_cq *cq, uint32_t start, uint32_t qpn)
{
    struct ibv_wc *held = cq->held + cq->held_first;
    uint32_t kept = start;

    for (uint32_t i = start; i < cq->held_count; i++) {
        if (held[i].qp_num != qpn)
            held[kept++] = held[i];
    }
    cq->held_count = kept;
}

/*
 * Some providers clear the queue when a queue pair is destroyed, others (rxe)
 * do not, and what they leave would take places that the engine counts as free.
 * One length of the queue is enough, as completions come in order. Without
 * memory for the others' completions the rest stays: the engine does not know
 * its ids any more and discards it.
 */
void slu_verbs_cq_purge(struct slu_verbs_cq *cq, uint32_t qpn)
{
    int got = BATCH;

    drop_held(cq, 0, qpn);
    for (int left = cq->ibv->cqe; left > 0 && got == BATCH && !cq->dead; left -= got) {
        uint32_t start = cq->held_count;

        got = hold(cq, BATCH);
        if (got > 0)
            drop_held(cq, start, qpn);
    }
}

static void drain_events(struct slu_verbs_cq *cq)
{
    int saved = errno;
    struct ibv_cq *ibv;
    void *unused;

    while (ibv_get_cq_event(cq->channel, &ibv, &unused) == 0) {
        cq->unacked++;
        cq->armed = false;
    }
    errno = saved;
    if (cq->unacked >= ACK_BATCH) {
        ibv_ack_cq_events(cq->ibv, cq->unacked);
        cq->unacked = 0;
    }
}

/*
 * A completion that came before the queue was armed makes no event, so the
 * queue is looked at once more afterwards, and what is found is held.
 */
int slu_verbs_cq_arm(struct slu_cq *base)
{
    struct slu_verbs_cq *cq = slu_verbs_cq_of(base);

    if (cq->armed)
        drain_events(cq);
    if (cq->held_count || cq->dead)
        return 1;
    if (!cq->armed && ibv_req_notify_cq(cq->ibv, 0)) {
        mark_dead(cq);
        return 1;
    }
    cq->armed = true;
    return hold(cq, 1) == 0 ? 0 : 1;
}

int slu_verbs_cq_fd(struct slu_cq *base)
{
    return slu_verbs_cq_of(base)->channel->fd;
}

static int open_channel(struct slu_verbs_cq *cq, const struct slu_verbs_context *context)
{
    int err;

    cq->channel = ibv_create_comp_channel(context->ibv);
    if (!cq->channel) {
        err = slu_verbs_errno(-1);
        return slu_fail(err, "cannot create a completion channel on %s: %s", context->base.device,
                        strerror(err));
    }
    if (fcntl(cq->channel->fd, F_SETFL, O_NONBLOCK) ||
        fcntl(cq->channel->fd, F_SETFD, FD_CLOEXEC)) {
        err = slu_fail(errno, "cannot prepare the completion channel of %s: %s",
                       context->base.device, strerror(errno));
        ibv_destroy_comp_channel(cq->channel);
        return err;
    }
    return 0;
}

int slu_verbs_cq_create(struct slu_tcontext *base, uint32_t depth, struct slu_cq **cq)
{
    struct slu_verbs_context *context = slu_verbs_context_of(base);
    struct slu_verbs_cq *made;
    int err;

    if (depth == 0 || depth > base->max_cq_depth)
        return slu_fail(EINVAL, "a completion queue of %u entries is out of range: %s has 1 to %u",
                        depth, base->device, base->max_cq_depth);
    made = calloc(1, sizeof(*made));
    if (!made)
        return slu_fail(ENOMEM, "no memory for a completion queue");
    made->base = (struct slu_cq){.context = base, .depth = depth};
    /* So that arming, which holds one, can never be out of memory. */
    if (!reserve_held(made, 1)) {
        err = slu_fail(ENOMEM, "no memory for a completion queue");
        goto free_cq;
    }
    err = open_channel(made, context);
    if (err)
        goto free_held;
    made->ibv = ibv_create_cq(context->ibv, (int)depth, made, made->channel, 0);
    if (!made->ibv) {
        err = slu_verbs_errno(-1);
        slu_fail(err, "cannot create a completion queue of %u entries on %s: %s", depth,
                 base->device, strerror(err));
        err = -err;
        goto destroy_channel;
    }
    *cq = &made->base;
    return 0;

destroy_channel:
    ibv_destroy_comp_channel(made->channel);
free_held:
    free(made->held);
free_cq:
    free(made);
    return err;
}

/* Destroying a queue waits until its events are acknowledged, the last batch too. */
void slu_verbs_cq_destroy(struct slu_cq *base)
{
    struct slu_verbs_cq *cq = slu_verbs_cq_of(base);
    int err;

    if (cq->unacked)
        ibv_ack_cq_events(cq->ibv, cq->unacked);
    err = ibv_destroy_cq(cq->ibv);
    if (err)
        slu_log(SLUICE_LOG_ERROR, "destroying a completion queue of %s failed: %s",
                base->context->device, strerror(slu_verbs_errno(err)));
    else
        ibv_destroy_comp_channel(cq->channel);
    free(cq->held);
    free(cq);
}
