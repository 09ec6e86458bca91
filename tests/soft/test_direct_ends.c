/* SPDX-License-Identifier: MIT */
/*
 * A mapping of a peer's memory ends with the region, with the connection and with the peer; and the
 * effects of a peer that sends nonsense about its memory.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "direct.h"

/* The end of a region. */

/* The key no longer works, and the pages are released. */
static void lose_region(struct rank *rank)
{
    struct end end;
    uint32_t before;
    int result;

    end_open(&end, rank);
    before = count_maps("");
    if (rank->index == 0)
        use_until_known(&end);
    rank_barrier(rank);
    if (rank->index == 1) {
        require_ok(sluice_mr_deregister(end.mr));
        end.mr = NULL;
    }
    rank_barrier(rank);
    if (rank->index == 0) {
        /* The peer is notified over the socket, which its helper reads. */
        for (int tries = 0; count_maps("") != before && tries < 2000; tries++)
            let_pass(SLUICE_MS(10));
        require_result((int)count_maps(""), (int)before);
        result = read_word(&end, 0);
        require(result < 0 && strstr(sluice_last_error(), "access"), "%d: %s", result,
                sluice_last_error());
    }
    rank_barrier(rank);
    end_close(&end);
}

TEST(a_region_ends_for_all)
{
    group_run(2, lose_region, NULL, 60);
}

/* If it ends during a read, the reader gets either the earlier contents or "access". */
static void lose_it_in_use(struct rank *rank)
{
    for (uint32_t round = 0; round < (short_run() ? 30 : 200); round++) {
        struct end end;

        atomic_store(&mapped, 0);
        end_open(&end, rank);
        memset(end.bytes, 0x5a, REGION);
        rank_barrier(rank);
        if (rank->index == 0) {
            uint32_t count = 0;

            while (read_word(&end, 4096) == 0)
                count++;
            value_check(end.mine, 8, count > 0 ? 0x5a : 0);
            require(strstr(sluice_last_error(), "access"), "%s", sluice_last_error());
        } else {
            let_pass(1000 * (round * 37 % 2000));
            require_ok(sluice_mr_deregister(end.mr));
            end.mr = NULL;
        }
        rank_barrier(rank);
        end_close(&end);
    }
}

TEST(a_region_may_end_while_it_is_read)
{
    group_run(2, lose_it_in_use, NULL, 100);
}

/* More regions than the initial table holds are made and ended. */
static void use_many(struct rank *rank)
{
    enum { REGIONS = 300, ROUNDS = 3 };
    static struct sluice_mr *mrs[REGIONS];
    static struct sluice_remote_mr remotes[REGIONS];
    struct end end;
    uint32_t before;

    end_open(&end, rank);
    before = count_maps("");
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < REGIONS; i++) {
            mrs[i] = alloc(&end, 4096, SLUICE_ACCESS_LOCAL_WRITE | REMOTE_RIGHTS);
            memcpy(sluice_mr_addr(mrs[i]), &i, sizeof i);
            remotes[i] = share(&end, mrs[i]);
        }
        for (uint32_t i = 0; rank->index == 0 && i < 5 * REGIONS; i++) {
            struct sluice_sge sge = own_sge(&end, 0, 8);
            uint32_t found;

            require_ok(sluice_channel_read(end.channel, &sge, 1, &remotes[i % REGIONS], DEADLINE));
            memcpy(&found, end.mine, sizeof found);
            require(found == i % REGIONS, "%u", found);
        }
        rank_barrier(rank);
        for (uint32_t i = 0; i < REGIONS; i++)
            require_ok(sluice_mr_deregister(mrs[i]));
    }
    hear_all();
    if (rank->index == 0)
        require(atomic_load(&mapped) >= REGIONS, "%u", atomic_load(&mapped));
    rank_barrier(rank);
    for (int tries = 0; count_maps("") != before && tries < 2000; tries++)
        let_pass(SLUICE_MS(10));
    require_result((int)count_maps(""), (int)before);
    rank_barrier(rank);
    end_close(&end);
}

TEST(many_regions_come_and_go)
{
    group_run(2, use_many, NULL, 100);
}

/* Returns the number of the file that is mapped there. */
static unsigned long file_at(const void *addr)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned long start, end, file = 0, found = 0;
    char line[512];

    require(maps != NULL, "%s", strerror(errno));
    while (found == 0 && fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%lx-%lx %*s %*s %*s %lu", &start, &end, &file) == 3 &&
            start <= (uintptr_t)addr && (uintptr_t)addr < end)
            found = file;
    fclose(maps);
    require(found != 0, "no file at %p", addr);
    return found;
}

/* Rank 0 reads a new region of rank 1 so often; then it ends. Returns the number of its file. */
static unsigned long read_and_end(struct end *end, int reads, struct sluice_remote_mr *remote)
{
    struct sluice_mr *mr = alloc(end, 4096, SLUICE_ACCESS_LOCAL_WRITE | REMOTE_RIGHTS);
    uint8_t *bytes = sluice_mr_addr(mr);
    struct sluice_sge sge = own_sge(end, 0, 8);
    unsigned long file = file_at(bytes);

    value_check(bytes, 4096, 0);
    memset(bytes, 0x5a, 4096);
    *remote = share(end, mr);
    for (int i = 0; end->rank->index == 0 && i < reads; i++) {
        struct sluice_remote_mr part = slice(remote, 0, 8);

        require_ok(sluice_channel_read(end->channel, &sge, 1, &part, DEADLINE));
        value_check(end->mine, 8, 0x5a);
    }
    rank_barrier(end->rank);
    require_ok(sluice_mr_deregister(mr));
    return file;
}

/* Memory that no peer has mapped is that of the next region, whose key is another one. */
static void use_again(struct rank *rank)
{
    struct end end;
    struct sluice_remote_mr first, second, mapped_one, last, part;
    unsigned long files[3];
    struct sluice_sge sge;
    int result;

    end_open(&end, rank);
    files[0] = read_and_end(&end, 1, &first);
    files[1] = read_and_end(&end, 1, &second);
    require(files[0] == files[1], "not the same memory: %lu, %lu", files[0], files[1]);
    require(first.rkey != second.rkey, "key %#x again", first.rkey);
    read_and_end(&end, 20, &mapped_one);
    files[2] = read_and_end(&end, 1, &last);
    if (rank->index == 1)
        require(files[2] != files[0], "memory that a peer has mapped is used again");
    sge = own_sge(&end, 0, 8);
    part = slice(&second, 0, 8);
    if (rank->index == 0) {
        result = sluice_channel_read(end.channel, &sge, 1, &part, DEADLINE);
        require(result < 0 && strstr(sluice_last_error(), "access"), "%d: %s", result,
                sluice_last_error());
    }
    rank_barrier(rank);
    end_close(&end);
}

TEST(memory_without_mappings_of_peers_is_used_again)
{
    group_run(2, use_again, NULL, 60);
}

/* The end of a connection. */

/* A side that has closed the channel owns its memory alone, whatever its peer does. */
static void close_on_it(struct rank *rank)
{
    for (uint32_t round = 0; round < (short_run() ? 30 : 200); round++) {
        struct end end;

        atomic_store(&mapped, 0);
        end_open(&end, rank);
        rank_barrier(rank);
        if (rank->index == 0) {
            struct sluice_sge sge = own_sge(&end, 0, MIB);
            struct sluice_remote_mr remote = slice(&end.remote, 0, MIB);

            memset(end.mine, 0x77, MIB);
            while (sluice_channel_write(end.channel, &sge, 1, &remote, DEADLINE) == 0)
                ;
        } else {
            let_pass(1000 * (round * 53 % 3000));
            sluice_channel_close(end.channel);
            end.channel = NULL;
            memset(end.bytes, 0, REGION);
            let_pass(200000);
            value_check(end.bytes, REGION, 0);
        }
        rank_barrier(rank);
        end_close(&end);
    }
}

TEST(nothing_is_touched_once_it_is_closed)
{
    group_run(2, close_on_it, NULL, 100);
}

/* A program that only writes notices the death of its peer. */
static void survive(struct rank *rank)
{
    int64_t deadline = SLUICE_S(10);
    int64_t killed;
    struct end end;
    int result;

    end_open(&end, rank);
    if (rank->index == 1)
        rank_await_death(rank);
    use_until_known(&end);
    rank_kill(rank, 1);
    killed = fair_now();
    do {
        struct sluice_sge sge = own_sge(&end, 0, 8);
        struct sluice_remote_mr remote = slice(&end.remote, 0, 8);

        result = sluice_channel_write(end.channel, &sge, 1, &remote, deadline);
    } while (result == 0 && fair_now() - killed < DEADLINE);
    require_result(result, -ECONNRESET);
    require(fair_now() - killed < NOTICE, "%lld ms", (long long)(fair_now() - killed) / 1000000);
    end_close(&end);
    require_result((int)count_maps(""), 0);
}

TEST(program_that_only_writes_notices_a_death)
{
    group_run(2, survive, NULL, 60);
}

/* A peer that is stopped during its copies delays its partner no longer than necessary. */
static void stop_amid(struct rank *rank)
{
    pid_t pids[2] = {getpid(), getpid()};
    struct end end;

    rank_exchange(rank, pids, pids, sizeof pids[0]);
    for (uint32_t round = 0; round < (short_run() ? 3 : 12); round++) {
        atomic_store(&mapped, 0);
        end_open(&end, rank);
        if (rank->index == 0) {
            struct sluice_sge sge = own_sge(&end, 0, MIB);
            struct sluice_remote_mr remote = slice(&end.remote, 0, MIB);

            rank_barrier(rank);
            while (sluice_channel_read(end.channel, &sge, 1, &remote, DEADLINE) == 0)
                ;
        } else {
            int64_t begun;

            rank_barrier(rank);
            let_pass(SLUICE_MS(20) + 1000 * (int64_t)(round * 71 % 500));
            require(kill(pids[0], SIGSTOP) == 0, "%s", strerror(errno));
            begun = fair_now();
            if (round % 2 == 0) {
                require_ok(sluice_mr_deregister(end.mr));
                end.mr = NULL;
            }
            sluice_channel_close(end.channel);
            end.channel = NULL;
            require(fair_now() - begun < SLUICE_S(3), "%lld ms",
                    (long long)(fair_now() - begun) / 1000000);
            require(kill(pids[0], SIGCONT) == 0, "%s", strerror(errno));
        }
        rank_barrier(rank);
        end_close(&end);
    }
}

TEST(stopped_peer_delays_no_other)
{
    group_run(2, stop_amid, NULL, 100);
}

/* Nonsense over the socket, from the process that the library has connected to. */

static int find_socket(void)
{
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr address;
        socklen_t size = sizeof address;
        int type = 0;
        socklen_t type_size = sizeof type;

        if (getpeername(fd, &address, &size) == 0 && address.sa_family == AF_UNIX &&
            getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 && type == SOCK_STREAM)
            return fd;
    }
    return -1;
}

static void say(int socket, const void *bytes, size_t length, int fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec piece = {(void *)(uintptr_t)bytes, length};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};

    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
    }
    if (sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        require(errno == EAGAIN || errno == EPIPE || errno == ECONNRESET, "%s", strerror(errno));
}

/* A descriptor of some kind, sealed memory or not. */
static int draw_fd(uint64_t *state)
{
    int fd;

    switch (draw(state) % 5) {
    case 0:
        return -1;
    case 1:
        return open("/dev/null", O_RDWR | O_CLOEXEC);
    case 2:
        return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    default:
        fd = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (draw(state) % 2 == 0)
            require(ftruncate(fd, 32768) == 0 && fallocate(fd, 0, 0, 32768) == 0, "%s",
                    strerror(errno));
        if (draw(state) % 2 == 0)
            fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK);
        return fd;
    }
}

#define WORDS_KNOWN 9

static void say_nonsense(int socket, const struct end *end, uint64_t *state)
{
    uint8_t bytes[41];
    size_t length = draw(state) % 2 == 0 ? 41 : draw(state) % 41 + 1;
    int fd = draw_fd(state);
    uint32_t key = end->remote.rkey;
    uint64_t numbers[4] = {draw(state), draw(state), 32768, 1};

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)draw(state);
    bytes[0] = (uint8_t)(draw(state) % WORDS_KNOWN);
    if (draw(state) % 2 == 0)
        memcpy(bytes + 1, &key, sizeof key);
    if (draw(state) % 2 == 0)
        memcpy(bytes + 9, numbers, sizeof numbers);
    say(socket, bytes, length, fd);
    if (fd >= 0)
        close(fd);
}

static void hear_nonsense(struct rank *rank)
{
    int fds = count_fds();

    for (uint64_t round = 0; round < (short_run() ? 60 : 400); round++) {
        uint64_t state = round + 1;
        struct end end;
        int socket;

        atomic_store(&mapped, 0);
        end_open(&end, rank);
        memset(end.bytes, 0x33, REGION);
        rank_barrier(rank);
        if (rank->index == 0) {
            socket = dup(find_socket()); /* the library closes its own at any time */
            require(socket >= 0, "there is none");
            for (uint32_t i = 0; i < 20; i++)
                say_nonsense(socket, &end, &state);
            close(socket);
            while (read_word(&end, 0) == 0 && draw(&state) % 50 != 0)
                ;
        } else {
            int result = 0;

            for (int i = 0; i < 50 && result == 0; i++)
                result = read_word(&end, 0);
            require(result == 0 || result == -ECONNRESET || result == -EPROTO || result == -EIO,
                    "%d: %s", result, sluice_last_error());
            value_check(end.bytes, REGION, 0x33);
        }
        rank_barrier(rank);
        end_close(&end);
    }
    require(settle_fds(fds) <= fds, "%d descriptors, then %d", fds, count_fds());
}

TEST(nonsense_about_memory_maps_nothing)
{
    group_run(2, hear_nonsense, NULL, 150);
}

/*
 * Without a free descriptor, that of the peer's table is lost, and no region can be mapped; then
 * there are descriptors for the regions themselves, and none of them is left.
 */
static void have_no_table(struct rank *rank)
{
    struct rlimit limit, none;
    uint32_t before;
    struct end end;

    end_open(&end, rank);
    before = count_maps("");
    require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
    none = limit;
    if (rank->index == 0) {
        int fd = dup(0);

        require(fd >= 0 && close(fd) == 0, "%s", strerror(errno));
        none.rlim_cur = (rlim_t)fd;
        require(setrlimit(RLIMIT_NOFILE, &none) == 0, "%s", strerror(errno));
        for (int i = 0; i < 1000; i++)
            require_ok(read_word(&end, 0));
        require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
    }
    for (int round = 0; round < 10; round++) {
        struct sluice_mr *mr = alloc(&end, MIB, SLUICE_ACCESS_LOCAL_WRITE | REMOTE_RIGHTS);
        struct sluice_remote_mr remote = share(&end, mr), part = slice(&remote, 0, 8);
        struct sluice_sge sge = own_sge(&end, 0, 8);

        for (int i = 0; rank->index == 0 && i < 200; i++)
            require_ok(sluice_channel_read(end.channel, &sge, 1, &part, DEADLINE));
        rank_barrier(rank);
        require_ok(sluice_mr_deregister(mr));
    }
    require_result((int)atomic_load(&mapped), 0);
    require_result((int)count_maps(""), (int)before);
    rank_barrier(rank);
    end_close(&end);
}

TEST(without_a_table_nothing_is_left_mapped)
{
    group_run(2, have_no_table, NULL, 60);
}

/* Words without a descriptor, so that those with one begin anywhere in the bytes that are read. */
struct ringer {
    int socket;
    atomic_bool stop;
};

static void *ring(void *argument)
{
    struct ringer *ringer = argument;
    static const uint8_t bells[40] = {[0 ... 39] = 1};

    for (size_t i = 1; !atomic_load(&ringer->stop); i = i % sizeof bells + 1) {
        say(ringer->socket, bells, i, -1);
        let_pass(SLUICE_US(5));
    }
    return NULL;
}

/* The peer is asked for many regions at once, some of which may not be mapped, and answers all. */
static void ask_much_at_once(struct rank *rank)
{
    enum { REGISTERED = 7, REGIONS = REGISTERED + 4, USES = 4 };
    static uint8_t memory[REGISTERED][4096];
    struct ringer ringer = {.socket = -1};
    pthread_t thread;
    struct end end;

    end_open(&end, rank);
    if (rank->index == 1) {
        ringer.socket = dup(find_socket());
        require(ringer.socket >= 0, "there is none%s", "");
        require(pthread_create(&thread, NULL, ring, &ringer) == 0, "%s", strerror(errno));
    }
    for (int round = 0; round < (short_run() ? 60 : 200); round++) {
        struct sluice_remote_mr remotes[REGIONS];
        struct sluice_mr *mrs[REGIONS];

        for (int i = 0; i < REGIONS; i++) {
            uint32_t access = SLUICE_ACCESS_LOCAL_WRITE | REMOTE_RIGHTS;

            mrs[i] = i < REGISTERED ? sluice_mr_register(end.pd, memory[i], 4096, access)
                                    : alloc(&end, 4096, access);
            require(mrs[i], "%s", sluice_last_error());
            remotes[i] = share(&end, mrs[i]);
        }
        for (int i = 0; rank->index == 0 && i < USES * REGIONS; i++) {
            struct sluice_sge sge = own_sge(&end, 0, 8);
            struct sluice_remote_mr remote = slice(&remotes[i % REGIONS], 0, 8);

            require_ok(sluice_channel_read(end.channel, &sge, 1, &remote, DEADLINE));
        }
        rank_barrier(rank);
        for (int i = 0; i < REGIONS; i++)
            require_ok(sluice_mr_deregister(mrs[i]));
    }
    if (rank->index == 1) {
        atomic_store(&ringer.stop, true);
        pthread_join(thread, NULL);
        close(ringer.socket);
    }
    rank_barrier(rank);
    end_close(&end);
}

TEST(answers_may_come_all_at_once)
{
    group_run(2, ask_much_at_once, NULL, 100);
}

int main(void)
{
    return RUN_ON_SOFT("direct_ends", {"shm", WIRE_SHM, 200});
}
