/* SPDX-License-Identifier: MIT */
/*
 * Looking after peers that we wait for. Whoever waits for a connection would
 * never learn that the queue pair which was to make it is gone; so from time to
 * time the helper asks the peer's listener for it. One that is at none of its
 * addresses is lost: refused, denied, or hung up on us, the last of these in
 * two rounds, for a listener under siege may have to do that. Silence proves
 * nothing.
 */
#include "transport/soft/helper.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST SLUICE_MS(100)
#define PERIOD SLUICE_MS(400)
/* The question once sent, an address has so long to answer. */
#define ANSWER_TIME SLUICE_S(3)
#define NOTICES 32
/* Rounds begun in one tick: a bound for the work, not for the peers. */
#define ROUNDS 64

struct soft_probe {
    int fd;            /* -1: none is under way */
    uint32_t first;    /* address to begin with: it answered last time */
    uint32_t tried;    /* addresses that are done with in this round */
    uint32_t hang_ups; /* rounds in a row that ended with one */
    uint32_t received; /* of the answer */
    bool asked;        /* the question is sent */
    bool absent;       /* it is not at one of the addresses */
    bool hung_up;      /* somebody ended without an answer */
    bool unsure;       /* an attempt failed for another reason than an absent peer */
    int64_t next;      /* when the next round begins */
    int64_t limit;     /* of the answer */
    uint8_t answer[TCP_WELCOME_BYTES];
};

enum verdict { UNKNOWN, ALIVE, LOST };

static void restart(struct soft_probe *probe, int64_t delay)
{
    probe->tried = 0;
    probe->absent = probe->hung_up = probe->unsure = false;
    probe->next = slu_now() + delay;
}

static void end_attempt(struct soft_probe *probe)
{
    /* No socket of either side is to linger for a question. */
    struct linger linger = {.l_onoff = 1};
    setsockopt(probe->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    slu_fd_close(probe->fd);
    probe->fd = -1;
    probe->tried++;
}

static void note_error(struct soft_probe *probe, int err)
{
    probe->absent |= err == ECONNREFUSED;
    probe->unsure |= err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS;
}

static bool is_ready(const struct soft_probe *probe, short events)
{
    struct pollfd waiting = {.fd = probe->fd, .events = events};
    return poll(&waiting, 1, 0) > 0;
}

/* Asks as soon as the connection is there. */
static void ask(struct soft_probe *probe, const struct soft_qp *qp)
{
    if (!is_ready(probe, POLLOUT))
        return;
    int err = slu_soft_tcp_socket_error(probe->fd);
    uint8_t bytes[TCP_HELLO_BYTES];
    struct tcp_hello hello = {.target_qpn = qp->tcp->remote_qpn};
    memcpy(hello.target_nonce, qp->tcp->remote_nonce, SLU_NONCE_BYTES);
    memcpy(hello.own_nonce, qp->nonce, SLU_NONCE_BYTES);
    slu_soft_hello_encode(&hello, bytes);
    if (err == 0 && send(probe->fd, bytes, sizeof(bytes), MSG_NOSIGNAL) == (ssize_t)sizeof(bytes)) {
        probe->asked = true;
        probe->limit = slu_now() + ANSWER_TIME;
        return;
    }
    note_error(probe, err);
    probe->hung_up |= err == 0;
    end_attempt(probe);
}

static enum verdict hear(struct soft_probe *probe, const struct soft_qp *qp)
{
    ssize_t got = recv(probe->fd, probe->answer + probe->received,
                       TCP_WELCOME_BYTES - probe->received, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return UNKNOWN;
    if (got > 0)
        probe->received += (uint32_t)got;
    if (got > 0 && probe->received < TCP_WELCOME_BYTES)
        return UNKNOWN;
    if (got > 0 && slu_soft_welcome_decode(probe->answer, qp->tcp->remote_qpn))
        return ALIVE;
    /* Another program, or one of us that does not have it. */
    probe->absent |= got > 0;
    probe->hung_up |= got <= 0;
    end_attempt(probe);
    return UNKNOWN;
}

static void check_limit(struct soft_probe *probe)
{
    if (probe->fd < 0 || !probe->asked || slu_now() < probe->limit)
        return;
    /* The peer may be busy, stopped, or out of descriptors. */
    probe->unsure = true;
    end_attempt(probe);
}

static enum verdict go_on(struct soft_probe *probe, const struct soft_qp *qp)
{
    if (!probe->asked)
        ask(probe, qp);
    if (probe->fd >= 0 && probe->asked && hear(probe, qp) == ALIVE)
        return ALIVE;
    check_limit(probe);
    return UNKNOWN;
}

static void begin_attempt(struct soft_probe *probe, const struct soft_tcp *tcp)
{
    uint32_t address = (probe->first + probe->tried) % tcp->address_count;
    int fd = slu_soft_tcp_dial(&tcp->addresses[address]);
    if (fd < 0) {
        note_error(probe, -fd);
        probe->tried++;
        return;
    }
    probe->fd = fd;
    probe->asked = false;
    probe->received = 0;
}

/* All addresses are done with. */
static enum verdict judge(struct soft_probe *probe, const struct soft_tcp *tcp)
{
    bool gone = probe->absent || probe->hung_up || tcp->address_count == 0;
    probe->hang_ups = probe->hung_up ? probe->hang_ups + 1 : 0;
    if (gone && !probe->unsure && (!probe->hung_up || probe->hang_ups > 1))
        return LOST;
    restart(probe, PERIOD);
    return UNKNOWN;
}

static enum verdict continue_round(struct soft_probe *probe, const struct soft_qp *qp)
{
    const struct soft_tcp *tcp = qp->tcp;
    for (;;) {
        if (probe->fd < 0 && probe->tried >= tcp->address_count)
            return judge(probe, tcp);
        if (probe->fd < 0)
            begin_attempt(probe, tcp);
        if (probe->fd >= 0 && go_on(probe, qp) == ALIVE) {
            probe->first = (probe->first + probe->tried) % tcp->address_count;
            probe->hang_ups = 0;
            end_attempt(probe);
            restart(probe, PERIOD);
            return ALIVE;
        }
        if (probe->fd >= 0)
            return UNKNOWN;
    }
}

static struct soft_probe *make_probe(void)
{
    struct soft_probe *probe = calloc(1, sizeof(*probe));
    if (probe == NULL)
        return NULL;
    probe->fd = -1;
    restart(probe, FIRST);
    return probe;
}

void slu_soft_probe_free(struct soft_probe *probe)
{
    if (probe != NULL && probe->fd >= 0)
        end_attempt(probe);
    free(probe);
}

/* Returns whether its peer is gone, once. */
static bool look_after(struct soft_qp *qp, int64_t now, uint32_t *rounds)
{
    if (qp->probe == NULL)
        qp->probe = make_probe();
    if (qp->probe == NULL || now < qp->probe->next || atomic_load(&qp->lost_sent))
        return false;
    if (qp->probe->fd < 0 && qp->probe->tried == 0) {
        if (*rounds == ROUNDS)
            return false;
        ++*rounds;
    }
    return continue_round(qp->probe, qp) == LOST && !atomic_exchange(&qp->lost_sent, true);
}

/* Collects queue pairs, held, whose peer is gone. */
static uint32_t collect(struct soft_helper *helper, struct soft_qp **lost, uint32_t room)
{
    struct soft_context *context = helper->context;
    int64_t now = slu_now();
    uint32_t count = 0;
    uint32_t rounds = 0;
    pthread_mutex_lock(&context->lock);
    uint32_t size = context->qps.size;
    uint32_t from = helper->probe_from;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t slot = (from + i) % size;
        struct soft_qp *qp = context->qps.items[slot];
        if (qp != NULL && !atomic_load(&qp->awaiting)) {
            slu_soft_probe_free(qp->probe);
            qp->probe = NULL;
        }
        if (qp == NULL || !atomic_load(&qp->awaiting) || count == room)
            continue;
        if (look_after(qp, now, &rounds)) {
            slu_soft_qp_hold(qp);
            lost[count++] = qp;
        }
        if (rounds < ROUNDS)
            helper->probe_from = slot + 1;
    }
    pthread_mutex_unlock(&context->lock);
    return count;
}

void slu_soft_probe_all(struct soft_helper *helper)
{
    struct soft_qp *lost[NOTICES];
    uint32_t count = collect(helper, lost, NOTICES);
    for (uint32_t i = 0; i < count; i++) {
        struct soft_message *message = &lost[i]->lost;
        slu_log(SLUICE_LOG_INFO, "queue pair %u: its peer is gone", lost[i]->qpn);
        message->kind = SOFT_LOST;
        message->from = NULL;
        message->to = lost[i];
        slu_soft_send(slu_soft_cq_of(lost[i]), message, NULL);
    }
}
