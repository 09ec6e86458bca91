/* SPDX-License-Identifier: MIT */
/*
 * Calls of rank 0, which collects what all ranks give, and sends the result to all. A slow rank
 * holds up the call, which needs its part, but nothing else. A rank may be one call ahead: then
 * only its header is read.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/bytes.h"
#include "exchange/tcp.h"

#define EVENTS 64
/* The bytes of an alltoall that are held at once, twice: it takes rounds of some ranks each. */
#define ROUND_BYTES ((size_t)16 << 20)

/* Rank i gives size bytes, which go to into + i * size. */
struct round {
    const struct tcp_call *call;
    uint8_t *into;
    size_t size;
};

/* Reads the next bytes of a rank into the round. */
static void await_bytes(struct tcp *tcp, uint32_t rank, const struct round *round)
{
    struct tcp_peer *peer = &tcp->peers[rank];

    peer->stage = TCP_GIVING;
    peer->link.in = round->size > 0 ? round->into + rank * round->size : NULL;
    peer->link.want = round->size;
    peer->later -= round->size;
}

/* Compares a header with the call of rank 0. */
static int take_header(struct tcp *tcp, uint32_t rank, const struct round *round)
{
    struct tcp_peer *peer = &tcp->peers[rank];
    const struct tcp_call *call = round->call;
    struct tcp_frame frame;

    if (slu_tcp_frame_decode(peer->header, &frame) < 0 || frame.type == TCP_STARTED ||
        frame.type == TCP_VERDICT || frame.type > TCP_NO_MEMORY)
        return slu_tcp_fail_rank(tcp, rank, EPROTO, "sent something unexpected");
    /* The rank gave up a call whose result was on its way, and makes no other one. */
    if (frame.type == TCP_GAVE_UP)
        return slu_tcp_fail_lost(tcp, rank);
    if (frame.type == TCP_NO_MEMORY)
        return slu_tcp_fail_rank(tcp, rank, ENOMEM, "has no memory to take part");
    if (frame.type != call->type || frame.sequence != tcp->sequence || frame.bytes != call->bytes)
        return slu_tcp_fail(
            tcp, slu_fail(EPROTO,
                          "rank %u makes call %llu, %s of %llu byte%s, but rank 0 makes call %llu, "
                          "%s of %zu byte%s",
                          rank, (unsigned long long)frame.sequence, slu_tcp_type_name(frame.type),
                          (unsigned long long)frame.bytes, SLU_S(frame.bytes),
                          (unsigned long long)tcp->sequence, slu_tcp_type_name(call->type),
                          call->bytes, SLU_S(call->bytes)));
    peer->called = true;
    peer->port = frame.port;
    peer->later = call->type == TCP_ALLTOALL ? call->bytes * tcp->ranks : call->bytes;
    await_bytes(tcp, rank, round);
    return 0;
}

/* Sends the whole result to a rank that did not get it by the tree. */
static void answer_asker(struct tcp *tcp, struct tcp_peer *peer, const struct round *round)
{
    slu_tcp_link_queue(&peer->link, tcp->reply, TCP_FRAME_BYTES);
    slu_tcp_link_queue(&peer->link, round->call->from, round->call->bytes * tcp->ranks);
    tcp->unsent++;
}

/*
 * Takes what a rank says of a result that is passed on along the tree. Returns false if it says
 * something else.
 */
static bool take_note(struct tcp *tcp, uint32_t rank, const struct round *round)
{
    struct tcp_peer *peer = &tcp->peers[rank];
    struct tcp_frame frame;

    if (!peer->answered || peer->taken || peer->link.out_count > 0 ||
        slu_tcp_frame_decode(peer->header, &frame) < 0 || frame.sequence != tcp->sequence ||
        (frame.type != TCP_TAKEN && frame.type != TCP_ASK))
        return false;
    slu_tcp_peer_between(peer);
    if (frame.type == TCP_ASK) {
        answer_asker(tcp, peer, round);
        return true;
    }
    peer->taken = true;
    tcp->taken++;
    return true;
}

/* Continues once all bytes of a stage have come. */
static int advance(struct tcp *tcp, uint32_t rank, const struct round *round)
{
    struct tcp_peer *peer = &tcp->peers[rank];

    if (peer->stage == TCP_BETWEEN) {
        peer->stage = TCP_HEADED;
        if (!peer->called)
            return take_header(tcp, rank, round);
        if (tcp->relaying && take_note(tcp, rank, round))
            return 0;
        /* A rank sends no other call before it has its result. Read what the others gave first. */
        if ((!peer->answered || peer->link.out_count > 0 || (tcp->relaying && !peer->taken)) &&
            tcp->interrupted == 0)
            tcp->interrupted = rank;
        return 0;
    }
    tcp->given++;
    peer->done = peer->later == 0;
    if (peer->done)
        slu_tcp_peer_between(peer);
    else
        peer->stage = TCP_WAITING;
    return 0;
}

/* A rank that has given all and was answered may leave. */
static int handle_loss(struct tcp *tcp, uint32_t rank)
{
    struct tcp_peer *peer = &tcp->peers[rank];

    if (!peer->done || !peer->answered || (tcp->relaying && !peer->taken))
        return slu_tcp_fail_lost(tcp, rank);
    tcp->unsent -= peer->link.out_count > 0;
    slu_tcp_link_close(&peer->link);
    return 0;
}

/* Sends and receives for one rank, as far as possible. */
static int serve_peer(struct tcp *tcp, uint32_t rank, const struct round *round)
{
    struct tcp_peer *peer = &tcp->peers[rank];
    bool unsent = peer->link.out_count > 0;
    int error;

    if (peer->link.fd < 0)
        return 0;
    if (slu_tcp_link_send(&peer->link) < 0)
        return handle_loss(tcp, rank);
    tcp->unsent -= unsent && peer->link.out_count == 0;
    for (;;) {
        if (slu_tcp_link_receive(&peer->link) < 0)
            return handle_loss(tcp, rank);
        if (peer->link.want > 0 || peer->stage == TCP_HEADED || peer->stage == TCP_WAITING)
            break;
        error = advance(tcp, rank, round);
        if (error < 0)
            return error;
    }
    error = slu_tcp_link_watch(&peer->link, tcp->epoll, rank);
    return error < 0 ? slu_tcp_fail(tcp, error) : 0;
}

static bool is_over(const struct tcp *tcp)
{
    return tcp->interrupted > 0 || (tcp->given == tcp->ranks - 1 && tcp->unsent == 0 &&
                                    (!tcp->relaying || tcp->taken == tcp->ranks - 1));
}

/* Runs until all ranks have given, and all results have been sent. */
static int serve_all(struct tcp *tcp, const struct round *round)
{
    while (!is_over(tcp)) {
        struct epoll_event events[EVENTS];
        int wait = slu_milliseconds(round->call->until);
        int count = epoll_wait(tcp->epoll, events, EVENTS, wait);
        int error = 0;

        if (count < 0 && errno != EINTR)
            return slu_tcp_fail_wait(tcp);
        for (int i = 0; i < count && error == 0; i++)
            error = serve_peer(tcp, (uint32_t)events[i].data.u64, round);
        if (error < 0)
            return error;
        if (wait == 0 && !is_over(tcp))
            return slu_tcp_fail_deadline(tcp, 0);
    }
    return tcp->interrupted > 0 ? slu_tcp_fail_interrupted(tcp, false) : 0;
}

/* Collects the bytes of a round from all ranks. */
static int collect(struct tcp *tcp, const struct round *round)
{
    bool first = tcp->ranks > 1 && !tcp->peers[1].called;

    tcp->given = 0;
    for (uint32_t i = 1; i < tcp->ranks; i++) {
        struct tcp_peer *peer = &tcp->peers[i];
        int error = 0;

        if (peer->link.fd < 0)
            return slu_tcp_fail_lost(tcp, i);
        if (peer->called)
            await_bytes(tcp, i, round);
        else if (peer->stage == TCP_HEADED)
            error = take_header(tcp, i, round);
        if (error == 0)
            error = serve_peer(tcp, i, round);
        if (error < 0)
            return error;
    }
    if (first && tcp->interrupted > 0)
        return slu_tcp_fail_interrupted(tcp, true);
    return serve_all(tcp, round);
}

static int answer(struct tcp *tcp, uint32_t rank, const void *bytes, size_t count,
                  const struct round *round)
{
    struct tcp_peer *peer = &tcp->peers[rank];

    if (peer->link.fd < 0)
        return 0;
    peer->answered = true;
    slu_tcp_link_queue(&peer->link, tcp->reply, TCP_FRAME_BYTES);
    slu_tcp_link_queue(&peer->link, bytes, count);
    tcp->unsent++;
    return serve_peer(tcp, rank, round);
}

static int answer_all(struct tcp *tcp, const void *bytes, size_t count, const struct round *round)
{
    int error = 0;

    for (uint32_t i = 1; i < tcp->ranks && error == 0; i++)
        error = answer(tcp, i, bytes, count, round);
    return error < 0 ? error : serve_all(tcp, round);
}

/* Ranks of the root's host may be known by a loopback address, which is of no use to others. */
static bool is_loopback(const struct slu_address *address)
{
    static const uint8_t ipv6[16] = {[15] = 1};

    return address->family == 4 ? address->ip[0] == 127
                                : memcmp(address->ip, ipv6, sizeof ipv6) == 0;
}

/* Returns the rank that passes the result on to this one; 0: it comes from rank 0. */
static uint32_t find_parent(const struct tcp *tcp, uint32_t rank)
{
    uint32_t parent = (rank - 1) / TCP_RELAY_WIDTH;
    const struct slu_address *address = &tcp->peers[parent].link.peer;

    /* Ranks that came over a Unix socket have no address. */
    if (parent == 0 || tcp->peers[parent].port == 0 || tcp->peers[parent].link.fd < 0 ||
        address->family == 0 || (is_loopback(address) && !is_loopback(&tcp->peers[rank].link.peer)))
        return 0;
    return parent;
}

static void write_relay(struct tcp *tcp, uint32_t rank, uint32_t parent, const uint8_t *tokens)
{
    const struct slu_address *address = &tcp->peers[parent].link.peer;
    uint8_t *body = tcp->peers[rank].relay, *at;

    memset(body, 0, TCP_RELAY_BYTES);
    if (parent > 0) {
        at = slu_put(body, address->family, 2);
        at = slu_put(at, tcp->peers[parent].port, 2);
        memcpy(at, address->ip, sizeof address->ip);
    }
    memcpy(body + TCP_RELAY_BYTES - 2 * TCP_TOKEN_BYTES, tokens, 2 * (size_t)TCP_TOKEN_BYTES);
}

/* Sends the result to a few ranks, and to each other rank the address of one that passes it on. */
static int relay_all(struct tcp *tcp, const struct round *round, const uint8_t *tokens)
{
    int error = 0;

    for (uint32_t i = 1; i < tcp->ranks && error == 0; i++) {
        struct tcp_peer *peer = &tcp->peers[i];
        uint32_t parent = find_parent(tcp, i);

        if (peer->link.fd < 0)
            return slu_tcp_fail_lost(tcp, i);
        write_relay(tcp, i, parent, tokens);
        peer->answered = true;
        slu_tcp_link_queue(&peer->link, tcp->relay_head, TCP_FRAME_BYTES);
        slu_tcp_link_queue(&peer->link, peer->relay, TCP_RELAY_BYTES);
        if (parent == 0)
            slu_tcp_link_queue(&peer->link, round->call->from, round->call->bytes * tcp->ranks);
        tcp->unsent++;
        error = serve_peer(tcp, i, round);
    }
    return error;
}

/* A rank that has taken the result stays until all have, since it passes the result on. */
static int run_relay(struct tcp *tcp, const struct round *round)
{
    struct tcp_frame frame = {
        .type = TCP_RELAY, .sequence = tcp->sequence, .bytes = round->call->bytes};
    uint8_t tokens[2 * TCP_TOKEN_BYTES];
    int error = slu_random(tokens, sizeof tokens);

    if (error < 0)
        return slu_tcp_fail(tcp, error);
    slu_tcp_frame_encode(&frame, tcp->relay_head);
    tcp->relaying = true;
    tcp->taken = 0;
    for (uint32_t i = 1; i < tcp->ranks; i++)
        tcp->peers[i].taken = false;
    error = relay_all(tcp, round, tokens);
    if (error == 0)
        error = serve_all(tcp, round);
    tcp->relaying = false;
    if (error < 0)
        return error;
    frame.type = TCP_DONE;
    slu_tcp_frame_encode(&frame, tcp->reply);
    return answer_all(tcp, NULL, 0, round);
}

static int run_allgather(struct tcp *tcp, const struct tcp_call *call)
{
    struct round round = {call, call->from, call->bytes};
    size_t all = call->bytes * tcp->ranks;
    int error;

    if (call->bytes > 0)
        memmove(call->from, call->to, call->bytes);
    error = collect(tcp, &round);
    if (error < 0)
        return error;
    if (call->type == TCP_ALLGATHER && tcp->ranks >= TCP_RELAY_RANKS && all >= TCP_RELAY_LEAST)
        return run_relay(tcp, &round);
    return answer_all(tcp, call->from, all, &round);
}

/* Arranges what all gave for count ranks from first on, so that the part of each is contiguous. */
static void transpose(const struct tcp *tcp, const struct round *round, uint32_t first,
                      uint32_t count, uint8_t *transposed)
{
    size_t bytes = round->call->bytes;

    memcpy(round->into, round->call->to + first * bytes, count * bytes);
    for (size_t from = 0; from < tcp->ranks; from++)
        for (size_t to = 0; to < count; to++)
            memcpy(transposed + (to * tcp->ranks + from) * bytes,
                   round->into + (from * count + to) * bytes, bytes);
}

static int run_round(struct tcp *tcp, const struct round *round, uint32_t first, uint32_t count,
                     uint8_t *transposed)
{
    size_t block = round->call->bytes * tcp->ranks;
    int error = collect(tcp, round);

    if (error < 0)
        return error;
    transpose(tcp, round, first, count, transposed);
    if (first == 0)
        memcpy(round->call->from, transposed, block);
    for (uint32_t i = first == 0; i < count && error == 0; i++)
        error = answer(tcp, first + i, transposed + i * block, block, round);
    return error < 0 ? error : serve_all(tcp, round);
}

static int run_alltoall(struct tcp *tcp, const struct tcp_call *call)
{
    size_t most = ROUND_BYTES / tcp->ranks / call->bytes;
    uint8_t *into, *transposed;
    int error = 0;

    most = most == 0 ? 1 : slu_least(most, tcp->ranks);
    into = calloc(most * tcp->ranks, call->bytes);
    transposed = calloc(most * tcp->ranks, call->bytes);
    if (into == NULL || transposed == NULL)
        error = slu_tcp_fail(tcp, slu_fail(ENOMEM,
                                           "rank 0 has no memory for an alltoall of %zu bytes "
                                           "among %u ranks",
                                           call->bytes, tcp->ranks));
    for (uint32_t first = 0; first < tcp->ranks && error == 0; first += (uint32_t)most) {
        uint32_t count = (uint32_t)slu_least(most, tcp->ranks - first);
        struct round round = {call, into, count * call->bytes};

        error = run_round(tcp, &round, first, count, transposed);
    }
    free(into);
    free(transposed);
    return error;
}

int slu_tcp_root_call(struct tcp *tcp, const struct tcp_call *call)
{
    struct tcp_frame frame = {
        .type = call->type, .sequence = ++tcp->sequence, .bytes = call->bytes};

    tcp->type = call->type;
    slu_tcp_frame_encode(&frame, tcp->reply);
    for (uint32_t i = 1; i < tcp->ranks; i++) {
        struct tcp_peer *peer = &tcp->peers[i];

        peer->called = peer->done = peer->answered = false;
    }
    if (call->type == TCP_ALLTOALL && call->bytes > 0)
        return run_alltoall(tcp, call);
    return run_allgather(tcp, call);
}

int slu_tcp_root_open(struct tcp *tcp, int64_t until)
{
    struct tcp_call start = {.type = TCP_STARTED, .until = until};
    struct round round = {&start, NULL, 0};
    struct tcp_frame frame = {.type = TCP_STARTED};
    int error;

    tcp->peers = calloc(tcp->ranks, sizeof *tcp->peers);
    if (tcp->peers == NULL)
        return slu_fail(ENOMEM, "no memory for %u ranks", tcp->ranks);
    for (uint32_t i = 0; i < tcp->ranks; i++)
        tcp->peers[i].link.fd = -1;
    tcp->epoll = slu_fd_epoll();
    if (tcp->epoll < 0)
        return slu_fail(errno,
                        "rank 0 has no descriptor to watch its connections: epoll_create1(2): %s",
                        strerrordesc_np(errno));
    error = slu_tcp_greet_all(tcp, until);
    if (error < 0)
        return error;
    slu_tcp_frame_encode(&frame, tcp->reply);
    tcp->given = tcp->ranks - 1;
    for (uint32_t i = 1; i < tcp->ranks; i++)
        tcp->peers[i].called = true;
    return answer_all(tcp, NULL, 0, &round);
}
