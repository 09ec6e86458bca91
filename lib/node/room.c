/* SPDX-License-Identifier: MIT */
/*
 * The limit of connections of a lazy node. If a new one needs room, the idle one that was not used
 * for longest is retired: requests to its rank are kept, and a dial asks that rank to yield. If it
 * is idle there as well, that rank retires it, too, and says so. Then this side closes it and sends
 * a byte, upon which the other one does. If the byte does not come, that side asks in its turn. The
 * new connection waits meanwhile. A rank that knocks while there is no room is told to try again.
 *
 * So a side closes a connection only if the other one has retired or closed it, and one that has
 * said so goes on with it only if the other one refuses to yield. Until then it asks, however long
 * that takes: the other one may be stopped, and close the connection when it continues.
 *
 * A dial that is not answered holds room as well. After its turn it gives that to one that waits.
 * Ranks get room in the order in which they began to wait for it; README.md says why none starves.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "base/descriptor.h"
#include "node/connector.h"

/* How often a rank that does not answer is noted, and how long it is asked to yield. */
#define STALL_TIME SLUICE_S(1)
#define YIELD_TIME SLUICE_S(10)

/* Jobs: the completion queue is entered. */

static void retire(struct slu_connector *connector, struct slu_link *link, uint32_t more)
{
    struct slu_victim *victim = &link->victim;

    while (!victim->there && slu_deferred_retire(connector->deferred, more, &victim->rank,
                                                 &victim->serial, &victim->endpoint)) {
        victim->there = victim->rank != connector->rank;
        memcpy(victim->card, connector->cards + (size_t)victim->rank * SLU_CARD_BYTES,
               sizeof victim->card);
        /* A connection of the rank with itself has no other side to ask. */
        if (!victim->there)
            slu_deferred_close(connector->deferred, victim->rank, victim->serial);
    }
}

/* A connection that exists needs no room. */
static bool needs_room(const struct slu_connector *connector, const struct slu_link *link)
{
    return slu_deferred_is_limited(connector->deferred) &&
           slu_deferred_state(connector->deferred, link->rank) < SLU_DEFERRED_MADE;
}

/* Lines up a link behind all that began to wait for room before it. */
static void line_up(struct slu_connector *connector, struct slu_link *link)
{
    struct slu_link *next;

    if (link->counted)
        return;
    link->counted = true;
    link->place = slu_deferred_wait(connector->deferred, link->rank);
    TAILQ_FOREACH(next, &connector->line, lined)
    {
        if (next->place > link->place)
            break;
    }
    if (next != NULL)
        TAILQ_INSERT_BEFORE(next, link, lined);
    else
        TAILQ_INSERT_TAIL(&connector->line, link, lined);
}

void slu_room_leave(struct slu_connector *connector, struct slu_link *link)
{
    if (!link->counted)
        return;
    link->counted = false;
    TAILQ_REMOVE(&connector->line, link, lined);
    slu_deferred_wait_no_more(connector->deferred);
}

bool slu_room_is_first(const struct slu_connector *connector, const struct slu_link *link)
{
    return TAILQ_FIRST(&connector->line) == link;
}

/*
 * The rank that is first in line has free room before all others. A rank that knocks may also have
 * that of a dial.
 */
static bool has_room(const struct slu_connector *connector, const struct slu_link *link)
{
    const struct slu_deferred *deferred = connector->deferred;
    const struct slu_link *first = TAILQ_FIRST(&connector->line);

    if (first != NULL && first->rank != link->rank && needs_room(connector, link) &&
        (link->dials || slu_deferred_has_room(deferred, link->rank, false)))
        return false;
    return slu_deferred_has_room(deferred, link->rank, !link->dials);
}

int slu_room_find(struct slu_connector *connector, struct slu_link *link)
{
    if (link->dials && needs_room(connector, link))
        line_up(connector, link);
    if (!has_room(connector, link))
        retire(connector, link, link->dials ? 0 : 1);
    if (!has_room(connector, link))
        return -EAGAIN;
    slu_room_leave(connector, link);
    return 0;
}

/* The victim is asked about if the other side does not confirm. */
int slu_room_yield(struct slu_connector *connector, struct slu_link *link)
{
    struct slu_victim *victim = &link->victim;

    victim->rank = link->rank;
    memcpy(victim->card, connector->cards + (size_t)link->rank * SLU_CARD_BYTES,
           sizeof victim->card);
    return slu_deferred_yield(connector->deferred, link->rank, link->endpoint, &victim->serial,
                              &victim->endpoint);
}

void slu_room_trim(struct slu_connector *connector, struct slu_link *link)
{
    retire(connector, link, 0);
}

/* The thread of the connector. */

bool slu_room_is_awaited(const struct slu_connector *connector)
{
    const struct slu_link *link;

    TAILQ_FOREACH(link, &connector->links, next)
    {
        if (link->waits && !link->spent)
            return true;
    }
    return false;
}

/* The closing of its victim is behind the last link, and begins in a round of its own. */
static void end_spent(struct slu_connector *connector, struct slu_link *link, int64_t now,
                      int64_t *next)
{
    slu_link_free(connector, link);
    *next = now;
}

void slu_room_tick(struct slu_connector *connector, struct slu_link *link, int64_t now,
                   int64_t *next)
{
    if (now < link->check_at)
        *next = slu_earlier(*next, link->check_at);
    else if (link->spent)
        end_spent(connector, link, now, next);
    else
        slu_link_give(connector, link, SLU_JOB_MAKE);
}

/* Where nothing listens any more, there is no other end. */
static bool is_gone(const struct slu_target *target)
{
    char text[8];

    return slu_target_explain(target, text, sizeof text) == -ECONNREFUSED;
}

void slu_room_dialed(struct slu_connector *connector, struct slu_link *link,
                     enum slu_target_state state, int64_t now, int64_t *next)
{
    if (state == SLU_TARGET_ADMITTED) {
        link->fd = slu_target_take(link->target, &link->session);
        slu_link_give(connector, link, SLU_JOB_CLOSE);
    } else if (state == SLU_TARGET_HOPELESS && is_gone(link->target)) {
        slu_link_give(connector, link, SLU_JOB_CLOSE);
    } else if (state == SLU_TARGET_REFUSED || state == SLU_TARGET_HOPELESS ||
               (now >= link->began + YIELD_TIME && !link->promised)) {
        slu_link_end(connector, link, SLU_JOB_REVIVE);
    } else if (now >= link->check_at) {
        link->check_at = now + STALL_TIME;
        slu_link_give(connector, link, SLU_JOB_STALL);
    } else {
        *next = slu_earlier(*next, link->check_at);
    }
}

void slu_room_answer(struct slu_connector *connector, struct slu_link *link)
{
    static const char used[] = "the connection is in use";
    bool yields = link->error >= 0;
    bool said = slu_negotiation_reply(link->fd, &link->session,
                                      yields ? SLU_REPLY_ADMITTED : SLU_REPLY_REFUSED,
                                      yields ? NULL : used, yields ? 0 : sizeof used - 1);

    link->serial = link->victim.serial;
    link->check_at = slu_now() + STALL_TIME;
    if (link->error != 1)
        slu_link_free(connector, link);
    else if (!said)
        slu_room_doubt(connector, link);
}

void slu_room_doubt(struct slu_connector *connector, struct slu_link *link)
{
    slu_link_give(connector, link, SLU_JOB_DOUBT);
}

void slu_room_ask(struct slu_connector *connector, struct slu_link *link)
{
    link->victim.there = true;
    slu_link_free(connector, link);
}

void slu_room_closed(struct slu_connector *connector, struct slu_link *link)
{
    if (link->dials && link->fd >= 0)
        slu_link_send_byte(link);
    slu_link_free(connector, link);
    slu_room_freed(connector);
}

void slu_room_freed(struct slu_connector *connector)
{
    struct slu_link *link;

    TAILQ_FOREACH(link, &connector->links, next)
    {
        if (link->waits && link->job == SLU_JOB_NONE)
            link->check_at = 0;
    }
}
