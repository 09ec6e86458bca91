/* SPDX-License-Identifier: MIT */
/*
 * Processes of one host meet and share memory, whatever their time namespaces: the start time of a
 * process, which distinguishes it from a later one with its number, differs between namespaces.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
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

/* The clock is some hours and a part of a tick ahead. */
static void meet_in_time(struct rank *rank)
{
    static const char *const offsets[] = {NULL, "86400 0", "7 5000000"};
    struct sluice_completion completion;
    struct memory memory;
    struct mesh mesh;
    if (offsets[rank->index] && !move_clocks(offsets[rank->index]) && geteuid() == 0) {
        fprintf(stderr, "# no time namespace: %s\n", strerror(errno));
    }
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
        require(peer == rank->index || !device_is_soft() ||
                    level_of(mesh.all, peer) == SLUICE_LEVEL_MEMORY,
                "rank %u and %u have level %u", rank->index, peer, level_of(mesh.all, peer));
    }
    rank_barrier(rank);
    memory_close(&memory);
    mesh_close(&mesh);
}

TEST(time_namespaces, .group = "processes")
{
    group_run(3, meet_in_time, NULL, 30);
}

int main(void)
{
    return RUN_GROUPS("identity", {"processes", WIRE_SHM, 60});
}
