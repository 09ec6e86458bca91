/* SPDX-License-Identifier: MIT */
/*
 * The seam: all that the core calls of the rooms above it. The core includes no header of theirs
 * and calls nothing else of them. The owner of the CQ calls what takes a CQ or a queue pair.
 */
#ifndef SLU_SOFT_SEAM_H
#define SLU_SOFT_SEAM_H

#include "transport/soft/core/soft.h"

/* The wires of queue pairs, chosen when they connect. */
extern const struct soft_wire slu_soft_wire_self;
extern const struct soft_wire slu_soft_wire_tcp;

/* helper: a thread serves the CQs of a context while the program is elsewhere. */
int slu_soft_helper_start(struct soft_context *context); /* idempotent; with the listener */
void slu_soft_helper_kick(struct soft_cq *cq);           /* serve it, and watch it again */
int slu_soft_helper_watch(struct soft_cq *cq);
void slu_soft_helper_unwatch(struct soft_cq *cq);
/* Ends the search for the peer of a queue pair. By any thread, with no lock. */
void slu_soft_meet_end(struct soft_qp *qp);

/* self: handlers of messages that came to the inbox of a CQ. */
void slu_soft_self_request(struct soft_message *message);
void slu_soft_self_response(struct soft_message *message);
void slu_soft_self_hello(struct soft_message *message);
void slu_soft_self_close(struct soft_message *message);
void slu_soft_self_bounce(struct soft_qp *qp); /* gives back all that is parked */

/* tcp: likewise, and what sockets have. */
void slu_soft_tcp_attach(struct soft_message *message);
void slu_soft_tcp_lost(struct soft_message *message);
void slu_soft_tcp_event(struct soft_tcp *tcp, uint32_t events);
/* Reads the only connection of a CQ; false if that takes a look at the epoll set. */
bool slu_soft_tcp_poll(struct soft_tcp *tcp);
/* Acknowledgements and credit that peers are due. */
void slu_soft_tcp_flush_urgent(struct soft_cq *cq); /* all but what is held back from now on */
void slu_soft_tcp_flush_held(struct soft_cq *cq);   /* what was held for long enough */
void slu_soft_tcp_flush_all(struct soft_cq *cq);    /* nothing is held back */

/* shm: the connections of a CQ that go through shared memory. */
bool slu_soft_shm_poll(struct soft_cq *cq);  /* polls those that are hot; was there something? */
bool slu_soft_shm_stir(struct soft_cq *cq);  /* those that are cold and have something are hot */
bool slu_soft_shm_sleep(struct soft_cq *cq); /* from now on all wake its epoll set, or false */
bool slu_soft_shm_leave(struct soft_cq *cq); /* likewise, and it does what is to be done before */
/* Gives back the rings for large messages that nobody has used since it was called last. */
void slu_soft_shm_tidy(struct soft_cq *cq);
/* Executes the first ones of a chain at once in the peer's memory: how many; 0: it is queued. */
uint32_t slu_soft_shm_direct(struct soft_qp *qp, const struct slu_send_wr *wr);
/* The region is about to go: peers that have mapped it stop using it and give it back. */
void slu_soft_exports_revoke(struct soft_exports *exports, struct soft_mr *mr);

#endif
