/* SPDX-License-Identifier: MIT */
/*
 * Rank 0 admits the other ranks. The acceptor denies processes that do not prove that they know the
 * secret, if there is one. Those that do are admitted as the rank that they claim, or refused
 * without harm to the others.
 *
 * Until all are there, a rank that hangs up may come again: it may have waited in vain for a slow
 * rank 0, and have dialed again. Its first connection is then noticed no sooner than the second
 * one.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/bytes.h"
#include "connect/address.h"
#include "connect/negotiation.h"
#include "exchange/tcp.h"

/* If two processes claim the same rank: how long the second waits for the first to hang up. */
#define HOLD_TIME SLUICE_S(1)
#define MAX_HELD 64
#define PAUSE_TIME SLUICE_MS(100)
#define EVENTS 64
/* The most refusals that are logged, since there may be one a millisecond. */
#define WARNINGS 16
/*
 * After the deadline, the most batches of events that are handled before missing ranks are named.
 */
#define LAST_BATCHES 1024

/* epoll data: ranks by their number, places of the acceptor above this. */
#define PLACES (UINT64_C(1) << 32)

/* A process that has proven itself, and waits for a verdict. */
struct newcomer {
    int fd; /* -1: none */
    int64_t since;
    struct slu_address address;
    struct slu_session session;
    struct tcp_hello hello;
};

struct greeting {
    struct tcp *tcp;
    struct slu_negotiations negotiations;
    uint32_t warnings;
    uint32_t joined;     /* ranks that are there */
    int64_t all_since;   /* when the last one joined; 0: not all are there */
    int error;           /* that fails the exchange; 0: none */
    uint32_t held_count; /* newcomers whose rank is taken */
    struct newcomer held[MAX_HELD];
};

static void warn(struct greeting *greeting, const struct slu_address *address, const char *why)
{
    char text[SLU_ADDRESS_TEXT];

    if (greeting->warnings++ < WARNINGS)
        slu_log(SLUICE_LOG_WARN, "rank 0 of an exchange refused %s: %s",
                slu_address_text(address, text), why);
}

/* Refuses a newcomer and closes it; the others are not affected. code: see tcp.h. */
static void refuse(struct greeting *greeting, const struct newcomer *newcomer, uint32_t code,
                   const char *text, const char *why)
{
    uint8_t body[TCP_REFUSAL_HEAD + TCP_TEXT_MAX];
    size_t count = strnlen(text, TCP_TEXT_MAX);

    warn(greeting, &newcomer->address, why);
    slu_put(body, code, TCP_REFUSAL_HEAD);
    memcpy(body + TCP_REFUSAL_HEAD, text, count);
    (void)slu_negotiation_reply(newcomer->fd, &newcomer->session, SLU_REPLY_REFUSED, body,
                                (uint32_t)(TCP_REFUSAL_HEAD + count));
    slu_fd_close(newcomer->fd);
}

/*
 * Refuses a process of this job with a wrong rank or number of ranks. It alone is refused, since it
 * may be a stranger. If a rank is missing in the end, the others learn of this refusal. But a
 * process that has proven that it knows the secret is no stranger: if it has another number of
 * ranks, the ranks cannot become complete, and the exchange fails at once.
 */
static void refuse_rank(struct greeting *greeting, const struct newcomer *newcomer)
{
    struct tcp *tcp = greeting->tcp;
    const struct tcp_hello *hello = &newcomer->hello;
    char text[SLU_ADDRESS_TEXT], other[SLU_ADDRESS_TEXT];
    struct slu_text why;
    int error;

    slu_address_text(&newcomer->address, text);
    if (hello->ranks != tcp->ranks)
        error = slu_fail(EPROTO, "rank %u at %s says that there are %u ranks, rank 0 says %u",
                         hello->rank, text, hello->ranks, tcp->ranks);
    else if (hello->rank == 0 || hello->rank >= tcp->ranks)
        error = slu_fail(EPROTO, "%s says that it is rank %u, which can be 1 to %u beside rank 0",
                         text, hello->rank, tcp->ranks - 1);
    else
        error = slu_fail(EEXIST, "two processes say that they are rank %u: one at %s and one at %s",
                         hello->rank, slu_address_text(&tcp->peers[hello->rank].link.peer, other),
                         text);
    tcp->refusal_error = -error;
    snprintf(tcp->refusal, sizeof tcp->refusal, "%s", sluice_last_error());
    slu_text_save(&why);
    refuse(greeting, newcomer, slu_tcp_encode_error(error), why.bytes, tcp->refusal);
    if (tcp->means != SLU_MEANS_NONE && hello->ranks != tcp->ranks && greeting->error == 0) {
        slu_text_restore(&why);
        greeting->error = slu_tcp_fail(tcp, error);
    }
}

/* An admitted rank has hung up, and may come again. */
static void rank_disconnected(struct greeting *greeting, uint32_t rank)
{
    struct tcp_peer *peer = &greeting->tcp->peers[rank];
    char text[SLU_ADDRESS_TEXT];

    if (greeting->warnings++ < WARNINGS)
        slu_log(SLUICE_LOG_WARN,
                "rank %u at %s hung up before all ranks were there: waiting for it to come again",
                rank, slu_address_text(&peer->link.peer, text));
    slu_tcp_link_close(&peer->link);
    peer->done = false;
    peer->left = true;
    greeting->joined--;
    greeting->all_since = 0;
}

/* The connection becomes that of a rank. */
static void join(struct greeting *greeting, const struct newcomer *newcomer)
{
    struct tcp *tcp = greeting->tcp;
    struct tcp_peer *peer = &tcp->peers[newcomer->hello.rank];
    int error;

    slu_tcp_link_open(&peer->link, newcomer->fd, &newcomer->address);
    slu_tcp_peer_between(peer);
    if (!slu_negotiation_reply(newcomer->fd, &newcomer->session, SLU_REPLY_ADMITTED, NULL, 0)) {
        slu_tcp_link_close(&peer->link);
        return;
    }
    peer->done = true;
    if (++greeting->joined == tcp->ranks - 1)
        greeting->all_since = slu_now();
    error = slu_tcp_link_watch(&peer->link, tcp->epoll, newcomer->hello.rank);
    if (error < 0 && greeting->error == 0)
        greeting->error = slu_tcp_fail(tcp, error);
}

/* Admits or refuses a newcomer, or returns false if its rank is taken. last: then refuses it. */
static bool settle(struct greeting *greeting, const struct newcomer *newcomer, bool last)
{
    struct tcp_peer *peer = &greeting->tcp->peers[newcomer->hello.rank];
    bool ended = slu_stream_ended(newcomer->fd);

    if (!ended && peer->done && slu_stream_ended(peer->link.fd))
        rank_disconnected(greeting, newcomer->hello.rank);
    if (!ended && peer->done && !last)
        return false;
    if (ended && !peer->done) {
        peer->left = true;
        peer->link.peer = newcomer->address;
    }
    if (ended)
        slu_fd_close(newcomer->fd);
    else if (peer->done)
        refuse_rank(greeting, newcomer);
    else
        join(greeting, newcomer);
    return true;
}

static void check_hello(struct greeting *greeting, const struct newcomer *newcomer)
{
    const struct tcp *tcp = greeting->tcp;
    const struct tcp_hello *hello = &newcomer->hello;
    uint32_t free = 0;

    if (strcmp(hello->job, tcp->job) != 0) {
        refuse(greeting, newcomer, TCP_REFUSED_JOB, tcp->job, "it is of another job");
        return;
    }
    if (hello->ranks != tcp->ranks || hello->rank == 0 || hello->rank >= tcp->ranks) {
        refuse_rank(greeting, newcomer);
        return;
    }
    while (free < MAX_HELD && greeting->held[free].fd >= 0)
        free++;
    if (settle(greeting, newcomer, free == MAX_HELD))
        return;
    if (!slu_negotiation_reply(newcomer->fd, &newcomer->session, SLU_REPLY_PENDING, NULL, 0)) {
        slu_fd_close(newcomer->fd);
        return;
    }
    greeting->held[free] = *newcomer;
    greeting->held_count++;
}

/* If a rank is missing in the end, the others learn of this one. */
static void note_foreign(struct tcp *tcp, const char *address, const char *why)
{
    tcp->refusal_error = EPROTO;
    snprintf(tcp->refusal, sizeof tcp->refusal, "a process at %s came: %.130s", address, why);
}

/* The text begins with the version of rank 0, which is all that ranks of version 3 show. */
static void refuse_version(struct greeting *greeting, const struct newcomer *newcomer)
{
    char text[80], why[140], address[SLU_ADDRESS_TEXT];

    snprintf(text, sizeof text, "%d, readable from version %d on", TCP_VERSION, TCP_READABLE);
    snprintf(why, sizeof why,
             "it speaks version %u of the exchange, readable from version %u on; this library "
             "speaks version %d, and reads from %d on",
             newcomer->hello.written, newcomer->hello.readable, TCP_VERSION, TCP_OLDEST);
    refuse(greeting, newcomer, TCP_REFUSED_VERSION, text, why);
    note_foreign(greeting->tcp, slu_address_text(&newcomer->address, address), why);
}

static void proven(struct slu_negotiations *negotiations, const struct slu_negotiation *negotiation,
                   const struct slu_session *session, int fd)
{
    struct greeting *greeting = slu_container_of(negotiations, struct greeting, negotiations);
    struct newcomer newcomer = {.fd = fd, .since = slu_now(), .session = *session};

    int error = slu_tcp_hello_decode(slu_negotiation_body(negotiation), negotiation->hello.bytes,
                                     &newcomer.hello);

    newcomer.address = slu_address_of_peer(fd);
    if (error == 0)
        check_hello(greeting, &newcomer);
    else if (error == -EPROTONOSUPPORT)
        refuse_version(greeting, &newcomer);
    else
        slu_fd_close(fd);
}

/*
 * The rank in the hello is not proven. But if that rank is missing in the end, this may be the
 * reason.
 */
static void denied(struct slu_negotiations *negotiations, const struct slu_negotiation *negotiation,
                   int fd)
{
    struct greeting *greeting = slu_container_of(negotiations, struct greeting, negotiations);
    struct slu_address address = slu_address_of_peer(fd);
    struct tcp *tcp = greeting->tcp;
    uint32_t means = negotiation->hello.means;
    char why[120] = "it did not prove that it knows the secret";
    struct tcp_hello hello;

    if (slu_tcp_hello_decode(slu_negotiation_body(negotiation), negotiation->hello.bytes, &hello) <
            0 ||
        means > TCP_MEANS_MUNGE)
        return;
    if (means == SLU_MEANS_NONE && tcp->means != SLU_MEANS_NONE)
        snprintf(why, sizeof why, "it has no secret, and rank 0 has %s",
                 tcp->means == SLU_MEANS_SECRET ? "one" : slu_tcp_means(tcp->means));
    else if (means != tcp->means)
        snprintf(why, sizeof why, "it has %s, and rank 0 has %s", slu_tcp_means(means),
                 tcp->means == SLU_MEANS_NONE ? "no secret" : slu_tcp_means(tcp->means));
    if (hello.rank < tcp->ranks && strcmp(hello.job, tcp->job) == 0) {
        tcp->peers[hello.rank].refused = true;
        tcp->peers[hello.rank].means = means;
    }
    warn(greeting, &address, why);
}

static void foreign(struct slu_negotiations *negotiations, const struct slu_head *head, int fd)
{
    struct slu_address address = slu_address_of_peer(fd);
    struct greeting *greeting = slu_container_of(negotiations, struct greeting, negotiations);
    char text[SLU_HEAD_TEXT], other[SLU_ADDRESS_TEXT];

    warn(greeting, &address, slu_head_text(head, text));
    note_foreign(greeting->tcp, slu_address_text(&address, other), text);
}

/* A rank that waits for the others sends nothing, unless it gives up. */
static void receive_joined(struct greeting *greeting, uint32_t rank)
{
    struct tcp *tcp = greeting->tcp;
    struct tcp_peer *peer = &tcp->peers[rank];

    if (peer->link.fd < 0)
        return;
    if (slu_tcp_link_receive(&peer->link) < 0) {
        rank_disconnected(greeting, rank);
    } else if (peer->link.want == 0) {
        if (tcp->interrupted == 0)
            tcp->interrupted = rank;
        (void)slu_tcp_link_watch(&peer->link, tcp->epoll, rank);
    }
}

/* Admits held newcomers whose rank has become free, and refuses those that waited for HOLD_TIME. */
static void settle_held(struct greeting *greeting, bool last)
{
    int64_t now = slu_now();

    for (uint32_t i = 0; i < MAX_HELD && greeting->held_count > 0; i++) {
        struct newcomer *newcomer = &greeting->held[i];

        if (newcomer->fd < 0 ||
            !settle(greeting, newcomer, last || now - newcomer->since >= HOLD_TIME))
            continue;
        newcomer->fd = -1;
        greeting->held_count--;
    }
}

/* Waits for events and handles them. Returns how many, or the error that fails the exchange. */
static int handle_events(struct greeting *greeting, int milliseconds)
{
    struct tcp *tcp = greeting->tcp;
    struct epoll_event events[EVENTS];
    int count = epoll_wait(tcp->epoll, events, EVENTS, milliseconds);

    if (count < 0 && errno != EINTR)
        return slu_tcp_fail_wait(tcp);
    for (int i = 0; i < count && greeting->error == 0; i++) {
        if (events[i].data.u64 >= PLACES)
            slu_acceptor_event(&greeting->negotiations.acceptor,
                               (uint32_t)(events[i].data.u64 - PLACES));
        else
            receive_joined(greeting, (uint32_t)events[i].data.u64);
    }
    slu_acceptor_tick(&greeting->negotiations.acceptor, slu_now());
    return greeting->error < 0 ? greeting->error : count > 0 ? count : 0;
}

/*
 * Checks that all ranks are still there: one that hangs up later counts as lost. Held newcomers
 * delay this by HOLD_TIME at most, after the last rank joined.
 */
static bool all_joined(struct greeting *greeting)
{
    const struct tcp *tcp = greeting->tcp;

    if (greeting->joined < tcp->ranks - 1 ||
        (greeting->held_count > 0 && slu_now() - greeting->all_since < HOLD_TIME))
        return false;
    for (uint32_t i = 1; i < tcp->ranks; i++)
        if (slu_stream_ended(tcp->peers[i].link.fd))
            rank_disconnected(greeting, i);
    return greeting->joined == tcp->ranks - 1;
}

static int greet(struct greeting *greeting, int64_t until)
{
    struct tcp *tcp = greeting->tcp;
    const struct slu_acceptor *acceptor = &greeting->negotiations.acceptor;

    while (!all_joined(greeting)) {
        bool busy = greeting->held_count > 0 || slu_acceptor_is_busy(acceptor);
        int64_t soon = slu_after(PAUSE_TIME);
        int count = handle_events(greeting, slu_milliseconds(busy && soon < until ? soon : until));
        bool over = slu_is_late(until) || tcp->interrupted > 0;

        /*
         * Ranks that are already connecting are not missing, even if rank 0 is late to serve them.
         */
        for (int i = 0; over && i < LAST_BATCHES && count > 0; i++)
            count = handle_events(greeting, 0);
        if (count >= 0)
            settle_held(greeting, slu_is_late(until));
        if (count < 0 || greeting->error < 0)
            return count < 0 ? count : greeting->error;
        tcp->accept_error = acceptor->starved;
        if (tcp->interrupted > 0)
            return slu_tcp_fail_interrupted(tcp, false);
        if (over && !all_joined(greeting))
            return slu_tcp_fail_deadline(tcp, 0);
    }
    settle_held(greeting, true);
    return greeting->error;
}

static void init_negotiations(struct greeting *greeting)
{
    struct slu_negotiations *negotiations = &greeting->negotiations;
    struct tcp *tcp = greeting->tcp;

    slu_negotiations_init(negotiations, tcp->epoll, PLACES);
    negotiations->purpose = SLU_PURPOSE_EXCHANGE;
    negotiations->means = tcp->means;
    negotiations->secret = tcp->secret.bytes;
    negotiations->secret_bytes = tcp->secret.count;
    negotiations->answer = tcp->credential;
    negotiations->answer_bytes = tcp->means == TCP_MEANS_MUNGE ? TCP_CREDENTIAL_BYTES : 0;
    negotiations->proven = proven;
    negotiations->denied = denied;
    negotiations->foreign = foreign;
}

int slu_tcp_greet_all(struct tcp *tcp, int64_t until)
{
    struct greeting *greeting;
    int error;

    /* A single rank needs no connection. */
    if (tcp->ranks == 1)
        return 0;
    greeting = calloc(1, sizeof *greeting);
    if (greeting == NULL)
        return slu_fail(ENOMEM, "no memory to let other ranks in");
    greeting->tcp = tcp;
    for (uint32_t i = 0; i < MAX_HELD; i++)
        greeting->held[i].fd = -1;
    init_negotiations(greeting);
    error = slu_tcp_listen_root(tcp);
    if (error == 0) {
        int added = slu_acceptor_add(&greeting->negotiations.acceptor, tcp->listener);

        tcp->listener = -1;
        error = added == 0
                    ? greet(greeting, until)
                    : slu_fail(-added, "rank 0 cannot watch the socket that it listens at: %s",
                               strerrordesc_np(-added));
    }
    slu_acceptor_close(&greeting->negotiations.acceptor);
    for (uint32_t i = 0; i < MAX_HELD; i++)
        if (greeting->held[i].fd >= 0)
            slu_fd_close(greeting->held[i].fd);
    free(greeting);
    return error;
}
