/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "buffer/batch.h"

#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SPIN SLUICE_US(20)
/*
 * A cancelled batch waits this long for its requests in flight. If they complete, the connection
 * need not end, and other works keep it.
 */
#define PATIENCE SLUICE_US(500)

static int make_room(struct slu_batch *batch)
{
    bool is_first = batch->group_count == 0;
    uint32_t room = is_first ? 1 : 4 * batch->group_room;
    struct slu_group *groups = is_first ? &batch->only_group : NULL;

    if (batch->group_count < batch->group_room)
        return 0;
    if (!is_first)
        groups = malloc(room * sizeof *groups);
    if (groups == NULL)
        return slu_fail(ENOMEM, "no memory for the owners of a batch");
    if (!is_first)
        memcpy(groups, batch->groups, batch->group_count * sizeof *groups);
    if (batch->groups != &batch->only_group)
        free(batch->groups);
    batch->groups = groups;
    batch->group_room = room;
    return 0;
}

int slu_batch_add(struct slu_batch *batch, struct slu_work *work, struct slu_link *link)
{
    uint32_t index = 0;
    int error;

    while (index < batch->group_count && batch->groups[index].link != link)
        index++;
    if (index < batch->group_count) {
        slu_link_put(link);
    } else {
        error = make_room(batch);
        if (error < 0) {
            slu_link_put(link);
            return error;
        }
        batch->groups[batch->group_count++] = (struct slu_group){.batch = batch, .link = link};
    }
    work->group_index = index;
    return 0;
}

/* As with the lock of a link, releases wait until the lock is free. */
static void lock(struct slu_batch *batch)
{
    slu_releases_defer();
    pthread_mutex_lock(&batch->lock);
}

static void unlock(struct slu_batch *batch)
{
    pthread_mutex_unlock(&batch->lock);
    slu_releases_resume();
}

/* Adds the group to its link. From here on, other threads wake it when something happens. */
static void join(struct slu_group *group)
{
    struct slu_link *link = group->link;

    slu_link_lock(link);
    group->joined = true;
    group->seen = link->dials;
    group->next = link->groups;
    link->groups = group;
    link->group_count++;
    slu_link_unlock(link);
}

/*
 * Removes a group whose works have all ended from its link. The lock is held. Wakes the other
 * groups, which have to poll and arm the channel: this one no longer does.
 */
static void leave(struct slu_group *group)
{
    struct slu_group **at = &group->link->groups;

    slu_group_unwatch(group);
    while (*at != group)
        at = &(*at)->next;
    *at = group->next;
    group->joined = false;
    group->link->group_count--;
    slu_link_tell(group->link, group);
    atomic_fetch_sub_explicit(&group->batch->groups_left, 1, memory_order_release);
}

struct round {
    bool any;      /* something happened, or there is more to do */
    bool ended;    /* there are results to take */
    uint32_t left; /* groups that have not ended */
    int64_t until; /* when there is something to do even without an event */
    int error;     /* of watching a channel */
};

/* Adds the channel to the set of an event loop that is about to sleep. */
static int watch(struct slu_group *group, int fd)
{
    if (!group->batch->armed)
        return 0;
    if (slu_waiter_watch(group->batch->waiter, fd) < 0)
        return slu_fail(ENOMEM, "no memory to watch the connection to an owner");
    group->watched = true;
    return 0;
}

/* Arms the channel of a group before a sleep. */
static void arm(struct slu_group *group, struct pollfd *fd, struct round *round)
{
    struct slu_link *link = group->link;
    int64_t due;

    if (link->state != SLU_LINK_UP)
        return;
    if (sluice_channel_arm(link->channel, &due) != 0) {
        round->any = true;
        return;
    }
    *fd = (struct pollfd){.fd = sluice_channel_fd(link->channel), .events = POLLIN};
    if (slu_after(due) < round->until)
        round->until = slu_after(due);
    if (round->error == 0)
        round->error = watch(group, fd->fd);
}

/*
 * Advances a group. The lock of its link is held. Another thread may have ended the group
 * meanwhile.
 */
static void go_on_with(struct slu_group *group, bool sleeps, struct pollfd *fd, struct round *round)
{
    if (!group->joined)
        return;
    round->any |= group->left > 0 && slu_group_step(group);
    if (group->left == 0)
        leave(group);
    else if (sleeps && !round->any)
        arm(group, fd, round);
    round->left += group->joined;
}

/*
 * Makes a round over all groups that have not ended, and arms them before a sleep. After the
 * deadline there is no time to wake up for: only requests in flight are left, and their channels
 * report them.
 */
static struct round go_round(struct slu_batch *batch, bool sleeps)
{
    bool late = sleeps && slu_now() >= batch->until;
    struct round round = {.until = late ? SLUICE_FOREVER : batch->until,
                          .ended = batch->early.first != NULL};

    for (uint32_t i = 0; i < batch->group_count; i++) {
        struct slu_group *group = &batch->groups[i];

        batch->fds[i].fd = -1;
        slu_link_lock(group->link);
        go_on_with(group, sleeps, &batch->fds[i], &round);
        round.ended |= group->untaken.first != NULL;
        slu_link_unlock(group->link);
    }
    return round;
}

/* Ends the sleep of an event loop that has returned. */
static void disarm(struct slu_batch *batch)
{
    if (batch->armed)
        slu_waiter_awoke(batch->waiter);
    batch->armed = false;
}

static bool is_enough(const struct round *round, bool for_any)
{
    return round->left == 0 || (for_any && round->ended);
}

static void sleep_until(struct slu_batch *batch, int64_t until, bool for_any)
{
    struct round round;

    atomic_store(&batch->waiter->sleeps, true);
    round = go_round(batch, true);
    if (round.until < until)
        until = round.until;
    if (!is_enough(&round, for_any) && !round.any)
        (void)!poll(batch->fds, batch->group_count + 1, slu_milliseconds(until));
    slu_waiter_awoke(batch->waiter);
}

static int64_t spin_time(const struct slu_batch *batch)
{
    const struct sluice_channel_attr *attr = &batch->service->attr;

    if (attr->wait_mode == SLUICE_WAIT_SPIN)
        return SLUICE_FOREVER;
    if (attr->wait_mode == SLUICE_WAIT_EVENT)
        return 0;
    return attr->spin_time != 0 ? attr->spin_time : DEFAULT_SPIN;
}

void slu_batch_leave(struct slu_batch *batch)
{
    for (uint32_t i = 0; i < batch->group_count && !slu_batch_is_over(batch); i++) {
        struct slu_group *group = &batch->groups[i];

        slu_link_lock(group->link);
        if (group->joined)
            slu_link_tell(group->link, group);
        slu_link_unlock(group->link);
    }
}

static int go_on(struct slu_batch *batch, int64_t until, bool for_any)
{
    int64_t spins_until = 0; /* 0: the next round without an event starts a spin */
    struct round round;

    disarm(batch);
    for (;;) {
        round = go_round(batch, false);
        if (is_enough(&round, for_any))
            return 0;
        if (slu_is_interrupted())
            return -EINTR;
        if (until != SLUICE_FOREVER && slu_now() >= until)
            return -ETIMEDOUT;
        if (round.any) {
            spins_until = 0;
            continue;
        }
        if (spins_until == 0)
            spins_until = slu_after(spin_time(batch));
        if (slu_now() < spins_until) {
            sched_yield();
            continue;
        }
        sleep_until(batch, until, for_any);
        spins_until = 0;
    }
}

int slu_batch_wait(struct slu_batch *batch, int64_t until, bool for_any)
{
    int error = go_on(batch, until, for_any);

    slu_batch_leave(batch);
    return error;
}

void slu_batch_step(struct slu_batch *batch)
{
    disarm(batch);
    if (slu_batch_is_over(batch))
        return;
    go_round(batch, false);
    slu_batch_leave(batch);
}

int slu_batch_arm(struct slu_batch *batch, int64_t *until)
{
    struct round round;
    int error;

    disarm(batch);
    atomic_store(&batch->waiter->sleeps, true);
    batch->armed = true;
    round = go_round(batch, true);
    *until = round.until;
    error = is_enough(&round, true) || round.any ? 1 : round.error;
    if (error != 0) {
        disarm(batch);
        slu_batch_leave(batch);
    }
    return error;
}

int slu_batch_make_ready(struct slu_batch *batch)
{
    batch->fds = batch->group_count == 1 ? batch->only_fds
                                         : calloc(batch->group_count + 1, sizeof *batch->fds);
    if (batch->fds == NULL)
        return slu_fail(ENOMEM, "no memory to wait for the owners of a batch");
    batch->waiter = slu_waiter_get(batch->service);
    if (batch->waiter == NULL)
        return -errno;
    batch->fds[batch->group_count] = (struct pollfd){.fd = batch->waiter->event, .events = POLLIN};
    return 0;
}

static void reset_group(struct slu_group *group)
{
    group->left = group->used = group->failed = 0;
    group->first = group->last = NULL;
    group->untaken = (struct slu_untaken){0};
    group->cancelled = false;
    group->why[0] = '\0';
}

/* Starts a work. A work that ends early keeps its result, and has ended again at once. */
static void begin(struct slu_batch *batch, struct slu_work *work)
{
    if (work->early) {
        slu_untaken_add(&batch->early, work);
        return;
    }
    work->posted = work->done = 0;
    work->in_flight = work->lost = work->again = 0;
    work->queued = false;
    atomic_store_explicit(&work->ended, false, memory_order_relaxed);
    work->refused = NULL;
    work->result =
        (struct sluice_completion){.opcode = work->opcode, .user_data = work->result.user_data};
    slu_group_add(&batch->groups[work->group_index], work);
}

void slu_batch_post(struct slu_batch *batch, int64_t until)
{
    disarm(batch);
    lock(batch);
    batch->posted = true;
    batch->until = until;
    batch->early = (struct slu_untaken){0};
    atomic_store_explicit(&batch->ends, false, memory_order_relaxed);
    atomic_store_explicit(&batch->groups_left, batch->group_count, memory_order_relaxed);
    for (uint32_t i = 0; i < batch->group_count; i++)
        reset_group(&batch->groups[i]);
    for (uint32_t i = 0; i < batch->count; i++)
        begin(batch, &batch->works[i]);
    for (uint32_t i = 0; i < batch->group_count; i++)
        join(&batch->groups[i]);
    unlock(batch);
    if (!slu_batch_is_over(batch))
        go_round(batch, false);
}

/* Takes up to count results. Returns their number. */
static uint32_t take_from(struct slu_untaken *untaken, struct sluice_completion *completions,
                          uint32_t count)
{
    uint32_t taken = 0;

    while (untaken->first != NULL && taken < count) {
        completions[taken++] = untaken->first->result;
        untaken->first = untaken->first->untaken;
    }
    return taken;
}

uint32_t slu_batch_take(struct slu_batch *batch, struct sluice_completion *completions,
                        uint32_t count)
{
    uint32_t taken = take_from(&batch->early, completions, count);

    for (uint32_t i = 0; i < batch->group_count && taken < count; i++) {
        struct slu_group *group = &batch->groups[i];

        slu_link_lock(group->link);
        taken += take_from(&group->untaken, completions + taken, count - taken);
        /* Once all results of a batch are taken, the batch has to be over. */
        if (group->joined && group->left == 0)
            leave(group);
        slu_link_unlock(group->link);
    }
    return taken;
}

int64_t slu_batch_patience(void)
{
    return slu_after(PATIENCE);
}

static void recall(struct slu_batch *batch, int64_t patience)
{
    atomic_store(&batch->ends, true);
    for (uint32_t i = 0; i < batch->group_count; i++) {
        struct slu_group *group = &batch->groups[i];

        slu_link_lock(group->link);
        if (group->joined)
            slu_group_recall(group, patience);
        slu_link_unlock(group->link);
    }
}

void slu_batch_recall(struct slu_batch *batch, int64_t patience)
{
    lock(batch);
    recall(batch, patience);
    unlock(batch);
}

/* All connections that have to end do so within one bound on draining, however many there are. */
void slu_batch_cancel(struct slu_batch *batch, const struct slu_ending *ending)
{
    lock(batch);
    recall(batch, slu_batch_patience());
    for (uint32_t i = 0; i < batch->group_count; i++) {
        struct slu_group *group = &batch->groups[i];

        slu_link_lock(group->link);
        if (group->joined) {
            slu_group_cancel(group, ending);
            leave(group);
        }
        slu_link_unlock(group->link);
    }
    unlock(batch);
    slu_waiter_wake(batch->waiter);
}

static void append(struct slu_untaken *untaken, const struct slu_untaken *more)
{
    if (more->first == NULL)
        return;
    if (untaken->first == NULL)
        untaken->first = more->first;
    else
        untaken->last->untaken = more->first;
    untaken->last = more->last;
}

static void deregister(struct slu_batch *batch)
{
    for (uint32_t i = 0; batch->works != NULL && i < batch->count; i++) {
        if (batch->works[i].mr != NULL)
            (void)!sluice_mr_deregister(batch->works[i].mr);
        batch->works[i].mr = NULL;
        free(batch->works[i].blocks);
        batch->works[i].blocks = NULL;
    }
}

/* Puts the links, which no group has joined any more. The groups stay, because they have texts. */
static void put_links(struct slu_batch *batch)
{
    slu_batch_let_go(batch);
    for (uint32_t i = 0; i < batch->group_count; i++)
        slu_link_put(batch->groups[i].link);
    batch->group_count = 0;
    deregister(batch);
}

void slu_batch_detach(struct slu_batch *batch)
{
    slu_batch_cancel(batch, &slu_ending_closed);
    for (uint32_t i = 0; i < batch->group_count; i++)
        append(&batch->early, &batch->groups[i].untaken);
    put_links(batch);
    batch->service = NULL;
}

void slu_batch_end(struct slu_batch *batch)
{
    struct slu_text text;

    slu_text_save(&text);
    put_links(batch);
    if (batch->waiter != NULL) {
        disarm(batch);
        slu_waiter_put(batch->service, batch->waiter);
    }
    if (batch->fds != batch->only_fds)
        free(batch->fds);
    if (batch->groups != &batch->only_group)
        free(batch->groups);
    if (batch->works != &batch->only_work)
        free(batch->works);
    pthread_mutex_destroy(&batch->lock);
    slu_text_restore(&text);
}
