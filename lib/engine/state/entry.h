/* SPDX-License-Identifier: MIT */
/*
 * The state of a request: its entry in a ring, and where its result is kept until the
 * program has seen it. engine/engine.h describes the life of a request.
 */
#ifndef SLU_ENGINE_STATE_ENTRY_H
#define SLU_ENGINE_STATE_ENTRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/request.h>

#include "base/macros.h"

#define SLU_INLINE inline __attribute__((always_inline))

/* The two queues of a queue pair. */
enum slu_queue { SLU_SEND_QUEUE = 0, SLU_RECEIVE_QUEUE = 1, SLU_QUEUES = 2 };

/*
 * Each queue has a ring. Requests of the library itself have a third one, so that they displace no
 * result.
 */
enum slu_ring_number { SLU_OWN_RING = SLU_QUEUES, SLU_RINGS };

#define SLU_MAX_SGE 32
#define SLU_NONE UINT32_MAX

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
    uint32_t index; /* of the request in the call, or in the scope; of the pool: the peer */
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

/* A failure whose place in its ring was needed. */
struct slu_failure {
    uint64_t id;     /* 0: none */
    uint64_t number; /* order of completion */
    uint32_t index;  /* of the entry */
    uint8_t owner;   /* OWNER_CALL: it was seen */
    struct sluice_completion completion;
};

#define SLU_FAILURES 64

#endif
