/* SPDX-License-Identifier: MIT */
/* Internals of the wire over TCP. Everything belongs to the owner of the CQ. */
#ifndef SLU_SOFT_TCP_H
#define SLU_SOFT_TCP_H

#include "transport/soft/core/regions.h"
#include "transport/soft/tcp/frame.h"

/*
 * Reasons for the end of a stream without a farewell. A peer that ends the connection itself sends
 * its reason, unless there is no room for it or its version is older.
 */
#define SOFT_PEER_ENDED                                                                         \
    "the peer's process ended, or it ended the connection while messages to this side were on " \
    "their way"
#define SOFT_PEER_RESET \
    "the peer's process ended, or its host forgot the connection (connection reset)"

/* Shared by the connections of a CQ: holds bytes only during one turn. */
#define TCP_STAGING_BYTES (128 * 1024)
/*
 * Bytes carried over to the next turn. A frame with a payload of up to SOFT_WHOLE_BYTES is not
 * begun before all of it has arrived.
 */
#define TCP_CARRY_BYTES (TCP_FRAME_BYTES + SOFT_WHOLE_BYTES)

enum tcp_phase {
    PHASE_WAITING, /* both sides have to meet: see meet.c */
    PHASE_JOINING, /* both have to agree on shared memory: see shm/join.c */
    PHASE_IDLE,    /* connected, and no memory is shared until one side sends something */
    PHASE_OPEN,
    PHASE_CLOSING, /* the queue pair has failed; the last frames to the peer are still to be sent */
    PHASE_CLOSED   /* no socket */
};

/* Contents of a frame that is sent in part. */
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
    CONTROL_WANT,
    CONTROL_FAREWELL
};

/* A frame to be sent, or the rest of one. */
struct tcp_out {
    enum tcp_part part;
    uint32_t position; /* of the request, or the sequence number of the request replied to */
    uint64_t payload;  /* bytes behind the header */
    uint64_t sent;     /* bytes, of header and payload together */
    uint32_t ack;      /* acknowledgement and credit in the header */
    uint32_t credit;
    bool lent; /* its payload only names the message: see shm/copy.c */
    uint8_t header[TCP_FRAME_BYTES];
};

/* A reply owed to the peer: of a read, or of an atomic operation, which is done already. */
struct tcp_reply {
    uint32_t type; /* TCP_READ_REPLY or TCP_ATOMIC_REPLY */
    uint32_t seq;
    uint64_t addr; /* of an atomic operation the old value; all below is then 0 */
    uint64_t length;
    uint32_t rkey;
    bool gone; /* its memory is not mapped any more */
};

/* The payload that is being received. */
struct tcp_in {
    struct tcp_frame frame;
    uint64_t offset;
    uint64_t operand[2]; /* of an atomic request, in network byte order */
    bool active;
    uint8_t *early; /* it is stored here until there is a receive; NULL: there is one */
    bool lasts;     /* the program does not unmap its target meanwhile */
    bool dropped;   /* a send that is longer than its receive: discard it */
};

/* A message that came before its receive. Bytes of a longer one are in early_long. */
struct tcp_early {
    struct tcp_frame frame;
    uint8_t bytes[SOFT_WHOLE_BYTES];
};

struct soft_tcp {
    struct soft_qp *qp;
    int fd;
    enum tcp_phase phase;
    bool broken;  /* sending failed; received bytes are still read */
    bool ended;   /* the peer will send no more */
    bool blocked; /* waits for EPOLLOUT, or for memory */
    bool starved; /* the system had no memory for what is to be sent */
    bool due;     /* an acknowledgement is pending, to be sent with a request or alone */
    bool hasty;   /* the peer waits for it */
    bool held;    /* the acknowledgement waits for an answer of the program: see tcp/ack.c */
    bool shared;  /* frames go through shared memory */
    bool greeted; /* near: the peer has agreed to share memory when it is needed */
    bool is_unix; /* a Unix socket, for which the kernel keeps no time of the last receive */
    int64_t heard;
    /* Sending. Positions of requests are their sequence numbers. */
    struct tcp_out out;
    uint32_t credits;    /* receives the peer has posted, ever */
    uint32_t consumed;   /* receives that our messages use; above credits, they are early */
    uint32_t early_most; /* number of early messages that the peer stores */
    uint32_t fetches;    /* reads and atomics, sent and not acknowledged */
    uint32_t reads;      /* of these */
    uint32_t acked_out;  /* last acknowledgement that was sent */
    uint32_t credit_out;
    bool ask;            /* ask the peer for an acknowledgement */
    bool probe;          /* send a probe with probe_seq */
    bool echo;           /* answer the peer's probe, with echo_seq */
    bool lends;          /* the last request sent is a loan that the peer has not read yet */
    bool repeat;         /* ask the peer to send the message that it has lent */
    bool parts;          /* send a farewell before the end */
    bool knows_farewell; /* the peer understands farewells */
    bool announces;      /* the peer receives from a pool: announce messages that wait for credit */
    bool want;           /* send an announcement of want_seq */
    uint32_t want_seq;   /* credit that was asked for last */
    uint32_t probe_seq;
    uint32_t echo_seq;
    int64_t asked;    /* when a request came that the program has not answered; 0: none */
    uint32_t answers; /* number of consecutive answers within ANSWER_TIME */
    uint32_t moved;   /* SLU_MOVED_* */
    bool nak;         /* a refusal is to be sent */
    uint32_t nak_seq;
    uint32_t nak_status;
    struct tcp_reply *replies; /* ring of attr.read_depth */
    uint32_t reply_head;
    uint32_t reply_tail;
    /* Receiving. */
    struct tcp_in in;
    uint32_t mapped;   /* 0, or the key of a region found mapped in this turn */
    bool glimpses;     /* long messages are expected: see tcp/receive.c */
    uint32_t executed; /* requests of the peer; early messages follow them */
    uint32_t wanted;   /* with a pool: receives that the peer has announced messages for, ever */
    struct tcp_early *early; /* ring of SLU_EARLY_MOST; NULL: no message ever came early */
    uint8_t *early_long;     /* SLU_EARLY_BYTES for each of these; NULL: no long one ever did */
    uint32_t early_first;
    uint32_t early_count;  /* while one is complete, no receive is posted */
    uint32_t fetch_cursor; /* no unanswered read or atomic of ours before this position */
    uint32_t carry_length; /* bytes of an incomplete frame */
    uint8_t carry[TCP_CARRY_BYTES];
    struct soft_shm *shm; /* NULL: one of both sides does not share memory */
    /* Places in lists of the CQ. */
    SOFT_PLACE(struct soft_tcp) all;  /* connections */
    SOFT_PLACE(struct soft_tcp) owes; /* urgent, held or unsettled ones */
    SOFT_PLACE(struct soft_tcp) hot;
};

/* wire.c */
void slu_soft_tcp_opened(struct soft_tcp *tcp);
/* Returns whether both sides are connected, though they may still have to share memory. */
static inline bool slu_soft_tcp_is_connected(const struct soft_tcp *tcp)
{
    return tcp->phase == PHASE_OPEN || tcp->phase == PHASE_IDLE ||
           (tcp->phase == PHASE_JOINING && tcp->greeted);
}

/* socket.c */
int slu_soft_tcp_add_socket(struct soft_tcp *tcp, int fd, uint32_t events);
void slu_soft_tcp_remove_socket(struct soft_tcp *tcp);
void slu_soft_tcp_watch(struct soft_tcp *tcp, uint32_t events);
/* Sends pieces, as sendmsg(2): returns how many bytes were sent, or a negative errno. */
ssize_t slu_soft_tcp_transmit(struct soft_tcp *tcp, struct iovec *iovecs, uint32_t count);
/* Ends the connection and hands its socket to the helper until the peer has the last bytes. */
void slu_soft_tcp_close(struct soft_tcp *tcp);
/*
 * Notes that a piece of a message was received or sent. more: others follow, so do not sleep before
 * PIECE_TIME has passed.
 */
void slu_soft_tcp_expect_piece(struct soft_tcp *tcp, bool more);

/* fault.c */
/* Fails the queue pair because its connection cannot be used any more. */
static inline void slu_soft_tcp_lose(struct soft_tcp *tcp, uint32_t status)
{
    slu_soft_qp_fail(tcp->qp, status, true);
}
/* Fails the queue pair because the peer has broken the protocol. Returns false. */
bool slu_soft_tcp_reject(struct soft_tcp *tcp, const char *what);
void slu_soft_tcp_refuse(struct soft_tcp *tcp, uint32_t seq, uint32_t status);
/* Handles the last frame of the peer, the reason for its end. Returns false. */
bool slu_soft_tcp_take_farewell(struct soft_tcp *tcp, const struct tcp_frame *frame);

/* ack.c */
/*
 * An answer within this time counts as immediate. It is long enough for a program that shares its
 * processor, or that first waits for answers of others.
 */
#define ANSWER_TIME SLUICE_US(200)
/* After this many immediate answers in a row, the next one is expected. */
#define EXPECTED 16
/*
 * Instead of a time, as reading the clock costs a good part of a message through shared memory. An
 * expected answer is in time if the acknowledgement is still pending and the CQ was not polled
 * meanwhile.
 */
#define UNTIMED INT64_MAX

void slu_soft_tcp_urgent(struct soft_tcp *tcp); /* an acknowledgement or credit is pending */
void slu_soft_tcp_hurry(struct soft_tcp *tcp);  /* the same, and the peer waits for it */
/* Notes that a request of the peer was executed, which the program may answer. */
void slu_soft_tcp_asked(struct soft_tcp *tcp, const struct tcp_frame *frame);
void slu_soft_tcp_answered(struct soft_tcp *tcp); /* a request of ours is about to be sent */
void slu_soft_tcp_settled(struct soft_tcp *tcp);  /* nothing is pending any more */
static inline void slu_soft_tcp_leave_owing(struct soft_tcp *tcp)
{
    if (tcp->owes.link == NULL)
        return;
    SOFT_REMOVE(tcp, owes);
    tcp->held = false;
}

/* Puts a shared connection in the list of slu_soft_shm_settle(). */
static inline void slu_soft_tcp_unsettled(struct soft_tcp *tcp)
{
    if (tcp->owes.link == NULL)
        SOFT_INSERT(&slu_soft_cq_of(tcp->qp)->unsettled, tcp, owes);
}

/*
 * Sends credit if the peer knows of at most half of the posted receives. Otherwise the next frame
 * carries it.
 */
static inline void slu_soft_tcp_announce(struct soft_tcp *tcp)
{
    const struct soft_ring *ring = &tcp->qp->receives;
    int32_t known = (int32_t)(tcp->credit_out - ring->done);
    if (known * 2 <= (int32_t)(ring->posted - ring->done))
        slu_soft_tcp_urgent(tcp);
}

/* early.c */
/*
 * Returns whether the message that comes now has a receive. A receive of the pool is for the oldest
 * message.
 */
static inline bool slu_soft_tcp_has_receive(const struct soft_tcp *tcp)
{
    return SLU_LIKELY(tcp->qp->pool == NULL)
               ? slu_soft_holds_receive(tcp->qp)
               : tcp->early_count == 0 && slu_soft_has_receive(tcp->qp);
}
/* Notes that requests from a position on wait for credit, and prepares to announce them. */
void slu_soft_tcp_announce_want(struct soft_tcp *tcp, uint32_t consumed, uint32_t position);
/* Gives the peer the receives of the pool that it has asked for, as far as there are any. */
void slu_soft_tcp_satisfy(struct soft_tcp *tcp);
/* Returns whether a request may be sent after consumed messages that take a receive. */
bool slu_soft_tcp_may_send(const struct soft_tcp *tcp, const struct soft_wqe *wqe,
                           uint32_t consumed);
/* Returns whether a request of the peer has the next number and may follow early messages. */
bool slu_soft_tcp_is_next(const struct soft_tcp *tcp, const struct tcp_frame *frame);
/*
 * Stores a send that has no receive and returns where its bytes go. NULL: the queue pair has
 * failed.
 */
uint8_t *slu_soft_tcp_set_aside(struct soft_tcp *tcp, const struct tcp_frame *frame);
/* Returns the bytes of an early message, by its place in the ring. */
uint8_t *slu_soft_tcp_early_bytes(const struct soft_tcp *tcp, uint32_t index);
/* Frees the early messages, when the connection is destroyed. */
void slu_soft_tcp_drop_early(struct soft_tcp *tcp);

/* fault.c */
/* Returns whether memory of a remote key is no longer mapped at an address of this process. */
bool slu_soft_tcp_is_gone(const struct soft_mr *pin, uint64_t addr, uint64_t length);
/*
 * Returns whether a reply reads memory that is no longer accessible. It is refused when it is built
 * again.
 */
bool slu_soft_tcp_blame_reply(struct soft_tcp *tcp, const struct tcp_out *out);
/* Returns whether a request does. If so, the request is done with an error. */
bool slu_soft_tcp_blame_request(struct soft_tcp *tcp, const struct tcp_out *out);

/* starved.c */
/* Has the owner of the CQ send again later. Until then the connection counts as blocked. */
void slu_soft_tcp_starve(struct soft_tcp *tcp);

/* transmit.c */
void slu_soft_tcp_push(struct soft_tcp *tcp);
/* Returns how many requests of the peer are complete, which includes having sent their replies. */
uint32_t slu_soft_tcp_complete(const struct soft_tcp *tcp);

/* receive.c */
/* Consumes whole frames, and parts of large ones. Returns how many bytes are left. */
uint32_t slu_soft_tcp_parse(struct soft_tcp *tcp, const uint8_t *bytes, uint32_t count);
void slu_soft_tcp_receive(struct soft_tcp *tcp);

/* execute.c: returns false if the queue pair has failed */
bool slu_soft_tcp_begin(struct soft_tcp *tcp, const struct tcp_frame *frame);
/*
 * Handle the peer's words in shared memory, which are read at any time. done: the peer has executed
 * our requests up to this one; those behind a read may still wait for its reply.
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
 * Checks a send of the peer against the oldest receive. False: it was refused, or it is dropped,
 * and tcp->in.dropped is set.
 */
bool slu_soft_tcp_match(struct soft_tcp *tcp, uint32_t seq, uint64_t length);
/*
 * Complete the oldest receive: with a message, or because its message was too long and is dropped.
 */
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
 * Matches early messages with receives, after receives were posted or the last early message was
 * completed. False: the queue pair has failed.
 */
bool slu_soft_tcp_take_early(struct soft_tcp *tcp);

/* place.c */
/* Copies bytes of a payload to their target. False: the queue pair has failed. */
bool slu_soft_tcp_place(struct soft_tcp *tcp, const uint8_t *bytes, uint64_t length);
/* Fails the request whose payload is being received: its memory is not accessible any more. */
void slu_soft_tcp_fault(struct soft_tcp *tcp);
/* Returns the target of the rest of a payload, unless that is memory of a key. */
struct soft_cursor slu_soft_tcp_target(const struct soft_tcp *tcp);
bool slu_soft_tcp_target_is_mapped(const struct soft_tcp *tcp, uint64_t length);
/* Pins the memory of a key that a write goes to. False: it was refused. */
bool slu_soft_tcp_pin_target(struct soft_tcp *tcp, struct soft_mr **pin);
/* Collects the guarded regions of that target. */
void slu_soft_tcp_touch_target(const struct soft_tcp *tcp, uint64_t length,
                               struct soft_touched *touched);

#endif
