/* SPDX-License-Identifier: MIT */
/*
 * An exchange over the MPI that the program uses anyway. The library is not linked with MPI: these
 * functions are compiled into the program by its own MPI compiler, and sluice.h therefore does not
 * include this header.
 *
 * The calls are collectives of MPI on a duplicate of the communicator. No deadline ends a call: if
 * a rank is missing, it blocks as MPI does, and the state after an error of MPI is up to MPI. The
 * exchange must be used in a thread that may call MPI (below MPI_THREAD_SERIALIZED the main thread)
 * and be closed there, before MPI_Finalize().
 */
#ifndef SLUICE_MPI_H
#define SLUICE_MPI_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <mpi.h>

#include <sluice/exchange.h>
#include <sluice/macros.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Programs must not use names with the prefix sluice_mpi_. */
struct sluice_mpi_state {
    MPI_Comm comm; /* our duplicate; MPI_COMM_NULL: not made yet */
};

/*
 * Checks that this thread may call MPI. 0; -ENOTCONN: not between MPI_Init() and MPI_Finalize();
 * -EPERM: MPI was initialised for its main thread only, and this is another thread.
 */
static inline int sluice_mpi_check(void)
{
    int initialized = 0, finalized = 0, level = MPI_THREAD_SINGLE, main_thread = 0;

    if (MPI_Initialized(&initialized) != MPI_SUCCESS || initialized == 0 ||
        MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0)
        return -ENOTCONN;
    if (MPI_Query_thread(&level) != MPI_SUCCESS)
        return -EPERM;
    if (level >= MPI_THREAD_SERIALIZED)
        return 0;
    if (MPI_Is_thread_main(&main_thread) != MPI_SUCCESS || main_thread == 0)
        return -EPERM;
    return 0;
}

/* Returns the negative errno value for a result of MPI, or 0. */
static inline int sluice_mpi_error(int result)
{
    int error_class = MPI_ERR_OTHER;

    if (result == MPI_SUCCESS)
        return 0;
    MPI_Error_class(result, &error_class);
    return error_class == MPI_ERR_NO_MEM ? -ENOMEM : -ECONNRESET;
}

static inline int sluice_mpi_allgather(void *argument, const void *own, void *all, size_t bytes,
                                       int64_t deadline)
{
    struct sluice_mpi_state *state = (struct sluice_mpi_state *)argument;
    int error = sluice_mpi_check();

    (void)deadline;
    if (error < 0)
        return error;
    return sluice_mpi_error(
        MPI_Allgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, state->comm));
}

static inline int sluice_mpi_alltoall(void *argument, const void *to, void *from, size_t bytes,
                                      int64_t deadline)
{
    struct sluice_mpi_state *state = (struct sluice_mpi_state *)argument;
    int error = sluice_mpi_check();

    (void)deadline;
    if (error < 0)
        return error;
    return sluice_mpi_error(
        MPI_Alltoall(to, (int)bytes, MPI_BYTE, from, (int)bytes, MPI_BYTE, state->comm));
}

static inline int sluice_mpi_barrier(void *argument, int64_t deadline)
{
    struct sluice_mpi_state *state = (struct sluice_mpi_state *)argument;
    int error = sluice_mpi_check();

    (void)deadline;
    if (error < 0)
        return error;
    return sluice_mpi_error(MPI_Barrier(state->comm));
}

/*
 * Frees the duplicate and the state. After MPI_Finalize() there is no communicator to free, and a
 * thread that may not call MPI leaves the communicator to MPI_Finalize().
 */
static inline void sluice_mpi_close(void *argument)
{
    struct sluice_mpi_state *state = (struct sluice_mpi_state *)argument;

    if (state->comm != MPI_COMM_NULL && sluice_mpi_check() == 0)
        MPI_Comm_free(&state->comm);
    free(state);
}

/*
 * Makes a duplicate whose calls return errors instead of ending the program; errors while it is
 * made are returned as well. Before that, all ranks tell each other whether they are ready, with
 * their memory allocated. -EINVAL: the communicator is between two groups; -ENOMEM: a rank is not
 * ready; or -ENOMEM or -ECONNRESET for an error of MPI.
 */
static inline int sluice_mpi_duplicate(MPI_Comm comm, int ready, MPI_Comm *own)
{
    MPI_Errhandler before;
    int between = 0, all_ready = 0, error;

    if (MPI_Comm_get_errhandler(comm, &before) != MPI_SUCCESS)
        return -ECONNRESET;
    error = sluice_mpi_error(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    if (error == 0)
        error = sluice_mpi_error(MPI_Comm_test_inter(comm, &between));
    if (error == 0 && between != 0)
        error = -EINVAL;
    if (error == 0)
        error = sluice_mpi_error(MPI_Allreduce(&ready, &all_ready, 1, MPI_INT, MPI_MIN, comm));
    if (error == 0 && all_ready == 0)
        error = -ENOMEM;
    if (error == 0)
        error = sluice_mpi_error(MPI_Comm_dup(comm, own));
    MPI_Comm_set_errhandler(comm, before);
    MPI_Errhandler_free(&before);
    if (error == 0)
        MPI_Comm_set_errhandler(*own, MPI_ERRORS_RETURN);
    return error;
}

/*
 * Opens an exchange of all ranks of the communicator; all of them call it. NULL and errno: EINVAL
 * (MPI is not initialised, or finalised; comm is MPI_COMM_NULL or between two groups), EPERM (this
 * thread may not call MPI), ENOMEM (in any rank), ECONNRESET (MPI could not duplicate it), or as
 * sluice_exchange_wrap(). sluice_last_error() has a text only for errors of the last kind. During
 * the call comm has another error handler. (GCC does not follow objects that inline functions
 * return.)
 */
SLUICE_MAYBE_UNUSED SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_exchange_close)
static struct sluice_exchange *sluice_exchange_open_mpi(MPI_Comm comm)
{
    struct sluice_exchange_provider provider = {sizeof(struct sluice_exchange_provider),
                                                0,
                                                sluice_mpi_allgather,
                                                sluice_mpi_alltoall,
                                                sluice_mpi_barrier,
                                                sluice_mpi_close};
    struct sluice_exchange *exchange = NULL;
    struct sluice_mpi_state *state;
    MPI_Comm own = MPI_COMM_NULL;
    int rank = 0, ranks = 0, error = sluice_mpi_check();

    if (error < 0 || comm == MPI_COMM_NULL) {
        errno = error == -EPERM ? EPERM : EINVAL;
        return NULL;
    }
    if (MPI_Comm_rank(comm, &rank) != MPI_SUCCESS || MPI_Comm_size(comm, &ranks) != MPI_SUCCESS) {
        errno = ECONNRESET;
        return NULL;
    }
    /* Allocate all memory before any other rank waits for this one. */
    state = (struct sluice_mpi_state *)malloc(sizeof *state);
    if (state != NULL) {
        state->comm = MPI_COMM_NULL;
        exchange = sluice_exchange_wrap(&provider, state, (uint32_t)rank, (uint32_t)ranks);
        if (exchange == NULL && errno != ENOMEM) { /* the same in all ranks */
            error = errno;
            free(state);
            errno = error;
            return NULL;
        }
    }
    error = sluice_mpi_duplicate(comm, exchange != NULL, &own);
    if (error == 0) {
        state->comm = own;
        return exchange;
    }
    if (exchange != NULL)
        sluice_exchange_close(exchange); /* frees the state */
    else
        free(state);
    errno = -error;
    return NULL;
}

#ifdef __cplusplus
}
#endif

#endif
