/* SPDX-License-Identifier: MIT */
/* Handles control messages of a peer. A malformed message is counted and otherwise ignored. */
#include "config.h"

#include "agent/agent.h"

static void handle_hello(struct sluice_agent_peer *peer, const struct slu_agent_message *message)
{
    struct sluice_agent *agent = peer->agent;

    peer->hello = message->hello;
    peer->eager = agent->attr.eager < peer->hello.eager ? agent->attr.eager : peer->hello.eager;
    peer->state = SLU_AGENT_OPEN;
    slu_agent_peer_locate(peer);
    slu_agent_data_connect(peer, &message->endpoint);
    if (peer->state != SLU_AGENT_OPEN || !peer->came)
        return;
    TAILQ_INSERT_TAIL(&agent->fresh, peer, fresh);
    peer->is_fresh = true;
    agent->news = true;
}

static void ignore(struct sluice_agent_peer *peer, const struct slu_agent_message *message)
{
    (void)peer;
    (void)message;
}

static void handle_bye(struct sluice_agent_peer *peer, const struct slu_agent_message *message)
{
    (void)message;
    slu_agent_lose(peer, 0, "it has left");
}

static void (*const handlers[SLU_AGENT_TYPES])(struct sluice_agent_peer *peer,
                                               const struct slu_agent_message *message) = {
    [SLU_AGENT_HELLO] = handle_hello,
    [SLU_AGENT_ALLOC] = slu_agent_handle_alloc,
    [SLU_AGENT_RELEASE] = slu_agent_handle_release,
    [SLU_AGENT_HAND] = slu_agent_handle_hand,
    [SLU_AGENT_RETURN] = slu_agent_handle_return,
    [SLU_AGENT_ANNOUNCE] = slu_agent_handle_announce,
    [SLU_AGENT_ALLOCATED] = slu_agent_handle_answer,
    [SLU_AGENT_DONE] = slu_agent_handle_answer,
    [SLU_AGENT_TEXT] = slu_agent_handle_message,
    [SLU_AGENT_WITHDRAW] = slu_agent_handle_withdraw,
    [SLU_AGENT_REVOKE] = slu_agent_handle_revoke,
    [SLU_AGENT_CREDIT] = ignore,
    [SLU_AGENT_RESET] = slu_agent_handle_reset,
    [SLU_AGENT_READY] = slu_agent_handle_ready,
    [SLU_AGENT_BYE] = handle_bye,
    [SLU_AGENT_RENEW] = slu_agent_handle_renew,
    [SLU_AGENT_RENEWED] = slu_agent_handle_answer,
};

/* Takes the credit in a message. Returns false if the peer reports more than it was sent. */
static bool take_credit(struct sluice_agent_peer *peer, const struct slu_agent_message *message)
{
    if (message->taken - peer->sent_taken > peer->sent - peer->sent_taken ||
        message->received - peer->posted_received > peer->posted - peer->posted_received ||
        message->received_bytes < peer->posted_received_bytes ||
        message->received_bytes > peer->posted_bytes)
        return false;
    peer->sent_taken = message->taken;
    peer->posted_received = message->received;
    peer->posted_received_bytes = message->received_bytes;
    return true;
}

void slu_agent_handle(struct sluice_agent_peer *peer, const uint8_t *bytes, uint32_t count)
{
    struct sluice_agent_info *info = &peer->agent->info;
    struct slu_agent_message message;
    int error = slu_agent_message_read(bytes, count, peer->agent->attr.eager, &message);

    if (error == -EPROTONOSUPPORT) {
        char text[SLU_AGENT_VERSIONS_TEXT];

        info->malformed++;
        slu_agent_lose(peer, -EPROTO, "%s", slu_agent_message_versions(&message, text));
        return;
    }
    if (error == -EMSGSIZE) {
        slu_agent_refuse(peer, &info->oversized, "a message that is too long");
        return;
    }
    if (error < 0 || !take_credit(peer, &message)) {
        slu_agent_refuse(peer, &info->malformed, "a malformed message");
        return;
    }
    if ((message.type == SLU_AGENT_HELLO) != (peer->state == SLU_AGENT_GREETING)) {
        slu_agent_refuse(peer, &info->unasked, "a second greeting, or none");
        return;
    }
    peer->taken += slu_agent_is_counted(message.type);
    handlers[message.type](peer, &message);
}
