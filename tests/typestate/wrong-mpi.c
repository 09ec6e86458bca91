/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include <sluice.h>
#include <sluice/mpi.h>

#include "wrong.h"

WRONG(forgotten, "-Wanalyzer-malloc-leak", MPI_Comm comm, struct sluice_exchange_info *info)
{
    struct sluice_exchange *exchange = sluice_exchange_open_mpi(comm);
    return sluice_exchange_query(exchange, info);
}
