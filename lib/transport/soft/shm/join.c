/* SPDX-License-Identifier: MIT */
/*
 * Two near sides agree on shared memory, over the socket on which they have met. The side that led
 * the meeting makes a file with both segments and sends it. The other one maps it and answers
 * whether it could. After that the socket carries bells and descriptors, or frames if one side
 * could not.
 */
#include "transport/soft/shm/shm.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define OFFER_VERSION 6

static const uint8_t magic[4] = {'s', 'l', 'u', 'm'};

/* The offer, with the descriptor of the segments if there are any, and the answer. */
struct offer {
    uint8_t magic[4];
    uint8_t version;
    uint8_t has_segments; /* mapped by this side */
    uint8_t reserved[2];
    struct shm_token token;
};

#define OFFER_BYTES ((uint32_t)sizeof(struct offer))
#define BOTH_BYTES (2 * SHM_SEGMENT_BYTES)

_Static_assert(sizeof(struct offer) == 32 && sizeof(struct offer) <= TCP_CARRY_BYTES,
               "as it is sent");

bool slu_soft_shm_offer(struct soft_tcp *tcp, const struct slu_endpoint *remote)
{
    tcp->shm = calloc(1, sizeof(*tcp->shm));
    if (tcp->shm != NULL && memcmp(tcp->qp->nonce, remote->soft.nonce, SLU_NONCE_BYTES) > 0)
        tcp->shm->stage = SHM_OFFERING;
    return tcp->shm != NULL;
}

/* The side that made the segments receives in the first one. */
static void set_segments(struct soft_shm *shm, void *map, bool made)
{
    struct shm_segment *segments = map;
    shm->segments = segments;
    shm->reader.segment = segments == NULL || made ? segments : segments + 1;
    shm->writer.segment = segments != NULL && made ? segments + 1 : segments;
}

static void fail_join(struct soft_tcp *tcp, const char *loss)
{
    slu_soft_note_loss(tcp->qp, loss);
    slu_soft_tcp_lose(tcp, SLUICE_STATUS_RETRY_EXC_ERR);
}

/* Sends an offer or an answer. Returns whether it is sent; until then nothing is received. */
static bool send_offer(struct soft_tcp *tcp, int fd)
{
    struct offer offer = {.version = OFFER_VERSION,
                          .has_segments = tcp->shm->segments != NULL,
                          .token = slu_soft_shm_token()};
    memcpy(offer.magic, magic, sizeof(magic));
    int err = slu_soft_shm_tell(tcp->fd, &offer, sizeof(offer), fd);
    /* Too many references: the user has as many descriptors in flight as it may. */
    if (slu_is_shortage(-err) || err == -ETOOMANYREFS)
        slu_soft_tcp_starve(tcp);
    else if (err == -EAGAIN)
        fail_join(tcp, "the peer's socket is full from the start");
    /* Other errors mean that the socket has ended, which is detected later. */
    return err == 0;
}

static void make_offer(struct soft_tcp *tcp)
{
    void *map = NULL;
    int fd = slu_soft_shm_make(BOTH_BYTES, SHM_READ_WRITE, &map);
    if (fd < 0)
        slu_log(SLUICE_LOG_INFO, "queue pair %u: no shared memory, it uses a socket: %s",
                tcp->qp->qpn, strerrordesc_np(-fd));
    set_segments(tcp->shm, map, true);
    send_offer(tcp, fd < 0 ? -1 : fd);
    if (fd >= 0)
        slu_fd_close(fd);
}

void slu_soft_shm_join(struct soft_tcp *tcp)
{
    tcp->phase = PHASE_JOINING;
    if (tcp->shm->stage == SHM_OFFERING)
        make_offer(tcp);
}

/* Receives length bytes. Returns 1 when they are complete, 0 if not yet, -1 at the end. */
static int hear(struct soft_tcp *tcp, uint32_t length)
{
    struct soft_shm *shm = tcp->shm;
    while (tcp->carry_length < length) {
        int fd = -1;
        ssize_t got = slu_fd_receive(tcp->fd, tcp->carry + tcp->carry_length,
                                     length - tcp->carry_length, &fd);
        if (fd >= 0 && shm->stage == SHM_AWAITING && shm->segments == NULL)
            set_segments(shm, slu_soft_shm_map(fd, 0, BOTH_BYTES, SHM_READ_WRITE), false);
        else if (fd >= 0)
            slu_fd_close(fd);
        if (got < 0 && errno == EAGAIN)
            return 0;
        if (got <= 0)
            return -1;
        tcp->carry_length += (uint32_t)got;
    }
    tcp->carry_length = 0;
    return 1;
}

static void begin_sharing(struct soft_tcp *tcp)
{
    struct soft_cq *cq = slu_soft_cq_of(tcp->qp);
    tcp->shm->stage = SHM_ON;
    tcp->shared = tcp->qp->swift = true;
    tcp->shm->passed_fd = -1;
    slu_soft_shm_want(tcp);
    slu_soft_shm_begin_exports(tcp);
    tcp->qp->direct = true;
    cq->shared++;
    tcp->qp->level = SLUICE_LEVEL_MEMORY;
    slu_log(SLUICE_LOG_DEBUG, "queue pair %u: shared memory with its peer", tcp->qp->qpn);
    slu_soft_shm_heat(tcp);
}

/* Ends the negotiation: both sides have mapped the segments, or not. */
static void conclude(struct soft_tcp *tcp, bool usable)
{
    if (usable) {
        begin_sharing(tcp);
    } else {
        slu_log(SLUICE_LOG_INFO, "queue pair %u: no shared memory with its peer, it uses a socket",
                tcp->qp->qpn);
        slu_soft_shm_part(tcp);
        tcp->shm->stage = SHM_OFF;
    }
    slu_soft_tcp_opened(tcp);
}

static void answer(struct soft_tcp *tcp)
{
    tcp->shm->stage = SHM_ANSWERING;
    if (send_offer(tcp, -1))
        conclude(tcp, tcp->shm->segments != NULL);
}

/* Handles the offer or the answer of the peer. False: it is invalid, or none is due. */
static bool judge(struct soft_tcp *tcp)
{
    struct soft_shm *shm = tcp->shm;
    struct offer offer;
    memcpy(&offer, tcp->carry, sizeof(offer));
    if (memcmp(offer.magic, magic, sizeof(magic)) != 0 || offer.version != OFFER_VERSION ||
        offer.has_segments > 1 || shm->stage == SHM_ANSWERING)
        return false;
    shm->token = offer.token;
    if (shm->stage == SHM_OFFERING) {
        conclude(tcp, offer.has_segments == 1 && shm->segments != NULL);
        return true;
    }
    if (offer.has_segments == 0)
        slu_soft_shm_part(tcp);
    answer(tcp);
    return true;
}

void slu_soft_shm_join_event(struct soft_tcp *tcp)
{
    SLU_KEEP_ERRNO;
    int heard = 1;
    bool sound = true;
    while (tcp->phase == PHASE_JOINING && !tcp->starved && sound && heard == 1) {
        heard = hear(tcp, OFFER_BYTES);
        if (heard == 1)
            sound = judge(tcp);
    }
    if (heard < 0) {
        tcp->ended = true;
        fail_join(tcp, "the peer closed, or its process ended, while the two connected");
    } else if (!sound) {
        slu_log(SLUICE_LOG_WARN, "queue pair %u: the peer broke the protocol: no offer of memory",
                tcp->qp->qpn);
        slu_soft_tcp_lose(tcp, SLUICE_STATUS_BAD_RESP_ERR);
    }
}

void slu_soft_shm_join_again(struct soft_tcp *tcp)
{
    if (tcp->shm->stage == SHM_OFFERING) {
        slu_soft_shm_unmap(tcp->shm->segments, BOTH_BYTES);
        make_offer(tcp);
    } else {
        answer(tcp);
    }
    if (tcp->phase == PHASE_JOINING)
        slu_soft_shm_join_event(tcp);
}

void slu_soft_shm_part(struct soft_tcp *tcp)
{
    struct soft_shm *shm = tcp->shm;
    if (shm == NULL)
        return;
    if (tcp->shared) {
        slu_soft_shm_say_words(tcp);
        slu_soft_shm_leave_hot(tcp);
        slu_soft_shm_end_exports(tcp);
        slu_soft_shm_end_imports(shm);
        slu_soft_shm_refuse(shm->passed_fd);
        shm->passed_fd = -1;
        slu_soft_cq_of(tcp->qp)->shared--;
        tcp->shared = tcp->qp->swift = false;
    }
    slu_soft_shm_unmap(shm->segments, BOTH_BYTES);
    slu_soft_shm_drop_bulk(tcp);
    slu_soft_shm_unmap((void *)(uintptr_t)shm->reader.bulk, SHM_BULK_BYTES);
    set_segments(shm, NULL, false);
    shm->reader.bulk = NULL;
}
