/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "buffer/link.h"

#include <stdlib.h>
#include <string.h>

#include "buffer/batch.h"
#include "channel/channel.h"
#include "connect/proof.h"

/* Time limit of the goodbyes of all links of a service together. */
#define GOODBYE_TIME SLUICE_MS(500)

static struct slu_link **bucket_of(struct sluice_buffer_service *service,
                                   const struct slu_buffer_name *name)
{
    return &service->links[name->owner[0] % SLU_LINK_BUCKETS];
}

bool slu_link_leads_to(const struct slu_link *link, const struct slu_buffer_name *name)
{
    return memcmp(link->name.owner, name->owner, sizeof name->owner) == 0 &&
           memcmp(link->name.key, name->key, sizeof name->key) == 0;
}

/* Returns the link, held, or NULL. The lock of the service is held. */
static struct slu_link *find(struct sluice_buffer_service *service,
                             const struct slu_buffer_domain *domain,
                             const struct slu_buffer_name *name)
{
    struct slu_link *link = *bucket_of(service, name);

    while (link != NULL && (link->domain != domain || !slu_link_leads_to(link, name)))
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

/* Keeps a link that is in no bucket for reuse: a fast call may still hold its lock. */
static void put_aside(struct sluice_buffer_service *service, struct slu_link *link)
{
    slu_proof_forget(link->name.key, sizeof link->name.key);
    pthread_mutex_lock(&service->lock);
    link->next = service->ended;
    service->ended = link;
    pthread_mutex_unlock(&service->lock);
}

/* Returns a link that has nothing but its lock. */
static struct slu_link *take_empty(struct sluice_buffer_service *service)
{
    struct slu_link *link;

    pthread_mutex_lock(&service->lock);
    link = service->ended;
    if (link != NULL)
        service->ended = link->next;
    pthread_mutex_unlock(&service->lock);
    if (link != NULL)
        return link;
    link = calloc(1, sizeof *link);
    if (link == NULL)
        return slu_fail_null(ENOMEM, "no memory for a connection to the owner of a buffer");
    pthread_mutex_init(&link->lock, NULL);
    return link;
}

static struct slu_link *make(struct sluice_buffer_service *service,
                             struct slu_buffer_domain *domain, const struct slu_buffer_name *name)
{
    struct slu_link *link = take_empty(service);

    if (link == NULL)
        return NULL;
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
 * Returns whether a link is used, or has a connection that works. If it is not, no fast call uses
 * it any more. The lock of the service is held, so the lock of the link must not be waited for.
 */
static bool is_of_use(struct slu_link *link)
{
    bool works;

    if (link->holds > 0 || pthread_mutex_trylock(&link->lock) != 0)
        return true;
    works = link->state == SLU_LINK_UP && sluice_channel_state(link->channel) == SLUICE_STATE_READY;
    if (!works)
        slu_proof_forget(link->known, sizeof link->known);
    pthread_mutex_unlock(&link->lock);
    return works;
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

            if (is_of_use(link)) {
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

/* Ends the connection of a link that nothing uses. */
static void end_link(struct sluice_buffer_service *service, struct slu_link *link)
{
    if (link->channel != NULL)
        sluice_channel_close(link->channel);
    if (link->waiter != NULL)
        slu_waiter_put(service, link->waiter);
    link->channel = NULL;
    link->waiter = NULL;
    link->state = SLU_LINK_APART;
    link->error = 0;
    link->lost = NULL;
    link->dials = 0;
    link->asked = 0;
}

static void end_list(struct sluice_buffer_service *service, struct slu_link *link)
{
    while (link != NULL) {
        struct slu_link *next = link->next;

        end_link(service, link);
        put_aside(service, link);
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
    end_list(service, useless);
    if (link == NULL)
        return made;
    put_aside(service, made);
    return link;
}

struct slu_link *slu_link_get(struct sluice_buffer_service *service,
                              struct slu_buffer_domain *domain, const struct slu_buffer_name *name)
{
    struct slu_link *link = slu_link_find(service, domain, name);

    return link != NULL ? link : get_new(service, domain, name);
}

void slu_link_hold(struct slu_link *link)
{
    pthread_mutex_lock(&link->service->lock);
    link->holds++;
    pthread_mutex_unlock(&link->service->lock);
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
        end_list(service, service->links[i]);
        service->links[i] = NULL;
    }
    while (service->ended != NULL) {
        struct slu_link *link = service->ended;

        service->ended = link->next;
        slu_proof_forget(link->known, sizeof link->known);
        free_link(link);
    }
}
