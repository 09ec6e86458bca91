/* SPDX-License-Identifier: MIT */
/*
 * A group of processes. The parent forks them and then serves as their hub: requests of ranks go
 * through it, so it knows at any time which rank waits for what. If a rank fails, ends badly, or
 * exceeds its time, the test fails with its text; no process is ever left behind.
 */
#ifndef SUPPORT_GROUP_H
#define SUPPORT_GROUP_H

#include "memory.h"

/* The most ranks of a test; and of a group without a mesh. */
#define GROUP_MAX 16
#define GROUP_MOST 64
/* Bytes that a rank may give to another one in an exchange. */
#define GROUP_BLOCK 2048

struct rank {
    uint32_t index;
    uint32_t size;
    const void *argument;
    int hub;
};

/* Runs function in size processes; all must succeed within this many seconds. */
void group_run(uint32_t size, void (*function)(struct rank *rank), const void *argument,
               unsigned seconds);

/*
 * The rest is for ranks. A barrier and an exchange include all ranks that have not been killed.
 * While a rank waits in one, it is outside of the library.
 */
void rank_barrier(struct rank *rank);
/* Block i of size bytes goes to rank i; theirs come back in the same order. */
void rank_exchange(struct rank *rank, const void *blocks, void *received, size_t bytes);
/* Kills another rank with SIGKILL; it is dead and reaped on return. */
void rank_kill(struct rank *rank, uint32_t victim);
/* Waits to be killed. */
void rank_await_death(struct rank *rank) __attribute__((noreturn));
/* Ends this process with the text, if it is a rank. */
void rank_fail(const char *text);

/* A multichannel to all ranks, self included: peer i is rank i. */
struct mesh {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_multichannel *all;
};

/* Connects all ranks and waits until all have done so. */
void mesh_open(struct mesh *mesh, struct rank *rank, const struct sluice_channel_attr *attr);
void mesh_close(struct mesh *mesh);
/*
 * A barrier after which this rank sees what others wrote to its memory, and they see its earlier
 * writes. A system call would suffice; but only a call of the library shows ThreadSanitizer the
 * order of this thread and its helper.
 */
void mesh_barrier(struct mesh *mesh, struct rank *rank);
/* Gives the whole region to all ranks and takes theirs. */
void mesh_share(struct rank *rank, const struct memory *memory,
                struct sluice_remote_mr remotes[GROUP_MAX]);

#endif
