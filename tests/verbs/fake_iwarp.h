/* SPDX-License-Identifier: MIT */
/* The work of the pretend rdma_cm on queue pairs if device 0 is iWARP. */
#ifndef FAKE_IWARP_H
#define FAKE_IWARP_H

#include "fake_verbs.h"

bool fake_iwarp(void);
/* Fills in the address of RoCE v2 over IPv4, which both sides have, also those that are iWARP. */
void fake_iwarp_address(struct ibv_ah_attr *ah);
/* Connects two queue pairs, by their numbers. Fails if one of them is gone or was used before. */
bool fake_iwarp_join(uint32_t a, uint32_t b);
/* Ends a queue pair; on other devices this does nothing. */
void fake_iwarp_end(uint32_t qpn);

#endif
