/* SPDX-License-Identifier: MIT */
/* expect: -Wanalyzer-malloc-leak */
#include <stddef.h>

#include <sluice.h>
#include <sluice/mpi.h>

int open_and_forget(MPI_Comm comm, struct sluice_exchange_info *info)
{
    struct sluice_exchange *exchange = sluice_exchange_open_mpi(comm);

    return sluice_exchange_query(exchange, info);
}
