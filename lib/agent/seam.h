/* SPDX-License-Identifier: MIT */
/* The seam: functions of the agent that files below them call. */
#ifndef SLU_AGENT_SEAM_H
#define SLU_AGENT_SEAM_H

#include <stdint.h>

#include "base/base.h"

struct sluice_agent_peer;

/* control_receive.c: handles a control message that arrived. It may lose the peer. */
void slu_agent_handle(struct sluice_agent_peer *peer, const uint8_t *bytes, uint32_t count);
/* peer.c: ends the peer, all it had and all that waits for it. error: negative, or 0. */
void slu_agent_lose(struct sluice_agent_peer *peer, int error, const char *format, ...)
    SLU_PRINTF(3, 4);

#endif
