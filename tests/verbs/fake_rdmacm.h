/* SPDX-License-Identifier: MIT */
/*
 * A pretend rdma_cm for the pretend device, within one process, in place of the library's
 * cm_library.c. It delivers the events that the kernel would; a test orders which call fails and
 * when a side leaves. Like the device it is strict: destroying an id that has an unacknowledged
 * event stops the program.
 */
#ifndef FAKE_RDMACM_H
#define FAKE_RDMACM_H

#include <stdint.h>

#include "connect/cm_library.h"

/* When the dialing side leaves, unknown to the program. */
enum fake_leaving {
    FAKE_STAYS,
    FAKE_LEAVES_AT_ANSWER, /* the answer fails, as no peer is left */
    FAKE_LEAVES_BEHIND_IT, /* the peer's leaving crosses the answer */
    FAKE_STAYS_UNANSWERED  /* the peer stays, but librdmacm calls the answer invalid */
};

struct fake_rdmacm {
    /* The n-th call from now that can fail does, with the error. */
    uint32_t fail_in;
    int fail_error;
    /* The same, only for opening event channels. */
    uint32_t fail_open_in;
    enum fake_leaving leaving;
    enum ibv_mtu mtu; /* 0: that of the port */
    /* Objects that exist. */
    uint32_t ids, channels, events;
};
extern struct fake_rdmacm fake_rdmacm;

/* Resets the pretend rdma_cm. No object may be alive. */
void fake_rdmacm_reset(void);
/* Closes what it has opened itself; nothing else may be left. */
void fake_rdmacm_end(void);
/* Removes the device: each id that listens at an address of it gets an event. */
void fake_rdmacm_lose_device(void);

#endif
