/* SPDX-License-Identifier: MIT */
/*
 * Processes that work for rank 0, which has a stream socket to each: its own children, or
 * processes that connect by TCP. Nothing here uses RDMA, but for the error texts of sluice.
 *
 * Functions that fail print why to standard error and return -1.
 */
#ifndef EXAMPLES_WORKERS_H
#define EXAMPLES_WORKERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MAX_PROCESSES 64

/* Seconds to wait for a process on a socket. */
#define PATIENCE 60

/* Print the failure of a call of sluice: who called, what for, and the library's reason. */
int complain(const char *who, const char *what);
int complain_as(uint32_t rank, const char *what);

/* The workers of rank 0, indexed by rank. Zero it before use. */
struct workers {
    uint32_t count; /* ranks below this are connected */
    int sockets[MAX_PROCESSES];
    pid_t pids[MAX_PROCESSES]; /* 0: not a child */
};

/*
 * Get ranks 1 to count - 1: start them, where the result of life is the exit status of the
 * process and 0 is success; or wait for them at ADDRESS:PORT, and print the port, as 0 is
 * any free port.
 */
int workers_start(struct workers *workers, uint32_t count, int (*life)(int socket));
int workers_accept(struct workers *workers, uint32_t count, const char *where);

/*
 * Ends all workers: with result 0, sends each a byte that all is well and waits for our
 * children; otherwise kills these. Returns the result, or -1 if a child failed. A second
 * call finds no workers and does nothing.
 */
int workers_end(struct workers *workers, int result);

/* Connects to workers_accept(), and waits for it if necessary. Returns a socket. */
int worker_connect(const char *where);

/* Send the same byte to all workers, or wait for a byte from each. */
int workers_send(const struct workers *workers, char what);
int workers_receive(const struct workers *workers);

/* Send or receive count bytes, or fail silently, also at the end of the stream. */
int give(int socket, const void *bytes, size_t count);
int take(int socket, void *bytes, size_t count);

#endif
