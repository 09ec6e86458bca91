/* SPDX-License-Identifier: MIT */
/*
 * Measures a job of many processes on this host, over a lazy node, and checks that each call does
 * what it promises. Rank 0 prints the table.
 *
 *   sluice-launch -q -n N bench/many [--deadline SECONDS]
 *   sluice-launch -q -k -n N bench/many --kill K [--deadline SECONDS]      exits with 3
 *
 * A line of the table has the time of the slowest rank, the median, and the time from the first
 * rank that begins the step to the last one that ends it. A step that connects ranks is done twice.
 * The steps are:
 *
 *   open        sluice_node_open(), by the environment of the launcher
 *   barrier     of all ranks
 *   neighbours  8 bytes to the next and to the previous rank, and as many from each
 *   allgather, alltoall     of 8 and of 4 bytes a rank
 *   shutdown    sluice_node_shutdown() and sluice_node_close()
 *
 * With --kill, K ranks kill themselves before the shutdown. Each of the others then sends to one to
 * three of these ranks, which must fail because the peer is lost. A barrier of the living must
 * work, twice, and a shutdown must fail, because it is of all ranks.
 *
 * Memory is of /proc/self/smaps_rollup, beyond that of the same process at the start of main(): the
 * empty process, with its libraries loaded. Columns are Rss; Pss, in which a page counts as an n-th
 * for n processes; the private pages; the page tables, of VmPTE; and the ranks that a rank is
 * connected to.
 *
 * Each step must have the right result, and no rank may leave a barrier, allgather or alltoall
 * before the last one has entered it. Otherwise the rank that notices exits with 1.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice.h>

#include "many_record.h"

#define MOST_DEAD_ASKED 3

struct job {
    struct many many;
    struct sluice_node *node;
    struct sluice_multichannel *all;
    struct sluice_mr *mr;
    uint64_t *words;                        /* of mr: two to send, two that are received */
    uint32_t *living, *dead;                /* ranks, ascending; those that are to be killed */
    uint32_t rank, ranks, live_count, kill; /* kill: how many are dead */
    int64_t deadline;
};

static int complain(const struct job *job, const char *what, const char *why)
{
    fprintf(stderr, "many: rank %u of %u: %s: %s\n", job->rank, job->ranks, what, why);
    return -1;
}

static int fail(const struct job *job, const char *what)
{
    return complain(job, what, sluice_last_error());
}

/* The ranks that are killed are spread evenly over all but rank 0. */
static uint32_t victim(const struct job *job, uint32_t number)
{
    return 1 + (uint32_t)((uint64_t)number * (job->ranks - 1) / job->kill);
}

static bool is_victim(const struct job *job, uint32_t rank)
{
    for (uint32_t i = 0; i < job->kill; i++)
        if (job->dead[i] == rank)
            return true;
    return false;
}

static int allocate(struct job *job)
{
    job->mr = sluice_mr_alloc(sluice_node_pd(job->node), 4 * sizeof(*job->words),
                              SLUICE_ACCESS_LOCAL_WRITE);
    job->living = calloc(job->ranks, sizeof *job->living);
    job->dead = calloc(job->kill + 1, sizeof *job->dead);
    if (job->mr == NULL || job->living == NULL || job->dead == NULL)
        return fail(job, "allocate memory");
    job->words = sluice_mr_addr(job->mr);
    for (uint32_t i = 0; i < job->kill; i++)
        job->dead[i] = victim(job, i);
    for (uint32_t rank = 0; rank < job->ranks; rank++)
        if (!is_victim(job, rank))
            job->living[job->live_count++] = rank;
    return 0;
}

static int open_node(struct job *job)
{
    const struct sluice_node_attr attr = {.size = sizeof(attr),
                                          .connect = SLUICE_NODE_CONNECT_LAZY};

    many_step_begin(&job->many, "open", true);
    job->node = sluice_node_open(NULL, NULL, &attr, job->deadline);
    many_step_end(&job->many);
    if (job->node == NULL) {
        fprintf(stderr, "many: open: %s\n", sluice_last_error());
        return -1;
    }
    job->rank = job->many.rank = (uint32_t)sluice_node_rank(job->node);
    job->ranks = job->many.ranks = (uint32_t)sluice_node_ranks(job->node);
    job->all = sluice_node_multichannel(job->node);
    if (job->kill + 2 > job->ranks)
        return complain(job, "open", "at least two ranks must be left");
    return allocate(job);
}

static int barriers(struct job *job, const char *name, int count)
{
    int error = 0;

    many_step_begin(&job->many, name, true);
    for (int i = 0; i < count && error == 0; i++)
        error = sluice_node_barrier(job->node, NULL, 0, SLUICE_BARRIER_DEFAULT, job->deadline);
    many_step_end(&job->many);
    return error == 0 ? 0 : fail(job, name);
}

static int name_word(struct job *job, size_t index, uint32_t peer, struct sluice_request *request)
{
    *request = (struct sluice_request){.peer = peer, .sge_count = 1};
    return sluice_mr_sge(job->mr, index * sizeof(*job->words), sizeof(*job->words), &request->sge);
}

static int exchange(struct job *job, const char *name)
{
    const uint32_t next = (job->rank + 1) % job->ranks;
    const uint32_t previous = (job->rank + job->ranks - 1) % job->ranks;
    struct sluice_request sends[2], receives[2];
    int error = 0;

    /* With two ranks, both neighbours are the same: the first send is for its first receive. */
    error |= name_word(job, 0, next, &sends[0]);
    error |= name_word(job, 1, previous, &sends[1]);
    error |= name_word(job, 2, previous, &receives[0]);
    error |= name_word(job, 3, next, &receives[1]);
    job->words[0] = job->words[1] = job->rank;
    job->words[2] = job->words[3] = UINT64_MAX;
    if (error != 0)
        return fail(job, name);
    many_step_begin(&job->many, name, false);
    error =
        sluice_multichannel_scatter_gather(job->all, sends, 2, receives, 2, job->deadline, NULL);
    many_step_end(&job->many);
    if (error != 0)
        return fail(job, name);
    return job->words[2] == previous && job->words[3] == next
               ? 0
               : complain(job, name, "wrong bytes have come");
}

/* Gathers a word of each rank; that of rank 0 names the file of the records. */
static int allgather(struct job *job, const char *name)
{
    uint64_t *all = calloc(job->ranks, sizeof *all), own = job->rank;
    int error = all != NULL ? 0 : complain(job, name, "no memory");

    if (error == 0 && job->rank == 0 && job->many.file < 0)
        error = many_make_file(&job->many, &own);
    if (error == 0) {
        many_step_begin(&job->many, name, true);
        error = sluice_node_allgather(job->node, &own, all, sizeof own, job->deadline);
        many_step_end(&job->many);
        if (error != 0)
            fail(job, name);
    }
    if (error == 0 && job->many.file < 0)
        error = many_open_file(&job->many, all[0]);
    for (uint32_t rank = 1; rank < job->ranks && error == 0; rank++)
        if (all[rank] != rank)
            error = complain(job, name, "wrong bytes have come");
    free(all);
    return error;
}

/* Returns the value that a rank gives another one in an alltoall. */
static uint32_t value_of(uint32_t from, uint32_t to)
{
    return from << 16 | to;
}

static int alltoall(struct job *job, const char *name)
{
    uint32_t *own = calloc(job->ranks, sizeof *own), *all = calloc(job->ranks, sizeof *all);
    int error = own != NULL && all != NULL ? 0 : complain(job, name, "no memory");

    for (uint32_t rank = 0; rank < job->ranks && error == 0; rank++)
        own[rank] = value_of(job->rank, rank);
    if (error == 0) {
        many_step_begin(&job->many, name, true);
        error = sluice_node_alltoall(job->node, own, all, sizeof *own, job->deadline);
        many_step_end(&job->many);
        if (error != 0)
            fail(job, name);
    }
    for (uint32_t rank = 0; rank < job->ranks && error == 0; rank++)
        if (all[rank] != value_of(rank, job->rank))
            error = complain(job, name, "wrong bytes have come");
    free(own);
    free(all);
    return error;
}

static void sample(struct job *job, const char *name)
{
    uint32_t connected = 0;

    for (uint32_t rank = 0; rank < job->ranks; rank++)
        if (rank != job->rank &&
            sluice_multichannel_peer_state(job->all, rank) == SLUICE_STATE_READY)
            connected++;
    many_sample(&job->many, name, connected);
}

/*
 * Lists dead ranks to send to: one that this rank has mostly not used yet, and its neighbours,
 * which it is connected to.
 */
static uint32_t list_dead(const struct job *job, uint32_t dead[MOST_DEAD_ASKED])
{
    const uint32_t next = (job->rank + 1) % job->ranks;
    const uint32_t previous = (job->rank + job->ranks - 1) % job->ranks;
    uint32_t count = 0;

    dead[count++] = job->dead[job->rank % job->kill];
    if (is_victim(job, next) && next != dead[0])
        dead[count++] = next;
    if (is_victim(job, previous) && previous != dead[0] && previous != next)
        dead[count++] = previous;
    return count;
}

/* A send that comes after the loss was noticed is cancelled, and its peer has the cause. */
static int check_lost(const struct job *job, const char *name, uint32_t rank,
                      const struct sluice_completion *ended)
{
    struct sluice_error first = {.size = sizeof(first)};
    int found = sluice_multichannel_peer_error(job->all, rank, &first);

    if (ended->error_class == SLUICE_CLASS_PEER_LOST ||
        (ended->error_class == SLUICE_CLASS_CANCELLED && found == 1 &&
         first.error_class == SLUICE_CLASS_PEER_LOST))
        return 0;
    fprintf(stderr, "many: rank %u of %u: %s: to rank %u: %s, %s: %s\n", job->rank, job->ranks,
            name, rank, ended->error == 0 ? "it has arrived" : strerror(-ended->error),
            sluice_error_class_name(ended->error_class), first.text);
    return -1;
}

static int send_to_dead(struct job *job, const char *name)
{
    struct sluice_request sends[MOST_DEAD_ASKED];
    struct sluice_completion ended[MOST_DEAD_ASKED];
    uint32_t dead[MOST_DEAD_ASKED], count = list_dead(job, dead);
    int error = 0;

    for (uint32_t i = 0; i < count && error == 0; i++)
        error = name_word(job, 0, dead[i], &sends[i]);
    if (error != 0)
        return fail(job, name);
    many_step_begin(&job->many, name, false);
    error = sluice_multichannel_scatter_send(job->all, sends, count, job->deadline, ended);
    many_step_end(&job->many);
    if (error == 0)
        return complain(job, name, "they did not fail");
    for (uint32_t i = 0; i < count; i++)
        if (check_lost(job, name, dead[i], &ended[i]) < 0)
            return -1;
    return 0;
}

static int meet_living(struct job *job, const char *name)
{
    int error;

    many_step_begin(&job->many, name, true);
    error = sluice_node_barrier(job->node, job->living, job->live_count, SLUICE_BARRIER_DEFAULT,
                                job->deadline);
    many_step_end(&job->many);
    return error == 0 ? 0 : fail(job, name);
}

/* A shutdown is of all ranks. Either this rank notices the loss, or another one that has. */
static int shut_down_in_vain(struct job *job, const char *name)
{
    int error;

    many_step_begin(&job->many, name, false);
    error = sluice_node_shutdown(job->node, job->deadline);
    many_step_end(&job->many);
    if (error == -ECONNRESET || error == -ECANCELED)
        return 0;
    return error == 0 ? complain(job, name, "it did not fail") : fail(job, name);
}

/*
 * The shutdown begins when all living ranks have left their barriers: a rank that fails in it would
 * end a barrier of some ranks that others have not left yet.
 */
static int lose_ranks(struct job *job)
{
    if (is_victim(job, job->rank))
        raise(SIGKILL);
    if (send_to_dead(job, "sends to dead ranks fail") < 0 ||
        meet_living(job, "barrier of the living, first") < 0 ||
        meet_living(job, "barrier of the living") < 0 ||
        many_meet(&job->many, job->live_count, (double)job->deadline * 1e-9) < 0)
        return -1;
    return shut_down_in_vain(job, "shutdown, which fails");
}

static int shut_down(struct job *job)
{
    int error;

    many_step_begin(&job->many, "shutdown", true);
    error = sluice_node_shutdown(job->node, job->deadline);
    many_step_end(&job->many);
    return error == 0 ? 0 : fail(job, "shutdown");
}

static int work(struct job *job)
{
    if (open_node(job) < 0 || barriers(job, "barrier, first", 1) < 0 ||
        barriers(job, "barrier", 1) < 0 || barriers(job, "5 further barriers", 5) < 0 ||
        exchange(job, "neighbours, first") < 0 || exchange(job, "neighbours") < 0 ||
        allgather(job, "allgather, first") < 0 || allgather(job, "allgather") < 0)
        return -1;
    sample(job, "after the allgathers");
    if (alltoall(job, "alltoall, first") < 0 || alltoall(job, "alltoall") < 0)
        return -1;
    sample(job, "after the alltoalls");
    if (job->kill == 0)
        return shut_down(job);
    return barriers(job, "barrier, before ranks die", 1) < 0 ? -1 : lose_ranks(job);
}

static void close_node(struct job *job)
{
    sluice_mr_deregister(job->mr);
    many_step_begin(&job->many, "close", false);
    sluice_node_close(job->node);
    many_step_end(&job->many);
}

/* Reads the options. Returns false if they are wrong. */
static bool read_options(struct job *job, int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        char *rest;
        unsigned long value = i + 1 < argc ? strtoul(argv[i + 1], &rest, 10) : 0;

        if (value < 1 || value > SLUICE_MAX_RANKS || *rest != '\0')
            return false;
        if (strcmp(argv[i], "--kill") == 0)
            job->kill = (uint32_t)value;
        else if (strcmp(argv[i], "--deadline") == 0)
            job->deadline = SLUICE_S((int64_t)value);
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct job job = {.deadline = SLUICE_S(120)};
    int result;

    many_begin(&job.many, "sluice");
    if (!read_options(&job, argc, argv)) {
        fprintf(stderr, "usage: sluice-launch [-k] -n RANKS many [--kill K] [--deadline SECONDS]\n"
                        "more than K + 1 ranks, and numbers of at least 1\n");
        return 2;
    }
    result = work(&job);
    close_node(&job);
    if (result == 0)
        result = many_submit(&job.many);
    if (result == 0 && job.rank == 0)
        result = many_print(&job.many, job.living, job.live_count, (double)job.deadline * 1e-9);
    free(job.living);
    free(job.dead);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
