/* SPDX-License-Identifier: MIT */
/*
 * Posting. Guarantee: a chain rings the doorbell once per 16 requests, copies
 * no SGE list, allocates nothing, and on failure names the first request that
 * was not taken.
 */
#include "config.h"

#include <endian.h>
#include <string.h>

#include "transport/verbs/pairs/pairs.h"
#include "transport/verbs/queues/queues.h"
#include "transport/verbs/words/words.h"

#define BATCH 16

_Static_assert(sizeof(struct sluice_sge) == sizeof(struct ibv_sge), "an SGE is an ibv_sge");
_Static_assert(offsetof(struct sluice_sge, addr) == offsetof(struct ibv_sge, addr),
               "an SGE is an ibv_sge");
_Static_assert(offsetof(struct sluice_sge, length) == offsetof(struct ibv_sge, length),
               "an SGE is an ibv_sge");
_Static_assert(offsetof(struct sluice_sge, lkey) == offsetof(struct ibv_sge, lkey),
               "an SGE is an ibv_sge");

/* Returns the same list (struct sluice_sge may alias). libibverbs does not write to it. */
static struct ibv_sge *ibv_sges_of(const struct sluice_sge *sges)
{
    return (struct ibv_sge *)(uintptr_t)sges;
}

/*
 * Counts elements without empty ones at the end, down to 0 for an empty message: the hardware of
 * mlx4 takes a length of 0 as 2^31, and its receives pass it on.
 */
static inline int count_sges(const struct sluice_sge *sges, uint32_t count)
{
    while (count > 0 && SLU_UNLIKELY(sges[count - 1].length == 0))
        count--;
    return (int)count;
}

/*
 * Gives a request without elements an empty one. libsiw refuses a receive without elements, and
 * reads with the element that an earlier request left in its queue.
 */
static void add_element(struct ibv_sge **list, int *count)
{
    static struct ibv_sge empty;

    if (*count == 0) {
        *list = &empty;
        *count = 1;
    }
}

static enum ibv_wr_opcode opcode_of(const struct slu_send_wr *wr)
{
    /* Without and with an immediate. */
    static const uint8_t opcodes[][2] = {
        [SLUICE_OP_SEND] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM},
        [SLUICE_OP_WRITE] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM},
        [SLUICE_OP_READ] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_READ},
        [SLUICE_OP_COMPARE_SWAP] = {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP},
        [SLUICE_OP_FETCH_ADD] = {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD},
    };

    return (enum ibv_wr_opcode)opcodes[wr->opcode][wr->flags & SLUICE_IMMEDIATE];
}

_Static_assert(SLUICE_IMMEDIATE == 1, "opcode_of() and flags_of() count on these values");
_Static_assert(SLUICE_FENCE >> 1 == IBV_SEND_FENCE, "as above");
_Static_assert(SLUICE_SOLICITED == IBV_SEND_SOLICITED, "as above");
_Static_assert(SLUICE_INLINE == IBV_SEND_INLINE, "as above");
_Static_assert(SLU_SIGNALED >> 15 == IBV_SEND_SIGNALED, "as above");

static unsigned int flags_of(uint32_t flags)
{
    return (flags & (SLUICE_SOLICITED | SLUICE_INLINE)) | (flags & SLUICE_FENCE) >> 1 |
           (flags & SLU_SIGNALED) >> 15;
}

static void translate_atomic(const struct slu_send_wr *from, struct ibv_send_wr *to)
{
    to->wr.atomic.remote_addr = from->remote_addr;
    to->wr.atomic.rkey = from->rkey;
    to->wr.atomic.compare_add = from->operand[0];
    to->wr.atomic.swap = from->operand[1];
}

/*
 * Translates a request. Fields that an RC operation does not use stay unset: no provider reads
 * them.
 */
static void translate_send(const struct slu_send_wr *from, struct ibv_send_wr *to)
{
    to->wr_id = from->id;
    to->next = to + 1;
    to->sg_list = ibv_sges_of(from->sges);
    to->num_sge = count_sges(from->sges, from->sge_count);
    to->opcode = opcode_of(from);
    to->send_flags = flags_of(from->flags);
    to->imm_data = htobe32(from->immediate);
    if (SLU_UNLIKELY(slu_opcode_is_atomic(from->opcode))) {
        translate_atomic(from, to);
        return;
    }
    to->wr.rdma.remote_addr = from->remote_addr;
    to->wr.rdma.rkey = from->rkey;
}

/*
 * EACCES: posting is a write(2) on some devices, which the kernel refuses after a change of user.
 */
static int fail_post(const struct slu_qp *base, const char *what, int err)
{
    err = slu_verbs_errno(err);
    return slu_fail(err, "%s refused a %s on queue pair %u: %s%s", base->pd->context->device, what,
                    slu_verbs_const_qp_of(base)->ibv->qp_num, strerror(err),
                    err == EACCES ? "; did the process change its user or group?" : "");
}

static bool find_read(const struct slu_send_wr *chain)
{
    while (chain && chain->opcode != SLUICE_OP_READ && !slu_opcode_is_atomic(chain->opcode))
        chain = chain->next;
    return chain;
}

/* Fails a read that the device would let wait for ever. */
static int fail_read(const struct slu_qp *base)
{
    return slu_fail(EOPNOTSUPP,
                    "queue pair %u of %s was connected over rdma_cm with no reads or atomic "
                    "operations: the peer answers none",
                    slu_verbs_const_qp_of(base)->ibv->qp_num, base->pd->context->device);
}

_Static_assert(IBV_WR_RDMA_WRITE_WITH_IMM == 1 && IBV_WR_SEND == 2 && IBV_WR_SEND_WITH_IMM == 3,
               "neighbours");

/* Returns whether the request uses up a receive of the peer. */
static inline bool is_message(enum ibv_wr_opcode opcode)
{
    return opcode - 1U < 3;
}

int slu_verbs_post_send(struct slu_qp *base, struct slu_send_wr *chain, struct slu_send_wr **bad)
{
    struct slu_verbs_qp *qp = slu_verbs_qp_of(base);
    struct ibv_send_wr batch[BATCH], *ibv_bad;

    if (SLU_UNLIKELY(!qp->link.reads) && find_read(chain)) {
        *bad = chain;
        return fail_read(base);
    }
    if (SLU_UNLIKELY(qp->own.wants) && is_message(opcode_of(chain)))
        slu_verbs_hint_await(qp, (chain->flags & SLU_BLOCKING) != 0);
    while (chain) {
        struct slu_send_wr *first = chain;
        uint32_t count = 0;
        int err;

        for (; chain && count < BATCH; chain = chain->next) {
            translate_send(chain, &batch[count]);
            if (SLU_UNLIKELY(qp->path.iwarp) && chain->opcode == SLUICE_OP_READ)
                add_element(&batch[count].sg_list, &batch[count].num_sge);
            qp->own.sends += is_message(batch[count++].opcode);
        }
        batch[count - 1].next = NULL;
        ibv_bad = batch;
        err = ibv_post_send(qp->ibv, batch, &ibv_bad);
        if (SLU_LIKELY(!err))
            continue;
        for (; ibv_bad > batch; ibv_bad--)
            first = first->next;
        *bad = first;
        return fail_post(base, "send-queue request", err);
    }
    return 0;
}

static inline void translate(const struct slu_receive_wr *from, struct ibv_recv_wr *to)
{
    to->wr_id = from->id;
    to->next = to + 1;
    to->sg_list = ibv_sges_of(from->sges);
    to->num_sge = count_sges(from->sges, from->sge_count);
}

void slu_verbs_translate_receive(const struct slu_receive_wr *from, struct ibv_recv_wr *to,
                                 bool iwarp)
{
    translate(from, to);
    if (SLU_UNLIKELY(iwarp))
        add_element(&to->sg_list, &to->num_sge);
}

int slu_verbs_post_receive(struct slu_qp *base, struct slu_receive_wr *chain,
                           struct slu_receive_wr **bad)
{
    struct slu_verbs_qp *qp = slu_verbs_qp_of(base);
    struct ibv_recv_wr batch[BATCH], *ibv_bad;

    while (chain) {
        struct slu_receive_wr *first = chain;
        uint32_t count = 0;
        int err;

        for (; chain && count < BATCH; chain = chain->next) {
            translate(chain, &batch[count]);
            if (SLU_UNLIKELY(qp->path.iwarp))
                add_element(&batch[count].sg_list, &batch[count].num_sge);
            count++;
        }
        batch[count - 1].next = NULL;
        ibv_bad = batch;
        err = ibv_post_recv(qp->ibv, batch, &ibv_bad);
        if (SLU_LIKELY(!err)) {
            slu_verbs_hint_received(qp, count);
            continue;
        }
        for (; ibv_bad > batch; ibv_bad--)
            first = first->next;
        *bad = first;
        return fail_post(base, "receive", err);
    }
    return 0;
}

/*
 * Probes with a write or read of no bytes. These need no key (C9-88 of the specification), but the
 * peer's queue pair must permit the operation. A peer that is not connected yet drops it, and the
 * device sends it again. A hint in flight serves as a probe. On iWARP a write completes when TCP
 * has it, so there only a read shows that the peer is alive.
 */
int slu_verbs_qp_probe(struct slu_qp *base, uint64_t id)
{
    struct slu_verbs_qp *qp = slu_verbs_qp_of(base);
    bool write = (qp->link.access & SLUICE_ACCESS_REMOTE_WRITE) != 0;
    struct ibv_send_wr wr = {.opcode = write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ};
    int err;

    if (!write && !qp->link.reads)
        return fail_read(base);
    if (qp->path.iwarp)
        add_element(&wr.sg_list, &wr.num_sge);
    qp->own.probe = id;
    err = qp->own.in_flight ? 0 : slu_verbs_own_post(qp, &wr);
    return err ? fail_post(base, "send-queue request", err) : 0;
}
