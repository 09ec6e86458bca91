/* SPDX-License-Identifier: MIT */
/*
 * The limit of connections of a lazy node. If a new one needs room, the idle one that was not used
 * for longest is retired: requests to its rank are kept, and a dial asks that rank to yield. If it
 * is idle there as well, that rank retires it, too, and says so. Then this side closes it and sends
 * a byte, upon which the other one does. If the byte does not come, that side asks in its turn. The
 * new connection waits meanwhile. A rank that knocks while there is no room is told to try again.
 *
 * So a side closes a connection only if the other one has retired or closed it, and one that has
 * said so goes on with it only if the other one refuses to yield.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "base/descriptor.h"
#include "node/connector.h"

/* The shortest and the longest pause until a link looks for room again. */
#define PAUSE_TIME SLUICE_MS(1)
#define LONGEST_PAUSE SLUICE_MS(64)
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

void slu_room_leave(struct slu_connector *connector, struct slu_link *link)
{
    if (link->counted)
        slu_deferred_wait(connector->deferred, link->rank, false);
    link->counted = false;
}

int slu_room_find(struct slu_connector *connector, struct slu_link *link)
{
    if (!slu_deferred_has_room(connector->deferred, link->rank, !link->dials)) {
        if (link->dials && !link->counted) {
            slu_deferred_wait(connector->deferred, link->rank, true);
            link->counted = true;
        }
        retire(connector, link, link->dials ? 0 : 1);
    }
    if (!slu_deferred_has_room(connector->deferred, link->rank, !link->dials))
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

/* Has the victim closed by a link of its own, if one can be made. Else it is tried again later. */
static void close_victim(struct slu_connector *connector, struct slu_link *link)
{
    struct slu_victim *victim = &link->victim;
    struct slu_link *closing;

    if (!victim->there || connector->dials >= 2 * SLU_DIALS_MOST)
        return;
    closing = slu_link_create(connector, victim->rank, true);
    if (closing == NULL)
        return;
    closing->retires = true;
    closing->serial = victim->serial;
    closing->endpoint = victim->endpoint;
    memcpy(closing->card, victim->card, sizeof closing->card);
    victim->there = false;
    slu_link_call(connector, closing);
}

void slu_room_await(struct slu_connector *connector, struct slu_link *link)
{
    link->waits = true;
    link->pause = link->pause == 0 ? PAUSE_TIME
                                   : (link->pause < LONGEST_PAUSE ? 2 * link->pause : link->pause);
    link->check_at = slu_now() + link->pause;
    close_victim(connector, link);
}

void slu_room_finish(struct slu_connector *connector, struct slu_link *link)
{
    close_victim(connector, link);
    if (!link->victim.there) {
        slu_link_free(connector, link);
        return;
    }
    if (link->fd >= 0)
        slu_fd_close(link->fd);
    link->fd = -1;
    link->spent = true;
    slu_room_await(connector, link);
}

void slu_room_tick(struct slu_connector *connector, struct slu_link *link, int64_t now,
                   int64_t *next)
{
    if (now < link->check_at)
        *next = slu_earlier(*next, link->check_at);
    else if (link->spent)
        slu_room_finish(connector, link);
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
               now >= link->began + YIELD_TIME) {
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
    slu_room_finish(connector, link);
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
