/* SPDX-License-Identifier: MIT */
/*
 * Several queue pairs of a transport as one, for devices and networks on which one does
 * not get all there is. A table of its own stands between the engine and the table of the
 * transport, where a channel asks for it; all others know nothing of it. README.md tells
 * what goes where.
 */
#ifndef SLU_STRIPES_H
#define SLU_STRIPES_H

#include "transport/transport.h"

/* The table of queue pairs of several; inner is that of a transport. */
void slu_stripes_over(const struct slu_transport *inner, struct slu_transport *table);

/*
 * Entries of a completion queue that a peer of so many needs, beside those that it has
 * with one: of each further queue pair a stripe, a probe and a receive.
 */
static inline uint32_t slu_stripes_entries(uint32_t queue_pairs)
{
    return 3 * (queue_pairs - 1);
}

/* The first of the transport's queue pairs that are one of such a table. */
struct slu_qp *slu_stripes_first(struct slu_qp *qp);

#endif
