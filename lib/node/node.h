/* SPDX-License-Identifier: MIT */
/*
 * A node: a multichannel whose peer i is rank i, and a block of notification
 * words for each rank, into which that rank alone is meant to write.
 *
 * A block has words of 8 bytes, in network byte order. Each has the generation of
 * its writer's barriers, which a reset raises, in its upper half:
 *
 *     0  the tag of the barrier that the writer is in, and how often it has notified
 *        this rank in that generation, 2 bytes each
 *     8  the mark of a writer whose barriers are broken: the rank that gave up
 *        first, and the rank that it gave up for, 2 bytes each; the highest bit of
 *        all is set if these two do not agree on what is called
 *    16  of a writer that closed its node: the rank that it had lost before; or why
 *        the barriers of one were broken, for which abort_reason.c has the words
 *    24  where the state of that rank is read to, see missing_rank.c
 *    32  in the block that a rank has of itself, its state, for others to read: the tag of
 *        the barrier that it was in last, 0 for a gather, 2 bytes; and in 2 more how many
 *        of that tag there were, or the round, times 4, and enum slu_node_state
 *    40  what the owner of the block has told the writer, for that one to read: how often it
 *        has notified it, and the round of gathers that it gave it last, 2 bytes each
 *    48  where that of the other rank is read to
 *    64  two slots for the pieces of gathers, in turns, see gather.c
 *
 * A gather is an allgather or an alltoall.
 *
 * The count of notifications stays beside the mark, so that a barrier that was
 * complete when its writer gave up a later one is still seen to be complete. For
 * the same reason the mark is read before the count is: writes of a connection
 * appear in their order.
 */
#ifndef SLU_NODE_H
#define SLU_NODE_H

#include <endian.h>

#include "multichannel/multichannel.h"

#include <sluice/node.h>

/* A piece of a gather: the number of its round, what call it is of, and its bytes. */
#define SLU_SLOT_BYTES 256
#define SLU_SLOT_CALL_AT 8
#define SLU_SLOT_DATA_AT 16
#define SLU_PIECE_BYTES (SLU_SLOT_BYTES - SLU_SLOT_DATA_AT)

#define SLU_SLOTS_AT 64
#define SLU_BLOCK_BYTES (SLU_SLOTS_AT + 2 * SLU_SLOT_BYTES)
#define SLU_COUNT_AT 0
#define SLU_MARK_AT 8
#define SLU_FAREWELL_AT 16
#define SLU_STATE_ANSWER_AT 24
#define SLU_STATE_AT 32
#define SLU_PUBLISHED_AT 40
#define SLU_PUBLISHED_ANSWER_AT 48
/* That ranks write to others: at 0, 8 and 16, and at the heads of the two slots. */
#define SLU_BLOCK_WORDS 5

/* What a rank says of its barriers, to those that ask. */
enum slu_node_state {
    SLU_NODE_OUTSIDE,
    SLU_NODE_INSIDE,
    SLU_NODE_GAVE_UP, /* until a reset */
};

/* Why a rank gave up for another one; told to other ranks, so none of them changes. */
enum slu_abort_reason {
    SLU_ABORT_UNKNOWN,
    SLU_ABORT_LATE,
    SLU_ABORT_NO_ANSWER,
    SLU_ABORT_NOT_NOTIFIED,
    SLU_ABORT_QUEUE_FULL,
    SLU_ABORT_LOST,
    SLU_ABORT_RECONNECTED,
    SLU_ABORT_OTHER_CALL,
    SLU_ABORT_NO_RESET,
    SLU_ABORT_INVALID,
    SLU_ABORT_HELD_UP,
    SLU_ABORT_REASONS
};

_Static_assert(SLUICE_MAX_PEERS <= 1 << 16, "a mark names ranks with 2 bytes each");

/* What barriers know of a rank. */
struct slu_rank {
    uint64_t addr; /* of our block there; 0: it gave none that is of use */
    uint32_t rkey;
    uint32_t block_bytes;  /* from one block there to the next */
    uint16_t notified;     /* how often we notified it in this generation, modulo 2^16 */
    uint16_t expected;     /* how often we waited for it, the same */
    bool seen;             /* it notified us in this generation */
    uint64_t abort_id;     /* id of the request that told it that our barriers broke; 0: none did */
    uint64_t query_ids[2]; /* of those that read its state, and what it told us; 0: none did */
    uint64_t
        piece_ids[2]; /* ids of the last pieces that were written to it, by slot; 0: none was */
};

/* How many barriers of a tag there were in this generation, from 1 on and modulo; 0: unknown. */
struct slu_tally {
    uint16_t tag, count;
};
#define SLU_TALLIES 16
#define SLU_TALLY_MOST ((1 << 14) - 1)

/* What a node opened by itself, and closes; or NULL. */
struct slu_belongings {
    struct sluice_exchange *exchange;
    struct sluice_context *context;
    struct sluice_pd *pd;
};

struct sluice_node {
    uint32_t magic;
    uint32_t rank, ranks;
    uint32_t algorithm; /* enum sluice_barrier, never DEFAULT */
    uint32_t generation;
    uint32_t round;        /* of gathers, the last one begun in this generation */
    struct slu_tally last; /* the call that this rank was in last */
    struct slu_tally tallies[SLU_TALLIES];
    bool broken;
    bool ended;       /* by a shutdown */
    int64_t reset_at; /* when its barriers were reset last */
    struct sluice_multichannel *multichannel;
    struct sluice_mr *blocks;
    /* What is written from, where that cannot be inline: all counts, all marks, ... Or NULL. */
    struct sluice_mr *words;
    struct sluice_mr *pieces; /* two slots for each rank, of alltoalls; NULL before the first */
    struct slu_rank *peers;
    struct slu_belongings own;
};

struct sluice_prepared_node {
    uint32_t magic;
    struct sluice_node *node; /* without a multichannel yet */
    struct sluice_prepared_multichannel *connections;
};

/* The ranks that a barrier or a gather is of, and until when. */
struct slu_group {
    struct sluice_node *node;
    const uint32_t *ranks; /* ascending; NULL: all of the node */
    uint32_t count;
    uint32_t self;    /* our position */
    bool ending;      /* its barrier is that of a shutdown */
    bool gathering;   /* it is a gather, */
    const char *name; /* and which, static */
    uint16_t tag;     /* of its barrier, to tell it from others */
    int64_t until;
    uint32_t quitter, culprit;    /* of a failure: who gave up first, and for whom */
    enum slu_abort_reason reason; /* the same: what the culprit did */
    bool disagreed;               /* these two are in different calls, of which one is a gather */
};

/* For texts. */
static inline const char *slu_group_name(const struct slu_group *group)
{
    return group->gathering ? group->name : "barrier";
}

static inline uint32_t slu_group_rank(const struct slu_group *group, uint32_t position)
{
    return group->ranks != NULL ? group->ranks[position] : position;
}

static inline struct slu_engine *slu_node_engine(const struct sluice_node *node)
{
    return node->multichannel->base.engine;
}

/* A connection that was made new does not help where the first endpoint was of no use. */
static inline bool slu_node_connected(const struct sluice_node *node, uint32_t rank)
{
    return slu_node_engine(node)->peers[rank].state == SLUICE_STATE_READY &&
           node->peers[rank].addr != 0;
}

static inline bool slu_is_node(const struct sluice_node *node)
{
    return node != NULL && node->magic == SLU_MAGIC_NODE;
}

/* "not a node", for those that return an error. */
int slu_not_a_node(const struct sluice_node *node);
/* What a node owns is ended by it alone; it is closed when it is not owned any more. */
void slu_belongings_own(const struct slu_belongings *own, bool owned);
void slu_belongings_close(const struct slu_belongings *own);
/* Frees what a node has, but for its connections and what it opened. */
void slu_node_free(struct sluice_node *node);

/* endpoint.c */
struct slu_node_endpoint {
    uint32_t from, to, ranks; /* maker, rank it is for, and how many there are */
    uint32_t algorithm;       /* enum sluice_barrier of the maker's node */
    uint64_t addr;            /* of the block for that rank */
    uint32_t rkey;
    uint32_t block_bytes; /* from one block to the next */
    uint32_t generation;  /* of the maker's barriers, which need a reset; 0: they begin */
    struct sluice_endpoint connection;
};
void slu_node_endpoint_encode(const struct slu_node_endpoint *endpoint,
                              struct sluice_node_endpoint *wire);
/* 0, or -EPROTO with a text; *endpoint is set on success only. */
int slu_node_endpoint_decode(const struct sluice_node_endpoint *wire,
                             struct slu_node_endpoint *endpoint);

/*
 * prepared.c: what a rank needs of us, with the engine entered, which is not the node's
 * before its handshake; whether what was decoded is for this node and of that rank, 0 or
 * -EPROTO; and takes it over.
 */
void slu_node_make_endpoint(const struct sluice_node *node, const struct slu_engine *engine,
                            const struct sluice_remote_mr *blocks, uint32_t rank,
                            struct sluice_node_endpoint *wire);
int slu_node_check_place(const struct sluice_node *node, uint32_t rank,
                         const struct slu_node_endpoint *endpoint);
void slu_node_set_endpoint(struct sluice_node *node, uint32_t rank,
                           const struct slu_node_endpoint *endpoint);

/* What a rank that could not open its node sends in the place of an endpoint. */
#define SLU_NODE_FAILURE_TEXT 280
struct slu_node_failure {
    int error; /* positive */
    char text[SLU_NODE_FAILURE_TEXT];
};
void slu_node_failure_encode(const struct slu_node_failure *failure,
                             struct sluice_node_endpoint *wire);
/* The same of an error and the thread's text; or of 0, which no reader takes for a failure. */
void slu_node_failure_encode_error(int error, struct sluice_node_endpoint *wire);
/* Whether it is one. What is in it is printable then, and the error one of errno. */
bool slu_node_failure_decode(const struct sluice_node_endpoint *wire,
                             struct slu_node_failure *failure);

/*
 * All that follows needs the engine entered. A function that fails returns a negative errno
 * value with a text, and has set in the group which rank is to blame.
 */

/* How long asking other ranks, and telling them of an abort, may take at most. */
#define SLU_ABORT_TIMEOUT SLUICE_MS(100)

/* block.c */

/* Reads a word from the block that a rank has here. */
static inline uint64_t slu_node_word_read(const struct sluice_node *node, uint32_t rank,
                                          uint32_t at)
{
    const char *blocks = sluice_mr_addr(node->blocks);
    const void *word = blocks + (size_t)rank * SLU_BLOCK_BYTES + at;

    return be64toh(sluice_load_acquire64(word));
}
/* Returns a word of the current generation with this lower half. */
static inline uint64_t slu_node_word(const struct sluice_node *node, uint32_t low)
{
    return (uint64_t)node->generation << 32 | low;
}
/*
 * This rank may have missed this many resets of another one. A word of a later generation is
 * invalid.
 */
#define SLU_GENERATIONS_AHEAD 1024
/*
 * Tells whether a word can be of any generation. The caller then finds out whether it is of
 * this one, an earlier or a later one.
 */
static inline bool slu_node_word_is_valid(const struct sluice_node *node, uint64_t word)
{
    uint64_t generation = word >> 32;

    return word == 0 ||
           (generation > 0 && generation <= (uint64_t)node->generation + SLU_GENERATIONS_AHEAD);
}
/*
 * Returns by how many notifications a rank is ahead of those that this rank waited for:
 * UINT16_MAX if one is still missing, 0 if none is, 1 if the rank is in its next barrier. Any
 * other number comes from an invalid word.
 */
static inline uint16_t slu_node_word_ahead(const struct slu_rank *peer, uint64_t word)
{
    return (uint16_t)((uint16_t)word - peer->expected);
}
/*
 * Writes a word into the block of this rank at another one, and returns the id of the request.
 * The send queue must have room, and the rank be ready.
 */
uint64_t slu_node_word_write(struct sluice_node *node, uint32_t rank, uint32_t at, uint64_t word);
/* Publishes the state of this rank, for others to read. */
void slu_node_publish_state(struct sluice_node *node, enum slu_node_state state);
/* Publishes that this rank has entered one more barrier, or round of gathers. */
void slu_node_publish_entry(const struct slu_group *group);
/* Publishes that this rank has notified a rank, or written a piece to it. */
void slu_node_publish_sent(const struct sluice_node *node, uint32_t rank);

/* abort_reason.c */

/* Encodes a reason for the word that is sent before a mark. */
uint32_t slu_abort_reason_encode(enum slu_abort_reason reason);
/* Returns the reason that a rank sent with its mark, or UNKNOWN. */
enum slu_abort_reason slu_abort_reason_read(const struct sluice_node *node, uint32_t rank);
/* Returns what an error text says of the reason behind the culprit's name; static. */
const char *slu_abort_reason_text(enum slu_abort_reason reason);
/*
 * Returns what an error text adds if this rank itself may be why a rank has not come: it has not
 * posted a receive for a message of that rank. Static; may be empty.
 */
const char *slu_abort_reason_own(const struct sluice_node *node, uint32_t rank);
#define SLU_RANK_BYTES 20
/* Writes "rank 3", or "this rank", for error texts; returns text. */
const char *slu_node_rank_name(const struct sluice_node *node, uint32_t rank,
                               char text[SLU_RANK_BYTES]);

/* abort.c */

/* Records who gave up first, for whom and why; returns error. */
int slu_abort_blame(struct slu_group *group, uint32_t quitter, uint32_t culprit,
                    enum slu_abort_reason reason, int error);
/* The same, if this rank is the first to give up. */
int slu_abort_blame_rank(struct slu_group *group, uint32_t culprit, enum slu_abort_reason reason,
                         int error);
/* Fails because a rank wrote an invalid word. */
int slu_abort_fail_invalid(struct slu_group *group, uint32_t rank, const char *what, uint64_t word);
/* Fails because a rank has reset its barriers, and this one has not. */
int slu_abort_fail_reset(struct slu_group *group, uint32_t rank);
/* Fails with -ECANCELED or -EPROTO if a rank of the group has given up. */
int slu_abort_check_marks(struct slu_group *group);
/* After a failure: breaks the barriers of the node, and tells all ranks. The text stays. */
void slu_abort_announce(const struct slu_group *group);
/* At a close without a shutdown: tells all ranks which one was lost first, if any was. */
void slu_abort_farewell(struct sluice_node *node);

/* poll.c */

/* Returns 1 if what the group waits for from a rank has come, 0 if not, or an error. */
int slu_node_poll(struct slu_group *group, uint32_t rank);
/* Tells whether a rank is in a barrier while this one is in a gather, or the other way round. */
bool slu_node_is_elsewhere(const struct slu_group *group, uint32_t rank);

/* missing_rank.c: after a timeout, finds the rank that is missing, and blames it. */
int slu_missing_rank_blame(struct slu_group *group, uint32_t rank);

/* notify.c */

/* Waits until the send queue to a rank has room for one request; fails if the rank is lost. */
int slu_notify_await_room(struct slu_group *group, uint32_t rank);
/* Notifies the rank at a position. */
int slu_notify(struct slu_group *group, uint32_t position);
/* Waits until the rank at a position has notified this one once more. */
int slu_notify_await(struct slu_group *group, uint32_t position);
/* Waits until what the group waits for from a rank has come. */
int slu_notify_await_rank(struct slu_group *group, uint32_t rank);
/*
 * Waits until ready() is true, as slu_wait() does, but also wakes at intervals, because a passive
 * write makes no event. Returns false if the deadline passed.
 */
bool slu_notify_wait(const struct slu_group *group, bool (*ready)(void *argument), void *argument);

/* barrier.c: runs the barrier itself, of a group that was checked. */
int slu_barrier_run(struct slu_group *group, uint32_t algorithm);

/*
 * node.c: checks that this many ranks may meet now. Returns 0 or -ENOTCONN; or -ETIMEDOUT for a
 * deadline of 0, unless the rank is alone. An open scope is allowed: detached requests do not
 * belong to it.
 */
int slu_node_check_usable(const struct sluice_node *node, uint32_t count, int64_t deadline);

/* Returns where the slot of a round is in a block. */
static inline uint32_t slu_slot_at(uint32_t round)
{
    return SLU_SLOTS_AT + round % 2 * SLU_SLOT_BYTES;
}

#endif
