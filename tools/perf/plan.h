/* SPDX-License-Identifier: MIT */
/*
 * The plan: the leader's arguments. The struct is sent to all processes as it is, so it has
 * no pointers, and all must run the same version.
 */
#ifndef PERF_PLAN_H
#define PERF_PLAN_H

#include <stdint.h>

#define PLAN_SIZES 64
#define PLAN_WORKS 32
#define PLAN_MOST_BYTES (UINT64_C(1) << 30)
#define PLAN_MOST_WINDOW 4096
#define PLAN_MOST_IDLE 4096

enum level { LEVEL_BLOCKING, LEVEL_SCOPED, LEVEL_POSTED };

enum {
    PLAN_DIRTY = 1,    /* the sender writes a message before it sends it */
    PLAN_VALIDATE = 2, /* each message has contents of its own, which are checked */
    PLAN_PIN = 4,      /* each process has a processor of its own */
    PLAN_WAITED = 8    /* wait for a posted send before the answer */
};

struct plan {
    char version[16]; /* of the program */
    uint32_t size;    /* of this struct */
    uint32_t flags;   /* PLAN_* */
    uint32_t level;
    uint32_t peers, idle_peers;
    uint32_t window;       /* messages of a stream in flight to each peer */
    uint32_t inline_bytes; /* longest message that is sent inline */
    uint32_t wait_mode;    /* enum sluice_wait_mode */
    uint32_t queue_pairs;  /* of each peer; 0: one */
    uint32_t stripe_least; /* bytes of the shortest striped transfer; 0: the library's default */
    uint32_t work_count, size_count;
    uint32_t works[PLAN_WORKS]; /* indexes of perf_works */
    uint64_t sizes[PLAN_SIZES];
    uint64_t iterations; /* 0: until the duration is over */
    uint64_t warm_up;    /* iterations */
    int64_t duration;    /* nanoseconds */
    int64_t deadline;    /* of each operation */
};

#endif
