/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

#ifdef FORGOTTEN_AGENT /* expect: -Wanalyzer-malloc-leak */
int make_and_forget(struct sluice_pd *pd)
{
    struct sluice_agent *agent = sluice_agent_create(pd, NULL);

    return sluice_agent_fd(agent);
}
#endif

#ifdef FORGOTTEN_MESSAGE /* expect: -Wanalyzer-malloc-leak */
size_t receive_and_forget(struct sluice_agent *agent)
{
    struct sluice_agent_message *message = sluice_agent_receive(agent, NULL, 0);

    return sluice_agent_message_length(message);
}
#endif

#ifdef FORGOTTEN_PEER /* expect: -Wanalyzer-malloc-leak */
int connect_and_forget(struct sluice_agent *agent)
{
    struct sluice_agent_peer *peer = sluice_agent_connect(agent, "host:1", NULL, 0);

    return peer != NULL;
}
#endif

#ifdef FREE /* expect: -Wmismatched-dealloc */
void free_message(struct sluice_agent *agent)
{
    struct sluice_agent_message *message = sluice_agent_receive(agent, NULL, 0);

    free(message);
}
#endif

#ifdef IGNORED_REQUEST /* expect: -Wunused-result */
void request_blindly(struct sluice_agent_peer *peer)
{
    sluice_agent_request_mr(peer, 4096, SLUICE_ACCESS_REMOTE_READ, 0, 0);
}
#endif

#ifdef USED_AFTER_RELEASE /* expect: -Wuse-after-free */
int read_late(struct sluice_agent_peer *peer, const struct sluice_sge *sge)
{
    struct sluice_agent_mr *mr =
        sluice_agent_request_mr(peer, 4096, SLUICE_ACCESS_REMOTE_READ, 0, 0);

    sluice_agent_release_mr(mr, 0);
    return sluice_agent_read(mr, 0, sge, 1, 0);
}
#endif

#ifdef RELEASED_AND_SENT_BACK /* expect: -Wuse-after-free */
int part_twice(struct sluice_agent *agent)
{
    struct sluice_agent_mr *mr = sluice_agent_receive_remote_mr(agent, NULL, 0);

    sluice_agent_release_mr(mr, 0);
    return sluice_agent_send_remote_mr(mr, 0);
}
#endif
