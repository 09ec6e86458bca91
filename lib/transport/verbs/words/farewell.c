/* SPDX-License-Identifier: MIT */
/*
 * Farewells. A device does not notify the peer when a queue pair ends: requests to it get no
 * answer, and receives wait for ever. So a side that closes a connection writes a word to the place
 * that its peer has for hints of receives (hint.c), after all other requests. Then it posts a write
 * that the peer's device must refuse, because it names no memory. That puts the peer's queue pair
 * into the error state: all its requests complete at once, and the word gives the reason.
 *
 * Soft-RoCE never completes a receive that is posted to a queue pair in the error state. So the
 * farewell is written together with the word that asks for hints, which the peer reads after it has
 * posted a receive. It then puts its queue pair into the error state itself, which completes the
 * receive.
 *
 * The word is written first, so a peer whose queue pair has failed has it. If it is not
 * acknowledged in time, the side closes all the same: for the peer that looks like a killed
 * process.
 *
 * A device may let its program have a message before it acknowledges it. A program that closes at
 * once would then end the send of a message that it has: the acknowledgement comes behind the
 * farewell. So the number of messages that were received is written with the word, and the peer
 * takes the flush of one of these for a success.
 *
 * The places of several peers are in one region, and each of them may write to all. So the word is
 * a random number that a side chooses for each peer and gives to that peer alone, in its endpoint:
 * no other peer can end the connection.
 *
 * A queue pair has room for one request of our own, so each of these is posted when the one before
 * it has completed.
 */
#include "config.h"

#include <endian.h>
#include <sched.h>
#include <string.h>

#include "transport/verbs/events/events.h"
#include "transport/verbs/queues/queues.h"
#include "transport/verbs/words/words.h"

/*
 * Time to wait for all farewells of a completion queue. A round trip takes microseconds, and a lost
 * packet is sent again within this time if ack_timeout is at most 12.
 */
#define MOST_TIME SLUICE_MS(50)
/* The same on a busy machine, where other threads have the processor most of the time. */
#define BUSY_TIME SLUICE_MS(150)
/*
 * Maximum of MOST_TIME that may be used once the word is delivered: the peer may not answer the
 * second write.
 */
#define LAST_TIME SLUICE_MS(10)
/* Maximum that one step of the wait counts: the rest of a longer step went to other threads. */
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

const char *slu_verbs_qp_loss(const struct slu_qp *base, bool *closed)
{
    *closed = slu_verbs_has_left(slu_verbs_const_qp_of(base));
    return *closed ? "the peer closed the connection" : NULL;
}

/*
 * The number is written as its sum with the word of the farewell, which other peers do not know: a
 * peer that writes nonsense deceives this side about its own messages alone.
 */
bool slu_verbs_qp_untaken(const struct slu_qp *base, uint64_t *untaken)
{
    const struct slu_verbs_qp *qp = slu_verbs_const_qp_of(base);
    uint64_t taken;

    if (!slu_verbs_has_left(qp))
        return false;
    taken = le64toh(atomic_load_explicit(&qp->own.place->heard.taken, memory_order_relaxed)) -
            qp->own.farewell_word;
    *untaken = qp->own.sends - (taken - 1);
    return taken > 0 && taken - 1 <= qp->own.sends;
}

#define WANTED offsetof(struct slu_verbs_words, wanted)

/*
 * Posts a write: of the word to its place, or, to end the connection, to address 0, where no region
 * is.
 */
static void post(struct slu_verbs_qp *qp, uint64_t addr, enum slu_verbs_farewell next)
{
    struct slu_verbs_own *own = &qp->own;
    struct slu_verbs_words *said = &own->place->said;

    atomic_store_explicit(&said->wanted, htole64(1), memory_order_relaxed);
    atomic_store_explicit(&said->farewell, htole64(qp->link.farewell), memory_order_relaxed);
    atomic_store_explicit(&said->taken, htole64(qp->link.farewell + qp->base.taken + 1),
                          memory_order_relaxed);
    own->farewell = slu_verbs_words_write(qp, &said->wanted, sizeof *said - WANTED, addr)
                        ? SLU_VERBS_OVER
                        : next;
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

/* Returns whether the peer can be notified. Nothing completes on a queue that has failed. */
static bool can_tell(const struct slu_verbs_qp *qp)
{
    const struct slu_verbs_cq *cq = slu_verbs_cq_of(qp->base.cq);

    return qp->own.place && qp->link.farewell != 0 && qp->state == SLU_QP_CONNECTED && !cq->dead &&
           !atomic_load(&cq->overrun) && qp->link.access & SLUICE_ACCESS_REMOTE_WRITE &&
           !slu_verbs_has_left(qp);
}

/* Sends a farewell only for a close: a side that gave up a request does not wait for its peer. */
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

/* Returns whether a farewell is still to be waited for; not if the peer closes as well. */
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
