/* SPDX-License-Identifier: MIT */
/* A process without descriptors for its connections says so, and connects once it has some. */
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../support/fault.h"

/* Leaves no descriptor. Returns the limit of before. */
static struct rlimit use_up(void)
{
    struct rlimit limit, none;
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);

    require(next >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
    close(next);
    none = limit;
    none.rlim_cur = (rlim_t)next;
    require(setrlimit(RLIMIT_NOFILE, &none) == 0, "%s", strerror(errno));
    return limit;
}

static void meet(struct rank *rank)
{
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = made(sluice_pd_alloc(context));
    struct sluice_endpoint endpoints[2];
    struct sluice_prepared_channel *prepared = prepare_channel(pd, NULL, &endpoints[0]);
    struct sluice_channel *channel;
    struct rlimit limit;
    bool said[2];

    endpoints[1] = endpoints[0];
    rank_exchange(rank, endpoints, endpoints, sizeof endpoints[0]);
    limit = use_up();
    channel = made(sluice_prepared_channel_handshake(prepared, &endpoints[!rank->index]));
    require_result(sluice_channel_wait_connected(channel, SLUICE_MS(100)), -ETIMEDOUT);
    said[0] = said[1] = strstr(sluice_last_error(), "ulimit -n") != NULL;
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
    /* One side dials, and the other one has not tried yet. */
    rank_exchange(rank, said, said, sizeof said[0]);
    require(said[0] || said[1], "no side names the limit");
    require_ok(sluice_channel_wait_connected(channel, DEADLINE));
    rank_barrier(rank);
    sluice_channel_close(channel);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(a_wait_without_descriptors_names_their_limit)
{
    group_run(2, meet, NULL, 60);
}

int main(void)
{
    return RUN_ON_SOFT("shortage", {"shm", WIRE_SHM, 100}, {"tcp", WIRE_TCP, 100});
}
