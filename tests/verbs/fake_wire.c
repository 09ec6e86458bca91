/* SPDX-License-Identifier: MIT */
/*
 * The device's own thread: it visits the queue pairs that have work to do, executes one request
 * each, and keeps the timers of those that wait for their peer.
 */
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "fake_device.h"

#define FOR_EVER 7 /* as a retry count: of RNR, and of any on rxe */

static struct fake_link ready = {&ready, &ready};
static pthread_cond_t changed;
static pthread_t thread;
static pid_t owner; /* process of the thread, 0: there is none */
static bool stopping;

void fake_wire_wake(struct fake_qp *qp)
{
    if (qp->ready.next)
        return;
    fake_list_add(&ready, &qp->ready);
    if (owner)
        pthread_cond_signal(&changed);
}

void fake_wire_complete(struct fake_qp *qp, enum fake_queue queue, struct ibv_wc wc, bool solicited)
{
    struct fake_wqe *wqe = fake_first(qp, queue);
    struct fake_work *work = &qp->work[queue];
    struct ibv_cq *cq = queue == FAKE_SEND ? qp->ibv.send_cq : qp->ibv.recv_cq;
    struct fake_completion *completion;
    bool failed =
        wc.status == IBV_WC_WR_FLUSH_ERR ? !fake_verbs.silent_flush : wc.status != IBV_WC_SUCCESS;
    bool told = queue == FAKE_RECEIVE || failed || wqe->wr.send_flags & IBV_SEND_SIGNALED;

    wc.wr_id = wqe->wr.wr_id;
    wc.qp_num = qp->ibv.qp_num;
    wc.src_qp = qp->attr.dest_qp_num;
    fake_list_remove(&wqe->link);
    free(wqe);
    work->count--;
    work->done++;
    if (!told)
        return;
    completion = fake_alloc(sizeof(*completion));
    completion->wc = wc;
    completion->qp = qp;
    completion->queue = queue;
    completion->slots = work->done;
    completion->solicited = solicited;
    work->done = 0;
    if (qp->holding)
        fake_list_add(&qp->held[queue], &completion->link);
    else
        fake_cq_add(fake_cq_of(cq), completion);
}

void fake_wire_error(struct fake_qp *qp)
{
    qp->state = IBV_QPS_ERR;
    qp->wake_at = qp->lost_at = 0;
    fake_wire_wake(qp);
}

void fake_wire_fail(struct fake_qp *qp, enum fake_queue queue, enum ibv_wc_status status,
                    uint32_t vendor)
{
    struct ibv_wc wc = {.status = status, .vendor_err = vendor};

    fake_wire_complete(qp, queue, wc, false);
    fake_wire_error(qp);
}

static void flush(struct fake_qp *qp)
{
    const struct ibv_wc wc = {.status = IBV_WC_WR_FLUSH_ERR, .vendor_err = 0xf9};

    while (fake_first(qp, FAKE_SEND))
        fake_wire_complete(qp, FAKE_SEND, wc, false);
    while (fake_first(qp, FAKE_RECEIVE))
        fake_wire_complete(qp, FAKE_RECEIVE, wc, false);
    if (qp->init.srq && !qp->last && !fake_verbs.no_last_wqe) {
        fake_async(fake_context_of(qp->ibv.context), IBV_EVENT_QP_LAST_WQE_REACHED, &qp->ibv, 0);
        qp->last = true;
    }
}

void fake_wire_forget(struct fake_qp *qp)
{
    if (qp->ready.next)
        fake_list_remove(&qp->ready);
    for (int queue = 0; queue < 2; queue++) {
        struct fake_wqe *wqe;

        while ((wqe = fake_first(qp, queue))) {
            fake_list_remove(&wqe->link);
            free(wqe);
        }
        qp->work[queue].count = qp->work[queue].used = qp->work[queue].done = 0;
    }
    qp->wake_at = qp->lost_at = 0;
    qp->rnr_waits = false;
}

/* How long the device sleeps at most while a timer runs, and twice that. */
#define NAP INT64_C(5000000)
#define CREDIT (2 * NAP)

static int64_t real_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/*
 * The clock of the device. It advances at most CREDIT between two readings: a process that was
 * stopped must not look like a peer that does not answer.
 */
static int64_t device_time(void)
{
    static int64_t looked, time;
    int64_t now = real_time();

    time += now - looked < CREDIT ? now - looked : CREDIT;
    looked = now;
    return time;
}

/* Time until a packet that was not acknowledged is sent again; 0: never. */
static int64_t answer_time(const struct fake_qp *qp)
{
    return qp->attr.timeout ? (INT64_C(4096) << qp->attr.timeout) / fake_verbs.hurry : 0;
}

/* Starts the time within which an answer must come. Returns false if it is over. */
static bool is_patient(struct fake_qp *qp, int64_t now)
{
    int64_t interval = answer_time(qp);

    if (!qp->lost_at) {
        bool for_ever = interval == 0 || qp->attr.retry_cnt == FOR_EVER;

        qp->lost_at = for_ever ? INT64_MAX : now + interval * (qp->attr.retry_cnt + 1);
    }
    return now < qp->lost_at;
}

static void await_answer(struct fake_qp *qp, int64_t now)
{
    int64_t interval = answer_time(qp);

    if (is_patient(qp, now))
        qp->wake_at = interval ? now + interval : INT64_MAX;
    else
        fake_wire_fail(qp, FAKE_SEND, IBV_WC_RETRY_EXC_ERR, 0x81);
}

static int64_t rnr_time(uint8_t timer)
{
    static const uint32_t units[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                       16,    24,   32,   48,    64,    96,    128,   192,
                                       256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                       4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};

    return INT64_C(10000) * units[timer & 31] / fake_verbs.hurry;
}

static void await_receive(struct fake_qp *qp, int64_t now)
{
    if (!qp->rnr_waits) {
        qp->rnr_waits = true;
        qp->rnr_left = qp->attr.rnr_retry;
    }
    if (fake_verbs.rnr_is_no_answer && !is_patient(qp, now)) {
        fake_wire_fail(qp, FAKE_SEND, IBV_WC_RETRY_EXC_ERR, 0x81);
    } else if (qp->attr.rnr_retry != FOR_EVER && qp->rnr_left-- == 0) {
        fake_wire_fail(qp, FAKE_SEND, IBV_WC_RNR_RETRY_EXC_ERR, 0x87);
    } else {
        qp->wake_at = now + rnr_time(qp->rnr_timer);
    }
}

static void serve(struct fake_qp *qp)
{
    int64_t now = device_time();

    if (qp->state == IBV_QPS_ERR) {
        flush(qp);
        return;
    }
    if (qp->state != IBV_QPS_RTS || now < qp->wake_at || !fake_first(qp, FAKE_SEND))
        return;
    qp->wake_at = 0;
    switch (fake_execute(qp)) {
    case FAKE_DONE:
        qp->lost_at = 0;
        qp->rnr_waits = false;
        if (fake_first(qp, FAKE_SEND))
            fake_wire_wake(qp);
        break;
    case FAKE_NO_ANSWER:
        await_answer(qp, now);
        break;
    case FAKE_NOT_READY:
        fake_verbs.not_ready++;
        await_receive(qp, now);
        break;
    }
}

void fake_wire_hasten(struct fake_qp *qp)
{
    while (fake_verbs.eager && qp->ready.next) {
        fake_list_remove(&qp->ready);
        serve(qp);
    }
}

/*
 * Wakes queue pairs whose timers have expired. Returns when the next timer expires, or INT64_MAX.
 */
static int64_t look_at_timers(void)
{
    int64_t now = device_time(), next = INT64_MAX;

    for (struct fake_link *link = fake_qps.next; link != &fake_qps; link = link->next) {
        struct fake_qp *qp = fake_container_of(link, struct fake_qp, link);

        if (qp->wake_at == 0)
            continue;
        if (qp->wake_at <= now)
            fake_wire_wake(qp);
        else if (qp->wake_at < next)
            next = qp->wake_at;
    }
    return next;
}

/* Sleeps until that time of the device, at most NAP: then timers are checked again. */
static void sleep_until(int64_t time)
{
    int64_t left, end;
    struct timespec until;

    if (time == INT64_MAX) {
        pthread_cond_wait(&changed, &fake_mutex);
        return;
    }
    left = time - device_time();
    end = real_time() + (left < NAP ? left : NAP);
    until.tv_sec = end / 1000000000;
    until.tv_nsec = end % 1000000000;
    pthread_cond_timedwait(&changed, &fake_mutex, &until);
}

static void *run(void *unused)
{
    (void)unused;
    fake_lock();
    while (!stopping) {
        int64_t next = look_at_timers();

        if (fake_list_empty(&ready)) {
            sleep_until(next);
            continue;
        }
        for (int i = 0; i < 64 && !fake_list_empty(&ready); i++) {
            struct fake_link *link = ready.next;

            fake_list_remove(link);
            serve(fake_container_of(link, struct fake_qp, ready));
            /* Other threads get the lock between any two requests. */
            fake_unlock();
            fake_lock();
        }
    }
    fake_unlock();
    return NULL;
}

int fake_wire_start(void)
{
    sigset_t all, before;
    pthread_condattr_t attr;
    int err;

    while (stopping) {
        fake_unlock();
        sched_yield();
        fake_lock();
    }
    if (owner)
        return 0;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attr);
    pthread_condattr_destroy(&attr);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    err = pthread_create(&thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    owner = err ? 0 : getpid();
    return err;
}

/* A child of fork(2) has no such thread to end. */
void fake_wire_stop(void)
{
    bool ours = owner == getpid();

    if (ours) {
        stopping = true;
        pthread_cond_signal(&changed);
        fake_unlock();
        pthread_join(thread, NULL);
        fake_lock();
        pthread_cond_destroy(&changed);
    }
    owner = 0;
    stopping = false;
}
