/* SPDX-License-Identifier: MIT */
/*
 * The works of a group on a connection: posting their pieces, taking completions, and the results.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "buffer/batch.h"
#include "channel/channel.h"

#define POSTED_AT_ONCE 16
#define TAKEN_AT_ONCE 16
/*
 * A work ends cancelled after this many connections ended under it because work of others failed.
 * Connections that ended because others were cancelled do not count.
 */
#define AGAIN 64

static void enqueue(struct slu_work *work)
{
    struct slu_group *group = work->group;

    work->next = NULL;
    work->queued = true;
    if (group->first == NULL)
        group->first = work;
    else
        group->last->next = work;
    group->last = work;
}

void slu_group_add(struct slu_group *group, struct slu_work *work)
{
    work->group = group;
    group->left++;
    enqueue(work);
}

/* Removes works from the queue that have ended, or are wholly posted. */
static void tidy_queue(struct slu_group *group)
{
    struct slu_work **at = &group->first;

    group->last = NULL;
    while (*at != NULL) {
        struct slu_work *work = *at;

        if (work->ended || work->posted == work->length) {
            work->queued = false;
            *at = work->next;
        } else {
            group->last = work;
            at = &work->next;
        }
    }
}

void slu_untaken_add(struct slu_untaken *untaken, struct slu_work *work)
{
    work->untaken = NULL;
    if (untaken->first == NULL)
        untaken->first = work;
    else
        untaken->last->untaken = work;
    untaken->last = work;
}

/* Ends a work. Releases of the program's regions may have waited for it. */
static void end(struct slu_work *work)
{
    atomic_store_explicit(&work->ended, true, memory_order_release);
    work->result.opcode = work->opcode;
    work->group->left--;
    slu_untaken_add(&work->group->untaken, work);
    if (slu_has_releases())
        slu_releases_look();
}

/*
 * Keeps the text of the first action that failed. Any other failure is preferred to a
 * cancellation, which says nothing about the cause.
 */
static void keep_text(struct slu_work *work, const char *text)
{
    struct slu_group *group = work->group;
    bool cancelled = work->result.error_class == SLUICE_CLASS_CANCELLED;

    if (group->why[0] != '\0' &&
        (group->cancelled == cancelled ? group->failed <= work->index : cancelled))
        return;
    group->failed = work->index;
    group->cancelled = cancelled;
    snprintf(group->why, sizeof group->why, "%.*s", SLU_LINK_TEXT - 1, text);
}

void slu_work_fail(struct slu_work *work, int error, enum sluice_error_class error_class,
                   uint32_t status)
{
    work->result.error = error;
    work->result.error_class = error_class;
    work->result.status = work->result.cause = status;
    keep_text(work, sluice_last_error());
    end(work);
}

const struct slu_ending slu_ending_late = {-ETIMEDOUT, SLUICE_CLASS_TIMEOUT, SLUICE_STATUS_DEADLINE,
                                           "the deadline passed"};
const struct slu_ending slu_ending_interrupted = {
    -ETIMEDOUT, SLUICE_CLASS_TIMEOUT, SLUICE_STATUS_DEADLINE, "the call was interrupted"};
const struct slu_ending slu_ending_cancelled = {
    -ECANCELED, SLUICE_CLASS_CANCELLED, SLUICE_STATUS_WR_FLUSH_ERR, "the batch was cancelled"};
const struct slu_ending slu_ending_closed = {-ECANCELED, SLUICE_CLASS_CANCELLED,
                                             SLUICE_STATUS_WR_FLUSH_ERR, "the service was closed"};

static void fail_early(struct slu_work *work, const struct slu_ending *ending)
{
    slu_fail(-ending->error, "%s when %llu of %llu bytes were moved%s", ending->what,
             (unsigned long long)work->done, (unsigned long long)work->length,
             work->group->link->state == SLU_LINK_UP ? "" : ", and there is no connection");
    slu_work_fail(work, ending->error, ending->error_class, ending->status);
}

bool slu_works_fail_early(struct slu_group *group, const struct slu_ending *ending)
{
    bool any = false;

    for (struct slu_work *work = group->first; work != NULL; work = work->next) {
        if (work->ended || work->in_flight > 0)
            continue;
        fail_early(work, ending);
        any = true;
    }
    tidy_queue(group);
    return any;
}

/* Returns the class and the status of a failed dial. */
static enum sluice_error_class class_of_dial(int error, uint32_t *status)
{
    switch (error) {
    case -ESTALE:
        *status = SLUICE_STATUS_REM_ACCESS_ERR;
        return SLUICE_CLASS_ACCESS;
    case -ETIMEDOUT:
        *status = SLUICE_STATUS_DEADLINE;
        return SLUICE_CLASS_TIMEOUT;
    case -EPROTO:
    case -EPROTOTYPE:
    case -EOPNOTSUPP:
        *status = SLUICE_STATUS_REM_INV_REQ_ERR;
        return SLUICE_CLASS_PROTOCOL;
    case -EINVAL:
    case -EMFILE:
    case -ENFILE:
    case -ENOMEM:
        *status = SLUICE_STATUS_LOC_QP_OP_ERR;
        return SLUICE_CLASS_LOCAL;
    default:
        *status = SLUICE_STATUS_RETRY_EXC_ERR;
        return SLUICE_CLASS_PEER_LOST;
    }
}

void slu_works_fail(struct slu_group *group, int error, const char *why)
{
    uint32_t status;
    enum sluice_error_class error_class = class_of_dial(error, &status);

    for (struct slu_work *work = group->first; work != NULL; work = work->next) {
        if (work->ended)
            continue;
        slu_fail(-error, "%s", why);
        slu_work_fail(work, error, error_class, status);
    }
    tidy_queue(group);
}

/* Taking. */

/*
 * Returns whether a failed work, with nothing in flight any more, continues over a new connection.
 */
static bool goes_on(struct slu_work *work)
{
    switch (work->result.error_class) {
    case SLUICE_CLASS_CANCELLED:
        return work->group->link->recalled || work->again++ < AGAIN;
    case SLUICE_CLASS_PEER_LOST:
        return work->lost++ == 0;
    default:
        return false;
    }
}

static void tell_failure(struct slu_work *work)
{
    struct sluice_error error = {.size = sizeof error};

    if (work->result.error_class == SLUICE_CLASS_ACCESS) {
        keep_text(work, work->opcode == SLUICE_OP_READ
                            ? "its owner refused it: the buffer was released, or is not published "
                              "for a read"
                            : "its owner refused it: the buffer was released, or is not published "
                              "for a write");
        return;
    }
    if (sluice_channel_error(work->group->link->channel, &error) != 1)
        return;
    /* Leave out the peer and the operation: the text of the work has them. */
    keep_text(work, slu_error_reason(&error));
}

/* Ends a work with the result of the refused one, whose text is kept for the whole group. */
static void end_refused(struct slu_work *work)
{
    uint64_t user_data = work->result.user_data;

    work->result = work->refused->result;
    work->result.user_data = user_data;
    end(work);
}

/*
 * Ends the other works with the same key and operation as a refused one: the owner would refuse
 * them too, and each refusal costs the connection. Those in flight will be flushed, and end then.
 */
static void refuse_alike(const struct slu_work *refused)
{
    const struct slu_batch *batch = refused->group->batch;

    for (uint32_t i = 0; i < batch->count; i++) {
        struct slu_work *work = &batch->works[i];

        if (work->group != refused->group || work->ended || work->rkey != refused->rkey ||
            work->opcode != refused->opcode)
            continue;
        work->refused = refused;
        if (work->in_flight == 0)
            end_refused(work);
    }
}

static void fail(struct slu_work *work)
{
    if (work->refused != NULL) {
        end_refused(work);
        return;
    }
    tell_failure(work);
    end(work);
    if (work->result.error_class == SLUICE_CLASS_ACCESS)
        refuse_alike(work);
}

static void finish(struct slu_work *work)
{
    if (work->result.error != 0 && work->refused == NULL && goes_on(work)) {
        work->result = (struct sluice_completion){.user_data = work->result.user_data};
        work->posted = work->done;
        if (!work->queued)
            enqueue(work);
        return;
    }
    if (work->result.error != 0) {
        fail(work);
        return;
    }
    work->result.bytes = work->done;
    end(work);
}

static bool is_worse(const struct sluice_completion *done, const struct sluice_completion *before)
{
    return done->error != 0 &&
           (before->error == 0 || (before->error_class == SLUICE_CLASS_CANCELLED &&
                                   done->error_class != SLUICE_CLASS_CANCELLED));
}

static struct slu_group *settle(const struct sluice_completion *done)
{
    struct slu_work *work = (struct slu_work *)(uintptr_t)done->user_data;
    struct slu_group *group = work->group;
    uint64_t user_data = work->result.user_data;

    work->in_flight--;
    group->used--;
    group->link->used--;
    if (done->error == 0)
        work->done += done->bytes;
    if (is_worse(done, &work->result)) {
        work->result = *done;
        work->result.user_data = user_data;
    }
    if (work->in_flight == 0 && (work->result.error != 0 || work->done == work->length))
        finish(work);
    return group;
}

bool slu_works_take(struct slu_group *group)
{
    struct slu_link *link = group->link;
    struct sluice_completion done[TAKEN_AT_ONCE];
    bool any = false, of_others = false;
    int count;

    while (link->used > 0 &&
           (count = sluice_channel_poll(link->channel, done, TAKEN_AT_ONCE)) > 0) {
        any = true;
        for (int i = 0; i < count; i++)
            of_others |= settle(&done[i]) != group;
    }
    if (of_others)
        slu_link_tell(link, group);
    return any;
}

/* Posting. */

/*
 * Makes the requests of the pieces to post next, and counts them as posted. Returns their number.
 */
static uint32_t pick(struct slu_group *group, struct sluice_request *requests,
                     struct slu_piece *pieces, uint32_t most)
{
    uint32_t count = 0;

    for (struct slu_work *work = group->first; work != NULL && count < most; work = work->next)
        while (count < most && work->posted < work->length && work->in_flight < SLU_PIECES &&
               work->result.error == 0 && work->refused == NULL) {
            requests[count] = slu_piece_next(work, &pieces[count]);
            count++;
        }
    return count;
}

/* Takes back requests that were not posted after all, in reverse order. */
static void put_back(const struct sluice_request *requests, const struct slu_piece *pieces,
                     uint32_t count)
{
    while (count > 0) {
        const struct sluice_request *request = &requests[--count];
        struct slu_work *work = (struct slu_work *)(uintptr_t)request->user_data;

        work->posted -= pieces[count].bytes;
        work->in_flight--;
    }
}

static uint32_t share_of(const struct slu_group *group)
{
    const struct slu_link *link = group->link;
    uint32_t share = link->depth / link->group_count, free = link->depth - link->used;

    share = share > 0 ? share : 1;
    if (group->used >= share)
        return 0;
    share -= group->used;
    return share < free ? share : free;
}

/* Fails the work of a request that the device or its driver does not accept. */
static void refuse(struct slu_group *group, const struct sluice_request *request, int error)
{
    struct slu_work *work = (struct slu_work *)(uintptr_t)request->user_data;

    work->posted = work->length;
    work->result.error = error;
    work->result.error_class = SLUICE_CLASS_LOCAL;
    work->result.status = work->result.cause = SLUICE_STATUS_LOC_QP_OP_ERR;
    keep_text(work, sluice_last_error());
    if (work->in_flight == 0)
        end(work);
    tidy_queue(group);
}

bool slu_works_post(struct slu_group *group)
{
    struct sluice_request requests[POSTED_AT_ONCE];
    struct slu_piece pieces[POSTED_AT_ONCE];
    int64_t left = group->batch->until - slu_now();
    struct slu_link *link = group->link;
    bool any = false;

    while (group->first != NULL && left > 0 &&
           !atomic_load_explicit(&group->batch->ends, memory_order_relaxed)) {
        uint32_t share = share_of(group);
        uint32_t count =
            pick(group, requests, pieces, share < POSTED_AT_ONCE ? share : POSTED_AT_ONCE);
        int posted = count == 0
                         ? 0
                         : sluice_channel_post(
                               link->channel, requests, count,
                               group->batch->until == SLUICE_FOREVER ? SLUICE_FOREVER : left, NULL);
        uint32_t done = posted > 0 ? (uint32_t)posted : 0;

        put_back(requests + done, pieces + done, count - done);
        group->used += done;
        link->used += done;
        any |= done > 0;
        if (posted < 0 && posted != -EAGAIN && posted != -ENOTCONN) {
            refuse(group, &requests[0], posted);
            any = true;
        }
        if (done == 0)
            break;
        tidy_queue(group);
    }
    return any;
}

/* Ending early. */
