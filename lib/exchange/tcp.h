/* SPDX-License-Identifier: MIT */
/*
 * The exchange over TCP: each rank has one connection, to rank 0, which collects
 * what all give and sends it out.
 *
 * A connection begins at the door (connect/session.h): the rank says hello, with its job, its
 * number and how many ranks there are, each side proves that it knows the secret, if there
 * is one, and rank 0 lets the rank in or says why not. When all are there, it sends STARTED.
 *
 * Then there are frames. For a call each rank sends one with what it gives, and
 * gets one of the same kind with its result, or a VERDICT: the error, the text
 * and the ranks that were missing, after which nothing follows. GAVE_UP says that
 * a rank's deadline has passed, NO_MEMORY that it cannot take part in the call: rank 0
 * then fails the call for all.
 *
 * Nothing is allocated by a number that came over the wire, but the text and list
 * of a verdict, which cannot be longer than those of all ranks.
 */
#ifndef SLU_EXCHANGE_TCP_H
#define SLU_EXCHANGE_TCP_H

#include <sys/uio.h>

#include "connect/address.h"
#include "connect/secret.h"
#include "connect/session.h"
#include "exchange/exchange.h"

#define TCP_VERSION 2

/* For a rank that has given up, until rank 0 says who was missing. */
#define TCP_GRACE_TIME SLUICE_S(1)

#define TCP_CREDENTIAL_BYTES 1024
#define TCP_FRAME_BYTES 24
#define TCP_JOB_BYTES 64

/* Beside those of the door: of munge, whose credential is the body of the answer of rank 0. */
#define TCP_MEANS_MUNGE 2

/* The body of a hello. */
#define TCP_HELLO_BYTES (12 + TCP_JOB_BYTES)
struct tcp_hello {
    uint32_t version, ranks, rank;
    char job[TCP_JOB_BYTES];
};

/* The body of a refusal: the code of an error, and the text; of these the job or version. */
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
    TCP_NO_MEMORY = 7
};

struct tcp_frame {
    uint8_t type;
    uint64_t sequence; /* of the call */
    uint64_t bytes;    /* of the call, for each rank; of a verdict, its own */
};

/* A verdict: its head, the text, and the missing ranks, 4 bytes each. */
#define TCP_VERDICT_HEAD 12
#define TCP_TEXT_MAX 319

/* tcp_wire.c: 0 or -EPROTO. */
void slu_tcp_hello_encode(const struct tcp_hello *hello, uint8_t bytes[TCP_HELLO_BYTES]);
int slu_tcp_hello_decode(const uint8_t *bytes, size_t count, struct tcp_hello *hello);
void slu_tcp_frame_encode(const struct tcp_frame *frame, uint8_t bytes[TCP_FRAME_BYTES]);
int slu_tcp_frame_decode(const uint8_t bytes[TCP_FRAME_BYTES], struct tcp_frame *frame);
const char *slu_tcp_type_name(uint8_t type);
/* errno values are not the same everywhere: a negative one as a code, and a code as a positive. */
uint32_t slu_tcp_encode_error(int error);
int slu_tcp_decode_error(uint32_t code);
void slu_tcp_read_text(const uint8_t *bytes, size_t count, char text[TCP_TEXT_MAX + 1]);
/* A whole verdict with the thread's text, to be freed; NULL: no memory. */
uint8_t *slu_tcp_verdict_make(int error, uint64_t sequence, const bool *missing, uint32_t ranks,
                              size_t *bytes);
/* What follows the frame: the error, with its text; sets those that were missing. */
int slu_tcp_verdict_read(const uint8_t *bytes, size_t count, bool *missing, uint32_t ranks);
/* Whether a verdict of so many ranks can be so long. */
bool slu_tcp_verdict_possible(uint64_t bytes, uint32_t ranks);

/*
 * munge.c: a secret of rank 0, and the credential that has it: 1; 0: there is no munge, or
 * it is not to be used; or an error with a text, for one that the user names.
 */
int slu_munge_seal(uint8_t secret[SLU_SECRET_BYTES], char credential[TCP_CREDENTIAL_BYTES],
                   int64_t until);
/* What it has, if it is of this user: 0, -EACCES, -ETIMEDOUT, ... */
int slu_munge_unseal(const char credential[TCP_CREDENTIAL_BYTES], uint8_t secret[SLU_SECRET_BYTES],
                     int64_t until);

/*
 * tcp_link.c. A connection: bytes go out of a list, and come in at one place,
 * as the socket takes and gives them. It never blocks.
 */
struct tcp_link {
    int fd;          /* -1: there is none */
    uint32_t events; /* that epoll was asked for; 0: it does not know fd */
    struct slu_address peer;
    struct iovec out[3]; /* still to be sent */
    uint32_t out_count;
    uint8_t *in; /* where the next want bytes go */
    size_t want;
};
/* Nothing to send and to receive. */
void slu_tcp_link_open(struct tcp_link *link, int fd, const struct slu_address *peer);
void slu_tcp_link_close(struct tcp_link *link);
void slu_tcp_link_queue(struct tcp_link *link, const void *bytes, size_t count);
/* 0, whether or not all went; -ECONNRESET or another error: there is no more to hope for. */
int slu_tcp_link_send(struct tcp_link *link);
int slu_tcp_link_receive(struct tcp_link *link);
/* Once around: sends and receives what it can, or waits until it could. -ETIMEDOUT: too late. */
int slu_tcp_link_step(struct tcp_link *link, int64_t until);
/* All that is queued goes out, and all that is wanted comes in. */
int slu_tcp_transfer(struct tcp_link *link, int64_t until);
/* Tells epoll what it waits for now. */
int slu_tcp_link_watch(struct tcp_link *link, int epoll, uint64_t data);

/* What comes next of another rank, as rank 0 sees it. */
enum tcp_stage {
    TCP_BETWEEN = 0, /* a header: of this call, if it has not called, or of the next one */
    TCP_HEADED = 1,  /* nothing: that header is whole, and waits for the call */
    TCP_GIVING = 2,  /* bytes of this call */
    TCP_WAITING = 3  /* nothing: there is no room yet for the rest of its bytes */
};

struct tcp_peer {
    struct tcp_link link;
    uint8_t header[TCP_FRAME_BYTES];
    enum tcp_stage stage;
    bool refused;   /* one that said to be it did not have our secret */
    uint32_t means; /* what it had instead */
    bool left;      /* it was let in, and hung up before all were there */
    bool called;    /* it has made this call */
    bool done;      /* and given all bytes of it; while all come: it is there */
    bool answered;  /* its result is on its way, or there */
    size_t later;   /* bytes of it behind those that are waited for */
};

/* Makes the link of a rank read a header next. */
void slu_tcp_peer_between(struct tcp_peer *peer);

struct tcp {
    struct sluice_exchange *exchange;
    uint32_t rank, ranks;
    uint8_t type;      /* enum tcp_type of the call; TCP_STARTED while all come */
    uint64_t sequence; /* of the last call */
    char job[TCP_JOB_BYTES];
    char root[256]; /* as given, or the first one, for texts */
    const char *root_source;
    struct slu_host_port places[SLU_ROOTS];
    uint32_t place_count;
    uint32_t means;
    struct slu_secret secret; /* of a rank with munge: what rank 0 sealed, once it has said it */
    char credential[TCP_CREDENTIAL_BYTES]; /* of rank 0, or what it said */
    bool *missing; /* of each rank: whether it was not there when a call failed */

    /* Of rank 0. */
    struct tcp_peer *peers;
    int epoll;
    int listener;         /* -1: none yet, or it is at the door */
    int refusal_error;    /* of the last rank that could not be let in, as it cannot be one; 0 */
    char refusal[200];    /* why */
    int accept_error;     /* why the last rank could not be let in; 0: it could */
    uint32_t given;       /* ranks that have given all that is waited for */
    uint32_t unsent;      /* ranks whose result is on its way */
    uint32_t interrupted; /* a rank that did not wait for its result; 0: none */
    uint8_t reply[TCP_FRAME_BYTES];

    /* Of the others. */
    struct tcp_link link;
};

struct tcp_call {
    uint8_t type;
    size_t bytes;
    const uint8_t *to;
    uint8_t *from;
    int64_t until;
};

/* tcp_text.c: means in words: "a secret", munge, or "none". */
const char *slu_tcp_means(uint32_t means);
/* The root with who named it, such as "node7:7471, of SLUICE_ROOT". */
#define TCP_ROOT_TEXT 160
const char *slu_tcp_root_text(const struct tcp *tcp, char text[TCP_ROOT_TEXT]);

/*
 * tcp_listen.c: a listening socket, or a negative errno with a text that has the source, which
 * said that it is to be this place; NULL: nobody did.
 */
int slu_tcp_listen(const struct slu_host_port *place, const char *source);
/* Rank 0 listens then; 0, or an error with a text. */
int slu_tcp_listen_root(struct tcp *tcp);
/*
 * Why its host, if it is a name, has no address: in words, which are static; NULL: it has, or
 * that is not known within a second. The text of this thread is lost.
 */
const char *slu_tcp_name_error(const struct slu_host_port *place);
/* Of a socket to a rank; those that a listening one accepts have them, too. */
void slu_tcp_set_options(int fd);

/* tcp_root.c: rank 0 */
int slu_tcp_root_open(struct tcp *tcp, int64_t until);
int slu_tcp_root_call(struct tcp *tcp, const struct tcp_call *call);

/*
 * tcp_fail.c: rank 0 fails, and tells all ranks of it. Each returns the error;
 * the first one takes it and the thread's text, and nobody was missing.
 */
int slu_tcp_fail(struct tcp *tcp, int error);
/* Because of this rank, which is named with the words; but for EPROTO it was missing. */
int slu_tcp_fail_rank(struct tcp *tcp, uint32_t rank, int error, const char *words);
int slu_tcp_fail_lost(struct tcp *tcp, uint32_t rank);
/* The deadline of a rank has passed: those that are not done were missing. */
int slu_tcp_fail_deadline(struct tcp *tcp, uint32_t whose);
/*
 * The rank that is noted did not wait for its result: it gave up, or is wrong. late: it had
 * when rank 0 came to the call.
 */
int slu_tcp_fail_interrupted(struct tcp *tcp, bool late);

/* Of another rank, for which rank 0 alone can be missing. */
int slu_tcp_fail_without_root(struct tcp *tcp, int error);

/* tcp_greet.c: lets all ranks in, which are then done. */
int slu_tcp_greet_all(struct tcp *tcp, int64_t until);

/* tcp_dial.c: the link to rank 0, which has let this rank in. */
int slu_tcp_find_root(struct tcp *tcp, int64_t until);

/* tcp_leaf.c */
int slu_tcp_leaf_open(struct tcp *tcp, int64_t until);
int slu_tcp_leaf_call(struct tcp *tcp, const struct tcp_call *call);
void slu_tcp_leaf_abandon(struct tcp *tcp);

#endif
