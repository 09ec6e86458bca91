/* SPDX-License-Identifier: MIT */
/*
 * Clusters handwritten digits: k-means on the ranks of a job.
 *
 *   12-kmeans [--clusters K] [--iterations N] [--repeat N] FILE
 *
 *   sluice-launch -q -n 4 examples/12-kmeans examples/data/digits.csv
 *   mpirun -n 4 examples/12-kmeans examples/data/digits.csv
 *
 * Only rank 0 needs the FILE. Each line has the 64 pixels of an image, 0 to 16, and
 * the digit that it shows. All operations of the ranks are one-sided:
 *
 *   1. Rank 0 writes to each rank its share of the rows, and the first centres.
 *   2. Each rank assigns its rows to the nearest centres, adds up the rows of each
 *      cluster, and writes these sums to all ranks. After a barrier each rank has
 *      the sums of all, and moves the centres. This is repeated until no row changes
 *      its cluster, or for N iterations, by default 300. --repeat runs all of it
 *      several times, for more reliable times.
 *   3. Rank 0 reads from each rank which cluster each of its rows is in.
 *
 * Then rank 0 does the same alone, and compares: the result is the same to the last
 * bit; see kmeans.h. If a rank dies, the others notice it in a write or a barrier, and
 * fail. digits.csv has so few rows that most of the time is spent waiting: more ranks
 * need not be faster.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice.h>

#include "kmeans.h"

#define DEADLINE SLUICE_S(30)

/* The layout of a rank's memory, which is the same on all ranks. */
struct layout {
    size_t slots; /* of one half: the sums of each rank */
    size_t sums, start, centres, assigned, pixels, length;
};

struct job {
    struct sluice_node *node;
    struct sluice_mr *mr;                  /* with that layout */
    struct sluice_peer_remote_mr *regions; /* the same of each rank */
    struct sluice_peer_remote_mr *slots[2];
    struct sluice_request *requests; /* room for lists: two elements for each rank */
    struct sluice_sge *sges;
    struct layout layout;
    struct plan plan;
    struct data data; /* of rank 0 */
    uint32_t rank, ranks;
    uint32_t half; /* of the slots, that the next sums go to */
};

static int fail(const struct job *job, const char *what)
{
    fprintf(stderr, "12-kmeans: rank %" PRIu32 ": %s: %s\n", job->rank, what, sluice_last_error());
    return -1;
}

static int fail_for(const struct job *job, const char *reason)
{
    fprintf(stderr, "12-kmeans: rank %" PRIu32 ": %s\n", job->rank, reason);
    return -1;
}

/* Returns the first row of a rank; its rows end where those of the next rank begin. */
static uint32_t first_row(const struct job *job, uint32_t rank)
{
    return (uint32_t)((uint64_t)job->plan.rows * rank / job->ranks);
}

static uint32_t share(const struct job *job, uint32_t rank)
{
    return first_row(job, rank + 1) - first_row(job, rank);
}

static size_t aligned(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

static void lay_out(struct job *job)
{
    struct layout *layout = &job->layout;
    size_t sums = count_of_sums(job->plan.clusters) * sizeof(uint64_t);
    size_t centres = (size_t)job->plan.clusters * PIXELS * sizeof(uint32_t);
    size_t most = job->plan.rows / job->ranks + 1;

    layout->slots = job->ranks * sums;
    layout->sums = 2 * layout->slots;
    layout->start = layout->sums + sums;
    layout->centres = layout->start + centres;
    layout->assigned = layout->centres + centres;
    layout->pixels = layout->assigned + aligned(most * sizeof(uint32_t));
    layout->length = layout->pixels + most * PIXELS;
}

static void *at(const struct job *job, size_t offset)
{
    return (char *)sluice_mr_addr(job->mr) + offset;
}

/* Fills an element of a list: length bytes of mr from offset on, and the same of a rank. */
static int add(struct job *job, uint32_t element, const struct sluice_mr *mr, size_t offset,
               size_t length, uint32_t rank, size_t remote_offset)
{
    struct sluice_request *request = &job->requests[element];

    *request = (struct sluice_request){.peer = rank, .sges = &job->sges[element], .sge_count = 1};
    if (sluice_mr_sge(mr, offset, length, &job->sges[element]) != 0 ||
        sluice_remote_mr_slice(&job->regions[rank].remote, remote_offset, length,
                               &request->remote) != 0)
        return fail(job, "name the memory");
    return 0;
}

/* Opens the node. Without keepalive an RDMA device reports a dead rank only at the deadline. */
static int join(struct job *job)
{
    const struct sluice_channel_attr channel = {.size = sizeof(channel), .keepalive = SLUICE_S(2)};
    const struct sluice_node_attr attr = {.size = sizeof(attr), .channel = &channel};

    job->node = sluice_node_open(NULL, NULL, &attr, DEADLINE);
    if (job->node == NULL)
        return fail(job, "join the other ranks");
    job->rank = sluice_node_rank(job->node);
    job->ranks = sluice_node_ranks(job->node);
    return 0;
}

/* Reads the file. Returns 0 rows after it has printed what is wrong. */
static uint32_t read_rows(struct job *job, const char *file)
{
    uint32_t rows;

    if (data_load(&job->data, file, &rows) != 0)
        return 0;
    if (rows >= job->plan.clusters)
        return rows;
    fprintf(stderr, "12-kmeans: %s: %" PRIu32 " rows are too few for %" PRIu32 " clusters\n", file,
            rows, job->plan.clusters);
    return 0;
}

/* Sends the plan of rank 0 to all ranks, even without rows, so that they do not wait. */
static int agree(struct job *job, const char *file)
{
    struct plan *plans = calloc(job->ranks, sizeof(*plans));
    int result = 0;

    if (plans == NULL)
        return fail_for(job, "no memory");
    if (job->rank == 0)
        job->plan.rows = read_rows(job, file);
    if (sluice_node_allgather(job->node, &job->plan, plans, sizeof(*plans), DEADLINE) != 0)
        result = fail(job, "learn what to do");
    else if (plans[0].rows == 0)
        result = job->rank == 0 ? -1 : fail_for(job, "rank 0 has no rows");
    job->plan = plans[0];
    free(plans);
    return result;
}

/* Finds the part of each rank's memory to which this rank writes its sums. */
static int find_slots(struct job *job)
{
    size_t sums = job->layout.slots / job->ranks;

    for (uint32_t half = 0; half < 2; half++)
        for (uint32_t i = 0; i < job->ranks; i++) {
            job->slots[half][i].peer = i;
            if (sluice_remote_mr_slice(&job->regions[i].remote,
                                       half * job->layout.slots + job->rank * sums, sums,
                                       &job->slots[half][i].remote) != 0)
                return fail(job, "name the slots");
        }
    return 0;
}

static int allocate(struct job *job)
{
    lay_out(job);
    job->regions = calloc(job->ranks, sizeof(*job->regions));
    job->slots[0] = calloc(job->ranks, sizeof(*job->slots[0]));
    job->slots[1] = calloc(job->ranks, sizeof(*job->slots[1]));
    job->requests = calloc(job->ranks, 2 * sizeof(*job->requests));
    job->sges = calloc(job->ranks, 2 * sizeof(*job->sges));
    if (job->regions == NULL || job->slots[0] == NULL || job->slots[1] == NULL ||
        job->requests == NULL || job->sges == NULL)
        return fail_for(job, "no memory");
    job->mr = sluice_mr_alloc(sluice_node_pd(job->node), job->layout.length,
                              SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE |
                                  SLUICE_ACCESS_REMOTE_READ);
    if (job->mr == NULL)
        return fail(job, "allocate memory");
    if (sluice_node_share_mr(job->node, job->mr, job->regions, DEADLINE) != 0)
        return fail(job, "share the memory");
    return find_slots(job);
}

/* Writes each rank its share; rank 0 has its own already. */
static int write_shares(struct job *job, const struct sluice_mr *pixels)
{
    const struct layout *layout = &job->layout;
    uint32_t count = 0;

    for (uint32_t i = 1; i < job->ranks; i++) {
        size_t rows = share(job, i), centres = layout->centres - layout->start;

        if (add(job, count++, job->mr, layout->start, centres, i, layout->start) != 0 ||
            (rows != 0 && add(job, count++, pixels, (size_t)first_row(job, i) * PIXELS,
                              rows * PIXELS, i, layout->pixels) != 0))
            return -1;
    }
    return sluice_multichannel_scatter_write(sluice_node_multichannel(job->node), job->requests,
                                             count, DEADLINE, NULL) == 0
               ? 0
               : fail(job, "write the rows to the other ranks");
}

/* A barrier: when it returns, the earlier writes of all ranks have arrived. */
static int meet(const struct job *job, const char *what)
{
    return sluice_node_barrier(job->node, NULL, 0, SLUICE_BARRIER_DEFAULT, DEADLINE) == 0
               ? 0
               : fail(job, what);
}

static int scatter(struct job *job, const struct part *part)
{
    struct sluice_mr *pixels;
    int result = 0;

    if (job->rank == 0) {
        if (choose_centres(&job->data, &job->plan, part->start) != 0)
            return -1;
        pixels = sluice_mr_register(sluice_node_pd(job->node), job->data.pixels,
                                    (size_t)job->plan.rows * PIXELS, 0);
        result = pixels != NULL ? write_shares(job, pixels) : fail(job, "register the rows");
        sluice_mr_deregister(pixels);
    }
    return result == 0 ? meet(job, "wait for the rows") : -1;
}

/*
 * Adds the sums of all ranks to those of this rank. A fast rank writes its next sums while
 * others still read these, so it writes them to the other half of the slots. The sums after
 * those use this half again, but the barrier in between keeps any rank from getting that far.
 */
static int add_up_ranks(void *argument, struct part *part)
{
    struct job *job = argument;
    struct sluice_multichannel *all = sluice_node_multichannel(job->node);
    const struct sluice_request request = {.sges = job->sges, .sge_count = 1};
    size_t count = count_of_sums(part->clusters);
    const uint64_t *slot = at(job, job->half * job->layout.slots);

    if (sluice_mr_sge(job->mr, job->layout.sums, count * sizeof(*slot), job->sges) != 0 ||
        sluice_multichannel_multicast_write(all, &request, job->slots[job->half], job->ranks,
                                            DEADLINE, NULL) != 0)
        return fail(job, "write the sums to all ranks");
    if (meet(job, "wait for the sums of all ranks") != 0)
        return -1;
    memset(part->sums, 0, count * sizeof(*slot));
    for (uint32_t i = 0; i < job->ranks; i++, slot += count)
        for (size_t j = 0; j < count; j++)
            part->sums[j] += slot[j];
    job->half = 1 - job->half;
    return 0;
}

/* Rank 0 reads the clusters of all rows; the other ranks need not do anything. */
static int gather(struct job *job, const struct part *part, uint32_t *assigned)
{
    size_t length = job->plan.rows * sizeof(*assigned);
    struct sluice_mr *mr =
        sluice_mr_register(sluice_node_pd(job->node), assigned, length, SLUICE_ACCESS_LOCAL_WRITE);
    uint32_t count = 0;
    int result = 0;

    if (mr == NULL)
        return fail(job, "register the result");
    memcpy(assigned, part->assigned, part->rows * sizeof(*assigned));
    for (uint32_t i = 1; result == 0 && i < job->ranks; i++)
        if (share(job, i) != 0)
            result = add(job, count++, mr, first_row(job, i) * sizeof(*assigned),
                         share(job, i) * sizeof(*assigned), i, job->layout.assigned);
    if (result == 0 && sluice_multichannel_gather_read(sluice_node_multichannel(job->node),
                                                       job->requests, count, DEADLINE, NULL) != 0)
        result = fail(job, "read the result of the other ranks");
    sluice_mr_deregister(mr);
    return result;
}

/* Closing without a shutdown would break the connections for ranks still at work. */
static int work(struct job *job, uint32_t *assigned)
{
    struct part part = {.pixels = job->rank == 0 ? job->data.pixels : at(job, job->layout.pixels),
                        .start = at(job, job->layout.start),
                        .centres = at(job, job->layout.centres),
                        .assigned = at(job, job->layout.assigned),
                        .sums = at(job, job->layout.sums),
                        .rows = share(job, job->rank),
                        .clusters = job->plan.clusters};

    if (scatter(job, &part) != 0)
        return -1;
    if (job->rank == 0) {
        printf("%" PRIu32 " rows, %" PRIu32 " clusters, %" PRIu32 " ranks\n", job->plan.rows,
               job->plan.clusters, job->ranks);
        fflush(stdout);
    }
    if (cluster(&part, &job->plan, add_up_ranks, job) != 0 ||
        (job->rank == 0 && gather(job, &part, assigned) != 0))
        return -1;
    if (sluice_node_shutdown(job->node, DEADLINE) != 0)
        return fail(job, "shut down");
    /* The other ranks have ended: rank 0 has all rows, and does the work alone. */
    part.assigned = assigned;
    return job->rank == 0 ? verify(&job->data, &job->plan, &part) : 0;
}

static int run(struct job *job, const char *file)
{
    uint32_t *assigned;
    int result = -1;

    if (join(job) != 0 || agree(job, file) != 0 || allocate(job) != 0)
        return -1;
    assigned = calloc(job->plan.rows, sizeof(*assigned));
    if (assigned != NULL)
        result = work(job, assigned);
    else
        fail_for(job, "no memory");
    free(assigned);
    return result;
}

static void clean_up(struct job *job)
{
    sluice_node_close(job->node);
    sluice_mr_deregister(job->mr);
    data_free(&job->data);
    free(job->sges);
    free(job->requests);
    free(job->slots[1]);
    free(job->slots[0]);
    free(job->regions);
}

/* Parses a whole number from 1 to MOST_ROWS, which is enough for every option. */
static int parse_number(const char *text, uint32_t *number)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0' || value < 1 || value > MOST_ROWS)
        return -2;
    *number = (uint32_t)value;
    return 0;
}

static int parse_options(int argc, char **argv, struct plan *plan)
{
    static const struct option options[] = {{"clusters", required_argument, NULL, 'c'},
                                            {"iterations", required_argument, NULL, 'i'},
                                            {"repeat", required_argument, NULL, 'r'},
                                            {NULL, 0, NULL, 0}};
    int option, result = 0, wrong;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'c')
            wrong = parse_number(optarg, &plan->clusters);
        else if (option == 'i')
            wrong = parse_number(optarg, &plan->iterations);
        else if (option == 'r')
            wrong = parse_number(optarg, &plan->repeat);
        else
            wrong = -1; /* getopt_long() has printed the reason */
        result = result == 0 ? wrong : result;
    }
    if (result == 0 && optind == argc - 1)
        return 0;
    fprintf(stderr, "usage: 12-kmeans [--clusters K] [--iterations N] [--repeat N] FILE\n");
    if (result == -2)
        fprintf(stderr, "K and N are whole numbers from 1 to %d\n", MOST_ROWS);
    else if (result == 0)
        fprintf(stderr, "%s\n", optind == argc ? "FILE is missing" : "there is one FILE alone");
    return -1;
}

int main(int argc, char **argv)
{
    struct job job = {.plan = {.clusters = DIGITS, .iterations = 300, .repeat = 1}};
    int result;

    if (parse_options(argc, argv, &job.plan) != 0)
        return 2;
    result = run(&job, argv[optind]);
    clean_up(&job);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
