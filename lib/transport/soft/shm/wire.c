/* SPDX-License-Identifier: MIT */
/*
 * The wire through shared memory, which carries the frames of the wire over TCP between near
 * processes. README.md explains which side wakes the other, and when.
 */
#include "transport/soft/helper/helper.h"
#include "transport/soft/shm/shm.h"

#include <string.h>

/* Pieces of at least this length go through the bulk. */
#define BULK_LEAST 2048
/* Wait for at least this much room in the bulk, unless the piece is shorter. */
#define BULK_ROOM 8192
/* Records of one connection in one turn, so that others get their turns. */
#define TURN_RECORDS 64
/* Empty polls of all hot connections together until one becomes cold, and its own at least. */
#define FRUITLESS_LOOKS 4096
#define FRUITLESS_LEAST 64
/*
 * Every this many empty polls, record when the peer was last active, and check whether to become
 * cold.
 */
#define STALE_LOOKS 32
/* Rounds of polling before an owner leaves a CQ whose connections keep receiving. */
#define LEAVE_ROUNDS 2

/* Hot and cold. */

void slu_soft_shm_leave_hot(struct soft_tcp *tcp)
{
    if (tcp->hot.link == NULL)
        return;
    SOFT_REMOVE(tcp, hot);
    slu_soft_cq_of(tcp->qp)->hot_count--;
}

void slu_soft_shm_heat(struct soft_tcp *tcp)
{
    struct soft_cq *cq = slu_soft_cq_of(tcp->qp);
    if (tcp->hot.link != NULL)
        return;
    slu_soft_shm_rouse(&tcp->shm->reader);
    tcp->shm->fruitless = 0;
    SOFT_INSERT(&cq->hot, tcp, hot);
    cq->hot_count++;
}

static bool has_outstanding(const struct soft_qp *qp)
{
    return qp->sends.done != qp->sends.posted;
}

/*
 * Returns whether a sleep must end for an acknowledgement or credit: requests wait for the credit,
 * or the program for their completion.
 */
static bool wants_words(const struct soft_tcp *tcp)
{
    const struct soft_qp *qp = tcp->qp;
    struct soft_cq *cq = slu_soft_cq_of(qp);
    if (!has_outstanding(qp))
        return false;
    if (qp->sent != qp->sends.posted ||
        !atomic_load_explicit(&cq->base.patient, memory_order_relaxed))
        return true;
    cq->patient = true;
    return false;
}

/*
 * Makes a connection cold: polls skip it from now on. False: there is something to do, and it stays
 * hot.
 */
static bool chill(struct soft_tcp *tcp)
{
    struct soft_shm *shm = tcp->shm;
    struct shm_wants wants = {
        .words = wants_words(tcp), .room = tcp->blocked, .bulk = shm->bulk_wanted};
    bool bell;
    bool dozes = slu_soft_shm_doze(&shm->reader, &shm->writer, &wants, &bell);
    if (bell)
        slu_soft_shm_ring_bell(tcp);
    if (!dozes)
        return false;
    if (shm->fresh)
        tcp->heard = slu_now();
    shm->fresh = false;
    slu_soft_shm_leave_hot(tcp);
    return true;
}

/* Wakes the reader for a single record, so that it begins while the next one is written. */
static void settle_record(struct soft_tcp *tcp)
{
    slu_soft_shm_fence();
    if (slu_soft_shm_wakes_peer(&tcp->shm->writer, SHM_ARMED_RECORDS))
        slu_soft_shm_ring_bell(tcp);
}

/* Sending. */

/* The rest of a list that is being sent. */
struct pieces {
    const struct iovec *iovecs;
    uint32_t count;
    size_t offset; /* in the first */
};

static void advance(struct pieces *pieces, size_t length)
{
    pieces->offset += length;
    while (pieces->count > 0 && pieces->offset >= pieces->iovecs->iov_len) {
        pieces->offset -= pieces->iovecs->iov_len;
        pieces->iovecs++;
        pieces->count--;
    }
}

static const uint8_t *first_piece(const struct pieces *pieces, size_t *left)
{
    *left = pieces->iovecs->iov_len - pieces->offset;
    return (const uint8_t *)pieces->iovecs->iov_base + pieces->offset;
}

static bool is_bulky(struct soft_tcp *tcp, size_t length)
{
    const struct shm_writer *writer = &tcp->shm->writer;
    if (length < BULK_LEAST)
        return false;
    if (writer->bulk == NULL)
        slu_soft_shm_offer_bulk(tcp);
    return writer->bulk != NULL &&
           atomic_load_explicit(&writer->segment->bulk_ready, memory_order_acquire) ==
               writer->bulk_generation;
}

/*
 * Fills a record with small pieces, up to a bulky one, or the bulk with pieces of any size. Returns
 * how many bytes.
 */
static inline uint32_t fill(struct soft_tcp *tcp, struct pieces *pieces, uint32_t room, bool bulk)
{
    uint32_t length = 0;
    while (pieces->count > 0 && length < room) {
        size_t left;
        const uint8_t *bytes = first_piece(pieces, &left);
        if (!bulk && is_bulky(tcp, left))
            break;
        left = slu_least(left, room - length);
        if (bulk)
            slu_soft_shm_put_bulk(&tcp->shm->writer, length, bytes, (uint32_t)left);
        else
            slu_soft_shm_put(&tcp->shm->writer, length, bytes, (uint32_t)left);
        length += (uint32_t)left;
        advance(pieces, left);
    }
    return length;
}

/*
 * Sends a bulky piece, and those that follow with it. Returns how many bytes, 0 if there is no
 * room, or -1.
 */
static int send_bulk(struct soft_tcp *tcp, struct pieces *pieces)
{
    struct soft_shm *shm = tcp->shm;
    size_t left;
    first_piece(pieces, &left);
    int room = slu_soft_shm_bulk_room(&shm->writer);
    uint32_t least = left < BULK_ROOM ? (uint32_t)left : BULK_ROOM;
    if (room < 0)
        return -1;
    if ((uint32_t)room < least) {
        shm->bulk_wanted = least;
        return 0;
    }
    shm->bulk_used = true;
    uint32_t length = fill(tcp, pieces, (uint32_t)slu_least((uint32_t)room, SHM_CHUNK), true);
    slu_soft_shm_publish_bulk(&shm->writer, length);
    settle_record(tcp);
    return (int)length;
}

/*
 * Sends one record. Returns its length, 0 if there is no room, or -1 if the peer has written
 * invalid values.
 */
static int send_record(struct soft_tcp *tcp, struct pieces *pieces)
{
    int room = slu_soft_shm_room(&tcp->shm->writer);
    if (room <= 0)
        return room;
    uint32_t length = fill(tcp, pieces, (uint32_t)room, false);
    if (length == 0)
        return send_bulk(tcp, pieces);
    slu_soft_shm_publish(&tcp->shm->writer, SHM_STREAM, length);
    return (int)length;
}

ssize_t slu_soft_shm_transmit(struct soft_tcp *tcp, const struct iovec *iovecs, uint32_t count)
{
    struct pieces pieces = {iovecs, count, 0};
    ssize_t total = 0;
    tcp->shm->bulk_wanted = 0;
    advance(&pieces, 0);
    while (pieces.count > 0) {
        int sent = send_record(tcp, &pieces);
        if (sent < 0)
            return -EPROTO;
        if (sent == 0)
            break;
        total += sent;
    }
    tcp->shm->published |= SHM_ARMED_RECORDS;
    slu_soft_tcp_unsettled(tcp);
    slu_soft_shm_heat(tcp);
    return total;
}

/* Receiving. */

/*
 * Consumes received bytes. Headers are copied before they are parsed; pure payload is placed
 * directly. False: the queue pair has failed, and the shared memory is unmapped.
 */
static bool consume(struct soft_tcp *tcp, const uint8_t *bytes, uint32_t length)
{
    while (length > 0) {
        uint32_t piece;
        if (tcp->in.active) {
            uint64_t left = slu_soft_frame_payload(&tcp->in.frame) - tcp->in.offset;
            piece = left < length ? (uint32_t)left : length;
            if (!slu_soft_tcp_place(tcp, bytes, piece))
                return false;
            if (piece == left && !slu_soft_tcp_finish(tcp))
                return false;
        } else {
            piece = TCP_CARRY_BYTES - tcp->carry_length;
            piece = length < piece ? length : piece;
            memcpy(tcp->carry + tcp->carry_length, bytes, piece);
            uint32_t here = tcp->carry_length + piece;
            uint32_t left = slu_soft_tcp_parse(tcp, tcp->carry, here);
            if (tcp->phase != PHASE_OPEN)
                return false;
            memmove(tcp->carry, tcp->carry + here - left, left);
            tcp->carry_length = left;
        }
        bytes += piece;
        length -= piece;
    }
    return true;
}

static bool consume_record(struct soft_tcp *tcp, const struct shm_record *record)
{
    if (!record->bulk && record->generation != SHM_STREAM) {
        if (!slu_soft_shm_receive_small(tcp, record))
            return false;
        slu_soft_shm_take(&tcp->shm->reader, record);
        return true;
    }
    tcp->mapped = 0;
    for (uint32_t offset = 0, piece; offset < record->length; offset += piece) {
        const uint8_t *bytes = slu_soft_shm_piece(&tcp->shm->reader, record, offset, &piece);
        if (!consume(tcp, bytes, piece))
            return false;
    }
    slu_soft_shm_take(&tcp->shm->reader, record);
    return true;
}

/* Receives records and returns how many there were. */
static uint32_t receive(struct soft_tcp *tcp)
{
    struct soft_shm *shm = tcp->shm;
    struct shm_record record;
    uint32_t count = 0;
    int found = 0;
    while (count < TURN_RECORDS && (found = slu_soft_shm_peek(&shm->reader, &record)) > 0) {
        count++;
        if (!consume_record(tcp, &record))
            return count;
    }
    if (found < 0) {
        slu_soft_tcp_reject(tcp, "no record of the ring");
        return count;
    }
    if (count == 0)
        return 0;
    shm->fresh = true;
    tcp->moved |= SLU_MOVED_IN;
    slu_soft_tcp_expect_piece(tcp, tcp->in.active);
    return count;
}

/*
 * Sends again: there may be room or credit now, and reads and probes of the peer wait for answers.
 */
static void push_more(struct soft_tcp *tcp)
{
    if (!tcp->blocked && (tcp->echo || tcp->repeat || tcp->reply_head != tcp->reply_tail ||
                          tcp->qp->sent != tcp->qp->sends.posted))
        slu_soft_shm_push(tcp);
}

/* Discards records while closing, so that the peer has room to close as well. */
static void discard(struct soft_tcp *tcp)
{
    struct shm_record record;
    for (uint32_t i = 0; i < TURN_RECORDS; i++) {
        if (slu_soft_shm_peek(&tcp->shm->reader, &record) <= 0)
            break;
        slu_soft_shm_take(&tcp->shm->reader, &record);
    }
}

static SLU_COLD void cool_down(struct soft_tcp *tcp)
{
    struct soft_shm *shm = tcp->shm;
    uint64_t looks = (uint64_t)shm->fruitless * slu_soft_cq_of(tcp->qp)->hot_count;
    if (shm->fresh) {
        tcp->heard = slu_now();
        shm->fresh = false;
    }
    if (shm->fruitless >= FRUITLESS_LEAST && looks >= FRUITLESS_LOOKS && !chill(tcp))
        shm->fruitless = 0;
}

static inline void grow_cold(struct soft_tcp *tcp)
{
    if (SLU_UNLIKELY(++tcp->shm->fruitless % STALE_LOOKS == 0))
        cool_down(tcp);
}

/* Serves an open connection. Returns whether there was something. */
static bool look_open(struct soft_tcp *tcp)
{
    bool found = receive(tcp) > 0;

    if (tcp->phase == PHASE_OPEN && slu_soft_shm_has_words(tcp)) {
        found = true;
        slu_soft_shm_take_words(tcp);
    } else if (found && tcp->phase == PHASE_OPEN) {
        /*
         * An earlier word may have completed a read whose reply arrived only now; it is not
         * published again.
         */
        slu_soft_tcp_accept_done(tcp, tcp->shm->done);
    }
    if (found && tcp->phase == PHASE_OPEN)
        push_more(tcp);
    return found;
}

/*
 * Returns whether the peer has written nothing. This must be cheap: most polls of many connections
 * end here.
 */
static bool is_quiet(struct soft_tcp *tcp)
{
    const struct shm_reader *reader = &tcp->shm->reader;
    return tcp->phase == PHASE_OPEN && !tcp->blocked && slu_soft_shm_is_empty(reader) &&
           slu_soft_shm_is_fed(reader) && !slu_soft_shm_has_words(tcp);
}

/* Serves a connection. Returns whether there was something. */
static bool look(struct soft_tcp *tcp)
{
    bool found = false;
    if (is_quiet(tcp)) {
        grow_cold(tcp);
        return false;
    }
    if (tcp->phase == PHASE_OPEN)
        found = look_open(tcp);
    else
        discard(tcp);
    if (!tcp->shared)
        return true;
    if (slu_soft_shm_wakes_writer(&tcp->shm->reader))
        slu_soft_shm_ring_bell(tcp);
    if (tcp->blocked && slu_soft_shm_has_room(&tcp->shm->writer, tcp->shm->bulk_wanted)) {
        tcp->blocked = false;
        slu_soft_shm_push(tcp);
        if (!tcp->shared)
            return true;
    }
    if (found)
        tcp->shm->fruitless = 0;
    else
        grow_cold(tcp);
    return found;
}

bool slu_soft_shm_poll(struct soft_cq *cq)
{
    bool found = false;
    struct soft_tcp *next;
    for (struct soft_tcp *tcp = cq->hot; tcp != NULL; tcp = next) {
        next = tcp->hot.next;
        found = look(tcp) || found;
    }
    return found;
}

bool slu_soft_shm_is_still(const struct soft_cq *cq)
{
    for (struct soft_tcp *tcp = cq->connections; tcp != NULL; tcp = tcp->all.next)
        if (tcp->phase != PHASE_IDLE && (!tcp->shared || !is_quiet(tcp)))
            return false;
    return true;
}

bool slu_soft_shm_stir(struct soft_cq *cq)
{
    for (struct soft_tcp *tcp = cq->connections; tcp != NULL; tcp = tcp->all.next)
        if (tcp->shared && !is_quiet(tcp))
            slu_soft_shm_heat(tcp);
    return cq->hot != NULL;
}

void slu_soft_shm_hurry(struct soft_cq *cq)
{
    cq->patient = false;
    for (struct soft_tcp *tcp = cq->connections; tcp != NULL; tcp = tcp->all.next)
        if (tcp->shared && has_outstanding(tcp->qp))
            slu_soft_shm_heat(tcp);
}

bool slu_soft_shm_sleep(struct soft_cq *cq)
{
    struct soft_tcp *next;
    for (struct soft_tcp *tcp = cq->hot; tcp != NULL; tcp = next) {
        next = tcp->hot.next;
        chill(tcp);
    }
    return cq->hot == NULL;
}

bool slu_soft_shm_leave(struct soft_cq *cq)
{
    for (int round = 0; round < LEAVE_ROUNDS && !slu_soft_shm_sleep(cq); round++) {
        slu_soft_shm_poll(cq);
        slu_soft_tcp_flush_all(cq);
    }
    return cq->hot == NULL;
}

/* The socket. */

/* Handles the end of the peer. Records that it had written before are still delivered. */
static void end(struct soft_tcp *tcp)
{
    tcp->ended = true;
    for (uint32_t rest = SHM_SLOTS; rest > 0 && tcp->phase == PHASE_OPEN;) {
        uint32_t count = receive(tcp);
        if (count == 0)
            break;
        rest = count < rest ? rest - count : 0;
    }
    if (tcp->phase != PHASE_OPEN || !slu_soft_shm_take_words(tcp))
        return;
    slu_soft_note_loss(tcp->qp, SOFT_PEER_ENDED);
    slu_soft_tcp_lose(tcp, SLUICE_STATUS_RETRY_EXC_ERR);
}

void slu_soft_shm_event(struct soft_tcp *tcp, uint32_t events)
{
    bool sound;
    SLU_KEEP_ERRNO;
    bool lives = slu_soft_shm_hear_socket(tcp, &sound);
    (void)events;
    if (tcp->phase == PHASE_CLOSING) {
        tcp->broken = tcp->broken || !lives || !sound;
        discard(tcp);
        slu_soft_tcp_push(tcp);
        return;
    }
    if (!sound) {
        slu_soft_tcp_reject(tcp, "no word of the socket");
    } else if (lives) {
        slu_soft_shm_heat(tcp);
        look(tcp);
    } else {
        end(tcp);
    }
}
