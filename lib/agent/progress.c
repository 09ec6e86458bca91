/* SPDX-License-Identifier: MIT */
/*
 * The progress loop of an agent. A peer is served if its channels are not armed, if the epoll set
 * reports it, or if its time has come. An idle peer costs nothing.
 */
#include "config.h"

#include <unistd.h>

#include "agent/agent.h"
#include "channel/channel.h"
#include "engine/engine.h"
#include "multichannel/multichannel.h"

/* How old the last poll of the set may be for threads that do not sleep. */
#define POLL_TIME SLUICE_MS(1)
/* A wait reads the clock once in this many rounds that brought nothing. */
#define CLOCK_ROUNDS 8

/*
 * Marks all peers to be served if the earliest due time has passed. now is the time of the last
 * tick.
 */
static void touch_due(struct sluice_agent *agent, int64_t now)
{
    struct sluice_agent_peer *peer;

    if (now < agent->next_due - SLU_LONGEST_TICK || slu_now() < agent->next_due)
        return;
    agent->next_due = SLUICE_FOREVER;
    agent->shared.data.armed = false;
    TAILQ_FOREACH(peer, &agent->peers, links)
    {
        peer->data.armed = false;
        slu_agent_touch(peer);
    }
}

/*
 * Returns whether the peers were not polled for so long that a call must serve all of them. The
 * time of the last tick is exact enough: it makes a call a few milliseconds late.
 */
static bool is_late(const struct sluice_agent *agent)
{
    int64_t now = slu_tick();

    return now - agent->looked > POLL_TIME || now >= agent->next_due;
}

bool slu_agent_is_in_batch(const struct sluice_agent *agent)
{
    return !TAILQ_EMPTY(&agent->readable) && !is_late(agent);
}

bool slu_agent_is_quiet(struct sluice_agent_peer *peer)
{
    if (is_late(peer->agent) || peer->state != SLU_AGENT_OPEN || peer->needs_service)
        return false;
    slu_agent_unarm(peer);
    return slu_poll_is_empty(peer->shares ? peer->agent->shared.control.wire->base.engine
                                          : peer->control->base.engine);
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
    int64_t now = slu_tick();

    if (now - agent->looked > POLL_TIME && !agent->driven)
        slu_agent_poll_set(agent, 0);
    touch_due(agent, now);
    if (agent->listener_ready)
        slu_agent_accept(agent);
    if (agent->shared.control.wire != NULL && !agent->shared.control.armed)
        changed = slu_agent_shared_poll(agent);
    agent->shared.control.polled = true;
    agent->shared.data.polled = agent->shared.data_users > 0 && !agent->shared.data.armed;
    if (agent->shared.data.polled)
        slu_agent_shared_data_poll(agent);
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
    agent->shared.control.polled = agent->shared.data.polled = false;
    if (changed)
        slu_agent_notify(agent);
    return changed;
}

int slu_agent_await(struct sluice_agent *agent, bool (*ready)(void *argument), void *argument,
                    int64_t until, bool wakes)
{
    uint32_t seen = agent->wakes_seen;
    int64_t begun = SLUICE_FOREVER; /* of the spin; not yet */
    uint32_t rounds = 0;
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
        /* To read the clock takes as long as to poll. */
        if (!some && !looked && !agent->crowded && ++rounds % CLOCK_ROUNDS != 1)
            continue;
        now = slu_now();
        late = slu_is_late_at(now, until);
        if (late && looked)
            return -ETIMEDOUT;
        if (late) {
            looked = true;
            if (!agent->driven)
                slu_agent_poll_set(agent, 0);
        } else {
            begun = some || begun == SLUICE_FOREVER ? now : begun;
            if (!slu_agent_spin(agent, &begun, now))
                slu_agent_sleep(agent, until);
        }
    }
}

/* Calls for an event loop of the program. */

int sluice_agent_fd(const struct sluice_agent *agent)
{
    if (!slu_is_agent(agent))
        return slu_not_an_agent(agent);
    return agent->loop_event >= 0 ? agent->loop_event : agent->epoll;
}

static bool take_news(struct sluice_agent *agent)
{
    bool news = agent->news || atomic_load(&agent->wakes) != agent->wakes_seen;

    agent->wakes_seen = atomic_load(&agent->wakes);
    agent->news = false;
    return news;
}

/* Arms the loop of an agent whose thread serves its peers, and keeps its times. */
static int arm_beside_thread(struct sluice_agent *agent)
{
    uint64_t count;
    int result;

    (void)!SLU_UNCANCELLED(read(agent->loop_event, &count, sizeof count));
    slu_agent_progress(agent);
    result = take_news(agent);
    agent->watched = result == 0;
    return result;
}

/* Arms the loop that serves the peers, and sets the time at which it has to do so again. */
static int arm_set(struct sluice_agent *agent, int64_t *when)
{
    int result;

    agent->watched = false;
    do {
        if (!agent->driven)
            slu_agent_poll_set(agent, 0);
        slu_agent_progress(agent);
        result = take_news(agent);
    } while (result == 0 && slu_agent_arm_all(agent, when) != 0);
    agent->watched = result == 0;
    agent->loop = pthread_self();
    agent->sleeps_until = agent->driven ? slu_earlier(agent->sleeps_until, *when) : *when;
    return result;
}

int sluice_agent_arm(struct sluice_agent *agent, int64_t *due)
{
    SLU_KEEP_ERRNO;
    int64_t when = SLUICE_FOREVER;
    int result;

    if (!slu_is_agent(agent))
        return slu_not_an_agent(agent);
    slu_agent_enter(agent);
    result = agent->loop_event >= 0 ? arm_beside_thread(agent) : arm_set(agent, &when);
    slu_agent_leave(agent);
    if (due != NULL)
        *due = result != 0              ? 0
               : when == SLUICE_FOREVER ? SLUICE_FOREVER
               : when > slu_now()       ? when - slu_now()
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
        slu_agent_poll_set(agent, 0);
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
    slu_agent_wake_loop(agent);
    return 0;
}
