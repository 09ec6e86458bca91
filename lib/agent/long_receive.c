/* SPDX-License-Identifier: MIT */
/*
 * Long messages: each is read from its sender piece by piece, beside the agent's other work.
 * Guarantees: a read goes on whether or not a caller waits for it. After a reset of the data queue
 * pair it resumes where it was. The memory of a read is released once no piece is in flight. The
 * sender is answered exactly once.
 *
 * Only the next message of a peer is read. A receive from any peer begins reads from several
 * peers, as long as these together take no more than max_message. A peer without a connected
 * data queue pair gives its room to others.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/agent.h"

#define PIECE (UINT64_C(4) << 20)
/* For receives from any peer: a message may take READ_TIME and a second for each READ_RATE bytes.
   The same holds for a piece together with those in flight before it. */
#define READ_TIME SLUICE_S(5)
#define READ_RATE (UINT64_C(4) << 20)
/* How long a failed read waits before a retry. */
#define PAUSE SLUICE_MS(100)

static int64_t time_for(uint64_t bytes)
{
    uint64_t seconds = bytes / READ_RATE;

    return seconds < INT32_MAX ? slu_after(READ_TIME + (int64_t)seconds * SLUICE_S(1))
                               : SLUICE_FOREVER;
}

/* Gives up the memory of a read, with what was read; nothing is in flight. */
static void give_memory_up(struct sluice_agent_message *message)
{
    struct slu_agent_long_receive *reading = message->reading;

    if (reading->mr != NULL)
        slu_agent_keep_spare(message->peer->agent, reading->mr);
    reading->mr = NULL;
    slu_agent_unreserve(message);
}

static void end_reading(struct sluice_agent_message *message)
{
    if (message->reading == NULL)
        return;
    give_memory_up(message);
    free(message->reading);
    message->reading = NULL;
}

static bool is_in_flight(const struct sluice_agent_message *message)
{
    return message->reading != NULL &&
           (message->reading->making || message->reading->in_flight > 0);
}

/* Messages that end without being received. */

/* Frees a message and answers its sender if that waits for it; the send may lose the peer. */
static void finish_drop(struct sluice_agent_message *message)
{
    struct sluice_agent_peer *peer = message->peer;
    bool answer = message->withdrawn || (message->reading != NULL && message->reading->gone);
    uint64_t id = message->announced;

    slu_agent_peer_hold(peer);
    end_reading(message);
    slu_agent_free_message(message);
    if (answer && peer->state != SLU_AGENT_OVER) {
        slu_agent_received(peer, 0);
        slu_agent_queue_answer(peer, id, SLU_AGENT_CANCELLED);
    }
    slu_agent_peer_drop(peer);
}

void slu_agent_limit_read(struct sluice_agent_message *message)
{
    struct slu_agent_long_receive *reading = message->reading;

    if (reading->bound == 0)
        reading->bound = time_for(reading->posted - reading->done);
    slu_agent_touch(message->peer);
}

void slu_agent_drop_message(struct sluice_agent_message *message)
{
    if (!is_in_flight(message)) {
        finish_drop(message);
        return;
    }
    message->dropped = true;
    slu_agent_limit_read(message);
    TAILQ_INSERT_TAIL(&message->peer->dropped, message, links);
}

bool slu_agent_end_dropped(struct sluice_agent_peer *peer)
{
    struct sluice_agent_message *message;
    bool some = false;

    do {
        TAILQ_FOREACH(message, &peer->dropped, links)
        if (!is_in_flight(message))
            break;
        if (message != NULL) {
            TAILQ_REMOVE(&peer->dropped, message, links);
            finish_drop(message);
            some = true;
        }
    } while (message != NULL);
    /* The peer's next message may be read now. */
    if (some)
        slu_agent_notify_room(peer->agent);
    return some;
}

/* Returns whether the bound of the pieces in flight has passed; otherwise sets its due time. */
static bool is_over(const struct sluice_agent_message *message)
{
    if (message == NULL || message->reading == NULL || message->reading->in_flight == 0 ||
        message->reading->bound == 0)
        return false;
    if (slu_now() >= message->reading->bound)
        return true;
    slu_agent_due(message->peer->agent, message->reading->bound);
    return false;
}

/* Resets the data queue pair if its pieces are overdue, which ends them. */
static bool end_overdue(struct sluice_agent_peer *peer)
{
    return (is_over(TAILQ_FIRST(&peer->dropped)) || is_over(TAILQ_FIRST(&peer->messages))) &&
           slu_agent_data_end(peer);
}

/* Room for messages that are read for receives from any peer. */

/* Returns whether a message reserves room though it cannot be read now. */
static bool is_stalled(const struct sluice_agent_message *message)
{
    return message->reserved > 0 && !is_in_flight(message) &&
           message->peer->data.state != SLU_AGENT_DATA_READY;
}

static uint64_t stalled_bytes(const struct sluice_agent *agent)
{
    const struct sluice_agent_peer *peer;
    uint64_t bytes = 0;

    TAILQ_FOREACH(peer, &agent->readable, readable)
    if (is_stalled(TAILQ_FIRST(&peer->messages)))
        bytes += TAILQ_FIRST(&peer->messages)->reserved;
    return bytes;
}

static bool fits(const struct sluice_agent *agent, uint64_t length, uint64_t stalled)
{
    uint64_t others = agent->reading_bytes - stalled;

    return others == 0 || others + length <= agent->attr.max_message;
}

bool slu_agent_can_begin(const struct sluice_agent_message *message)
{
    return (message->reading == NULL || message->reading->error != 0) &&
           TAILQ_EMPTY(&message->peer->dropped);
}

bool slu_agent_may_read(const struct sluice_agent_message *message)
{
    const struct sluice_agent *agent = message->peer->agent;

    return message->announced != 0 && slu_agent_can_begin(message) &&
           message->peer->data.state == SLU_AGENT_DATA_READY && slu_now() >= message->earliest &&
           (fits(agent, message->length, 0) || fits(agent, message->length, stalled_bytes(agent)));
}

static void make_room(struct sluice_agent *agent, uint64_t length)
{
    struct sluice_agent_peer *peer, *next;

    if (fits(agent, length, 0))
        return;
    for (peer = TAILQ_FIRST(&agent->readable); peer != NULL; peer = next) {
        next = TAILQ_NEXT(peer, readable);
        if (!is_stalled(TAILQ_FIRST(&peer->messages)))
            continue;
        end_reading(TAILQ_FIRST(&peer->messages));
        slu_agent_end_turn(peer);
    }
}

/* Beginning. */

static int return_failure(struct sluice_agent_message *message)
{
    int error = slu_fail(-message->reading->error, "%s", message->reading->text);

    end_reading(message);
    return error;
}

/* Takes spare memory. It may be longer than the message; all of it counts as reserved. */
static struct sluice_mr *take_memory(struct sluice_agent_message *message)
{
    struct sluice_agent *agent = message->peer->agent;
    uint64_t others = agent->reading_bytes - message->reserved;
    uint64_t room = others < agent->attr.max_message ? agent->attr.max_message - others : 0;
    struct sluice_mr *mr =
        slu_agent_take_spare(agent, message->length, message->reserved > 0 ? room : UINT64_MAX);

    if (mr != NULL && message->reserved > 0) {
        agent->reading_bytes += sluice_mr_length(mr) - message->reserved;
        message->reserved = sluice_mr_length(mr);
    }
    return mr;
}

static int make_memory(struct sluice_agent_message *message)
{
    struct sluice_agent *agent = message->peer->agent;
    struct sluice_mr *mr;
    int error;

    message->reading->mr = take_memory(message);
    if (message->reading->mr != NULL)
        return 0;
    message->reading->making = true;
    slu_agent_arm_for_sleeper(agent);
    pthread_mutex_unlock(&agent->lock);
    mr = sluice_mr_alloc(agent->pd, (size_t)message->length, SLUICE_ACCESS_LOCAL_WRITE);
    error = mr == NULL ? -errno : 0;
    pthread_mutex_lock(&agent->lock);
    message->reading->making = false;
    message->reading->mr = mr;
    return error;
}

/* Lets other messages be received first. This one is tried again after PAUSE. */
static void pause_read(struct sluice_agent_message *message)
{
    message->earliest = slu_after(PAUSE);
    slu_agent_due(message->peer->agent, message->earliest);
    slu_agent_end_turn(message->peer);
}

int slu_agent_read(struct sluice_agent_message *message, bool of_any)
{
    struct sluice_agent_peer *peer = message->peer;
    int error;

    if (message->reading != NULL && !of_any)
        return return_failure(message);
    end_reading(message);
    message->reading = calloc(1, sizeof *message->reading);
    if (message->reading == NULL)
        return slu_fail(ENOMEM, "no memory to read a message of peer %s", peer->address);
    message->reading->until = of_any ? time_for(message->length) : SLUICE_FOREVER;
    if (of_any) {
        make_room(peer->agent, message->length);
        peer->agent->reading_bytes += message->length;
        message->reserved = message->length;
    }
    slu_agent_peer_hold(peer);
    error = make_memory(message);
    if (message->dropped) {
        /* The message was dropped meanwhile; the caller's wait finds the next one. */
        error = 0;
        slu_agent_end_dropped(peer);
    } else if (error < 0) {
        end_reading(message);
        pause_read(message);
        slu_agent_notify(peer->agent);
        if (of_any && message->complained)
            error = 0;
        message->complained |= of_any;
    }
    slu_agent_touch(peer);
    slu_agent_peer_drop(peer);
    return error;
}

/* Reading. */

static void note_failure(struct sluice_agent_peer *peer, struct slu_agent_long_receive *reading,
                         const struct sluice_completion *completion)
{
    reading->broken = true;
    if (completion->status == SLUICE_STATUS_DEADLINE) {
        reading->late = true;
    } else if (completion->error_class == SLUICE_CLASS_ACCESS) {
        reading->gone = true;
    } else if (completion->error_class != SLUICE_CLASS_CANCELLED &&
               completion->error_class != SLUICE_CLASS_PEER_LOST && reading->failure == 0) {
        reading->failure = completion->error;
        slu_agent_explain(peer, completion, reading->text, sizeof reading->text);
    }
}

static void end_piece(struct sluice_agent_peer *peer, struct slu_agent_posted *posted,
                      const struct sluice_completion *completion)
{
    struct slu_agent_piece *piece = (struct slu_agent_piece *)posted;
    struct slu_agent_long_receive *reading = piece->message->reading;

    if (completion->error == 0)
        reading->done += piece->length;
    else
        note_failure(peer, reading, completion);
    reading->in_flight--;
    piece->message = NULL;
}

static struct slu_agent_piece *free_piece(struct slu_agent_long_receive *reading)
{
    for (uint32_t i = 0; i < SLU_AGENT_PIECES; i++)
        if (reading->pieces[i].message == NULL)
            return &reading->pieces[i];
    return NULL;
}

/* Posts the next piece. Returns as slu_agent_post(). */
static int post_piece(struct sluice_agent_message *message, struct slu_agent_piece *piece)
{
    struct slu_agent_long_receive *reading = message->reading;
    uint64_t left = message->length - reading->posted, length = left < PIECE ? left : PIECE;
    struct sluice_request request = {.opcode = SLUICE_OP_READ,
                                     .sge_count = 1,
                                     .remote = {.addr = message->remote.addr + reading->posted,
                                                .length = length,
                                                .rkey = message->remote.rkey}};
    int64_t until = time_for(reading->posted + length - reading->done);
    int posted = sluice_mr_sge(reading->mr, (size_t)reading->posted, (size_t)length, &request.sge);

    if (posted < 0)
        return posted;
    if (reading->until == SLUICE_FOREVER || reading->until < until)
        until = reading->until;
    *piece = (struct slu_agent_piece){.posted = {.ended = end_piece}, .length = length};
    posted = slu_agent_post(message->peer, &piece->posted, &request, until);
    if (posted != 1)
        return posted;
    piece->message = message;
    reading->in_flight++;
    reading->posted += length;
    return 1;
}

/* Posts as many pieces as possible. Returns whether any was posted. */
static bool post_pieces(struct sluice_agent_message *message)
{
    struct slu_agent_long_receive *reading = message->reading;
    uint64_t before = reading->posted;
    struct slu_agent_piece *piece;
    int posted = 1;

    while (posted == 1 && reading->posted < message->length &&
           (piece = free_piece(reading)) != NULL)
        posted = post_piece(message, piece);
    if (posted >= 0)
        return reading->posted != before;
    reading->broken = true;
    reading->late = posted == -ETIMEDOUT;
    if (!reading->late && reading->failure == 0) {
        reading->failure = posted;
        snprintf(reading->text, sizeof reading->text, "peer %s: a message cannot be read: %.200s",
                 message->peer->address, sluice_last_error());
    }
    return reading->posted != before;
}

/* Completes a message of which all is read, and lets its sender free it. */
static void make_whole(struct sluice_agent_message *message)
{
    struct sluice_agent_peer *peer = message->peer;
    uint64_t id = message->announced;

    message->mr = message->reading->mr;
    message->bytes = sluice_mr_addr(message->mr);
    message->announced = 0;
    free(message->reading);
    message->reading = NULL;
    peer->agent->news = true;
    slu_agent_queue_answer(peer, id, SLU_AGENT_OK);
}

/* Handles a broken read once nothing is in flight. Returns true if it goes on from done. */
static bool resume(struct sluice_agent_message *message)
{
    struct slu_agent_long_receive *reading = message->reading;
    struct sluice_agent_peer *peer = message->peer;

    if (reading->gone || message->withdrawn) {
        slu_agent_remove_message(peer, message);
        slu_agent_drop_message(message);
        return false;
    }
    /* A receive from this peer waits for it by now: there is no time limit any more. */
    if (reading->until == SLUICE_FOREVER)
        reading->late = false;
    if (reading->late || reading->failure != 0) {
        pause_read(message);
        peer->agent->news = true;
        give_memory_up(message);
        reading->error = reading->failure;
        if (reading->error == 0)
            end_reading(message);
        return false;
    }
    reading->broken = false;
    reading->posted = reading->done;
    return true;
}

/* Ends the pause of a failed read. While it lasts, keeps its end as a due time. */
static bool end_pause(struct sluice_agent_message *message)
{
    struct sluice_agent *agent = message->peer->agent;

    if (message->earliest == 0)
        return false;
    if (slu_now() < message->earliest) {
        slu_agent_due(agent, message->earliest);
        return false;
    }
    message->earliest = 0;
    agent->news = true;
    return true;
}

bool slu_agent_continue_reads(struct sluice_agent_peer *peer)
{
    struct sluice_agent_message *message;
    struct slu_agent_long_receive *reading;
    bool some = slu_agent_end_dropped(peer);

    if (peer->state == SLU_AGENT_OPEN && end_overdue(peer))
        some |= slu_agent_end_dropped(peer);
    message = peer->state == SLU_AGENT_OPEN ? TAILQ_FIRST(&peer->messages) : NULL;
    reading = message != NULL ? message->reading : NULL;
    if (reading == NULL || reading->error != 0)
        return (message != NULL && end_pause(message)) || some;
    if (reading->making)
        return some;
    /* A piece that is read from memory of this host is complete as soon as it is posted. */
    if (!reading->broken && post_pieces(message))
        (void)slu_agent_data_poll(peer);
    if (reading->in_flight > 0)
        return some;
    if (reading->done == message->length) {
        make_whole(message);
        return true;
    }
    if (!reading->broken)
        return some;
    if (resume(message))
        (void)post_pieces(message);
    return true;
}

void slu_agent_handle_withdraw(struct sluice_agent_peer *peer,
                               const struct slu_agent_message *heard)
{
    struct sluice_agent_message *message;
    const struct slu_agent_long_receive *reading;

    TAILQ_FOREACH(message, &peer->messages, links)
    if (message->announced == heard->id)
        break;
    if (message == NULL)
        return;
    message->withdrawn = true;
    reading = message->reading;
    /* All of the rest is in flight already: let it complete. */
    if (reading != NULL && reading->in_flight > 0 && !reading->broken &&
        reading->posted == message->length) {
        slu_agent_limit_read(message);
        return;
    }
    slu_agent_remove_message(peer, message);
    slu_agent_drop_message(message);
}

void slu_agent_end_messages(struct sluice_agent_peer *peer, bool all)
{
    struct sluice_agent_message *message, *next;

    for (message = TAILQ_FIRST(&peer->messages); message != NULL; message = next) {
        next = TAILQ_NEXT(message, links);
        if (!all && message->announced == 0)
            continue;
        slu_agent_remove_message(peer, message);
        slu_agent_drop_message(message);
    }
}
