/* SPDX-License-Identifier: MIT */
/*
 * The fast path of a blocking call with one action, which costs little more than the same call of a
 * channel. A link remembers the handles that calls used on it. If it is
 * connected and has nothing else to do, a call with such a handle posts its request, and is done if
 * the first poll completes it. It takes one lock, that of the link, and no memory.
 *
 * Any other call is left to a batch. A request that goes on after the first poll becomes part of a
 * batch as well, which has no way to fail: its waiter is made ahead.
 *
 * The link is found without a lock, so links are not freed before the service is closed. A link
 * that ends forgets its handles, and is used again for another owner.
 */
#include "config.h"

#include <string.h>

#include "buffer/batch.h"
#include "buffer/quick.h"
#include "channel/channel.h"
#include "engine/engine.h"
#include "memory/mr.h"

/*
 * A batch checks that the owner is still there, and acts on timers of the connection, if that was
 * this long before the kernel's last tick.
 */
#define CHECKED_TIME SLUICE_US(100)

static struct slu_link_known *place_of(struct slu_link *link,
                                       const struct sluice_buffer_handle *handle)
{
    return &link->known[handle->bytes[SLUICE_BUFFER_HANDLE_BYTES - 1] % SLU_LINK_KNOWN];
}

/*
 * Returns the region of the local memory; or NULL if it is wrong, or of another domain. Without a
 * region of the program, a batch chooses among several domains, and registers memory if it must.
 */
static inline const struct sluice_mr *region_of(const struct slu_link *link,
                                                const struct sluice_buffer_action *action)
{
    const struct sluice_mr *mr = action->mr;
    uint64_t at;

    if (mr == NULL)
        mr = action->addr != NULL && link->service->domain_count == 1 ? link->domain->all : NULL;
    if (mr == NULL || mr->magic != SLU_MAGIC_MR || mr->pd != link->domain->pd)
        return NULL;
    at = (uintptr_t)action->addr - mr->transport->iova;
    return at <= mr->transport->length && action->length <= mr->transport->length - at ? mr : NULL;
}

/* Returns whether an action is within the buffer, and allowed by its handle. */
static inline bool is_allowed(const struct slu_link_known *known,
                              const struct sluice_buffer_action *action)
{
    uint32_t right =
        action->opcode == SLUICE_OP_READ ? SLUICE_ACCESS_REMOTE_READ : SLUICE_ACCESS_REMOTE_WRITE;

    return (known->access & right) != 0 && action->offset <= known->length &&
           action->length <= known->length - action->offset;
}

/* Returns whether the link has a connection that works, and nothing else to do. */
static bool is_free(struct slu_link *link)
{
    return link->state == SLU_LINK_UP && link->groups == NULL && link->used == 0 &&
           link->waiter != NULL && slu_tick() - link->asked < CHECKED_TIME;
}

/* Fills in a batch whose only request is in flight. The lock of the link is held. */
static SLU_COLD void adopt(struct slu_batch *batch, struct slu_link *link,
                           const struct slu_link_known *known,
                           const struct sluice_buffer_action *action,
                           const struct slu_attempt *attempt)
{
    *batch = (struct slu_batch){.lock = PTHREAD_MUTEX_INITIALIZER,
                                .service = link->service,
                                .waiter = link->waiter,
                                .until = slu_after(attempt->deadline),
                                .posted = true,
                                .count = 1,
                                .works = &batch->only_work,
                                .groups = &batch->only_group,
                                .group_count = 1,
                                .group_room = 1,
                                .groups_left = 1,
                                .fds = batch->only_fds};
    batch->fds[1] = (struct pollfd){.fd = link->waiter->event, .events = POLLIN};
    link->waiter = NULL;
    batch->only_group = (struct slu_group){
        .batch = batch, .link = link, .left = 1, .used = 1, .seen = link->dials, .joined = true};
    batch->only_work =
        (struct slu_work){.group = &batch->only_group,
                          .opcode = action->opcode,
                          .local = (uintptr_t)action->addr,
                          .remote = attempt->remote_addr,
                          .length = action->length,
                          .span = action->length,
                          .id = known->id,
                          .offset = action->offset,
                          .owner = link->name.addresses[0],
                          .lkey = attempt->sge.lkey,
                          .rkey = known->rkey,
                          .posted = action->length,
                          .in_flight = 1,
                          .result = {.opcode = action->opcode, .user_data = action->user_data}};
    link->groups = &batch->only_group;
    link->group_count = 1;
    link->used = 1;
    slu_link_hold(link);
    slu_batch_hold(batch);
}

/* The lock of the link is held. */
static inline int move(struct slu_link *link, struct slu_batch *batch,
                       const struct sluice_buffer_action *action, int64_t deadline)
{
    const struct slu_link_known *known = place_of(link, action->handle);
    const struct sluice_mr *mr;
    struct slu_attempt attempt;
    int result;

    if (known->length == 0 || memcmp(&known->handle, action->handle, sizeof *action->handle) != 0 ||
        !is_allowed(known, action) || !is_free(link))
        return -EAGAIN;
    mr = region_of(link, action);
    if (mr == NULL)
        return -EAGAIN;
    attempt.opcode = action->opcode;
    attempt.sge.addr = (uintptr_t)action->addr;
    attempt.sge.length = (uint32_t)action->length;
    attempt.sge.lkey = mr->transport->lkey;
    attempt.remote_addr = known->addr + action->offset;
    attempt.rkey = known->rkey;
    attempt.peer = 0;
    attempt.deadline = deadline;
    attempt.user_data = (uintptr_t)&batch->only_work;
    result = slu_attempt(link->channel->base.engine, &attempt);
    if (SLU_UNLIKELY(result == 0))
        adopt(batch, link, known, action, &attempt);
    return result;
}

int slu_quick_move(struct sluice_buffer_service *service, struct slu_batch *batch,
                   const struct sluice_buffer_action *action, int64_t deadline)
{
    struct slu_link *link;
    int result;

    if (action->opcode != SLUICE_OP_READ && action->opcode != SLUICE_OP_WRITE)
        return -EAGAIN;
    if (action->handle == NULL || action->blocks != NULL || slu_action_unknown(action) != 0 ||
        action->length == 0 || action->length > SLU_PIECE_BYTES)
        return -EAGAIN;
    link = atomic_load_explicit(&service->quick[action->handle->bytes[SLU_BUFFER_OWNER_AT]],
                                memory_order_acquire);
    if (link == NULL || pthread_mutex_trylock(&link->lock) != 0)
        return -EAGAIN;
    result = move(link, batch, action, deadline);
    pthread_mutex_unlock(&link->lock);
    if (SLU_UNLIKELY(slu_has_releases()) && result == 1)
        slu_releases_look();
    return result;
}

void slu_quick_learn(struct slu_batch *batch, const struct sluice_buffer_action *action)
{
    struct slu_link *link = batch->works[0].early ? NULL : batch->works[0].group->link;
    /* The program may have changed the handle since it was used. */
    const struct sluice_buffer_handle handle = *action->handle;
    struct slu_link_known *known;
    struct slu_buffer_name name;
    struct slu_buffer_way way;

    if (link == NULL || action->blocks != NULL ||
        slu_buffer_know(batch->service, &handle, &name) < 0 || !slu_link_leads_to(link, &name) ||
        slu_buffer_find_way(batch->service, &name, link->domain->pd, &way) < 0)
        return;
    slu_link_lock(link);
    known = place_of(link, &handle);
    known->handle = handle;
    known->id = name.id;
    known->addr = name.addr;
    known->length = name.length;
    known->access = name.access;
    known->rkey = way.rkey;
    if (link->waiter == NULL) {
        link->waiter = batch->waiter;
        batch->waiter = NULL;
    }
    slu_link_unlock(link);
    atomic_store_explicit(&batch->service->quick[name.owner[0]], link, memory_order_release);
}
