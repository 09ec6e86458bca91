/* SPDX-License-Identifier: MIT */
/*
 * Missing resources on the soft transport: memory that its owner unmaps while a peer uses it, and a
 * process without file descriptors.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../support/group.h"
#include "../support/pair.h"
#include "../support/process.h"

/* A large access, in a thread of its own. */
struct access {
    struct sluice_channel *channel;
    struct sluice_sge sge;
    struct sluice_remote_mr remote;
    bool write;
    int result;
};

static void *run_access(void *argument)
{
    struct access *access = argument;
    access->result =
        access->write
            ? sluice_channel_write(access->channel, &access->sge, 1, &access->remote, DEADLINE)
            : sluice_channel_read(access->channel, &access->sge, 1, &access->remote, DEADLINE);
    return NULL;
}

/*
 * The target unmaps its memory after the delay and maps the addresses anew at once; no access may
 * change that.
 */
static void withdraw(struct access *access, struct sluice_pd *pd, size_t length, int64_t delay)
{
    pthread_t thread;
    int protection = PROT_READ | PROT_WRITE;
    void *bytes = mmap(NULL, length, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(bytes != MAP_FAILED, "%s", strerror(errno));
    memset(bytes, 1, length);
    struct sluice_mr *mr = made(sluice_mr_register(pd, bytes, length, ACCESS_ALL));
    require_ok(sluice_mr_remote(mr, &access->remote));
    require(pthread_create(&thread, NULL, run_access, access) == 0, "%zu bytes", length);
    let_pass(delay);
    require_ok(sluice_mr_deregister(mr));
    munmap(bytes, length);
    void *again =
        mmap(bytes, length, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    pthread_join(thread, NULL);
    require(access->result == 0 || access->result == -EACCES, "%d", access->result);
    if (again == bytes) {
        value_check(bytes, length, 0);
        munmap(bytes, length);
    }
}

TEST(withdrawn_memory)
{
    struct pair pair;
    struct memory memory;
    size_t length = (size_t)(short_run() ? 8 : 32) << 20;
    int rounds = short_run() ? 6 : 12;
    int refused = 0;
    sides_open(&pair.sides);
    memory_open(&memory, pair.sides.pds[0], length);
    memset(memory.bytes, 0xee, length);
    for (int i = 0; i < rounds; i++) {
        struct access access = {.sge = memory_sge(&memory, 0, length), .write = i % 2 != 0};
        pair_connect(&pair, NULL);
        access.channel = pair.channels[0];
        withdraw(&access, pair.sides.pds[1], length, SLUICE_MS(2) * i);
        refused += access.result != 0;
        sluice_channel_close(pair.channels[0]);
        sluice_channel_close(pair.channels[1]);
    }
    /* Within a process a copy is not interrupted: deregistering waits for it. */
    require(refused > 0 || current_wire() == WIRE_SELF, "of %d", rounds);
    memory_close(&memory);
    sides_close(&pair.sides);
}

static void allow_fds(rlim_t count)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = count;
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
}

/* Memory that is kept for the next regions neither lacks rights nor takes the last descriptors. */
TEST(memory_of_ended_regions)
{
    enum { REGIONS = 8 };
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_mr *mrs[REGIONS];
    for (int i = 0; i < REGIONS; i++)
        mrs[i] = made(sluice_mr_alloc(pd, 4096, SLUICE_ACCESS_LOCAL_WRITE));
    int next = dup(STDERR_FILENO);
    close(next);
    for (int i = 0; i < REGIONS; i++) {
        require(mprotect(sluice_mr_addr(mrs[i]), 4096, PROT_NONE) == 0, "%s", strerror(errno));
        require_ok(sluice_mr_deregister(mrs[i]));
    }
    mrs[0] = made(sluice_mr_alloc(pd, 4096, SLUICE_ACCESS_LOCAL_WRITE));
    value_check(sluice_mr_addr(mrs[0]), 4096, 0);
    allow_fds((rlim_t)next);
    sluice_prepared_channel_free(made(sluice_channel_prepare(pd, NULL)));
    allow_fds(1024);
    require_ok(sluice_mr_deregister(mrs[0]));
    sluice_pd_free(pd);
    sluice_context_close(context);
}

/*
 * A peer without descriptors, whose other side shakes hands at the same time or later: it does not
 * spin, and goes on once it has descriptors.
 */
static void starve(struct rank *rank)
{
    for (int i = 0; i < 4; i++) { /* which side connects is random */
        struct sluice_endpoint endpoints[2];
        struct sluice_channel *channel = NULL;
        struct sluice_context *context = open_context();
        struct sluice_pd *pd = sluice_pd_alloc(context);
        struct sluice_prepared_channel *prepared = prepare_channel(pd, NULL, &endpoints[0]);
        endpoints[1] = endpoints[0];
        rank_exchange(rank, endpoints, endpoints, sizeof(endpoints[0]));
        rank_barrier(rank);
        bool starving = rank->index == 0;
        if (starving) {
            allow_fds(3);
        }
        if (starving || i < 2) {
            channel = sluice_prepared_channel_handshake(prepared, &endpoints[!rank->index]);
            require(channel || (starving && errno == EMFILE), "%s", sluice_last_error());
        }
        rank_barrier(rank);
        if (!starving && i >= 2) {
            channel = made(sluice_prepared_channel_handshake(prepared, &endpoints[0]));
        }
        int64_t cpu = cpu_used();
        let_pass(SLUICE_S(1));
        require(cpu_used() - cpu < SLUICE_MS(50), "%lld us of CPU in a second",
                (long long)(cpu_used() - cpu) / 1000);
        if (starving) {
            allow_fds(1024);
        }
        bool lives = channel != NULL;
        bool both[2] = {lives, lives};
        rank_exchange(rank, both, both, sizeof(both[0]));
        if (lives) {
            int result = rank->index == 0 ? sluice_channel_receive(channel, NULL, 0, DEADLINE, NULL)
                                          : sluice_channel_send(channel, NULL, 0, DEADLINE);
            require_result(result, both[!rank->index] ? 0 : -ECONNRESET);
        }
        rank_barrier(rank);
        sluice_channel_close(channel);
        sluice_pd_free(pd);
        sluice_context_close(context);
    }
}

TEST(no_fd_for_a_peer, .group = "processes")
{
    group_run(2, starve, NULL, 50);
}

int main(void)
{
    return RUN_ON_SOFT("deprived", {"self", WIRE_SELF, 60}, {"tcp", WIRE_TCP, 60},
                       {"processes", WIRE_SHM, 60});
}
