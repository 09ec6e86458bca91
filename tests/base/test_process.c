/* SPDX-License-Identifier: MIT */
/*
 * The library leaves the process alone: signals, errno, stdout, the CPU when idle; and it fails
 * with that reason, and without a leak, when the process has no descriptor left.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../support/group.h"
#include "../support/pair.h"
#include "../support/process.h"

/* All signals that can be blocked are, in each thread but the program's own. */
TEST(library_threads_block_signals)
{
    struct pair pair;
    unsigned long long all = 0;
    unsigned checked = 0;
    pair_open(&pair, NULL);
    pair_works(&pair);
    for (int number = 1; number < 32; number++) {
        if (number != SIGKILL && number != SIGSTOP) {
            all |= 1ULL << (number - 1);
        }
    }
    DIR *tasks = opendir("/proc/self/task");
    require(tasks, "%s", strerror(errno));
    for (struct dirent *task = readdir(tasks); task; task = readdir(tasks)) {
        char path[300];
        char line[200];
        unsigned long long blocked = 0;
        if (task->d_name[0] == '.' || atoi(task->d_name) == (int)getpid()) {
            continue;
        }
        snprintf(path, sizeof(path), "/proc/self/task/%s/status", task->d_name);
        FILE *status = fopen(path, "re");
        require(status, "%s", path);
        while (fgets(line, sizeof(line), status)) {
            if (strncmp(line, "SigBlk:", 7) == 0) {
                blocked = strtoull(line + 7, NULL, 16);
            }
        }
        fclose(status);
        require((blocked & all) == all, "thread %s blocks %llx", task->d_name, blocked);
        checked++;
    }
    closedir(tasks);
    require(checked > 0 || !device_is_soft() || current_wire() == WIRE_SELF, "%u threads", checked);
    pair_close(&pair);
}

/* Calls that succeed leave errno alone. */
TEST(errno_is_kept)
{
    struct pair pair;
    struct sluice_completion completion;
    struct sluice_handle handle = {0};
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    pair_open(&pair, NULL);
    errno = 4242;
    int result = sluice_channel_post(pair.channels[0], &receive, 1, DEADLINE, &handle);
    require(result == 1 && errno == 4242, "post: %d, errno %d", result, errno);
    result = sluice_channel_send(pair.channels[1], NULL, 0, DEADLINE);
    require(result == 0 && errno == 4242, "send: %d, errno %d", result, errno);
    result = sluice_channel_wait(pair.channels[0], &handle, DEADLINE, &completion);
    require(result == 0 && errno == 4242, "wait: %d, errno %d", result, errno);
    result = sluice_channel_poll(pair.channels[0], &completion, 1);
    require(result == 0 && errno == 4242, "poll: %d, errno %d", result, errno);
    result = sluice_channel_post(pair.channels[0], &receive, 1, DEADLINE, &handle);
    require(result == 1, "post: %d", result);
    result = sluice_channel_wait(pair.channels[0], &handle, SLUICE_MS(20), &completion);
    require(result == -ETIMEDOUT && errno == 4242, "wait: %d, errno %d", result, errno);
    sluice_channel_close(pair.channels[0]);
    require(errno == 4242, "close: errno %d", errno);
    sluice_channel_close(pair.channels[1]);
    require(errno == 4242, "close: errno %d", errno);
    pair.channels[0] = pair.channels[1] = NULL;
    pair_close(&pair);
}

/* Nothing is written to stdout, and no signal action or mask of the program is changed. */
static void use_with_own_stdout(struct rank *rank)
{
    struct sigaction before[32];
    struct sigaction after;
    sigset_t mask;
    char path[] = "/tmp/sluice-stdout-XXXXXX";
    int file = mkstemp(path);
    require(file >= 0 && rank->size == 1, "%s", strerror(errno));
    unlink(path);
    fflush(stdout);
    dup2(file, STDOUT_FILENO);
    for (int number = 1; number < 32; number++) {
        sigaction(number, NULL, &before[number]);
    }
    struct pair pair;
    pair_open(&pair, NULL);
    pair_works(&pair);
    require_result(sluice_channel_receive(pair.channels[0], NULL, 0, SLUICE_MS(5), NULL),
                   -ETIMEDOUT);
    pair_close(&pair);
    fflush(stdout);
    require(lseek(file, 0, SEEK_END) == 0, "something was written%s", "");
    for (int number = 1; number < 32; number++) {
        sigaction(number, NULL, &after);
        require(after.sa_handler == before[number].sa_handler, "signal %d", number);
    }
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    require(!sigismember(&mask, SIGTERM) && !sigismember(&mask, SIGPIPE), "mask %d", SIGTERM);
}

TEST(process_is_left_alone)
{
    group_run(1, use_with_own_stdout, NULL, 20);
}

/* Every fd is closed on exec. */
TEST(fds_are_closed_on_exec)
{
    bool ours[1024] = {false};
    struct pair pair;
    for (int fd = 0; fd < 1024; fd++) {
        ours[fd] = fcntl(fd, F_GETFD) < 0;
    }
    pair_open(&pair, NULL);
    pair_works(&pair);
    for (int fd = 0; fd < 1024; fd++) {
        int flags = fcntl(fd, F_GETFD);
        require(!ours[fd] || flags < 0 || (flags & FD_CLOEXEC), "fd %d", fd);
    }
    pair_close(&pair);
}

/* A connection without traffic uses no CPU, whether or not a call waits for it. */
static void be_idle(struct rank *rank)
{
    struct mesh mesh;
    struct sluice_handle handle;
    struct sluice_completion completion;
    /* An emulated processor that has to wait for a real one counts that as used. */
    int64_t limit = SANITIZED || !device_is_soft() ? SLUICE_MS(50) : SLUICE_MS(5);
    int64_t second = short_run() ? SLUICE_MS(300) : SLUICE_S(1);
    mesh_open(&mesh, rank, NULL);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, !rank->index, NULL);
    require_result(sluice_multichannel_post(mesh.all, &receive, 1, DEADLINE, &handle), 1);
    rank_barrier(rank);
    int64_t start = cpu_used();
    let_pass(second);
    int64_t away = cpu_used() - start;
    require(away < limit, "%lld us of CPU while away", (long long)away / 1000);
    start = cpu_used();
    require_result(sluice_multichannel_wait(mesh.all, &handle, second, &completion), -ETIMEDOUT);
    int64_t waiting = cpu_used() - start;
    require(waiting < limit, "%lld us of CPU while waiting", (long long)waiting / 1000);
    rank_barrier(rank);
    mesh_close(&mesh);
}

TEST(idle_costs_no_cpu, .group = "processes")
{
    group_run(2, be_idle, NULL, 20);
}

/* Leaves this many descriptors free; UINT32_MAX: as many as usual. */
static void leave_fds(unsigned count)
{
    struct rlimit limit;
    int taken[128];
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max < 1024 ? limit.rlim_max : 1024;
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
    if (count == UINT32_MAX) {
        return;
    }
    for (unsigned i = 0; i <= count; i++) {
        taken[i] = dup(STDERR_FILENO);
        require(taken[i] >= 0 && count < COUNT(taken), "%s", strerror(errno));
    }
    limit.rlim_cur = (rlim_t)taken[count];
    for (unsigned i = 0; i <= count; i++) {
        close(taken[i]);
    }
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
}

/* Opens a pair with this many free descriptors. Returns whether it could; then it works. */
static bool pair_with_few_fds(unsigned left)
{
    struct sides sides = {{NULL}, {NULL}};
    struct sluice_endpoint endpoints[2];
    struct sluice_prepared_channel *prepared[2] = {NULL, NULL};
    struct sluice_channel *channels[2] = {NULL, NULL};
    int made = 0;
    int fds = count_fds();
    leave_fds(left);
    for (int i = 0; i < 2; i++, made++) {
        sides.contexts[i] = sluice_context_open(test_device(), NULL);
        sides.pds[i] = sides.contexts[i] ? sluice_pd_alloc(sides.contexts[i]) : NULL;
        prepared[i] = sides.pds[i] ? sluice_channel_prepare(sides.pds[i], NULL) : NULL;
        if (!prepared[i]) {
            /* Without a descriptor libibverbs lists no devices at all. */
            require((errno == EMFILE || (errno == ENODEV && !device_is_soft())) &&
                        sluice_last_error()[0],
                    "%s: %s", strerror(errno), sluice_last_error());
            break;
        }
        require_ok(sluice_prepared_channel_endpoint(prepared[i], &endpoints[i]));
    }
    for (int i = 0; i < 2 && made == 2; i++) {
        channels[i] = sluice_prepared_channel_handshake(prepared[i], &endpoints[!i]);
        prepared[i] = NULL;
        require(channels[i] || (errno == EMFILE && sluice_last_error()[0]), "%s: %s",
                strerror(errno), sluice_last_error());
    }
    bool works = false;
    if (channels[0] && channels[1]) {
        struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
        require_result(sluice_channel_post(channels[1], &receive, 1, SLUICE_MS(300), NULL), 1);
        works = sluice_channel_send(channels[0], NULL, 0, SLUICE_MS(300)) == 0;
    }
    for (int i = 0; i < 2; i++) {
        sluice_channel_close(channels[i]);
        sluice_prepared_channel_free(prepared[i]);
        sluice_pd_free(sides.pds[i]);
        sluice_context_close(sides.contexts[i]);
    }
    leave_fds(UINT32_MAX);
    require(count_fds() == fds, "%d fds, were %d, with %u left", count_fds(), fds, left);
    return works;
}

static void run_out_of_fds(struct rank *rank)
{
    unsigned left = 0;
    require(rank->size == 1, "%u", rank->size);
    require(!pair_with_few_fds(0), "it works without an fd%s", "");
    while (!pair_with_few_fds(left)) {
        left++;
        require(left < 100, "it does not work with %u fds", left);
    }
    /* With free descriptors everything works. */
    struct pair pair;
    pair_open(&pair, NULL);
    pair_works(&pair);
    /* An established connection works on without free descriptors. */
    leave_fds(0);
    pair_works(&pair);
    require_null(sluice_channel_prepare(pair.sides.pds[0], NULL), EMFILE, "");
    pair_works(&pair);
    leave_fds(UINT32_MAX);
    pair_close(&pair);
}

TEST(no_fd_is_left, .group = "processes")
{
    group_run(1, run_out_of_fds, NULL, 40);
}

int main(void)
{
    return RUN_GROUPS("process", {"self", WIRE_SELF, 30}, {"tcp", WIRE_TCP, 30},
                      {"processes", WIRE_SHM, 60});
}
