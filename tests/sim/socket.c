/* SPDX-License-Identifier: MIT */
/* Stream sockets of AF_INET and AF_UNIX: their names, how they meet, and their options. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "calls.h"
#include "network.h"
#include "stream.h"

enum { DEFAULT_BACKLOG = 128 };

void sim_stream_leave_host(struct stream *stream)
{
    if (stream->is_named) {
        LIST_REMOVE(stream, named);
    }
    stream->is_named = false;
}

/* Returns the list of a host in which the streams of that name are: by its port, or its bytes. */
static struct sim_named *list_of(struct sim_host *host, const struct sockaddr *address,
                                 socklen_t length)
{
    uint32_t hash = 0;
    if (address->sa_family == AF_INET) {
        hash = ((const struct sockaddr_in *)address)->sin_port;
        hash += hash >> 8;
    } else {
        for (socklen_t i = 0; i < length; i++) {
            hash = hash * 31 + ((const uint8_t *)address)[i];
        }
    }
    return &host->named[hash % SIM_NAMES];
}

SYS(int, socket, int family, int type, int protocol)
{
    struct stream *stream;
    sim_call();
    if (sim_fault_is_due("socket")) {
        return sim_error(ENOBUFS);
    }
    if (family == AF_INET6) {
        return sim_error(EAFNOSUPPORT);
    }
    sim_require((type & 0xf) == SOCK_STREAM, "only stream sockets are simulated");
    stream = sim_stream_make(family, sim_task->process->host);
    stream->process = sim_task->process;
    return sim_descriptor_make(&stream->base);
}

/* Hosts have 127.0.0.1 and 10.x.y.z. */
static struct sim_host *host_of(struct sim_host *own, const struct sockaddr_in *address)
{
    uint32_t ip = ntohl(address->sin_addr.s_addr);
    if (ip >> 24 == 127) {
        return own;
    }
    return ip >> 24 == 10 ? sim_host((ip & 0xffff) - 1) : NULL;
}

uint32_t sim_host_address(const struct sim_host *host)
{
    return (UINT32_C(10) << 24) + (host->moves << 16) + host->index + 1;
}

bool sim_host_has(const struct sim_host *host, const struct sockaddr_storage *address)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)address;
    return ntohl(in->sin_addr.s_addr) == sim_host_address(host);
}

static bool same_name(const struct stream *stream, const struct sockaddr *address, socklen_t length)
{
    if (stream->family != address->sa_family) {
        return false;
    }
    if (stream->family == AF_UNIX) {
        return stream->own_length == length && memcmp(&stream->own, address, length) == 0;
    }
    const struct sockaddr_in *own = (const struct sockaddr_in *)&stream->own;
    const struct sockaddr_in *other = (const struct sockaddr_in *)address;
    return own->sin_port == other->sin_port &&
           (own->sin_addr.s_addr == other->sin_addr.s_addr || own->sin_addr.s_addr == INADDR_ANY ||
            other->sin_addr.s_addr == INADDR_ANY);
}

static struct stream *find_bound(struct sim_host *host, const struct sockaddr *address,
                                 socklen_t length)
{
    struct stream *at = LIST_FIRST(list_of(host, address, length));
    while (at != NULL && !same_name(at, address, length)) {
        at = LIST_NEXT(at, named);
    }
    return at;
}

static uint16_t free_port(struct sim_host *host)
{
    host->last_port = host->last_port >= 60999 ? 32768 : (uint16_t)(host->last_port + 1);
    return htons(host->last_port);
}

SYS(int, bind, int fd, const struct sockaddr *address, socklen_t length)
{
    struct sockaddr_in *in;
    OF_STREAM(fd);
    memcpy(&stream->own, address, length);
    stream->own_length = length;
    in = (struct sockaddr_in *)&stream->own;
    if (stream->family == AF_INET && in->sin_addr.s_addr != INADDR_ANY &&
        ntohl(in->sin_addr.s_addr) >> 24 != 127 && !sim_host_has(stream->host, &stream->own)) {
        return sim_error(EADDRNOTAVAIL);
    }
    if (stream->family == AF_INET && in->sin_port == 0) {
        do {
            in->sin_port = free_port(stream->host);
        } while (find_bound(stream->host, (struct sockaddr *)in, length) != NULL);
    } else if (find_bound(stream->host, address, length) != NULL) {
        return sim_error(EADDRINUSE);
    }
    stream->state = BOUND;
    LIST_INSERT_HEAD(list_of(stream->host, (struct sockaddr *)&stream->own, length), stream, named);
    stream->is_named = true;
    return 0;
}

SYS(int, listen, int fd, int backlog)
{
    OF_STREAM(fd);
    stream->state = LISTENS;
    stream->backlog = backlog > 0 ? backlog : DEFAULT_BACKLOG;
    return 0;
}

static struct ucred identity_of(const struct stream *stream)
{
    return (struct ucred){.pid = stream->process->pid, .uid = 1000, .gid = 1000};
}

/* Makes the other end, which waits to be accepted. */
static struct stream *make_other_end(struct stream *stream, struct stream *listener)
{
    struct stream *other = sim_stream_make(stream->family, listener->host);
    other->state = CONNECTED;
    other->peer = stream;
    other->own = stream->family == AF_UNIX ? listener->own : stream->other;
    other->own_length = stream->family == AF_UNIX ? listener->own_length : stream->other_length;
    other->other = stream->own;
    other->other_length = stream->own_length;
    other->peer_identity = identity_of(stream);
    stream->peer = other;
    stream->peer_identity = identity_of(listener);
    *listener->waiting_end = other;
    listener->waiting_end = &other->next_waiting;
    listener->waiting_count++;
    sim_object_changed(&listener->base);
    return other;
}

/* A call that was made earlier reaches the other host. */
static void call_arrives(struct sim_event *event)
{
    struct stream *stream = sim_stream_of(event);
    struct sim_host *host = host_of(stream->host, (struct sockaddr_in *)&stream->other);
    struct stream *listener =
        find_bound(host, (struct sockaddr *)&stream->other, stream->other_length);
    event->happen = sim_stream_arrive;
    sim_trace("a call of rank %u reaches port %u of host %u: %s", stream->process->rank,
              ntohs(((struct sockaddr_in *)&stream->other)->sin_port), host->index,
              listener == NULL ? "refused" : "taken");
    if (listener == NULL || listener->state != LISTENS) {
        stream->state = OVER;
        stream->error = ECONNREFUSED;
    } else if (listener->waiting_count >= listener->backlog) {
        /* The kernel drops the call, which is made again after a second. */
        event->happen = call_arrives;
        sim_event_set(event, event->at + 1000000000);
        return;
    } else {
        make_other_end(stream, listener);
        stream->state = CONNECTED;
        stream->last_received = stream->peer->last_received = event->at;
    }
    sim_object_changed(&stream->base);
}

static int connect_unix(struct stream *stream)
{
    struct stream *listener =
        find_bound(stream->host, (struct sockaddr *)&stream->other, stream->other_length);
    if (listener == NULL || listener->state != LISTENS) {
        return sim_error(ECONNREFUSED);
    }
    if (listener->waiting_count >= listener->backlog) {
        return sim_error(EAGAIN);
    }
    make_other_end(stream, listener);
    stream->state = CONNECTED;
    stream->last_received = stream->peer->last_received = sim_time();
    return 0;
}

SYS(int, connect, int fd, const struct sockaddr *address, socklen_t length)
{
    struct sim_host *host;
    struct sockaddr_in *own;
    int64_t at;
    OF_STREAM(fd);
    memcpy(&stream->other, address, length);
    stream->other_length = length;
    if (stream->family == AF_UNIX) {
        return connect_unix(stream);
    }
    host = host_of(stream->host, (const struct sockaddr_in *)address);
    if (host == NULL) {
        return sim_error(ENETUNREACH);
    }
    own = (struct sockaddr_in *)&stream->own;
    *own = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = free_port(stream->host)};
    own->sin_addr.s_addr = host == stream->host
                               ? ((const struct sockaddr_in *)address)->sin_addr.s_addr
                               : htonl(sim_host_address(stream->host));
    stream->own_length = sizeof *own;
    stream->state = CONNECTING;
    at = sim_network_arrival(stream->host, host, sim_time());
    if (host != stream->host && !sim_host_has(host, &stream->other)) {
        at = INT64_MAX;
    }
    stream->arrival.happen = call_arrives;
    if (at != INT64_MAX) {
        sim_event_set(&stream->arrival, at);
    }
    return sim_error(EINPROGRESS);
}

static void give_address(const struct sockaddr_storage *from, socklen_t bytes,
                         struct sockaddr *address, socklen_t *length)
{
    if (address != NULL) {
        memcpy(address, from, bytes < *length ? bytes : *length);
        *length = bytes;
    }
}

SYS(int, accept4, int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    struct stream *listener;
    OF_STREAM(fd);
    listener = stream;
    stream = listener->waiting;
    if (stream == NULL) {
        return sim_error(listener->state == LISTENS ? EAGAIN : EINVAL);
    }
    listener->waiting = stream->next_waiting;
    if (listener->waiting == NULL) {
        listener->waiting_end = &listener->waiting;
    }
    listener->waiting_count--;
    stream->process = sim_task->process;
    if (stream->peer != NULL && stream->peer->process != NULL) {
        sim_trace("accepts a connection of rank %u", stream->peer->process->rank);
    }
    give_address(&stream->other, stream->other_length, address, length);
    return sim_descriptor_make(&stream->base);
}

SYS(int, getsockname, int fd, struct sockaddr *address, socklen_t *length)
{
    OF_STREAM(fd);
    stream->own.ss_family = (sa_family_t)stream->family;
    give_address(&stream->own,
                 stream->own_length > 0 ? stream->own_length : (socklen_t)sizeof(sa_family_t),
                 address, length);
    return 0;
}

SYS(int, getpeername, int fd, struct sockaddr *address, socklen_t *length)
{
    OF_STREAM(fd);
    if (stream->state != CONNECTED || stream->was_reset) {
        return sim_error(ENOTCONN);
    }
    give_address(&stream->other,
                 stream->other_length > 0 ? stream->other_length : (socklen_t)sizeof(sa_family_t),
                 address, length);
    return 0;
}

SYS(int, shutdown, int fd, int how)
{
    OF_STREAM(fd);
    if (stream->state != CONNECTED) {
        return sim_error(ENOTCONN);
    }
    sim_trace("shuts %d down", fd);
    if (how != SHUT_RD && !stream->sends_no_more) {
        sim_stream_end(stream, false);
        stream->sends_no_more = true;
    }
    stream->reads_no_more = stream->reads_no_more || how != SHUT_WR;
    sim_object_changed(&stream->base);
    return 0;
}

SYS(int, setsockopt, int fd, int level, int name, const void *value, socklen_t length)
{
    int number = 0;
    OF_STREAM(fd);
    memcpy(&number, value, length < sizeof number ? length : sizeof number);
    if (level == SOL_SOCKET && name == SO_RCVLOWAT) {
        stream->low_mark = number > 0 ? number : 1;
        sim_object_changed(&stream->base);
    } else if (level == SOL_SOCKET && name == SO_SNDBUF && stream->peer != NULL) {
        stream->peer->most_pending = (size_t)number;
    }
    return 0;
}

static int give(void *value, socklen_t *length, const void *from, size_t bytes)
{
    memcpy(value, from, bytes < *length ? bytes : *length);
    *length = (socklen_t)bytes;
    return 0;
}

SYS(int, getsockopt, int fd, int level, int name, void *value, socklen_t *length)
{
    int number;
    OF_STREAM(fd);
    if (level == IPPROTO_TCP && name == TCP_INFO && stream->family == AF_INET) {
        struct tcp_info info = {.tcpi_state = TCP_ESTABLISHED};
        info.tcpi_last_data_recv = (uint32_t)((sim_time() - stream->last_received) / 1000000);
        return give(value, length, &info, sizeof info);
    }
    if (level != SOL_SOCKET) {
        return sim_error(EOPNOTSUPP);
    }
    switch (name) {
    case SO_ERROR:
        number = stream->error;
        stream->error = 0;
        return give(value, length, &number, sizeof number);
    case SO_ACCEPTCONN:
        number = stream->state == LISTENS;
        return give(value, length, &number, sizeof number);
    case SO_DOMAIN:
        return give(value, length, &stream->family, sizeof stream->family);
    case SO_PEERCRED:
        return give(value, length, &stream->peer_identity, sizeof stream->peer_identity);
    default:
        sim_fail("getsockopt(2) of option %d is not simulated", name);
    }
}
