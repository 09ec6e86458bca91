/* SPDX-License-Identifier: MIT */
/*
 * sluice-launch(1). The launcher that a user starts is the root. For ranks on other hosts it starts
 * further launchers, by ssh: the same program with --remote. With --tree these start others. Each
 * launcher has ranks of its own, or other launchers (children), or both. Output of ranks, ends and
 * failures go up to the root, whose job.c decides what follows; signals go down.
 *
 * Each launcher is one thread in one loop (loop.c), which never waits for anything else.
 */
#ifndef LAUNCH_LAUNCH_H
#define LAUNCH_LAUNCH_H

#include <poll.h>
#include <sys/types.h>

#include "buffer.h"
#include "frame.h"

/* Exit statuses. */
#define STATUS_LOST 1
#define STATUS_ARGUMENTS 2
#define STATUS_SURVIVORS 3
#define STATUS_NO_PROGRAM 127

#define SECOND INT64_C(1000000000)
/*
 * Each second two launchers send each other a sign of life. A launcher that has sent none for
 * SILENCE_TICKS is lost, and so are its ranks. On both sides ranks then have LOST_PATIENCE to end,
 * which makes 8 seconds in all.
 */
#define TICK SECOND
#define SILENCE_TICKS 6
#define LOST_PATIENCE (2 * SECOND)
/* How long other ranks may take to end after a signal. */
#define PATIENCE (5 * SECOND)
/* How long ssh and the login on the host may take. */
#define LOGIN_TICKS 60
/* Sources are not read while more than this waits to be written. */
#define MOST_UNWRITTEN ((size_t)1 << 20)

struct launcher;

/* Frames to and from another launcher. */
struct link {
    int in, out; /* may be the same; -1: closed */
    struct buffer received, unsent;
    uint32_t silent; /* ticks since something was received */
};

/* The output of a rank, standard output or standard error. */
struct source {
    int fd;             /* -1: at its end */
    struct buffer line; /* the begin of a line whose end has not been read */
};

struct rank {
    pid_t id; /* 0: it has ended, or did not start */
    struct source sources[2];
};

enum child_state {
    CHILD_LOGIN,   /* nothing has been received yet */
    CHILD_MARKED,  /* the mark was found; a HELLO follows */
    CHILD_READY,   /* waits for a START */
    CHILD_STARTED, /* its ranks run */
    CHILD_DONE,    /* they have ended, and it has sent everything */
    CHILD_LOST
};

/* A launcher that this one has started. */
struct child {
    enum child_state state;
    const struct place *places; /* its own, and those that it starts launchers for */
    uint32_t place_count;
    uint32_t first, count; /* of all these ranks */
    pid_t id;              /* of ssh; 0: it has ended */
    int status;            /* of ssh, once it has ended */
    bool closed;           /* nothing more can be received */
    uint32_t closed_ticks;
    struct link link;
    char why[160]; /* its hello does not fit this launcher; empty: it fits */
};

/* Where output of the ranks goes: standard output or standard error of the root. */
struct sink {
    int fd;
    bool regular; /* a file: a write never waits */
    bool broken;  /* it cannot be written any more */
    struct buffer unwritten;
};

/* job.c: the root alone has a verdict. */
struct verdict;

struct launcher {
    struct job job;
    bool keep_going, remote;
    const char *root_host, *root_port; /* of --root; or NULL */
    int secret;                        /* -1: none */
    int watcher;                       /* write end of the watcher's pipe */
    uint32_t first, count;             /* the ranks of this process */
    uint32_t local;                    /* number of the first on this host */
    struct rank *ranks;
    uint32_t running; /* of these */
    struct child *children;
    uint32_t child_count;
    struct place *parts; /* of this host, if it takes several launchers; or NULL */
    struct link up;      /* of a remote launcher */
    bool orphan;         /* the link up is lost */
    bool started;        /* a remote launcher has its job */
    bool done_sent;
    struct sink sinks[2], *streams[2]; /* both streams may have one sink */
    bool lost;                         /* output could not be written */
    struct verdict *verdict;
    int64_t next_tick;
    int64_t kill_at; /* of an orphan; 0: never */
};

/* main.c. Prints a line and ends the process; the watcher ends the ranks. */
void die(int status, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
/* Prints "sluice-launch: " and a line on the standard error, behind the output before it. */
void say(struct launcher *launcher, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* options.c. Returns only if there is something to do. */
void options_read(struct launcher *launcher, int count, char **words);

/* places.c. Reads --hosts or the file of --hostfile; count: of -n, or 0. */
void places_read_list(struct job *job, const char *list, uint32_t count);
void places_read_file(struct job *job, const char *path, uint32_t count);
/* Returns the number of 1 to MOST_RANKS that is the whole text, or 0. */
uint32_t read_count(const char *text);
/* Writes the host without a user, for SLUICE_ROOT. */
void place_address(const struct place *place, char *text, size_t size);

/* meet.c: how the ranks meet. */
void make_secret(struct job *job);
/* Makes the secret readable to processes of this user, as a file of this process. */
void publish_secret(struct launcher *launcher);
/* Returns a port that is free now. Without other hosts it writes the whole root. */
uint32_t find_port(void);
void find_local_root(char *root, size_t size);
void make_job_name(char *name, size_t size);

/* watcher.c. The watcher ends all started processes if this one is killed. */
int watcher_start(void);
void watcher_forget(const struct launcher *launcher, pid_t id);
/* In a new process, before its exec: makes it known to the watcher. */
void watcher_join(const struct launcher *launcher);

/* signals.c */
void signals_init(void);
/* Calls poll(2), which a signal ends. */
void signals_poll(struct pollfd *fds, nfds_t count, int64_t timeout);
/* Tells whether the signal has come since the last call. */
bool signals_take(int number);
/* In a new process, before its exec. */
void signals_restore(void);
int64_t clock_now(void);

/* process.c. Starts a process in a group of its own, without a terminal; returns as fork(2). */
pid_t process_start(const struct launcher *launcher);
/* Signals the process, and all others of its group. */
void process_signal(pid_t id, int number);
/* Raises the limit of descriptors, and lowers it again in a new process. */
void limits_raise(void);
void limits_restore(void);
/* Descriptors that may still be opened. */
uint32_t limits_left(void);

/* ranks.c. Returns 0; or the exit status, with a text. */
int ranks_check(const struct launcher *launcher, char *text, size_t size);
void ranks_start(struct launcher *launcher);
void ranks_signal(const struct launcher *launcher, int number);
/* Returns false if it is not the process of a rank. */
bool ranks_reap(struct launcher *launcher, pid_t id);
/* bind.c. Finds the processors; binds the calling process to one of them. */
int bind_find(char *text, size_t size);
void bind_self(uint32_t local);

/* output.c */
void sinks_init(struct launcher *launcher);
void sink_write(struct launcher *launcher, struct sink *sink);
/* Takes whole lines: writes them, or passes them up. */
void output_take(struct launcher *launcher, uint32_t stream, const char *bytes, size_t count);
void source_read(struct launcher *launcher, uint32_t index, uint32_t stream);
/* Closes the pipes of a stream that has no reader any more: a rank that writes gets SIGPIPE. */
void output_close(struct launcher *launcher, uint32_t stream);
bool output_is_full(const struct launcher *launcher, uint32_t stream);
bool sources_open(const struct launcher *launcher);
/* Reads what is there, and closes all. */
void sources_finish(struct launcher *launcher);

/* link.c */
void link_open(struct link *link, int in, int out);
void link_close(struct link *link);
/* Receives what is there. Returns false at the end, or after an error. */
bool link_receive(struct link *link);
void link_flush(struct link *link);

/* children.c */
void children_start(struct launcher *launcher);
void children_signal(struct launcher *launcher, int number);
void children_close(struct launcher *launcher, uint32_t stream);
bool children_reap(struct launcher *launcher, pid_t id, int status);
void child_receive(struct launcher *launcher, struct child *child);
void children_tick(struct launcher *launcher);
/* Sends the job to a child that waits for it, once the root is known. */
void children_begin(struct launcher *launcher);
bool children_done(const struct launcher *launcher);

/* remote.c */
void remote_begin(struct launcher *launcher);
void remote_receive(struct launcher *launcher);
void remote_tick(struct launcher *launcher);
/* The connection to the other launcher is lost: ends everything here. */
void remote_lost(struct launcher *launcher, const char *why);

/* events.c: to the root's job, or up. */
void event_ended(struct launcher *launcher, const struct frame_ended *ended);
void event_failed(struct launcher *launcher, const struct frame_failed *failed);
void signal_all(struct launcher *launcher, int number);

/* job.c */
void verdict_init(struct launcher *launcher);
void verdict_ended(struct launcher *launcher, const struct frame_ended *ended);
void verdict_failed(struct launcher *launcher, const struct frame_failed *failed);
void verdict_signal(struct launcher *launcher, int number);
void verdict_tick(struct launcher *launcher, int64_t now);
int64_t verdict_next(const struct launcher *launcher);
/* All ranks have ended: prints what is left to say. */
void verdict_finish(struct launcher *launcher);
int verdict_status(const struct launcher *launcher);

/* loop.c. Returns when everything has ended and is written. */
void loop_run(struct launcher *launcher);

#endif
