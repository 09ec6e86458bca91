/* SPDX-License-Identifier: MIT */
/*
 * The thread of a lazy node, which connects ranks. A connection takes one TCP connection, to the
 * listener whose address and key the card of the other rank has:
 *
 *   The dialer proves that it knows the key, and sends the endpoint of a queue pair with its hello.
 *   The listener makes a queue pair, connects it, and answers with its endpoint.
 *   The dialer connects its own, and sends a byte.
 *   The listener begins to post, and answers with a byte. The dialer begins as well.
 *
 * So neither side posts before the other is connected, which on a device would cost a timeout. If
 * the TCP connection ends early, the dialer begins again with the same endpoint, and the listener
 * continues where it was. If
 * both dial at once, the lower rank leads: it tells the higher one to try again, and the higher one
 * gives up its own dial when the lower one knocks.
 *
 * Steps that need the completion queue are jobs, done by whichever thread has the queue: this one
 * while the program is elsewhere, and the program's during its calls. So a rank whose program
 * computes is reached all the same, and a call that waits loses nothing.
 */
#include "config.h"

#include "node/connector.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/descriptor.h"
#include "base/environment.h"
#include "base/thread.h"
#include "connect/identity.h"
#include "connect/stream.h"

#define EVENTS 16
#define EVENT_TAG (UINT64_C(1) << 32)
/* Interval at which connections without a proof are checked, and memory is asked for again. */
#define TICK_TIME SLUICE_MS(100)

static struct slu_connector *connector_of(struct slu_deferred_user *user)
{
    return slu_container_of(user, struct slu_connector, user);
}

static void signal_thread(const struct slu_connector *connector)
{
    uint64_t one = 1;

    (void)!SLU_UNCANCELLED(write(connector->event, &one, sizeof one));
}

/* A rank is in the ring once at a time, so that the ring has room. */
static void list_want(struct slu_connector *connector, uint32_t peer)
{
    pthread_mutex_lock(&connector->lock);
    if (!connector->listed[peer])
        connector->wants[(connector->want_first + connector->want_count++) % connector->ranks] =
            peer;
    connector->listed[peer] = true;
    pthread_mutex_unlock(&connector->lock);
}

static void want(struct slu_deferred_user *user, uint32_t peer)
{
    struct slu_connector *connector = connector_of(user);

    list_want(connector, peer);
    signal_thread(connector);
}

/*
 * Does all jobs. The thread of the connector does not touch a link before its job is done. The text
 * of the program's thread stays.
 */
static void work(struct slu_deferred_user *user)
{
    struct slu_connector *connector = connector_of(user);
    struct slu_link *link;
    struct slu_text text;

    slu_text_save(&text);
    while ((link = slu_links_take(connector, &connector->jobs)) != NULL) {
        slu_link_work(connector, link);
        slu_links_add(connector, &connector->finished, link);
        signal_thread(connector);
    }
    slu_text_restore(&text);
}

static uint32_t peer_of(struct slu_deferred_user *user, uint64_t id, bool *receives)
{
    (void)user;
    return slu_lazy_peer_of(id, receives);
}

static bool is_idle(struct slu_deferred_user *user, uint32_t peer)
{
    return slu_peer_rests(connector_of(user)->engine, peer);
}

static bool next_want(struct slu_connector *connector, uint32_t *rank)
{
    bool found;

    pthread_mutex_lock(&connector->lock);
    found = connector->want_count > 0;
    if (found) {
        *rank = connector->wants[connector->want_first];
        connector->listed[*rank] = false;
        connector->want_first = (connector->want_first + 1) % connector->ranks;
        connector->want_count--;
    }
    pthread_mutex_unlock(&connector->lock);
    return found;
}

/* Returns false if there is no memory for a link: the rank stays in the ring. */
static bool start_dials(struct slu_connector *connector)
{
    uint32_t rank;

    while (connector->dials < SLU_DIALS_MOST && next_want(connector, &rank)) {
        struct slu_link *link = slu_link_create(connector, rank, true, false);

        if (link == NULL) {
            list_want(connector, rank);
            return false;
        }
        slu_link_give(connector, link, SLU_JOB_MAKE);
    }
    return true;
}

static void finish_jobs(struct slu_connector *connector)
{
    struct slu_link *link;

    while ((link = slu_links_take(connector, &connector->finished)) != NULL)
        slu_link_done(connector, link);
}

static uint32_t watch_dial(const struct slu_target *target, struct pollfd *fds)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < target->dial.count; i++) {
        const struct slu_dial_attempt *attempt = &target->dial.attempts[i];

        if (attempt->state != SLU_DIAL_NONE)
            fds[count++] = (struct pollfd){
                .fd = attempt->fd, .events = attempt->state == SLU_DIAL_UP ? POLLIN : POLLOUT};
    }
    return count;
}

static void sleep_until(const struct slu_connector *connector, int64_t until)
{
    struct pollfd fds[1 + 2 * SLU_DIALS_MOST * SLU_CARD_ADDRESSES + SLU_KNOCKS_MOST];
    const struct slu_link *link;
    uint32_t count = 1;

    fds[0] = (struct pollfd){.fd = connector->epoll, .events = POLLIN};
    TAILQ_FOREACH(link, &connector->links, next)
    {
        if (link->target != NULL)
            count += watch_dial(link->target, &fds[count]);
        else if (link->job == SLU_JOB_NONE && link->fd >= 0)
            fds[count++] = (struct pollfd){.fd = link->fd, .events = POLLIN};
    }
    poll(fds, count, slu_milliseconds(until));
}

static void handle_events(struct slu_connector *connector)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(connector->epoll, events, EVENTS, 0);
    uint64_t value;

    for (int i = 0; i < count; i++)
        if (events[i].data.u64 == EVENT_TAG)
            (void)!read(connector->event, &value, sizeof value);
        else
            slu_acceptor_event(&connector->negotiations.acceptor, (uint32_t)events[i].data.u64);
}

/* Goes on with all links that no job holds. Returns when something is due without an event. */
static int64_t handle_links(struct slu_connector *connector)
{
    struct slu_link *link, *after;
    int64_t now = slu_now(), next = SLUICE_FOREVER;

    if (slu_acceptor_tick(&connector->negotiations.acceptor, now))
        next = now + TICK_TIME;
    for (link = TAILQ_FIRST(&connector->links); link != NULL; link = after) {
        after = TAILQ_NEXT(link, next);
        if (link->job != SLU_JOB_NONE)
            continue;
        if (link->waits)
            slu_room_tick(connector, link, now, &next);
        else if (link->target != NULL)
            slu_link_dial(connector, link, now, &next);
        else
            slu_link_hear(connector, link, now, &next);
    }
    return next;
}

static bool is_stopping(struct slu_connector *connector)
{
    bool stopping;

    pthread_mutex_lock(&connector->lock);
    stopping = connector->stopping;
    pthread_mutex_unlock(&connector->lock);
    return stopping;
}

static void *run(void *argument)
{
    struct slu_connector *connector = argument;

    for (;;) {
        int64_t next;
        bool started;

        /* The event is cleared first, so that no reason for it is missed. */
        handle_events(connector);
        if (is_stopping(connector))
            break;
        finish_jobs(connector);
        started = start_dials(connector);
        next = handle_links(connector);
        if (!started)
            next = slu_earlier(next, slu_now() + TICK_TIME);
        sleep_until(connector, next);
    }
    return NULL;
}

static void let_in(struct slu_negotiations *negotiations, const struct slu_negotiation *negotiation,
                   const struct slu_session *session, int fd)
{
    slu_link_knock(slu_container_of(negotiations, struct slu_connector, negotiations), negotiation,
                   session, fd);
}

/* Listens at the address of the environment, if it has one, else at all. */
static int listen_anywhere(struct slu_connector *connector)
{
    const char *ip = slu_env_value(SLU_ENV_TCP_ADDRESS);
    struct slu_address *own = connector->addresses;
    bool ipv6 = true;
    int error = 0, fd;

    if (ip != NULL)
        error = slu_address_parse(ip, slu_env_name(SLU_ENV_TCP_ADDRESS), own);
    if (error < 0)
        return error;
    fd = slu_stream_listen(own, ipv6);
    if (fd < 0 && ip == NULL) {
        ipv6 = false;
        fd = slu_stream_listen(own, ipv6);
    }
    if (fd < 0)
        return slu_listed(slu_fail(-fd, "cannot listen for other ranks at %s: %s",
                                   ip != NULL ? ip : "any address", strerrordesc_np(-fd)));
    connector->address_count = 1;
    own->port = slu_stream_port(fd);
    if (ip == NULL)
        connector->address_count = slu_stream_addresses(own, SLU_CARD_ADDRESSES, ipv6, own->port);
    error = slu_acceptor_add(&connector->negotiations.acceptor, fd);
    return error == 0 ? 0
                      : slu_listed(slu_fail(-error, "cannot watch a listener: %s",
                                            strerrordesc_np(-error)));
}

static int open_descriptors(struct slu_connector *connector)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = EVENT_TAG};

    connector->epoll = slu_fd_epoll();
    connector->event = slu_fd_event();
    if (connector->epoll < 0 || connector->event < 0 ||
        epoll_ctl(connector->epoll, EPOLL_CTL_ADD, connector->event, &event) != 0)
        return slu_listed(
            slu_fail(errno, "no descriptors to connect ranks: %s", strerrordesc_np(errno)));
    return 0;
}

static int prepare(struct slu_connector *connector)
{
    struct slu_negotiations *negotiations = &connector->negotiations;
    int error = open_descriptors(connector);
    struct slu_identity identity;

    slu_identity_of_self(&identity);
    connector->host = slu_checksum(identity.host, sizeof identity.host);
    if (error == 0)
        error = slu_proof_init();
    if (error == 0)
        error = slu_random(connector->key, sizeof connector->key);
    if (error < 0)
        return slu_listed(error);
    slu_negotiations_init(negotiations, connector->epoll, 0);
    negotiations->purpose = SLU_PURPOSE_NODE;
    negotiations->means = SLU_MEANS_SECRET;
    negotiations->secret = connector->key;
    negotiations->secret_bytes = sizeof connector->key;
    negotiations->proven = let_in;
    connector->wants = calloc(connector->ranks, sizeof *connector->wants);
    connector->listed = calloc(connector->ranks, sizeof *connector->listed);
    if (connector->wants == NULL || connector->listed == NULL)
        return slu_fail(ENOMEM, "no memory to connect %u ranks", connector->ranks);
    return listen_anywhere(connector);
}

struct slu_connector *slu_connector_create(uint32_t rank, uint32_t ranks, const uint8_t *cards)
{
    struct slu_connector *connector = calloc(1, sizeof *connector);
    int error;

    if (connector == NULL)
        return slu_fail_null(ENOMEM, "no memory to connect ranks");
    connector->user = (struct slu_deferred_user){
        .wanted = want, .work = work, .peer_of = peer_of, .idle = is_idle};
    connector->lazy.user = &connector->user;
    connector->rank = rank;
    connector->ranks = ranks;
    connector->cards = cards;
    connector->epoll = connector->event = -1;
    for (int i = 0; i < SLU_LISTENERS; i++)
        connector->negotiations.acceptor.listeners[i] = -1;
    TAILQ_INIT(&connector->jobs);
    TAILQ_INIT(&connector->finished);
    TAILQ_INIT(&connector->links);
    TAILQ_INIT(&connector->line);
    pthread_mutex_init(&connector->lock, NULL);
    error = prepare(connector);
    if (error == 0)
        return connector;
    slu_connector_free(connector);
    return slu_none(error);
}

int slu_connector_start(struct slu_connector *connector, struct slu_engine *engine)
{
    int error;

    connector->deferred = engine->cq->deferred;
    connector->engine = engine;
    error = slu_thread_start(&connector->thread, "sluice-ranks", run, connector);
    connector->started = error == 0;
    return error == 0 ? 0 : slu_fail(EAGAIN, "cannot start a thread to connect ranks");
}

void slu_connector_describe(const struct slu_connector *connector, struct slu_card *card)
{
    memcpy(card->key, connector->key, sizeof card->key);
    memcpy(card->addresses, connector->addresses, sizeof card->addresses);
    card->address_count = connector->address_count;
}

void slu_connector_stop(struct slu_connector *connector)
{
    if (!connector->started)
        return;
    pthread_mutex_lock(&connector->lock);
    connector->stopping = true;
    pthread_mutex_unlock(&connector->lock);
    signal_thread(connector);
    pthread_join(connector->thread, NULL);
    connector->started = false;
}

void slu_connector_free(struct slu_connector *connector)
{
    struct slu_link *link;
    struct slu_text text;

    if (connector == NULL)
        return;
    slu_text_save(&text);
    while ((link = TAILQ_FIRST(&connector->links)) != NULL) {
        link->victim.there = false;
        slu_link_free(connector, link);
    }
    slu_acceptor_close(&connector->negotiations.acceptor);
    if (connector->epoll >= 0)
        slu_fd_close(connector->epoll);
    if (connector->event >= 0)
        slu_fd_close(connector->event);
    explicit_bzero(connector->key, sizeof connector->key);
    pthread_mutex_destroy(&connector->lock);
    free(connector->gone);
    free(connector->wants);
    free(connector->listed);
    free(connector);
    slu_text_restore(&text);
}
