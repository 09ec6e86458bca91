/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include <sluice.h>

int keep(struct sluice_pd *pd, const struct sluice_sge *sge)
{
    struct sluice_agent *agent = sluice_agent_open(pd, NULL);
    struct sluice_agent_peer *peer;
    struct sluice_agent_mr *mr;
    int result = -1;

    if (agent == NULL)
        return -1;
    peer = sluice_agent_connect(agent, "host:1", NULL, SLUICE_S(1));
    if (peer != NULL) {
        mr = sluice_agent_request_mr(peer, 4096, SLUICE_ACCESS_REMOTE_WRITE, 0, SLUICE_S(1));
        if (mr != NULL) {
            result = sluice_agent_mr_write(mr, 0, sge, 1, SLUICE_S(1));
            if (result == 0)
                result = sluice_agent_mr_send_back(mr, SLUICE_S(1));
            else
                sluice_agent_mr_release(mr, SLUICE_S(1));
        }
        sluice_agent_peer_close(peer);
    }
    sluice_agent_close(agent);
    return result;
}
