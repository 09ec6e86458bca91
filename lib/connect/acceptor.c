/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "connect/acceptor.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/log.h"

/* For all that is said before a connection is believed. */
#define TALK_TIME SLUICE_S(10)
#define KNOWN_TIME SLUICE_S(1)
/* Before it nobody makes room because of its age. */
#define YOUNG_TIME SLUICE_MS(10)
/* The silent ones have at least this part of the places, if they want it. */
#define SILENT_SHARE 4
#define PAUSE_TIME SLUICE_MS(100)
/* Connections taken in one go, so that others have their turn. */
#define ACCEPTS 64
/* Connections that ended before they were taken, one after the other; more are no accident. */
#define ENDED_MOST 1024
#define FEWEST_PLACES 4

/* Of those that have a place. */
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
        /* Who is accepted inherits it: an answer behind an answer waits for no acknowledgement. */
        if (!acceptor->is_unix[i])
            slu_stream_no_delay(listener);
        return watch(acceptor, EPOLL_CTL_ADD, listener, EPOLLIN, SLU_PLACES + i);
    }
    slu_fd_close(listener);
    return -ENOSPC;
}

/* close(2) alone does not do it while a forked child has the descriptor as well. */
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

/* Whether one that comes would have a place: known ones make none before their time. */
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
 * One of this kind, of which there is one, whichever it is: where all are young each has its
 * chance, however many come and however far away it is.
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
 * A free place, or who makes room: of the silent ones and of those that spoke, who may say
 * again what was recorded, neither can take the places of all others. There is one.
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

/* Whoever speaks another language is told from the first bytes. */
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

static void hear(struct slu_acceptor *acceptor, struct slu_pending_conn *conn)
{
    enum slu_talk_state state;

    while ((state = slu_talk_hear(&conn->talk)) == SLU_TALK_WHOLE) {
        enum slu_heard heard =
            is_possible(acceptor, conn) ? acceptor->hear(acceptor, conn) : SLU_HEARD_DROP;

        if (heard == SLU_HEARD_TAKEN) {
            conn->talk.fd = -1;
            acceptor->count--;
            return;
        }
        if (heard == SLU_HEARD_DROP)
            break;
    }
    if (state != SLU_TALK_MORE || !is_possible(acceptor, conn))
        drop(acceptor, conn);
}

/*
 * Nothing more can be opened: a stranger that says nothing makes room for whoever waits, who
 * may have something to say. False: there is none.
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

static bool lacks_resources(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

/*
 * None can be accepted now, and the kernel goes on saying that there are some: they wait for
 * PAUSE_TIME.
 */
static void pause_for(struct slu_acceptor *acceptor, int error)
{
    if (acceptor->starved == 0)
        slu_log(SLUICE_LOG_ERROR, "cannot let a peer in, trying again: %s", strerrordesc_np(error));
    acceptor->starved = error;
    acceptor->ended = 0;
    watch_listeners(acceptor, true);
}

/* No connection was accepted. True: there may be others at once. */
static bool goes_on(struct slu_acceptor *acceptor, int error, int64_t now)
{
    if (error == EAGAIN)
        return false;
    if (error == EINTR || (error == ECONNABORTED && ++acceptor->ended < ENDED_MOST))
        return true;
    if (lacks_resources(error) && make_room(acceptor, now))
        return true;
    pause_for(acceptor, error);
    return false;
}

/* Accepts one. False: there are no more, or no more now. */
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
    slu_talk_hear(&talk);
    conn = find_place(acceptor, talk.got > 0, now);
    if (conn->talk.fd >= 0)
        drop(acceptor, conn);
    conn->talk = talk;
    conn->since = now;
    conn->known = conn->begun = conn->spoke = false;
    conn->is_unix = acceptor->is_unix[listener];
    conn->stage = 0;
    acceptor->count++;
    if (watch(acceptor, EPOLL_CTL_ADD, fd, EPOLLIN, (uint32_t)(conn - acceptor->conns)) < 0)
        drop(acceptor, conn);
    else
        hear(acceptor, conn); /* the hello is often there already */
    return true;
}

void slu_acceptor_event(struct slu_acceptor *acceptor, uint32_t data)
{
    if (data >= SLU_PLACES) {
        uint32_t listener = data - SLU_PLACES;

        /* Once for all of them, and not for each. */
        slu_fd_guard();
        for (int i = 0; i < ACCEPTS && accept_one(acceptor, listener); i++)
            ;
        slu_fd_unguard();
    } else if (acceptor->conns[data].talk.fd >= 0) {
        hear(acceptor, &acceptor->conns[data]);
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
            drop(acceptor, &acceptor->conns[i]);
    if (acceptor->paused && now - acceptor->pause_since >= PAUSE_TIME)
        watch_listeners(acceptor, false);
    return slu_acceptor_is_busy(acceptor);
}
