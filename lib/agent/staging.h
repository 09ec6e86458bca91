/* SPDX-License-Identifier: MIT */
/* Staging memory of an agent: long messages are copied to it. */
#ifndef SLU_AGENT_STAGING_H
#define SLU_AGENT_STAGING_H

#include "agent/agent.h"

/*
 * Messages longer than this, in bytes, are registered and read in place instead of copied. The
 * limit is higher for a peer in another process of this host, where a copy saves the most.
 */
#define SLU_AGENT_STAGED_BYTES (UINT64_C(64) << 10)
#define SLU_AGENT_STAGED_NEAR_BYTES (UINT64_C(256) << 10)

/* Returns a copy of a message that the peer may read; NULL and errno. Without the lock. */
struct sluice_mr *slu_agent_stage(struct sluice_agent_peer *peer, const void *bytes, size_t length);
/* Keeps the copy's memory for the next message: the peer has read it. With the lock. */
void slu_agent_unstage(struct sluice_agent_peer *peer, struct sluice_mr *mr);
/* Releases the memory that is kept. With the lock, once the peer is over. */
void slu_agent_end_staging(struct sluice_agent_peer *peer);

#endif
