/* SPDX-License-Identifier: MIT */
/*
 * Polling and arming completion queues. Guarantees: cq_arm answers 0 only if
 * the queue was empty after it was armed, so a sleep on the fd cannot miss
 * anything; and no completion of a destroyed queue pair is delivered.
 *
 * For both, completions are taken from the device before the engine asks for them. Such completions
 * are held here, in order, and delivered first at the next poll.
 */
#include "config.h"

#include <endian.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "transport/verbs/queues/queues.h"
#include "transport/verbs/queues/seam.h"

#define BATCH 32
/*
 * Maximum wait for requests of our own, many round trips of a device; and the maximum including the
 * time for which the processor ran others.
 */
#define OWN_TIME SLUICE_MS(2)
#define OWN_TIME_IN_ALL SLUICE_MS(40)
/* A yield that took longer ran another thread. */
#define EMPTY_YIELD SLUICE_US(1)
/* Acknowledging takes a lock, so events are acknowledged in batches. */
#define ACK_BATCH 64

/* Returns whether a completion is of a receive of the pool. */
static inline bool is_of_pool(const struct slu_verbs_cq *cq, const struct ibv_wc *wc)
{
    return slu_id_is_pool(wc->wr_id) && cq->pool;
}

/* Marks the completion of a receive of a pool with its peer, which its queue pair knows. */
static void mark_peer(struct slu_verbs_cq *cq, const struct ibv_wc *from, struct slu_wc *to)
{
    struct slu_verbs_qp *qp = slu_verbs_cq_find(cq, from->qp_num);

    cq->pool->posted--;
    if (qp)
        slu_verbs_hint_pooled(qp);
    /* That of a queue pair that was destroyed is held with its peer: see keep_of_pool(). */
    if (!qp && from->qp_num != 0)
        to->flags |= SLU_WC_NO_PEER;
    else
        to->flags |= (qp ? qp->base.peer : from->src_qp) << SLU_WC_PEER_SHIFT;
}

/*
 * Translates a completion. Returns 1, or 0 for a request of our own that the engine does not get.
 * For a failure, a device fills in only id, status, vendor code and queue pair.
 */
static uint32_t deliver(struct slu_verbs_cq *cq, const struct ibv_wc *from, struct slu_wc *to)
{
    if (SLU_UNLIKELY(slu_id_is_own(from->wr_id)))
        return slu_verbs_own_ended(cq, from, to);
    *to = (struct slu_wc){.id = from->wr_id, .status = (uint32_t)from->status};
    if (SLU_UNLIKELY(from->status != IBV_WC_SUCCESS)) {
        struct slu_verbs_qp *qp = slu_verbs_cq_find(cq, from->qp_num);

        /* A failure puts the queue pair into the error state; only this completion reports that. */
        if (qp)
            qp->state = SLU_QP_ERROR;
        to->vendor = from->vendor_err;
        if (SLU_UNLIKELY(is_of_pool(cq, from)))
            mark_peer(cq, from, to);
        return 1;
    }
    if (!(from->opcode & IBV_WC_RECV))
        return 1;
    to->bytes = from->byte_len;
    /* Not every provider sets the flag if the opcode implies it. */
    if (from->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
        to->flags = SLUICE_IMMEDIATE | SLUICE_WRITTEN;
    else if (from->wc_flags & IBV_WC_WITH_IMM)
        to->flags = SLUICE_IMMEDIATE;
    if (to->flags)
        to->immediate = be32toh(from->imm_data);
    if (SLU_UNLIKELY(is_of_pool(cq, from)))
        mark_peer(cq, from, to);
    return 1;
}

static uint32_t deliver_held(struct slu_verbs_cq *cq, struct slu_wc *wcs, uint32_t count)
{
    uint32_t taken = 0;

    while (cq->held_count > 0 && taken < count) {
        cq->held_count--;
        taken += deliver(cq, &cq->held[cq->held_first++], &wcs[taken]);
    }
    return taken;
}

/* Makes room for count more held completions behind the last one. */
static bool reserve_held(struct slu_verbs_cq *cq, uint32_t count)
{
    uint32_t needed = cq->held_count + count;
    struct ibv_wc *grown;

    if (cq->held_first > 0)
        memmove(cq->held, cq->held + cq->held_first, cq->held_count * sizeof *cq->held);
    cq->held_first = 0;
    if (needed <= cq->held_capacity)
        return true;
    needed = needed > 2 * cq->held_capacity ? needed : 2 * cq->held_capacity;
    grown = realloc(cq->held, needed * sizeof *grown);
    if (!grown)
        return false;
    cq->held = grown;
    cq->held_capacity = needed;
    return true;
}

/*
 * Moves up to count completions from the device to the held ones. Returns their number, or a
 * negative errno.
 */
static int hold(struct slu_verbs_cq *cq, struct ibv_cq *ibv, uint32_t count)
{
    int got;

    if (!reserve_held(cq, count))
        return -ENOMEM;
    got = ibv_poll_cq(ibv, (int)count, cq->held + cq->held_count);
    if (got < 0) {
        slu_verbs_cq_fail(cq, "a completion queue cannot be polled");
        return -EIO;
    }
    cq->held_count += (uint32_t)got;
    return got;
}

/*
 * Ends requests of our own. If one ended a probe, its completion is held under the id of the probe.
 */
void slu_verbs_cq_end_own(struct slu_verbs_cq *cq, uint32_t part)
{
    uint32_t kept = 0;
    struct ibv_wc *held;

    if (!cq->dead)
        hold(cq, cq->parts[part].ibv, BATCH);
    held = cq->held + cq->held_first;
    for (uint32_t i = 0; i < cq->held_count; i++) {
        struct slu_wc wc = {.id = held[i].wr_id};

        if (slu_id_is_own(wc.id) && !slu_verbs_own_ended(cq, &held[i], &wc))
            continue;
        held[kept] = held[i];
        held[kept++].wr_id = wc.id;
    }
    cq->held_count = kept;
}

/* Takes up to count completions of one queue of the device. */
static uint32_t poll_part(struct slu_verbs_cq *cq, struct ibv_cq *ibv, struct slu_wc *wcs,
                          uint32_t count)
{
    struct ibv_wc batch[BATCH];
    uint32_t taken = 0;

    while (taken < count) {
        int wanted = (int)slu_verbs_min(count - taken, BATCH);
        int got = ibv_poll_cq(ibv, wanted, batch);

        if (SLU_UNLIKELY(got < 0))
            slu_verbs_cq_fail(cq, "a completion queue cannot be polled");
        for (int i = 0; i < got; i++)
            taken += deliver(cq, &batch[i], &wcs[taken]);
        if (got < wanted)
            break;
    }
    return taken;
}

/* Polls several queues of the device. Each poll begins with another one, so that none starves. */
static uint32_t poll_parts(struct slu_verbs_cq *cq, struct slu_wc *wcs, uint32_t count)
{
    uint32_t taken = 0;

    for (uint32_t i = 0; i < cq->part_count && taken < count && !cq->dead; i++) {
        if (++cq->next_part >= cq->part_count)
            cq->next_part = 0;
        /* A queue without queue pairs has no completions. */
        if (!cq->parts[cq->next_part].reserved)
            continue;
        taken += poll_part(cq, cq->parts[cq->next_part].ibv, wcs + taken, count - taken);
    }
    return taken;
}

static int poll_many(struct slu_verbs_cq *cq, struct slu_wc *wcs, uint32_t count)
{
    uint32_t taken = 0;

    if (SLU_UNLIKELY(cq->held_count))
        taken = deliver_held(cq, wcs, count);
    if (SLU_LIKELY(cq->part_count == 1 && !cq->dead))
        taken += poll_part(cq, cq->parts[0].ibv, wcs + taken, count - taken);
    else
        taken += poll_parts(cq, wcs + taken, count - taken);
    if (SLU_UNLIKELY(cq->dead && taken == 0))
        return slu_fail(EIO, "%s (%s)", cq->reason, cq->base.context->device);
    return (int)taken;
}

/* Has a fast path for a wait for one completion, which polls often and mostly finds none. */
int slu_verbs_cq_poll(struct slu_cq *base, struct slu_wc *wcs, uint32_t count)
{
    struct slu_verbs_cq *cq = slu_verbs_cq_of(base);
    struct ibv_wc one;
    int got;

    cq->wait.own = cq->wait.in_all = 0;
    if (count != 1 || cq->held_count || cq->part_count != 1 || cq->dead)
        return poll_many(cq, wcs, count);
    got = ibv_poll_cq(cq->parts[0].ibv, 1, &one);
    if (got == 0)
        return 0;
    if (SLU_UNLIKELY(got < 0)) {
        slu_verbs_cq_fail(cq, "a completion queue cannot be polled");
        return poll_many(cq, wcs, count);
    }
    /* A completion of our own may be followed by another one. */
    return deliver(cq, &one, wcs) ? 1 : poll_many(cq, wcs, count);
}

/*
 * Keeps a completed receive of a pool, whose queue pair is destroyed: its buffer is the program's.
 * No queue pair for programs has the number 0. Returns false if it is of no pool.
 */
static bool keep_of_pool(const struct slu_verbs_cq *cq, struct ibv_wc *held, uint32_t peer)
{
    if (!is_of_pool(cq, held))
        return false;
    held->qp_num = 0;
    held->src_qp = peer;
    return true;
}

/* Drops held completions of a queue pair, from start on. */
static void drop_held(struct slu_verbs_cq *cq, uint32_t start, uint32_t qpn, uint32_t peer)
{
    struct ibv_wc *held = cq->held + cq->held_first;
    uint32_t kept = start;

    for (uint32_t i = start; i < cq->held_count; i++) {
        if (held[i].qp_num != qpn || keep_of_pool(cq, &held[i], peer))
            held[kept++] = held[i];
    }
    cq->held_count = kept;
}

/*
 * Drops the completions of a destroyed queue pair. Some providers clear the queue then, others
 * (rxe) do not, and completions that stay would take places that the engine counts as free. Polling
 * one length of the queue is enough, as completions come in order. Without memory to hold the
 * completions of others, the rest stays: the engine does not know the ids any more and discards
 * them.
 */
void slu_verbs_cq_purge(struct slu_verbs_cq *cq, uint32_t qpn, uint32_t peer, uint32_t part)
{
    struct ibv_cq *ibv = cq->parts[part].ibv;
    int got = BATCH;

    drop_held(cq, 0, qpn, peer);
    for (int left = ibv->cqe; left > 0 && got == BATCH && !cq->dead; left -= got) {
        uint32_t start = cq->held_count;

        got = hold(cq, ibv, BATCH);
        if (got > 0)
            drop_held(cq, start, qpn, peer);
    }
}

static void count_event(struct slu_verbs_cq *cq, const struct ibv_cq *ibv)
{
    struct slu_verbs_part *part = cq->parts;

    while (part->ibv != ibv)
        part++;
    part->armed = false;
    if (++part->unacked >= ACK_BATCH) {
        ibv_ack_cq_events(part->ibv, part->unacked);
        part->unacked = 0;
    }
}

/*
 * Reads the events of the channel. That of a removed device stays readable for ever and has no
 * events.
 */
static void drain_completion_events(struct slu_verbs_cq *cq, uint32_t events)
{
    struct ibv_cq *ibv;
    void *unused;

    errno = 0;
    while (ibv_get_cq_event(cq->channel, &ibv, &unused) == 0)
        count_event(cq, ibv);
    if (events & (EPOLLERR | EPOLLHUP) || (errno != EAGAIN && errno != EINTR && errno != 0))
        slu_verbs_cq_fail(cq, "the device has gone");
}

/* Consumes what made the fd readable; epoll_wait(2) consumes the edge of a wake-up. */
static void drain_fd(struct slu_verbs_cq *cq)
{
    SLU_UNCANCELLED_BLOCK;
    struct epoll_event events[SLU_VERBS_WATCHED];
    int saved = errno;
    int count = epoll_wait(cq->fd, events, SLU_VERBS_WATCHED, 0);

    for (int i = 0; i < count; i++) {
        if (events[i].data.u32 == SLU_VERBS_COMPLETION)
            drain_completion_events(cq, events[i].events);
    }
    errno = saved;
}

/*
 * Arms a queue of the device. A completion that came before makes no event, so the queue is polled
 * once more afterwards, and a completion found is held.
 */
static void arm_part(struct slu_verbs_cq *cq, struct slu_verbs_part *part)
{
    SLU_UNCANCELLED_BLOCK;

    if (!part->armed && ibv_req_notify_cq(part->ibv, 0)) {
        slu_verbs_cq_fail(cq, "a completion queue cannot be armed");
        return;
    }
    part->armed = true;
    hold(cq, part->ibv, 1);
}

/* Returns whether a completion is of a request of our own and is not delivered. */
static bool is_quiet(struct slu_verbs_cq *cq, const struct ibv_wc *wc)
{
    const struct slu_verbs_qp *qp =
        slu_id_is_own(wc->wr_id) ? slu_verbs_cq_find(cq, wc->qp_num) : NULL;

    return qp && qp->own.in_flight == wc->wr_id && qp->own.probe == 0;
}

/*
 * Time in which the processor ran others counts only towards most_in_all, as they may do what is
 * waited for.
 */
bool slu_verbs_wait_on(struct slu_verbs_wait *wait, int64_t hot, int64_t most, int64_t most_in_all)
{
    int64_t now = slu_now(), took = now - wait->begun;

    wait->own += took;
    wait->in_all += took;
    wait->begun = now;
    if (wait->own > most || wait->in_all > most_in_all)
        return false;
    if (wait->own < hot)
        return true;
    sched_yield();
    wait->begun = slu_now();
    took = wait->begun - now;
    wait->in_all += took;
    wait->own += took > EMPTY_YIELD ? 0 : took;
    return true;
}

/*
 * Waits for the ends of hints before sleeping, once for each, so that they do not wake the thread:
 * a hint ends after a round trip, unless it is behind a send that has to wait.
 */
static void await_own(struct slu_verbs_cq *cq)
{
    struct slu_verbs_wait wait = {.begun = slu_now()};

    cq->own_awaited = cq->own_number;
    do {
        for (uint32_t i = 0; i < cq->part_count && !cq->held_count; i++) {
            struct slu_wc none;

            if (!cq->parts[i].ibv || hold(cq, cq->parts[i].ibv, 1) <= 0 || !is_quiet(cq, cq->held))
                continue;
            cq->held_count = 0;
            slu_verbs_own_ended(cq, cq->held, &none);
        }
    } while (cq->own_busy > 0 && !cq->held_count && !cq->dead &&
             slu_verbs_wait_on(&wait, 0, OWN_TIME, OWN_TIME_IN_ALL));
}

/*
 * Asks for an event when fewer receives than the limit are left. Not every device has it. A system
 * call, so posts do not make it: only a thread that sleeps needs the event.
 */
static void arm_pool(struct slu_verbs_pool *pool)
{
    struct ibv_srq_attr attr = {.srq_limit = pool->low};
    int saved = errno;

    if (pool->posted <= pool->low || atomic_exchange(&pool->armed, true))
        return;
    if (ibv_modify_srq(pool->ibv, &attr, IBV_SRQ_LIMIT)) {
        slu_log(SLUICE_LOG_DEBUG, "device %s reports no shared receive queues that run low",
                pool->base.pd->context->device);
        pool->low = pool->depth;
    }
    errno = saved;
}

int slu_verbs_cq_arm(struct slu_cq *base)
{
    struct slu_verbs_cq *cq = slu_verbs_cq_of(base);

    if (SLU_UNLIKELY(cq->own_busy > 0) && cq->own_awaited != cq->own_number)
        await_own(cq);
    drain_fd(cq);
    for (uint32_t i = 0; i < cq->part_count && !cq->held_count && !cq->dead; i++)
        if (cq->parts[i].ibv)
            arm_part(cq, &cq->parts[i]);
    if (cq->pool)
        arm_pool(cq->pool);
    return cq->held_count || cq->dead || atomic_load(&base->alerted) ? 1 : 0;
}

int slu_verbs_cq_fd(struct slu_cq *base)
{
    return slu_verbs_cq_of(base)->fd;
}
