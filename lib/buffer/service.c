/* SPDX-License-Identifier: MIT */
/* Opening and closing a service: its domains, its listener and its thread. */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/descriptor.h"
#include "base/environment.h"
#include "buffer/link.h"
#include "buffer/service.h"
#include "buffer/waiter.h"
#include "connect/address.h"
#include "connect/proof.h"
#include "connect/stream.h"
#include "memory/mr.h"

#define DEFAULT_PEERS 4096
/*
 * A peer that is silent for this long is probed, because a device does not report that a peer died.
 */
#define KEEPALIVE SLUICE_S(5)

static int check_attr(const struct sluice_buffer_service_attr *given,
                      struct sluice_buffer_service_attr *attr, struct sluice_channel_attr *channel)
{
    int error = SLU_ATTR_COPY(sluice_buffer_service_attr, attr, given);

    if (error == 0)
        error = SLU_ATTR_COPY(sluice_channel_attr, channel, attr->channel);
    if (error < 0)
        return error;
    channel->size = sizeof *channel;
    if (attr->max_peers > SLUICE_MAX_PEERS)
        return slu_misuse(EINVAL, "sluice_buffer_service_attr.max_peers %u: must be in 1..%d",
                          attr->max_peers, SLUICE_MAX_PEERS);
    if (channel->access != 0 || channel->arrival_tags != 0)
        return slu_misuse(EINVAL, "sluice_buffer_service_attr.channel: %s %#x must be 0",
                          channel->access != 0 ? "access" : "arrival_tags",
                          channel->access != 0 ? channel->access : channel->arrival_tags);
    if (channel->receive_pool != 0)
        return slu_misuse(EINVAL,
                          "sluice_buffer_service_attr.channel: receive_pool %u must be 0: "
                          "connections of buffers receive nothing",
                          channel->receive_pool);
    return 0;
}

static uint32_t transport_of(const struct sluice_pd *pd)
{
    const struct slu_transport *transport = pd->context->transport->transport;

    return strcmp(transport->name, "verbs") == 0 ? SLU_TRANSPORT_VERBS : SLU_TRANSPORT_SOFT;
}

static int check_pds(struct sluice_pd *const *pds, uint32_t count)
{
    if (count == 0 || count > SLUICE_MAX_BUFFER_PDS)
        return slu_misuse(EINVAL, "%u protection domains of a buffer service: must be 1..%d", count,
                          SLUICE_MAX_BUFFER_PDS);
    if (pds == NULL)
        return slu_misuse(EINVAL, "the protection domains of a buffer service must not be NULL");
    for (uint32_t i = 0; i < count; i++) {
        if (pds[i] == NULL || pds[i]->magic != SLU_MAGIC_PD)
            return slu_misuse(EINVAL, "pds[%u] of a buffer service is not a protection domain%s", i,
                              slu_none_hint(pds[i]));
        for (uint32_t k = 0; k < i; k++)
            if (transport_of(pds[i]) == transport_of(pds[k]))
                return slu_misuse(EINVAL,
                                  "pds[%u] and pds[%u] of a buffer service are both on %s: one of "
                                  "each transport may be",
                                  k, i, slu_buffer_transport_name(transport_of(pds[i])));
    }
    return 0;
}

/*
 * Returns the attributes of channels to owners. Owners probe this side, which needs remote read
 * access; that access is of no use without a key.
 */
static struct sluice_channel_attr own_attr(const struct sluice_channel_attr *given)
{
    struct sluice_channel_attr attr = *given;

    attr.access = SLUICE_ACCESS_REMOTE_READ;
    attr.receive_depth = 1;
    return attr;
}

static struct sluice_channel_attr peer_attr(const struct sluice_channel_attr *given)
{
    struct sluice_channel_attr attr = *given;

    attr.access = SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE;
    attr.send_depth = attr.receive_depth = attr.max_sge = 1;
    attr.max_inline = SLUICE_ZERO;
    if (attr.keepalive == 0)
        attr.keepalive = KEEPALIVE;
    return attr;
}

static int open_domain(struct slu_buffer_domain *domain, struct sluice_pd *pd,
                       const struct sluice_channel_attr *attr)
{
    const struct sluice_channel_attr of_peers = peer_attr(attr);
    struct sluice_prepared_multichannel *prepared;

    STAILQ_INIT(&domain->leavers);
    slu_pd_hold(pd);
    domain->pd = pd;
    domain->transport = transport_of(pd);
    domain->own = sluice_pd_alloc(pd->context);
    if (domain->own == NULL || slu_mr_everything(pd, &domain->all) < 0)
        return -errno;
    prepared = sluice_multichannel_prepare(domain->own, 0, &of_peers);
    if (prepared != NULL)
        domain->users = sluice_prepared_multichannel_handshake(prepared, NULL, 0);
    return domain->users != NULL ? 0 : -errno;
}

static void close_domain(struct slu_buffer_domain *domain)
{
    if (domain->users != NULL)
        sluice_multichannel_close(domain->users);
    if (domain->own != NULL)
        sluice_pd_free(domain->own);
    if (domain->all != NULL)
        slu_mr_end(domain->all);
    slu_pd_release(domain->pd);
    free(domain->keys.keys);
}

static bool is_any(const struct slu_address *address)
{
    static const uint8_t none[sizeof address->ip];

    return memcmp(address->ip, none, sizeof none) == 0;
}

/* Writes where to listen by default: any port, at the address of the environment if it has one. */
static void default_address(char *text, size_t size)
{
    const char *ip = slu_env_value(SLU_ENV_TCP_ADDRESS);

    if (ip == NULL)
        snprintf(text, size, ":0");
    else
        snprintf(text, size, strchr(ip, ':') != NULL ? "[%s]:0" : "%s:0", ip);
}

static int open_listener(struct sluice_buffer_service *service, const char *address)
{
    char usual[NAME_MAX + sizeof "[]:0"];
    const struct slu_secret secret = {.bytes = service->key, .count = sizeof service->key};
    const struct slu_address *own;

    default_address(usual, sizeof usual);
    service->door.listener = slu_listen_secretly(address != NULL ? address : usual, &secret);
    if (service->door.listener == NULL)
        return -errno;
    own = &service->door.listener->address;
    service->addresses[0] = *own;
    service->address_count = is_any(own)
                                 ? slu_stream_addresses(service->addresses, SLU_BUFFER_ADDRESSES,
                                                        own->family == 6, own->port)
                                 : 1;
    return 0;
}

static int start(struct sluice_buffer_service *service, struct sluice_pd *const *pds,
                 uint32_t count, const char *address)
{
    int error = slu_random(service->owner, sizeof service->owner);

    if (error == 0)
        error = slu_random(service->key, sizeof service->key);
    if (error < 0)
        return slu_fail(-error, "no random bytes for a buffer service: %s",
                        strerrordesc_np(-error));
    service->event = slu_fd_event();
    if (service->event < 0)
        return slu_fail(errno, "no descriptor for a buffer service: %s", strerrordesc_np(errno));
    while (service->domain_count < count && error == 0) {
        struct slu_buffer_domain *domain = &service->domains[service->domain_count];

        error = open_domain(domain, pds[service->domain_count++], &service->attr);
    }
    if (error == 0)
        error = open_listener(service, address);
    return error == 0 ? slu_buffer_serve(service) : error;
}

/* Frees all that a service has so far. The thread has ended, or was never started. */
static void unmake(struct sluice_buffer_service *service)
{
    struct slu_text text;

    slu_text_save(&text);
    if (service->door.listener != NULL)
        sluice_listener_close(service->door.listener);
    slu_links_end(service);
    slu_buffer_end_all(service);
    slu_waiters_end(service);
    for (uint32_t i = 0; i < service->domain_count; i++)
        close_domain(&service->domains[i]);
    if (service->event >= 0)
        slu_fd_close(service->event);
    pthread_cond_destroy(&service->dialed);
    pthread_mutex_destroy(&service->lock);
    slu_proof_forget(service->key, sizeof service->key);
    slu_buffer_forget(service);
    free(service);
    slu_text_restore(&text);
}

struct sluice_buffer_service *
sluice_buffer_service_open(struct sluice_pd *const *pds, uint32_t count,
                           const struct sluice_buffer_service_attr *given)
{
    struct sluice_buffer_service_attr attr;
    struct sluice_channel_attr channel;
    struct sluice_buffer_service *service;
    int error = check_attr(given, &attr, &channel);

    if (error == 0)
        error = check_pds(pds, count);
    if (error < 0)
        return slu_none(error);
    service = calloc(1, sizeof *service);
    if (service == NULL)
        return slu_fail_null(ENOMEM, "no memory for a buffer service");
    pthread_mutex_init(&service->lock, NULL);
    pthread_cond_init(&service->dialed, NULL);
    service->event = -1;
    service->max_peers = attr.max_peers != 0 ? attr.max_peers : DEFAULT_PEERS;
    service->attr = own_attr(&channel);
    error = start(service, pds, count, attr.address);
    if (error < 0) {
        unmake(service);
        return slu_none(error);
    }
    service->magic = SLU_MAGIC_BUFFER_SERVICE;
    slu_made();
    return service;
}

void sluice_buffer_service_close(struct sluice_buffer_service *service)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;

    if (!slu_may_end(service, SLU_MAGIC_BUFFER_SERVICE, "buffer service"))
        return;
    service->magic = SLU_MAGIC_DEAD;
    slu_buffer_serve_end(service);
    slu_buffer_end_batches(service);
    unmake(service);
}
