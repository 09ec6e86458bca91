/* SPDX-License-Identifier: MIT */
/*
 * Memory that a peer's program has registered itself is read from its process, without its help,
 * exactly as long as it is registered.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "direct.h"

#define SOME 32768

static struct sluice_mr *register_pages(struct end *end, uint8_t **pages)
{
    struct sluice_mr *mr;

    *pages = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(*pages != MAP_FAILED, "%s", strerror(errno));
    mr = made(
        sluice_mr_register(end->pd, *pages, REGION, SLUICE_ACCESS_LOCAL_WRITE | REMOTE_RIGHTS));
    end->remote = share(end, mr);
    return mr;
}

/* The peer need not run for that. */
static void read_from_the_stopped(struct rank *rank)
{
    pid_t pids[2] = {getpid(), getpid()};
    struct sluice_mr *mr;
    uint8_t *pages;
    struct end end;

    rank_exchange(rank, pids, pids, sizeof pids[0]);
    end_open(&end, rank);
    mr = register_pages(&end, &pages);
    memset(pages, 0x4c, REGION);
    rank_barrier(rank);
    if (rank->index == 0) {
        use_until_known(&end);
        require_ok(read_word(&end, 0)); /* this one shows whether the kernel permits it */
        if (atomic_load(&unreadable) == 0) {
            struct sluice_sge sge = own_sge(&end, 0, REGION);

            require(kill(pids[1], SIGSTOP) == 0, "%s", strerror(errno));
            require_ok(sluice_channel_read(end.channel, &sge, 1, &end.remote, DEADLINE));
            require(kill(pids[1], SIGCONT) == 0, "%s", strerror(errno));
            value_check(end.mine, REGION, 0x4c);
        }
    }
    rank_barrier(rank);
    require_ok(sluice_mr_deregister(mr));
    end_close(&end);
    munmap(pages, REGION);
}

TEST(registered_memory_is_read_without_its_owner)
{
    group_run(2, read_from_the_stopped, NULL, 60);
}

/* Once a region is deregistered, peers cannot get the later contents of its pages. */
static void lose_what_was_registered(struct rank *rank)
{
    for (uint32_t round = 0; round < (short_run() ? 30 : 200); round++) {
        struct sluice_mr *mr;
        uint8_t *pages;
        struct end end;

        atomic_store(&denied, 0);
        end_open(&end, rank);
        mr = register_pages(&end, &pages);
        memset(pages, 0x5a, REGION);
        rank_barrier(rank);
        if (rank->index == 0) {
            struct sluice_sge sge = own_sge(&end, 0, SOME);
            struct sluice_remote_mr remote = slice(&end.remote, 0, SOME);
            int result;

            while ((result = sluice_channel_read(end.channel, &sge, 1, &remote, DEADLINE)) == 0)
                value_check(end.mine, SOME, 0x5a);
            require(strstr(sluice_last_error(), "access"), "%d: %s", result, sluice_last_error());
        } else {
            let_pass(1000 * (round * 37 % 2000));
            require_ok(sluice_mr_deregister(mr));
            memset(pages, 0x77, REGION);
            mr = NULL;
        }
        rank_barrier(rank);
        if (mr)
            require_ok(sluice_mr_deregister(mr));
        end_close(&end);
        munmap(pages, REGION);
    }
}

TEST(registered_region_may_end_while_it_is_read)
{
    group_run(2, lose_what_was_registered, NULL, 100);
}

/* Unless another thread has mapped something into the hole meanwhile. */
static int is_hole(void *pages)
{
    unsigned char there;

    return mincore(pages, 1, &there) != 0 && errno == ENOMEM;
}

static void unmap_what_is_registered(struct rank *rank)
{
    int holes[2] = {0, 0}, result = 0;
    struct sluice_mr *mr;
    uint8_t *pages;
    struct end end;

    end_open(&end, rank);
    mr = register_pages(&end, &pages);
    if (rank->index == 0)
        use_until_known(&end);
    rank_barrier(rank);
    if (rank->index == 1)
        munmap(pages, REGION);
    rank_barrier(rank);
    if (rank->index == 0) {
        result = read_word(&end, 0);
        munmap(pages, REGION);
    }
    holes[0] = holes[1] = is_hole(pages);
    rank_exchange(rank, holes, holes, sizeof holes[0]);
    if (rank->index == 0 && holes[1])
        require(result < 0 && strstr(sluice_last_error(), "access"), "%d: %s", result,
                sluice_last_error());
    rank_barrier(rank);
    require_ok(sluice_mr_deregister(mr));
    end_close(&end);
}

TEST(unmapped_memory_is_refused)
{
    group_run(2, unmap_what_is_registered, NULL, 60);
}

int main(void)
{
    return RUN_ON_SOFT("direct_shown", {"shm", WIRE_SHM, 200});
}
