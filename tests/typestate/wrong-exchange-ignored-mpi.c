/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <sluice.h>
#include <sluice/mpi.h>

void open_for_nobody(MPI_Comm comm)
{
    sluice_exchange_open_mpi(comm);
}
