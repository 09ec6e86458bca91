/* SPDX-License-Identifier: MIT */
/*
 * Refuses to connect all ranks if the process may not open as many files as that takes. Without
 * this check, the ranks would wait for each other until their deadlines.
 */
#include "config.h"

#include "base/descriptor.h"
#include "endpoint/endpoint.h"
#include "node/node.h"

uint64_t slu_files_left(void)
{
    uint64_t limit;

    return slu_fd_count_left(&limit);
}

/*
 * Returns how many files the connections take: one for each queue pair of the soft transport, but
 * none within a context, and none on a device.
 */
static uint64_t count_needed(const struct slu_endpoint *own, const struct sluice_endpoint *theirs,
                             uint32_t ranks)
{
    uint64_t needed = 0;

    for (uint32_t i = 0; i < ranks; i++) {
        struct slu_endpoint peer;

        if (slu_endpoint_decode(&theirs[i], &peer) < 0 || peer.transport != SLU_TRANSPORT_SOFT ||
            peer.soft.context == own->soft.context)
            continue;
        needed += 1 + slu_least(own->further_count, peer.further_count);
    }
    return needed;
}

int slu_files_check(uint64_t left, uint32_t rank, const struct slu_engine *engine,
                    const struct sluice_endpoint *theirs, uint32_t ranks)
{
    struct sluice_endpoint wire;
    struct slu_endpoint own;
    uint64_t needed, limit;

    if (left >= (uint64_t)ranks * SLU_QUEUE_PAIRS)
        return 0;
    slu_peer_endpoint(engine, &engine->peers[rank], &wire);
    if (slu_endpoint_decode(&wire, &own) < 0 || own.transport != SLU_TRANSPORT_SOFT)
        return 0;
    needed = count_needed(&own, theirs, ranks);
    if (needed <= left || needed <= slu_fd_count_left(&limit))
        return 0;
    return slu_fail(EMFILE,
                    "rank %u needs %llu file descriptors to connect %u ranks, and the limit of "
                    "%llu leaves %llu: set ulimit -n to at least %llu",
                    rank, (unsigned long long)needed, ranks, (unsigned long long)limit,
                    (unsigned long long)left, (unsigned long long)(limit + needed - left));
}
