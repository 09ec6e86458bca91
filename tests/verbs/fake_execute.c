/* SPDX-License-Identifier: MIT */
/*
 * Executes a request: finds the peer, checks on both sides what a device checks, in its order, and
 * moves the bytes. A request is done whole or not at all.
 */
#include "fake_device.h"

#define MAX_SGE 64

/* Pieces of memory, one after the other. */
struct pieces {
    uint32_t count;
    uint64_t length;
    uint8_t *at[MAX_SGE];
    uint64_t bytes[MAX_SGE];
};

/* Returns whether the peer sends from the address that we send to: rxe drops other packets. */
static bool sends_from(const struct fake_qp *to, const struct fake_port *port,
                       const uint8_t gid[16], uint32_t type)
{
    const struct fake_gid *from = &port->gid[to->attr.ah_attr.grh.sgid_index];

    return from->type == type && memcmp(from->raw, gid, 16) == 0;
}

/* Checks our port, the peer's, and the path between them. */
static bool is_reached(struct fake_qp *from, struct fake_qp *to)
{
    const struct ibv_ah_attr *ah = &from->attr.ah_attr;
    const struct fake_port *ours = fake_port_of(from->ibv.context, from->attr.port_num);
    const struct fake_port *theirs = fake_port_of(to->ibv.context, to->attr.port_num);
    uint16_t our_key, their_key;

    if (!theirs || ours->state != IBV_PORT_ACTIVE || theirs->state != IBV_PORT_ACTIVE ||
        ours->link_layer != theirs->link_layer || from->cut || to->cut)
        return false;
    our_key = ours->pkey[from->attr.pkey_index];
    their_key = theirs->pkey[to->attr.pkey_index];
    if ((our_key ^ their_key) & 0x7fff || !((our_key | their_key) & 0x8000))
        return false;
    if (!ah->is_global)
        return theirs->lid == ah->dlid >> theirs->lmc << theirs->lmc;
    return ours->gid[ah->grh.sgid_index].type &&
           sends_from(to, theirs, ah->grh.dgid.raw, ours->gid[ah->grh.sgid_index].type);
}

/* Returns NULL if no peer answers. */
static struct fake_qp *find_peer(struct fake_qp *qp)
{
    struct fake_qp *peer = fake_qp_find(qp->attr.dest_qp_num);

    if (!peer || (peer->state != IBV_QPS_RTR && peer->state != IBV_QPS_RTS) ||
        peer->attr.dest_qp_num != qp->ibv.qp_num || !is_reached(qp, peer) || !is_reached(peer, qp))
        return NULL;
    if (qp->send_psn != peer->receive_psn) {
        fake_verbs.psn_mismatches++;
        return NULL;
    }
    return peer;
}

static uint32_t vendor_of(enum ibv_wc_status status)
{
    return fake_verbs.rxe_statuses ? 0 : 0x50 + (uint32_t)status;
}

static void fail(struct fake_qp *qp, enum fake_queue queue, enum ibv_wc_status status,
                 enum ibv_wc_status rxe_status)
{
    if (fake_verbs.rxe_statuses)
        status = rxe_status;
    fake_wire_fail(qp, queue, status, vendor_of(status));
}

/* The target of a bad request fails too, and on some devices gets an event. */
static enum fake_outcome refuse(struct fake_qp *qp, struct fake_qp *peer, enum ibv_wc_status status)
{
    fail(qp, FAKE_SEND, status, status);
    fake_wire_error(peer);
    if (fake_verbs.responder_events)
        fake_async(fake_context_of(peer->ibv.context),
                   status == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR,
                   &peer->ibv, 0);
    return FAKE_DONE;
}

static bool add_piece(struct pieces *pieces, uint8_t *at, uint64_t bytes)
{
    if (bytes == 0)
        return true;
    if (!at || pieces->count == MAX_SGE)
        return false;
    pieces->at[pieces->count] = at;
    pieces->bytes[pieces->count++] = bytes;
    pieces->length += bytes;
    return true;
}

/* Resolves the memory of a request's list. Returns false if a key, range or right is wrong. */
static bool resolve(const struct fake_qp *qp, const struct fake_wqe *wqe, int access,
                    struct pieces *pieces)
{
    pieces->count = 0;
    pieces->length = 0;
    if (wqe->data)
        return add_piece(pieces, wqe->data, wqe->inline_bytes);
    for (int i = 0; i < wqe->wr.num_sge; i++) {
        const struct ibv_sge *sge = &wqe->sges[i];

        if (sge->length && !add_piece(pieces, fake_local(qp->ibv.pd, sge, access), sge->length))
            return false;
    }
    return true;
}

/* Aligned words are written whole, and in order, as a device does. */
static void copy(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
    while (bytes > 0) {
        if (bytes >= 8 && (uintptr_t)to % 8 == 0) {
            uint64_t word;

            memcpy(&word, from, 8);
            __atomic_store_n((uint64_t *)(void *)to, word, __ATOMIC_RELEASE);
            to += 8;
            from += 8;
            bytes -= 8;
        } else {
            __atomic_store_n(to++, *from++, __ATOMIC_RELEASE);
            bytes--;
        }
    }
}

/* Copies from one list of pieces to the other, which is at least as long. */
static void transfer(const struct pieces *from, const struct pieces *to)
{
    uint32_t target = 0;
    uint64_t offset = 0;

    for (uint32_t source = 0; source < from->count; source++) {
        uint64_t done = 0;

        while (done < from->bytes[source]) {
            uint64_t left = from->bytes[source] - done, room = to->bytes[target] - offset;
            uint64_t bytes = left < room ? left : room;

            copy(to->at[target] + offset, from->at[source] + done, bytes);
            done += bytes;
            offset += bytes;
            if (offset == to->bytes[target]) {
                target++;
                offset = 0;
            }
        }
    }
}

static uint32_t mtu_bytes(const struct fake_qp *qp)
{
    return UINT32_C(128) << qp->attr.path_mtu;
}

static void advance(struct fake_qp *qp, struct fake_qp *peer, uint64_t length)
{
    uint64_t packets = length ? (length + mtu_bytes(qp) - 1) / mtu_bytes(qp) : 1;

    qp->send_psn = (uint32_t)((qp->send_psn + packets) & 0xffffff);
    peer->receive_psn = (uint32_t)((peer->receive_psn + packets) & 0xffffff);
}

static bool has_immediate(const struct fake_wqe *wqe)
{
    return wqe->wr.opcode == IBV_WR_SEND_WITH_IMM || wqe->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static enum fake_outcome succeed(struct fake_qp *qp, struct fake_qp *peer, uint64_t length)
{
    static const enum ibv_wc_opcode opcodes[] = {
        [IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
        [IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
        [IBV_WR_SEND] = IBV_WC_SEND,
        [IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
        [IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
        [IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
        [IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
    };
    struct fake_wqe *wqe = fake_first(qp, FAKE_SEND);
    struct ibv_wc wc = {.opcode = opcodes[wqe->wr.opcode], .byte_len = (uint32_t)length};

    advance(qp, peer, length);
    fake_wire_complete(qp, FAKE_SEND, wc, false);
    return FAKE_DONE;
}

/* Ends the peer's receive of a message that has arrived. */
static void receive(struct fake_qp *peer, const struct fake_wqe *wqe, uint64_t length)
{
    bool write = wqe->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    struct ibv_wc wc = {
        .opcode = write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
        .byte_len = (uint32_t)length,
    };

    if (has_immediate(wqe)) {
        wc.imm_data = wqe->wr.imm_data;
        wc.wc_flags = write && fake_verbs.flags_without_imm ? 0 : IBV_WC_WITH_IMM;
    }
    fake_wire_complete(peer, FAKE_RECEIVE, wc, wqe->wr.send_flags & IBV_SEND_SOLICITED);
}

/* Returns true if a test orders the peer's receive to fail: it has, and so has the send. */
static bool receive_is_ended(struct fake_qp *qp, struct fake_qp *peer)
{
    enum ibv_wc_status status;
    uint32_t vendor;

    if (!fake_ends(peer->ibv.qp_num, FAKE_RECEIVE, &status, &vendor))
        return false;
    fake_wire_fail(peer, FAKE_RECEIVE, status, vendor);
    fail(qp, FAKE_SEND, IBV_WC_REM_OP_ERR, IBV_WC_REM_OP_ERR);
    return true;
}

static enum fake_outcome do_send(struct fake_qp *qp, struct fake_qp *peer,
                                 const struct pieces *from)
{
    struct fake_wqe *wqe = fake_first(qp, FAKE_SEND), *target;
    struct pieces to;

    fake_srq_take(peer);
    target = fake_first(peer, FAKE_RECEIVE);
    if (!target) {
        qp->rnr_timer = peer->attr.min_rnr_timer;
        return FAKE_NOT_READY;
    }
    if (receive_is_ended(qp, peer))
        return FAKE_DONE;
    if (!resolve(peer, target, IBV_ACCESS_LOCAL_WRITE, &to)) {
        fail(peer, FAKE_RECEIVE, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR);
        fail(qp, FAKE_SEND, IBV_WC_REM_OP_ERR, IBV_WC_REM_OP_ERR);
        return FAKE_DONE;
    }
    if (to.length < from->length) {
        fail(peer, FAKE_RECEIVE, IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_QP_OP_ERR);
        fail(qp, FAKE_SEND, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR);
        return FAKE_DONE;
    }
    transfer(from, &to);
    receive(peer, wqe, from->length);
    return succeed(qp, peer, from->length);
}

/* Resolves the peer's memory. Without bytes, the key is not checked. */
static bool resolve_remote(struct fake_qp *peer, const struct fake_wqe *wqe, uint64_t length,
                           int access, struct pieces *pieces)
{
    pieces->count = 0;
    pieces->length = 0;
    return length == 0 || add_piece(pieces,
                                    fake_remote(peer->ibv.pd, wqe->wr.wr.rdma.remote_addr, length,
                                                wqe->wr.wr.rdma.rkey, access),
                                    length);
}

static enum fake_outcome do_write(struct fake_qp *qp, struct fake_qp *peer,
                                  const struct pieces *from)
{
    struct fake_wqe *wqe = fake_first(qp, FAKE_SEND);
    struct pieces to;

    if (!(peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE))
        return refuse(qp, peer, IBV_WC_REM_INV_REQ_ERR);
    if (has_immediate(wqe))
        fake_srq_take(peer);
    if (has_immediate(wqe) && !fake_first(peer, FAKE_RECEIVE)) {
        qp->rnr_timer = peer->attr.min_rnr_timer;
        return FAKE_NOT_READY;
    }
    if (!resolve_remote(peer, wqe, from->length, IBV_ACCESS_REMOTE_WRITE, &to))
        return refuse(qp, peer, IBV_WC_REM_ACCESS_ERR);
    if (has_immediate(wqe) && receive_is_ended(qp, peer))
        return FAKE_DONE;
    transfer(from, &to);
    if (has_immediate(wqe))
        receive(peer, wqe, from->length);
    return succeed(qp, peer, from->length);
}

static enum fake_outcome do_read(struct fake_qp *qp, struct fake_qp *peer, const struct pieces *to)
{
    struct fake_wqe *wqe = fake_first(qp, FAKE_SEND);
    struct pieces from;

    if (!(peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ))
        return refuse(qp, peer, IBV_WC_REM_INV_REQ_ERR);
    if (qp->attr.max_rd_atomic > peer->attr.max_dest_rd_atomic) {
        fake_verbs.read_mismatches++;
        return refuse(qp, peer, IBV_WC_REM_INV_REQ_ERR);
    }
    if (!resolve_remote(peer, wqe, to->length, IBV_ACCESS_REMOTE_READ, &from))
        return refuse(qp, peer, IBV_WC_REM_ACCESS_ERR);
    transfer(&from, to);
    return succeed(qp, peer, to->length);
}

static enum fake_outcome do_atomic(struct fake_qp *qp, struct fake_qp *peer,
                                   const struct pieces *to)
{
    struct fake_wqe *wqe = fake_first(qp, FAKE_SEND);
    uint64_t addr = wqe->wr.wr.atomic.remote_addr, before, add = wqe->wr.wr.atomic.compare_add;
    struct pieces from = {.count = 1, .length = 8, .bytes = {8}};
    uint64_t *word;

    if (!(peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC) || addr % 8 || to->length != 8)
        return refuse(qp, peer, IBV_WC_REM_INV_REQ_ERR);
    if (qp->attr.max_rd_atomic > peer->attr.max_dest_rd_atomic) {
        fake_verbs.read_mismatches++;
        return refuse(qp, peer, IBV_WC_REM_INV_REQ_ERR);
    }
    word = (void *)fake_remote(peer->ibv.pd, addr, 8, wqe->wr.wr.atomic.rkey,
                               IBV_ACCESS_REMOTE_ATOMIC);
    if (!word)
        return refuse(qp, peer, IBV_WC_REM_ACCESS_ERR);
    before = add;
    if (wqe->wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        before = __atomic_fetch_add(word, add, __ATOMIC_ACQ_REL);
    else
        __atomic_compare_exchange_n(word, &before, wqe->wr.wr.atomic.swap, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE);
    from.at[0] = (uint8_t *)&before;
    transfer(&from, to);
    return succeed(qp, peer, 8);
}

static bool writes_locally(const struct fake_wqe *wqe)
{
    return wqe->wr.opcode >= IBV_WR_RDMA_READ;
}

enum fake_outcome fake_execute(struct fake_qp *qp)
{
    struct fake_wqe *wqe = fake_first(qp, FAKE_SEND);
    const struct fake_port *port = fake_port_of(qp->ibv.context, qp->attr.port_num);
    enum ibv_wc_status status;
    struct fake_qp *peer;
    struct pieces local;
    uint32_t vendor;

    if (!wqe->begun && fake_ends(qp->ibv.qp_num, FAKE_SEND, &status, &vendor)) {
        fake_wire_fail(qp, FAKE_SEND, status, vendor);
        return FAKE_DONE;
    }
    wqe->begun = true;
    if (!resolve(qp, wqe, writes_locally(wqe) ? IBV_ACCESS_LOCAL_WRITE : 0, &local)) {
        fail(qp, FAKE_SEND, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR);
        return FAKE_DONE;
    }
    if (local.length > port->max_msg_sz) {
        fail(qp, FAKE_SEND, IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_LEN_ERR);
        return FAKE_DONE;
    }
    peer = find_peer(qp);
    if (!peer)
        return FAKE_NO_ANSWER;
    if (qp->attr.path_mtu != peer->attr.path_mtu) {
        fake_verbs.mtu_mismatches++;
        if (local.length > mtu_bytes(peer))
            return refuse(qp, peer, IBV_WC_REM_INV_REQ_ERR);
    }
    switch (wqe->wr.opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
        return do_send(qp, peer, &local);
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return do_write(qp, peer, &local);
    case IBV_WR_RDMA_READ:
        return do_read(qp, peer, &local);
    default:
        return do_atomic(qp, peer, &local);
    }
}
