/* SPDX-License-Identifier: MIT */
/*
 * The list of devices. Guarantee: all devices of libibverbs are listed, including unusable ones
 * with the reason in their descriptions; the list is complete, or an error.
 */
#include "config.h"

#include <endian.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "device/device.h"
#include "device/near.h"
#include "transport/verbs/device/device.h"

/*
 * Descriptors that libibverbs, a provider and this file have open at a time while devices are
 * listed.
 */
#define FILES_NEEDED 6
/* Exists if the kernel has RDMA support. */
#define RDMA_CLASS "/sys/class/infiniband"

/*
 * Checks for free file descriptors: returns 0, EMFILE or ENFILE. Without descriptors libibverbs
 * misses devices without an error, and may even lose its providers for the rest of the process.
 */
static int check_files(void)
{
    int fds[FILES_NEEDED];
    int count = 0, err = 0;

    while (count < FILES_NEEDED && err == 0) {
        fds[count] = slu_fd_event();
        if (fds[count] >= 0)
            count++;
        else
            err = errno;
    }
    while (count > 0)
        slu_fd_close(fds[--count]);
    return err == EMFILE || err == ENFILE ? err : 0;
}

static int fail_files(int err)
{
    return slu_fail(err,
                    "too few file descriptors are left to look for RDMA devices, which takes %d%s",
                    FILES_NEEDED, err == EMFILE ? "; ulimit -n raises the limit" : "");
}

/* Returns the entry of a table for a value of which one bit is set; 0: there is none. */
static uint32_t by_bit(uint8_t value, const uint32_t *table, uint32_t count)
{
    for (uint32_t bit = 0; bit < count; bit++) {
        if (value == 1U << bit)
            return table[bit];
    }
    return 0;
}

/* Returns the speed of one lane in Mbit/s, as in the kernel's "rate". */
static uint32_t lane_speed(uint8_t active_speed)
{
    static const uint32_t speeds[] = {2500, 5000, 10000, 10000, 14000, 25000, 50000, 100000};

    return by_bit(active_speed, speeds, sizeof speeds / sizeof speeds[0]);
}

static uint32_t lanes(uint8_t active_width)
{
    static const uint32_t widths[] = {1, 4, 8, 12, 2};

    return by_bit(active_width, widths, sizeof widths / sizeof widths[0]);
}

_Static_assert((int)SLUICE_PORT_DOWN == IBV_PORT_DOWN &&
                   (int)SLUICE_PORT_ACTIVE_DEFER == IBV_PORT_ACTIVE_DEFER,
               "states of ports have the numbers of libibverbs");

/* Drivers older than RoCE leave the link layer unspecified. */
static bool is_ethernet(const struct ibv_port_attr *attr)
{
    return attr->link_layer == IBV_LINK_LAYER_ETHERNET;
}

static const char *const link_names[] = {[SLUICE_LINK_INFINIBAND] = "InfiniBand",
                                         [SLUICE_LINK_ETHERNET] = "Ethernet",
                                         [SLUICE_LINK_IWARP] = "iWARP"};

static void fill_port(struct sluice_port_info *port, const struct ibv_port_attr *attr, bool iwarp)
{
    port->state =
        attr->state <= IBV_PORT_ACTIVE_DEFER ? (uint32_t)attr->state : SLUICE_PORT_UNKNOWN;
    port->link_layer = iwarp               ? SLUICE_LINK_IWARP
                       : is_ethernet(attr) ? SLUICE_LINK_ETHERNET
                                           : SLUICE_LINK_INFINIBAND;
    port->lid = attr->lid;
    port->sm_lid = attr->sm_lid;
    port->mtu = attr->active_mtu ? slu_verbs_mtu_bytes(attr->active_mtu) : 0;
    port->max_mtu = attr->max_mtu ? slu_verbs_mtu_bytes(attr->max_mtu) : 0;
    port->width = lanes(attr->active_width);
    port->speed = port->width * lane_speed(attr->active_speed);
    port->gid_table = attr->gid_tbl_len > 0 ? (uint32_t)attr->gid_tbl_len : 0;
    port->pkey_table = attr->pkey_tbl_len;
    port->max_message = attr->max_msg_sz;
    snprintf(port->description, sizeof port->description, "%s, %s", ibv_port_state_str(attr->state),
             link_names[port->link_layer]);
}

/* Returns the most entries that the GID tables of all ports can have together. */
static uint32_t read_ports(struct ibv_context *ibv, struct slu_device *device)
{
    uint32_t entries = 0;

    for (uint32_t i = 0; i < device->info.ports; i++) {
        struct sluice_port_info *port = &device->ports[i];
        struct ibv_port_attr attr;
        int err = ibv_query_port(ibv, (uint8_t)port->port, &attr);

        if (err) {
            snprintf(port->description, sizeof port->description, "cannot be queried: %s",
                     strerror(slu_verbs_errno(err)));
            continue;
        }
        fill_port(port, &attr, slu_verbs_is_iwarp(ibv->device));
        /* The kernel refuses a buffer that is not longer than the entries it finds. */
        entries += port->gid_table ? port->gid_table + 1 : 0;
    }
    return entries;
}

static uint32_t gid_type_of(uint32_t type)
{
    return type == IBV_GID_TYPE_ROCE_V2   ? SLUICE_GID_ROCE_V2
           : type == IBV_GID_TYPE_ROCE_V1 ? SLUICE_GID_ROCE_V1
                                          : SLUICE_GID_INFINIBAND;
}

/*
 * Fills in the name of the interface. Names are reused from earlier entries: a name takes three
 * system calls, and many entries share few interfaces.
 */
static void name_interface(const struct ibv_gid_entry *entries, struct slu_device *device,
                           uint32_t at)
{
    struct sluice_gid_info *gid = &device->gids[at];
    char name[IF_NAMESIZE];

    if (!entries[at].ndev_ifindex)
        return;
    for (uint32_t i = at; i-- > 0;) {
        if (entries[i].ndev_ifindex == entries[at].ndev_ifindex) {
            memcpy(gid->interface, device->gids[i].interface, sizeof gid->interface);
            return;
        }
    }
    if (slu_fd_interface_name(entries[at].ndev_ifindex, name))
        snprintf(gid->interface, sizeof gid->interface, "%s", name);
}

static int compare_entries(const void *left, const void *right)
{
    const struct ibv_gid_entry *a = left, *b = right;

    if (a->port_num != b->port_num)
        return a->port_num < b->port_num ? -1 : 1;
    return (a->gid_index > b->gid_index) - (a->gid_index < b->gid_index);
}

static int fill_gids(struct slu_device *device, struct ibv_gid_entry *entries, uint32_t count)
{
    int err = slu_device_add_gids(device, count);

    if (err)
        return err;
    qsort(entries, count, sizeof *entries, compare_entries);
    for (uint32_t i = 0; i < count; i++) {
        struct sluice_gid_info *gid = &device->gids[i];

        gid->port = entries[i].port_num;
        gid->index = entries[i].gid_index;
        gid->type = gid_type_of(entries[i].gid_type);
        memcpy(gid->gid, entries[i].gid.raw, sizeof gid->gid);
        slu_verbs_gid_text(entries[i].gid.raw, entries[i].gid_type, gid->text);
        name_interface(entries, device, i);
    }
    return 0;
}

/*
 * Reads the GID tables. A table that cannot be read is left empty: choosing a GID reports the
 * reason.
 */
static int read_gids(struct ibv_context *ibv, struct slu_device *device, uint32_t most)
{
    struct ibv_gid_entry *entries;
    ssize_t count;
    int err = 0;

    if (most == 0)
        return 0;
    entries = calloc(most, sizeof *entries);
    if (!entries)
        return slu_fail(ENOMEM, "no memory for the GID table of %s", device->info.name);
    count = ibv_query_gid_table(ibv, entries, most, 0);
    if (count > 0)
        err = fill_gids(device, entries, (uint32_t)count);
    free(entries);
    return err;
}

static void mark_gid(struct slu_device *device, uint32_t port, uint32_t index)
{
    for (uint32_t i = 0; i < device->info.gids; i++) {
        if (device->gids[i].port == port && device->gids[i].index == index)
            device->gids[i].chosen = 1;
    }
}

/* Adds the address by which peers reach the port, or the reason why they cannot. */
static void describe_path(struct ibv_context *ibv, struct slu_device *device,
                          struct sluice_port_info *port, uint32_t gid_entries)
{
    size_t used = strlen(port->description);
    char *rest = port->description + used;
    char address[SLU_VERBS_ADDRESS_CHARS], kept[512];
    struct slu_verbs_path path;

    snprintf(kept, sizeof kept, "%s", sluice_last_error());
    if (slu_verbs_path_read(ibv, (uint8_t)port->port, gid_entries, &path)) {
        snprintf(rest, sizeof port->description - used, ", %s", sluice_last_error());
        /* Restore the text of the program's last failure: listing has not failed. */
        slu_fail(0, "%s", kept);
        return;
    }
    if (path.iwarp) {
        /* Most programs exchange endpoints, so this device is taken only if it is named. */
        snprintf(rest, sizeof port->description - used, ", connects over rdma_cm alone");
        return;
    }
    port->active = 1;
    if (path.has_gid)
        mark_gid(device, port->port, path.gid.gid_index);
    if (path.link_layer == IBV_LINK_LAYER_INFINIBAND && path.lid)
        snprintf(address, sizeof address, "LID %u", path.lid);
    else
        slu_verbs_gid_text(path.gid.gid.raw, path.gid.gid_type, address);
    snprintf(rest, sizeof port->description - used, ", %s", address);
}

/* Describes the device by its first active port, or else by its first port. */
static void summarize(struct slu_device *device)
{
    const struct sluice_port_info *shown = &device->ports[0];

    for (uint32_t i = 0; i < device->info.ports; i++) {
        if (device->ports[i].state == SLUICE_PORT_ACTIVE) {
            shown = &device->ports[i];
            break;
        }
    }
    device->info.active = shown->active;
    snprintf(device->info.description, sizeof device->info.description, "port %u %.110s",
             shown->port, shown->description);
}

static int describe_open(struct ibv_context *ibv, struct slu_device *device)
{
    struct sluice_device_info *info = &device->info;
    struct ibv_device_attr attr;
    uint32_t gid_entries;
    int err = ibv_query_device(ibv, &attr);

    if (err) {
        snprintf(info->description, sizeof info->description, "cannot be queried: %s",
                 strerror(slu_verbs_errno(err)));
        return 0;
    }
    info->vendor_id = attr.vendor_id;
    info->vendor_part = attr.vendor_part_id;
    snprintf(info->firmware, sizeof info->firmware, "%.*s", (int)sizeof attr.fw_ver, attr.fw_ver);
    if (attr.phys_port_cnt == 0) {
        snprintf(info->description, sizeof info->description, "has no port");
        return 0;
    }
    err = slu_device_add_ports(device, attr.phys_port_cnt);
    if (err)
        return err;
    gid_entries = read_ports(ibv, device);
    err = read_gids(ibv, device, gid_entries);
    for (uint32_t i = 0; i < info->ports && !err; i++) {
        if (device->ports[i].state == SLUICE_PORT_ACTIVE)
            describe_path(ibv, device, &device->ports[i], gid_entries);
    }
    if (!err)
        summarize(device);
    return err;
}

bool slu_verbs_is_known(const struct ibv_device *device)
{
    return device->transport_type == IBV_TRANSPORT_IB || slu_verbs_is_iwarp(device);
}

static int describe_device(struct ibv_device *ibv_device, struct slu_device *device)
{
    struct sluice_device_info *info = &device->info;
    struct ibv_context *ibv;
    int err;

    info->level = SLUICE_LEVEL_NIC;
    info->numa_node = slu_near_node(ibv_device->ibdev_path);
    info->guid = be64toh(ibv_get_device_guid(ibv_device));
    if (!slu_verbs_is_known(ibv_device)) {
        snprintf(info->description, sizeof info->description,
                 "neither InfiniBand nor RoCE nor iWARP: not supported");
        return 0;
    }
    ibv = slu_verbs_device_open(ibv_device);
    if (!ibv) {
        err = slu_verbs_open_errno(ibv_device);
        if (err == EMFILE || err == ENFILE)
            return fail_files(err);
        snprintf(info->description, sizeof info->description, "cannot be opened: %s",
                 strerror(err));
        return 0;
    }
    err = describe_open(ibv, device);
    slu_verbs_device_close(ibv);
    return err;
}

int slu_verbs_device_list(struct sluice_device_list *list)
{
    struct ibv_device **devices;
    int found = 0;
    int err = check_files();

    if (err)
        return access(RDMA_CLASS, F_OK) == 0 ? fail_files(err) : 0;
    errno = 0;
    devices = slu_verbs_devices(&found);
    /* A kernel without RDMA gives NULL and ENOSYS, which counts as a host without devices. */
    if (!devices)
        return errno == ENOMEM ? slu_fail(ENOMEM, "no memory for the list of RDMA devices") : 0;
    for (int i = 0; i < found && !err; i++) {
        struct slu_device *device =
            slu_device_add(list, ibv_get_device_name(devices[i]), slu_transport_verbs.name);

        err = device ? describe_device(devices[i], device) : -ENOMEM;
    }
    ibv_free_device_list(devices);
    return err;
}
