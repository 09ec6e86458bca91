/* SPDX-License-Identifier: MIT */
/*
 * The ranks of a way: threads with one context on the wire "self", otherwise processes. They
 * have socket pairs to each other, over which they exchange endpoints and wait for each other.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ways.h"

#define LIMIT 110 /* seconds after which a run is ended */
#define PARTS 5   /* of a measurement; the result is their median */
#define MOST_COUNT 1000000.0

int must_succeed(int64_t result, const char *call)
{
    if (result >= 0)
        return (int)result;
    fprintf(stderr, "ways: %.60s: %s: %s\n", call, strerror((int)-result), sluice_last_error());
    _exit(EXIT_FAILURE);
}

void *must_exist(void *object, const char *call)
{
    if (object != NULL)
        return object;
    fprintf(stderr, "ways: %.60s: %s: %s\n", call, strerror(errno), sluice_last_error());
    _exit(EXIT_FAILURE);
}

static int64_t read_clock(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* Exchanges blocks that are so short that the sockets have room for them. */
static int gather_all(void *argument, const void *own, void *all, size_t bytes, int64_t deadline)
{
    const struct rank *rank = argument;
    char *places = all;

    (void)deadline;
    memmove(places + rank->rank * bytes, own, bytes);
    own = places + rank->rank * bytes;
    for (uint32_t i = 0; i < rank->ranks; i++)
        if (i != rank->rank && send(rank->sockets[i], own, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
            return -ECONNRESET;
    for (uint32_t i = 0; i < rank->ranks; i++)
        if (i != rank->rank &&
            recv(rank->sockets[i], places + i * bytes, bytes, MSG_WAITALL) != (ssize_t)bytes)
            return -ECONNRESET;
    return 0;
}

static int wait_for_all(void *argument, int64_t deadline)
{
    char own = 1, all[16];

    return gather_all(argument, &own, all, 1, deadline);
}

void share(struct rank *rank, const void *own, void *all, size_t bytes)
{
    MUST(gather_all(rank, own, all, bytes, DEADLINE));
}

void meet(struct rank *rank)
{
    MUST(wait_for_all(rank, DEADLINE));
}

struct sluice_sge place(const struct rank *rank, size_t offset, size_t bytes)
{
    struct sluice_sge sge;

    MUST(sluice_mr_sge(rank->mr, offset, bytes, &sge));
    return sge;
}

struct sluice_remote_mr remote(const struct rank *rank, uint32_t peer, size_t offset, size_t bytes)
{
    struct sluice_remote_mr slice;

    MUST(sluice_remote_mr_slice(&rank->remotes[peer], offset, bytes, &slice));
    return slice;
}

void fill_writes(const struct rank *rank, struct sluice_request *requests, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        requests[i] = (struct sluice_request){.opcode = SLUICE_OP_WRITE,
                                              .sge_count = 1,
                                              .sge = place(rank, 0, rank->size),
                                              .remote = rank->remotes[1]};
}

struct sluice_channel *connect_channel(struct rank *rank, const struct sluice_channel_attr *attr)
{
    struct sluice_prepared_channel *prepared = MAKE(sluice_channel_prepare(rank->pd, attr));
    struct sluice_endpoint own, all[2];
    struct sluice_channel *channel;

    MUST(sluice_prepared_channel_endpoint(prepared, &own));
    share(rank, &own, all, sizeof own);
    channel = MAKE(sluice_prepared_channel_handshake(prepared, &all[other(rank)]));
    MUST(sluice_channel_wait_connected(channel, DEADLINE));
    return channel;
}

static size_t memory_bytes(const struct rank *rank)
{
    size_t bytes = (size_t)1 << 20;

    bytes += (size_t)4 * rank->ranks * rank->size;
    return rank->way->needs & BLOCKS ? bytes + (size_t)4 * BLOCK_COUNT * rank->size : bytes;
}

static void share_memory(struct rank *rank)
{
    struct sluice_remote_mr own;

    MUST(sluice_mr_remote(rank->mr, &own));
    share(rank, &own, rank->remotes, sizeof own);
}

static void open_rank(struct rank *rank)
{
    const struct sluice_exchange_provider provider = {
        .size = sizeof provider, .allgather = gather_all, .barrier = wait_for_all};
    const bool soft = strcmp(rank->wire, "self") == 0 || strcmp(rank->wire, "shm") == 0 ||
                      strcmp(rank->wire, "tcp") == 0;
    const uint32_t access = SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE |
                            SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_ATOMIC;
    struct sluice_channel_attr attr = {.size = sizeof attr};
    struct sluice_node_attr node = {.size = sizeof node, .channel = &attr};

    if (rank->context == NULL) {
        if (soft)
            setenv("SLUICE_WIRE", rank->wire, 1);
        rank->context = MAKE(sluice_context_open(soft ? "soft" : rank->wire, NULL));
        rank->pd = MAKE(sluice_pd_alloc(rank->context));
    }
    rank->exchange = MAKE(sluice_exchange_wrap(&provider, rank, rank->rank, rank->ranks));
    rank->mr = MAKE(sluice_mr_alloc(rank->pd, memory_bytes(rank), access));
    rank->memory = sluice_mr_addr(rank->mr);
    memset(rank->memory, 0, memory_bytes(rank));
    share_memory(rank);
    if (rank->way->needs & CACHE)
        attr.mr_cache = rank->cache =
            MAKE(sluice_mr_cache_create(rank->pd, SLUICE_ACCESS_LOCAL_WRITE, NULL));
    if (rank->way->needs & ARRIVALS)
        attr.arrival_tags = 16;
    if (rank->way->needs & POOL)
        attr.receive_pool = POOL_COUNT;
    if (rank->way->needs & CHANNEL)
        rank->channel = connect_channel(rank, &attr);
    if (rank->way->needs & NODE) {
        rank->node = MAKE(sluice_node_open(rank->pd, rank->exchange, &node, DEADLINE));
        rank->all = sluice_node_multichannel(rank->node);
    }
    if (rank->way->setup != NULL)
        rank->way->setup(rank);
}

/* Closes a rank while the others still exist. Memory that requests use ends with the process. */
static void close_rank(struct rank *rank)
{
    if (rank->way->end != NULL)
        rank->way->end(rank);
    meet(rank);
    sluice_channel_close(rank->channel);
    sluice_node_close(rank->node);
    if (rank->cache != NULL)
        sluice_mr_cache_destroy(rank->cache);
    sluice_mr_deregister(rank->mr);
    sluice_exchange_close(rank->exchange);
    if (strcmp(rank->wire, "self") != 0) {
        sluice_pd_free(rank->pd);
        sluice_context_close(rank->context);
    }
}

/* Tools that count instructions start and stop with this function. */
__attribute__((noinline)) void measured(struct rank *rank, uint64_t count);
void measured(struct rank *rank, uint64_t count)
{
    rank->way->run(rank, count);
    __asm__ volatile("" ::: "memory");
}

/* Runs count iterations on all ranks, and returns the nanoseconds of rank 0. */
static int64_t run_once(struct rank *rank, uint64_t count)
{
    int64_t begin;

    meet(rank);
    begin = now();
    measured(rank, count);
    return now() - begin;
}

/* Returns how many iterations take that long, by the clock of rank 0. */
static uint64_t choose_count(struct rank *rank, double seconds)
{
    double all[16], own = 1;

    for (uint64_t tried = 2;; tried *= 4) {
        int64_t took = run_once(rank, tried);

        own = seconds * 1e9 * (double)tried / (double)(took + 1);
        own = took > (int64_t)(seconds * 1e8) || tried > 100000 ? own : 0;
        share(rank, &own, all, sizeof own);
        if (all[0] > 0)
            return (uint64_t)(all[0] < 2 ? 2 : all[0] > MOST_COUNT ? MOST_COUNT : all[0]);
    }
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void measure(struct rank *rank, const struct plan *plan)
{
    const bool threads = strcmp(rank->wire, "self") == 0;
    uint64_t count = plan->count;
    double times[PARTS], processor[16] = {0}, own;
    int parts = count > 0 ? 1 : PARTS;
    int64_t begin;

    if (plan->warm > 0)
        rank->way->run(rank, plan->warm);
    if (count == 0)
        count = choose_count(rank, plan->seconds / PARTS);
    rank->posting = 0;
    begin = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < parts; i++)
        times[i] = 1e-3 * (double)run_once(rank, count) / (double)count;
    own = 1e-3 * (double)(read_clock(CLOCK_PROCESS_CPUTIME_ID) - begin) / (double)count / parts;
    share(rank, &own, processor, sizeof own);
    for (uint32_t i = 1; i < rank->ranks && !threads; i++)
        processor[0] += processor[i];
    qsort(times, (size_t)parts, sizeof times[0], compare);
    if (rank->rank == 0)
        printf("{\"way\": \"%s\", \"us\": %.5f, \"processor_us\": %.5f, \"posting_us\": %.5f, "
               "\"count\": %llu}\n",
               rank->way->name, times[parts / 2], processor[0],
               1e-3 * (double)rank->posting / (double)count / parts, (unsigned long long)count);
}

struct member {
    pthread_t thread;
    struct rank rank;
    const struct plan *plan;
};

static void *run_rank(void *argument)
{
    struct member *member = argument;

    open_rank(&member->rank);
    measure(&member->rank, member->plan);
    close_rank(&member->rank);
    return NULL;
}

static void make_sockets(struct member *members, uint32_t ranks)
{
    int pair[2];

    for (uint32_t i = 0; i < ranks; i++)
        for (uint32_t j = i + 1; j < ranks; j++) {
            MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0 ? 0 : -errno);
            members[i].rank.sockets[j] = pair[0];
            members[j].rank.sockets[i] = pair[1];
        }
}

/* Closes the sockets of other ranks, so that a process notices when another one ends. */
static void become_child(struct member *members, uint32_t rank, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
    alarm(LIMIT);
    for (uint32_t i = 0; i < members[0].rank.ranks; i++)
        for (uint32_t j = 0; j < members[0].rank.ranks; j++)
            if (i != rank && i != j)
                close(members[i].rank.sockets[j]);
    run_rank(&members[rank]);
    _exit(EXIT_SUCCESS);
}

static void run_threads(struct member *members, uint32_t ranks)
{
    struct sluice_context *context;
    struct sluice_pd *pd;

    context = MAKE(sluice_context_open("soft", NULL));
    pd = MAKE(sluice_pd_alloc(context));
    for (uint32_t i = 0; i < ranks; i++) {
        members[i].rank.context = context;
        members[i].rank.pd = pd;
    }
    for (uint32_t i = 1; i < ranks; i++)
        MUST(-pthread_create(&members[i].thread, NULL, run_rank, &members[i]));
    run_rank(&members[0]);
    for (uint32_t i = 1; i < ranks; i++)
        pthread_join(members[i].thread, NULL);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

static void run_processes(struct member *members, uint32_t ranks)
{
    const pid_t parent = getpid();
    pid_t child = 0;
    int status, failed = 0;

    for (uint32_t i = 1; i < ranks; i++) {
        child = fork();
        MUST(child >= 0 ? 0 : -errno);
        if (child == 0)
            become_child(members, i, parent);
    }
    for (uint32_t i = 1; i < ranks; i++)
        for (uint32_t j = 0; j < ranks; j++)
            if (i != j)
                close(members[i].rank.sockets[j]);
    run_rank(&members[0]);
    while (wait(&status) > 0)
        failed |= status;
    MUST(failed == 0 ? 0 : -EIO);
}

void run_team(const struct plan *plan)
{
    struct member *members = MAKE(calloc(plan->ranks, sizeof *members));

    alarm(LIMIT);
    for (uint32_t i = 0; i < plan->ranks; i++) {
        members[i].plan = plan;
        members[i].rank.way = plan->way;
        members[i].rank.rank = i;
        members[i].rank.ranks = plan->ranks;
        members[i].rank.size = plan->size;
        members[i].rank.before = plan->before;
        members[i].rank.wire = plan->wire;
    }
    make_sockets(members, plan->ranks);
    fflush(stdout);
    if (strcmp(plan->wire, "self") == 0)
        run_threads(members, plan->ranks);
    else
        run_processes(members, plan->ranks);
    free(members);
}
