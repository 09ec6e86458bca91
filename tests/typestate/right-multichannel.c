/* SPDX-License-Identifier: MIT */
/* The life of a multichannel, as it should be. */
#include <stddef.h>

#include <sluice.h>

int exchange(const struct sluice_endpoint *own, struct sluice_endpoint *remotes);
struct sluice_multichannel *connect_peers(struct sluice_pd *pd);
int replace_peer(struct sluice_multichannel *mc, struct sluice_endpoint *remotes);
int work(struct sluice_pd *pd, const struct sluice_request *sends,
         const struct sluice_request *receives);

struct sluice_multichannel *connect_peers(struct sluice_pd *pd)
{
    struct sluice_endpoint own[2], remotes[2];
    struct sluice_prepared_multichannel *prepared = sluice_multichannel_prepare(pd, 2, NULL);

    if (!prepared)
        return NULL;
    if (sluice_prepared_multichannel_endpoints(prepared, own, 2) || exchange(own, remotes)) {
        sluice_prepared_multichannel_free(prepared);
        return NULL;
    }
    return sluice_prepared_multichannel_handshake(prepared, remotes, 2);
}

int replace_peer(struct sluice_multichannel *mc, struct sluice_endpoint *remotes)
{
    struct sluice_endpoint own;
    int result = sluice_multichannel_peer_reset(mc, 1, &own);

    if (result || exchange(&own, remotes))
        return -1;
    return sluice_multichannel_peer_handshake(mc, 1, &remotes[1]);
}

int work(struct sluice_pd *pd, const struct sluice_request *sends,
         const struct sluice_request *receives)
{
    struct sluice_multichannel *mc = connect_peers(pd);
    int result;

    if (!mc)
        return -1;
    result = sluice_multichannel_scatter_gather(mc, sends, 2, receives, 2, SLUICE_S(1), NULL);
    if (!result)
        result = sluice_multichannel_shutdown(mc, SLUICE_S(1));
    sluice_multichannel_close(mc);
    return result;
}
