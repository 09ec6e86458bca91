/* SPDX-License-Identifier: MIT */
/*
 * The data of an engine: rings of requests, peers, and what all of them share. engine.h describes
 * the life of a request.
 */
#ifndef SLU_ENGINE_STATE_H
#define SLU_ENGINE_STATE_H

#include <sluice/blocks.h>
#include <sluice/counters.h>
#include <sluice/multichannel.h>
#include <sluice/scope.h>

#include "device/pd.h"
#include "transport/stripes/stripes.h"

/* The two queues of a queue pair. */
enum slu_queue { SLU_SEND_QUEUE = 0, SLU_RECEIVE_QUEUE = 1, SLU_QUEUES = 2 };

/*
 * Each queue has a ring. Requests of the library itself have a third one, so that they displace no
 * result.
 */
enum slu_ring_number { SLU_OWN_RING = SLU_QUEUES, SLU_RINGS };

#define SLU_MAX_SGE 32
#define SLU_NONE UINT32_MAX

/* The drain bound: how long a queue pair in error may take to complete its work requests. */
#define SLU_DRAIN_TIME SLUICE_S(1)

enum slu_entry_state { SLU_ENTRY_FREE, SLU_ENTRY_PENDING, SLU_ENTRY_DONE, SLU_ENTRY_SEEN };

/* The owner of a request, which retrieves its result. */
enum slu_owner {
    SLU_OWNER_PROGRAM,
    SLU_OWNER_SCOPE,
    SLU_OWNERS_KEEP,                  /* results of the owners above are kept until seen */
    SLU_OWNER_CALL = SLU_OWNERS_KEEP, /* a blocking call, which has no handles */
    SLU_OWNER_NOBODY                  /* detached, or never retrieved: its handles are stale */
};

struct slu_call;

/* Marks of a request. All are 0 when it is posted. */
struct slu_marks {
    bool failed : 1;
    bool unfinished : 1; /* some of its parts are still to be posted */
    bool passed : 1;     /* a later one was flushed before this was reported: outcome unknown */
    bool overtaken : 1;  /* a later one ended first: the oldest after this is not the next */
    bool dropped : 1;    /* its message was too long for it; vendor is the message's length */
    bool staged : 1;     /* a receive: its last bytes are copied to blocks when it completes */
    uint8_t flags;       /* of the completion */
    uint16_t returned;   /* of parts that were posted together: how many have ended */
};

/*
 * The progress of a request. Most requests are one work request and have no marks:
 * SLU_PLAIN_COURSE.
 */
union slu_entry_course {
    struct {
        uint32_t posted; /* work requests in flight; more than one if it was split */
        struct slu_marks marks;
    };
    uint64_t whole;
};
#define SLU_PLAIN_COURSE (((union slu_entry_course){.posted = 1}).whole)

/* The first word of an entry, written at once when its request is posted. */
union slu_entry_head {
    struct {
        uint8_t state, key_count, owner, opcode;
    };
    uint32_t whole;
};

/* A further element of a request, for the scan described at struct slu_entry. */
struct slu_element {
    _Atomic uint32_t key;
    _Atomic uint32_t place;
};

/*
 * The entry of a request, one cache line. state, key_count, the keys and the places are atomic
 * because deregistering memory scans them, perhaps from another thread. Fields that all requests of
 * a call or of a scope share are kept there and not here: see slu_entry_deadline().
 */
struct slu_entry {
    union {
        struct {
            _Atomic uint8_t state;
            _Atomic uint8_t key_count;
            uint8_t owner;
            uint8_t opcode;
        };
        _Atomic uint32_t head; /* a slu_entry_head */
    };
    _Atomic uint32_t key; /* of the first element; the others are in the ring's elements */
    uint64_t user_data;   /* not set for OWNER_CALL */
    union {
        uint64_t bytes;
        struct {
            uint32_t status, vendor;
        }; /* once it has failed */
    };
    union {
        int64_t deadline; /* of OWNER_PROGRAM and OWNER_NOBODY */
        uint64_t number;  /* order of completion, once it is done */
    };
    int64_t time; /* the deadline as it was given */
    union {
        struct slu_call *call; /* of OWNER_CALL */
        uint64_t tag;          /* of OWNER_SCOPE: that of the scope */
    };
    uint32_t index; /* of the request in the call, or in the scope */
    union {
        _Atomic uint32_t place; /* pending: low half of the address of the first element */
        uint32_t immediate;     /* of a success */
        uint32_t cause;         /* of a failure that is done */
    };
    union {
        struct {
            uint32_t posted;
            struct slu_marks marks;
        };
        uint64_t course; /* a slu_entry_course */
    };
};
_Static_assert(sizeof(struct slu_entry) == 64, "a line of the cache");

/*
 * The requests of one queue of a queue pair. An id has, from the highest bit down: 46 bits of a
 * number that grows by 1 with each request, over resets and over successive peers of the index; 16
 * bits of that index; and 2 bits of the ring, counted from 1, so that no id is 0. The lowest bits
 * of the number are the place in the ring. The size is a power of 2, and at least the depth of the
 * queue. A size of 0 means that there is no such ring.
 */
struct slu_ring {
    struct slu_entry *entries;
    struct slu_element *elements; /* max_sge - 1 for each entry */
    uint64_t next;                /* id of the next request */
    uint64_t oldest;              /* of the oldest pending request, or next if there is none */
    uint64_t since;               /* first id of the peer that has the index now */
    uint32_t size;
    uint32_t mask;
    void *memory; /* of the first ring: the allocation that holds all of them */
};

/*
 * Ids of done and unseen results, in the order of completion. Some of the ids are stale: the ring
 * of ids has room for a quarter more than there can be results, and stale ones are removed when it
 * is full. There is one order for each owner and queue, so that the oldest result of a queue is
 * found at once.
 */
struct slu_order {
    uint64_t *ids;
    uint32_t mask;
    uint32_t head, tail;
    uint32_t failed; /* all unseen results between tail and here are failures */
    uint32_t unseen; /* of those between tail and head */
};

/* A displaced success. next is the number of the next place of its chain; 0: none. */
struct slu_aside_place {
    struct slu_entry entry;
    uint64_t id;
    uint32_t next;
};

/* Places for displaced successes, twice as many as there can be unseen results; see aside.c. */
struct slu_aside {
    struct slu_aside_place *places; /* numbered from 1 */
    uint32_t *chains;
    uint32_t size, used; /* places from used on were never taken */
    uint32_t cursor;     /* the place that was taken last */
};

/* Where a call resumes with a peer whose queue was full. */
struct slu_stall {
    uint32_t index; /* first request of that peer that is not wholly posted, or SLU_NONE */
    uint32_t next;  /* stalled peer */
    uint64_t id;    /* of that request if parts of it are posted, or 0 */
    uint64_t offset;
};

/* Counters of a peer, for sluice/counters.h. */
#define SLU_COUNTED_OPCODES 8
#define SLU_COUNTED_CLASSES SLU_CLASSES
struct slu_counts {
    uint64_t requests[SLU_COUNTED_OPCODES]; /* successful requests, and their bytes */
    uint64_t bytes[SLU_COUNTED_OPCODES];
    uint64_t failed[SLU_COUNTED_CLASSES];
    uint64_t refused, queue_full, forgotten, resets;
    uint64_t arrivals, strays; /* see struct slu_arrivals */
};

/* The identity of a peer and of the remote that it was connected to. A reset keeps it. */
struct slu_name {
    uint64_t identity; /* random */
    uint64_t generation;
    uint64_t remote_identity; /* 0: never connected */
    uint64_t remote_generation;
    bool remote_used;          /* alive at that generation, which was reset since */
    uint32_t index_generation; /* how many peers had the index before */
};

/* Where a poll in progress writes results of the program. */
struct slu_sink {
    struct sluice_completion *next;
    uint32_t left;
};

/* Probes of a peer, beside the program's work; see probe.c. */
struct slu_probe {
    uint64_t id;        /* of the one in flight; 0: none */
    int64_t due;        /* keep-alive: when to check the peer next */
    int64_t late_after; /* keep-alive: a silent peer is probed from then on */
    uint64_t successes; /* requests of the peer that had succeeded at the last check */
    uint32_t access;    /* rights that the peer grants this side */
    bool answered;      /* the peer has shown a sign of life since it was connected */
    bool probe_grace;   /* keep-alive: one late check was already forgiven since the last probe */
    bool awaited;       /* a wait for the connection waits for this peer */
};

/* State of a peer when a deadline ends its connection; see words.c. */
struct slu_late {
    int64_t time;  /* the deadline as it was given */
    bool heard;    /* the peer has shown a sign of life since it was connected */
    bool receives; /* this side had receives posted */
    struct slu_stand stand;
};

struct slu_peer {
    struct slu_ring rings[SLU_RINGS]; /* these belong to the index and outlive the peer */
    struct slu_times *times;          /* likewise; or NULL: see timing.h */
    struct slu_staging *staging;      /* likewise; or NULL: see message.h */
    struct slu_qp *qp;
    enum sluice_peer_state state;
    uint32_t free[SLU_QUEUES]; /* room in the queue pair */
    struct slu_stall stall[SLU_QUEUES];
    uint32_t need[SLU_QUEUES]; /* while the needs of a list are counted; else 0 */
    int64_t drain_by;          /* FAILED with work in flight: when the drain ends */
    int64_t failed_at;
    uint64_t failed_in;  /* number of the call during which it failed */
    uint64_t refused_in; /* number of the call in which the driver refused a request */
    uint32_t cause_status, cause_opcode, cause_vendor;
    bool cause_inferred;      /* it failed without giving a reason: a real one may follow */
    bool async_error_pending; /* no request reported it: the first that fails does */
    int connect_error;        /* why it could not be connected */
    char reason[160];         /* text of the driver for it, or for a refused post */
    const char *loss;         /* reason of a loss, if the transport has one; static */
    struct slu_late late;     /* if the cause is a deadline */

    struct slu_probe probe;

    struct slu_name name;     /* a reset keeps it */
    struct slu_counts counts; /* a reset keeps them */
    uint32_t arrivals_posted; /* receives of the library for arrivals */
    uint32_t arrival_session; /* number of this connection, part of their ids */
    uint64_t spare[21];       /* padding to a power of two: a peer is found by a shift */
};
_Static_assert(sizeof(struct slu_peer) == 1024, "a shift finds a peer");

/* A failure whose place in its ring was needed. */
struct slu_failure {
    uint64_t id;     /* 0: none */
    uint64_t number; /* order of completion */
    uint32_t index;  /* of the entry */
    uint8_t owner;   /* OWNER_CALL: it was seen */
    struct sluice_completion completion;
};
#define SLU_FAILURES 64

/* The scope that is open, if any. */
struct slu_scope {
    bool open;
    bool expired; /* its deadline has passed: nothing more is posted */
    uint64_t tag; /* owner of its handles, which are invalid outside of it */
    int64_t time; /* the deadline as it was given */
    int64_t deadline;
    uint32_t posted, pending;
    uint32_t failures;  /* done and unseen failures, without those in failures[] */
    uint32_t forgotten; /* unseen successes that were displaced and dropped */
    uint32_t lost;      /* unseen failures that were dropped from failures[] */
};

/* Arrivals of immediates by tag; see arrivals.c. */
struct slu_arrivals {
    uint32_t depth;   /* receives of a peer */
    uint32_t few;     /* refill when no more than this are left */
    uint32_t session; /* number of the last connection */
    bool unseen;      /* some came since the program last asked */
    uint64_t counts[];
};

struct slu_engine {
    uint64_t tag; /* owner of handles; never repeats in a process. Must be first: see probe.h */
    const struct slu_transport *transport;
    struct sluice_pd *pd;
    struct slu_memory_user memory_user; /* of the protection domain */
    struct slu_list *lists;             /* prepared lists; changed under the lock of the domain */
    uint64_t epoch; /* changes when a peer of a list may have changed or stopped being ready */
    struct slu_cq *cq;
    struct slu_qp_attr attr;
    enum sluice_wait_mode wait_mode;
    int64_t spin_time;
    uint64_t staging;    /* bytes of a staging buffer of each queue of a peer */
    uint32_t plain_sges; /* elements that every operation can have */
    uint64_t max_plain;  /* longest work request: max_message, and at most 2^32 - 1 bytes */
    uint32_t peer_count; /* indices in use or used before; see members.c */
    struct slu_peer *peers;
    struct slu_order orders[SLU_OWNERS_KEEP][SLU_QUEUES];
    struct slu_aside aside;
    struct slu_sink sink;
    uint32_t held[SLU_QUEUES];    /* places of results in use: pending, or done and unseen */
    uint32_t places[SLU_QUEUES];  /* limit of held: the most that could ever be in flight */
    uint32_t pending[SLU_QUEUES]; /* requests */
    uint32_t cq_free[SLU_QUEUES]; /* credits of the completion queue */
    uint32_t cq_size[SLU_QUEUES];
    uint32_t own_size; /* of the rings of the library's own requests */
    uint64_t call_number;
    uint64_t done_number;
    uint64_t refused_number;
    uint32_t detached;     /* pending requests of OWNER_NOBODY */
    uint32_t idle_polls;   /* polls that found nothing since events were last checked */
    uint32_t busy_polls;   /* polls since the clock was last checked */
    bool crowded;          /* the last yield of a wait ran another process or thread */
    int64_t next_deadline; /* no pending request is due before */
    int64_t next_drain;    /* no drain of a failed peer ends before */
    int64_t next_probe;    /* no peer is to be checked before */
    int64_t keepalive;     /* 0: none */
    uint64_t probe_number; /* of the last probe */
    uint32_t probe_limit;  /* probes that may be in flight */
    uint32_t probe_room;   /* probes that may still be posted */
    uint32_t awaited;      /* peers with probe.awaited */
    uint32_t stalled[SLU_QUEUES];
    struct slu_failure failures[SLU_FAILURES];
    uint32_t failure_count; /* unseen ones */
    uint64_t failures_lost;
    int saved_errno;    /* while entered */
    uint64_t discarded; /* completions of unknown ids */
    uint64_t polls, sleeps, wakes;
    atomic_bool woken; /* set by any thread; see wait.c */
    struct slu_scope scope;
    /*
     * The most telling failure that the scope has lost, if any: the first that is no mere
     * cancellation, or else the first.
     */
    struct sluice_completion scope_lost;
    struct slu_scope_object *scope_object; /* the rest of it; see lib/scope/scope.h */
    uint32_t present_count, peer_room;     /* peers not removed; size of the array */
    bool guarded;             /* the transport wants to be notified of enter and leave */
    bool entries_shared;      /* the completion queue has fewer entries than the peers could use */
    struct slu_counts past;   /* counters of removed peers whose index was used again */
    uint32_t release_pending; /* pending when regions to be released were last checked */
    uint32_t release_rounds;  /* checks of the clock since then */
    uint32_t arrival_tags;    /* 0: arrivals are not counted */
    struct slu_arrivals *arrivals; /* or NULL */
    uint32_t further_peers;        /* peers for whose further queue pairs there are entries */
    struct slu_transport striped;  /* the transport, if peers have several queue pairs */
    struct sluice_mr_cache *cache; /* for requests of plain memory, or NULL; see borrow.c */
    struct slu_timing *timing;     /* if requests are timed, or NULL; see timing.h */
};

/*
 * A list of requests, in any of the forms that a call may give it. Item i of it is made on the fly,
 * so that no form costs a copy.
 */
struct slu_source {
    const struct sluice_request *lists[2];       /* the second follows the first */
    uint32_t counts[2];                          /* of a multicast: number of peers */
    uint32_t opcodes[2];                         /* SLUICE_OP_NONE: each request has its own */
    const uint32_t *peers;                       /* multicast send, or NULL */
    const struct sluice_peer_remote_mr *remotes; /* multicast write, or NULL */
    uint32_t count;
    bool multicast;
};

struct slu_item {
    const struct sluice_request *request;
    const struct sluice_sge *sges; /* those of the request, inside it or in a list */
    const struct sluice_remote_mr *remote;
    uint32_t peer;
    uint32_t opcode;
    uint64_t bytes; /* of its SGEs together */
};

/*
 * A call that posts a list, on the caller's stack. A call of OWNER_CALL waits until all of the list
 * is done, a call of OWNER_SCOPE until all of it is posted, and a call of OWNER_PROGRAM does not
 * wait.
 */
struct slu_call {
    struct slu_engine *engine;
    const struct slu_source *source;
    struct sluice_completion *completions;
    int64_t deadline; /* of a blocking call: FOREVER until it begins to wait */
    int64_t time;     /* the deadline as it was given */
    enum slu_owner owner;
    uint32_t queues;               /* the result of slu_source_check() */
    bool expired;                  /* the deadline has passed: nothing more is posted */
    struct sluice_handle *handles; /* or NULL; not for OWNER_CALL */
    uint32_t first;       /* of OWNER_SCOPE: how many requests the scope had before this list */
    uint32_t incomplete;  /* requests without a result */
    uint32_t first_real;  /* index of the first failure that is not a mere cancellation */
    uint32_t first_other; /* index of the first one that is */
    struct sluice_completion real, other;
};

/* Returns whether the error only says that something else has failed. */
static inline bool slu_is_mere_cancellation(int error)
{
    return error == -ECANCELED || error == -ENOTCONN;
}

#endif
