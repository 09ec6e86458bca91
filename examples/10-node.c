/* SPDX-License-Identifier: MIT */
/*
 * The ranks of a job, however they were started: the exchange finds out from the
 * launcher, or from SLUICE_RANK, SLUICE_RANKS and SLUICE_ROOT, who they are, and
 * the node connects all of them. A host file may name the device of each; else the
 * ranks of a host share its devices. Rank 0 scatters numbers, each rank adds up its
 * share, and rank 0 gathers the sums.
 *
 *   mpirun -n 4 10-node
 *   srun -n 4 10-node
 *
 * If nothing says which rank this is, it is the only one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <sluice.h>

#define NUMBERS UINT64_C(10000) /* for each rank */
#define BLOCK (NUMBERS * sizeof(uint64_t))
#define DEADLINE SLUICE_S(60)

/* What a rank works with. Memory: its share, its sum; and of rank 0 also those of all. */
struct job {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_node *node;
    struct sluice_mr *mr;
    uint32_t rank, ranks;
};

static int complain(const char *what)
{
    fprintf(stderr, "10-node: %s: %s\n", what, sluice_last_error());
    return -1;
}

static struct sluice_exchange *open_exchange(void)
{
    const struct sluice_exchange_attr alone = {
        .size = sizeof(alone), .kind = SLUICE_EXCHANGE_TCP, .rank = 0, .ranks = 1};
    struct sluice_exchange *exchange = sluice_exchange_open(NULL, DEADLINE);

    if (exchange == NULL && errno == ENOENT)
        exchange = sluice_exchange_open(&alone, DEADLINE);
    return exchange;
}

/* On the device that the host file names for this rank, or else on the nearest one. */
static int open_device(struct job *job, const struct sluice_exchange *exchange)
{
    struct sluice_exchange_info info = {.size = sizeof(info)};

    if (sluice_exchange_query(exchange, &info) != 0)
        return complain("ask the exchange");
    job->context = sluice_context_open(info.device[0] != '\0' ? info.device : NULL, NULL);
    if (job->context != NULL)
        job->pd = sluice_pd_alloc(job->context);
    return job->pd != NULL ? 0 : complain("open a device");
}

/* The exchange has done its work when all are connected. */
static int join(struct job *job, struct sluice_exchange *exchange)
{
    if (open_device(job, exchange) == 0) {
        job->node = sluice_node_open(job->pd, exchange, NULL, DEADLINE);
        if (job->node == NULL)
            complain("connect to the other ranks");
    }
    sluice_exchange_close(exchange);
    if (job->node == NULL)
        return -1;
    job->rank = (uint32_t)sluice_node_rank(job->node);
    job->ranks = (uint32_t)sluice_node_ranks(job->node);
    return 0;
}

static size_t sum_offset(void)
{
    return BLOCK;
}

static size_t share_offset(uint32_t rank)
{
    return sum_offset() + sizeof(uint64_t) + rank * BLOCK;
}

static size_t sums_offset(const struct job *job, uint32_t rank)
{
    return share_offset(job->ranks) + rank * sizeof(uint64_t);
}

static uint64_t *number_at(const struct job *job, size_t offset)
{
    return (uint64_t *)(void *)((char *)sluice_mr_addr(job->mr) + offset);
}

/* A list with an element for each rank. */
struct list {
    struct sluice_request *requests;
    struct sluice_sge *sges;
};

static int add(const struct job *job, struct list *list, uint32_t at, uint32_t rank, size_t offset,
               size_t length)
{
    list->requests[at] =
        (struct sluice_request){.peer = rank, .sges = &list->sges[at], .sge_count = 1};
    return sluice_mr_sge(job->mr, offset, length, &list->sges[at]);
}

/* Rank 0 gives to all, and takes its own share like any other. */
static int scatter(const struct job *job, struct list *list)
{
    struct sluice_multichannel *all = sluice_node_multichannel(job->node);
    struct sluice_sge share;

    if (job->rank != 0)
        return sluice_mr_sge(job->mr, 0, BLOCK, &share) != 0 ||
                       sluice_multichannel_receive(all, 0, &share, 1, DEADLINE, NULL) != 0
                   ? complain("receive")
                   : 0;
    for (uint64_t i = 0; i < job->ranks * NUMBERS; i++)
        number_at(job, share_offset(0))[i] = i;
    for (uint32_t i = 0; i < job->ranks; i++)
        if (add(job, list, i, i, share_offset(i), BLOCK) != 0)
            return complain("name the memory");
    if (add(job, list, job->ranks, 0, 0, BLOCK) != 0 ||
        sluice_multichannel_scatter_gather(all, list->requests, job->ranks,
                                           list->requests + job->ranks, 1, DEADLINE, NULL) != 0)
        return complain("scatter");
    return 0;
}

static int gather(const struct job *job, struct list *list)
{
    struct sluice_multichannel *all = sluice_node_multichannel(job->node);
    struct sluice_sge sum;

    if (job->rank != 0)
        return sluice_mr_sge(job->mr, sum_offset(), sizeof(uint64_t), &sum) != 0 ||
                       sluice_multichannel_send(all, 0, &sum, 1, DEADLINE) != 0
                   ? complain("send")
                   : 0;
    for (uint32_t i = 0; i < job->ranks; i++)
        if (add(job, list, i, i, sums_offset(job, i), sizeof(uint64_t)) != 0)
            return complain("name the memory");
    if (add(job, list, job->ranks, 0, sum_offset(), sizeof(uint64_t)) != 0 ||
        sluice_multichannel_scatter_gather(all, list->requests + job->ranks, 1, list->requests,
                                           job->ranks, DEADLINE, NULL) != 0)
        return complain("gather");
    return 0;
}

static int report(const struct job *job)
{
    uint64_t last = job->ranks * NUMBERS - 1, total = 0;

    for (uint32_t i = 0; i < job->ranks; i++) {
        uint64_t sum = *number_at(job, sums_offset(job, i));

        printf("rank %" PRIu32 " of %" PRIu32 ": %" PRIu64 "\n", i, job->ranks, sum);
        total += sum;
    }
    printf("the numbers to %" PRIu64 " add up to %" PRIu64 "\n", last, total);
    return total == last * (last + 1) / 2 ? 0 : -1;
}

static int work(struct job *job, struct list *list)
{
    uint64_t *share = sluice_mr_addr(job->mr), sum = 0;

    if (scatter(job, list) != 0)
        return -1;
    for (uint64_t i = 0; i < NUMBERS; i++)
        sum += share[i];
    *number_at(job, sum_offset()) = sum;
    if (gather(job, list) != 0 || (job->rank == 0 && report(job) != 0))
        return -1;
    /* Who closes at once would be lost to those who are still at work. */
    return sluice_node_shutdown(job->node, DEADLINE) == 0 ? 0 : complain("shut down");
}

static int run(struct job *job)
{
    struct list list = {.requests = calloc(job->ranks + 1, sizeof(*list.requests)),
                        .sges = calloc(job->ranks + 1, sizeof(*list.sges))};
    size_t length = job->rank == 0 ? sums_offset(job, job->ranks) : share_offset(0);
    int result = -1;

    job->mr = sluice_mr_alloc(job->pd, length, SLUICE_ACCESS_LOCAL_WRITE);
    if (job->mr == NULL)
        complain("allocate memory");
    else if (list.requests != NULL && list.sges != NULL)
        result = work(job, &list);
    free(list.sges);
    free(list.requests);
    return result;
}

int main(void)
{
    struct job job = {.node = NULL};
    struct sluice_exchange *exchange = open_exchange();
    int result = -1;

    if (exchange == NULL)
        complain("find the other ranks");
    else if (join(&job, exchange) == 0)
        result = run(&job);
    sluice_node_close(job.node);
    sluice_mr_deregister(job.mr);
    sluice_pd_free(job.pd);
    sluice_context_close(job.context);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
