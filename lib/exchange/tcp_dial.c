/* SPDX-License-Identifier: MIT */
/* How a rank finds rank 0, which may come late, and each proves to the other that it is of the job. */
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
    error = slu_tcp_transfer(&tcp->link, until);
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
    if (slu_tcp_transfer(&tcp->link, until) < 0)
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
        error = slu_tcp_link_step(&tcp->link, until);
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

int slu_tcp_find_root(struct tcp *tcp, int64_t until)
{
    struct attempt attempt = {.tcp = tcp, .until = until};
    int64_t pause = FIRST_PAUSE;

    for (;;) {
        int result = try_all(&attempt);
        int64_t now = slu_now();

        if (result <= 0)
            return result;
        if (now >= until)
            return slu_tcp_fail_without_root(tcp, fail_attempt(&attempt));
        poll(NULL, 0, slu_tcp_milliseconds(earlier(until, slu_after(pause))));
        pause = earlier(2 * pause, LAST_PAUSE);
    }
}
