/* SPDX-License-Identifier: MIT */
/*
 * A system that has no memory for what a process sends to its peers over shared memory: connecting
 * goes on once there is memory, nothing spins meanwhile, the end of a peer is noticed, and other
 * work is not held up.
 */
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../support/group.h"
#include "../support/pair.h"
#include "../support/process.h"

#define PEERS 40
#define WAIT SLUICE_MS(400)

static atomic_bool refuses;
static atomic_uint refused;

#if !SANITIZED
/* Takes the place of that of the C library, for the library under test as well. */
ssize_t sendmsg(int socket, const struct msghdr *message, int flags)
{
    if (!atomic_load(&refuses))
        return syscall(SYS_sendmsg, socket, message, flags);
    atomic_fetch_add(&refused, 1);
    errno = ENOBUFS;
    return -1;
}
#endif

static bool is_sanitized(void)
{
    return SANITIZED != 0;
}

struct end {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_multichannel *all;
};

/* Connects peers of this rank and the other one; its messages are refused from the handshake on. */
static void end_open(struct end *end, struct rank *rank, uint32_t peers, bool starves)
{
    struct sluice_endpoint endpoints[PEERS];

    end->context = open_context();
    end->pd = made(sluice_pd_alloc(end->context));
    struct sluice_prepared_multichannel *prepared =
        made(sluice_multichannel_prepare(end->pd, peers, NULL));
    require_ok(sluice_prepared_multichannel_endpoints(prepared, endpoints, peers));
    for (uint32_t i = 0; i < peers; i++) {
        struct sluice_endpoint both[2] = {endpoints[i], endpoints[i]};

        rank_exchange(rank, both, both, sizeof both[0]);
        endpoints[i] = both[!rank->index];
    }
    atomic_store(&refuses, starves);
    end->all = made(sluice_prepared_multichannel_handshake(prepared, endpoints, peers));
}

static void end_close(struct end *end)
{
    sluice_multichannel_close(end->all);
    sluice_pd_free(end->pd);
    sluice_context_close(end->context);
}

/* Waits while messages are refused, and requires that this takes no processor. */
static void stay_starved(void)
{
    int64_t end = fair_now() + DEADLINE, cpu;

    while (atomic_load(&refused) == 0 && fair_now() < end)
        let_pass(SLUICE_MS(1));
    require(atomic_load(&refused) > 0, "nothing was refused%s", "");
    cpu = cpu_used();
    let_pass(WAIT);
    require(cpu_used() - cpu < WAIT / 4, "%lld us", (long long)(cpu_used() - cpu) / 1000);
}

/* Either side may be the one that makes the memory: which is random. */
static void join_late(struct rank *rank)
{
    for (int i = 0; i < 4; i++) {
        struct end end;

        end_open(&end, rank, 1, rank->index == 0);
        if (rank->index == 0) {
            stay_starved();
            atomic_store(&refuses, false);
            atomic_store(&refused, 0);
            require_ok(sluice_multichannel_send(end.all, 0, NULL, 0, DEADLINE));
        } else {
            require_ok(sluice_multichannel_receive(end.all, 0, NULL, 0, DEADLINE, NULL));
        }
        rank_barrier(rank);
        end_close(&end);
    }
}

TEST(a_starved_side_joins_late, .unless = is_sanitized)
{
    group_run(2, join_late, NULL, 60);
}

/* The peer ends while this side cannot send the message that is due. */
static void lose_peer(struct rank *rank)
{
    for (int i = 0; i < 4; i++) {
        struct end end;

        end_open(&end, rank, 1, rank->index == 0);
        if (rank->index == 0) {
            stay_starved();
            rank_barrier(rank);
            require_result(sluice_multichannel_receive(end.all, 0, NULL, 0, DEADLINE, NULL),
                           -ECONNRESET);
        } else {
            rank_barrier(rank);
        }
        end_close(&end);
        rank_barrier(rank);
        atomic_store(&refused, 0);
    }
}

TEST(a_starved_side_notices_the_end_of_its_peer, .unless = is_sanitized)
{
    group_run(2, lose_peer, NULL, 60);
}

/* To end a region that many peers have mapped takes one wait, not one for each of them. */
static void end_region(struct rank *rank)
{
    struct sluice_remote_mr remotes[2];
    struct end end;

    end_open(&end, rank, PEERS, false);
    struct sluice_mr *mr = made(sluice_mr_alloc(end.pd, 4096, ACCESS_ALL));
    require_ok(sluice_mr_remote(mr, &remotes[0]));
    remotes[1] = remotes[0];
    rank_exchange(rank, remotes, remotes, sizeof remotes[0]);
    for (uint32_t i = 0; rank->index == 1 && i < 200 * PEERS; i++) {
        struct sluice_sge sge = {0};
        struct sluice_remote_mr remote = remotes[0];

        require_ok(sluice_mr_sge(mr, 0, 8, &sge));
        require_ok(sluice_remote_mr_slice(&remote, 0, 8, &remote));
        require_ok(sluice_multichannel_read(end.all, i % PEERS, &sge, 1, &remote, DEADLINE));
    }
    rank_barrier(rank);
    atomic_store(&refused, 0);
    atomic_store(&refuses, rank->index == 0);
    int64_t before = fair_now();
    require_ok(sluice_mr_deregister(mr));
    int64_t took = fair_now() - before;
    atomic_store(&refuses, false);
    require(rank->index == 1 || atomic_load(&refused) >= PEERS, "%u refused",
            atomic_load(&refused));
    require(took < SLUICE_MS(300), "%lld ms", (long long)took / 1000000);
    rank_barrier(rank);
    end_close(&end);
}

TEST(the_end_of_a_region_waits_once, .unless = is_sanitized)
{
    group_run(2, end_region, NULL, 60);
}

int main(void)
{
    return RUN_ON_SOFT("starved", {"shm", WIRE_SHM, 100});
}
