/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "buffer/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/async_call.h"
#include "buffer/batch.h"
#include "channel/channel.h"
#include "connect/address.h"
#include "connect/proof.h"

/* Time limit of the goodbyes of all links of a service together. */
#define GOODBYE_TIME SLUICE_MS(500)

/* A dial, in a thread of its own. */
struct dial {
    struct slu_async_call call;
    struct slu_link *link;
    int64_t until;
};

static struct slu_link **bucket_of(struct sluice_buffer_service *service,
                                   const struct slu_buffer_name *name)
{
    return &service->links[name->owner[0] % SLU_LINK_BUCKETS];
}

/* Returns the link, held, or NULL. The lock of the service is held. */
static struct slu_link *find(struct sluice_buffer_service *service,
                             const struct slu_buffer_domain *domain,
                             const struct slu_buffer_name *name)
{
    struct slu_link *link = *bucket_of(service, name);

    while (link != NULL && (link->domain != domain ||
                            memcmp(link->name.owner, name->owner, sizeof name->owner) != 0 ||
                            memcmp(link->name.key, name->key, sizeof name->key) != 0))
        link = link->next;
    if (link != NULL)
        link->holds++;
    return link;
}

static void free_link(struct slu_link *link)
{
    pthread_mutex_destroy(&link->lock);
    slu_proof_forget(link->name.key, sizeof link->name.key);
    free(link);
}

static struct slu_link *make(struct sluice_buffer_service *service,
                             struct slu_buffer_domain *domain, const struct slu_buffer_name *name)
{
    struct slu_link *link = calloc(1, sizeof *link);

    if (link == NULL)
        return slu_fail_null(ENOMEM, "no memory for a connection to the owner of a buffer");
    pthread_mutex_init(&link->lock, NULL);
    link->service = service;
    link->domain = domain;
    link->name = *name;
    link->holds = 1;
    return link;
}

struct slu_link *slu_link_find(struct sluice_buffer_service *service,
                               const struct slu_buffer_domain *domain,
                               const struct slu_buffer_name *name)
{
    struct slu_link *link;

    pthread_mutex_lock(&service->lock);
    link = find(service, domain, name);
    pthread_mutex_unlock(&service->lock);
    return link;
}

/*
 * Returns whether an unused link has a connection that works. No thread can get the link meanwhile,
 * so its lock is not needed.
 */
static bool is_of_use(struct slu_link *link)
{
    return link->state == SLU_LINK_UP && sluice_channel_state(link->channel) == SLUICE_STATE_READY;
}

/*
 * Takes the unused links without a working connection out of their buckets. Returns a list of them.
 * The lock of the service is held.
 */
static struct slu_link *take_useless(struct sluice_buffer_service *service)
{
    struct slu_link *taken = NULL;

    for (uint32_t i = 0; i < SLU_LINK_BUCKETS; i++) {
        for (struct slu_link **at = &service->links[i]; *at != NULL;) {
            struct slu_link *link = *at;

            if (link->holds > 0 || is_of_use(link)) {
                at = &link->next;
                continue;
            }
            *at = link->next;
            link->next = taken;
            taken = link;
        }
    }
    return taken;
}

static void end_list(struct slu_link *link)
{
    while (link != NULL) {
        struct slu_link *next = link->next;

        if (link->channel != NULL)
            sluice_channel_close(link->channel);
        free_link(link);
        link = next;
    }
}

/*
 * Makes a link, unless another thread made it meanwhile. Also frees links that are unused and lost,
 * so that they do not accumulate.
 */
static struct slu_link *get_new(struct sluice_buffer_service *service,
                                struct slu_buffer_domain *domain,
                                const struct slu_buffer_name *name)
{
    struct slu_link *made = make(service, domain, name);
    struct slu_link *useless, *link;

    if (made == NULL)
        return NULL;
    slu_releases_defer();
    pthread_mutex_lock(&service->lock);
    useless = take_useless(service);
    link = find(service, domain, name);
    if (link == NULL) {
        made->next = *bucket_of(service, name);
        *bucket_of(service, name) = made;
    }
    pthread_mutex_unlock(&service->lock);
    slu_releases_resume();
    end_list(useless);
    if (link == NULL)
        return made;
    free_link(made);
    return link;
}

struct slu_link *slu_link_get(struct sluice_buffer_service *service,
                              struct slu_buffer_domain *domain, const struct slu_buffer_name *name)
{
    struct slu_link *link = slu_link_find(service, domain, name);

    return link != NULL ? link : get_new(service, domain, name);
}

void slu_link_put(struct slu_link *link)
{
    struct sluice_buffer_service *service = link->service;

    pthread_mutex_lock(&service->lock);
    link->holds--;
    pthread_mutex_unlock(&service->lock);
}

void slu_link_tell(const struct slu_link *link, const struct slu_group *teller)
{
    for (struct slu_group *group = link->groups; group != NULL; group = group->next)
        if (teller == NULL || group->batch != teller->batch)
            slu_waiter_wake(group->batch->waiter);
}

void slu_link_part(struct slu_link *link)
{
    for (struct slu_group *group = link->groups; group != NULL; group = group->next)
        slu_group_unwatch(group);
    sluice_channel_close(link->channel);
    link->channel = NULL;
    link->state = SLU_LINK_APART;
    link->error = 0;
    slu_link_tell(link, NULL);
}

/* Dialing. */

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
        snprintf(link->why, sizeof link->why, "%s", sluice_last_error());
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

int slu_link_dial(struct slu_link *link, int64_t until)
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

/* Ending. */

/*
 * Sends an empty message over each link of a device: a device does not notify its peer when a
 * connection ends. All messages are posted before the first is flushed.
 */
static void say_goodbye(const struct sluice_buffer_service *service)
{
    const struct sluice_request goodbye = {.opcode = SLUICE_OP_SEND};
    int64_t until = slu_after(GOODBYE_TIME);

    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < SLU_LINK_BUCKETS; i++) {
            for (struct slu_link *link = service->links[i]; link != NULL; link = link->next) {
                int64_t left = until - slu_now();

                if (link->state != SLU_LINK_UP || link->domain->transport != SLU_TRANSPORT_VERBS)
                    continue;
                if (pass == 0)
                    (void)!sluice_channel_post(link->channel, &goodbye, 1, GOODBYE_TIME, NULL);
                else
                    (void)!sluice_channel_flush(link->channel, left > 0 ? left : 0);
            }
        }
    }
}

/*
 * Begins to drain all links at once, so that their requests in flight, such as goodbyes, drain side
 * by side.
 */
static void begin_to_end(const struct sluice_buffer_service *service)
{
    for (uint32_t i = 0; i < SLU_LINK_BUCKETS; i++)
        for (struct slu_link *link = service->links[i]; link != NULL; link = link->next)
            if (link->state == SLU_LINK_UP)
                slu_engine_begin_drain(link->channel->base.engine, NULL);
}

void slu_links_end(struct sluice_buffer_service *service)
{
    __atomic_store_n(&service->closing, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&service->lock);
    while (service->dialers > 0)
        pthread_cond_wait(&service->dialed, &service->lock);
    pthread_mutex_unlock(&service->lock);
    say_goodbye(service);
    begin_to_end(service);
    for (uint32_t i = 0; i < SLU_LINK_BUCKETS; i++) {
        end_list(service->links[i]);
        service->links[i] = NULL;
    }
}
