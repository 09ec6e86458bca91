/* SPDX-License-Identifier: MIT */
/*
 * Looking after peers that we wait for. Whoever waits for a connection would
 * never learn that the process which was to make it is gone; so the helper
 * knocks at the peer's listener from time to time. One that is refused
 * everywhere has no process behind it.
 */
#include "helper.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define PERIOD SLUICE_MS(400)
#define NOTICES 32

struct soft_probe {
    int fd; /* -1: none is under way */
    uint32_t address;
    bool refused;
    bool unsure; /* an attempt failed for a reason of ours */
    int64_t next;
};

enum verdict { UNKNOWN, ALIVE, LOST };

static void restart(struct soft_probe *probe)
{
    probe->address = 0;
    probe->refused = probe->unsure = false;
    probe->next = slu_now() + PERIOD;
}

static void note_failure(struct soft_probe *probe, int err)
{
    probe->refused |= err == ECONNREFUSED;
    probe->unsure |= err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS;
    probe->address++;
}

/* How did the attempt that is under way end? */
static enum verdict check_attempt(struct soft_probe *probe)
{
    struct pollfd waiting = {.fd = probe->fd, .events = POLLOUT};
    if (poll(&waiting, 1, 0) <= 0)
        return UNKNOWN;
    int err = slu_soft_tcp_socket_error(probe->fd);
    close(probe->fd);
    probe->fd = -1;
    if (err == 0)
        return ALIVE;
    note_failure(probe, err);
    return UNKNOWN;
}

static enum verdict knock(struct soft_probe *probe, const struct soft_tcp *tcp)
{
    if (probe->fd >= 0 && check_attempt(probe) == ALIVE)
        return ALIVE;
    while (probe->fd < 0 && probe->address < tcp->address_count) {
        int fd = slu_soft_tcp_dial(&tcp->addresses[probe->address]);
        if (fd < 0) {
            note_failure(probe, -fd);
            continue;
        }
        probe->fd = fd;
        /* On this host the answer is there at once. */
        if (check_attempt(probe) == ALIVE)
            return ALIVE;
    }
    if (probe->fd >= 0)
        return UNKNOWN;
    return probe->unsure || (!probe->refused && tcp->address_count > 0) ? ALIVE : LOST;
}

static struct soft_probe *make_probe(void)
{
    struct soft_probe *probe = malloc(sizeof(*probe));
    if (probe == NULL)
        return NULL;
    probe->fd = -1;
    restart(probe);
    return probe;
}

void slu_soft_probe_free(struct soft_probe *probe)
{
    if (probe != NULL && probe->fd >= 0)
        close(probe->fd);
    free(probe);
}

static bool look_after(struct soft_qp *qp, int64_t now)
{
    if (qp->probe == NULL)
        qp->probe = make_probe();
    if (qp->probe == NULL || now < qp->probe->next)
        return false;
    enum verdict verdict = knock(qp->probe, qp->tcp);
    if (verdict == ALIVE)
        restart(qp->probe);
    return verdict == LOST && !atomic_exchange(&qp->lost_sent, true);
}

/* Collects queue pairs, held, whose peer is gone. */
static uint32_t collect(struct soft_context *context, struct soft_qp **lost, uint32_t room)
{
    int64_t now = slu_now();
    uint32_t count = 0;
    pthread_mutex_lock(&context->lock);
    for (uint32_t i = 0; i < context->qps.size && count < room; i++) {
        struct soft_qp *qp = context->qps.items[i];
        if (qp == NULL || !atomic_load(&qp->awaiting)) {
            if (qp != NULL && qp->probe != NULL) {
                slu_soft_probe_free(qp->probe);
                qp->probe = NULL;
            }
            continue;
        }
        if (!look_after(qp, now))
            continue;
        slu_soft_qp_hold(qp);
        lost[count++] = qp;
    }
    pthread_mutex_unlock(&context->lock);
    return count;
}

void slu_soft_probe_all(struct soft_helper *helper)
{
    struct soft_qp *lost[NOTICES];
    uint32_t count = collect(helper->context, lost, NOTICES);
    for (uint32_t i = 0; i < count; i++) {
        struct soft_message *message = &lost[i]->lost;
        slu_log(SLUICE_LOG_INFO, "queue pair %u: the peer's process is gone", lost[i]->qpn);
        message->kind = SOFT_LOST;
        message->from = NULL;
        message->to = lost[i];
        slu_soft_send(slu_soft_cq_of(lost[i]), message, NULL);
    }
}
