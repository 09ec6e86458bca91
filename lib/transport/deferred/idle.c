/* SPDX-License-Identifier: MIT */
/*
 * Closing connections that are idle. Guarantee: a connection ends only while neither end has a
 * request in flight or a receive posted on it, so nothing is lost, and the engine's queue pair,
 * which keeps what is posted meanwhile, does not fail.
 */
#include "config.h"

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
    uint32_t reals = begun_by_peer ? deferred->reals - deferred->made : deferred->reals;

    return deferred->most == 0 || deferred->slots[peer].real != NULL || reals < deferred->most;
}

void slu_deferred_wait(struct slu_deferred *deferred, uint32_t peer, bool waits)
{
    struct deferred_slot *slot = &deferred->slots[peer];

    deferred->waiting += waits ? 1 : UINT32_MAX;
    if (waits)
        slot->flags |= DEFERRED_NO_ROOM;
    else
        slot->flags &= (uint8_t)~DEFERRED_NO_ROOM;
}

void slu_deferred_note_busy(struct slu_deferred *deferred, uint32_t peer)
{
    deferred->slots[peer].flags |= DEFERRED_BUSY;
}

static bool is_idle(const struct slu_deferred *deferred, uint32_t peer)
{
    return deferred->slots[peer].state == SLU_DEFERRED_READY &&
           deferred->user->idle(deferred->user, peer);
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

/* Closes connections that have failed and are drained: there is no other end to ask. */
static void close_failed(struct slu_deferred *deferred)
{
    for (uint32_t i = 0; i < deferred->count; i++) {
        struct deferred_slot *slot = &deferred->slots[i];

        if (slot->qp != NULL && slot->qp->failed && is_idle(deferred, i)) {
            slot->qp->real = NULL;
            slu_deferred_end(deferred, slot);
        }
    }
}

bool slu_deferred_retire(struct slu_deferred *deferred, uint32_t more, uint32_t *peer,
                         uint32_t *serial, uint32_t *endpoint)
{
    uint32_t others = deferred->waiting + more;
    struct deferred_slot *slot;

    if (deferred->most == 0 || deferred->reals + others <= deferred->most + deferred->retiring)
        return false;
    close_failed(deferred);
    if (deferred->reals + others <= deferred->most + deferred->retiring)
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
    deferred->user->closed(deferred->user, peer);
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
    /* Its alert was not passed on while it was retired. */
    if (deferred->inner->qp_state(slot->real) == SLU_QP_ERROR)
        slu_deferred_raise(slot->qp, SLUICE_STATUS_RETRY_EXC_ERR, "the peer was lost while idle");
    else
        slu_deferred_open(slot->qp, slot->real);
}

void slu_deferred_stall(struct slu_deferred *deferred, uint32_t peer, uint32_t serial)
{
    struct deferred_slot *slot = find_retiring(deferred, peer, serial);

    if (slot == NULL || (slot->flags & DEFERRED_STALLED) != 0)
        return;
    slot->flags |= DEFERRED_STALLED;
    deferred->retiring--;
}

int slu_deferred_yield(struct slu_deferred *deferred, uint32_t peer, uint32_t remote,
                       uint32_t *serial, uint32_t *endpoint)
{
    struct deferred_slot *slot = &deferred->slots[peer];

    if (slot->state < SLU_DEFERRED_CONNECTED || slot->remote != remote)
        return 0;
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
