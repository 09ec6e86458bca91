/* SPDX-License-Identifier: MIT */
/*
 * sluice-perf: measures what the calls of the library cost. A team of processes, each with
 * a role, runs one work after the other, in each size. Role 0, the leader, measures and
 * reports. The others follow: they answer, consume messages, or are read. Only public calls
 * of the library are used.
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

/* The arguments of a process. Followers use the plan of the leader instead of their own. */
struct options {
    struct plan plan;
    const char *device;  /* NULL: the library's choice */
    const char *address; /* of a server: where it listens, or "" for all addresses */
    const char *host;    /* of a client: the server's host */
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
    struct sluice_node *node; /* only if a barrier is measured */
    /* Peers of the leader: role i + 1 at i, then the idle ones. Others: the leader at 0. */
    struct sluice_multichannel *channels;
    struct sluice_multichannel *idle; /* of role 1: the other ends of the idle peers */
    uint32_t peers;                   /* of channels, without the idle ones */
    struct sluice_mr *mr;
    struct sluice_sge memory;         /* the first byte of mr */
    struct sluice_remote_mr *remotes; /* of the peers */
    size_t area, stride;              /* bytes of a peer's area, and of a message in it */
    uint32_t slots;                   /* messages in an area */
    uint32_t window;                  /* messages of a stream in flight to each peer */
    bool same_for_all;                /* the leader sends the same message to all */
    struct sluice_request *list;      /* room for the requests of a call */
    uint32_t list_size;
    struct sluice_context_info info;
    char address[64]; /* of the first peer */
};

/* One phase: count iterations, which begin and end in it. */
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
    WORK_HALF = 1,     /* an iteration is a round trip: half of its time is reported */
    WORK_STREAM = 2,   /* an iteration is a message of a stream, which has a bandwidth */
    WORK_SIZELESS = 4, /* has no sizes: moves no data of the program, or 8 bytes */
    WORK_BLOCKING = 8, /* has only the level blocking */
    WORK_PAIR = 16,    /* between the leader and one peer */
    WORK_SAME = 32     /* one message to all */
};

/* A work: what each side does in a phase. Both call team_meet() once they are ready to begin. */
struct work {
    const char *name, *what;
    int (*lead)(struct team *team, struct run *run);
    int (*follow)(struct team *team, struct run *run);
    uint32_t flags;
    uint32_t least;  /* smallest message, in bytes */
    uint32_t blocks; /* messages of an iteration for each peer */
};

extern const struct work perf_works[];
extern const uint32_t perf_work_count;

/* options.c: returns 0; 1 if all was printed, as by --help; -1 after an error message. */
int options_read(struct options *options, int argc, char **argv);

/* complain.c: print an error with the rank; team_fail() adds the library's text. Return -1. */
int team_fail(const struct team *team, const char *what);
int team_complain(const struct team *team, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* await_server.c: waits until the server listens; -1, with a message, if it still refuses. */
int await_server(const struct team *team, const struct options *options);

/* local.c: starts peers, and returns an exchange with them. */
struct sluice_exchange *local_start(uint32_t ranks, uint32_t *rank);
/* Ends the peers of the process that has started them, and reports one that was killed. */
int local_end(int result);

/* team.c */
int team_open(struct team *team, const struct options *options);
void team_close(struct team *team);
/* Sets stride, slots and window for messages of this size. Returns the bytes of an area. */
size_t team_shape(struct team *team, size_t size);
/* Waits for all processes. */
int team_meet(struct team *team);
/* Sends the leader's bytes to all others. */
int team_broadcast(struct team *team, void *bytes, size_t size);

/* link.c: connections and memory. */
int link_open(struct team *team);
void link_close(struct team *team);
int link_connect(struct team *team, struct sluice_multichannel **channels, uint64_t *ticks);
struct sluice_channel_attr link_attr(const struct team *team);

/* place.c: where messages are in memory. */
size_t place_memory(const struct team *team);
struct sluice_sge place_out(const struct team *team, uint32_t peer, uint64_t number, size_t size);
struct sluice_sge place_in(const struct team *team, uint32_t peer, uint64_t number, size_t size);
/* The word that is written to a peer, and the word that the peer writes. */
uint64_t *place_word_out(const struct team *team, uint32_t peer);
uint64_t *place_word_in(const struct team *team, uint32_t peer);
struct sluice_sge place_word_sge(const struct team *team, uint32_t peer);
struct sluice_remote_mr place_remote_word(const struct team *team, uint32_t peer);
struct sluice_remote_mr place_remote_in(const struct team *team, uint32_t peer, uint64_t number,
                                        size_t size);
struct sluice_remote_mr place_remote_out(const struct team *team, uint32_t peer, uint64_t number,
                                         size_t size);

/* content.c: the contents of messages, if they are written each time, or checked. */
void content_write(const struct team *team, uint32_t peer, uint64_t number, size_t size);
int content_check(const struct team *team, const struct run *run, uint32_t peer, uint64_t number);
bool content_matters(const struct team *team);

/* calls.c: a list of requests, at the level of the plan. */
struct calls {
    int (*blocking)(struct sluice_multichannel *channels, const struct sluice_request *requests,
                    uint32_t count, int64_t deadline, struct sluice_completion *completions);
    int (*scoped)(struct sluice_scope *scope, const struct sluice_request *requests, uint32_t count,
                  struct sluice_handle *handles);
    int (*posted)(struct sluice_multichannel *channels, const struct sluice_request *requests,
                  uint32_t count, int64_t deadline, struct sluice_handle *handles);
};
extern const struct calls calls_any;
int calls_do(struct team *team, const struct calls *calls, const struct sluice_request *requests,
             uint32_t count, const char *what);
/* Posts all requests. *early grows by the completions that were taken to make room. */
int calls_post(struct team *team, const struct sluice_request *requests, uint32_t count,
               uint32_t *early, const char *what);
/* Takes count completions. */
int calls_collect(struct team *team, uint32_t count, const char *what);
/* Waits for a completion and takes up to most. completions has room for CALLS_BATCH. */
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

/* measure.c: measures all works in all sizes. */
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
