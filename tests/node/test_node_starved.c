/* SPDX-License-Identifier: MIT */
/*
 * A rank of a lazy node that has no memory for a moment when another one connects to it: that rank
 * tries again, and is connected within its deadline.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "../support/group.h"
#include "../support/pair.h"
#include "../support/process.h"
#include "lazy.h"

#define PLACES 8

/* Requests for memory until the one that is refused; negative: none is. */
static atomic_int until = -1;

#if !SANITIZED
void *__libc_calloc(size_t count, size_t size); /* NOLINT(bugprone-reserved-identifier) */

/* Takes the place of that of the C library, for the library under test as well. */
void *calloc(size_t count, size_t size)
{
    if (atomic_load(&until) < 0 || atomic_fetch_sub(&until, 1) != 0)
        return __libc_calloc(count, size);
    errno = ENOMEM;
    return NULL;
}
#endif

/* The other rank has no memory for one thing that it needs for the connection. */
static void connect_to_starved(struct rank *rank)
{
    const int *place = rank->argument;
    struct sluice_exchange *exchange = rank_exchange_open(rank);
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = made(sluice_pd_alloc(context));
    struct sluice_node *node = made(sluice_node_open(pd, exchange, &lazy, LONG));
    uint32_t other = 1;

    sluice_exchange_close(exchange);
    if (rank->index == other)
        atomic_store(&until, *place);
    rank_barrier(rank);
    if (rank->index != other) {
        int result = sluice_node_reach(node, &other, 1, LONG);
        require(result == 0, "request %d for memory: %s", *place, sluice_last_error());
    }
    rank_barrier(rank);
    atomic_store(&until, -1);
    node_works(node, pd);
    require_ok(sluice_node_shutdown(node, LONG));
    sluice_node_close(node);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

static bool is_sanitized(void)
{
    return SANITIZED != 0;
}

TEST(a_rank_without_memory_is_tried_again, .times = PLACES, .unless = is_sanitized)
{
    group_run(2, connect_to_starved, &_i, 40);
}

int main(void)
{
    return RUN_ON_SOFT("node_starved", {"shm", WIRE_SHM, 60}, {"tcp", WIRE_TCP, 60});
}
