/* SPDX-License-Identifier: MIT */
/*
 * Actions that go on side by side, in the thread of who wants them. Those of one link are a
 * group. An action is posted in pieces of one message each, a few at a time, so that a long one
 * holds up no short one, and those of all groups of a link have a share of its depth each.
 *
 * What ends because something else has failed, a deadline of others for one, goes on over a new
 * connection from where it was: a connection completes in order, so that is known.
 *
 * A batch is prepared, which allocates all it needs, and then posted, once or often. A post and
 * each later call make one round over its groups. Other threads that use the same links take its
 * results as well, under the locks of the links; only the thread that uses the batch posts for it,
 * and the one that has just made the connection. Any thread may end it.
 */
#ifndef SLU_BUFFER_BATCH_H
#define SLU_BUFFER_BATCH_H

#include <poll.h>

#include <sluice/blocks.h>

#include "base/error.h"
#include "buffer/link.h"
#include "buffer/waiter.h"

struct slu_batch;

/* In flight of one work: enough to keep a link busy, and little for others to wait for. */
#define SLU_PIECES 4

/* How the bytes of an action lie, if they lie in blocks, within the memory of each side. */
struct slu_work_blocks {
    struct sluice_layout local, remote;
    uint64_t local_length, remote_length; /* of the memory, from its first byte on */
    uint64_t unit;                        /* bytes that are whole blocks on both sides; 0: none */
    uint32_t indices[];
};

/* An action. Its request has it as user data: it is there until nothing of it is in flight. */
struct slu_work {
    struct slu_work *next; /* in the queue of its group, while there is more of it to post */
    struct slu_group *group;
    uint32_t index; /* in the batch */
    uint32_t group_index;
    uint32_t opcode;
    uint64_t local, remote;         /* addresses */
    uint64_t length;                /* bytes that move */
    uint64_t span;                  /* of the local memory, from its first byte to its last */
    struct slu_work_blocks *blocks; /* NULL: they touch */
    uint64_t id, offset; /* of the buffer, and in it: these two and the next are for texts */
    struct slu_address owner;
    uint32_t lkey, rkey;
    uint64_t posted, done; /* bytes */
    uint32_t in_flight;    /* pieces */
    uint32_t lost, again;  /* how often it went on after its connection was lost, or ended */
    bool queued;
    atomic_bool ended; /* under the lock of the link, and read without it: see hold.c */
    bool early;        /* it ends before it begins, each time it is posted */
    const struct slu_work *refused; /* one of the same buffer that the owner has refused, or NULL */
    struct slu_work *untaken;       /* the next that has ended and was not polled */
    struct sluice_mr *mr;           /* made for it, or NULL */
    struct sluice_completion result; /* its end; until then its first failure that is one */
};

/* Works that have ended and were not polled yet, in the order in which they ended. */
struct slu_untaken {
    struct slu_work *first, *last;
};

struct slu_group {
    struct slu_group *next; /* in the list of its link */
    struct slu_batch *batch;
    struct slu_link *link;
    uint32_t left; /* works that have not ended */
    uint32_t used; /* pieces in flight */
    uint64_t seen; /* dials of the link that were looked at */
    struct slu_work *first, *last;
    struct slu_untaken untaken;
    uint32_t failed; /* the first work that failed, of a reason of its own if one did: see why */
    bool cancelled;  /* it did not: why tells of a cancellation */
    bool joined;     /* the link knows of it */
    bool watched;    /* the descriptor of the batch has that of the channel */
    char why[SLU_LINK_TEXT];
};

/* Why works end before their time, and what their text says of it. */
struct slu_ending {
    int error;
    enum sluice_error_class error_class;
    uint32_t status;
    const char *what;
};
extern const struct slu_ending slu_ending_cancelled, slu_ending_interrupted, slu_ending_closed;

/* What a batch has of the program's regions in a domain of its service. */
struct slu_batch_hold {
    struct slu_memory_user user;
    const struct slu_batch *batch;
    const struct slu_buffer_domain *domain; /* NULL: nothing */
};

struct slu_batch {
    pthread_mutex_t lock; /* posting and cancelling are whole: before the locks of links */
    struct sluice_buffer_service *service;
    struct slu_waiter *waiter;
    int64_t until;
    bool posted;              /* once at least */
    bool armed;               /* the waiter sleeps on behalf of an event loop */
    atomic_bool ends;         /* somebody ends it: no more is posted */
    atomic_uint groups_left;  /* that have not ended */
    struct slu_untaken early; /* works that ended before they began */
    struct slu_text told;     /* of the first of them that failed, the text */
    uint32_t count, group_count, group_room;
    struct slu_work *works; /* in the order of actions */
    struct slu_group *groups;
    struct pollfd *fds; /* one more than groups */
    struct slu_batch_hold holds[SLUICE_BUFFER_PDS];
    /* A batch of one action uses these, and allocates nothing. */
    struct slu_work only_work;
    struct slu_group only_group;
    struct pollfd only_fds[2];
};

/* action.c: -EINVAL with a text, or 0. */
int slu_buffer_check_call(const struct sluice_buffer_service *service,
                          const struct sluice_buffer_action *actions, uint32_t count,
                          int64_t deadline);
/* Checks actions, and makes works of them. 0, or an error of the arguments. */
int slu_batch_prepare(struct slu_batch *batch, const struct sluice_buffer_action *actions);
/* 0, or the first failure of a batch that is over, with its text. */
int slu_batch_conclude(const struct slu_batch *batch);

/* Before the channel of its link is closed, or it does not wait for it any more. */
void slu_group_unwatch(struct slu_group *group);
/* Puts a work, which was filled in, into the group of a link that the batch holds then. */
int slu_batch_add(struct slu_batch *batch, struct slu_work *work, struct slu_link *link);
/* After all works are there: 0, or -ENOMEM or -EMFILE with a text. */
int slu_batch_make_ready(struct slu_batch *batch);
/*
 * Begins, and makes a first round. It is ready, and over if it was posted before. A wait follows,
 * or slu_batch_leave().
 */
void slu_batch_post(struct slu_batch *batch, int64_t until);
/* The program goes on elsewhere. Others that sleep arm the channels, which a look has disarmed. */
void slu_batch_leave(struct slu_batch *batch);
static inline bool slu_batch_is_over(const struct slu_batch *batch)
{
    return atomic_load_explicit(&batch->groups_left, memory_order_acquire) == 0;
}
/* One round without waiting. */
void slu_batch_step(struct slu_batch *batch);
/* Until it is over, or has a result that was not taken: 0, -ETIMEDOUT or -EINTR. */
int slu_batch_wait(struct slu_batch *batch, int64_t until, bool for_any);
/* Takes results of works that have ended: how many. */
uint32_t slu_batch_take(struct slu_batch *batch, struct sluice_completion *completions,
                        uint32_t count);
/* As sluice_buffer_batch_arm(). */
int slu_batch_arm(struct slu_batch *batch, int64_t *until);
/* When those that are cancelled now end the connections that they have something in flight on. */
int64_t slu_batch_patience(void);
/* From any thread: no more is posted, and connections begin to end. A cancel follows. */
void slu_batch_recall(struct slu_batch *batch, int64_t patience);
/* From any thread: all that goes on ends, and nothing is in flight any more. */
void slu_batch_cancel(struct slu_batch *batch, const struct slu_ending *ending);
/* The service ends: so does the batch, which keeps its results and nothing of the service. */
void slu_batch_detach(struct slu_batch *batch);
/* Lets go of links, and frees what it has. It is over. */
void slu_batch_end(struct slu_batch *batch);

/* hold.c: regions of a batch that is prepared do not end while it is in flight; until the next. */
void slu_batch_hold(struct slu_batch *batch);
void slu_batch_let_go(struct slu_batch *batch);

/* piece.c: a request, what it refers to while it is posted, and the bytes that it moves. */
struct slu_piece {
    struct sluice_blocks blocks;
    uint64_t bytes;
};
/* Blocks of a work, which were checked: 0, or -ENOMEM. */
int slu_piece_blocks(struct slu_work *work, const struct sluice_blocks *blocks,
                     uint64_t local_length, uint64_t remote_length);
/* The next piece, which counts as posted. Something is left. */
struct sluice_request slu_piece_next(struct slu_work *work, struct slu_piece *piece);

/* step.c: a work of a group begins when the batch does. */
void slu_group_add(struct slu_group *group, struct slu_work *work);
/* The lock of the link is held. Goes on with a group: whether anything happened. */
bool slu_group_step(struct slu_group *group);
/*
 * The lock of the link is held, and the batch ends. If works of the group still are in flight when
 * patience has passed, the connection begins to end: those of several groups do so side by side.
 */
void slu_group_recall(struct slu_group *group, int64_t patience);
/* Then: all works of the group end, and none is in flight any more. */
void slu_group_cancel(struct slu_group *group, const struct slu_ending *ending);
/* A work ends with an error of its own, which the thread's text tells of. */
void slu_work_fail(struct slu_work *work, int error, enum sluice_error_class error_class,
                   uint32_t status);
void slu_untaken_add(struct slu_untaken *untaken, struct slu_work *work);

#endif
