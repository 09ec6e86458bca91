/* SPDX-License-Identifier: MIT */
/*
 * The thread of a context that waits for its asynchronous events. Guarantee: one reader of the
 * context reads an event soon after it came, whatever the program does. The completion queues that
 * it concerns are woken one by one.
 *
 * The epoll sets of completion queues cannot watch the device themselves: epoll(7) limits nested
 * sets to 500 paths for a file, and a program may have more channels than that in its own set. The
 * thread is started with the first completion queue, and sleeps without a timeout. A context that
 * the program opened has no thread, as the program reads its events, until a channel is connected
 * over rdma_cm, whose events the library reads.
 */
#include "config.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/thread.h"
#include "transport/verbs/events/events.h"

/* Reads what poll(2) found. If the program opened the device, fds[0] is unused. */
static void look(struct slu_verbs_context *context, const struct pollfd fds[3])
{
    uint64_t ignored;

    if (fds[1].revents)
        (void)!read(context->watch.nudge_fd, &ignored, sizeof ignored);
    if (fds[0].revents)
        slu_verbs_events_read(context);
    if (fds[0].revents & ~POLLIN)
        slu_verbs_events_gone(context, EIO);
    if (fds[2].revents)
        context->watch.cm_read(context);
}

static void *watch(void *argument)
{
    struct slu_verbs_context *context = argument;
    struct pollfd fds[] = {{.fd = context->wrapped ? -1 : context->ibv->async_fd, .events = POLLIN},
                           {.fd = context->watch.nudge_fd, .events = POLLIN},
                           {.events = POLLIN}};

    /* A device that has failed stays readable for ever. */
    while (!atomic_load(&context->watch.ends) && !atomic_load(&context->fatal)) {
        fds[2].fd = atomic_load(&context->watch.cm_fd);
        if (poll(fds, 3, -1) > 0)
            look(context, fds);
    }
    return NULL;
}

static int start(struct slu_verbs_context *context)
{
    int err;

    context->watch.nudge_fd = slu_fd_event();
    if (context->watch.nudge_fd < 0) {
        err = errno;
        return slu_fail(err, "watching the events of %s takes a file descriptor: %s",
                        context->base.device, strerror(err));
    }
    err = slu_thread_start(&context->watch.thread, "sluice-verbs", watch, context);
    if (err) {
        slu_fd_close(context->watch.nudge_fd);
        return slu_fail(err, "cannot start the thread that watches the events of %s: %s",
                        context->base.device, strerror(err));
    }
    context->watch.runs = true;
    return 0;
}

static void nudge(struct slu_verbs_context *context)
{
    const uint64_t one = 1;
    ssize_t written = SLU_UNCANCELLED(write(context->watch.nudge_fd, &one, sizeof one));

    (void)written; /* the counter is never full */
}

int slu_verbs_watch_start(struct slu_verbs_context *context)
{
    int err = 0;

    pthread_mutex_lock(&context->watch.lock);
    if (!context->watch.runs && !context->wrapped)
        err = start(context);
    pthread_mutex_unlock(&context->watch.lock);
    return err;
}

int slu_verbs_watch_cm(struct slu_verbs_context *context, int fd,
                       void (*read)(struct slu_verbs_context *context))
{
    int err = context->watch.runs ? 0 : start(context);

    if (err)
        return err;
    context->watch.cm_read = read;
    atomic_store(&context->watch.cm_fd, fd);
    nudge(context);
    return 0;
}

void slu_verbs_watch_stop(struct slu_verbs_context *context)
{
    if (!context->watch.runs)
        return;
    atomic_store(&context->watch.ends, true);
    nudge(context);
    pthread_join(context->watch.thread, NULL);
    slu_fd_close(context->watch.nudge_fd);
}
