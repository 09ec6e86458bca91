/* SPDX-License-Identifier: MIT */
/*
 * Batches as objects of the program: prepared, posted, polled, waited for, cancelled and freed.
 * Guarantee: a batch that was cancelled or freed, or whose service was closed, has nothing in
 * flight. The service lists all of its batches, and ends them when it is closed.
 */
#include "config.h"

#include <stdlib.h>

#include "buffer/batch.h"

struct sluice_buffer_batch {
    uint32_t magic;
    struct sluice_buffer_batch **link, *next; /* in the list of the service, under its lock */
    struct slu_batch batch;
};

static bool is_batch(const struct sluice_buffer_batch *object)
{
    return object != NULL && object->magic == SLU_MAGIC_BUFFER_BATCH;
}

static int not_a_batch(const struct sluice_buffer_batch *object)
{
    return slu_misuse(EINVAL, "not a batch, or one that was freed%s", slu_none_hint(object));
}

static int check_timeout(int64_t timeout)
{
    return timeout >= 0 ? 0 : slu_misuse(EINVAL, "timeout %lld is negative", (long long)timeout);
}

static int check_posted(const struct sluice_buffer_batch *object)
{
    if (!is_batch(object))
        return not_a_batch(object);
    return object->batch.posted ? 0 : slu_fail(ENOENT, "the batch was prepared, but never posted");
}

static void enter(struct sluice_buffer_batch *object)
{
    struct sluice_buffer_service *service = object->batch.service;

    pthread_mutex_lock(&service->lock);
    object->next = service->batches;
    object->link = &service->batches;
    if (object->next != NULL)
        object->next->link = &object->next;
    service->batches = object;
    pthread_mutex_unlock(&service->lock);
}

static void leave(struct sluice_buffer_batch *object)
{
    struct sluice_buffer_service *service = object->batch.service;

    pthread_mutex_lock(&service->lock);
    *object->link = object->next;
    if (object->next != NULL)
        object->next->link = object->link;
    pthread_mutex_unlock(&service->lock);
}

static struct sluice_buffer_batch *prepare(struct sluice_buffer_service *service,
                                           const struct sluice_buffer_action *actions,
                                           uint32_t count)
{
    struct sluice_buffer_batch *object = calloc(1, sizeof *object);
    int error;

    if (object == NULL)
        return slu_fail_null(ENOMEM, "no memory for a batch of %u actions on buffers", count);
    pthread_mutex_init(&object->batch.lock, NULL);
    object->batch.service = service;
    object->batch.count = count;
    object->batch.is_object = true;
    error = slu_batch_prepare(&object->batch, actions);
    if (error < 0) {
        slu_batch_end(&object->batch);
        free(object);
        return slu_none(error);
    }
    object->magic = SLU_MAGIC_BUFFER_BATCH;
    enter(object);
    slu_made();
    return object;
}

struct sluice_buffer_batch *sluice_buffer_batch_prepare(struct sluice_buffer_service *service,
                                                        const struct sluice_buffer_action *actions,
                                                        uint32_t count)
{
    SLU_UNCANCELLED_BLOCK;
    int error = slu_buffer_check_call(service, actions, count, 0);

    return error == 0 ? prepare(service, actions, count) : slu_none(error);
}

static void post(struct sluice_buffer_batch *object, int64_t until)
{
    slu_batch_post(&object->batch, until);
    slu_batch_leave(&object->batch);
}

struct sluice_buffer_batch *sluice_buffer_post(struct sluice_buffer_service *service,
                                               const struct sluice_buffer_action *actions,
                                               uint32_t count, int64_t deadline)
{
    SLU_UNCANCELLED_BLOCK;
    struct sluice_buffer_batch *object;
    int64_t until = slu_after(deadline < 0 ? 0 : deadline);
    int error = slu_buffer_check_call(service, actions, count, deadline);

    if (error < 0)
        return slu_none(error);
    object = prepare(service, actions, count);
    if (object != NULL)
        post(object, until);
    return object;
}

int sluice_buffer_batch_post(struct sluice_buffer_batch *object, int64_t deadline)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;

    if (!is_batch(object))
        return not_a_batch(object);
    if (deadline < 0)
        return slu_misuse(EINVAL, "deadline %lld is negative", (long long)deadline);
    if (object->batch.service == NULL)
        return slu_fail(ESTALE, "the service of the batch was closed");
    if (!slu_batch_is_over(&object->batch))
        return slu_fail(EBUSY, "the batch is still in flight: wait for it, or cancel it");
    post(object, slu_after(deadline));
    return 0;
}

int sluice_buffer_batch_poll(struct sluice_buffer_batch *object,
                             struct sluice_completion *completions, uint32_t count)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;

    if (!is_batch(object))
        return not_a_batch(object);
    if (completions == NULL && count > 0)
        return slu_misuse(EINVAL, "completions must not be NULL");
    slu_batch_step(&object->batch);
    count = count < INT32_MAX ? count : INT32_MAX;
    return (int)slu_batch_take(&object->batch, completions, count);
}

/* Fails a wait that ended without what it waited for. */
static int fail_wait(int error)
{
    return error == -ETIMEDOUT ? slu_fail(ETIMEDOUT, "the batch is still in flight")
                               : slu_fail(EINTR, "the wait was interrupted; the batch goes on");
}

int sluice_buffer_batch_next(struct sluice_buffer_batch *object, int64_t timeout,
                             struct sluice_completion *completion)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;
    int64_t until = slu_after(timeout < 0 ? 0 : timeout);
    int error = check_posted(object);

    if (error == 0)
        error = check_timeout(timeout);
    if (error == 0 && completion == NULL)
        error = slu_misuse(EINVAL, "completion must not be NULL");
    if (error < 0)
        return error;
    error = slu_batch_wait(&object->batch, until, true);
    if (error < 0)
        return fail_wait(error);
    return slu_batch_take(&object->batch, completion, 1) == 1
               ? 0
               : slu_fail(ENOENT, "all completions of the batch were taken");
}

int sluice_buffer_batch_wait(struct sluice_buffer_batch *object, int64_t timeout)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;
    int64_t until = slu_after(timeout < 0 ? 0 : timeout);
    int error = check_posted(object);

    if (error == 0)
        error = check_timeout(timeout);
    if (error < 0)
        return error;
    error = slu_batch_wait(&object->batch, until, false);
    return error < 0 ? fail_wait(error) : 0;
}

int sluice_buffer_batch_results(const struct sluice_buffer_batch *object,
                                struct sluice_completion *completions)
{
    SLU_KEEP_ERRNO;
    int error = check_posted(object);

    if (error < 0)
        return error;
    if (!slu_batch_is_over(&object->batch))
        return slu_fail(EBUSY, "the batch is still in flight: wait for it, or cancel it");
    for (uint32_t i = 0; i < object->batch.count && completions != NULL; i++)
        completions[i] = object->batch.works[i].result;
    return slu_batch_conclude(&object->batch);
}

int sluice_buffer_batch_cancel(struct sluice_buffer_batch *object)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;
    struct slu_text text;

    if (!is_batch(object))
        return not_a_batch(object);
    slu_text_save(&text);
    slu_batch_cancel(&object->batch, &slu_ending_cancelled);
    slu_text_restore(&text);
    return 0;
}

int sluice_buffer_batch_fd(struct sluice_buffer_batch *object)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;

    return is_batch(object) ? slu_waiter_fd(object->batch.waiter) : not_a_batch(object);
}

int sluice_buffer_batch_arm(struct sluice_buffer_batch *object, int64_t *due)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;
    int64_t until, left;
    int error = check_posted(object);

    if (error == 0)
        error = slu_waiter_fd(object->batch.waiter);
    if (error < 0)
        return error;
    error = slu_batch_arm(&object->batch, &until);
    left = until == SLUICE_FOREVER ? SLUICE_FOREVER : until - slu_now();
    if (due != NULL && error == 0)
        *due = left > 0 ? left : 0;
    return error;
}

void sluice_buffer_batch_free(struct sluice_buffer_batch *object)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;
    struct slu_text text;

    if (!slu_may_end(object, SLU_MAGIC_BUFFER_BATCH, "batch"))
        return;
    slu_text_save(&text);
    object->magic = SLU_MAGIC_DEAD;
    if (object->batch.service != NULL)
        leave(object);
    slu_batch_cancel(&object->batch, &slu_ending_cancelled);
    slu_batch_end(&object->batch);
    free(object);
    slu_text_restore(&text);
}

void slu_buffer_end_batches(struct sluice_buffer_service *service)
{
    int64_t patience = slu_batch_patience();
    struct sluice_buffer_batch *each;

    for (each = service->batches; each != NULL; each = each->next)
        slu_batch_recall(&each->batch, patience);
    while (service->batches != NULL) {
        struct sluice_buffer_batch *object = service->batches;

        leave(object);
        slu_batch_detach(&object->batch);
    }
}
