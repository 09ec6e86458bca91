/* SPDX-License-Identifier: MIT */
/* Advice on the devices, and on the choice between them. */
#include "config.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "info.h"

/* The distance of a NUMA node to itself, on all machines. */
#define OWN_NODE 10

/* Returns whether libibverbs shows a device of the kernel. */
static bool is_listed(const struct facts *facts, const char *name)
{
    for (uint32_t i = 0; i < facts->device_count; i++)
        if (strcmp(facts->devices[i].info.name, name) == 0)
            return true;
    return false;
}

static void advise_kernel(struct facts *facts)
{
    const struct kernel *kernel = &facts->kernel;

    for (uint32_t i = 0; i < kernel->count; i++) {
        const struct kernel_device *device = &kernel->devices[i];

        if (is_listed(facts, device->name))
            continue;
#ifndef HAVE_VERBS
        advice_add(facts, "no-verbs", device->name,
                   "the kernel has the RDMA device %s, which this build of the library cannot "
                   "use: configure it --with-verbs",
                   device->name);
#else
        if (!kernel->has_uverbs)
            advice_add(facts, "uverbs", device->name,
                       "the kernel has the RDMA device %s, but no program can use it: 'modprobe "
                       "ib_uverbs', and rdma_ucm for rdmacm: addresses",
                       device->name);
        else
            advice_add(facts, "provider", device->name,
                       "the kernel has the RDMA device %s%s%s, but libibverbs does not know it: "
                       "install its provider, in ibverbs-providers (Debian) or libibverbs "
                       "(Fedora), or give the container /dev/infiniband",
                       device->name, device->driver[0] != '\0' ? " of driver " : "",
                       device->driver);
#endif
    }
}

static uint32_t scopes_of(const struct device *device, uint32_t port, uint32_t type, bool *near)
{
    uint32_t count = 0;

    *near = true;
    for (uint32_t i = 0; i < device->info.gids; i++) {
        const struct sluice_gid_info *gid = &device->gids[i];
        struct in6_addr address;
        const uint8_t *ip = gid->gid + 12;

        if (gid->port != port || (type != 0 && gid->type != type))
            continue;
        count++;
        memcpy(&address, gid->gid, sizeof address);
        if (IN6_IS_ADDR_V4MAPPED(&address)
                ? ip[0] != 127 && !(ip[0] == 169 && ip[1] == 254)
                : !IN6_IS_ADDR_LINKLOCAL(&address) && !IN6_IS_ADDR_LOOPBACK(&address))
            *near = false;
    }
    return count;
}

/* Returns whether the port has GIDs, and the library would take none. */
static bool is_foreign(const struct device *device, uint32_t port)
{
    for (uint32_t i = 0; i < device->info.gids; i++)
        if (device->gids[i].port == port && device->gids[i].chosen != 0)
            return false;
    return true;
}

/* Advises on the addresses of an active Ethernet port. */
static void advise_addresses(struct facts *facts, const struct device *device, uint32_t port,
                             const char *about)
{
    bool all_near, near;
    uint32_t all = scopes_of(device, port, 0, &all_near);
    uint32_t routed = scopes_of(device, port, SLUICE_GID_ROCE_V2, &near);

    if (all == 0)
        advice_add(facts, "address", about,
                   "port %s has no address: bring its network interface up and give it one, 'ip "
                   "address add'",
                   about);
    else if (is_foreign(device, port))
        advice_add(facts, "namespace", about,
                   "port %s has only GIDs of other network namespaces: run in the one of its "
                   "network interface, such as the host's, or move an interface here",
                   about);
    else if (routed == 0)
        advice_add(facts, "roce-v1", about,
                   "port %s has only GIDs of RoCE v1, which do not leave their Ethernet segment: "
                   "turn RoCE v2 on, in the driver or its firmware",
                   about);
    else if (all_near)
        advice_add(facts, "link-local", about,
                   "port %s has only link-local addresses, which other networks do not reach: "
                   "give its network interface an IPv4 or IPv6 address, 'ip address add'",
                   about);
}

static void advise_port(struct facts *facts, const struct device *device,
                        const struct sluice_port_info *port)
{
    char about[80];

    snprintf(about, sizeof about, "%.60s:%u", device->info.name, port->port);
    if (port->state != SLUICE_PORT_ACTIVE)
        advice_add(facts, "port-down", about, "port %s is %s, not active: %s", about,
                   word_state(port->state),
                   port->link_layer == SLUICE_LINK_INFINIBAND
                       ? port->state == SLUICE_PORT_DOWN
                             ? "check its cable and the switch"
                             : "a subnet manager, such as opensm, must set it up"
                       : "check its cable and the switch, and bring its network interface up, "
                         "'ip link set ... up'");
    else if (port->link_layer == SLUICE_LINK_ETHERNET)
        advise_addresses(facts, device, port->port, about);
}

static void advise_device(struct facts *facts, const struct device *device)
{
    const struct sluice_device_info *info = &device->info;

    if (info->level != SLUICE_LEVEL_NIC)
        return;
    if (info->ports == 0)
        advice_add(facts, "unusable", info->name,
                   "device %s cannot be used: %s; check the rights of /dev/infiniband/uverbs*, "
                   "and whether the container was given it",
                   info->name, info->description);
    else if (device->limits_error[0] != '\0' && info->active != 0)
        advice_add(facts, "unusable", info->name, "device %s is active, but cannot be opened: %s",
                   info->name, device->limits_error);
    for (uint32_t i = 0; i < info->ports; i++)
        advise_port(facts, device, &device->ports[i]);
}

/* Advises if the device that would be taken is not near this process. */
static void advise_place(struct facts *facts, const struct device *device)
{
    const struct sluice_choice_info *choice = &device->choice;

    if (choice->verdict != SLUICE_CHOICE_TAKEN || choice->distance <= OWN_NODE)
        return;
    advice_add(facts, "numa", device->info.name,
               "no device is near the CPUs of this process (%s): %s, which is opened, is at NUMA "
               "node %d, at distance %u. Bind the process to CPUs %s, with numactl or by its "
               "launcher",
               facts->host.cpus, device->info.name, device->info.numa_node, choice->distance,
               device->near_cpus[0] != '\0' ? device->near_cpus : "of that node");
}

void advise_devices(struct facts *facts)
{
    if (facts->devices_error[0] != '\0')
        advice_add(facts, "devices", "", "the devices cannot be listed: %s", facts->devices_error);
    if (facts->choice_error[0] != '\0')
        advice_add(facts, "choice", "", "no context can be opened without a name: %s",
                   facts->choice_error);
    advise_kernel(facts);
    for (uint32_t i = 0; i < facts->device_count; i++) {
        advise_device(facts, &facts->devices[i]);
        if (facts->choice_error[0] == '\0')
            advise_place(facts, &facts->devices[i]);
    }
}
