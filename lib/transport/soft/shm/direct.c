/* SPDX-License-Identifier: MIT */
/*
 * One-sided requests that the initiator executes itself as they are posted, if all earlier ones are
 * done; README.md, "One-sided requests". All other requests, and all that would fail, are queued.
 * Guarantee: once a queue pair is in the error state, its peer does not touch the memory of its
 * program.
 */
#include "transport/soft/shm/shm.h"

#include <endian.h>
#include <poll.h>
#include <string.h>

/* A peer that still touches memory after this time has been stopped in the middle of a copy. */
#define CLOSING_TIME SLUICE_S(1)
/* Likewise, if another peer was found stopped less than CLOSING_TIME ago. */
#define CLOSING_TIME_MORE SLUICE_MS(20)

struct touch {
    const struct shm_import *import;
    uint8_t *at; /* in our mapping; NULL: read from the peer's process */
    uint64_t length;
    uint32_t access; /* right that the peer's memory must grant */
};

/* Consecutive reads from the peer's process, which one system call executes. */
#define RUN_READS 64

struct run {
    uint32_t count;
    uint32_t to_count; /* including the first element, which is left free */
    uint64_t length;
    const struct shm_import *imports[RUN_READS];
    struct iovec to[1 + RUN_READS + SOFT_MAX_SGE];
    struct iovec from[1 + RUN_READS];
};

static uint32_t access_for(uint32_t opcode)
{
    switch (opcode) {
    case SLUICE_OP_WRITE:
        return SLUICE_ACCESS_REMOTE_WRITE;
    case SLUICE_OP_READ:
        return SLUICE_ACCESS_REMOTE_READ;
    case SLUICE_OP_COMPARE_SWAP:
    case SLUICE_OP_FETCH_ADD:
        return SLUICE_ACCESS_REMOTE_ATOMIC;
    default:
        return 0;
    }
}

/*
 * Returns whether this turn, in which no deadline is checked, has copied enough: further requests
 * are sent as frames.
 */
static bool is_enough(const struct soft_cq *cq, uint64_t length)
{
    return length > SOFT_TURN_BYTES || (cq->copied > 0 && cq->copied + length > SOFT_TURN_BYTES);
}

/* Returns whether a request can be executed here, as far as its own fields tell. */
static bool is_plain(const struct soft_qp *qp, const struct slu_send_wr *wr, struct touch *touch)
{
    touch->access = access_for(wr->opcode);
    touch->length = slu_soft_sum_lengths(wr->sges, wr->sge_count);
    if (touch->access == 0 || touch->length == 0 || is_enough(slu_soft_cq_of(qp), touch->length) ||
        (wr->flags & SLUICE_IMMEDIATE) != 0 || wr->sge_count > qp->attr.max_sge)
        return false;
    if ((wr->flags & SLUICE_INLINE) != 0 && touch->length > qp->attr.max_inline)
        return false;
    return touch->access != SLUICE_ACCESS_REMOTE_ATOMIC ||
           (touch->length == 8 && wr->sge_count == 1 && wr->remote_addr % 8 == 0);
}

static bool find_target(const struct slu_send_wr *wr, const struct shm_imports *imports,
                        struct touch *touch)
{
    const struct shm_import *import = slu_soft_shm_find_import(imports, wr->rkey);
    touch->import = import;
    if (import == NULL || import->state != SHM_IMPORT_HERE || (import->access & touch->access) == 0)
        return false;
    uint64_t offset = wr->remote_addr - import->addr;
    if (wr->remote_addr < import->addr || offset > import->length ||
        touch->length > import->length - offset)
        return false;
    touch->at = import->at == NULL ? NULL : import->at + offset;
    return true;
}

static bool may_use_own(const struct soft_qp *qp, const struct slu_send_wr *wr)
{
    struct soft_key_reader *reader = &slu_soft_cq_of(qp)->reader;
    uint32_t access = wr->opcode == SLUICE_OP_WRITE ? 0 : SLUICE_ACCESS_LOCAL_WRITE;
    if ((wr->flags & SLUICE_INLINE) != 0)
        return true;
    if (slu_soft_names_guarded(qp, wr->sges, wr->sge_count))
        return false;
    slu_soft_keys_enter(reader);
    uint32_t status = slu_soft_check_local(qp, wr->sges, wr->sge_count, access);
    slu_soft_keys_leave(reader);
    return status == SLUICE_STATUS_SUCCESS;
}

static void change_word(const struct slu_send_wr *wr, uint8_t *at)
{
    const uint64_t operand[2] = {htobe64(wr->operand[0]), htobe64(wr->operand[1])};
    uint64_t before = slu_soft_atomic(wr->opcode, (uint64_t)(uintptr_t)at, operand);
    memcpy((void *)(uintptr_t)wr->sges[0].addr, &before, sizeof(before));
}

static void add_read(struct run *run, const struct slu_send_wr *wr, const struct touch *touch)
{
    struct soft_cursor list = slu_soft_cursor(wr->sges, wr->sge_count, 0);
    run->imports[run->count++] = touch->import;
    run->from[run->count] = (struct iovec){(void *)(uintptr_t)wr->remote_addr, touch->length};
    run->to_count +=
        slu_soft_cursor_iovecs(list, touch->length, &run->to[run->to_count], SOFT_MAX_SGE);
    run->length += touch->length;
}

/*
 * Returns whether the same call can execute this read as well. A request with a fence needs a call
 * of its own: only the fence behind a call orders reads on every processor.
 */
static bool joins(const struct soft_qp *qp, const struct run *run, const struct slu_send_wr *wr,
                  struct touch *touch)
{
    return wr != NULL && wr->opcode == SLUICE_OP_READ && (wr->flags & SLUICE_FENCE) == 0 &&
           run->count < RUN_READS && run->to_count <= 1 + RUN_READS && is_plain(qp, wr, touch) &&
           !is_enough(slu_soft_cq_of(qp), run->length + touch->length) &&
           find_target(wr, &qp->tcp->shm->imports, touch) && touch->at == NULL &&
           may_use_own(qp, wr) && slu_soft_shm_is_there(touch->import);
}

static bool all_are_there(const struct run *run)
{
    for (uint32_t i = 0; i < run->count; i++)
        if (!slu_soft_shm_is_there(run->imports[i]))
            return false;
    return true;
}

/*
 * Reads from the peer's process. The data count if the regions were registered and the connection
 * was open all the time; otherwise the requests are queued, and the peer reports what is wrong.
 */
static bool read_run(struct soft_tcp *tcp, struct run *run)
{
    struct shm_imports *imports = &tcp->shm->imports;
    SLU_KEEP_ERRNO;
    int err = imports->reads_not ? EOPNOTSUPP
                                 : slu_soft_shm_read_process(tcp, run->to, run->to_count, run->from,
                                                             run->count + 1, run->length);
    if (err != 0 && err != EFAULT && !imports->reads_not) {
        imports->reads_not = true;
        slu_log(SLUICE_LOG_DEBUG, "queue pair %u: it cannot read from its peer's memory: %s",
                tcp->qp->qpn, strerrordesc_np(err));
    }
    atomic_thread_fence(memory_order_seq_cst);
    return err == 0 && all_are_there(run) && !slu_soft_shm_is_closed(&tcp->shm->writer);
}

static void copy(struct soft_shm *shm, const struct slu_send_wr *wr, const struct touch *touch)
{
    switch (wr->opcode) {
    case SLUICE_OP_WRITE:
        slu_soft_gather_visible(touch->at, wr->sges, wr->sge_count, touch->length);
        shm->written = true;
        break;
    case SLUICE_OP_READ:
        slu_soft_scatter_visible(wr->sges, wr->sge_count, touch->at);
        atomic_thread_fence(memory_order_acquire);
        break;
    default:
        change_word(wr, touch->at);
    }
}

static void complete(struct soft_tcp *tcp, const struct slu_send_wr *wr, uint64_t length)
{
    struct slu_wc wc = {.id = wr->id, .status = SLUICE_STATUS_SUCCESS};
    struct soft_cq *cq = slu_soft_cq_of(tcp->qp);
    if ((wr->flags & SLU_SIGNALED) != 0)
        slu_soft_cq_complete(tcp->qp, &wc);
    /* Counted so that connections are also polled in a program that only posts such requests. */
    cq->directs++;
    cq->copied += length + SOFT_SHORT_BYTES;
    /* A peer that sleeps may wait for the written data, but not for a part of a list. */
    if (wr->opcode != SLUICE_OP_READ && (wr->flags & SLU_MORE) == 0)
        tcp->shm->published |= SHM_ARMED_RECORDS;
}

/* Marks the peer's memory as touched for the rest of this turn, with one fence for a whole list. */
static bool begin_touching(struct soft_tcp *tcp)
{
    struct soft_shm *shm = tcp->shm;
    if (shm->touching)
        return !slu_soft_shm_is_closed(&shm->writer);
    shm->written = false;
    shm->touching = slu_soft_shm_touch(&shm->writer);
    if (shm->touching)
        slu_soft_tcp_unsettled(tcp);
    return shm->touching;
}

void slu_soft_shm_end_touching(struct soft_shm *shm)
{
    if (shm->touching)
        slu_soft_shm_let_go(&shm->writer);
    shm->touching = false;
}

static void end_touching_all(struct soft_cq *cq)
{
    for (struct soft_tcp *tcp = cq->unsettled; tcp != NULL; tcp = tcp->owes.next)
        slu_soft_shm_end_touching(tcp->shm);
}

static uint32_t read_shown(struct soft_qp *qp, const struct slu_send_wr *wr,
                           const struct touch *touch)
{
    struct run run;
    struct touch next = *touch;
    const struct slu_send_wr *last = wr;
    run.count = 0;
    run.to_count = 1;
    run.length = 0;
    do {
        add_read(&run, last, &next);
        last = last->next;
    } while (joins(qp, &run, last, &next));
    if (!read_run(qp->tcp, &run))
        return 0;
    for (uint32_t i = 1; i <= run.count; i++, wr = wr->next)
        complete(qp->tcp, wr, run.from[i].iov_len);
    return run.count;
}

uint32_t slu_soft_shm_direct(struct soft_qp *qp, const struct slu_send_wr *wr)
{
    struct soft_tcp *tcp = qp->tcp;
    struct soft_shm *shm = tcp->shm;
    struct touch touch;
    if (!is_plain(qp, wr, &touch))
        return 0;
    if (!find_target(wr, &shm->imports, &touch)) {
        slu_soft_shm_wish(tcp, wr->rkey);
        return 0;
    }
    /* Checked here, so that all requests of a list that is queued ask for their regions. */
    if (qp->sends.done != qp->sends.posted)
        return 0;
    if (!may_use_own(qp, wr) || !begin_touching(tcp) || !slu_soft_shm_is_there(touch.import))
        return 0;
    /* Order earlier writes before this read, as seen by the thread that wrote what it reads. */
    if (shm->written && wr->opcode == SLUICE_OP_READ) {
        slu_soft_shm_fence();
        shm->written = false;
    }
    if (touch.at == NULL)
        return read_shown(qp, wr, &touch);
    copy(shm, wr, &touch);
    /* The owner may have released a part of its region meanwhile, and changed the bytes since. */
    if (wr->opcode == SLUICE_OP_READ && !slu_soft_shm_is_there(touch.import))
        return 0;
    complete(tcp, wr, touch.length);
    return 1;
}

static bool has_ended(const struct soft_tcp *tcp)
{
    struct pollfd peer = {.fd = tcp->fd, .events = POLLRDHUP};
    SLU_KEEP_ERRNO;
    return SLU_UNCANCELLED(poll(&peer, 1, 0)) > 0;
}

/*
 * Returns how long to wait: long for the first peer only, as a stopped process may be touching
 * memory of many connections.
 */
static int64_t closing_time(struct soft_cq *cq, int64_t now)
{
    if (now - cq->overdue < CLOSING_TIME)
        return CLOSING_TIME_MORE;
    return CLOSING_TIME;
}

static void await_letting_go(struct soft_tcp *tcp)
{
    struct soft_cq *cq = slu_soft_cq_of(tcp->qp);
    int64_t until = 0;
    for (unsigned time = 0; slu_soft_shm_is_touched(&tcp->shm->reader) && !has_ended(tcp); time++) {
        int64_t now = slu_now();
        if (until == 0)
            until = now + closing_time(cq, now);
        if (now >= until) {
            cq->overdue = now;
            slu_log(SLUICE_LOG_WARN,
                    "queue pair %u: its peer was stopped while it touched memory of this process; "
                    "if it goes on, that copy does",
                    tcp->qp->qpn);
            return;
        }
        slu_soft_pause(time);
    }
}

void slu_soft_shm_end_direct(struct soft_tcp *tcp)
{
    if (!tcp->shared)
        return;
    tcp->qp->direct = false;
    slu_soft_shm_close(&tcp->shm->reader);
    if (!tcp->shm->has_table) /* no region was exported to this peer */
        return;
    /* Other peers may be closing, too, and wait for this side. */
    end_touching_all(slu_soft_cq_of(tcp->qp));
    await_letting_go(tcp);
}
