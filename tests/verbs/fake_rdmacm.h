/* SPDX-License-Identifier: MIT */
/*
 * A pretend rdma_cm for the pretend device, of one process, in the place of the library's
 * cm_library.c: what is said there is what the kernel's would say, event by event, and a test
 * says what fails, and who leaves when. Strict as the device is: an id that is destroyed with an
 * event of it unacknowledged stops the program.
 */
#ifndef FAKE_RDMACM_H
#define FAKE_RDMACM_H

#include <stdint.h>

#include "connect/cm_library.h"

/* When the side that has asked leaves, though its program does not know of it. */
enum fake_leaving {
    FAKE_STAYS,
    FAKE_LEAVES_AT_ANSWER, /* the answer is refused, as that to nobody is */
    FAKE_LEAVES_BEHIND_IT, /* it crosses the answer */
    FAKE_STAYS_UNANSWERED  /* it does not: the answer is wrong, says librdmacm */
};

struct fake_rdmacm {
    /* The n-th call from now that can fail does so, with the error. */
    uint32_t fail_in;
    int fail_error;
    /* The same of opening event channels alone. */
    uint32_t fail_open_in;
    enum fake_leaving leaving;
    enum ibv_mtu mtu; /* 0: that of the port */
    /* What there is. */
    uint32_t ids, channels, events;
};
extern struct fake_rdmacm fake_rdmacm;

/* Nothing may be alive. */
void fake_rdmacm_reset(void);
/* Closes what it has opened itself; nothing else may be left. */
void fake_rdmacm_end(void);
/* The device goes: all ids that listen at an address of it hear so. */
void fake_rdmacm_lose_device(void);

#endif
