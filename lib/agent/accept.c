/* SPDX-License-Identifier: MIT */
/* Accepting peers from the listener. Guarantee: the lock is given up while that takes long. */
#include "config.h"

#include "agent/agent.h"
#include "listener/listener.h"

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
