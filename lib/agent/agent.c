/* SPDX-License-Identifier: MIT */
/* The agent itself: attributes, listening and closing. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/agent.h"
#include "device/pd.h"
#include "engine/engine.h"
#include "listener/listener.h"

/* Attributes. */

static int check_range(uint64_t value, uint64_t least, uint64_t most, const char *name)
{
    if (value >= least && value <= most)
        return 0;
    return slu_misuse(EINVAL, "sluice_agent_attr.%s %llu: must be in %llu..%llu", name,
                      (unsigned long long)value, (unsigned long long)least,
                      (unsigned long long)most);
}

static void set_defaults(struct sluice_agent_attr *attr, bool atomics)
{
    if (attr->access == 0)
        attr->access = SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE |
                       (atomics ? SLUICE_ACCESS_REMOTE_ATOMIC : 0);
    else if (attr->access == SLUICE_ACCESS_NONE)
        attr->access = 0;
    if (attr->max_peers == 0)
        attr->max_peers = 1024;
    if (attr->max_regions == 0)
        attr->max_regions = 256;
    if (attr->eager == 0)
        attr->eager = 4096;
    if (attr->window == 0)
        attr->window = 16;
    if (attr->max_waiting == 0)
        attr->max_waiting = 256;
    if (attr->max_waiting_bytes == 0)
        attr->max_waiting_bytes = UINT64_C(1) << 20;
    if (attr->max_message == 0)
        attr->max_message = UINT64_C(1) << 30;
    if (attr->max_lease == 0)
        attr->max_lease = SLUICE_S(60);
    if (attr->max_left_bytes == 0)
        attr->max_left_bytes = UINT64_C(64) << 20;
    if (attr->receive_share == 0)
        attr->receive_share = attr->receive_pool / 4;
}

static int check_attr(const struct sluice_agent_attr *attr, bool atomics)
{
    int error;

    if ((attr->flags & ~SLUICE_AGENT_NO_THREAD) != 0)
        return slu_misuse(EINVAL, "sluice_agent_attr.flags %#x has unknown bits", attr->flags);
    if ((attr->access & ~SLU_AGENT_ACCESS) != 0)
        return slu_misuse(EINVAL,
                          "sluice_agent_attr.access %#x: must be some of %#x, or "
                          "SLUICE_ACCESS_NONE",
                          attr->access, SLU_AGENT_ACCESS);
    if ((attr->access & SLUICE_ACCESS_REMOTE_ATOMIC) != 0 && !atomics)
        return slu_fail(EOPNOTSUPP, "sluice_agent_attr.access has REMOTE_ATOMIC, and the device "
                                    "has no atomic operations");
    error = check_range(attr->max_peers, 1, 65536, "max_peers");
    if (error == 0)
        error = check_range(attr->max_regions, 1, 65536, "max_regions");
    if (error == 0)
        error = check_range(attr->eager, 64, 65536, "eager");
    if (error == 0)
        error = check_range(attr->window, 4, 256, "window");
    if (error == 0)
        error = check_range(attr->max_waiting, 1, 65536, "max_waiting");
    if (error == 0)
        error = check_range(attr->max_waiting_bytes, attr->eager, UINT64_C(1) << 40,
                            "max_waiting_bytes");
    if (error == 0)
        error = check_range(attr->max_left_bytes, 1, UINT64_C(1) << 40, "max_left_bytes");
    if (error == 0)
        error = check_range(attr->quota, 0, SLU_AGENT_MOST_BYTES, "quota");
    if (error == 0)
        error = check_range(attr->max_message, 1, SLU_AGENT_MOST_BYTES, "max_message");
    if (error == 0)
        error = check_range((uint64_t)attr->max_lease, (uint64_t)SLUICE_MS(1), SLUICE_FOREVER,
                            "max_lease");
    if (error == 0 && attr->receive_pool != 0)
        error = check_range(attr->receive_pool, SLU_AGENT_POOL_LEAST, SLU_AGENT_POOL_MOST,
                            "receive_pool");
    if (error == 0 && attr->receive_share != 0)
        error = check_range(attr->receive_share, attr->receive_pool > 0, attr->receive_pool,
                            "receive_share");
    if (error == 0 && attr->keepalive != 0)
        error = check_range((uint64_t)attr->keepalive, (uint64_t)SLUICE_MS(1),
                            (uint64_t)SLUICE_S(3600), "keepalive");
    return error;
}

static void set_channels(struct sluice_agent *agent, const struct sluice_context_info *info)
{
    const struct sluice_agent_attr *attr = &agent->attr;
    uint32_t sges = info->max_sge < SLU_AGENT_BATCH ? info->max_sge : SLU_AGENT_BATCH;

    agent->control_attr = (struct sluice_channel_attr){
        .size = sizeof agent->control_attr,
        .send_depth = attr->window + SLU_AGENT_WAITS + SLU_AGENT_RESERVE,
        .receive_depth = attr->window + SLU_AGENT_WAITS + SLU_AGENT_SPARE,
        .max_sge = 1,
        .max_inline = SLUICE_ZERO,
        .access = SLUICE_ACCESS_NONE,
    };
    agent->data_attr = (struct sluice_channel_attr){
        .size = sizeof agent->data_attr,
        .receive_depth = 1,
        .max_sge = sges,
        .keepalive = attr->keepalive,
    };
}

static int set_up(struct sluice_agent *agent, const struct sluice_agent_attr *given)
{
    struct sluice_context_info info = {.size = sizeof info};
    int error = sluice_context_query(agent->pd->context, &info);

    if (error == 0)
        error = SLU_ATTR_COPY(sluice_agent_attr, &agent->attr, given);
    if (error < 0)
        return error;
    set_defaults(&agent->attr, info.atomics != SLUICE_ATOMICS_NONE);
    error = check_attr(&agent->attr, info.atomics != SLUICE_ATOMICS_NONE);
    if (error < 0)
        return error;
    if (agent->attr.secret_file != NULL) {
        agent->secret = strdup(agent->attr.secret_file);
        if (agent->secret == NULL)
            return slu_fail(ENOMEM, "no memory for an agent");
    }
    set_channels(agent, &info);
    return slu_channel_check(agent->pd, &agent->data_attr);
}

static void init(struct sluice_agent *agent, struct sluice_pd *pd)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&agent->changed, &monotonic);
    pthread_cond_init(&agent->helper.turn, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&agent->lock, NULL);
    agent->references = 1;
    agent->pd = pd;
    slu_pd_hold(pd);
    slu_agent_door_init(&agent->door);
    agent->epoll = agent->event = agent->loop_event = -1;
    agent->next_due = SLUICE_FOREVER;
    TAILQ_INIT(&agent->peers);
    TAILQ_INIT(&agent->fresh);
    TAILQ_INIT(&agent->readable);
    TAILQ_INIT(&agent->offering);
    TAILQ_INIT(&agent->returning);
    TAILQ_INIT(&agent->kept);
    TAILQ_INIT(&agent->shared.early);
    LIST_INIT(&agent->unarmed);
}

struct sluice_agent *sluice_agent_open(struct sluice_pd *pd, const struct sluice_agent_attr *attr)
{
    SLU_UNCANCELLED_BLOCK;
    struct sluice_agent *agent;
    int error;

    if (pd == NULL || pd->magic != SLU_MAGIC_PD)
        return slu_misuse_null(EINVAL, "an agent needs a protection domain%s", slu_none_hint(pd));
    agent = calloc(1, sizeof *agent);
    if (agent == NULL)
        return slu_fail_null(ENOMEM, "no memory for an agent");
    init(agent, pd);
    error = set_up(agent, attr);
    if (error == 0)
        error = slu_agent_events_open(agent);
    if (error == 0)
        error = slu_agent_shared_open(agent);
    if (error == 0 && (agent->attr.flags & SLUICE_AGENT_NO_THREAD) == 0)
        error = slu_agent_start_helper(agent);
    if (error < 0) {
        slu_agent_free(agent);
        return slu_none(error);
    }
    agent->magic = SLU_MAGIC_AGENT;
    slu_made();
    return agent;
}

/* Listening. */

int sluice_agent_listen(struct sluice_agent *agent, const char *address,
                        const struct sluice_listen_attr *attr)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;
    struct sluice_listen_attr known;
    int error;

    if (!slu_is_agent(agent))
        return slu_not_an_agent(agent);
    error = SLU_ATTR_COPY(sluice_listen_attr, &known, attr);
    if (error < 0)
        return error;
    if (known.secret_file != NULL)
        return slu_misuse(EINVAL, "secret_file is the agent's: that of a listen must be NULL");
    known.size = sizeof known;
    known.secret_file = agent->secret;
    slu_agent_enter(agent);
    if (agent->door.listener != NULL) {
        error = slu_fail(EBUSY, "the agent listens already");
    } else {
        agent->door.listener = sluice_listen(address, &known);
        error = agent->door.listener == NULL ? -errno : 0;
    }
    if (error == 0) {
        error = slu_agent_watch_listener(agent);
        agent->listener_ready = true;
        if (error < 0) {
            sluice_listener_close(agent->door.listener);
            agent->door.listener = NULL;
        }
    }
    slu_agent_leave(agent);
    return error;
}

int sluice_agent_address(const struct sluice_agent *agent, char *text, size_t size)
{
    SLU_KEEP_ERRNO;

    if (!slu_is_agent(agent))
        return slu_not_an_agent(agent);
    if (agent->door.listener == NULL)
        return slu_fail(ENOENT, "the agent does not listen");
    return sluice_listener_address(agent->door.listener, text, size);
}

int sluice_agent_query(struct sluice_agent *agent, struct sluice_agent_info *info)
{
    SLU_KEEP_ERRNO;
    struct sluice_agent_info known;
    int error;

    if (!slu_is_agent(agent))
        return slu_not_an_agent(agent);
    error = SLU_INFO_CHECK(sluice_agent_info, info);
    if (error < 0)
        return error;
    slu_agent_enter(agent);
    known = agent->info;
    known.size = sizeof known;
    known.peers = agent->connected;
    slu_agent_leave(agent);
    slu_info_copy(info, &known, sizeof known);
    return 0;
}

/* Closing. */

static bool all_quiet(void *argument)
{
    struct sluice_agent *agent = argument;
    struct sluice_agent_peer *peer;

    TAILQ_FOREACH(peer, &agent->peers, links)
    if (!slu_agent_is_flushed(peer))
        return false;
    return true;
}

static void send_goodbyes(struct sluice_agent *agent)
{
    struct sluice_agent_peer *peer;

    TAILQ_FOREACH(peer, &agent->peers, links)
    {
        peer->must_send_bye = true;
        slu_agent_touch(peer);
    }
    slu_agent_begin_send_wait(agent);
    (void)slu_agent_await(agent, all_quiet, agent, slu_after(SLU_AGENT_FAREWELL_TIME), false);
    slu_agent_end_send_wait(agent);
}

/*
 * Closes the listener, so that no peer is let in that would be lost at once. Clients that were not
 * let in yet dial again, and wait for the next listener if they may.
 */
static void stop_listening(struct sluice_agent *agent)
{
    struct sluice_listener *listener;

    agent->leaving = true;
    while (agent->accepting)
        pthread_cond_wait(&agent->changed, &agent->lock);
    listener = agent->door.listener;
    agent->door.listener = NULL;
    if (listener == NULL)
        return;
    slu_listener_hang_up(listener);
    sluice_listener_close(listener);
}

void sluice_agent_close(struct sluice_agent *agent)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;
    struct sluice_agent_peer *peer;

    if (!slu_may_end(agent, SLU_MAGIC_AGENT, "agent"))
        return;
    slu_agent_enter(agent);
    agent->magic = SLU_MAGIC_DEAD;
    stop_listening(agent);
    send_goodbyes(agent);
    agent->closed = agent->ending = true;
    slu_agent_end_spares(agent);
    while ((peer = TAILQ_FIRST(&agent->peers)) != NULL)
        slu_agent_lose(peer, 0, "our agent was closed");
    /* The program can no longer receive these messages; they hold references to their peers. */
    while ((peer = TAILQ_FIRST(&agent->kept)) != NULL)
        slu_agent_end_messages(peer, true);
    pthread_cond_broadcast(&agent->changed);
    pthread_cond_broadcast(&agent->helper.turn);
    atomic_fetch_add(&agent->wakes, 1);
    slu_agent_wake_sleeper(agent);
    while (agent->inside > 1)
        pthread_cond_wait(&agent->changed, &agent->lock);
    agent->ending = false;
    if (agent->has_thread) {
        pthread_mutex_unlock(&agent->lock);
        pthread_join(agent->thread, NULL);
        pthread_mutex_lock(&agent->lock);
    }
    slu_agent_shared_close(agent);
    /* Peers that the program still holds keep the agent's memory until they are closed. */
    agent->references--;
    slu_agent_leave(agent);
}
