/* SPDX-License-Identifier: MIT */
/*
 * Executes frames. A frame that a correct peer could not have sent in this state fails the queue
 * pair with "bad response" and has no other effect.
 */
#include "transport/soft/tcp/seam.h"

#include <string.h>

static bool is_open(const struct soft_tcp *tcp)
{
    return tcp->phase == PHASE_OPEN;
}

/* Compares positions that wrap: is a before b? */
static bool is_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

/*
 * Completes our requests up to end, or up to the first without its reply. Returns where it stopped.
 */
static uint32_t finish_requests(struct soft_tcp *tcp, uint32_t end)
{
    struct soft_qp *qp = tcp->qp;
    uint32_t position = qp->sends.done;
    for (; position != end; position++) {
        struct soft_wqe *wqe = slu_soft_wqe(qp, position);
        if (slu_soft_is_fetch(wqe)) {
            if (!wqe->replied)
                break;
            tcp->fetches--;
            tcp->reads -= wqe->opcode == SLUICE_OP_READ;
        }
        wqe->state = SOFT_WQE_DONE;
    }
    tcp->lends = tcp->lends && position != qp->sent;
    slu_soft_retire(qp);
    /* The cursor stays close, so that positions can wrap. */
    if (is_before(tcp->fetch_cursor, position))
        tcp->fetch_cursor = position;
    return position;
}

/* Returns whether all requests up to end were sent. */
static bool was_sent(const struct soft_tcp *tcp, uint32_t end)
{
    const struct soft_qp *qp = tcp->qp;
    uint32_t sent = qp->sent - (tcp->out.part == TCP_PART_REQUEST);
    return end - qp->sends.done <= sent - qp->sends.done;
}

/* Handles an acknowledgement. With shared memory it may be older than the peer's words. */
static bool accept_ack(struct soft_tcp *tcp, uint32_t ack)
{
    uint32_t first = tcp->qp->sends.done;
    if (ack == first || (tcp->shared && is_before(ack, first)))
        return true;
    if (!was_sent(tcp, ack))
        return slu_soft_tcp_reject(tcp, "it acknowledges what was not sent");
    if (finish_requests(tcp, ack) != ack)
        return slu_soft_tcp_reject(tcp, "it acknowledges a read or atomic without a reply");
    return is_open(tcp);
}

bool slu_soft_tcp_take_done(struct soft_tcp *tcp, uint32_t done)
{
    if (is_before(done, tcp->qp->sends.done))
        return true;
    if (!was_sent(tcp, done))
        return slu_soft_tcp_reject(tcp, "it has done what was not sent");
    finish_requests(tcp, done);
    return is_open(tcp);
}

bool slu_soft_tcp_take_credit(struct soft_tcp *tcp, uint32_t credit)
{
    if (tcp->shared && is_before(credit, tcp->credits))
        return true;
    if (credit - tcp->credits > SOFT_MAX_DEPTH ||
        (int32_t)(credit - tcp->consumed) > SOFT_MAX_DEPTH)
        return slu_soft_tcp_reject(tcp, "it posted more receives than there can be");
    tcp->credits = credit;
    return true;
}

bool slu_soft_tcp_match(struct soft_tcp *tcp, uint32_t seq, uint64_t length)
{
    struct soft_qp *qp = tcp->qp;
    uint32_t own;
    slu_soft_keys_enter(&slu_soft_cq_of(qp)->reader);
    uint32_t status = slu_soft_match(qp, length, &own);
    const struct soft_receive *receive = slu_soft_receive(qp, qp->receives.done);
    tcp->in.lasts =
        length > SOFT_WHOLE_BYTES && slu_soft_all_lasts(qp, receive->sges, receive->sge_count);
    slu_soft_keys_leave(&slu_soft_cq_of(qp)->reader);
    if (status == SLUICE_STATUS_SUCCESS)
        return true;
    tcp->in.dropped = status == SLU_STATUS_DROPPED;
    if (tcp->in.dropped)
        return false;
    slu_soft_fail_receive(qp, own, length);
    slu_soft_tcp_refuse(tcp, seq, status);
    return false;
}

static bool begin_send(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    if ((frame->flags & TCP_FLAG_LENT) != 0 && !tcp->shared)
        return slu_soft_tcp_reject(tcp, "memory is lent over a socket");
    if (!slu_soft_tcp_has_receive(tcp))
        return (tcp->in.early = slu_soft_tcp_set_aside(tcp, frame)) != NULL;
    slu_soft_shm_time(tcp, frame->length);
    return slu_soft_tcp_match(tcp, frame->seq, frame->length) || tcp->in.dropped;
}

/* Checks that the peer may access the memory it names. */
static bool check_access(struct soft_tcp *tcp, const struct tcp_frame *frame, uint32_t access)
{
    struct soft_qp *qp = tcp->qp;
    uint32_t status = slu_soft_check_right(qp, access);
    if (status == SLUICE_STATUS_SUCCESS) {
        slu_soft_keys_enter(&slu_soft_cq_of(qp)->reader);
        status = slu_soft_check_remote(qp, frame->rkey, frame->addr, frame->length, access, NULL);
        slu_soft_keys_leave(&slu_soft_cq_of(qp)->reader);
    }
    if (status == SLUICE_STATUS_SUCCESS)
        return true;
    slu_soft_log_refusal(qp, frame->rkey, frame->addr, frame->length, access);
    slu_soft_tcp_refuse(tcp, frame->seq, status);
    return false;
}

static bool begin_write(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    if ((frame->flags & TCP_FLAG_IMMEDIATE) != 0 && !slu_soft_holds_receive(tcp->qp))
        return slu_soft_tcp_reject(tcp, "a write with immediate without a receive");
    return check_access(tcp, frame, SLUICE_ACCESS_REMOTE_WRITE);
}

static bool has_reply_room(struct soft_tcp *tcp)
{
    return tcp->reply_tail - tcp->reply_head < tcp->qp->attr.read_depth ||
           slu_soft_tcp_reject(tcp, "more reads and atomics than were agreed on");
}

static bool begin_read(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    return has_reply_room(tcp) && check_access(tcp, frame, SLUICE_ACCESS_REMOTE_READ);
}

/*
 * Begins an atomic operation. Access is checked once the operands have arrived, directly before the
 * operation.
 */
static bool begin_atomic(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    (void)frame;
    return has_reply_room(tcp);
}

/* Returns whether the frame is the reply to a request. */
static bool answers(const struct tcp_frame *frame, const struct soft_wqe *wqe)
{
    if (frame->type == TCP_ATOMIC_REPLY)
        return slu_opcode_is_atomic(wqe->opcode);
    return wqe->opcode == SLUICE_OP_READ && frame->length == wqe->length;
}

static bool begin_reply(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    const struct soft_qp *qp = tcp->qp;
    uint32_t sent = qp->sent - (tcp->out.part == TCP_PART_REQUEST);
    uint32_t position = tcp->fetch_cursor;
    /* Entries before the oldest unfinished request may have been reused. */
    if (position - qp->sends.done > sent - qp->sends.done)
        position = qp->sends.done;
    for (; position != sent; position++) {
        const struct soft_wqe *wqe = slu_soft_wqe(qp, position);
        if (slu_soft_is_fetch(wqe) && !wqe->replied)
            break;
    }
    tcp->fetch_cursor = position;
    if (position == sent || frame->seq != position || !answers(frame, slu_soft_wqe(qp, position)))
        return slu_soft_tcp_reject(tcp, "a reply to no read or atomic");
    if (frame->type == TCP_READ_REPLY) {
        const struct soft_wqe *wqe = slu_soft_wqe(qp, position);
        slu_soft_keys_enter(&slu_soft_cq_of(qp)->reader);
        tcp->in.lasts = slu_soft_all_lasts(qp, wqe->sges, wqe->sge_count);
        slu_soft_keys_leave(&slu_soft_cq_of(qp)->reader);
    }
    return true;
}

static bool begin_ack(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    (void)tcp;
    (void)frame;
    return true;
}

static bool begin_nak(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    struct soft_qp *qp = tcp->qp;
    uint32_t sent = qp->sent - (tcp->out.part == TCP_PART_REQUEST);
    /* All requests before it must be complete, and it must be sent, at least in part. */
    if (frame->seq != qp->sends.done || frame->seq != frame->ack ||
        (frame->seq == sent && tcp->out.part != TCP_PART_REQUEST))
        return slu_soft_tcp_reject(tcp, "it refuses what was not sent");
    struct soft_wqe *wqe = slu_soft_wqe(qp, frame->seq);
    wqe->status = frame->status;
    wqe->state = SOFT_WQE_DONE;
    /* A peer that refused the request does not need the rest of its frame. */
    tcp->broken = true;
    slu_soft_retire(qp);
    return false;
}

/* Completes a message that uses up a receive. flags: those of the completion. */
static bool finish_message(struct soft_tcp *tcp, const struct tcp_frame *frame, uint32_t flags)
{
    tcp->executed++;
    slu_soft_complete_receive(tcp->qp, SLUICE_STATUS_SUCCESS, frame->length, flags,
                              frame->immediate);
    /* The peer may have used up all its credit. */
    if (slu_soft_holds_receive(tcp->qp))
        slu_soft_tcp_announce(tcp);
    return true;
}

/* Reads a lent message from the peer's memory. Returns whether that succeeded. */
static bool fetch_loan(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    tcp->in.offset = 0; /* now of the message itself */
    enum shm_loan loan = slu_soft_shm_borrow(tcp, frame);
    /* A peer that withdrew its loan ends the connection, with a farewell if it can. */
    if (loan == SHM_LOAN_NONSENSE)
        slu_soft_tcp_reject(tcp, "it lends other than it sends");
    else if (loan == SHM_LOAN_FAULT)
        slu_soft_tcp_fault(tcp);
    return loan == SHM_LOAN_DONE;
}

static bool finish_send(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    bool immediate = (frame->flags & TCP_FLAG_IMMEDIATE) != 0;
    bool lent = (frame->flags & TCP_FLAG_LENT) != 0;
    if (SLU_UNLIKELY(tcp->in.dropped)) {
        slu_soft_tcp_dropped(tcp, frame->length);
        slu_soft_tcp_announce(tcp);
        return true;
    }
    if (lent && !fetch_loan(tcp, frame))
        return is_open(tcp);
    slu_soft_shm_learn(tcp, frame->length, lent);
    return finish_message(tcp, frame, immediate ? SLUICE_IMMEDIATE : 0);
}

static bool finish_write(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    if ((frame->flags & TCP_FLAG_IMMEDIATE) != 0)
        return finish_message(tcp, frame, SLUICE_IMMEDIATE | SLUICE_WRITTEN);
    tcp->executed++;
    return true;
}

/* Counts the request as executed and queues its reply, which is sent as the socket has room. */
static bool owe_reply(struct soft_tcp *tcp, const struct tcp_reply *reply)
{
    tcp->executed++;
    tcp->replies[tcp->reply_tail++ % tcp->qp->attr.read_depth] = *reply;
    return true;
}

static bool finish_read(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    struct tcp_reply reply = {.type = TCP_READ_REPLY,
                              .seq = frame->seq,
                              .addr = frame->addr,
                              .length = frame->length,
                              .rkey = frame->rkey};
    return owe_reply(tcp, &reply);
}

/* Executes an atomic operation whose access was checked. */
static uint32_t change_word(const struct soft_tcp *tcp, const struct tcp_frame *frame,
                            struct soft_mr *pin, uint64_t *before)
{
    uint32_t opcode = frame->type == TCP_FETCH_ADD ? SLUICE_OP_FETCH_ADD : SLUICE_OP_COMPARE_SWAP;
    struct soft_touched touched;
    uint64_t at = slu_soft_place_of(pin, frame->addr);
    slu_soft_touch_nothing(&touched);
    slu_soft_touch_region(&touched, pin, at, sizeof(uint64_t), true);
    if (slu_soft_tcp_is_gone(pin, frame->addr, sizeof(uint64_t)) || !slu_soft_touch_begin(&touched))
        return SLUICE_STATUS_REM_ACCESS_ERR;
    *before = slu_soft_atomic(opcode, at, tcp->in.operand);
    return slu_soft_touch_end(&touched) ? SLUICE_STATUS_SUCCESS : SLUICE_STATUS_REM_ACCESS_ERR;
}

static bool finish_atomic(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    struct soft_key_reader *reader = &slu_soft_cq_of(tcp->qp)->reader;
    struct tcp_reply reply = {.type = TCP_ATOMIC_REPLY, .seq = frame->seq};
    if (frame->type == TCP_FETCH_ADD && tcp->in.operand[1] != 0)
        return slu_soft_tcp_reject(tcp, "a fetch-add with two operands");
    struct soft_mr *pin;
    slu_soft_keys_enter(reader);
    uint32_t status = slu_soft_check_atomic(tcp->qp, frame->rkey, frame->addr, &pin);
    slu_soft_keys_leave(reader);
    if (status == SLUICE_STATUS_SUCCESS) {
        status = change_word(tcp, frame, pin, &reply.addr);
        slu_soft_unpin(pin);
    }
    if (status != SLUICE_STATUS_SUCCESS) {
        slu_soft_log_refusal(tcp->qp, frame->rkey, frame->addr, sizeof(uint64_t),
                             SLUICE_ACCESS_REMOTE_ATOMIC);
        slu_soft_tcp_refuse(tcp, frame->seq, status);
        return false;
    }
    return owe_reply(tcp, &reply);
}

/* Stores the old value in the element of an atomic request of ours. */
static bool place_result(struct soft_tcp *tcp, const struct soft_wqe *wqe, uint64_t before)
{
    struct soft_touched touched;
    slu_soft_tcp_touch_target(tcp, sizeof(uint64_t), &touched);
    if (!slu_is_mapped((const void *)(uintptr_t)wqe->sges[0].addr, sizeof(uint64_t)) ||
        !slu_soft_touch_begin(&touched))
        return false;
    slu_soft_atomic_result(wqe, before);
    return slu_soft_touch_end(&touched);
}

static bool finish_reply(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    struct soft_wqe *wqe = slu_soft_wqe(tcp->qp, frame->seq);
    if (frame->type == TCP_ATOMIC_REPLY && !place_result(tcp, wqe, frame->addr)) {
        slu_soft_tcp_fault(tcp);
        return false;
    }
    wqe->replied = true;
    return true;
}

static bool finish_probe(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    tcp->echo = true;
    tcp->echo_seq = frame->seq;
    slu_soft_tcp_hurry(tcp);
    return true;
}

static bool begin_echo(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    if (!tcp->qp->asking || tcp->probe || frame->seq != tcp->probe_seq)
        return slu_soft_tcp_reject(tcp, "an answer to what it was not asked");
    return true;
}

static bool finish_echo(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    (void)frame;
    slu_soft_answered(tcp->qp, SLUICE_STATUS_SUCCESS);
    return true;
}

/* Takes back the last lent request, to send it again with the message itself. */
static bool begin_repeat(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    struct soft_qp *qp = tcp->qp;
    if (!tcp->lends || tcp->out.part == TCP_PART_REQUEST || frame->seq != qp->sent - 1)
        return slu_soft_tcp_reject(tcp, "it wants again what was not lent");
    tcp->lends = false;
    slu_soft_shm_lend_no_more(tcp);
    tcp->consumed--;
    qp->sent--;
    return true;
}

/* Notes for how many messages the peer needs receives of the pool. */
static bool begin_want(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    uint32_t more = frame->seq - tcp->wanted;
    if (tcp->qp->pool == NULL)
        return slu_soft_tcp_reject(tcp, "it asks for receives of a pool, and there is none");
    if (frame->seq - tcp->qp->receives.posted > SOFT_MAX_DEPTH && (int32_t)more > 0)
        return slu_soft_tcp_reject(tcp, "it asks for more receives than there can be");
    if ((int32_t)more > 0)
        tcp->wanted = frame->seq;
    slu_soft_tcp_satisfy(tcp);
    return true;
}

static const struct {
    bool request; /* has the next sequence number */
    bool (*begin)(struct soft_tcp *tcp, const struct tcp_frame *frame);
    bool (*finish)(struct soft_tcp *tcp, const struct tcp_frame *frame);
} handlers[] = {
    [TCP_SEND] = {true, begin_send, finish_send},
    [TCP_WRITE] = {true, begin_write, finish_write},
    [TCP_READ_REQUEST] = {true, begin_read, finish_read},
    [TCP_READ_REPLY] = {false, begin_reply, finish_reply},
    [TCP_ACK] = {false, begin_ack, begin_ack},
    [TCP_NAK] = {false, begin_nak, begin_ack},
    [TCP_COMPARE_SWAP] = {true, begin_atomic, finish_atomic},
    [TCP_FETCH_ADD] = {true, begin_atomic, finish_atomic},
    [TCP_ATOMIC_REPLY] = {false, begin_reply, finish_reply},
    [TCP_PROBE] = {false, begin_ack, finish_probe},
    [TCP_ECHO] = {false, begin_echo, finish_echo},
    [TCP_REPEAT] = {false, begin_repeat, begin_ack},
    [TCP_FAREWELL] = {false, slu_soft_tcp_take_farewell, begin_ack},
    [TCP_WANT] = {false, begin_want, begin_ack},
};

bool slu_soft_tcp_begin(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    if (!accept_ack(tcp, frame->ack) || !slu_soft_tcp_accept_credit(tcp, frame->credit))
        return false;
    if (handlers[frame->type].request && !slu_soft_tcp_is_next(tcp, frame))
        return slu_soft_tcp_reject(tcp, "a request out of order");
    tcp->in.lasts = tcp->in.dropped = false;
    tcp->in.early = NULL;
    if (!handlers[frame->type].begin(tcp, frame))
        return false;
    tcp->in.frame = *frame;
    tcp->in.offset = 0;
    tcp->in.active = true;
    return true;
}

bool slu_soft_tcp_finish(struct soft_tcp *tcp)
{
    const struct tcp_frame *frame = &tcp->in.frame;
    tcp->in.active = false;
    if (tcp->in.early != NULL)
        return slu_soft_tcp_take_early(tcp);
    if (frame->type == TCP_SEND || frame->type == TCP_WRITE)
        slu_soft_tcp_asked(tcp, frame);
    else if ((frame->flags & TCP_FLAG_PROMPT) != 0)
        slu_soft_tcp_hurry(tcp);
    return handlers[frame->type].finish(tcp, frame) && is_open(tcp);
}

/* Matching early messages with receives. */

/* Handles the oldest early message as if it had been received now. */
static bool take_oldest(struct soft_tcp *tcp)
{
    uint32_t index = tcp->early_first++ % SLU_EARLY_MOST;
    struct tcp_early *early = &tcp->early[index];
    tcp->early_count--;
    early->frame.seq = tcp->executed;
    tcp->in = (struct tcp_in){.frame = early->frame};
    slu_soft_shm_time(tcp, early->frame.length);
    return (slu_soft_tcp_match(tcp, tcp->executed, early->frame.length) || tcp->in.dropped) &&
           slu_soft_tcp_place(tcp, slu_soft_tcp_early_bytes(tcp, index), early->frame.length) &&
           slu_soft_tcp_finish(tcp);
}

/* Counts early messages, except one that is still incomplete. */
static uint32_t whole_count(const struct soft_tcp *tcp)
{
    return tcp->early_count - (tcp->in.active && tcp->in.early != NULL);
}

bool slu_soft_tcp_take_early(struct soft_tcp *tcp)
{
    uint32_t count = whole_count(tcp);
    if (count == 0)
        return true;
    /* A payload may be in progress: of a reply, or of the last early message. */
    struct tcp_in before = tcp->in;
    while (count-- > 0 && slu_soft_has_receive(tcp->qp) && take_oldest(tcp))
        ;
    tcp->in = before;
    /* With a pool, messages are early only while it is empty: idle peers keep no room for them. */
    if (tcp->early_count == 0 && tcp->qp->pool != NULL)
        slu_soft_tcp_drop_early(tcp);
    return tcp->phase == PHASE_OPEN;
}
