/* SPDX-License-Identifier: MIT */
/*
 * Requests of ours. Guarantee: each entry is free again once the peer has answered or is lost,
 * whether or not the caller still waits; and a region granted after the caller has left is
 * released.
 */
#include "config.h"

#include <string.h>

#include "agent/agent.h"

struct slu_agent_wait *slu_agent_find_wait(struct sluice_agent_peer *peer, uint64_t id)
{
    for (uint32_t i = 0; i < SLU_AGENT_WAITS; i++)
        if (peer->waits[i].id == id)
            return &peer->waits[i];
    return NULL;
}

bool slu_agent_withdraw(struct sluice_agent_peer *peer, const struct slu_agent_wait *wait)
{
    struct slu_agent_message message = {.type = SLU_AGENT_WITHDRAW, .id = wait->id};

    if (!slu_agent_may_request(peer))
        return false;
    slu_agent_control_send(peer, &message, NULL);
    return true;
}

void slu_agent_wait_end(struct slu_agent_wait *wait)
{
    if (wait->source != NULL)
        (void)sluice_mr_release(wait->source, NULL, NULL);
    *wait = (struct slu_agent_wait){.id = 0};
}

/* Answers. */

static int error_of(uint32_t code)
{
    static const int errors[SLU_AGENT_CODES] = {
        [SLU_AGENT_OK] = 0,           [SLU_AGENT_DENIED] = EACCES,
        [SLU_AGENT_QUOTA] = EDQUOT,   [SLU_AGENT_NO_MEMORY] = ENOMEM,
        [SLU_AGENT_UNKNOWN] = ENOENT, [SLU_AGENT_CANCELLED] = ECANCELED,
        [SLU_AGENT_TOO_LONG] = E2BIG, [SLU_AGENT_BUSY] = EBUSY,
    };

    return -errors[code];
}

/* Returns whether code is a valid end of a request of that type. */
static bool is_end_of(uint32_t type, uint32_t code)
{
    static const uint32_t ends[SLU_AGENT_TYPES] = {
        [SLU_AGENT_ALLOC] = 1u << SLU_AGENT_DENIED | 1u << SLU_AGENT_QUOTA |
                            1u << SLU_AGENT_NO_MEMORY | 1u << SLU_AGENT_BUSY,
        [SLU_AGENT_RELEASE] = 1u << SLU_AGENT_UNKNOWN,
        [SLU_AGENT_HAND] = 1u << SLU_AGENT_NO_MEMORY | 1u << SLU_AGENT_BUSY,
        [SLU_AGENT_RETURN] =
            1u << SLU_AGENT_UNKNOWN | 1u << SLU_AGENT_NO_MEMORY | 1u << SLU_AGENT_BUSY,
        [SLU_AGENT_ANNOUNCE] = 1u << SLU_AGENT_CANCELLED | 1u << SLU_AGENT_TOO_LONG |
                               1u << SLU_AGENT_NO_MEMORY | 1u << SLU_AGENT_BUSY,
        [SLU_AGENT_RENEW] = 1u << SLU_AGENT_DENIED | 1u << SLU_AGENT_UNKNOWN,
    };

    return code == SLU_AGENT_OK || (ends[type] & 1u << code) != 0;
}

/* Frees the entry; or keeps it to release a region that was granted after the caller left. */
static void settle_abandoned(struct slu_agent_wait *wait, const struct slu_agent_message *message)
{
    bool came = message->type == SLU_AGENT_ALLOCATED && wait->type == SLU_AGENT_ALLOC;

    *wait = (struct slu_agent_wait){.id = came ? wait->id : 0,
                                    .type = wait->type,
                                    .abandoned = true,
                                    .give_back = came ? message->region : 0};
}

/* ALLOC and RENEW have an answer type of their own; for these DONE can only be an error. */
static bool is_answer_to(uint32_t type, const struct slu_agent_message *message)
{
    uint32_t own = type == SLU_AGENT_ALLOC   ? SLU_AGENT_ALLOCATED
                   : type == SLU_AGENT_RENEW ? SLU_AGENT_RENEWED
                                             : SLU_AGENT_DONE;

    return message->type == own ||
           (message->type == SLU_AGENT_DONE && message->code != SLU_AGENT_OK);
}

void slu_agent_handle_answer(struct sluice_agent_peer *peer,
                             const struct slu_agent_message *message)
{
    struct slu_agent_wait *wait = slu_agent_find_wait(peer, message->id);

    if (wait == NULL || wait->done || wait->give_back != 0 || !is_answer_to(wait->type, message)) {
        slu_agent_refuse(peer, &peer->agent->info.unasked, "an answer to no request of ours");
        return;
    }
    if (wait->abandoned) {
        settle_abandoned(wait, message);
        peer->has_unclean = true;
        slu_agent_touch(peer);
        return;
    }
    wait->done = true;
    wait->error = is_end_of(wait->type, message->code) ? error_of(message->code) : -EPROTO;
    strcpy(wait->words, message->words);
    wait->remote = message->remote;
    wait->region = message->region;
    wait->lease = message->lease;
    wait->access = message->access;
    if (wait->error == -EPROTO)
        slu_agent_refuse(peer, &peer->agent->info.malformed,
                         "an error code that its request cannot have");
}

bool slu_agent_request_detached(struct sluice_agent_peer *peer, struct slu_agent_message *message)
{
    struct slu_agent_wait *wait = slu_agent_may_request(peer) ? slu_agent_find_wait(peer, 0) : NULL;

    if (wait == NULL)
        return false;
    message->id = ++peer->last_id;
    *wait = (struct slu_agent_wait){.id = message->id, .type = message->type, .abandoned = true};
    slu_agent_control_send(peer, message, NULL);
    return true;
}

void slu_agent_clean_waits(struct sluice_agent_peer *peer)
{
    if (!peer->has_unclean)
        return;
    peer->has_unclean = false;
    for (uint32_t i = 0; i < SLU_AGENT_WAITS; i++) {
        struct slu_agent_wait *wait = &peer->waits[i];

        if (wait->id == 0 || (!wait->withdraw && wait->give_back == 0))
            continue;
        if (!slu_agent_may_request(peer)) {
            peer->has_unclean = true;
            return;
        }
        if (wait->withdraw)
            wait->withdraw = !slu_agent_withdraw(peer, wait);
        else if (wait->give_back != 0) {
            struct slu_agent_message message = {.type = SLU_AGENT_RELEASE,
                                                .region = wait->give_back};

            wait->id = 0;
            (void)slu_agent_request_detached(peer, &message);
        }
        peer->has_unclean |= wait->withdraw;
    }
}

void slu_agent_fail_waits(struct sluice_agent_peer *peer)
{
    for (uint32_t i = 0; i < SLU_AGENT_WAITS; i++) {
        struct slu_agent_wait *wait = &peer->waits[i];

        if (wait->id == 0 || wait->done)
            continue;
        if (wait->abandoned) {
            slu_agent_wait_end(wait);
        } else {
            wait->done = true;
            wait->error = -ENOTCONN;
        }
    }
}
