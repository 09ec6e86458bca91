/* SPDX-License-Identifier: MIT */
/* Reading rows of pixels, and clustering them: see kmeans.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kmeans.h"

#define NOWHERE UINT32_MAX

__attribute__((format(printf, 1, 2))) static int complain(const char *format, ...)
{
    va_list arguments;

    fputs("12-kmeans: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return -1;
}

/* Takes a number of at most two digits, and the character after it. */
static int take_number(const char **text, int most, char end, uint8_t *number)
{
    const char *at = *text;
    int value = 0;

    while (*at >= '0' && *at <= '9' && at - *text < 2)
        value = 10 * value + (*at++ - '0');
    if (at == *text || value > most || *at != end)
        return -1;
    *text = at + 1;
    *number = (uint8_t)value;
    return 0;
}

static int parse_row(const char *file, uint32_t line, const char *text, uint8_t *pixels,
                     uint8_t *digit)
{
    for (int i = 0; i < PIXELS; i++)
        if (take_number(&text, BRIGHTEST, ',', &pixels[i]) != 0)
            return complain("%s:%" PRIu32 ": pixel %d is not a whole number to %d, with a comma",
                            file, line, i + 1, BRIGHTEST);
    if (take_number(&text, DIGITS - 1, '\0', digit) != 0)
        return complain("%s:%" PRIu32 ": the %d pixels are not followed by one digit", file, line,
                        PIXELS);
    return 0;
}

/* Doubles the room for rows when it is used up. */
static int make_room(struct data *data, uint32_t rows)
{
    size_t room = rows == 0 ? 1024 : 2 * (size_t)rows;
    uint8_t *pixels, *digits;

    if (rows != 0 && (rows < 1024 || (rows & (rows - 1)) != 0))
        return 0;
    pixels = realloc(data->pixels, room * PIXELS);
    if (pixels != NULL)
        data->pixels = pixels;
    digits = realloc(data->digits, room);
    if (digits != NULL)
        data->digits = digits;
    return pixels != NULL && digits != NULL ? 0 : -1;
}

static int parse(const char *name, FILE *file, struct data *data, uint32_t *rows)
{
    char line[4 * STRIDE]; /* longer ones are wrong before they end here */

    for (; fgets(line, sizeof(line), file) != NULL; ++*rows) {
        line[strcspn(line, "\r\n")] = '\0';
        if (*rows == MOST_ROWS)
            return complain("%s: more than %d rows", name, MOST_ROWS);
        if (make_room(data, *rows) != 0)
            return complain("%s: no memory for %" PRIu32 " rows", name, *rows + 1);
        if (parse_row(name, *rows + 1, line, &data->pixels[(size_t)*rows * PIXELS],
                      &data->digits[*rows]) != 0)
            return -1;
    }
    return ferror(file) ? complain("%s: %s", name, strerror(errno)) : 0;
}

int data_load(struct data *data, const char *name, uint32_t *rows)
{
    FILE *file = fopen(name, "r");
    int result;

    *rows = 0;
    if (file == NULL)
        return complain("%s: %s", name, strerror(errno));
    result = parse(name, file, data, rows);
    fclose(file);
    return result;
}

void data_free(struct data *data)
{
    free(data->pixels);
    free(data->digits);
}

static uint32_t squared_distance(const uint8_t *row, const uint32_t *centre)
{
    uint32_t sum = 0; /* at most 64 * (16 * 256)^2, which is 2^30 */

    for (int i = 0; i < PIXELS; i++) {
        int32_t difference = (int32_t)(row[i] * UNIT) - (int32_t)centre[i];

        sum += (uint32_t)(difference * difference);
    }
    return sum;
}

/* Lowers the distances by a new centre, and returns the row with the longest distance. */
static uint32_t farthest(const struct data *data, uint32_t rows, const uint32_t *centre,
                         uint32_t *distances)
{
    uint32_t best = 0;

    for (uint32_t i = 0; i < rows; i++) {
        uint32_t distance = squared_distance(&data->pixels[(size_t)i * PIXELS], centre);

        if (distance < distances[i])
            distances[i] = distance;
        if (distances[i] > distances[best])
            best = i;
    }
    return best;
}

int choose_centres(const struct data *data, const struct plan *plan, uint32_t *centres)
{
    uint32_t *distances = malloc(plan->rows * sizeof(*distances));
    uint32_t row = 0;

    if (distances == NULL)
        return complain("no memory to choose centres");
    memset(distances, 0xff, plan->rows * sizeof(*distances));
    for (uint32_t i = 0; i < plan->clusters; i++) {
        uint32_t *centre = &centres[(size_t)i * PIXELS];

        for (size_t j = 0; j < PIXELS; j++)
            centre[j] = data->pixels[row * PIXELS + j] * UNIT;
        row = farthest(data, plan->rows, centre, distances);
    }
    free(distances);
    return 0;
}

/* Returns the nearest centre; the first of several equally near ones. */
static uint32_t nearest(const struct part *part, const uint8_t *row, uint32_t *distance)
{
    uint32_t best = 0;

    *distance = UINT32_MAX;
    for (uint32_t i = 0; i < part->clusters; i++) {
        uint32_t other = squared_distance(row, &part->centres[(size_t)i * PIXELS]);

        if (other < *distance) {
            *distance = other;
            best = i;
        }
    }
    return best;
}

static uint64_t *changed_in(const struct part *part)
{
    return &part->sums[count_of_sums(part->clusters) - 2];
}

static uint64_t *inertia_in(const struct part *part)
{
    return &part->sums[count_of_sums(part->clusters) - 1];
}

static void assign(const struct part *part)
{
    memset(part->sums, 0, count_of_sums(part->clusters) * sizeof(*part->sums));
    for (uint32_t i = 0; i < part->rows; i++) {
        const uint8_t *row = &part->pixels[(size_t)i * PIXELS];
        uint32_t distance;
        uint32_t cluster = nearest(part, row, &distance);
        uint64_t *sums = &part->sums[(size_t)cluster * STRIDE];

        for (int j = 0; j < PIXELS; j++)
            sums[j] += row[j];
        sums[PIXELS]++;
        *changed_in(part) += cluster != part->assigned[i];
        *inertia_in(part) += distance;
        part->assigned[i] = cluster;
    }
}

/* Moves each centre to the mean of its rows, rounded. A cluster without rows keeps its centre. */
static void move_centres(const struct part *part)
{
    for (uint32_t i = 0; i < part->clusters; i++) {
        const uint64_t *sums = &part->sums[(size_t)i * STRIDE];
        uint64_t count = sums[PIXELS];

        for (size_t j = 0; count != 0 && j < PIXELS; j++)
            part->centres[i * PIXELS + j] = (uint32_t)((sums[j] * UNIT + count / 2) / count);
    }
}

static int cluster_once(struct part *part, const struct plan *plan, add_up *function,
                        void *argument)
{
    memcpy(part->centres, part->start, (size_t)part->clusters * PIXELS * sizeof(*part->centres));
    for (uint32_t i = 0; i < part->rows; i++)
        part->assigned[i] = NOWHERE;
    for (part->iterations = 1;; part->iterations++) {
        assign(part);
        if (function != NULL && function(argument, part) != 0)
            return -1;
        part->inertia = *inertia_in(part);
        if (*changed_in(part) == 0 || part->iterations == plan->iterations)
            return 0;
        move_centres(part);
    }
}

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int cluster(struct part *part, const struct plan *plan, add_up *function, void *argument)
{
    int64_t begin = now();

    for (uint32_t i = 0; i < plan->repeat; i++)
        if (cluster_once(part, plan, function, argument) != 0)
            return -1;
    part->nanoseconds = (now() - begin) / plan->repeat;
    return 0;
}

static uint32_t most_of(const uint32_t counts[DIGITS])
{
    uint32_t most = 0;

    for (int i = 0; i < DIGITS; i++)
        most = counts[i] > most ? counts[i] : most;
    return most;
}

/*
 * Returns how many rows show the digit that most rows of their cluster show. It passes over all
 * rows once per cluster, which takes time but no memory.
 */
static uint32_t count_pure(const struct data *data, const struct plan *plan,
                           const uint32_t *assigned)
{
    uint32_t pure = 0;

    for (uint32_t i = 0; i < plan->clusters; i++) {
        uint32_t counts[DIGITS] = {0};

        for (uint32_t j = 0; j < plan->rows; j++)
            if (assigned[j] == i)
                counts[data->digits[j]]++;
        pure += most_of(counts);
    }
    return pure;
}

static int compare(const struct part *result, const struct part *alone)
{
    if (result->iterations != alone->iterations || result->inertia != alone->inertia)
        return complain("%" PRIu32 " iterations to %" PRIu64 ", alone %" PRIu32 " to %" PRIu64,
                        result->iterations, result->inertia, alone->iterations, alone->inertia);
    for (size_t i = 0; i < (size_t)PIXELS * alone->clusters; i++)
        if (result->centres[i] != alone->centres[i])
            return complain("centre %zu, pixel %zu: %" PRIu32 ", alone %" PRIu32, i / PIXELS + 1,
                            i % PIXELS + 1, result->centres[i], alone->centres[i]);
    for (uint32_t i = 0; i < alone->rows; i++)
        if (result->assigned[i] != alone->assigned[i])
            return complain("row %" PRIu32 ": centre %" PRIu32 ", alone %" PRIu32, i + 1,
                            result->assigned[i] + 1, alone->assigned[i] + 1);
    return 0;
}

/* FNV-1a of numbers instead of bytes, so that it does not depend on byte order. */
static uint64_t checksum(const uint32_t *numbers, size_t count)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < count; i++)
        sum = (sum ^ numbers[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static void report(const struct data *data, const struct plan *plan, const struct part *result,
                   const struct part *alone)
{
    uint32_t pure = count_pure(data, plan, alone->assigned);

    printf("%" PRIu32 " iterations, inertia %.4f, purity %.2f %%, centres %016" PRIx64 "\n",
           result->iterations, (double)result->inertia / (UNIT * UNIT), 100.0 * pure / plan->rows,
           checksum(result->centres, (size_t)PIXELS * result->clusters));
    printf("the same as alone, to the last bit; %.3f ms, alone %.3f ms\n",
           (double)result->nanoseconds / 1e6, (double)alone->nanoseconds / 1e6);
}

int verify(const struct data *data, const struct plan *plan, const struct part *result)
{
    struct part alone = {.pixels = data->pixels,
                         .start = result->start,
                         .centres = calloc(plan->clusters, PIXELS * sizeof(*alone.centres)),
                         .assigned = calloc(plan->rows, sizeof(*alone.assigned)),
                         .sums = calloc(count_of_sums(plan->clusters), sizeof(*alone.sums)),
                         .rows = plan->rows,
                         .clusters = plan->clusters};
    int status = -1;

    if (alone.centres == NULL || alone.assigned == NULL || alone.sums == NULL)
        complain("no memory to do it alone");
    else if (cluster(&alone, plan, NULL, NULL) == 0)
        status = compare(result, &alone);
    if (status == 0)
        report(data, plan, result, &alone);
    free(alone.sums);
    free(alone.assigned);
    free(alone.centres);
    return status;
}
