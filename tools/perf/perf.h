/* SPDX-License-Identifier: MIT */
/*
 * sluice-perf: what the calls of the library cost. A team of processes, each of which has
 * a role, does one work after the other, in each of the sizes. Role 0, the leader,
 * measures and reports; the others follow: they answer, consume or are read. Only public
 * calls of the library are used.
 */
#ifndef PERF_H
#define PERF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <sluice.h>

#include "plan.h"
#include "ticks.h"

#define PERF_ENDPOINT_CHUNK 64

/* What a process is told by its arguments alone; the plan is the leader's. */
struct options {
    struct plan plan;
    const char *device;  /* NULL: the library's choice */
    const char *address; /* of a server: where it listens, or "" for everywhere */
    const char *host;    /* of a client: where the server is */
    uint32_t port;
    uint32_t format; /* enum format */
    bool serves, local, peers_given, quiet;
};

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV };

/* One process of the run, and its connections. */
struct team {
    struct plan plan;
    struct sluice_exchange *exchange;
    uint32_t rank, ranks; /* of the exchange */
    uint32_t leader;      /* its rank */
    uint32_t role;        /* 0: the leader; role r is rank leader + r, modulo ranks */
    int64_t deadline;
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_node *node; /* if a barrier is to be measured */
    /* Of the leader: peer i is role i + 1, then those that are idle. Of others: 0 is the leader. */
    struct sluice_multichannel *channels;
    struct sluice_multichannel *idle; /* the other ends of those, of role 1 */
    uint32_t peers;                   /* of channels, without the idle ones */
    struct sluice_mr *mr;
    struct sluice_sge memory;         /* its first byte, to name others by */
    struct sluice_remote_mr *remotes; /* of the peers */
    size_t area, stride;              /* of one peer, and of a message in it */
    uint32_t slots;                   /* messages that an area has */
    uint32_t window;                  /* in flight of a stream to each peer */
    bool same_for_all;                /* the leader's message is the same to all */
    struct sluice_request *list;      /* room for all requests of a call */
    uint32_t list_size;
    struct sluice_context_info info;
    char address[64]; /* of the first peer */
};

/* One phase: so many iterations, all of which begin and end in it. */
struct run {
    const struct work *work;
    size_t size;
    uint64_t count;
    uint64_t done;           /* iterations of this size in earlier phases */
    struct histogram *times; /* of an iteration, in ticks */
    uint64_t ticks;          /* of all iterations of the phase */
    double tick_length;      /* nanoseconds */
};

enum {
    WORK_HALF = 1,     /* an iteration is there and back: the time is that of one way */
    WORK_STREAM = 2,   /* an iteration is a message of a stream, which has a bandwidth */
    WORK_SIZELESS = 4, /* moves nothing of the program's, or 8 bytes */
    WORK_BLOCKING = 8, /* has no other level */
    WORK_PAIR = 16,    /* of the leader and one peer */
    WORK_SAME = 32     /* one message to all */
};

/* What both sides do in a phase. Each calls team_meet() once, when it is ready to begin. */
struct work {
    const char *name, *what;
    int (*lead)(struct team *team, struct run *run);
    int (*follow)(struct team *team, struct run *run);
    uint32_t flags;
    uint32_t least;  /* bytes of a message */
    uint32_t blocks; /* of a message that an iteration moves, for each peer */
};

extern const struct work perf_works[];
extern const uint32_t perf_work_count;

/* options.c: 0; 1: all is said; -1: wrong, and was said to be. */
int options_read(struct options *options, int argc, char **argv);

/* complain.c: prints who, what, and the library's text; -1. */
int team_fail(const struct team *team, const char *what);
int team_complain(const struct team *team, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* await_server.c: 0 once somebody listens there, or may; -1, with a complaint, if nobody does. */
int await_server(const struct team *team, const struct options *options);

/* local.c: the peers that this process has started, and an exchange with them. */
struct sluice_exchange *local_start(uint32_t ranks, uint32_t *rank);
/* Of the one that has started them: ends them; says who was killed, if all was well but that. */
int local_end(int result);

/* team.c */
int team_open(struct team *team, const struct options *options);
void team_close(struct team *team);
/* The places of messages of this size: sets stride, slots and window; the bytes of an area. */
size_t team_shape(struct team *team, size_t size);
/* Returns when all are here. */
int team_meet(struct team *team);
/* The leader tells all: each has it then. */
int team_broadcast(struct team *team, void *bytes, size_t size);

/* link.c: connections and memory. */
int link_open(struct team *team);
void link_close(struct team *team);
int link_connect(struct team *team, struct sluice_multichannel **channels, uint64_t *ticks);
struct sluice_channel_attr link_attr(const struct team *team);

/* place.c: where things are. */
size_t place_memory(const struct team *team);
struct sluice_sge place_out(const struct team *team, uint32_t peer, uint64_t number, size_t size);
struct sluice_sge place_in(const struct team *team, uint32_t peer, uint64_t number, size_t size);
/* A word of the peer's that is ours to write, and the one that it writes. */
uint64_t *place_word_out(const struct team *team, uint32_t peer);
uint64_t *place_word_in(const struct team *team, uint32_t peer);
struct sluice_sge place_word_sge(const struct team *team, uint32_t peer);
struct sluice_remote_mr place_remote_word(const struct team *team, uint32_t peer);
struct sluice_remote_mr place_remote_in(const struct team *team, uint32_t peer, uint64_t number,
                                        size_t size);
struct sluice_remote_mr place_remote_out(const struct team *team, uint32_t peer, uint64_t number,
                                         size_t size);

/* content.c: what is in the messages, if that is looked at, or written each time. */
void content_write(const struct team *team, uint32_t peer, uint64_t number, size_t size);
int content_check(const struct team *team, const struct run *run, uint32_t peer, uint64_t number);
bool content_matters(const struct team *team);

/* calls.c: one list as the level has it. */
struct calls {
    int (*blocking)(struct sluice_multichannel *channels, const struct sluice_request *requests,
                    uint32_t count, int64_t deadline, struct sluice_completion *completions);
    int (*scoped)(struct sluice_scope *scope, const struct sluice_request *requests, uint32_t count,
                  struct sluice_handle *handles);
    int (*unpolled)(struct sluice_multichannel *channels, const struct sluice_request *requests,
                    uint32_t count, int64_t deadline, struct sluice_handle *handles);
};
extern const struct calls calls_any;
int calls_do(struct team *team, const struct calls *calls, const struct sluice_request *requests,
             uint32_t count, const char *what);
/* Posts all, and waits for nothing but room. *early: completions that had to be taken for it. */
int calls_post(struct team *team, const struct sluice_request *requests, uint32_t count,
               uint32_t *early, const char *what);
/* Takes the completions of so many, of any. */
int calls_collect(struct team *team, uint32_t count, const char *what);
/* Takes what is there, 1 to most; waits for the first. completions has room for CALLS_BATCH. */
#define CALLS_BATCH 16
int calls_next(struct team *team, struct sluice_completion *completions, uint32_t most,
               const char *what);
uint32_t calls_flags(const struct team *team, size_t size);

/* The works. */
int send_lat_lead(struct team *team, struct run *run);
int send_lat_follow(struct team *team, struct run *run);
int write_lat_lead(struct team *team, struct run *run);
int write_lat_follow(struct team *team, struct run *run);
int read_lat_lead(struct team *team, struct run *run);
int cas_lat_lead(struct team *team, struct run *run);
int watch_follow(struct team *team, struct run *run);
int send_bw_lead(struct team *team, struct run *run);
int send_bw_follow(struct team *team, struct run *run);
int write_bw_lead(struct team *team, struct run *run);
int write_bw_follow(struct team *team, struct run *run);
int read_bw_lead(struct team *team, struct run *run);
int scatter_lead(struct team *team, struct run *run);
int gather_lead(struct team *team, struct run *run);
int gather_follow(struct team *team, struct run *run);
int scatter_gather_lead(struct team *team, struct run *run);
int scatter_gather_follow(struct team *team, struct run *run);
int gather_read_lead(struct team *team, struct run *run);
int multicast_lead(struct team *team, struct run *run);
int barrier_lead(struct team *team, struct run *run);
int connect_lead(struct team *team, struct run *run);

/* measure.c: all works in all sizes. */
int measure_all(struct team *team, const struct options *options);

/* report.c */
struct result {
    const struct work *work;
    size_t size;
    uint64_t iterations;
    double seconds;
    double mean, least, median, p99, p999, most; /* microseconds */
    double bandwidth;                            /* MiB/s, of all peers together */
    double rate;                                 /* messages a second */
};
void report_begin(const struct team *team, const struct options *options);
void report_result(const struct team *team, const struct options *options,
                   const struct result *result);
void report_end(const struct options *options);
void report_progress(const struct options *options, const struct run *run, double part);

#endif
