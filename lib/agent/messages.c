/* SPDX-License-Identifier: MIT */
/*
 * Messages of peers that wait for the program. Guarantee: they stay within the limits sent to the
 * peer. A message of up to eager bytes arrives in one receive, and is copied out of it. A longer
 * message is announced with its remote region, and read from there once the program receives.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"

static struct sluice_agent_message *make_message(struct sluice_agent_peer *peer, uint64_t length,
                                                 size_t room)
{
    struct sluice_agent_message *message = malloc(sizeof *message + room);

    if (message == NULL)
        return NULL;
    *message = (struct sluice_agent_message){
        .magic = SLU_MAGIC_AGENT_MESSAGE, .peer = peer, .length = length};
    message->bytes = (uint8_t *)(message + 1);
    slu_agent_peer_hold(peer);
    return message;
}

void slu_agent_free_message(struct sluice_agent_message *message)
{
    message->magic = SLU_MAGIC_DEAD;
    slu_agent_unreserve(message);
    if (message->mr != NULL)
        slu_agent_keep_spare(message->peer->agent, message->mr);
    slu_agent_peer_drop(message->peer);
    free(message);
}

static void add_message(struct sluice_agent_peer *peer, struct sluice_agent_message *message)
{
    TAILQ_INSERT_TAIL(&peer->messages, message, links);
    slu_agent_peer_set_readable(peer);
}

void slu_agent_remove_message(struct sluice_agent_peer *peer, struct sluice_agent_message *message)
{
    TAILQ_REMOVE(&peer->messages, message, links);
    if (TAILQ_EMPTY(&peer->messages))
        slu_agent_peer_clear_readable(peer);
}

void slu_agent_handle_message(struct sluice_agent_peer *peer, const struct slu_agent_message *heard)
{
    struct sluice_agent_message *message;

    if (!slu_agent_count_arrival(peer, heard->length))
        return;
    message = make_message(peer, heard->length, heard->length);
    if (message == NULL) {
        slu_agent_lose(peer, -ENOMEM, "no memory for a message that it sent");
        return;
    }
    if (heard->length > 0)
        memcpy(message->bytes, heard->body, heard->length);
    add_message(peer, message);
}

void slu_agent_handle_announce(struct sluice_agent_peer *peer,
                               const struct slu_agent_message *heard)
{
    struct sluice_agent *agent = peer->agent;
    struct sluice_agent_message *message;

    if (!slu_agent_count_arrival(peer, 0)) {
        slu_agent_answer(peer, heard->id, SLU_AGENT_BUSY, "too many messages wait for its program");
        return;
    }
    if (heard->remote.length > agent->attr.max_message) {
        slu_agent_received(peer, 0);
        slu_agent_refuse(peer, &agent->info.oversized, "a message that is too long");
        slu_agent_answer(peer, heard->id, SLU_AGENT_TOO_LONG, "the message is above max_message");
        return;
    }
    message = make_message(peer, heard->remote.length, 0);
    if (message == NULL) {
        slu_agent_received(peer, 0);
        slu_agent_answer(peer, heard->id, SLU_AGENT_NO_MEMORY, "it has no memory for a message");
        return;
    }
    message->announced = heard->id;
    message->remote = heard->remote;
    add_message(peer, message);
}

uint64_t slu_agent_count_messages(const struct sluice_agent_peer *peer)
{
    const struct sluice_agent_message *message;
    uint64_t bytes = 0;

    TAILQ_FOREACH(message, &peer->messages, links)
    {
        bytes += sizeof *message;
        if (message->announced == 0)
            bytes += message->mr != NULL ? sluice_mr_length(message->mr) : message->length;
    }
    return bytes;
}

void slu_agent_unreserve(struct sluice_agent_message *message)
{
    struct sluice_agent *agent = message->peer->agent;

    if (message->reserved == 0)
        return;
    agent->reading_bytes -= message->reserved;
    message->reserved = 0;
    slu_agent_notify_room(agent);
}
