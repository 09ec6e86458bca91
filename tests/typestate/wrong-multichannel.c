/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

#ifdef FORGOTTEN_PREPARED /* expect: -Wanalyzer-malloc-leak */
int prepare_and_forget(struct sluice_pd *pd, struct sluice_endpoint *endpoints)
{
    struct sluice_prepared_multichannel *prepared = sluice_multichannel_prepare(pd, 2, NULL);

    return sluice_prepared_multichannel_endpoints(prepared, endpoints, 2);
}
#endif

#ifdef FORGOTTEN /* expect: -Wanalyzer-malloc-leak */
int connect_and_forget(struct sluice_prepared_multichannel *prepared,
                       const struct sluice_endpoint *remotes)
{
    struct sluice_multichannel *mc = sluice_prepared_multichannel_handshake(prepared, remotes, 2);

    return sluice_multichannel_peer_state(mc, 1);
}
#endif

#ifdef FREE_PREPARED /* expect: -Wmismatched-dealloc */
void free_prepared(struct sluice_pd *pd)
{
    struct sluice_prepared_multichannel *prepared = sluice_multichannel_prepare(pd, 2, NULL);

    free(prepared);
}
#endif

#ifdef FREE /* expect: -Wmismatched-dealloc */
void free_multichannel(struct sluice_prepared_multichannel *prepared,
                       const struct sluice_endpoint *remotes)
{
    struct sluice_multichannel *mc = sluice_prepared_multichannel_handshake(prepared, remotes, 2);

    free(mc);
}
#endif

#ifdef GATHER_AFTER_CLOSE /* expect: -Wuse-after-free */
int gather_late(struct sluice_prepared_multichannel *prepared,
                const struct sluice_endpoint *remotes, const struct sluice_request *requests)
{
    struct sluice_multichannel *mc = sluice_prepared_multichannel_handshake(prepared, remotes, 2);

    sluice_multichannel_close(mc);
    return sluice_multichannel_gather_receive(mc, requests, 2, SLUICE_S(1), NULL);
}
#endif

#ifdef IGNORED_PEER_ADD /* expect: -Wunused-result */
void add_blindly(struct sluice_multichannel *mc, struct sluice_endpoint *endpoint)
{
    sluice_multichannel_peer_add(mc, endpoint);
}
#endif

#ifdef IGNORED_PEER_REMOVE /* expect: -Wunused-result */
void remove_blindly(struct sluice_multichannel *mc)
{
    sluice_multichannel_peer_remove(mc, 1);
}
#endif

#ifdef IGNORED_PEER_RESET /* expect: -Wunused-result */
void reset_blindly(struct sluice_multichannel *mc, struct sluice_endpoint *endpoint)
{
    sluice_multichannel_peer_reset(mc, 1, endpoint);
}
#endif

#ifdef IGNORED_PREPARE /* expect: -Wunused-result */
void prepare_nothing(struct sluice_pd *pd)
{
    sluice_multichannel_prepare(pd, 2, NULL);
}
#endif

#ifdef IGNORED_SCATTER_GATHER /* expect: -Wunused-result */
void exchange_blindly(struct sluice_multichannel *mc, const struct sluice_request *sends,
                      const struct sluice_request *receives)
{
    sluice_multichannel_scatter_gather(mc, sends, 2, receives, 2, SLUICE_S(1), NULL);
}
#endif

#ifdef IGNORED_SCATTER_UNPOLLED /* expect: -Wunused-result */
/* Ignores how many were posted, and so takes the rest for posted, too. */
void scatter(struct sluice_multichannel *multichannel, const struct sluice_request *requests,
             uint32_t count)
{
    sluice_multichannel_scatter_send_unpolled(multichannel, requests, count, SLUICE_S(1), NULL);
}
#endif

#ifdef SCATTER_BEFORE_HANDSHAKE /* expect: -Wincompatible-pointer-types */
int scatter_early(struct sluice_prepared_multichannel *prepared,
                  const struct sluice_request *requests)
{
    return sluice_multichannel_scatter_send(prepared, requests, 2, SLUICE_S(1), NULL);
}
#endif

#ifdef SECOND_HANDSHAKE /* expect: -Wuse-after-free */
void connect_twice(struct sluice_pd *pd, const struct sluice_endpoint *remotes)
{
    struct sluice_prepared_multichannel *prepared = sluice_multichannel_prepare(pd, 2, NULL);
    struct sluice_multichannel *one = sluice_prepared_multichannel_handshake(prepared, remotes, 2);
    struct sluice_multichannel *two = sluice_prepared_multichannel_handshake(prepared, remotes, 2);

    sluice_multichannel_close(one);
    sluice_multichannel_close(two);
}
#endif
