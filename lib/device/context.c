/* SPDX-License-Identifier: MIT */
/*
 * Contexts: opening the chosen device, and closing it with the last reference, of the
 * program or of a child object.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/context.h>

#include "base/env_check.h"
#include "base/zeroed.h"
#include "device/choice.h"
#include "device/context.h"
#include "device/device.h"

#define FLAGS (SLUICE_CONTEXT_GID_INDEX | SLUICE_CONTEXT_FORK)

void slu_context_hold(struct sluice_context *context)
{
    atomic_fetch_add_explicit(&context->references, 1, memory_order_relaxed);
}

void slu_context_release(struct sluice_context *context)
{
    if (atomic_fetch_sub_explicit(&context->references, 1, memory_order_acq_rel) > 1)
        return;
    context->transport->transport->close(context->transport);
    slu_zeroed_trim();
    free(context);
}

static const struct slu_transport *find_transport(const char *name)
{
    for (uint32_t i = 0; i < slu_transport_count; i++)
        if (strcmp(slu_transports[i]->name, name) == 0)
            return slu_transports[i];
    return NULL;
}

static int check_attr(const struct sluice_context_attr *attr)
{
    bool given = (attr->flags & SLUICE_CONTEXT_GID_INDEX) != 0;

    if ((attr->flags & ~FLAGS) != 0)
        return slu_misuse(EINVAL,
                          "sluice_context_attr.flags is %#x, must be of GID_INDEX and FORK (%#x)",
                          attr->flags, FLAGS);
    if (attr->gid_index != 0 && !given)
        return slu_misuse(
            EINVAL, "sluice_context_attr.gid_index is %u, but SLUICE_CONTEXT_GID_INDEX is not set",
            attr->gid_index);
    if (attr->gid_index > 255)
        return slu_misuse(EINVAL, "sluice_context_attr.gid_index is %u, must be in 0..255",
                          attr->gid_index);
    return 0;
}

int slu_context_attr_apply(const struct sluice_context_attr *given,
                           struct sluice_context_attr *attr)
{
    int error = SLU_ATTR_COPY(sluice_context_attr, attr, given);

    return error < 0 ? error : check_attr(attr);
}

static int open_device(const char *device, const struct sluice_context_attr *attr,
                       struct slu_tcontext **opened)
{
    struct sluice_device_list *list = sluice_device_list_get();
    struct sluice_context_attr chosen = *attr;
    struct sluice_device_info info;
    struct slu_choice choice;
    int error;

    if (list == NULL)
        return -errno;
    error = slu_choose_here(list, device, attr->port, &choice);
    if (error == 0)
        info = list->devices[choice.index].info;
    sluice_device_list_free(list);
    if (error < 0)
        return error;
    chosen.port = choice.port;
    return find_transport(info.transport)->open(info.name, &chosen, opened);
}

struct sluice_context *sluice_context_open(const char *device,
                                           const struct sluice_context_attr *attr)
{
    SLU_UNCANCELLED_BLOCK;
    struct sluice_context_attr checked;
    struct slu_tcontext *transport;
    int error = slu_context_attr_apply(attr, &checked);

    slu_env_check_names();
    if (error == 0)
        error = slu_fork_prepare();
    if (error == 0)
        error = open_device(device, &checked, &transport);
    if (error < 0)
        return slu_none(error);
    return slu_context_create(transport);
}

struct sluice_context *slu_context_create(struct slu_tcontext *transport)
{
    struct sluice_context *context = calloc(1, sizeof *context);

    if (context == NULL) {
        transport->transport->close(transport);
        return slu_fail_null(ENOMEM, "no memory for a context");
    }
    context->magic = SLU_MAGIC_CONTEXT;
    context->transport = transport;
    atomic_init(&context->references, 1);
    slu_made();
    return context;
}

void sluice_context_close(struct sluice_context *context)
{
    SLU_UNCANCELLED_BLOCK;
    if (!slu_may_end(context, SLU_MAGIC_CONTEXT, "context"))
        return;
    if (context->owned) {
        slu_refuse_owned("context");
        return;
    }
    /* Child objects may still hold the context, but the program must not use it any more. */
    context->magic = SLU_MAGIC_DEAD;
    slu_context_release(context);
}

static void describe(const struct slu_tcontext *device, struct sluice_context_info *info)
{
    *info = (struct sluice_context_info){
        .level = device->level,
        .max_send_depth = device->max_send_depth,
        .max_receive_depth = device->max_receive_depth,
        .max_sge = device->max_sge,
        .max_read_sge = device->max_read_sge,
        .max_inline = device->max_inline,
        .max_read_depth = device->max_read_depth,
        .port = device->port,
        .link_layer = device->link_layer,
        .active_mtu = device->active_mtu,
        .gid_index = device->gid_index,
        .numa_node = device->numa_node,
        .atomics = device->atomics,
        .max_message = device->max_message,
        .max_region = device->max_region,
        .max_channels = device->max_channels,
        .max_regions = device->max_regions,
        .max_completions = device->max_cq_depth,
    };
    snprintf(info->device, sizeof info->device, "%s", device->device);
    snprintf(info->transport, sizeof info->transport, "%s", device->transport->name);
}

int sluice_context_query(const struct sluice_context *context, struct sluice_context_info *info)
{
    struct sluice_context_info known;
    int error;

    if (context == NULL || context->magic != SLU_MAGIC_CONTEXT)
        return slu_misuse(EINVAL, "not a context%s", slu_none_hint(context));
    error = SLU_INFO_CHECK(sluice_context_info, info);
    if (error < 0)
        return error;
    describe(context->transport, &known);
    slu_info_copy(info, &known, sizeof known);
    return 0;
}
