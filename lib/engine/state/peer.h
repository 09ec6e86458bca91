/* SPDX-License-Identifier: MIT */
/* The state of a peer. */
#ifndef SLU_ENGINE_STATE_PEER_H
#define SLU_ENGINE_STATE_PEER_H

#include <sluice/counters.h>
#include <sluice/multichannel.h>

#include "engine/state/entry.h"
#include "transport/transport.h"

/* The drain bound: how long a queue pair in error may take to complete its work requests. */
#define SLU_DRAIN_TIME SLUICE_S(1)

/*
 * The state of an index that has no peer yet, in an engine whose peers appear when they are used:
 * see absent.c. All of the struct is zero.
 */
#define SLU_PEER_ABSENT 0

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

static inline void slu_counts_add(struct slu_counts *sum, const struct slu_counts *counts)
{
    for (size_t i = 0; i < sizeof *sum / sizeof(uint64_t); i++)
        ((uint64_t *)sum)[i] += ((const uint64_t *)counts)[i];
}

/* The identity of a peer and of the remote that it was connected to. A reset keeps it. */
struct slu_name {
    uint64_t identity; /* random */
    uint64_t generation;
    uint64_t remote_identity; /* 0: never connected */
    uint64_t remote_generation;
    bool remote_used;          /* alive at that generation, which was reset since */
    uint32_t index_generation; /* how many peers had the index before */
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
    bool untaken_known;       /* the peer has closed, and said how many messages it has */
    int connect_error;        /* why it could not be connected */
    char reason[160];         /* text of the driver for it, or for a refused post */
    const char *loss;         /* reason of a loss, if the transport has one; static */
    struct slu_late late;     /* if the cause is a deadline */

    struct slu_probe probe;

    struct slu_name name;     /* a reset keeps it */
    struct slu_counts counts; /* a reset keeps them */
    uint32_t arrivals_posted; /* receives of the library for arrivals */
    uint32_t arrival_session; /* number of this connection, part of their ids */
    uint64_t taken_before;    /* messages that were received before this connection */
    uint64_t untaken_from;    /* if it is known: id of the first message that it does not have */
    uint64_t long_message;    /* if the cause is one longer than its receive; 0: not known */
    uint64_t short_receive;   /* bytes of that receive */
    uint64_t spare[16];       /* padding to a power of two: a peer is found by a shift */
};

_Static_assert(sizeof(struct slu_peer) == 1024, "a shift finds a peer");

#endif
