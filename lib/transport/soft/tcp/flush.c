/* SPDX-License-Identifier: MIT */
/*
 * Sends acknowledgements and credit at the end of each turn of the owner of the CQ, except those
 * held back until the program answers. ack.c has the rules.
 */
#include "transport/soft/tcp/seam.h"

/*
 * Returns whether an acknowledgement can be held back until the program answers. It is not held
 * back while requests of ours are in flight: if both sides held theirs back, neither would get its
 * own.
 */
static bool expects_answer(const struct soft_tcp *tcp)
{
    const struct soft_qp *qp = tcp->qp;
    return tcp->answers == EXPECTED && tcp->asked != 0 && !tcp->hasty &&
           qp->sends.done == qp->sends.posted && tcp->phase == PHASE_OPEN;
}

static void hold(struct soft_cq *cq, struct soft_tcp *tcp)
{
    int64_t until = tcp->asked == UNTIMED ? 0 : tcp->asked + ANSWER_TIME;
    if (cq->held == NULL || until < cq->held_until)
        cq->held_until = until;
    SOFT_INSERT(&cq->held, tcp, owes);
    tcp->held = true;
}

static void pay(struct soft_tcp *tcp)
{
    if (tcp->asked == UNTIMED && !tcp->held)
        tcp->asked = slu_now();
    slu_soft_tcp_leave_owing(tcp);
    if (tcp->due && !tcp->blocked)
        slu_soft_tcp_push(tcp);
}

void slu_soft_tcp_flush_urgent(struct soft_cq *cq)
{
    struct soft_tcp *tcp;
    if (cq->unsettled != NULL)
        slu_soft_shm_settle(cq);
    while ((tcp = cq->urgent) != NULL) {
        slu_soft_tcp_leave_owing(tcp);
        if (expects_answer(tcp) && tcp->due && !tcp->blocked)
            hold(cq, tcp);
        else
            pay(tcp);
    }
}

void slu_soft_tcp_flush_all(struct soft_cq *cq)
{
    while (cq->urgent != NULL)
        pay(cq->urgent);
    while (cq->held != NULL)
        pay(cq->held);
    if (cq->unsettled != NULL)
        slu_soft_shm_settle(cq);
}

void slu_soft_tcp_flush_held(struct soft_cq *cq)
{
    int64_t now = slu_now();
    struct soft_tcp *next;
    if (now < cq->held_until)
        return;
    cq->held_until = INT64_MAX;
    for (struct soft_tcp *tcp = cq->held; tcp != NULL; tcp = next) {
        next = tcp->owes.next;
        if (tcp->asked == UNTIMED)
            tcp->asked = now;
        int64_t until = tcp->asked + ANSWER_TIME;
        if (until <= now)
            pay(tcp);
        else if (until < cq->held_until)
            cq->held_until = until;
    }
}
