/* SPDX-License-Identifier: MIT */
/* The structures of an agent and its peers. */
#ifndef SLU_AGENT_STATE_H
#define SLU_AGENT_STATE_H

#include <sys/queue.h>

#include <sluice/agent.h>
#include <sluice/log.h>

#include "agent/message.h"
#include "base/base.h"
#include "listener/door.h"

struct slu_engine;

/* Requests that a side may have unanswered; the other side has room for as many answers. */
#define SLU_AGENT_WAITS 32
/* Receives for messages outside the window: credit, resets, the greeting, the goodbye. */
#define SLU_AGENT_SPARE 24
/* Send slots that are reserved for answers. */
#define SLU_AGENT_RESERVE 8
/* Requests in flight of one list of reads and writes, and of all lists on a data queue pair. */
#define SLU_AGENT_BATCH 16
#define SLU_AGENT_TRANSFERS 64
/* Pieces of a long message in flight. */
#define SLU_AGENT_PIECES 4
/* The memory of freed long messages, and of the control queue pairs of lost peers, is kept for
   reuse: up to this many regions, each of up to this many bytes. No peer has a key to it. */
#define SLU_AGENT_SPARES 4
#define SLU_AGENT_SPARE_BYTES (UINT64_C(4) << 20)
/* The owner revokes a region this long after its lease ended. */
#define SLU_AGENT_GRACE SLUICE_S(1)
/* Ended regions that are remembered, so that the log can report late use. */
#define SLU_AGENT_PAST 32
/* How long a goodbye may take. */
#define SLU_AGENT_FAREWELL_TIME SLUICE_S(1)
/*
 * Messages longer than this, in bytes, are registered and read in place instead of copied. The
 * limit is higher for a peer in another process of this host, where a copy saves the most.
 */
#define SLU_AGENT_STAGED_BYTES (UINT64_C(64) << 10)
#define SLU_AGENT_STAGED_NEAR_BYTES (UINT64_C(256) << 10)
/* A peer that has sent this many wrong messages is dropped. */
#define SLU_AGENT_PATIENCE 64

/* The fewest receives that all peers may share, and the most. */
#define SLU_AGENT_POOL_LEAST 16
#define SLU_AGENT_POOL_MOST 65536
/* Messages that are kept of a connection that is no peer yet: a peer sends one, its greeting. */
#define SLU_AGENT_EARLY 4

/* A request of ours. The entry is in use until the answer comes, even if the caller has left. */
struct slu_agent_wait {
    uint64_t id; /* 0: free */
    uint32_t type;
    bool done;
    bool abandoned;           /* the caller has left */
    bool withdraw;            /* the peer must still be sent WITHDRAW for this message */
    uint64_t give_back;       /* id of a region that came too late and must be released; or 0 */
    struct sluice_mr *source; /* of an announced message */
    int64_t asked;            /* taken just before the request was sent */
    int error;                /* negative, with words; the fields below hold if it is 0 */
    char words[SLU_AGENT_WORDS + 1];
    struct sluice_remote_mr remote;
    uint64_t region;
    int64_t lease;
    uint32_t access;
};

/* Memory of ours that a peer may use. */
struct slu_agent_region {
    LIST_ENTRY(slu_agent_region) links;
    uint64_t id;
    struct sluice_mr *mr; /* registered for this peer alone */
    bool allocated;       /* for the peer; otherwise it is memory of the program */
    uint64_t pages;       /* bytes that count against the quota; 0 for memory of the program */
    struct sluice_remote_mr remote;
    uint32_t access;
    int64_t expires; /* on our clock; SLUICE_FOREVER: never */
};

/* A region that has ended. */
struct slu_agent_past {
    uint64_t id;
    struct sluice_remote_mr remote;
    int64_t expired;
    bool by_lease;
};

/* Work that is done without the lock: allocating memory for a peer, or copying a region. */
struct slu_agent_job {
    TAILQ_ENTRY(slu_agent_job) links;
    uint64_t id; /* of the request */
    uint64_t bytes, pages;
    uint32_t access;
    int64_t lease;
    struct slu_agent_region *from; /* to be copied; NULL: allocate */
    bool begun, done;
    int error;
    struct sluice_mr *mr; /* the result */
};

/* A region that was sent back and waits for the program. */
struct slu_agent_returned {
    STAILQ_ENTRY(slu_agent_returned) links;
    struct sluice_agent_local local;
    uint64_t pages; /* count against the peer's quota until received; 0: memory of the program */
};

struct sluice_agent_mr {
    uint32_t magic;
    struct sluice_agent_peer *peer;
    TAILQ_ENTRY(sluice_agent_mr) links; /* in the list of its peer, held or offered */
    uint64_t id;
    struct sluice_remote_mr remote;
    uint32_t access;
    int64_t expires;
    bool over; /* the owner has revoked it, or is lost */
};

/* A request on a data queue pair; the user data of its completion is this address. */
struct slu_agent_posted {
    void (*ended)(struct sluice_agent_peer *peer, struct slu_agent_posted *posted,
                  const struct sluice_completion *completion);
    struct sluice_agent_peer *peer;
    struct sluice_remote_mr remote;
};

/* A piece of a long message in flight. */
struct slu_agent_piece {
    struct slu_agent_posted posted;
    struct sluice_agent_message *message; /* NULL: free */
    uint64_t length;
};

/* A long message that is being read, in the order of its bytes. */
struct slu_agent_long_receive {
    struct sluice_mr *mr;
    uint64_t posted, done; /* bytes */
    uint32_t in_flight;    /* pieces */
    bool making;           /* its memory is being allocated without the lock */
    bool broken;           /* a piece has failed: reading resumes at done */
    bool late;             /* its turn ended before it was read */
    bool gone;             /* the sender no longer has that memory */
    int64_t until;         /* when its turn ends */
    int64_t bound;         /* deadline of the pieces of a withdrawn or dropped message; or 0 */
    int failure;           /* any other error: negative, with text */
    int error;             /* failure, for the next call that asks; nothing is in flight */
    char text[SLU_TEXT_BYTES];
    struct slu_agent_piece pieces[SLU_AGENT_PIECES];
};

struct sluice_agent_message {
    uint32_t magic;
    struct sluice_agent_peer *peer;
    TAILQ_ENTRY(sluice_agent_message) links;
    uint64_t length;
    uint8_t *bytes;
    struct sluice_mr *mr; /* of a long message; otherwise the bytes follow this struct */
    uint64_t announced;   /* id of the request, until all bytes have arrived; then 0 */
    struct sluice_remote_mr remote;
    struct slu_agent_long_receive *reading;
    int64_t earliest;  /* when reading for receives from any peer may be retried; 0: now */
    uint64_t reserved; /* bytes of reading_bytes that its memory accounts for */
    bool complained;   /* a receive from any peer has returned why there is no memory for it */
    bool withdrawn;
    bool dropped; /* freed once nothing of it is in flight */
};

TAILQ_HEAD(slu_agent_mrs, sluice_agent_mr);
TAILQ_HEAD(slu_agent_messages, sluice_agent_message);

enum slu_agent_data_state {
    SLU_AGENT_DATA_NONE,
    SLU_AGENT_DATA_MADE,      /* our end exists; the peer's endpoint is still to come */
    SLU_AGENT_DATA_CONNECTED, /* our end is connected; the peer has not confirmed its own yet */
    SLU_AGENT_DATA_READY
};

/* The data queue pair of a peer. */
struct slu_agent_data {
    struct sluice_multichannel *wire; /* with one peer; or the agent's, with all of them */
    uint32_t index;                   /* of the peer in it */
    bool shares;                      /* it is the agent's */
    enum slu_agent_data_state state;
    uint32_t generation;
    struct sluice_endpoint own;
    struct sluice_endpoint remote;
    uint32_t remote_generation; /* of that endpoint; 0: none is waiting */
    bool must_send_reset, must_send_ready;
    bool ignored;     /* the agent's epoll set does not report it */
    bool armed;       /* nothing was done with it since it was armed */
    bool completed;   /* requests of ours, since the peer was served */
    bool lost_peer;   /* it failed because the peer did not answer */
    int64_t since;    /* when this generation was made */
    int64_t earliest; /* when the next generation may be made */
    int64_t patience; /* until when to wait for the cause of a failure; 0: not waiting */
    bool ours;        /* a request of ours has failed on it */
    struct sluice_remote_mr failed_remote; /* target of the request that failed it */
    uint32_t transfers;                    /* in flight */
};

enum slu_agent_peer_state {
    SLU_AGENT_GREETING, /* its HELLO has not arrived */
    SLU_AGENT_OPEN,
    SLU_AGENT_OVER
};

struct sluice_agent_peer {
    uint32_t magic;
    uint32_t references; /* of the agent, the program, messages and regions */
    struct sluice_agent *agent;
    TAILQ_ENTRY(sluice_agent_peer) links;     /* in the list of the agent */
    TAILQ_ENTRY(sluice_agent_peer) fresh;     /* the program has not taken it yet */
    TAILQ_ENTRY(sluice_agent_peer) readable;  /* it has messages for the program */
    TAILQ_ENTRY(sluice_agent_peer) offering;  /* it has handed over regions */
    TAILQ_ENTRY(sluice_agent_peer) returning; /* it has sent back regions of ours */
    LIST_ENTRY(sluice_agent_peer) unarmed;
    bool is_fresh, is_readable, is_offering, is_returning, is_unarmed, is_held, is_kept;
    bool needs_service; /* serve it even if it has no completions */
    bool came;          /* to our listener */
    uint32_t place, serial;
    enum slu_agent_peer_state state;
    uint64_t kept_bytes; /* its part of left_bytes while it is kept */
    int64_t since;
    int64_t due; /* of its channels, as armed */
    int error;
    int failed; /* first error of its control queue pair that is not handled yet; or 0 */
    char why[256];
    char address[64];
    uint64_t refused, reconnects;
    uint32_t level;
    struct slu_agent_hello hello; /* the peer's */
    uint32_t eager;               /* the smaller of both sides' */
    bool is_near;                 /* another process of this host, which maps our memory */
    uint64_t staged;              /* longest message, in bytes, that is copied for it */

    /* control: a channel of its own; or, if it is NULL, a peer of the agent's multichannel */
    struct sluice_channel *control;
    bool shares;       /* it is that peer, */
    uint32_t index;    /* with this index there */
    bool unserved;     /* messages came, or it failed, since it was served */
    bool flushing;     /* a flush ended before all sends were complete */
    bool awaits_sends; /* so, or its free send slots are so few that it may soon wait for one */
    bool excess;       /* it sent more than a side may have unhandled at the other */
    struct sluice_mr *slab;
    uint8_t *bytes;
    uint32_t slot_bytes, receives, sends;
    uint32_t *free_sends, free_count;
    struct {
        uint32_t slot, length;
        uint8_t *copy; /* of the bytes, whose receive was posted again; or NULL */
    } * pending;       /* received and not handled yet: a ring of receives entries */
    uint32_t first_pending, pending_count;
    uint32_t sent, sent_taken;        /* messages in the peer's window: sent, and taken by it */
    uint32_t taken, reported_taken;   /* messages of the peer: taken, and last reported as such */
    uint32_t posted, posted_received; /* messages and regions: sent, and received by its program */
    uint64_t posted_bytes, posted_received_bytes;
    uint32_t arrived, received, reported_received; /* the same for our program */
    uint64_t arrived_bytes, received_bytes, reported_received_bytes;
    int64_t last_sent;
    bool pinged, must_send_bye, sent_bye;
    struct {
        uint64_t id;
        uint32_t code;
    } answers[SLU_AGENT_WAITS]; /* that wait for a send slot */
    uint32_t answer_count;

    struct slu_agent_wait waits[SLU_AGENT_WAITS];
    bool has_unclean; /* a wait may have something left to send: see slu_agent_clean_waits() */
    uint64_t last_id;
    /* Memory for the next long message; NULL: in use, or not allocated. */
    struct sluice_mr *_Atomic staging;
    uint32_t being_read; /* long messages that calls wait for the peer to read */

    LIST_HEAD(, slu_agent_region) regions;
    LIST_HEAD(, slu_agent_region) revoked; /* ended; REVOKE is still to be sent */
    uint32_t region_count;
    uint64_t region_bytes; /* allocated, being allocated, or returned but not received */
    uint32_t allocated_count;
    uint64_t last_region;
    struct slu_agent_past past[SLU_AGENT_PAST];
    uint32_t past_count;
    TAILQ_HEAD(, slu_agent_job) jobs;
    uint32_t job_count;
    STAILQ_HEAD(, slu_agent_returned) returned;

    struct slu_agent_mrs held, offered;
    uint32_t held_count;
    struct slu_agent_messages messages, dropped; /* waiting; still being read */
    struct slu_agent_mrs unwanted;               /* RELEASE is still to be sent */
    struct slu_agent_data data;
};

TAILQ_HEAD(slu_agent_peers, sluice_agent_peer);

/* Set in the user data of sends; the rest of it is the slot. */
#define SLU_AGENT_SEND_BIT (UINT64_C(1) << 32)

/* A message of a connection that is no peer yet. */
struct slu_agent_early {
    TAILQ_ENTRY(slu_agent_early) links;
    uint32_t index, generation; /* in the multichannel */
    uint32_t length;
    uint8_t bytes[];
};

/* Queue pairs of all peers that share a completion queue. */
struct slu_agent_wire {
    struct sluice_multichannel *wire; /* NULL: each peer has one of its own */
    uint64_t epoch;                   /* of the engine, when its failures were last noticed */
    bool armed;                       /* nothing was done with it since it was armed */
    bool polled; /* in this round, so that serving each of the peers polls no more */
};

/* Queue pairs that share completion queues, and perhaps receives; shared.c. */
struct slu_agent_shared {
    struct slu_agent_wire control, data;
    struct sluice_mr *slab; /* of shared receives; NULL: each peer has its own */
    uint8_t *bytes;
    uint32_t slots;                   /* number of receives */
    uint32_t *free_slots, free_count; /* to be posted again */
    struct sluice_agent_peer **peers; /* by index; or NULL */
    uint32_t peer_room;
    uint32_t send_waits; /* reasons to be woken when a send is complete */
    uint32_t data_users; /* peers for which data must be polled and armed */
    bool data_ignored;   /* the epoll set reports no events of data */
    TAILQ_HEAD(, slu_agent_early) early;
};

/* The helper thread of an agent; helper.c. */
struct slu_agent_helper {
    pthread_cond_t turn; /* where it dozes */
    uint64_t calls;      /* calls of the program and rounds of their waits: signs of activity */
    int64_t armed;       /* when a call of the program last armed channels for a sleeping helper */
    bool sleeps;         /* on the epoll set */
    bool woken;          /* from there, but it does not have the lock yet */
    bool parked;         /* it dozes until a call of the program gives up the lock */
};

struct sluice_agent {
    uint32_t magic;
    uint32_t references; /* of the program, peers and calls */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct sluice_pd *pd;
    struct sluice_agent_attr attr;
    char *secret;
    struct sluice_channel_attr control_attr, data_attr;
    struct slu_agent_shared shared;
    int epoll, event;
    int loop_event; /* the event loop's descriptor if the agent has a thread, which takes the events
                       of the set; otherwise -1 */
    uint32_t inside; /* calls */
    bool leaving;    /* sluice_agent_close() has begun: no more peers are let in */
    bool closed;
    bool ending;      /* closed, and waiting calls have not all returned yet */
    bool driven;      /* a thread sleeps on the epoll set */
    bool crowded;     /* other threads wait for this processor */
    bool watched;     /* an event loop of the program sleeps on the epoll set, or on loop_event */
    pthread_t loop;   /* the thread of that event loop; it is awake if it calls */
    uint32_t dialers; /* threads that connect without a helper, and sleep on it as well */
    int64_t sleeps_until;
    uint32_t followers; /* threads that sleep on the condition */
    bool has_thread;
    pthread_t thread;
    struct slu_agent_helper helper;
    atomic_uint wakes;
    uint32_t wakes_seen;
    bool news;                /* something for the program since it last armed the agent */
    int64_t next_due, looked; /* when to serve next; when the epoll set was last polled */
    struct slu_door door;     /* its listener is NULL: the agent does not listen */
    bool accepting, listener_ready;
    struct slu_agent_peers peers, fresh, readable, offering, returning;
    struct slu_agent_peers kept; /* lost peers whose messages wait for the program */
    LIST_HEAD(, sluice_agent_peer) unarmed;
    struct sluice_agent_peer **places;
    uint32_t place_count, last_serial;
    uint32_t connected;     /* peers, greeting ones included */
    uint32_t let_in;        /* told that they are in, and not among them yet */
    uint32_t dialed;        /* that calls of the program are connecting to */
    uint64_t reading_bytes; /* of long messages that are read for receives from any peer */
    struct sluice_mr *spares[SLU_AGENT_SPARES]; /* or NULL */
    struct sluice_agent_info info;
};

#endif
