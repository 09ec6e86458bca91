/* SPDX-License-Identifier: MIT */
/*
 * librdmacm, which is loaded when an address first needs it, so that programs without rdma_cm do
 * not depend on it. Functions have the names of rdma_cma.h without rdma_.
 */
#ifndef SLU_CONNECT_CM_LIBRARY_H
#define SLU_CONNECT_CM_LIBRARY_H

#include <rdma/rdma_cma.h>

struct slu_cm_library {
    struct rdma_event_channel *(*create_event_channel)(void);
    void (*destroy_event_channel)(struct rdma_event_channel *channel);
    int (*get_cm_event)(struct rdma_event_channel *channel, struct rdma_cm_event **event);
    int (*ack_cm_event)(struct rdma_cm_event *event);
    int (*create_id)(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                     enum rdma_port_space space);
    int (*destroy_id)(struct rdma_cm_id *id);
    int (*migrate_id)(struct rdma_cm_id *id, struct rdma_event_channel *channel);
    int (*bind_addr)(struct rdma_cm_id *id, struct sockaddr *address);
    int (*listen)(struct rdma_cm_id *id, int backlog);
    int (*resolve_addr)(struct rdma_cm_id *id, struct sockaddr *source, struct sockaddr *target,
                        int milliseconds);
    int (*resolve_route)(struct rdma_cm_id *id, int milliseconds);
    int (*connect)(struct rdma_cm_id *id, struct rdma_conn_param *param);
    int (*establish)(struct rdma_cm_id *id);
    int (*accept)(struct rdma_cm_id *id, struct rdma_conn_param *param);
    int (*reject)(struct rdma_cm_id *id, const void *data, uint8_t bytes);
    int (*disconnect)(struct rdma_cm_id *id);
    int (*init_qp_attr)(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask);
};

extern struct slu_cm_library slu_rdma;

/*
 * Loads the library. Returns 0, after which the functions can be called, or -EOPNOTSUPP with a
 * text.
 */
int slu_cm_load(void);

#endif
