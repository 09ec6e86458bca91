/* SPDX-License-Identifier: MIT */
/*
 * Receiving: one system call reads the rest of a payload to its target, and the bytes that follow
 * into the staging buffer of the CQ. Staged bytes are consumed before the turn ends; an incomplete
 * frame is carried over in the connection.
 */
#include "transport/soft/tcp/tcp.h"

#include <string.h>
#include <sys/socket.h>

#define PIECE_LEAST 4096
/*
 * Once long messages are expected, read only GLIMPSE bytes where one may begin, enough for its
 * header: payload that is read with the header is copied once more.
 */
#define LONG_LEAST (16 * 1024)
#define DIRECT_LEAST (64 * 1024)
#define GLIMPSE (TCP_FRAME_BYTES + 4096)
/* Reads of one connection in one turn, so that others get their turns. */
#define TURN_READS 8

/* Results of a read. */
enum outcome {
    GOT_ALL,  /* all that is available for now */
    GOT_SOME, /* there may be more */
    GOT_NONE,
    FAILED
};

uint32_t slu_soft_tcp_parse(struct soft_tcp *tcp, const uint8_t *bytes, uint32_t count)
{
    struct tcp_in *in = &tcp->in;
    for (;;) {
        if (in->active) {
            uint64_t left = slu_soft_frame_payload(&in->frame) - in->offset;
            uint32_t piece = left < count ? (uint32_t)left : count;
            if (!slu_soft_tcp_place(tcp, bytes, piece))
                return 0;
            bytes += piece;
            count -= piece;
            if (piece < left)
                return 0;
            if (!slu_soft_tcp_finish(tcp))
                return 0;
            continue;
        }
        struct tcp_frame frame;
        if (count < TCP_FRAME_BYTES)
            return count;
        if (!slu_soft_frame_decode(bytes, &frame)) {
            slu_log(SLUICE_LOG_WARN, "queue pair %u: the peer sent no frame", tcp->qp->qpn);
            slu_soft_tcp_lose(tcp, SLUICE_STATUS_BAD_RESP_ERR);
            return 0;
        }
        uint64_t payload = slu_soft_frame_payload(&frame);
        if (payload <= SOFT_WHOLE_BYTES && count < TCP_FRAME_BYTES + payload)
            return count;
        if (!slu_soft_tcp_begin(tcp, &frame))
            return 0;
        bytes += TCP_FRAME_BYTES;
        count -= TCP_FRAME_BYTES;
    }
}

/*
 * Lists the targets of the rest of the payload and returns their number; -1: the request was
 * refused.
 */
static int list_targets(struct soft_tcp *tcp, struct iovec *iovecs, uint64_t *length,
                        struct soft_mr **pin, struct soft_touched *touched)
{
    const struct tcp_in *in = &tcp->in;
    *pin = NULL;
    slu_soft_touch_nothing(touched);
    *length = 0;
    if (!in->active || in->dropped)
        return 0;
    *length = in->frame.length - in->offset;
    if (in->early != NULL) {
        iovecs[0] = (struct iovec){in->early + in->offset, *length};
        return 1;
    }
    if (in->frame.type != TCP_WRITE) {
        slu_soft_tcp_touch_target(tcp, 0, touched);
        return (int)slu_soft_cursor_iovecs(slu_soft_tcp_target(tcp), *length, iovecs, SOFT_MAX_SGE);
    }
    if (!slu_soft_tcp_pin_target(tcp, pin))
        return -1;
    slu_soft_touch_region(touched, *pin, 0, 0, true);
    iovecs[0].iov_base = (void *)(uintptr_t)slu_soft_place_of(*pin, in->frame.addr + in->offset);
    iovecs[0].iov_len = *length;
    return 1;
}

static ssize_t read_socket(int fd, struct iovec *iovecs, int count,
                           const struct soft_touched *touched)
{
    struct msghdr message = {.msg_iov = iovecs, .msg_iovlen = (size_t)count};
    SLU_UNCANCELLED_BLOCK;
    ssize_t got;
    if (!slu_soft_touch_begin(touched)) {
        errno = EFAULT;
        return -1;
    }
    do
        got = count == 1 ? recv(fd, iovecs->iov_base, iovecs->iov_len, MSG_DONTWAIT)
                         : recvmsg(fd, &message, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (!slu_soft_touch_end(touched)) {
        errno = EFAULT;
        return -1;
    }
    return got;
}

/*
 * Accounts for bytes that were read to the payload's target, and parses those in the staging
 * buffer.
 */
static enum outcome use(struct soft_tcp *tcp, uint8_t *staging, uint64_t got, uint64_t direct)
{
    uint64_t placed = got < direct ? got : direct;
    uint32_t staged = tcp->carry_length + (uint32_t)(got - placed);
    tcp->in.offset += placed;
    tcp->carry_length = 0;
    if (tcp->in.active && placed < direct)
        return GOT_SOME;
    uint32_t left = slu_soft_tcp_parse(tcp, staging, staged);
    if (tcp->phase != PHASE_OPEN)
        return FAILED;
    memcpy(tcp->carry, staging + staged - left, left);
    tcp->carry_length = left;
    return GOT_SOME;
}

/*
 * Returns how many bytes to stage: few behind a long payload, since another one most likely follows
 * and staged payload is copied once more.
 */
static uint64_t staging_room(const struct soft_tcp *tcp)
{
    bool glimpses = tcp->glimpses;
    if (tcp->in.active)
        glimpses = !tcp->in.dropped && slu_soft_frame_payload(&tcp->in.frame) >= DIRECT_LEAST;
    return (glimpses ? GLIMPSE : TCP_STAGING_BYTES) - tcp->carry_length;
}

/*
 * Adapts the staging to the frame that began in these bytes. A lone header, such as an
 * acknowledgement, changes nothing.
 */
static void choose_glimpse(struct soft_tcp *tcp, uint64_t got)
{
    if (tcp->in.active)
        tcp->glimpses = slu_soft_frame_payload(&tcp->in.frame) >= LONG_LEAST;
    else if (got > TCP_FRAME_BYTES)
        tcp->glimpses = false;
}

static enum outcome receive_once(struct soft_tcp *tcp)
{
    struct iovec iovecs[SOFT_MAX_SGE + 1];
    uint8_t *staging = slu_soft_cq_of(tcp->qp)->staging;
    uint64_t direct;
    struct soft_touched touched;
    struct soft_mr *pin;
    int count = list_targets(tcp, iovecs, &direct, &pin, &touched);
    if (count < 0)
        return FAILED;
    tcp->mapped = 0;
    memcpy(staging, tcp->carry, tcp->carry_length);
    uint64_t room = staging_room(tcp);
    iovecs[count].iov_base = staging + tcp->carry_length;
    iovecs[count].iov_len = room;
    ssize_t got = read_socket(tcp->fd, iovecs, count + 1, &touched);
    int err = errno;
    slu_soft_unpin(pin);
    if (got < 0 && err == EAGAIN)
        return GOT_NONE;
    tcp->moved |= SLU_MOVED_IN;
    if (got < 0 && err == EFAULT) {
        slu_soft_tcp_fault(tcp);
        return FAILED;
    }
    if (got <= 0) {
        tcp->ended = true;
        slu_soft_note_loss(tcp->qp, got == 0 ? SOFT_PEER_ENDED
                                    : err == ECONNRESET || err == EPIPE
                                        ? SOFT_PEER_RESET
                                        : "the peer's host or the network does not answer");
        slu_soft_tcp_lose(tcp, SLUICE_STATUS_RETRY_EXC_ERR);
        return FAILED;
    }
    if (tcp->is_unix)
        tcp->heard = slu_now();
    enum outcome outcome = use(tcp, staging, (uint64_t)got, direct);
    if (direct == 0)
        choose_glimpse(tcp, (uint64_t)got);
    bool more = tcp->in.active && got >= PIECE_LEAST;
    slu_soft_tcp_expect_piece(tcp, more);
    if (outcome == GOT_SOME && (uint64_t)got < direct + room)
        return GOT_ALL;
    return outcome;
}

void slu_soft_tcp_receive(struct soft_tcp *tcp)
{
    SLU_KEEP_ERRNO;
    enum outcome outcome = GOT_SOME;
    bool got = false;
    for (int reads = 0; reads < TURN_READS && outcome == GOT_SOME; reads++) {
        outcome = receive_once(tcp);
        got = got || outcome == GOT_SOME || outcome == GOT_ALL;
    }
    /* Requests may have got credit now, and reads of the peer wait for their replies. */
    if (got && tcp->phase == PHASE_OPEN && !tcp->blocked &&
        (tcp->reply_head != tcp->reply_tail || tcp->qp->sent != tcp->qp->sends.posted))
        slu_soft_tcp_push(tcp);
}
