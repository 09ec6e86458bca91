/* SPDX-License-Identifier: MIT */
/*
 * How peers reach a port: its state, MTU and LID, its best GID or the one that was asked for, and
 * its partition keys. Guarantee: a path that was read is of an active port, and on Ethernet it has
 * a GID.
 */
#include "config.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/verbs/device/device.h"

/*
 * How long a path is cached. Reading a port takes about 0.4 ms, as long as creating a queue pair,
 * and programs create thousands of them.
 */
#define PATH_LIFE SLUICE_MS(10)

_Static_assert((int)SLUICE_LINK_INFINIBAND == IBV_LINK_LAYER_INFINIBAND &&
                   (int)SLUICE_LINK_ETHERNET == IBV_LINK_LAYER_ETHERNET,
               "link layers have the numbers of libibverbs");

/* Scopes of GIDs in ascending order: how far their packets are routed. */
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

    memcpy(&address, gid->raw, sizeof address);
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
        return 1; /* InfiniBand: the first one was assigned by the subnet manager */
    }
}

/*
 * Returns the GID with the highest rank. Of equal ones it takes the lowest index, which does not
 * change when addresses are added.
 */
static const struct ibv_gid_entry *best_gid(const struct ibv_gid_entry *entries, size_t count,
                                            uint8_t port)
{
    const struct ibv_gid_entry *best = NULL;
    int best_rank = 0;

    for (size_t i = 0; i < count; i++) {
        /* An address vector has 8 bits for the index. */
        bool usable = entries[i].port_num == port && entries[i].gid_index <= UINT8_MAX;
        int rank = usable ? rank_gid(&entries[i]) : 0;

        if (rank > best_rank ||
            (best && rank == best_rank && rank > 0 && entries[i].gid_index < best->gid_index)) {
            best = &entries[i];
            best_rank = rank;
        }
    }
    return best;
}

/* Writes "0 RoCE v2 fe80::1; 1 RoCE v2 192.0.2.1", as far as there is room. */
static void list_gids(const struct ibv_gid_entry *entries, size_t count, uint8_t port, char *text,
                      size_t size)
{
    size_t used = (size_t)snprintf(text, size, "nothing");
    bool first = true;

    for (size_t i = 0; i < count; i++) {
        char gid[SLU_VERBS_ADDRESS_CHARS];

        if (entries[i].port_num != port)
            continue;
        if (!first && used + sizeof gid + 16 > size) {
            snprintf(text + used, size - used, "; ...");
            return;
        }
        slu_verbs_gid_text(entries[i].gid.raw, entries[i].gid_type, gid);
        used = first ? 0 : used;
        used += (size_t)snprintf(text + used, size - used, "%s%u %s", first ? "" : "; ",
                                 entries[i].gid_index, gid);
        first = false;
    }
}

static const struct ibv_gid_entry *given_gid(const struct ibv_gid_entry *entries, size_t count,
                                             uint8_t port, uint32_t index)
{
    for (size_t i = 0; i < count; i++) {
        if (entries[i].port_num == port && entries[i].gid_index == index)
            return &entries[i];
    }
    return NULL;
}

static int fail_gid(const char *device, uint8_t port, uint32_t index, uint32_t table,
                    const struct ibv_gid_entry *entries, size_t count)
{
    char list[200];

    list_gids(entries, count, port, list, sizeof list);
    if (table > 0 && index >= table)
        return slu_fail(EINVAL, "gid_index %u: port %u of %s has indices 0..%u; there is %s", index,
                        port, device, table - 1, list);
    return slu_fail(EADDRNOTAVAIL,
                    "gid_index %u: this entry of port %u of %s is empty; there is %s", index, port,
                    device, list);
}

/*
 * Chooses a GID. The table is read with one system call; reading entries singly takes a thousand on
 * some devices. table: length of the port's table. index: -1 for the best.
 */
static int choose_gid(struct ibv_context *ibv, uint8_t port, uint32_t gid_entries, uint32_t table,
                      int32_t index, struct slu_verbs_path *path)
{
    const char *device = ibv_get_device_name(ibv->device);
    struct ibv_gid_entry *entries = calloc(gid_entries ? gid_entries : 1, sizeof *entries);
    const struct ibv_gid_entry *chosen;
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
    chosen = index < 0 ? best_gid(entries, (size_t)count, port)
                       : given_gid(entries, (size_t)count, port, (uint32_t)index);
    if (index >= 0 && !chosen)
        err = fail_gid(device, port, (uint32_t)index, table, entries, (size_t)count);
    path->has_gid = chosen != NULL;
    if (chosen)
        path->gid = *chosen;
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

    memcpy(&address, gid, sizeof address);
    if (IN6_IS_ADDR_V4MAPPED(&address))
        inet_ntop(AF_INET, gid + 12, ip, sizeof ip);
    else
        inet_ntop(AF_INET6, gid, ip, sizeof ip);
    snprintf(text, SLU_VERBS_ADDRESS_CHARS, "%s %s", kind, ip);
}

uint32_t slu_verbs_gid_entries(struct ibv_context *ibv, uint32_t ports)
{
    uint32_t entries = 0;

    for (uint32_t port = 1; port <= ports; port++) {
        struct ibv_port_attr attr;

        /* The kernel refuses a buffer that is not longer than the entries it finds. */
        if (ibv_query_port(ibv, (uint8_t)port, &attr) == 0 && attr.gid_tbl_len > 0)
            entries += (uint32_t)attr.gid_tbl_len + 1;
    }
    return entries;
}

/*
 * Returns an entry of the table of partition keys, or 0, which is no valid key, if it cannot be
 * read.
 */
static uint16_t read_pkey(struct ibv_context *ibv, uint8_t port, uint16_t index)
{
    __be16 pkey = 0;

    return ibv_query_pkey(ibv, port, index, &pkey) == 0 ? be16toh(pkey) : 0;
}

static int read_path(struct ibv_context *ibv, uint8_t port, uint32_t gid_entries, int32_t gid_index,
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
        return slu_fail(ENETDOWN,
                        "port %u of %s is %s, not active; see to its link or network interface",
                        port, device, ibv_port_state_str(attr.state));
    read.mtu = attr.active_mtu ? attr.active_mtu : SLU_VERBS_MTU_UNKNOWN;
    read.lid = attr.lid;
    /* Drivers older than RoCE leave the link layer unspecified. */
    read.link_layer = attr.link_layer == IBV_LINK_LAYER_ETHERNET ? IBV_LINK_LAYER_ETHERNET
                                                                 : IBV_LINK_LAYER_INFINIBAND;
    read.iwarp = slu_verbs_is_iwarp(ibv->device);
    read.lmc = attr.lmc;
    read.grh_required = attr.flags & IBV_QPF_GRH_REQUIRED;
    read.pkey_entries = attr.pkey_tbl_len;
    read.pkey = read_pkey(ibv, port, 0);
    if (!read.iwarp)
        err = choose_gid(ibv, port, gid_entries, (uint32_t)attr.gid_tbl_len, gid_index, &read);
    else if (gid_index >= 0)
        err = slu_fail(EINVAL, "gid_index %d: device %s is iWARP, which has no GIDs", gid_index,
                       device);
    if (err)
        return err;
    if (!read.has_gid && !read.iwarp && (read.link_layer == IBV_LINK_LAYER_ETHERNET || !read.lid))
        return slu_fail(EADDRNOTAVAIL,
                        "port %u of %s has no address; give its network interface one", port,
                        device);
    *path = read;
    return 0;
}

int slu_verbs_path_read(struct ibv_context *ibv, uint8_t port, uint32_t gid_entries,
                        struct slu_verbs_path *path)
{
    return read_path(ibv, port, gid_entries, -1, path);
}

int slu_verbs_path_of(struct slu_verbs_context *context, struct slu_verbs_path *path)
{
    int64_t now = slu_now();
    int err = 0;

    pthread_mutex_lock(&context->path_lock);
    if (now >= context->path_expires) {
        err = read_path(context->ibv, context->port, context->gid_entries, context->gid_index,
                        &context->path);
        context->path.changes = context->path_changes;
        context->path_expires = err ? 0 : now + PATH_LIFE;
    }
    if (!err)
        *path = context->path;
    pthread_mutex_unlock(&context->path_lock);
    return err;
}

void slu_verbs_path_forget(struct slu_verbs_context *context)
{
    pthread_mutex_lock(&context->path_lock);
    context->path_expires = 0;
    context->path_changes++;
    pthread_mutex_unlock(&context->path_lock);
}

static int choose_mtu(struct slu_verbs_qp *qp, uint8_t port)
{
    uint32_t wanted = qp->attr.path_mtu;

    qp->mtu = qp->path.mtu;
    if (wanted > slu_verbs_mtu_bytes(qp->path.mtu))
        return slu_fail(
            EINVAL, "sluice_channel_attr.path_mtu is %u, the active MTU of port %u of %s is %u",
            wanted, port, qp->base.pd->context->device, slu_verbs_mtu_bytes(qp->path.mtu));
    while (wanted && slu_verbs_mtu_bytes(qp->mtu) > wanted)
        qp->mtu--;
    return 0;
}

static int fail_pkey(const struct slu_verbs_qp *qp, struct ibv_context *ibv, uint8_t port)
{
    char list[120] = "nothing that can be read";
    size_t used = 0;

    for (uint16_t i = 0; i < qp->path.pkey_entries && used + 16 < sizeof list; i++) {
        uint16_t pkey = read_pkey(ibv, port, i);

        if (pkey)
            used +=
                (size_t)snprintf(list + used, sizeof list - used, "%s%#x", used ? ", " : "", pkey);
    }
    return slu_fail(EINVAL, "sluice_channel_attr.pkey is %#x, the table of port %u of %s has %s",
                    qp->attr.pkey, port, qp->base.pd->context->device, list);
}

/*
 * Chooses the entry of a partition key. If a partition is listed twice, takes the entry with full
 * membership, which can communicate with all members.
 */
static int choose_pkey(struct slu_verbs_qp *qp, struct ibv_context *ibv, uint8_t port)
{
    qp->pkey = 0;
    qp->pkey_index = 0;
    if (!qp->attr.pkey) {
        qp->pkey = qp->path.pkey;
        return 0;
    }
    for (uint16_t i = 0; i < qp->path.pkey_entries && !(qp->pkey & SLU_VERBS_PKEY_FULL); i++) {
        uint16_t pkey = read_pkey(ibv, port, i);

        if (((pkey ^ qp->attr.pkey) & ~SLU_VERBS_PKEY_FULL) != 0 || pkey <= qp->pkey)
            continue;
        qp->pkey = pkey;
        qp->pkey_index = i;
    }
    return qp->pkey ? 0 : fail_pkey(qp, ibv, port);
}

int slu_verbs_path_choose(struct slu_verbs_qp *qp)
{
    const struct slu_verbs_context *context = slu_verbs_context_of(qp->base.pd->context);
    const char *device = context->base.device;
    uint32_t lids = qp->path.link_layer == IBV_LINK_LAYER_INFINIBAND ? 1U << qp->path.lmc : 1;
    int err = choose_mtu(qp, context->port);

    if (!err)
        err = choose_pkey(qp, context->ibv, context->port);
    if (!err && qp->attr.path_bits >= lids)
        err = slu_fail(EINVAL, "sluice_channel_attr.path_bits is %u, port %u of %s has 0..%u",
                       qp->attr.path_bits, context->port, device, lids - 1);
    if (!err && (qp->attr.flags & SLUICE_CHANNEL_GLOBAL) && !qp->path.has_gid)
        err = slu_fail(EADDRNOTAVAIL, "SLUICE_CHANNEL_GLOBAL: port %u of %s has no GID",
                       context->port, device);
    return err;
}
