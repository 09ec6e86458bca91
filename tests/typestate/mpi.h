/* SPDX-License-Identifier: MIT */
/* Enough of MPI, in the form of Open MPI, to compile sluice/mpi.h where there is none. */
#ifndef TYPESTATE_MPI_H
#define TYPESTATE_MPI_H

typedef struct pretend_comm *MPI_Comm;
typedef struct pretend_datatype *MPI_Datatype;
typedef struct pretend_errhandler *MPI_Errhandler;
typedef struct pretend_op *MPI_Op;

#define MPI_BYTE ((MPI_Datatype)0)
#define MPI_INT ((MPI_Datatype)0)
#define MPI_MIN ((MPI_Op)0)
#define MPI_COMM_NULL ((MPI_Comm)0)
#define MPI_ERRORS_RETURN ((MPI_Errhandler)0)

enum { MPI_SUCCESS, MPI_ERR_OTHER, MPI_ERR_NO_MEM };
enum { MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE };

int MPI_Allgather(const void *own, int own_count, MPI_Datatype own_type, void *all, int count,
                  MPI_Datatype type, MPI_Comm comm);
int MPI_Alltoall(const void *to, int to_count, MPI_Datatype to_type, void *from, int count,
                 MPI_Datatype type, MPI_Comm comm);
int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm);
int MPI_Barrier(MPI_Comm comm);
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy);
int MPI_Comm_free(MPI_Comm *comm);
int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *handler);
int MPI_Comm_rank(MPI_Comm comm, int *rank);
int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler);
int MPI_Comm_size(MPI_Comm comm, int *size);
int MPI_Comm_test_inter(MPI_Comm comm, int *between);
int MPI_Errhandler_free(MPI_Errhandler *handler);
int MPI_Error_class(int error, int *error_class);
int MPI_Finalized(int *finalized);
int MPI_Initialized(int *initialized);
int MPI_Is_thread_main(int *main_thread);
int MPI_Query_thread(int *level);

#endif
