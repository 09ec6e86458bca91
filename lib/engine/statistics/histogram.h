/* SPDX-License-Identifier: MIT */
/* Counting times in the buckets of sluice_histogram. */
#ifndef SLU_ENGINE_HISTOGRAM_H
#define SLU_ENGINE_HISTOGRAM_H

#include <stdint.h>

#include <sluice/histogram.h>

/*
 * From 2^(SLU_HISTOGRAM_BITS + 1) on, each power of two is divided into SLU_HISTOGRAM_PARTS
 * buckets.
 */
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

/* Does what sluice_histogram_merge() does, for two histograms whose size was checked. */
void slu_histogram_add(struct sluice_histogram *histogram, const struct sluice_histogram *other);
/*
 * Clears a histogram. If nothing was counted in it, its memory is not touched, as it may never have
 * been used.
 */
void slu_histogram_clear(struct sluice_histogram *histogram);

#endif
