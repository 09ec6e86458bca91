/* SPDX-License-Identifier: MIT */
/* Queries of a handle and of the connection to its owner, and the remote keys of a buffer. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "buffer/link.h"
#include "connect/address.h"

static int decode(const struct sluice_buffer_handle *handle, struct slu_buffer_name *name)
{
    return handle != NULL ? slu_buffer_name_decode(handle, name)
                          : slu_misuse(EINVAL, "handle must not be NULL");
}

static void describe(const struct slu_buffer_name *name, struct sluice_buffer_info *info)
{
    size_t used = 0;

    info->access = name->access;
    info->id = name->id;
    info->length = name->length;
    memcpy(info->owner, name->owner, sizeof info->owner);
    slu_address_text(&name->addresses[0], info->address);
    for (uint32_t i = 0; i < name->way_count && used < sizeof info->transports; i++)
        used +=
            (size_t)snprintf(info->transports + used, sizeof info->transports - used, "%s%s",
                             i > 0 ? ", " : "", slu_buffer_transport_name(name->ways[i].transport));
}

int sluice_buffer_handle_query(const struct sluice_buffer_handle *handle,
                               struct sluice_buffer_info *info)
{
    SLU_KEEP_ERRNO;
    struct sluice_buffer_info known = {.size = sizeof known};
    struct slu_buffer_name name;
    int error = SLU_INFO_CHECK(sluice_buffer_info, info);

    if (error == 0)
        error = decode(handle, &name);
    if (error < 0)
        return error;
    describe(&name, &known);
    slu_info_copy(info, &known, sizeof known);
    return 0;
}

/* Returns the first link to the owner that is up, locked and held, or NULL if there is none. */
static struct slu_link *lock_up(struct sluice_buffer_service *service,
                                const struct slu_buffer_name *name)
{
    for (uint32_t i = 0; i < service->domain_count; i++) {
        struct slu_link *link = slu_link_find(service, &service->domains[i], name);

        if (link == NULL)
            continue;
        slu_link_lock(link);
        if (link->state == SLU_LINK_UP)
            return link;
        slu_link_unlock(link);
        slu_link_put(link);
    }
    return NULL;
}

static void unlock(struct slu_link *link)
{
    slu_link_unlock(link);
    slu_link_put(link);
}

static int check(const struct sluice_buffer_service *service,
                 const struct sluice_buffer_handle *handle, struct slu_buffer_name *name)
{
    return slu_is_buffer_service(service) ? decode(handle, name)
                                          : slu_not_a_buffer_service(service);
}

static int fail_connection(const struct slu_buffer_name *name, const char *what)
{
    char owner[SLU_ADDRESS_TEXT];

    return slu_fail(ENOTCONN, "the connection to %s, the owner of buffer %llu, %s",
                    slu_address_text(&name->addresses[0], owner), (unsigned long long)name->id,
                    what);
}

static int query(struct slu_link *link, const struct slu_buffer_name *name,
                 struct sluice_channel_info *info)
{
    /* A query would succeed on a failed connection, too. */
    if (sluice_channel_state(link->channel) != SLUICE_STATE_READY)
        return fail_connection(name, "was lost");
    return sluice_channel_query(link->channel, info);
}

int sluice_buffer_connection_query(struct sluice_buffer_service *service,
                                   const struct sluice_buffer_handle *handle,
                                   struct sluice_channel_info *info)
{
    SLU_KEEP_ERRNO;
    struct slu_buffer_name name;
    struct slu_link *link;
    int error = check(service, handle, &name);

    if (error < 0)
        return error;
    if (info == NULL)
        return slu_misuse(EINVAL, "info must not be NULL");
    link = lock_up(service, &name);
    if (link == NULL)
        return fail_connection(&name, "is not there");
    error = query(link, &name, info);
    /* Reading the state has disarmed the channel: sleeping threads have to arm it again. */
    slu_link_tell(link, NULL);
    unlock(link);
    return error;
}

int sluice_buffer_remote(const struct sluice_buffer_service *service,
                         const struct sluice_buffer_handle *handle, const struct sluice_pd *pd,
                         struct sluice_remote_mr *remote)
{
    SLU_KEEP_ERRNO;
    struct slu_buffer_name name;
    struct slu_buffer_way way;
    int error = check(service, handle, &name);

    if (error < 0)
        return error;
    if (remote == NULL)
        return slu_misuse(EINVAL, "remote must not be NULL");
    if (pd != NULL && !slu_buffer_has_domain(service, pd))
        return slu_misuse(EINVAL, "pd is no protection domain of the service%s", slu_none_hint(pd));
    error = slu_buffer_find_way(service, &name, pd, &way);
    if (error < 0)
        return error;
    *remote = (struct sluice_remote_mr){.addr = name.addr, .length = name.length, .rkey = way.rkey};
    return 0;
}
