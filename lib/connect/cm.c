/* SPDX-License-Identifier: MIT */
/* Connections over rdma_cm: their steps, and how events change their states. */
#include "config.h"

#include "connect/cm.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/descriptor.h"
#include "base/thread.h"
#include "transport/verbs/device/fork.h"

/* Reasons of a rejection, with the numbers of the InfiniBand CM. */
enum { REJ_TIMEOUT = 4, REJ_NO_SERVICE = 8, REJ_STALE = 10, REJ_CONSUMER = 28 };
/* The longest lookup in milliseconds, so that other addresses have their turn. */
#define LOOKUP_MOST 10000

/*
 * The least backlog of the kernel; the queue of the listener has a limit of its own. With a short
 * one siw loses connections that come at a time: the other side then waits for minutes.
 */
#define BACKLOG_LEAST 128

/* Guards librdmacm, which opens a device when it first needs it. */
static void begin(void)
{
    slu_verbs_lock();
    slu_fd_guard();
}

static void end(void)
{
    slu_fd_unguard();
    slu_verbs_unlock();
}

static void *fail_events(int error)
{
    switch (error) {
    case EACCES:
        return slu_fail_null(EACCES, "rdma_cm: /dev/infiniband/rdma_cm is not for this user");
    case EMFILE:
    case ENFILE:
        return slu_fail_null(EMFILE, "rdma_cm: no descriptor for its events");
    case ENOMEM:
        return slu_fail_null(ENOMEM, "rdma_cm: no memory for its events");
    default:
        return slu_fail_null(EOPNOTSUPP,
                             "rdma_cm: this host has none (%s): it takes an RDMA device and the "
                             "kernel module rdma_ucm; or leave out \"rdmacm:\"",
                             strerrordesc_np(error));
    }
}

struct rdma_event_channel *slu_cm_events_open(void)
{
    struct rdma_event_channel *events;
    int error = slu_cm_load();

    if (error < 0)
        return slu_none(error);
    begin();
    errno = 0;
    events = slu_rdma.create_event_channel();
    error = events == NULL && errno == 0 ? ENODEV : errno;
    if (events != NULL && slu_fd_adopt(events->fd) != 0) {
        slu_rdma.destroy_event_channel(events);
        events = NULL;
        error = ENOMEM;
    }
    end();
    if (events == NULL)
        return fail_events(error);
    fcntl(events->fd, F_SETFL, fcntl(events->fd, F_GETFL) | O_NONBLOCK);
    fcntl(events->fd, F_SETFD, FD_CLOEXEC);
    return events;
}

void slu_cm_events_close(struct rdma_event_channel *events)
{
    slu_verbs_lock();
    slu_fd_disown(events->fd);
    slu_rdma.destroy_event_channel(events);
    slu_verbs_unlock();
}

static void end_with(struct slu_cm *cm, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void end_with(struct slu_cm *cm, int error, const char *format, ...)
{
    va_list arguments;

    if (cm->state == SLU_CM_ENDED)
        return;
    cm->state = SLU_CM_ENDED;
    cm->error = error;
    va_start(arguments, format);
    vsnprintf(cm->why, sizeof cm->why, format, arguments);
    va_end(arguments);
}

static void keep_data(struct slu_cm *cm, const struct rdma_conn_param *conn)
{
    uint32_t count = conn->private_data != NULL ? conn->private_data_len : 0;

    cm->said_bytes = count <= sizeof cm->said ? count : sizeof cm->said;
    if (cm->said_bytes > 0)
        memcpy(cm->said, conn->private_data, cm->said_bytes);
    /* As seen from here: the reads that this side may have in flight, and those of the peer. */
    cm->reads = conn->initiator_depth;
    cm->remote_reads = conn->responder_resources;
}

/*
 * Keeps the answer of iWARP. Drivers do not agree on which of the two limits is that of this side,
 * and each keeps to its own limit by itself: all that counts is whether the peer answers reads.
 */
static void keep_answer(struct slu_cm *cm, const struct rdma_conn_param *conn)
{
    keep_data(cm, conn);
    if (cm->reads < cm->remote_reads)
        cm->reads = cm->remote_reads;
    cm->remote_reads = cm->reads;
}

static void end_unheard(struct slu_cm *cm)
{
    cm->reason = SLU_CM_REASON_NOBODY;
    end_with(cm, ECONNREFUSED, "no process listens there");
}

/*
 * iWARP reports an errno value in place of a reason: the same one whether the program rejected the
 * connection or the other side closed it.
 */
static void apply_rejection(struct slu_cm *cm, const struct rdma_cm_event *event)
{
    keep_data(cm, &event->param.conn);
    switch (event->status) {
    case REJ_CONSUMER:
        cm->reason = SLU_CM_REASON_REJECTED;
        end_with(cm, ECONNREFUSED, "its program rejected it");
        break;
    case -ECONNRESET:
        cm->reason = SLU_CM_REASON_REJECTED;
        end_with(cm, ECONNREFUSED, "its program rejected it, or left");
        break;
    case REJ_NO_SERVICE:
    case -ECONNREFUSED:
        end_unheard(cm);
        break;
    case REJ_STALE:
        cm->reason = SLU_CM_REASON_STALE;
        end_with(cm, ECONNREFUSED, "it still has an older connection");
        break;
    case REJ_TIMEOUT:
        end_with(cm, ECONNRESET, "it timed out waiting for an answer, or left");
        break;
    default:
        end_with(cm, ECONNREFUSED, "its connection manager rejected it (reason %d)", event->status);
    }
}

static int positive(int status)
{
    return status < 0 ? -status : status > 0 ? status : EIO;
}

/* SLU_CM_ENDED is final. */
static void go_to(struct slu_cm *cm, enum slu_cm_state state)
{
    if (cm->state != SLU_CM_ENDED)
        cm->state = state;
}

static void apply(struct slu_cm *cm, const struct rdma_cm_event *event)
{
    switch (event->event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        go_to(cm, SLU_CM_FOUND);
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        go_to(cm, SLU_CM_ROUTED);
        break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        keep_data(cm, &event->param.conn);
        go_to(cm, SLU_CM_ANSWERED);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        /* On iWARP this is the answer, too. */
        if (cm->state == SLU_CM_ROUTED)
            keep_answer(cm, &event->param.conn);
        go_to(cm, SLU_CM_CONNECTED);
        break;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
        end_with(cm, positive(event->status) == ETIMEDOUT ? ETIMEDOUT : EHOSTUNREACH,
                 "no RDMA device has a way to it: %s", strerrordesc_np(positive(event->status)));
        break;
    case RDMA_CM_EVENT_REJECTED:
        apply_rejection(cm, event);
        break;
    case RDMA_CM_EVENT_UNREACHABLE:
        end_with(cm, ETIMEDOUT, "it does not answer");
        break;
    case RDMA_CM_EVENT_CONNECT_ERROR:
        end_with(cm, EIO, "rdma_cm could not connect: %s",
                 strerrordesc_np(positive(event->status)));
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
        end_with(cm, ECONNRESET, "the peer has disconnected (rdma_cm)");
        break;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        end_with(cm, EIO, "the device is being removed (rdma_cm)");
        break;
    default:
        break; /* addresses that move, and numbers that may be used again */
    }
}

/* Makes an object for the new id of a request, before any other event of it can be read. */
static struct slu_cm *receive_request(const struct rdma_cm_event *event)
{
    struct slu_cm *cm = calloc(1, sizeof *cm);

    if (cm == NULL)
        return NULL;
    cm->id = event->id;
    cm->id->context = cm;
    cm->state = SLU_CM_ASKED;
    keep_data(cm, &event->param.conn);
    return cm;
}

/* Rejects a request that nothing will answer, so that the other side learns it at once. */
static void drop_request(struct rdma_cm_id *id)
{
    slu_rdma.reject(id, NULL, 0);
    slu_rdma.destroy_id(id);
}

/* cm is NULL for an id that listens. */
static void dispatch(const struct rdma_cm_event *event, struct slu_cm *cm,
                     struct slu_cm_reader *reader)
{
    if (cm != NULL) {
        apply(cm, event);
        if (reader->happened != NULL)
            reader->happened(reader, cm);
    } else if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL && reader->lost != NULL) {
        reader->lost(reader);
    }
}

static void handle(struct rdma_cm_event *event, struct slu_cm_reader *reader)
{
    bool request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
    struct rdma_cm_id *id = event->id;
    struct slu_cm *cm = request ? receive_request(event) : id->context;

    if (!request) {
        dispatch(event, cm, reader);
        slu_rdma.ack_cm_event(event);
        return;
    }
    slu_rdma.ack_cm_event(event);
    if (cm == NULL) {
        drop_request(id);
    } else if (reader->came == NULL) {
        drop_request(id);
        free(cm);
    } else {
        reader->came(reader, cm);
    }
}

void slu_cm_read(struct rdma_event_channel *events, struct slu_cm_reader *reader)
{
    SLU_KEEP_ERRNO;
    struct rdma_cm_event *event;
    int error;

    for (;;) {
        begin();
        error = slu_rdma.get_cm_event(events, &event);
        end();
        if (error != 0)
            break;
        handle(event, reader);
    }
}

struct slu_cm *slu_cm_make(struct rdma_event_channel *events)
{
    struct slu_cm *cm = calloc(1, sizeof *cm);

    if (cm == NULL)
        return slu_fail_null(ENOMEM, "no memory for a connection");
    if (slu_rdma.create_id(events, &cm->id, cm, RDMA_PS_TCP) == 0)
        return cm;
    free(cm);
    return slu_fail_null(errno == ENOMEM ? ENOMEM : EOPNOTSUPP, "rdma_cm: no connection: %s",
                         strerrordesc_np(errno));
}

static int lookup_time(int64_t until)
{
    int time = slu_milliseconds(until);

    return time < 0 || time > LOOKUP_MOST ? LOOKUP_MOST : time > 0 ? time : 1;
}

/* Fails with a text because rdma_cm did not start a step. */
static int fail_step(const char *what)
{
    switch (errno) {
    case ENODEV:
    case EADDRNOTAVAIL:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return slu_fail(EHOSTUNREACH, "no RDMA device has a way to it: %s", strerrordesc_np(errno));
    case ENOMEM:
        return slu_fail(ENOMEM, "rdma_cm cannot %s: no memory", what);
    default:
        return slu_fail(EIO, "rdma_cm cannot %s: %s", what, strerrordesc_np(errno));
    }
}

int slu_cm_find(struct slu_cm *cm, const struct slu_address *address, int64_t until)
{
    struct sockaddr_storage storage;

    slu_address_to(address, &storage);
    return slu_rdma.resolve_addr(cm->id, NULL, (struct sockaddr *)&storage, lookup_time(until)) == 0
               ? 0
               : fail_step("look for it");
}

int slu_cm_route(struct slu_cm *cm, int64_t until)
{
    return slu_rdma.resolve_route(cm->id, lookup_time(until)) == 0
               ? 0
               : fail_step("find a route to it");
}

/* A request that a thread of its own sends. */
struct asking {
    struct rdma_cm_id *id;
    struct rdma_conn_param *param;
    pthread_mutex_t lock;
    pthread_cond_t ended_now;
    bool ended; /* guarded by lock */
    int error;  /* errno value */
};

static void *run_asking(void *argument)
{
    struct asking *asking = argument;

    asking->error = slu_rdma.connect(asking->id, asking->param) == 0 ? 0 : errno;
    pthread_mutex_lock(&asking->lock);
    asking->ended = true;
    pthread_cond_signal(&asking->ended_now);
    pthread_mutex_unlock(&asking->lock);
    return NULL;
}

/* Makes the lock and the condition of a request, which waits by CLOCK_MONOTONIC. */
static void prepare_wait(struct asking *asking)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&asking->ended_now, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&asking->lock, NULL);
}

/* Returns whether the request has ended in time. */
static bool has_ended(struct asking *asking, int64_t until)
{
    const struct timespec time = {.tv_sec = until / SLUICE_S(1), .tv_nsec = until % SLUICE_S(1)};
    int late = 0;
    bool ended;

    pthread_mutex_lock(&asking->lock);
    while (!asking->ended && late == 0)
        late = pthread_cond_timedwait(&asking->ended_now, &asking->lock, &time);
    ended = asking->ended;
    pthread_mutex_unlock(&asking->lock);
    return ended;
}

/*
 * Sends a request of iWARP, for which the kernel makes a TCP connection and waits for it: two
 * minutes if the host is silent. Only a signal ends that wait, as a cancellation does, so a thread
 * waits. Returns an errno value.
 */
static int ask_iwarp(struct slu_cm *cm, struct rdma_conn_param *param, int64_t until)
{
    struct asking asking = {.id = cm->id, .param = param, .error = ETIMEDOUT};
    pthread_t thread;
    int error;

    prepare_wait(&asking);
    error = slu_thread_start(&thread, "sluice-connect", run_asking, &asking);
    if (error == 0) {
        if (!has_ended(&asking, until))
            pthread_cancel(thread);
        pthread_join(thread, NULL);
        error = asking.error;
    } else if (error == EAGAIN) {
        error = ENOMEM;
    }
    pthread_cond_destroy(&asking.ended_now);
    pthread_mutex_destroy(&asking.lock);
    return error;
}

static int ask(struct slu_cm *cm, struct rdma_conn_param *param, int64_t until)
{
    if (cm->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP)
        return ask_iwarp(cm, param, until);
    return slu_rdma.connect(cm->id, param) == 0 ? 0 : errno;
}

/* iWARP reports here, and not by an event, why there is no TCP connection. */
int slu_cm_ask(struct slu_cm *cm, struct rdma_conn_param *param, int64_t until)
{
    errno = ask(cm, param, until);
    if (errno == 0)
        return 0;
    if (errno != ECONNREFUSED && errno != ETIMEDOUT)
        return fail_step("send a request to it");
    if (errno == ECONNREFUSED)
        end_unheard(cm);
    else
        end_with(cm, ETIMEDOUT, "it does not answer");
    return 0;
}

int slu_cm_confirm(struct slu_cm *cm)
{
    if (slu_rdma.establish(cm->id) != 0)
        return fail_step("confirm the connection");
    cm->state = SLU_CM_CONNECTED;
    return 0;
}

/* The kernel returns EINVAL for an id whose connection is gone. */
bool slu_cm_has_ended(struct slu_cm *cm)
{
    SLU_KEEP_ERRNO;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
    int mask = 0;

    if (cm->state == SLU_CM_ASKED && slu_rdma.init_qp_attr(cm->id, &attr, &mask) != 0 &&
        errno == EINVAL)
        end_with(cm, ECONNRESET, "the peer has left (rdma_cm)");
    return cm->state == SLU_CM_ENDED;
}

int slu_cm_answer(struct slu_cm *cm, struct rdma_conn_param *param)
{
    if (slu_rdma.accept(cm->id, param) != 0) {
        /* librdmacm also returns EINVAL for an answer that it does not accept. */
        if (errno == EINVAL)
            slu_cm_has_ended(cm);
        else if (errno == ECONNRESET) /* iWARP */
            end_with(cm, ECONNRESET, "the peer has left (rdma_cm)");
        return fail_step("answer it");
    }
    cm->state = SLU_CM_ANSWERED;
    return 0;
}

void slu_cm_reject(struct slu_cm *cm, const char *reason)
{
    if (cm->state == SLU_CM_ASKED)
        slu_rdma.reject(cm->id, reason, (uint8_t)strnlen(reason, SLU_CM_REJECT_BYTES));
}

int slu_cm_move(struct slu_cm *cm, struct rdma_event_channel *events)
{
    return slu_rdma.migrate_id(cm->id, events) == 0
               ? 0
               : fail_step("move the connection to other events");
}

void slu_cm_disconnect(struct slu_cm *cm)
{
    SLU_KEEP_ERRNO;

    slu_rdma.disconnect(cm->id);
}

void slu_cm_end(struct slu_cm *cm)
{
    SLU_KEEP_ERRNO;

    if (cm == NULL)
        return;
    slu_rdma.destroy_id(cm->id);
    free(cm);
}

struct slu_address slu_cm_peer_address(const struct slu_cm *cm)
{
    return slu_address_of(rdma_get_peer_addr(cm->id));
}

struct slu_address slu_cm_own_address(const struct rdma_cm_id *id)
{
    return slu_address_of(&id->route.addr.src_addr);
}

/*
 * Binds an id of IPv6 to IPv6 alone: iWARP listens for IPv4 only at an id of IPv4, whose port must
 * then be free.
 */
static int bind_id(struct rdma_cm_id *id, struct sockaddr *address)
{
    int alone = 1;

    if (address->sa_family == AF_INET6 &&
        slu_rdma.set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &alone, sizeof alone) != 0)
        return -1;
    return slu_rdma.bind_addr(id, address);
}

struct rdma_cm_id *slu_cm_listen(struct rdma_event_channel *events,
                                 const struct slu_address *address, int backlog, int *error)
{
    struct sockaddr_storage storage;
    struct rdma_cm_id *id;
    int failed;

    slu_address_to(address, &storage);
    *error = 0;
    if (slu_rdma.create_id(events, &id, NULL, RDMA_PS_TCP) != 0) {
        *error = errno;
        return NULL;
    }
    begin();
    failed = bind_id(id, (struct sockaddr *)&storage);
    if (failed == 0)
        failed = slu_rdma.listen(id, backlog < BACKLOG_LEAST ? BACKLOG_LEAST : backlog);
    *error = failed != 0 ? errno : 0;
    if (failed != 0)
        slu_rdma.destroy_id(id);
    end();
    return failed == 0 ? id : NULL;
}
