/* SPDX-License-Identifier: MIT */
/*
 * The list of devices. Guarantee: whatever libibverbs knows is listed, also
 * what cannot be used, with the reason in its description.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs.h"

/* The first active port, or else the first one. */
static uint8_t show_port(struct ibv_context *ibv, uint32_t ports, struct ibv_port_attr *attr)
{
    for (uint32_t port = 1; port <= ports; port++) {
        if (ibv_query_port(ibv, (uint8_t)port, attr) == 0 && attr->state == IBV_PORT_ACTIVE)
            return (uint8_t)port;
    }
    return ports > 0 && ibv_query_port(ibv, 1, attr) == 0 ? 1 : 0;
}

static void describe_port(struct ibv_context *ibv, uint8_t port, const struct ibv_port_attr *attr,
                          struct sluice_device_info *info)
{
    const char *link = attr->link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand";
    const char *state = ibv_port_state_str(attr->state);
    char address[SLU_VERBS_ADDRESS_CHARS] = "no address";
    struct slu_verbs_path path;

    if (attr->state != IBV_PORT_ACTIVE) {
        snprintf(info->description, sizeof(info->description), "port %u %s, %s", port, state, link);
        return;
    }
    if (slu_verbs_path_read(ibv, port, slu_verbs_gid_entries(ibv, info->ports), &path) == 0) {
        info->active = 1;
        if (path.link_layer == IBV_LINK_LAYER_INFINIBAND && path.lid)
            snprintf(address, sizeof(address), "LID %u", path.lid);
        else
            slu_verbs_gid_text(path.gid.gid.raw, path.gid.gid_type, address);
    }
    snprintf(info->description, sizeof(info->description), "port %u %s, %s, %s", port, state, link,
             address);
}

static void describe_open(struct ibv_context *ibv, struct sluice_device_info *info)
{
    struct ibv_device_attr attr;
    struct ibv_port_attr port_attr;
    uint8_t port;

    if (ibv_query_device(ibv, &attr)) {
        snprintf(info->description, sizeof(info->description), "cannot be queried");
        return;
    }
    info->ports = attr.phys_port_cnt;
    port = show_port(ibv, info->ports, &port_attr);
    if (port)
        describe_port(ibv, port, &port_attr, info);
    else
        snprintf(info->description, sizeof(info->description), "has no port that can be queried");
}

static void describe_device(struct ibv_device *device, struct sluice_device_info *info)
{
    struct ibv_context *ibv;

    memset(info, 0, sizeof(*info));
    info->size = sizeof(*info);
    info->level = SLUICE_LEVEL_NIC;
    snprintf(info->name, sizeof(info->name), "%s", ibv_get_device_name(device));
    snprintf(info->transport, sizeof(info->transport), "%s", slu_transport_verbs.name);
    if (device->transport_type != IBV_TRANSPORT_IB) {
        snprintf(info->description, sizeof(info->description),
                 "neither InfiniBand nor RoCE: not supported");
        return;
    }
    ibv = ibv_open_device(device);
    if (!ibv) {
        snprintf(info->description, sizeof(info->description), "cannot be opened: %s",
                 strerror(slu_verbs_errno(-1)));
        return;
    }
    describe_open(ibv, info);
    ibv_close_device(ibv);
}

int slu_verbs_device_list(struct sluice_device_info **infos, uint32_t *count)
{
    struct sluice_device_info *grown;
    struct ibv_device **devices;
    int found = 0, err = 0;

    errno = 0;
    devices = ibv_get_device_list(&found);
    /* A kernel without RDMA gives NULL and ENOSYS: that is a host without devices. */
    if (!devices)
        return errno == ENOMEM ? slu_fail(ENOMEM, "no memory for the list of RDMA devices") : 0;
    if (found <= 0)
        goto free_devices;
    grown = realloc(*infos, (*count + (uint32_t)found) * sizeof(*grown));
    if (!grown) {
        err = slu_fail(ENOMEM, "no memory for the descriptions of %d RDMA devices", found);
        goto free_devices;
    }
    *infos = grown;
    for (int i = 0; i < found; i++)
        describe_device(devices[i], &grown[(*count)++]);
free_devices:
    ibv_free_device_list(devices);
    return err;
}
