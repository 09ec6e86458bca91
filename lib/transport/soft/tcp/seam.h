/* SPDX-License-Identifier: MIT */
/*
 * The seam between the frames of a connection and the shared memory that may carry them: all
 * functions of shm that this room calls. The caller owns the CQ.
 */
#ifndef SLU_SOFT_TCP_SEAM_H
#define SLU_SOFT_TCP_SEAM_H

#include "transport/soft/tcp/tcp.h"

/* Prepares a connection for shared memory, in case its peer turns out to be near. False: ENOMEM. */
bool slu_soft_shm_offer(struct soft_tcp *tcp, const struct slu_endpoint *remote);
/* Negotiates what carries the frames, after a Unix socket to the peer was attached. */
void slu_soft_shm_join(struct soft_tcp *tcp);
void slu_soft_shm_join_event(struct soft_tcp *tcp);
/* Sends what is due on an idle connection. Requests need memory, and end the idle phase. */
void slu_soft_shm_speak(struct soft_tcp *tcp);
/* Tells the peer why a connection ends over which no frame has gone. */
void slu_soft_shm_say_farewell(struct soft_tcp *tcp);
/* Goes on with the negotiation where the system had no memory. */
void slu_soft_shm_join_again(struct soft_tcp *tcp);
/*
 * Wakes a peer that sleeps and waits for what was published. If the socket is full, this is not
 * needed: unread messages wake the peer.
 */
void slu_soft_shm_ring_bell(struct soft_tcp *tcp);
/* Ends sharing and gives back the memory that both sides have. */
void slu_soft_shm_part(struct soft_tcp *tcp);
/* Frees what slu_soft_shm_offer() has made. */
void slu_soft_shm_forget(struct soft_tcp *tcp);

/* Works like sendmsg(2): returns how many bytes were sent, or a negative errno. */
ssize_t slu_soft_shm_transmit(struct soft_tcp *tcp, const struct iovec *iovecs, uint32_t count);
void slu_soft_shm_event(struct soft_tcp *tcp, uint32_t events);
/* Works like slu_soft_tcp_push(), but first sends small messages that need no frame. */
void slu_soft_shm_push(struct soft_tcp *tcp);
/* Makes the connection hot: polls include it from now on. */
void slu_soft_shm_heat(struct soft_tcp *tcp);
/* Ends direct access on both sides: on return neither side touches the other's memory. */
void slu_soft_shm_end_direct(struct soft_tcp *tcp);

/* Returns whether to lend a message: its frame then only names it, and the receiver reads it. */
bool slu_soft_shm_lends(const struct soft_tcp *tcp, const struct soft_wqe *wqe);
/* Lends no more messages, as the peer cannot read them. */
void slu_soft_shm_lend_no_more(struct soft_tcp *tcp);
/* Withdraws a loan, before its buffer is given back to the program. */
void slu_soft_shm_withdraw(struct soft_tcp *tcp);
/* Returns where to store the list of a lent message that is being received. */
uint8_t *slu_soft_shm_lent_list(struct soft_tcp *tcp);
/* Called when a message of this length begins to arrive, and when it is complete. */
void slu_soft_shm_time(struct soft_tcp *tcp, uint64_t length);
void slu_soft_shm_learn(struct soft_tcp *tcp, uint64_t length, bool lent);
enum shm_loan {
    SHM_LOAN_DONE,      /* all of it is in the oldest receive */
    SHM_LOAN_DECLINED,  /* it has to be sent through the ring */
    SHM_LOAN_WITHDRAWN, /* the peer's queue pair has failed or ended */
    SHM_LOAN_FAULT,     /* the receive is not mapped */
    SHM_LOAN_NONSENSE
};
enum shm_loan slu_soft_shm_borrow(struct soft_tcp *tcp, const struct tcp_frame *frame);

#endif
