/* SPDX-License-Identifier: MIT */
/*
 * Calls that send and receive messages. Guarantee: a message is received whole, or stays, or its
 * sender gets an error.
 */
#include "config.h"

#include "agent/agent.h"
#include "memory/pages.h"

/* Sending. */

struct posting {
    const struct sluice_agent_peer *peer;
    uint64_t bytes;
};

static bool can_post(void *argument)
{
    const struct posting *posting = argument;

    return posting->peer->state == SLU_AGENT_OVER ||
           (slu_agent_may_request(posting->peer) &&
            slu_agent_may_post(posting->peer, posting->bytes));
}

static int send_short(struct sluice_agent_peer *peer, const void *bytes, uint32_t length,
                      int64_t deadline)
{
    struct posting posting = {.peer = peer, .bytes = length};
    char time[SLU_DURATION_BYTES];
    struct slu_agent_message message;
    bool can = slu_agent_is_in_batch(peer->agent) && can_post(&posting);
    int error = 0;

    if (!can && !(slu_agent_serve_one(peer) && can_post(&posting)))
        error = slu_agent_await(peer->agent, can_post, &posting, slu_after(deadline), true);
    if (error == -ETIMEDOUT)
        return slu_fail(ETIMEDOUT, "peer %s had no room for a message of %u byte%s within %s",
                        peer->address, length, SLU_S(length), slu_say_duration(deadline, time));
    if (error == 0)
        error = slu_agent_peer_check(peer);
    if (error < 0)
        return error;
    peer->posted++;
    peer->posted_bytes += length;
    /* A TEXT has no other fields. */
    message.type = SLU_AGENT_TEXT;
    message.length = length;
    message.id = 0;
    slu_agent_control_send(peer, &message, bytes);
    return 0;
}

/*
 * Returns the region from which the peer reads a message: a copy; or the message itself if that is
 * long, or in memory that the processor cannot read.
 */
static struct sluice_mr *make_source(struct sluice_agent_peer *peer, const void *bytes,
                                     size_t length, bool *staged)
{
    *staged = length <= peer->staged && slu_is_mapped(bytes, length);
    if (*staged)
        return slu_agent_stage(peer, bytes, length);
    /* Peers have the right to read only, so nothing is written through this pointer. */
    return sluice_mr_register(peer->agent->pd, (void *)(uintptr_t)bytes, length,
                              SLUICE_ACCESS_REMOTE_READ);
}

static int send_long(struct sluice_agent_peer *peer, struct sluice_mr *source, bool staged,
                     size_t length, int64_t until)
{
    struct slu_agent_message message = {.type = SLU_AGENT_ANNOUNCE};
    /* A near peer maps the copy and reads it without our help. */
    bool serves = !staged || !peer->is_near;
    struct slu_agent_wait *wait;
    int error;

    sluice_mr_remote(source, &message.remote);
    message.remote.length = length;
    error = slu_agent_request(peer, &message, until, &wait);
    if (error < 0) {
        (void)sluice_mr_release(source, NULL, NULL);
        return error;
    }
    wait->source = source;
    peer->being_read += serves;
    error = slu_agent_wait_for(peer, wait, until);
    peer->being_read -= serves;
    if (wait->abandoned)
        return error;
    /* The peer has read the copy, or is lost: its memory may be reused. */
    if (staged) {
        slu_agent_unstage(peer, source);
        wait->source = NULL;
    }
    slu_agent_wait_end(wait);
    return error;
}

static int check_send(const struct sluice_agent_peer *peer, const void *bytes, size_t length,
                      int64_t deadline)
{
    if (bytes == NULL && length > 0)
        return slu_misuse(EINVAL, "bytes must not be NULL");
    /* hello is set: the program gets peers only once they are connected. */
    if (length > peer->hello.max_message)
        return slu_fail(E2BIG, "a message of %zu bytes: peer %s takes %llu at most", length,
                        peer->address, (unsigned long long)peer->hello.max_message);
    return slu_agent_check_time(deadline, "deadline");
}

int sluice_agent_send(struct sluice_agent_peer *peer, const void *bytes, size_t length,
                      int64_t deadline)
{
    SLU_KEEP_ERRNO;
    struct sluice_mr *source = NULL;
    int64_t until = 0;
    bool staged = false;
    int error;

    if (!slu_is_agent_peer(peer))
        return slu_not_an_agent_peer(peer);
    error = check_send(peer, bytes, length, deadline);
    if (error < 0)
        return error;
    if (length > peer->eager) {
        until = slu_after(deadline);
        source = make_source(peer, bytes, length, &staged);
        if (source == NULL)
            return -errno;
    }
    slu_agent_enter(peer->agent);
    error = source != NULL ? send_long(peer, source, staged, length, until)
                           : send_short(peer, bytes, (uint32_t)length, deadline);
    peer->agent->info.messages_sent += error == 0;
    slu_agent_leave(peer->agent);
    return error;
}

int sluice_agent_flush(struct sluice_agent_peer *peer, int64_t timeout)
{
    SLU_KEEP_ERRNO;
    int error;

    if (!slu_is_agent_peer(peer))
        return slu_not_an_agent_peer(peer);
    error = slu_agent_check_time(timeout, "timeout");
    if (error < 0)
        return error;
    slu_agent_enter(peer->agent);
    slu_agent_begin_send_wait(peer->agent);
    error = slu_agent_await(peer->agent, slu_agent_is_flushed, peer, slu_after(timeout), true);
    /* A program that flushes again after its next sleep is woken for the rest. */
    peer->flushing = !slu_agent_is_flushed(peer);
    slu_agent_count_sends(peer);
    slu_agent_end_send_wait(peer->agent);
    if (error == 0)
        error = slu_agent_peer_check(peer);
    if (error == -ETIMEDOUT)
        error = slu_fail(ETIMEDOUT, "peer %s has not taken all messages yet", peer->address);
    slu_agent_leave(peer->agent);
    return error;
}

/* Receiving. */

struct receiving {
    struct sluice_agent *agent;
    struct sluice_agent_peer *peer; /* NULL: any */
    int64_t until;
    struct sluice_agent_message *next; /* complete, or one to begin reading */
};

/* Returns the first complete message; otherwise the first long one that may be read now. */
static struct sluice_agent_message *next_of_any(const struct sluice_agent *agent)
{
    struct sluice_agent_peer *peer;

    TAILQ_FOREACH(peer, &agent->readable, readable)
    if (TAILQ_FIRST(&peer->messages)->announced == 0)
        return TAILQ_FIRST(&peer->messages);
    TAILQ_FOREACH(peer, &agent->readable, readable)
    if (slu_agent_may_read(TAILQ_FIRST(&peer->messages)))
        return TAILQ_FIRST(&peer->messages);
    return NULL;
}

static struct sluice_agent_message *next_of_peer(const struct sluice_agent_peer *peer)
{
    struct sluice_agent_message *message = TAILQ_FIRST(&peer->messages);

    if (message == NULL || message->announced == 0 || slu_agent_can_begin(message))
        return message;
    if (message->reading == NULL)
        return NULL;
    /* A caller waits for this message, so it is read without a time limit. */
    message->reading->until = SLUICE_FOREVER;
    slu_agent_unreserve(message);
    return NULL;
}

static bool has_next(void *argument)
{
    struct receiving *receiving = argument;
    const struct sluice_agent_peer *peer = receiving->peer;

    receiving->next = peer != NULL ? next_of_peer(peer) : next_of_any(receiving->agent);
    return receiving->next != NULL || (peer != NULL && peer->state == SLU_AGENT_OVER);
}

/* Returns the bytes that a message counted against its sender's max_waiting_bytes. */
static uint64_t waiting_bytes(const struct sluice_agent_message *message)
{
    return message->mr == NULL ? message->length : 0;
}

/* Hands a message to the program. */
static void take(struct sluice_agent_message *message)
{
    struct sluice_agent_peer *peer = message->peer;

    slu_agent_remove_message(peer, message);
    slu_agent_end_turn(peer);
    slu_agent_unreserve(message);
    slu_agent_received(peer, waiting_bytes(message));
}

/* Takes a complete message that the last polls brought, without a further poll. */
static bool take_at_once(struct receiving *receiving)
{
    if (!slu_agent_is_in_batch(receiving->agent) || !has_next(receiving) ||
        receiving->next == NULL || receiving->next->announced != 0)
        return false;
    take(receiving->next);
    return true;
}

/* Waits for the next complete message; reads it first if it is long. */
static int receive(struct receiving *receiving)
{
    if (take_at_once(receiving))
        return 0;
    for (;;) {
        int error = slu_agent_await(receiving->agent, has_next, receiving, receiving->until, true);

        if (error == -ETIMEDOUT)
            return slu_fail(ETIMEDOUT, "no message%s%s has arrived yet",
                            receiving->peer != NULL ? " of peer " : "",
                            receiving->peer != NULL ? receiving->peer->address : "");
        if (error < 0)
            return error;
        if (receiving->next == NULL)
            return slu_agent_peer_check(receiving->peer);
        if (receiving->next->announced == 0) {
            take(receiving->next);
            return 0;
        }
        error = slu_agent_read(receiving->next, receiving->peer == NULL);
        if (error < 0)
            return error;
    }
}

struct sluice_agent_message *sluice_agent_receive(struct sluice_agent *agent,
                                                  struct sluice_agent_peer *peer, int64_t timeout)
{
    struct receiving receiving = {.agent = agent, .peer = peer};
    int error = slu_agent_check_receive(agent, peer, timeout);

    if (error < 0)
        return slu_none(error);
    receiving.until = slu_after(timeout);
    slu_agent_enter(agent);
    error = receive(&receiving);
    agent->info.messages_arrived += error == 0;
    slu_agent_leave(agent);
    if (error < 0)
        return slu_none(error);
    slu_made();
    return receiving.next;
}

/* Messages of the program. */

static bool is_message(const struct sluice_agent_message *message)
{
    if (message != NULL && message->magic == SLU_MAGIC_AGENT_MESSAGE)
        return true;
    slu_misuse(EINVAL, "not a message, or one that was freed%s", slu_none_hint(message));
    return false;
}

void sluice_agent_message_free(struct sluice_agent_message *message)
{
    SLU_KEEP_ERRNO;
    struct sluice_agent *agent;

    if (!slu_may_end(message, SLU_MAGIC_AGENT_MESSAGE, "message of an agent"))
        return;
    agent = message->peer->agent;
    slu_agent_enter(agent);
    slu_agent_free_message(message);
    slu_agent_leave(agent);
}

void *sluice_agent_message_addr(struct sluice_agent_message *message)
{
    return is_message(message) ? message->bytes : NULL;
}

size_t sluice_agent_message_length(const struct sluice_agent_message *message)
{
    return is_message(message) ? (size_t)message->length : 0;
}

struct sluice_agent_peer *sluice_agent_message_peer(const struct sluice_agent_message *message)
{
    return is_message(message) ? message->peer : NULL;
}
