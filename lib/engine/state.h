/* SPDX-License-Identifier: MIT */
/*
 * What an engine is made of: rings of requests, peers, and what is the same for all of
 * them. engine.h tells what becomes of a request.
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

/* Each has a ring; requests of our own have one more, so that they take no place of a result. */
enum slu_ring_number { SLU_OWN_RING = SLU_QUEUES, SLU_RINGS };

#define SLU_MAX_SGE 32
#define SLU_NONE UINT32_MAX

/* Drain bound: how long a queue pair in error may take to give all back. */
#define SLU_DRAIN_TIME SLUICE_S(1)

enum slu_entry_state { SLU_ENTRY_FREE, SLU_ENTRY_PENDING, SLU_ENTRY_DONE, SLU_ENTRY_SEEN };

/* Who sees the result of a request. */
enum slu_owner {
    SLU_OWNER_PROGRAM,
    SLU_OWNER_SCOPE,
    SLU_OWNERS_KEEP,                  /* those above, whose results wait to be seen */
    SLU_OWNER_CALL = SLU_OWNERS_KEEP, /* a blocking call, which has no handles */
    SLU_OWNER_NOBODY                  /* detached, or never taken: its handles are stale */
};

struct slu_call;

/* What is all 0 of a request that was just posted. */
struct slu_marks {
    bool failed : 1;
    bool unfinished : 1; /* parts of it are still to be posted */
    bool passed : 1;    /* a later one was flushed, and it was not reported: nobody knows its end */
    bool overtaken : 1; /* a later one has ended: the oldest after this one is not the next */
    bool dropped : 1;   /* its message was too long for it, and vendor is the message's length */
    bool staged : 1;    /* a receive: its last bytes are put into blocks when it is complete */
    uint8_t flags;      /* of the completion */
    uint16_t returned;  /* of parts that were posted together: how many have ended so far */
};

/* How a request gets on: most are one work request, and nothing else is to be said of them. */
union slu_entry_course {
    struct {
        uint32_t posted; /* work requests in flight; more than one if it was split */
        struct slu_marks marks;
    };
    uint64_t whole;
};
#define SLU_PLAIN_COURSE (((union slu_entry_course){.posted = 1}).whole)

/* What the first word of an entry says, written at once when its request is posted. */
union slu_entry_head {
    struct {
        uint8_t state, key_count, owner, opcode;
    };
    uint32_t whole;
};

/* An element beyond the first of a request, for that scan: see struct slu_entry. */
struct slu_element {
    _Atomic uint32_t key;
    _Atomic uint32_t place;
};

/*
 * One line of the cache. state, key_count, the keys and the places are atomic for the scan that
 * the end of memory makes, perhaps from another thread. What all requests of a call or of a
 * scope have in common is there, and not here: see slu_entry_deadline().
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
    uint64_t user_data;   /* not of OWNER_CALL */
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
    int64_t time; /* that deadline as it was given */
    union {
        struct slu_call *call; /* of OWNER_CALL */
        uint64_t tag;          /* of OWNER_SCOPE: that of the scope */
    };
    uint32_t index; /* of the request in the call, or in the scope */
    union {
        _Atomic uint32_t place; /* pending: low half of the address of the first element */
        uint32_t immediate;     /* of what has succeeded */
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
 * The requests of one queue of a queue pair. An id is, from the highest bit down, 46
 * bits of a number that each request adds 1 to, over resets and for whoever has the
 * index of the peer; 16 bits of that index; and 2 of the ring, counted from 1, so that
 * none is 0. The lowest bits of the number are the place in the ring. The size is a
 * power of 2, and at least the depth of the queue; 0: there is no such ring.
 */
struct slu_ring {
    struct slu_entry *entries;
    struct slu_element *elements; /* max_sge - 1 for each entry */
    uint64_t next;                /* id of the next request */
    uint64_t oldest;              /* of the oldest that is pending, or next */
    uint64_t since;               /* of the first of the peer that has the index */
    uint32_t size;
    uint32_t mask;
    void *memory; /* of the first: what all of them are in */
};

/*
 * Ids of what is done and unseen, in the order of completion. Some of them are so no
 * more: it has room for a quarter more than there can be, and is tidied up when full.
 * There is one for each owner and queue, so that the oldest of a queue is at hand.
 */
struct slu_order {
    uint64_t *ids;
    uint32_t mask;
    uint32_t head, tail;
    uint32_t failed; /* between tail and there all that is unseen has failed */
    uint32_t unseen; /* of those between tail and head */
};

/* A success whose entry was needed, and the number of the next place of its chain; 0: none. */
struct slu_aside_place {
    struct slu_entry entry;
    uint64_t id;
    uint32_t next;
};

/* There are twice as many as there can be unseen results; see aside.c. */
struct slu_aside {
    struct slu_aside_place *places; /* numbered from 1 */
    uint32_t *chains;
    uint32_t size, used; /* from used on no place was ever taken */
    uint32_t cursor;     /* the place that was taken last */
};

/* Where a submit goes on with a peer whose queue was full. */
struct slu_stall {
    uint32_t index; /* first request of that peer that is not wholly posted, or SLU_NONE */
    uint32_t next;  /* stalled peer */
    uint64_t id;    /* of that request if parts of it are posted, or 0 */
    uint64_t offset;
};

/* What is counted of a peer, for sluice/counters.h. */
#define SLU_COUNTED_OPCODES 8
#define SLU_COUNTED_CLASSES SLU_CLASSES
struct slu_counts {
    uint64_t requests[SLU_COUNTED_OPCODES]; /* that succeeded, and their bytes */
    uint64_t bytes[SLU_COUNTED_OPCODES];
    uint64_t failed[SLU_COUNTED_CLASSES];
    uint64_t refused, queue_full, forgotten, resets;
    uint64_t arrivals, strays; /* see struct slu_arrivals */
};

/* Who a peer is and was connected to; stays over resets. */
struct slu_name {
    uint64_t identity; /* random */
    uint64_t generation;
    uint64_t remote_identity; /* 0: it was never connected */
    uint64_t remote_generation;
    bool remote_used;          /* it was heard at that generation, which leads nowhere any more */
    uint32_t index_generation; /* how many had the index before */
};

/* Where results of the program's go that are waited for just now. */
struct slu_sink {
    struct sluice_completion *next;
    uint32_t left;
};

/* What is asked of a peer beside the program's work; see probe.c. */
struct slu_probe {
    uint64_t id;        /* of the one in flight; 0: none */
    int64_t due;        /* keep-alive: when to look after the peer next */
    int64_t late_after; /* keep-alive: a peer that was not heard by then has had its time */
    uint64_t successes; /* requests of the peer that had succeeded when it was looked at last */
    uint32_t access;    /* that the peer gives us */
    bool answered;      /* the peer was heard since it was connected */
    bool probe_grace;   /* keep-alive: the answer may have come while the program was away */
    bool awaited;       /* by a wait for the peer to be connected */
};

/* What is known of a peer when a deadline ends its connection; see words.c. */
struct slu_late {
    int64_t time;  /* the deadline as it was given */
    bool heard;    /* the peer, since it was connected */
    bool receives; /* this side had receives posted */
    struct slu_stand stand;
};

struct slu_peer {
    struct slu_ring rings[SLU_RINGS]; /* of the index: they stay over all else */
    struct slu_times *times;          /* the same; or NULL: see timing.h */
    struct slu_staging *staging;      /* the same; or NULL: see message.h */
    struct slu_qp *qp;
    enum sluice_peer_state state;
    uint32_t free[SLU_QUEUES]; /* room in the queue pair */
    struct slu_stall stall[SLU_QUEUES];
    uint32_t need[SLU_QUEUES]; /* while a list is counted; else 0 */
    int64_t drain_by;          /* FAILED with work in flight: when to give up */
    int64_t failed_at;
    uint64_t failed_in;  /* number of the call during which it failed */
    uint64_t refused_in; /* and of that in which the driver refused a request */
    uint32_t cause_status, cause_opcode, cause_vendor;
    bool cause_inferred;      /* it failed without saying why: a real reason may follow */
    bool async_error_pending; /* it came with no request: the first that fails tells it */
    int connect_error;        /* it never got ready: why */
    char reason[160];         /* what the driver said of it, or of a post it refused */
    const char *loss;         /* why it is lost, if the transport knows; static */
    struct slu_late late;     /* if the cause is a deadline */

    struct slu_probe probe;

    struct slu_name name;     /* stays over resets */
    struct slu_counts counts; /* stays over resets */
    uint32_t arrivals_posted; /* receives of our own that take them */
    uint32_t arrival_session; /* in their ids: number of this connection */
    uint64_t spare[21];       /* a power of two in all: a peer is found by a shift */
};
_Static_assert(sizeof(struct slu_peer) == 1024, "a shift finds a peer");

/* A failure whose place was needed. */
struct slu_failure {
    uint64_t id;     /* 0: none */
    uint64_t number; /* order of completion */
    uint32_t index;  /* of the entry */
    uint8_t owner;   /* OWNER_CALL: it was seen */
    struct sluice_completion completion;
};
#define SLU_FAILURES 64

/* The scope that is open, or nothing. */
struct slu_scope {
    bool open;
    bool expired; /* its deadline is known to have passed: nothing more is posted */
    uint64_t tag; /* owner of its handles, which mean nothing outside of it */
    int64_t time; /* the deadline as it was given */
    int64_t deadline;
    uint32_t posted, pending;
    uint32_t failures;  /* that are done, and were not kept aside */
    uint32_t forgotten; /* successes that nobody saw and whose places were needed */
    uint32_t lost;      /* failures that nobody saw and whose places were needed */
};

/* Arrivals of immediates by tag; see arrivals.c. */
struct slu_arrivals {
    uint32_t depth;   /* receives of a peer */
    uint32_t few;     /* when so many are left, more are posted */
    uint32_t session; /* number of the last connection */
    bool unseen;      /* some have come since the program looked */
    uint64_t counts[];
};

struct slu_engine {
    uint64_t tag; /* owner of handles; never repeats in a process. First: see probe.h */
    const struct slu_transport *transport;
    struct sluice_pd *pd;
    struct slu_memory_user memory_user; /* of the protection domain */
    struct slu_list *lists;             /* prepared ones; changed under the lock of the domain */
    uint64_t epoch; /* counts what may make a peer of a list another, or not ready */
    struct slu_cq *cq;
    struct slu_qp_attr attr;
    enum sluice_wait_mode wait_mode;
    int64_t spin_time;
    uint64_t staging;    /* bytes of a staging buffer of each queue of a peer */
    uint32_t plain_sges; /* that every operation can have */
    uint64_t max_plain;  /* bytes of one work request: those of a message, and at most 2^32 - 1 */
    uint32_t peer_count; /* indices that a peer has or had; see members.c */
    struct slu_peer *peers;
    struct slu_order orders[SLU_OWNERS_KEEP][SLU_QUEUES];
    struct slu_aside aside;
    struct slu_sink sink;
    uint32_t held[SLU_QUEUES];    /* places of results: of what is pending, or done and unseen */
    uint32_t places[SLU_QUEUES];  /* as many as were ever in flight at most */
    uint32_t pending[SLU_QUEUES]; /* requests */
    uint32_t cq_free[SLU_QUEUES]; /* shares of the completion queue */
    uint32_t cq_size[SLU_QUEUES];
    uint32_t own_size; /* of the rings of our own requests */
    uint64_t call_number;
    uint64_t done_number;
    uint64_t refused_number;
    uint32_t detached;     /* pending requests of OWNER_NOBODY */
    uint32_t idle_polls;   /* rounds that found nothing since events were looked for */
    uint32_t busy_polls;   /* polls since the clock was looked at */
    bool crowded;          /* somebody else had the processor when a wait gave way last */
    int64_t next_deadline; /* no pending request is due before */
    int64_t next_drain;    /* no failed peer is due before */
    int64_t next_probe;    /* no peer is to be looked after before */
    int64_t keepalive;     /* 0: none */
    uint64_t probe_number; /* of the last probe */
    uint32_t probe_limit;  /* probes that may be in flight */
    uint32_t probe_room;   /* probes that still may be */
    uint32_t awaited;      /* peers that are */
    uint32_t stalled[SLU_QUEUES];
    struct slu_failure failures[SLU_FAILURES];
    uint32_t failure_count; /* unseen */
    uint64_t failures_lost;
    int saved_errno;    /* while entered */
    uint64_t discarded; /* completions of unknown ids */
    uint64_t polls, sleeps, wakes;
    atomic_bool woken; /* by any thread; see wait.c */
    struct slu_scope scope;
    /* If that has lost any: the first that is no mere cancellation, or else the first. */
    struct sluice_completion scope_lost;
    struct slu_scope_object *scope_object; /* the rest of it; see lib/scope/scope.h */
    uint32_t present_count, peer_room;     /* peers not removed; indices there is memory for */
    bool guarded;                          /* the transport wants to know who is inside */
    bool entries_shared;                   /* the queue has fewer than the peers could use */
    struct slu_counts past;                /* of peers that were removed, and have a successor */
    uint32_t release_pending;              /* requests when regions to be released were seen to */
    uint32_t release_rounds;               /* looks at the clock since */
    uint32_t arrival_tags;                 /* 0: arrivals are not counted */
    struct slu_arrivals *arrivals;         /* or NULL */
    uint32_t further_peers;                /* whose further queue pairs have entries */
    struct slu_transport striped;          /* if peers have several queue pairs: transport */
    struct sluice_mr_cache *cache;         /* of requests of plain memory, or NULL; see borrow.c */
    struct slu_timing *timing;             /* if requests are timed, or NULL; see timing.h */
};

/*
 * A list of requests, in whatever form a call was given it. Item i of it is
 * made on the fly, so that no form costs a copy.
 */
struct slu_source {
    const struct sluice_request *lists[2];       /* the second follows the first */
    uint32_t counts[2];                          /* of a multicast: peers */
    uint32_t opcodes[2];                         /* SLUICE_OP_NONE: as the requests say */
    const uint32_t *peers;                       /* multicast send, or NULL */
    const struct sluice_peer_remote_mr *remotes; /* multicast write, or NULL */
    uint32_t count;
    bool multicast;
};

struct slu_item {
    const struct sluice_request *request;
    const struct sluice_sge *sges; /* those of the request, wherever they are */
    const struct sluice_remote_mr *remote;
    uint32_t peer;
    uint32_t opcode;
    uint64_t bytes; /* of its SGEs together */
};

/*
 * A call that posts a list, on the caller's stack. One of OWNER_CALL waits until all of it is
 * done, one of a scope until it is posted, and one of OWNER_PROGRAM for nothing.
 */
struct slu_call {
    struct slu_engine *engine;
    const struct slu_source *source;
    struct sluice_completion *completions;
    int64_t deadline; /* of a blocking one: FOREVER until it has begun to wait */
    int64_t time;     /* that as it was given */
    enum slu_owner owner;
    uint32_t queues;               /* as slu_source_check() has them */
    bool expired;                  /* nothing more of it is posted */
    struct sluice_handle *handles; /* not of OWNER_CALL; or NULL */
    uint32_t first;                /* of OWNER_SCOPE: requests of the scope before the list */
    uint32_t incomplete;           /* requests without a result */
    uint32_t first_real;           /* index of the first failure that is not a mere cancellation */
    uint32_t first_other;          /* index of the first one that is */
    struct sluice_completion real, other;
};

/* Whether it only means that something else failed. */
static inline bool slu_is_mere_cancellation(int error)
{
    return error == -ECANCELED || error == -ENOTCONN;
}

#endif
