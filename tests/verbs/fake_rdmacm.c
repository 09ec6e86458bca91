/* SPDX-License-Identifier: MIT */
#include "fake_rdmacm.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/suite.h"
#include "fake_address.h"
#include "fake_iwarp.h"

/* Values of the kernel. */
enum { REJ_TIMEOUT = 4, REJ_NO_SERVICE = 8, REJ_CONSUMER = 28 };

/*
 * The first PSN of the side that answers; the side that dials begins at the number of its queue
 * pair.
 */
#define ANSWER_PSN 0x77

enum state { IDLE, LISTENS, ASKS, WAS_ASKED, ANSWERS, CONNECTED, OVER };

struct event {
    struct rdma_cm_event base; /* the first field */
    struct event *next;
    uint8_t data[255];
};

struct channel {
    struct rdma_event_channel base; /* the first field */
    int writer;                     /* of the pipe that has a byte for each event */
    struct event *first;
};

struct id {
    struct rdma_cm_id base; /* the first field */
    struct id *next;
    enum state state;
    struct id *peer;
    uint32_t unacked, qpn, peer_qpn;
    pthread_t reader;       /* the thread that has read an event last */
    uint8_t reads, answers; /* as agreed on: reads of ours in flight, and those we answer */
    bool known;             /* the program has answered; no events are delivered before that */
    bool alone;             /* it listens for its own family of addresses alone */
};

struct fake_rdmacm fake_rdmacm;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t acknowledged = PTHREAD_COND_INITIALIZER;
static struct id *ids;
static struct ibv_context *device;
static uint16_t last_port;
/* Must be called with the lock. */
static bool fails(void)
{
    if (fake_rdmacm.fail_in == 0 || --fake_rdmacm.fail_in > 0) {
        return false;
    }
    errno = fake_rdmacm.fail_error;
    return true;
}

static int result(int error)
{
    pthread_mutex_unlock(&lock);
    errno = error != 0 ? error : errno;
    return error != 0 ? -1 : 0;
}

/* Begins a call on an id. Returns 0, or the error. */
static int enter(void)
{
    pthread_mutex_lock(&lock);
    return fails() ? errno : 0;
}

static void deliver(struct id *id, enum rdma_cm_event_type type, int status,
                    const struct rdma_conn_param *conn)
{
    struct channel *channel = (struct channel *)id->base.channel;
    struct event *event = calloc(1, sizeof(*event)), **at = &channel->first;
    require(event != NULL, "no memory");
    event->base = (struct rdma_cm_event){.id = &id->base, .event = type, .status = status};
    if (conn != NULL) {
        event->base.param.conn = *conn;
        event->base.param.conn.private_data = event->data;
        if (conn->private_data_len > 0) {
            memcpy(event->data, conn->private_data, conn->private_data_len);
        }
    }
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = event;
    fake_rdmacm.events++;
    require(write(channel->writer, "", 1) == 1, "no byte");
}

static struct rdma_event_channel *create_event_channel(void)
{
    struct channel *channel = NULL;
    int fds[2];
    pthread_mutex_lock(&lock);
    if (fake_rdmacm.fail_open_in > 0 && --fake_rdmacm.fail_open_in == 0) {
        errno = EMFILE;
    } else if (!fails() && pipe2(fds, O_CLOEXEC) == 0) {
        channel = calloc(1, sizeof(*channel));
        require(channel != NULL, "no memory");
        channel->base.fd = fds[0];
        channel->writer = fds[1];
        fake_rdmacm.channels++;
    }
    pthread_mutex_unlock(&lock);
    return (struct rdma_event_channel *)channel;
}

static void destroy_event_channel(struct rdma_event_channel *base)
{
    struct channel *channel = (struct channel *)base;
    pthread_mutex_lock(&lock);
    require(channel->first == NULL, "a channel is destroyed that has events");
    for (struct id *id = ids; id != NULL; id = id->next) {
        require(id->base.channel != base, "a channel is destroyed that has ids");
    }
    close(channel->base.fd);
    close(channel->writer);
    free(channel);
    fake_rdmacm.channels--;
    pthread_mutex_unlock(&lock);
}

/*
 * Takes the byte and the event in one step: an id that moves to another channel meanwhile takes
 * both along.
 */
static int get_cm_event(struct rdma_event_channel *base, struct rdma_cm_event **event)
{
    struct channel *channel = (struct channel *)base;
    char byte;
    int error = EAGAIN;
    pthread_mutex_lock(&lock);
    if (channel->first != NULL) {
        require(read(channel->base.fd, &byte, 1) == 1, "no byte");
        *event = &channel->first->base;
        channel->first = channel->first->next;
        struct id *id = (struct id *)(*event)->id;
        id->unacked++;
        id->reader = pthread_self();
        error = 0;
    }
    return result(error);
}

static int ack_cm_event(struct rdma_cm_event *event)
{
    pthread_mutex_lock(&lock);
    ((struct id *)event->id)->unacked--;
    pthread_cond_broadcast(&acknowledged);
    free(event);
    fake_rdmacm.events--;
    return result(0);
}

static struct id *make_id(struct rdma_event_channel *channel, void *context)
{
    struct id *id = calloc(1, sizeof(*id));
    require(id != NULL, "no memory");
    id->base.channel = channel;
    id->base.context = context;
    id->base.ps = RDMA_PS_TCP;
    id->next = ids;
    ids = id;
    fake_rdmacm.ids++;
    return id;
}

static int create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                     enum rdma_port_space space)
{
    int error = enter();
    (void)space;
    if (error == 0) {
        *id = &make_id(channel, context)->base;
    }
    return result(error);
}

/* Drops the events of an id that the program had not read, or moves them to another channel. */
static void move_events(struct id *id, struct channel *to)
{
    struct channel *from = (struct channel *)id->base.channel;
    char byte;
    for (struct event **at = &from->first; *at != NULL;) {
        struct event *event = *at, **end;
        if (event->base.id != &id->base) {
            at = &event->next;
            continue;
        }
        *at = event->next;
        event->next = NULL;
        require(read(from->base.fd, &byte, 1) == 1, "no byte");
        if (to == NULL) {
            free(event);
            fake_rdmacm.events--;
            continue;
        }
        for (end = &to->first; *end != NULL;) {
            end = &(*end)->next;
        }
        *end = event;
        require(write(to->writer, "", 1) == 1, "no byte");
    }
}

/* Delivers the event that the end of this id causes at its peer. */
static void part(struct id *id)
{
    struct id *peer = id->peer;
    const struct rdma_conn_param none = {.private_data = NULL};
    if (peer == NULL) {
        return;
    }
    peer->peer = id->peer = NULL;
    switch (id->state) {
    case CONNECTED:
        fake_iwarp_end(peer->qpn);
        deliver(peer, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
        break;
    case ASKS:
        if (peer->known) {
            deliver(peer, RDMA_CM_EVENT_REJECTED, REJ_TIMEOUT, &none);
        }
        break;
    default:
        deliver(peer, RDMA_CM_EVENT_REJECTED, id->state == WAS_ASKED ? REJ_CONSUMER : REJ_TIMEOUT,
                &none);
        break;
    }
    peer->state = OVER;
}

/*
 * As rdma_destroy_id() does: waits for the thread that has an event of this id, and would wait
 * forever for the thread that calls it.
 */
static void await_acknowledgement(struct id *id)
{
    while (id->unacked > 0) {
        require(!pthread_equal(id->reader, pthread_self()),
                "an id is destroyed that has an event unacknowledged");
        pthread_cond_wait(&acknowledged, &lock);
    }
}

static void remove_id(struct id *id)
{
    struct channel *channel = (struct channel *)id->base.channel;
    struct id **at = &ids;
    await_acknowledgement(id);
    part(id);
    move_events(id, NULL);
    /* Ends the requests to this listener whose events were not read. */
    for (struct event *event = channel->first, *next; event != NULL; event = next) {
        next = event->next;
        if (event->base.listen_id == &id->base) {
            remove_id((struct id *)event->base.id);
            next = channel->first;
        }
    }
    while (*at != id) {
        at = &(*at)->next;
    }
    *at = id->next;
    free(id);
    fake_rdmacm.ids--;
}

static int destroy_id(struct rdma_cm_id *base)
{
    pthread_mutex_lock(&lock);
    remove_id((struct id *)base);
    return result(0);
}

static int migrate_id(struct rdma_cm_id *base, struct rdma_event_channel *channel)
{
    int error = enter();
    if (error == 0) {
        move_events((struct id *)base, (struct channel *)channel);
        base->channel = channel;
    }
    return result(error);
}

static void find_device(struct rdma_cm_id *id)
{
    if (device == NULL) {
        struct ibv_device **list = ibv_get_device_list(NULL);
        require(list != NULL && list[0] != NULL, "no device");
        device = ibv_open_device(list[0]);
        require(device != NULL, "no context");
        ibv_free_device_list(list);
    }
    id->verbs = device;
    id->port_num = 1;
}

static int set_option(struct rdma_cm_id *base, int level, int name, void *value, size_t length)
{
    int error = enter();
    require(level == RDMA_OPTION_ID && name == RDMA_OPTION_ID_AFONLY && length == sizeof(int),
            "option %d", name);
    ((struct id *)base)->alone = *(int *)value != 0;
    return result(error);
}

static int bind_addr(struct rdma_cm_id *base, struct sockaddr *address)
{
    int error = enter();
    if (error == 0 && has_no_scope(address)) {
        error = EINVAL;
    }
    if (error == 0) {
        uint16_t *port = port_of(&base->route.addr.src_addr);
        copy_address(&base->route.addr.src_storage, address);
        *port = *port != 0 ? *port : htons((uint16_t)(40000 + ++last_port % 1000));
        if (!is_any(address)) {
            find_device(base);
        }
    }
    return result(error);
}

static int listen_id(struct rdma_cm_id *base, int backlog)
{
    int error = enter();
    (void)backlog;
    if (error == 0) {
        ((struct id *)base)->state = LISTENS;
    }
    return result(error);
}

static int resolve_addr(struct rdma_cm_id *base, struct sockaddr *source, struct sockaddr *target,
                        int milliseconds)
{
    int error = enter();
    (void)source;
    (void)milliseconds;
    if (error == 0 && has_no_scope(target)) {
        error = EINVAL;
    }
    if (error == 0) {
        copy_address(&base->route.addr.dst_storage, target);
        copy_address(&base->route.addr.src_storage, target);
        *port_of(&base->route.addr.src_addr) = htons((uint16_t)(50000 + ++last_port % 1000));
        find_device(base);
        deliver((struct id *)base, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL);
    }
    return result(error);
}

static int resolve_route(struct rdma_cm_id *base, int milliseconds)
{
    int error = enter();
    (void)milliseconds;
    if (error == 0) {
        deliver((struct id *)base, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL);
    }
    return result(error);
}

static struct id *find_listener(const struct rdma_cm_id *dials)
{
    struct sockaddr_storage to = dials->route.addr.dst_storage;
    for (struct id *id = ids; id != NULL; id = id->next) {
        struct sockaddr_storage at = id->base.route.addr.src_storage;
        if (id->state == LISTENS &&
            *port_of((struct sockaddr *)&at) == *port_of((struct sockaddr *)&to) &&
            ((is_any((struct sockaddr *)&at) && (!id->alone || at.ss_family == to.ss_family)) ||
             memcmp(&at, &to, sizeof(at)) == 0)) {
            return id;
        }
    }
    return NULL;
}

static int dial(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
    struct id *id = (struct id *)base, *listener, *came;
    struct rdma_conn_param conn = *param;
    struct channel *channel;
    struct event *event;
    int error = enter();
    if (error != 0) {
        return result(error);
    }
    id->state = ASKS;
    id->qpn = param->qp_num;
    listener = find_listener(base);
    if (listener == NULL && fake_iwarp()) {
        return result(ECONNREFUSED);
    }
    if (listener == NULL) {
        deliver(id, RDMA_CM_EVENT_REJECTED, REJ_NO_SERVICE, NULL);
        return result(0);
    }
    came = make_id(listener->base.channel, listener->base.context);
    came->state = WAS_ASKED;
    came->peer = id;
    id->peer = came;
    came->peer_qpn = id->qpn;
    came->base.route.addr.src_storage = base->route.addr.dst_storage;
    came->base.route.addr.dst_storage = base->route.addr.src_storage;
    if (came->base.route.addr.dst_addr.sa_family == AF_INET6) {
        came->base.route.addr.dst_sin6.sin6_scope_id = 0; /* the kernel does not report it */
    }
    find_device(&came->base);
    /* Both values are seen from the side that was asked. */
    conn.initiator_depth = param->responder_resources;
    conn.responder_resources = param->initiator_depth;
    deliver(came, RDMA_CM_EVENT_CONNECT_REQUEST, 0, &conn);
    channel = (struct channel *)came->base.channel;
    for (event = channel->first; event->base.id != &came->base;) {
        event = event->next;
    }
    event->base.listen_id = &listener->base;
    return result(0);
}

static int establish(struct rdma_cm_id *base)
{
    struct id *id = (struct id *)base;
    int error = enter();
    if (error == 0 && (id->peer == NULL || id->peer->state != ANSWERS)) {
        error = EINVAL;
    }
    if (error == 0) {
        id->state = id->peer->state = CONNECTED;
        deliver(id->peer, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
    }
    return result(error);
}

static int accept_id(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
    struct id *id = (struct id *)base;
    struct rdma_conn_param conn = *param;
    int error = enter();
    if (error == 0 && id->peer != NULL && fake_rdmacm.leaving == FAKE_LEAVES_AT_ANSWER) {
        part(id->peer);
    }
    if (error == 0 && (id->state != WAS_ASKED || id->peer == NULL ||
                       fake_rdmacm.leaving == FAKE_STAYS_UNANSWERED)) {
        error = EINVAL;
    }
    if (error != 0) {
        return result(error);
    }
    id->known = true;
    id->state = ANSWERS;
    id->qpn = param->qp_num;
    id->reads = param->initiator_depth;
    id->answers = param->responder_resources;
    if (fake_rdmacm.leaving == FAKE_LEAVES_BEHIND_IT) {
        part(id->peer);
        return result(0);
    }
    id->peer->peer_qpn = id->qpn;
    id->peer->reads = id->answers;
    id->peer->answers = id->reads;
    conn.initiator_depth = id->answers;
    conn.responder_resources = id->reads;
    if (fake_iwarp()) {
        if (!fake_iwarp_join(id->qpn, id->peer->qpn)) {
            return result(EINVAL);
        }
        id->state = id->peer->state = CONNECTED;
        deliver(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
        deliver(id->peer, RDMA_CM_EVENT_ESTABLISHED, 0, &conn);
        return result(0);
    }
    deliver(id->peer, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, &conn);
    return result(0);
}

static int reject(struct rdma_cm_id *base, const void *data, uint8_t bytes)
{
    struct id *id = (struct id *)base;
    struct rdma_conn_param conn = {.private_data = data, .private_data_len = bytes};
    pthread_mutex_lock(&lock);
    if (id->peer != NULL) {
        fake_iwarp_end(id->peer->qpn);
        deliver(id->peer, RDMA_CM_EVENT_REJECTED, fake_iwarp() ? -ECONNRESET : REJ_CONSUMER, &conn);
        id->peer->state = OVER;
        id->peer->peer = NULL;
        id->peer = NULL;
    }
    return result(0);
}

static int disconnect(struct rdma_cm_id *base)
{
    struct id *id = (struct id *)base;
    pthread_mutex_lock(&lock);
    if (id->state == CONNECTED && id->peer != NULL) {
        deliver(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
        part(id);
        id->state = OVER;
    }
    return result(0);
}

static int init_qp_attr(struct rdma_cm_id *base, struct ibv_qp_attr *attr, int *mask)
{
    struct id *id = (struct id *)base;
    int error = enter();
    if (error == 0 && id->peer == NULL) {
        error = EINVAL;
    }
    if (error != 0) {
        return result(error);
    }
    *mask = IBV_QP_STATE;
    attr->port_num = 1;
    attr->path_mtu =
        fake_rdmacm.mtu != 0 ? fake_rdmacm.mtu : fake_verbs.device[0].port[0].active_mtu;
    attr->dest_qp_num = id->peer_qpn;
    attr->rq_psn = id->state == WAS_ASKED ? id->peer_qpn & 0xffffff : ANSWER_PSN;
    attr->sq_psn = id->state == WAS_ASKED ? ANSWER_PSN : id->qpn & 0xffffff;
    attr->max_dest_rd_atomic = id->state == WAS_ASKED ? 16 : id->answers;
    attr->max_rd_atomic = id->state == WAS_ASKED ? 16 : id->reads;
    fake_iwarp_address(&attr->ah_attr);
    return result(0);
}

void fake_rdmacm_lose_device(void)
{
    pthread_mutex_lock(&lock);
    for (struct id *id = ids; id != NULL; id = id->next) {
        if (id->state == LISTENS && !is_any(&id->base.route.addr.src_addr)) {
            id->state = OVER;
            deliver(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, NULL);
        }
    }
    pthread_mutex_unlock(&lock);
}

void fake_rdmacm_reset(void)
{
    fake_rdmacm = (struct fake_rdmacm){.mtu = 0};
}

void fake_rdmacm_end(void)
{
    require_equal(fake_rdmacm.ids, 0, fake_rdmacm.channels, 0, fake_rdmacm.events, 0);
    if (device != NULL) {
        ibv_close_device(device);
    }
    device = NULL;
    fake_rdmacm_reset();
}

struct slu_cm_library slu_rdma = {
    .create_event_channel = create_event_channel,
    .destroy_event_channel = destroy_event_channel,
    .get_cm_event = get_cm_event,
    .ack_cm_event = ack_cm_event,
    .create_id = create_id,
    .destroy_id = destroy_id,
    .migrate_id = migrate_id,
    .bind_addr = bind_addr,
    .set_option = set_option,
    .listen = listen_id,
    .resolve_addr = resolve_addr,
    .resolve_route = resolve_route,
    .connect = dial,
    .establish = establish,
    .accept = accept_id,
    .reject = reject,
    .disconnect = disconnect,
    .init_qp_attr = init_qp_attr,
};

int slu_cm_load(void)
{
    return 0;
}
