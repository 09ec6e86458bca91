/* SPDX-License-Identifier: MIT */
/*
 * Large messages and reads between two processes that must not read each other's memory: Yama,
 * seccomp, namespaces, a process that is not dumpable, and a kernel without the call. They arrive
 * whole, with the right results, and the log reports once that transfers are slower. As root, the
 * tests run as an unprivileged user. softroce/check-ptrace.sh runs it with each of Yama's scopes,
 * and sets SLUICE_TEST_PTRACE_SCOPE to the scope.
 */
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/fault.h"

#define BIG ((size_t)1 << 20)
#define CHANNELS 2
#define NOBODY 65534

/* The restriction of a process. */
enum hindrance {
    READING_DENIED = 1, /* seccomp refuses process_vm_readv(2) */
    READING_UNKNOWN = 2,
    OTHER_USERS = 4, /* in a user namespace of its own */
    UNDUMPABLE = 8   /* as one that has changed its user */
};

struct row {
    const char *name;
    enum hindrance of[2]; /* of each rank */
    enum hindrance all;   /* of both, before they part */
};

static const struct row rows[] = {
    {"as the system has it", {0, 0}, 0},
    {"seccomp denies it to one", {READING_DENIED, 0}, 0},
    {"seccomp denies it to both", {READING_DENIED, READING_DENIED}, 0},
    {"a kernel without it", {READING_UNKNOWN, READING_UNKNOWN}, 0},
    {"one has changed its user", {0, UNDUMPABLE}, 0},
    {"one in another user namespace", {0, OTHER_USERS}, 0},
    {"each in its own user namespace", {OTHER_USERS, OTHER_USERS}, 0},
    {"both in one user namespace", {0, 0}, OTHER_USERS},
};

/* The log. */

static atomic_uint lent, copied, apart, shown, unreadable;

static void count_log(uint32_t level, const char *line, void *user)
{
    bool notable = level <= SLUICE_LOG_INFO;

    (void)user;
    atomic_fetch_add(&lent, notable && strstr(line, "can read large messages") != NULL);
    atomic_fetch_add(&copied, notable && strstr(line, "copied twice") != NULL);
    atomic_fetch_add(&apart, notable && strstr(line, "another namespace of users") != NULL);
    atomic_fetch_add(&shown, strstr(line, "may not map a region") != NULL);
    atomic_fetch_add(&unreadable, strstr(line, "cannot read from its peer's") != NULL);
}

/* Applies the restrictions of the row. */

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    require(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s: %s", path,
            strerror(errno));
    close(fd);
}

/* A process that changes its user is not dumpable until it executes a program. */
static void become_nobody(void)
{
    if (geteuid() == 0)
        require(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0, "%s",
                strerror(errno));
    require(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0, "%s", strerror(errno));
}

/* The capabilities of a program that is executed by a user other than root. */
static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

    require(syscall(SYS_capset, &header, none) == 0, "%s", strerror(errno));
}

/* Maps the same user and group as before into the namespace. */
static void leave_users(void)
{
    char users[64], groups[64];

    snprintf(users, sizeof users, "%u %u 1", geteuid(), geteuid());
    snprintf(groups, sizeof groups, "%u %u 1", getegid(), getegid());
    require(unshare(CLONE_NEWUSER) == 0, "%s", strerror(errno));
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", users);
    write_file("/proc/self/gid_map", groups);
    drop_capabilities();
}

static void filter(struct sock_filter *code, size_t count)
{
    const struct sock_fprog program = {(unsigned short)count, code};

    require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "%s", strerror(errno));
    require(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0, "%s", strerror(errno));
}

static void forbid_reading(unsigned err)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };

    filter(code, COUNT(code));
}

static void hinder(enum hindrance of)
{
    become_nobody();
    if (of & OTHER_USERS)
        leave_users();
    if (of & READING_DENIED)
        forbid_reading(EPERM);
    if (of & READING_UNKNOWN)
        forbid_reading(ENOSYS);
    if (of & UNDUMPABLE)
        require(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, "%s", strerror(errno));
}

/* Some systems permit this only to root. */
static bool can_leave_users(void)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit((geteuid() != 0 || setuid(NOBODY) == 0) && unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* Asks the kernel directly. */

struct place {
    pid_t pid;
    const uint64_t *word;
};

static const uint64_t word = 0x5eaf00d;

/* Neither process is the parent of the other, which Yama would permit. */
static bool may_read(struct rank *rank)
{
    struct place places[2] = {{getpid(), &word}, {getpid(), &word}};
    uint64_t got = 0;

    rank_exchange(rank, places, places, sizeof places[0]);
    struct iovec to = {&got, sizeof got};
    struct iovec from = {(void *)(uintptr_t)places[!rank->index].word, sizeof got};
    ssize_t length = process_vm_readv(places[!rank->index].pid, &to, 1, &from, 1, 0);
    rank_barrier(rank);
    return length == (ssize_t)sizeof got && got == word;
}

/* Returns -1 without Yama, or if the scope cannot be read. */
static int ptrace_scope(void)
{
    FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    int scope = -1;

    if (file) {
        if (fscanf(file, "%d", &scope) != 1)
            scope = -1;
        fclose(file);
    }
    return scope;
}

static void check_kernel(const struct row *row, bool readable)
{
    const char *set = getenv("SLUICE_TEST_PTRACE_SCOPE");
    int scope = ptrace_scope();

    require(!set || atoi(set) == scope, "scope %d, not %s", scope, set);
    /* A process that made a user namespace has all capabilities over processes in it. */
    if (scope > 0 && ((row->of[0] | row->of[1]) & OTHER_USERS) == 0)
        require(!readable, "%s: readable with scope %d", row->name, scope);
    if (set && scope == 0 && row == &rows[0])
        require(readable, "%s: not readable with scope 0", row->name);
}

/* The work. */

struct end {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_channel *channels[CHANNELS];
    struct memory memory;
};

static void end_open(struct end *end, struct rank *rank)
{
    end->context = open_context();
    end->pd = made(sluice_pd_alloc(end->context));
    memory_open(&end->memory, end->pd, BIG);
    for (uint32_t i = 0; i < CHANNELS; i++) {
        struct sluice_endpoint endpoints[2];
        struct sluice_prepared_channel *prepared = prepare_channel(end->pd, NULL, &endpoints[0]);

        endpoints[1] = endpoints[0];
        rank_exchange(rank, endpoints, endpoints, sizeof endpoints[0]);
        end->channels[i] =
            made(sluice_prepared_channel_handshake(prepared, &endpoints[!rank->index]));
        require_ok(sluice_channel_wait_connected(end->channels[i], DEADLINE));
    }
}

static void end_close(struct end *end)
{
    for (uint32_t i = 0; i < CHANNELS; i++)
        sluice_channel_close(end->channels[i]);
    memory_close(&end->memory);
    sluice_pd_free(end->pd);
    sluice_context_close(end->context);
}

/* Passes one message and checks it and its completion at both ends. */
static void pass(struct end *end, const struct rank *rank, uint32_t channel, uint32_t from,
                 uint64_t key)
{
    struct sluice_sge sge = memory_sge(&end->memory, 0, BIG);
    bool sends = rank->index == from;
    struct sluice_request request = request_of(sends ? SLUICE_OP_SEND : SLUICE_OP_RECEIVE, 0, &sge);
    struct sluice_completion completion;

    if (sends)
        pattern_fill(end->memory.bytes, BIG, key);
    else
        memset(end->memory.bytes, 0, BIG);
    completion =
        await(end->channels[channel], post(end->channels[channel], &request), SLUICE_CLASS_NONE);
    require(completion.status == SLUICE_STATUS_SUCCESS && completion.bytes == BIG,
            "status %u, %llu bytes", completion.status, (unsigned long long)completion.bytes);
    if (!sends)
        pattern_check(end->memory.bytes, BIG, key);
}

/* A message longer than its receive is refused, with the same text as ever. */
static void pass_too_much(struct end *end, struct rank *rank)
{
    struct sluice_sge sge = memory_sge(&end->memory, 0, rank->index == 0 ? BIG : BIG / 2);
    struct sluice_request request =
        request_of(rank->index == 0 ? SLUICE_OP_SEND : SLUICE_OP_RECEIVE, 0, &sge);

    await(end->channels[0], post(end->channels[0], &request), SLUICE_CLASS_TRUNCATED);
    rank_barrier(rank);
}

/*
 * Reads memory that the peer has registered, until it is known whether that is possible, and
 * further on.
 */
static void read_registered(struct end *end, struct rank *rank, bool near)
{
    static uint8_t theirs[BIG];
    struct sluice_mr *mr = made(sluice_mr_register(
        end->pd, theirs, BIG, SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_READ));
    struct sluice_sge sge = memory_sge(&end->memory, 0, BIG);
    struct sluice_remote_mr remotes[2];

    pattern_fill(theirs, BIG, rank->index);
    require_ok(sluice_mr_remote(mr, &remotes[0]));
    remotes[1] = remotes[0];
    rank_exchange(rank, remotes, remotes, sizeof remotes[0]);
    for (int i = 0; i < (short_run() ? 8 : 20) || (near && atomic_load(&shown) == 0); i++) {
        memset(end->memory.bytes, 0, BIG);
        require_ok(
            sluice_channel_read(end->channels[0], &sge, 1, &remotes[!rank->index], DEADLINE));
        pattern_check(end->memory.bytes, BIG, !rank->index);
    }
    require_ok(sluice_channel_read(end->channels[0], &sge, 1, &remotes[!rank->index], DEADLINE));
    rank_barrier(rank);
    require_ok(sluice_mr_deregister(mr));
}

static void check_log(const struct row *row, bool readable)
{
    bool others = ((row->of[0] | row->of[1]) & OTHER_USERS) != 0;

    if (others)
        readable = false;
    require_result((int)atomic_load(&apart), others);
    require_result((int)atomic_load(&lent), readable);
    require_result((int)atomic_load(&copied), !others && !atomic_load(&lent));
    require_result((int)atomic_load(&unreadable), !others && !atomic_load(&lent));
}

static void send_large(struct rank *rank)
{
    const struct row *row = rank->argument;
    uint32_t messages = short_run() ? 2 : 5;
    struct end end;
    bool readable;

    hinder(row->of[rank->index]);
    require_ok(sluice_log_set(SLUICE_LOG_DEBUG, count_log, NULL));
    readable = may_read(rank);
    check_kernel(row, readable);
    end_open(&end, rank);
    for (uint32_t i = 0; i < messages * CHANNELS * 2; i++)
        pass(&end, rank, i / 2 % CHANNELS, i % 2, i);
    read_registered(&end, rank, ((row->of[0] | row->of[1]) & OTHER_USERS) == 0);
    pass_too_much(&end, rank);
    end_close(&end);
    check_log(row, readable);
}

TEST(large_messages_arrive, .times = COUNT(rows))
{
    const struct row *row = &rows[_i];

    if (((row->of[0] | row->of[1] | row->all) & OTHER_USERS) != 0 && !can_leave_users()) {
        fprintf(stderr, "# %s: left out, this user gets no user namespace\n", row->name);
        return;
    }
    /* Other runs prove restrictions that apply with any scope. The guest of this one is slow. */
    if (short_run() && getenv("SLUICE_TEST_PTRACE_SCOPE") &&
        ((row->of[0] | row->of[1]) & (READING_DENIED | READING_UNKNOWN | UNDUMPABLE)) != 0)
        return;
    if (row->all)
        hinder(row->all);
    group_run(2, send_large, row, 60);
}

int main(void)
{
    return RUN_ON_SOFT("forbidden", {"shm", WIRE_SHM, 100});
}
