/* SPDX-License-Identifier: MIT */
/*
 * Sends that the system refused for want of memory. No event tells when there is memory again. So
 * the owner of a CQ tries them again in each of its turns. While the program sleeps or is
 * elsewhere, the helper begins such a turn, or has the program begin one, once in a tick.
 */
#include "transport/soft/tcp/seam.h"

void slu_soft_tcp_starve(struct soft_tcp *tcp)
{
    tcp->starved = true;
    atomic_store(&slu_soft_cq_of(tcp->qp)->starved, true);
}

static void send_again(struct soft_tcp *tcp)
{
    tcp->starved = false;
    if (tcp->phase == PHASE_JOINING || tcp->phase == PHASE_IDLE) {
        slu_soft_shm_join_again(tcp);
    } else if (tcp->shared) {
        slu_soft_shm_ring_bell(tcp);
    } else {
        tcp->blocked = false;
        slu_soft_tcp_push(tcp);
    }
}

void slu_soft_tcp_feed(struct soft_cq *cq)
{
    struct soft_tcp *next;
    atomic_store(&cq->starved, false);
    for (struct soft_tcp *tcp = cq->connections; tcp != NULL; tcp = next) {
        next = tcp->all.next;
        if (tcp->starved)
            send_again(tcp);
    }
}
