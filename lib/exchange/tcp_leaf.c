/* SPDX-License-Identifier: MIT */
/*
 * The ranks that are not rank 0. Each finds rank 0, which may come late, and
 * then says what it gives, and hears its result or why there is none. A rank
 * whose deadline has passed says so, and waits a moment for who was missing.
 */
#include "config.h"

#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "exchange/tcp.h"

#define FIRST_PAUSE SLUICE_MS(20)
#define LAST_PAUSE SLUICE_MS(500)
/* For an address where nobody answers, before the next one is tried. */
#define CONNECT_TIME SLUICE_S(3)

/* Not an error: rank 0 is not there yet; the attempt knows why. */
#define AGAIN 1

struct attempt {
    struct tcp *tcp;
    int64_t until;
    uint8_t own[TCP_HELLO_BYTES], theirs[TCP_HELLO_BYTES];
    char why[128]; /* of the last time it failed */
    bool unknown;  /* the host of the root has no address */
};

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int again(struct attempt *attempt, const char *why)
{
    snprintf(attempt->why, sizeof attempt->why, "%s", why);
    slu_tcp_link_close(&attempt->tcp->link);
    return AGAIN;
}

/*
 * Once around: sends and receives what it can, or waits until it could. -ETIMEDOUT:
 * the time is up.
 */
static int step(struct tcp_link *link, int64_t until)
{
    struct pollfd pollfd = {.fd = link->fd};
    int wait = slu_tcp_milliseconds(until);
    int ready, error;

    pollfd.events = (short)((link->want > 0 ? POLLIN : 0) | (link->out_count > 0 ? POLLOUT : 0));
    ready = poll(&pollfd, 1, wait);
    if (ready < 0)
        return errno == EINTR ? 0 : -errno;
    if (ready == 0)
        return wait == 0 ? -ETIMEDOUT : 0;
    /* What rank 0 said before it left is worth more than what it does not take. */
    if (link->out_count > 0 && slu_tcp_link_send(link) < 0)
        link->out_count = 0;
    error = slu_tcp_link_receive(link);
    /* However steadily it comes: the time was up before. */
    if (error == 0 && wait == 0 && (link->want > 0 || link->out_count > 0))
        return -ETIMEDOUT;
    return error;
}

/* All that is queued goes out, and all that is wanted comes in. */
static int transfer(struct tcp_link *link, int64_t until)
{
    int error = 0;

    while (error == 0 && (link->want > 0 || link->out_count > 0))
        error = step(link, until);
    return error;
}

static int fail_refused(const struct tcp *tcp, const struct tcp_hello *theirs)
{
    switch (theirs->refusal) {
    case TCP_REFUSED_JOB:
        return slu_fail(EPROTO, "rank 0 at %s is of job \"%s\", not \"%s\"", tcp->root, theirs->job,
                        tcp->job);
    case TCP_REFUSED_SECRET:
        if (theirs->secret == tcp->means)
            return slu_fail(EACCES, "rank 0 at %s refused the secret of rank %u", tcp->root,
                            tcp->rank);
        if (theirs->secret != TCP_NOTHING)
            return slu_fail(EACCES, "rank 0 at %s has %s, and rank %u has %s", tcp->root,
                            slu_secret_means(theirs->secret), tcp->rank,
                            slu_secret_means(tcp->means));
        return slu_fail(EACCES, "rank %u has %s, and rank 0 at %s has none", tcp->rank,
                        slu_secret_means(tcp->means), tcp->root);
    default:
        return slu_fail(EPROTO, "rank 0 at %s refused version %u of the exchange", tcp->root,
                        TCP_VERSION);
    }
}

/* Whether who answered can be rank 0. */
static int check_hello(struct attempt *attempt)
{
    const struct tcp *tcp = attempt->tcp;
    struct tcp_hello theirs;

    if (slu_tcp_hello_possible(attempt->theirs, TCP_HELLO_BYTES) &&
        slu_tcp_hello_version(attempt->theirs) != TCP_VERSION)
        return slu_fail(EPROTO, "rank 0 at %s speaks version %u of the exchange, this library %u",
                        tcp->root, slu_tcp_hello_version(attempt->theirs), TCP_VERSION);
    if (slu_tcp_hello_decode(attempt->theirs, &theirs) < 0 || theirs.role != TCP_ROLE_ROOT ||
        theirs.rank != 0 || (tcp->place_count > 1 && strcmp(theirs.job, tcp->job) != 0)) {
        /* One of many addresses may be that of another host here. */
        if (tcp->place_count > 1)
            return again(attempt, "what answers is not rank 0 of this job");
        return slu_fail(EPROTO, "what answers at %s is not rank 0 of an exchange", tcp->root);
    }
    if (theirs.refusal != TCP_ACCEPTED)
        return fail_refused(tcp, &theirs);
    if (theirs.secret != tcp->means) {
        theirs.refusal = TCP_REFUSED_SECRET;
        return fail_refused(tcp, &theirs);
    }
    if (strcmp(theirs.job, tcp->job) != 0) {
        theirs.refusal = TCP_REFUSED_JOB;
        return fail_refused(tcp, &theirs);
    }
    return 0;
}

static void make_hello(const struct tcp *tcp, struct tcp_hello *hello)
{
    *hello = (struct tcp_hello){
        .version = TCP_VERSION,
        .role = TCP_ROLE_RANK,
        .secret = tcp->means,
        .ranks = tcp->ranks,
        .rank = tcp->rank,
    };
    memcpy(hello->job, tcp->job, sizeof hello->job);
}

/* Each side proves to the other that it knows the secret; rank 0 after us. */
static int prove(struct attempt *attempt, int64_t until)
{
    struct tcp *tcp = attempt->tcp;
    uint8_t proof[TCP_PROOF_BYTES] = {0}, theirs[TCP_PROOF_BYTES], mac[TCP_MAC_BYTES];
    uint64_t head;
    int error;

    slu_secret_sign(&tcp->secret, TCP_ROLE_RANK, attempt->own, attempt->theirs, proof + 8);
    slu_tcp_link_queue(&tcp->link, proof, sizeof proof);
    tcp->link.in = theirs;
    tcp->link.want = sizeof theirs;
    error = transfer(&tcp->link, until);
    if (error < 0)
        return again(attempt, "it left while the secret was proved");
    slu_get(theirs, &head, 8);
    slu_secret_sign(&tcp->secret, TCP_ROLE_ROOT, attempt->own, attempt->theirs, mac);
    if (head != 0)
        return slu_fail(EACCES, "rank 0 at %s has another secret than rank %u", tcp->root,
                        tcp->rank);
    if (!slu_secret_equal(mac, theirs + 8))
        return slu_fail(EACCES, "what answers at %s does not know the secret of rank %u", tcp->root,
                        tcp->rank);
    return 0;
}

/* The secret of rank 0, if that is of our user. */
static int hear_credential(struct attempt *attempt, int64_t until)
{
    struct tcp *tcp = attempt->tcp;
    uint8_t secret[SLU_SECRET_BYTES];
    int error;

    tcp->link.in = (uint8_t *)tcp->credential;
    tcp->link.want = sizeof tcp->credential;
    if (transfer(&tcp->link, until) < 0)
        return again(attempt, "it left before its credential was there");
    error = slu_munge_unseal(tcp->credential, secret, until);
    slu_secret_forget(&tcp->secret);
    if (error == 0)
        error = slu_secret_copy(secret, sizeof secret, &tcp->secret);
    explicit_bzero(secret, sizeof secret);
    return error;
}

static int greet(struct attempt *attempt)
{
    struct tcp *tcp = attempt->tcp;
    int64_t until = earlier(attempt->until, slu_after(TCP_GREETING_TIME));
    struct tcp_hello hello;
    int error;

    make_hello(tcp, &hello);
    error = slu_random(hello.nonce, sizeof hello.nonce);
    if (error < 0)
        return error;
    slu_tcp_hello_encode(&hello, attempt->own);
    slu_tcp_link_queue(&tcp->link, attempt->own, TCP_HELLO_BYTES);
    tcp->link.in = attempt->theirs;
    tcp->link.want = TCP_HELLO_BYTES;
    while (tcp->link.want > 0 || tcp->link.out_count > 0) {
        error = step(&tcp->link, until);
        /* Who says something else from the first byte on will not become rank 0. */
        if (!slu_tcp_hello_possible(attempt->theirs, TCP_HELLO_BYTES - tcp->link.want))
            return check_hello(attempt);
        if (error < 0)
            return again(attempt, error == -ETIMEDOUT ? "it says nothing" : "it left at once");
    }
    error = check_hello(attempt);
    if (error == 0 && tcp->means == TCP_MUNGE)
        error = hear_credential(attempt, until);
    if (error != 0 || tcp->means == TCP_NOTHING)
        return error;
    return prove(attempt, until);
}

/* A port at which nobody listens may be connected with itself. */
static bool is_self(int fd)
{
    struct sockaddr_storage own = {0}, peer = {0};
    socklen_t own_length = sizeof own, peer_length = sizeof peer;

    return getsockname(fd, (struct sockaddr *)&own, &own_length) == 0 &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_length) == 0 &&
           own_length == peer_length && memcmp(&own, &peer, own_length) == 0;
}

/* 0, or the error of the connection. */
static int finish_connect(int fd, int64_t until)
{
    struct pollfd pollfd = {.fd = fd, .events = POLLOUT};
    socklen_t length = sizeof(int);
    int error, ready;

    do
        ready = poll(&pollfd, 1, slu_tcp_milliseconds(until));
    while (ready < 0 && errno == EINTR);
    if (ready == 0)
        return -ETIMEDOUT;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
        return -errno;
    return is_self(fd) ? -ECONNREFUSED : -error;
}

static int try_address(struct attempt *attempt, const struct addrinfo *info)
{
    struct tcp *tcp = attempt->tcp;
    struct slu_address address = slu_tcp_address(info->ai_addr);
    int fd = slu_fd_stream(info->ai_family);
    int error = 0;

    if (fd < 0 && errno == EAFNOSUPPORT)
        return again(attempt, "its kind of address is not supported");
    if (fd < 0)
        return slu_fail(errno, "no socket to rank 0 at %s: %s", tcp->root, strerrordesc_np(errno));
    slu_tcp_link_open(&tcp->link, fd, &address);
    slu_tcp_set_options(fd);
    if (connect(fd, info->ai_addr, info->ai_addrlen) != 0)
        error = errno == EINPROGRESS || errno == EINTR ? 0 : -errno;
    if (error == 0)
        error = finish_connect(fd, earlier(attempt->until, slu_after(CONNECT_TIME)));
    if (error < 0)
        return again(attempt, strerrordesc_np(-error));
    return greet(attempt);
}

/* All addresses of a place. A name may get its addresses only when the host has come up. */
static int try_place(struct attempt *attempt, const struct tcp_place *place)
{
    struct addrinfo *list;
    const char *why;
    int result = slu_tcp_find(place, attempt->until, &list, &why);

    attempt->unknown = why != NULL;
    if (why != NULL)
        return again(attempt, why);
    if (result < 0)
        return result;
    result = AGAIN;
    for (const struct addrinfo *info = list; info != NULL && result == AGAIN; info = info->ai_next)
        result = try_address(attempt, info);
    freeaddrinfo(list);
    return result;
}

/* Each once. */
static int try_all(struct attempt *attempt)
{
    const struct tcp *tcp = attempt->tcp;
    int result = AGAIN;

    for (uint32_t i = 0; i < tcp->place_count && result == AGAIN; i++)
        result = try_place(attempt, &tcp->places[i]);
    return result;
}

/* Nobody knows of anybody but rank 0. */
static int fail_without_root(struct sluice_exchange *exchange, int error)
{
    struct tcp *tcp = exchange->state;

    memset(tcp->present, 0xff, (tcp->ranks + 63) / 64 * sizeof *tcp->present);
    tcp->present[0] &= ~UINT64_C(1);
    slu_exchange_set_missing(exchange, tcp->present);
    return error;
}

static int fail_attempt(const struct attempt *attempt)
{
    const struct tcp *tcp = attempt->tcp;
    char root[TCP_ROOT_TEXT];

    slu_tcp_root_text(tcp, root);
    if (attempt->unknown)
        return slu_fail(ETIMEDOUT,
                        "rank %u cannot find rank 0: until the deadline this host could not "
                        "resolve the root %s: %s",
                        tcp->rank, root, attempt->why);
    return slu_fail(ETIMEDOUT, "rank 0 did not come to %s%s before the deadline of rank %u: %s",
                    root, tcp->root_source != NULL ? "," : "", tcp->rank, attempt->why);
}

static int find_root(struct sluice_exchange *exchange, int64_t until)
{
    struct tcp *tcp = exchange->state;
    struct attempt attempt = {.tcp = tcp, .until = until};
    int64_t pause = FIRST_PAUSE;

    for (;;) {
        int result = try_all(&attempt);
        int64_t now = slu_now();

        if (result <= 0)
            return result;
        if (now >= until)
            return fail_without_root(exchange, fail_attempt(&attempt));
        poll(NULL, 0, slu_tcp_milliseconds(earlier(until, slu_after(pause))));
        pause = earlier(2 * pause, LAST_PAUSE);
    }
}

/* What follows the head of a verdict, which is of a length that is possible. */
static int hear_verdict(struct sluice_exchange *exchange, size_t count)
{
    struct tcp *tcp = exchange->state;
    uint8_t *bytes = malloc(count);
    int error;

    if (bytes == NULL)
        return slu_fail(ENOMEM, "no memory to hear why the ranks failed");
    tcp->link.in = bytes;
    tcp->link.want = count;
    tcp->link.out_count = 0;
    error = transfer(&tcp->link, slu_after(TCP_GRACE_TIME));
    if (error == 0) {
        memset(tcp->present, 0xff, (tcp->ranks + 63) / 64 * sizeof *tcp->present);
        error = slu_tcp_verdict_read(bytes, count, tcp->present, tcp->ranks);
        slu_exchange_set_missing(exchange, tcp->present);
    } else {
        error = slu_fail(ECONNRESET, "rank 0 at %s is gone", tcp->root);
    }
    tcp->link.want = 0;
    free(bytes);
    return error;
}

static int check_reply(struct sluice_exchange *exchange, const uint8_t head[TCP_FRAME_BYTES],
                       const struct tcp_call *call)
{
    const struct tcp *tcp = exchange->state;
    struct tcp_frame frame;

    if (slu_tcp_frame_decode(head, &frame) < 0)
        return slu_fail(EPROTO, "rank 0 at %s sent something that is not a frame", tcp->root);
    if (frame.type == TCP_VERDICT && slu_tcp_verdict_possible(frame.bytes, tcp->ranks))
        return hear_verdict(exchange, (size_t)frame.bytes);
    if (frame.type != call->type || frame.sequence != tcp->sequence || frame.bytes != call->bytes)
        return slu_fail(EPROTO,
                        "rank 0 at %s answers %s of %zu byte%s, call %llu, with %s of %llu byte%s, "
                        "call %llu",
                        tcp->root, slu_tcp_type_name(call->type), call->bytes, SLU_S(call->bytes),
                        (unsigned long long)tcp->sequence, slu_tcp_type_name(frame.type),
                        (unsigned long long)frame.bytes, SLU_S(frame.bytes),
                        (unsigned long long)frame.sequence);
    return 0;
}

static int fail_gone(struct sluice_exchange *exchange)
{
    const struct tcp *tcp = exchange->state;

    return fail_without_root(exchange, slu_fail(ECONNRESET, "rank 0 at %s is gone", tcp->root));
}

/*
 * The deadline has passed: rank 0 is told, if it takes what we say, and says who
 * was missing. Its result comes too late, for it will have been told.
 */
static int give_up(struct sluice_exchange *exchange, uint8_t head[TCP_FRAME_BYTES],
                   const struct tcp_call *call)
{
    struct tcp *tcp = exchange->state;
    struct tcp_frame frame = {.type = TCP_GAVE_UP, .sequence = tcp->sequence};
    uint8_t bytes[TCP_FRAME_BYTES];
    int error;

    slu_tcp_frame_encode(&frame, bytes);
    if (tcp->link.out_count == 0)
        slu_tcp_link_queue(&tcp->link, bytes, sizeof bytes);
    error = transfer(&tcp->link, slu_after(TCP_GRACE_TIME));
    tcp->link.out_count = 0;
    if (error == -ETIMEDOUT)
        return fail_without_root(exchange,
                                 slu_fail(ETIMEDOUT,
                                          "rank 0 at %s did not come to %s before the deadline of "
                                          "rank %u",
                                          tcp->root, slu_tcp_type_name(call->type), tcp->rank));
    if (error < 0)
        return fail_gone(exchange);
    error = check_reply(exchange, head, call);
    if (error < 0)
        return error;
    return slu_fail(ETIMEDOUT, "the deadline of rank %u passed just before the end of %s",
                    tcp->rank, slu_tcp_type_name(call->type));
}

/* The call is queued: hears the head of what comes back, and the rest into from. */
static int hear(struct sluice_exchange *exchange, const struct tcp_call *call, size_t count)
{
    struct tcp *tcp = exchange->state;
    uint8_t head[TCP_FRAME_BYTES];
    int error = 0;

    tcp->link.in = head;
    tcp->link.want = sizeof head;
    while (error == 0 && tcp->link.want > 0)
        error = step(&tcp->link, call->until);
    if (error == -ETIMEDOUT)
        return give_up(exchange, head, call);
    if (error < 0)
        return fail_gone(exchange);
    error = check_reply(exchange, head, call);
    if (error < 0)
        return error;
    tcp->link.in = call->from;
    tcp->link.want = count;
    error = transfer(&tcp->link, call->until);
    if (error == -ETIMEDOUT)
        return fail_without_root(exchange,
                                 slu_fail(ETIMEDOUT,
                                          "the deadline of rank %u passed in the middle of the "
                                          "result of %s",
                                          tcp->rank, slu_tcp_type_name(call->type)));
    return error < 0 ? fail_gone(exchange) : 0;
}

int slu_tcp_leaf_open(struct sluice_exchange *exchange, int64_t until)
{
    struct tcp_call start = {.type = TCP_STARTED, .until = until};
    int error = find_root(exchange, until);

    return error < 0 ? error : hear(exchange, &start, 0);
}

int slu_tcp_leaf_call(struct sluice_exchange *exchange, const struct tcp_call *call)
{
    struct tcp *tcp = exchange->state;
    struct tcp_frame frame = {call->type, ++tcp->sequence, call->bytes};
    size_t all = call->bytes * tcp->ranks;
    uint8_t head[TCP_FRAME_BYTES];
    int error;

    slu_tcp_frame_encode(&frame, head);
    slu_tcp_link_queue(&tcp->link, head, sizeof head);
    slu_tcp_link_queue(&tcp->link, call->to, call->type == TCP_ALLTOALL ? all : call->bytes);
    error = hear(exchange, call, all);
    /* Rank 0 must not wait for the rest of what we were about to give. */
    if (error < 0)
        slu_tcp_link_close(&tcp->link);
    return error;
}

/* Rank 0 says it to all, as soon as it comes to this call. */
void slu_tcp_leaf_abandon(struct sluice_exchange *exchange)
{
    struct tcp *tcp = exchange->state;
    struct tcp_frame frame = {.type = TCP_NO_MEMORY, .sequence = ++tcp->sequence};
    uint8_t head[TCP_FRAME_BYTES];

    slu_tcp_frame_encode(&frame, head);
    slu_tcp_link_queue(&tcp->link, head, sizeof head);
    tcp->link.want = 0;
    if (transfer(&tcp->link, slu_after(TCP_GRACE_TIME)) < 0)
        slu_tcp_link_close(&tcp->link);
}
