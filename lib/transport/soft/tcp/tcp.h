/* SPDX-License-Identifier: MIT */
/* Internals of the wire over TCP. Everything belongs to the owner of the CQ. */
#ifndef SLU_SOFT_TCP_H
#define SLU_SOFT_TCP_H

#include "transport/soft/core/regions.h"
#include "transport/soft/tcp/frame.h"

/*
 * What the end of the stream can mean. A peer that ends the connection itself says why, unless
 * there is no room for it, or it is of an earlier version.
 */
#define SOFT_PEER_ENDED                                                                         \
    "the peer's process ended, or it ended the connection while messages to this side were on " \
    "their way"
#define SOFT_PEER_RESET \
    "the peer's process ended, or its host forgot the connection (connection reset)"

/* Shared by the connections of a CQ: holds bytes only during one turn. */
#define TCP_STAGING_BYTES (128 * 1024)
/* A frame with a payload that is to be whole is never begun before all of it is here. */
#define TCP_CARRY_BYTES (TCP_FRAME_BYTES + SOFT_WHOLE_BYTES)

enum tcp_phase {
    PHASE_WAITING, /* the two are to meet: see meet.c */
    PHASE_JOINING, /* and to agree on shared memory: see shm/join.c */
    PHASE_OPEN,
    PHASE_CLOSING, /* the queue pair has failed; what we owe the peer is still to be sent */
    PHASE_CLOSED   /* no socket */
};

/* What the frame that is partly sent carries. */
enum tcp_part {
    TCP_PART_NONE,
    TCP_PART_CONTROL, /* header only */
    TCP_PART_REQUEST,
    TCP_PART_REPLY
};

/* Position of a frame of TCP_PART_CONTROL. */
enum tcp_control {
    CONTROL_ACK,
    CONTROL_ASK,
    CONTROL_NAK,
    CONTROL_PROBE,
    CONTROL_ECHO,
    CONTROL_REPEAT,
    CONTROL_FAREWELL
};

/* A frame to be sent, or what is left of it. */
struct tcp_out {
    enum tcp_part part;
    uint32_t position; /* of the request, or the sequence number of what is replied to */
    uint64_t payload;  /* bytes behind the header */
    uint64_t sent;     /* bytes, of header and payload together */
    uint32_t ack;      /* what the header tells */
    uint32_t credit;
    bool lent; /* what is behind it only names the message: see shm/copy.c */
    uint8_t header[TCP_FRAME_BYTES];
};

/* A read of the peer that has not been answered, or an atomic operation: it is done. */
struct tcp_reply {
    uint32_t type; /* TCP_READ_REPLY or TCP_ATOMIC_REPLY */
    uint32_t seq;
    uint64_t addr; /* of an atomic operation the old value, and the rest is 0 */
    uint64_t length;
    uint32_t rkey;
    bool gone; /* its memory is not mapped any more */
};

/* The payload that is coming in. */
struct tcp_in {
    struct tcp_frame frame;
    uint64_t offset;
    uint64_t operand[2]; /* of an atomic request, as they came */
    bool active;
    uint8_t *early; /* it is set aside here, or NULL: it has a receive */
    bool lasts;     /* the memory of ours that it goes to is not unmapped meanwhile */
    bool dropped;   /* a send: it is longer than its receive, and goes nowhere */
};

/* A message that came before its receive. A longer one is elsewhere. */
struct tcp_early {
    struct tcp_frame frame;
    uint8_t bytes[SOFT_WHOLE_BYTES];
};

struct soft_tcp {
    struct soft_qp *qp;
    int fd;
    enum tcp_phase phase;
    bool broken;  /* a send failed: what was received is still read */
    bool ended;   /* the peer will send no more */
    bool blocked; /* EPOLLOUT is asked for */
    bool due;     /* an acknowledgement is to be sent, with a request or without */
    bool hasty;   /* the peer waits for it */
    bool held;    /* it waits for an answer of the program: see tcp/ack.c */
    bool shared;  /* frames go through shared memory */
    bool is_unix; /* of whose socket the kernel does not tell when it received last */
    int64_t heard;
    /* Sending. Positions of requests are their sequence numbers. */
    struct tcp_out out;
    uint32_t credits;    /* receives the peer has posted, ever */
    uint32_t consumed;   /* of these, used by what we sent; or more: the peer sets that aside */
    uint32_t early_most; /* it does so with so many */
    uint32_t fetches;    /* reads and atomics, sent and not acknowledged */
    uint32_t reads;      /* of these */
    uint32_t acked_out;  /* what we have told the peer */
    uint32_t credit_out;
    bool ask;            /* the peer for an acknowledgement */
    bool probe;          /* the peer is to be asked for a sign of life, with this number */
    bool echo;           /* the peer is to be given one, with that number */
    bool lends;          /* the last request that was sent, until the peer has it */
    bool repeat;         /* the peer is to send the message that it has lent */
    bool parts;          /* the peer is to be told why the connection ends */
    bool knows_farewell; /* it understands that */
    uint32_t probe_seq;
    uint32_t echo_seq;
    int64_t asked;    /* since when the program answers a request of the peer; 0: it does not */
    uint32_t answers; /* in a row that came at once */
    uint32_t moved;   /* SLU_MOVED_* */
    bool nak;         /* one is to be sent */
    uint32_t nak_seq;
    uint32_t nak_status;
    struct tcp_reply *replies; /* ring of attr.read_depth */
    uint32_t reply_head;
    uint32_t reply_tail;
    /* Receiving. */
    struct tcp_in in;
    uint32_t mapped;         /* 0, or the key of a region, all of which was there in this turn */
    bool glimpses;           /* long messages come: see tcp/receive.c */
    uint32_t executed;       /* requests of the peer; behind them is what was set aside */
    struct tcp_early *early; /* ring of SLU_EARLY_MOST; NULL: nothing ever came early */
    uint8_t *early_long;     /* SLU_EARLY_BYTES for each of these; NULL: nothing so long did */
    uint32_t early_first;
    uint32_t early_count;  /* while there is a whole one, there is no receive */
    uint32_t fetch_cursor; /* no unanswered read or atomic of ours before this position */
    uint32_t carry_length; /* bytes of an incomplete frame */
    uint8_t carry[TCP_CARRY_BYTES];
    struct soft_shm *shm; /* NULL: one of the two does not want it */
    /* In the CQ. */
    struct soft_tcp *next; /* of its connections */
    struct soft_tcp **link;
    struct soft_tcp *owe_next;  /* of its urgent, held or unsettled ones */
    struct soft_tcp **owe_link; /* NULL: in none of these lists */
    struct soft_tcp *hot_next;
    struct soft_tcp **hot_link; /* likewise */
};

/* wire.c */
void slu_soft_tcp_opened(struct soft_tcp *tcp);

/* socket.c */
int slu_soft_tcp_add_socket(struct soft_tcp *tcp, int fd, uint32_t events);
void slu_soft_tcp_remove_socket(struct soft_tcp *tcp);
void slu_soft_tcp_watch(struct soft_tcp *tcp, uint32_t events);
/* Ends the connection, and leaves its socket to the helper until the peer has its last bytes. */
void slu_soft_tcp_close(struct soft_tcp *tcp);
/* A piece came or went: does more of its message follow, before which nobody should sleep? */
void slu_soft_tcp_expect_piece(struct soft_tcp *tcp, bool more);

/* fault.c */
/* The connection is of no use. */
static inline void slu_soft_tcp_lose(struct soft_tcp *tcp, uint32_t status)
{
    slu_soft_qp_fail(tcp->qp, status, true);
}
/* The peer has broken the protocol. Returns false. */
bool slu_soft_tcp_reject(struct soft_tcp *tcp, const char *what);
void slu_soft_tcp_refuse(struct soft_tcp *tcp, uint32_t seq, uint32_t status);
/* The last frame of the peer, which says why it ends the connection. Returns false. */
bool slu_soft_tcp_take_farewell(struct soft_tcp *tcp, const struct tcp_frame *frame);

/* ack.c */
/*
 * An answer within this time came at once: also that of a program which shares its
 * processor, or which waits for the answers of others first.
 */
#define ANSWER_TIME SLUICE_US(200)
/* So many of these in a row, and the next is expected. */
#define EXPECTED 16
/*
 * The clock costs as much as a good part of a message through shared memory. An answer
 * that is expected is in time if what is owed still waits for it, and nobody has looked
 * for anything else meanwhile.
 */
#define UNTIMED INT64_MAX

/* Adds a connection to one of the lists of its CQ. */
void slu_soft_tcp_owe(struct soft_tcp **list, struct soft_tcp *tcp);
void slu_soft_tcp_urgent(struct soft_tcp *tcp);   /* an acknowledgement is due, or credit */
void slu_soft_tcp_announce(struct soft_tcp *tcp); /* credit, if the peer could run short */
void slu_soft_tcp_hurry(struct soft_tcp *tcp);    /* and the peer waits for it */
/* A request of the peer was done, of which the program may hear. */
void slu_soft_tcp_asked(struct soft_tcp *tcp, const struct tcp_frame *frame);
void slu_soft_tcp_answered(struct soft_tcp *tcp); /* a request of ours is about to go */
void slu_soft_tcp_settled(struct soft_tcp *tcp);  /* nothing is due any more */
void slu_soft_tcp_leave_owing(struct soft_tcp *tcp);
void slu_soft_tcp_unsettled(struct soft_tcp *tcp); /* shared: see slu_soft_shm_settle() */

/* early.c */
/* May it go, after so many messages that take a receive? */
bool slu_soft_tcp_may_send(const struct soft_tcp *tcp, const struct soft_wqe *wqe,
                           uint32_t consumed);
/* Has a request of the peer the next number, and may it follow what was set aside? */
bool slu_soft_tcp_is_next(const struct soft_tcp *tcp, const struct tcp_frame *frame);
/* A send is here and no receive: where its bytes go. NULL: the queue pair has failed. */
uint8_t *slu_soft_tcp_set_aside(struct soft_tcp *tcp, const struct tcp_frame *frame);
/* The bytes of a message that was set aside, by its place in the ring. */
uint8_t *slu_soft_tcp_early_bytes(const struct soft_tcp *tcp, uint32_t index);
/* At its end. */
void slu_soft_tcp_drop_early(struct soft_tcp *tcp);

/* fault.c */
/* Is memory of a remote key not mapped any more, at that address of ours? */
bool slu_soft_tcp_is_gone(const struct soft_mr *pin, uint64_t addr, uint64_t length);
/* Does a reply read memory that is not there any more? It is refused when it is built again. */
bool slu_soft_tcp_blame_reply(struct soft_tcp *tcp, const struct tcp_out *out);
/* Does a request? Then it is done. */
bool slu_soft_tcp_blame_request(struct soft_tcp *tcp, const struct tcp_out *out);

/* transmit.c */
void slu_soft_tcp_push(struct soft_tcp *tcp);
/* How many requests of the peer are complete: those that have had their reply, too. */
uint32_t slu_soft_tcp_complete(const struct soft_tcp *tcp);

/* receive.c */
/* Takes whole frames, and parts of large ones. Returns how many bytes are left. */
uint32_t slu_soft_tcp_parse(struct soft_tcp *tcp, const uint8_t *bytes, uint32_t count);
void slu_soft_tcp_receive(struct soft_tcp *tcp);

/* execute.c: returns false if the queue pair has failed */
bool slu_soft_tcp_begin(struct soft_tcp *tcp, const struct tcp_frame *frame);
/*
 * The peer's words, which are read at any time: it has done our requests up to one of
 * them, of which those behind a read may wait until its reply is here.
 */
bool slu_soft_tcp_take_done(struct soft_tcp *tcp, uint32_t done);
bool slu_soft_tcp_take_credit(struct soft_tcp *tcp, uint32_t credit);
static inline bool slu_soft_tcp_accept_done(struct soft_tcp *tcp, uint32_t done)
{
    return done == tcp->qp->sends.done || slu_soft_tcp_take_done(tcp, done);
}
static inline bool slu_soft_tcp_accept_credit(struct soft_tcp *tcp, uint32_t credit)
{
    return credit == tcp->credits || slu_soft_tcp_take_credit(tcp, credit);
}
/*
 * A send of the peer of such a length is here, and may go to the oldest receive. False: it was
 * refused; or it is dropped, which the payload that is coming in then says.
 */
bool slu_soft_tcp_match(struct soft_tcp *tcp, uint32_t seq, uint64_t length);
/* It is there; or it was too long, and is dropped. */
static inline void slu_soft_tcp_received(struct soft_tcp *tcp, uint64_t length, bool immediate,
                                         uint32_t value)
{
    tcp->executed++;
    slu_soft_complete_receive(tcp->qp, SLUICE_STATUS_SUCCESS, length,
                              immediate ? SLUICE_IMMEDIATE : 0, value);
}
static inline void slu_soft_tcp_dropped(struct soft_tcp *tcp, uint64_t length)
{
    tcp->executed++;
    slu_soft_complete_receive(tcp->qp, SLU_STATUS_DROPPED, length, 0, 0);
}
bool slu_soft_tcp_finish(struct soft_tcp *tcp);
/*
 * Receives were posted, or the last that is early has become whole: they take what was set aside.
 * False: the queue pair has failed.
 */
bool slu_soft_tcp_take_early(struct soft_tcp *tcp);

/* place.c */
/* Puts bytes of a payload where they belong; false: the queue pair has failed. */
bool slu_soft_tcp_place(struct soft_tcp *tcp, const uint8_t *bytes, uint64_t length);
/* The memory for the payload that is coming in is not mapped any more. */
void slu_soft_tcp_fault(struct soft_tcp *tcp);
/* Where the rest of a payload goes that is not for memory of a key. */
struct soft_cursor slu_soft_tcp_target(const struct soft_tcp *tcp);
/* What is to be touched for it. */
void slu_soft_tcp_touch_target(const struct soft_tcp *tcp, uint64_t length,
                               struct soft_touched *touched);

#endif
