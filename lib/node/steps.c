/* SPDX-License-Identifier: MIT */
/*
 * The steps of a connection between two ranks. A failed step ends the link. The peer fails only if
 * no address of the other rank can be reached, or the other rank refuses; a link that another one
 * has replaced ends without notice.
 */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "base/descriptor.h"
#include "node/connector.h"

/* How long a dial keeps its place, and its room under a limit, while others wait for one. */
#define TURN_TIME SLUICE_S(3)
/* Attempts of a dial whose connection ends early; then the rank is wanted anew. */
#define TRIES 16

/* Jobs: the completion queue is entered. */

/* A connection of the rank with itself needs no other side. */
static int connect_self(struct slu_deferred *deferred, struct slu_link *link)
{
    int error = slu_deferred_connect(deferred, link->rank, link->serial, link->serial, &link->own);

    return error == 0 ? slu_deferred_begin(deferred, link->rank, link->serial) : error;
}

static const uint8_t *card_of(const struct slu_connector *connector, uint32_t rank)
{
    return connector->cards + (size_t)rank * SLU_CARD_BYTES;
}

static int fail_absent(const struct slu_connector *connector, const struct slu_link *link)
{
    uint32_t left = connector->gone != NULL ? connector->gone[link->rank].generation : 0;

    if (left > 0)
        return slu_fail(ECONNRESET, "it left the node in generation %u", left);
    return slu_fail(ECONNRESET, "it has not come, or not come again since its reset");
}

/* Tells whether ranks wait to be dialed. */
static bool others_wait(struct slu_connector *connector)
{
    bool others;

    pthread_mutex_lock(&connector->lock);
    others = connector->want_count > 0;
    pthread_mutex_unlock(&connector->lock);
    return others;
}

/*
 * Finds room for a link. Unless it is the first in line, it goes behind those that wait to be
 * dialed after its turn: one of these may need no room, because its connection is half made. Its
 * rank keeps its place in the line.
 */
static int find_room(struct slu_connector *connector, struct slu_link *link)
{
    int error = slu_room_find(connector, link);

    if (error == 0 || slu_room_is_first(connector, link) || slu_now() - link->began < TURN_TIME ||
        !others_wait(connector))
        return error;
    slu_room_leave(connector, link);
    connector->user.wanted(&connector->user, link->rank);
    return -ECANCELED;
}

static int make(struct slu_connector *connector, struct slu_link *link)
{
    struct slu_deferred *deferred = connector->deferred;
    bool ready = slu_deferred_state(deferred, link->rank) >= SLU_DEFERRED_READY;
    int error;

    if (ready || !slu_deferred_is_wanted(deferred, link->rank)) {
        slu_room_leave(connector, link);
        if (!ready)
            slu_deferred_quit(deferred, link->rank);
        return -ECANCELED;
    }
    error = find_room(connector, link);
    if (error < 0)
        return error;
    error = slu_deferred_make(deferred, link->rank, &link->serial, &link->own);
    if (error == 0 && link->rank == connector->rank)
        return connect_self(deferred, link);
    memcpy(link->card, card_of(connector, link->rank), sizeof link->card);
    return error == 0 && !slu_card_is_there(link->card) ? fail_absent(connector, link) : error;
}

static int check(struct slu_deferred *deferred, const struct slu_link *link)
{
    if (link->noted)
        slu_deferred_note_busy(deferred, link->rank);
    if (slu_deferred_is_made(deferred, link->rank, link->serial) &&
        slu_deferred_is_wanted(deferred, link->rank))
        return 0;
    slu_deferred_drop(deferred, link->rank, link->serial);
    return -ECANCELED;
}

/*
 * Tells whether a rank that knocks may be another process than this side knows: that of before its
 * reset, or the one that comes again. It tries again until this side has taken its card.
 */
static bool is_foreign(const struct slu_connector *connector, const struct slu_link *link)
{
    const uint8_t *card = card_of(connector, link->rank);

    return connector->open && (!slu_card_is_there(card) || slu_card_id(card) != link->id);
}

static bool has_left(const struct slu_connector *connector, const struct slu_link *link)
{
    const struct slu_gone *gone = connector->gone;

    return gone != NULL && gone[link->rank].generation > 0 && gone[link->rank].id == link->id;
}

/*
 * A rank that knocks with the endpoint that this side is connected to resumes an attempt of which
 * it does not know how far it came. With another one, it has no connection any more. If this side
 * has not noticed that, the connection fails here as well. The rank tries again until the program
 * of this side has reached it anew. It also tries again, until its deadline, while this side has no
 * memory for the connection.
 */
static int let_in(struct slu_connector *connector, struct slu_link *link)
{
    struct slu_deferred *deferred = connector->deferred;
    int error;

    if (has_left(connector, link))
        return slu_fail(ECONNRESET, "rank %u was removed from the node in generation %u",
                        link->rank, connector->gone[link->rank].generation);
    if (is_foreign(connector, link) ||
        slu_deferred_is_stale(deferred, link->rank, link->remote_serial))
        return -EBUSY;
    slu_deferred_lose(deferred, link->rank, &link->remote,
                      "the peer has ended the connection, and connects anew");
    if (slu_deferred_has_failed(deferred, link->rank) || slu_room_find(connector, link) < 0)
        return -EBUSY;
    error = slu_deferred_make(deferred, link->rank, &link->serial, &link->own);
    if (error == 0) {
        error = slu_deferred_connect(deferred, link->rank, link->serial, link->remote_serial,
                                     &link->remote);
        if (slu_is_shortage(-error))
            slu_deferred_drop(deferred, link->rank, link->serial);
    }
    return slu_is_shortage(-error) ? -EBUSY : error;
}

static int begin(struct slu_connector *connector, struct slu_link *link)
{
    int error = slu_deferred_begin(connector->deferred, link->rank, link->serial);

    if (error == 0)
        slu_room_trim(connector, link);
    return error;
}

static int do_job(struct slu_connector *connector, struct slu_link *link)
{
    struct slu_deferred *deferred = connector->deferred;

    switch (link->job) {
    case SLU_JOB_MAKE:
        return make(connector, link);
    case SLU_JOB_CHECK:
        return check(deferred, link);
    case SLU_JOB_FINISH:
        return slu_deferred_connect(deferred, link->rank, link->serial, link->remote_serial,
                                    &link->remote);
    case SLU_JOB_FAIL:
        slu_deferred_fail(deferred, link->rank, link->serial, link->text);
        return 0;
    case SLU_JOB_ACCEPT:
        return let_in(connector, link);
    case SLU_JOB_BEGIN:
        return begin(connector, link);
    case SLU_JOB_YIELD:
        return slu_room_yield(connector, link);
    case SLU_JOB_CLOSE:
        slu_deferred_close(deferred, link->rank, link->serial);
        return 0;
    case SLU_JOB_REVIVE:
        slu_deferred_revive(deferred, link->rank, link->serial);
        return 0;
    case SLU_JOB_DOUBT:
        slu_deferred_doubt(deferred, link->rank, link->serial);
        return 0;
    case SLU_JOB_STALL:
        return slu_deferred_stall(deferred, link->rank, link->serial);
    default:
        slu_deferred_drop(deferred, link->rank, link->serial);
        return 0;
    }
}

void slu_link_work(struct slu_connector *connector, struct slu_link *link)
{
    link->error = do_job(connector, link);
    if (link->error < 0 && link->error != -ECANCELED && link->error != -EBUSY &&
        link->error != -EAGAIN)
        snprintf(link->text, sizeof link->text, "%s", sluice_last_error());
}

/* The thread of the connector. */

static void answer(struct slu_connector *connector, struct slu_link *link)
{
    uint8_t body[SLU_ANSWER_BYTES];
    bool said;

    if (link->error == -EBUSY) {
        slu_negotiation_reply(link->fd, &link->session, SLU_REPLY_BUSY, NULL, 0);
        slu_link_free(connector, link);
        return;
    }
    if (link->error < 0) {
        slu_negotiation_reply(link->fd, &link->session, SLU_REPLY_REFUSED, link->text,
                              (uint32_t)strlen(link->text));
        slu_link_end(connector, link, SLU_JOB_DROP);
        return;
    }
    memcpy(slu_put(body, link->serial, 4), link->own.bytes, sizeof link->own.bytes);
    said = slu_negotiation_reply(link->fd, &link->session, SLU_REPLY_ADMITTED, body, sizeof body);
    link->check_at = slu_now() + SLU_LINK_BYTE_TIME;
    if (!said)
        slu_link_end(connector, link, SLU_JOB_DROP);
}

/*
 * Tells whether the rank is being connected by another link, which asks once more if it fails. An
 * earlier dial of another queue pair does not count, and ends when it notices that.
 */
static bool has_other(const struct slu_connector *connector, const struct slu_link *link)
{
    const struct slu_link *other;

    TAILQ_FOREACH(other, &connector->links, next)
    {
        if (other != link && other->rank == link->rank && !other->ends && !other->retires &&
            !other->waits && (!other->dials || other->serial == link->serial))
            return true;
    }
    return false;
}

static void call(struct slu_connector *connector, struct slu_link *link)
{
    if (!slu_link_call(connector, link))
        slu_link_fail(connector, link, "no memory to dial it");
}

static void made(struct slu_connector *connector, struct slu_link *link)
{
    /* The next one in line may have room as well. */
    if (link->waits && link->error != -EAGAIN)
        slu_room_freed(connector);
    link->waits = false;
    if (link->error == -EAGAIN)
        slu_link_await(link);
    else if (link->error == -ECANCELED || (link->error == 0 && has_other(connector, link)) ||
             (link->error == 0 && link->rank == connector->rank))
        slu_link_free(connector, link);
    else if (link->error < 0)
        slu_link_fail(connector, link, link->text);
    else
        call(connector, link);
}

static void finished(struct slu_connector *connector, struct slu_link *link)
{
    if (link->error == 0) {
        slu_link_send_byte(link);
    } else if (link->error == -ECANCELED) {
        slu_link_end(connector, link, SLU_JOB_DROP);
    } else {
        slu_link_fail(connector, link, link->text);
    }
}

/*
 * A link without a target begins to dial again. A rank that has not answered during its turn goes
 * behind those that wait for theirs; its queue pair stays for the next attempt, unless others wait
 * for its room.
 */
static void checked(struct slu_connector *connector, struct slu_link *link)
{
    bool over = slu_now() - link->began >= TURN_TIME;

    if (link->target == NULL) {
        call(connector, link);
    } else if (over && slu_room_is_awaited(connector)) {
        slu_link_end(connector, link, SLU_JOB_DROP);
    } else if (over && others_wait(connector)) {
        connector->user.wanted(&connector->user, link->rank);
        slu_link_free(connector, link);
    } else {
        link->check_at = slu_now() + SLU_LINK_CHECK_TIME;
    }
}

/* The listener begins first, and tells the dialer. */
static void begun(struct slu_connector *connector, struct slu_link *link)
{
    if (link->error == 0 && !link->dials)
        slu_link_send_byte(link);
    slu_link_free(connector, link);
}

void slu_link_done(struct slu_connector *connector, struct slu_link *link)
{
    enum slu_link_job job = link->job;

    link->job = SLU_JOB_NONE;
    (void)slu_link_hand_over(connector, link);
    if (job == SLU_JOB_CLOSE)
        slu_room_closed(connector, link);
    else if (link->ends)
        slu_link_free(connector, link);
    else if (job == SLU_JOB_DOUBT)
        slu_room_ask(connector, link);
    else if (job == SLU_JOB_YIELD)
        slu_room_answer(connector, link);
    else if (job == SLU_JOB_MAKE)
        made(connector, link);
    else if (job == SLU_JOB_FINISH)
        finished(connector, link);
    else if (job == SLU_JOB_ACCEPT)
        answer(connector, link);
    else if (job == SLU_JOB_CHECK && link->error == 0)
        checked(connector, link);
    else if (job == SLU_JOB_BEGIN && link->error < 0)
        slu_link_end(connector, link, SLU_JOB_DROP);
    else if (job == SLU_JOB_STALL && link->error < 0)
        slu_room_closed(connector, link);
    else if (job != SLU_JOB_STALL)
        begun(connector, link);
}

static void admitted(struct slu_connector *connector, struct slu_link *link)
{
    uint64_t serial;
    uint32_t count;
    const uint8_t *verdict = slu_target_verdict(link->target, &count);

    if (count != SLU_ANSWER_BYTES) {
        slu_link_fail(connector, link, "it sent no endpoint");
        return;
    }
    memcpy(link->remote.bytes, slu_get(verdict, &serial, 4), sizeof link->remote.bytes);
    link->remote_serial = (uint32_t)serial;
    link->fd = slu_target_take(link->target, &link->session);
    slu_link_end_target(link);
    slu_link_give(connector, link, SLU_JOB_FINISH);
}

static void refused(struct slu_connector *connector, struct slu_link *link)
{
    uint32_t count;
    const uint8_t *verdict = slu_target_verdict(link->target, &count);
    char text[120];

    if (count >= sizeof text)
        count = sizeof text - 1;
    for (uint32_t i = 0; i < count; i++)
        text[i] = (char)(verdict[i] >= ' ' && verdict[i] < 0x7f ? verdict[i] : '?');
    text[count] = '\0';
    slu_link_fail(connector, link, text);
}

static void hopeless(struct slu_connector *connector, struct slu_link *link)
{
    char text[120];

    slu_target_explain(link->target, text, sizeof text);
    slu_link_fail(connector, link, text);
}

static bool was_busy(const struct slu_target *target)
{
    bool busy = false;

    for (uint32_t i = 0; i < target->dial.count; i++)
        busy |= target->dial.attempts[i].error == EAGAIN;
    return busy;
}

void slu_link_dial(struct slu_connector *connector, struct slu_link *link, int64_t now,
                   int64_t *next)
{
    enum slu_target_state state = slu_target_wait(link->target, now);

    if (state == SLU_TARGET_ON)
        state = slu_target_tick(link->target, now, next);
    if (link->retires) {
        slu_room_dialed(connector, link, state, now, next);
    } else if (state == SLU_TARGET_ADMITTED) {
        admitted(connector, link);
    } else if (state == SLU_TARGET_REFUSED) {
        refused(connector, link);
    } else if (state == SLU_TARGET_HOPELESS) {
        hopeless(connector, link);
    } else if (now >= link->check_at || (!link->noted && was_busy(link->target))) {
        link->noted |= was_busy(link->target);
        slu_link_give(connector, link, SLU_JOB_CHECK);
    } else if (link->check_at < *next) {
        *next = link->check_at;
    }
}

/*
 * The connection over which the ranks met ended early. The dialer tries again, because the listener
 * may have begun or not.
 */
static void hear_no_more(struct slu_connector *connector, struct slu_link *link)
{
    if (!link->dials || ++link->tries == TRIES) {
        slu_link_end(connector, link, SLU_JOB_DROP);
        return;
    }
    slu_fd_close(link->fd);
    link->fd = -1;
    slu_link_give(connector, link, SLU_JOB_CHECK);
}

void slu_link_hear(struct slu_connector *connector, struct slu_link *link, int64_t now,
                   int64_t *next)
{
    uint8_t byte;
    ssize_t got = recv(link->fd, &byte, 1, MSG_DONTWAIT);

    if (got == 1)
        slu_link_give(connector, link, link->retires ? SLU_JOB_CLOSE : SLU_JOB_BEGIN);
    else if (got == 0 || (errno != EAGAIN && errno != EINTR) || now >= link->check_at)
        link->retires ? slu_room_doubt(connector, link) : hear_no_more(connector, link);
    else
        *next = slu_earlier(*next, link->check_at);
}
