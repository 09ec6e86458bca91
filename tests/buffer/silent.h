/* SPDX-License-Identifier: MIT */
/* An owner of buffers that does not answer. */
#ifndef BUFFER_SILENT_H
#define BUFFER_SILENT_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "../support/suite.h"

/* Listens at the port of an owner, but accepts no connection, so nothing is answered. */
static inline int listen_silently(const char *address)
{
    struct sockaddr_in sockaddr = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1)),
                                   .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    require(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
                bind(fd, (struct sockaddr *)&sockaddr, sizeof(sockaddr)) == 0 &&
                listen(fd, 16) == 0,
            "%s", strerror(errno));
    return fd;
}

#endif
