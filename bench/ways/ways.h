/* SPDX-License-Identifier: MIT */
/*
 * Ways of use: each is a small program as the manual teaches it, which one or more ranks run
 * over one wire. bench/usage compares them.
 */
#ifndef BENCH_WAYS_H
#define BENCH_WAYS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <sluice.h>

#define DEADLINE SLUICE_S(30)
#define WINDOW 64u /* requests in flight of a stream */

/* What is set up for a rank before its way runs. */
enum {
    CHANNEL = 1 << 0,  /* a channel to the other of two ranks */
    NODE = 1 << 1,     /* a node of all ranks, and its multichannel */
    ARRIVALS = 1 << 2, /* connections count arrivals */
    BLOCKS = 1 << 3,   /* memory for BLOCK_COUNT blocks of the size, twice */
    CACHE = 1 << 4,    /* connections have a cache of registrations */
    SELF = 1 << 5,     /* runs within one context only */
    APART = 1 << 6,    /* runs between processes only */
    POOL = 1 << 7,     /* connections share POOL_COUNT receives */
};

#define BLOCK_COUNT 64u
#define POOL_COUNT 32u

/* Common sizes. */
#define SMALL \
    {         \
        8     \
    }
#define SIZES          \
    {                  \
        8, 4096, 65536 \
    }

struct rank {
    const struct way *way;
    uint32_t rank, ranks, size; /* size: bytes of a message */
    uint32_t before;            /* peers or calls before the start, for ways whose cost may grow */
    const char *wire;
    int sockets[16]; /* to the other ranks */
    struct sluice_exchange *exchange;
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_mr_cache *cache;
    struct sluice_mr *mr;
    char *memory;
    struct sluice_remote_mr remotes[16]; /* the memory of all ranks */
    struct sluice_channel *channel;
    struct sluice_node *node;
    struct sluice_multichannel *all;
    int64_t posting; /* nanoseconds of posting, if a way reports it */
    void *state;     /* of the way, from its setup to its end */
};

struct way {
    const char *name;
    const char *group;
    const char *against; /* the best way of the same work; perhaps itself */
    const char *plain;   /* a way without the library, or NULL */
    const char *mpi;     /* a work of peers/mpi.c, or NULL */
    const char *calls;   /* that this way measures, without sluice_ */
    unsigned needs;
    uint8_t ranks[4];
    uint32_t sizes[4];
    void (*setup)(struct rank *rank);
    void (*run)(struct rank *rank, uint64_t count);
    void (*end)(struct rank *rank);
};

/* The tables of the groups; the last entry has no name. */
extern const struct way ways_agent[], ways_block[], ways_buffer[], ways_connect[], ways_echo[],
    ways_exchange[], ways_group[], ways_memory[], ways_object[], ways_plain[], ways_scope[],
    ways_solo[], ways_stream[];

/* Ends the program, with the text of the library, if a call has failed. */
int must_succeed(int64_t result, const char *call);
void *must_exist(void *object, const char *call);
#define MUST(call) must_succeed((call), #call)
#define MAKE(call) must_exist((call), #call)

int64_t now(void);

/* Shares the bytes of each rank with all; all has room for those of each. */
void share(struct rank *rank, const void *own, void *all, size_t bytes);
/* Sleeps until all ranks have called it. */
void meet(struct rank *rank);

/* An element of the memory of the rank. */
struct sluice_sge place(const struct rank *rank, size_t offset, size_t bytes);
/* The same bytes in the memory of another rank. */
struct sluice_remote_mr remote(const struct rank *rank, uint32_t peer, size_t offset, size_t bytes);
/* Fills a list of writes of the message to the memory of the second rank. */
void fill_writes(const struct rank *rank, struct sluice_request *requests, uint32_t count);
/* Returns the other of two ranks. */
static inline uint32_t other(const struct rank *rank)
{
    return 1 - rank->rank;
}

/* Returns a connected channel to the other rank, which makes one as well. */
struct sluice_channel *connect_channel(struct rank *rank, const struct sluice_channel_attr *attr);

/* Runs the ranks of a way and prints the times; on failure it ends the program. */
struct plan {
    const struct way *way;
    const char *wire;
    uint32_t ranks, size, before;
    uint64_t warm, count; /* 0: as many as fit in seconds */
    double seconds;
};
void run_team(const struct plan *plan);

#endif
