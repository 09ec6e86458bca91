/* SPDX-License-Identifier: MIT */
/*
 * Accepting peers from the listener. Guarantee: the lock is given up while that takes long, and no
 * peer is told that it is let in while there is no place for it.
 */
#include "config.h"

#include "agent/agent.h"
#include "listener/listener.h"

/*
 * Give up the lock while the door steps, and take it. The connections of peers that share receives
 * belong to one multichannel, which the lock protects: then the door steps with the lock.
 */
static void unlock_in_step(struct sluice_agent *agent)
{
    if (agent->shared.control.wire == NULL)
        pthread_mutex_unlock(&agent->lock);
}

static void lock_in_step(struct sluice_agent *agent)
{
    if (agent->shared.control.wire == NULL)
        pthread_mutex_lock(&agent->lock);
}

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

/* Returns how many are let in, and are not among the peers yet. */
static uint32_t count_let_in(const struct sluice_agent *agent)
{
    uint32_t count = slu_door_count(&agent->door, NULL);

    if (agent->shared.control.wire != NULL)
        count += slu_door_count(&agent->door, agent->shared.control.wire);
    return count;
}

static int admit(struct slu_door *door, const struct sluice_multichannel *multichannel)
{
    struct sluice_agent *agent = slu_container_of(door, struct sluice_agent, door);
    int error;

    (void)multichannel;
    lock_in_step(agent);
    agent->let_in = count_let_in(agent);
    error = check_room(agent);
    agent->let_in += error == 0;
    unlock_in_step(agent);
    return error;
}

static int judge(struct slu_door *door, const struct sluice_incoming *incoming,
                 struct slu_welcome *welcome)
{
    const struct sluice_agent *agent = slu_container_of(door, struct sluice_agent, door);

    /* A peer that rdma_cm connects has receives of its own. */
    if (agent->shared.control.wire != NULL && incoming->cm == NULL) {
        welcome->multichannel = agent->shared.control.wire;
    } else {
        welcome->pd = agent->pd;
        welcome->attr = &agent->control_attr;
    }
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
static void take_in(struct sluice_agent *agent, const struct slu_entrant *entrant)
{
    if (!agent->leaving)
        (void)slu_agent_peer_make(agent, entrant->channel, entrant->peer, true);
    else
        slu_agent_control_end(agent, entrant->channel, entrant->peer);
}

void slu_agent_accept(struct sluice_agent *agent)
{
    struct slu_entrant entrant;
    struct slu_text text;
    bool some;

    if (agent->door.listener == NULL || agent->accepting || agent->leaving)
        return;
    agent->accepting = true;
    slu_text_save(&text);
    do {
        agent->listener_ready = false;
        slu_agent_arm_for_sleeper(agent);
        unlock_in_step(agent);
        some = slu_door_step(&agent->door, &entrant);
        lock_in_step(agent);
        /* The step may have polled the multichannel of peers that share receives. */
        agent->shared.control.armed = false;
        if (some)
            take_in(agent, &entrant);
        agent->let_in = count_let_in(agent);
    } while (some && !agent->leaving);
    slu_text_restore(&text);
    slu_agent_watch_listener_again(agent);
    agent->accepting = false;
    if (agent->leaving)
        pthread_cond_broadcast(&agent->changed);
}
