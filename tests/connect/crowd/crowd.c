/* SPDX-License-Identifier: MIT */
/*
 * A crowd of clients of one server, of which a third is killed while it works: all others finish
 * with the right bytes, and the server keeps nothing of the dead: no descriptor, mapping, thread,
 * locked memory or file, and no use of memory that only they used; nor is any of their sockets
 * left. SLUICE_TEST_CLIENTS is the number of clients.
 */
#include "crowd.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../support/fault.h"
#include "../../support/inodes.h"

/*
 * Waves of clients: a first one, by which the server allocates what it keeps; all others; and one
 * after the kills.
 */
enum wave { FIRST, CROWD, LAST, WAVES };

/*
 * Free lists have other sizes after a crowd. With a thousand clients, that is 200 bytes for each
 * dead one.
 */
#define FREE_LISTS ((size_t)64 << 10)

static struct crowd crowd;
static struct inodes sockets; /* of the dead */

/* Resources of the server's process, beside its heap. */
struct belongings {
    long fds, threads, files, locked, maps;
};

static long count_entries(const char *path, const char *word)
{
    long count = 0;
    DIR *folder = opendir(path);
    require(folder, "%s: %s", path, strerror(errno));
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        count += entry->d_name[0] != '.' && strstr(entry->d_name, word) != NULL;
    }
    closedir(folder);
    return count;
}

/* KiB that cannot be swapped out, of this process. */
static long locked_memory(void)
{
    char line[128];
    long locked = 0, amount;
    FILE *file = fopen("/proc/self/status", "re");
    require(file, "%s", strerror(errno));
    while (fgets(line, sizeof(line), file)) {
        if (sscanf(line, "VmLck: %ld", &amount) == 1 || sscanf(line, "VmPin: %ld", &amount) == 1) {
            locked += amount;
        }
    }
    fclose(file);
    return locked;
}

static struct belongings take_stock(void)
{
    struct inodes maps = {0};
    require(inodes_add_maps(&maps, getpid()), "%s", strerror(errno));
    struct belongings now = {count_fds(), count_entries("/proc/self/task", ""),
                             count_entries("/dev/shm", "sluice"), locked_memory(),
                             (long)maps.count};
    inodes_free(&maps);
    return now;
}

/*
 * On a busy machine the helper thread may have served a queue in place of the program for the first
 * time: then the watchdog runs from then on, with a stack and an arena of its own.
 */
#define WATCHER_MAPS 4

static bool has_more(const struct belongings *now, const struct belongings *before)
{
    bool watched = now->threads == before->threads + 1;
    return now->fds > before->fds || now->threads > before->threads + watched ||
           now->files > before->files || now->locked > before->locked ||
           now->maps > before->maps + (watched ? WATCHER_MAPS : 0);
}

/* The kernel and the helper need some time to close everything. */
static void check_stock(struct server *server, const struct belongings *before)
{
    int64_t end = clock_now() + SLUICE_S(30);
    struct belongings now = take_stock();
    size_t left = 0;
    require(inodes_count_sockets(&sockets, &left), "%s", strerror(errno));
    while ((has_more(&now, before) || left > 0) && clock_now() < end) {
        let_pass(SLUICE_MS(10));
        server_turn(server);
        now = take_stock();
        require(inodes_count_sockets(&sockets, &left), "%s", strerror(errno));
    }
    require(!has_more(&now, before),
            "%ld fds, were %ld; %ld threads, were %ld; %ld mappings, were %ld; %ld files, were %ld;"
            " %ld KiB locked, were %ld",
            now.fds, before->fds, now.threads, before->threads, now.maps, before->maps, now.files,
            before->files, now.locked, before->locked);
    require(left == 0, "%zu of %zu sockets of the dead are left", left, sockets.count);
}

void crowd_kill(struct crowd *all, uint32_t number)
{
    struct member *member = &all->members[number];
    require(inodes_add_open(&sockets, member->pid, "socket:"), "client %u: %s", number,
            strerror(errno));
    require(kill(member->pid, SIGKILL) == 0, "client %u: %s", number, strerror(errno));
    member->killed = true;
}

static uint32_t draw(void)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33);
}

static enum wave wave_of(uint32_t number)
{
    return number == 0 ? FIRST : number == crowd.count - 1 ? LAST : CROWD;
}

/* Chooses a third of the clients that come together. Returns how many. */
static uint32_t choose_victims(void)
{
    uint32_t victims = 0;
    for (uint32_t i = 0; i < crowd.count; i++) {
        struct member *member = &crowd.members[i];
        memset(member, 0, sizeof(*member));
        member->victim = wave_of(i) == CROWD && i % 3 == 0;
        if (member->victim) {
            member->moment = (enum moment)(victims++ % MOMENTS);
            member->when = draw() % ROUNDS;
        }
        if (member->victim && member->moment == AT_THE_DOOR) {
            member->when = 0;
        } else if (member->victim && member->moment == ANY_TIME) {
            member->when = 1 + draw() % (crowd.count / 2 * ROUNDS);
        }
    }
    return victims;
}

/* Forks a client, which begins when it reads a byte from the gate of its wave. */
static void start(uint32_t number, int gates[WAVES][2])
{
    uint8_t byte;
    pid_t pid = fork();
    require(pid >= 0, "%s", strerror(errno));
    crowd.members[number].pid = pid;
    if (pid != 0) {
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < WAVES; i++) {
        close(gates[i][1]);
    }
    while (read(gates[wave_of(number)][0], &byte, 1) < 0 && errno == EINTR) {
    }
    run_client(crowd.board, number, crowd.members[number].victim);
}

static void start_all(int gates[WAVES][2])
{
    fflush(NULL);
    for (int i = 0; i < WAVES; i++) {
        require(pipe(gates[i]) == 0, "%s", strerror(errno));
    }
    for (uint32_t i = 0; i < crowd.count; i++) {
        start(i, gates);
    }
    for (int i = 0; i < WAVES; i++) {
        close(gates[i][0]);
    }
}

static void collect(uint32_t number)
{
    const struct member *member = &crowd.members[number];
    int status = 0;
    while (waitpid(member->pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (member->killed) {
        require(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "client %u: status %x", number,
                (unsigned)status);
    } else {
        require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "client %u: status %x; %s", number,
                (unsigned)status, crowd.board->failure);
    }
}

static uint32_t crowd_size(void)
{
    const char *value = getenv("SLUICE_TEST_CLIENTS");
    long count = value != NULL && *value ? atol(value) : 0;
    if (count > 0) {
        require(count >= 10 && count <= CROWD_MOST, "not 10 to %d clients: %s", CROWD_MOST, value);
        return (uint32_t)count;
    }
    /* Devices are emulated here, which is slow. */
    return !device_is_soft() ? 12 : SANITIZED ? 30 : short_run() ? 100 : 1000;
}

static void allow_files(rlim_t count)
{
    struct rlimit limit;
    require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
    require(limit.rlim_max >= count, "this needs %lu files, and may have %lu", (unsigned long)count,
            (unsigned long)limit.rlim_max);
    limit.rlim_cur = limit.rlim_cur > count ? limit.rlim_cur : count;
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
}

/* Takes stock after a client has come and gone and the helper has released its resources. */
static struct belongings stock_at_rest(void)
{
    struct belongings now = take_stock(), before;
    do {
        before = now;
        let_pass(SLUICE_MS(200));
        now = take_stock();
    } while (memcmp(&now, &before, sizeof(now)) != 0);
    return now;
}

static void let_come(struct server *server, int gates[WAVES][2], enum wave wave, uint32_t left,
                     uint32_t killed)
{
    for (uint32_t i = 0; i < crowd.count; i++) {
        require(wave_of(i) != wave || write(gates[wave][1], "", 1) == 1, "%s", strerror(errno));
    }
    server_run(server, left, killed);
    for (uint32_t i = 0; i < crowd.count; i++) {
        if (wave_of(i) == wave) {
            collect(i);
        }
    }
}

/* Serves all clients, of which this many are victims, and another one after them. */
static void serve_crowd(struct server *server, int gates[WAVES][2], uint32_t victims,
                        const struct belongings *before)
{
    uint32_t stay = crowd.count - 1 - victims; /* the first client has come before */
    struct span begin = span_begin();
    let_come(server, gates, CROWD, stay - 1, victims);
    printf("# %u clients, %u at a time: %u lines; %u were killed, %u of them before they were in;"
           " %.3f s\n",
           crowd.count, server->most, server->said, victims, server->in_vain,
           (double)span_since(begin).real / 1e9);
    check_stock(server, before);
    /* No dead client uses it, and the server goes on. */
    require_ok(sluice_mr_deregister(server->doomed));
    server->doomed = NULL;
    let_come(server, gates, LAST, stay, victims);
    check_stock(server, before);
    printf("# %ld descriptors, %ld mappings, %ld threads as before, and none of %zu sockets of the"
           " dead\n",
           before->fds, before->maps, before->threads, sockets.count);
}

static void open_at_address(struct server *server)
{
    server_open(server, &crowd);
    snprintf(crowd.board->address, sizeof(crowd.board->address), "127.0.0.1:%d",
             sluice_listener_address(server->listener, NULL, 0));
}

/* The first server has one client: its remaining resources are those that any server keeps. */
TEST(a_third_is_killed, .group = "clients", .unless = device_is_pretend)
{
    static struct server servers[2];
    int gates[WAVES][2];
    crowd.count = crowd_size();
    crowd.board =
        mmap(NULL, sizeof(*crowd.board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(crowd.board != MAP_FAILED, "%s", strerror(errno));
    allow_files(4 * (rlim_t)crowd.count + 200);
    uint32_t victims = choose_victims();
    start_all(gates);
    open_at_address(&servers[0]);
    let_come(&servers[0], gates, FIRST, 1, 0);
    struct belongings before = stock_at_rest();
    server_close(&servers[0]);
    struct census census = census_take();
    open_at_address(&servers[1]);
    serve_crowd(&servers[1], gates, victims, &before);
    server_close(&servers[1]);
    inodes_free(&sockets);
    census.heap += FREE_LISTS;
    census_check(&census);
    for (int i = 0; i < WAVES; i++) {
        close(gates[i][1]);
    }
    munmap(crowd.board, sizeof(*crowd.board));
}
