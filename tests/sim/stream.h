/* SPDX-License-Identifier: MIT */
/* Stream sockets: what their names (socket.c) and their bytes (stream.c) have in common. */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include <sys/socket.h>

#include "system.h"

struct piece;

enum stream_state { FRESH, BOUND, LISTENS, CONNECTING, CONNECTED, OVER };

struct stream {
    struct sim_object base; /* the first field */
    struct stream *next_waiting;
    LIST_ENTRY(stream) named; /* in a list of its host, once it is bound */
    bool is_named;
    int family;
    enum stream_state state;
    struct sim_host *host;
    struct sim_process *process;
    struct sockaddr_storage own, other;
    socklen_t own_length, other_length;
    int error; /* SO_ERROR */
    struct stream *peer;
    struct piece *first, **end;
    size_t arrived, pending; /* bytes that can be read, and those on their way as well */
    size_t most_pending;
    uint64_t sent; /* bytes, in all */
    int low_mark;
    int64_t last_arrival, last_received;
    bool no_more, was_reset; /* the peer's end has come, or a reset */
    bool sends_no_more, reads_no_more;
    bool peer_silent; /* the peer's host has lost its power: sends go nowhere */
    struct sim_event arrival;
    struct ucred peer_identity;
    struct stream *waiting, **waiting_end; /* of a listener */
    int waiting_count, backlog;
};

/* Returns whether an address is one that the host has now, beside the loopback. */
bool sim_host_has(const struct sim_host *host, const struct sockaddr_storage *address);
struct stream *sim_stream_make(int family, struct sim_host *host);
struct stream *sim_stream_of(struct sim_event *event);
/* Returns the stream of a descriptor, or NULL with an error. */
struct stream *sim_stream_find(int fd);
/* Begins a call with the stream of a descriptor, or ends it. */
#define OF_STREAM(fd)                                          \
    struct stream *stream = (sim_call(), sim_stream_find(fd)); \
    if (stream == NULL) {                                      \
        return -1;                                             \
    }
/* Bytes arrive: what happens at the arrival of a stream that is connected. */
void sim_stream_arrive(struct sim_event *event);
/* Sends the end of this direction, or a reset. */
void sim_stream_end(struct stream *stream, bool resets);
/* Resets the connections of a process with other hosts, at both ends. */
void sim_streams_reset(struct sim_process *process);
/* Forgets the name of a stream. */
void sim_stream_leave_host(struct stream *stream);

#endif
