/* SPDX-License-Identifier: MIT */
/*
 * How peers reach a port: its state, MTU and LID, its GID, which gids.c chooses, and its partition
 * keys. Guarantee: a path that was read is of an active port, and on Ethernet it has a GID.
 */
#include "config.h"

#include <endian.h>
#include <stdio.h>
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
        err = slu_verbs_gid_choose(ibv, port, gid_entries, (uint32_t)attr.gid_tbl_len, gid_index,
                                   &read);
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
