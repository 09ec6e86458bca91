/* SPDX-License-Identifier: MIT */
/* Lazy nodes in the threads of a test. */
#ifndef NODE_LAZY_H
#define NODE_LAZY_H

#include "../support/pair.h"
#include "../support/process.h"
#include "../support/ranks.h"

#define LONG SLUICE_S(30)

extern const struct sluice_node_attr lazy;

/* Opens lazy nodes in threads, calls the function for each rank, and closes them. */
void lazy_try(uint32_t count, const struct sluice_node_attr *attr,
              void (*function)(struct ranks *ranks, uint32_t rank));
/* Returns the state of a peer in the multichannel of a rank. */
int state_of(const struct ranks *ranks, uint32_t rank, uint32_t peer);

#endif
