/* SPDX-License-Identifier: MIT */
/*
 * The bytes of stream sockets. Sent bytes reach the other end in order, after a time that the
 * network chooses. A send may take a part of its bytes only.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "calls.h"
#include "network.h"
#include "share.h"
#include "stream.h"

/* Linux: the buffer of UNIX sockets; and the least send buffer of TCP, which is empty at first. */
enum { PASSED = 4, UNIX_BUFFER = 212992, FIRST_BYTES = 4096 };

static const struct sim_class stream_class;

/* Bytes on their way, or received and not read. */
struct piece {
    struct piece *next;
    int64_t at;
    size_t bytes, taken;
    bool ends;   /* the peer sends no more */
    bool resets; /* the connection is over */
    struct sim_object *passed[PASSED];
    int passed_count;
    char data[];
};

struct stream *sim_stream_of(struct sim_event *event)
{
    return (struct stream *)((char *)event - offsetof(struct stream, arrival));
}

static short stream_ready(struct sim_object *object)
{
    const struct stream *stream = (const struct stream *)object;
    short ready = 0;
    switch (stream->state) {
    case LISTENS:
        return stream->waiting != NULL ? POLLIN : 0;
    case CONNECTING:
        return 0;
    case FRESH:
    case BOUND:
        return POLLOUT | POLLHUP;
    default:
        break;
    }
    if (stream->no_more || stream->was_reset || stream->reads_no_more ||
        (stream->arrived > 0 && stream->arrived >= (size_t)stream->low_mark)) {
        ready |= POLLIN;
    }
    if (stream->no_more || stream->was_reset || stream->reads_no_more) {
        ready |= POLLRDHUP;
    }
    if (stream->was_reset || stream->state == OVER || (stream->no_more && stream->sends_no_more)) {
        ready |= POLLHUP;
    }
    if (stream->error != 0) {
        ready |= POLLERR;
    }
    if (stream->peer_silent) {
        return ready;
    }
    if (stream->peer == NULL || stream->was_reset || stream->sends_no_more ||
        2 * stream->peer->pending < stream->peer->most_pending) {
        ready |= POLLOUT;
    }
    return ready;
}

static void free_piece(struct piece *piece)
{
    for (int i = 0; i < piece->passed_count; i++) {
        if (piece->passed[i] != NULL) {
            sim_object_drop(piece->passed[i]);
        }
    }
    free(piece);
}

static void drop_pieces(struct stream *stream)
{
    while (stream->first != NULL) {
        struct piece *piece = stream->first;
        stream->first = piece->next;
        free_piece(piece);
    }
    stream->end = &stream->first;
    stream->arrived = stream->pending = 0;
    sim_event_clear(&stream->arrival);
}

static void plan_arrival(struct stream *stream)
{
    struct piece *at = stream->first;
    while (at != NULL && at->at <= sim_time()) {
        at = at->next;
    }
    if (at == NULL || at->at == INT64_MAX) {
        sim_event_clear(&stream->arrival);
    } else {
        sim_event_set(&stream->arrival, at->at);
    }
}

/* A reset arrives. Bytes that arrived before it can still be read, as in Linux. */
static void reset(struct stream *stream, struct piece **piece)
{
    sim_trace("a connection of rank %u is reset", stream->process->rank);
    while (*piece != NULL) {
        struct piece *dropped = *piece;
        *piece = dropped->next;
        stream->pending -= dropped->bytes - dropped->taken;
        free_piece(dropped);
    }
    stream->end = piece;
    stream->was_reset = true;
    stream->error = ECONNRESET;
    stream->state = OVER;
}

void sim_stream_arrive(struct sim_event *event)
{
    struct stream *stream = sim_stream_of(event);
    struct piece **at = &stream->first;
    stream->arrived = 0;
    while (*at != NULL && (*at)->at <= event->at) {
        if ((*at)->resets) {
            reset(stream, at);
            break;
        }
        stream->arrived += (*at)->bytes - (*at)->taken;
        stream->no_more = stream->no_more || (*at)->ends;
        at = &(*at)->next;
    }
    stream->last_received = event->at;
    plan_arrival(stream);
    sim_object_changed(&stream->base);
}

/* Sends a piece, which comes behind all earlier ones. */
static void send_piece(struct stream *from, struct stream *to, struct piece *piece)
{
    int64_t at = sim_network_arrival(from->host, to->host, sim_time());
    sim_network_count(from->host, to->host, piece->bytes);
    if (from->host != to->host &&
        (!sim_host_has(from->host, &from->own) || !sim_host_has(to->host, &to->own))) {
        at = INT64_MAX;
    }
    piece->at = to->last_arrival = at > to->last_arrival ? at : to->last_arrival;
    piece->next = NULL;
    *to->end = piece;
    to->end = &piece->next;
    to->pending += piece->bytes;
    plan_arrival(to);
}

static struct piece *make_piece(size_t bytes)
{
    struct piece *piece = sim_alloc(1, sizeof *piece + bytes);
    piece->bytes = bytes;
    return piece;
}

void sim_stream_end(struct stream *stream, bool resets)
{
    struct piece *piece;
    if (stream->peer == NULL || stream->peer->state == OVER) {
        return;
    }
    piece = make_piece(0);
    piece->ends = !resets;
    piece->resets = resets;
    send_piece(stream, stream->peer, piece);
}

void sim_streams_reset(struct sim_process *process)
{
    for (int i = 0; i < process->descriptor_room; i++) {
        struct stream *stream = (struct stream *)process->descriptors[i].object;
        if (stream != NULL && stream->base.class == &stream_class && stream->state == CONNECTED &&
            stream->peer != NULL && stream->peer->host != stream->host) {
            sim_stream_end(stream, true);
            sim_stream_end(stream->peer, true);
        }
    }
}

/* Takes two streams apart: the one that stays finds that the other is gone. */
static void part(struct stream *stream)
{
    struct stream *peer = stream->peer;
    if (peer == NULL) {
        return;
    }
    peer->peer_silent = stream->host->down;
    if (!stream->host->down) {
        /* Bytes that were not read make the kernel send a reset instead of an end. */
        if (stream->first != NULL && stream->pending > 0) {
            sim_stream_end(stream, true);
        } else if (!stream->sends_no_more) {
            sim_stream_end(stream, false);
        }
    }
    /* The end never comes if the way is cut for good. */
    peer->peer_silent = peer->peer_silent || peer->last_arrival == INT64_MAX;
    peer->peer = NULL;
    stream->peer = NULL;
    sim_object_changed(&peer->base);
}

static void stream_free(struct sim_object *object)
{
    struct stream *stream = (struct stream *)object;
    sim_stream_leave_host(stream);
    while (stream->waiting != NULL) {
        struct stream *waiting = stream->waiting;
        stream->waiting = waiting->next_waiting;
        sim_object_drop(&waiting->base);
    }
    part(stream);
    drop_pieces(stream);
    free(stream);
}

struct stream *sim_stream_make(int family, struct sim_host *host)
{
    struct stream *stream = sim_alloc(1, sizeof *stream);
    sim_object_init(&stream->base, &stream_class);
    stream->family = family;
    stream->host = host;
    stream->end = &stream->first;
    stream->waiting_end = &stream->waiting;
    stream->low_mark = 1;
    stream->most_pending = family == AF_UNIX ? UNIX_BUFFER : sim_network.buffer;
    stream->arrival.happen = sim_stream_arrive;
    return stream;
}

struct stream *sim_stream_find(int fd)
{
    struct sim_object *object = sim_descriptor(fd);
    if (object != NULL && object->class != &stream_class) {
        sim_error(ENOTSOCK);
        return NULL;
    }
    return (struct stream *)object;
}

static size_t iovec_bytes(const struct msghdr *message)
{
    size_t bytes = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        bytes += message->msg_iov[i].iov_len;
    }
    return bytes;
}

static void pass_descriptors(const struct msghdr *message, struct piece *piece)
{
    struct msghdr copy = *message;
    for (struct cmsghdr *at = CMSG_FIRSTHDR(&copy); at != NULL; at = CMSG_NXTHDR(&copy, at)) {
        size_t count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count && piece->passed_count < PASSED; i++) {
            struct sim_object *object;
            int fd;
            memcpy(&fd, CMSG_DATA(at) + i * sizeof fd, sizeof fd);
            object = sim_descriptor(fd);
            sim_require(object != NULL, "a descriptor is passed that is not open");
            sim_object_hold(object);
            piece->passed[piece->passed_count++] = object;
        }
    }
}

static bool gather(struct piece *piece, const struct msghdr *message)
{
    size_t at = 0;
    for (size_t i = 0; i < message->msg_iovlen && at < piece->bytes; i++) {
        size_t bytes = message->msg_iov[i].iov_len;
        bytes = bytes < piece->bytes - at ? bytes : piece->bytes - at;
        if (!sim_copy(piece->data + at, message->msg_iov[i].iov_base, bytes)) {
            return false;
        }
        at += bytes;
    }
    return true;
}

/*
 * Returns how many bytes of a send are taken. The kernel takes a few bytes into an empty buffer
 * whole, except if it is short of memory.
 */
static size_t choose_part(const struct stream *stream, size_t bytes)
{
    bool few = bytes <= 512 && stream->peer->pending == 0;
    if (bytes <= 1 || stream->family == AF_UNIX || sim_network.pieces == 0 ||
        !sim_once_in(SIM_NETWORK, few ? 256 : sim_network.pieces)) {
        return bytes;
    }
    return 1 + sim_below(SIM_NETWORK, bytes);
}

/* The kernel is short of memory now and then, and takes nothing although there is room. */
static bool is_starved(const struct stream *stream)
{
    return stream->family == AF_INET && sim_network.pieces != 0 && sim_once_in(SIM_NETWORK, 256);
}

/* Sends a piece whole, or in two parts that arrive one after the other. */
static void send_parts(struct stream *stream, struct piece *piece)
{
    if (piece->bytes > 1 && stream->family == AF_INET && sim_network.pieces != 0 &&
        sim_once_in(SIM_NETWORK, 16)) {
        size_t first = 1 + sim_below(SIM_NETWORK, piece->bytes - 1);
        struct piece *rest = make_piece(piece->bytes - first);
        memcpy(rest->data, piece->data + first, rest->bytes);
        piece->bytes = first;
        send_piece(stream, stream->peer, piece);
        piece = rest;
    }
    send_piece(stream, stream->peer, piece);
}

SYS(ssize_t, sendmsg, int fd, const struct msghdr *message, int flags)
{
    struct stream *stream;
    struct piece *piece;
    size_t bytes = iovec_bytes(message), room;
    sim_tick(1000);
    stream = sim_stream_find(fd);
    if (stream == NULL) {
        return -1;
    }
    if (stream->error != 0) {
        int error = stream->error;
        stream->error = 0;
        return sim_error(error);
    }
    if (stream->peer_silent || is_starved(stream)) {
        return sim_error(EAGAIN);
    }
    if (sim_fault_is_due("sendmsg")) {
        return sim_error(ENOBUFS);
    }
    if (stream->family != AF_UNIX && sim_fault_is_due("send")) {
        return sim_error(EPERM); /* as of a filter of packets */
    }
    /* The user has too many descriptors in flight. */
    if (message->msg_controllen > 0 && sim_fault_is_due("rights")) {
        return sim_error(ETOOMANYREFS);
    }
    if (stream->state != CONNECTED || stream->peer == NULL || stream->sends_no_more) {
        return sim_error(stream->state == CONNECTING ? EAGAIN : EPIPE);
    }
    room = stream->peer->most_pending > stream->peer->pending
               ? stream->peer->most_pending - stream->peer->pending
               : 0;
    if (stream->sent + bytes > FIRST_BYTES) {
        if (room == 0) {
            return sim_error(EAGAIN);
        }
        bytes = choose_part(stream, bytes < room ? bytes : room);
    }
    stream->sent += bytes;
    piece = make_piece(bytes);
    if (!gather(piece, message)) {
        free_piece(piece);
        return sim_error(EFAULT);
    }
    if (message->msg_controllen > 0) {
        pass_descriptors(message, piece);
    }
    send_parts(stream, piece);
    return (ssize_t)bytes;
}

SYS(ssize_t, send, int fd, const void *bytes, size_t count, int flags)
{
    struct iovec piece = {(void *)(uintptr_t)bytes, count};
    const struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    return sys_sendmsg(fd, &message, flags);
}

/* Gives the descriptors of a piece to the reader. */
static void receive_descriptors(struct piece *piece, struct msghdr *message)
{
    struct cmsghdr *control = message->msg_control;
    int count = 0;
    for (int i = 0; i < piece->passed_count; i++) {
        size_t room = CMSG_LEN((size_t)(count + 1) * sizeof(int));
        int fd = -1;
        if (room <= message->msg_controllen) {
            fd = sim_descriptor_make(piece->passed[i]);
        } else {
            sim_object_drop(piece->passed[i]);
        }
        piece->passed[i] = NULL;
        if (fd < 0) {
            message->msg_flags |= MSG_CTRUNC;
            continue;
        }
        memcpy(CMSG_DATA(control) + (size_t)count++ * sizeof fd, &fd, sizeof fd);
    }
    piece->passed_count = 0;
    message->msg_controllen = count > 0 ? CMSG_SPACE((size_t)count * sizeof(int)) : 0;
    if (count > 0) {
        control->cmsg_level = SOL_SOCKET;
        control->cmsg_type = SCM_RIGHTS;
        control->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
    }
}

/* Copies a range of a piece to where the message's bytes from an offset on belong. */
static bool scatter(const struct msghdr *message, size_t offset, const char *from, size_t bytes)
{
    for (size_t i = 0; i < message->msg_iovlen && bytes > 0; i++) {
        const struct iovec *iovec = &message->msg_iov[i];
        size_t part;
        if (offset >= iovec->iov_len) {
            offset -= iovec->iov_len;
            continue;
        }
        part = iovec->iov_len - offset < bytes ? iovec->iov_len - offset : bytes;
        if (!sim_copy((char *)iovec->iov_base + offset, from, part)) {
            return false;
        }
        sim_share_received(sim_task->process, (char *)iovec->iov_base + offset, part);
        from += part;
        bytes -= part;
        offset = 0;
    }
    return true;
}

static void take_first(struct stream *stream)
{
    struct piece *piece = stream->first;
    stream->first = piece->next;
    if (stream->first == NULL) {
        stream->end = &stream->first;
    }
    free_piece(piece);
}

/* Reads what has arrived. A piece that passes descriptors ends a read, as in the kernel. */
static ssize_t take_bytes(struct stream *stream, struct msghdr *message, bool peek)
{
    size_t wanted = iovec_bytes(message), got = 0;
    bool controlled = false;
    if (wanted > 1 && !peek && stream->family == AF_INET && sim_network.pieces != 0 &&
        sim_once_in(SIM_NETWORK, 4 * sim_network.pieces)) {
        wanted = 1 + sim_below(SIM_NETWORK, wanted);
    }
    for (struct piece *at = stream->first, *next; at != NULL && at->at <= sim_time(); at = next) {
        size_t bytes = at->bytes - at->taken;
        next = at->next;
        if (got == wanted || (got > 0 && at->passed_count > 0) || at->ends) {
            break;
        }
        bytes = bytes < wanted - got ? bytes : wanted - got;
        if (!scatter(message, got, at->data + at->taken, bytes)) {
            return got > 0 ? (ssize_t)got : sim_error(EFAULT);
        }
        got += bytes;
        if (peek) {
            continue;
        }
        if (at->passed_count > 0 && message->msg_control != NULL) {
            receive_descriptors(at, message);
            controlled = true;
        }
        at->taken += bytes;
        stream->pending -= bytes;
        stream->arrived -= bytes < stream->arrived ? bytes : stream->arrived;
        if (at->taken == at->bytes) {
            take_first(stream);
        }
        if (controlled) {
            break;
        }
    }
    if (!controlled) {
        message->msg_controllen = 0;
    }
    return (ssize_t)got;
}

SYS(ssize_t, recvmsg, int fd, struct msghdr *message, int flags)
{
    struct stream *stream;
    ssize_t got;
    sim_tick(600);
    stream = sim_stream_find(fd);
    if (stream == NULL) {
        return -1;
    }
    message->msg_flags = 0;
    if (stream->state != CONNECTED && stream->state != OVER) {
        return sim_error(stream->state == CONNECTING ? EAGAIN : ENOTCONN);
    }
    got = take_bytes(stream, message, (flags & MSG_PEEK) != 0);
    if (got != 0) {
        if (got > 0 && (flags & MSG_PEEK) == 0 && stream->peer != NULL) {
            sim_object_changed(&stream->peer->base);
        }
        return got;
    }
    message->msg_controllen = 0;
    if (stream->error != 0) {
        int error = stream->error;
        stream->error = 0;
        return sim_error(error);
    }
    return stream->no_more || stream->was_reset || stream->reads_no_more ? 0 : sim_error(EAGAIN);
}

SYS(ssize_t, recv, int fd, void *bytes, size_t count, int flags)
{
    struct iovec piece = {bytes, count};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    return sys_recvmsg(fd, &message, flags);
}

static ssize_t stream_read(struct sim_object *object, void *bytes, size_t count)
{
    sim_fail("read(2) of a socket is not simulated");
}

static const struct sim_class stream_class = {"socket", stream_ready, stream_read, NULL,
                                              stream_free};
