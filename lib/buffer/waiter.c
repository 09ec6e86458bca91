/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "buffer/waiter.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/descriptor.h"

static struct slu_waiter *make(void)
{
    struct slu_waiter *waiter = calloc(1, sizeof *waiter);

    if (waiter == NULL)
        return slu_fail_null(ENOMEM, "no memory to wait for buffers");
    waiter->set = -1;
    waiter->event = slu_fd_event();
    if (waiter->event >= 0)
        return waiter;
    free(waiter);
    return slu_fail_null(errno, "no descriptor to wait for buffers: %s", strerrordesc_np(errno));
}

struct slu_waiter *slu_waiter_get(struct sluice_buffer_service *service)
{
    struct slu_waiter *waiter;

    pthread_mutex_lock(&service->lock);
    waiter = service->waiters;
    if (waiter != NULL)
        service->waiters = waiter->next;
    pthread_mutex_unlock(&service->lock);
    return waiter != NULL ? waiter : make();
}

static void free_waiter(struct slu_waiter *waiter)
{
    if (waiter->set >= 0)
        slu_fd_close(waiter->set);
    slu_fd_close(waiter->event);
    free(waiter);
}

void slu_waiter_put(struct sluice_buffer_service *service, struct slu_waiter *waiter)
{
    if (service == NULL) {
        free_waiter(waiter);
        return;
    }
    /* The next user waits for other descriptors than those in the set. */
    if (waiter->set >= 0)
        slu_fd_close(waiter->set);
    waiter->set = -1;
    pthread_mutex_lock(&service->lock);
    waiter->next = service->waiters;
    service->waiters = waiter;
    pthread_mutex_unlock(&service->lock);
}

void slu_waiter_wake(struct slu_waiter *waiter)
{
    uint64_t one = 1;

    if (atomic_exchange(&waiter->sleeps, false))
        (void)!write(waiter->event, &one, sizeof one);
}

void slu_waiter_awoke(struct slu_waiter *waiter)
{
    uint64_t ignored;

    /*
     * A waker that has already cleared sleeps may write after this read. The next sleep then ends
     * at once and clears the event.
     */
    atomic_store(&waiter->sleeps, false);
    (void)!read(waiter->event, &ignored, sizeof ignored);
}

static int add(int set, int operation, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};

    return epoll_ctl(set, operation, fd, &event) == 0 ? 0 : -errno;
}

int slu_waiter_fd(struct slu_waiter *waiter)
{
    int set, error;

    if (waiter->set >= 0)
        return waiter->set;
    set = slu_fd_epoll();
    error = set >= 0 ? add(set, EPOLL_CTL_ADD, waiter->event, EPOLLIN) : -errno;
    if (error == 0) {
        waiter->set = set;
        return set;
    }
    if (set >= 0)
        slu_fd_close(set);
    return slu_fail(-error, "no descriptor to watch for buffers: %s", strerrordesc_np(-error));
}

int slu_waiter_watch(const struct slu_waiter *waiter, int fd)
{
    int error;

    if (waiter->set < 0)
        return 0;
    error = add(waiter->set, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT);
    return error == -ENOENT ? add(waiter->set, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLONESHOT) : error;
}

void slu_waiter_unwatch(const struct slu_waiter *waiter, int fd)
{
    if (waiter->set >= 0)
        (void)epoll_ctl(waiter->set, EPOLL_CTL_DEL, fd, NULL);
}

void slu_waiters_end(struct sluice_buffer_service *service)
{
    while (service->waiters != NULL) {
        struct slu_waiter *waiter = service->waiters;

        service->waiters = waiter->next;
        free_waiter(waiter);
    }
}
