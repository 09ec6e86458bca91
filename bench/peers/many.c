/* SPDX-License-Identifier: MIT */
/*
 * The steps of bench/many by MPI, for bench/jobs, which builds it with each installed MPI:
 *
 *   mpirun -n RANKS many
 *
 * open is MPI_Init(), shutdown is MPI_Finalize(). Each rank has the same values as there, and
 * checks them. The number of connections is not known.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "../many_record.h"

#define SECONDS 120

static void stop(const char *what)
{
    fprintf(stderr, "many: %s: wrong result\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void barriers(struct many *many, const char *name, int count)
{
    many_step_begin(many, name, true);
    for (int i = 0; i < count; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    many_step_end(many);
}

static void exchange(struct many *many, const char *name)
{
    const int rank = (int)many->rank, ranks = (int)many->ranks;
    const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    uint64_t own = many->rank, words[2] = {UINT64_MAX, UINT64_MAX};
    MPI_Request requests[4];
    MPI_Status statuses[4];

    many_step_begin(many, name, false);
    MPI_Irecv(&words[0], 8, MPI_BYTE, previous, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&words[1], 8, MPI_BYTE, next, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&own, 8, MPI_BYTE, next, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(&own, 8, MPI_BYTE, previous, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, statuses);
    many_step_end(many);
    if (words[0] != (uint64_t)previous || words[1] != (uint64_t)next)
        stop(name);
}

static void allgather(struct many *many, const char *name)
{
    uint64_t *all = calloc(many->ranks, sizeof *all), own = many->rank;
    int error = all == NULL;

    if (error == 0 && many->rank == 0 && many->file < 0)
        error = many_make_file(many, &own);
    if (error != 0)
        stop(name);
    many_step_begin(many, name, true);
    MPI_Allgather(&own, 8, MPI_BYTE, all, 8, MPI_BYTE, MPI_COMM_WORLD);
    many_step_end(many);
    for (uint32_t rank = 1; rank < many->ranks; rank++)
        if (all[rank] != rank)
            stop(name);
    if (many->file < 0 && many_open_file(many, all[0]) < 0)
        stop(name);
    free(all);
}

static void alltoall(struct many *many, const char *name)
{
    uint32_t *own = calloc(many->ranks, sizeof *own), *all = calloc(many->ranks, sizeof *all);

    if (own == NULL || all == NULL)
        stop(name);
    for (uint32_t rank = 0; rank < many->ranks; rank++)
        own[rank] = many->rank << 16 | rank;
    many_step_begin(many, name, true);
    MPI_Alltoall(own, 4, MPI_BYTE, all, 4, MPI_BYTE, MPI_COMM_WORLD);
    many_step_end(many);
    for (uint32_t rank = 0; rank < many->ranks; rank++)
        if (all[rank] != (rank << 16 | many->rank))
            stop(name);
    free(own);
    free(all);
}

static void work(struct many *many)
{
    barriers(many, "barrier, first", 1);
    barriers(many, "barrier", 1);
    barriers(many, "5 further barriers", 5);
    exchange(many, "neighbours, first");
    exchange(many, "neighbours");
    allgather(many, "allgather, first");
    allgather(many, "allgather");
    many_sample(many, "after the allgathers", 0);
    alltoall(many, "alltoall, first");
    alltoall(many, "alltoall");
    many_sample(many, "after the alltoalls", 0);
}

int main(int argc, char **argv)
{
    struct many many;
    uint32_t *ranks;
    int rank, count, result;

    many_begin(&many, "MPI");
    many_step_begin(&many, "open", false);
    MPI_Init(&argc, &argv);
    many_step_end(&many);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    many.rank = (uint32_t)rank;
    many.ranks = (uint32_t)count;
    work(&many);
    many_step_begin(&many, "shutdown", false);
    MPI_Finalize();
    many_step_end(&many);
    result = many_submit(&many);
    ranks = calloc(many.ranks, sizeof *ranks);
    for (uint32_t i = 0; ranks != NULL && i < many.ranks; i++)
        ranks[i] = i;
    if (result == 0 && rank == 0)
        result = ranks != NULL ? many_print(&many, ranks, many.ranks, SECONDS) : -1;
    free(ranks);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
