/* SPDX-License-Identifier: MIT */
/*
 * Counters of a channel or multichannel since it was prepared. Counters only
 * grow, and continue across resets. Reading them has no effect: it takes no
 * completions and lets no deadline act.
 */
#ifndef SLUICE_COUNTERS_H
#define SLUICE_COUNTERS_H

#include <stdint.h>

#include <sluice/channel.h>
#include <sluice/multichannel.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A request that was accepted is counted once, when it completes: in requests
 * and bytes, or in failed. A request that is split counts as one. The indexes
 * of arrays are values of the enums; entries beyond the known values are 0.
 */
struct sluice_counters {
    uint32_t size;         /* set to sizeof(struct sluice_counters) by the caller */
    uint32_t reserved;     /* written as 0 */
    uint64_t requests[32]; /* requests that succeeded, by enum sluice_opcode */
    uint64_t bytes[32];    /* bytes that these moved, by enum sluice_opcode */
    uint64_t failed[32];   /* requests that failed, by enum sluice_error_class */
    uint64_t refused;      /* requests never posted: their peer had failed or was not connected,
                              or their deadline passed before there was room */
    uint64_t queue_full;   /* times that work waited for room in the queues, or that a posted
                              call did not take all requests because there was no room */
    uint64_t forgotten;    /* results of posted work that were dropped before they were taken,
                              because their places were needed */
    uint64_t resets;       /* resets that succeeded */
    uint64_t discarded;    /* completions of the device that belong to no request; not by peer */
    uint64_t polls;        /* polls of the device's completion queue; not by peer */
    uint64_t sleeps;       /* times that a wait slept after spinning; not by peer */
    uint64_t wakes;        /* by sluice_channel_wake() and its like, that took effect; not by
                              peer */
    uint64_t arrivals;     /* immediates that were counted, see sluice_channel_arrivals() */
    uint64_t strays;       /* messages without an immediate, or with one that is no tag, that
                              arrived where tags are counted */
};

/*
 * Writes the counters of a channel; of all peers of a multichannel together; or
 * of one peer, where the counters marked "not by peer" are 0. Set
 * counters->size first (see sluice(7)). -EINVAL: not such an object, no such
 * peer, NULL, or too small a size. -E2BIG: a size above 4096.
 */
SLUICE_EXPORT int sluice_channel_counters(const struct sluice_channel *channel,
                                          struct sluice_counters *counters);
SLUICE_EXPORT int sluice_multichannel_counters(const struct sluice_multichannel *multichannel,
                                               struct sluice_counters *counters);
SLUICE_EXPORT int sluice_multichannel_peer_counters(const struct sluice_multichannel *multichannel,
                                                    uint32_t peer,
                                                    struct sluice_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
