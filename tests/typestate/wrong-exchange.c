/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

#ifdef BARRIER_AFTER_CLOSE /* expect: -Wuse-after-free */
int meet_late(void)
{
    struct sluice_exchange *exchange = sluice_exchange_open(NULL, SLUICE_S(1));

    sluice_exchange_close(exchange);
    return sluice_exchange_barrier(exchange, SLUICE_S(1));
}
#endif

#ifdef FORGOTTEN_MPI /* expect: -Wanalyzer-malloc-leak */
#include <sluice/mpi.h>

int open_and_forget(MPI_Comm comm, struct sluice_exchange_info *info)
{
    struct sluice_exchange *exchange = sluice_exchange_open_mpi(comm);

    return sluice_exchange_query(exchange, info);
}
#endif

#ifdef FORGOTTEN_WRAPPED /* expect: -Wanalyzer-malloc-leak */
int wrap_and_forget(const struct sluice_exchange_provider *provider,
                    struct sluice_exchange_info *info)
{
    struct sluice_exchange *exchange = sluice_exchange_wrap(provider, NULL, 0, 2);

    return sluice_exchange_query(exchange, info);
}
#endif

#ifdef FORGOTTEN /* expect: -Wanalyzer-malloc-leak */
int open_and_forget(struct sluice_exchange_info *info)
{
    struct sluice_exchange *exchange = sluice_exchange_open(NULL, SLUICE_S(1));

    return sluice_exchange_query(exchange, info);
}
#endif

#ifdef FREE /* expect: -Wmismatched-dealloc */
void free_exchange(void)
{
    struct sluice_exchange *exchange = sluice_exchange_open(NULL, SLUICE_S(1));

    free(exchange);
}
#endif

#ifdef IGNORED_ALLGATHER /* expect: -Wunused-result */
void gather_blindly(struct sluice_exchange *exchange, const void *own, void *all)
{
    sluice_exchange_allgather(exchange, own, all, 8, SLUICE_S(1));
}
#endif

#ifdef IGNORED_MPI /* expect: -Wunused-result */
#include <sluice/mpi.h>

void open_for_nobody(MPI_Comm comm)
{
    sluice_exchange_open_mpi(comm);
}
#endif

#ifdef IGNORED_OPEN /* expect: -Wunused-result */
void open_blindly(void)
{
    sluice_exchange_open(NULL, SLUICE_S(1));
}
#endif
