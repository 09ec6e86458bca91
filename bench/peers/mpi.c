/* SPDX-License-Identifier: MIT */
/*
 * The works of sluice-perf in MPI, for bench/compare, which builds it with each installed
 * MPI:
 *
 *   mpirun -n RANKS mpi WORK BYTES ITERATIONS [dirty]
 *
 * Rank 0 prints one line: work, bytes, ranks, the median in microseconds and messages per
 * second. Times are those of sluice-perf: for send_lat half of a round trip, without the
 * time of writing dirty messages.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 64
#define MOST_RANKS 64
#define WARM_UP 100

struct job {
    int rank, ranks, iterations, dirty;
    int bytes;
    char *out, *in; /* a block for each rank */
    double *times;
    MPI_Win window;
};

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Writes a message, and into it the time that this took. */
static void write_message(const struct job *job, int number)
{
    double begin = MPI_Wtime(), taken;

    if (!job->dirty)
        return;
    memset(job->out, number & 0xff, (size_t)job->bytes);
    taken = MPI_Wtime() - begin;
    if ((size_t)job->bytes >= sizeof taken)
        memcpy(job->out, &taken, sizeof taken);
}

static double writing_of_peer(const struct job *job)
{
    double taken;

    if (!job->dirty || (size_t)job->bytes < sizeof taken)
        return 0;
    memcpy(&taken, job->in, sizeof taken);
    return taken;
}

static double send_lat(const struct job *job, int i)
{
    double begin;

    if (job->rank == 1) {
        MPI_Recv(job->in, job->bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        write_message(job, i);
        MPI_Send(job->out, job->bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    if (job->rank != 0)
        return 0;
    write_message(job, i);
    begin = MPI_Wtime();
    MPI_Send(job->out, job->bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(job->in, job->bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return (MPI_Wtime() - begin - writing_of_peer(job)) / 2;
}

/* Sends a window of messages, answered by one. Returns the time of one message. */
static double msg_rate(const struct job *job, int i)
{
    MPI_Request requests[WINDOW];
    MPI_Status statuses[WINDOW];
    double begin = MPI_Wtime();
    char byte = 0;

    (void)i;
    for (int j = 0; j < WINDOW && job->rank < 2; j++)
        if (job->rank == 0)
            MPI_Isend(job->out, job->bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[j]);
        else
            MPI_Irecv(job->in, job->bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[j]);
    if (job->rank < 2)
        MPI_Waitall(WINDOW, requests, statuses);
    if (job->rank == 0)
        MPI_Recv(&byte, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else if (job->rank == 1)
        MPI_Send(&byte, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    return (MPI_Wtime() - begin) / WINDOW;
}

static double scatter_gather(const struct job *job, int i)
{
    double begin = MPI_Wtime();

    (void)i;
    MPI_Scatter(job->out, job->bytes, MPI_BYTE, job->in, job->bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Gather(job->rank == 0 ? job->out : job->in, job->bytes, MPI_BYTE, job->in, job->bytes,
               MPI_BYTE, 0, MPI_COMM_WORLD);
    return MPI_Wtime() - begin;
}

/* Exchanges a block between each two ranks, in lockstep. */
static double exchange(const struct job *job, int i)
{
    MPI_Request requests[2 * MOST_RANKS];
    MPI_Status statuses[2 * MOST_RANKS];
    double begin = MPI_Wtime();
    int count = 0;

    (void)i;
    for (int rank = 0; rank < job->ranks; rank++)
        if (rank != job->rank)
            MPI_Irecv(job->in + (size_t)rank * (size_t)job->bytes, job->bytes, MPI_BYTE, rank, 0,
                      MPI_COMM_WORLD, &requests[count++]);
    for (int rank = 0; rank < job->ranks; rank++)
        if (rank != job->rank)
            MPI_Isend(job->out + (size_t)rank * (size_t)job->bytes, job->bytes, MPI_BYTE, rank, 0,
                      MPI_COMM_WORLD, &requests[count++]);
    MPI_Waitall(count, requests, statuses);
    return MPI_Wtime() - begin;
}

static double barrier(const struct job *job, int i)
{
    double begin = MPI_Wtime();

    (void)job;
    (void)i;
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime() - begin;
}

static double gather_read(const struct job *job, int i)
{
    double begin = MPI_Wtime();

    (void)i;
    if (job->rank != 0)
        return 0;
    for (int rank = 1; rank < job->ranks; rank++)
        MPI_Get(job->in + (size_t)rank * (size_t)job->bytes, job->bytes, MPI_BYTE, rank, 0,
                job->bytes, MPI_BYTE, job->window);
    MPI_Win_flush_all(job->window);
    return MPI_Wtime() - begin;
}

static const struct work {
    const char *name;
    double (*run)(const struct job *job, int i);
} works[] = {{"send_lat", send_lat}, {"msg_rate", msg_rate}, {"scatter_gather", scatter_gather},
             {"exchange", exchange}, {"barrier", barrier},   {"gather_read", gather_read}};

static void measure(struct job *job, const struct work *work)
{
    double seconds = 0, median;

    MPI_Win_create(job->out, (MPI_Aint)job->bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &job->window);
    MPI_Win_lock_all(0, job->window);
    for (int i = 0; i < WARM_UP && i < job->iterations; i++)
        work->run(job, i);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < job->iterations; i++) {
        job->times[i] = work->run(job, i);
        seconds += job->times[i];
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(job->window);
    MPI_Win_free(&job->window);
    if (job->rank != 0)
        return;
    qsort(job->times, (size_t)job->iterations, sizeof *job->times, compare);
    median = job->times[job->iterations / 2];
    printf("%s %d %d %.4f %.1f\n", work->name, job->bytes, job->ranks, median * 1e6,
           seconds > 0 ? job->iterations / seconds : 0);
}

int main(int argc, char **argv)
{
    const struct work *work = NULL;
    struct job job = {.rank = 0};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
    for (size_t i = 0; argc >= 4 && i < sizeof works / sizeof works[0]; i++)
        if (strcmp(works[i].name, argv[1]) == 0)
            work = &works[i];
    job.bytes = argc >= 4 ? atoi(argv[2]) : 0;
    job.iterations = argc >= 4 ? atoi(argv[3]) : 0;
    job.dirty = argc == 5 && strcmp(argv[4], "dirty") == 0;
    if (work == NULL || job.bytes < 1 || job.iterations < 1 || job.ranks < 2 ||
        job.ranks > MOST_RANKS) {
        fprintf(stderr, "usage: mpirun -n RANKS mpi WORK BYTES ITERATIONS [dirty]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
        return 2;
    }
    job.out = calloc((size_t)job.ranks, (size_t)job.bytes);
    job.in = calloc((size_t)job.ranks, (size_t)job.bytes);
    /* Write the memory: unwritten pages are all the same page of zeros, unlike real messages. */
    if (job.out != NULL)
        memset(job.out, 1, (size_t)job.ranks * (size_t)job.bytes);
    job.times = calloc((size_t)job.iterations, sizeof *job.times);
    if (job.out == NULL || job.in == NULL || job.times == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    measure(&job, work);
    free(job.out);
    free(job.in);
    free(job.times);
    MPI_Finalize();
    return 0;
}
