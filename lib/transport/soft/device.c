/* SPDX-License-Identifier: MIT */
/* The one device of the soft transport, which every host has. */
#include "transport/soft/table.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "base/environment.h"
#include "connect/address.h"
#include "connect/stream.h"
#include "device/device.h"

/*
 * Returns whether any interface is up. If none is, peers get an address of the loopback interface,
 * which is down, too.
 */
static bool has_interface(void)
{
    struct ifaddrs *list;
    bool found = false;
    if (slu_fd_list_interfaces(&list) != 0)
        return true;
    for (const struct ifaddrs *at = list; at != NULL; at = at->ifa_next)
        found = found || (at->ifa_flags & IFF_UP) != 0;
    freeifaddrs(list);
    return found;
}

/* Describes the addresses at which peers will look, unless the program chooses one. */
static void describe_addresses(char *text, size_t size)
{
    const char *given = slu_env_value(SLU_ENV_TCP_ADDRESS);
    struct slu_address addresses[SLU_ENDPOINT_ADDRESSES] = {{.family = 0}};
    size_t used;
    if (given != NULL) {
        snprintf(text, size, "active, TCP, address %s (SLUICE_TCP_ADDRESS)", given);
        return;
    }
    if (!has_interface()) {
        snprintf(text, size, "active, not over TCP: no network interface is up, not even loopback");
        return;
    }
    slu_stream_addresses(addresses, SLU_ENDPOINT_ADDRESSES, true, 0);
    used = (size_t)snprintf(text, size, "active, TCP");
    for (uint32_t i = 0; i < SLU_ENDPOINT_ADDRESSES && addresses[i].family != 0; i++) {
        char ip[SLU_ADDRESS_IP];
        slu_address_ip(&addresses[i], ip);
        if (used + 2 + strlen(ip) >= size)
            break;
        used += (size_t)snprintf(text + used, size - used, ", %s", ip);
    }
}

int slu_soft_device_list(struct sluice_device_list *list)
{
    struct slu_device *device = slu_device_add(list, "soft", slu_transport_soft.name);
    int err = device == NULL ? -ENOMEM : slu_device_add_ports(device, 1);
    if (err != 0)
        return err;
    struct sluice_port_info *port = &device->ports[0];
    device->info.active = 1;
    device->info.level = SLUICE_LEVEL_TCP;
    snprintf(device->info.description, sizeof(device->info.description),
             "software transport: memory on this host, TCP between hosts");
    port->state = SLUICE_PORT_ACTIVE;
    port->active = 1;
    port->link_layer = SLUICE_LINK_NONE;
    port->max_message = SOFT_MAX_MESSAGE;
    describe_addresses(port->description, sizeof(port->description));
    return 0;
}
