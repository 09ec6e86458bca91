/* SPDX-License-Identifier: MIT */
/*
 * Closing connections that are idle. Guarantee: a connection ends only while neither end has a
 * request in flight or a receive posted on it, so nothing is lost, and the engine's queue pair,
 * which keeps what is posted meanwhile, does not fail.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "transport/deferred/inside.h"

void slu_deferred_limit(struct slu_deferred *deferred, uint32_t most)
{
    deferred->most = most;
}

bool slu_deferred_is_limited(const struct slu_deferred *deferred)
{
    return deferred->most > 0;
}

bool slu_deferred_has_room(const struct slu_deferred *deferred, uint32_t peer, bool begun_by_peer)
{
    const struct deferred_slot *slot = &deferred->slots[peer];
    uint32_t reals = begun_by_peer ? deferred->reals - deferred->made : deferred->reals;

    return deferred->most == 0 || slot->real != NULL || reals < deferred->most;
}

uint64_t slu_deferred_wait(struct slu_deferred *deferred, uint32_t peer)
{
    struct deferred_slot *slot = &deferred->slots[peer];

    deferred->waiting++;
    if ((slot->flags & DEFERRED_NO_ROOM) == 0)
        slot->used = ++deferred->uses;
    slot->flags |= DEFERRED_NO_ROOM;
    return slot->used;
}

void slu_deferred_wait_no_more(struct slu_deferred *deferred)
{
    deferred->waiting--;
}

void slu_deferred_note_busy(struct slu_deferred *deferred, uint32_t peer)
{
    deferred->slots[peer].flags |= DEFERRED_BUSY;
}

static bool is_idle(const struct slu_deferred *deferred, uint32_t peer)
{
    const struct deferred_slot *slot = &deferred->slots[peer];
    const struct deferred_qp *qp = slot->qp;

    return slot->state == SLU_DEFERRED_READY &&
           (qp == NULL ||
            (!qp->failed && qp->last_send == 0 && qp->last_receive == 0 && qp->last_probe == 0));
}

static void note_end(struct deferred_qp *qp, uint64_t id)
{
    if (qp->last_send == id)
        qp->last_send = 0;
    if (qp->last_receive == id)
        qp->last_receive = 0;
    if (qp->last_probe == id)
        qp->last_probe = 0;
}

void slu_deferred_note_ends(struct slu_deferred *deferred, const struct slu_wc *wcs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        bool receives;
        uint32_t peer = deferred->user->peer_of(deferred->user, wcs[i].id, &receives);

        if (peer >= deferred->count)
            continue;
        if (receives && wcs[i].status == SLUICE_STATUS_SUCCESS)
            deferred->slots[peer].taken++;
        if (deferred->slots[peer].qp != NULL)
            note_end(deferred->slots[peer].qp, wcs[i].id);
    }
}

#define ASIDE_MORE 64 /* completions at a time */

static bool make_room_aside(struct slu_deferred *deferred)
{
    uint32_t room = 2 * deferred->aside_room + ASIDE_MORE;
    struct slu_wc *larger;

    if (deferred->aside_room - deferred->aside_count >= ASIDE_MORE)
        return true;
    larger = realloc(deferred->set_aside, room * sizeof *larger);
    if (larger == NULL)
        return false;
    deferred->set_aside = larger;
    deferred->aside_room = room;
    return true;
}

/* Without memory, the completions stay in the queue. */
static void set_aside(struct slu_deferred *deferred)
{
    int got = ASIDE_MORE;

    while (got == ASIDE_MORE && make_room_aside(deferred)) {
        struct slu_wc *end = &deferred->set_aside[deferred->aside_count];

        got = deferred->inner->cq_poll(deferred->cq, end, ASIDE_MORE);
        if (got <= 0)
            return;
        slu_deferred_note_ends(deferred, end, (uint32_t)got);
        deferred->aside_count += (uint32_t)got;
    }
}

uint32_t slu_deferred_take_aside(struct slu_deferred *deferred, struct slu_wc *wcs, uint32_t count)
{
    uint32_t left = deferred->aside_count - deferred->aside_first;

    if (count > left)
        count = left;
    memcpy(wcs, deferred->set_aside + deferred->aside_first, count * sizeof *wcs);
    deferred->aside_first += count;
    if (count == left)
        deferred->aside_first = deferred->aside_count = 0;
    return count;
}

static uint64_t used_at(const struct deferred_slot *slot)
{
    return slot->qp != NULL && slot->qp->used > slot->used ? slot->qp->used : slot->used;
}

/* Returns the number of peers if none is idle. */
static uint32_t find_oldest(const struct slu_deferred *deferred)
{
    uint32_t oldest = deferred->count;

    for (uint32_t i = 0; i < deferred->count; i++)
        if (is_idle(deferred, i) &&
            (oldest == deferred->count ||
             used_at(&deferred->slots[i]) < used_at(&deferred->slots[oldest])))
            oldest = i;
    return oldest;
}

static void retire(struct slu_deferred *deferred, struct deferred_slot *slot)
{
    slot->state = SLU_DEFERRED_RETIRING;
    deferred->retiring++;
    if (slot->qp != NULL)
        slot->qp->real = NULL;
}

/* There is no other end to ask. Only the engine knows whether a failed connection is drained. */
void slu_deferred_close_failed(struct slu_deferred *deferred)
{
    for (uint32_t i = 0; i < deferred->count; i++) {
        struct deferred_slot *slot = &deferred->slots[i];

        if (slot->qp != NULL && slot->qp->failed && slot->state == SLU_DEFERRED_READY &&
            deferred->user->idle(deferred->user, i)) {
            slot->qp->real = NULL;
            slu_deferred_end(deferred, slot);
        }
    }
}

/*
 * Ends connections that the engine does not use, and whose peer died before it had begun with them.
 * It would have gone on with them. Returns whether there was one.
 */
static bool end_dead(struct slu_deferred *deferred)
{
    bool ended = false;

    for (uint32_t i = 0; i < deferred->count; i++) {
        struct deferred_slot *slot = &deferred->slots[i];

        if (slot->qp != NULL || slot->state != SLU_DEFERRED_CONNECTED ||
            deferred->inner->qp_state(slot->real) != SLU_QP_ERROR)
            continue;
        slu_deferred_end(deferred, slot);
        ended = true;
    }
    return ended;
}

bool slu_deferred_retire(struct slu_deferred *deferred, uint32_t more, uint32_t *peer,
                         uint32_t *serial, uint32_t *endpoint)
{
    uint32_t others = deferred->waiting + more;
    struct deferred_slot *slot;

    if (deferred->most == 0 || deferred->reals + others <= deferred->most + deferred->retiring)
        return false;
    set_aside(deferred);
    if (end_dead(deferred))
        return false;
    *peer = find_oldest(deferred);
    if (*peer == deferred->count)
        return false;
    slot = &deferred->slots[*peer];
    retire(deferred, slot);
    *serial = slot->serial;
    *endpoint = slot->local;
    return true;
}

/* Returns the slot, or NULL if this connection is not retired any more. */
static struct deferred_slot *find_retiring(struct slu_deferred *deferred, uint32_t peer,
                                           uint32_t serial)
{
    struct deferred_slot *slot = &deferred->slots[peer];

    return slot->state == SLU_DEFERRED_RETIRING && slot->serial == (uint16_t)serial ? slot : NULL;
}

void slu_deferred_close(struct slu_deferred *deferred, uint32_t peer, uint32_t serial)
{
    struct deferred_slot *slot = find_retiring(deferred, peer, serial);

    if (slot == NULL)
        return;
    slu_deferred_end(deferred, slot);
    slu_deferred_want_kept(slot);
}

void slu_deferred_revive(struct slu_deferred *deferred, uint32_t peer, uint32_t serial)
{
    struct deferred_slot *slot = find_retiring(deferred, peer, serial);

    if (slot == NULL || slot->promises > 0)
        return;
    deferred->retiring -= (slot->flags & DEFERRED_STALLED) == 0;
    slot->flags &= (uint8_t)~DEFERRED_STALLED;
    slot->state = SLU_DEFERRED_READY;
    slot->used = ++deferred->uses;
    if (slu_deferred_forget(deferred, peer) || slot->qp == NULL)
        return;
    /* The alert of a retired peer was not passed on. */
    if (deferred->inner->qp_state(slot->real) == SLU_QP_ERROR)
        slu_deferred_raise(slot->qp, SLUICE_STATUS_RETRY_EXC_ERR, "the peer was lost while idle");
    else
        slu_deferred_open(slot->qp, slot->real);
}

int slu_deferred_stall(struct slu_deferred *deferred, uint32_t peer, uint32_t serial)
{
    struct deferred_slot *slot = find_retiring(deferred, peer, serial);

    if (slot == NULL)
        return -ECANCELED;
    deferred->retiring -= (slot->flags & DEFERRED_STALLED) == 0;
    slot->flags |= DEFERRED_STALLED;
    return 0;
}

int slu_deferred_yield(struct slu_deferred *deferred, uint32_t peer, uint32_t remote,
                       uint32_t *serial, uint32_t *endpoint)
{
    struct deferred_slot *slot = &deferred->slots[peer];

    if (slot->state < SLU_DEFERRED_CONNECTED || slot->remote != remote)
        return 0;
    set_aside(deferred);
    if (slot->state != SLU_DEFERRED_RETIRING && !is_idle(deferred, peer))
        return -EBUSY;
    if (slot->state != SLU_DEFERRED_RETIRING)
        retire(deferred, slot);
    slot->promises++;
    *serial = slot->serial;
    *endpoint = slot->local;
    return 1;
}

void slu_deferred_doubt(struct slu_deferred *deferred, uint32_t peer, uint32_t serial)
{
    struct deferred_slot *slot = find_retiring(deferred, peer, serial);

    if (slot != NULL && slot->promises > 0)
        slot->promises--;
}
