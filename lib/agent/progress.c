/* SPDX-License-Identifier: MIT */
/*
 * The progress loop of an agent. Of the waiting threads, one sleeps on the epoll set with the
 * descriptors of all channels, without the lock. The others sleep on a condition until it has
 * made progress; when it leaves, another one takes over. Guarantee: no thread sleeps past an
 * event, because a thread that used a channel arms it again before it gives up the lock while
 * another one sleeps on the set.
 *
 * A peer is served if its channels are not armed, if the set reports it, or if its time has come.
 * An idle peer costs nothing.
 */
#include "config.h"

#include <sched.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "listener/listener.h"

/* How long a wait spins before it sleeps. */
#define SPIN_TIME SLUICE_US(20)
/* The first part of a spin keeps lock and processor: most answers come in that time. */
#define HOT_TIME SLUICE_US(2)
/* A yield longer than EMPTY_YIELD ran another thread; after LONG_TURN, that thread computes. */
#define EMPTY_YIELD SLUICE_US(2)
#define LONG_TURN SLUICE_MS(1)
/* How old the last poll of the set may be for threads that do not sleep. */
#define POLL_TIME SLUICE_MS(1)
#define EVENTS 32
#define NANOSECONDS INT64_C(1000000000)

/* The data of an event: a peer's place and serial number, or one of these. */
#define EVENT_WAKE UINT64_MAX
#define EVENT_LISTENER (UINT64_MAX - 1)

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void slu_agent_due(struct sluice_agent *agent, int64_t when)
{
    agent->next_due = earlier(agent->next_due, when);
}

void slu_agent_unarm(struct sluice_agent_peer *peer)
{
    if (peer->is_unarmed || peer->state == SLU_AGENT_OVER)
        return;
    LIST_INSERT_HEAD(&peer->agent->unarmed, peer, unarmed);
    peer->is_unarmed = true;
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

static void note_event(struct sluice_agent *agent, uint64_t name)
{
    uint32_t place = (uint32_t)name;
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
    peer = place < agent->place_count ? agent->places[place] : NULL;
    if (peer != NULL && peer->serial == (uint32_t)(name >> 32))
        slu_agent_touch(peer);
}

/* Polls the epoll set; unless until is 0, gives up the lock and sleeps there until then. */
static void poll_set(struct sluice_agent *agent, int64_t until)
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

/* Marks all peers to be served if the earliest due time has passed. */
static void touch_due(struct sluice_agent *agent, int64_t now)
{
    struct sluice_agent_peer *peer;

    if (now < agent->next_due)
        return;
    agent->next_due = SLUICE_FOREVER;
    TAILQ_FOREACH(peer, &agent->peers, links)
    slu_agent_touch(peer);
}

/* Returns whether the peers were not polled for so long that a call must serve all of them. */
static bool is_late(const struct sluice_agent *agent)
{
    int64_t now = slu_now();

    return now - agent->looked > POLL_TIME || now >= agent->next_due;
}

bool slu_agent_serve_one(struct sluice_agent_peer *peer)
{
    struct sluice_agent *agent = peer->agent;

    if (is_late(agent))
        return false;
    slu_agent_peer_hold(peer);
    if (slu_agent_peer_progress(peer))
        slu_agent_notify(agent);
    slu_agent_peer_drop(peer);
    return true;
}

bool slu_agent_progress(struct sluice_agent *agent)
{
    struct sluice_agent_peer *peer, *next;
    bool changed = false;
    int64_t now = slu_now();

    if (now - agent->looked > POLL_TIME && !agent->driven)
        poll_set(agent, 0);
    touch_due(agent, now);
    if (agent->listener_ready)
        slu_agent_accept(agent);
    for (peer = LIST_FIRST(&agent->unarmed); peer != NULL; peer = next) {
        /* Serving a peer may give up the lock, and the list may change meanwhile. */
        slu_agent_peer_hold(peer);
        changed |= slu_agent_peer_progress(peer);
        next = peer->is_unarmed ? LIST_NEXT(peer, unarmed) : NULL;
        /* The peer was armed or lost meanwhile: serve all again, as its successor is unknown. */
        if (!peer->is_unarmed)
            slu_agent_due(agent, now);
        slu_agent_peer_drop(peer);
    }
    if (changed)
        slu_agent_notify(agent);
    return changed;
}

/* Returns 1 if a channel of the peer has completions already. */
static int arm_peer(struct sluice_agent_peer *peer)
{
    int64_t control = SLUICE_FOREVER, data = SLUICE_FOREVER;
    int first = peer->failed < 0 ? 1 : sluice_channel_arm(peer->control, &control);
    bool uses_data = slu_agent_uses_data(peer);
    int second = 0;

    if (first == 0)
        slu_agent_watch_data(peer, uses_data);
    if (first == 0 && uses_data)
        second = sluice_multichannel_arm(peer->data.wire, &data);
    if (first != 0 || second != 0)
        return 1;
    slu_agent_due(peer->agent, slu_after(earlier(control, data)));
    LIST_REMOVE(peer, unarmed);
    peer->is_unarmed = false;
    return 0;
}

int slu_agent_arm_all(struct sluice_agent *agent, int64_t *due)
{
    struct sluice_agent_peer *peer, *next;
    int busy = 0;

    for (peer = LIST_FIRST(&agent->unarmed); peer != NULL; peer = next) {
        next = LIST_NEXT(peer, unarmed);
        busy |= arm_peer(peer);
    }
    *due = agent->next_due;
    return busy;
}

void slu_agent_arm_for_sleeper(struct sluice_agent *agent)
{
    int64_t due;

    slu_agent_unpark_helper(agent);
    if (!agent->watched && (!agent->driven || slu_agent_helper_polls(agent)))
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

    if (slu_agent_arm_all(agent, &due) != 0)
        return;
    if (!agent->driven) {
        poll_set(agent, earlier(until, due));
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

int slu_agent_await(struct sluice_agent *agent, bool (*ready)(void *argument), void *argument,
                    int64_t until, bool wakes)
{
    uint32_t seen = agent->wakes_seen;
    int64_t begun = slu_now();
    bool looked = false;

    for (;;) {
        int64_t now;
        bool late, some = slu_agent_progress(agent);

        agent->helper.calls++;
        if (ready(argument))
            return 0;
        if (agent->closed)
            return slu_fail(ECANCELED, "the agent was closed");
        if (wakes && atomic_load(&agent->wakes) != seen) {
            agent->wakes_seen = atomic_load(&agent->wakes);
            return slu_fail(EINTR, "the wait was ended by a wake; nothing was lost");
        }
        now = slu_now();
        late = slu_is_late_at(now, until);
        if (late && looked)
            return -ETIMEDOUT;
        if (late) {
            looked = true;
            if (!agent->driven)
                poll_set(agent, 0);
        } else {
            begun = some ? now : begun;
            if (!slu_agent_spin(agent, &begun, now))
                slu_agent_sleep(agent, until);
        }
    }
}

/* Calls for an event loop of the program. */

int sluice_agent_fd(const struct sluice_agent *agent)
{
    return slu_is_agent(agent) ? agent->epoll : slu_not_an_agent(agent);
}

static bool take_news(struct sluice_agent *agent)
{
    bool news = agent->news || atomic_load(&agent->wakes) != agent->wakes_seen;

    agent->wakes_seen = atomic_load(&agent->wakes);
    agent->news = false;
    return news;
}

int sluice_agent_arm(struct sluice_agent *agent, int64_t *due)
{
    SLU_KEEP_ERRNO;
    int64_t when = 0;
    int result;

    if (!slu_is_agent(agent))
        return slu_not_an_agent(agent);
    slu_agent_enter(agent);
    agent->watched = false;
    do {
        if (!agent->driven)
            poll_set(agent, 0);
        slu_agent_progress(agent);
        result = take_news(agent);
    } while (result == 0 && slu_agent_arm_all(agent, &when) != 0);
    agent->watched = result == 0;
    agent->sleeps_until = agent->driven ? earlier(agent->sleeps_until, when) : when;
    slu_agent_leave(agent);
    if (due != NULL)
        *due = result != 0 || when == SLUICE_FOREVER ? (result != 0 ? 0 : SLUICE_FOREVER)
               : when > slu_now()                    ? when - slu_now()
                                                     : 0;
    return result;
}

int sluice_agent_progress(struct sluice_agent *agent)
{
    SLU_KEEP_ERRNO;
    int result;

    if (!slu_is_agent(agent))
        return slu_not_an_agent(agent);
    slu_agent_enter(agent);
    if (!agent->driven)
        poll_set(agent, 0);
    slu_agent_progress(agent);
    result = agent->news;
    slu_agent_leave(agent);
    return result;
}

int sluice_agent_wake(struct sluice_agent *agent)
{
    SLU_KEEP_ERRNO;

    if (!slu_is_agent(agent))
        return slu_not_an_agent(agent);
    atomic_fetch_add(&agent->wakes, 1);
    slu_agent_wake_sleeper(agent);
    return 0;
}
