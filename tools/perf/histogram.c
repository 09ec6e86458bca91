/* SPDX-License-Identifier: MIT */
/*
 * Histograms: each time below 2048 ticks has a count of its own; above, each power of two is
 * divided into 1024 counts.
 */
#include <stdlib.h>
#include <string.h>

#include "ticks.h"

#define PART_BITS 10
#define PARTS (1U << PART_BITS)
/* Up to 2^48 ticks, which is about a day. */
#define OCTAVES (48 - PART_BITS)
#define PLACES ((OCTAVES + 1) * PARTS)

struct histogram {
    uint64_t count, sum, least, most;
    uint64_t counts[PLACES];
};

struct histogram *histogram_make(void)
{
    return calloc(1, sizeof(struct histogram));
}

void histogram_free(struct histogram *histogram)
{
    free(histogram);
}

void histogram_clear(struct histogram *histogram)
{
    memset(histogram, 0, sizeof *histogram);
}

static uint32_t place_of(uint64_t ticks)
{
    uint32_t octave;
    uint64_t place;

    if (ticks < 2 * PARTS)
        return (uint32_t)ticks;
    octave = 63 - (uint32_t)__builtin_clzll(ticks) - PART_BITS;
    place = (uint64_t)octave * PARTS + (ticks >> octave);
    return place < PLACES ? (uint32_t)place : PLACES - 1;
}

/* Returns the middle of the times that a count covers. */
static double time_of(uint32_t place)
{
    uint32_t octave = place / PARTS;
    uint64_t begin;

    if (octave < 2)
        return place;
    octave--;
    begin = (uint64_t)(place - octave * PARTS) << octave;
    return (double)begin + (double)((UINT64_C(1) << octave) - 1) / 2;
}

void histogram_add(struct histogram *histogram, uint64_t ticks)
{
    if (histogram == NULL)
        return;
    if (histogram->count == 0 || ticks < histogram->least)
        histogram->least = ticks;
    if (ticks > histogram->most)
        histogram->most = ticks;
    histogram->count++;
    histogram->sum += ticks;
    histogram->counts[place_of(ticks)]++;
}

uint64_t histogram_count(const struct histogram *histogram)
{
    return histogram->count;
}

/* Limits a time to the range of the recorded ones. */
static double within(const struct histogram *histogram, double time)
{
    if (time < (double)histogram->least)
        return (double)histogram->least;
    return time > (double)histogram->most ? (double)histogram->most : time;
}

double histogram_quantile(const struct histogram *histogram, double share)
{
    double wanted = share * (double)histogram->count;
    uint64_t seen = 0;

    for (uint32_t place = 0; place < PLACES; place++) {
        seen += histogram->counts[place];
        if (histogram->counts[place] != 0 && (double)seen >= wanted)
            return within(histogram, time_of(place));
    }
    return 0;
}

double histogram_mean(const struct histogram *histogram)
{
    return histogram->count == 0 ? 0 : (double)histogram->sum / (double)histogram->count;
}

double histogram_least(const struct histogram *histogram)
{
    return (double)histogram->least;
}

double histogram_most(const struct histogram *histogram)
{
    return (double)histogram->most;
}
