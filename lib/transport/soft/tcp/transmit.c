/* SPDX-License-Identifier: MIT */
/*
 * Sending: many frames with one system call, straight from the callers' buffers. A batch begins
 * with the rest of a frame that was sent in part, followed by answers to the peer and then by new
 * requests. Frames that the socket did not take are built anew next time; one that it took in part
 * is resumed.
 */
#include "transport/soft/tcp/seam.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define MAX_FRAMES 64
#define MAX_IOVECS 192
#define MAX_BATCH_BYTES (UINT64_C(1) << 20)
#define GUARDED_PIECE (UINT64_C(1) << 18)

struct batch {
    uint32_t frame_count;
    uint32_t iovec_count;
    uint64_t bytes;
    bool locked;  /* in a key reader section, while it is built */
    bool cut;     /* the last frame is incomplete */
    bool refused; /* a read of the peer turned out to be invalid */
    bool lends;   /* nothing is sent behind a lent message */
    /* Values of the connection once all of the batch is sent. */
    uint32_t sent;
    uint32_t consumed;
    uint32_t fetches;
    uint32_t reads;
    uint32_t reply_head;
    struct tcp_out frames[MAX_FRAMES];
    struct iovec iovecs[MAX_IOVECS];
    struct sluice_sge lent[SOFT_MAX_SGE];
    uint32_t pin_count;
    struct soft_mr *pins[MAX_FRAMES]; /* regions that replies are read from */
    struct soft_touched touched;
};

static const uint8_t zeros[16384];

static void lock_keys(const struct soft_tcp *tcp, struct batch *batch)
{
    if (!batch->locked)
        slu_soft_keys_enter(&slu_soft_cq_of(tcp->qp)->reader);
    batch->locked = true;
}

static void unlock_keys(const struct soft_tcp *tcp, struct batch *batch)
{
    if (batch->locked)
        slu_soft_keys_leave(&slu_soft_cq_of(tcp->qp)->reader);
    batch->locked = false;
}

static bool has_room(const struct batch *batch, uint32_t iovecs)
{
    return batch->frame_count < MAX_FRAMES && batch->iovec_count + iovecs <= MAX_IOVECS &&
           batch->bytes < MAX_BATCH_BYTES && !batch->cut && !batch->refused;
}

static void add_iovec(struct batch *batch, const void *base, uint64_t length)
{
    struct iovec *iovec = &batch->iovecs[batch->iovec_count++];
    iovec->iov_base = (void *)(uintptr_t)base;
    iovec->iov_len = length;
    batch->bytes += length;
}

/* Returns how many requests of the peer are complete once the replies before this one are sent. */
static uint32_t ack_value(const struct soft_tcp *tcp, uint32_t reply_head)
{
    if (reply_head != tcp->reply_tail)
        return tcp->replies[reply_head % tcp->qp->attr.read_depth].seq;
    return tcp->nak ? tcp->nak_seq : tcp->executed;
}

uint32_t slu_soft_tcp_complete(const struct soft_tcp *tcp)
{
    return ack_value(tcp, tcp->reply_head);
}

static struct tcp_out *add_frame(struct soft_tcp *tcp, struct batch *batch, struct tcp_frame *frame,
                                 enum tcp_part part, uint32_t position)
{
    struct tcp_out *out = &batch->frames[batch->frame_count++];
    frame->ack = ack_value(tcp, batch->reply_head);
    frame->credit = tcp->qp->receives.posted;
    slu_soft_frame_encode(frame, out->header);
    out->part = part;
    out->position = position;
    out->payload = slu_soft_frame_payload(frame);
    out->sent = 0;
    out->ack = frame->ack;
    out->credit = frame->credit;
    out->lent = (frame->flags & TCP_FLAG_LENT) != 0;
    add_iovec(batch, out->header, TCP_FRAME_BYTES);
    return out;
}

/*
 * Returns how many of length guarded bytes the batch takes. Bytes that we copy ourselves are
 * checked first, which takes time, so only few are taken.
 */
static uint64_t guarded_piece(const struct soft_tcp *tcp, struct batch *batch, uint64_t length)
{
    unlock_keys(tcp, batch);
    if (!tcp->shared || length <= GUARDED_PIECE)
        return length;
    batch->cut = true;
    return GUARDED_PIECE;
}

static uint64_t touch_request(const struct soft_tcp *tcp, struct batch *batch,
                              struct soft_cursor list, uint64_t length)
{
    uint64_t piece = guarded_piece(tcp, batch, length);
    slu_soft_touch_list(&batch->touched, tcp->qp, list, tcp->shared ? piece : 0, false);
    return piece;
}

/* Adds the list of a lent message, from which the peer reads it. Keys are not sent. */
static void add_loan(struct batch *batch, const struct soft_wqe *wqe, uint64_t offset)
{
    for (uint32_t i = 0; i < wqe->sge_count; i++)
        batch->lent[i] = (struct sluice_sge){wqe->sges[i].addr, wqe->sges[i].length, 0};
    add_iovec(batch, (const uint8_t *)batch->lent + offset,
              wqe->sge_count * sizeof(*batch->lent) - offset);
}

/* Adds the payload of a request from an offset. The list has room for all of it. */
static void add_request_payload(const struct soft_tcp *tcp, struct batch *batch,
                                const struct tcp_out *out, uint64_t offset)
{
    const struct soft_wqe *wqe = slu_soft_wqe(tcp->qp, out->position);
    if (out->lent) {
        add_loan(batch, wqe, offset);
        return;
    }
    struct soft_cursor cursor = slu_soft_cursor(wqe->sges, wqe->sge_count, offset);
    if (slu_opcode_is_atomic(wqe->opcode)) {
        add_iovec(batch, (const uint8_t *)wqe->operand + offset, TCP_ATOMIC_BYTES - offset);
        return;
    }
    uint64_t length = wqe->length - offset;
    if (SLU_UNLIKELY(wqe->guarded))
        length = touch_request(tcp, batch, cursor, length);
    batch->iovec_count += slu_soft_cursor_iovecs(cursor, length, &batch->iovecs[batch->iovec_count],
                                                 MAX_IOVECS - batch->iovec_count);
    batch->bytes += length;
}

/*
 * Checks whether a reply may be read. If so, its region is pinned until the batch is sent, and
 * *piece is its memory from offset on, or the first part of that.
 */
static bool pin_reply(const struct soft_tcp *tcp, struct batch *batch,
                      const struct tcp_reply *reply, uint64_t offset, struct iovec *piece)
{
    struct soft_mr *pin = NULL;
    *piece = (struct iovec){.iov_len = reply->length - offset};
    if (reply->type == TCP_ATOMIC_REPLY)
        return true;
    lock_keys(tcp, batch);
    if (reply->gone)
        return false;
    if (slu_soft_check_remote(tcp->qp, reply->rkey, reply->addr, reply->length,
                              SLUICE_ACCESS_REMOTE_READ, &pin) != SLUICE_STATUS_SUCCESS)
        return false;
    /* We copy ourselves, so no system call reports unmapped memory. */
    if (tcp->shared && slu_soft_tcp_is_gone(pin, reply->addr, reply->length)) {
        slu_soft_unpin(pin);
        return false;
    }
    if (pin == NULL)
        return true;
    uint64_t at = slu_soft_place_of(pin, reply->addr) + offset;
    piece->iov_base = (void *)(uintptr_t)at;
    batch->pins[batch->pin_count++] = pin;
    if (SLU_UNLIKELY(slu_soft_is_guarded(pin))) {
        piece->iov_len = guarded_piece(tcp, batch, piece->iov_len);
        slu_soft_touch_region(&batch->touched, pin, at, tcp->shared ? piece->iov_len : 0, false);
    }
    return true;
}

static void unpin_all(struct batch *batch)
{
    while (batch->pin_count > 0)
        slu_soft_unpin(batch->pins[--batch->pin_count]);
}

/* Refuses a read and drops those behind it. The caller fails the queue pair. */
static void refuse_reply(struct soft_tcp *tcp, struct batch *batch, uint32_t seq)
{
    tcp->nak = true;
    tcp->nak_seq = seq;
    tcp->nak_status = SLUICE_STATUS_REM_ACCESS_ERR;
    batch->refused = true;
}

/*
 * Adds the rest of a reply. If its memory was deregistered meanwhile, the frame is filled with
 * zeros. The peer does not use them, because a refusal follows instead of an acknowledgement.
 */
static void resume_reply(struct soft_tcp *tcp, struct batch *batch, uint64_t offset)
{
    const struct tcp_reply *reply = &tcp->replies[tcp->reply_head % tcp->qp->attr.read_depth];
    uint64_t left = reply->length - offset;
    struct iovec first;
    bool void_already = tcp->nak && tcp->nak_seq == reply->seq;
    if (left == 0)
        return;
    if (!void_already && pin_reply(tcp, batch, reply, offset, &first)) {
        add_iovec(batch, first.iov_base, first.iov_len);
        return;
    }
    if (!void_already) {
        tcp->reply_tail = tcp->reply_head + 1;
        refuse_reply(tcp, batch, reply->seq);
    }
    while (left > 0 && batch->iovec_count < MAX_IOVECS) {
        uint64_t piece = left < sizeof(zeros) ? left : sizeof(zeros);
        add_iovec(batch, zeros, piece);
        left -= piece;
    }
    batch->cut = left > 0;
}

static void resume(struct soft_tcp *tcp, struct batch *batch)
{
    struct tcp_out *out = &batch->frames[0];
    if (tcp->out.part == TCP_PART_NONE)
        return;
    *out = tcp->out;
    batch->frame_count = 1;
    if (out->sent < TCP_FRAME_BYTES)
        add_iovec(batch, out->header + out->sent, TCP_FRAME_BYTES - out->sent);
    uint64_t offset = out->sent < TCP_FRAME_BYTES ? 0 : out->sent - TCP_FRAME_BYTES;
    if (out->part == TCP_PART_REQUEST && out->payload > 0)
        add_request_payload(tcp, batch, out, offset);
    if (out->part == TCP_PART_REPLY) {
        resume_reply(tcp, batch, offset);
        batch->reply_head++;
    }
}

static void add_replies(struct soft_tcp *tcp, struct batch *batch)
{
    /* Keep room for the frames that follow: two frames and their iovecs. */
    while (batch->reply_head != tcp->reply_tail && has_room(batch, 4) &&
           batch->frame_count < MAX_FRAMES - 2) {
        const struct tcp_reply *reply = &tcp->replies[batch->reply_head % tcp->qp->attr.read_depth];
        struct iovec first;
        if (!pin_reply(tcp, batch, reply, 0, &first)) {
            uint32_t seq = reply->seq;
            tcp->reply_tail = batch->reply_head;
            refuse_reply(tcp, batch, seq);
            return;
        }
        bool atomic = reply->type == TCP_ATOMIC_REPLY;
        struct tcp_frame frame = {.type = (uint8_t)reply->type,
                                  .seq = reply->seq,
                                  .addr = atomic ? reply->addr : 0,
                                  .length = reply->length};
        add_frame(tcp, batch, &frame, TCP_PART_REPLY, reply->seq);
        if (reply->length > 0)
            add_iovec(batch, first.iov_base, first.iov_len);
        batch->reply_head++;
    }
}

static void add_nak(struct soft_tcp *tcp, struct batch *batch)
{
    struct tcp_frame frame = {
        .type = TCP_NAK, .status = (uint8_t)tcp->nak_status, .seq = tcp->nak_seq};
    /* If the refusal was sent in part, the batch begins with its rest. */
    bool begun = tcp->out.part == TCP_PART_CONTROL && tcp->out.position == CONTROL_NAK;
    if (!begun && has_room(batch, 1) && batch->reply_head == tcp->reply_tail)
        add_frame(tcp, batch, &frame, TCP_PART_CONTROL, CONTROL_NAK);
}

/* Adds the farewell behind all other frames. A refusal replaces it, as it is more precise. */
static void add_farewell(struct soft_tcp *tcp, struct batch *batch)
{
    struct tcp_frame frame = {.type = TCP_FAREWELL, .status = tcp->qp->farewell};
    if (tcp->parts && !tcp->nak && batch->reply_head == tcp->reply_tail && has_room(batch, 1))
        add_frame(tcp, batch, &frame, TCP_PART_CONTROL, CONTROL_FAREWELL);
}

static void add_want(struct soft_tcp *tcp, struct batch *batch)
{
    struct tcp_frame frame = {.type = TCP_WANT, .seq = tcp->want_seq};
    add_frame(tcp, batch, &frame, TCP_PART_CONTROL, CONTROL_WANT);
}

static uint32_t check_request(const struct soft_tcp *tcp, struct batch *batch,
                              const struct soft_wqe *wqe)
{
    uint32_t access = slu_soft_is_fetch(wqe) ? SLUICE_ACCESS_LOCAL_WRITE : 0;
    if (wqe->length > SOFT_MAX_MESSAGE)
        return SLUICE_STATUS_LOC_LEN_ERR;
    lock_keys(tcp, batch);
    return slu_soft_check_local(tcp->qp, wqe->sges, wqe->sge_count, access);
}

/* Returns whether a request may be sent now. */
static bool may_start(const struct soft_tcp *tcp, const struct batch *batch,
                      const struct soft_wqe *wqe)
{
    if (batch->lends || !slu_soft_tcp_may_send(tcp, wqe, batch->consumed))
        return false;
    if ((wqe->flags & SLUICE_FENCE) != 0 && batch->fetches > 0)
        return false;
    /* Keep the order: the peer executes atomics at once, but reads when it sends the reply. */
    if (slu_opcode_is_atomic(wqe->opcode) && batch->reads > 0)
        return false;
    return !slu_soft_is_fetch(wqe) || batch->fetches < tcp->qp->max_reads;
}

static void add_request(struct soft_tcp *tcp, struct batch *batch, const struct soft_wqe *wqe)
{
    static const uint8_t types[] = {[SLUICE_OP_SEND] = TCP_SEND,
                                    [SLUICE_OP_WRITE] = TCP_WRITE,
                                    [SLUICE_OP_READ] = TCP_READ_REQUEST,
                                    [SLUICE_OP_COMPARE_SWAP] = TCP_COMPARE_SWAP,
                                    [SLUICE_OP_FETCH_ADD] = TCP_FETCH_ADD};
    struct tcp_frame frame = {.type = types[wqe->opcode],
                              .seq = batch->sent,
                              .length = slu_opcode_is_atomic(wqe->opcode) ? TCP_ATOMIC_BYTES
                                                                          : wqe->length};
    if (!slu_soft_is_fetch(wqe)) {
        bool immediate = (wqe->flags & SLUICE_IMMEDIATE) != 0;
        frame.flags = (uint8_t)((immediate ? TCP_FLAG_IMMEDIATE : 0) |
                                ((wqe->flags & SLU_WAITED) != 0 ? TCP_FLAG_PROMPT : 0));
        frame.immediate = immediate ? wqe->immediate : 0;
    }
    if (wqe->opcode != SLUICE_OP_SEND) {
        frame.rkey = wqe->rkey;
        frame.addr = wqe->remote_addr;
    }
    if (slu_soft_shm_lends(tcp, wqe)) {
        batch->lends = true;
        frame.flags |= TCP_FLAG_LENT;
        frame.rkey = wqe->sge_count;
    }
    slu_soft_tcp_answered(tcp);
    struct tcp_out *out = add_frame(tcp, batch, &frame, TCP_PART_REQUEST, batch->sent);
    if (wqe->opcode != SLUICE_OP_READ)
        add_request_payload(tcp, batch, out, 0);
    batch->sent++;
    batch->consumed += slu_soft_takes_receive(wqe);
    batch->fetches += slu_soft_is_fetch(wqe);
    batch->reads += wqe->opcode == SLUICE_OP_READ;
}

/* Returns whether a request was found faulty. */
static bool add_requests(struct soft_tcp *tcp, struct batch *batch)
{
    struct soft_qp *qp = tcp->qp;
    while (batch->sent != qp->sends.posted) {
        struct soft_wqe *wqe = slu_soft_wqe(qp, batch->sent);
        /* A faulty request is done already, and waits for those before it. */
        if (wqe->state == SOFT_WQE_DONE)
            break;
        if (!wqe->checked) {
            wqe->status = check_request(tcp, batch, wqe);
            wqe->checked = true;
            if (wqe->status != SLUICE_STATUS_SUCCESS) {
                wqe->state = SOFT_WQE_DONE;
                /* Those before it complete first: ask the peer to acknowledge them. */
                tcp->ask = batch->sent != qp->sends.done && !tcp->shared;
                return true;
            }
        }
        if (!may_start(tcp, batch, wqe) || !has_room(batch, 1 + wqe->sge_count))
            break;
        add_request(tcp, batch, wqe);
    }
    return false;
}

/* Adds probes, echoes and repeats, ahead of replies and requests, which may be many. */
static bool add_probes(struct soft_tcp *tcp, struct batch *batch)
{
    uint32_t before = batch->frame_count;
    struct tcp_frame probe = {.type = TCP_PROBE, .seq = tcp->probe_seq};
    struct tcp_frame echo = {.type = TCP_ECHO, .seq = tcp->echo_seq};
    struct tcp_frame repeat = {.type = TCP_REPEAT, .seq = tcp->executed};
    if (tcp->probe && has_room(batch, 1))
        add_frame(tcp, batch, &probe, TCP_PART_CONTROL, CONTROL_PROBE);
    if (tcp->echo && has_room(batch, 1))
        add_frame(tcp, batch, &echo, TCP_PART_CONTROL, CONTROL_ECHO);
    if (tcp->repeat && has_room(batch, 1))
        add_frame(tcp, batch, &repeat, TCP_PART_CONTROL, CONTROL_REPEAT);
    return batch->frame_count > before;
}

/* Returns whether a request was found faulty. */
static bool build(struct soft_tcp *tcp, struct batch *batch)
{
    bool faulty = false;
    batch->frame_count = 0;
    batch->iovec_count = 0;
    batch->bytes = 0;
    batch->pin_count = 0;
    slu_soft_touch_nothing(&batch->touched);
    batch->locked = batch->cut = batch->refused = false;
    batch->sent = tcp->qp->sent;
    batch->consumed = tcp->consumed;
    batch->fetches = tcp->fetches;
    batch->reads = tcp->reads;
    batch->lends = tcp->lends;
    batch->reply_head = tcp->reply_head;
    resume(tcp, batch);
    bool probed = tcp->phase == PHASE_OPEN && (tcp->probe || tcp->echo || tcp->repeat) &&
                  add_probes(tcp, batch);
    add_replies(tcp, batch);
    if (tcp->phase == PHASE_CLOSING) {
        if (tcp->nak)
            add_nak(tcp, batch);
    } else {
        faulty = add_requests(tcp, batch);
        if (SLU_UNLIKELY(tcp->announces))
            slu_soft_tcp_announce_want(tcp, batch->consumed, batch->sent);
    }
    /* A reply counts as complete only in a later frame. */
    bool told = batch->sent != tcp->qp->sent || (probed && batch->reply_head == tcp->reply_head);
    bool owed = (tcp->due || batch->reply_head != tcp->reply_head) && !told && !tcp->shared;
    unlock_keys(tcp, batch);
    if ((owed || tcp->ask) && !tcp->nak && has_room(batch, 1)) {
        struct tcp_frame frame = {.type = TCP_ACK, .flags = tcp->ask ? TCP_FLAG_PROMPT : 0};
        add_frame(tcp, batch, &frame, TCP_PART_CONTROL, tcp->ask ? CONTROL_ASK : CONTROL_ACK);
    }
    if (tcp->phase == PHASE_CLOSING)
        add_farewell(tcp, batch);
    else if (tcp->want && has_room(batch, 1))
        add_want(tcp, batch);
    return faulty;
}

/* Accounts for a frame when its first byte is sent. */
static void begin_frame(struct soft_tcp *tcp, const struct tcp_out *out)
{
    tcp->acked_out = out->ack;
    tcp->credit_out = out->credit;
    if (out->ack == tcp->executed && out->credit == tcp->qp->receives.posted)
        slu_soft_tcp_settled(tcp);
    if (out->part == TCP_PART_CONTROL) {
        tcp->probe &= out->position != CONTROL_PROBE;
        tcp->echo &= out->position != CONTROL_ECHO;
        tcp->repeat &= out->position != CONTROL_REPEAT;
        tcp->want &= out->position != CONTROL_WANT;
        tcp->parts &= out->position != CONTROL_FAREWELL;
    }
    if (out->part != TCP_PART_REQUEST)
        return;
    const struct soft_wqe *wqe = slu_soft_wqe(tcp->qp, out->position);
    tcp->qp->sent++;
    tcp->lends = out->lent;
    tcp->consumed += slu_soft_takes_receive(wqe);
    tcp->fetches += slu_soft_is_fetch(wqe);
    tcp->reads += wqe->opcode == SLUICE_OP_READ;
}

static void end_frame(struct soft_tcp *tcp, const struct tcp_out *out)
{
    tcp->out.part = TCP_PART_NONE;
    if (out->part == TCP_PART_REQUEST) {
        struct soft_wqe *wqe = slu_soft_wqe(tcp->qp, out->position);
        /* The queue pair failed while the frame was half sent: free its buffers now. */
        if (wqe->state == SOFT_WQE_OUT)
            wqe->state = SOFT_WQE_QUEUED;
    }
    if (out->part == TCP_PART_REPLY) {
        tcp->reply_head++;
        tcp->due = true; /* unless the next frame of the batch acknowledges it */
    }
    if (out->part == TCP_PART_CONTROL && out->position == CONTROL_NAK)
        tcp->nak = false;
    if (out->part == TCP_PART_CONTROL && out->position == CONTROL_ASK)
        tcp->ask = false;
}

/* Accounts for bytes that the socket took. */
static void commit(struct soft_tcp *tcp, struct batch *batch, uint64_t bytes)
{
    for (uint32_t i = 0; i < batch->frame_count && bytes > 0; i++) {
        struct tcp_out *out = &batch->frames[i];
        uint64_t left = TCP_FRAME_BYTES + out->payload - out->sent;
        if (out->sent == 0)
            begin_frame(tcp, out);
        if (bytes >= left) {
            bytes -= left;
            end_frame(tcp, out);
            continue;
        }
        out->sent += bytes;
        tcp->out = *out;
        return;
    }
}

static void set_blocked(struct soft_tcp *tcp, bool blocked)
{
    if (tcp->blocked == blocked && !tcp->starved)
        return;
    tcp->blocked = blocked;
    if (tcp->shared)
        return;
    /* Read while closing, too: if both sides closed without reading, neither could finish. */
    slu_soft_tcp_watch(tcp, EPOLLIN | (blocked && !tcp->starved ? EPOLLOUT : 0));
}

/* Finds the frame whose memory could not be read. False: none, or it cannot be taken back. */
static bool blame(struct soft_tcp *tcp, const struct batch *batch)
{
    for (uint32_t i = 0; i < batch->frame_count; i++) {
        const struct tcp_out *out = &batch->frames[i];
        if (out->part == TCP_PART_REPLY && slu_soft_tcp_blame_reply(tcp, out))
            return true;
        if (out->part != TCP_PART_REQUEST || !slu_soft_tcp_blame_request(tcp, out))
            continue;
        /* A half-sent request cannot be taken back, and must not look complete to the peer. */
        if (tcp->out.part == TCP_PART_REQUEST && tcp->out.position == out->position)
            return false;
        tcp->ask = out->position != tcp->qp->sends.done;
        return true;
    }
    return false;
}

/*
 * Sends a batch with its guarded regions. A refused access counts as if the kernel could not read.
 */
static ssize_t transmit_touched(struct soft_tcp *tcp, struct batch *batch)
{
    if (!slu_soft_touch_begin(&batch->touched))
        return -EFAULT;
    ssize_t sent = slu_soft_tcp_transmit(tcp, batch->iovecs, batch->iovec_count);
    slu_soft_touch_end(&batch->touched);
    return sent;
}

/* Builds and sends a batch. False: nothing is left to send, or the socket has no room. */
static bool push_batch(struct soft_tcp *tcp)
{
    struct batch batch;
    ssize_t sent = 0;
    bool faulty = build(tcp, &batch);
    if (batch.frame_count > 0)
        sent = transmit_touched(tcp, &batch);
    unpin_all(&batch);
    if (sent < 0 && slu_is_shortage((int)-sent)) {
        slu_soft_tcp_starve(tcp);
        sent = 0;
    }
    if (sent > 0) {
        tcp->moved |= SLU_MOVED_OUT;
        commit(tcp, &batch, (uint64_t)sent);
        if (tcp->out.part != TCP_PART_NONE || tcp->lends)
            slu_soft_tcp_expect_piece(tcp, true);
    }
    bool blamed = sent == -EFAULT && blame(tcp, &batch);
    if (sent < 0 && !blamed) {
        /* The socket itself may be sound: shut it down, so that its end is noticed. */
        tcp->broken = true;
        /* Before the shutdown, as it checks the socket for the peer's end. */
        slu_soft_shm_end_direct(tcp);
        shutdown(tcp->fd, SHUT_RDWR);
    } else if (!blamed) {
        set_blocked(tcp, batch.frame_count > 0 && sent == 0);
    }
    if (batch.refused)
        slu_soft_qp_refuse(tcp->qp);
    else if (sent == -EFAULT && !blamed)
        slu_soft_tcp_lose(tcp, SLUICE_STATUS_LOC_PROT_ERR);
    else if (sent == -EPROTO && tcp->shared)
        slu_soft_tcp_lose(tcp, SLUICE_STATUS_BAD_RESP_ERR);
    else if (faulty || blamed)
        slu_soft_retire(tcp->qp);
    return (sent > 0 || blamed || (batch.refused && sent == 0 && batch.frame_count == 0)) &&
           (tcp->phase == PHASE_OPEN || tcp->phase == PHASE_CLOSING);
}

void slu_soft_tcp_push(struct soft_tcp *tcp)
{
    if (tcp->phase != PHASE_OPEN && tcp->phase != PHASE_CLOSING) {
        if (tcp->phase == PHASE_IDLE)
            slu_soft_shm_speak(tcp);
        return;
    }
    while (!tcp->broken && push_batch(tcp))
        ;
    if (tcp->phase == PHASE_CLOSING && (tcp->broken || !tcp->blocked)) {
        slu_soft_tcp_close(tcp);
        slu_soft_retire(tcp->qp);
    }
}
