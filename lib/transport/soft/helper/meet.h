/* SPDX-License-Identifier: MIT */
/*
 * Connects queue pairs of different contexts: calls of meet.c for the helper, the wire and queue
 * pairs.
 */
#ifndef SLU_SOFT_MEET_H
#define SLU_SOFT_MEET_H

#include "connect/acceptor.h"
#include "transport/soft/core/soft.h"

struct soft_helper;

/* The message that brings a connection from the helper: the peer has proven itself. */
struct tcp_attach {
    struct soft_message message; /* first */
    int fd;
};

/*
 * Starts to look for the peer. Any thread may call it, holding no lock. Returns 0, or an error with
 * a text.
 */
int slu_soft_meet_begin(struct soft_qp *qp, const struct slu_endpoint *remote);

/*
 * Returns why no address of the peer can be reached, as a static text; NULL: that is not known, or
 * the peer was met. Any thread may call it, holding no lock.
 */
const char *slu_soft_meet_obstacle(const struct soft_qp *qp);

/* Opens the listeners of a context and sets its addresses. Returns 0, or an error with a text. */
int slu_soft_meet_listen(struct soft_context *context, struct slu_acceptor *acceptor, int epoll,
                         uint64_t tag);

/* Called by the helper thread alone. */
void slu_soft_meet_event(struct soft_helper *helper, uint32_t data);
/* Continues all meetings that are due. Returns when to call it again. */
int64_t slu_soft_meet_tick(struct soft_helper *helper, int64_t now);

#endif
