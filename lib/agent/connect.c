/* SPDX-License-Identifier: MIT */
/*
 * Calls on peers: taking those that came to the listener, connecting to others, querying and
 * closing. Guarantee: the lock is given up while connecting takes long.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "listener/joint.h"

static bool has_fresh(void *argument)
{
    return !TAILQ_EMPTY(&((const struct sluice_agent *)argument)->fresh);
}

struct sluice_agent_peer *sluice_agent_next_peer(struct sluice_agent *agent, int64_t timeout)
{
    SLU_UNCANCELLED_BLOCK;
    struct sluice_agent_peer *peer = NULL;
    int error;

    if (!slu_is_agent(agent))
        return slu_none(slu_not_an_agent(agent));
    error = slu_agent_check_time(timeout, "timeout");
    if (error < 0)
        return slu_none(error);
    slu_agent_enter(agent);
    error = slu_agent_await(agent, has_fresh, agent, slu_after(timeout), true);
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
    int error = SLU_ATTR_COPY(sluice_connect_attr, options, given);

    if (error < 0)
        return error;
    options->size = sizeof *options;
    if (options->secret_file != NULL)
        return slu_misuse(EINVAL, "secret_file is the agent's: that of a connect must be NULL");
    if (options->own != NULL || options->peer != NULL)
        return slu_misuse(EINVAL, "agents have no private data: own and peer must be NULL");
    return 0;
}

/* The duty of a thread that connects an agent without a thread: all that waits serve. */
struct service {
    struct slu_duty duty; /* the first field */
    struct sluice_agent *agent;
};

static int64_t serve(struct slu_duty *duty)
{
    struct sluice_agent *agent = ((struct service *)duty)->agent;
    struct slu_text text;
    int64_t due = 0;

    slu_text_save(&text);
    pthread_mutex_lock(&agent->lock);
    if (!agent->driven)
        slu_agent_poll_set(agent, 0);
    slu_agent_progress(agent);
    if (slu_agent_arm_all(agent, &due) != 0)
        due = 0;
    agent->sleeps_until = agent->driven ? slu_earlier(agent->sleeps_until, due) : due;
    pthread_mutex_unlock(&agent->lock);
    slu_text_restore(&text);
    return due;
}

/* The lock of the agent, which protects the multichannel of peers that share receives. */
struct guard {
    struct slu_guard guard; /* the first field */
    struct sluice_agent *agent;
};

static void enter_guard(struct slu_guard *guard)
{
    pthread_mutex_lock(&((struct guard *)guard)->agent->lock);
}

static void leave_guard(struct slu_guard *guard)
{
    struct sluice_agent *agent = ((struct guard *)guard)->agent;

    agent->shared.control.armed = false;
    slu_agent_arm_for_sleeper(agent);
    pthread_mutex_unlock(&agent->lock);
}

/* The control queue pair of a peer to be. */
struct connection {
    struct sluice_channel *channel; /* NULL: of the shared multichannel */
    uint32_t index;
};

/* Returns whether peers at this address share receives: those over rdma_cm do not. */
static bool shares_receives(const struct sluice_agent *agent, const char *address)
{
    static const char rdmacm[] = "rdmacm:";

    return agent->shared.control.wire != NULL && address != NULL &&
           strncmp(address, rdmacm, sizeof rdmacm - 1) != 0;
}

/* Connects without the lock. Only an agent with a thread is served by others meanwhile. */
static int dial_unlocked(struct sluice_agent *agent, const char *address,
                         const struct sluice_connect_attr *options, int64_t deadline, int64_t until,
                         struct connection *made)
{
    struct service service = {.duty = {.fd = agent->epoll, .serve = serve}, .agent = agent};
    struct guard guard = {.guard = {.enter = enter_guard, .leave = leave_guard}, .agent = agent};
    struct slu_duty *duty = agent->has_thread ? NULL : &service.duty;
    int64_t left = until - slu_now();
    int error;

    left = until == SLUICE_FOREVER ? until : left > 0 ? left : 0;
    /* Texts name the program's deadline, unless the call has waited long for the lock. */
    if (deadline - left < SLUICE_MS(1))
        left = deadline;
    agent->dialers += !agent->has_thread;
    slu_agent_arm_for_sleeper(agent);
    pthread_mutex_unlock(&agent->lock);
    if (shares_receives(agent, address)) {
        error = slu_connect_guarded(address, agent->shared.control.wire, &guard.guard, options,
                                    left, duty, &made->index);
    } else {
        made->channel =
            slu_connect_serving(address, agent->pd, &agent->control_attr, options, left, duty);
        error = made->channel == NULL ? -errno : 0;
    }
    pthread_mutex_lock(&agent->lock);
    agent->dialers -= !agent->has_thread;
    return error;
}

/* Connects, and waits for the greeting. */
static int dial(struct sluice_agent *agent, const char *address,
                const struct sluice_connect_attr *options, int64_t deadline, int64_t until,
                struct sluice_agent_peer **made)
{
    struct connection connection = {NULL, 0};
    struct sluice_agent_peer *peer;
    char time[SLU_DURATION_BYTES];
    int error;

    if (slu_agent_is_full(agent))
        return slu_fail(ENOBUFS, "the agent has as many peers as it takes: %u",
                        agent->attr.max_peers);
    agent->dialed++;
    error = dial_unlocked(agent, address, options, deadline, until, &connection);
    agent->dialed--;
    if (error < 0)
        return error;
    peer = slu_agent_peer_make(agent, connection.channel, connection.index, false);
    if (peer == NULL)
        return -errno;
    peer->is_held = true;
    slu_agent_peer_hold(peer);
    error = slu_agent_await(agent, has_greeted, peer, until, true);
    if (error == -ETIMEDOUT)
        error = slu_fail(ETIMEDOUT, "%s sent no greeting within %s: is it an agent?", peer->address,
                         slu_say_duration(deadline, time));
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
    error = dial(agent, address, &known, deadline, slu_after(deadline), &peer);
    slu_agent_leave(agent);
    if (error < 0)
        return slu_none(error);
    slu_made();
    return peer;
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
    slu_agent_begin_send_wait(agent);
    (void)slu_agent_await(agent, slu_agent_is_flushed, peer, slu_after(SLU_AGENT_FAREWELL_TIME),
                          false);
    slu_agent_end_send_wait(agent);
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
    error = SLU_INFO_CHECK(sluice_agent_peer_info, info);
    if (error < 0)
        return error;
    slu_agent_enter(peer->agent);
    known.state =
        peer->state == SLU_AGENT_OVER ? SLUICE_AGENT_PEER_LOST : SLUICE_AGENT_PEER_CONNECTED;
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
