/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "connect/acceptor.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/log.h"

/* The most time for all that a connection sends before it is believed. */
#define TALK_TIME SLUICE_S(10)
#define KNOWN_TIME SLUICE_S(1)
/* Younger connections are not evicted by age, but at random. */
#define YOUNG_TIME SLUICE_MS(10)
/* Silent connections can have at least one in this many places. */
#define SILENT_SHARE 4
#define PAUSE_TIME SLUICE_MS(100)
/* The most connections accepted in one go, so that other work has its turn. */
#define ACCEPTS 64
/*
 * The most connections in a row that end before they are accepted; more than that is no accident.
 */
#define ENDED_MOST 1024
#define FEWEST_PLACES 4

/* Kinds of connections that have a place. */
enum kind { SILENT, SPOKE, KNOWN, KINDS };

static uint32_t count_places(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 4 >= SLU_PLACES)
        return SLU_PLACES;
    return limit.rlim_cur / 4 > FEWEST_PLACES ? (uint32_t)(limit.rlim_cur / 4) : FEWEST_PLACES;
}

void slu_acceptor_init(struct slu_acceptor *acceptor, int epoll, uint64_t tag)
{
    memset(acceptor, 0, sizeof *acceptor);
    acceptor->epoll = epoll;
    acceptor->tag = tag;
    acceptor->places = count_places();
    for (int i = 0; i < SLU_LISTENERS; i++)
        acceptor->listeners[i] = -1;
    for (uint32_t i = 0; i < SLU_PLACES; i++)
        acceptor->conns[i].talk.fd = -1;
}

static int watch(const struct slu_acceptor *acceptor, int what, int fd, uint32_t events,
                 uint32_t data)
{
    struct epoll_event event = {.events = events, .data.u64 = acceptor->tag + data};

    return epoll_ctl(acceptor->epoll, what, fd, &event) == 0 ? 0 : -errno;
}

static bool is_unix_socket(int fd)
{
    int family = AF_UNSPEC;
    socklen_t size = sizeof family;

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_UNIX;
}

int slu_acceptor_add(struct slu_acceptor *acceptor, int listener)
{
    for (uint32_t i = 0; i < SLU_LISTENERS; i++) {
        if (acceptor->listeners[i] >= 0)
            continue;
        acceptor->listeners[i] = listener;
        acceptor->is_unix[i] = is_unix_socket(listener);
        /*
         * Accepted sockets inherit it, so that an answer does not wait for an acknowledgement of
         * the one before.
         */
        if (!acceptor->is_unix[i])
            slu_stream_no_delay(listener);
        return watch(acceptor, EPOLL_CTL_ADD, listener, EPOLLIN, SLU_PLACES + i);
    }
    slu_fd_close(listener);
    return -ENOSPC;
}

/* close(2) alone does not remove it while a forked child has the descriptor, too. */
static void unwatch(const struct slu_acceptor *acceptor, int fd)
{
    epoll_ctl(acceptor->epoll, EPOLL_CTL_DEL, fd, NULL);
}

static void drop(struct slu_acceptor *acceptor, struct slu_pending_conn *conn)
{
    unwatch(acceptor, conn->talk.fd);
    slu_talk_close(&conn->talk);
    acceptor->count--;
}

void slu_acceptor_clear(struct slu_acceptor *acceptor)
{
    for (uint32_t i = 0; i < acceptor->places; i++)
        if (acceptor->conns[i].talk.fd >= 0)
            drop(acceptor, &acceptor->conns[i]);
}

void slu_acceptor_close(struct slu_acceptor *acceptor)
{
    slu_acceptor_clear(acceptor);
    for (int i = 0; i < SLU_LISTENERS; i++) {
        if (acceptor->listeners[i] >= 0)
            slu_fd_close(acceptor->listeners[i]);
        acceptor->listeners[i] = -1;
    }
}

static void watch_listeners(struct slu_acceptor *acceptor, bool paused)
{
    for (uint32_t i = 0; i < SLU_LISTENERS; i++)
        if (acceptor->listeners[i] >= 0)
            watch(acceptor, EPOLL_CTL_MOD, acceptor->listeners[i], paused ? 0 : EPOLLIN,
                  SLU_PLACES + i);
    acceptor->paused = paused;
    acceptor->pause_since = slu_now();
}

static enum kind kind_of(const struct slu_pending_conn *conn)
{
    return conn->known ? KNOWN : conn->spoke ? SPOKE : SILENT;
}

/*
 * Tells whether a new connection would get a place. Known ones are not evicted within KNOWN_TIME.
 */
static bool has_place(const struct slu_acceptor *acceptor, int64_t now)
{
    for (uint32_t i = 0; i < acceptor->places; i++) {
        const struct slu_pending_conn *conn = &acceptor->conns[i];

        if (conn->talk.fd < 0 || !conn->known || now - conn->since >= KNOWN_TIME)
            return true;
    }
    return false;
}

/*
 * Picks any connection of this kind, of which there must be one. Where all are young, picking at
 * random gives each a chance, however many come and however far away they are.
 */
static struct slu_pending_conn *draw(struct slu_acceptor *acceptor, enum kind kind)
{
    uint32_t at;

    acceptor->drawn = acceptor->drawn * 1103515245U + 12345U;
    at = acceptor->drawn >> 8;
    while (kind_of(&acceptor->conns[at % acceptor->places]) != kind)
        at++;
    return &acceptor->conns[at % acceptor->places];
}

/*
 * Finds a free place, or the connection to evict. Silent connections, and those that spoke, which
 * may replay a recorded hello, cannot take the places of all others. There must be a place: see
 * has_place().
 */
static struct slu_pending_conn *find_place(struct slu_acceptor *acceptor, bool speaks, int64_t now)
{
    struct slu_pending_conn *first[KINDS] = {NULL};
    uint32_t silent = 0, share = acceptor->places / SILENT_SHARE;
    enum kind kind = KNOWN;

    for (uint32_t i = 0; i < acceptor->places; i++) {
        struct slu_pending_conn *conn = &acceptor->conns[i];

        if (conn->talk.fd < 0)
            return conn;
        kind = kind_of(conn);
        if (first[kind] == NULL || conn->since < first[kind]->since)
            first[kind] = conn;
        silent += kind == SILENT;
    }
    if (silent > share || (silent == share && !speaks) || (silent > 0 && first[SPOKE] == NULL))
        kind = SILENT;
    else
        kind = first[SPOKE] != NULL ? SPOKE : KNOWN;
    return kind == KNOWN || now - first[kind]->since >= YOUNG_TIME ? first[kind]
                                                                   : draw(acceptor, kind);
}

/* Tells from the first bytes whether a connection can speak this protocol. */
static bool is_possible(const struct slu_acceptor *acceptor, struct slu_pending_conn *conn)
{
    const struct slu_talk *talk = &conn->talk;
    uint32_t count = talk->got < acceptor->magic_bytes ? talk->got : acceptor->magic_bytes;

    if (conn->begun)
        return true;
    if (memcmp(talk->bytes, acceptor->magic, count) != 0)
        return false;
    conn->begun = count == acceptor->magic_bytes;
    return true;
}

static void receive(struct slu_acceptor *acceptor, struct slu_pending_conn *conn)
{
    enum slu_talk_state state;

    while ((state = slu_talk_receive(&conn->talk)) == SLU_TALK_WHOLE) {
        enum slu_received received =
            is_possible(acceptor, conn) ? acceptor->receive(acceptor, conn) : SLU_RECEIVED_DROP;

        if (received == SLU_RECEIVED_TAKEN) {
            conn->talk.fd = -1;
            acceptor->count--;
            return;
        }
        if (received == SLU_RECEIVED_DROP)
            break;
    }
    if (state != SLU_TALK_MORE || !is_possible(acceptor, conn))
        drop(acceptor, conn);
}

/*
 * Takes the place of a connection. If this process was stopped, a known one may have sent its proof
 * in time, and take itself for connected: what it has sent is read first.
 */
static void evict(struct slu_acceptor *acceptor, struct slu_pending_conn *conn)
{
    if (conn->known)
        receive(acceptor, conn);
    if (conn->talk.fd >= 0)
        drop(acceptor, conn);
}

/*
 * If no descriptor is left, drops the oldest connection that has proven nothing, in favour of those
 * that wait to be accepted. Returns false if there is none.
 */
static bool make_room(struct slu_acceptor *acceptor, int64_t now)
{
    struct slu_pending_conn *first = NULL;

    for (uint32_t i = 0; i < acceptor->places; i++) {
        struct slu_pending_conn *conn = &acceptor->conns[i];

        if (conn->talk.fd >= 0 && !conn->known && now - conn->since >= YOUNG_TIME &&
            (first == NULL || conn->since < first->since))
            first = conn;
    }
    if (first != NULL)
        drop(acceptor, first);
    return first != NULL;
}

/*
 * Pauses for PAUSE_TIME, during which connections wait: none can be accepted now, but the kernel
 * would go on reporting them.
 */
static void pause_for(struct slu_acceptor *acceptor, int error)
{
    if (acceptor->starved == 0)
        slu_log(SLUICE_LOG_ERROR, "cannot let a peer in, trying again: %s", strerrordesc_np(error));
    acceptor->starved = error;
    acceptor->ended = 0;
    watch_listeners(acceptor, true);
}

/* Handles a failed accept. Returns true if another one may succeed at once. */
static bool goes_on(struct slu_acceptor *acceptor, int error, int64_t now)
{
    if (error == EAGAIN)
        return false;
    if (error == EINTR || (error == ECONNABORTED && ++acceptor->ended < ENDED_MOST))
        return true;
    if (slu_is_shortage(error) && make_room(acceptor, now))
        return true;
    pause_for(acceptor, error);
    return false;
}

/* Accepts a connection. Returns false if there are no more, or none can be accepted now. */
static bool accept_one(struct slu_acceptor *acceptor, uint32_t listener)
{
    int64_t now = slu_now();
    struct slu_pending_conn *conn;
    struct slu_talk talk;
    int fd;

    if (!has_place(acceptor, now)) {
        watch_listeners(acceptor, true);
        return false;
    }
    fd = slu_fd_accept(acceptor->listeners[listener], NULL, NULL);
    if (fd < 0)
        return goes_on(acceptor, errno, now);
    acceptor->starved = 0;
    acceptor->ended = 0;
    talk = (struct slu_talk){.fd = fd, .want = acceptor->hello};
    slu_talk_receive(&talk);
    conn = find_place(acceptor, talk.got > 0, now);
    if (conn->talk.fd >= 0)
        evict(acceptor, conn);
    conn->talk = talk;
    conn->since = now;
    conn->known = conn->begun = conn->spoke = conn->answered = false;
    conn->is_unix = acceptor->is_unix[listener];
    conn->stage = 0;
    acceptor->count++;
    if (watch(acceptor, EPOLL_CTL_ADD, fd, EPOLLIN, (uint32_t)(conn - acceptor->conns)) < 0)
        drop(acceptor, conn);
    else
        receive(acceptor, conn); /* the hello is often here already */
    return true;
}

void slu_acceptor_event(struct slu_acceptor *acceptor, uint32_t data)
{
    if (data >= SLU_PLACES) {
        uint32_t listener = data - SLU_PLACES;

        /* One guard for all of them. */
        slu_fd_guard();
        for (int i = 0; i < ACCEPTS && accept_one(acceptor, listener); i++)
            ;
        slu_fd_unguard();
    } else if (acceptor->conns[data].talk.fd >= 0) {
        receive(acceptor, &acceptor->conns[data]);
    }
}

bool slu_acceptor_is_busy(const struct slu_acceptor *acceptor)
{
    return acceptor->count > 0 || acceptor->paused;
}

bool slu_acceptor_tick(struct slu_acceptor *acceptor, int64_t now)
{
    for (uint32_t i = 0; i < acceptor->places && acceptor->count > 0; i++)
        if (acceptor->conns[i].talk.fd >= 0 && now - acceptor->conns[i].since >= TALK_TIME)
            evict(acceptor, &acceptor->conns[i]);
    if (acceptor->paused && now - acceptor->pause_since >= PAUSE_TIME)
        watch_listeners(acceptor, false);
    return slu_acceptor_is_busy(acceptor);
}
