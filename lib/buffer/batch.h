/* SPDX-License-Identifier: MIT */
/*
 * A batch is a set of actions that run side by side, in the thread of the caller. The actions of a
 * batch on one link are a group. An action is posted in pieces of one message each, a few at a
 * time, so that a long action does not hold up a short one. Each group has a share of the depth of
 * its link.
 *
 * The connection of an action may end because of other work, such as the passed deadline of another
 * batch. The action then continues over a new connection from where it was. That place is known
 * because a connection completes in order.
 *
 * A batch is prepared, which allocates all it needs, and then posted, once or more often. A post
 * and each later call make one round over its groups. Other threads that use the same links also
 * take the results of the batch, under the locks of the links. Only two threads post for a batch:
 * the one that uses it, and the one that has just made the connection. Any thread may end a batch.
 */
#ifndef SLU_BUFFER_BATCH_H
#define SLU_BUFFER_BATCH_H

#include <poll.h>

#include <sluice/blocks.h>

#include "base/error.h"
#include "buffer/link.h"
#include "buffer/waiter.h"

struct slu_batch;

/* Pieces of one work in flight: enough to keep a link busy, and few for other works to wait for. */
#define SLU_PIECES 4
/* The longest piece. */
#define SLU_PIECE_BYTES (UINT64_C(64) << 20)

/* The layout of the bytes of an action in blocks, within the memory of each side. */
struct slu_work_blocks {
    struct sluice_layout local, remote;
    uint64_t local_length, remote_length; /* of the memory, from its first byte */
    uint64_t unit;                        /* bytes that are whole blocks on both sides; 0: none */
    uint32_t indices[];
};

/* An action. The user data of its requests point to it, so it exists until none is in flight. */
struct slu_work {
    struct slu_work *next; /* in the queue of its group, while a part is not posted */
    struct slu_group *group;
    uint32_t index; /* in the batch */
    uint32_t group_index;
    uint32_t opcode;
    uint64_t local, remote;         /* addresses */
    uint64_t length;                /* bytes to move */
    uint64_t span;                  /* bytes of local memory, from the first to the last one used */
    struct slu_work_blocks *blocks; /* NULL: contiguous */
    uint64_t id, offset; /* of the buffer, and in it; these and the next field are only for texts */
    struct slu_address owner;
    uint32_t lkey, rkey;
    uint64_t posted, done; /* bytes */
    uint32_t in_flight;    /* pieces */
    uint32_t lost, again;  /* times it continued after its connection was lost, or ended */
    bool queued;
    atomic_bool ended; /* set under the lock of the link, and read without it: see hold.c */
    bool early;        /* it ends at each post, before it is queued */
    const struct slu_work *refused; /* one of the same buffer that the owner has refused, or NULL */
    struct slu_work *untaken;       /* next work that has ended and was not taken */
    struct sluice_mr *mr;           /* registered for this work, or NULL */
    struct sluice_completion result; /* the result; until the end, the first failure */
};

/* Works that have ended and were not taken yet, in the order in which they ended. */
struct slu_untaken {
    struct slu_work *first, *last;
};

struct slu_group {
    struct slu_group *next; /* in the list of its link */
    struct slu_batch *batch;
    struct slu_link *link;
    uint32_t left; /* works that have not ended */
    uint32_t used; /* pieces in flight */
    uint64_t seen; /* count of dials of the link that the group has seen */
    struct slu_work *first, *last;
    struct slu_untaken untaken;
    uint32_t failed; /* index of the work that why is about */
    bool cancelled;  /* why is of a cancellation */
    bool joined;     /* the group is in the list of its link */
    bool watched;    /* the channel's descriptor is in the set of the waiter */
    char why[SLU_LINK_TEXT];
};

/* A reason to end works early, and the text for it. */
struct slu_ending {
    int error;
    enum sluice_error_class error_class;
    uint32_t status;
    const char *what;
};
extern const struct slu_ending slu_ending_late, slu_ending_cancelled, slu_ending_interrupted,
    slu_ending_closed;

/* Keeps the program's regions that a batch uses, in one domain of the service, from ending. */
struct slu_batch_hold {
    struct slu_memory_user user;
    const struct slu_batch *batch;
    const struct slu_buffer_domain *domain; /* NULL: no regions */
};

struct slu_batch {
    bool is_object;       /* of the program; otherwise of a blocking call */
    pthread_mutex_t lock; /* makes a post or cancel atomic; taken before locks of links */
    struct sluice_buffer_service *service;
    struct slu_waiter *waiter;
    int64_t until;
    bool posted;              /* at least once */
    bool armed;               /* an event loop sleeps on the waiter */
    atomic_bool ends;         /* a thread ends the batch: no more is posted */
    atomic_uint groups_left;  /* groups that have not ended */
    struct slu_untaken early; /* works that ended before they were queued */
    struct slu_text told;     /* text of the first of these that failed */
    uint32_t count, group_count, group_room;
    struct slu_work *works; /* in the order of actions */
    struct slu_group *groups;
    struct pollfd *fds; /* one more than groups */
    struct slu_batch_hold holds[SLUICE_MAX_BUFFER_PDS];
    /* A batch of one action uses these instead of allocating. */
    struct slu_work only_work;
    struct slu_group only_group;
    struct pollfd only_fds[2];
};

/* Returns what an action has in fields without a meaning; must be 0. */
static inline uint64_t slu_action_unknown(const struct sluice_buffer_action *action)
{
    return action->flags | action->reserved[0] | action->reserved[1] | action->reserved[2] |
           action->reserved[3];
}

/* action.c: Checks the arguments of a call. Returns 0, or -EINVAL with a text. */
int slu_buffer_check_call(const struct sluice_buffer_service *service,
                          const struct sluice_buffer_action *actions, uint32_t count,
                          int64_t deadline);
/* Checks actions, and makes works of them. Returns 0, or an error of the arguments. */
int slu_batch_prepare(struct slu_batch *batch, const struct sluice_buffer_action *actions);
/* Returns 0, or the first failure of a batch that is over, with its text. */
int slu_batch_conclude(const struct slu_batch *batch);

/*
 * Adds a filled-in work to the batch's group for the link. Takes over the caller's hold on the
 * link.
 */
int slu_batch_add(struct slu_batch *batch, struct slu_work *work, struct slu_link *link);
/* Completes a batch that has all its works. Returns 0, or -ENOMEM or -EMFILE with a text. */
int slu_batch_make_ready(struct slu_batch *batch);
/*
 * Posts a batch, and makes a first round. The batch is ready, and is over if it was posted before.
 * Call slu_batch_wait() or slu_batch_leave() next.
 */
void slu_batch_post(struct slu_batch *batch, int64_t until);
/*
 * Ends a call on a batch that may not be over. Wakes other threads that sleep on its links, because
 * a poll by this thread has disarmed the channels: they have to arm them again.
 */
void slu_batch_leave(struct slu_batch *batch);
static inline bool slu_batch_is_over(const struct slu_batch *batch)
{
    return atomic_load_explicit(&batch->groups_left, memory_order_acquire) == 0;
}
/* Makes one round without waiting. */
void slu_batch_step(struct slu_batch *batch);
/*
 * Waits until the batch is over or, with for_any, has a result that was not taken. Returns 0,
 * -ETIMEDOUT or -EINTR.
 */
int slu_batch_wait(struct slu_batch *batch, int64_t until, bool for_any);
/* Takes results of works that have ended. Returns their number. */
uint32_t slu_batch_take(struct slu_batch *batch, struct sluice_completion *completions,
                        uint32_t count);
/*
 * Arms the channels of the batch, with the return values of sluice_buffer_batch_arm(). *until: when
 * to poll again even without an event.
 */
int slu_batch_arm(struct slu_batch *batch, int64_t *until);
/*
 * Returns the time until which a batch that is cancelled now waits for its requests in flight.
 * After that, it ends their connections.
 */
int64_t slu_batch_patience(void);
/*
 * Stops posting, and begins to end connections that have requests of the batch in flight after
 * patience. Any thread may call this. Call slu_batch_cancel() next.
 */
void slu_batch_recall(struct slu_batch *batch, int64_t patience);
/* Ends all works of the batch. Afterwards nothing of it is in flight. Any thread may call this. */
void slu_batch_cancel(struct slu_batch *batch, const struct slu_ending *ending);
/*
 * Ends the batch of a service that closes. The batch keeps its results, and refers to nothing of
 * the service any more.
 */
void slu_batch_detach(struct slu_batch *batch);
/* Puts its links and frees what a batch has. The batch must be over. */
void slu_batch_end(struct slu_batch *batch);

/*
 * hold.c: Keeps the regions that a prepared batch names from ending while works that name them are
 * posted and have not ended; slu_batch_let_go() stops that.
 */
void slu_batch_hold(struct slu_batch *batch);
void slu_batch_let_go(struct slu_batch *batch);

/*
 * piece.c: The part of a request that has to stay while it is posted, and the bytes that it moves.
 */
struct slu_piece {
    struct sluice_blocks blocks;
    uint64_t bytes;
};
/* Copies checked blocks into a work. Returns 0, or -ENOMEM. */
int slu_piece_blocks(struct slu_work *work, const struct sluice_blocks *blocks,
                     uint64_t local_length, uint64_t remote_length);
/* Makes the request of the next piece, and counts it as posted. The work must have bytes left. */
struct sluice_request slu_piece_next(struct slu_work *work, struct slu_piece *piece);

/* work.c: Queues a work in its group when the batch is posted. */
void slu_group_add(struct slu_group *group, struct slu_work *work);
/*
 * The next four are called with the lock of the link held. Takes all completions of a link, also
 * those of other groups, which it wakes. Returns whether there were any.
 */
bool slu_works_take(struct slu_group *group);
/* Posts what there is room for. Returns whether anything happened. */
bool slu_works_post(struct slu_group *group);
/* Fails all works of a group that are not in flight. Returns whether there were any. */
bool slu_works_fail_early(struct slu_group *group, const struct slu_ending *ending);
/*
 * Fails all works of a group, whose link is apart, with the error of the dial. A work that ended
 * while a part of it was not posted may still be in the queue, and keeps its result.
 */
void slu_works_fail(struct slu_group *group, int error, const char *why);
/* Ends a work with an error of its own, whose text is the thread's. */
void slu_work_fail(struct slu_work *work, int error, enum sluice_error_class error_class,
                   uint32_t status);
void slu_untaken_add(struct slu_untaken *untaken, struct slu_work *work);

/*
 * group.c: Removes the channel from the set of the waiter. Call it before the channel is closed,
 * and when the batch does not wait for the link any more.
 */
void slu_group_unwatch(struct slu_group *group);
/*
 * Takes results, and posts what fits. The lock of the link is held. Returns whether anything
 * happened.
 */
bool slu_group_step(struct slu_group *group);
/*
 * Begins to end a group, whose batch ends. The lock of the link is held. If works of the group are
 * still in flight when patience has passed, the connection begins to end. So the connections of
 * several groups drain side by side.
 */
void slu_group_recall(struct slu_group *group, int64_t patience);
/* Ends all works of a recalled group. Afterwards none of them is in flight. */
void slu_group_cancel(struct slu_group *group, const struct slu_ending *ending);
#endif
