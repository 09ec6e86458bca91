/* SPDX-License-Identifier: MIT */
/*
 * An MPI program: every rank scatters a block to each rank, itself included, and
 * gathers one from each, all at once. MPI starts the processes and exchanges the
 * endpoints; the blocks go over sluice.
 *
 *   mpirun -n 4 05-mpi-scatter
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

#include <sluice.h>

#define BLOCK ((size_t)1 << 20) /* bytes from each rank to each rank */
#define WORDS (BLOCK / sizeof(uint32_t))
#define TIMES 10
#define DEADLINE SLUICE_S(30)

static int rank, size;

static int complain(const char *what)
{
    fprintf(stderr, "05-mpi-scatter: rank %d: %s: %s\n", rank, what, sluice_last_error());
    return -1;
}

/* Returns the value at an index of the block of one rank for another. */
static uint32_t value_at(int from, int to, size_t index)
{
    return (uint32_t)(from * size + to + 1) * UINT32_C(2654435761) ^ (uint32_t)index;
}

/* Connects all ranks. Rank i needs our endpoint i: an all-to-all of 384 bytes. */
static struct sluice_multichannel *connect_all(struct sluice_pd *pd)
{
    const uint32_t peers = (uint32_t)size;
    struct sluice_endpoint *ours = calloc(peers, sizeof(*ours));
    struct sluice_endpoint *theirs = calloc(peers, sizeof(*theirs));
    struct sluice_prepared_multichannel *prepared = sluice_multichannel_prepare(pd, peers, NULL);
    struct sluice_multichannel *multichannel = NULL;

    if (ours != NULL && theirs != NULL && prepared != NULL &&
        sluice_prepared_multichannel_endpoints(prepared, ours, peers) == 0) {
        MPI_Alltoall(ours, SLUICE_ENDPOINT_BYTES, MPI_BYTE, theirs, SLUICE_ENDPOINT_BYTES, MPI_BYTE,
                     MPI_COMM_WORLD);
        multichannel = sluice_prepared_multichannel_handshake(prepared, theirs, peers);
    } else {
        sluice_prepared_multichannel_free(prepared);
    }
    free(ours);
    free(theirs);
    /* A message that arrives before a rank's handshake would take a second longer. */
    if (multichannel != NULL)
        MPI_Barrier(MPI_COMM_WORLD);
    return multichannel;
}

/* The first half of the memory has a block for each rank, the second one from each. */
static int scatter_and_gather(struct sluice_multichannel *multichannel, struct sluice_mr *mr)
{
    const uint32_t peers = (uint32_t)size;
    struct sluice_request *requests = calloc((size_t)2 * peers, sizeof(*requests));
    struct sluice_completion *completions = calloc((size_t)2 * peers, sizeof(*completions));
    int result = requests != NULL && completions != NULL ? 0 : -ENOMEM;
    double begin;

    for (uint32_t i = 0; i < 2 * peers && result == 0; i++) {
        requests[i].peer = i % peers;
        requests[i].sge_count = 1;
        result = sluice_mr_sge(mr, i * BLOCK, BLOCK, &requests[i].sge);
    }
    begin = MPI_Wtime();
    for (int i = 0; i < TIMES && result == 0; i++)
        result = sluice_multichannel_scatter_gather(multichannel, requests, peers, requests + peers,
                                                    peers, DEADLINE, completions);
    if (result == 0 && rank == 0)
        printf("%d ranks, each scattered %d blocks of %zu bytes %d times: %.0f MB/s per rank\n",
               size, size, BLOCK, TIMES,
               (double)size * BLOCK * TIMES / (MPI_Wtime() - begin) / 1e6);
    if (result != 0)
        complain("scatter and gather");
    for (uint32_t i = 0; i < 2 * peers && result != 0 && completions != NULL; i++)
        if (completions[i].error != 0)
            fprintf(stderr, "05-mpi-scatter: rank %d: %s rank %u: %s\n", rank,
                    i < peers ? "send to" : "receive from", completions[i].peer,
                    sluice_error_class_name(completions[i].error_class));
    free(requests);
    free(completions);
    return result;
}

static int verify(const uint32_t *gathered)
{
    for (int from = 0; from < size; from++)
        for (size_t i = 0; i < WORDS; i++)
            if (gathered[(size_t)from * WORDS + i] != value_at(from, rank, i)) {
                fprintf(stderr, "05-mpi-scatter: rank %d: wrong bytes from rank %d\n", rank, from);
                return -1;
            }
    return 0;
}

static int run(struct sluice_pd *pd, struct sluice_mr *mr)
{
    struct sluice_multichannel *multichannel = connect_all(pd);
    uint32_t *words = sluice_mr_addr(mr);
    int result;

    if (multichannel == NULL)
        return complain("connect");
    for (int to = 0; to < size; to++)
        for (size_t i = 0; i < WORDS; i++)
            words[(size_t)to * WORDS + i] = value_at(rank, to, i);
    result = scatter_and_gather(multichannel, mr);
    if (result == 0)
        result = verify(words + (size_t)size * WORDS);
    if (result == 0)
        MPI_Barrier(MPI_COMM_WORLD); /* closing earlier would break it for the others */
    sluice_multichannel_close(multichannel);
    return result;
}

int main(int argc, char **argv)
{
    struct sluice_context *context;
    struct sluice_pd *pd = NULL;
    struct sluice_mr *mr = NULL;
    int result = -1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    context = sluice_context_open(NULL, NULL);
    if (context != NULL)
        pd = sluice_pd_alloc(context);
    if (pd != NULL)
        mr = sluice_mr_alloc(pd, (size_t)2 * (size_t)size * BLOCK, SLUICE_ACCESS_LOCAL_WRITE);
    if (mr == NULL)
        complain("set up");
    else
        result = run(pd, mr);
    if (result != 0)
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE); /* the others would wait for us */
    sluice_mr_deregister(mr);
    sluice_pd_free(pd);
    sluice_context_close(context);

    if (rank == 0)
        printf("all blocks are right\n");
    MPI_Finalize();
    return EXIT_SUCCESS;
}
