/* SPDX-License-Identifier: MIT */
/*
 * How peers reach a port: its state, MTU and LID, and the best of its GIDs.
 * Guarantee: a path that was read is of an active port, and on Ethernet it has
 * a GID.
 */
#include "config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs.h"

/* A port takes some 0.4 ms to read, a queue pair is made as fast, and they come by the thousand. */
#define PATH_LIFE SLUICE_MS(10)

/* What a GID is worth, in ascending order: how far packets with it get. */
enum scope { SCOPE_LOOPBACK, SCOPE_LINK, SCOPE_IPV6, SCOPE_IPV4, SCOPES };

static enum scope scope_of_ipv4(const uint8_t ip[4])
{
    if (ip[0] == 127)
        return SCOPE_LOOPBACK;
    return ip[0] == 169 && ip[1] == 254 ? SCOPE_LINK : SCOPE_IPV4;
}

static enum scope scope_of(const union ibv_gid *gid)
{
    struct in6_addr address;

    memcpy(&address, gid->raw, sizeof(address));
    if (IN6_IS_ADDR_V4MAPPED(&address))
        return scope_of_ipv4(gid->raw + 12);
    if (IN6_IS_ADDR_LOOPBACK(&address))
        return SCOPE_LOOPBACK;
    return IN6_IS_ADDR_LINKLOCAL(&address) ? SCOPE_LINK : SCOPE_IPV6;
}

/* RoCE v1 stays within one Ethernet segment, so any v2 address is preferred to it. */
static int rank_gid(const struct ibv_gid_entry *entry)
{
    switch (entry->gid_type) {
    case IBV_GID_TYPE_ROCE_V2:
        return 1 + SCOPES + (int)scope_of(&entry->gid);
    case IBV_GID_TYPE_ROCE_V1:
        return 1 + (int)scope_of(&entry->gid);
    default:
        return 1; /* InfiniBand: the first one is what the subnet manager gave */
    }
}

/* Of equal ones the lowest index, which is the one that stays when addresses are added. */
static const struct ibv_gid_entry *best_gid(const struct ibv_gid_entry *entries, size_t count,
                                            uint8_t port)
{
    const struct ibv_gid_entry *best = NULL;
    int best_rank = 0;

    for (size_t i = 0; i < count; i++) {
        int rank = entries[i].port_num == port ? rank_gid(&entries[i]) : 0;

        if (rank > best_rank ||
            (best && rank == best_rank && rank > 0 && entries[i].gid_index < best->gid_index)) {
            best = &entries[i];
            best_rank = rank;
        }
    }
    return best;
}

/* The table comes with one system call; entry by entry takes a thousand on some devices. */
static int choose_gid(struct ibv_context *ibv, uint8_t port, uint32_t gid_entries,
                      struct slu_verbs_path *path)
{
    const char *device = ibv_get_device_name(ibv->device);
    struct ibv_gid_entry *entries = calloc(gid_entries ? gid_entries : 1, sizeof(*entries));
    const struct ibv_gid_entry *best;
    ssize_t count;
    int err = 0;

    if (!entries)
        return slu_fail(ENOMEM, "no memory for the GID table of %s", device);
    count = ibv_query_gid_table(ibv, entries, gid_entries, 0);
    if (count < 0) {
        int code = slu_verbs_errno((int)count);

        err = slu_fail(code, "cannot read the GID table of %s: %s", device, strerror(code));
        goto free_entries;
    }
    best = best_gid(entries, (size_t)count, port);
    path->has_gid = best != NULL;
    if (best)
        path->gid = *best;
free_entries:
    free(entries);
    return err;
}

void slu_verbs_gid_text(const uint8_t gid[16], uint32_t type, char text[SLU_VERBS_ADDRESS_CHARS])
{
    const char *kind = type == IBV_GID_TYPE_ROCE_V2   ? "RoCE v2"
                       : type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1"
                                                      : "GID";
    char ip[INET6_ADDRSTRLEN] = "?";
    struct in6_addr address;

    memcpy(&address, gid, sizeof(address));
    if (IN6_IS_ADDR_V4MAPPED(&address))
        inet_ntop(AF_INET, gid + 12, ip, sizeof(ip));
    else
        inet_ntop(AF_INET6, gid, ip, sizeof(ip));
    snprintf(text, SLU_VERBS_ADDRESS_CHARS, "%s %s", kind, ip);
}

uint32_t slu_verbs_gid_entries(struct ibv_context *ibv, uint32_t ports)
{
    uint32_t entries = 0;

    for (uint32_t port = 1; port <= ports; port++) {
        struct ibv_port_attr attr;

        /* The kernel refuses a table that is not longer than what it finds. */
        if (ibv_query_port(ibv, (uint8_t)port, &attr) == 0 && attr.gid_tbl_len > 0)
            entries += (uint32_t)attr.gid_tbl_len + 1;
    }
    return entries;
}

int slu_verbs_path_read(struct ibv_context *ibv, uint8_t port, uint32_t gid_entries,
                        struct slu_verbs_path *path)
{
    const char *device = ibv_get_device_name(ibv->device);
    struct slu_verbs_path read = {.has_gid = false};
    struct ibv_port_attr attr;
    int err = ibv_query_port(ibv, port, &attr);

    if (err) {
        err = slu_verbs_errno(err);
        return slu_fail(err, "cannot query port %u of %s: %s", port, device, strerror(err));
    }
    if (attr.state != IBV_PORT_ACTIVE)
        return slu_fail(ENETDOWN, "port %u of %s is %s, not active", port, device,
                        ibv_port_state_str(attr.state));
    read.mtu = attr.active_mtu;
    read.lid = attr.lid;
    /* Drivers older than RoCE leave the link layer unspecified. */
    read.link_layer = attr.link_layer == IBV_LINK_LAYER_ETHERNET ? IBV_LINK_LAYER_ETHERNET
                                                                 : IBV_LINK_LAYER_INFINIBAND;
    read.grh_required = attr.flags & IBV_QPF_GRH_REQUIRED;
    err = choose_gid(ibv, port, gid_entries, &read);
    if (err)
        return err;
    if (!read.has_gid && (read.link_layer == IBV_LINK_LAYER_ETHERNET || !read.lid))
        return slu_fail(EADDRNOTAVAIL,
                        "port %u of %s has no address; give its network interface one", port,
                        device);
    *path = read;
    return 0;
}

int slu_verbs_path_of(struct slu_verbs_context *context, struct slu_verbs_path *path)
{
    int64_t now = slu_now();
    int err = 0;

    pthread_mutex_lock(&context->path_lock);
    if (now >= context->path_expires) {
        err =
            slu_verbs_path_read(context->ibv, context->port, context->gid_entries, &context->path);
        context->path_expires = err ? 0 : now + PATH_LIFE;
    }
    if (!err)
        *path = context->path;
    pthread_mutex_unlock(&context->path_lock);
    return err;
}
