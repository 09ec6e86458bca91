/* SPDX-License-Identifier: MIT */
/*
 * Which process this is, in words that another process of the host can check. Two
 * processes are near each other if they run under the same kernel and see the same
 * network, users and processes: they meet over a Unix socket, whose other end the
 * kernel names, and over nothing else. All others meet over TCP, where a proof of the
 * key is all that there is.
 */
#ifndef SLU_CONNECT_IDENTITY_H
#define SLU_CONNECT_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct slu_identity {
    uint8_t host[16]; /* boot id */
    uint64_t network; /* namespaces: an inode each; 0 is equal to nothing */
    uint64_t users;
    uint64_t processes;
    uint64_t start; /* of the process, in ticks since the host's, whatever its time namespace */
    uint32_t pid;
    uint32_t uid; /* effective */
};

/* Of this process; what cannot be found out is 0, and but for the start near to nobody then. */
void slu_identity_of_self(struct slu_identity *identity);

/* Whether the loopback of one is that of the other, and whether they are near. */
bool slu_identity_same_network(const struct slu_identity *a, const struct slu_identity *b);
bool slu_identity_near(const struct slu_identity *a, const struct slu_identity *b);

/* Whether the process at the other end of a connected Unix socket is this one. */
bool slu_identity_holds(const struct slu_identity *identity, int fd);

/*
 * The address of a Unix socket, in no file system. Its name is no secret: all can read it
 * in /proc/net/unix, and what speaks there is judged by what the kernel says of it.
 */
socklen_t slu_identity_name(uint64_t listener, struct sockaddr_un *address);

#endif
