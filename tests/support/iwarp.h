/* SPDX-License-Identifier: MIT */
/*
 * Connections on an iWARP device, siw0 of the guest, where endpoints connect nothing: side 0
 * listens over rdma_cm, and side 1 connects. When these functions return, either side may send,
 * provided that the other one has posted a receive.
 */
#ifndef SUPPORT_IWARP_H
#define SUPPORT_IWARP_H

#include "pair.h"

/* The address of the guest. */
#define IWARP_HOST "192.0.2.1"

/* Returns whether the device under test is iWARP. */
bool device_is_iwarp(void);
void iwarp_connect_pair(struct pair *pair, const struct sluice_channel_attr *attr);
/* Connects the hub and its spokes, on sides that are open. */
void iwarp_connect_star(struct star *star, const struct sluice_channel_attr *attr);

#endif
