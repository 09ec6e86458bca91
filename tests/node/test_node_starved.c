/* SPDX-License-Identifier: MIT */
/*
 * A rank of a lazy node that has no memory for a moment when another one connects to it, or whose
 * last byte does not come: that rank tries again, and is connected within its deadline. And a rank
 * of any other node that may not open as many files as its connections take: all ranks fail.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../support/group.h"
#include "../support/pair.h"
#include "../support/process.h"
#include "lazy.h"

#define PLACES 8

/* Requests for memory until the one that is refused; negative: none is. */
static atomic_int until = -1;
/* The next single byte that is sent is lost. */
static atomic_bool loses;

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

ssize_t send(int socket, const void *bytes, size_t count, int flags)
{
    if (count == 1 && atomic_exchange(&loses, false))
        return 1;
    return syscall(SYS_sendto, socket, bytes, count, flags, NULL, 0);
}
#endif

/*
 * Rank 0 connects to rank 1, one of which is at fault: it has no memory at one place, or loses its
 * byte.
 */
static void connect_once(struct rank *rank, bool is_at_fault, int place)
{
    struct sluice_exchange *exchange = rank_exchange_open(rank);
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = made(sluice_pd_alloc(context));
    struct sluice_node *node = made(sluice_node_open(pd, exchange, &lazy, LONG));
    uint32_t other = 1;

    sluice_exchange_close(exchange);
    atomic_store(&until, is_at_fault ? place : -1);
    atomic_store(&loses, is_at_fault && place < 0);
    rank_barrier(rank);
    if (rank->index != other) {
        int result = sluice_node_reach(node, &other, 1, LONG);
        require(result == 0, "place %d: %s", place, sluice_last_error());
    }
    rank_barrier(rank);
    require(!atomic_load(&loses), "it has sent no byte%s", "");
    atomic_store(&until, -1);
    node_works(node, pd);
    require_ok(sluice_node_shutdown(node, LONG));
    sluice_node_close(node);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

static void connect_to_starved(struct rank *rank)
{
    connect_once(rank, rank->index == 1, *(const int *)rank->argument);
}

static bool is_sanitized(void)
{
    return SANITIZED != 0;
}

TEST(a_rank_without_memory_is_tried_again, .times = PLACES, .unless = is_sanitized)
{
    group_run(2, connect_to_starved, &_i, 40);
}

static void lose_byte(struct rank *rank)
{
    connect_once(rank, rank->index == *(const uint32_t *)rank->argument, -1);
}

/* It takes the ten seconds that a rank waits for the byte. */
static bool is_short(void)
{
    return short_run() || SANITIZED != 0;
}

TEST(a_rank_whose_byte_is_lost_is_tried_again, .times = 2, .unless = is_short)
{
    group_run(2, lose_byte, &_i, 60);
}

/* Makes the process lack descriptors from now on: it may open this many. */
static void leave_files(rlim_t count)
{
    struct rlimit limit;
    int next = dup(0);

    require(next >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
    close(next);
    limit.rlim_cur = (rlim_t)count_fds() + count;
    require_ok(setrlimit(RLIMIT_NOFILE, &limit));
}

/* All fail at once, and the others hear of it. */
static void lack_files(struct rank *rank)
{
    struct sluice_exchange *exchange = rank_exchange_open(rank);
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = made(sluice_pd_alloc(context));
    int64_t begin = fair_now();

    if (rank->index == 2)
        leave_files(12);
    if (rank->index == 2)
        require_null(sluice_node_open(pd, exchange, NULL, LONG), EMFILE,
                     "rank 2 needs 15 file descriptors to connect 16 ranks ulimit -n");
    else
        require_null(sluice_node_open(pd, exchange, NULL, LONG), ECANCELED,
                     "rank 2 could not open its node (Too many open files): rank 2 needs 15");
    require(fair_now() - begin < LONG / 2, "they waited for the deadline%s", "");
    sluice_exchange_close(exchange);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(all_hear_of_a_rank_without_descriptors)
{
    group_run(16, lack_files, NULL, 60);
}

int main(void)
{
    return RUN_ON_SOFT("node_starved", {"shm", WIRE_SHM, 60}, {"tcp", WIRE_TCP, 60});
}
