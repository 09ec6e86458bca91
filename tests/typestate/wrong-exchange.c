/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>
#include <sluice/mpi.h>

#include "wrong.h"

WRONG(barrier_after_close, "-Wuse-after-free", void)
{
    struct sluice_exchange *exchange = sluice_exchange_open(NULL, SLUICE_S(1));
    sluice_exchange_close(exchange);
    return sluice_exchange_barrier(exchange, SLUICE_S(1));
}

WRONG(forgotten_wrapped, "-Wanalyzer-malloc-leak", const struct sluice_exchange_provider *provider,
      struct sluice_exchange_info *info)
{
    struct sluice_exchange *exchange = sluice_exchange_wrap(provider, NULL, 0, 2);
    return sluice_exchange_query(exchange, info);
}

WRONG(forgotten, "-Wanalyzer-malloc-leak", struct sluice_exchange_info *info)
{
    struct sluice_exchange *exchange = sluice_exchange_open(NULL, SLUICE_S(1));
    return sluice_exchange_query(exchange, info);
}

WRONG(free, "-Wmismatched-dealloc", void)
{
    struct sluice_exchange *exchange = sluice_exchange_open(NULL, SLUICE_S(1));
    free(exchange);
}

WRONG(ignored_allgather, "-Wunused-result", struct sluice_exchange *exchange, const void *own,
      void *all)
{
    sluice_exchange_allgather(exchange, own, all, 8, SLUICE_S(1));
}

WRONG(ignored_mpi, "-Wunused-result", MPI_Comm comm)
{
    sluice_exchange_open_mpi(comm);
}

WRONG(ignored_open, "-Wunused-result", void)
{
    sluice_exchange_open(NULL, SLUICE_S(1));
}
