/* SPDX-License-Identifier: MIT */
/*
 * The exchange over TCP, with other ranks of ours that say anything in any pieces: decoded values
 * are encoded to the same bytes, and a successful call has the bytes that each rank gave for it; no
 * descriptor is left.
 *
 * The first byte of an input selects the part that is tried. For decoding, the rest are bytes;
 * otherwise they are calls (one byte each, up to three), and then steps (world.h).
 */
#include "config.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exchange/tcp.h"
#include "world.h"

const char fuzz_name[] = "exchange";

enum part { PART_DECODE, PART_LEAF, PART_ROOT, PARTS };

#define RANKS 3
#define CALLS 3
#define MOST_BYTES 300

static struct fuzz_talk talks[RANKS]; /* by rank of our end */
static struct fuzz_talk *talk;        /* talk of the next steps */
static struct fuzz_input script;
static struct tcp tcp;
static struct sluice_exchange exchange;
static bool missing[RANKS];
static struct tcp_call calls[CALLS];
static uint8_t from[RANKS * MOST_BYTES];
static uint8_t to[RANKS * MOST_BYTES];
static uint32_t made[RANKS]; /* right frames so far */
static size_t used[RANKS];   /* bytes that the calls so far have taken */
static size_t told[RANKS];   /* and bytes of their results */

/* Decodes a hello and encodes it again. */

static void decode_hello(const uint8_t *bytes, size_t count)
{
    uint8_t again[TCP_HELLO_BYTES];
    struct tcp_hello hello;
    if (slu_tcp_hello_decode(bytes, count, &hello) != 0) {
        return;
    }
    fuzz_taken++;
    hold(strnlen(hello.job, sizeof(hello.job)) < sizeof(hello.job), "no end");
    slu_tcp_hello_encode(&hello, again);
    hold(bytes[0] != 0 || bytes[1] != 0 ||
             (count == sizeof(again) && memcmp(bytes, again, count) == 0),
         "other bytes");
}

static void decode_frame(const uint8_t *bytes)
{
    uint8_t again[TCP_FRAME_BYTES];
    struct tcp_frame frame;
    if (slu_tcp_frame_decode(bytes, &frame) != 0) {
        return;
    }
    fuzz_taken++;
    hold(strcmp(slu_tcp_type_name(frame.type), "nothing") != 0, "type %u", frame.type);
    slu_tcp_frame_encode(&frame, again);
    hold(memcmp(bytes, again, sizeof(again)) == 0, "other bytes");
}

static bool is_wire_error(int error)
{
    return slu_tcp_decode_error(slu_tcp_encode_error(error)) == -error;
}

static void decode_verdict(const uint8_t *bytes, size_t count)
{
    bool absent[RANKS] = {false};
    int error;
    if (!slu_tcp_verdict_possible(count, RANKS)) {
        return;
    }
    error = slu_tcp_verdict_read(bytes, count, absent, RANKS);
    hold(error < 0 && is_wire_error(error), "%d", error);
    fuzz_explained();
}

static void try_decoding(struct fuzz_input *input)
{
    size_t count = FUZZ_MOST;
    const uint8_t *given = fuzz_bytes(input, &count);
    /* A buffer of exactly that size, so that reading one byte too many is noticed. */
    uint8_t *bytes = malloc(count > 0 ? count : 1);
    hold(bytes != NULL, "no memory");
    memcpy(bytes, given, count);
    decode_hello(bytes, count);
    if (count >= TCP_FRAME_BYTES) {
        decode_frame(bytes);
    }
    decode_verdict(bytes, count);
    free(bytes);
}

/* Calls. */

static size_t give_bytes(const struct tcp_call *call)
{
    return call->type == TCP_ALLTOALL ? call->bytes * RANKS : call->bytes;
}

/* Makes the frame of a rank's next call, or rank 0's answer to it. */
static size_t make_frame(struct fuzz_talk *of, unsigned argument)
{
    static const uint8_t other[] = {TCP_GAVE_UP, TCP_NO_MEMORY, TCP_STARTED};
    size_t rank = (size_t)(of - talks), count, whole;
    uint32_t index = made[rank] < CALLS ? made[rank]++ : CALLS - 1;
    const struct tcp_call *call = &calls[index];
    struct tcp_frame frame = {.type = call->type, .sequence = index + 1, .bytes = call->bytes};
    if (argument == 31 && rank == 0) {
        uint8_t *verdict;
        (void)slu_fail(EEXIST, "the words of the verdict");
        verdict = slu_tcp_verdict_make(-EEXIST, index + 1, (const bool[]){0, 1, 1}, RANKS, &whole);
        hold(verdict != NULL, "no memory");
        memcpy(of->next, verdict, whole);
        free(verdict);
        return whole;
    }
    count = rank == 0 ? call->bytes * RANKS : give_bytes(call);
    if (argument >= 28 && argument <= 30) {
        frame.type = other[argument - 28];
        count = 0;
    }
    slu_tcp_frame_encode(&frame, of->next);
    for (size_t i = 0; i < count; i++) {
        of->next[TCP_FRAME_BYTES + i] = (uint8_t)(i * 7 + rank + index);
    }
    return TCP_FRAME_BYTES + count;
}

/* Our side goes on while the library waits, until it polls again. */
static void go_on(void)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        if (talks[i].fd >= 0) {
            fuzz_talk_hear(&talks[i]);
        }
    }
    while (script.left > 0) {
        unsigned step = fuzz_byte(&script), argument = step >> 3;
        if (step % 8 == STEP_LOOK) {
            return;
        }
        if (step % 8 == STEP_TICK) {
            fuzz_clock_advance(SLUICE_US(1) << argument);
            return;
        }
        if (step % 8 == STEP_OTHER) {
            talk = &talks[argument % RANKS];
        } else {
            fuzz_talk_step(talk, step % 8, argument, &script, make_frame);
        }
    }
    for (uint32_t i = 0; i < RANKS; i++) {
        if (talks[i].fd >= 0) {
            fuzz_talk_step(&talks[i], STEP_END, 0, &script, make_frame);
        }
    }
}

int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    (void)timeout;
    go_on();
    return __real_poll(fds, count, 0);
}

int __real_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout)
{
    (void)timeout;
    go_on();
    return __real_epoll_wait(epoll, events, most, 0);
}

static void connect_rank(uint32_t rank, struct tcp_link *link)
{
    int fds[2];
    hold(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0, "%s", strerror(errno));
    slu_tcp_link_open(link, fds[0],
                      &(struct slu_address){.family = 4, .port = 1, .ip = {127, 0, 0, 1}});
    fuzz_talk_open(&talks[rank], fds[1]);
}

static void read_calls(struct fuzz_input *input)
{
    static const uint8_t types[] = {TCP_ALLGATHER, TCP_ALLTOALL, TCP_BARRIER};
    static const uint16_t sizes[] = {0, 1, 8, MOST_BYTES};
    for (uint32_t i = 0; i < CALLS; i++) {
        uint8_t byte = fuzz_byte(input);
        uint8_t type = types[byte % 3];
        size_t bytes = type == TCP_BARRIER ? 0 : sizes[byte / 4 % 4];
        calls[i] = (struct tcp_call){type, bytes, to, from, 0};
    }
}

static void check_error(int error)
{
    hold(is_wire_error(error), "%d", error);
    fuzz_explained();
    hold(exchange.missing_count <= RANKS, "%u are missing", exchange.missing_count);
    for (uint32_t i = 0; i < exchange.missing_count; i++) {
        hold(exchange.missing[i] < RANKS, "rank %u is missing", exchange.missing[i]);
    }
}

/* Returns the bytes that a rank has sent for this call behind a right frame, or NULL. */
static const uint8_t *said_bytes(uint32_t rank, uint32_t index, size_t count)
{
    const struct tcp_call *call = &calls[index];
    struct fuzz_talk *of = &talks[rank];
    struct tcp_frame frame;
    hold(used[rank] + TCP_FRAME_BYTES + count <= of->said_count, "rank %u said too little", rank);
    hold(slu_tcp_frame_decode(of->said + used[rank], &frame) == 0, "rank %u said no frame", rank);
    hold(frame.type == call->type && frame.sequence == index + 1 && frame.bytes == call->bytes,
         "rank %u called %u, not %u", rank, frame.type, call->type);
    used[rank] += TCP_FRAME_BYTES + count;
    return of->said + used[rank] - count;
}

static void check_leaf_result(uint32_t index)
{
    size_t count = calls[index].bytes * RANKS;
    hold(memcmp(from, said_bytes(0, index, count), count) == 0, "another result");
    fuzz_taken++;
}

/* The result of rank 0, and the results it sends, are the values that the others gave. */
static void check_root_result(uint32_t index)
{
    const struct tcp_call *call = &calls[index];
    size_t bytes = call->bytes, result = bytes * RANKS;
    hold(memcmp(from, to, bytes) == 0, "another result of our own");
    for (uint32_t rank = 1; rank < RANKS; rank++) {
        const uint8_t *given = said_bytes(rank, index, give_bytes(call));
        const uint8_t *heard = talks[rank].heard + told[rank];
        struct tcp_frame frame;
        hold(memcmp(from + rank * bytes, given, bytes) == 0, "another result of rank %u", rank);
        fuzz_talk_hear(&talks[rank]);
        told[rank] += TCP_FRAME_BYTES + result;
        if (talks[rank].heard_count < told[rank]) {
            continue; /* this rank has sent everything, and left */
        }
        hold(slu_tcp_frame_decode(heard, &frame) == 0 && frame.type == call->type, "no frame");
        hold(call->type == TCP_ALLTOALL || memcmp(heard + TCP_FRAME_BYTES, from, result) == 0,
             "rank %u is told otherwise", rank);
    }
    fuzz_taken++;
}

static void run_calls(bool root)
{
    int error = 0;
    for (uint32_t i = 0; i < CALLS && error == 0; i++) {
        calls[i].until = slu_after(SLUICE_MS(50));
        error = root ? slu_tcp_root_call(&tcp, &calls[i]) : slu_tcp_leaf_call(&tcp, &calls[i]);
        if (error != 0) {
            check_error(error);
        } else if (root) {
            check_root_result(i);
        } else {
            check_leaf_result(i);
        }
    }
}

static void begin(struct fuzz_input *input, uint32_t rank)
{
    memset(&exchange, 0, sizeof(exchange));
    memset(&tcp, 0, sizeof(tcp));
    memset(missing, 0, sizeof(missing));
    memset(made, 0, sizeof(made));
    memset(used, 0, sizeof(used));
    memset(told, 0, sizeof(told));
    exchange.rank = tcp.rank = rank;
    exchange.ranks = tcp.ranks = RANKS;
    tcp.exchange = &exchange;
    tcp.missing = missing;
    tcp.epoll = tcp.listener = tcp.link.fd = -1;
    memcpy(tcp.root, "here", sizeof("here"));
    for (size_t i = 0; i < sizeof(to); i++) {
        to[i] = (uint8_t)(i ^ 0x5a);
    }
    read_calls(input);
    script = *input;
}

static void end(void)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        fuzz_talk_close(&talks[i]);
    }
    free(exchange.missing);
}

static void try_leaf(struct fuzz_input *input)
{
    begin(input, 1);
    connect_rank(0, &tcp.link);
    talk = &talks[0];
    run_calls(false);
    slu_tcp_link_close(&tcp.link);
    end();
}

static void try_root(struct fuzz_input *input)
{
    static struct tcp_peer peers[RANKS];
    begin(input, 0);
    memset(peers, 0, sizeof(peers));
    tcp.peers = peers;
    tcp.epoll = slu_fd_epoll();
    hold(tcp.epoll >= 0, "%s", strerror(errno));
    peers[0].link.fd = -1;
    for (uint32_t i = 1; i < RANKS; i++) {
        connect_rank(i, &peers[i].link);
        slu_tcp_peer_between(&peers[i]);
    }
    talk = &talks[1];
    run_calls(true);
    for (uint32_t i = 1; i < RANKS; i++) {
        slu_tcp_link_close(&peers[i].link);
    }
    slu_fd_close(tcp.epoll);
    end();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    enum part part = fuzz_byte(&input) % PARTS;
    int before = fuzz_free_descriptor();
    fuzz_world_begin();
    for (uint32_t i = 0; i < RANKS; i++) {
        talks[i].fd = -1;
    }
    if (part == PART_DECODE) {
        try_decoding(&input);
    } else if (part == PART_LEAF) {
        try_leaf(&input);
    } else {
        try_root(&input);
    }
    hold(fuzz_free_descriptor() == before, "a descriptor is left");
    return 0;
}
