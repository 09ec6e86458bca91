/* SPDX-License-Identifier: MIT */
/*
 * One side of a connection is started again and again, as a new process, and ends by itself or by
 * SIGKILL in turns. The first request of each succeeds, and the other side, which stays, leaks
 * nothing: no descriptor, thread, mapping, memory, object of the device or file in /dev/shm.
 *
 * SLUICE_TEST_RESTARTS is their number; scripts/soak --restarts sets it.
 */
#include <dirent.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/pair.h"
#include "../support/process.h"

extern char **environ;

#define WORDS ((size_t)4)
/* What is there after this many restarts is kept for later ones, such as spare memory. */
#define WARM_UP 10
/* Memory that may be added later: parts of pages of the heap. */
#define RESIDENT_MOST ((long)1 << 20)

/* One side: its objects and its memory. */
struct end {
    struct sluice_context *context;
    struct sluice_pd *pd;
    uint64_t words[2 * WORDS]; /* sent, received */
    struct sluice_mr *mr;
    struct sluice_channel *channel;
};

static void end_open(struct end *end)
{
    memset(end, 0, sizeof(*end));
    end->context = open_context();
    end->pd = made(sluice_pd_alloc(end->context));
    end->mr = made(
        sluice_mr_register(end->pd, end->words, sizeof(end->words), SLUICE_ACCESS_LOCAL_WRITE));
}

static void end_close(struct end *end)
{
    sluice_channel_close(end->channel);
    require_ok(sluice_mr_deregister(end->mr));
    sluice_pd_free(end->pd);
    sluice_context_close(end->context);
}

static struct sluice_sge sge_of(const struct end *end, int half)
{
    struct sluice_sge sge;
    require_ok(sluice_mr_sge(end->mr, half * sizeof(end->words) / 2, sizeof(end->words) / 2, &sge));
    return sge;
}

/* Sends a number, and receives the number after it. */
static void ask(struct end *end, uint64_t number)
{
    struct sluice_sge sent = sge_of(end, 0), received = sge_of(end, 1);
    end->words[0] = number;
    require_ok(sluice_channel_send(end->channel, &sent, 1, DEADLINE));
    require(sluice_channel_receive(end->channel, &received, 1, DEADLINE, NULL) >= 0, "%s",
            sluice_last_error());
    require(end->words[WORDS] == number + 1, "%llu", (unsigned long long)end->words[WORDS]);
}

static void answer(struct end *end)
{
    struct sluice_sge sent = sge_of(end, 0), received = sge_of(end, 1);
    require(sluice_channel_receive(end->channel, &received, 1, DEADLINE, NULL) >= 0, "%s",
            sluice_last_error());
    end->words[0] = end->words[WORDS] + 1;
    require_ok(sluice_channel_send(end->channel, &sent, 1, DEADLINE));
}

static void dial(struct end *end, const char *address)
{
    struct sluice_connect_attr options = {.size = sizeof(options), .flags = SLUICE_CONNECT_WAIT};
    end->channel = made(sluice_connect(address, end->pd, NULL, &options, DEADLINE));
}

static void admit(struct end *end, struct sluice_listener *listener)
{
    struct sluice_incoming *incoming = made(sluice_listener_next(listener, DEADLINE));
    end->channel = made(sluice_incoming_accept(incoming, end->pd, NULL, NULL, DEADLINE));
}

static void say_address(struct sluice_listener *listener, char text[64])
{
    require(sluice_listener_address(listener, text, 64) > 0, "%s", sluice_last_error());
}

/*
 * The process that is started again: "client", or "server", which prints its address. killed: it
 * ends with work in flight.
 */
static int run_again(const char *role, const char *address, bool killed)
{
    struct sluice_listener *listener = NULL;
    struct end end;
    char own[64];
    end_open(&end);
    if (strcmp(role, "server") == 0) {
        listener = made(sluice_listen(address, NULL));
        say_address(listener, own);
        printf("%s\n", own);
        fflush(stdout);
        admit(&end, listener);
        answer(&end);
    } else {
        dial(&end, address);
        ask(&end, (uint64_t)getpid());
    }
    if (killed) {
        struct sluice_sge sge = sge_of(&end, 1);
        require_ok(sluice_channel_post_receive(end.channel, &sge, 1, SLUICE_FOREVER, NULL));
        kill(getpid(), SIGKILL);
    }
    sluice_listener_close(listener);
    end_close(&end);
    return 0;
}

/* Starts the process. With a pipe, reads the address that it prints. */
static pid_t start(const char *role, char address[64], bool killed)
{
    char *const arguments[] = {(char *)"test_restarts", (char *)role, address,
                               (char *)(killed ? "killed" : "ended"), NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];
    pid_t pid;
    require(pipe(ends) == 0, "%s", strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    int err = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, environ);
    require(err == 0, "%s", strerror(err));
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (strcmp(role, "server") == 0) {
        FILE *file = fdopen(ends[0], "r");
        require(file && fgets(address, 64, file), "a server said no address%s", "");
        address[strcspn(address, "\n")] = 0;
        fclose(file);
    } else {
        close(ends[0]);
    }
    return pid;
}

static void reap(pid_t pid, bool killed)
{
    int status = 0;
    require(waitpid(pid, &status, 0) == pid, "%s", strerror(errno));
    require(killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : status == 0,
            "it ended with %#x", (unsigned)status);
}

/* What this process has. */
struct holding {
    int fds, threads, mappings, objects;
    int files; /* in /dev/shm, of all processes */
    long resident;
};

static int count_entries(const char *folder)
{
    DIR *entries = opendir(folder);
    int count = 0;
    require(entries, "%s: %s", folder, strerror(errno));
    while (readdir(entries)) {
        count++;
    }
    closedir(entries);
    return count;
}

static int count_lines(const char *path)
{
    FILE *file = fopen(path, "re");
    int count = 0, byte;
    require(file, "%s: %s", path, strerror(errno));
    while ((byte = getc(file)) != EOF) {
        count += byte == '\n';
    }
    fclose(file);
    return count;
}

static struct holding holding_now(int fds)
{
    struct holding now = {.fds = fds};
    FILE *file = fopen("/proc/self/statm", "re");
    require(file && fscanf(file, "%*d %ld", &now.resident) == 1, "%s", strerror(errno));
    fclose(file);
    now.resident *= sysconf(_SC_PAGESIZE);
    now.threads = count_entries("/proc/self/task");
    now.mappings = count_lines("/proc/self/maps");
    now.files = count_entries("/dev/shm");
    now.objects = device_is_soft() ? 0 : count_objects("qp") + count_objects("mr");
    return now;
}

/* The library's thread starts a second one, once, if it waits for a page on a busy machine. */
static bool is_no_more(const struct holding *now, const struct holding *before)
{
    return now->fds <= before->fds && now->threads <= before->threads + 1 &&
           now->objects <= before->objects && now->files <= before->files &&
           (SANITIZED || now->mappings <= before->mappings + 8) &&
           (SANITIZED || now->resident <= before->resident + RESIDENT_MOST);
}

/* Threads of the library and files of other programs may go a little later. */
static void compare(const struct holding *before, uint32_t restarts)
{
    struct holding now = holding_now(settle_fds(before->fds));
    int64_t end = fair_now() + DEADLINE / 2;
    while (!is_no_more(&now, before) && fair_now() < end) {
        let_pass(SLUICE_MS(20));
        now = holding_now(count_fds());
    }
    require(is_no_more(&now, before),
            "after %u restarts: %d descriptors, were %d; %d threads, were %d; %d objects, were %d; "
            "%d files in /dev/shm, were %d; %d mappings, were %d; %ld KiB resident, were %ld",
            restarts, now.fds, before->fds, now.threads, before->threads, now.objects,
            before->objects, now.files, before->files, now.mappings, before->mappings,
            now.resident >> 10, before->resident >> 10);
}

static uint32_t restarts(void)
{
    const char *given = getenv("SLUICE_TEST_RESTARTS");
    if (given) {
        return (uint32_t)strtoul(given, NULL, 10);
    }
    return !short_run() ? 200 : device_is_soft() ? 40 : 16;
}

/*
 * Waits until the other side has left, and closes the channel. A device reports a killed peer only
 * to a side that sends, and after seconds.
 */
static void part(struct end *end, pid_t pid, bool killed)
{
    if (device_is_soft() || !killed) {
        struct sluice_sge sge = sge_of(end, 1);
        int result = sluice_channel_receive(end->channel, &sge, 1, DEADLINE, NULL);
        require(result == -ECONNRESET || result == -EPIPE || result == -ENOTCONN, "%d: %s", result,
                sluice_last_error());
    }
    reap(pid, killed);
    sluice_channel_close(end->channel);
    end->channel = NULL;
}

TEST(clients_that_are_restarted)
{
    struct holding before = {.fds = 0};
    struct end end;
    char address[64];
    end_open(&end);
    struct sluice_listener *listener = made(sluice_listen("127.0.0.1:0", NULL));
    say_address(listener, address);
    for (uint32_t i = 0; i < restarts(); i++) {
        bool killed = i % 2 == 1;
        pid_t pid = start("client", address, killed);
        admit(&end, listener);
        answer(&end);
        part(&end, pid, killed);
        if (i == WARM_UP) {
            before = holding_now(count_fds());
        }
    }
    compare(&before, restarts());
    sluice_listener_close(listener);
    end_close(&end);
}

/* Each server listens at the address of the first one. */
TEST(servers_that_are_restarted)
{
    struct holding before = {.fds = 0};
    struct end end;
    char address[64] = "127.0.0.1:0";
    end_open(&end);
    for (uint32_t i = 0; i < restarts(); i++) {
        bool killed = i % 2 == 1;
        pid_t pid = start("server", address, killed);
        dial(&end, address);
        ask(&end, i);
        part(&end, pid, killed);
        if (i == WARM_UP) {
            before = holding_now(count_fds());
        }
    }
    compare(&before, restarts());
    end_close(&end);
}

int main(int argc, char **argv)
{
    if (argc == 4) {
        return run_again(argv[1], argv[2], strcmp(argv[3], "killed") == 0);
    }
    uint32_t seconds = 60 + restarts() / 10;
    /* A huge page in place of some small ones is 2 MiB, whoever needs them. */
    prctl(PR_SET_THP_DISABLE, 1UL, 0UL, 0UL, 0UL);
    return RUN_GROUPS("restarts", {"tcp", WIRE_TCP, seconds}, {"shm", WIRE_SHM, seconds});
}
