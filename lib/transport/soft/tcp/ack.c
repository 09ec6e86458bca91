/* SPDX-License-Identifier: MIT */
/*
 * When pending acknowledgements and credit are sent; README.md, "Acknowledgements". If the program
 * has answered EXPECTED requests in a row at once, they are held back for up to ANSWER_TIME, so
 * that the answer carries them.
 */
#include "transport/soft/tcp/seam.h"

/*
 * Acknowledgements of longer messages are not held. An acknowledgement costs little beside such a
 * message, and reaches the peer, whose answer may be as long, before it sleeps.
 */
#define HELD_MOST (256 * 1024)

void slu_soft_tcp_urgent(struct soft_tcp *tcp)
{
    tcp->due = true;
    if (tcp->shared) {
        slu_soft_tcp_unsettled(tcp);
        return;
    }
    if (tcp->held)
        slu_soft_tcp_leave_owing(tcp);
    if (tcp->owes.link == NULL)
        SOFT_INSERT(&slu_soft_cq_of(tcp->qp)->urgent, tcp, owes);
}

void slu_soft_tcp_hurry(struct soft_tcp *tcp)
{
    tcp->hasty = true;
    slu_soft_tcp_urgent(tcp);
}

void slu_soft_tcp_asked(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    if (tcp->shared) {
        slu_soft_tcp_urgent(tcp);
        return;
    }
    tcp->hasty |= (frame->flags & TCP_FLAG_PROMPT) != 0 || frame->length > HELD_MOST;
    /* A program with several unanswered requests does not answer at once. */
    if (tcp->asked != 0)
        tcp->answers = 0;
    else
        tcp->asked = tcp->answers == EXPECTED ? UNTIMED : slu_now();
    slu_soft_tcp_urgent(tcp);
}

static bool is_late(const struct soft_tcp *tcp)
{
    if (tcp->asked == UNTIMED)
        return !tcp->due;
    return slu_now() - tcp->asked > ANSWER_TIME;
}

void slu_soft_tcp_answered(struct soft_tcp *tcp)
{
    if (tcp->asked == 0)
        return;
    if (is_late(tcp))
        tcp->answers = 0;
    else if (tcp->answers < EXPECTED)
        tcp->answers++;
    tcp->asked = 0;
}

void slu_soft_tcp_settled(struct soft_tcp *tcp)
{
    tcp->due = tcp->hasty = false;
    if (!tcp->shared)
        slu_soft_tcp_leave_owing(tcp);
}
