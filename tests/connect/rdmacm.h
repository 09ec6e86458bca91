/* SPDX-License-Identifier: MIT */
/* Helpers of the tests over rdma_cm: a listener, and a client that speaks only rdma_cm. */
#ifndef CONNECT_RDMACM_H
#define CONNECT_RDMACM_H

#include <rdma/rdma_cma.h>

#include "../support/client.h"

#define HOST "192.0.2.1"

/* Returns true for a soft or a pretended device. */
bool has_no_rdmacm(void);
/* Listens at a free port of HOST. The client dials the returned address. */
struct sluice_listener *listen_here(char address[64]);
/* A client of the listener at that address, which begins when it is started. */
void client_of(struct client *client, const char *address, struct sluice_pd *pd);

/* A client that speaks only rdma_cm; it takes one step at a time, each with one event. */
struct plain {
    struct rdma_event_channel *events;
    struct rdma_cm_id *id;
    struct ibv_mr *mr;
    char bytes[64];
};

void plain_open(struct plain *plain);
void plain_close(struct plain *plain);
/* Waits for the next event, which must be this one; the caller acknowledges it. */
struct rdma_cm_event *plain_expect(struct plain *plain, enum rdma_cm_event_type type);
void plain_make_qp(struct plain *plain);
/* Dials up to the connection request. */
void plain_dial(struct plain *plain, const char *address);

#endif
