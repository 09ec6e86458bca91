/* SPDX-License-Identifier: MIT */
/*
 * The exchange over TCP. Each rank has one connection, to rank 0, which collects what all ranks
 * give and sends the result to all.
 *
 * A connection begins with the handshake of connect/session.h: the rank sends a hello with its job,
 * its number and the number of ranks; each side proves that it knows the secret, if there is one;
 * and rank 0 admits the rank, or refuses it with a reason. When all ranks are there, rank 0 sends
 * STARTED.
 *
 * Then frames follow. In each call a rank sends one frame with what it gives, and receives a frame
 * of the same kind with the result; or a VERDICT with an error, a text and the missing ranks, after
 * which nothing follows. A rank sends GAVE_UP if its deadline has passed, and NO_MEMORY if it
 * cannot take part; rank 0 then fails the call for all.
 *
 * The result of a large allgather of many ranks is passed on along a tree (tcp_relay.c). Instead of
 * the result a rank receives RELAY, which names where it comes from. The rank sends TAKEN when it
 * has the result, or ASK if it cannot get it there. DONE ends the call when all have it.
 *
 * No allocation depends on a number that came over the wire, except for the text and the list of a
 * verdict, which are bounded by the number of ranks.
 */
#ifndef SLU_EXCHANGE_TCP_H
#define SLU_EXCHANGE_TCP_H

#include <stdio.h>
#include <sys/uio.h>

#include "connect/address.h"
#include "connect/secret.h"
#include "connect/session.h"
#include "endpoint/versions.h"
#include "exchange/exchange.h"

/* These versions cover all messages of an exchange behind the greeting of the session. */
#define TCP_VERSION (3 + SLU_VERSIONS_NEXT)
#define TCP_READABLE 3
#define TCP_OLDEST 3

/* How long a rank whose deadline has passed waits for rank 0 to say who was missing. */
#define TCP_GRACE_TIME SLUICE_S(1)

#define TCP_CREDENTIAL_BYTES 1024
#define TCP_FRAME_BYTES 24
#define TCP_JOB_BYTES 64

/* Beside those of connect/session.h. The body of rank 0's answer is then a munge credential. */
#define TCP_MEANS_MUNGE 2

/*
 * The body of a hello. A later version may append to it. Both versions are in the first number:
 * see slu_versions_join().
 */
#define TCP_HELLO_BYTES (12 + TCP_JOB_BYTES)
struct tcp_hello {
    uint32_t written, readable, ranks, rank;
    char job[TCP_JOB_BYTES];
};

/*
 * The body of a refusal: an error code, and a text. For these codes that is the job, or the version
 * of rank 0, and behind a blank what explains it.
 */
#define TCP_REFUSAL_HEAD 4
#define TCP_REFUSED_JOB 100U
#define TCP_REFUSED_VERSION 101U

enum tcp_type {
    TCP_STARTED = 1,
    TCP_ALLGATHER = 2,
    TCP_ALLTOALL = 3,
    TCP_BARRIER = 4,
    TCP_GAVE_UP = 5,
    TCP_VERDICT = 6,
    TCP_NO_MEMORY = 7,
    TCP_RELAY = 8, /* a result: where it comes from; see tcp_relay.c */
    TCP_TAKEN = 9, /* the rank has the result */
    TCP_ASK = 10,  /* the rank asks rank 0 for the result */
    TCP_DONE = 11  /* all ranks have the result */
};

/*
 * The result of an allgather of at least so many ranks, and bytes in all, is passed on along a
 * tree, in which a rank passes it to TCP_RELAY_WIDTH others.
 */
#define TCP_RELAY_RANKS 32
#define TCP_RELAY_LEAST 4096
#define TCP_RELAY_WIDTH 8
/*
 * The body of a RELAY: family (2), port (2) and IP (16) of the rank that passes the result on, or
 * zeros if it follows here; zeros (4); and two tokens, of the rank that connects and of the other.
 */
#define TCP_TOKEN_BYTES 16
#define TCP_RELAY_BYTES (24 + 2 * TCP_TOKEN_BYTES)

struct tcp_frame {
    uint8_t type;
    uint16_t port;     /* of an allgather: where this rank passes results on; 0: it does not */
    uint64_t sequence; /* of the call */
    uint64_t bytes;    /* of the call, for each rank; of a verdict, its own length */
};

/* The body of a verdict: its head, the text, and the missing ranks, 4 bytes each. */
#define TCP_VERDICT_HEAD 12
#define TCP_TEXT_MAX 319

/*
 * tcp_wire.c. Decoding returns 0 or -EPROTO; or, of a hello whose versions do not fit and are all
 * that was read, -EPROTONOSUPPORT.
 */
void slu_tcp_hello_encode(const struct tcp_hello *hello, uint8_t bytes[TCP_HELLO_BYTES]);
int slu_tcp_hello_decode(const uint8_t *bytes, size_t count, struct tcp_hello *hello);
void slu_tcp_frame_encode(const struct tcp_frame *frame, uint8_t bytes[TCP_FRAME_BYTES]);
int slu_tcp_frame_decode(const uint8_t bytes[TCP_FRAME_BYTES], struct tcp_frame *frame);
const char *slu_tcp_type_name(uint8_t type);
/*
 * errno values differ between systems. Encodes a negative errno value; decodes to a positive one.
 */
uint32_t slu_tcp_encode_error(int error);
int slu_tcp_decode_error(uint32_t code);
void slu_tcp_read_text(const uint8_t *bytes, size_t count, char text[TCP_TEXT_MAX + 1]);
/* Makes a whole verdict with the thread's text, for free(); NULL without memory. */
uint8_t *slu_tcp_verdict_make(int error, uint64_t sequence, const bool *missing, uint32_t ranks,
                              size_t *bytes);
/* Reads what follows the frame: returns the error, with its text, and sets the missing ranks. */
int slu_tcp_verdict_read(const uint8_t *bytes, size_t count, bool *missing, uint32_t ranks);
/* Tells whether a verdict of this many ranks can have this length. */
bool slu_tcp_verdict_possible(uint64_t bytes, uint32_t ranks);

/*
 * munge.c. Makes a secret for rank 0, and the credential that carries it. Returns 1; 0 if munge is
 * not available or not to be used; or an error with a text, if the user asked for munge.
 */
int slu_munge_seal(uint8_t secret[SLU_SECRET_BYTES], char credential[TCP_CREDENTIAL_BYTES],
                   int64_t until);
/* Opens a credential of this user. Returns 0, -EACCES, -ETIMEDOUT or another error. */
int slu_munge_unseal(const char credential[TCP_CREDENTIAL_BYTES], uint8_t secret[SLU_SECRET_BYTES],
                     int64_t until);

/*
 * tcp_link.c. A connection, which never blocks: bytes are sent from a list and received to one
 * place, as far as the socket allows.
 */
struct tcp_link {
    int fd;          /* -1: there is none */
    uint32_t events; /* registered with epoll; 0: fd is not registered */
    struct slu_address peer;
    struct iovec out[3]; /* still to be sent */
    uint32_t out_count;
    uint8_t *in; /* destination of the next want bytes */
    size_t want;
};
/* Begins with nothing to send and to receive. */
void slu_tcp_link_open(struct tcp_link *link, int fd, const struct slu_address *peer);
void slu_tcp_link_close(struct tcp_link *link);
void slu_tcp_link_queue(struct tcp_link *link, const void *bytes, size_t count);
/*
 * Send or receive what the socket allows. Return 0 even if some is left; an error if the connection
 * is lost.
 */
int slu_tcp_link_send(struct tcp_link *link);
int slu_tcp_link_receive(struct tcp_link *link);
/*
 * Waits until the socket is ready, and sends and receives what it can. -ETIMEDOUT after the
 * deadline.
 */
int slu_tcp_link_step(struct tcp_link *link, int64_t until);
/* Sends all that is queued, and receives all that is wanted. */
int slu_tcp_transfer(struct tcp_link *link, int64_t until);
/* Registers with epoll for what the link waits for now. */
int slu_tcp_link_watch(struct tcp_link *link, int epoll, uint64_t data);

/* The next part that rank 0 reads from another rank. */
enum tcp_stage {
    TCP_BETWEEN = 0, /* a header: of this call, if none has come, or of the next */
    TCP_HEADED = 1,  /* nothing: a header is complete, and waits for its call */
    TCP_GIVING = 2,  /* bytes of this call */
    TCP_WAITING = 3  /* nothing: there is no room yet for the rest of its bytes */
};

struct tcp_peer {
    struct tcp_link link;
    uint8_t header[TCP_FRAME_BYTES];
    enum tcp_stage stage;
    bool refused;   /* a process that claimed this rank did not have the secret */
    uint32_t means; /* what it had instead */
    bool left;      /* it was admitted, and hung up before all were there */
    bool called;    /* its header of this call has come */
    bool done;      /* all its bytes of this call have come; at the start: it is there */
    bool answered;  /* its result is queued or sent */
    bool taken;     /* it has the result of a relay */
    uint16_t port;  /* where it passes results on; 0: it does not */
    size_t later;   /* bytes of it behind those that are read now */
    uint8_t relay[TCP_RELAY_BYTES]; /* body of its RELAY */
};

/* Makes the link of a rank read a header next. */
void slu_tcp_peer_between(struct tcp_peer *peer);

struct tcp {
    struct sluice_exchange *exchange;
    uint32_t rank, ranks;
    uint8_t type;      /* enum tcp_type of the call; TCP_STARTED at the start */
    uint64_t sequence; /* of the last call */
    char job[TCP_JOB_BYTES];
    char root[256]; /* as given, or the first one, for texts */
    const char *root_source;
    struct slu_host_port places[SLU_ROOTS];
    uint32_t place_count;
    uint32_t means;
    struct slu_secret secret;              /* with munge: of rank 0, once it was opened */
    char credential[TCP_CREDENTIAL_BYTES]; /* of rank 0; elsewhere, as received */
    bool *missing; /* of each rank: whether it was missing when a call failed */

    /* Used by rank 0. */
    struct tcp_peer *peers;
    int epoll;
    int listener;         /* -1: none yet, or owned by the acceptor */
    int refusal_error;    /* of the last process refused because of its rank; 0: none */
    char refusal[200];    /* the reason */
    int accept_error;     /* why the last connection was not accepted; 0: it was */
    uint32_t given;       /* ranks that have given all that is waited for */
    uint32_t unsent;      /* ranks whose result is not sent yet */
    uint32_t interrupted; /* a rank that did not wait for its result; 0: none */
    bool relaying;        /* a result is on its way along the tree */
    uint32_t taken;       /* ranks that have it */
    uint8_t reply[TCP_FRAME_BYTES];
    uint8_t relay_head[TCP_FRAME_BYTES];

    /* Used by the other ranks. */
    struct tcp_link link;
    int door; /* where this rank passes results on; -1: nowhere */
    uint16_t port;
};

struct tcp_call {
    uint8_t type;
    size_t bytes;
    const uint8_t *to;
    uint8_t *from;
    int64_t until;
};

/* Names means for texts. */
static inline const char *slu_tcp_means(uint32_t means)
{
    return means == TCP_MEANS_MUNGE    ? "munge (see SLUICE_MUNGE)"
           : means == SLU_MEANS_SECRET ? "a secret"
                                       : "none";
}
/* Writes the root and what named it, such as "node7:7471, of SLUICE_ROOT"; returns text. */
#define TCP_ROOT_TEXT 160
static inline const char *slu_tcp_root_text(const struct tcp *tcp, char text[TCP_ROOT_TEXT])
{
    snprintf(text, TCP_ROOT_TEXT, "%.100s%s%s", tcp->root, tcp->root_source != NULL ? ", of " : "",
             tcp->root_source != NULL ? tcp->root_source : "");
    return text;
}

/*
 * tcp_listen.c. Returns a listening socket, or a negative errno value. Its text has the source that
 * named this place, unless that is NULL.
 */
int slu_tcp_listen(const struct slu_host_port *place, const char *source);
/* Makes rank 0 listen. Returns 0, or an error with a text. */
int slu_tcp_listen_root(struct tcp *tcp);
/*
 * Returns why the host of a place, if it is a name, has no address; static. NULL: it has one, or
 * that is not known within a second. The text of this thread is lost.
 */
const char *slu_tcp_name_error(const struct slu_host_port *place);
/*
 * Sets the options of a connection, or of a listening socket, from which connections inherit them.
 */
void slu_tcp_set_options(int fd);

/* tcp_root.c, for rank 0. */
int slu_tcp_root_open(struct tcp *tcp, int64_t until);
int slu_tcp_root_call(struct tcp *tcp, const struct tcp_call *call);

/*
 * tcp_fail.c. These fail a call of rank 0, tell all ranks, and return the error. slu_tcp_fail()
 * uses the error and text of the caller, and no rank is missing.
 */
int slu_tcp_fail(struct tcp *tcp, int error);
/* Fails because epoll_wait(2) did, by errno. */
int slu_tcp_fail_wait(struct tcp *tcp);
/*
 * Fails because of a rank, which words describe. It counts as missing, unless the error is EPROTO.
 */
int slu_tcp_fail_rank(struct tcp *tcp, uint32_t rank, int error, const char *words);
int slu_tcp_fail_lost(struct tcp *tcp, uint32_t rank);
/* Fails because the deadline of a rank has passed: ranks that are not done were missing. */
int slu_tcp_fail_deadline(struct tcp *tcp, uint32_t whose);
/*
 * Fails because tcp->interrupted did not wait for its result: it gave up, or sent something
 * invalid. late: this had happened before rank 0 came to the call.
 */
int slu_tcp_fail_interrupted(struct tcp *tcp, bool late);

/* Fails a call of another rank, which knows of no missing rank but rank 0. */
int slu_tcp_fail_without_root(struct tcp *tcp, int error);

/* tcp_greet.c. Admits all ranks, which are then done. */
int slu_tcp_greet_all(struct tcp *tcp, int64_t until);

/* tcp_dial.c. Connects the link to rank 0, until that has admitted this rank. */
int slu_tcp_find_root(struct tcp *tcp, int64_t until);

/*
 * tcp_relay.c, for the other ranks. Receives the result of an allgather that is passed on along a
 * tree, and passes it on. Returns 0; TCP_OTHER if rank 0 has sent another frame, whose head is in
 * head; TCP_CUT if the deadline passed in the middle of a frame; or a negative errno value without
 * a text.
 */
#define TCP_OTHER INT32_MIN
#define TCP_CUT (INT32_MIN + 1)
int slu_tcp_relay(struct tcp *tcp, const struct tcp_call *call, uint8_t head[TCP_FRAME_BYTES]);
/* Listens for ranks that are passed results, if it may. Else this rank passes nothing on. */
void slu_tcp_relay_listen(struct tcp *tcp);

/* tcp_leaf.c, for the other ranks. */
int slu_tcp_leaf_open(struct tcp *tcp, int64_t until);
int slu_tcp_leaf_call(struct tcp *tcp, const struct tcp_call *call);
void slu_tcp_leaf_abandon(struct tcp *tcp);

#endif
