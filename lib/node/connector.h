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
 * The body of a hello: magic, ranks of dialer and listener, number of ranks, the id of the dialer's
 * card, and the endpoint.
 */
#define SLU_KNOCK_HEAD 20
#define SLU_KNOCK_BYTES (SLU_KNOCK_HEAD + SLUICE_ENDPOINT_BYTES)

/* Dials at a time. Further ranks wait for their turn. */
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
    SLU_JOB_DROP    /* either: give up */
};

/* A connection that is being made. The connector's thread has it, except while a job is queued. */
struct slu_link {
    TAILQ_ENTRY(slu_link) next; /* of all */
    TAILQ_ENTRY(slu_link) queued;
    uint32_t rank;
    uint32_t serial;
    bool dials;
    bool ends; /* the last job: the link is freed when it is done */
    int fd;    /* proven, or taken from the target; -1: none */
    int error; /* of the last job */
    uint32_t tries;
    int64_t began;    /* of the dial */
    int64_t check_at; /* of a dial: when it is checked; later: until when the byte must come */
    enum slu_link_job job;
    struct slu_session session;
    struct slu_target *target;    /* while it dials; else NULL */
    uint8_t card[SLU_CARD_BYTES]; /* of a rank that is dialed */
    uint32_t id;                  /* of the card of a rank that knocks */
    struct sluice_endpoint own, remote;
    uint8_t knock[SLU_KNOCK_BYTES];
    char text[160]; /* of error, or of the failure to report */
};
TAILQ_HEAD(slu_links, slu_link);

struct slu_connector {
    struct slu_deferred_user user;
    struct slu_lazy lazy;
    struct slu_deferred *deferred;
    uint32_t rank, ranks;
    uint8_t key[SLU_CARD_KEY_BYTES];
    struct slu_address addresses[SLU_CARD_ADDRESSES];
    uint32_t address_count;
    const uint8_t *cards; /* of all ranks, for jobs; zeros: none */
    bool open;            /* all cards that there are have come; for jobs */
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
    uint32_t dials, knocks;
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

/* link.c: the steps of a connection. */
/* Does a job, with the completion queue entered. */
void slu_link_work(struct slu_connector *connector, struct slu_link *link);
/* Makes a link. NULL without memory. */
struct slu_link *slu_link_create(struct slu_connector *connector, uint32_t rank, bool dials);
void slu_link_free(struct slu_connector *connector, struct slu_link *link);
/* Take the first link of a list of jobs, or NULL if there is none; and append one. */
struct slu_link *slu_links_take(struct slu_connector *connector, struct slu_links *links);
void slu_links_add(struct slu_connector *connector, struct slu_links *links, struct slu_link *link);
/* Gives a job to the thread that has the completion queue. */
void slu_link_give(struct slu_connector *connector, struct slu_link *link, enum slu_link_job job);
/* Goes on with a link whose job is done. */
void slu_link_done(struct slu_connector *connector, struct slu_link *link);
/* Goes on with a link that dials. Lowers *next to when it is due again. */
void slu_link_dial(struct slu_connector *connector, struct slu_link *link, int64_t now,
                   int64_t *next);
/* Receives the last byte of the dialer. */
void slu_link_hear(struct slu_connector *connector, struct slu_link *link, int64_t now,
                   int64_t *next);
/* Lets in a rank that has proven itself. Owns fd. */
void slu_link_knock(struct slu_connector *connector, const struct slu_negotiation *negotiation,
                    const struct slu_session *session, int fd);

#endif
