/* SPDX-License-Identifier: MIT */
/*
 * The connector of a lazy node: a thread that connects ranks when one of them uses the other, at
 * either side. connector.c has the protocol.
 */
#ifndef SLU_NODE_CONNECTOR_H
#define SLU_NODE_CONNECTOR_H

#include <sys/queue.h>

#include "connect/negotiation.h"
#include "connect/target.h"
#include "engine/engine.h"
#include "node/card.h"

/*
 * The body of a hello: magic, ranks of dialer and listener, number of ranks, the id of the card of
 * the dialer, serial of its queue pair, and its endpoint. A hello that closes a connection has the
 * checksum of its endpoint, and zeros.
 */
#define SLU_KNOCK_MAGIC UINT32_C(0x736c756e)  /* "slun": connect */
#define SLU_RETIRE_MAGIC UINT32_C(0x736c7572) /* "slur": close a connection that is idle */
#define SLU_KNOCK_HEAD 24
#define SLU_KNOCK_BYTES (SLU_KNOCK_HEAD + SLUICE_ENDPOINT_BYTES)

/* The body of the answer: serial of the listener's queue pair, and its endpoint. */
#define SLU_ANSWER_BYTES (4 + SLUICE_ENDPOINT_BYTES)

/* How often a dial checks whether the connection is still wanted. */
#define SLU_LINK_CHECK_TIME SLUICE_S(1)
/* The longest wait for the byte of the other side, which may be gone without a sign. */
#define SLU_LINK_BYTE_TIME SLUICE_S(10)

/*
 * Dials at a time, those that wait for room included. Further ranks wait for their turn. As many
 * connections may be closed at a time.
 */
#define SLU_DIALS_MOST 32
/* Ranks that are let in at a time. Further ones are told to try again. */
#define SLU_KNOCKS_MOST 128

/* Steps that need the completion queue, and are done by the thread that has it. */
enum slu_link_job {
    SLU_JOB_NONE,
    SLU_JOB_MAKE,   /* dialer: make a queue pair, for the hello */
    SLU_JOB_CHECK,  /* dialer: is the connection still wanted? */
    SLU_JOB_FINISH, /* dialer: connect to the endpoint of the listener */
    SLU_JOB_FAIL,   /* dialer: fail the peer with the text */
    SLU_JOB_ACCEPT, /* listener: make a queue pair, and connect to the endpoint of the dialer */
    SLU_JOB_BEGIN,  /* either: both ends are connected */
    SLU_JOB_DROP,   /* either: give up */
    SLU_JOB_YIELD,  /* listener: close a connection that the other side has retired */
    SLU_JOB_CLOSE,  /* dialer: the other side has yielded */
    SLU_JOB_REVIVE, /* dialer: it has not */
    SLU_JOB_STALL,  /* dialer: it does not answer */
    SLU_JOB_DOUBT   /* listener: the other side did not confirm that it has closed it */
};

/* An idle connection that was retired, to be closed. */
struct slu_victim {
    bool there;
    uint32_t rank, serial;
    uint32_t endpoint; /* checksum */
    uint8_t card[SLU_CARD_BYTES];
};

/*
 * A connection that is being made, or closed. The connector's thread has it, except while a job is
 * queued.
 */
struct slu_link {
    TAILQ_ENTRY(slu_link) next; /* of all */
    TAILQ_ENTRY(slu_link) queued;
    TAILQ_ENTRY(slu_link) lined; /* while counted */
    uint32_t rank;
    uint32_t serial, remote_serial;
    bool dials;
    bool ends; /* the last job: the link is freed when it is done */
    int fd;    /* proven, or taken from the target; -1: none */
    int error; /* of the last job */
    uint32_t tries;
    int64_t began;    /* of the dial, or of the wait for room before it */
    int64_t check_at; /* of a dial: when it is checked; later: until when the byte must come */
    /* Read together by the thread, also while jobs write what follows. */
    bool retires;   /* it closes a connection, and makes none */
    bool waits;     /* for room under the limit of connections, until check_at */
    bool spent;     /* it waits only to have its victim closed */
    bool noted;     /* the other side was busy: slu_deferred_note_busy() */
    bool promised;  /* the other side was told that this one yields, and may have closed it */
    int64_t pause;  /* between two looks for room */
    uint64_t place; /* in the line for room */
    bool counted;   /* by slu_deferred_wait(), and in the line for room; for jobs */
    struct slu_victim victim;
    enum slu_link_job job;
    struct slu_session session;
    struct slu_target *target;    /* while it dials; else NULL */
    uint8_t card[SLU_CARD_BYTES]; /* of a rank that is dialed */
    uint32_t id;                  /* of the card of a rank that knocks */
    uint32_t endpoint;            /* checksum of that of a connection that is closed */
    struct sluice_endpoint own, remote;
    uint8_t knock[SLU_KNOCK_BYTES];
    char text[160]; /* of error, or of the failure to report */
};
TAILQ_HEAD(slu_links, slu_link);

/* The last process that left with a number: the id of its card, and the generation; 0: none. */
struct slu_gone {
    uint32_t id, generation;
};

struct slu_connector {
    struct slu_deferred_user user;
    struct slu_lazy lazy;
    struct slu_deferred *deferred;
    struct slu_engine *engine;
    uint32_t rank, ranks;
    uint32_t host; /* as in its card: all ranks make the same tree of it */
    uint8_t key[SLU_CARD_KEY_BYTES];
    struct slu_address addresses[SLU_CARD_ADDRESSES];
    uint32_t address_count;
    const uint8_t *cards;  /* of all ranks, for jobs; zeros: none */
    struct slu_gone *gone; /* by rank, for jobs; NULL: no rank leaves */
    bool open;             /* all cards that there are have come; for jobs */
    struct slu_links line; /* dials that wait for room, by their places; for jobs */
    int epoll, event;
    bool started;
    pthread_t thread;
    pthread_mutex_t lock; /* of the fields up to finished */
    bool stopping;
    uint32_t *wants; /* a ring of ranks */
    bool *listed;    /* by rank: it is in the ring */
    uint32_t want_first, want_count;
    struct slu_links jobs, finished;
    /* Used by the thread only. */
    struct slu_links links;
    uint32_t dials, closings, knocks;
    struct slu_negotiations negotiations;
};

/* Makes a connector that listens. Returns NULL with a text. */
struct slu_connector *slu_connector_create(uint32_t rank, uint32_t ranks, const uint8_t *cards);
/* Starts the thread, once the engine uses the connector. */
int slu_connector_start(struct slu_connector *connector, struct slu_engine *engine);
/* Fills in what a card says of the connector. */
void slu_connector_describe(const struct slu_connector *connector, struct slu_card *card);
/* Ends the thread, and all that is being connected. */
void slu_connector_stop(struct slu_connector *connector);
/* Frees a connector, once the engine is gone. NULL is allowed. */
void slu_connector_free(struct slu_connector *connector);

/* link.c. Makes a link, which dials or was dialed, to connect or to close. NULL without memory. */
struct slu_link *slu_link_create(struct slu_connector *connector, uint32_t rank, bool dials,
                                 bool retires);
/* Ends a link. It is freed once its victim is being closed, and waits for that until then. */
void slu_link_free(struct slu_connector *connector, struct slu_link *link);
/* Has the victim of a link closed by another link. Returns false if none can be made now. */
bool slu_link_hand_over(struct slu_connector *connector, struct slu_link *link);
/* Has a link wait for room. */
void slu_link_await(struct slu_link *link);
/* Ends the dial of a link. */
void slu_link_end_target(struct slu_link *link);
/* Take the first link of a list of jobs, or NULL if there is none; and append one. */
struct slu_link *slu_links_take(struct slu_connector *connector, struct slu_links *links);
void slu_links_add(struct slu_connector *connector, struct slu_links *links, struct slu_link *link);
/* Gives a job to the thread that has the completion queue. */
void slu_link_give(struct slu_connector *connector, struct slu_link *link, enum slu_link_job job);
/* Does the last job of a link. */
void slu_link_end(struct slu_connector *connector, struct slu_link *link, enum slu_link_job job);
/* Fails the rank of a link, which could not be reached. */
void slu_link_fail(struct slu_connector *connector, struct slu_link *link, const char *why);
/* Dials the rank of a link, whose card it has. Returns false, and does nothing, without memory. */
bool slu_link_call(struct slu_connector *connector, struct slu_link *link);
/* Sends the byte for which the other side waits. If it does not come, that side tries again. */
void slu_link_send_byte(struct slu_link *link);

/* steps.c: the steps of a connection. */
/* Does a job, with the completion queue entered. */
void slu_link_work(struct slu_connector *connector, struct slu_link *link);
/* Goes on with a link whose job is done. */
void slu_link_done(struct slu_connector *connector, struct slu_link *link);
/* Goes on with a link that dials. Lowers *next to when it is due again. */
void slu_link_dial(struct slu_connector *connector, struct slu_link *link, int64_t now,
                   int64_t *next);
/* Receives the last byte of the dialer. */
void slu_link_hear(struct slu_connector *connector, struct slu_link *link, int64_t now,
                   int64_t *next);

/* knock.c. Lets in a rank that has proven itself. Owns fd. */
void slu_link_knock(struct slu_connector *connector, const struct slu_negotiation *negotiation,
                    const struct slu_session *session, int fd);

/* room.c: the limit of connections. */
/*
 * In a job: returns 0 if there is room for the connection of a link, or -EAGAIN. Then an idle one
 * may have become the victim of the link.
 */
int slu_room_find(struct slu_connector *connector, struct slu_link *link);
/* In a job: retires the connection that a rank has retired, as slu_deferred_yield(). */
int slu_room_yield(struct slu_connector *connector, struct slu_link *link);
/* In a job: retires an idle connection if there are too many. */
void slu_room_trim(struct slu_connector *connector, struct slu_link *link);
/* In a job: the link does not wait for room any more. */
void slu_room_leave(struct slu_connector *connector, struct slu_link *link);
/* Tells whether a link waits for room. */
bool slu_room_is_awaited(const struct slu_connector *connector);
/* Tells, in a job, whether a link is the first of those that wait for room. */
bool slu_room_is_first(const struct slu_connector *connector, const struct slu_link *link);
/* Goes on with a link that waits. Lowers *next to when it is due again. */
void slu_room_tick(struct slu_connector *connector, struct slu_link *link, int64_t now,
                   int64_t *next);
/* Goes on with a link that closes a connection, whose dial has this state. */
void slu_room_dialed(struct slu_connector *connector, struct slu_link *link,
                     enum slu_target_state state, int64_t now, int64_t *next);
/* Answers a rank that asked this one to yield. */
void slu_room_answer(struct slu_connector *connector, struct slu_link *link);
/* The rank did not confirm that it has closed the connection: asks it. */
void slu_room_doubt(struct slu_connector *connector, struct slu_link *link);
void slu_room_ask(struct slu_connector *connector, struct slu_link *link);
/* Ends a link whose connection was closed. */
void slu_room_closed(struct slu_connector *connector, struct slu_link *link);
/* Lets all links that wait look for room. */
void slu_room_freed(struct slu_connector *connector);

#endif
