/* SPDX-License-Identifier: MIT */
/* Declarations that the parent's files share. */
#ifndef SOAK_BROKER_H
#define SOAK_BROKER_H

#include <sys/types.h>

#include "soak.h"

#define SAMPLES_MAX 4096

struct sample {
    double at; /* s */
    int64_t heap, resident;
    int32_t fds, threads;
};

struct member {
    pid_t pid; /* 0: there is none */
    int socket;
    uint32_t epoch;
    bool killed; /* by us */
    struct ledger *ledger;
    uint64_t beats;
    int64_t seen; /* when these changed */
    struct sample samples[SAMPLES_MAX];
    uint32_t sample_count;
};

extern struct member members[RANKS_MAX];
extern bool broken; /* the soak has failed */

/* watch.c */
void begin_watch(void);
double run_time(void);
/*
 * Reports a failure of the soak; the first one counts, and is printed with the state of all ranks.
 */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
void watch_members(const struct options *options);
void begin_life(struct member *member);
void end_life(uint32_t rank, struct member *member);
void add_sample(struct member *member, const struct count *count);
/* remains.c */
/* Notes the sockets of a live process that is about to end. */
void note_sockets(pid_t pid);
/* Checks while all ranks live and stand still. */
void check_remains(const struct options *options);
/* Checks when no rank lives. */
void conclude_remains(void);

/* watch.c again */
/* Prints the work that was done. Returns whether all is well. */
bool conclude_watch(const struct options *options);

#endif
