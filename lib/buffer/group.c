/* SPDX-License-Identifier: MIT */
/*
 * A group on its link: dialing the owner, going on with the works over the connection, and ending
 * it. The steps of a group drive the link for all groups that use it.
 */
#include "config.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/async_call.h"
#include "buffer/batch.h"
#include "channel/channel.h"
#include "connect/address.h"

/*
 * After a check that an owner is there, it counts as there for this long unless a failure is known.
 */
#define ASKED_TIME SLUICE_US(100)

void slu_group_unwatch(struct slu_group *group)
{
    if (group->watched)
        slu_waiter_unwatch(group->batch->waiter, sluice_channel_fd(group->link->channel));
    group->watched = false;
}

/* A dial, in a thread of its own. */
struct dial {
    struct slu_async_call call;
    struct slu_link *link;
    int64_t until;
};

/* Keeps why a connection was lost, for the text of a later dial that fails. */
static void keep_loss(struct slu_link *link)
{
    struct sluice_error cause = {.size = sizeof cause};

    link->lost = NULL;
    if (!link->recalled && sluice_channel_error(link->channel, &cause) > 0)
        link->lost = sluice_status_name(cause.status);
}

static void part(struct slu_link *link)
{
    keep_loss(link);
    for (struct slu_group *group = link->groups; group != NULL; group = group->next)
        slu_group_unwatch(group);
    sluice_channel_close(link->channel);
    link->channel = NULL;
    link->state = SLU_LINK_APART;
    link->error = 0;
    slu_link_tell(link, NULL);
}

static struct sluice_channel *connect_owner(struct slu_link *link, int64_t until)
{
    struct sluice_private_data ask;
    const struct sluice_connect_attr options = {.size = sizeof options, .own = &ask};
    /* The text of a failed dial has the addresses. */
    struct slu_dialed dialed = {.name = "its owner",
                                .addresses = link->name.addresses,
                                .count = link->name.address_count,
                                .secret = {link->name.key, sizeof link->name.key}};
    int64_t left = until - slu_now();

    slu_buffer_ask(link->domain->transport, &ask);
    return slu_connect_dialed(&dialed, link->domain->pd, &link->service->attr, &options,
                              until == SLUICE_FOREVER ? SLUICE_FOREVER
                              : left > 0              ? left
                                                      : 0);
}

/* Keeps the text of a dial that failed, and the loss of an earlier connection. */
static void keep_text(struct slu_link *link)
{
    static const char cannot[] = "cannot connect to its owner: ";
    const char *text = sluice_last_error();

    if (link->lost != NULL && strncmp(text, cannot, sizeof cannot - 1) == 0)
        snprintf(link->why, sizeof link->why,
                 "the connection to its owner was lost (%s), and cannot be made again: %s",
                 link->lost, text + sizeof cannot - 1);
    else
        snprintf(link->why, sizeof link->why, "%s", text);
}

/*
 * Explains a wrong proof: the listener at this address does not know the key, so it is not the
 * owner.
 */
static int explain(struct slu_link *link, int error)
{
    char address[SLU_ADDRESS_TEXT];

    if (error != -EACCES)
        return error;
    return slu_fail(ESTALE, "its owner is gone: who listens at %s now does not know its handles",
                    slu_address_text(&link->name.addresses[0], address));
}

static void come_up(struct slu_link *link, struct sluice_channel *channel)
{
    struct sluice_channel_info info = {.size = sizeof info};

    sluice_channel_query(channel, &info);
    link->depth = info.send_depth;
    link->max_message = info.max_message;
    link->used = 0;
    link->recalled = false;
    link->lost = NULL;
    link->channel = channel;
    link->state = SLU_LINK_UP;
}

/* Posts for all groups of the link, because their threads may be busy elsewhere. */
static void go_on_with_all(struct slu_link *link)
{
    for (struct slu_group *group = link->groups; group != NULL; group = group->next)
        if (group->left > 0)
            slu_group_step(group);
}

static int run(struct slu_async_call *call)
{
    struct dial *dial = slu_container_of(call, struct dial, call);
    struct slu_link *link = dial->link;
    struct sluice_buffer_service *service = link->service;
    struct sluice_channel *channel;
    int error;

    sluice_interrupt_set(&service->closing);
    channel = connect_owner(link, dial->until);
    error = channel == NULL ? explain(link, -errno) : 0;
    slu_link_lock(link);
    link->state = SLU_LINK_APART;
    link->error = error;
    link->dials++;
    if (channel != NULL)
        come_up(link, channel);
    else
        keep_text(link);
    if (channel != NULL)
        go_on_with_all(link);
    slu_link_tell(link, NULL);
    slu_link_unlock(link);
    slu_link_put(link);
    pthread_mutex_lock(&service->lock);
    service->dialers--;
    pthread_cond_broadcast(&service->dialed);
    pthread_mutex_unlock(&service->lock);
    return error;
}

static void count_dialer(struct slu_link *link, int change)
{
    pthread_mutex_lock(&link->service->lock);
    link->holds += (uint32_t)change;
    link->service->dialers += (uint32_t)change;
    pthread_mutex_unlock(&link->service->lock);
}

static int dial_owner(struct slu_link *link, int64_t until)
{
    struct dial *dial = calloc(1, sizeof *dial);
    int error;

    if (dial == NULL)
        return slu_fail(ENOMEM, "no memory to connect to the owner of a buffer");
    slu_async_call_init(&dial->call);
    dial->link = link;
    dial->until = until;
    count_dialer(link, 1);
    link->state = SLU_LINK_DIALING;
    error = slu_async_call_start(&dial->call, run);
    if (error < 0) {
        link->state = SLU_LINK_APART;
        count_dialer(link, -1);
    }
    slu_async_call_drop(&dial->call);
    return error;
}

/*
 * Returns whether the owner is still there. A check polls the channel, which takes system calls if
 * there are no events. So a result counts for ASKED_TIME. The check finds an owner that was killed
 * before, whose memory is mapped and must not be read.
 */
static bool is_ready(struct slu_link *link, int64_t now)
{
    if (now - link->asked < ASKED_TIME && slu_channel_seems_ready(link->channel->base.engine, 0))
        return true;
    link->asked = now;
    return sluice_channel_state(link->channel) == SLUICE_STATE_READY;
}

static bool step_up(struct slu_group *group)
{
    struct slu_link *link = group->link;
    bool any = slu_works_take(group);
    int64_t now = slu_now();

    if (!is_ready(link, now)) {
        any |= slu_works_take(group);
        if (link->used > 0)
            return any;
        part(link);
        return true;
    }
    if (now >= group->batch->until)
        return slu_works_fail_early(group, &slu_ending_late) || any;
    return slu_works_post(group) || any;
}

/*
 * Dials. If a dial has failed since the group joined, its error is that of the group; except a
 * timeout, because the deadline was that of another batch.
 */
static bool step_apart(struct slu_group *group)
{
    struct slu_link *link = group->link;
    bool news = link->dials != group->seen && link->error != 0;
    int error;

    group->seen = link->dials;
    if (slu_now() >= group->batch->until)
        return slu_works_fail_early(group, &slu_ending_late);
    if (news && link->error != -ETIMEDOUT) {
        slu_works_fail(group, link->error, link->why);
        return true;
    }
    error = dial_owner(link, group->batch->until);
    if (error < 0)
        slu_works_fail(group, error, sluice_last_error());
    return error < 0;
}

bool slu_group_step(struct slu_group *group)
{
    switch (group->link->state) {
    case SLU_LINK_UP:
        return step_up(group);
    case SLU_LINK_APART:
        return step_apart(group);
    default:
        return slu_now() >= group->batch->until && slu_works_fail_early(group, &slu_ending_late);
    }
}

/*
 * Dials again for other groups, whose works ended with the connection and continue: their threads
 * may be busy elsewhere.
 */
static void dial_for_others(const struct slu_group *group)
{
    const struct slu_link *link = group->link;

    for (struct slu_group *other = link->groups; other != NULL; other = other->next)
        if (other != group && other->left > 0 && link->state == SLU_LINK_APART)
            slu_group_step(other);
}

/* Ends the connection, because it cannot take back a request. All that was in flight is drained. */
static void end_connection(struct slu_group *group)
{
    struct slu_link *link = group->link;

    (void)!sluice_channel_shutdown(link->channel, 0);
    slu_works_take(group);
    if (link->used > 0)
        return;
    part(link);
    dial_for_others(group);
}

void slu_group_recall(struct slu_group *group, int64_t patience)
{
    struct slu_link *link = group->link;

    while (group->used > 0 && slu_now() < patience)
        if (!slu_works_take(group))
            sched_yield();
    if (group->used == 0)
        return;
    link->recalled = true;
    slu_engine_begin_drain(link->channel->base.engine, NULL);
}

void slu_group_cancel(struct slu_group *group, const struct slu_ending *ending)
{
    if (group->used > 0)
        end_connection(group);
    slu_works_fail_early(group, ending);
}
