/* SPDX-License-Identifier: MIT */
/*
 * Rank 0 lets the others in. Whoever connects must say a whole hello within 10 s,
 * and prove that it knows the secret if there is one; all else is dropped, and
 * holds up nobody: of those that say nothing, the oldest make place for others.
 *
 * Until all are there, a rank that hangs up is one that has yet to come: it may
 * have waited in vain for a rank 0 that was slow, and have dialed again. What it
 * said on the first connection is then heard as late as the second one is there.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "exchange/tcp.h"

#define NEWCOMERS 256
/* Full, one that is silent makes room at once, and one that is proving after so long. */
#define PROVING_TIME SLUICE_S(1)
/* Of two that say to be the same rank: for the end of the first one, should it be on its way. */
#define HELD_TIME SLUICE_S(1)
#define PAUSE_TIME SLUICE_MS(100)
#define EVENTS 64
#define ACCEPTS 64
/* Refusals that the log tells of; there may be one a millisecond. */
#define WARNINGS 16
/* Batches of events that are looked at once more before all are told who is missing. */
#define LAST_LOOKS 1024

/* epoll knows ranks by themselves, and these above them. */
#define LISTENER (UINT64_C(1) << 32)
#define NEWCOMER (UINT64_C(2) << 32)

struct newcomer {
    int fd; /* -1: none */
    int64_t since;
    uint32_t got;
    bool proving; /* its hello was heard, and its proof is due */
    bool held;    /* all of it was heard, but the rank that it says to be is there */
    struct slu_address address;
    uint8_t bytes[TCP_HELLO_BYTES + TCP_PROOF_BYTES];
    uint8_t answer[TCP_HELLO_BYTES]; /* our hello to it */
};

struct greeting {
    bool paused;
    int64_t pause_since;
    uint32_t count, warnings;
    uint32_t joined; /* ranks */
    uint32_t held;   /* newcomers */
    struct newcomer newcomers[NEWCOMERS];
};

static void drop(struct greeting *greeting, struct newcomer *newcomer)
{
    slu_fd_close(newcomer->fd);
    newcomer->fd = -1;
    greeting->count--;
    greeting->held -= newcomer->held;
}

/* Whether it was hung up, and all that was said before has been read. */
static bool has_ended(int fd)
{
    uint8_t byte;
    ssize_t got = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

static void warn(struct greeting *greeting, const struct newcomer *newcomer, const char *why)
{
    char text[TCP_ADDRESS_TEXT];

    if (greeting->warnings++ < WARNINGS)
        slu_log(SLUICE_LOG_WARN, "rank 0 of an exchange refused %s: %s",
                slu_tcp_address_text(&newcomer->address, text), why);
}

/* A few bytes to a new connection: all go at once, or nobody is to hear them. */
static bool say(const struct newcomer *newcomer, const uint8_t *bytes, size_t count)
{
    return send(newcomer->fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)count;
}

/* Our hello, to one that was heard or is refused. */
static int say_hello(const struct tcp *tcp, struct newcomer *newcomer, enum tcp_refusal refusal)
{
    struct tcp_hello hello = {
        .version = TCP_VERSION,
        .role = TCP_ROLE_ROOT,
        .secret = tcp->means,
        .refusal = (uint8_t)refusal,
        .ranks = tcp->ranks,
    };
    int error = slu_random(hello.nonce, sizeof hello.nonce);

    if (error < 0)
        return error;
    memcpy(hello.job, tcp->job, sizeof hello.job);
    slu_tcp_hello_encode(&hello, newcomer->answer);
    if (!say(newcomer, newcomer->answer, TCP_HELLO_BYTES))
        return -ECONNRESET;
    if (tcp->means != TCP_MUNGE || refusal != TCP_ACCEPTED)
        return 0;
    return say(newcomer, (const uint8_t *)tcp->credential, sizeof tcp->credential) ? 0
                                                                                   : -ECONNRESET;
}

/* It is told why, and the others go on. */
static void refuse(struct tcp *tcp, struct greeting *greeting, struct newcomer *newcomer,
                   enum tcp_refusal refusal, const char *why)
{
    uint8_t proof[TCP_PROOF_BYTES] = {0};

    warn(greeting, newcomer, why);
    if (newcomer->proving) {
        slu_put(proof, refusal, 4);
        (void)say(newcomer, proof, sizeof proof);
    } else {
        (void)say_hello(tcp, newcomer, refusal);
    }
    drop(greeting, newcomer);
}

static void refuse_secret(struct tcp *tcp, struct greeting *greeting, struct newcomer *newcomer,
                          const struct tcp_hello *hello)
{
    char why[120] = "it did not prove that it knows the secret";

    if (hello->secret == TCP_NOTHING && tcp->means != TCP_NOTHING)
        snprintf(why, sizeof why, "it has no secret, and rank 0 has %s",
                 tcp->means == TCP_SECRET ? "one" : slu_secret_means(tcp->means));
    else if (hello->secret != tcp->means)
        snprintf(why, sizeof why, "it has %s, and rank 0 has %s", slu_secret_means(hello->secret),
                 tcp->means == TCP_NOTHING ? "no secret" : slu_secret_means(tcp->means));

    if (hello->rank < tcp->ranks) {
        tcp->peers[hello->rank].refused = true;
        tcp->peers[hello->rank].means = hello->secret;
    }
    refuse(tcp, greeting, newcomer, TCP_REFUSED_SECRET, why);
}

/* The connection becomes that of a rank. */
static struct tcp_peer *hand_over(struct tcp *tcp, struct greeting *greeting,
                                  struct newcomer *newcomer, uint32_t rank)
{
    struct tcp_peer *peer = &tcp->peers[rank];

    epoll_ctl(tcp->epoll, EPOLL_CTL_DEL, newcomer->fd, NULL);
    slu_tcp_link_open(&peer->link, newcomer->fd, &newcomer->address);
    newcomer->fd = -1;
    greeting->count--;
    greeting->held -= newcomer->held;
    return peer;
}

/* A verdict for it alone, whose text is that of the thread, and in which nobody was missing. */
static void tell_refusal(struct tcp *tcp, const struct newcomer *newcomer, int error)
{
    size_t bytes;
    uint8_t *verdict;

    memset(tcp->missing, 0, tcp->ranks);
    verdict = slu_tcp_verdict_make(error, tcp->sequence, tcp->missing, tcp->ranks, &bytes);
    if (verdict != NULL)
        (void)say(newcomer, verdict, bytes);
    free(verdict);
}

/*
 * One of our job with another rank or number of ranks than it can have. It is refused alone, and
 * told why: it may be a stranger who knows our words. Should a rank be missing in the
 * end, then all others hear of it, however late they come.
 */
static void refuse_rank(struct tcp *tcp, struct greeting *greeting, struct newcomer *newcomer,
                        const struct tcp_hello *hello)
{
    char text[TCP_ADDRESS_TEXT], other[TCP_ADDRESS_TEXT];
    int error;

    slu_tcp_address_text(&newcomer->address, text);
    if (hello->ranks != tcp->ranks)
        error = slu_fail(EPROTO, "rank %u at %s says that there are %u ranks, rank 0 says %u",
                         hello->rank, text, hello->ranks, tcp->ranks);
    else if (hello->rank == 0 || hello->rank >= tcp->ranks)
        error = slu_fail(EPROTO, "%s says that it is rank %u, which can be 1 to %u beside rank 0",
                         text, hello->rank, tcp->ranks - 1);
    else
        error = slu_fail(EEXIST, "two processes say that they are rank %u: one at %s and one at %s",
                         hello->rank,
                         slu_tcp_address_text(&tcp->peers[hello->rank].link.peer, other), text);
    tcp->refusal_error = -error;
    snprintf(tcp->refusal, sizeof tcp->refusal, "%s", sluice_last_error());
    warn(greeting, newcomer, tcp->refusal);
    tell_refusal(tcp, newcomer, error);
    drop(greeting, newcomer);
}

/* A rank that was let in has hung up: it is one that has yet to come. */
static void rank_disconnected(struct tcp *tcp, struct greeting *greeting, uint32_t rank)
{
    struct tcp_peer *peer = &tcp->peers[rank];
    char text[TCP_ADDRESS_TEXT];

    if (greeting->warnings++ < WARNINGS)
        slu_log(SLUICE_LOG_WARN,
                "rank %u at %s hung up before all ranks were there: waiting for it to come again",
                rank, slu_tcp_address_text(&peer->link.peer, text));
    slu_tcp_link_close(&peer->link);
    peer->done = false;
    peer->left = true;
    greeting->joined--;
}

/* It says to be a rank that is there: one of the two connections may be about to end. */
static void hold(const struct tcp *tcp, struct greeting *greeting, struct newcomer *newcomer)
{
    epoll_ctl(tcp->epoll, EPOLL_CTL_DEL, newcomer->fd, NULL);
    newcomer->held = true;
    newcomer->since = slu_now();
    greeting->held++;
}

static int admit(struct tcp *tcp, struct greeting *greeting, struct newcomer *newcomer,
                 const struct tcp_hello *hello)
{
    struct tcp_peer *peer;
    int error;

    if (hello->ranks != tcp->ranks || hello->rank == 0 || hello->rank >= tcp->ranks) {
        refuse_rank(tcp, greeting, newcomer, hello);
        return 0;
    }
    peer = &tcp->peers[hello->rank];
    if (has_ended(newcomer->fd)) {
        if (!peer->done) {
            peer->left = true;
            peer->link.peer = newcomer->address;
        }
        drop(greeting, newcomer);
        return 0;
    }
    if (peer->done && has_ended(peer->link.fd))
        rank_disconnected(tcp, greeting, hello->rank);
    if (peer->done) {
        if (!newcomer->held)
            hold(tcp, greeting, newcomer);
        return 0;
    }
    hand_over(tcp, greeting, newcomer, hello->rank);
    slu_tcp_peer_between(peer);
    peer->done = true;
    greeting->joined++;
    error = slu_tcp_link_watch(&peer->link, tcp->epoll, hello->rank);
    return error < 0 ? slu_tcp_fail(tcp, error) : 0;
}

static int hear_proof(struct tcp *tcp, struct greeting *greeting, struct newcomer *newcomer,
                      const struct tcp_hello *hello)
{
    uint8_t mac[TCP_MAC_BYTES], proof[TCP_PROOF_BYTES] = {0};
    const uint8_t *given = newcomer->bytes + TCP_HELLO_BYTES;
    uint64_t head;

    slu_secret_sign(&tcp->secret, TCP_ROLE_RANK, newcomer->bytes, newcomer->answer, mac);
    slu_get(given, &head, 8);
    if (head != 0 || !slu_secret_equal(mac, given + 8)) {
        refuse_secret(tcp, greeting, newcomer, hello);
        return 0;
    }
    slu_secret_sign(&tcp->secret, TCP_ROLE_ROOT, newcomer->bytes, newcomer->answer, proof + 8);
    if (!say(newcomer, proof, sizeof proof)) {
        drop(greeting, newcomer);
        return 0;
    }
    return admit(tcp, greeting, newcomer, hello);
}

static int hear_hello(struct tcp *tcp, struct greeting *greeting, struct newcomer *newcomer)
{
    struct tcp_hello hello;

    if (slu_tcp_hello_decode(newcomer->bytes, &hello) < 0 || hello.role != TCP_ROLE_RANK ||
        hello.refusal != TCP_ACCEPTED) {
        drop(greeting, newcomer);
        return 0;
    }
    if (newcomer->proving)
        return hear_proof(tcp, greeting, newcomer, &hello);
    if (strcmp(hello.job, tcp->job) != 0) {
        refuse(tcp, greeting, newcomer, TCP_REFUSED_JOB, "it is of another job");
        return 0;
    }
    if (hello.secret != tcp->means) {
        refuse_secret(tcp, greeting, newcomer, &hello);
        return 0;
    }
    if (say_hello(tcp, newcomer, TCP_ACCEPTED) < 0) {
        drop(greeting, newcomer);
        return 0;
    }
    if (tcp->means == TCP_NOTHING)
        return admit(tcp, greeting, newcomer, &hello);
    newcomer->proving = true;
    return 0;
}

/* Takes what is there; 0, or the error of which all fail. */
static int hear_newcomer(struct tcp *tcp, struct greeting *greeting, struct newcomer *newcomer)
{
    while (newcomer->fd >= 0 && !newcomer->held) {
        uint32_t due = TCP_HELLO_BYTES + (newcomer->proving ? TCP_PROOF_BYTES : 0);
        ssize_t got =
            recv(newcomer->fd, newcomer->bytes + newcomer->got, due - newcomer->got, MSG_DONTWAIT);
        int error;

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return 0;
        if (got > 0)
            newcomer->got += (uint32_t)got;
        if (got <= 0 || !slu_tcp_hello_possible(newcomer->bytes, newcomer->got)) {
            drop(greeting, newcomer);
            return 0;
        }
        if (newcomer->got >= TCP_HELLO_HEAD &&
            slu_tcp_hello_version(newcomer->bytes) != TCP_VERSION) {
            refuse(tcp, greeting, newcomer, TCP_REFUSED_VERSION, "it speaks another version");
            return 0;
        }
        if (newcomer->got < due)
            continue;
        error = hear_hello(tcp, greeting, newcomer);
        if (error < 0)
            return error;
    }
    return 0;
}

/* Those who have said nothing first, and of the same kind the oldest. */
static bool goes_before(const struct newcomer *a, const struct newcomer *b)
{
    return a->proving != b->proving ? !a->proving : a->since < b->since;
}

/* A free place, or one that may be made free; NULL: none. */
static struct newcomer *find_place(struct greeting *greeting, int64_t now)
{
    struct newcomer *oldest = NULL;

    for (uint32_t i = 0; i < NEWCOMERS; i++) {
        struct newcomer *newcomer = &greeting->newcomers[i];

        if (newcomer->fd < 0)
            return newcomer;
        if (!newcomer->held && (oldest == NULL || goes_before(newcomer, oldest)))
            oldest = newcomer;
    }
    if (oldest != NULL && oldest->proving && now - oldest->since < PROVING_TIME)
        return NULL;
    return oldest;
}

static void watch_listener(const struct tcp *tcp, struct greeting *greeting, bool paused)
{
    struct epoll_event event = {.events = paused ? 0 : EPOLLIN, .data.u64 = LISTENER};

    epoll_ctl(tcp->epoll, EPOLL_CTL_MOD, tcp->listener, &event);
    greeting->paused = paused;
    greeting->pause_since = slu_now();
}

/* 0: there are no more, or no more now; 1: one was let in; or the error of which all fail. */
static int accept_one(struct tcp *tcp, struct greeting *greeting)
{
    struct newcomer *newcomer = find_place(greeting, slu_now());
    struct sockaddr_storage storage = {0};
    socklen_t length = sizeof storage;
    struct epoll_event event = {.events = EPOLLIN};
    int fd, error;

    if (newcomer == NULL) {
        watch_listener(tcp, greeting, true);
        return 0;
    }
    fd = slu_fd_accept(tcp->listener, (struct sockaddr *)&storage, &length);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            if (greeting->warnings++ < WARNINGS)
                slu_log(SLUICE_LOG_ERROR, "rank 0 cannot let a rank in, trying again: %m");
            tcp->accept_error = errno == EMFILE || errno == ENFILE ? EMFILE : ENOMEM;
            watch_listener(tcp, greeting, true);
        }
        return errno == EINTR || errno == ECONNABORTED;
    }
    tcp->accept_error = 0;
    if (newcomer->fd >= 0)
        drop(greeting, newcomer);
    slu_tcp_set_options(fd);
    *newcomer = (struct newcomer){.fd = fd, .since = slu_now()};
    newcomer->address = slu_tcp_address((struct sockaddr *)&storage);
    greeting->count++;
    event.data.u64 = NEWCOMER + (uint64_t)(newcomer - greeting->newcomers);
    if (epoll_ctl(tcp->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        drop(greeting, newcomer);
        return 1;
    }
    error = hear_newcomer(tcp, greeting, newcomer);
    return error < 0 ? error : 1;
}

/* A rank that waits for the others says nothing, unless it gives up. */
static int hear_joined(struct tcp *tcp, struct greeting *greeting, uint32_t rank)
{
    struct tcp_peer *peer = &tcp->peers[rank];
    int error;

    if (peer->link.fd < 0)
        return 0;
    if (slu_tcp_link_receive(&peer->link) < 0) {
        rank_disconnected(tcp, greeting, rank);
        return 0;
    }
    if (peer->link.want > 0)
        return 0;
    if (tcp->interrupted == 0)
        tcp->interrupted = rank;
    error = slu_tcp_link_watch(&peer->link, tcp->epoll, rank);
    return error < 0 ? slu_tcp_fail(tcp, error) : 0;
}

/* 0, or the error of which all fail. */
static int handle(struct tcp *tcp, struct greeting *greeting, uint64_t data)
{
    if (data < tcp->ranks)
        return hear_joined(tcp, greeting, (uint32_t)data);
    if (data >= NEWCOMER)
        return hear_newcomer(tcp, greeting, &greeting->newcomers[data - NEWCOMER]);
    for (int i = 0; i < ACCEPTS; i++) {
        int taken = accept_one(tcp, greeting);

        if (taken <= 0)
            return taken;
    }
    return 0;
}

/* Drops who has taken too long, and goes on listening. */
static void tick(const struct tcp *tcp, struct greeting *greeting)
{
    int64_t now = slu_now();

    for (uint32_t i = 0; i < NEWCOMERS && greeting->count > 0; i++) {
        struct newcomer *newcomer = &greeting->newcomers[i];

        if (newcomer->fd >= 0 && !newcomer->held && now - newcomer->since >= TCP_GREETING_TIME)
            drop(greeting, newcomer);
    }
    if (greeting->paused && now - greeting->pause_since >= PAUSE_TIME)
        watch_listener(tcp, greeting, false);
}

/* Those that are held take the place of who has left, or all fail when their time is up. */
static int settle_held(struct tcp *tcp, struct greeting *greeting, int64_t until)
{
    int64_t now = slu_now();
    int error = 0;

    for (uint32_t i = 0; i < NEWCOMERS && greeting->held > 0 && error == 0; i++) {
        struct newcomer *newcomer = &greeting->newcomers[i];
        struct tcp_hello hello;

        if (newcomer->fd < 0 || !newcomer->held ||
            slu_tcp_hello_decode(newcomer->bytes, &hello) < 0)
            continue;
        error = admit(tcp, greeting, newcomer, &hello);
        if (error == 0 && newcomer->fd >= 0 && (now - newcomer->since >= HELD_TIME || now >= until))
            refuse_rank(tcp, greeting, newcomer, &hello);
    }
    return error;
}

/* Waits for a while, and handles what there is; how many events, or the error of which all fail. */
static int look(struct tcp *tcp, struct greeting *greeting, int milliseconds)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(tcp->epoll, events, EVENTS, milliseconds);
    int error = 0;

    if (count < 0 && errno != EINTR)
        return slu_tcp_fail(tcp, slu_fail(errno, "epoll_wait failed"));
    for (int i = 0; i < count && error == 0; i++)
        error = handle(tcp, greeting, events[i].data.u64);
    if (error < 0)
        return error;
    tick(tcp, greeting);
    return count > 0 ? count : 0;
}

/* Who is at the door is not missing, however late we look. */
static int look_again(struct tcp *tcp, struct greeting *greeting)
{
    int count = 1;

    for (int i = 0; i < LAST_LOOKS && count > 0; i++)
        count = look(tcp, greeting, 0);
    return count < 0 ? count : 0;
}

/* That all are still there: what hangs up later has heard us, and is to be lost. */
static bool is_complete(struct tcp *tcp, struct greeting *greeting)
{
    if (greeting->joined < tcp->ranks - 1 || greeting->held > 0)
        return false;
    for (uint32_t i = 1; i < tcp->ranks; i++)
        if (has_ended(tcp->peers[i].link.fd))
            rank_disconnected(tcp, greeting, i);
    return greeting->joined == tcp->ranks - 1;
}

static int greet(struct tcp *tcp, struct greeting *greeting, int64_t until)
{
    while (!is_complete(tcp, greeting)) {
        bool busy = greeting->count > 0 || greeting->paused;
        int64_t soon = slu_after(PAUSE_TIME);
        int error = look(tcp, greeting, slu_tcp_milliseconds(busy && soon < until ? soon : until));
        bool over = slu_now() >= until || tcp->interrupted > 0;

        if (error >= 0 && over)
            error = look_again(tcp, greeting);
        if (error >= 0)
            error = settle_held(tcp, greeting, until);
        if (error < 0)
            return error;
        if (tcp->interrupted > 0)
            return slu_tcp_fail_interrupted(tcp, false);
        if (over && !is_complete(tcp, greeting))
            return slu_tcp_fail_deadline(tcp, 0);
    }
    return 0;
}

int slu_tcp_greet_all(struct tcp *tcp, int64_t until)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = LISTENER};
    struct greeting *greeting;
    int error;

    /* A single rank needs nobody. */
    if (tcp->ranks == 1)
        return 0;
    greeting = calloc(1, sizeof *greeting);
    if (greeting == NULL)
        return slu_fail(ENOMEM, "no memory to let other ranks in");
    for (uint32_t i = 0; i < NEWCOMERS; i++)
        greeting->newcomers[i].fd = -1;
    error = slu_tcp_open_door(tcp);
    if (error == 0) {
        error = epoll_ctl(tcp->epoll, EPOLL_CTL_ADD, tcp->listener, &event) == 0
                    ? greet(tcp, greeting, until)
                    : slu_fail(errno, "epoll_ctl of a listening socket failed");
        slu_fd_close(tcp->listener);
        tcp->listener = -1;
    }
    for (uint32_t i = 0; i < NEWCOMERS; i++)
        if (greeting->newcomers[i].fd >= 0)
            drop(greeting, &greeting->newcomers[i]);
    free(greeting);
    return error;
}
