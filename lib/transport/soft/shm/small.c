/* SPDX-License-Identifier: MIT */
/*
 * Small messages through shared memory. Each has a record of its own, without a frame: the words of
 * its sender, as in the segment; immediate data, in 8 bytes, if it is of that kind; and the bytes.
 * The message implicitly has the next sequence number, shared with the requests in the stream.
 */
#include "transport/soft/shm/shm.h"

#include <string.h>

#define HEADER_MOST 16
/*
 * With at least this many unfinished requests, more are likely to follow: prefetch the next slot.
 */
#define STREAM_LEAST 4

/* Sending. */

static bool is_small(const struct soft_wqe *wqe)
{
    return wqe->opcode == SLUICE_OP_SEND && wqe->length <= SOFT_WHOLE_BYTES &&
           (wqe->flags & SLUICE_FENCE) == 0 && wqe->state != SOFT_WQE_DONE && !wqe->guarded;
}

/*
 * Checks the memory of a request. A failure is only reported when the request is sent as a frame.
 */
static bool may_read(const struct soft_qp *qp, struct soft_wqe *wqe)
{
    if (!wqe->checked) {
        slu_soft_keys_enter(&slu_soft_cq_of(qp)->reader);
        wqe->checked =
            slu_soft_check_local(qp, wqe->sges, wqe->sge_count, 0) == SLUICE_STATUS_SUCCESS;
        slu_soft_keys_leave(&slu_soft_cq_of(qp)->reader);
    }
    return wqe->checked;
}

/* Returns whether nothing has to be sent before the next request, and no frame is half sent. */
static inline bool is_clear(const struct soft_tcp *tcp)
{
    return tcp->phase == PHASE_OPEN && !tcp->blocked && tcp->out.part == TCP_PART_NONE &&
           tcp->reply_head == tcp->reply_tail && !tcp->probe && !tcp->echo && !tcp->nak &&
           !tcp->lends && !tcp->repeat;
}

/* Notes what goes with a record: all pending acknowledgements and credit. */
static inline uint64_t take_words(struct soft_tcp *tcp)
{
    tcp->acked_out = tcp->executed;
    tcp->credit_out = tcp->qp->receives.posted;
    tcp->due = tcp->hasty = false;
    return slu_soft_shm_words(tcp->acked_out, tcp->credit_out);
}

/* Notes that records were published, and prefetches the next slot if more are likely to follow. */
static inline void note_published(struct soft_tcp *tcp)
{
    tcp->moved |= SLU_MOVED_OUT;
    tcp->shm->published |= SHM_ARMED_RECORDS;
    slu_soft_tcp_unsettled(tcp);
    if (tcp->qp->sent - tcp->qp->sends.done >= STREAM_LEAST)
        slu_soft_shm_prepare(&tcp->shm->writer);
}

/* Returns whether the peer has a receive for the next message, reading its words if needed. */
static inline bool has_receive(struct soft_tcp *tcp)
{
    return (int32_t)(tcp->consumed - tcp->credits) < 0 ||
           (!slu_soft_shm_has_said_nothing(&tcp->shm->writer) && slu_soft_shm_take_words(tcp) &&
            (int32_t)(tcp->consumed - tcp->credits) < 0);
}

/*
 * Returns whether a request can be written to the ring as it is posted: nothing waits before it, it
 * is a small message of one element, and there are credit and room. Its bytes are not split by the
 * end of the ring.
 */
static inline bool is_swift(struct soft_tcp *tcp, const struct slu_send_wr *wr)
{
    const struct soft_qp *qp = tcp->qp;
    const struct shm_writer *writer = &tcp->shm->writer;
    uint32_t slots;

    if (wr->opcode != SLUICE_OP_SEND || wr->sge_count != 1 ||
        wr->sges[0].length > SOFT_WHOLE_BYTES || (wr->flags & SLUICE_FENCE) != 0)
        return false;
    slots = slu_soft_shm_slots_for(HEADER_MOST + wr->sges[0].length);
    return qp->sent == qp->sends.posted && qp->sends.posted - qp->sends.done < qp->sends.depth &&
           tcp->hot.link != NULL && has_receive(tcp) && is_clear(tcp) &&
           (int)slots <= slu_soft_shm_free_slots(writer) && writer->index + slots <= SHM_SLOTS;
}

/* Returns whether the bytes of a request can be read now. Inline bytes need no key. */
static inline bool may_take_bytes(struct soft_qp *qp, const struct slu_send_wr *wr)
{
    if ((wr->flags & SLUICE_INLINE) != 0)
        return wr->sges[0].length <= qp->attr.max_inline;
    return slu_soft_touches(qp, &qp->read, &wr->sges[0], 0);
}

/* Takes the place of a request in the send queue that was sent as it was posted. */
static inline void append_sent(struct soft_qp *qp, const struct slu_send_wr *wr)
{
    struct soft_wqe *wqe = slu_soft_wqe(qp, qp->sends.posted);
    wqe->id = wr->id;
    wqe->length = wr->sges[0].length;
    wqe->flags = wr->flags;
    wqe->opcode = SLUICE_OP_SEND;
    wqe->status = SLUICE_STATUS_SUCCESS;
    wqe->sge_count = 0;
    wqe->state = SOFT_WQE_QUEUED;
    wqe->guarded = false;
    wqe->checked = true;
    qp->sends.posted++;
    qp->sent++;
}

bool slu_soft_shm_send(struct soft_qp *qp, const struct slu_send_wr *wr)
{
    struct soft_tcp *tcp = qp->tcp;
    struct shm_writer *writer = &tcp->shm->writer;
    const struct sluice_sge *sge = wr->sges;
    uint32_t kind = SHM_SEND, length = 8;

    if (!is_swift(tcp, wr) || !may_take_bytes(qp, wr))
        return false;
    slu_soft_shm_put_word(writer, 0, take_words(tcp));
    if ((wr->flags & SLUICE_IMMEDIATE) != 0) {
        slu_soft_shm_put_word(writer, 8, wr->immediate);
        kind = SHM_IMMEDIATE;
        length = 16;
    }
    slu_soft_shm_put_near(writer, length, (const void *)(uintptr_t)sge->addr, sge->length);
    slu_soft_shm_publish(writer, kind, length + sge->length);
    append_sent(qp, wr);
    tcp->consumed++;
    note_published(tcp);
    return true;
}

/* Returns whether there is credit, reading the peer's words if needed. */
static bool has_credit(struct soft_tcp *tcp, const struct soft_wqe *wqe)
{
    return slu_soft_tcp_may_send(tcp, wqe, tcp->consumed) ||
           (slu_soft_shm_take_words(tcp) && slu_soft_tcp_may_send(tcp, wqe, tcp->consumed));
}

static void put_message(struct soft_tcp *tcp, const struct soft_wqe *wqe)
{
    struct shm_writer *writer = &tcp->shm->writer;
    bool immediate = (wqe->flags & SLUICE_IMMEDIATE) != 0;
    uint32_t length = immediate ? 16 : 8;
    slu_soft_shm_put_word(writer, 0, take_words(tcp));
    if (immediate)
        slu_soft_shm_put_word(writer, 8, wqe->immediate);
    for (uint32_t i = 0; i < wqe->sge_count; i++) {
        uint32_t piece = wqe->sges[i].length;
        if (piece > 0)
            slu_soft_shm_put(writer, length, (const void *)(uintptr_t)wqe->sges[i].addr, piece);
        length += piece;
    }
    slu_soft_shm_publish(writer, immediate ? SHM_IMMEDIATE : SHM_SEND, length);
}

/* Sends the next request as a record. False: it needs a frame, or cannot be sent now. */
static bool send_next(struct soft_tcp *tcp)
{
    struct soft_qp *qp = tcp->qp;
    struct soft_wqe *wqe = slu_soft_wqe(qp, qp->sent);
    if (!is_small(wqe) || !has_credit(tcp, wqe) || !may_read(qp, wqe) ||
        !slu_soft_shm_fits(&tcp->shm->writer, HEADER_MOST + (uint32_t)wqe->length))
        return false;
    put_message(tcp, wqe);
    qp->sent++;
    tcp->consumed++;
    return true;
}

void slu_soft_shm_push(struct soft_tcp *tcp)
{
    struct soft_qp *qp = tcp->qp;
    uint32_t before = qp->sent;
    if (is_clear(tcp))
        while (qp->sent != qp->sends.posted && send_next(tcp))
            ;
    if (qp->sent != before && tcp->shared) {
        note_published(tcp);
        if (qp->sent == qp->sends.posted)
            return;
    }
    slu_soft_tcp_push(tcp);
}

/* Receiving. */

/* Copies a record to any elements. False: access to the memory is refused. */
static SLU_COLD bool copy_pieces(struct soft_tcp *tcp, const struct shm_record *record,
                                 uint32_t offset)
{
    const struct soft_qp *qp = tcp->qp;
    const struct soft_receive *receive = slu_soft_receive(qp, qp->receives.done);
    struct soft_cursor to = slu_soft_cursor(receive->sges, receive->sge_count, 0);
    struct soft_touched touched;
    slu_soft_touch_nothing(&touched);
    if (SLU_UNLIKELY(receive->guarded))
        slu_soft_touch_list(&touched, qp, to, record->length - offset, true);
    if (!slu_soft_touch_begin(&touched))
        return false;
    for (uint32_t piece; offset < record->length; offset += piece) {
        const uint8_t *bytes = slu_soft_shm_piece(&tcp->shm->reader, record, offset, &piece);
        slu_soft_scatter(&to, bytes, piece);
    }
    return slu_soft_touch_end(&touched);
}

/*
 * Copies a record to its receive if that may be written, has one element and is long enough, and
 * the end of the ring does not split the bytes, as in most cases. Else copies nothing.
 */
static inline bool take_whole(struct soft_tcp *tcp, const struct shm_record *record,
                              uint32_t offset)
{
    struct soft_qp *qp = tcp->qp;
    const struct shm_reader *reader = &tcp->shm->reader;
    const struct soft_receive *receive = slu_soft_receive(qp, qp->receives.done);
    uint32_t length = record->length - offset;

    if (SLU_UNLIKELY(
            receive->sge_count != 1 || receive->guarded || length > receive->length ||
            length == 0 || reader->index + slu_soft_shm_slots_for(record->length) > SHM_SLOTS ||
            !slu_soft_touches(qp, &qp->written, &receive->sges[0], SLUICE_ACCESS_LOCAL_WRITE)))
        return false;
    memcpy((void *)(uintptr_t)receive->sges[0].addr,
           reader->segment->slots[reader->index] + SHM_HEAD + offset, length);
    return true;
}

/* Fails the receive and refuses the message, which could not be copied to its memory. */
static bool fail_receive(struct soft_tcp *tcp)
{
    slu_soft_complete_receive(tcp->qp, SLUICE_STATUS_LOC_PROT_ERR, 0, 0, 0);
    slu_soft_tcp_refuse(tcp, tcp->executed, SLUICE_STATUS_REM_OP_ERR);
    return false;
}

/* Drops a message that is longer than its receive. */
static bool drop_message(struct soft_tcp *tcp, uint32_t length)
{
    slu_soft_tcp_dropped(tcp, length);
    slu_soft_tcp_urgent(tcp);
    return true;
}

/* Stores a message that has no receive yet. */
static bool set_aside(struct soft_tcp *tcp, const struct shm_record *record, uint32_t offset,
                      uint32_t immediate)
{
    struct tcp_frame frame = {.type = TCP_SEND,
                              .flags = offset == 16 ? TCP_FLAG_IMMEDIATE : 0,
                              .immediate = immediate,
                              .length = record->length - offset};
    uint8_t *to = slu_soft_tcp_set_aside(tcp, &frame);
    if (to == NULL)
        return false;
    for (uint32_t piece; offset < record->length; offset += piece, to += piece) {
        const uint8_t *bytes = slu_soft_shm_piece(&tcp->shm->reader, record, offset, &piece);
        memcpy(to, bytes, piece);
    }
    return true;
}

bool slu_soft_shm_receive_small(struct soft_tcp *tcp, const struct shm_record *record)
{
    uint32_t offset = record->generation == SHM_IMMEDIATE ? 16 : 8;
    if (record->length < offset || record->length - offset > SOFT_WHOLE_BYTES || tcp->in.active ||
        tcp->carry_length != 0) {
        return slu_soft_tcp_reject(tcp, "no small message");
    }
    uint64_t words = slu_soft_shm_word(&tcp->shm->reader, 0);
    uint64_t immediate = offset == 16 ? slu_soft_shm_word(&tcp->shm->reader, 8) : 0;
    if (immediate > UINT32_MAX) {
        return slu_soft_tcp_reject(tcp, "more immediate data than there can be");
    }
    if (!slu_soft_tcp_accept_done(tcp, (uint32_t)words) ||
        !slu_soft_tcp_accept_credit(tcp, (uint32_t)(words >> 32)))
        return false;
    if (!slu_soft_tcp_has_receive(tcp))
        return set_aside(tcp, record, offset, (uint32_t)immediate);
    if (!take_whole(tcp, record, offset)) {
        if (!slu_soft_tcp_match(tcp, tcp->executed, record->length - offset))
            return tcp->in.dropped && drop_message(tcp, record->length - offset);
        if (!copy_pieces(tcp, record, offset))
            return fail_receive(tcp);
    }
    slu_soft_tcp_received(tcp, record->length - offset, offset == 16, (uint32_t)immediate);
    tcp->due = true;
    slu_soft_tcp_unsettled(tcp);
    return true;
}
