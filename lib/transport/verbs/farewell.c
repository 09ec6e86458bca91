/* SPDX-License-Identifier: MIT */
/*
 * Farewells. A device tells a peer nothing of the end of a queue pair: what is sent to it is not
 * answered, and a receive waits for ever. So a side that closes a connection writes so to the
 * place that its peer has for hints of receives (hint.c), behind all that it has sent. Then it
 * posts a write that the peer's device must refuse, because it names no memory. That puts the
 * peer's queue pair into the error state: all that the peer has posted completes at once, and the
 * word says why.
 *
 * Soft-RoCE never completes a receive that is posted to a queue pair in the error state. So the
 * word comes with one that asks for hints, which the peer sees when it has posted a receive: it
 * then puts its queue pair into that state itself, which completes the receive.
 *
 * The word comes first, so a peer whose queue pair has failed has it. A side whose word was not
 * answered in time closes all the same: the peer then loses it as it loses a peer that was killed.
 *
 * The places of several peers are in one region, and each of them may write to all. So the word is
 * a number that a side chooses for each peer and gives to that peer alone, in its endpoint: nobody
 * else can end the connection.
 *
 * Both requests are of the one place that requests of our own have in a queue pair, so each is
 * posted when the one before it has completed.
 */
#include "config.h"

#include <endian.h>
#include <sched.h>
#include <string.h>

#include "transport/verbs/places.h"

/*
 * A wait for all farewells of a completion queue. A round trip takes microseconds, and a packet
 * that was lost is sent again within this time, if ack_timeout is not above 12.
 */
#define MOST_TIME SLUICE_MS(50)
/* The same on a busy machine, where other threads have the processor most of the time. */
#define BUSY_TIME SLUICE_MS(150)
/* And what is left of it once the word is there: the peer may not answer what follows. */
#define LAST_TIME SLUICE_MS(10)
/* A step of the wait counts for this at most: what is longer went to other threads. */
#define STEP_TIME SLUICE_US(250)
/* Polls in a step. */
#define POLLS 16

int slu_verbs_farewell_open(struct slu_verbs_qp *qp)
{
    int err = 0;

    while (!err && !qp->own.farewell_word)
        err = slu_random(&qp->own.farewell_word, sizeof qp->own.farewell_word);
    return err ? slu_fail(-err, "no random number for a queue pair: %s", strerror(-err)) : 0;
}

bool slu_verbs_has_left(const struct slu_verbs_qp *qp)
{
    const struct slu_verbs_place *place = qp->own.place;

    return place && le64toh(atomic_load_explicit(&place->heard.farewell, memory_order_acquire)) ==
                        qp->own.farewell_word;
}

const char *slu_verbs_qp_loss(const struct slu_qp *base, bool *closed)
{
    *closed = slu_verbs_has_left(slu_verbs_const_qp_of(base));
    return *closed ? "the peer closed the connection" : NULL;
}

#define WANTED offsetof(struct slu_verbs_words, wanted)

/* The word goes to its place; what ends the connection goes to address 0, where no region is. */
static void post(struct slu_verbs_qp *qp, uint64_t addr, enum slu_verbs_farewell next)
{
    struct slu_verbs_own *own = &qp->own;
    struct slu_verbs_words *said = &own->place->said;
    struct ibv_sge sge = {.addr = (uintptr_t)&said->wanted,
                          .length = sizeof *said - WANTED,
                          .lkey = own->places->ibv->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};

    atomic_store_explicit(&said->wanted, htole64(1), memory_order_relaxed);
    atomic_store_explicit(&said->farewell, htole64(qp->link.farewell), memory_order_relaxed);
    wr.wr.rdma.remote_addr = addr;
    wr.wr.rdma.rkey = qp->link.hint_rkey;
    own->farewell = slu_verbs_own_post(qp, &wr) ? SLU_VERBS_OVER : next;
}

void slu_verbs_farewell_step(struct slu_verbs_qp *qp)
{
    struct slu_verbs_cq *cq = slu_verbs_cq_of(qp->base.cq);

    if (qp->own.farewell == SLU_VERBS_LEAVES) {
        post(qp, qp->link.hint_addr + WANTED, SLU_VERBS_SAYS);
    } else if (qp->own.farewell == SLU_VERBS_SAYS) {
        post(qp, 0, SLU_VERBS_PARTS);
        qp->own.farewell_by = cq->farewell_left - LAST_TIME;
    } else {
        qp->own.farewell = SLU_VERBS_OVER;
    }
}

/* Nothing completes on a queue that has failed. */
static bool can_tell(const struct slu_verbs_qp *qp)
{
    const struct slu_verbs_cq *cq = slu_verbs_cq_of(qp->base.cq);

    return qp->own.place && qp->link.farewell != 0 && qp->state == SLU_QP_CONNECTED && !cq->dead &&
           !atomic_load(&cq->overrun) && qp->link.access & SLUICE_ACCESS_REMOTE_WRITE &&
           !slu_verbs_has_left(qp);
}

/* A side that gives up a request does not wait for its peer, and so tells nothing. */
void slu_verbs_qp_farewell(struct slu_qp *base, enum slu_farewell why)
{
    struct slu_verbs_qp *qp = slu_verbs_qp_of(base);

    if (why != SLU_FAREWELL_CLOSED || qp->own.farewell || !can_tell(qp))
        return;
    slu_verbs_events_read(slu_verbs_context_of(base->pd->context));
    if (!can_tell(qp))
        return;
    slu_verbs_cq_of(base->cq)->farewell_left = MOST_TIME;
    slu_verbs_cq_of(base->cq)->farewell_until = slu_now() + BUSY_TIME;
    qp->own.farewell = SLU_VERBS_LEAVES;
    qp->own.farewell_by = 0;
    if (!qp->own.in_flight)
        slu_verbs_farewell_step(qp);
}

/* One whose peer leaves as well need not be answered. */
static bool is_awaited(const struct slu_verbs_qp *qp, const struct slu_verbs_cq *cq)
{
    return qp->own.farewell != SLU_VERBS_STAYS && qp->own.farewell != SLU_VERBS_OVER &&
           cq->farewell_left > qp->own.farewell_by && cq->farewell_left > 0 &&
           !slu_verbs_has_left(qp) && !cq->dead;
}

void slu_verbs_farewell_await(struct slu_verbs_qp *qp)
{
    struct slu_verbs_cq *cq = slu_verbs_cq_of(qp->base.cq);
    int64_t begun = slu_now();

    while (is_awaited(qp, cq)) {
        int64_t took;

        for (int i = 0; i < POLLS && is_awaited(qp, cq); i++)
            slu_verbs_cq_end_own(cq, qp->part);
        sched_yield();
        took = slu_now() - begun;
        begun += took;
        cq->farewell_left -= took < STEP_TIME ? took : STEP_TIME;
        if (begun >= cq->farewell_until)
            cq->farewell_left = 0;
    }
    if (qp->own.farewell)
        qp->own.farewell = SLU_VERBS_OVER;
}
