/* SPDX-License-Identifier: MIT */
/*
 * A call of one request that is right and has room, as most are, blocking or
 * unpolled. As little as can be is done before the doorbell, and a blocking one
 * whose success is what the first poll finds enters no list at all. Whatever is
 * not so plain is left to the general way, at the point that was come to.
 */
#include "config.h"

#include "engine/engine.h"

#define INLINE inline __attribute__((always_inline))
#define COLD __attribute__((noinline, cold))
/* Once in so many polls the clock is looked at, by which other work may be late. */
#define BUSY_CALLS 64

/* One of the work requests, and what it is aimed at if it is one-sided. */
struct single {
    uint32_t opcode;
    uint32_t peer;
    const struct slu_send_wr *send;
    const struct slu_receive_wr *receive;
    const struct sluice_remote_mr *remote;
};

static struct sluice_request request_of(const struct single *single)
{
    struct sluice_request request = {.opcode = single->opcode, .peer = single->peer};

    if (single->receive != NULL) {
        request.sges = slu_list_of(single->receive->sges, single->receive->sge_count);
        request.sge_count = single->receive->sge_count;
        return request;
    }
    request.flags = single->send->flags & ~SLU_SIGNALED;
    request.immediate = single->send->immediate;
    request.sges = slu_list_of(single->send->sges, single->send->sge_count);
    request.sge_count = single->send->sge_count;
    if (single->send->operand != NULL) {
        request.operand[0] = single->send->operand[0];
        request.operand[1] = single->send->operand[1];
    }
    if (single->remote != NULL)
        request.remote = *single->remote;
    return request;
}

/* The general way from the start: the request is wrong, or must wait, or be split. */
COLD static int submit_general(struct slu_engine *engine, const struct single *single,
                               int64_t deadline, struct sluice_completion *completion)
{
    struct sluice_request request = request_of(single);
    struct slu_source source = {.lists = {&request}, .counts = {1}, .count = 1};

    return slu_submit(engine, &source, deadline, completion);
}

/* And from here on. Its time counts from now, when it starts to wait. */
COLD static int wait_for(struct slu_engine *engine, const struct single *single,
                         struct slu_slot *slot, int refused, const struct slu_wc *wc, int polled,
                         int64_t deadline, struct sluice_completion *completion)
{
    enum slu_queue queue = slu_slot_queue(slot);
    struct slu_peer *peer = &engine->peers[single->peer];
    struct sluice_request request = request_of(single);
    const struct slu_item item = {.request = &request,
                                  .peer = single->peer,
                                  .opcode = single->opcode,
                                  .bytes = slu_sge_bytes(request.sges, request.sge_count)};
    struct slu_call call = {.engine = engine,
                            .completions = completion,
                            .time = deadline,
                            .deadline = slu_after(deadline),
                            .incomplete = 1,
                            .first_real = SLU_NONE,
                            .first_other = SLU_NONE};

    slu_slot_begin(engine, queue, slot, &item, SLU_OWNER_CALL);
    slu_slot_join(engine, slot, &call, 0, call.deadline);
    slot->time = deadline;
    slot->posted = 1;
    peer->free[queue]--;
    engine->pools[queue].cq_free--;
    if (refused < 0)
        slu_post_refused(engine, peer, slot, refused);
    else if (polled != 0)
        slu_progress_with(engine, wc, polled);
    return slu_call_finish(&call, slot);
}

/*
 * The slot of a request of which there is nothing to complain, to split or to
 * wait for; else NULL. The caller, which made it, answers for opcode and flags.
 */
static INLINE struct slu_slot *plain_slot(const struct slu_engine *engine, enum slu_queue queue,
                                          const struct slu_peer *peer,
                                          const struct sluice_sge *sges, uint32_t sge_count,
                                          const struct sluice_remote_mr *remote, int64_t deadline)
{
    const struct slu_pool *pool = &engine->pools[queue];
    struct slu_slot *slot;
    uint64_t bytes;

    if (deadline <= 0 || sges == NULL || sge_count - 1 >= engine->plain_sges)
        return NULL;
    bytes = slu_sge_bytes(sges, sge_count);
    if (bytes > engine->max_plain)
        return NULL;
    if (remote != NULL && !slu_remote_holds(remote, bytes))
        return NULL;
    if (engine->scope.open || peer->state != SLUICE_STATE_READY || peer->free[queue] == 0 ||
        pool->cq_free == 0 || pool->free.head == SLU_NONE)
        return NULL;
    slot = &pool->slots[pool->free.head];
    slu_slot_rename(slot);
    slot->result.bytes = bytes;
    slu_slot_hold_keys(engine, pool, slot, pool->free.head, sges, sge_count);
    return slot;
}

/*
 * Whether one poll gives the success of that slot, and of nothing before it. It
 * then is as if the slot had not been taken.
 */
static INLINE bool ends_at_once(struct slu_engine *engine, const struct slu_peer *peer,
                                enum slu_queue queue, struct slu_slot *slot, struct slu_wc *wc,
                                int *polled)
{
    engine->polls++;
    *polled = engine->transport->cq_poll(engine->cq, wc, 1);
    if (SLU_UNLIKELY(*polled != 1 || wc->id != slot->id || wc->status != SLUICE_STATUS_SUCCESS ||
                     peer->posted[queue].head != SLU_NONE))
        return false;
    slu_slot_release_keys(slot);
    if (SLU_UNLIKELY(engine->polls % BUSY_CALLS == 0)) {
        engine->busy_polls = BUSY_CALLS;
        slu_progress(engine);
    }
    return true;
}

static INLINE int submit_send(struct slu_engine *engine, uint32_t opcode, uint32_t peer_index,
                              struct slu_send_wr *wr, const struct sluice_remote_mr *remote,
                              int64_t deadline)
{
    struct slu_peer *peer = &engine->peers[peer_index];
    struct slu_slot *slot = NULL;
    struct slu_send_wr *bad;
    struct single single;
    struct slu_wc wc;
    int polled = 0;
    int error = 0;

    if (SLU_LIKELY(peer_index < engine->peer_count))
        slot = plain_slot(engine, SLU_SEND_QUEUE, peer, wr->sges, wr->sge_count, remote, deadline);
    if (SLU_LIKELY(slot != NULL)) {
        wr->next = NULL;
        wr->id = slot->id;
        wr->flags |= SLU_SIGNALED;
        slu_engine_enter(engine);
        error = engine->transport->post_send(peer->qp, wr, &bad);
        if (SLU_LIKELY(error == 0 &&
                       ends_at_once(engine, peer, SLU_SEND_QUEUE, slot, &wc, &polled))) {
            slu_count_success(peer, opcode, slot->result.bytes);
            slu_engine_leave(engine);
            return 0;
        }
    }
    single = (struct single){.opcode = opcode, .peer = peer_index, .send = wr, .remote = remote};
    return slot == NULL ? submit_general(engine, &single, deadline, NULL)
                        : wait_for(engine, &single, slot, error, &wc, polled, deadline, NULL);
}

int slu_submit_send(struct slu_engine *engine, uint32_t peer, struct slu_send_wr *wr,
                    int64_t deadline)
{
    return submit_send(engine, SLUICE_OP_SEND, peer, wr, NULL, deadline);
}

int slu_submit_remote(struct slu_engine *engine, uint32_t peer, struct slu_send_wr *wr,
                      const struct sluice_remote_mr *remote, int64_t deadline)
{
    if (SLU_UNLIKELY(remote == NULL))
        return slu_no_remote(wr->opcode);
    wr->remote_addr = remote->addr;
    wr->rkey = remote->rkey;
    return submit_send(engine, wr->opcode, peer, wr, remote, deadline);
}

int slu_submit_atomic(struct slu_engine *engine, struct sluice_request *request,
                      const struct sluice_remote_mr *remote, int64_t deadline)
{
    struct slu_source source = {.lists = {request}, .counts = {1}, .count = 1};
    struct slu_item item = {.request = request, .opcode = request->opcode};
    struct slu_send_wr wr = {.opcode = request->opcode,
                             .sges = request->sges,
                             .sge_count = request->sge_count,
                             .operand = request->operand};

    if (remote != NULL) {
        request->remote = *remote;
        /* Its form is looked at here, for the rest of the way does not. */
        if (!slu_item_is_plain(engine, &item))
            return slu_submit(engine, &source, deadline, NULL);
    }
    return slu_submit_remote(engine, request->peer, &wr, remote, deadline);
}

static void fill_received(uint32_t peer, const struct slu_wc *wc,
                          struct sluice_completion *completion)
{
    *completion = (struct sluice_completion){
        .bytes = wc->bytes,
        .peer = peer,
        .opcode = SLUICE_OP_RECEIVE,
        .flags = wc->flags & SLU_RECEIVED_FLAGS,
        .immediate = wc->immediate,
    };
}

int slu_submit_receive(struct slu_engine *engine, uint32_t peer_index, struct slu_receive_wr *wr,
                       int64_t deadline, struct sluice_completion *completion)
{
    struct slu_peer *peer = &engine->peers[peer_index];
    struct slu_slot *slot = NULL;
    struct slu_receive_wr *bad;
    struct single single;
    struct slu_wc wc;
    int polled = 0;
    int error = 0;

    if (SLU_LIKELY(peer_index < engine->peer_count))
        slot = plain_slot(engine, SLU_RECEIVE_QUEUE, peer, wr->sges, wr->sge_count, NULL, deadline);
    if (SLU_LIKELY(slot != NULL)) {
        wr->next = NULL;
        wr->id = slot->id;
        slu_engine_enter(engine);
        error = engine->transport->post_receive(peer->qp, wr, &bad);
        if (error == 0 && ends_at_once(engine, peer, SLU_RECEIVE_QUEUE, slot, &wc, &polled)) {
            slu_count_success(peer, SLUICE_OP_RECEIVE, wc.bytes);
            if (completion != NULL)
                fill_received(peer_index, &wc, completion);
            slu_engine_leave(engine);
            return 0;
        }
    }
    single = (struct single){.opcode = SLUICE_OP_RECEIVE, .peer = peer_index, .receive = wr};
    return slot == NULL ? submit_general(engine, &single, deadline, completion)
                        : wait_for(engine, &single, slot, error, &wc, polled, deadline, completion);
}

static INLINE int post_item(struct slu_engine *engine, struct slu_peer *peer, enum slu_queue queue,
                            uint64_t id, const struct slu_item *item)
{
    const struct sluice_request *request = item->request;
    struct slu_receive_wr receive, *bad_receive;
    struct slu_send_wr send, *bad_send;

    if (queue == SLU_RECEIVE_QUEUE) {
        slu_fill_receive(&receive, id, item->sges, request->sge_count);
        receive.next = NULL;
        return engine->transport->post_receive(peer->qp, &receive, &bad_receive);
    }
    slu_fill_send(&send, id, item, item->sges, request->sge_count);
    send.next = NULL;
    return engine->transport->post_send(peer->qp, &send, &bad_send);
}

static INLINE int post_to(struct slu_engine *engine, enum slu_queue queue,
                          const struct slu_item *item, int64_t deadline,
                          struct sluice_handle *handle)
{
    struct slu_pool *pool = &engine->pools[queue];
    struct slu_peer *peer = &engine->peers[item->peer];
    uint32_t index = pool->free.head;
    struct slu_slot *slot;
    int error;

    if (engine->scope.open || peer->state != SLUICE_STATE_READY || peer->free[queue] == 0 ||
        pool->cq_free == 0 || index == SLU_NONE)
        return -EAGAIN;
    slot = &pool->slots[index];
    slu_slot_rename(slot);
    slu_slot_hold_keys(engine, pool, slot, index, item->sges,
                       (item->request->flags & SLUICE_INLINE) != 0 ? 0 : item->request->sge_count);
    slu_engine_enter(engine);
    error = post_item(engine, peer, queue, slot->id, item);
    /* Nobody looks at the slot before the next poll: it is filled in while the device works. */
    slu_slot_begin(engine, queue, slot, item, SLU_OWNER_PROGRAM);
    slu_slot_join(engine, slot, NULL, 0,
                  deadline == SLUICE_FOREVER ? SLUICE_FOREVER : slu_after(deadline));
    slot->time = deadline;
    slot->posted = 1;
    peer->free[queue]--;
    pool->cq_free--;
    if (handle != NULL)
        *handle = (struct sluice_handle){.id = slot->id, .owner = engine->tag};
    if (SLU_UNLIKELY(error < 0))
        slu_post_refused(engine, peer, slot, error);
    slu_engine_leave(engine);
    return 0;
}

int slu_post_requests(struct slu_engine *engine, const struct sluice_request *requests,
                      uint32_t count, int64_t deadline, struct sluice_handle *handles)
{
    struct slu_source source;
    struct slu_item item;
    int result = -EAGAIN;

    if (SLU_LIKELY(count == 1 && requests != NULL && deadline > 0)) {
        item.request = requests;
        item.opcode = requests->opcode;
        if (slu_item_is_plain(engine, &item))
            result = item.opcode == SLUICE_OP_RECEIVE
                         ? post_to(engine, SLU_RECEIVE_QUEUE, &item, deadline, handles)
                         : post_to(engine, SLU_SEND_QUEUE, &item, deadline, handles);
    }
    if (SLU_LIKELY(result == 0))
        return 1;
    source = (struct slu_source){.lists = {requests}, .counts = {count}, .count = count};
    return slu_post(engine, &source, deadline, handles);
}
