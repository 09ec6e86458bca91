/* SPDX-License-Identifier: MIT */
/*
 * Processes of one host meet and share memory, whatever their time namespaces: the start time of a
 * process, which distinguishes it from a later one with its number, differs between namespaces.
 * Processes that see no /proc meet over TCP.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

#include "../support/group.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

#define DEADLINE SLUICE_S(20)

/*
 * Moves to a time namespace of its own, whose clocks are ahead by the offset. Returns false if that
 * is not permitted.
 */
static bool move_clocks(const char *offset)
{
    FILE *file;
    int fd;
    bool moved;
    if (unshare(CLONE_NEWTIME) != 0) {
        return false;
    }
    file = fopen("/proc/self/timens_offsets", "we");
    require(file && fprintf(file, "monotonic %s\nboottime %s\n", offset, offset) > 0 &&
                fclose(file) == 0,
            "%s", strerror(errno));
    fd = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
    moved = fd >= 0 && setns(fd, CLONE_NEWTIME) == 0;
    close(fd);
    return moved;
}

static uint32_t level_of(const struct sluice_multichannel *all, uint32_t peer)
{
    struct sluice_channel_info info = {.size = sizeof(info)};
    require_ok(sluice_multichannel_peer_query(all, peer, &info));
    return info.level;
}

/* Each two ranks exchange a message. Returns their level to all others, which is the same. */
static uint32_t exchange_messages(struct rank *rank)
{
    struct sluice_completion completion;
    struct memory memory;
    struct mesh mesh;
    uint32_t level = SLUICE_LEVEL_MEMORY;
    mesh_open(&mesh, rank, NULL);
    memory_open(&memory, mesh.pd, 64);
    struct sluice_sge sge = memory_sge(&memory, 0, 64);
    for (uint32_t peer = 0; peer < rank->size; peer++) {
        if (rank->index < peer) {
            require_ok(sluice_multichannel_send(mesh.all, peer, &sge, 1, DEADLINE));
        } else if (rank->index > peer) {
            require_ok(sluice_multichannel_receive(mesh.all, peer, &sge, 1, DEADLINE, &completion));
        }
    }
    for (uint32_t peer = 0; peer < rank->size; peer++) {
        uint32_t now = level_of(mesh.all, peer);
        level = peer != rank->index && now < level ? now : level;
    }
    rank_barrier(rank);
    memory_close(&memory);
    mesh_close(&mesh);
    return level;
}

/* The clock is some hours and a part of a tick ahead. */
static void meet_in_time(struct rank *rank)
{
    static const char *const offsets[] = {NULL, "86400 0", "7 5000000"};
    uint32_t level;
    if (offsets[rank->index] && !move_clocks(offsets[rank->index]) && geteuid() == 0) {
        fprintf(stderr, "# no time namespace: %s\n", strerror(errno));
    }
    level = exchange_messages(rank);
    require(!device_is_soft() || level == SLUICE_LEVEL_MEMORY, "rank %u has level %u", rank->index,
            level);
}

TEST(time_namespaces, .group = "processes")
{
    group_run(3, meet_in_time, NULL, 30);
}

/* Hides all of /proc, or what is not about processes, from this process alone. */
static bool hide(bool all)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           (all ? mount("none", "/proc", "tmpfs", 0, NULL)
                : mount("none", "/proc/sys", "tmpfs", 0, NULL)) == 0;
}

/* Rank 0 sees /proc. The others do not know which host this is, and two of them no network. */
static void meet_without_proc(struct rank *rank)
{
    bool hidden = rank->index > 0 && hide(rank->index < 3);
    uint32_t level;
    if (rank->index > 0 && !hidden && geteuid() == 0) {
        fprintf(stderr, "# no namespace of mounts: %s\n", strerror(errno));
    }
    level = exchange_messages(rank);
    require(!hidden || !device_is_soft() || level == SLUICE_LEVEL_TCP, "rank %u has level %u",
            rank->index, level);
}

TEST(without_proc, .group = "processes")
{
    group_run(5, meet_without_proc, NULL, 30);
}

int main(void)
{
    return RUN_GROUPS("identity", {"processes", WIRE_SHM, 60});
}
