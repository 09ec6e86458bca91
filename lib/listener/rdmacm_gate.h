/* SPDX-License-Identifier: MIT */
/* The gate of a listener over rdma_cm: its ids, one for each address, and their events. */
#ifndef SLU_LISTENER_RDMACM_GATE_H
#define SLU_LISTENER_RDMACM_GATE_H

#include "connect/cm.h"
#include "listener/rdmacm.h"

struct slu_gate {
    struct slu_cm_reader reader;
    struct sluice_listener *listener; /* NULL: closed */
    struct rdma_event_channel *events;
    uint32_t count, lost; /* number of ids, and of those whose device is being removed */
    int64_t looked;
    struct rdma_cm_id *ids[SLU_LISTENERS];
};

#define SLU_GATE_LOST "nobody can come any more: the device of the listener was removed"

/* Ends all ids: no connection comes any more. */
void slu_gate_end_ids(struct slu_gate *gate);

#endif
