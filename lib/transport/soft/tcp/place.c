/* SPDX-License-Identifier: MIT */
/*
 * Places a payload that is received: in memory of a key, in a receive, in the elements of a read,
 * or in the ring of early messages. Memory that the program has unmapped counts as no longer
 * registered.
 */
#include "transport/soft/tcp/seam.h"

#include <string.h>

/* Returns the list that the payload goes to, and whether it is guarded. */
static struct soft_cursor list_of(const struct soft_tcp *tcp, bool *guarded)
{
    const struct tcp_in *in = &tcp->in;
    if (in->frame.type == TCP_READ_REPLY || in->frame.type == TCP_ATOMIC_REPLY) {
        const struct soft_wqe *wqe = slu_soft_wqe(tcp->qp, in->frame.seq);
        *guarded = wqe->guarded;
        return (struct soft_cursor){wqe->sges, wqe->sge_count, 0};
    }
    const struct soft_receive *receive = slu_soft_receive(tcp->qp, tcp->qp->receives.done);
    *guarded = receive->guarded;
    return (struct soft_cursor){receive->sges, receive->sge_count, 0};
}

struct soft_cursor slu_soft_tcp_target(const struct soft_tcp *tcp)
{
    bool guarded;
    struct soft_cursor list = list_of(tcp, &guarded);
    return slu_soft_cursor(list.sges, list.count, tcp->in.offset);
}

bool slu_soft_tcp_target_is_mapped(const struct soft_tcp *tcp, uint64_t length)
{
    struct iovec pieces[SOFT_MAX_SGE];
    uint32_t count = slu_soft_cursor_iovecs(slu_soft_tcp_target(tcp), length, pieces, SOFT_MAX_SGE);
    uint32_t i = 0;
    while (i < count && slu_is_mapped(pieces[i].iov_base, pieces[i].iov_len))
        i++;
    return i == count;
}

bool slu_soft_tcp_pin_target(struct soft_tcp *tcp, struct soft_mr **pin)
{
    struct soft_key_reader *reader = &slu_soft_cq_of(tcp->qp)->reader;
    const struct tcp_frame *frame = &tcp->in.frame;
    slu_soft_keys_enter(reader);
    uint32_t status = slu_soft_check_remote(tcp->qp, frame->rkey, frame->addr, frame->length,
                                            SLUICE_ACCESS_REMOTE_WRITE, pin);
    slu_soft_keys_leave(reader);
    if (status != SLUICE_STATUS_SUCCESS)
        slu_soft_tcp_refuse(tcp, frame->seq, status);
    return status == SLUICE_STATUS_SUCCESS;
}

void slu_soft_tcp_touch_target(const struct soft_tcp *tcp, uint64_t length,
                               struct soft_touched *touched)
{
    bool guarded;
    struct soft_cursor list = list_of(tcp, &guarded);
    slu_soft_touch_nothing(touched);
    if (SLU_UNLIKELY(guarded))
        slu_soft_touch_list(touched, tcp->qp,
                            slu_soft_cursor(list.sges, list.count, tcp->in.offset), length, true);
}

/* Ends a request of ours with an error. It is the oldest, as a reply acknowledges all before it. */
static void end_request(struct soft_tcp *tcp, uint32_t position, uint32_t status)
{
    struct soft_wqe *wqe = slu_soft_wqe(tcp->qp, position);
    wqe->status = status;
    wqe->state = SOFT_WQE_DONE;
    slu_soft_retire(tcp->qp);
    if (tcp->phase == PHASE_OPEN) /* only if the peer broke the protocol */
        slu_soft_tcp_lose(tcp, status);
}

void slu_soft_tcp_fault(struct soft_tcp *tcp)
{
    const struct tcp_frame *frame = &tcp->in.frame;
    tcp->in.active = false;
    switch (frame->type) {
    case TCP_SEND:
        slu_soft_complete_receive(tcp->qp, SLUICE_STATUS_LOC_PROT_ERR, 0, false, 0);
        slu_soft_tcp_refuse(tcp, frame->seq, SLUICE_STATUS_REM_OP_ERR);
        break;
    case TCP_READ_REPLY:
    case TCP_ATOMIC_REPLY:
        end_request(tcp, frame->seq, SLUICE_STATUS_LOC_PROT_ERR);
        break;
    default:
        slu_soft_tcp_refuse(tcp, frame->seq, SLUICE_STATUS_REM_ACCESS_ERR);
    }
}

/*
 * Returns whether the target is no longer mapped. The check takes a system call, so pieces that are
 * received together check the whole region once.
 */
static bool is_gone_now(struct soft_tcp *tcp, const struct soft_mr *pin, uint64_t addr,
                        uint64_t length)
{
    uint32_t key = tcp->in.frame.rkey;
    if (pin == NULL || tcp->mapped == key || pin->lasts)
        return false;
    if (slu_soft_tcp_is_gone(pin, pin->at, pin->base.length))
        return slu_soft_tcp_is_gone(pin, addr, length);
    tcp->mapped = key;
    return false;
}

/*
 * Places a piece in memory of a key. The key is looked up for each piece, as the region may have
 * been deregistered since the last one.
 */
static bool place_memory(struct soft_tcp *tcp, const uint8_t *bytes, uint64_t length)
{
    struct soft_mr *pin;
    if (!slu_soft_tcp_pin_target(tcp, &pin))
        return false;
    uint64_t addr = slu_soft_place_of(pin, tcp->in.frame.addr + tcp->in.offset);
    struct soft_touched touched;
    slu_soft_touch_nothing(&touched);
    slu_soft_touch_region(&touched, pin, addr, length, true);
    bool gone = is_gone_now(tcp, pin, addr, length) || !slu_soft_touch_begin(&touched);
    if (!gone) {
        slu_soft_copy_visible((void *)(uintptr_t)addr, bytes, length);
        gone = !slu_soft_touch_end(&touched);
    }
    slu_soft_unpin(pin);
    if (gone)
        slu_soft_tcp_fault(tcp);
    return !gone;
}

/*
 * Returns whether to check that the target is mapped. For a short message the check would cost most
 * of the time, and the program has posted its receive only recently.
 */
static bool is_worth_a_look(const struct soft_tcp *tcp, uint64_t length)
{
    return !tcp->in.lasts && (tcp->in.frame.type != TCP_SEND || length > SOFT_WHOLE_BYTES);
}

static bool place_local(struct soft_tcp *tcp, const uint8_t *bytes, uint64_t length)
{
    struct soft_cursor target = slu_soft_tcp_target(tcp);
    struct soft_touched touched;
    if (is_worth_a_look(tcp, length) && !slu_soft_tcp_target_is_mapped(tcp, length)) {
        slu_soft_tcp_fault(tcp);
        return false;
    }
    slu_soft_tcp_touch_target(tcp, length, &touched);
    bool placed = slu_soft_touch_begin(&touched);
    if (placed) {
        slu_soft_scatter(&target, bytes, length);
        placed = slu_soft_touch_end(&touched);
    }
    if (!placed)
        slu_soft_tcp_fault(tcp);
    return placed;
}

static bool is_atomic(const struct tcp_frame *frame)
{
    return frame->type == TCP_COMPARE_SWAP || frame->type == TCP_FETCH_ADD;
}

bool slu_soft_tcp_place(struct soft_tcp *tcp, const uint8_t *bytes, uint64_t length)
{
    if (length == 0)
        return true;
    if ((tcp->in.frame.flags & TCP_FLAG_LENT) != 0) {
        memcpy(slu_soft_shm_lent_list(tcp) + tcp->in.offset, bytes, length);
    } else if (tcp->in.early != NULL) {
        memcpy(tcp->in.early + tcp->in.offset, bytes, length);
    } else if (tcp->in.frame.type == TCP_WRITE) {
        if (!place_memory(tcp, bytes, length))
            return false;
    } else if (is_atomic(&tcp->in.frame)) {
        memcpy((uint8_t *)tcp->in.operand + tcp->in.offset, bytes, length);
    } else if (!tcp->in.dropped && !place_local(tcp, bytes, length)) {
        return false;
    }
    tcp->in.offset += length;
    return true;
}
