/* SPDX-License-Identifier: MIT */
/* Ranks of an exchange over TCP in threads of one process, on the loopback. */
#ifndef EXCHANGE_PARTIES_H
#define EXCHANGE_PARTIES_H

#include <pthread.h>

#include "../support/suite.h"

#define PARTIES 48

/* One rank: how it opens, and the results of that and of its calls. */
struct party {
    struct sluice_exchange_attr attr;
    int64_t deadline; /* of all its calls */
    int64_t delay;    /* before it opens */
    bool absent;      /* never started */
    void (*function)(struct party *party);
    struct sluice_exchange *exchange;
    int error; /* of the call that failed, or 0; negative */
    char text[320];
    uint32_t missing[PARTIES];
    int missing_count;
    pthread_t thread;
};

/* All ranks, with the same root, at a port without a listener. */
struct parties {
    char root[64];
    uint16_t port;
    uint32_t count;
    struct party party[PARTIES];
};

/* Returns a port that is reserved for listeners of this test until its process ends. */
uint16_t find_port(void);
void parties_make(struct parties *parties, uint32_t count, int64_t deadline);
/* Each thread opens its rank, calls function if that succeeded, and closes. */
void party_start(struct party *party, void (*function)(struct party *party));
/* These skip absent ranks. */
void parties_start(struct parties *parties, void (*function)(struct party *party));
void parties_join(struct parties *parties);
void parties_run(struct parties *parties, void (*function)(struct party *party));
/* Runs this function in ranks made by parties_make(). */
void run_ranks(struct parties *parties, uint32_t count, int64_t deadline,
               void (*function)(struct party *party));
/* Requires that no rank has failed. */
void require_all_ok(const struct parties *parties);

/* Notes the result of a call, its text and the missing ranks. Returns whether it failed. */
bool party_failed(struct party *party, int error);
/* Requires that the rank failed with this error, and these words in this order. */
void party_require(const struct party *party, int error, const char *words);
/* Requires that its exchange reported these ranks as missing. */
void party_require_missing(const struct party *party, const uint32_t *ranks, uint32_t count);
/* Makes all calls of an exchange with this many bytes; they must succeed. */
void party_calls(struct party *party, size_t bytes);

#endif
