/* SPDX-License-Identifier: MIT */
/*
 * The steady state: once the first operations are done, none of the many that follow allocates or
 * frees memory, and on verbs none takes a lock. The program interposes malloc(),
 * pthread_mutex_lock() and similar functions, for the library as well. They count calls in the
 * thread of the test from the code of the library; calls from elsewhere, such as the provider of an
 * RDMA device, are counted separately. On verbs a lock is allowed where the library reads events of
 * the device, once in IDLE_ROUNDS polls that found nothing. The soft transport takes some locks:
 * that of the table of keys, which deregistering excludes, and over TCP that of the connections,
 * which the helper thread serves too.
 */
#include "../support/pair.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#if SANITIZED
#define CANNOT_COUNT "a sanitizer has an allocator of its own"
#elif !defined(__GLIBC__)
#define CANNOT_COUNT "only the GNU C library lets a program have its own allocator and use its"
#endif

#define OPERATIONS 1000000
#define SHORT_OPERATIONS 100000
/* Over TCP each of them wakes the helper thread of the other end. */
#define TCP_SHARE 50
#define WARM_UP 2000
#define DEPTH 64
#define PEERS 4
#define BLOCK 256
/* Do this once in EARLY_ROUNDS rounds. */
#define EARLY_ROUNDS 100
/* Polls that find nothing until the events of the device are read. */
#define IDLE_ROUNDS 4096

/* Calls that were made. */
struct calls {
    uint64_t allocations; /* or their opposite */
    uint64_t locks;
};

static _Thread_local bool counting;
static _Thread_local struct calls ours, others;

#ifndef CANNOT_COUNT

/* The address range of the library's code: of the object that contains this function of it. */
static uintptr_t library_start, library_end;

static int find_library(struct dl_phdr_info *info, size_t size, void *unused)
{
    uintptr_t known = (uintptr_t)(void *)sluice_version;
    (void)size;
    (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t end = start + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && known >= start && known < end) {
            library_start = start;
            library_end = end;
            return 1;
        }
    }
    return 0;
}

static struct calls *calls_from(const void *caller)
{
    uintptr_t address = (uintptr_t)caller;
    return address >= library_start && address < library_end ? &ours : &others;
}

static void count_allocation(const void *caller)
{
    if (counting) {
        calls_from(caller)->allocations++;
    }
}

static void count_lock(const void *caller)
{
    if (counting) {
        calls_from(caller)->locks++;
    }
}

/* The C library's own. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *old);

void *malloc(size_t size)
{
    count_allocation(__builtin_return_address(0));
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    count_allocation(__builtin_return_address(0));
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    count_allocation(__builtin_return_address(0));
    return __libc_realloc(old, size);
}

void free(void *old)
{
    count_allocation(__builtin_return_address(0));
    __libc_free(old);
}

int posix_memalign(void **made, size_t alignment, size_t size)
{
    count_allocation(__builtin_return_address(0));
    void *block = __libc_memalign(alignment, size);
    if (block) {
        *made = block;
    }
    return block ? 0 : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    count_allocation(__builtin_return_address(0));
    return __libc_memalign(alignment, size);
}

typedef int lock_function(pthread_mutex_t *mutex);
typedef int rwlock_function(pthread_rwlock_t *lock);

static lock_function *real_lock, *real_trylock;
static rwlock_function *real_rdlock, *real_wrlock;

/*
 * Functions are looked up before there is a second thread; a lock taken before that looks up its
 * function itself.
 */
static __attribute__((constructor)) void find_locks(void)
{
    *(void **)&real_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    *(void **)&real_trylock = dlsym(RTLD_NEXT, "pthread_mutex_trylock");
    *(void **)&real_rdlock = dlsym(RTLD_NEXT, "pthread_rwlock_rdlock");
    *(void **)&real_wrlock = dlsym(RTLD_NEXT, "pthread_rwlock_wrlock");
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    count_lock(__builtin_return_address(0));
    if (!real_lock) {
        find_locks();
    }
    return real_lock(mutex);
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    count_lock(__builtin_return_address(0));
    if (!real_trylock) {
        find_locks();
    }
    return real_trylock(mutex);
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    count_lock(__builtin_return_address(0));
    if (!real_rdlock) {
        find_locks();
    }
    return real_rdlock(lock);
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    count_lock(__builtin_return_address(0));
    if (!real_wrlock) {
        find_locks();
    }
    return real_wrlock(lock);
}

#endif

/* Both ends in this thread: a pair, and a multichannel whose peers are connected in pairs. */
struct bench {
    struct pair pair;
    struct sluice_multichannel *loop;
    struct memory near, far;
    struct sluice_sge sge, far_sge;
    struct sluice_remote_mr remote; /* of the first channel's peer */
    struct sluice_remote_mr own;    /* of the multichannel's peers */
    struct sluice_request writes[PEERS], reads[PEERS], sends[PEERS], receives[PEERS];
    struct sluice_peer_remote_mr targets[PEERS];
    uint32_t peers[PEERS];
    bool atomic;
    uint32_t rounds;
};

static void bench_open(struct bench *bench)
{
    /* Sleeping and waking may take locks; here no call sleeps. */
    struct sluice_channel_attr attr = *ATTR(.send_depth = DEPTH, .receive_depth = DEPTH,
                                            .wait_mode = SLUICE_WAIT_SPIN, .rnr_timer = 1);
    memset(bench, 0, sizeof(*bench));
    pair_open(&bench->pair, &attr);
    attr.flags = SLUICE_CHANNEL_HISTOGRAMS;
    bench->loop = loop_open(bench->pair.sides.pds[0], PEERS, &attr);
    bench->atomic = context_info(bench->pair.sides.contexts[0]).atomics != SLUICE_ATOMICS_NONE;
    uint32_t access = ACCESS_ALL | (bench->atomic ? SLUICE_ACCESS_REMOTE_ATOMIC : 0);
    bench->near = side_memory_at(&bench->pair.sides, 0, BLOCK, access, 0);
    bench->far = side_memory_at(&bench->pair.sides, 1, BLOCK, access, 0);
    bench->sge = memory_sge(&bench->near, 0, 8);
    bench->far_sge = memory_sge(&bench->far, 0, BLOCK);
    bench->remote = memory_remote(&bench->far, 0, BLOCK);
    bench->own = memory_remote(&bench->near, 0, BLOCK);
    for (uint32_t i = 0; i < PEERS; i++) {
        bench->writes[i] = request_of(SLUICE_OP_WRITE, i, &bench->sge);
        bench->reads[i] = request_of(SLUICE_OP_READ, i, &bench->sge);
        bench->writes[i].remote = bench->reads[i].remote = bench->own;
        bench->sends[i] = request_of(SLUICE_OP_SEND, i, &bench->sge);
        bench->receives[i] = request_of(SLUICE_OP_RECEIVE, i, &bench->sge);
        bench->targets[i] = (struct sluice_peer_remote_mr){.peer = i, .remote = bench->own};
        bench->peers[i] = i;
    }
}

static void bench_close(struct bench *bench)
{
    multichannel_is_timed(bench->loop);
    sluice_multichannel_close(bench->loop);
    pair_close(&bench->pair);
}

static uint64_t done_by(const struct sluice_counters *counters)
{
    uint64_t done = 0;
    for (size_t i = 0; i < COUNT(counters->requests); i++) {
        done += counters->requests[i];
    }
    return done;
}

/* Requests that have succeeded, and polls that were made. */
static void read_counters(const struct bench *bench, uint64_t *done, uint64_t *polls)
{
    struct sluice_counters counters = {.size = sizeof(counters)};
    require_ok(sluice_multichannel_counters(bench->loop, &counters));
    *done = done_by(&counters);
    *polls = counters.polls;
    for (int i = 0; i < 2; i++) {
        require_ok(sluice_channel_counters(bench->pair.channels[i], &counters));
        *done += done_by(&counters);
        *polls += counters.polls;
    }
}

/* Each round does a few operations of its kind. */
typedef void round_function(struct bench *bench);

/* A message comes before its receive; a device retransmits it later, which takes some time. */
static void receive_early(struct bench *bench)
{
    struct sluice_sge whole = {bench->sge.addr, BLOCK, bench->sge.lkey};
    struct sluice_completion completion;
    struct sluice_handle handle;
    require_ok(
        sluice_channel_post_send(bench->pair.channels[1], &bench->far_sge, 1, DEADLINE, &handle));
    require_ok(sluice_channel_receive(bench->pair.channels[0], &whole, 1, DEADLINE, &completion));
    require_ok(sluice_channel_wait(bench->pair.channels[1], &handle, DEADLINE, &completion));
}

static void do_blocking(struct bench *bench)
{
    struct sluice_channel *channel = bench->pair.channels[0];
    struct sluice_completion completion;
    struct sluice_handle handle;
    require_ok(sluice_channel_post_receive(bench->pair.channels[1], &bench->far_sge, 1, DEADLINE,
                                           &handle));
    require_ok(sluice_channel_send(channel, &bench->sge, 1, DEADLINE));
    require_ok(sluice_channel_wait(bench->pair.channels[1], &handle, DEADLINE, &completion));
    if (bench->rounds++ % EARLY_ROUNDS == 0) {
        receive_early(bench);
    }
    require_ok(sluice_channel_write(channel, &bench->sge, 1, &bench->remote, DEADLINE));
    require_ok(sluice_channel_read(channel, &bench->sge, 1, &bench->remote, DEADLINE));
    require_ok(sluice_multichannel_write(bench->loop, 2, &bench->sge, 1, &bench->own, DEADLINE));
    if (bench->atomic) {
        require_ok(sluice_channel_fetch_add(channel, &bench->sge, &bench->remote, 1, DEADLINE));
        require_ok(
            sluice_channel_compare_swap(channel, &bench->sge, &bench->remote, 1, 2, DEADLINE));
    }
}

static void do_posted(struct bench *bench)
{
    struct sluice_channel *channel = bench->pair.channels[0];
    struct sluice_completion completions[PEERS];
    struct sluice_handle handles[PEERS];
    struct sluice_request writes[PEERS];
    for (uint32_t i = 0; i < PEERS; i++) {
        writes[i] = bench->writes[i];
        writes[i].peer = 0;
        writes[i].remote = bench->remote;
    }
    require_result(sluice_channel_post(channel, writes, PEERS, DEADLINE, handles), PEERS);
    for (int got = 0; got < PEERS;) {
        int more = sluice_channel_poll(channel, completions, PEERS);
        require(more >= 0, "%s", sluice_last_error());
        got += more;
    }
    require_ok(
        sluice_channel_post_write(channel, &bench->sge, 1, &bench->remote, DEADLINE, &handles[0]));
    require_ok(sluice_channel_wait(channel, &handles[0], DEADLINE, completions));
    require_ok(
        sluice_channel_post_read(channel, &bench->sge, 1, &bench->remote, DEADLINE, &handles[0]));
    require_ok(sluice_channel_next(channel, DEADLINE, completions));
    require_ok(
        sluice_channel_post_write(channel, &bench->sge, 1, &bench->remote, DEADLINE, &handles[0]));
    require_ok(sluice_channel_detach(channel, &handles[0]));
    require_ok(sluice_channel_flush(channel, DEADLINE));
    require_result(sluice_multichannel_post_scatter_write(bench->loop, bench->writes, PEERS,
                                                          DEADLINE, handles),
                   PEERS);
    for (int i = 0; i < PEERS; i++) {
        require_ok(sluice_multichannel_wait(bench->loop, &handles[i], DEADLINE, completions));
    }
}

static void do_scoped(struct bench *bench)
{
    struct sluice_scope_report report = {.size = sizeof(report), .flags = SLUICE_SCOPE_STRICT};
    struct sluice_completion completion;
    struct sluice_handle handle;
    struct sluice_scope *scope = sluice_channel_scope_begin(bench->pair.channels[0], DEADLINE);
    require_ok(sluice_scope_post_write(scope, 0, &bench->sge, 1, &bench->remote, &handle));
    require_ok(sluice_scope_wait(scope, &handle, DEADLINE, &completion));
    require_ok(sluice_scope_end(scope, &report));
    require(report.posted == 1 && report.unseen == 0, "%u posted", report.posted);
    scope = sluice_multichannel_scope_begin(bench->loop, DEADLINE);
    require_ok(sluice_scope_post_write(scope, 1, &bench->sge, 1, &bench->own, NULL));
    require_ok(sluice_scope_post_read(scope, 3, &bench->sge, 1, &bench->own, NULL));
    require_result(sluice_scope_post(scope, bench->receives, PEERS, NULL), PEERS);
    require_result(sluice_scope_post_scatter_send(scope, bench->sends, PEERS, NULL), PEERS);
    require_ok(sluice_scope_end(scope, NULL));
}

static void do_lists(struct bench *bench)
{
    struct sluice_multichannel *loop = bench->loop;
    struct sluice_completion completions[2 * PEERS];
    struct sluice_request send = bench->sends[0];
    struct sluice_request write = bench->writes[0];
    struct sluice_handle handles[PEERS];
    require_ok(sluice_multichannel_scatter_gather(loop, bench->sends, PEERS, bench->receives, PEERS,
                                                  DEADLINE, completions));
    require_ok(sluice_multichannel_scatter_write(loop, bench->writes, PEERS, DEADLINE, NULL));
    require_ok(sluice_multichannel_gather_read(loop, bench->reads, PEERS, DEADLINE, completions));
    require_ok(sluice_multichannel_multicast_write(loop, &write, bench->targets, PEERS, DEADLINE,
                                                   completions));
    require_result(
        sluice_multichannel_post_gather_receive(loop, bench->receives, PEERS, DEADLINE, handles),
        PEERS);
    require_ok(sluice_multichannel_multicast_send(loop, &send, bench->peers, PEERS, DEADLINE,
                                                  completions));
    for (int i = 0; i < PEERS; i++) {
        require_ok(sluice_multichannel_wait(loop, &handles[i], DEADLINE, completions));
    }
    /* More requests to one peer than its queues hold. */
    struct sluice_request many[DEPTH + PEERS];
    for (int i = 0; i < DEPTH + PEERS; i++) {
        many[i] = bench->writes[1];
    }
    require_ok(sluice_multichannel_submit(loop, many, DEPTH + PEERS, DEADLINE, NULL));
}

/* Does at least this many operations. Returns the polls that they took. */
static uint64_t repeat(struct bench *bench, round_function *round, uint64_t operations)
{
    uint64_t first, first_polls, done, polls;
    read_counters(bench, &first, &first_polls);
    do {
        for (int i = 0; i < 100; i++) {
            round(bench);
        }
        read_counters(bench, &done, &polls);
    } while (done - first < operations);
    return polls - first_polls;
}

/* A quarter of all operations. */
static uint64_t share(void)
{
    uint64_t operations = short_run() ? SHORT_OPERATIONS : OPERATIONS;
    if (device_is_soft() && current_wire() == WIRE_TCP) {
        operations /= TCP_SHARE;
    }
    return operations / 4;
}

static void run_steadily(round_function *round)
{
    struct bench bench;
    bench_open(&bench);
    repeat(&bench, round, WARM_UP);
    ours = others = (struct calls){0, 0};
    counting = true;
    uint64_t polls = repeat(&bench, round, share());
    counting = false;
    printf("# of %llu operations the library: %llu allocations, %llu locks; others: %llu, %llu\n",
           (unsigned long long)share(), (unsigned long long)ours.allocations,
           (unsigned long long)ours.locks, (unsigned long long)others.allocations,
           (unsigned long long)others.locks);
    require(ours.allocations == 0, "%llu allocations in %llu operations",
            (unsigned long long)ours.allocations, (unsigned long long)share());
    /* On soft there is no other code that could allocate. */
    require(!device_is_soft() || others.allocations == 0, "%llu allocations on behalf of ours",
            (unsigned long long)others.allocations);
    require(device_is_soft() || ours.locks <= polls / IDLE_ROUNDS,
            "%llu locks in %llu operations, %llu polls", (unsigned long long)ours.locks,
            (unsigned long long)share(), (unsigned long long)polls);
    bench_close(&bench);
}

TEST(blocking_operations)
{
    run_steadily(do_blocking);
}

TEST(posted_operations)
{
    run_steadily(do_posted);
}

TEST(scoped_operations)
{
    run_steadily(do_scoped);
}

TEST(lists_of_operations)
{
    run_steadily(do_lists);
}

/* Releases a block while a receive into it is posted. */
static void release_block(const struct bench *bench, struct sluice_allocator *allocator)
{
    struct sluice_channel *channel = bench->pair.channels[0];
    struct sluice_completion completion;
    struct sluice_handle handle;
    struct sluice_sge sge;
    void *block = sluice_allocator_alloc(allocator, BLOCK, 0);
    require(block, "%s", sluice_last_error());
    require_ok(sluice_allocator_sge(allocator, block, BLOCK, &sge));
    require_ok(sluice_channel_post_receive(channel, &sge, 1, DEADLINE, &handle));
    require_result(sluice_allocator_release(allocator, block, NULL, NULL), 1);
    require_ok(sluice_channel_send(bench->pair.channels[1], &bench->far_sge, 1, DEADLINE));
    require_ok(sluice_channel_wait(channel, &handle, DEADLINE, &completion));
    /* A poll that finds nothing more ends the round. */
    require_result(sluice_channel_poll(channel, &completion, 1), 0);
}

/* Releasing a block in use allocates nothing, so that it works without free memory, too. */
TEST_WITH(bench, releases_of_blocks, ())
{
    struct sluice_allocator *allocator;
    allocator =
        made(sluice_allocator_create(bench->pair.sides.pds[0], SLUICE_ACCESS_LOCAL_WRITE, NULL));
    for (int i = 0; i < 2 * WARM_UP; i++) {
        if (i == WARM_UP) {
            ours = others = (struct calls){0, 0};
            counting = true;
        }
        release_block(bench, allocator);
    }
    counting = false;
    require(ours.allocations == 0, "%llu allocations", (unsigned long long)ours.allocations);
    require_ok(sluice_allocator_destroy(allocator));
}

/* Calls that are known to allocate and to lock are counted. */
TEST_WITH(bench, calls_are_counted, ())
{
    ours = others = (struct calls){0, 0};
    counting = true;
    struct sluice_prepared_channel *prepared =
        sluice_channel_prepare(bench->pair.sides.pds[0], NULL);
    sluice_prepared_channel_free(prepared);
    void *volatile block = malloc(1);
    free(block);
    counting = false;
    require(prepared, "%s", sluice_last_error());
    require(ours.allocations >= 8, "%llu", (unsigned long long)ours.allocations);
    require(ours.locks >= 4, "%llu", (unsigned long long)ours.locks);
    require(others.allocations >= 2 || ours.allocations >= 10, "%llu",
            (unsigned long long)others.allocations);
}

int main(void)
{
#ifdef CANNOT_COUNT
    printf("1..0 # SKIP %s\n", CANNOT_COUNT);
    return EXIT_SUCCESS;
#else
    dl_iterate_phdr(find_library, NULL);
    return run_tests("steady", device_is_soft() ? 120 : 1200);
#endif
}
