/* SPDX-License-Identifier: MIT */
/*
 * librdmacm, which is loaded when an address first needs it, so that programs without rdma_cm do
 * not depend on it. Functions have the names of rdma_cma.h without rdma_.
 */
#ifndef SLU_CONNECT_CM_LIBRARY_H
#define SLU_CONNECT_CM_LIBRARY_H

#include <rdma/rdma_cma.h>

#define SLU_RDMA_CALLS(CALL)    \
    CALL(create_event_channel)  \
    CALL(destroy_event_channel) \
    CALL(get_cm_event)          \
    CALL(ack_cm_event)          \
    CALL(create_id)             \
    CALL(destroy_id)            \
    CALL(migrate_id)            \
    CALL(set_option)            \
    CALL(bind_addr)             \
    CALL(listen)                \
    CALL(resolve_addr)          \
    CALL(resolve_route)         \
    CALL(connect)               \
    CALL(establish)             \
    CALL(accept)                \
    CALL(reject)                \
    CALL(disconnect)            \
    CALL(init_qp_attr)

struct slu_cm_library {
#define SLU_RDMA_FIELD(name) __typeof__(rdma_##name) *name;
    SLU_RDMA_CALLS(SLU_RDMA_FIELD)
};

extern struct slu_cm_library slu_rdma;

/*
 * Loads the library. Returns 0, after which the functions can be called, or -EOPNOTSUPP with a
 * text.
 */
int slu_cm_load(void);

#endif
