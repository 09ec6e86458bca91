/* SPDX-License-Identifier: MIT */
/*
 * Histograms of the duration of requests, of a channel or multichannel that was prepared with
 * SLUICE_CHANNEL_HISTOGRAMS, one for each operation and peer.
 *
 * Threads: sluice_channel_histogram() and those like it are calls of the channel or multichannel,
 * which one thread uses at a time. A histogram that was written belongs to the caller, and the
 * other functions use nothing else. None blocks, takes completions, or lets a deadline act.
 */
#ifndef SLUICE_HISTOGRAM_H
#define SLUICE_HISTOGRAM_H

#include <stdint.h>

#include <sluice/channel.h>
#include <sluice/multichannel.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Times below 64 ns have a bucket each; above that there are 32 for each power of two, so that a
 * bucket is at most 1/32 of its times wide. The last bucket also has all times from 2^40 ns (18
 * minutes) on.
 */
#define SLUICE_HISTOGRAM_BUCKETS 1152

/*
 * Nanoseconds from the time when a request was posted to the transport until the library polled its
 * completion, for requests that succeeded.
 */
struct sluice_histogram {
    uint32_t size;     /* set to sizeof(struct sluice_histogram) by the caller */
    uint32_t reserved; /* written as 0 */
    uint64_t count;    /* requests */
    uint64_t sum;      /* of the times of all requests */
    uint64_t min;      /* exact; 0 if there were none */
    uint64_t max;      /* exact; 0 if there were none */
    uint64_t buckets[SLUICE_HISTOGRAM_BUCKETS];
};

/*
 * Writes the histogram of an operation, enum sluice_opcode: of a channel; of all peers of a
 * multichannel together, including removed ones; or of one peer. Set histogram->size first (see
 * sluice(7)). -EINVAL: not such an object, no such peer, no such operation, NULL, or too small a
 * size. -E2BIG: a size above 65536, here and below. -EOPNOTSUPP: it was prepared without
 * histograms.
 */
SLUICE_EXPORT int sluice_channel_histogram(const struct sluice_channel *channel, uint32_t opcode,
                                           struct sluice_histogram *histogram);
SLUICE_EXPORT int sluice_multichannel_histogram(const struct sluice_multichannel *multichannel,
                                                uint32_t opcode,
                                                struct sluice_histogram *histogram);
SLUICE_EXPORT int sluice_multichannel_peer_histogram(const struct sluice_multichannel *multichannel,
                                                     uint32_t peer, uint32_t opcode,
                                                     struct sluice_histogram *histogram);

/*
 * Empties the histograms of all operations and peers. A request in flight is counted when it
 * completes, with its whole time. -EINVAL: not such an object. -EOPNOTSUPP: it was prepared without
 * histograms.
 */
SLUICE_EXPORT int sluice_channel_histogram_reset(struct sluice_channel *channel);
SLUICE_EXPORT int sluice_multichannel_histogram_reset(struct sluice_multichannel *multichannel);

/*
 * Returns the time in ns that percent, 0 to 100, of the requests took at most. It is the middle of
 * a bucket, which is within 1/64 of the time, and never outside of min and max; for 0 and 100 it is
 * min and max. 0 if there were no requests. -EINVAL: NULL, too small a size, or no such percentage.
 */
SLUICE_EXPORT int64_t sluice_histogram_percentile(const struct sluice_histogram *histogram,
                                                  double percent);

/*
 * Returns the exact mean in ns, rounded. 0 if there were no requests. -EINVAL: NULL, or too small a
 * size.
 */
SLUICE_EXPORT int64_t sluice_histogram_mean(const struct sluice_histogram *histogram);

/*
 * Returns the shortest time in ns that a bucket counts, for programs that draw or export
 * histograms; for SLUICE_HISTOGRAM_BUCKETS the end of the last bucket, 2^40. -EINVAL: above that.
 */
SLUICE_EXPORT int64_t sluice_histogram_bound(uint32_t bucket);

/*
 * Adds the counts of another histogram, which may be of another operation, peer, channel or
 * process. -EINVAL: NULL, or too small a size of one of them.
 */
SLUICE_EXPORT int sluice_histogram_merge(struct sluice_histogram *histogram,
                                         const struct sluice_histogram *other);

#ifdef __cplusplus
}
#endif

#endif
