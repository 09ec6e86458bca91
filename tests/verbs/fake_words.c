/* SPDX-License-Identifier: MIT */
/* Sets up the pretend devices by the words of SLUICE_FAKE_VERBS. */
#include <stdio.h>

#include "fake_device.h"

static void set_gid(struct fake_gid *gid, uint32_t type, const char *bytes)
{
    gid->type = type + 1;
    memcpy(gid->raw, bytes, sizeof(gid->raw));
}

void fake_port_reset(struct fake_port *port)
{
    static const char link_local[] = "\xfe\x80\0\0\0\0\0\0\x02\x11\x22\xff\xfe\x33\x44\x55";
    static const char ipv4[] = "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\x00\x02\x01";

    *port = (struct fake_port){
        .state = IBV_PORT_ACTIVE,
        .link_layer = IBV_LINK_LAYER_ETHERNET,
        .max_mtu = IBV_MTU_4096,
        .active_mtu = IBV_MTU_1024,
        .active_width = 1,
        .active_speed = 1,
        .max_msg_sz = 8 << 20,
        .gids = FAKE_GIDS,
        .pkeys = 1,
        .pkey = {0xffff},
    };
    set_gid(&port->gid[0], IBV_GID_TYPE_ROCE_V1, link_local);
    set_gid(&port->gid[1], IBV_GID_TYPE_ROCE_V2, link_local);
    set_gid(&port->gid[2], IBV_GID_TYPE_ROCE_V1, ipv4);
    set_gid(&port->gid[3], IBV_GID_TYPE_ROCE_V2, ipv4);
}

/* A port with a LID, and one GID, as a subnet manager gives it. */
static void make_infiniband(struct fake_port *port)
{
    port->link_layer = IBV_LINK_LAYER_INFINIBAND;
    port->lid = 7;
    port->active_mtu = IBV_MTU_4096;
    memset(port->gid, 0, sizeof(port->gid));
    set_gid(&port->gid[0], IBV_GID_TYPE_IB, "\xfe\x80\0\0\0\0\0\0\0\x11\x22\x33\x44\x55\x66\x77");
}

/* Two adapters as many hosts have them, the first one with a second port without a cable. */
static void make_mlx5(void)
{
    static const char ipv6[] = "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01";

    fake_verbs.devices = 2;
    for (uint32_t i = 0; i < 2; i++) {
        struct fake_device *device = &fake_verbs.device[i];
        struct fake_port *port = &device->port[0];

        snprintf(device->name, sizeof(device->name), "mlx5_%u", i);
        device->vendor_id = 0x02c9;
        device->vendor_part = 4123;
        device->max_qp = 131072;
        device->max_mr = 16777216;
        device->ports = 2 - i;
        port->max_msg_sz = UINT32_C(1) << 30;
        port->active_mtu = IBV_MTU_4096;
        port->active_width = 2;  /* 4 lanes */
        port->active_speed = 32; /* of 25 Gbit/s */
        set_gid(&port->gid[4], IBV_GID_TYPE_ROCE_V1, ipv6);
        set_gid(&port->gid[5], IBV_GID_TYPE_ROCE_V2, ipv6);
        port->gid[4].raw[15] = port->gid[5].raw[15] = (uint8_t)(i + 1);
    }
    fake_verbs.device[0].port[1].state = IBV_PORT_DOWN;
}

/*
 * Keeps the entries of a table that are of one type, or that no router forwards; removes all
 * others.
 */
static void keep_gids(struct fake_port *port, uint32_t type, bool link_local)
{
    for (uint32_t i = 0; i < FAKE_GIDS; i++) {
        struct fake_gid *gid = &port->gid[i];

        if ((type != 0 && gid->type != type) || (link_local && gid->raw[0] != 0xfe))
            gid->type = 0;
    }
}

/* Gives all addresses to one interface. */
static void set_interface(struct fake_port *port, uint32_t interface)
{
    for (uint32_t i = 0; i < FAKE_GIDS; i++)
        port->gid[i].interface = interface;
}

/* "down=0:1": of device 0 port 1. */
static bool apply_to_port(const char *word, const char *value)
{
    uint32_t device, number;
    struct fake_port *port;

    if (!value || sscanf(value, "=%u:%u", &device, &number) != 2 || device >= FAKE_DEVICES ||
        number < 1 || number > FAKE_PORTS)
        return false;
    port = &fake_verbs.device[device].port[number - 1];
    if (strncmp(word, "down=", 5) == 0)
        port->state = IBV_PORT_DOWN;
    else if (strncmp(word, "v1=", 3) == 0)
        keep_gids(port, IBV_GID_TYPE_ROCE_V1 + 1, false);
    else if (strncmp(word, "link_local=", 11) == 0)
        keep_gids(port, 0, true);
    else if (strncmp(word, "foreign=", 8) == 0)
        set_interface(port, INT32_MAX);
    else if (strncmp(word, "no_gid=", 7) == 0)
        keep_gids(port, UINT32_MAX, true);
    else
        return false;
    return true;
}

/* "denied=1": device 1; and where it would be in sysfs. */
static bool apply_to_device(const char *word, const char *value)
{
    uint32_t device = value ? (uint32_t)atoi(value + 1) : FAKE_DEVICES;

    if (strncmp(word, "sysfs=", 6) == 0)
        snprintf(fake_verbs.sysfs, sizeof(fake_verbs.sysfs), "%s", value + 1);
    else if (device >= FAKE_DEVICES)
        return false;
    else if (strncmp(word, "denied=", 7) == 0)
        fake_verbs.device[device].denied = true;
    else if (strncmp(word, "stuck=", 6) == 0)
        fake_verbs.device[device].stuck = true;
    else
        return false;
    return true;
}

static bool apply_habit(const char *word)
{
    if (strcmp(word, "rxe") == 0)
        fake_verbs.rxe_statuses = true;
    else if (strcmp(word, "events") == 0)
        fake_verbs.responder_events = true;
    else if (strcmp(word, "eager") == 0)
        fake_verbs.eager = true;
    else if (strcmp(word, "no_last_wqe") == 0)
        fake_verbs.no_last_wqe = true;
    else if (strcmp(word, "tidy") == 0)
        fake_verbs.tidy = true;
    else if (strcmp(word, "purge") == 0)
        fake_verbs.orphans = FAKE_PURGE;
    else if (strcmp(word, "infiniband") == 0)
        make_infiniband(&fake_verbs.device[0].port[0]);
    else if (strcmp(word, "mlx5") == 0)
        make_mlx5();
    else
        return false;
    return true;
}

static void apply_word(const char *word)
{
    struct fake_device *device = &fake_verbs.device[0];
    const char *value = strchr(word, '=');
    int number = value ? atoi(value + 1) : 0;

    if (apply_habit(word) || apply_to_port(word, value) || apply_to_device(word, value))
        return;
    if (strncmp(word, "hurry=", 6) == 0)
        fake_verbs.hurry = (uint32_t)number;
    else if (strncmp(word, "max_cqe=", 8) == 0)
        device->max_cqe = number;
    else if (strncmp(word, "max_wr=", 7) == 0)
        device->max_qp_wr = number;
    else if (strncmp(word, "max_srq=", 8) == 0)
        device->max_srq = number;
    else if (strncmp(word, "max_inline=", 11) == 0)
        device->max_inline = (uint32_t)number;
    else {
        fprintf(stderr, "pretend RDMA device: SLUICE_FAKE_VERBS has the word '%s'\n", word);
        abort();
    }
}

void fake_words_apply(void)
{
    const char *words = getenv("SLUICE_FAKE_VERBS");
    char copy[1000];
    char *rest = NULL;

    snprintf(copy, sizeof(copy), "%s", words ? words : "");
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        apply_word(word);
}
