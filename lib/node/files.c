/* SPDX-License-Identifier: MIT */
/*
 * Refuses to connect all ranks if the process may not open as many files as that takes. Without
 * this check, the ranks would wait for each other until their deadlines.
 */
#include "config.h"

#include <sys/resource.h>

#include "base/descriptor.h"
#include "endpoint/endpoint.h"
#include "node/node.h"

/* Returns the limit; UINT64_MAX: there is none, or it is not known. */
static uint64_t read_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur;
}

uint64_t slu_files_left(void)
{
    SLU_KEEP_ERRNO;
    uint64_t limit = read_limit();

    return limit != UINT64_MAX ? limit - slu_fd_count_used(limit) : limit;
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
    uint64_t needed;

    if (left >= (uint64_t)ranks * SLU_QUEUE_PAIRS)
        return 0;
    slu_peer_endpoint(engine, &engine->peers[rank], &wire);
    if (slu_endpoint_decode(&wire, &own) < 0 || own.transport != SLU_TRANSPORT_SOFT)
        return 0;
    needed = count_needed(&own, theirs, ranks);
    if (needed <= left || needed <= slu_files_left())
        return 0;
    return slu_fail(EMFILE,
                    "rank %u needs %llu file descriptors to connect %u ranks, and the limit of "
                    "%llu leaves %llu: set ulimit -n to at least %llu",
                    rank, (unsigned long long)needed, ranks, (unsigned long long)read_limit(),
                    (unsigned long long)left, (unsigned long long)(read_limit() + needed - left));
}
