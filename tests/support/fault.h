/* SPDX-License-Identifier: MIT */
/*
 * Each test of a fault asserts that every request completes exactly once, peers that
 * have no part in the fault go on, and nothing is left behind. The faults:
 *
 *   test_fault_kill      kill -9 of a peer: with work in flight, idle, in a scatter
 *   test_fault_stop      SIGSTOP and SIGCONT of a peer in the middle of traffic; deadline and
 *                        death in a request of blocks
 *   test_fault_exit      exit in the middle of a scatter, of either side
 *   test_fault_close     both sides close, reset or shut down at once
 *   test_fault_signals   a SIGALRM every millisecond, without SA_RESTART, in every call
 *   test_fault_depth     one request more than a queue is deep
 *   test_fault_fork      fork with requests in flight
 *
 * Faults of a device (its ports, its events, its refusals) are in test_verbs* and, on a
 * network, in test_hosts; those of the device under the engine in test_engine.
 */
#ifndef SUPPORT_FAULT_H
#define SUPPORT_FAULT_H

#include "group.h"
#include "pair.h"
#include "process.h"

/* From the death of a process to the end of its requests, on soft. */
#define NOTICE SLUICE_MS(1500)

/* Transfers that a bystander does while, or after, another peer fails. */
#define BYSTANDER_TRANSFERS 100

/* Counts of completed requests by user data, which are first to first + size - 1. */
#define TALLY_MAX 512
struct tally {
    uint64_t first;
    uint32_t size;
    uint32_t done; /* requests that completed */
    uint8_t ends[TALLY_MAX];
};

void tally_open(struct tally *tally, uint64_t first, uint32_t size);
/* Counts a completion; its request must not have completed before. */
void tally_count(struct tally *tally, const struct sluice_completion *completion);
/* Takes completions until this many requests completed, or the time is up. */
void tally_channel(struct tally *tally, struct sluice_channel *channel, uint32_t done,
                   int64_t within);
void tally_multichannel(struct tally *tally, struct sluice_multichannel *multichannel,
                        uint32_t done, int64_t within);
/* Requires that all completed, and that none is left to be polled. */
void tally_close_channel(struct tally *tally, struct sluice_channel *channel);
void tally_close_multichannel(struct tally *tally, struct sluice_multichannel *multichannel);

/* Resources of a process: descriptors, objects of the device, bytes of the heap. */
struct census {
    int fds;
    int qps;
    int mrs;
    size_t heap;
};

struct census census_take(void);
/* Requires that no resource has grown since. */
void census_check(const struct census *before);

/*
 * Passes BYSTANDER_TRANSFERS between two ranks, which both call it: sends in both directions,
 * writes and reads, with other bytes each time.
 */
void mesh_pass(struct mesh *mesh, const struct rank *rank, uint32_t first, uint32_t second);
/* The same between the hub of a star and a peer. */
void star_pass(struct star *star, uint32_t peer);

/* Requires the result of the first request that ended because its peer was killed. */
void require_death(const struct sluice_completion *completion);
/* Requires that the peer was lost, and that its error names it. */
void check_lost(const struct mesh *mesh, uint32_t peer);

/* A SIGALRM every millisecond, after which no system call is restarted. */
struct storm {
    void *timer;
};
void storm_begin(struct storm *storm);
void storm_end(struct storm *storm);
/* Alarms so far. */
unsigned storm_alarms(void);

#endif
