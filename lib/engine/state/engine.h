/* SPDX-License-Identifier: MIT */
/* The state of an engine, and the steps of every call on the way in and out. */
#ifndef SLU_ENGINE_STATE_ENGINE_H
#define SLU_ENGINE_STATE_ENGINE_H

#include <errno.h>

#include <sluice/scope.h>

#include "device/pd.h"
#include "engine/seam.h"
#include "engine/state/peer.h"
#include "transport/deferred/deferred.h"
#include "transport/stripes/stripes.h"

/* Where a poll in progress writes results of the program. */
struct slu_sink {
    struct sluice_completion *next;
    uint32_t left;
};

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
    uint32_t shared;  /* receives of the pool that are posted */
    bool unseen;      /* some came since the program last asked */
    uint64_t counts[];
};

/* The receives that all peers share; see ring/pool.h. */
struct slu_pool {
    struct slu_ring ring; /* its oldest and since are not used */
    uint64_t *ids;        /* of the requests that have the entries of the ring */
    uint32_t pending;
};

/* The attributes of the pool; depth is 0 if there is none. */
struct slu_pool_limits {
    uint32_t depth;
    uint32_t low;   /* refill when no more than this are posted */
    uint32_t share; /* of a peer */
};

/* The user of an engine whose peers are absent until they are used; see absent.c. */
struct slu_lazy {
    struct slu_deferred_user *user;
    /* Returns the rights that a peer grants this side: SLUICE_ACCESS_REMOTE_*. */
    uint32_t (*access)(const struct slu_lazy *lazy, uint32_t peer);
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
    uint64_t staging;       /* bytes of a staging buffer of each queue of a peer */
    uint32_t plain_sges;    /* elements that every operation can have */
    uint32_t lacking_flags; /* of requests, which the device does not have */
    uint64_t max_plain;     /* longest work request: max_message, and at most 2^32 - 1 bytes */
    uint32_t peer_count;    /* indices in use or used before; see members.c */
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
    uint64_t armed_in; /* the call that left the engine armed; later ones may have disarmed it */
    uint64_t done_number;
    uint64_t refused_number;
    uint32_t detached;     /* pending requests of OWNER_NOBODY */
    uint32_t idle_polls;   /* polls that found nothing since events were last checked */
    uint32_t busy_polls;   /* polls since the clock was last checked */
    bool crowded;          /* the last yield of a wait ran another process or thread */
    bool spinning;         /* the spin that began last has not ended in vain */
    uint32_t vain;         /* waits since a spin brought something */
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
    struct slu_pool *pool;         /* of the program, or NULL */
    struct slu_pool_limits pool_limits;
    bool no_receives;              /* a peer has none of its own: of the pool, or for arrivals */
    uint32_t ready_count;          /* peers in state READY */
    uint32_t further_peers;        /* peers for whose further queue pairs there are entries */
    struct slu_transport striped;  /* the transport, if peers have several queue pairs, or absent */
    struct slu_lazy *lazy;         /* if peers are absent until they are used, or NULL */
    struct sluice_mr_cache *cache; /* for requests of plain memory, or NULL; see borrow.c */
    struct slu_timing *timing;     /* if requests are timed, or NULL; see timing.h */
    const char *peer_word;         /* in texts: "peer", or "rank" in those of a node */
    const struct slu_farewells *farewells; /* of the node, or NULL */
};

/* Why peers have left, as they have said themselves. */
struct slu_farewells {
    /* Returns the peer whose loss this one reported before it left; this one, if it did not. */
    uint32_t (*lost)(const struct slu_farewells *farewells, uint32_t peer);
};

/*
 * Every call that uses the engine enters it first: the transport is notified, and errno is saved
 * until the engine is left.
 */
static inline void slu_engine_enter(struct slu_engine *engine)
{
    engine->call_number++;
    engine->saved_errno = errno;
    if (engine->guarded)
        engine->transport->cq_enter(engine->cq);
}

static inline void slu_engine_leave(struct slu_engine *engine)
{
    if (engine->guarded)
        engine->transport->cq_leave(engine->cq);
    errno = engine->saved_errno;
}

/*
 * Returns -EBUSY with its text while a scope is open, since nothing else may use the engine then;
 * else 0.
 */
static inline int slu_scope_check(const struct slu_engine *engine)
{
    return SLU_LIKELY(!engine->scope.open) ? 0 : slu_scope_in_use();
}

static inline uint32_t slu_queue_depth(const struct slu_engine *engine, enum slu_queue queue)
{
    return queue == SLU_SEND_QUEUE ? engine->attr.send_depth : engine->attr.receive_depth;
}

static inline bool slu_nothing_pends(const struct slu_engine *engine)
{
    return (engine->pending[SLU_SEND_QUEUE] | engine->pending[SLU_RECEIVE_QUEUE]) == 0;
}

static inline uint32_t slu_count_pending(const struct slu_engine *engine, enum slu_queue queue)
{
    return engine->pending[queue];
}

static inline uint32_t slu_peer_index(const struct slu_engine *engine, const struct slu_peer *peer)
{
    return (uint32_t)(peer - engine->peers);
}

/* Notes a deadline if it is the nearest. */
static inline void slu_note_deadline(struct slu_engine *engine, int64_t deadline)
{
    if (deadline < engine->next_deadline)
        engine->next_deadline = deadline;
}

/* Returns the least power of two that is not less. */
static inline uint32_t slu_power_of_two(uint32_t least)
{
    uint32_t size = 1;

    while (size < least)
        size *= 2;
    return size;
}

#endif
