/* SPDX-License-Identifier: MIT */
/*
 * The seam: all functions of the rooms above that the core calls. The core includes none of their
 * headers. Functions that take a CQ or a queue pair are called by the owner of the CQ.
 */
#ifndef SLU_SOFT_SEAM_H
#define SLU_SOFT_SEAM_H

#include "transport/soft/core/soft.h"

/* The wires of queue pairs, chosen when they connect. */
extern const struct soft_wire slu_soft_wire_self;
extern const struct soft_wire slu_soft_wire_tcp;

/* helper: a thread that serves the CQs of a context while the program is outside the library. */
int slu_soft_helper_start(struct soft_context *context); /* idempotent; with the listener */
void slu_soft_helper_kick(struct soft_cq *cq);           /* the helper serves and watches the CQ */
int slu_soft_helper_watch(struct soft_cq *cq);
void slu_soft_helper_unwatch(struct soft_cq *cq);
/* The helper calls slu_soft_spares_tidy() once a second from begin to end; both may be nested. */
void slu_soft_tidy_begin(struct soft_context *context);
void slu_soft_tidy_end(struct soft_context *context);
/* Ends the search for the peer of a queue pair. Any thread may call it, holding no lock. */
void slu_soft_meet_end(struct soft_qp *qp);

/* self: handlers of messages that came to the inbox of a CQ. */
void slu_soft_self_request(struct soft_message *message);
void slu_soft_self_response(struct soft_message *message);
void slu_soft_self_close(struct soft_message *message);
void slu_soft_self_bounce(struct soft_qp *qp); /* returns all parked messages */

/* tcp: likewise, and events of sockets. */
void slu_soft_tcp_attach(struct soft_message *message);
void slu_soft_tcp_lost(struct soft_message *message);
void slu_soft_tcp_event(struct soft_tcp *tcp, uint32_t events);
/* Reads the only connection of a CQ. False: the epoll set has to be polled as well. */
bool slu_soft_tcp_poll(struct soft_tcp *tcp);
/* Send pending acknowledgements and credit. */
void slu_soft_tcp_flush_urgent(struct soft_cq *cq); /* all except those held back now */
void slu_soft_tcp_flush_held(struct soft_cq *cq);   /* those held for long enough */
void slu_soft_tcp_flush_all(struct soft_cq *cq);    /* all, also those held back */
/* Sends again what the system had no memory for. */
void slu_soft_tcp_feed(struct soft_cq *cq);

/* shm: the connections of a CQ that go through shared memory. */
bool slu_soft_shm_poll(struct soft_cq *cq); /* polls hot connections; true: one had something */
/* Returns whether all connections have shared memory in which nothing is new. */
bool slu_soft_shm_is_still(const struct soft_cq *cq);
bool slu_soft_shm_stir(struct soft_cq *cq);  /* makes cold connections that have something hot */
void slu_soft_shm_hurry(struct soft_cq *cq); /* makes hot those that wait for acknowledgements */
bool slu_soft_shm_sleep(struct soft_cq *cq); /* true: from now on each wakes the epoll set */
bool slu_soft_shm_leave(struct soft_cq *cq); /* likewise, and does pending work first */
/* Gives back the rings for large messages that were not used since the last call. */
void slu_soft_shm_tidy(struct soft_cq *cq);
/*
 * Publishes pending acknowledgements and credit to all peers of a CQ, and wakes those that sleep
 * and wait for it.
 */
void slu_soft_shm_settle(struct soft_cq *cq);
/* Sends a small message as it is posted, if nothing prevents that. False: it has to be queued. */
bool slu_soft_shm_send(struct soft_qp *qp, const struct slu_send_wr *wr);
/*
 * Executes the first requests of a chain directly in the peer's memory and returns how many; 0: wr
 * has to be queued.
 */
uint32_t slu_soft_shm_direct(struct soft_qp *qp, const struct slu_send_wr *wr);
/*
 * Revokes a region that is about to be deregistered: peers that have mapped it stop using it and
 * give it back.
 */
void slu_soft_exports_revoke(struct soft_exports *exports, struct soft_mr *mr);

#endif
