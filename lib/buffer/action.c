/* SPDX-License-Identifier: MIT */
/*
 * Checks of the program's actions. All are checked before any begins, and each has a result of its
 * own. If the handle does not allow an action, or names no transport of the service, only that
 * action fails.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "buffer/batch.h"
#include "buffer/quick.h"
#include "connect/address.h"
#include "engine/engine.h"
#include "memory/mr.h"

_Static_assert(sizeof(struct sluice_buffer_action) == 96, "the stride of lists of actions");
_Static_assert(sizeof(struct sluice_buffer_handle) == 256, "programs send arrays of them");

/*
 * A checked action that becomes a work. The handle is decoded only once, so that later changes to
 * it have no effect.
 */
struct order {
    const struct sluice_buffer_action *action;
    uint32_t index;
    bool named;     /* texts name the index */
    uint64_t bytes; /* to move */
    struct slu_buffer_name name;
};

static int fail_index(const struct order *order, int error)
{
    struct slu_text text;

    if (!order->named)
        return error;
    slu_text_save(&text);
    return slu_fail(-error, "action %u: %s", order->index, text.bytes);
}

static const char *verb_of(uint32_t opcode)
{
    return opcode == SLUICE_OP_READ ? "read" : "write";
}

static int check_region(const struct sluice_buffer_service *service,
                        const struct sluice_buffer_action *action)
{
    const struct sluice_mr *mr = action->mr;
    uint64_t at = (uintptr_t)action->addr;

    if (mr == NULL)
        return at + action->length >= at
                   ? 0
                   : slu_misuse(EINVAL, "%llu bytes at %p wrap the address space",
                                (unsigned long long)action->length, action->addr);
    if (mr->magic != SLU_MAGIC_MR)
        return slu_misuse(EINVAL, "mr is not a memory region%s", slu_none_hint(mr));
    for (uint32_t i = 0; i < service->domain_count; i++) {
        if (service->domains[i].pd != mr->pd)
            continue;
        at -= mr->transport->iova;
        if (at <= mr->transport->length && action->length <= mr->transport->length - at)
            return 0;
        return slu_misuse(ERANGE, "%llu bytes at %p are outside the region of %zu bytes at %#llx",
                          (unsigned long long)action->length, action->addr, mr->transport->length,
                          (unsigned long long)mr->transport->iova);
    }
    return slu_misuse(EINVAL,
                      "mr is of no protection domain of the service, perhaps of an agent's: "
                      "register it with one that the service was opened with");
}

static int fail_range(const struct order *order)
{
    const struct sluice_buffer_action *action = order->action;
    char owner[SLU_ADDRESS_TEXT];

    return slu_fail(ERANGE,
                    "%s of %llu bytes at offset %llu goes beyond buffer %llu of %s, which has %llu "
                    "bytes",
                    verb_of(action->opcode), (unsigned long long)action->length,
                    (unsigned long long)action->offset, (unsigned long long)order->name.id,
                    slu_address_text(&order->name.addresses[0], owner),
                    (unsigned long long)order->name.length);
}

/* Checks that each block is within the memory of its side. */
static int check_blocks(struct order *order)
{
    static const char request[] = "request 0: ";
    const struct sluice_buffer_action *action = order->action;
    int error = slu_blocks_check_action(action->blocks, (uintptr_t)action->addr, action->length,
                                        order->name.length - action->offset, &order->bytes);
    struct slu_text text;
    const char *what;

    if (error == 0)
        return 0;
    slu_text_save(&text);
    what = strncmp(text.bytes, request, sizeof request - 1) == 0 ? text.bytes + sizeof request - 1
                                                                 : text.bytes;
    return slu_fail(-error, "%s of buffer %llu: %s", verb_of(action->opcode),
                    (unsigned long long)order->name.id, what);
}

/* Returns the bytes that an action needs from its offset on. Blocks have a check of their own. */
static uint64_t needed(const struct sluice_buffer_action *action)
{
    return action->blocks == NULL ? action->length : 0;
}

static int check_action(struct sluice_buffer_service *service, struct order *order)
{
    const struct sluice_buffer_action *action = order->action;
    int error;

    if (action->opcode != SLUICE_OP_READ && action->opcode != SLUICE_OP_WRITE)
        return slu_misuse(EINVAL, "opcode %u: must be SLUICE_OP_READ or SLUICE_OP_WRITE",
                          action->opcode);
    if (action->flags != 0)
        return slu_misuse(EINVAL, "flags %#x: must be 0", action->flags);
    if (slu_action_unknown(action) != 0)
        return slu_misuse(EINVAL, "reserved: must be 0");
    if (action->handle == NULL || (action->addr == NULL && action->mr == NULL))
        return slu_misuse(EINVAL, "%s must not be NULL",
                          action->handle == NULL ? "handle" : "addr");
    error = slu_buffer_know(service, action->handle, &order->name);
    if (error < 0)
        return error;
    if (action->offset > order->name.length || needed(action) > order->name.length - action->offset)
        return fail_range(order);
    order->bytes = action->length;
    error = check_region(service, action);
    return error == 0 && action->blocks != NULL ? check_blocks(order) : error;
}

int slu_buffer_check_call(const struct sluice_buffer_service *service,
                          const struct sluice_buffer_action *actions, uint32_t count,
                          int64_t deadline)
{
    if (!slu_is_buffer_service(service))
        return slu_not_a_buffer_service(service);
    if (deadline < 0)
        return slu_misuse(EINVAL, "deadline %lld is negative", (long long)deadline);
    if (actions == NULL && count > 0)
        return slu_misuse(EINVAL, "actions must not be NULL");
    return 0;
}

/* The one action of a blocking call needs no index; those of a batch of the program have one. */
static bool names_actions(const struct slu_batch *batch)
{
    return batch->count > 1 || batch->is_object;
}

static int check_all(const struct slu_batch *batch, const struct sluice_buffer_action *actions,
                     struct order *orders)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        int error;

        orders[i].index = i;
        orders[i].named = names_actions(batch);
        orders[i].action = &actions[i];
        error = check_action(batch->service, &orders[i]);
        if (error < 0)
            return fail_index(&orders[i], error);
    }
    return 0;
}

/* Gives a work its result before it is posted. */
static void end_early(struct slu_work *work, int error, enum sluice_error_class error_class,
                      uint32_t status)
{
    work->early = true;
    work->ended = true;
    work->result.error = error;
    work->result.error_class = error_class;
    work->result.status = work->result.cause = status;
}

static bool may(const struct order *order)
{
    uint32_t right = order->action->opcode == SLUICE_OP_READ ? SLUICE_ACCESS_REMOTE_READ
                                                             : SLUICE_ACCESS_REMOTE_WRITE;

    return (order->name.access & right) != 0;
}

/* Registers local memory that the program has not registered, where the transport needs it. */
static int register_local(const struct slu_buffer_domain *domain, const struct order *order,
                          struct slu_work *work)
{
    const struct sluice_buffer_action *action = order->action;

    work->mr = sluice_mr_register(domain->pd, action->addr, action->length,
                                  action->opcode == SLUICE_OP_READ ? SLUICE_ACCESS_LOCAL_WRITE : 0);
    return work->mr != NULL ? 0 : -errno;
}

/*
 * Completes a work whose way to the owner is known. Returns 0, or an error: of the work if it ended
 * early, otherwise of the batch.
 */
static int add_work(struct slu_batch *batch, const struct order *order, uint32_t domain,
                    const struct slu_buffer_way *way)
{
    const struct sluice_buffer_action *action = order->action;
    struct slu_buffer_domain *of = &batch->service->domains[domain];
    struct slu_work *work = &batch->works[order->index];
    const struct sluice_mr *mr = action->mr;
    struct slu_link *link;

    if (mr == NULL)
        mr = of->all;
    if (mr == NULL) {
        int error = register_local(of, order, work);

        if (error < 0) {
            end_early(work, error, SLUICE_CLASS_LOCAL, SLUICE_STATUS_LOC_PROT_ERR);
            return error;
        }
        mr = work->mr;
    }
    if (action->blocks != NULL) {
        int error = slu_piece_blocks(work, action->blocks, action->length,
                                     order->name.length - action->offset);

        if (error < 0)
            return error;
    }
    work->local = (uintptr_t)action->addr;
    work->span = action->length;
    work->remote = order->name.addr + action->offset;
    work->lkey = mr->transport->lkey;
    work->rkey = way->rkey;
    link = slu_link_get(batch->service, of, &order->name);
    return link != NULL ? slu_batch_add(batch, work, link) : -errno;
}

/* Makes a work. Returns 0, or an error: of the work if it ended early, otherwise of the batch. */
static int begin(struct slu_batch *batch, const struct order *order)
{
    const struct sluice_buffer_action *action = order->action;
    struct slu_work *work = &batch->works[order->index];
    struct slu_buffer_way way;
    int domain;

    work->index = order->index;
    work->opcode = work->result.opcode = action->opcode;
    work->length = order->bytes;
    work->id = order->name.id;
    work->offset = action->offset;
    work->owner = order->name.addresses[0];
    work->result.user_data = action->user_data;
    if (!may(order)) {
        end_early(work, -EACCES, SLUICE_CLASS_ACCESS, SLUICE_STATUS_REM_ACCESS_ERR);
        return slu_fail(EACCES, "it was not published for a %s", verb_of(action->opcode));
    }
    domain = slu_buffer_find_way(batch->service, &order->name,
                                 action->mr != NULL ? action->mr->pd : NULL, &way);
    if (domain < 0) {
        end_early(work, domain, SLUICE_CLASS_PROTOCOL, SLUICE_STATUS_REM_INV_REQ_ERR);
        return domain;
    }
    if (order->bytes > 0)
        return add_work(batch, order, (uint32_t)domain, &way);
    work->early = true;
    work->ended = true;
    return 0;
}

/* Makes all works. Keeps the text of the first one that ends early with an error. */
static int begin_all(struct slu_batch *batch, const struct order *orders)
{
    batch->told.bytes[0] = '\0';
    for (uint32_t i = 0; i < batch->count; i++) {
        int error = begin(batch, &orders[i]);

        if (error < 0 && !batch->works[i].ended)
            return error;
        if (error < 0 && batch->told.bytes[0] == '\0')
            slu_text_save(&batch->told);
    }
    return 0;
}

/* Returns the first failure that is not a cancellation; if there is none, the first failure. */
static const struct slu_work *first_failure(const struct slu_batch *batch)
{
    const struct slu_work *cancelled = NULL;

    for (uint32_t i = 0; i < batch->count; i++) {
        const struct slu_work *work = &batch->works[i];

        if (work->result.error != 0 && work->result.error != -ECANCELED)
            return work;
        if (work->result.error != 0 && cancelled == NULL)
            cancelled = work;
    }
    return cancelled;
}

/* Fails with a text of what failed, and why. Names the owner only once: the cause may name it. */
static int fail_work(const struct slu_work *work, const char *why)
{
    char owner[SLU_ADDRESS_TEXT];
    bool named = strstr(why, slu_address_text(&work->owner, owner)) != NULL;

    return slu_fail(-work->result.error, "%s of %llu bytes at offset %llu of buffer %llu%s%s: %s",
                    verb_of(work->opcode), (unsigned long long)work->length,
                    (unsigned long long)work->offset, (unsigned long long)work->id,
                    named ? "" : " of ", named ? "" : owner, why);
}

int slu_batch_conclude(const struct slu_batch *batch)
{
    const struct slu_work *work = first_failure(batch);
    struct order order = {.named = names_actions(batch)};

    if (work == NULL)
        return 0;
    order.index = work->index;
    return fail_index(&order,
                      fail_work(work, work->group == NULL ? batch->told.bytes : work->group->why));
}

static int make_works(struct slu_batch *batch, const struct order *orders)
{
    int error;

    batch->works =
        batch->count == 1 ? &batch->only_work : calloc(batch->count, sizeof *batch->works);
    if (batch->works == NULL)
        return slu_fail(ENOMEM, "no memory for %u actions on buffers", batch->count);
    error = begin_all(batch, orders);
    return error == 0 ? slu_batch_make_ready(batch) : error;
}

int slu_batch_prepare(struct slu_batch *batch, const struct sluice_buffer_action *actions)
{
    struct order one, *orders = &one;
    int error;

    if (batch->count > 1)
        orders = calloc(batch->count, sizeof *orders);
    if (orders == NULL)
        return slu_fail(ENOMEM, "no memory for %u actions on buffers", batch->count);
    error = check_all(batch, actions, orders);
    if (error == 0)
        error = make_works(batch, orders);
    if (error == 0)
        slu_batch_hold(batch);
    if (orders != &one)
        free(orders);
    return error;
}

/* Waits for a batch of a blocking call, and ends it. */
static int finish(struct slu_batch *batch, const struct sluice_buffer_action *actions,
                  struct sluice_completion *completions)
{
    int error;

    if (slu_batch_wait(batch, SLUICE_FOREVER, false) == -EINTR)
        slu_batch_cancel(batch, &slu_ending_interrupted);
    for (uint32_t i = 0; i < batch->count && completions != NULL; i++)
        completions[i] = batch->works[i].result;
    error = slu_batch_conclude(batch);
    if (error == 0 && batch->count == 1)
        slu_quick_learn(batch, &actions[0]);
    slu_batch_end(batch);
    return error;
}

static int submit(struct sluice_buffer_service *service, struct slu_batch *batch,
                  const struct sluice_buffer_action *actions, uint32_t count, int64_t deadline,
                  struct sluice_completion *completions)
{
    int64_t until = slu_after(deadline < 0 ? 0 : deadline);
    int error = slu_buffer_check_call(service, actions, count, deadline);

    if (error < 0 || count == 0)
        return error;
    *batch =
        (struct slu_batch){.lock = PTHREAD_MUTEX_INITIALIZER, .service = service, .count = count};
    error = slu_batch_prepare(batch, actions);
    if (error < 0) {
        slu_batch_end(batch);
        return error;
    }
    slu_batch_post(batch, until);
    return finish(batch, actions, completions);
}

/* Does what the fast path has left: all of it if left is -EAGAIN. */
static SLU_COLD int submit_rest(struct sluice_buffer_service *service, struct slu_batch *batch,
                                const struct sluice_buffer_action *actions, uint32_t count,
                                int64_t deadline, struct sluice_completion *completions, int left)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;

    return left == 0 ? finish(batch, actions, completions)
                     : submit(service, batch, actions, count, deadline, completions);
}

/* A blocking call posts a batch of its own, and ends it before it returns. */
int sluice_buffer_submit(struct sluice_buffer_service *service,
                         const struct sluice_buffer_action *actions, uint32_t count,
                         int64_t deadline, struct sluice_completion *completions)
{
    struct slu_batch batch;
    int result = -EAGAIN;

    if (count == 1 && actions != NULL && slu_is_buffer_service(service))
        result = slu_quick_move(service, &batch, actions, deadline);
    if (SLU_UNLIKELY(result != 1))
        return submit_rest(service, &batch, actions, count, deadline, completions, result);
    if (completions != NULL)
        completions[0] = (struct sluice_completion){.opcode = actions[0].opcode,
                                                    .user_data = actions[0].user_data,
                                                    .bytes = actions[0].length};
    return 0;
}

int sluice_buffer_read(struct sluice_buffer_service *service,
                       const struct sluice_buffer_handle *handle, uint64_t offset,
                       struct sluice_mr *mr, void *addr, uint64_t length, int64_t deadline)
{
    const struct sluice_buffer_action action = {.opcode = SLUICE_OP_READ,
                                                .handle = handle,
                                                .offset = offset,
                                                .length = length,
                                                .addr = addr,
                                                .mr = mr};

    return sluice_buffer_submit(service, &action, 1, deadline, NULL);
}

int sluice_buffer_write(struct sluice_buffer_service *service,
                        const struct sluice_buffer_handle *handle, uint64_t offset,
                        struct sluice_mr *mr, const void *addr, uint64_t length, int64_t deadline)
{
    const struct sluice_buffer_action action = {.opcode = SLUICE_OP_WRITE,
                                                .handle = handle,
                                                .offset = offset,
                                                .length = length,
                                                .addr = (void *)(uintptr_t)addr,
                                                .mr = mr};

    return sluice_buffer_submit(service, &action, 1, deadline, NULL);
}
