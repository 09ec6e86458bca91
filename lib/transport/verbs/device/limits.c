/* SPDX-License-Identifier: MIT */
/*
 * Limits of a device. Guarantee: each limit is the device's own if it reports one. A limit of 0
 * that cannot be 0 counts as not reported, as some drivers leave such fields empty. Then a value
 * that all devices support is used, and logged once for each context.
 */
#include "config.h"

#include "transport/verbs/device/device.h"

/* Maximum of channel_attr.max_inline, and the smallest size that is worth trying. */
#define INLINE_MOST 1024
#define INLINE_LEAST 16
/*
 * Maximum entries of the completion queues of a channel or multichannel: about 64 MiB on the
 * device.
 */
#define CQ_ENTRIES_MOST (UINT32_C(1) << 20)
/* Limits assumed if the device reports none. A message has at most 2^31 bytes. */
#define MESSAGE_UNKNOWN (UINT32_C(1) << 30)
#define QP_WR_UNKNOWN 256
#define CQE_UNKNOWN 1024
#define SGE_UNKNOWN 1
#define READS_UNKNOWN 1
#define SIW_VENDOR 0x626d74 /* "bmt" */

/*
 * Finds how much inline data a request can have. Devices do not report it, so this tries and
 * halves.
 */
static uint32_t try_inline(struct ibv_pd *pd, struct ibv_cq *cq)
{
    for (uint32_t bytes = INLINE_MOST; bytes >= INLINE_LEAST; bytes /= 2) {
        struct ibv_qp_init_attr attr = {
            .send_cq = cq,
            .recv_cq = cq,
            .qp_type = IBV_QPT_RC,
            .cap = {.max_send_wr = 1,
                    .max_recv_wr = 1,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = bytes},
        };
        struct ibv_qp *qp = ibv_create_qp(pd, &attr);

        if (qp) {
            ibv_destroy_qp(qp);
            return slu_verbs_min(attr.cap.max_inline_data, INLINE_MOST);
        }
    }
    return 0;
}

static uint32_t probe_inline(struct ibv_context *ibv)
{
    struct ibv_pd *pd = ibv_alloc_pd(ibv);
    struct ibv_cq *cq = pd ? ibv_create_cq(ibv, 2, NULL, NULL, 0) : NULL;
    uint32_t bytes = cq ? try_inline(pd, cq) : 0;

    if (cq)
        ibv_destroy_cq(cq);
    if (pd)
        ibv_dealloc_pd(pd);
    return bytes;
}

/* Returns the reported limit, or the assumed one, which is logged. */
static uint32_t known(const struct slu_verbs_context *context, const char *what, int64_t reported,
                      uint32_t otherwise)
{
    if (reported > 0)
        return (uint32_t)reported;
    slu_log(SLUICE_LOG_INFO, "device %s does not say %s: %u is assumed", context->base.device, what,
            otherwise);
    return otherwise;
}

/* Returns the entries of several queues together, limited because they cost memory. */
static uint32_t cq_entries(uint32_t max_cqe, int queues)
{
    uint64_t all = (uint64_t)max_cqe * (queues > 0 ? (uint32_t)queues : 1);

    if (all > CQ_ENTRIES_MOST)
        all = CQ_ENTRIES_MOST;
    return all > max_cqe ? (uint32_t)all : max_cqe;
}

static enum sluice_atomics atomics_of(enum ibv_atomic_cap has)
{
    if (has == IBV_ATOMIC_NONE)
        return SLUICE_ATOMICS_NONE;
    return has == IBV_ATOMIC_GLOB ? SLUICE_ATOMICS_GLOBAL : SLUICE_ATOMICS_DEVICE;
}

static void set_depths(struct slu_verbs_context *context, const struct ibv_device_attr *attr)
{
    struct slu_tcontext *base = &context->base;
    uint32_t wrs =
        known(context, "how many requests a queue holds", attr->max_qp_wr, QP_WR_UNKNOWN);
    uint32_t cqe =
        known(context, "how many entries a completion queue has", attr->max_cqe, CQE_UNKNOWN);

    base->max_cq_depth = cqe;
    base->max_cq_entries = cq_entries(cqe, attr->max_cq);
    /* Both queues of a queue pair, and a probe, share a queue of the device: see queues/parts.c. */
    base->max_receive_depth = slu_verbs_min(wrs, (cqe - 1) / 2);
    base->max_send_depth = slu_verbs_min(wrs - 1, (cqe - 1) / 2);
}

/* A device that does not report how many elements its shared receives have has one at least. */
static void set_pools(struct slu_tcontext *base, const struct ibv_device_attr *attr)
{
    if (attr->max_srq <= 0 || attr->max_srq_wr <= 0)
        return;
    base->max_pool_depth = slu_verbs_min((uint32_t)attr->max_srq_wr, base->max_cq_depth / 2);
    base->max_pool_sge = attr->max_srq_sge > 0 ? (uint32_t)attr->max_srq_sge : SGE_UNKNOWN;
}

static void set_reads(struct slu_verbs_context *context, const struct ibv_device_attr *attr)
{
    uint32_t answers = known(context, "how many reads of a peer it answers at a time",
                             attr->max_qp_rd_atom, READS_UNKNOWN);
    uint32_t starts = known(context, "how many reads it starts at a time",
                            attr->max_qp_init_rd_atom, READS_UNKNOWN);

    context->base.max_read_depth = slu_verbs_min(slu_verbs_min(answers, starts), UINT8_MAX);
}

/*
 * Limits siw, the kernel's soft iWARP, to what it can do. It reports messages of 2^32 - 1 bytes,
 * but counts the bytes of a request in an int. If a request with several elements does not fit into
 * TCP's buffer at once, siw of Linux 6.1 walks past the end of the list, in the kernel.
 */
static void limit_siw(struct slu_tcontext *base, const struct ibv_device_attr *attr)
{
    if (attr->vendor_id != SIW_VENDOR)
        return;
    base->max_message = slu_verbs_min((uint32_t)base->max_message, MESSAGE_UNKNOWN);
    base->max_sge = base->max_read_sge = 1;
}

void slu_verbs_limits_set(struct slu_verbs_context *context, const struct ibv_device_attr *attr,
                          const struct ibv_port_attr *port)
{
    struct slu_tcontext *base = &context->base;

    set_depths(context, attr);
    set_pools(base, attr);
    set_reads(context, attr);
    base->max_sge = known(context, "how many elements a request has", attr->max_sge, SGE_UNKNOWN);
    /* Some devices take shorter lists for reads; 0 means not reported. */
    base->max_read_sge = base->max_sge;
    if (attr->max_sge_rd > 0)
        base->max_read_sge = slu_verbs_min(base->max_sge, (uint32_t)attr->max_sge_rd);
    base->atomics = atomics_of(attr->atomic_cap);
    base->max_message =
        known(context, "how long a message can be", port->max_msg_sz, MESSAGE_UNKNOWN);
    if (slu_verbs_is_iwarp(context->ibv->device))
        limit_siw(base, attr);
    base->max_region = attr->max_mr_size;
    base->max_channels = attr->max_qp > 0 ? (uint32_t)attr->max_qp : 0;
    base->max_regions = attr->max_mr > 0 ? (uint32_t)attr->max_mr : 0;
    /* Only logs an unknown MTU; the value itself is read with the path, see path.c. */
    known(context, "its MTU", port->active_mtu ? slu_verbs_mtu_bytes(port->active_mtu) : 0,
          slu_verbs_mtu_bytes(SLU_VERBS_MTU_UNKNOWN));
    base->max_inline = probe_inline(context->ibv);
}
