/* SPDX-License-Identifier: MIT */
/*
 * Actions that go on side by side, in the thread of who wants them. Those of one link are a
 * group. An action is posted in pieces of one message each, a few at a time, so that a long one
 * holds up no short one, and those of all groups of a link have a share of its depth each.
 *
 * What ends because something else has failed, a deadline of others for one, goes on over a new
 * connection from where it was: a connection completes in order, so that is known.
 */
#ifndef SLU_BUFFER_BATCH_H
#define SLU_BUFFER_BATCH_H

#include <poll.h>

#include "buffer/link.h"
#include "buffer/waiter.h"

struct slu_batch;

/* An action. Its request has it as user data: it is there until nothing of it is in flight. */
struct slu_work {
    struct slu_work *next; /* in the queue of its group, while there is more of it to post */
    struct slu_group *group;
    uint32_t index; /* in the batch */
    uint32_t group_index;
    uint32_t opcode;
    uint64_t local, remote; /* addresses */
    uint64_t length;
    uint64_t id, offset; /* of the buffer, and in it: these two and the next are for texts */
    struct slu_address owner;
    uint32_t lkey, rkey;
    uint64_t posted, done; /* bytes */
    uint32_t in_flight;    /* pieces */
    uint32_t lost, again;  /* how often it went on after its connection was lost, or ended */
    bool queued, ended;
    struct sluice_mr *mr;            /* made for it, or NULL */
    struct sluice_completion result; /* its end; until then its first failure that is one */
};

struct slu_group {
    struct slu_group *next; /* in the list of its link */
    struct slu_batch *batch;
    struct slu_link *link;
    uint32_t left; /* works that have not ended */
    uint32_t used; /* pieces in flight */
    uint64_t seen; /* dials of the link that were looked at */
    struct slu_work *first, *last;
    uint32_t failed; /* the first work that failed: why tells of it */
    bool joined;     /* the link knows of it */
    char why[SLU_LINK_TEXT];
};

struct slu_batch {
    struct sluice_buffer_service *service;
    struct slu_waiter *waiter;
    int64_t until;
    uint32_t count, group_count, group_room;
    struct slu_work *works; /* in the order of actions */
    struct slu_group *groups;
    struct pollfd *fds; /* one more than groups */
    /* A batch of one action uses these, and allocates nothing. */
    struct slu_work only_work;
    struct slu_group only_group;
    struct pollfd only_fds[2];
};

/* Puts a work, which was filled in, into the group of a link that the batch holds then. */
int slu_batch_add(struct slu_batch *batch, struct slu_work *work, struct slu_link *link);
/* Until all works have ended: 0, or -ENOMEM or -EMFILE, and none has begun. */
int slu_batch_run(struct slu_batch *batch);
/* Lets go of links, and frees what it has. */
void slu_batch_end(struct slu_batch *batch);

/* step.c: a work of a group begins when the batch does. */
void slu_group_add(struct slu_group *group, struct slu_work *work);
/* The lock of the link is held. Goes on with a group: whether anything happened. */
bool slu_group_step(struct slu_group *group);
/* A work ends with an error of its own, which the thread's text tells of. */
void slu_work_fail(struct slu_work *work, int error, enum sluice_error_class error_class,
                   uint32_t status);

#endif
