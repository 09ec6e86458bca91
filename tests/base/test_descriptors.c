/* SPDX-License-Identifier: MIT */
/*
 * If a program has closed its standard streams, they are not reused for descriptors of the library:
 * data that the program, or one of its libraries, still writes to them reaches no peer. A thread
 * writes all the time.
 */
#include "config.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../exchange/parties.h"
#include "../support/group.h"
#include "../support/pair.h"
#include "../support/process.h"

#define STREAMS 3

static const struct sluice_exchange_attr alone = {
    .size = sizeof(alone), .kind = SLUICE_EXCHANGE_TCP, .rank = 0, .ranks = 1};

struct writer {
    pthread_t thread;
    atomic_bool stop;
    atomic_uint taken; /* bit i: descriptor i could be written */
    atomic_uint rounds;
};

static void *write_on(void *argument)
{
    struct writer *writer = argument;
    while (!atomic_load(&writer->stop)) {
        for (int fd = 0; fd < STREAMS; fd++) {
            /* The write must fail, so the byte does no harm. */
            if (write(fd, "x", 1) >= 0 || errno != EBADF) {
                atomic_fetch_or(&writer->taken, 1U << fd);
            }
        }
        atomic_fetch_add(&writer->rounds, 1);
        poll(NULL, 0, 0);
    }
    return NULL;
}

/* A helper thread of the library may hold a place for as long as it makes a descriptor. */
static ssize_t read_target(int fd, char *target, size_t size)
{
    char path[32];
    ssize_t got;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    for (int64_t end = clock_now() + DEADLINE;
         (got = readlink(path, target, size)) == 1 && target[0] == '/' && clock_now() < end;) {
        poll(NULL, 0, 1);
    }
    return got;
}

static void require_closed(const struct writer *writer, const char *when)
{
    for (int fd = 0; fd < STREAMS; fd++) {
        char target[100] = "";
        ssize_t got = read_target(fd, target, sizeof(target) - 1);
        require(got < 0 && errno == ENOENT, "%s, %d is %s", when, fd, target);
    }
    require(atomic_load(&writer->taken) == 0, "%s, written to: %#x", when,
            atomic_load(&writer->taken));
}

static void writer_open(struct writer *writer)
{
    *writer = (struct writer){.stop = false};
    for (int fd = 0; fd < STREAMS; fd++) {
        close(fd);
    }
    require_ok(pthread_create(&writer->thread, NULL, write_on, writer));
    require_closed(writer, "at first");
}

static void writer_close(struct writer *writer)
{
    unsigned before = atomic_load(&writer->rounds);
    /* Write once more after all of that. */
    while (atomic_load(&writer->rounds) < before + 2) {
        poll(NULL, 0, 1);
    }
    atomic_store(&writer->stop, true);
    require_ok(pthread_join(writer->thread, NULL));
    require_closed(writer, "in the end");
}

static void use_all(struct rank *rank)
{
    const enum wire *wire = rank->argument;
    struct writer writer;
    struct pair pair;
    require(*wire == current_wire(), "wire %d", (int)*wire);
    writer_open(&writer);
    struct sluice_device_list *list = made(sluice_device_list_get());
    sluice_device_list_free(list);
    require_closed(&writer, "with a list of devices");
    pair_open(&pair, NULL);
    require_closed(&writer, "with a pair");
    struct sluice_mr *mr = made(sluice_mr_alloc(pair.sides.pds[0], 4096, ACCESS_ALL));
    pair_works(&pair);
    pair_reset(&pair);
    pair_works(&pair);
    require_closed(&writer, "after work");
    require_ok(sluice_mr_deregister(mr));
    pair_close(&pair);
    writer_close(&writer);
}

START_TEST(no_stream_is_taken)
{
    enum wire wire = current_wire();
    group_run(1, use_all, &wire, 25);
}
END_TEST

static void call_some(struct party *party)
{
    uint32_t local_rank, local_ranks;
    party_calls(party, 320);
    require_ok(
        sluice_exchange_locality(party->exchange, &local_rank, &local_ranks, party->deadline));
}

static void exchange(struct rank *rank)
{
    struct writer writer;
    struct parties parties;
    require(rank->size == 1, "%u", rank->size);
    parties_make(&parties, 3, SLUICE_S(20));
    /* Names are resolved with descriptors, too. */
    snprintf(parties.root, sizeof(parties.root), "localhost:%u", parties.port);
    writer_open(&writer);
    parties_run(&parties, call_some);
    for (uint32_t i = 0; i < parties.count; i++) {
        party_require(&parties.party[i], 0, "");
    }
    writer_close(&writer);
}

START_TEST(no_stream_is_taken_by_an_exchange)
{
    group_run(1, exchange, NULL, 25);
}
END_TEST

/*
 * The library reserves the free ones briefly while it makes a descriptor, so this may take several
 * attempts.
 */
static void open_as(int wanted)
{
    int64_t end = clock_now() + SLUICE_S(10);
    int fd;
    while ((fd = open("/dev/null", O_RDWR)) != wanted) {
        require(fd >= 0 && clock_now() < end, "%d is not the lowest, but %d", wanted, fd);
        close(fd);
    }
}

/* A descriptor that the program puts there stays, whatever the library does meanwhile. */
static void use_streams(struct rank *rank)
{
    struct pair pair;
    require(rank->size == 1, "%u", rank->size);
    for (int fd = 0; fd < STREAMS; fd++) {
        close(fd);
    }
    pair_open(&pair, NULL);
    for (int fd = 0; fd < STREAMS; fd++) {
        open_as(fd);
    }
    pair_works(&pair);
    pair_reset(&pair);
    for (int fd = 0; fd < STREAMS; fd++) {
        require(write(fd, "x", 1) == 1, "%d: %s", fd, strerror(errno));
    }
    pair_close(&pair);
}

START_TEST(streams_of_the_program_stay)
{
    group_run(1, use_streams, NULL, 25);
}
END_TEST

/* A daemon that reads all data and never answers. */
static int listen_in_silence(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    require(fd >= STREAMS, "%d", fd);
    require(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "%s", strerror(errno));
    require_ok(listen(fd, 16));
    return fd;
}

static void ask_munge(struct rank *rank)
{
    struct writer writer;
    struct parties parties;
    char path[80];
    snprintf(path, sizeof(path), "/tmp/sluice-munge-%d", getpid());
    require(rank->size == 1, "%u", rank->size);
    struct pollfd listener = {.fd = listen_in_silence(path), .events = POLLIN};
    setenv("SLUICE_MUNGE", path, 1);
    parties_make(&parties, 2, SLUICE_MS(500));
    parties.party[1].absent = true;
    writer_open(&writer);
    parties_run(&parties, NULL);
    unlink(path);
    party_require(&parties.party[0], -ETIMEDOUT, "munge does not answer");
    require(poll(&listener, 1, 0) == 1, "no connection came to the listener");
    /* The thread of munge is still there, and the streams belong to the program. */
    writer_close(&writer);
}

START_TEST(no_stream_is_kept_by_munge)
{
    group_run(1, ask_munge, NULL, 25);
}
END_TEST

/* A feature that configure found. */
#ifdef HAVE_JANSSON
#define HAS_HOST_FILES true
#else
#define HAS_HOST_FILES false
#endif

#define STUCK "/tmp/sluice-of-a-server-that-does-not-answer"

static atomic_bool opening, answered, ended;
static atomic_uint memory_looks;

/* Replaces open() of the C library: one path is on a server that does not answer. */
int open(const char *path, int flags, ...)
{
    int (*real)(const char *, int, ...);
    void *found = dlsym(RTLD_NEXT, "open");
    int64_t until = clock_now() + SLUICE_S(20);
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    memcpy(&real, &found, sizeof(real));
    if (strcmp(path, "/proc/meminfo") == 0) {
        atomic_fetch_add(&memory_looks, 1);
    }
    if (strcmp(path, STUCK) != 0) {
        return real(path, flags, mode);
    }
    atomic_store(&opening, true);
    while (!atomic_load(&answered) && clock_now() < until) {
        poll(NULL, 0, 1);
    }
    atomic_store(&ended, true);
    errno = ENOENT;
    return -1;
}

static void *open_stuck(void *argument)
{
    const struct sluice_exchange_attr *attr = argument;
    require_null(sluice_exchange_open(attr, SLUICE_S(10)), EINVAL, STUCK);
    return NULL;
}

/* Channels open, work and close, and processes fork, while the open of a file hangs. */
START_TEST(slow_open_of_a_file_delays_no_other)
{
    struct sluice_exchange_attr attr = alone;
    struct pair pair;
    pthread_t thread;
    int status;
    attr.secret_file = _i == 0 ? STUCK : NULL;
    attr.host_file = _i == 1 ? STUCK : NULL;
    require_ok(pthread_create(&thread, NULL, open_stuck, &attr));
    while (!atomic_load(&opening)) {
        poll(NULL, 0, 1);
    }
    pair_open(&pair, NULL);
    pair_works(&pair);
    pair_close(&pair);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(7);
    }
    require(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7,
            "the child ended with %#x", status);
    require(!atomic_load(&ended), "all waited for the file");
    atomic_store(&answered, true);
    require_ok(pthread_join(thread, NULL));
}
END_TEST

/* Files about memory that are read for an allocation. */
static unsigned look_for(struct sluice_pd *pd, size_t length, uint32_t flags, int error)
{
    unsigned before = atomic_load(&memory_looks);
    struct sluice_mr *mr = sluice_mr_alloc(pd, length, ACCESS_ALL | flags);
    require_result(mr ? 0 : -errno, error);
    if (mr) {
        require_ok(sluice_mr_deregister(mr));
    }
    return atomic_load(&memory_looks) - before;
}

/* The limits are read once, however many kinds of pages are tried, and whether allocation fails. */
START_TEST(memory_limits_are_read_once)
{
    const size_t huge = (size_t)1 << 44;
    struct pair pair;
    if (!device_is_soft()) {
        return;
    }
    pair_open(&pair, NULL);
    struct sluice_pd *pd = pair.sides.pds[0];
    unsigned once = look_for(pd, 4096, 0, 0);
    require(once > 0, "no file about memory was read");
    require_result(look_for(pd, (size_t)4 << 20, SLUICE_MR_HUGE_PAGES, 0), once);
    require_result(look_for(pd, huge, 0, -ENOMEM), once);
    require_result(look_for(pd, huge, SLUICE_MR_HUGE_PAGES, -ENOMEM), once);
    pair_close(&pair);
}
END_TEST

/* Of many small allocations few read the files, if the last reading is recent. */
START_TEST(small_regions_seldom_read_memory_limits)
{
    const int64_t again = SLUICE_MS(100);
    struct pair pair;
    unsigned looks = 0;
    if (!device_is_soft()) {
        return;
    }
    pair_open(&pair, NULL);
    unsigned once = look_for(pair.sides.pds[0], 4096, 0, 0);
    int64_t begun = clock_now();
    for (int i = 0; i < 200; i++) {
        looks += look_for(pair.sides.pds[i % 2], 4096, 0, 0);
    }
    int64_t most = 1 + (clock_now() - begun) / again;
    require(looks <= once * most, "%u files in place of %u, %lld times", looks, once,
            (long long)most);
    pair_close(&pair);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, memory_limits_are_read_once);
    tcase_add_test(tcase, small_regions_seldom_read_memory_limits);
    tcase_add_test(tcase, no_stream_is_taken);
    tcase_add_test(tcase, streams_of_the_program_stay);
}

static void add_exchange(TCase *tcase)
{
    tcase_add_test(tcase, no_stream_is_taken_by_an_exchange);
    tcase_add_loop_test(tcase, slow_open_of_a_file_delays_no_other, 0, 1);
    if (dlopen("libmunge.so.2", RTLD_NOW | RTLD_LOCAL)) {
        tcase_add_test(tcase, no_stream_is_kept_by_munge);
    }
    if (HAS_HOST_FILES) {
        tcase_add_loop_test(tcase, slow_open_of_a_file_delays_no_other, 1, 2);
    }
}

int main(void)
{
    static const struct cases cases[] = {
        {"self", WIRE_SELF, 30, add_tests},
        {"tcp", WIRE_TCP, 30, add_tests},
        {"exchange", WIRE_TCP, 30, add_exchange},
    };
    return run_cases("descriptors", cases, COUNT(cases));
}
