/* SPDX-License-Identifier: MIT */
/*
 * Listening over rdma_cm: one id for each address; the events of all come through one descriptor.
 */
#include "config.h"

#include <stdlib.h>
#include <sys/epoll.h>

#include "listener/rdmacm_gate.h"

/* Attempts to find a port that is free at all addresses. */
#define PORT_TRIES 16
/* Interval of checks of a full queue for connections that have left. */
#define LOOK_TIME SLUICE_MS(50)

static void lost(struct slu_cm_reader *reader)
{
    struct slu_gate *gate = slu_container_of(reader, struct slu_gate, reader);

    /* A door has no call that could report it. */
    if (++gate->lost == gate->count)
        slu_log(SLUICE_LOG_WARN, SLU_GATE_LOST);
}

/*
 * Returns whether the queue has room. If it is full, first drops connections that have left: no
 * event reports them.
 */
static bool has_room(struct slu_gate *gate)
{
    struct sluice_listener *listener = gate->listener;
    int64_t now = slu_now();

    if (listener->waiting >= listener->backlog && now - gate->looked >= LOOK_TIME) {
        gate->looked = now;
        slu_listener_drop_left(listener);
    }
    return listener->waiting < listener->backlog;
}

static void came(struct slu_cm_reader *reader, struct slu_cm *cm)
{
    struct slu_gate *gate = slu_container_of(reader, struct slu_gate, reader);
    struct sluice_listener *listener = gate->listener;
    struct sluice_incoming *incoming = NULL;

    if (listener == NULL)
        slu_cm_reject(cm, "the listener was closed");
    else if (has_room(gate))
        incoming = calloc(1, sizeof *incoming);
    else
        slu_cm_reject(cm, SLU_RDMACM_BUSY);
    if (incoming == NULL) {
        slu_cm_end(cm);
        return;
    }
    incoming->fd = -1;
    incoming->cm = cm;
    incoming->channels = 1;
    incoming->address = slu_cm_peer_address(cm);
    /* The kernel does not report the interface. If the listener is at one interface, use that. */
    if (slu_address_is_of_link(&incoming->address))
        incoming->address.scope = listener->address.scope;
    incoming->private_data.bytes = cm->said_bytes;
    memcpy(incoming->private_data.data, cm->said, cm->said_bytes);
    slu_listener_add(listener, incoming);
}

static bool is_elsewhere(int error)
{
    return error == ENODEV || error == EADDRNOTAVAIL || error == EAFNOSUPPORT;
}

/*
 * Binds all addresses to the same port, except those that no RDMA device of this host has. Returns
 * 0, or a positive errno value.
 */
static int bind_all(struct slu_gate *gate, const struct slu_address *addresses, int count,
                    int backlog)
{
    uint16_t port = addresses[0].port;
    int error = EADDRNOTAVAIL;

    for (int i = 0; i < count; i++) {
        struct slu_address address = addresses[i];
        struct rdma_cm_id *id;

        address.port = port;
        id = slu_cm_listen(gate->events, &address, backlog, &error);
        if (id != NULL) {
            gate->ids[gate->count++] = id;
            port = slu_cm_own_address(id).port;
        } else if (!is_elsewhere(error)) {
            slu_gate_end_ids(gate);
            return error;
        }
    }
    return gate->count > 0 ? 0 : is_elsewhere(error) ? EADDRNOTAVAIL : error;
}

/*
 * Binds one port at these addresses. If any port will do, and that of the first address is in use
 * at another one, tries again with another port.
 */
static int bind_port(struct slu_gate *gate, const struct slu_address *addresses, int count,
                     int backlog)
{
    int error = EADDRINUSE;

    for (int i = 0; i < PORT_TRIES && error == EADDRINUSE; i++) {
        error = bind_all(gate, addresses, count, backlog);
        if (addresses[0].port != 0)
            break;
    }
    return error;
}

/* Binds all addresses: of both families or, without IPv6, of IPv4. */
static int bind_everywhere(struct slu_gate *gate, uint16_t port, int backlog)
{
    const struct slu_address any[] = {{.family = 6, .port = port}, {.family = 4, .port = port}};

    return bind_port(gate, any, 2, backlog);
}

static int fail_listen(int error, const char *address)
{
    switch (error) {
    case EADDRNOTAVAIL:
        return slu_fail(EADDRNOTAVAIL,
                        "cannot listen at %.128s: no RDMA device of this host has that address",
                        address);
    case EADDRINUSE:
    case EACCES:
    case ENOMEM:
        return slu_listen_fail(error, address);
    default:
        return slu_fail(EOPNOTSUPP, "cannot listen at %.128s: rdma_cm: %s", address,
                        strerrordesc_np(error));
    }
}

static int bind_where(struct slu_gate *gate, const char *address, int backlog)
{
    struct slu_address addresses[SLU_LISTENERS];
    struct slu_host_port where;
    int error = slu_listen_parse(address, slu_rdmacm_address(address), &where);
    int count;

    if (error < 0)
        return error;
    if (where.host[0] == '\0') {
        error = bind_everywhere(gate, (uint16_t)atoi(where.port), backlog);
        return error == 0 ? 0 : fail_listen(error, address);
    }
    count = slu_listen_find(&where, addresses);
    if (count < 0)
        return count;
    error = bind_port(gate, addresses, count, backlog);
    return error == 0 ? 0 : fail_listen(error, address);
}

int slu_rdmacm_listen(struct sluice_listener *listener, const char *address)
{
    struct slu_gate *gate = calloc(1, sizeof *gate);
    int error;

    if (gate == NULL)
        return slu_fail(ENOMEM, "no memory for a listener");
    gate->reader.came = came;
    gate->reader.lost = lost;
    gate->listener = listener;
    gate->events = slu_cm_events_open();
    if (gate->events == NULL) {
        free(gate);
        return -errno;
    }
    listener->gate = gate;
    error = bind_where(gate, address, (int)listener->backlog);
    if (error < 0)
        return error;
    listener->address = slu_cm_own_address(gate->ids[0]);
    error = slu_listener_watch(listener, gate->events->fd, EPOLLIN, SLU_GATE_TAG);
    return error == 0 ? 0 : slu_listen_fail_watch(error);
}
