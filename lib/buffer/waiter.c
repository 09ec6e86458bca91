/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "buffer/waiter.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptor.h"

static struct slu_waiter *make(void)
{
    struct slu_waiter *waiter = calloc(1, sizeof *waiter);

    if (waiter == NULL)
        return slu_fail_null(ENOMEM, "no memory to wait for buffers");
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

void slu_waiter_put(struct sluice_buffer_service *service, struct slu_waiter *waiter)
{
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

    /* Who has taken it back writes, or has written. */
    if (!atomic_exchange(&waiter->sleeps, false))
        (void)!read(waiter->event, &ignored, sizeof ignored);
}

void slu_waiters_end(struct sluice_buffer_service *service)
{
    while (service->waiters != NULL) {
        struct slu_waiter *waiter = service->waiters;

        service->waiters = waiter->next;
        slu_fd_close(waiter->event);
        free(waiter);
    }
}
