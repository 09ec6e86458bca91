/* SPDX-License-Identifier: MIT */
/* The public functions on a histogram, and sums of histograms. */
#include "config.h"

#include "engine/statistics/histogram.h"

#include <errno.h>
#include <string.h>

#include "base/attr.h"
#include "base/misuse.h"

/* The upper bound of the buckets. The last bucket also counts longer times. */
#define END (UINT64_C(1) << 40)
_Static_assert(SLUICE_HISTOGRAM_BUCKETS ==
                   SLU_HISTOGRAM_PARTS * (40 - SLU_HISTOGRAM_BITS) + SLU_HISTOGRAM_PARTS,
               "buckets up to the end");

void slu_histogram_add(struct sluice_histogram *histogram, const struct sluice_histogram *other)
{
    if (other->count == 0)
        return;
    if (histogram->count == 0 || other->min < histogram->min)
        histogram->min = other->min;
    if (other->max > histogram->max)
        histogram->max = other->max;
    histogram->count += other->count;
    histogram->sum += other->sum;
    for (uint32_t i = 0; i < SLUICE_HISTOGRAM_BUCKETS; i++)
        histogram->buckets[i] += other->buckets[i];
}

void slu_histogram_clear(struct sluice_histogram *histogram)
{
    if (histogram->count > 0)
        memset(histogram, 0, sizeof *histogram);
}

static uint64_t bucket_begin(uint32_t bucket)
{
    uint32_t octave = bucket / SLU_HISTOGRAM_PARTS;

    if (octave < 2)
        return bucket;
    octave--;
    return (uint64_t)(bucket - octave * SLU_HISTOGRAM_PARTS) << octave;
}

static int check(const struct sluice_histogram *histogram)
{
    return SLU_INFO_CHECK(sluice_histogram, histogram);
}

/*
 * Returns the middle of the times in a bucket, cut to the least and greatest time that were
 * counted.
 */
static uint64_t bucket_middle(const struct sluice_histogram *histogram, uint32_t bucket)
{
    uint64_t begin = bucket_begin(bucket);
    uint64_t time = begin + (bucket_begin(bucket + 1) - 1 - begin) / 2;

    if (time < histogram->min)
        return histogram->min;
    return time > histogram->max || bucket == SLUICE_HISTOGRAM_BUCKETS - 1 ? histogram->max : time;
}

int64_t sluice_histogram_percentile(const struct sluice_histogram *histogram, double percent)
{
    int error = check(histogram);
    double wanted;
    uint64_t seen = 0;

    if (error < 0)
        return error;
    if (!(percent >= 0 && percent <= 100))
        return slu_misuse(EINVAL, "percent is %g, must be in 0..100", percent);
    if (percent == 0)
        return (int64_t)histogram->min;
    wanted = percent / 100 * (double)histogram->count;
    for (uint32_t i = 0; i < SLUICE_HISTOGRAM_BUCKETS && percent < 100; i++) {
        seen += histogram->buckets[i];
        if (histogram->buckets[i] != 0 && (double)seen >= wanted)
            return (int64_t)bucket_middle(histogram, i);
    }
    return (int64_t)histogram->max;
}

int64_t sluice_histogram_mean(const struct sluice_histogram *histogram)
{
    int error = check(histogram);

    if (error < 0)
        return error;
    return histogram->count > 0
               ? (int64_t)((histogram->sum + histogram->count / 2) / histogram->count)
               : 0;
}

int64_t sluice_histogram_bound(uint32_t bucket)
{
    if (bucket > SLUICE_HISTOGRAM_BUCKETS)
        return slu_misuse(EINVAL, "bucket is %u, must be in 0..%d", bucket,
                          SLUICE_HISTOGRAM_BUCKETS);
    return bucket == SLUICE_HISTOGRAM_BUCKETS ? (int64_t)END : (int64_t)bucket_begin(bucket);
}

int sluice_histogram_merge(struct sluice_histogram *histogram, const struct sluice_histogram *other)
{
    int error = check(histogram);

    if (error == 0)
        error = check(other);
    if (error == 0)
        slu_histogram_add(histogram, other);
    return error;
}
