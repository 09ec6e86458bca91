/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "buffer/batch.h"

#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SPIN SLUICE_US(20)

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

/* From here on others tell it what happens. */
static void join(struct slu_group *group)
{
    struct slu_link *link = group->link;

    pthread_mutex_lock(&link->lock);
    group->joined = true;
    group->seen = link->dials;
    group->next = link->groups;
    link->groups = group;
    link->group_count++;
    pthread_mutex_unlock(&link->lock);
}

/* The lock is held. Who sleeps has to look, and to arm the channel: this one does not any more. */
static void leave(struct slu_group *group)
{
    struct slu_group **at = &group->link->groups;

    while (*at != group)
        at = &(*at)->next;
    *at = group->next;
    group->joined = false;
    group->link->group_count--;
    slu_link_tell(group->link, group);
}

/* A last look before a sleep: false if there is something to do. */
static bool arm(const struct slu_group *group, struct pollfd *fd, int64_t *until)
{
    struct slu_link *link = group->link;
    int64_t due;

    *fd = (struct pollfd){.fd = -1};
    if (link->state != SLU_LINK_UP)
        return true;
    if (sluice_channel_arm(link->channel, &due) != 0)
        return false;
    *fd = (struct pollfd){.fd = sluice_channel_fd(link->channel), .events = POLLIN};
    if (slu_after(due) < *until)
        *until = slu_after(due);
    return true;
}

struct round {
    bool any;      /* something happened, or is to be done */
    uint32_t left; /* groups */
    int64_t until; /* when there is something to do, though nothing happens */
};

/* All groups that are left; before a sleep each is armed as well. */
static struct round go_round(struct slu_batch *batch, bool sleeps)
{
    struct round round = {.until = batch->until};

    for (uint32_t i = 0; i < batch->group_count; i++) {
        struct slu_group *group = &batch->groups[i];

        batch->fds[i].fd = -1;
        if (!group->joined)
            continue;
        pthread_mutex_lock(&group->link->lock);
        round.any |= group->left > 0 && slu_group_step(group);
        if (group->left == 0)
            leave(group);
        else if (sleeps && !round.any)
            round.any = !arm(group, &batch->fds[i], &round.until);
        round.left += group->left > 0;
        pthread_mutex_unlock(&group->link->lock);
    }
    return round;
}

static void sleep_until(struct slu_batch *batch)
{
    struct round round;

    atomic_store(&batch->waiter->sleeps, true);
    round = go_round(batch, true);
    if (round.left > 0 && !round.any)
        (void)!poll(batch->fds, batch->group_count + 1, slu_milliseconds(round.until));
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

static void go_on(struct slu_batch *batch)
{
    int64_t spins_until = 0; /* 0: since the last round in which anything happened */
    struct round round;

    for (;;) {
        round = go_round(batch, false);
        if (round.left == 0)
            return;
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
        sleep_until(batch);
        spins_until = 0;
    }
}

int slu_batch_run(struct slu_batch *batch)
{
    batch->fds = batch->group_count == 1 ? batch->only_fds
                                         : calloc(batch->group_count + 1, sizeof *batch->fds);
    if (batch->fds == NULL)
        return slu_fail(ENOMEM, "no memory to wait for the owners of a batch");
    batch->waiter = slu_waiter_get(batch->service);
    if (batch->waiter == NULL)
        return -errno;
    batch->fds[batch->group_count] = (struct pollfd){.fd = batch->waiter->event, .events = POLLIN};
    for (uint32_t i = 0; i < batch->count; i++)
        if (!batch->works[i].ended)
            slu_group_add(&batch->groups[batch->works[i].group_index], &batch->works[i]);
    for (uint32_t i = 0; i < batch->group_count; i++)
        join(&batch->groups[i]);
    go_on(batch);
    return 0;
}

void slu_batch_end(struct slu_batch *batch)
{
    struct slu_text text;

    slu_text_save(&text);
    for (uint32_t i = 0; i < batch->group_count; i++)
        slu_link_put(batch->groups[i].link);
    if (batch->waiter != NULL)
        slu_waiter_put(batch->service, batch->waiter);
    for (uint32_t i = 0; batch->works != NULL && i < batch->count; i++)
        if (batch->works[i].mr != NULL)
            (void)!sluice_mr_deregister(batch->works[i].mr);
    if (batch->fds != batch->only_fds)
        free(batch->fds);
    if (batch->groups != &batch->only_group)
        free(batch->groups);
    if (batch->works != &batch->only_work)
        free(batch->works);
    slu_text_restore(&text);
}
