/* SPDX-License-Identifier: MIT */
/*
 * Requests of the library itself, beside the program's, detached from the start. These requests
 * have a ring of their own, so that they displace no unseen result of the program.
 */
#include "config.h"

#include "engine/post/post.h"
#include "engine/post/work.h"
#include "engine/ring/entry.h"

bool slu_has_room(struct slu_engine *engine, uint32_t index, uint32_t count)
{
    struct slu_peer *peer = &engine->peers[index];

    if (SLU_UNLIKELY(peer->state == SLU_PEER_ABSENT) && !slu_peer_appear(engine, peer))
        return false;
    return slu_post_room(engine, peer, SLU_SEND_QUEUE, count) &&
           slu_ring_room(&peer->rings[SLU_OWN_RING]) >= count;
}

uint64_t slu_post_detached(struct slu_engine *engine, const struct sluice_request *request)
{
    struct slu_peer *peer = &engine->peers[request->peer];
    struct slu_ring *ring = &peer->rings[SLU_OWN_RING];
    const struct slu_item item = {.request = request,
                                  .sges = slu_request_sges(request),
                                  .remote = &request->remote,
                                  .peer = request->peer,
                                  .opcode = request->opcode};
    uint64_t id = ring->next;
    struct slu_entry *entry;
    struct slu_send_wr wr, *bad;
    int error;

    if (peer->state != SLUICE_STATE_READY)
        return SLU_ID_REFUSED;
    entry = slu_entry_take(engine, ring, SLU_OWNER_NOBODY, request->opcode, request,
                           slu_sge_bytes(item.sges, request->sge_count));
    slu_count_taken(engine, SLU_SEND_QUEUE, SLU_OWNER_NOBODY, 1);
    entry->deadline = entry->time = SLUICE_FOREVER;
    engine->detached++;
    peer->free[SLU_SEND_QUEUE]--;
    engine->cq_free[SLU_SEND_QUEUE]--;
    slu_fill_send(&wr, id, &item, item.sges, request->sge_count);
    wr.next = NULL;
    SLU_PROBE2(post, engine, id);
    error = engine->transport->post_send(peer->qp, &wr, &bad);
    if (error < 0)
        slu_post_refused(engine, peer, entry, error);
    return id;
}

bool slu_is_pending(struct slu_engine *engine, uint64_t id)
{
    const struct slu_entry *entry = slu_entry_find(engine, id);

    return entry != NULL && entry->state == SLU_ENTRY_PENDING;
}
