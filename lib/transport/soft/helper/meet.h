/* SPDX-License-Identifier: MIT */
/* Queue pairs of different contexts meet: what meet.c offers to helper, wire and queue pairs. */
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

/* Looks for the peer. By any thread, with no lock: 0, or an error with a text. */
int slu_soft_meet_begin(struct soft_qp *qp, const struct slu_endpoint *remote);

/* Opens the listeners of a context, whose addresses are set then; 0, or an error with a text. */
int slu_soft_meet_listen(struct soft_context *context, struct slu_acceptor *acceptor, int epoll,
                         uint64_t tag);

/* By the helper thread alone. */
void slu_soft_meet_event(struct soft_helper *helper, uint32_t data);
/* Looks after those that are due; returns when it is to be called again. */
int64_t slu_soft_meet_tick(struct soft_helper *helper, int64_t now);

#endif
