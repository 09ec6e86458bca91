/* SPDX-License-Identifier: MIT */
/*
 * Events of an agent: its epoll set with the descriptors of all channels, due times, and threads
 * that sleep. One of the waiting threads sleeps on the set, without the lock. The others sleep on
 * a condition until it has made progress; when it leaves, another one takes over. Guarantee: no
 * thread sleeps past an event, because a thread that used a channel arms it again before it gives
 * up the lock while another one sleeps on the set.
 */
#include "config.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/descriptor.h"

/* How long a wait spins before it sleeps. */
#define SPIN_TIME SLUICE_US(20)
/* The first part of a spin keeps lock and processor: most answers come in that time. */
#define HOT_TIME SLUICE_US(2)
/* A yield longer than EMPTY_YIELD ran another thread; after LONG_TURN, that thread computes. */
#define EMPTY_YIELD SLUICE_US(2)
#define LONG_TURN SLUICE_MS(1)
/* If calls arm channels for the helper this often, it is woken once, so that it dozes instead. */
#define OFTEN SLUICE_US(100)
#define EVENTS 32
#define NANOSECONDS INT64_C(1000000000)

/* The data of an event: a peer's place and serial number, DATA_BIT included, or one of these. */
#define EVENT_WAKE UINT64_MAX
#define EVENT_LISTENER (UINT64_MAX - 1)
#define EVENT_SHARED (UINT64_MAX - 2)
#define EVENT_SHARED_DATA (UINT64_MAX - 3)
/* Set in the place: the event is of the data queue pair. */
#define DATA_BIT (UINT32_C(1) << 31)

void slu_agent_due(struct sluice_agent *agent, int64_t when)
{
    agent->next_due = slu_earlier(agent->next_due, when);
}

void slu_agent_unarm(struct sluice_agent_peer *peer)
{
    if (peer->shares)
        peer->agent->shared.control.armed = false;
    if (peer->is_unarmed || peer->state == SLU_AGENT_OVER)
        return;
    LIST_INSERT_HEAD(&peer->agent->unarmed, peer, unarmed);
    peer->is_unarmed = true;
}

void slu_agent_unarm_data(struct sluice_agent_peer *peer)
{
    peer->data.armed = peer->agent->shared.data.armed = false;
    slu_agent_unarm(peer);
}

void slu_agent_touch(struct sluice_agent_peer *peer)
{
    peer->needs_service = true;
    slu_agent_unarm(peer);
}

void slu_agent_notify(struct sluice_agent *agent)
{
    if (agent->followers > 0)
        pthread_cond_broadcast(&agent->changed);
}

void slu_agent_wake_sleeper(const struct sluice_agent *agent)
{
    const uint64_t one = 1;

    /* It fails only if the counter is full, and then the descriptor is readable already. */
    (void)!SLU_UNCANCELLED(write(agent->event, &one, sizeof one));
}

void slu_agent_wake_loop(const struct sluice_agent *agent)
{
    const uint64_t one = 1;

    if (agent->loop_event >= 0)
        (void)!SLU_UNCANCELLED(write(agent->loop_event, &one, sizeof one));
}

void slu_agent_notify_loop(struct sluice_agent *agent)
{
    if (SLU_LIKELY(!agent->watched || !agent->news || agent->loop_event < 0))
        return;
    agent->watched = false;
    slu_agent_wake_loop(agent);
}

static void note_event(struct sluice_agent *agent, uint64_t name)
{
    uint32_t place = (uint32_t)name & ~DATA_BIT;
    struct sluice_agent_peer *peer;

    if (name == EVENT_WAKE) {
        uint64_t count;

        (void)!SLU_UNCANCELLED(read(agent->event, &count, sizeof count));
        return;
    }
    if (name == EVENT_LISTENER) {
        agent->listener_ready = true;
        return;
    }
    if (name == EVENT_SHARED) {
        agent->shared.control.armed = false;
        return;
    }
    if (name == EVENT_SHARED_DATA) {
        agent->shared.data.armed = false;
        return;
    }
    peer = place < agent->place_count ? agent->places[place] : NULL;
    if (peer == NULL || peer->serial != (uint32_t)(name >> 32))
        return;
    if ((name & DATA_BIT) != 0)
        peer->data.armed = false;
    slu_agent_touch(peer);
}

void slu_agent_poll_set(struct sluice_agent *agent, int64_t until)
{
    struct epoll_event events[EVENTS];
    bool sleeps = until != 0;
    int count;

    if (sleeps) {
        agent->sleeps_until = until;
        agent->driven = true;
        pthread_mutex_unlock(&agent->lock);
    }
    count = SLU_UNCANCELLED(
        epoll_wait(agent->epoll, events, EVENTS, sleeps ? slu_milliseconds(until) : 0));
    if (sleeps) {
        pthread_mutex_lock(&agent->lock);
        agent->driven = false;
    }
    agent->looked = slu_now();
    for (int i = 0; i < count; i++)
        note_event(agent, events[i].data.u64);
    if (sleeps)
        slu_agent_notify(agent);
}

/* Returns 1 if the control queue pair needs service already. */
static int arm_control(const struct sluice_agent_peer *peer, int64_t *due)
{
    if (peer->shares)
        return peer->unserved || peer->failed < 0;
    return peer->failed < 0 ? 1 : sluice_channel_arm(peer->control, due);
}

/* Returns 1 if a channel of the peer has completions already. */
static int arm_peer(struct sluice_agent_peer *peer)
{
    int64_t control = SLUICE_FOREVER, data = SLUICE_FOREVER;
    int first = arm_control(peer, &control);
    bool uses_data = slu_agent_uses_data(peer);
    int second = 0;

    if (first == 0)
        slu_agent_watch_data(peer, uses_data);
    if (first == 0 && uses_data && !peer->data.shares && !peer->data.armed) {
        second = sluice_multichannel_arm(peer->data.wire, &data);
        peer->data.armed = second == 0;
    }
    if (first != 0 || second != 0)
        return 1;
    slu_agent_due(peer->agent, slu_after(slu_earlier(control, data)));
    LIST_REMOVE(peer, unarmed);
    peer->is_unarmed = false;
    return 0;
}

/* Arms queue pairs that share a completion queue. Returns 1 if it has to be polled. */
static int arm_shared(struct sluice_agent *agent, struct slu_agent_wire *shared)
{
    int64_t due = SLUICE_FOREVER;

    if (sluice_multichannel_arm(shared->wire, &due) != 0)
        return 1;
    slu_agent_due(agent, slu_after(due));
    shared->armed = true;
    return 0;
}

int slu_agent_arm_all(struct sluice_agent *agent, int64_t *due)
{
    struct slu_agent_shared *shared = &agent->shared;
    struct sluice_agent_peer *peer, *next;
    int busy = 0;

    if (shared->control.wire != NULL && !shared->control.armed)
        busy = arm_shared(agent, &shared->control);
    for (peer = LIST_FIRST(&agent->unarmed); peer != NULL; peer = next) {
        next = LIST_NEXT(peer, unarmed);
        busy |= arm_peer(peer);
    }
    if (shared->data_users > 0 && !shared->data.armed)
        busy |= arm_shared(agent, &shared->data);
    *due = agent->next_due;
    return busy;
}

void slu_agent_arm_for_sleeper(struct sluice_agent *agent)
{
    bool watched = agent->watched && agent->loop_event < 0;
    int64_t due;

    slu_agent_notify_loop(agent);
    slu_agent_unpark_helper(agent);
    if (!watched && agent->dialers == 0 && (!agent->driven || slu_agent_helper_polls(agent)))
        return;
    if (slu_agent_arm_all(agent, &due) != 0 || due < agent->sleeps_until)
        slu_agent_wake_sleeper(agent);
}

/* Sleeps on the condition until another thread has made progress, or until then. */
static void wait_for_change(struct sluice_agent *agent, int64_t until)
{
    struct timespec limit = {.tv_sec = until / NANOSECONDS, .tv_nsec = until % NANOSECONDS};

    agent->followers++;
    SLU_UNCANCELLED(pthread_cond_timedwait(&agent->changed, &agent->lock, &limit));
    agent->followers--;
}

void slu_agent_sleep(struct sluice_agent *agent, int64_t until)
{
    int64_t due;

    slu_agent_notify_loop(agent);
    if (slu_agent_arm_all(agent, &due) != 0)
        return;
    if (!agent->driven) {
        slu_agent_poll_set(agent, slu_earlier(until, due));
        return;
    }
    if (due < agent->sleeps_until)
        slu_agent_wake_sleeper(agent);
    wait_for_change(agent, slu_sleep_until(until));
}

/* Yields without the lock. Returns false if the yield was so long that a thread must compute. */
static bool yield_processor(struct sluice_agent *agent, int64_t *begun, int64_t now)
{
    int64_t took;

    pthread_mutex_unlock(&agent->lock);
    sched_yield();
    pthread_mutex_lock(&agent->lock);
    took = slu_now() - now;
    agent->crowded = took > EMPTY_YIELD;
    /* Time that other threads took does not count as spinning. */
    *begun += took > EMPTY_YIELD ? took : 0;
    return took <= LONG_TURN;
}

bool slu_agent_spin(struct sluice_agent *agent, int64_t *begun, int64_t now)
{
    int64_t spent = now - *begun;

    if (spent >= SPIN_TIME)
        return false;
    if (spent < HOT_TIME && !agent->crowded)
        return true;
    if (!yield_processor(agent, begun, now))
        *begun = 0;
    return true;
}

static bool works_on_data(const struct sluice_agent_peer *peer)
{
    return peer->data.transfers > 0 || peer->being_read > 0 ||
           peer->data.state != SLU_AGENT_DATA_READY;
}

bool slu_agent_uses_data(const struct sluice_agent_peer *peer)
{
    return peer->needs_service || works_on_data(peer) || peer->agent->attr.keepalive != 0;
}

bool slu_agent_must_poll_data(const struct sluice_agent_peer *peer)
{
    bool armed = peer->data.shares ? peer->agent->shared.data.armed : peer->data.armed;

    return peer->data.completed || (slu_agent_uses_data(peer) && (!armed || works_on_data(peer)));
}

void slu_agent_unpark_helper(struct sluice_agent *agent)
{
    if (!agent->helper.parked)
        return;
    agent->helper.parked = false;
    pthread_cond_signal(&agent->helper.turn);
}

bool slu_agent_helper_polls(struct sluice_agent *agent)
{
    struct slu_agent_helper *helper = &agent->helper;
    int64_t now, last = helper->armed;

    if (!helper->sleeps || helper->woken)
        return helper->sleeps;
    now = slu_now();
    helper->armed = now;
    if (now - last > OFTEN)
        return false;
    helper->woken = true;
    slu_agent_wake_sleeper(agent);
    return true;
}

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

static uint64_t data_name_of(const struct sluice_agent_peer *peer)
{
    return name_of(peer) | DATA_BIT;
}

static int watch_events(const struct sluice_agent *agent, int fd, uint64_t name, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u64 = name};

    if (epoll_ctl(agent->epoll, EPOLL_CTL_ADD, fd, &event) == 0)
        return 0;
    return slu_fail(ENOMEM, "the agent cannot watch a descriptor: %s", strerrordesc_np(errno));
}

static int watch(const struct sluice_agent *agent, int fd, uint64_t name)
{
    return watch_events(agent, fd, name, EPOLLIN);
}

/* Once only: while a thread accepts, the others would be woken again and again. */
int slu_agent_watch_listener(struct sluice_agent *agent)
{
    return watch_events(agent, sluice_listener_fd(agent->door.listener), EVENT_LISTENER,
                        EPOLLIN | EPOLLONESHOT);
}

void slu_agent_watch_listener_again(struct sluice_agent *agent)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = EVENT_LISTENER};

    (void)epoll_ctl(agent->epoll, EPOLL_CTL_MOD, sluice_listener_fd(agent->door.listener), &event);
}

int slu_agent_watch_peer(struct sluice_agent *agent, struct sluice_agent_peer *peer)
{
    int error = take_place(agent, peer);

    if (error == 0)
        error = peer->shares ? 0 : watch(agent, sluice_channel_fd(peer->control), name_of(peer));
    if (error == 0 && !peer->data.shares)
        error = watch(agent, sluice_multichannel_fd(peer->data.wire), data_name_of(peer));
    return error;
}

int slu_agent_watch_shared(const struct sluice_agent *agent)
{
    int error = watch(agent, sluice_multichannel_fd(agent->shared.control.wire), EVENT_SHARED);

    if (error == 0 && agent->shared.data.wire != NULL)
        error = watch_events(agent, sluice_multichannel_fd(agent->shared.data.wire),
                             EVENT_SHARED_DATA, 0);
    return error;
}

/* Watches the data queue pairs of all peers while any of them uses its own. */
static void watch_shared_data(struct sluice_agent_peer *peer, bool on)
{
    struct slu_agent_shared *shared = &peer->agent->shared;
    struct epoll_event event = {.data.u64 = EVENT_SHARED_DATA};

    if (peer->data.ignored != on)
        return;
    peer->data.ignored = !on;
    shared->data_users += on ? 1 : UINT32_MAX;
    on = shared->data_users > 0;
    event.events = on ? EPOLLIN : 0;
    if (shared->data_ignored == on &&
        epoll_ctl(peer->agent->epoll, EPOLL_CTL_MOD, sluice_multichannel_fd(shared->data.wire),
                  &event) == 0)
        shared->data_ignored = !on;
}

static void watch_own_data(struct sluice_agent_peer *peer, bool on)
{
    struct epoll_event event = {.events = on ? EPOLLIN : 0, .data.u64 = data_name_of(peer)};

    if (peer->data.ignored != on)
        return;
    if (epoll_ctl(peer->agent->epoll, EPOLL_CTL_MOD, sluice_multichannel_fd(peer->data.wire),
                  &event) == 0)
        peer->data.ignored = !on;
}

void slu_agent_watch_data(struct sluice_agent_peer *peer, bool on)
{
    if (peer->data.shares)
        watch_shared_data(peer, on);
    else
        watch_own_data(peer, on);
}

void slu_agent_unwatch_peer(struct sluice_agent_peer *peer)
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
    if (peer->data.shares)
        watch_shared_data(peer, false);
    else if (peer->data.wire != NULL)
        (void)epoll_ctl(agent->epoll, EPOLL_CTL_DEL, sluice_multichannel_fd(peer->data.wire), NULL);
}

int slu_agent_events_open(struct sluice_agent *agent)
{
    bool with_thread = (agent->attr.flags & SLUICE_AGENT_NO_THREAD) == 0;

    agent->epoll = slu_fd_epoll();
    agent->event = slu_fd_event();
    if (with_thread)
        agent->loop_event = slu_fd_event();
    if (agent->epoll < 0 || agent->event < 0 || (with_thread && agent->loop_event < 0))
        return slu_fail(EMFILE, "the descriptors of an agent cannot be made: %s",
                        strerrordesc_np(errno));
    return watch(agent, agent->event, EVENT_WAKE);
}

void slu_agent_notify_room(struct sluice_agent *agent)
{
    agent->news = true;
    slu_agent_notify(agent);
    if (agent->driven || agent->watched)
        slu_agent_wake_sleeper(agent);
}
