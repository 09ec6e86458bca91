/* SPDX-License-Identifier: MIT */
/* Requests of our own beside the program's, detached from the start. */
#include "config.h"

#include "engine/engine.h"

/*
 * As long as some are in flight, another one must not take the place of a result that the
 * program has not seen: there are slots to spare. If none is, a program that has left all
 * slots to results has more of them than its queues are deep, and was told that the oldest
 * may go.
 */
bool slu_has_room(const struct slu_engine *engine, uint32_t peer, uint32_t count)
{
    const struct slu_pool *pool = &engine->pools[SLU_SEND_QUEUE];
    uint32_t at = pool->free.head;

    if (engine->peers[peer].free[SLU_SEND_QUEUE] < count || slu_pool_room(pool) < count)
        return false;
    if (count == 1 && engine->detached == 0)
        return true;
    while (count > 0 && at != SLU_NONE) {
        at = pool->slots[at].next;
        count--;
    }
    return count == 0;
}

/* The last request to a peer is ours, if it did not fail at once. */
uint64_t slu_post_detached(struct slu_engine *engine, const struct sluice_request *request)
{
    const struct slu_source source = {.lists = {request}, .counts = {1}, .count = 1};
    const struct slu_list *posted = &engine->peers[request->peer].posted[SLU_SEND_QUEUE];

    engine->detached++;
    slu_post_owned(engine, &source, 0, 1, SLU_SEND_QUEUE, SLU_OWNER_NOBODY, SLUICE_FOREVER,
                   SLUICE_FOREVER, NULL);
    return posted->head != SLU_NONE ? engine->pools[SLU_SEND_QUEUE].slots[posted->tail].id
                                    : SLU_QUEUE_BIT;
}

bool slu_is_pending(struct slu_engine *engine, uint64_t id)
{
    const struct slu_slot *slot = slu_slot_find(engine, id);

    return slot != NULL && slot->state == SLU_SLOT_PENDING;
}
