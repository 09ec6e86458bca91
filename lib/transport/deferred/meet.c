/* SPDX-License-Identifier: MIT */
/* The steps of a connection: a queue pair of the transport is made, connected, opened and ended. */
#include "config.h"

#include <string.h>

#include "base/bytes.h"
#include "transport/deferred/inside.h"

enum slu_deferred_state slu_deferred_state(const struct slu_deferred *deferred, uint32_t peer)
{
    return (enum slu_deferred_state)deferred->slots[peer].state;
}

const uint16_t *slu_deferred_live(const struct slu_deferred *deferred, uint32_t *count)
{
    *count = deferred->live_count;
    return deferred->live;
}

bool slu_deferred_is_made(const struct slu_deferred *deferred, uint32_t peer, uint32_t serial)
{
    const struct deferred_slot *slot = &deferred->slots[peer];

    return slot->real != NULL && slot->serial == (uint16_t)serial &&
           slot->state < SLU_DEFERRED_READY;
}

bool slu_deferred_is_wanted(const struct slu_deferred *deferred, uint32_t peer)
{
    const struct deferred_slot *slot = &deferred->slots[peer];

    return slot->qp != NULL && !slot->qp->failed;
}

bool slu_deferred_has_failed(const struct slu_deferred *deferred, uint32_t peer)
{
    const struct deferred_slot *slot = &deferred->slots[peer];

    return slot->qp != NULL && slot->qp->failed;
}

static void write_endpoint(const struct slu_deferred *deferred, const struct slu_qp *real,
                           struct sluice_endpoint *endpoint)
{
    struct slu_endpoint filled = {.transport = deferred->inner->id,
                                  .identity = deferred->identity,
                                  .generation = 1,
                                  .access = deferred->attr->access};

    deferred->inner->qp_endpoint(real, &filled);
    slu_endpoint_encode(&filled, endpoint);
}

static int make_real(struct slu_deferred *deferred, uint32_t peer)
{
    struct deferred_slot *slot = &deferred->slots[peer];
    int error = deferred->inner->cq_extend(deferred->cq, slu_deferred_entries(deferred));

    if (error < 0)
        return error;
    error = deferred->inner->qp_create(deferred->pd, deferred->cq, deferred->attr, &slot->real);
    if (error < 0) {
        deferred->inner->cq_reduce(deferred->cq, slu_deferred_entries(deferred));
        return error;
    }
    slot->real->peer = peer;
    slot->flags |= DEFERRED_EXTENDED;
    slu_deferred_enliven(deferred, slot);
    slot->state = SLU_DEFERRED_MADE;
    slot->taken = 0;
    deferred->reals++;
    deferred->made++;
    return 0;
}

int slu_deferred_make(struct slu_deferred *deferred, uint32_t peer, uint32_t *serial,
                      struct sluice_endpoint *endpoint)
{
    struct deferred_slot *slot = &deferred->slots[peer];
    int error = 0;

    slot->flags &= (uint8_t) ~(DEFERRED_ASKED | DEFERRED_NO_ROOM | DEFERRED_BUSY);
    *serial = slot->serial;
    if (slot->real == NULL)
        error = make_real(deferred, peer);
    if (error < 0)
        return error;
    write_endpoint(deferred, slot->real, endpoint);
    slot->local = slu_checksum(endpoint->bytes, sizeof endpoint->bytes);
    return 0;
}

/* Returns 0 if the slot is in this state with the queue pair of that serial. */
static int check(const struct deferred_slot *slot, uint32_t serial, enum slu_deferred_state state)
{
    bool failed = slot->qp != NULL && slot->qp->failed;

    if (slot->real != NULL && slot->serial == (uint16_t)serial && slot->state == state && !failed)
        return 0;
    return slu_fail(ECANCELED, "the connection was given up");
}

/*
 * Asks the user once more, if the program uses the peer. It may also wait for the peer without a
 * request, and must learn of its loss.
 */
static void want_again(struct deferred_slot *slot)
{
    if (slot->qp != NULL)
        slu_deferred_want(&slot->qp->base);
}

int slu_deferred_connect(struct slu_deferred *deferred, uint32_t peer, uint32_t serial,
                         uint32_t remote_serial, const struct sluice_endpoint *remote)
{
    struct deferred_slot *slot = &deferred->slots[peer];
    uint32_t sum = slu_checksum(remote->bytes, sizeof remote->bytes);
    struct slu_endpoint decoded;
    int error;

    if (slot->state >= SLU_DEFERRED_CONNECTED && slot->remote == sum)
        return check(slot, serial, (enum slu_deferred_state)slot->state);
    /* The peer has given up the queue pair to which this one is connected. */
    if (slot->state == SLU_DEFERRED_CONNECTED && slot->serial == (uint16_t)serial) {
        slu_deferred_end(deferred, slot);
        want_again(slot);
    }
    error = check(slot, serial, SLU_DEFERRED_MADE);

    if (error == 0)
        error = slu_endpoint_decode(remote, &decoded);
    if (error == 0 && decoded.transport != deferred->inner->id)
        error = slu_fail(EPROTOTYPE,
                         "the other side runs another transport than %s: open devices "
                         "of one kind on all ranks",
                         deferred->inner->name);
    if (error == 0)
        error = deferred->inner->qp_connect(slot->real, &decoded);
    if (error < 0)
        return error;
    slot->state = SLU_DEFERRED_CONNECTED;
    slot->remote_serial = (uint16_t)remote_serial;
    slot->flags |= DEFERRED_TOLD;
    deferred->made--;
    slot->remote = sum;
    return 0;
}

int slu_deferred_begin(struct slu_deferred *deferred, uint32_t peer, uint32_t serial)
{
    struct deferred_slot *slot = &deferred->slots[peer];
    int error = 0;

    if (slot->state >= SLU_DEFERRED_READY && slot->serial == (uint16_t)serial)
        return 0;
    error = check(slot, serial, SLU_DEFERRED_CONNECTED);
    if (error < 0)
        return error;
    slot->state = SLU_DEFERRED_READY;
    slot->used = ++deferred->uses;
    if (slot->qp != NULL)
        slu_deferred_open(slot->qp, slot->real);
    return 0;
}

void slu_deferred_drop(struct slu_deferred *deferred, uint32_t peer, uint32_t serial)
{
    struct deferred_slot *slot = &deferred->slots[peer];

    if (slot->serial != (uint16_t)serial || slot->state >= SLU_DEFERRED_READY)
        return;
    /* The other side may have begun. Another attempt finds out, with the same queue pairs. */
    if (slot->state != SLU_DEFERRED_CONNECTED)
        slu_deferred_end(deferred, slot);
    want_again(slot);
}

void slu_deferred_quit(struct slu_deferred *deferred, uint32_t peer)
{
    struct deferred_slot *slot = &deferred->slots[peer];

    if (slot->state == SLU_DEFERRED_WANTED)
        slu_deferred_end(deferred, slot);
    /* If it is wanted later, it waits for room behind all others. */
    if (slot->real == NULL)
        slot->flags &= (uint8_t)~DEFERRED_NO_ROOM;
}

void slu_deferred_expel(struct slu_deferred *deferred, uint32_t peer)
{
    struct deferred_slot *slot = &deferred->slots[peer];

    if (slot->qp == NULL)
        slu_deferred_end(deferred, slot);
    slot->flags &= (uint8_t)~DEFERRED_TOLD;
}

bool slu_deferred_is_stale(const struct slu_deferred *deferred, uint32_t peer,
                           uint32_t remote_serial)
{
    const struct deferred_slot *slot = &deferred->slots[peer];

    return (slot->flags & DEFERRED_TOLD) != 0 &&
           (int16_t)(uint16_t)(remote_serial - slot->remote_serial) < 0;
}

bool slu_deferred_forget(struct slu_deferred *deferred, uint32_t peer)
{
    struct deferred_slot *slot = &deferred->slots[peer];

    if (slot->qp != NULL || slot->real == NULL || slot->state != SLU_DEFERRED_READY ||
        deferred->inner->qp_state(slot->real) != SLU_QP_ERROR)
        return false;
    slu_deferred_end(deferred, slot);
    return true;
}

void slu_deferred_fail(struct slu_deferred *deferred, uint32_t peer, uint32_t serial,
                       const char *reason)
{
    struct deferred_slot *slot = &deferred->slots[peer];

    if (slot->serial != (uint16_t)serial || slot->state >= SLU_DEFERRED_READY)
        return;
    slu_deferred_end(deferred, slot);
    if (slot->qp != NULL)
        slu_deferred_raise(slot->qp, SLUICE_STATUS_RETRY_EXC_ERR, reason);
}

/*
 * A connection that the engine does not use ends at once, and so does one that was not ready, or
 * was retired: the peer has yielded, and begins anew.
 */
void slu_deferred_lose(struct slu_deferred *deferred, uint32_t peer,
                       const struct sluice_endpoint *remote, const char *reason)
{
    struct deferred_slot *slot = &deferred->slots[peer];

    if (slot->state < SLU_DEFERRED_CONNECTED ||
        slot->remote == slu_checksum(remote->bytes, sizeof remote->bytes))
        return;
    if (slot->qp != NULL && slot->state == SLU_DEFERRED_READY)
        slu_deferred_raise(slot->qp, SLUICE_STATUS_RETRY_EXC_ERR, reason);
    else
        slu_deferred_end(deferred, slot);
}

/* A connection that the peer has made, and that has failed since, is made anew. */
void slu_deferred_attach(struct slu_qp *base)
{
    struct deferred_qp *qp = deferred_qp_of(base);
    struct deferred_slot *slot = deferred_slot_of(qp);

    slu_deferred_forget(qp->owner, base->peer);
    slot->qp = qp;
    qp->attached = true;
    if (slot->state == SLU_DEFERRED_READY)
        slu_deferred_open(qp, slot->real);
}
