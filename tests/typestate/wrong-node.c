/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

#ifdef BARRIER_AFTER_CLOSE /* expect: -Wuse-after-free */
int wait_for_nobody(struct sluice_pd *pd, struct sluice_exchange *exchange)
{
    struct sluice_node *node = sluice_node_open(pd, exchange, NULL, SLUICE_S(1));

    sluice_node_close(node);
    return sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_TREE, SLUICE_S(1));
}
#endif

#ifdef BARRIER_BEFORE_HANDSHAKE /* expect: -Wincompatible-pointer-types */
int wait_too_early(struct sluice_prepared_node *prepared)
{
    return sluice_node_barrier(prepared, NULL, 0, SLUICE_BARRIER_TREE, SLUICE_S(1));
}
#endif

#ifdef FORGOTTEN_CONNECT /* expect: -Wanalyzer-malloc-leak */
int connect_and_forget(struct sluice_node *node)
{
    struct sluice_multichannel *more = sluice_node_connect(node, NULL, SLUICE_S(1));

    return sluice_multichannel_peer_state(more, 0);
}
#endif

#ifdef FORGOTTEN_PREPARED /* expect: -Wanalyzer-malloc-leak */
int prepare_and_forget(struct sluice_pd *pd, struct sluice_node_endpoint *endpoints)
{
    struct sluice_prepared_node *prepared = sluice_node_prepare(pd, 0, 2, NULL);

    return sluice_prepared_node_endpoints(prepared, endpoints, 2);
}
#endif

#ifdef FORGOTTEN /* expect: -Wanalyzer-malloc-leak */
int64_t open_and_forget(struct sluice_pd *pd, struct sluice_exchange *exchange)
{
    struct sluice_node *node = sluice_node_open(pd, exchange, NULL, SLUICE_S(1));

    return sluice_node_rank(node);
}
#endif

#ifdef FREE_PREPARED /* expect: -Wmismatched-dealloc */
void free_prepared(struct sluice_pd *pd)
{
    free(sluice_node_prepare(pd, 0, 2, NULL));
}
#endif

#ifdef FREE /* expect: -Wmismatched-dealloc */
void free_node(struct sluice_pd *pd, struct sluice_exchange *exchange)
{
    free(sluice_node_open(pd, exchange, NULL, SLUICE_S(1)));
}
#endif

#ifdef IGNORED_BARRIER /* expect: -Wunused-result */
void wait_and_hope(struct sluice_node *node)
{
    sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_TREE, SLUICE_S(1));
}
#endif

#ifdef IGNORED_CONNECT /* expect: -Wunused-result */
void connect_nothing(struct sluice_node *node)
{
    sluice_node_connect(node, NULL, SLUICE_S(1));
}
#endif

#ifdef IGNORED_OPEN /* expect: -Wunused-result */
void open_nothing(struct sluice_pd *pd, struct sluice_exchange *exchange)
{
    sluice_node_open(pd, exchange, NULL, SLUICE_S(1));
}
#endif

#ifdef IGNORED_PEER_RESET /* expect: -Wunused-result */
void reset_and_hope(struct sluice_node *node, struct sluice_node_endpoint *endpoint)
{
    sluice_node_peer_reset(node, 1, endpoint);
}
#endif

#ifdef SECOND_HANDSHAKE /* expect: -Wuse-after-free */
void connect_twice(struct sluice_pd *pd, const struct sluice_node_endpoint *remotes)
{
    struct sluice_prepared_node *prepared = sluice_node_prepare(pd, 0, 2, NULL);
    struct sluice_node *one = sluice_prepared_node_handshake(prepared, remotes, 2);
    struct sluice_node *two = sluice_prepared_node_handshake(prepared, remotes, 2);

    sluice_node_close(one);
    sluice_node_close(two);
}
#endif
