/* SPDX-License-Identifier: MIT */
/*
 * The wire within a context: the request itself is the message, which the owner of the target's CQ
 * executes and returns. A queue pair that fails sends one CLOSE behind its requests, which returns
 * those that wait at the peer, and fails the peer. If a page fault has stopped the thread that
 * serves the peer's CQ, destroying the queue pair takes its requests back itself, except one that
 * is being executed.
 */
#include "transport/soft/core/regions.h"

#include <string.h>

/* Result of a check besides a status: the request must wait for a receive. */
#define WAIT UINT32_MAX

static void park(struct soft_message *message)
{
    struct soft_qp *to = message->to;
    message->next = NULL;
    *to->parked_end = message;
    to->parked_end = &message->next;
}

static struct soft_message *unpark(struct soft_qp *qp)
{
    struct soft_message *message = qp->parked;
    if (message != NULL) {
        qp->parked = message->next;
        if (qp->parked == NULL)
            qp->parked_end = &qp->parked;
    }
    return message;
}

/* Messages that are not requests hold both ends. */
static void send_note(struct soft_message *note, uint32_t kind, struct soft_qp *from,
                      struct soft_qp *to)
{
    slu_soft_qp_hold(from);
    slu_soft_qp_hold(to);
    note->kind = kind;
    note->from = from;
    note->to = to;
    slu_soft_send(slu_soft_cq_of(to), note, slu_soft_cq_of(from));
}

static void drop_note(struct soft_message *note)
{
    struct soft_qp *from = note->from;
    slu_soft_qp_release(note->to);
    slu_soft_qp_release(from);
}

/* Claims a message for this side. False: its sender has taken it back, and it is dropped here. */
static bool claim(struct soft_message *message)
{
    struct soft_wqe *wqe = (struct soft_wqe *)message;
    unsigned none = SOFT_CLAIM_NONE;
    if (message->kind != SOFT_REQUEST ||
        atomic_compare_exchange_strong_explicit(&wqe->claim, &none, SOFT_CLAIM_TARGET,
                                                memory_order_acquire, memory_order_acquire))
        return true;
    drop_note(message);
    return false;
}

/* Releases the claim of a message that waits, so that its sender can take it back. */
static void disclaim(struct soft_message *message)
{
    struct soft_wqe *wqe = (struct soft_wqe *)message;
    if (message->kind == SOFT_REQUEST)
        atomic_store_explicit(&wqe->claim, SOFT_CLAIM_NONE, memory_order_release);
}

static void respond(struct soft_message *message, uint32_t status)
{
    struct soft_wqe *wqe = (struct soft_wqe *)message;
    const struct soft_cq *current = slu_soft_cq_of(message->to);
    wqe->status = status;
    message->kind = SOFT_RESPONSE;
    slu_soft_send(slu_soft_cq_of(message->from), message, current);
}

/* Returns a claimed message that cannot be executed here any more to its sender. */
static void bounce(struct soft_message *message, uint32_t status)
{
    switch (message->kind) {
    case SOFT_REQUEST:
        respond(message, status);
        break;
    case SOFT_HELLO: {
        struct soft_qp *from = message->from;
        message->kind = SOFT_CLOSE;
        message->from = message->to;
        message->to = from;
        slu_soft_send(slu_soft_cq_of(from), message, slu_soft_cq_of(message->from));
        break;
    }
    default:
        break;
    }
}

void slu_soft_self_bounce(struct soft_qp *qp)
{
    struct soft_message *message;
    while ((message = unpark(qp)) != NULL) {
        if (claim(message))
            bounce(message, SLUICE_STATUS_RETRY_EXC_ERR);
    }
}

/* Memory that a request will touch at the target, once the access was allowed. */
struct target {
    struct soft_mr *pin;
    uint32_t own; /* status of the receive */
    uint64_t at;  /* the remote address, as mapped here */
};

static uint32_t check_access(const struct soft_wqe *wqe, const struct soft_qp *to, uint32_t access,
                             struct target *target)
{
    uint32_t status = slu_soft_check_right(to, access);
    if (status == SLUICE_STATUS_SUCCESS)
        status = slu_soft_check_remote(to, wqe->rkey, wqe->remote_addr, wqe->length, access,
                                       &target->pin);
    return status;
}

/* Called inside a key reader section. Returns a status, or WAIT. */
static uint32_t check_target(const struct soft_wqe *wqe, struct soft_qp *to, struct target *target)
{
    if (slu_soft_takes_receive(wqe) && !slu_soft_has_receive(to))
        return WAIT;
    switch (wqe->opcode) {
    case SLUICE_OP_SEND:
        return slu_soft_match(to, wqe->length, &target->own);
    case SLUICE_OP_WRITE:
        return check_access(wqe, to, SLUICE_ACCESS_REMOTE_WRITE, target);
    case SLUICE_OP_READ:
        return check_access(wqe, to, SLUICE_ACCESS_REMOTE_READ, target);
    default:
        return slu_soft_check_atomic(to, wqe->rkey, wqe->remote_addr, &target->pin);
    }
}

/* Called outside of the section, because a page fault may take long. */
static void copy_bytes(const struct soft_wqe *wqe, const struct soft_qp *to, uint64_t at)
{
    struct soft_cursor own = slu_soft_cursor(wqe->sges, wqe->sge_count, 0), into;
    const struct soft_receive *receive;
    switch (wqe->opcode) {
    case SLUICE_OP_SEND:
        receive = slu_soft_receive(to, to->receives.done);
        into = slu_soft_cursor(receive->sges, receive->sge_count, 0);
        slu_soft_copy_sges(&into, &own, wqe->length);
        break;
    case SLUICE_OP_WRITE:
        slu_soft_gather_visible((void *)(uintptr_t)at, wqe->sges, wqe->sge_count, wqe->length);
        break;
    case SLUICE_OP_READ:
        slu_soft_scatter(&own, (const uint8_t *)(uintptr_t)at, wqe->length);
        break;
    default:
        slu_soft_atomic_result(wqe, slu_soft_atomic(wqe->opcode, at, wqe->operand));
    }
}

/* Checks the sender's own memory, before any of the target's. */
static uint32_t check_source(struct soft_wqe *wqe, const struct soft_qp *from)
{
    if (wqe->length > SOFT_MAX_MESSAGE)
        return SLUICE_STATUS_LOC_LEN_ERR;
    if (wqe->checked)
        return SLUICE_STATUS_SUCCESS;
    uint32_t access = slu_soft_is_fetch(wqe) ? SLUICE_ACCESS_LOCAL_WRITE : 0;
    return slu_soft_check_local(from, wqe->sges, wqe->sge_count, access);
}

static const struct soft_receive *receive_of(const struct soft_wqe *wqe, const struct soft_qp *to)
{
    return wqe->opcode == SLUICE_OP_SEND ? slu_soft_receive(to, to->receives.done) : NULL;
}

static bool touches_guarded(const struct soft_wqe *wqe, const struct soft_qp *to,
                            const struct target *target)
{
    const struct soft_receive *receive = receive_of(wqe, to);
    return wqe->guarded || (receive != NULL && receive->guarded) ||
           (target->pin != NULL && slu_soft_is_guarded(target->pin));
}

/* Returns the status for memory of the target that cannot be accessed. */
static uint32_t refuse(const struct soft_wqe *wqe, struct target *target)
{
    if (wqe->opcode != SLUICE_OP_SEND)
        return SLUICE_STATUS_REM_ACCESS_ERR;
    target->own = SLUICE_STATUS_LOC_PROT_ERR;
    return SLUICE_STATUS_REM_OP_ERR;
}

/* Copies to or from guarded regions. *source: status of the sender's own memory. */
static uint32_t copy_guarded(const struct soft_wqe *wqe, struct soft_qp *to, struct target *target,
                             uint32_t *source)
{
    const struct soft_receive *receive = receive_of(wqe, to);
    struct soft_touched own, other;
    bool fetches = slu_soft_is_fetch(wqe);
    slu_soft_touch_nothing(&own);
    slu_soft_touch_nothing(&other);
    /* Both queue pairs have the same context, so its keys are those of the sender, too. */
    if (wqe->guarded)
        slu_soft_touch_list(&own, to, slu_soft_cursor(wqe->sges, wqe->sge_count, 0), wqe->length,
                            fetches);
    if (receive != NULL && receive->guarded)
        slu_soft_touch_list(&other, to, slu_soft_cursor(receive->sges, receive->sge_count, 0),
                            wqe->length, true);
    slu_soft_touch_region(&other, target->pin, target->at, wqe->length,
                          wqe->opcode != SLUICE_OP_READ);
    if (!slu_soft_touch_begin(&own))
        return *source = SLUICE_STATUS_LOC_PROT_ERR;
    bool given = slu_soft_touch_begin(&other);
    if (given) {
        copy_bytes(wqe, to, target->at);
        given = slu_soft_touch_end(&other);
    }
    if (!slu_soft_touch_end(&own))
        return *source = SLUICE_STATUS_LOC_PROT_ERR;
    return given ? SLUICE_STATUS_SUCCESS : refuse(wqe, target);
}

static uint32_t copy(const struct soft_wqe *wqe, struct soft_qp *to, struct target *target,
                     uint32_t *source)
{
    target->at = slu_soft_place_of(target->pin, wqe->remote_addr);
    slu_soft_cq_of(to)->drained += wqe->length;
    if (SLU_UNLIKELY(touches_guarded(wqe, to, target)))
        return copy_guarded(wqe, to, target, source);
    copy_bytes(wqe, to, target->at);
    return SLUICE_STATUS_SUCCESS;
}

/* Completes the receive, if one is used up; a send always uses one. */
static void end_receive(const struct soft_wqe *wqe, struct soft_qp *to, uint32_t status,
                        uint32_t own)
{
    uint32_t flags = wqe->flags & SLUICE_IMMEDIATE;
    bool success = status == SLUICE_STATUS_SUCCESS;
    if (wqe->opcode == SLUICE_OP_SEND && !success && own == SLUICE_STATUS_LOC_LEN_ERR)
        slu_soft_fail_receive(to, own, wqe->length);
    else if (wqe->opcode == SLUICE_OP_SEND)
        slu_soft_complete_receive(to, own, success ? wqe->length : 0, flags, wqe->immediate);
    else if (wqe->opcode == SLUICE_OP_WRITE && flags != 0 && success)
        slu_soft_complete_receive(to, SLUICE_STATUS_SUCCESS, wqe->length, flags | SLUICE_WRITTEN,
                                  wqe->immediate);
}

/* Logs the refusal of a one-sided request, as the side whose memory it names. */
static void log_refusal(const struct soft_wqe *wqe, const struct soft_qp *to)
{
    uint32_t access = wqe->opcode == SLUICE_OP_WRITE  ? SLUICE_ACCESS_REMOTE_WRITE
                      : wqe->opcode == SLUICE_OP_READ ? SLUICE_ACCESS_REMOTE_READ
                                                      : SLUICE_ACCESS_REMOTE_ATOMIC;

    if (wqe->opcode != SLUICE_OP_SEND)
        slu_soft_log_refusal(to, wqe->rkey, wqe->remote_addr, wqe->length, access);
}

/* Executes a request between two connected queue pairs. False: it must wait. */
static bool execute(struct soft_wqe *wqe, struct soft_qp *from, struct soft_qp *to)
{
    struct soft_key_reader *reader = &slu_soft_cq_of(to)->reader;
    struct target target = {.own = SLUICE_STATUS_SUCCESS};
    slu_soft_keys_enter(reader);
    uint32_t source = check_source(wqe, from);
    uint32_t status = source;
    if (source == SLUICE_STATUS_SUCCESS)
        status = check_target(wqe, to, &target);
    slu_soft_keys_leave(reader);
    if (status == WAIT)
        return false;
    if (SLU_UNLIKELY(status == SLU_STATUS_DROPPED))
        status = SLUICE_STATUS_SUCCESS;
    else if (status == SLUICE_STATUS_SUCCESS)
        status = copy(wqe, to, &target, &source);
    slu_soft_unpin(target.pin);
    if (source == SLUICE_STATUS_SUCCESS)
        end_receive(wqe, to, status, target.own);
    if (source == SLUICE_STATUS_SUCCESS && status != SLUICE_STATUS_SUCCESS)
        log_refusal(wqe, to);
    respond(&wqe->message, status);
    if (source != SLUICE_STATUS_SUCCESS)
        to->recv_closed = true;
    else if (status != SLUICE_STATUS_SUCCESS) {
        slu_soft_note_loss(to, SOFT_LOSS_REFUSED);
        slu_soft_qp_fail(to, SLUICE_STATUS_WR_FLUSH_ERR, false);
    }
    return true;
}

/* Notes that the peer is connected to us. */
static void greet(struct soft_message *hello)
{
    hello->to->greeted = true;
    slu_soft_answered(hello->to, SLUICE_STATUS_SUCCESS);
    drop_note(hello);
}

/* Handles a message. False: it must wait, and so must all behind it. */
static bool handle(struct soft_message *message)
{
    struct soft_qp *to = message->to;
    struct soft_qp *from = message->from;
    unsigned state = atomic_load_explicit(&to->state, memory_order_relaxed);
    if (state == SLU_QP_PREPARED)
        return false;
    if (!claim(message))
        return true;
    if (state >= SLU_QP_ERROR || to->peer != from)
        bounce(message, SLUICE_STATUS_RETRY_EXC_ERR);
    else if (message->kind == SOFT_HELLO)
        greet(message);
    else if (to->recv_closed || slu_soft_in_error(from))
        bounce(message, SLUICE_STATUS_WR_FLUSH_ERR);
    else if (!execute((struct soft_wqe *)message, from, to))
        return disclaim(message), false;
    return true;
}

void slu_soft_self_request(struct soft_message *message)
{
    if (message->to->parked != NULL || !handle(message))
        park(message);
}

static void serve_parked(struct soft_qp *qp)
{
    struct soft_message *message;
    /*
     * The message is taken out first: if handling it fails the queue pair, that returns the rest.
     */
    while ((message = unpark(qp)) != NULL) {
        if (handle(message))
            continue;
        message->next = qp->parked;
        if (qp->parked == NULL)
            qp->parked_end = &message->next;
        qp->parked = message;
        return;
    }
}

void slu_soft_self_response(struct soft_message *message)
{
    struct soft_wqe *wqe = (struct soft_wqe *)message;
    wqe->state = SOFT_WQE_DONE;
    message->from->out--;
    /* Requests that waited at a peer that ends return before its CLOSE. */
    if (SLU_UNLIKELY(wqe->status == SLUICE_STATUS_RETRY_EXC_ERR) &&
        slu_soft_qp_state(&message->to->base) == SLU_QP_ERROR)
        slu_soft_note_farewell(message->from, message->to->farewell);
    slu_soft_retire(message->from);
}

/* Returns all messages of one sender; the others stay, in order. */
static void bounce_from(struct soft_qp *qp, const struct soft_qp *from)
{
    struct soft_message *message = qp->parked;
    qp->parked = NULL;
    qp->parked_end = &qp->parked;
    while (message != NULL) {
        struct soft_message *next = message->next;
        if (message->from != from)
            park(message);
        else if (message->kind == SOFT_HELLO)
            drop_note(message);
        else if (claim(message))
            bounce(message, SLUICE_STATUS_WR_FLUSH_ERR);
        message = next;
    }
}

void slu_soft_self_close(struct soft_message *message)
{
    struct soft_qp *to = message->to;
    bounce_from(to, message->from);
    if (to->peer == message->from) {
        slu_soft_note_farewell(to, message->from->farewell);
        slu_soft_qp_fail(to, SLUICE_STATUS_RETRY_EXC_ERR, false);
    }
    drop_note(message);
}

static int start_self(struct soft_qp *qp, const struct slu_endpoint *remote)
{
    struct soft_qp *peer = slu_soft_qp_find(slu_soft_context(qp), remote->qpn);
    if (peer != NULL && (peer->generation != remote->soft.generation ||
                         memcmp(peer->nonce, remote->soft.nonce, sizeof(peer->nonce)) != 0)) {
        slu_soft_qp_release(peer);
        peer = NULL;
    }
    qp->peer = peer;
    if (peer == NULL || slu_soft_in_error(peer)) {
        slu_soft_qp_fail(qp, SLUICE_STATUS_RETRY_EXC_ERR, false);
        return 0;
    }
    qp->greeted = peer == qp;
    if (peer != qp)
        send_note(&qp->hello, SOFT_HELLO, qp, peer);
    serve_parked(qp);
    return 0;
}

static void push_self(struct soft_qp *qp)
{
    struct soft_qp *peer = qp->peer;
    struct soft_cq *cq = slu_soft_cq_of(peer);
    bool pushed = qp->sent != qp->sends.posted;
    while (qp->sent != qp->sends.posted) {
        struct soft_wqe *wqe = slu_soft_wqe(qp, qp->sent++);
        wqe->state = SOFT_WQE_OUT;
        wqe->message.kind = SOFT_REQUEST;
        atomic_store_explicit(&wqe->claim, SOFT_CLAIM_NONE, memory_order_relaxed);
        wqe->message.from = qp;
        wqe->message.to = peer;
        qp->out++;
        slu_soft_inbox_push(cq, &wqe->message);
    }
    /* We hold peer, which holds its CQ. */
    if (pushed && cq != slu_soft_cq_of(qp))
        slu_soft_inbox_notify(cq);
}

static void ask_self(struct soft_qp *qp)
{
    if (qp->greeted)
        slu_soft_answered(qp, SLUICE_STATUS_SUCCESS);
}

static void stop_self(struct soft_qp *qp, bool hard)
{
    (void)hard;
    if (qp->peer != NULL && qp->peer != qp && qp->close.kind != SOFT_CLOSE)
        send_note(&qp->close, SOFT_CLOSE, qp, qp->peer);
}

/* Takes back requests that the peer has not begun: from then on it does not touch their memory. */
static void take_back(struct soft_qp *qp)
{
    for (uint32_t i = qp->sends.done; i != qp->sent; i++) {
        struct soft_wqe *wqe = slu_soft_wqe(qp, i);
        unsigned none = SOFT_CLAIM_NONE;
        if (wqe->state != SOFT_WQE_OUT)
            continue;
        /* The target will still read the message before it drops it. */
        slu_soft_qp_hold(qp);
        slu_soft_qp_hold(qp->peer);
        if (atomic_compare_exchange_strong_explicit(&wqe->claim, &none, SOFT_CLAIM_SENDER,
                                                    memory_order_acq_rel, memory_order_relaxed)) {
            wqe->status = SLUICE_STATUS_WR_FLUSH_ERR;
            wqe->state = SOFT_WQE_DONE;
            qp->out--;
        } else {
            slu_soft_qp_release(qp->peer);
            slu_soft_qp_release(qp);
        }
    }
}

static void destroy_self(struct soft_qp *qp)
{
    struct soft_cq *cq = slu_soft_cq_of(qp);
    /* Wait for requests that are being executed or are on their way back. */
    for (unsigned time = 0; qp->out > 0; time++) {
        cq->drained = 0;
        slu_soft_inbox_drain(cq);
        take_back(qp);
        if (qp->out > 0)
            slu_soft_pause(time);
    }
    if (qp->peer != NULL)
        slu_soft_qp_release(qp->peer);
    qp->peer = NULL;
}

static bool wants_self(const struct soft_qp *qp)
{
    return qp->parked != NULL && !slu_soft_holds_receive(qp);
}

const struct soft_wire slu_soft_wire_self = {
    .start = start_self,
    .push = push_self,
    .ask = ask_self,
    .receives = serve_parked,
    .wants = wants_self,
    .stop = stop_self,
    .destroy = destroy_self,
};
