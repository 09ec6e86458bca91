/* SPDX-License-Identifier: MIT */
/*
 * Combines several queue pairs of a transport into one, for devices and networks whose bandwidth
 * one queue pair cannot use up. If a channel asks for it, a table of its own stands between the
 * engine and the transport's table; other channels are not affected. README.md explains which
 * request goes where.
 */
#ifndef SLU_STRIPES_H
#define SLU_STRIPES_H

#include "transport/transport.h"

/* Makes the table for combined queue pairs from inner, the table of a transport. */
void slu_stripes_over(const struct slu_transport *inner, struct slu_transport *table);

/*
 * Returns how many entries of a completion queue a peer needs for its further queue pairs: for each
 * of them a stripe, a probe and a receive.
 */
static inline uint32_t slu_stripes_entries(uint32_t queue_pairs)
{
    return 3 * (queue_pairs - 1);
}

/* Returns the first of the transport's queue pairs that are combined in qp. */
struct slu_qp *slu_stripes_first(struct slu_qp *qp);

#endif
