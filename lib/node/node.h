/* SPDX-License-Identifier: MIT */
/*
 * A node: a multichannel whose peer i is rank i, and for each rank a block of notification words in
 * the memory of this rank. Only the rank that a block belongs to writes into it.
 *
 * A block has words of 8 bytes in network byte order. The upper half of a word is the generation of
 * the writer's barriers, which each reset raises. The lower halves, by offset:
 *
 *     0  the tag of the writer's current barrier, and how often the writer has notified this
 *        rank in the generation, 2 bytes each
 *     8  the mark of a writer whose barriers are broken: the rank that gave up first, and the
 *        rank that it gave up for, 2 bytes each; the highest bit of the word is set if these
 *        two ranks are in different calls
 *    16  of a writer that closed its node: the rank whose connection it had lost before; of one
 *        that gave up: the reason, see abort.c
 *    24  target of reads of the writer's state, see missing_rank.c
 *    32  only in the block of a rank for itself, for others to read: the tag of its last
 *        barrier, or 0 for a gather, 2 bytes; and 2 bytes with the number of barriers of that
 *        tag, or the round of the gather, times 4, plus enum slu_node_state
 *    40  for the writer to read: how often the owner of the block has notified the writer, and
 *        the last round of gathers whose piece it wrote to it, or in a node with a tree how many
 *        chunks it gave to it, 2 bytes each
 *    48  target of reads of the word at 40 of the writer
 *    56  in a node with a tree: how many chunks of the owner of the block the writer has taken,
 *        see flow.h
 *    64  two slots for the pieces of gathers, used alternately, see gather.c; in a node with a
 *        tree the numbers of the last two chunks, 8 bytes each, and the block ends behind them
 *
 * A gather is an allgather or an alltoall. A lazy node of more than a few ranks has a tree, and
 * behind its blocks the windows of flow.h.
 *
 * The count at 0 is kept beside the mark at 8, so that a barrier which was complete before its
 * writer gave up a later one still counts as complete. For the same reason the mark is read before
 * the count: writes of one connection become visible in their order.
 */
#ifndef SLU_NODE_H
#define SLU_NODE_H

#include <endian.h>

#include "multichannel/multichannel.h"
#include "node/tree.h"

#include <sluice/node.h>

struct slu_connector;

/* A slot: the number of the round, the description of the call, and the bytes of the piece. */
#define SLU_SLOT_BYTES 256
#define SLU_SLOT_CALL_AT 8
#define SLU_SLOT_DATA_AT 16
#define SLU_PIECE_BYTES (SLU_SLOT_BYTES - SLU_SLOT_DATA_AT)

#define SLU_SLOTS_AT 64
#define SLU_BLOCK_BYTES (SLU_SLOTS_AT + 2 * SLU_SLOT_BYTES)
#define SLU_TREE_BLOCK_BYTES (SLU_SLOTS_AT + 2 * 8)
#define SLU_COUNT_AT 0
#define SLU_MARK_AT 8
#define SLU_FAREWELL_AT 16
#define SLU_STATE_ANSWER_AT 24
#define SLU_STATE_AT 32
#define SLU_PUBLISHED_AT 40
#define SLU_PUBLISHED_ANSWER_AT 48
#define SLU_TAKEN_AT 56
/* Words that a rank writes to others: at 0, 8, 16 and 56, and the heads of the two slots. */
#define SLU_BLOCK_WORDS 6

/* The state of a rank as it publishes it. */
enum slu_node_state {
    SLU_NODE_OUTSIDE,
    SLU_NODE_INSIDE,
    SLU_NODE_GAVE_UP, /* until a reset */
};

/* Why a rank gave up for another one. The values go over the wire and must not change. */
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

/* Where the block of this rank is at each rank. */
struct slu_place {
    uint64_t addr; /* 0: its endpoint was unusable */
    uint32_t rkey;
    uint32_t block_bytes; /* from one block there to the next */
};

/* The state of each rank. Zero, and not touched, if nothing was sent to it or expected from it. */
struct slu_rank {
    uint16_t notified;     /* how often this rank notified it in this generation, modulo 2^16 */
    uint16_t expected;     /* how often this rank waited for it, likewise */
    bool seen;             /* it has notified this rank in this generation */
    bool invited;          /* in a node that grows: it may give chunks in this generation */
    uint64_t abort_id;     /* request that sent it the mark or the farewell; 0: none */
    uint64_t query_ids[2]; /* requests that read its state and its published counts; 0: none */
    uint64_t piece_ids[2]; /* requests that wrote the last pieces to it, by slot; 0: none */
    /* Of the flows of a node with a tree, in this generation: see flow.h. */
    uint32_t given, taken; /* chunks that it was given, and that were taken from it */
};

/* The number of barriers of a tag in this generation, modulo and from 1 on; 0: unknown. */
struct slu_tally {
    uint16_t tag, count;
};
#define SLU_TALLIES 16
#define SLU_TALLY_MOST ((1 << 14) - 1)

/* What the node opened itself and closes; NULL where it was given. */
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
    uint32_t round;        /* the last round of gathers that began in this generation */
    uint32_t calls;        /* barriers and gathers of all ranks that began in it */
    struct slu_tally last; /* the last call of this rank */
    struct slu_tally tallies[SLU_TALLIES];
    bool broken;
    bool ended;       /* by sluice_node_shutdown() */
    int64_t reset_at; /* time of the last reset of its barriers */
    struct sluice_multichannel *multichannel;
    struct sluice_mr *blocks;
    /* Source of written words, one of each kind for each rank; NULL if they are sent inline. */
    struct sluice_mr *words;
    struct sluice_mr *pieces; /* sources of alltoalls, two slots a rank; NULL before the first */
    struct sluice_mr *stages; /* sources of flows; NULL before the first gather along the tree */
    struct slu_place *places;
    struct slu_rank *peers;
    struct slu_connector *connector; /* of a lazy node; NULL: all ranks were connected at first */
    uint32_t *members;               /* of a node that grows, ascending; else NULL */
    uint32_t member_count;
    uint8_t *cards; /* of all ranks of a lazy node, as they were sent; or NULL */
    bool by_tree;   /* calls of all ranks go along the tree: of a lazy node */
    bool tree_made;
    struct slu_tree tree; /* made by the first call of all ranks in a generation */
    struct slu_belongings own;
    struct slu_farewells farewells; /* for the texts of its engine */
};

struct sluice_prepared_node {
    uint32_t magic;
    struct sluice_node *node; /* has no multichannel yet */
    struct sluice_prepared_multichannel *connections;
    uint64_t files; /* left before other ranks know the endpoints */
};

/* A lazy node of more ranks has a tree. */
#define SLU_FEW_RANKS 4

/* The ranks of a barrier or a gather, and its deadline. */
struct slu_group {
    struct sluice_node *node;
    const uint32_t *ranks; /* ascending; NULL: all of the node */
    uint32_t count;
    uint32_t self;    /* position of this rank */
    bool ending;      /* the barrier is that of a shutdown */
    bool gathering;   /* the call is a gather */
    uint32_t call;    /* number of the call, of all ranks; 0: it is one of some */
    const char *name; /* the name of the gather, static */
    uint32_t chunks;  /* of its flows, given and taken so far */
    uint16_t tag;     /* tells this barrier from others */
    int64_t until;
    uint32_t quitter, culprit;    /* of a failure: who gave up first, and for whom */
    enum slu_abort_reason reason; /* of a failure: what the culprit did */
    bool disagreed;               /* quitter and culprit are in different calls, one a gather */
};

/* Returns the name of the call, for error texts. */
static inline const char *slu_group_name(const struct slu_group *group)
{
    return group->gathering ? group->name : "barrier";
}

static inline uint32_t slu_group_rank(const struct slu_group *group, uint32_t position)
{
    return group->ranks != NULL ? group->ranks[position] : position;
}

static inline uint32_t slu_block_bytes(const struct sluice_node *node)
{
    return node->by_tree ? SLU_TREE_BLOCK_BYTES : SLU_BLOCK_BYTES;
}

/* group.c: makes a group of all members. A rank without a place in it is none of them. */
void slu_group_all(struct slu_group *group);
/* Returns the position of a rank of a group. Of another rank it returns that of one before it. */
uint32_t slu_group_position(const struct slu_group *group, uint32_t rank);
/* Returns the number of members, which are all ranks of a node that does not grow. */
static inline uint32_t slu_node_count(const struct sluice_node *node)
{
    return node->members != NULL ? node->member_count : node->ranks;
}

static inline struct slu_engine *slu_node_engine(const struct sluice_node *node)
{
    return node->multichannel->base.engine;
}

/*
 * Tells whether a rank is connected. If its first endpoint was unusable, a new connection does not
 * help: the address of the block is still missing.
 */
static inline bool slu_node_connected(const struct sluice_node *node, uint32_t rank)
{
    return slu_node_engine(node)->peers[rank].state == SLUICE_STATE_READY &&
           node->places[rank].addr != 0;
}

/*
 * Tells whether a rank can still be connected: it has not been used yet. Ranks of other nodes than
 * lazy ones never are absent.
 */
static inline bool slu_node_is_absent(const struct sluice_node *node, uint32_t rank)
{
    return slu_node_engine(node)->peers[rank].state == SLU_PEER_ABSENT;
}

static inline bool slu_is_node(const struct sluice_node *node)
{
    return node != NULL && node->magic == SLU_MAGIC_NODE;
}

/* Fails with "not a node" and -EINVAL. */
int slu_not_a_node(const struct sluice_node *node);
/* Checks what each call with a deadline is given. */
int slu_node_check_call(const struct sluice_node *node, int64_t deadline);
/* Marks the objects that a node opened as owned, so that the program cannot close them, or not. */
void slu_belongings_own(const struct slu_belongings *own, bool owned);
void slu_belongings_close(const struct slu_belongings *own);
/* Ends the connections of a lazy node. */
void slu_node_end_lazy(struct sluice_node *node);
/* Frees a node, except for its connections and what it opened. */
void slu_node_free(struct sluice_node *node);

/*
 * agree.c: for ranks that open a node, or connect once more. A rank that has failed takes part in
 * the next exchange all the same, so that all fail together.
 */

/*
 * Returns the time left. A rank that has failed gets at least enough to report it. Never 0, because
 * an exchange with a deadline of 0 would not tell the others that the time is up.
 */
int64_t slu_agree_time(int64_t until, int error);
/* This rank's own error, with its text, goes before the result of an exchange. */
int slu_agree_choose(int error, const struct slu_text *text, int result);
/* Returns the result of an exchange; if ranks called another one, the text says why they may. */
int slu_agree_exchanged(int result);
/* Fails with the reason of the first other rank that has reported a failure; what: "connect". */
int slu_agree_check_reports(const struct sluice_node_endpoint *reports, uint32_t ranks,
                            uint32_t self, const char *what);
/* Fails if a connection could not be made. Only this side knows at once; the other would wait. */
int slu_agree_check_peers(const struct slu_engine *engine);

/* endpoint.c */
struct slu_node_endpoint {
    uint32_t from, to, ranks; /* maker, rank it is for, number of ranks */
    uint32_t algorithm;       /* enum sluice_barrier of the maker's node */
    uint64_t addr;            /* of the block for that rank */
    uint32_t rkey;
    uint32_t block_bytes; /* from one block to the next */
    uint32_t generation;  /* of the maker's barriers, which need a reset; 0: they have not begun */
    struct sluice_endpoint connection;
};
void slu_node_endpoint_encode(const struct slu_node_endpoint *endpoint,
                              struct sluice_node_endpoint *wire);
/* Returns 0, or -EPROTO with a text. Sets *endpoint only on success. */
int slu_node_endpoint_decode(const struct sluice_node_endpoint *wire,
                             struct slu_node_endpoint *endpoint);

/*
 * prepared.c. Makes the endpoint for a rank. The engine must be entered; before the handshake it is
 * not the node's yet.
 */
void slu_node_make_endpoint(const struct sluice_node *node, const struct slu_engine *engine,
                            const struct sluice_remote_mr *blocks, uint32_t rank,
                            struct sluice_node_endpoint *wire);
/*
 * create.c. Fails if an endpoint is of another program, or not in its place; and takes one: the
 * rank's part of a node.
 */
int slu_node_check_place(const struct sluice_node *node, uint32_t rank,
                         const struct slu_node_endpoint *endpoint);
void slu_node_set_endpoint(struct sluice_node *node, uint32_t rank,
                           const struct slu_node_endpoint *endpoint);

/* files.c. Returns how many files the process may still open. */
uint64_t slu_files_left(void);
/*
 * Fails with -EMFILE if connections to these ranks take more files than were left before any rank
 * could connect to this one, and than are left now. The engine is that of the connections.
 */
int slu_files_check(uint64_t left, uint32_t rank, const struct slu_engine *engine,
                    const struct sluice_endpoint *theirs, uint32_t ranks);

/* Writes of barriers, and reads, that may be in flight to a rank. */
#define SLU_NODE_OWN_REQUESTS 16
/* Reads the attributes of a node. Returns 0 or an error with a text. */
int slu_node_read_attr(const struct sluice_node_attr *given, struct sluice_node_attr *attr);
/* Makes a node without memory and connections. Returns NULL with a text. */
struct sluice_node *slu_node_create(uint32_t rank, uint32_t ranks,
                                    const struct sluice_node_attr *attr);
/* Makes the blocks, and the source of words. */
int slu_node_create_memory(struct sluice_node *node, struct sluice_pd *pd,
                           struct slu_engine *engine);

/*
 * lazy.c. Opens a lazy node together with all ranks. error is what this rank has failed with so
 * far. May set *opened even if it fails.
 */
int slu_node_open_lazy(struct sluice_exchange *exchange, struct sluice_pd *pd,
                       const struct sluice_node_attr *attr, int error, int64_t until,
                       struct sluice_node **opened);
/* Makes the connector, the connections and the memory of a lazy node. */
int slu_node_create_lazy(struct sluice_node *node, struct sluice_pd *pd,
                         const struct sluice_node_attr *attr);

/* cards.c: the engine must be entered, except for making a card and for a handshake. */
int slu_cards_make(const struct sluice_node *node, uint8_t *wire);
/* Reads the card of a rank. Returns 0, or an error of slu_card_decode(). */
int slu_cards_read(const struct sluice_node *node, uint32_t rank, const uint8_t *wire,
                   struct slu_node_endpoint *endpoint);
/* Takes a card that was read: the rank can be connected. */
void slu_cards_put(struct sluice_node *node, uint32_t rank, const uint8_t *wire,
                   const struct slu_node_endpoint *endpoint);
/* Tells whether there is a card of a rank. */
bool slu_cards_has(const struct sluice_node *node, uint32_t rank);
/* Takes the ranks that have a card, and this one, as members, in a node that grows. */
void slu_cards_count(struct sluice_node *node);
/* From now on only ranks whose cards are there connect to this one. */
void slu_cards_open(struct sluice_node *node);
/* Drops the card of a rank, and ends its connection, whose work is drained. */
void slu_cards_drop(struct sluice_node *node, uint32_t rank);
/* Takes the cards of all ranks, which come in endpoints. Others than cards make absent ranks. */
int slu_cards_handshake(struct sluice_node *node, const struct sluice_node_endpoint *remotes);

/* A rank that could not open its node sends this instead of an endpoint. */
#define SLU_NODE_FAILURE_TEXT 280
struct slu_node_failure {
    int error; /* positive */
    char text[SLU_NODE_FAILURE_TEXT];
};
void slu_node_failure_encode(const struct slu_node_failure *failure,
                             struct sluice_node_endpoint *wire);
/* Encodes an error with the thread's text. With 0 it encodes what no reader takes for a failure. */
void slu_node_failure_encode_error(int error, struct sluice_node_endpoint *wire);
/* Tells whether this is a failure. If so, its text is printable and its error an errno value. */
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
    const void *word = blocks + (size_t)rank * slu_block_bytes(node) + at;

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
/* Publishes that this rank notifies a rank, or has written a piece or chunk to it. */
void slu_node_publish_sent(const struct sluice_node *node, uint32_t rank);

/* abort.c */

/*
 * Returns what an error text adds if a message of this rank still waits for a receive of that rank,
 * which may be why it has not come. Static; may be empty.
 */
const char *slu_abort_reason_own(const struct sluice_node *node, uint32_t rank);
#define SLU_RANK_BYTES 20
/* Writes "rank 3", or "this rank", for error texts; returns text. */
const char *slu_node_rank_name(const struct sluice_node *node, uint32_t rank,
                               char text[SLU_RANK_BYTES]);
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
/* Returns the number of the next piece, or in a node with a tree of the next chunk, of a rank. */
uint32_t slu_node_next_piece(const struct sluice_node *node, uint32_t rank);
/* Tells whether a rank is in a barrier while this one is in a gather, or the other way round. */
bool slu_node_is_elsewhere(const struct slu_group *group, uint32_t rank);

/* wait.c */

/* Connects a rank that is waited for, since the loss of a rank shows only in a connection. */
void slu_notify_connect(const struct sluice_node *node, uint32_t rank);
/*
 * Checks what can end a wait for a rank. Returns 0 to go on, 1 if what the group waits for has
 * come, or an error.
 */
int slu_notify_check(struct slu_group *group, uint32_t rank);
/* Returns the rank whose loss a rank reported when it closed its node, or that rank itself. */
uint32_t slu_node_lost_by(const struct sluice_node *node, uint32_t rank);
/* Fails because a rank is lost, or if it is. */
int slu_notify_fail_lost(struct slu_group *group, uint32_t rank);
int slu_notify_check_loss(struct slu_group *group, uint32_t rank);
/*
 * A wait, of an object that begins with this. poll() and check() return 0 to go on, 1 if what is
 * waited for has come, or an error; late() is called after the deadline, and returns 1 or an error.
 */
struct slu_waiting {
    struct slu_group *group;
    int (*poll)(struct slu_waiting *waiting);
    int (*check)(struct slu_waiting *waiting); /* seldom: whether something has ended the wait */
    int (*late)(struct slu_waiting *waiting);
    int64_t waited; /* how long the wait has lasted since the last chunk of a flow, in ns */
};
/* A rank that was waited for this long is connected, unless it has connected itself. */
#define SLU_CONNECT_TIME SLUICE_MS(20)
int slu_notify_wait_for(struct slu_waiting *waiting);
/*
 * Waits until ready() is true, as slu_wait() does, but also wakes at intervals, because a passive
 * write makes no event. Returns 0; 1 if the deadline passed; or an error if a rank has given up.
 */
int slu_notify_wait(struct slu_group *group, bool (*ready)(void *argument), void *argument);

/* missing_rank.c: after a timeout, finds the rank that is missing, and blames it. */
int slu_missing_rank_blame(struct slu_group *group, uint32_t rank);
/*
 * Likewise, for a lazy node where nothing is waited for from a certain rank. Returns 0 if no rank
 * is known to be missing, and none has given up.
 */
int slu_missing_rank_find(struct slu_group *group);

/* notify.c */

/* Waits until the send queue to a rank has room for one request; fails if the rank is lost. */
int slu_notify_await_room(struct slu_group *group, uint32_t rank);
/* Notifies the rank at a position. */
int slu_notify(struct slu_group *group, uint32_t position);
/* Waits until the rank at a position has notified this one once more. */
int slu_notify_await(struct slu_group *group, uint32_t position);
/* Waits until what the group waits for from a rank has come. */
int slu_notify_await_rank(struct slu_group *group, uint32_t rank);

/* cards.c: makes the tree of a lazy node, if it has one. Returns 0, or -ENOMEM with a text. */
int slu_node_make_tree(struct sluice_node *node);
/*
 * abort.c: counts a call of a group of all ranks, which number their calls alike, and makes the
 * tree of a lazy node.
 */
int slu_group_enter(struct slu_group *group);

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

/* Returns where the number of a piece, or of a chunk, is in a block. */
static inline uint32_t slu_number_at(const struct sluice_node *node, uint32_t number)
{
    return node->by_tree ? SLU_SLOTS_AT + number % 2 * 8 : slu_slot_at(number);
}

/* Returns where the windows of a node with a tree are, behind its blocks. */
static inline size_t slu_windows_at(const struct sluice_node *node)
{
    return (size_t)node->ranks * slu_block_bytes(node);
}

#endif
