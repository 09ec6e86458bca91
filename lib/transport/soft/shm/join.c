/* SPDX-License-Identifier: MIT */
/*
 * Two near sides agree on shared memory, over the socket on which they have met. Each side sends
 * the segment in which it receives, and then whether it could map the other's. After that the
 * socket carries bells and descriptors, or frames if one side could not.
 */
#include "transport/soft/shm/shm.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define OFFER_VERSION 5

static const uint8_t magic[4] = {'s', 'l', 'u', 'm'};

/* Sent with the descriptor of the segment, if there is one. */
struct offer {
    uint8_t magic[4];
    uint8_t version;
    uint8_t has_segment;
    uint8_t reserved[2];
    struct shm_token token;
};

#define OFFER_BYTES ((uint32_t)sizeof(struct offer))

_Static_assert(sizeof(struct offer) == 32 && sizeof(struct offer) <= TCP_CARRY_BYTES,
               "as it is sent");

bool slu_soft_shm_offer(struct soft_tcp *tcp)
{
    tcp->shm = calloc(1, sizeof(*tcp->shm));
    return tcp->shm != NULL;
}

static void make_own(struct soft_tcp *tcp, int *fd)
{
    void *map = NULL;
    *fd = slu_soft_shm_make(SHM_SEGMENT_BYTES, SHM_READ_WRITE, &map);
    if (*fd < 0) {
        slu_log(SLUICE_LOG_INFO, "queue pair %u: no shared memory, it uses a socket: %s",
                tcp->qp->qpn, strerrordesc_np(-*fd));
        *fd = -1;
    }
    tcp->shm->reader.segment = map;
}

static void fail_join(struct soft_tcp *tcp, const char *loss)
{
    slu_soft_note_loss(tcp->qp, loss);
    slu_soft_tcp_lose(tcp, SLUICE_STATUS_RETRY_EXC_ERR);
}

/* Handles the result of sending an offer or verdict. Until it is sent, nothing is received. */
static void note_sent(struct soft_tcp *tcp, int err)
{
    if (slu_is_shortage(-err))
        slu_soft_tcp_starve(tcp);
    else if (err == -EAGAIN)
        fail_join(tcp, "the peer's socket is full from the start");
    /* Other errors mean that the socket has ended, which is detected later. */
}

void slu_soft_shm_join(struct soft_tcp *tcp)
{
    struct offer offer = {.version = OFFER_VERSION, .token = slu_soft_shm_token()};
    int fd;
    tcp->phase = PHASE_JOINING;
    make_own(tcp, &fd);
    memcpy(offer.magic, magic, sizeof(magic));
    offer.has_segment = fd >= 0;
    int err = slu_soft_shm_tell(tcp->fd, &offer, sizeof(offer), fd);
    if (fd >= 0)
        slu_fd_close(fd);
    note_sent(tcp, err);
}

/* Receives length bytes. Returns 1 when they are complete, 0 if not yet, -1 at the end. */
static int hear(struct soft_tcp *tcp, uint32_t length)
{
    while (tcp->carry_length < length) {
        int fd = -1;
        ssize_t got = slu_fd_receive(tcp->fd, tcp->carry + tcp->carry_length,
                                     length - tcp->carry_length, &fd);
        if (fd >= 0 && tcp->shm->stage == SHM_OFFERING && tcp->shm->writer.segment == NULL)
            tcp->shm->writer.segment = slu_soft_shm_map(fd, 0, SHM_SEGMENT_BYTES, SHM_READ_WRITE);
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

static void send_verdict(struct soft_tcp *tcp)
{
    uint8_t verdict = tcp->shm->usable ? 1 : 0;
    note_sent(tcp, slu_soft_shm_tell(tcp->fd, &verdict, sizeof(verdict), -1));
}

/* Checks the peer's offer and answers whether it is usable. False: the offer is invalid. */
static bool judge(struct soft_tcp *tcp)
{
    struct soft_shm *shm = tcp->shm;
    struct offer offer;
    memcpy(&offer, tcp->carry, sizeof(offer));
    if (memcmp(offer.magic, magic, sizeof(magic)) != 0 || offer.version != OFFER_VERSION ||
        offer.has_segment > 1)
        return false;
    shm->token = offer.token;
    shm->usable =
        offer.has_segment == 1 && shm->writer.segment != NULL && shm->reader.segment != NULL;
    shm->stage = SHM_JUDGING;
    send_verdict(tcp);
    return true;
}

static void begin_sharing(struct soft_tcp *tcp)
{
    struct soft_cq *cq = slu_soft_cq_of(tcp->qp);
    tcp->shm->stage = SHM_ON;
    tcp->shared = true;
    tcp->shm->passed_fd = -1;
    slu_soft_shm_want(tcp);
    slu_soft_shm_begin_exports(tcp);
    tcp->qp->direct = true;
    cq->shared++;
    tcp->qp->level = SLUICE_LEVEL_MEMORY;
    slu_log(SLUICE_LOG_DEBUG, "queue pair %u: shared memory with its peer", tcp->qp->qpn);
    slu_soft_shm_heat(tcp);
}

/* Ends the negotiation with the peer's answer. False: the answer is invalid. */
static bool conclude(struct soft_tcp *tcp)
{
    struct soft_shm *shm = tcp->shm;
    if (tcp->carry[0] > 1)
        return false;
    if (shm->usable && tcp->carry[0] == 1) {
        begin_sharing(tcp);
    } else {
        slu_log(SLUICE_LOG_INFO, "queue pair %u: no shared memory with its peer, it uses a socket",
                tcp->qp->qpn);
        slu_soft_shm_part(tcp);
        shm->stage = SHM_OFF;
    }
    slu_soft_tcp_opened(tcp);
    return true;
}

void slu_soft_shm_join_event(struct soft_tcp *tcp)
{
    SLU_KEEP_ERRNO;
    int heard = 1;
    bool sound = true;
    while (tcp->phase == PHASE_JOINING && !tcp->starved && sound && heard == 1) {
        bool offering = tcp->shm->stage == SHM_OFFERING;
        heard = hear(tcp, offering ? OFFER_BYTES : 1);
        if (heard == 1)
            sound = offering ? judge(tcp) : conclude(tcp);
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
        slu_soft_shm_unmap(tcp->shm->reader.segment, SHM_SEGMENT_BYTES);
        slu_soft_shm_join(tcp);
    } else {
        send_verdict(tcp);
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
        tcp->shared = false;
    }
    slu_soft_shm_unmap(shm->writer.segment, SHM_SEGMENT_BYTES);
    slu_soft_shm_unmap(shm->reader.segment, SHM_SEGMENT_BYTES);
    slu_soft_shm_drop_bulk(tcp);
    slu_soft_shm_unmap((void *)(uintptr_t)shm->reader.bulk, SHM_BULK_BYTES);
    shm->writer.segment = shm->reader.segment = NULL;
    shm->reader.bulk = NULL;
}
