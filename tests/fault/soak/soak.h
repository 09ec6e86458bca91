/* SPDX-License-Identifier: MIT */
/*
 * The soak: processes that are all connected to all and make a random mix of all
 * calls, while every few seconds one of them is killed and started again.
 *
 *   broker.c    the parent: starts, kills, introduces, leads common work
 *   watch.c     the parent: detects a standstill, and growth
 *   remains.c   the parent: checks that killed processes leave nothing behind
 *   rank.c      a process: its life, and messages of the broker
 *   meet.c      how two ranks connect, part, and connect again
 *   mail.c      random traffic of one rank with the others, at any time
 *   check.c     contents of the messages of the mail
 *   atomic.c    words that peers add to and swap
 *   assembly.c  work that all ranks do at the same time, such as scatter and gather
 *   window.c    the same, with memory that is registered for it
 *   perform.c   lists of requests by every call there is
 *   posted.c  the same, without waiting
 *   flight.c    requests, from when they are made until they are complete
 *
 * Why the mix cannot deadlock:
 *
 *   Mail. A rank sends only messages for which the peer has posted a receive; it
 *   knows these from a word of its own memory that the peer writes (a grant). So every
 *   operation of the mail completes without the peer's program, and each may block.
 *   A rank never blocks for mail to come.
 *
 *   Assembly. The broker calls all ranks, one assembly after the other; each rank
 *   finishes its work, and comes. The seed of an assembly determines all transfers, so
 *   each rank knows what the others do: they post all receives before the first
 *   send that waits, or one side of each pair begins and pairs go in one order.
 *   Assemblies use connections of their own.
 *
 * Permitted failures. If an operation with a peer fails with an error of the classes
 * peer lost, timeout or cancelled, the rank suspects the peer. The broker must then
 * report that it has killed that peer, no later than the failure; anything else fails
 * the soak. All other operations must succeed. Two ranks also part by agreement at
 * random times: then neither has requests in flight except parked receives.
 *
 * Random choices of a rank follow from the seed, its rank, and how often it was
 * started; those of the broker from the seed. Timing is not reproducible.
 */
#ifndef SOAK_H
#define SOAK_H

#include <stdatomic.h>

#include "../../support/process.h"
#include "../../support/suite.h"
#include "calls.h"
#include "random.h"

#define RANKS_MAX 16
#define LARGEST ((UINT64_C(16) << 20) + 1) /* bytes of a message */
#define SMALL 4096                         /* bytes of most receives */
#define WINDOWS 8                          /* places of a rank in a peer's memory */
#define WINDOW 2048                        /* bytes of one */
#define FLIGHTS 1024                       /* requests of a rank that are not complete */
#define BATCH 144                          /* requests in a list */
#define DEPTH 32                           /* of a send queue; half of a receive queue */
#define BOARD LARGEST
#define LOSS_TIMES 32
/* The time within which connected ranks notice that a process is dead. */
#define LOSS_TIME SLUICE_S(1)

/* The time for any operation, far more than needed. A longer wait is a hang. */
#define OPERATION_TIME SLUICE_S(60)

struct options {
    uint32_t ranks;
    uint32_t seconds;
    uint32_t kills;      /* after which it ends; 0: it has its time */
    uint32_t kill_every; /* ms */
    uint32_t hang;       /* s without a sign of life */
    uint64_t seed;
    const char *device;
    bool verbose;
};

/* State that a rank publishes in shared memory, and that stays when it is killed. */
struct ledger {
    _Atomic uint64_t beats;
    _Atomic int64_t since; /* when the last call began */
    _Atomic uint32_t call; /* the last one */
    _Atomic uint32_t peer; /* its peer, or the first one */
    _Atomic uint32_t count;
    _Atomic uint32_t inside; /* the call has not returned */
    _Atomic uint64_t step;
    char task[64];
    char failure[1400];
    _Atomic uint64_t calls[CALLS];
    _Atomic uint64_t bytes;     /* received, read, written, and checked */
    _Atomic uint64_t ended[9];  /* requests, by class of error */
    _Atomic uint64_t suspected; /* peers whose failure was seen before the broker reported it */
    /* Losses, by the time from the kill until they were known: less than 2 to the n us. */
    _Atomic uint64_t losses[LOSS_TIMES];
    _Atomic int64_t longest_loss;
    _Atomic uint64_t met_again; /* before the loss was known, and before it had to be */
};

/* Messages between the broker and a rank. */
enum word {
    SAY_MEET = 1, /* to: prepare connections to a peer; answer OFFER */
    SAY_OFFER,    /* both: endpoints with which a peer connects; answer MET */
    SAY_GO,       /* to: both have connected */
    SAY_QUIET,    /* to: end what you do with a peer; answer DONE */
    SAY_DOWN,     /* to: a peer was killed */
    SAY_ASSEMBLE, /* to: an assembly; answer DONE */
    SAY_CENSUS,   /* to: end what you do, and begin nothing; answer COUNTED */
    SAY_COUNTED,  /* from */
    SAY_COMPARE,  /* to: sums of what all have added; answer DONE */
    SAY_GO_ON,    /* to: the census is over */
    SAY_FINISH,   /* to: as CENSUS, for good; answer DONE */
    SAY_CLOSE,    /* to: close everything and end */
    SAY_MET,      /* from */
    SAY_DONE      /* from */
};

#define ENDS 3 /* connections of a pair: mail, assembly, line */

struct offer {
    struct sluice_endpoint ends[ENDS];
    uint8_t common[SLUICE_REMOTE_MR_BYTES];
    uint8_t board[SLUICE_REMOTE_MR_BYTES];
    uint32_t epoch;
    uint32_t life; /* how often the peer of the mail was removed in it */
};

struct count {
    int64_t heap, resident; /* bytes */
    int32_t fds, threads;
    uint64_t shared[RANKS_MAX]; /* added to the shared word of each rank */
    uint64_t locked[RANKS_MAX]; /* to the locked one */
    uint64_t paired[RANKS_MAX]; /* to the word of this pair, since they met */
};

struct message {
    uint32_t word;
    uint32_t peer;
    uint64_t id;   /* meeting, assembly, census */
    int64_t when;  /* DOWN: just before the kill */
    uint32_t mask; /* ASSEMBLE: members. COMPARE: ranks whose pair is complete */
    uint32_t flag; /* COMPARE: no rank was killed */
    union {
        struct offer offer;
        struct count count;
    };
};

/* Memory of a rank that peers write, read and add to. */
struct common {
    uint64_t grants[RANKS_MAX]; /* of a peer to us: places of ours that are free, receives */
    uint64_t pair_sum[RANKS_MAX];
    uint64_t pair_swap[RANKS_MAX];
    uint64_t shared_sum;
    uint64_t lock, locked_sum;
    uint64_t spare[5];
    uint64_t line_sum[RANKS_MAX];
    uint64_t spots[RANKS_MAX]; /* written by peers only to use atomics and writes */
    uint8_t windows[RANKS_MAX][WINDOWS][WINDOW];
};

enum office_kind { OFFICE_MAIL, OFFICE_ASSEMBLY, OFFICE_LINE };

/* A multichannel to all, or the channel to one peer. */
struct office {
    enum office_kind kind;
    struct sluice_multichannel *mc;
    struct sluice_channel *channel;
    struct sluice_prepared_channel *prepared;
    uint32_t rank;      /* peer of the channel */
    uint32_t unsettled; /* flights of it that are not complete */
    uint64_t past;      /* sends of peers that were removed */
};

enum peer_state {
    PEER_ABSENT = 0, /* before the first meeting, or dead */
    PEER_MEETING,
    PEER_UP,
    PEER_QUIET,  /* about to part */
    PEER_SUSPECT /* something failed, and the broker has not said why */
};

struct peer {
    enum peer_state state;
    bool lost; /* something has failed since the meeting */
    uint64_t meeting;
    uint32_t epoch;
    int64_t failed_at;
    int64_t killed_at; /* while connected, until the library reports the loss; 0: reported */
    struct sluice_remote_mr common, board;
    /* Endpoints of its mail: of this or the last meeting, and of the one before. */
    struct sluice_endpoint last, older;
    uint32_t last_epoch, older_epoch;
    uint32_t last_life, older_life;
    uint32_t life; /* how often we removed it from our mail */
    /* The mail that we send. */
    uint64_t sent, written;
    uint32_t sending; /* flights in the send queue */
    uint64_t order;   /* of the last one made */
    uint32_t detached;
    /* The mail that we receive. */
    uint64_t posted, received, granted;
    uint64_t checked; /* places of ours that it has written, and we have checked */
    /* Expected values of its words. */
    uint64_t pair_sum, pair_swap, shared_sum, locked_sum, line_sum;
};

enum flight_kind {
    FLY_MESSAGE = 1, /* mail: a send */
    FLY_RECEIVE,     /* mail: a parked receive */
    FLY_PLACE,       /* mail: a write into a place of ours at the peer */
    FLY_GRANT,
    FLY_BOARD,    /* a read of a peer's board */
    FLY_WORD,     /* an atomic whose old value is known */
    FLY_ANY,      /* an atomic or a read whose result its caller checks */
    FLY_PLAN_OUT, /* assembly: a send or write */
    FLY_PLAN_IN   /* assembly: a receive */
};

enum flight_state { FLIGHT_FREE = 0, FLIGHT_MADE, FLIGHT_DETACHED };

/* Memory of its own for a large message. */
struct big {
    struct sluice_mr *mr;
    uint8_t *bytes;
    size_t length;
    size_t mapped; /* 0: of sluice_mr_alloc */
};

struct flight {
    enum flight_state state;
    enum flight_kind kind;
    uint64_t tag; /* user data */
    struct office *office;
    uint32_t peer;
    uint64_t meeting;
    uint64_t order;
    uint64_t number;
    uint64_t key;
    uint64_t length;   /* room */
    uint64_t planned;  /* bytes that are transferred, but of FLY_RECEIVE */
    uint64_t offset;   /* of the pattern */
    uint64_t expected; /* FLY_WORD */
    bool immediate;    /* FLY_PLAN_IN: one comes, which is the key */
    uint8_t *bytes;
    uint32_t lkey;
    struct big *big;
    struct sluice_sge sges[4];
    struct sluice_request request;
    struct sluice_handle handle;
    bool has_handle;
    int32_t error; /* how it ended; stays when it is free */
};

struct batch {
    struct flight *flights[BATCH];
    uint32_t count;
};

struct soak {
    struct options options;
    uint32_t index, size, epoch;
    int broker;
    struct ledger *ledger;
    struct rng rng;
    uint64_t max_message;
    bool atomics;
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_mr *common_mr, *board_mr, *arena_mr;
    struct common *common;
    uint8_t *board;
    struct office mail, assembly, lines[RANKS_MAX];
    struct sluice_endpoint first[2][RANKS_MAX]; /* of mail and assembly, until they are used */
    bool used[RANKS_MAX];
    struct peer peers[RANKS_MAX];
    struct flight flights[FLIGHTS];
    uint32_t free_flights[FLIGHTS];
    uint32_t free_count;
    uint64_t tags;
    uint32_t bigs, big_allocs;
    int alloc_fds;                /* that an allocated region holds */
    size_t big_bytes, big_mapped; /* of these, what is not allocated by the library */
    uint64_t multicasts;
    uint64_t accepted, succeeded, failed; /* requests of the mail, for its counters */
    uint64_t shared_base, locked_base;
    struct sluice_handle old_handle;
    uint64_t step;
    bool paused;
    atomic_bool closing;
};

/* The rank that this process is. */
extern struct soak soak;

/* rank.c */
void run_rank(void) __attribute__((noreturn));
/* Ends this process, and the soak, with the text. */
void soak_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));
#define give_up(format, ...) soak_fail(__FILE__, __LINE__, format, ##__VA_ARGS__)
#define expect(condition, format, ...)                             \
    do {                                                           \
        if (!(condition)) {                                        \
            give_up("not " #condition ": " format, ##__VA_ARGS__); \
        }                                                          \
    } while (0)
void beat(void);
void set_task(const char *format, ...) __attribute__((format(printf, 1, 2)));
void send_report(uint32_t word, uint32_t peer, uint64_t id);
void say_message(const struct message *message);
bool is_up(uint32_t rank);
bool is_verbs(void);

/* meet.c */
void open_rank(void);
void close_rank(void);
void meet_peer(uint32_t rank, uint64_t meeting);
void take_offer(uint32_t rank, const struct offer *offer);
void go_with_peer(uint32_t rank);

/* flight.c */
uint64_t key_of(uint64_t meeting, uint32_t from, uint32_t to, uint64_t number);
uint64_t board_key(uint32_t rank, uint32_t epoch);
/* Makes a request to a peer with memory for length bytes. Returns NULL if there is no room now. */
struct flight *make_flight(struct office *office, uint32_t rank, enum flight_kind kind,
                           uint32_t opcode, uint64_t length);
/* Ends a detached flight, which must have completed by now. */
void end_flight(struct flight *flight);
void set_flags(struct flight *flight);
/* Checks the result of a flight, and frees its buffers. */
void conclude(struct flight *flight, const struct sluice_completion *completion);
void conclude_result(struct flight *flight, int result);
struct flight *find_flight(const struct office *office, const struct sluice_completion *completion);
void detach_flight(struct flight *flight);
/* Notes that something failed with this peer. */
void suspect(uint32_t rank, const char *what, int error);
/* Returns NULL if there are many, unless must_be is set. */
struct big *take_big(size_t length, bool must_be);
void give_big(struct big *big);
uint32_t office_index(const struct office *office, uint32_t rank);

/* check.c */
/* Returns the bytes of a receive with this number. */
uint64_t capacity_of(uint64_t meeting, uint32_t from, uint32_t to, uint64_t number);
void fill_message(struct flight *flight);
void fill_place(struct flight *flight);
void fill_multicast(uint8_t *bytes, uint64_t length, uint64_t number);
uint32_t immediate_of(const struct flight *flight);
void check_message(struct flight *flight, const struct sluice_completion *completion);

/* perform.c */
enum method {
    BY_ONE = 0, /* blocking, one by one */
    BY_SUBMIT,
    BY_LIST, /* the blocking call of their one operation */
    BY_SCATTER_GATHER,
    BY_PREPARED, /* a prepared list */
    BY_SCOPE_LIST,
    BY_SCOPE_NAMED,
    BY_SCOPE_KIND,
    BY_POST,
    BY_NAMED,
    BY_POSTED_LIST,
    METHODS
};
/* Whether the method can perform these requests without waiting for the wrong ones. */
bool fits_method(const struct office *office, const struct batch *batch, enum method method);
/* Performs them; posted ones may be in flight on return. */
void perform(struct office *office, struct batch *batch, enum method method);
/* Returns SLUICE_FOREVER or a long deadline. */
int64_t choose_deadline(void);
/*
 * Makes the call of the office, or of a scope of it, for requests of this kind, with the other
 * arguments given.
 */
int call_office(const struct office *office, uint32_t opcode, enum form_shape shape,
                enum form_end end, struct form_call *call);
/* Makes the call for the requests of the batch from `at` on. */
int call_multicast(const struct batch *batch, uint32_t at, enum form_end end,
                   struct form_call *call);
void perform_multicast(struct office *office, struct batch *batch);
/* Performs one request, which is complete on return. */
void perform_one(struct flight *flight);

/* posted.c */
void perform_posted(struct office *office, struct batch *batch, enum method method);
void perform_posted_multicast(struct office *office, struct batch *batch);
/* Takes completions in one of several ways. Returns false if there were none. */
bool look(struct office *office);
/* Waits until nothing is in flight. */
void settle(struct office *office);
void look_closely(struct office *office);

/* mail.c */
void mail_step(void);
void serve_mail(void);
/* Ends requests in flight to a peer, or to all (SLUICE_MAX_PEERS), except for receives. */
void make_quiet(uint32_t rank);

/* atomic.c */
struct flight *make_word(uint32_t rank);
/* Compare-and-swap, or add, on our word in an array of the common memory. */
struct flight *make_word_of(struct office *office, uint32_t rank, bool swap, size_t array);
void use_lock(uint32_t rank);
void forget_words(uint32_t rank);
void count_words(struct count *count);
void compare_words(const struct message *message);

/* assembly.c */
void assemble(uint64_t id, uint32_t mask);
/* window.c */
void assemble_window(uint64_t id, uint32_t mask, uint32_t owner);

/* broker.c */
int run_broker(const struct options *options);

#endif
