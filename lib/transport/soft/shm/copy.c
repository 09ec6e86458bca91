/* SPDX-License-Identifier: MIT */
/*
 * Large sends with one copy: the frame names the message, and the receiver reads it from the
 * sender's memory, if the kernel permits and this is the faster way; README.md, "Lent messages".
 * Guarantee: the data count only if the sender still held its buffer when all of it was read, and
 * if that process is the one that connected.
 */
#include "transport/soft/shm/shm.h"

#include <string.h>

#define LEAST_SHIFT 15           /* shortest message to lend: 32 KiB */
#define MOST (UINT64_C(4) << 20) /* no other peer is served meanwhile */
/* After this many messages the same way, some are tried the other way. */
#define TRIAL 64
/*
 * The first messages this way are not counted, as the caches are still as the other way left them.
 */
#define SETTLED 3
/* Change to the other way if it takes less than this many 16ths of the time. */
#define BETTER 15

_Static_assert(MOST == UINT64_C(1) << (LEAST_SHIFT + SHM_CLASSES - 1), "a class for all");

static bool is_large(uint64_t length)
{
    return length >= UINT64_C(1) << LEAST_SHIFT && length <= MOST;
}

/* Returns the class of a large message: 0 from 32 KiB, 1 from 64 KiB and so on. */
static uint32_t class_of(uint64_t length)
{
    return (uint32_t)(63 - __builtin_clzll(length)) - LEAST_SHIFT;
}

/* The sender. */

bool slu_soft_shm_lends(const struct soft_tcp *tcp, const struct soft_wqe *wqe)
{
    const struct soft_shm *shm = tcp->shm;
    if (!tcp->shared || shm->lends_not || wqe->opcode != SLUICE_OP_SEND || !is_large(wqe->length) ||
        wqe->guarded)
        return false;
    uint32_t wanted = atomic_load_explicit(&shm->writer.segment->wanted, memory_order_relaxed);
    return (wanted >> class_of(wqe->length) & 1) != 0;
}

void slu_soft_shm_withdraw(struct soft_tcp *tcp)
{
    if (!tcp->shared)
        return;
    atomic_store_explicit(&tcp->shm->writer.segment->withdrawn, 1, memory_order_relaxed);
    /* Before the program can write to the buffer that it gets back. */
    atomic_thread_fence(memory_order_seq_cst);
}

/* The receiver. */

void slu_soft_shm_want(struct soft_tcp *tcp)
{
    struct soft_shm *shm = tcp->shm;
    shm->wanted = (UINT32_C(1) << SHM_CLASSES) - 1;
    atomic_store_explicit(&shm->reader.segment->wanted, shm->wanted, memory_order_relaxed);
}

static void want(struct soft_shm *shm, uint32_t class, bool lent)
{
    uint32_t bit = UINT32_C(1) << class;
    uint32_t wanted = lent ? shm->wanted | bit : shm->wanted & ~bit;
    if (wanted != shm->wanted)
        atomic_store_explicit(&shm->reader.segment->wanted, wanted, memory_order_relaxed);
    shm->wanted = wanted;
}

void slu_soft_shm_time(struct soft_tcp *tcp, uint64_t length)
{
    if (tcp->shared)
        tcp->shm->begun = is_large(length) ? slu_now() : 0;
}

/* Updates a mean. A longer time counts less, as the process may have waited for a processor. */
static uint32_t mean(uint32_t before, int64_t time)
{
    if (before == 0)
        return time < INT32_MAX / 2 ? (uint32_t)time + 1 : INT32_MAX / 2;
    if (time < before)
        return (uint32_t)(before - (before - time) / 2);
    int64_t most = (int64_t)before * 2;
    return (uint32_t)(before + ((time < most ? time : most) - before) / 8);
}

/*
 * Returns whether to try the other way: more often at first, as memory that was never touched takes
 * longer.
 */
static bool is_time_to_try(uint32_t count)
{
    return (count & (count - 1)) == 0 || count % TRIAL == 0;
}

static bool choose(struct shm_class *ways)
{
    uint64_t now = ways->time[ways->lends];
    uint64_t other = ways->time[!ways->lends];
    if (other * 16 < now * BETTER)
        ways->lends = !ways->lends;
    return ways->lends;
}

void slu_soft_shm_learn(struct soft_tcp *tcp, uint64_t length, bool lent)
{
    struct soft_shm *shm = tcp->shm;
    if (!tcp->shared || shm->begun == 0 || shm->borrows_not)
        return;
    uint32_t class = class_of(length);
    struct shm_class *ways = &shm->loans->classes[class];
    ways->run = lent == ways->lent ? ways->run + 1 : 1;
    ways->lent = lent;
    if (ways->run < SETTLED)
        return;
    ways->run = SETTLED;
    ways->time[lent] = mean(ways->time[lent], slu_now() - shm->begun);
    if (ways->time[0] == 0 || ways->time[1] == 0)
        want(shm, class, !lent);
    else if (lent == ways->lends && is_time_to_try(++ways->count))
        want(shm, class, !ways->lends);
    else
        want(shm, class, choose(ways));
}

/*
 * Checks a loan: its length is that of the message and within the limits, which bound the time to
 * read.
 */
static bool is_sound(const struct soft_shm *shm, const struct tcp_frame *frame)
{
    uint64_t length = slu_soft_sum_lengths(shm->loans->lent, frame->rkey);
    return is_large(length) && length == frame->length;
}

/* Reads a lent message. Returns 0 or a positive errno value. */
static int read_lent(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    struct soft_touched touched;
    struct iovec to[SOFT_MAX_SGE + 1];
    struct iovec from[SOFT_MAX_SGE + 1];
    const struct sluice_sge *lent = tcp->shm->loans->lent;
    uint32_t count =
        slu_soft_cursor_iovecs(slu_soft_tcp_target(tcp), frame->length, to + 1, SOFT_MAX_SGE);
    for (uint32_t i = 0; i < frame->rkey; i++)
        from[i + 1] = (struct iovec){(void *)(uintptr_t)lent[i].addr, lent[i].length};
    slu_soft_tcp_touch_target(tcp, 0, &touched);
    if (!slu_soft_touch_begin(&touched))
        return EFAULT;
    int err = slu_soft_shm_read_process(tcp, to, count + 1, from, frame->rkey + 1, frame->length);
    return slu_soft_touch_end(&touched) ? err : EFAULT;
}

/* Declines loans: from now on messages go through the ring, this one included. */
static enum shm_loan decline(struct soft_tcp *tcp, int err)
{
    struct soft_shm *shm = tcp->shm;
    if (!shm->borrows_not)
        slu_log(slu_soft_notice_level(slu_soft_context(tcp->qp), SOFT_NOTICE_COPIED),
                "queue pair %u: large messages of its peer are copied twice, it cannot read them "
                "from the peer's memory: %s",
                tcp->qp->qpn, strerrordesc_np(err));
    shm->borrows_not = true;
    shm->wanted = 0;
    atomic_store_explicit(&shm->reader.segment->wanted, 0, memory_order_relaxed);
    tcp->repeat = true;
    return SHM_LOAN_DECLINED;
}

static bool is_withdrawn(const struct soft_shm *shm)
{
    /* All reads of the message come before this one. */
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load_explicit(&shm->reader.segment->withdrawn, memory_order_relaxed) != 0;
}

enum shm_loan slu_soft_shm_borrow(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    struct soft_shm *shm = tcp->shm;
    SLU_KEEP_ERRNO;
    int err = shm->borrows_not ? EOPNOTSUPP : 0;
    if (!is_sound(shm, frame))
        return SHM_LOAN_NONSENSE;
    if (err == 0)
        err = is_withdrawn(shm) ? ECANCELED : read_lent(tcp, frame);
    if (is_withdrawn(shm) || (err == ESRCH && shm->borrowed))
        return SHM_LOAN_WITHDRAWN;
    if (err == EFAULT && !slu_soft_tcp_target_is_mapped(tcp, frame->length))
        return SHM_LOAN_FAULT;
    if (err != 0)
        return decline(tcp, err);
    if (!shm->borrowed)
        slu_log(slu_soft_notice_level(slu_soft_context(tcp->qp), SOFT_NOTICE_LENT),
                "queue pair %u: it can read large messages from its peer's memory", tcp->qp->qpn);
    shm->borrowed = true;
    return SHM_LOAN_DONE;
}

void slu_soft_shm_lend_no_more(struct soft_tcp *tcp)
{
    tcp->shm->lends_not = true;
}

uint8_t *slu_soft_shm_lent_list(struct soft_tcp *tcp)
{
    return (uint8_t *)tcp->shm->loans->lent;
}
