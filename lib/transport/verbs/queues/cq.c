/* SPDX-License-Identifier: MIT */
/*
 * Creates completion queues. A completion queue has one completion channel for all its queues of
 * the device, which parts.c adds.
 */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "transport/verbs/device/device.h"
#include "transport/verbs/events/events.h"
#include "transport/verbs/queues/queues.h"

/* Maximum wait for queue pairs to have taken their last receives of a pool, of all together. */
#define LAST_TIME SLUICE_MS(50)

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
 * Opens the fds that wake a sleeping wait: on completions, and by other threads, which have read an
 * event of the device or have to wake it. wake_fd is never read: each write to it is an edge, which
 * epoll_wait(2) consumes.
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

    if (depth > base->max_cq_entries)
        return slu_fail(EINVAL,
                        "a completion queue of %u entries is out of range: %s has at most %u",
                        depth, base->device, base->max_cq_entries);
    err = slu_verbs_watch_start(context);
    if (err)
        return err;
    made = calloc(1, sizeof *made);
    if (!made)
        return slu_fail(ENOMEM, "no memory for a completion queue");
    made->base.context = base;
    made->base.depth = depth;
    made->last_left = LAST_TIME;
    made->grows = depth == 0 || depth > base->max_cq_depth;
    /* Room for one, so that arming, which holds one, never needs memory. */
    made->held = calloc(1, sizeof *made->held);
    made->held_capacity = 1;
    if (!made->held) {
        err = slu_fail(ENOMEM, "no memory for a completion queue");
        goto free_cq;
    }
    err = open_channel(made, context);
    if (err)
        goto free_cq;
    if (!made->grows)
        err = slu_verbs_cq_add_part(made, depth);
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

void slu_verbs_cq_destroy(struct slu_cq *base)
{
    struct slu_verbs_cq *cq = slu_verbs_cq_of(base);
    bool gone = true;

    slu_verbs_events_remove_cq(slu_verbs_context_of(base->context), cq);
    for (uint32_t i = 0; i < cq->part_count; i++)
        gone &= slu_verbs_cq_destroy_part(cq, &cq->parts[i]);
    close_fds(cq);
    if (gone)
        slu_verbs_comp_channel_end(cq->channel);
    free(cq->parts);
    free(cq->held);
    free(cq);
}
