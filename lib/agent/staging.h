/* SPDX-License-Identifier: MIT */
/* Memory of an agent that long messages are copied to. */
#ifndef SLU_AGENT_STAGING_H
#define SLU_AGENT_STAGING_H

#include "agent/agent.h"

/*
 * Longer messages are not copied, but registered and read where they are: bytes. A copy saves most
 * where the peer is another process of this host.
 */
#define SLU_AGENT_STAGED_BYTES (UINT64_C(64) << 10)
#define SLU_AGENT_STAGED_NEAR_BYTES (UINT64_C(256) << 10)

/* Returns a copy of a message that the peer may read; NULL and errno. Without the lock. */
struct sluice_mr *slu_agent_stage(struct sluice_agent_peer *peer, const void *bytes, size_t length);
/* Keeps the copy's memory for the next message: the peer has read it. With the lock. */
void slu_agent_unstage(struct sluice_agent_peer *peer, struct sluice_mr *mr);
/* Ends what is kept. With the lock, once the peer is over. */
void slu_agent_end_staging(struct sluice_agent_peer *peer);

#endif
