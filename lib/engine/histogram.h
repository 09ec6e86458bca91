/* SPDX-License-Identifier: MIT */
/* Counting times in the buckets of sluice_histogram. */
#ifndef SLU_ENGINE_HISTOGRAM_H
#define SLU_ENGINE_HISTOGRAM_H

#include <stdint.h>

#include <sluice/histogram.h>

/* From so many powers of two on a bucket has several times. */
#define SLU_HISTOGRAM_BITS 5
#define SLU_HISTOGRAM_PARTS (1u << SLU_HISTOGRAM_BITS)

static inline uint32_t slu_histogram_bucket(uint64_t time)
{
    uint32_t octave;
    uint64_t bucket;

    if (time < 2 * SLU_HISTOGRAM_PARTS)
        return (uint32_t)time;
    octave = 63 - (uint32_t)__builtin_clzll(time) - SLU_HISTOGRAM_BITS;
    bucket = (uint64_t)octave * SLU_HISTOGRAM_PARTS + (time >> octave);
    return bucket < SLUICE_HISTOGRAM_BUCKETS ? (uint32_t)bucket : SLUICE_HISTOGRAM_BUCKETS - 1;
}

static inline void slu_histogram_count(struct sluice_histogram *histogram, uint64_t time)
{
    if (histogram->count == 0 || time < histogram->min)
        histogram->min = time;
    if (time > histogram->max)
        histogram->max = time;
    histogram->count++;
    histogram->sum += time;
    histogram->buckets[slu_histogram_bucket(time)]++;
}

/* sluice_histogram_merge() of two whose size is right. */
void slu_histogram_add(struct sluice_histogram *histogram, const struct sluice_histogram *other);
/* What was never counted in is not touched: its memory may never have been used. */
void slu_histogram_clear(struct sluice_histogram *histogram);

#endif
