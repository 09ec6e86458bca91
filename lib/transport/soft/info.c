/* SPDX-License-Identifier: MIT */
/* Information on the connection of a queue pair. */
#include "config.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/soft/table.h"
#include "transport/soft/tcp/tcp.h"

typedef int name_socket(int fd, struct sockaddr *address, socklen_t *length);

/* Returns the process at one end of a Unix socket. */
static long end_process(int fd, name_socket *name)
{
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);
    if (name == getsockname)
        return getpid();
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    return peer.pid;
}

/* Writes "TCP 192.0.2.1 port 4711" or "process 4711"; nothing if the socket has no such end. */
static void describe_end(int fd, name_socket *name, char *text, size_t size)
{
    struct sockaddr_storage storage;
    const struct sockaddr_in *in4 = (const struct sockaddr_in *)&storage;
    const struct in6_addr *in6 = &((const struct sockaddr_in6 *)&storage)->sin6_addr;
    socklen_t length = sizeof(storage);
    char ip[INET6_ADDRSTRLEN] = "?";
    if (name(fd, (struct sockaddr *)&storage, &length) != 0)
        return;
    if (storage.ss_family == AF_UNIX) {
        snprintf(text, size, "process %ld", end_process(fd, name));
        return;
    }
    if (storage.ss_family == AF_INET)
        inet_ntop(AF_INET, &in4->sin_addr, ip, sizeof(ip));
    else if (IN6_IS_ADDR_V4MAPPED(in6)) /* the listener takes both kinds */
        inet_ntop(AF_INET, in6->s6_addr + 12, ip, sizeof(ip));
    else
        inet_ntop(AF_INET6, in6, ip, sizeof(ip));
    /* IPv4 and IPv6 addresses have the port at the same offset. */
    snprintf(text, size, "TCP %s port %u", ip, ntohs(in4->sin_port));
}

void slu_soft_qp_query(const struct slu_qp *base, struct sluice_channel_info *info)
{
    const struct soft_qp *qp = (const struct soft_qp *)base;
    info->qpn = qp->qpn;
    if (qp->wire == NULL)
        return;
    info->level = qp->level;
    info->remote_qpn = qp->peer_qpn;
    info->read_depth = qp->max_reads;
    info->remote_read_depth = qp->peer_max_reads;
    if (qp->wire == &slu_soft_wire_self) {
        snprintf(info->address, sizeof(info->address), "this context");
        snprintf(info->remote_address, sizeof(info->remote_address), "this context");
    } else if (qp->tcp != NULL && qp->tcp->phase == PHASE_OPEN) {
        describe_end(qp->tcp->fd, getsockname, info->address, sizeof(info->address));
        describe_end(qp->tcp->fd, getpeername, info->remote_address, sizeof(info->remote_address));
    }
}
