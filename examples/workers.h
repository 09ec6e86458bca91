/* SPDX-License-Identifier: MIT */
/*
 * Processes that work for rank 0, which has a stream socket to each: its own
 * children, or whoever comes by TCP. There is nothing of RDMA in here,
 * but for the words of what failed.
 *
 * What fails says why on standard error and returns -1.
 */
#ifndef EXAMPLES_WORKERS_H
#define EXAMPLES_WORKERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MAX_PROCESSES 64

/* Seconds to wait for a process on a socket. */
#define PATIENCE 60

/* A call of sluice failed: whose it was, what it was to do, and why it could not. */
int complain(const char *who, const char *what);
int complain_as(uint32_t rank, const char *what);

/* Indexed by rank; rank 0 is the process that has this. Zeroed at first. */
struct workers {
    uint32_t count; /* all below have come */
    int sockets[MAX_PROCESSES];
    pid_t pids[MAX_PROCESSES]; /* 0: not a child */
};

/*
 * Gets ranks 1 to count - 1 together: starts them, where the result of life is
 * that of the process and 0 is success; or waits for them at ADDRESS:PORT, and
 * prints where it does, as port 0 is any port that is free.
 */
int workers_start(struct workers *workers, uint32_t count, int (*life)(int socket));
int workers_accept(struct workers *workers, uint32_t count, const char *where);

/*
 * Lets go of them: result 0 tells them with a byte that all is well and waits for
 * our children, anything else kills these. Returns the result, or -1 if a child
 * was not successful. Nobody is left then, for a second call too.
 */
int workers_end(struct workers *workers, int result);

/* The other end of workers_accept(), which is perhaps not there yet: a socket. */
int worker_connect(const char *where);

/* Tells all workers the same by a byte, or waits for a byte of each. */
int workers_tell(const struct workers *workers, char what);
int workers_hear(const struct workers *workers);

/* Move so many bytes, or fail silently: at the end of the stream too. */
int give(int socket, const void *bytes, size_t count);
int take(int socket, void *bytes, size_t count);

#endif
