/* SPDX-License-Identifier: MIT */
/*
 * The ranks of a job, started by any launcher ("mpirun -n 4 10-node"): a node opens
 * everything that a rank needs, and connects it to all ranks. Rank 0 scatters numbers, each
 * rank adds up its share, and rank 0 gathers the sums.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <sluice.h>

#define NUMBERS UINT64_C(10000) /* for each rank */
#define BLOCK (NUMBERS * sizeof(uint64_t))
#define DEADLINE SLUICE_S(60)

/* The state of a rank. The memory of rank 0 has room for the shares and sums of all. */
struct job {
    struct sluice_multichannel *all;
    struct sluice_mr *mr;
    struct sluice_request *list; /* one for each rank, and one more */
    uint64_t *share, *sum, *shares, *sums;
    uint32_t rank, ranks;
};

static int complain(const char *what)
{
    fprintf(stderr, "10-node: %s: %s\n", what, sluice_last_error());
    return -1;
}

/* Adds a request: a part of our memory that is sent to a rank, or received from it. */
static int add(const struct job *job, uint32_t at, uint32_t rank, void *place, size_t length)
{
    job->list[at] = (struct sluice_request){.peer = rank, .sge_count = 1};
    return sluice_mr_sge_at(job->mr, place, length, &job->list[at].sge);
}

/* Scatters the shares; rank 0 receives its own like any other rank. */
static int scatter(const struct job *job)
{
    uint32_t sends = job->rank == 0 ? job->ranks : 0;
    int error = add(job, sends, 0, job->share, BLOCK);

    for (uint64_t i = 0; i < sends * NUMBERS; i++)
        job->shares[i] = i;
    for (uint32_t i = 0; i < sends; i++)
        error |= add(job, i, i, job->shares + i * NUMBERS, BLOCK);
    if (error == 0)
        error = sluice_multichannel_scatter_gather(job->all, job->list, sends, job->list + sends, 1,
                                                   DEADLINE, NULL);
    return error;
}

static int gather(const struct job *job)
{
    uint32_t receives = job->rank == 0 ? job->ranks : 0;
    int error = add(job, 0, 0, job->sum, sizeof(*job->sum));

    for (uint32_t i = 0; i < receives; i++)
        error |= add(job, 1 + i, i, &job->sums[i], sizeof(*job->sums));
    if (error == 0)
        error = sluice_multichannel_scatter_gather(job->all, job->list, 1, job->list + 1, receives,
                                                   DEADLINE, NULL);
    return error;
}

static int report(const struct job *job)
{
    uint64_t last = job->ranks * NUMBERS - 1, total = 0;

    for (uint32_t i = 0; i < job->ranks; i++)
        total += job->sums[i];
    printf("the numbers to %" PRIu64 " add up to %" PRIu64 "\n", last, total);
    return total == last * (last + 1) / 2 ? 0 : -1;
}

static int work(struct job *job)
{
    job->share = sluice_mr_addr(job->mr);
    job->sum = job->share + NUMBERS;
    job->shares = job->sum + 1;
    job->sums = job->shares + job->ranks * NUMBERS;
    if (scatter(job) != 0)
        return complain("scatter");
    for (uint64_t i = 0; i < NUMBERS; i++)
        *job->sum += job->share[i];
    if (gather(job) != 0)
        return complain("gather");
    return job->rank == 0 ? report(job) : 0;
}

int main(void)
{
    struct sluice_node *node = sluice_node_open(NULL, NULL, NULL, DEADLINE);
    struct job job = {.all = NULL};
    int result = -1;

    if (node == NULL)
        return complain("join the other ranks") != 0;
    job.all = sluice_node_multichannel(node);
    job.rank = sluice_node_rank(node);
    job.ranks = sluice_node_ranks(node);
    job.list = calloc(job.ranks + 1, sizeof(*job.list));
    job.mr = sluice_mr_alloc(sluice_node_pd(node), (job.ranks + 1) * (BLOCK + sizeof(uint64_t)),
                             SLUICE_ACCESS_LOCAL_WRITE);
    if (job.mr == NULL || job.list == NULL)
        complain("allocate memory");
    else
        result = work(&job);
    /* Shut down first: closing at once would break the connections for ranks still at work. */
    if (result == 0 && sluice_node_shutdown(node, DEADLINE) != 0)
        result = complain("shut down");
    sluice_mr_deregister(job.mr);
    sluice_node_close(node);
    free(job.list);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
