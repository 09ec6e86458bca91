/* SPDX-License-Identifier: MIT */
/*
 * Agents and peers as objects: checks of arguments, references, and the lists that the agent keeps
 * of its peers.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/device.h>

#include "agent/agent.h"
#include "base/descriptor.h"
#include "device/pd.h"

bool slu_is_agent(const struct sluice_agent *agent)
{
    return agent != NULL && agent->magic == SLU_MAGIC_AGENT;
}

int slu_not_an_agent(const struct sluice_agent *agent)
{
    return slu_misuse(EINVAL, "not an agent%s", slu_none_hint(agent));
}

int slu_agent_check_time(int64_t time, const char *what)
{
    return time >= 0 ? 0 : slu_misuse(EINVAL, "%s %lld is negative", what, (long long)time);
}

void slu_agent_enter(struct sluice_agent *agent)
{
    pthread_mutex_lock(&agent->lock);
    agent->references++;
    agent->inside++;
    agent->helper.calls++;
    /* An event loop that calls is awake. It arms before it sleeps, so no call does until then. */
    if (agent->watched && agent->loop_event < 0 && pthread_equal(agent->loop, pthread_self()))
        agent->watched = false;
}

void slu_agent_free(struct sluice_agent *agent)
{
    pthread_cond_destroy(&agent->helper.turn);
    pthread_cond_destroy(&agent->changed);
    pthread_mutex_destroy(&agent->lock);
    if (agent->epoll >= 0)
        slu_fd_close(agent->epoll);
    if (agent->event >= 0)
        slu_fd_close(agent->event);
    if (agent->loop_event >= 0)
        slu_fd_close(agent->loop_event);
    slu_agent_shared_close(agent);
    free(agent->places);
    free(agent->secret);
    slu_pd_release(agent->pd);
    free(agent);
}

/* Gives up the lock; the agent may be freed afterwards. */
static void unlock_and_drop(struct sluice_agent *agent)
{
    bool last = --agent->references == 0;

    pthread_mutex_unlock(&agent->lock);
    if (last)
        slu_agent_free(agent);
}

void slu_agent_leave(struct sluice_agent *agent)
{
    agent->inside--;
    if (agent->closed)
        pthread_cond_broadcast(&agent->changed);
    else
        slu_agent_arm_for_sleeper(agent);
    unlock_and_drop(agent);
}

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

void slu_agent_take_quota(struct sluice_agent_peer *peer, uint64_t pages)
{
    peer->region_bytes += pages;
    peer->allocated_count++;
    peer->agent->info.bytes += pages;
}

void slu_agent_give_quota(struct sluice_agent_peer *peer, uint64_t pages)
{
    peer->region_bytes -= pages;
    peer->allocated_count--;
    peer->agent->info.bytes -= pages;
}

void slu_agent_list_returning(struct sluice_agent_peer *peer)
{
    struct slu_agent_peers *list = &peer->agent->returning;

    if (peer->is_returning)
        TAILQ_REMOVE(list, peer, returning);
    peer->is_returning = !STAILQ_EMPTY(&peer->returned);
    if (peer->is_returning)
        TAILQ_INSERT_TAIL(list, peer, returning);
}

void slu_agent_end_returned(struct sluice_agent_peer *peer, struct slu_agent_returned *returned)
{
    STAILQ_REMOVE(&peer->returned, returned, slu_agent_returned, links);
    if (returned->pages > 0)
        slu_agent_give_quota(peer, returned->pages);
    free(returned);
    slu_agent_list_returning(peer);
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

bool slu_agent_is_full(const struct sluice_agent *agent)
{
    return (uint64_t)agent->connected + agent->let_in + agent->dialed >= agent->attr.max_peers;
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

void slu_agent_peer_locate(struct sluice_agent_peer *peer)
{
    struct sluice_channel_info info = {.size = sizeof info};
    bool here;

    if ((peer->shares
             ? sluice_multichannel_peer_query(peer->agent->shared.control.wire, peer->index, &info)
             : sluice_channel_query(peer->control, &info)) < 0)
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

void slu_agent_end_turn(struct sluice_agent_peer *peer)
{
    if (!peer->is_readable)
        return;
    TAILQ_REMOVE(&peer->agent->readable, peer, readable);
    TAILQ_INSERT_TAIL(&peer->agent->readable, peer, readable);
}

int slu_agent_check_receive(const struct sluice_agent *agent, const struct sluice_agent_peer *peer,
                            int64_t timeout)
{
    if (!slu_is_agent(agent))
        return slu_not_an_agent(agent);
    if (peer != NULL && !slu_is_agent_peer(peer))
        return slu_not_an_agent_peer(peer);
    if (peer != NULL && peer->agent != agent)
        return slu_misuse(EINVAL, "peer %s is of another agent", peer->address);
    return slu_agent_check_time(timeout, "timeout");
}
