/* SPDX-License-Identifier: MIT */
/*
 * Completion queues: making them, and which queues of the device a queue pair
 * completes on. Guarantee: no queue of the device can overrun. Up to the depth
 * that the device allows there is one, and the engine's credits see to it.
 * Beyond, queues are added as queue pairs come, and each queue pair has its
 * depths reserved on one of them: on two, what was flushed could be seen before
 * the request that failed. They all share one completion channel.
 */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "transport/verbs/verbs.h"

static struct slu_verbs_qp **bucket_of(struct slu_verbs_cq *cq, uint32_t qpn)
{
    return &cq->qps[qpn & (SLU_VERBS_BUCKETS - 1)];
}

void slu_verbs_cq_add(struct slu_verbs_cq *cq, struct slu_verbs_qp *qp)
{
    struct slu_verbs_qp **bucket = bucket_of(cq, qp->ibv->qp_num);

    qp->next = *bucket;
    *bucket = qp;
}

void slu_verbs_cq_remove(struct slu_verbs_cq *cq, struct slu_verbs_qp *qp)
{
    struct slu_verbs_qp **link = bucket_of(cq, qp->ibv->qp_num);

    while (*link != qp)
        link = &(*link)->next;
    *link = qp->next;
}

struct slu_verbs_qp *slu_verbs_cq_find(struct slu_verbs_cq *cq, uint32_t qpn)
{
    struct slu_verbs_qp *qp = *bucket_of(cq, qpn);

    while (qp && qp->ibv->qp_num != qpn)
        qp = qp->next;
    return qp;
}

/* What a device has that is gone stays readable for ever, and would keep an event loop awake. */
static void unwatch_device(const struct slu_verbs_cq *cq)
{
    int saved = errno;

    epoll_ctl(cq->fd, EPOLL_CTL_DEL, cq->channel->fd, NULL);
    errno = saved;
}

void slu_verbs_cq_fail(struct slu_verbs_cq *cq, const char *reason)
{
    if (!cq->dead) {
        cq->reason = reason;
        unwatch_device(cq);
    }
    cq->dead = true;
    for (uint32_t i = 0; i < SLU_VERBS_BUCKETS; i++) {
        for (struct slu_verbs_qp *qp = cq->qps[i]; qp; qp = qp->next)
            qp->state = SLU_QP_ERROR;
    }
}

/* One completion vector after the other, so that the interrupts go to all processors. */
static int next_vector(struct slu_verbs_context *context)
{
    uint32_t vectors =
        context->ibv->num_comp_vectors > 0 ? (uint32_t)context->ibv->num_comp_vectors : 1;

    return (int)(atomic_fetch_add(&context->next_vector, 1) % vectors);
}

/* Adds a queue of the device to the end of the list. */
static int add_part(struct slu_verbs_cq *cq, uint32_t entries)
{
    struct slu_verbs_context *context = slu_verbs_context_of(cq->base.context);
    size_t size = (cq->part_count + 1) * sizeof *cq->parts;
    struct slu_verbs_part *grown = realloc(cq->parts, size);
    struct ibv_cq *ibv;

    if (!grown)
        return slu_fail(ENOMEM, "no memory for a completion queue");
    cq->parts = grown;
    ibv = ibv_create_cq(context->ibv, (int)entries, cq, cq->channel, next_vector(context));
    if (!ibv) {
        int err = slu_verbs_errno(-1);

        return slu_fail(err, "cannot create a completion queue of %u entries on %s: %s", entries,
                        context->base.device, strerror(err));
    }
    grown[cq->part_count++] = (struct slu_verbs_part){.ibv = ibv, .entries = entries};
    cq->entries += entries;
    return 0;
}

int slu_verbs_cq_reserve(struct slu_verbs_cq *cq, uint32_t entries, uint32_t *part)
{
    uint32_t most = cq->base.context->max_cq_depth;
    uint32_t rest;
    int err;

    *part = 0;
    if (!cq->grows)
        return 0;
    while (*part < cq->part_count && cq->parts[*part].entries - cq->parts[*part].reserved < entries)
        ++*part;
    if (*part == cq->part_count) {
        rest = cq->base.depth > cq->entries ? cq->base.depth - cq->entries : 0;
        err = add_part(cq, slu_verbs_min(most, rest > entries ? rest : entries));
        if (err)
            return err;
    }
    cq->parts[*part].reserved += entries;
    return 0;
}

void slu_verbs_cq_release(struct slu_verbs_cq *cq, uint32_t entries, uint32_t part)
{
    if (cq->grows)
        cq->parts[part].reserved -= entries;
}

static int watch(const struct slu_verbs_cq *cq, int fd, uint32_t events, uint32_t what)
{
    struct epoll_event event = {.events = events, .data.u32 = what};

    return epoll_ctl(cq->fd, EPOLL_CTL_ADD, fd, &event);
}

static void close_fds(struct slu_verbs_cq *cq)
{
    if (cq->fd >= 0)
        slu_fd_close(cq->fd);
    if (cq->wake_fd >= 0)
        slu_fd_close(cq->wake_fd);
}

/*
 * What a sleeping wait looks at: completions, and other threads, which have read
 * an event of the device (watch.c) or want it woken. Their fd is never read: each
 * write to it is an edge, which is gone with a look at it.
 */
static int open_fds(struct slu_verbs_cq *cq, const struct slu_verbs_context *context)
{
    int err;

    cq->wake_fd = slu_fd_event();
    cq->fd = slu_fd_epoll();
    if (cq->wake_fd >= 0 && cq->fd >= 0 && fcntl(cq->channel->fd, F_SETFL, O_NONBLOCK) == 0 &&
        fcntl(cq->channel->fd, F_SETFD, FD_CLOEXEC) == 0 &&
        watch(cq, cq->channel->fd, EPOLLIN, SLU_VERBS_COMPLETION) == 0 &&
        watch(cq, cq->wake_fd, EPOLLIN | EPOLLET, SLU_VERBS_WAKE) == 0)
        return 0;
    err = errno;
    return slu_fail(err, "cannot prepare the completion channel of %s: %s", context->base.device,
                    strerror(err));
}

static int open_channel(struct slu_verbs_cq *cq, const struct slu_verbs_context *context)
{
    int err;

    cq->channel = slu_verbs_comp_channel(context->ibv);
    if (!cq->channel) {
        err = slu_verbs_errno(-1);
        return slu_fail(err, "cannot create a completion channel on %s: %s", context->base.device,
                        strerror(err));
    }
    err = open_fds(cq, context);
    if (err) {
        close_fds(cq);
        slu_verbs_comp_channel_end(cq->channel);
    }
    return err;
}

int slu_verbs_cq_create(struct slu_tcontext *base, uint32_t depth, struct slu_cq **cq)
{
    struct slu_verbs_context *context = slu_verbs_context_of(base);
    struct slu_verbs_cq *made;
    int err;

    if (depth == 0 || depth > base->max_cq_entries)
        return slu_fail(EINVAL, "a completion queue of %u entries is out of range: %s has 1 to %u",
                        depth, base->device, base->max_cq_entries);
    err = slu_verbs_watch_start(context);
    if (err)
        return err;
    made = calloc(1, sizeof *made);
    if (!made)
        return slu_fail(ENOMEM, "no memory for a completion queue");
    made->base.context = base;
    made->base.depth = depth;
    made->grows = depth > base->max_cq_depth;
    /* So that arming, which holds one, can never be out of memory. */
    if (!slu_verbs_cq_reserve_held(made, 1)) {
        err = slu_fail(ENOMEM, "no memory for a completion queue");
        goto free_cq;
    }
    err = open_channel(made, context);
    if (err)
        goto free_cq;
    if (!made->grows)
        err = add_part(made, depth);
    if (err)
        goto close_channel;
    slu_verbs_events_add_cq(context, made);
    *cq = &made->base;
    return 0;

close_channel:
    close_fds(made);
    slu_verbs_comp_channel_end(made->channel);
free_cq:
    free(made->parts);
    free(made->held);
    free(made);
    return err;
}

/* Destroying a queue waits until its events are acknowledged, the last batch too. */
static bool destroy_part(struct slu_verbs_cq *cq, struct slu_verbs_part *part)
{
    int err;

    if (part->unacked)
        ibv_ack_cq_events(part->ibv, part->unacked);
    err = ibv_destroy_cq(part->ibv);
    if (err)
        slu_log(SLUICE_LOG_ERROR, "destroying a completion queue of %s failed: %s",
                cq->base.context->device, strerror(slu_verbs_errno(err)));
    return err == 0;
}

void slu_verbs_cq_destroy(struct slu_cq *base)
{
    struct slu_verbs_cq *cq = slu_verbs_cq_of(base);
    bool gone = true;

    slu_verbs_events_remove_cq(slu_verbs_context_of(base->context), cq);
    for (uint32_t i = 0; i < cq->part_count; i++)
        gone &= destroy_part(cq, &cq->parts[i]);
    close_fds(cq);
    if (gone)
        slu_verbs_comp_channel_end(cq->channel);
    free(cq->parts);
    free(cq->held);
    free(cq);
}
