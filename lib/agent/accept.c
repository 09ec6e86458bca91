/* SPDX-License-Identifier: MIT */
/*
 * Accepting peers from the listener. Guarantee: the lock is given up while that takes long, and no
 * peer is told that it is let in while there is no place for it.
 */
#include "config.h"

#include "agent/agent.h"

/* Returns 0 if there is a place for one more peer. Called with the lock. */
static int check_room(struct sluice_agent *agent)
{
    int error = 0;

    if (slu_agent_is_full(agent))
        error = slu_fail(EBUSY, "the agent has as many peers as it takes");
    else if (slu_agent_left_is_full(agent))
        error = slu_fail(EBUSY, "the agent has as many messages of peers that have left as it "
                                "keeps");
    agent->info.turned_away += error < 0;
    return error;
}

static int admit(struct slu_door *door, const struct sluice_multichannel *multichannel)
{
    struct sluice_agent *agent = slu_container_of(door, struct sluice_agent, door);
    int error;

    pthread_mutex_lock(&agent->lock);
    agent->let_in = slu_door_count(door, multichannel);
    error = check_room(agent);
    agent->let_in += error == 0;
    pthread_mutex_unlock(&agent->lock);
    return error;
}

static int judge(struct slu_door *door, const struct sluice_incoming *incoming,
                 struct slu_welcome *welcome)
{
    const struct sluice_agent *agent = slu_container_of(door, struct sluice_agent, door);

    (void)incoming;
    welcome->pd = agent->pd;
    welcome->attr = &agent->control_attr;
    return admit(door, NULL);
}

void slu_agent_door_init(struct slu_door *door)
{
    door->judge = judge;
    door->admit = admit;
}

/*
 * Makes a peer of a connected channel. The peer was told that it is in, so its place is kept. Only
 * over rdma_cm, where the door cannot ask before it tells the peer, may the places be exceeded.
 */
static void take_in(struct sluice_agent *agent, struct sluice_channel *channel)
{
    if (!agent->closed)
        (void)slu_agent_peer_make(agent, channel, true);
    else
        sluice_channel_close(channel);
}

void slu_agent_accept(struct sluice_agent *agent)
{
    struct slu_entrant entrant;
    struct slu_text text;
    bool some;

    if (agent->door.listener == NULL || agent->accepting)
        return;
    agent->accepting = true;
    slu_text_save(&text);
    do {
        agent->listener_ready = false;
        slu_agent_arm_for_sleeper(agent);
        pthread_mutex_unlock(&agent->lock);
        some = slu_door_step(&agent->door, &entrant);
        pthread_mutex_lock(&agent->lock);
        if (some)
            take_in(agent, entrant.channel);
        agent->let_in = slu_door_count(&agent->door, NULL);
    } while (some && !agent->closed);
    slu_text_restore(&text);
    slu_agent_watch_listener_again(agent);
    agent->accepting = false;
}
