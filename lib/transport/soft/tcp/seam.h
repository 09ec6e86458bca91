/* SPDX-License-Identifier: MIT */
/*
 * The seam between the frames of a connection and the shared memory that may carry them: all that
 * this room calls of shm. The owner of the CQ calls it.
 */
#ifndef SLU_SOFT_TCP_SEAM_H
#define SLU_SOFT_TCP_SEAM_H

#include "transport/soft/tcp/tcp.h"

/* The connection may go through shared memory, if its peer turns out to be near; false: ENOMEM. */
bool slu_soft_shm_offer(struct soft_tcp *tcp);
/* A Unix socket to the peer was attached: both agree on what carries the frames. */
void slu_soft_shm_join(struct soft_tcp *tcp);
void slu_soft_shm_join_event(struct soft_tcp *tcp);
/* Gives back all memory. */
void slu_soft_shm_part(struct soft_tcp *tcp);

/* As sendmsg(2): how many bytes went out, or a negative errno. */
ssize_t slu_soft_shm_transmit(struct soft_tcp *tcp, const struct iovec *iovecs, uint32_t count);
void slu_soft_shm_event(struct soft_tcp *tcp, uint32_t events);
/* As slu_soft_tcp_push(), and requests that can go at once without a frame. */
void slu_soft_shm_push(struct soft_tcp *tcp);
/* Polls look at the connection from now on. */
void slu_soft_shm_heat(struct soft_tcp *tcp);
/* Tells all peers of a CQ what they are due, and wakes those that sleep and wait for it. */
void slu_soft_shm_settle(struct soft_cq *cq);
/* Nothing is executed in the peer's memory any more, and the peer executes nothing either. */
void slu_soft_shm_end_direct(struct soft_tcp *tcp);

/* Lent messages: the frame only names the message, and the receiver reads it. */
bool slu_soft_shm_lends(const struct soft_tcp *tcp, const struct soft_wqe *wqe);
/* The peer cannot read what is lent. */
void slu_soft_shm_lend_no_more(struct soft_tcp *tcp);
/* What is still lent is about to be given back to the program. */
void slu_soft_shm_withdraw(struct soft_tcp *tcp);
/* Where the list of a lent message goes that is coming in. */
uint8_t *slu_soft_shm_lent_list(struct soft_tcp *tcp);
/* A message of this length begins to come in, and all of it has come. */
void slu_soft_shm_time(struct soft_tcp *tcp, uint64_t length);
void slu_soft_shm_learn(struct soft_tcp *tcp, uint64_t length, bool lent);
enum shm_loan {
    SHM_LOAN_DONE,      /* all of it is in the oldest receive */
    SHM_LOAN_DECLINED,  /* it is to come through the ring */
    SHM_LOAN_WITHDRAWN, /* the peer has ended, or is about to */
    SHM_LOAN_FAULT,     /* the receive is not mapped */
    SHM_LOAN_NONSENSE
};
enum shm_loan slu_soft_shm_borrow(struct soft_tcp *tcp, const struct tcp_frame *frame);

#endif
