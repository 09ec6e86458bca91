/* SPDX-License-Identifier: MIT */
/* Records of ranks: clocks, memory, the file of rank 0, and the table. */
#include "many_record.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define COUNTER_BYTES ((size_t)4096)

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Returns the sum of the fields of these names, in bytes. Each has a line of its own, in kB. */
static double sum_fields(const char *text, const char *const *names)
{
    double sum = 0;

    for (; *names != NULL; names++) {
        const char *field = strstr(text, *names);

        if (field != NULL)
            sum += 1024 * strtod(field + strlen(*names), NULL);
    }
    return sum;
}

/* Reads a file without memory of the heap. */
static const char *read_text(const char *path, char *text, size_t bytes)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = 0, more = 1;

    while (file >= 0 && more > 0 && (size_t)length < bytes - 1) {
        more = read(file, text + length, bytes - 1 - (size_t)length);
        length += more > 0 ? more : 0;
    }
    if (file >= 0)
        close(file);
    text[length] = '\0';
    return text;
}

static void read_memory(double memory[MANY_COLUMNS])
{
    static const char *const resident[] = {"\nRss:", NULL}, *const share[] = {"\nPss:", NULL},
                             *const private[] = {"\nPrivate_Clean:", "\nPrivate_Dirty:", NULL},
                             *const tables[] = {"\nVmPTE:", NULL};
    char text[4096];

    read_text("/proc/self/smaps_rollup", text, sizeof text);
    memory[MANY_RESIDENT] = sum_fields(text, resident);
    memory[MANY_SHARE] = sum_fields(text, share);
    memory[MANY_PRIVATE] = sum_fields(text, private);
    memory[MANY_TABLES] = sum_fields(read_text("/proc/self/status", text, sizeof text), tables);
    memory[MANY_CONNECTED] = 0;
}

void many_begin(struct many *many, const char *library)
{
    *many = (struct many){.library = library, .file = -1};
    read_memory(many->own.before);
}

/* The file begins with a page for the counter of ranks that have come to many_meet(). */
static off_t place_of(uint32_t rank)
{
    return (off_t)(COUNTER_BYTES + rank * sizeof(struct many_record));
}

int many_make_file(struct many *many, uint64_t *word)
{
    many->file = memfd_create("records of ranks", MFD_CLOEXEC);
    if (many->file < 0 || ftruncate(many->file, place_of(many->ranks)) != 0) {
        perror("many: no file for records");
        return -1;
    }
    *word = (uint64_t)getpid() << 32 | (uint32_t)many->file;
    return 0;
}

int many_open_file(struct many *many, uint64_t word)
{
    char path[64];

    if (many->rank == 0)
        return 0;
    snprintf(path, sizeof path, "/proc/%u/fd/%u", (unsigned)(word >> 32), (unsigned)word);
    many->file = open(path, O_RDWR | O_CLOEXEC);
    if (many->file < 0)
        perror("many: the file of rank 0");
    return many->file < 0 ? -1 : 0;
}

void many_step_begin(struct many *many, const char *name, bool meets)
{
    uint32_t step = many->own.steps;

    if (step == MANY_STEPS)
        abort();
    many->names[step] = name;
    many->meets[step] = meets;
    many->own.spans[step].begin = now();
}

void many_step_end(struct many *many)
{
    many->own.spans[many->own.steps++].end = now();
}

static void pause_for_a_hundredth(void)
{
    nanosleep(&(const struct timespec){.tv_nsec = 10000000}, NULL);
}

int many_meet(struct many *many, uint32_t count, double seconds)
{
    const double end = now() + seconds;
    _Atomic uint32_t *counter =
        mmap(NULL, COUNTER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, many->file, 0);
    uint32_t come;

    if (counter == MAP_FAILED) {
        perror("many: the counter of ranks");
        return -1;
    }
    atomic_fetch_add(counter, 1);
    while (atomic_load(counter) < count && now() < end)
        pause_for_a_hundredth();
    come = atomic_load(counter);
    munmap(counter, COUNTER_BYTES);
    if (come >= count)
        return 0;
    fprintf(stderr, "many: rank %u: only %u of %u ranks have come\n", many->rank, come, count);
    return -1;
}

void many_sample(struct many *many, const char *name, uint32_t connected)
{
    uint32_t sample = many->own.samples++;
    double *memory = many->own.memory[sample];

    if (sample == MANY_SAMPLES)
        abort();
    many->samples[sample] = name;
    read_memory(memory);
    for (int i = 0; i < MANY_COLUMNS; i++)
        memory[i] -= many->own.before[i];
    memory[MANY_CONNECTED] = connected;
}

int many_submit(struct many *many)
{
    const off_t place = place_of(many->rank);
    uint32_t complete = 1;

    if (pwrite(many->file, &many->own, sizeof many->own, place) == (ssize_t)sizeof many->own &&
        pwrite(many->file, &complete, sizeof complete,
               place + (off_t)offsetof(struct many_record, complete)) == (ssize_t)sizeof complete)
        return 0;
    perror("many: the record of a rank");
    return -1;
}

/* Reads the record of a rank once it is complete. */
static int collect(const struct many *many, uint32_t rank, double end, struct many_record *record)
{
    for (;;) {
        if (pread(many->file, record, sizeof *record, place_of(rank)) == (ssize_t)sizeof *record &&
            record->complete == 1 && record->steps == many->own.steps &&
            record->samples == many->own.samples)
            return 0;
        if (now() > end)
            break;
        pause_for_a_hundredth();
    }
    fprintf(stderr, "many: rank %u has written no record, or not that of the same steps\n", rank);
    return -1;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* A table is made of these: records of count ranks, and room to sort as many values. */
struct sheet {
    const struct many *many;
    struct many_record *records;
    double *values;
    uint32_t count;
};

static int print_step(const struct sheet *sheet, uint32_t step)
{
    double first = 0, last = 0, begun = 0, ended = 0;

    for (uint32_t i = 0; i < sheet->count; i++) {
        const struct many_span *span = &sheet->records[i].spans[step];

        sheet->values[i] = span->end - span->begin;
        first = i == 0 || span->begin < first ? span->begin : first;
        begun = i == 0 || span->begin > begun ? span->begin : begun;
        ended = i == 0 || span->end < ended ? span->end : ended;
        last = i == 0 || span->end > last ? span->end : last;
    }
    qsort(sheet->values, sheet->count, sizeof *sheet->values, compare);
    printf("%-38s %9.4f s %9.4f s %9.4f s\n", sheet->many->names[step],
           sheet->values[sheet->count - 1], sheet->values[sheet->count / 2], last - first);
    if (!sheet->many->meets[step] || begun <= ended)
        return 0;
    fprintf(stderr, "many: %s: a rank ended it %.6f s before the last one began\n",
            sheet->many->names[step], begun - ended);
    return -1;
}

/* Prints the median of each column, or the largest value. */
static void print_memory(const struct sheet *sheet, uint32_t sample, bool largest)
{
    char name[64];

    snprintf(name, sizeof name, "%s, %s", sheet->many->samples[sample],
             largest ? "largest" : "median");
    printf("%-38s", name);
    for (int column = 0; column < MANY_COLUMNS; column++) {
        double value;

        for (uint32_t i = 0; i < sheet->count; i++)
            sheet->values[i] = sheet->records[i].memory[sample][column];
        qsort(sheet->values, sheet->count, sizeof *sheet->values, compare);
        value = sheet->values[largest ? sheet->count - 1 : sheet->count / 2];
        if (column == MANY_CONNECTED)
            printf(" %9.0f\n", value);
        else
            printf(" %9.3f", 1e-6 * value);
    }
}

static int print_sheet(const struct sheet *sheet)
{
    const struct many *many = sheet->many;
    char head[64];
    int result = 0;

    snprintf(head, sizeof head, "%u of %u ranks, %s", sheet->count, many->ranks, many->library);
    printf("%-38s %11s %11s %11s\n", head, "slowest", "median", "all of them");
    for (uint32_t step = 0; step < many->own.steps; step++)
        result |= print_step(sheet, step);
    snprintf(head, sizeof head, "MB beyond the %.1f of an empty process",
             1e-6 * many->own.before[MANY_RESIDENT]);
    printf("%-38s %9s %9s %9s %9s %9s\n", head, "resident", "its share", "private", "tables",
           "connected");
    for (uint32_t sample = 0; sample < many->own.samples; sample++) {
        print_memory(sheet, sample, false);
        print_memory(sheet, sample, true);
    }
    fflush(stdout);
    return result;
}

int many_print(const struct many *many, const uint32_t *ranks, uint32_t count, double seconds)
{
    const double end = now() + seconds;
    struct sheet sheet = {.many = many,
                          .count = count,
                          .records = calloc(count, sizeof *sheet.records),
                          .values = calloc(count, sizeof *sheet.values)};
    int result = sheet.records != NULL && sheet.values != NULL ? 0 : -1;

    for (uint32_t i = 0; i < count && result == 0; i++)
        result = collect(many, ranks[i], end, &sheet.records[i]);
    if (result == 0)
        result = print_sheet(&sheet);
    free(sheet.values);
    free(sheet.records);
    return result;
}
