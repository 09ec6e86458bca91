/* SPDX-License-Identifier: MIT */
/* The gate of a listener over rdma_cm: what exists once it listens. */
#include "config.h"

#include <stdlib.h>

#include "listener/rdmacm_gate.h"

int slu_rdmacm_check_gate(const struct slu_gate *gate)
{
    if (gate == NULL || gate->lost < gate->count)
        return 0;
    return slu_fail(EIO, SLU_GATE_LOST);
}

void slu_gate_end_ids(struct slu_gate *gate)
{
    while (gate->count > 0)
        slu_rdma.destroy_id(gate->ids[--gate->count]);
}

void slu_rdmacm_read(struct slu_gate *gate)
{
    slu_cm_read(gate->events, &gate->reader);
}

void slu_rdmacm_unlisten(struct slu_gate *gate)
{
    if (gate == NULL)
        return;
    gate->listener = NULL;
    /* Rejects connections whose events were not read yet: without a listener, came() rejects. */
    slu_rdmacm_read(gate);
    slu_gate_end_ids(gate);
}

void slu_rdmacm_forget(struct sluice_listener *listener)
{
    struct slu_gate *gate = listener->gate;

    if (gate == NULL)
        return;
    slu_cm_events_close(gate->events);
    free(gate);
    listener->gate = NULL;
}
