/* SPDX-License-Identifier: MIT */
/*
 * Accepting peers from the listener, and connecting to others. Guarantee: the lock is given up
 * while either takes long.
 */
#include "config.h"

#include "agent/agent.h"
#include "listener/listener.h"

/* Accepting. */

/* Returns why new peers are refused now; NULL: they are accepted. */
static const char *refusal_reason(const struct sluice_agent *agent)
{
    if (agent->connected >= agent->attr.max_peers)
        return "the agent has as many peers as it takes";
    if (slu_agent_left_is_full(agent))
        return "the agent has as many messages of peers that have left as it keeps";
    return NULL;
}

/* Accepts one connection, or refuses all with why. Called without the lock. */
static struct sluice_channel *let_in(struct sluice_agent *agent, const char *why, uint64_t *refused)
{
    struct sluice_incoming *incoming;

    if (why == NULL)
        return sluice_accept(agent->listener, agent->pd, &agent->control_attr, 0);
    while ((incoming = sluice_listener_next(agent->listener, 0)) != NULL) {
        sluice_incoming_refuse(incoming, why);
        (*refused)++;
    }
    /* Connections that the listener had begun to accept are refused as well. */
    *refused += slu_accept_end(agent->listener, why);
    return NULL;
}

void slu_agent_accept(struct sluice_agent *agent)
{
    struct sluice_channel *channel;
    struct slu_text text;

    if (agent->listener == NULL || agent->accepting)
        return;
    agent->accepting = true;
    slu_text_save(&text);
    do {
        const char *why = refusal_reason(agent);
        uint64_t refused = 0;

        agent->listener_ready = false;
        slu_agent_arm_for_sleeper(agent);
        pthread_mutex_unlock(&agent->lock);
        channel = let_in(agent, why, &refused);
        if (channel == NULL && errno != ETIMEDOUT && why == NULL)
            slu_log(SLUICE_LOG_WARN, "agent: a peer cannot be accepted: %s", sluice_last_error());
        pthread_mutex_lock(&agent->lock);
        agent->info.turned_away += refused;
        if (channel != NULL && agent->closed)
            sluice_channel_close(channel);
        else if (channel != NULL)
            (void)slu_agent_peer_make(agent, channel, true);
    } while (channel != NULL && !agent->closed);
    slu_text_restore(&text);
    agent->accepting = false;
}

struct meeting {
    struct sluice_agent *agent;
};

static bool has_fresh(void *argument)
{
    return !TAILQ_EMPTY(&((struct meeting *)argument)->agent->fresh);
}

struct sluice_agent_peer *sluice_agent_next_peer(struct sluice_agent *agent, int64_t timeout)
{
    SLU_UNCANCELLED_BLOCK;
    struct meeting meeting = {.agent = agent};
    struct sluice_agent_peer *peer = NULL;
    int error;

    if (!slu_is_agent(agent))
        return slu_none(slu_not_an_agent(agent));
    error = slu_agent_check_time(timeout, "timeout");
    if (error < 0)
        return slu_none(error);
    slu_agent_enter(agent);
    error = slu_agent_await(agent, has_fresh, &meeting, slu_after(timeout), true);
    if (error == 0) {
        peer = TAILQ_FIRST(&agent->fresh);
        TAILQ_REMOVE(&agent->fresh, peer, fresh);
        peer->is_fresh = false;
        peer->is_held = true;
        slu_agent_peer_hold(peer);
    } else if (error == -ETIMEDOUT) {
        error = slu_fail(ETIMEDOUT, "no peer has connected to the agent yet");
    }
    slu_agent_leave(agent);
    if (error < 0)
        return slu_none(error);
    slu_made();
    return peer;
}

/* Connecting. */

static bool has_greeted(void *argument)
{
    return ((const struct sluice_agent_peer *)argument)->state != SLU_AGENT_GREETING;
}

static int check_options(const struct sluice_connect_attr *given,
                         struct sluice_connect_attr *options)
{
    int error =
        slu_attr_copy(options, sizeof *options, sizeof *options, given, "sluice_connect_attr");

    if (error < 0)
        return error;
    options->size = sizeof *options;
    if (options->secret_file != NULL)
        return slu_misuse(EINVAL, "secret_file is the agent's: that of a connect must be NULL");
    if (options->own != NULL || options->peer != NULL)
        return slu_misuse(EINVAL, "agents have no private data: own and peer must be NULL");
    return 0;
}

/* Connects, without the lock, and waits for the greeting. */
static int dial(struct sluice_agent *agent, const char *address,
                const struct sluice_connect_attr *options, int64_t until,
                struct sluice_agent_peer **made)
{
    struct sluice_channel *channel;
    struct sluice_agent_peer *peer;
    int64_t left = until - slu_now();
    int error;

    if (agent->connected >= agent->attr.max_peers)
        return slu_fail(ENOBUFS, "the agent has as many peers as it takes: %u",
                        agent->attr.max_peers);
    slu_agent_arm_for_sleeper(agent);
    pthread_mutex_unlock(&agent->lock);
    channel = sluice_connect(address, agent->pd, &agent->control_attr, options,
                             until == SLUICE_FOREVER ? until
                             : left > 0              ? left
                                                     : 0);
    error = channel == NULL ? -errno : 0;
    pthread_mutex_lock(&agent->lock);
    if (error < 0)
        return error;
    peer = slu_agent_peer_make(agent, channel, false);
    if (peer == NULL)
        return -errno;
    peer->is_held = true;
    slu_agent_peer_hold(peer);
    error = slu_agent_await(agent, has_greeted, peer, until, true);
    if (error == -ETIMEDOUT)
        error = slu_fail(ETIMEDOUT, "%s sent no greeting before the deadline: is it an agent?",
                         peer->address);
    if (error == 0)
        error = slu_agent_peer_check(peer);
    if (error < 0) {
        struct slu_text text;

        slu_text_save(&text);
        slu_agent_lose(peer, error, "it did not greet");
        slu_agent_peer_drop(peer);
        slu_text_restore(&text);
        return error;
    }
    *made = peer;
    return 0;
}

struct sluice_agent_peer *sluice_agent_connect(struct sluice_agent *agent, const char *address,
                                               const struct sluice_connect_attr *options,
                                               int64_t deadline)
{
    SLU_UNCANCELLED_BLOCK;
    struct sluice_agent_peer *peer = NULL;
    struct sluice_connect_attr known;
    int error;

    if (!slu_is_agent(agent))
        return slu_none(slu_not_an_agent(agent));
    error = check_options(options, &known);
    if (error == 0)
        error = slu_agent_check_time(deadline, "deadline");
    if (error < 0)
        return slu_none(error);
    known.secret_file = agent->secret;
    slu_agent_enter(agent);
    error = dial(agent, address, &known, slu_after(deadline), &peer);
    slu_agent_leave(agent);
    if (error < 0)
        return slu_none(error);
    slu_made();
    return peer;
}
