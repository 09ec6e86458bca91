/* SPDX-License-Identifier: MIT */
/* Takes work, executes it in order, reports it, and injects all faults of that. */
#include "config.h"

#include "fake_queues.h"

#include <stdlib.h>

#include "engine/request/parts.h"

/* Returns how many requests the engine may believe to be in flight. */
static uint32_t in_flight(const struct fake_cq *cq)
{
    uint32_t count = cq->count;
    for (const struct fake_qp *qp = cq->qps; qp; qp = qp->next) {
        count += qp->lists[SLU_SEND_QUEUE].count + qp->lists[SLU_RECEIVE_QUEUE].count;
    }
    return count;
}

/* Parts of a request have ids of their own. */
static bool is_same_request(uint64_t one, uint64_t other)
{
    if (!slu_id_is_part(one) || !slu_id_is_part(other)) {
        return one == other;
    }
    return one - slu_part_of(one) * SLU_ID_STEP * (1 << SLU_PEER_BITS) ==
           other - slu_part_of(other) * SLU_ID_STEP * (1 << SLU_PEER_BITS);
}

static bool holds_id(const struct fake_cq *cq, uint64_t id)
{
    for (const struct fake_qp *qp = cq->qps; qp; qp = qp->next) {
        for (int queue = 0; queue < SLU_QUEUES; queue++) {
            for (const struct fake_wr *work = qp->lists[queue].first; work; work = work->next) {
                if (is_same_request(work->id, id)) {
                    return true;
                }
            }
        }
    }
    return false;
}

static void add_stray(struct fake_cq *cq, uint64_t id)
{
    if (cq->stray_count < FAKE_STRAYS) {
        cq->strays[cq->stray_count++] = id;
    }
}

static void report(struct fake_qp *qp, const struct fake_wr *work, uint32_t status)
{
    struct fake_cq *cq = fake_cq_of(qp->base.cq);
    fake_require(cq->count < cq->base.depth, "%u: the completion queue overran", cq->count);
    cq->ring[(cq->first + cq->count++) % cq->base.depth] = (struct fake_wc){
        .wc = {.id = work->id,
               .status = status,
               .vendor = status != SLUICE_STATUS_SUCCESS ? 99 : 0,
               .bytes = work->bytes},
        .qp = qp,
        .key = work->key,
    };
    if (!qp->refused && fake_chance(fake.chances.repeat)) {
        add_stray(cq, work->id);
    }
}

static struct fake_wr *take_work(struct fake_list *list)
{
    struct fake_wr *work = list->first;
    list->first = work->next;
    list->count--;
    if (!list->first) {
        list->end = &list->first;
    }
    fake.ledger[work->key].held--;
    return work;
}

static void fail_qp(struct fake_qp *qp)
{
    if (qp->state != SLU_QP_ERROR) {
        qp->state = SLU_QP_ERROR;
        qp->stuck = fake.never_flush || fake_chance(fake.chances.stick);
    }
}

bool fake_complete(struct slu_qp *base, enum slu_queue queue, uint32_t status)
{
    struct fake_qp *qp = fake_qp_of(base);
    if (qp->lists[queue].count == 0) {
        return false;
    }
    struct fake_wr *work = take_work(&qp->lists[queue]);
    if (work->id == qp->probe) {
        qp->probe = 0;
    }
    if (status == SLUICE_STATUS_SUCCESS) {
        fake.ledger[work->key].bytes += work->bytes;
    }
    if (status != SLUICE_STATUS_SUCCESS || work->signaled) {
        report(qp, work, status);
    }
    free(work);
    if (status != SLUICE_STATUS_SUCCESS) {
        fail_qp(qp);
    }
    return true;
}

void fake_swallow(struct slu_qp *base, enum slu_queue queue)
{
    struct fake_wr *work = take_work(&fake_qp_of(base)->lists[queue]);
    fake.ledger[work->key].bytes += work->bytes;
    free(work);
}

uint32_t fake_held(const struct slu_qp *qp, enum slu_queue queue)
{
    return fake_qp_of(qp)->lists[queue].count;
}

static uint32_t choose_error(void)
{
    static const uint32_t errors[] = {
        SLUICE_STATUS_LOC_LEN_ERR,       SLUICE_STATUS_LOC_QP_OP_ERR,  SLUICE_STATUS_LOC_PROT_ERR,
        SLUICE_STATUS_REM_INV_REQ_ERR,   SLUICE_STATUS_REM_ACCESS_ERR, SLUICE_STATUS_RETRY_EXC_ERR,
        SLUICE_STATUS_RNR_RETRY_EXC_ERR, SLUICE_STATUS_FATAL_ERR,      SLUICE_STATUS_GENERAL_ERR,
    };
    return errors[fake_random(COUNT(errors))];
}

/* Executes a few requests of a healthy queue pair. */
static void run_qp(struct fake_qp *qp)
{
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        for (uint32_t n = fake_random(4); n > 0 && qp->state == SLU_QP_CONNECTED; n--) {
            fake_complete(&qp->base, queue,
                          fake_chance(fake.chances.fail) ? choose_error() : SLUICE_STATUS_SUCCESS);
        }
    }
}

/*
 * Behind a flushed receive come only flushed ones, as on all devices: stripes keep them back and
 * count on that.
 */
static uint32_t status_in_flush(struct fake_qp *qp, int queue)
{
    bool keeps = queue == SLU_RECEIVE_QUEUE && qp->attr.queue_pairs > 1;
    if ((keeps && qp->flushed) || !fake_chance(fake.chances.late)) {
        qp->flushed |= keeps;
        return SLUICE_STATUS_WR_FLUSH_ERR;
    }
    return fake_random(2) ? choose_error() : SLUICE_STATUS_SUCCESS;
}

static void flush_qp(struct fake_qp *qp, uint32_t most)
{
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        for (uint32_t n = most; n > 0 && qp->lists[queue].count > 0; n--) {
            fake_complete(&qp->base, queue, status_in_flush(qp, queue));
        }
    }
}

static void work_a_little(struct fake_cq *cq)
{
    if (fake_chance(fake.chances.hold)) {
        return;
    }
    for (struct fake_qp *qp = cq->qps; qp; qp = qp->next) {
        if (qp->state == SLU_QP_CONNECTED && fake_chance(fake.chances.lose)) {
            fail_qp(qp);
        }
        if (qp->state == SLU_QP_CONNECTED && !fake.by_hand) {
            run_qp(qp);
        } else if (qp->state == SLU_QP_ERROR && !qp->stuck) {
            flush_qp(qp, 1 + fake_random(6));
        }
    }
}

/*
 * Reports a stray completion: the repetition of an older one, or one that is made up. It does so
 * only while nothing else is queued, and never with an id that is in flight again, or of a request
 * with parts in flight: those could not be told from real completions.
 */
static bool poll_stray(struct fake_cq *cq, struct slu_wc *wc)
{
    if (cq->count > 0) {
        return false;
    }
    *wc = (struct slu_wc){.bytes = 1};
    if (cq->stray_count > 0) {
        wc->id = cq->strays[--cq->stray_count];
    } else if (fake_chance(fake.chances.invent)) {
        wc->id = UINT64_C(1) << 63 | (uint64_t)fake_random(UINT32_MAX) << 20 |
                 fake_random(UINT32_C(1) << 20);
    } else {
        return false;
    }
    if (holds_id(cq, wc->id)) {
        return false;
    }
    wc->status = fake_random(2) ? SLUICE_STATUS_SUCCESS : SLUICE_STATUS_REM_ACCESS_ERR;
    fake.strays++;
    return true;
}

static void pass_time(struct fake_cq *cq, bool busy)
{
    cq->tick = busy ? FAKE_TICK : 2 * cq->tick < FAKE_MAX_TICK ? 2 * cq->tick : FAKE_MAX_TICK;
    fake.now += cq->tick;
}

int fake_poll(struct slu_cq *base, struct slu_wc *wcs, uint32_t count)
{
    struct fake_cq *cq = fake_cq_of(base);
    uint32_t taken = 0;
    fake_require(cq->entered, "polled from outside");
    if (fake.at_poll) {
        fake.at_poll();
    }
    if (fake.dead || fake_chance(fake.chances.die)) {
        pass_time(cq, false);
        return slu_fail(EIO, "the pretend completion queue is dead");
    }
    work_a_little(cq);
    if (poll_stray(cq, &wcs[0])) {
        taken++;
    }
    for (; taken < count && cq->count > 0; taken++) {
        struct fake_wc *next = &cq->ring[cq->first];
        struct fake_work *work = &fake.ledger[next->key];
        if (next->wc.status != SLUICE_STATUS_WR_FLUSH_ERR &&
            work->status == SLUICE_STATUS_SUCCESS) {
            work->status = next->wc.status;
        }
        fake.strays += !next->qp;
        wcs[taken] = next->wc;
        cq->first = (cq->first + 1) % cq->base.depth;
        cq->count--;
    }
    pass_time(cq, taken > 0);
    return (int)taken;
}

void fake_error(struct slu_qp *base)
{
    struct fake_qp *qp = fake_qp_of(base);
    fake_require(fake_cq_of(base->cq)->entered, "put in error from outside");
    qp->ended = true;
    fail_qp(qp);
    if (!qp->stuck && fake_chance(fake.chances.flush_at_once)) {
        flush_qp(qp, UINT32_MAX);
    }
}

/* Completions that it held may still be reported; the engine then does not know their ids. */
void fake_forget(struct fake_qp *qp)
{
    struct fake_cq *cq = fake_cq_of(qp->base.cq);
    for (uint32_t i = 0; i < cq->count; i++) {
        struct fake_wc *wc = &cq->ring[(cq->first + i) % cq->base.depth];
        if (wc->qp == qp) {
            wc->qp = NULL;
            wc->key = 0;
        }
    }
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        while (qp->lists[queue].count > 0) {
            struct fake_wr *work = take_work(&qp->lists[queue]);
            if (fake_chance(fake.chances.repeat)) {
                add_stray(cq, work->id);
            }
            free(work);
        }
    }
}

static void hold_work(struct fake_qp *qp, enum slu_queue queue, uint64_t id, bool signaled,
                      const struct sluice_sge *sges, uint32_t count)
{
    struct fake_list *list = &qp->lists[queue];
    struct fake_wr *work = calloc(1, sizeof(*work));
    fake_require(work, "no memory%s", "");
    work->id = id;
    work->signaled = signaled;
    work->key = count > 0 ? sges[0].lkey : 0;
    for (uint32_t i = 0; i < count; i++) {
        work->bytes += sges[i].length;
        /* The last one may be that of a staging buffer. */
        bool staged = i > 0 && i + 1 == count && sges[i].lkey == FAKE_KEYS - 1;
        fake_require((sges[i].lkey == work->key || staged) && work->key < FAKE_KEYS, "key %u",
                     sges[i].lkey);
    }
    *list->end = work;
    list->end = &work->next;
    list->count++;
    fake.ledger[work->key].held++;
}

static void check_post(const struct fake_qp *qp, enum slu_queue queue, uint64_t more)
{
    uint32_t depth =
        queue == SLU_SEND_QUEUE ? qp->attr.send_depth + (qp->probe != 0) : qp->attr.receive_depth;
    const struct fake_cq *cq = fake_cq_of(qp->base.cq);
    fake_require(cq->entered, "posted from outside");
    fake_require(qp->state != SLU_QP_PREPARED && !qp->ended, "posted to a queue pair in state %d",
                 (int)qp->state);
    fake_require(qp->lists[queue].count + more <= depth, "%u and %llu more on a queue of %u",
                 qp->lists[queue].count, (unsigned long long)more, depth);
    fake_require(in_flight(cq) + more <= cq->base.depth, "%u and %llu more for %u completions",
                 in_flight(cq), (unsigned long long)more, cq->base.depth);
}

static bool refuses(enum slu_queue queue)
{
    if (queue == SLU_SEND_QUEUE && fake.refuse_send > 0 && --fake.refuse_send == 0) {
        return true;
    }
    return fake_chance(fake.chances.refuse);
}

/*
 * Notes that the first refused request has failed. If it is a part of a request, no completion of
 * an earlier part is repeated: the engine could not tell it from the one that it may still get for
 * this part.
 */
static void note_refusal(struct fake_qp *qp, const struct sluice_sge *sges, uint32_t count,
                         uint64_t id)
{
    struct fake_work *work = &fake.ledger[count > 0 ? sges[0].lkey : 0];
    struct fake_cq *cq = fake_cq_of(qp->base.cq);
    if (work->status == SLUICE_STATUS_SUCCESS) {
        work->status = SLUICE_STATUS_GENERAL_ERR;
    }
    qp->refused = true;
    for (uint32_t i = 0; i < cq->stray_count; i++) {
        if (is_same_request(cq->strays[i], id)) {
            cq->strays[i--] = cq->strays[--cq->stray_count];
        }
    }
}

/* Callers pass the key of an atomic request as its first operand. */
static void check_atomic(const struct slu_send_wr *wr)
{
    fake_require(wr->sge_count == 1 && wr->sges[0].length == 8 && wr->rkey == 0 &&
                     wr->remote_addr == 4096,
                 "an atomic operation of %u SGEs at %llu", wr->sge_count,
                 (unsigned long long)wr->remote_addr);
    fake_require(wr->operand && wr->operand[0] == wr->sges[0].lkey &&
                     wr->operand[1] == (wr->opcode == SLUICE_OP_COMPARE_SWAP),
                 "operands of an atomic operation");
}

/* A part that is not signaled is followed by the next part of its request. */
static bool tells_of(const struct slu_send_wr *next, uint64_t id)
{
    return next && slu_id_is_part(id) && is_same_request(next->id, id) &&
           slu_part_of(next->id) % SLU_PART_LAST == slu_part_of(id) + 1;
}

int fake_post_send(struct slu_qp *base, struct slu_send_wr *chain, struct slu_send_wr **bad)
{
    struct fake_qp *qp = fake_qp_of(base);
    struct slu_send_wr *wr = chain;
    uint64_t count = 0;
    for (const struct slu_send_wr *each = chain; each; each = each->next) {
        count++;
        fake_require((each->flags & SLU_SIGNALED) || tells_of(each->next, each->id),
                     "nothing would tell of request %llu", (unsigned long long)each->id);
        if (slu_opcode_is_atomic(each->opcode)) {
            check_atomic(each);
        }
    }
    check_post(qp, SLU_SEND_QUEUE, count);
    for (; wr && !refuses(SLU_SEND_QUEUE); wr = wr->next) {
        hold_work(qp, SLU_SEND_QUEUE, wr->id, wr->flags & SLU_SIGNALED, wr->sges, wr->sge_count);
    }
    if (!wr) {
        return 0;
    }
    note_refusal(qp, wr->sges, wr->sge_count, wr->id);
    if (wr != chain || !fake_chance(fake.chances.refuse_blind)) {
        *bad = wr;
    }
    bool run = fake_chance(fake.chances.run_refused);
    for (; wr && run; wr = wr->next) {
        hold_work(qp, SLU_SEND_QUEUE, wr->id, wr->flags & SLU_SIGNALED, wr->sges, wr->sge_count);
    }
    return slu_fail(ENOMEM, FAKE_REFUSAL);
}

/* Handled as a write of no bytes that has an entry of its own. */
int fake_probe(struct slu_qp *base, uint64_t id)
{
    struct fake_qp *qp = fake_qp_of(base);
    fake_require(qp->probe == 0, "a second probe%s", "");
    qp->probe = id;
    check_post(qp, SLU_SEND_QUEUE, 1);
    fake.probes++;
    if (refuses(SLU_SEND_QUEUE)) {
        note_refusal(qp, NULL, 0, id);
        return slu_fail(ENOMEM, FAKE_REFUSAL);
    }
    hold_work(qp, SLU_SEND_QUEUE, id, true, NULL, 0);
    return 0;
}

int fake_post_receive(struct slu_qp *base, struct slu_receive_wr *chain,
                      struct slu_receive_wr **bad)
{
    struct fake_qp *qp = fake_qp_of(base);
    struct slu_receive_wr *wr = chain;
    uint64_t count = 0;
    for (const struct slu_receive_wr *each = chain; each; each = each->next) {
        count++;
    }
    check_post(qp, SLU_RECEIVE_QUEUE, count);
    for (; wr && !refuses(SLU_RECEIVE_QUEUE); wr = wr->next) {
        hold_work(qp, SLU_RECEIVE_QUEUE, wr->id, true, wr->sges, wr->sge_count);
    }
    if (!wr) {
        return 0;
    }
    note_refusal(qp, wr->sges, wr->sge_count, wr->id);
    if (wr != chain || !fake_chance(fake.chances.refuse_blind)) {
        *bad = wr;
    }
    bool run = fake_chance(fake.chances.run_refused);
    for (; wr && run; wr = wr->next) {
        hold_work(qp, SLU_RECEIVE_QUEUE, wr->id, true, wr->sges, wr->sge_count);
    }
    return slu_fail(ENOMEM, FAKE_REFUSAL);
}
