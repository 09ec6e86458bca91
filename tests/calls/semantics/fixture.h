/* SPDX-License-Identifier: MIT */
/* Objects that the tests of edge cases share, and their groups. */
#ifndef SEMANTICS_FIXTURE_H
#define SEMANTICS_FIXTURE_H

#include "../../support/pair.h"

#define PEERS 3
#define DEPTH 4
#define SLOT 16
#define SLOTS 48

/* A hub with short queues, memory on both sides, and writes from slot to slot. */
struct fixture {
    struct star star;
    struct memory near;
    struct memory far;
    struct sluice_sge sges[SLOTS];
    struct sluice_request writes[SLOTS];
    struct sluice_completion completions[SLOTS];
    struct sluice_handle handles[SLOTS];
    struct sluice_scope_report report;
};

void fixture_open(struct fixture *fixture);
void fixture_close(struct fixture *fixture);
/* Opens a scope of the hub. */
struct sluice_scope *fixture_begin(struct fixture *fixture);
/* Requires that a slot of the peers' memory has been written, or has not. */
void check_slot(const struct fixture *fixture, uint32_t slot, bool written);
/* Polls the hub until count completions came. */
void poll_hub(struct fixture *fixture, uint32_t count);

#endif
