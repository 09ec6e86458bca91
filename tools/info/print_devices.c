/* SPDX-License-Identifier: MIT */
/* The section of the devices. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "info.h"

static const char *gid_address(const struct sluice_gid_info *gid, char text[INET6_ADDRSTRLEN])
{
    struct in6_addr address;

    memcpy(&address, gid->gid, sizeof address);
    if (gid->type != SLUICE_GID_INFINIBAND && IN6_IS_ADDR_V4MAPPED(&address))
        inet_ntop(AF_INET, gid->gid + 12, text, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET6, gid->gid, text, INET6_ADDRSTRLEN);
    return text;
}

/* Reads the kind of an interface, such as "vlan", "bond" or "macvlan"; "" for a plain one. */
static void read_kind(const char *interface, char kind[32])
{
    char text[512];
    const char *at;

    kind[0] = '\0';
    if (interface[0] == '\0' ||
        !file_text(text, sizeof text, "/sys/class/net/%s/uevent", interface))
        return;
    at = strstr(text, "DEVTYPE=");
    if (at != NULL)
        snprintf(kind, 32, "%.*s", (int)strcspn(at + 8, "\n"), at + 8);
}

static void print_gid(const struct sluice_gid_info *gid, struct out *out)
{
    char address[INET6_ADDRSTRLEN] = "", kind[32];

    read_kind(gid->interface, kind);
    gid_address(gid, address);
    out_object(out, NULL, NULL);
    out_number(out, "index", NULL, gid->index, "none");
    out_text(out, "type", NULL, word_gid(gid->type));
    out_text(out, "address", NULL, address);
    out_text(out, "interface", NULL, gid->interface);
    out_text(out, "interface_kind", NULL, kind);
    out_flag(out, "chosen", NULL, gid->chosen != 0, "none");
    out_end(out);
    out_line(out, "%sGID %-3u %-10s %s%s%s%s%s%s", gid->chosen != 0 ? "* " : "  ", gid->index,
             word_gid(gid->type), address, gid->interface[0] != '\0' ? " (" : "", gid->interface,
             kind[0] != '\0' ? ", " : "", kind, gid->interface[0] != '\0' ? ")" : "");
}

/* Prints the GID that the library chose; sluice_transports(7) has the order of preference. */
static void print_chosen(const struct device *device, const struct sluice_port_info *port,
                         struct out *out)
{
    const struct sluice_gid_info *chosen = NULL;

    for (uint32_t i = 0; i < device->info.gids; i++)
        if (device->gids[i].port == port->port && device->gids[i].chosen != 0)
            chosen = &device->gids[i];
    if (chosen != NULL)
        out_number(out, "chosen_gid", "takes GID", chosen->index,
                   "%u: the best by sluice_transports(7), %s", chosen->index, chosen->text);
    else if (port->state == SLUICE_PORT_ACTIVE && port->link_layer == SLUICE_LINK_INFINIBAND)
        out_null(out, "chosen_gid", "takes", "its LID, %u", port->lid);
    else if (port->link_layer == SLUICE_LINK_ETHERNET)
        out_null(out, "chosen_gid", "takes GID", "none: %s", port->description);
    else
        out_null(out, "chosen_gid", NULL, "none");
}

static void print_speed(const struct sluice_port_info *port, struct out *out)
{
    out_number(out, "speed", NULL, port->speed, "none");
    out_number(out, "width", NULL, port->width, "none");
    if (port->speed != 0)
        out_words(out, "speed", "%g Gbit/s on %u lane%s", (double)port->speed / 1000, port->width,
                  port->width == 1 ? "" : "s");
}

static void print_port(const struct device *device, const struct sluice_port_info *port,
                       struct out *out)
{
    char size[32], title[160];

    snprintf(title, sizeof title, "port %u: %s", port->port, port->description);
    out_object(out, NULL, title);
    out_number(out, "port", NULL, port->port, "none");
    out_text(out, "state", NULL, word_state(port->state));
    out_flag(out, "active", NULL, port->active != 0, "none");
    out_text(out, "link_layer", NULL, word_link(port->link_layer));
    out_text(out, "description", NULL, port->description);
    print_speed(port, out);
    out_number(out, "mtu", port->mtu != 0 ? "MTU" : NULL, port->mtu, "%u bytes of %u", port->mtu,
               port->max_mtu);
    out_number(out, "max_mtu", NULL, port->max_mtu, "none");
    out_number(out, "lid", port->lid != 0 ? "LID" : NULL, port->lid, "%u, subnet manager at %u",
               port->lid, port->sm_lid);
    out_number(out, "sm_lid", NULL, port->sm_lid, "none");
    out_limit(out, "max_message", "largest message", port->max_message,
              bytes_text(port->max_message, size));
    print_chosen(device, port, out);
    out_list(out, "gids", NULL);
    for (uint32_t i = 0; i < device->info.gids; i++)
        if (device->gids[i].port == port->port)
            print_gid(&device->gids[i], out);
    out_end(out);
    out_end(out);
}

static void print_limits(const struct device *device, struct out *out)
{
    const struct sluice_context_info *limits = &device->limits;
    char size[32];

    if (device->limits_error[0] != '\0') {
        out_null(out, "limits", "cannot be opened", "%s", device->limits_error);
        return;
    }
    out_object(out, "limits", "limits");
    out_number(out, "channels", limits->max_channels > 0 ? "queue pairs" : NULL,
               limits->max_channels, "%u", limits->max_channels);
    out_number(out, "send_depth", "depth of sends", limits->max_send_depth, "%u",
               limits->max_send_depth);
    out_number(out, "receive_depth", "of receives", limits->max_receive_depth, "%u",
               limits->max_receive_depth);
    out_number(out, "completions", "of a completion queue", limits->max_completions, "%u",
               limits->max_completions);
    out_number(out, "regions", limits->max_regions > 0 ? "memory regions" : NULL,
               limits->max_regions, "%u", limits->max_regions);
    out_limit(out, "region_bytes", limits->max_region > 0 ? "largest region" : NULL,
              limits->max_region, bytes_text(limits->max_region, size));
    out_number(out, "sges", "elements", limits->max_sge, "%u of a request, %u of a read",
               limits->max_sge, limits->max_read_sge);
    out_number(out, "read_sges", NULL, limits->max_read_sge, "none");
    out_number(out, "read_depth", "reads in flight", limits->max_read_depth, "%u",
               limits->max_read_depth);
    out_number(out, "inline_bytes", "inline data", limits->max_inline, "%u bytes",
               limits->max_inline);
    out_limit(out, "message_bytes", "largest message", limits->max_message,
              bytes_text(limits->max_message, size));
    out_text(out, "atomics", "atomics", word_atomics(limits->atomics));
    out_end(out);
}

static void print_place(const struct device *device, struct out *out)
{
    const struct sluice_device_info *info = &device->info;

    if (info->numa_node < 0)
        out_null(out, "numa_node", NULL, "none");
    else
        out_number(out, "numa_node", "NUMA node", info->numa_node, "%d%s%s", info->numa_node,
                   device->near_cpus[0] != '\0' ? ", CPUs " : "", device->near_cpus);
    out_text(out, "near_cpus", NULL, device->near_cpus);
    if (device->choice.distance != 0)
        out_number(out, "numa_distance", "NUMA distance", device->choice.distance,
                   "%u from this process", device->choice.distance);
    else
        out_null(out, "numa_distance", NULL, "none");
}

static void print_device(const struct device *device, struct out *out)
{
    const struct sluice_device_info *info = &device->info;
    char guid[20];

    snprintf(guid, sizeof guid, "%016llx", (unsigned long long)info->guid);
    out_object(out, NULL, info->name);
    out_text(out, "name", NULL, info->name);
    out_text(out, "description", "now", info->description);
    out_flag(out, "active", NULL, info->active != 0, "none");
    out_text(out, "transport", "transport", info->transport);
    out_text(out, "level", NULL, word_level(info->level));
    out_text(out, "driver", "driver", device->driver);
    out_text(out, "firmware", "firmware", info->firmware);
    out_text(out, "guid", info->guid != 0 ? "GUID" : NULL, info->guid != 0 ? guid : "");
    out_number(out, "vendor_id", info->vendor_id != 0 ? "vendor, part" : NULL, info->vendor_id,
               "0x%04x, %u", info->vendor_id, info->vendor_part);
    out_number(out, "vendor_part", NULL, info->vendor_part, "none");
    print_place(device, out);
    out_list(out, "ports", NULL);
    for (uint32_t i = 0; i < info->ports; i++)
        print_port(device, &device->ports[i], out);
    out_end(out);
    print_limits(device, out);
    out_end(out);
}

/* Returns whether to print a device: with --device, only those that it names. */
static bool is_wanted(const struct facts *facts, const struct device *device)
{
    return facts->options->device == NULL || device->choice.verdict != SLUICE_CHOICE_NOT_NAMED;
}

void print_devices(const struct facts *facts, struct out *out)
{
    out_text(out, "error", "cannot be listed", facts->devices_error);
    out_list(out, "list", NULL);
    for (uint32_t i = 0; i < facts->device_count; i++)
        if (is_wanted(facts, &facts->devices[i]))
            print_device(&facts->devices[i], out);
    out_end(out);
}
