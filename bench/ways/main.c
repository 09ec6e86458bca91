/* SPDX-License-Identifier: MIT */
/*
 * Runs one way of use; bench/usage runs this program for each row of its table.
 *
 *   bench/ways/ways --list
 *   bench/ways/ways WAY WIRE RANKS SIZE [--seconds S] [--count N] [--warm N] [--before N]
 *
 * WIRE is self, shm, tcp, or the name of an RDMA device. The list has a line for each way: name,
 * group, best way of the same work, plain way, work of MPI, numbers of ranks, sizes in bytes,
 * where it runs (all, self, apart), and the calls that it measures. A run prints one line of
 * JSON: microseconds of an iteration, the median of its parts; processor time of all ranks;
 * the time of posting. With --count, exactly that many iterations run, after --warm others, in
 * one part, for tools that count instructions.
 */
#include <stdio.h>
#include <string.h>

#include "ways.h"

static const struct way *const tables[] = {
    ways_agent,  ways_block,  ways_buffer, ways_connect, ways_echo, ways_exchange, ways_group,
    ways_memory, ways_object, ways_plain,  ways_scope,   ways_solo, ways_stream,
};

#define TABLES (sizeof tables / sizeof tables[0])

static void list_way(const struct way *way)
{
    const char *where = way->needs & SELF ? "self" : way->needs & APART ? "apart" : "all";

    printf("%s\t%s\t%s\t%s\t%s\t", way->name, way->group, way->against ? way->against : "-",
           way->plain ? way->plain : "-", way->mpi ? way->mpi : "-");
    for (int i = 0; i < 4 && way->ranks[i] != 0; i++)
        printf("%s%u", i > 0 ? "," : "", way->ranks[i]);
    printf("\t");
    for (int i = 0; i < 4 && way->sizes[i] != 0; i++)
        printf("%s%u", i > 0 ? "," : "", way->sizes[i]);
    printf("\t%s\t%s\n", where, way->calls ? way->calls : "-");
}

static const struct way *find_way(const char *name)
{
    for (size_t i = 0; i < TABLES; i++)
        for (const struct way *way = tables[i]; way->name != NULL; way++)
            if (name == NULL)
                list_way(way);
            else if (strcmp(way->name, name) == 0)
                return way;
    return NULL;
}

static bool read_number(const char *text, double least, double most, double *number)
{
    char *rest;

    *number = strtod(text, &rest);
    return *rest == '\0' && rest != text && *number >= least && *number <= most;
}

static bool read_options(int argc, char **argv, struct plan *plan)
{
    double number;

    for (int i = 5; i + 1 < argc; i += 2) {
        if (!read_number(argv[i + 1], 0, 1e9, &number))
            return false;
        if (strcmp(argv[i], "--seconds") == 0)
            plan->seconds = number;
        else if (strcmp(argv[i], "--count") == 0)
            plan->count = (uint64_t)number;
        else if (strcmp(argv[i], "--warm") == 0)
            plan->warm = (uint64_t)number;
        else if (strcmp(argv[i], "--before") == 0)
            plan->before = (uint32_t)number;
        else
            return false;
    }
    return argc % 2 == 1;
}

int main(int argc, char **argv)
{
    struct plan plan = {.seconds = 0.1};
    double ranks, size;

    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        find_way(NULL);
        return EXIT_SUCCESS;
    }
    if (argc >= 5)
        plan.way = find_way(argv[1]);
    if (plan.way == NULL || !read_number(argv[3], 1, 16, &ranks) ||
        !read_number(argv[4], 8, 1 << 26, &size) || !read_options(argc, argv, &plan)) {
        fprintf(stderr, "usage: ways --list | ways WAY WIRE RANKS SIZE [OPTION NUMBER]...\n");
        return 2;
    }
    plan.wire = argv[2];
    plan.ranks = (uint32_t)ranks;
    plan.size = (uint32_t)size;
    run_team(&plan);
    return EXIT_SUCCESS;
}
