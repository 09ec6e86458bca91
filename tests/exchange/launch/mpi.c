/* SPDX-License-Identifier: MIT */
/*
 * The functions of sluice/mpi.h, for check-launch.sh: each rank prints "rank R of N over MPI".
 *
 *   mpi [beside | threads]
 *
 * With "beside" it is a program that also opens exchanges over the launcher's PMI-1
 * server, which MPI_Init() still finds as it wants it, and which is left to MPI then.
 * With "threads" MPI is initialised for all threads, and another one uses the exchange.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>
#include <sluice.h>

/* Makes allocations of sluice/mpi.h fail. */
static bool poor;

static void *allocate(size_t size)
{
    return poor ? NULL : malloc(size);
}

#define malloc allocate
#include <sluice/mpi.h>
#undef malloc

#define LIMIT SLUICE_S(60)
#define MOST 64

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "%s: errno %d, %s\n", what, errno, sluice_last_error());
    exit(1);
}

static void refuse(MPI_Comm comm, const char *when)
{
    errno = 0;
    if (sluice_exchange_open_mpi(comm) || errno != EINVAL) {
        die(when);
    }
}

static void check_calls(struct sluice_exchange *exchange, const struct sluice_exchange_info *info)
{
    uint32_t to[MOST], from[MOST];
    uint32_t own = info->rank;
    if (sluice_exchange_allgather(exchange, &own, from, sizeof(own), LIMIT) < 0) {
        die("allgather");
    }
    for (uint32_t i = 0; i < info->ranks; i++) {
        if (from[i] != i) {
            die("what allgather brought");
        }
        to[i] = info->rank * 1000 + i;
    }
    if (sluice_exchange_alltoall(exchange, to, from, sizeof(own), LIMIT) < 0) {
        die("alltoall");
    }
    for (uint32_t i = 0; i < info->ranks; i++) {
        if (from[i] != i * 1000 + info->rank) {
            die("what alltoall brought");
        }
    }
    if (sluice_exchange_barrier(exchange, LIMIT) < 0) {
        die("barrier");
    }
}

static void open_beside(void)
{
    for (int i = 0; i < 2; i++) {
        struct sluice_exchange *exchange = sluice_exchange_open(NULL, LIMIT);
        if (!exchange || sluice_exchange_barrier(exchange, LIMIT) < 0) {
            die("an exchange before MPI_Init()");
        }
        sluice_exchange_close(exchange);
    }
}

static void refuse_beside(const char *when)
{
    errno = 0;
    if (sluice_exchange_open(NULL, LIMIT) || errno != EINVAL ||
        !strstr(sluice_last_error(), "sluice_exchange_open_mpi()")) {
        die(when);
    }
}

/*
 * If MPI fails to duplicate a communicator, the open fails, and the error handler of the
 * communicator is unchanged.
 */
static int refuse_copy(MPI_Comm comm, int keyval, void *extra, void *value, void *copy, int *flag)
{
    (void)comm;
    (void)keyval;
    (void)extra;
    (void)value;
    (void)copy;
    *flag = 0;
    return MPI_ERR_OTHER;
}

static void check_failing_copy(void)
{
    static int value;
    MPI_Comm comm;
    MPI_Errhandler handler;
    int keyval;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_keyval(refuse_copy, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(comm, keyval, &value);
    errno = 0;
    if (sluice_exchange_open_mpi(comm) || errno != ECONNRESET) {
        die("a communicator that cannot be duplicated");
    }
    MPI_Comm_get_errhandler(comm, &handler);
    if (handler != MPI_ERRORS_ARE_FATAL) {
        die("the error handler of the communicator");
    }
    MPI_Errhandler_free(&handler);
    MPI_Comm_free_keyval(&keyval);
    MPI_Comm_free(&comm);
}

/* If one rank lacks memory, the open fails on all ranks, which then open the exchange again. */
static void check_poor_rank(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    poor = rank == 1;
    errno = 0;
    if (sluice_exchange_open_mpi(MPI_COMM_WORLD) || errno != ENOMEM) {
        die("a rank that has no memory");
    }
    poor = false;
}

static void *use_elsewhere(void *allowed)
{
    int error = allowed ? 0 : -EPERM;
    struct sluice_exchange *exchange = sluice_exchange_open_mpi(MPI_COMM_WORLD);
    if (allowed ? !exchange : exchange || errno != EPERM) {
        die("open in another thread");
    }
    if (exchange && sluice_exchange_barrier(exchange, LIMIT) != error) {
        die("a barrier in another thread");
    }
    sluice_exchange_close(exchange);
    return NULL;
}

static void *call_elsewhere(void *exchange)
{
    if (sluice_exchange_barrier(exchange, LIMIT) != -EPERM) {
        die("a barrier in a thread that may not call MPI");
    }
    return NULL;
}

static void run_elsewhere(void *(*function)(void *argument), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, function, argument) != 0 || pthread_join(thread, NULL) != 0) {
        die("a thread");
    }
}

static void check_threads(bool allowed)
{
    static char yes;
    run_elsewhere(use_elsewhere, allowed ? &yes : NULL);
    if (allowed) {
        return;
    }
    struct sluice_exchange *exchange = sluice_exchange_open_mpi(MPI_COMM_WORLD);
    if (!exchange) {
        die("open in the main thread");
    }
    run_elsewhere(call_elsewhere, exchange);
    sluice_exchange_close(exchange);
}

/* Initializes MPI. Returns whether other threads may call MPI as well. */
static bool init(int *argc, char ***argv, bool threads)
{
    int level = MPI_THREAD_SINGLE;
    if (threads) {
        MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
        if (level < MPI_THREAD_SERIALIZED) {
            die("an MPI for several threads");
        }
    } else {
        MPI_Init(argc, argv);
        MPI_Query_thread(&level);
    }
    return level >= MPI_THREAD_SERIALIZED;
}

int main(int argc, char **argv)
{
    bool threads = argc > 1 && strcmp(argv[1], "threads") == 0;
    bool beside = argc > 1 && strcmp(argv[1], "beside") == 0;
    struct sluice_exchange_info info = {.size = sizeof(info)};
    struct sluice_exchange *exchange;
    struct sluice_exchange *late;
    uint32_t byte;

    refuse(MPI_COMM_WORLD, "before MPI_Init()");
    if (beside) {
        open_beside();
    }
    check_threads(init(&argc, &argv, threads));
    if (beside) {
        refuse_beside("an exchange beside MPI");
    }
    refuse(MPI_COMM_NULL, "MPI_COMM_NULL");
    check_failing_copy();
    check_poor_rank();
    exchange = sluice_exchange_open_mpi(MPI_COMM_WORLD);
    late = sluice_exchange_open_mpi(MPI_COMM_WORLD);
    if (!exchange || !late || sluice_exchange_query(exchange, &info) < 0 || info.ranks > MOST ||
        info.kind != SLUICE_EXCHANGE_OWN) {
        die("open");
    }
    check_calls(exchange, &info);
    sluice_exchange_close(exchange);
    MPI_Finalize();
    if (beside) {
        refuse_beside("an exchange after MPI_Finalize()");
    }
    refuse(MPI_COMM_WORLD, "after MPI_Finalize()");
    if (sluice_exchange_allgather(late, &info.rank, &byte, sizeof(byte), LIMIT) != -ENOTCONN) {
        die("allgather after MPI_Finalize()");
    }
    sluice_exchange_close(late);
    printf("rank %u of %u over MPI\n", info.rank, info.ranks);
    return 0;
}
