/* SPDX-License-Identifier: MIT */
/*
 * Checks that the dead leave nothing behind. Before the ranks end, when all are connected to all,
 * each piece of shared memory that one of them has mapped must be mapped, or held open, by another
 * one, for both ends of a connection map its segments; a leftover of a killed process would be
 * mapped once. At that time no Unix socket of a killed rank may be left, and in the end none of any
 * rank.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "../../support/inodes.h"
#include "broker.h"

/* The time for new connections, of which only one end may have mapped its memory yet. */
#define SETTLING_TIME SLUICE_S(20)

static struct inodes sockets; /* of all ranks, as far as we have seen them */
static uint64_t maps;         /* at the end */

static void must_tell(bool told, const char *what, pid_t pid)
{
    if (!told) {
        complain("%s of process %d: %s", what, (int)pid, strerror(errno));
    }
}

/*
 * A process that has just been forked still has the parent's ends of the sockets to all others,
 * which are not its own, and live on.
 */
void note_sockets(pid_t pid)
{
    struct inodes ours = {0};
    struct inodes theirs = {0};
    must_tell(inodes_add_open(&ours, getpid(), "socket:"), "the sockets", getpid());
    must_tell(inodes_add_open(&theirs, pid, "socket:"), "the sockets", pid);
    inodes_sort(&ours);
    for (size_t i = 0; i < theirs.count; i++) {
        if (inodes_times(&ours, theirs.items[i]) == 0) {
            must_tell(inodes_add(&sockets, theirs.items[i]), "the sockets", pid);
        }
    }
    inodes_free(&ours);
    inodes_free(&theirs);
}

/* Returns how many are mapped by only one rank and not open in any, and the first such rank. */
static size_t count_orphans(const struct options *options, uint32_t *rank)
{
    struct inodes own[RANKS_MAX] = {{0}};
    struct inodes all = {0};
    struct inodes held = {0};
    size_t orphans = 0;
    for (uint32_t i = 0; i < options->ranks; i++) {
        must_tell(inodes_add_maps(&own[i], members[i].pid), "the mappings", members[i].pid);
        must_tell(inodes_add_maps(&all, members[i].pid), "the mappings", members[i].pid);
        must_tell(inodes_add_open(&held, members[i].pid, "/memfd:sluice"), "what is open",
                  members[i].pid);
    }
    inodes_sort(&all);
    inodes_sort(&held);
    for (uint32_t i = options->ranks; i-- > 0;) {
        for (size_t j = 0; j < own[i].count; j++) {
            uint64_t inode = own[i].items[j];
            if (inodes_times(&all, inode) < 2 && inodes_times(&held, inode) == 0) {
                orphans++;
                *rank = i;
            }
        }
        inodes_free(&own[i]);
    }
    maps = all.count;
    inodes_free(&all);
    inodes_free(&held);
    return orphans;
}

/* Counts the noted sockets that still exist. */
static size_t count_sockets(void)
{
    size_t left = 0;
    if (!inodes_count_sockets(&sockets, &left)) {
        complain("/proc/net/unix: %s", strerror(errno));
    }
    return left;
}

void check_remains(const struct options *options)
{
    int64_t end = clock_now() + SETTLING_TIME;
    uint32_t rank = 0;
    size_t orphans, left;
    do {
        orphans = count_orphans(options, &rank);
        left = count_sockets();
    } while ((orphans > 0 || left > 0) && clock_now() < end && (let_pass(SLUICE_MS(10)), true));
    if (orphans > 0) {
        complain("%zu mappings are of processes that are dead, of rank %u among others", orphans,
                 rank);
    }
    if (left > 0) {
        complain("%zu sockets are of processes that were killed", left);
    }
    for (uint32_t i = 0; i < options->ranks; i++) {
        note_sockets(members[i].pid);
    }
}

void conclude_remains(void)
{
    size_t left = count_sockets();
    if (left > 0) {
        complain("%zu sockets are left in the end", left);
    }
    printf("# %llu mappings of shared memory before the end, none of the dead; of %zu sockets that"
           " there were none is left\n",
           (unsigned long long)maps, sockets.count);
}
