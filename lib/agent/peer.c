/* SPDX-License-Identifier: MIT */
/*
 * Peers: setup, progress and loss. Guarantee: all that a peer had, and all that waits for it, ends
 * with its control queue pair. The object stays while the program holds the peer, or a message or
 * region of it.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <sluice/device.h>

#include "agent/agent.h"
#include "agent/staging.h"

#define FIRST_SIZE 400
/* A connected peer has this long to send its greeting. */
#define GREETING_TIME SLUICE_S(10)
#define FAREWELL_TIME SLUICE_S(1)

_Static_assert(sizeof(struct sluice_agent_peer_info) == FIRST_SIZE, "as in the first release");

bool slu_is_agent_peer(const struct sluice_agent_peer *peer)
{
    return peer != NULL && peer->magic == SLU_MAGIC_AGENT_PEER;
}

int slu_not_an_agent_peer(const struct sluice_agent_peer *peer)
{
    return slu_misuse(EINVAL, "not a peer of an agent, or one that was closed%s",
                      slu_none_hint(peer));
}

void slu_agent_peer_hold(struct sluice_agent_peer *peer)
{
    peer->references++;
}

/* The caller has a reference to the agent, so the agent is not freed here. */
void slu_agent_peer_drop(struct sluice_agent_peer *peer)
{
    struct slu_agent_returned *returned;

    if (--peer->references > 0)
        return;
    while ((returned = STAILQ_FIRST(&peer->returned)) != NULL) {
        if (returned->local.mr != NULL)
            (void)sluice_mr_release(returned->local.mr, NULL, NULL);
        slu_agent_end_returned(peer, returned);
    }
    peer->magic = SLU_MAGIC_DEAD;
    peer->agent->references--;
    free(peer);
}

int slu_agent_peer_check(const struct sluice_agent_peer *peer)
{
    if (peer->state != SLU_AGENT_OVER)
        return 0;
    if (peer->agent->ending)
        return slu_fail(ECANCELED, "peer %s: the agent was closed", peer->address);
    return slu_fail(ENOTCONN, "peer %s is lost: %s", peer->address, peer->why);
}

void slu_agent_peer_set_readable(struct sluice_agent_peer *peer)
{
    peer->agent->news = true;
    if (peer->is_readable)
        return;
    peer->is_readable = true;
    TAILQ_INSERT_TAIL(&peer->agent->readable, peer, readable);
}

bool slu_agent_left_is_full(const struct sluice_agent *agent)
{
    return agent->info.left_bytes >= agent->attr.max_left_bytes;
}

static void stop_keeping(struct sluice_agent_peer *peer)
{
    TAILQ_REMOVE(&peer->agent->kept, peer, links);
    peer->agent->info.left_bytes -= peer->kept_bytes;
    peer->is_kept = false;
    slu_agent_peer_drop(peer);
}

void slu_agent_peer_clear_readable(struct sluice_agent_peer *peer)
{
    if (!peer->is_readable)
        return;
    peer->is_readable = false;
    TAILQ_REMOVE(&peer->agent->readable, peer, readable);
    if (peer->is_kept)
        stop_keeping(peer);
}

void slu_agent_refuse(struct sluice_agent_peer *peer, uint64_t *counter, const char *what)
{
    (*counter)++;
    slu_log(peer->refused == 0 ? SLUICE_LOG_WARN : SLUICE_LOG_DEBUG, "agent: %s sent %s: refused",
            peer->address, what);
    if (++peer->refused >= SLU_AGENT_PATIENCE)
        slu_agent_lose(peer, -EPROTO, "%d of its messages were wrong", SLU_AGENT_PATIENCE);
}

/* Setup. */

static int take_place(struct sluice_agent *agent, struct sluice_agent_peer *peer)
{
    uint32_t place = 0;

    while (place < agent->place_count && agent->places[place] != NULL)
        place++;
    if (place == agent->place_count) {
        uint32_t count = agent->place_count == 0 ? 8 : agent->place_count * 2;
        struct sluice_agent_peer **places = realloc(agent->places, count * sizeof *places);

        if (places == NULL)
            return slu_fail(ENOMEM, "no memory for a peer of the agent");
        memset(places + agent->place_count, 0, (count - agent->place_count) * sizeof *places);
        agent->places = places;
        agent->place_count = count;
    }
    peer->place = place;
    /* The mask keeps event names apart from EVENT_WAKE and EVENT_LISTENER. */
    peer->serial = ++agent->last_serial & INT32_MAX;
    agent->places[place] = peer;
    return 0;
}

static uint64_t name_of(const struct sluice_agent_peer *peer)
{
    return (uint64_t)peer->serial << 32 | peer->place;
}

static int watch(struct sluice_agent *agent, const struct sluice_agent_peer *peer, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = name_of(peer)};

    if (epoll_ctl(agent->epoll, EPOLL_CTL_ADD, fd, &event) == 0)
        return 0;
    return slu_fail(ENOMEM, "the agent cannot watch the descriptors of a peer: %s",
                    strerrordesc_np(errno));
}

void slu_agent_watch_data(struct sluice_agent_peer *peer, bool on)
{
    struct epoll_event event = {.events = on ? EPOLLIN : 0, .data.u64 = name_of(peer)};

    if (peer->data.ignored != on)
        return;
    if (epoll_ctl(peer->agent->epoll, EPOLL_CTL_MOD, sluice_multichannel_fd(peer->data.wire),
                  &event) == 0)
        peer->data.ignored = !on;
}

static void init_lists(struct sluice_agent_peer *peer)
{
    LIST_INIT(&peer->regions);
    LIST_INIT(&peer->revoked);
    TAILQ_INIT(&peer->jobs);
    STAILQ_INIT(&peer->returned);
    TAILQ_INIT(&peer->held);
    TAILQ_INIT(&peer->offered);
    TAILQ_INIT(&peer->unwanted);
    TAILQ_INIT(&peer->messages);
    TAILQ_INIT(&peer->dropped);
}

static int open_peer(struct sluice_agent_peer *peer)
{
    struct sluice_agent *agent = peer->agent;
    int error = slu_agent_data_open(peer);

    if (error == 0)
        error = slu_agent_control_open(peer);
    if (error == 0)
        error = take_place(agent, peer);
    slu_agent_peer_locate(peer);
    if (error == 0)
        error = watch(agent, peer, sluice_channel_fd(peer->control));
    if (error == 0)
        error = watch(agent, peer, sluice_multichannel_fd(peer->data.wire));
    return error;
}

void slu_agent_peer_locate(struct sluice_agent_peer *peer)
{
    struct sluice_channel_info info = {.size = sizeof info};
    bool here;

    if (sluice_channel_query(peer->control, &info) < 0)
        return;
    peer->level = info.level;
    here = strcmp(info.remote_address, "this context") == 0;
    peer->is_near = !here && info.level == SLUICE_LEVEL_MEMORY;
    peer->staged = peer->is_near ? SLU_AGENT_STAGED_NEAR_BYTES : SLU_AGENT_STAGED_BYTES;
    if (here)
        snprintf(peer->address, sizeof peer->address, "number %u, of this context", peer->serial);
    else if (info.remote_address[0] != 0)
        snprintf(peer->address, sizeof peer->address, "%s", info.remote_address);
    else
        snprintf(peer->address, sizeof peer->address, "number %u, of this host", peer->serial);
}

struct sluice_agent_peer *slu_agent_peer_make(struct sluice_agent *agent,
                                              struct sluice_channel *control, bool came)
{
    struct sluice_agent_peer *peer = calloc(1, sizeof *peer);
    int error;

    if (peer == NULL) {
        sluice_channel_close(control);
        return slu_fail_null(ENOMEM, "no memory for a peer of the agent");
    }
    peer->magic = SLU_MAGIC_AGENT_PEER;
    peer->references = 1;
    peer->agent = agent;
    agent->references++;
    peer->control = control;
    peer->came = came;
    peer->state = SLU_AGENT_GREETING;
    peer->since = peer->last_sent = slu_now();
    init_lists(peer);
    TAILQ_INSERT_TAIL(&agent->peers, peer, links);
    agent->connected++;
    error = open_peer(peer);
    if (error < 0) {
        slu_agent_lose(peer, error, "its setup failed: %.200s", sluice_last_error());
        return slu_none(error);
    }
    slu_agent_touch(peer);
    slu_agent_due(agent, peer->since + GREETING_TIME);
    /* The peer may have left already; it is then lost by this send. */
    slu_agent_peer_hold(peer);
    slu_agent_control_flush(peer);
    error = slu_agent_peer_check(peer);
    slu_agent_peer_drop(peer);
    return error == 0 ? peer : slu_none(error);
}

/* Loss. */

static void unwatch(struct sluice_agent_peer *peer)
{
    struct sluice_agent *agent = peer->agent;

    if (peer->is_unarmed)
        LIST_REMOVE(peer, unarmed);
    peer->is_unarmed = false;
    if (peer->place >= agent->place_count || agent->places[peer->place] != peer)
        return;
    agent->places[peer->place] = NULL;
    if (peer->control != NULL)
        (void)epoll_ctl(agent->epoll, EPOLL_CTL_DEL, sluice_channel_fd(peer->control), NULL);
    if (peer->data.wire != NULL)
        (void)epoll_ctl(agent->epoll, EPOLL_CTL_DEL, sluice_multichannel_fd(peer->data.wire), NULL);
}

/*
 * Keeps a lost peer until its messages are received. None is dropped, because their sender was
 * told that they have arrived. While max_left_bytes is reached no peers are accepted, as these
 * could leave more.
 */
static void keep(struct sluice_agent_peer *peer)
{
    struct sluice_agent *agent = peer->agent;
    bool full = slu_agent_left_is_full(agent);

    TAILQ_INSERT_TAIL(&agent->kept, peer, links);
    peer->is_kept = true;
    peer->kept_bytes = sizeof *peer + slu_agent_count_messages(peer);
    agent->info.left_bytes += peer->kept_bytes;
    if (!full && slu_agent_left_is_full(agent))
        slu_log(SLUICE_LOG_WARN,
                "agent: no more peers are accepted: unreceived messages of peers that have left, "
                "and these peers, take %llu bytes: max_left_bytes is %llu",
                (unsigned long long)agent->info.left_bytes,
                (unsigned long long)agent->attr.max_left_bytes);
}

/* Drops the agent's reference; or keeps the peer if only the agent can reach its messages. */
static void detach(struct sluice_agent_peer *peer)
{
    struct sluice_agent *agent = peer->agent;

    TAILQ_REMOVE(&agent->peers, peer, links);
    agent->connected--;
    if (peer->is_fresh)
        TAILQ_REMOVE(&agent->fresh, peer, fresh);
    peer->is_fresh = false;
    if (!peer->is_readable || peer->is_held) {
        slu_agent_peer_drop(peer);
        return;
    }
    keep(peer);
}

void slu_agent_lose(struct sluice_agent_peer *peer, int error, const char *format, ...)
{
    struct sluice_agent *agent = peer->agent;
    va_list arguments;

    if (peer->state == SLU_AGENT_OVER)
        return;
    va_start(arguments, format);
    vsnprintf(peer->why, sizeof peer->why, format, arguments);
    va_end(arguments);
    peer->state = SLU_AGENT_OVER;
    peer->error = error;
    agent->info.lost++;
    agent->news = true;
    slu_log(SLUICE_LOG_INFO, "agent: peer %s is lost: %s", peer->address, peer->why);
    unwatch(peer);
    slu_agent_data_close(peer);
    slu_agent_control_close(peer);
    slu_agent_fail_waits(peer);
    slu_agent_end_regions(peer);
    slu_agent_end_held(peer);
    slu_agent_end_messages(peer, false);
    slu_agent_end_dropped(peer);
    slu_agent_notify(agent);
    /* This may drop the last reference, unless the caller has one. */
    detach(peer);
}

bool slu_agent_peer_progress(struct sluice_agent_peer *peer)
{
    bool changed;

    if (peer->state == SLU_AGENT_OVER)
        return false;
    changed = slu_agent_control_poll(peer);
    if (peer->state != SLU_AGENT_OVER && slu_agent_uses_data(peer))
        changed |= slu_agent_data_poll(peer);
    if (!changed && !peer->needs_service && !slu_agent_data_failed(peer))
        return false;
    peer->needs_service = false;
    if (peer->state != SLU_AGENT_OVER)
        changed |= slu_agent_data_progress(peer);
    if (peer->state == SLU_AGENT_OPEN) {
        slu_agent_expire(peer);
        changed |= slu_agent_run_jobs(peer);
    }
    if (peer->state == SLU_AGENT_OPEN)
        changed |= slu_agent_continue_reads(peer);
    if (peer->state == SLU_AGENT_OPEN) {
        slu_agent_notify_revoked(peer);
        slu_agent_clean_waits(peer);
        slu_agent_clean_held(peer);
    }
    if (peer->state != SLU_AGENT_OVER)
        slu_agent_control_flush(peer);
    if (peer->state == SLU_AGENT_GREETING) {
        if (slu_now() - peer->since >= GREETING_TIME)
            slu_agent_lose(peer, -ETIMEDOUT, "it sent no greeting: is it an agent?");
        else
            slu_agent_due(peer->agent, peer->since + GREETING_TIME);
    }
    return changed || peer->state == SLU_AGENT_OVER;
}

bool slu_agent_is_flushed(void *argument)
{
    const struct sluice_agent_peer *peer = argument;

    return peer->state == SLU_AGENT_OVER ||
           (peer->free_count == peer->sends && peer->sent_bye == peer->must_send_bye &&
            peer->answer_count == 0);
}

void sluice_agent_peer_close(struct sluice_agent_peer *peer)
{
    SLU_KEEP_ERRNO;
    struct sluice_agent *agent;

    if (!slu_may_end(peer, SLU_MAGIC_AGENT_PEER, "peer of an agent"))
        return;
    agent = peer->agent;
    slu_agent_enter(agent);
    if (!peer->is_held) {
        slu_misuse(EINVAL, "peer %s cannot be closed: it was never taken by the program",
                   peer->address);
        slu_agent_leave(agent);
        return;
    }
    peer->is_held = false;
    peer->must_send_bye = true;
    slu_agent_touch(peer);
    (void)slu_agent_await(agent, slu_agent_is_flushed, peer, slu_after(FAREWELL_TIME), false);
    slu_agent_end_messages(peer, true);
    slu_agent_lose(peer, 0, "we have left it");
    slu_agent_peer_drop(peer);
    slu_agent_leave(agent);
}

int sluice_agent_peer_query(struct sluice_agent_peer *peer, struct sluice_agent_peer_info *info)
{
    SLU_KEEP_ERRNO;
    struct sluice_agent_peer_info known = {.size = sizeof known};
    int error;

    if (!slu_is_agent_peer(peer))
        return slu_not_an_agent_peer(peer);
    error = slu_info_check(info, sizeof known, FIRST_SIZE, "sluice_agent_peer_info");
    if (error < 0)
        return error;
    slu_agent_enter(peer->agent);
    known.state = peer->state == SLU_AGENT_OVER ? SLUICE_AGENT_LOST : SLUICE_AGENT_CONNECTED;
    known.error = peer->error;
    known.level = peer->level;
    known.access = peer->hello.access;
    known.eager = peer->eager;
    known.regions = peer->region_count;
    known.held = peer->held_count;
    known.bytes = peer->region_bytes;
    known.quota = peer->hello.quota;
    known.max_message = peer->hello.max_message;
    known.max_lease = peer->hello.max_lease;
    known.refused = peer->refused;
    known.reconnects = peer->reconnects;
    snprintf(known.address, sizeof known.address, "%s", peer->address);
    snprintf(known.text, sizeof known.text, "%s", peer->why);
    slu_agent_leave(peer->agent);
    slu_info_copy(info, &known, sizeof known);
    return 0;
}
