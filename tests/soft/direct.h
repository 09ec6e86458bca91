/* SPDX-License-Identifier: MIT */
/* Helpers shared by the tests of one-sided requests in mapped memory. */
#ifndef SOFT_DIRECT_H
#define SOFT_DIRECT_H

#include <stdatomic.h>

#include "../support/fault.h"

#define MIB ((size_t)1 << 20)
#define REGION (2 * MIB)
#define REMOTE_RIGHTS \
    (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_ATOMIC)

/* Counts of log lines about regions in this process; tests reset them. */
extern atomic_uint mapped, denied, unreadable;
/* Counts those three kinds of log lines, including lines that the log held back. */
void hear_all(void);

/* Two ranks, each with a channel to the other, and a region that the other one may use. */
struct end {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_channel *channel;
    struct sluice_mr *mr, *own;
    uint8_t *bytes, *mine;
    struct sluice_remote_mr remote;
    struct rank *rank;
};

/* rights: of the region; granted: of the channel, 0 is all. */
void end_open_with(struct end *end, struct rank *rank, uint32_t rights, uint32_t granted);
void end_open(struct end *end, struct rank *rank);
void end_close(struct end *end);
struct sluice_mr *alloc(const struct end *end, size_t length, uint32_t access);
/* Exchanges keys of regions; both ranks call it. Returns the region of the other rank. */
struct sluice_remote_mr share(const struct end *end, const struct sluice_mr *mr);
struct sluice_sge own_sge(const struct end *end, size_t offset, size_t length);
struct sluice_remote_mr slice(const struct sluice_remote_mr *whole, size_t offset, size_t length);
int read_word(struct end *end, size_t offset);
/* Makes requests until the region is mapped, or the log says that it will not be. */
void use_until_known(struct end *end);
/* Counts mappings of regions, own ones included, whose line in /proc/self/maps has these words. */
uint32_t count_maps(const char *with);
uint32_t draw(uint64_t *state);

#endif
