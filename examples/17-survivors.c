/* SPDX-License-Identifier: MIT */
/*
 * Ranks that go on when others die: in each round every rank sends a number to all living ranks,
 * and adds up what it receives. Some ranks kill themselves; the others leave them out and finish.
 *
 *   sluice-launch --keep-going -n 4 17-survivors [VICTIM...]
 *
 * Each VICTIM is a rank that dies, the first one in round 2, the next in round 3, and so on.
 *
 * Here a rank dies between two rounds, so that all others miss it in the same round. A rank that
 * dies during a round may have reached some ranks and not others. If that matters, the living
 * ranks must agree on what counts; see sluice_node_barrier(3).
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <sluice.h>

#define ROUNDS 6
#define DEADLINE SLUICE_S(60)

struct job {
    struct sluice_multichannel *all;
    struct sluice_mr *mr;
    struct sluice_request *list;     /* sends to the living, then receives from them */
    struct sluice_completion *ended; /* one for each request */
    uint32_t *living;                /* ranks, in ascending order */
    uint64_t *own, *others;          /* our number, and that of each rank */
    uint32_t rank, ranks, count;     /* count: of living */
};

static int complain(const char *what)
{
    fprintf(stderr, "17-survivors: %s: %s\n", what, sluice_last_error());
    return -1;
}

static int name_requests(const struct job *job)
{
    struct sluice_request *sends = job->list, *receives = job->list + job->count;
    int error = 0;

    for (uint32_t i = 0; i < job->count; i++) {
        uint64_t *place = &job->others[job->living[i]];

        sends[i] = receives[i] = (struct sluice_request){.peer = job->living[i], .sge_count = 1};
        error |= sluice_mr_sge_at(job->mr, job->own, sizeof(*job->own), &sends[i].sge);
        error |= sluice_mr_sge_at(job->mr, place, sizeof(*place), &receives[i].sge);
    }
    return error;
}

/* Returns whether a request failed because its rank is gone; any other failure is our own. */
static bool is_lost(const struct sluice_completion *ended)
{
    return ended->error != 0 && ended->error_class == SLUICE_CLASS_PEER_LOST;
}

/* Leaves out the ranks that are lost, and adds up what came from the others. */
static int take_stock(struct job *job, uint32_t round)
{
    const struct sluice_completion *sent = job->ended, *received = job->ended + job->count;
    uint64_t sum = 0, expected = 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < job->count; i++) {
        uint32_t rank = job->living[i];

        if (is_lost(&received[i]) || is_lost(&sent[i])) {
            printf("rank %" PRIu32 " lost rank %" PRIu32 " in round %" PRIu32 "\n", job->rank, rank,
                   round);
            continue;
        }
        if (received[i].error != 0 || sent[i].error != 0)
            return complain("give and take");
        sum += job->others[rank];
        expected += round * 1000 + rank;
        job->living[count++] = rank;
    }
    job->count = count;
    return sum == expected ? 0 : complain("add up");
}

/* Plays a round. All requests have ended when the call returns, even with an error. */
static int play_round(struct job *job, uint32_t round)
{
    int error;

    *job->own = round * 1000 + job->rank;
    if (name_requests(job) != 0)
        return complain("name memory");
    error = sluice_multichannel_scatter_gather(
        job->all, job->list, job->count, job->list + job->count, job->count, DEADLINE, job->ended);
    /* Nothing was posted, and no completion was written. */
    if (error == -EINVAL || error == -ENOMEM)
        return complain("give and take");
    return take_stock(job, round);
}

static int work(struct job *job, struct sluice_node *node, char **victims)
{
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        if (round > 1 && *victims != NULL && strtoul(*victims++, NULL, 10) == job->rank)
            raise(SIGKILL);
        if (play_round(job, round) != 0)
            return -1;
    }
    printf("rank %" PRIu32 " did %d rounds, at the end with %" PRIu32 " of %" PRIu32 " ranks\n",
           job->rank, ROUNDS, job->count, job->ranks);
    /* Closing at once would break the connections for ranks still at work. */
    if (sluice_node_barrier(node, job->living, job->count, SLUICE_BARRIER_DEFAULT, DEADLINE) != 0)
        return complain("wait for the living");
    return 0;
}

static bool allocate(struct job *job, struct sluice_node *node)
{
    job->rank = sluice_node_rank(node);
    job->ranks = job->count = sluice_node_ranks(node);
    job->all = sluice_node_multichannel(node);
    job->mr = sluice_mr_alloc(sluice_node_pd(node), (1 + job->ranks) * sizeof(uint64_t),
                              SLUICE_ACCESS_LOCAL_WRITE);
    job->list = calloc(2 * (size_t)job->ranks, sizeof(*job->list));
    job->ended = calloc(2 * (size_t)job->ranks, sizeof(*job->ended));
    job->living = calloc(job->ranks, sizeof(*job->living));
    if (job->mr == NULL || job->list == NULL || job->ended == NULL || job->living == NULL)
        return false;
    job->own = sluice_mr_addr(job->mr);
    job->others = job->own + 1;
    for (uint32_t i = 0; i < job->ranks; i++)
        job->living[i] = i;
    return true;
}

int main(int argc, char **argv)
{
    /* An RDMA device does not report a dead process: keepalive is needed to detect it. */
    struct sluice_channel_attr channel = {.size = sizeof(channel), .keepalive = SLUICE_S(1)};
    struct sluice_node_attr attr = {.size = sizeof(attr), .channel = &channel};
    struct sluice_node *node = sluice_node_open(NULL, NULL, &attr, DEADLINE);
    struct job job = {.all = NULL};
    int result = -1;

    (void)argc;
    if (node == NULL)
        return complain("join the other ranks") != 0;
    if (!allocate(&job, node))
        complain("allocate memory");
    else
        result = work(&job, node, argv + 1);
    fflush(stdout);
    sluice_mr_deregister(job.mr);
    sluice_node_close(node);
    free(job.living);
    free(job.ended);
    free(job.list);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
