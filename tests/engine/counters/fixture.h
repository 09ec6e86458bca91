/* SPDX-License-Identifier: MIT */
/* A pair whose counters are compared with the expected ones. */
#ifndef COUNTERS_FIXTURE_H
#define COUNTERS_FIXTURE_H

#include "../../support/pair.h"

#define FIXTURE_BYTES 65536

struct sluice_counters read_channel(const struct sluice_channel *channel);
struct sluice_counters read_all(const struct sluice_multichannel *multichannel);
struct sluice_counters read_peer(const struct sluice_multichannel *multichannel, uint32_t peer);
/*
 * Requires that all counts are those wanted, except those of polls, sleeps and discarded
 * completions.
 */
void check_counters(const char *file, int line, struct sluice_counters got,
                    const struct sluice_counters *wanted);
#define require_counters(got, wanted) check_counters(__FILE__, __LINE__, got, wanted)

/* A pair with memory on both sides. */
struct fixture {
    struct pair pair;
    struct memory memories[2];
    struct sluice_counters wanted[2]; /* of both ends */
};

void fixture_open(struct fixture *fixture, const struct sluice_channel_attr *attr);
/* Requires that both ends have the expected counts. */
void fixture_check(const struct fixture *fixture);
void fixture_close(struct fixture *fixture);
/* The first bytes of a side, and a write from the first side to the second. */
struct sluice_sge sge_of(const struct fixture *fixture, int side, size_t length);
struct sluice_request write_of(const struct fixture *fixture, const struct sluice_sge *sge);
/* Expects one more request that succeeds. */
void expect(struct sluice_counters *wanted, uint32_t opcode, uint64_t bytes);
/* Makes the first end fail this way, with one request of the class. */
void fail_write(struct fixture *fixture, bool local);

#endif
