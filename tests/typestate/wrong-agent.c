/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

#include "wrong.h"

WRONG(forgotten_agent, "-Wanalyzer-malloc-leak", struct sluice_pd *pd)
{
    struct sluice_agent *agent = sluice_agent_open(pd, NULL);
    return sluice_agent_fd(agent);
}

WRONG(forgotten_message, "-Wanalyzer-malloc-leak", struct sluice_agent *agent)
{
    struct sluice_agent_message *message = sluice_agent_receive(agent, NULL, 0);
    return sluice_agent_message_length(message);
}

WRONG(forgotten_peer, "-Wanalyzer-malloc-leak", struct sluice_agent *agent)
{
    struct sluice_agent_peer *peer = sluice_agent_connect(agent, "host:1", NULL, 0);
    return peer != NULL;
}

WRONG(free, "-Wmismatched-dealloc", struct sluice_agent *agent)
{
    struct sluice_agent_message *message = sluice_agent_receive(agent, NULL, 0);
    free(message);
}

WRONG(ignored_request, "-Wunused-result", struct sluice_agent_peer *peer)
{
    sluice_agent_request_mr(peer, 4096, SLUICE_ACCESS_REMOTE_READ, 0, 0);
}

WRONG(used_after_release, "-Wuse-after-free", struct sluice_agent_peer *peer,
      const struct sluice_sge *sge)
{
    struct sluice_agent_mr *mr =
        sluice_agent_request_mr(peer, 4096, SLUICE_ACCESS_REMOTE_READ, 0, 0);
    sluice_agent_mr_release(mr, 0);
    return sluice_agent_mr_read(mr, 0, sge, 1, 0);
}

WRONG(released_and_sent_back, "-Wuse-after-free", struct sluice_agent *agent)
{
    struct sluice_agent_mr *mr = sluice_agent_receive_remote_mr(agent, NULL, 0);
    sluice_agent_mr_release(mr, 0);
    return sluice_agent_mr_send_back(mr, 0);
}
