/* SPDX-License-Identifier: MIT */
/* Calls that send a request to a peer and wait for its answer. */
#include "config.h"

#include "agent/agent.h"

/* A peer that is reading a withdrawn message has this long to finish. */
#define DRAIN_TIME SLUICE_S(1)

struct asking {
    struct sluice_agent_peer *peer;
    uint32_t type;
    struct slu_agent_wait *wait;
};

/* Requests that wait for the peer's program once they arrive, and so count against its limit. */
static bool is_posted(uint32_t type)
{
    return type == SLU_AGENT_HAND || type == SLU_AGENT_RETURN || type == SLU_AGENT_ANNOUNCE;
}

static bool can_ask(void *argument)
{
    struct asking *asking = argument;

    if (asking->peer->state == SLU_AGENT_OVER)
        return true;
    if (!slu_agent_may_request(asking->peer) ||
        (is_posted(asking->type) && !slu_agent_may_post(asking->peer, 0)))
        return false;
    asking->wait = slu_agent_find_wait(asking->peer, 0);
    return asking->wait != NULL;
}

static bool is_answered(void *argument)
{
    const struct slu_agent_wait *wait = argument;

    return wait->done;
}

/* Describes the time of a wait, in whole milliseconds if it took any: the rest is of the call. */
static const char *say_time(int64_t begun, int64_t until, char text[SLU_DURATION_BYTES])
{
    int64_t time = until > begun ? until - begun : 0;
    int64_t rest = time % SLUICE_MS(1);

    if (time > SLUICE_MS(1))
        time += rest > SLUICE_MS(1) / 2 ? SLUICE_MS(1) - rest : -rest;
    return slu_say_duration(time, text);
}

int slu_agent_request(struct sluice_agent_peer *peer, struct slu_agent_message *message,
                      int64_t until, struct slu_agent_wait **wait)
{
    struct asking asking = {.peer = peer, .type = message->type};
    bool can = slu_agent_serve_one(peer) && can_ask(&asking);
    int64_t begun = can ? 0 : slu_now();
    int error = can ? 0 : slu_agent_await(peer->agent, can_ask, &asking, until, true);
    char time[SLU_DURATION_BYTES];

    if (error == -ETIMEDOUT)
        return slu_fail(ETIMEDOUT,
                        "peer %s: no request could be sent within %s: the peer has not taken "
                        "earlier ones",
                        peer->address, say_time(begun, until, time));
    if (error == 0)
        error = slu_agent_peer_check(peer);
    if (error < 0)
        return error;
    message->id = ++peer->last_id;
    *asking.wait =
        (struct slu_agent_wait){.id = message->id, .type = message->type, .asked = slu_now()};
    *wait = asking.wait;
    peer->posted += is_posted(message->type);
    slu_agent_control_send(peer, message, NULL);
    return 0;
}

static int fail_with(const struct sluice_agent_peer *peer, const struct slu_agent_wait *wait)
{
    if (peer->state == SLU_AGENT_OVER)
        return slu_agent_peer_check(peer);
    return slu_fail(-wait->error, "peer %s: %s", peer->address, wait->words);
}

/* Withdraws a message and waits up to DRAIN_TIME: the peer may be reading its memory just now. */
static bool is_withdrawn(struct sluice_agent_peer *peer, struct slu_agent_wait *wait)
{
    wait->withdraw = !slu_agent_withdraw(peer, wait);
    peer->has_unclean |= wait->withdraw;
    return slu_agent_await(peer->agent, is_answered, wait, slu_after(DRAIN_TIME), false) == 0;
}

static void abandon(struct sluice_agent_peer *peer, struct slu_agent_wait *wait)
{
    wait->abandoned = true;
    if (wait->source != NULL)
        (void)sluice_mr_release(wait->source, NULL, NULL);
    wait->source = NULL;
    slu_agent_touch(peer);
}

int slu_agent_wait_for(struct sluice_agent_peer *peer, struct slu_agent_wait *wait, int64_t until)
{
    int error = slu_agent_await(peer->agent, is_answered, wait, until, true);
    char time[SLU_DURATION_BYTES];

    if (error == 0)
        return wait->error == 0 ? 0 : fail_with(peer, wait);
    if (error == -ETIMEDOUT)
        slu_fail(ETIMEDOUT, "peer %s did not answer within %s", peer->address,
                 say_time(wait->asked, until, time));
    if (wait->type == SLU_AGENT_ANNOUNCE && is_withdrawn(peer, wait))
        return wait->error == 0 ? 0 : error;
    abandon(peer, wait);
    return error;
}

int slu_agent_request_and_wait(struct sluice_agent_peer *peer, struct slu_agent_message *message,
                               int64_t until)
{
    struct slu_agent_wait *wait;
    int error = slu_agent_request(peer, message, until, &wait);

    if (error < 0)
        return error;
    error = slu_agent_wait_for(peer, wait, until);
    if (!wait->abandoned)
        slu_agent_wait_end(wait);
    return error;
}
