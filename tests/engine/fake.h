/* SPDX-License-Identifier: MIT */
/*
 * A pretend device under the engine: a transport whose queue pairs execute work in order and report
 * it, all within this process, with every fault that the engine must survive, on request or by
 * seeded chance. It checks the promises of transport.h to a transport, and keeps a ledger of the
 * work of each request, with which a test compares the engine's results. It replaces both
 * transports and the clock: time is fake.now and advances with each poll, faster while nothing
 * happens. So a test that waits for the drain bound takes no time, and a seed always gives the same
 * run.
 */
#ifndef ENGINE_FAKE_H
#define ENGINE_FAKE_H

#include "../support/suite.h"
#include "engine/engine.h"
#include "engine/life.h"
#include "engine/progress/progress.h"

/* The key of its SGEs identifies a request, 1 to FAKE_KEYS - 1; 0 is unused. */
#define FAKE_KEYS 6144

/* Chances of a fault, in a thousand. */
struct fake_chances {
    uint32_t hold;          /* of a poll: the device does nothing */
    uint32_t fail;          /* of a request: it ends with an error of its own */
    uint32_t lose;          /* of a queue pair at a poll: it fails without a reason */
    uint32_t stick;         /* of a queue pair that fails: it never flushes */
    uint32_t refuse;        /* of a request that is posted */
    uint32_t refuse_blind;  /* of a refusal of a whole chain: *bad is not set */
    uint32_t run_refused;   /* of a refusal: the refused requests run all the same */
    uint32_t repeat;        /* of a completion: it comes again, later */
    uint32_t invent;        /* of a poll: a completion of a request that was never posted */
    uint32_t die;           /* of a poll: the completion queue is dead */
    uint32_t create;        /* of a call that makes or connects an object: it fails */
    uint32_t late;          /* of a request in the flush: it was done, or failed by itself */
    uint32_t flush_at_once; /* of a queue pair put in error: it flushes before the next poll */
};

/* The state of the work of one key. */
struct fake_work {
    uint64_t bytes;  /* moved */
    uint32_t held;   /* work requests that the device has and may still do */
    uint32_t status; /* first error, other than a flush, that was reported */
};

struct fake {
    uint64_t seed;
    int64_t now;
    struct fake_chances chances;
    bool by_hand;          /* only fake_complete() completes; queue pairs in error still flush */
    bool never_flush;      /* queue pairs in error keep what they hold */
    bool dead;             /* all polls fail */
    uint32_t max_cq_depth; /* 0: plenty */
    uint32_t fail_call;    /* the n-th call from now that can fail does; 0: none */
    uint32_t refuse_send;  /* the n-th send from now is refused; 0: none */
    void (*at_poll)(void); /* called at the start of each poll, or NULL */
    uint32_t objects;      /* contexts, domains, regions, queues, queue pairs there are */
    uint64_t strays;       /* completions delivered that belong to no request */
    uint64_t probes;       /* posted */
    uint32_t qp_number;    /* of the last queue pair */
    struct fake_work ledger[FAKE_KEYS];
    uint64_t random; /* state of fake_random() */
};
extern struct fake fake;

/* Makes a new device without faults, and a new ledger. */
void fake_reset(uint64_t seed);
/* Returns 0 to below - 1; and whether an event of this chance in a thousand happens. */
uint32_t fake_random(uint32_t below);
bool fake_chance(uint32_t chance);
/*
 * Completes the oldest request of a queue with this status. Returns false if there is none. An
 * error fails the pair.
 */
bool fake_complete(struct slu_qp *qp, enum slu_queue queue, uint32_t status);
/* Executes the oldest request without reporting it. */
void fake_swallow(struct slu_qp *qp, enum slu_queue queue);
/* Returns the work requests in a queue. */
uint32_t fake_held(const struct slu_qp *qp, enum slu_queue queue);
/* The text that every refused post leaves behind. */
#define FAKE_REFUSAL "the pretend device ran out of doorbells"

/* An assertion that names the seed, with which the run can be repeated. */
#define fake_require(condition, format, ...) \
    require(condition, "seed %llu: " format, (unsigned long long)fake.seed, ##__VA_ARGS__)

#endif
