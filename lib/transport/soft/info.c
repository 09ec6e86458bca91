/* SPDX-License-Identifier: MIT */
/* Information on the connection of a queue pair. */
#include "config.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connect/address.h"
#include "transport/soft/table.h"
#include "transport/soft/tcp/tcp.h"

/* Writes "TCP 192.0.2.1 port 4711"; nothing if the socket has no such end. */
static void describe_end(const struct slu_address *end, char *text, size_t size)
{
    char ip[SLU_ADDRESS_IP];
    if (end->family != 0)
        snprintf(text, size, "TCP %s port %u", slu_address_ip(end, ip), end->port);
}

static void describe_socket(int fd, struct sluice_channel_info *info)
{
    struct slu_address own = slu_address_of_own(fd), peer = slu_address_of_peer(fd);
    describe_end(&own, info->address, sizeof(info->address));
    describe_end(&peer, info->remote_address, sizeof(info->remote_address));
}

static void describe_processes(int fd, struct sluice_channel_info *info)
{
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    snprintf(info->address, sizeof(info->address), "process %ld", (long)getpid());
    snprintf(info->remote_address, sizeof(info->remote_address), "process %ld", (long)peer.pid);
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
    } else if (qp->tcp != NULL && slu_soft_tcp_is_connected(qp->tcp)) {
        (qp->tcp->is_unix ? describe_processes : describe_socket)(qp->tcp->fd, info);
    }
}
