/* SPDX-License-Identifier: MIT */
/*
 * The identity of a process, which another process of the host can check. Two processes are near
 * each other if they run under the same kernel and see the same network, users and processes. Near
 * processes connect only over a Unix socket, for which the kernel names the other end. All others
 * connect over TCP, where the proof of the key is the only check.
 */
#ifndef SLU_CONNECT_IDENTITY_H
#define SLU_CONNECT_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "endpoint/endpoint.h"

/*
 * Identifies this process. A part that cannot be found out is 0; unless that is the start, it is
 * near to no process.
 */
void slu_identity_of_self(struct slu_identity *identity);

/*
 * Tells whether it is known which network of which host the process sees. Without /proc it is not.
 */
bool slu_identity_is_placed(const struct slu_identity *identity);

/* Tell whether the two share a loopback interface, and whether they are near. */
bool slu_identity_same_network(const struct slu_identity *a, const struct slu_identity *b);
bool slu_identity_near(const struct slu_identity *a, const struct slu_identity *b);

/* Tells whether this process is at the other end of a connected Unix socket. */
bool slu_identity_holds(const struct slu_identity *identity, int fd);

/*
 * Writes the address of a Unix socket, which is in no file system. Its name is not secret: it can
 * be read in /proc/net/unix. So the peer is judged by what the kernel says about it.
 */
socklen_t slu_identity_name(uint64_t listener, struct sockaddr_un *address);

#endif
