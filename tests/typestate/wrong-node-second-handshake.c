/* SPDX-License-Identifier: MIT */
/* expect: -Wuse-after-free */
#include <stddef.h>

#include <sluice.h>

void connect_twice(struct sluice_pd *pd, const struct sluice_node_endpoint *remotes)
{
    struct sluice_prepared_node *prepared = sluice_node_prepare(pd, 0, 2, NULL);
    struct sluice_node *one = sluice_prepared_node_handshake(prepared, remotes, 2);
    struct sluice_node *two = sluice_prepared_node_handshake(prepared, remotes, 2);

    sluice_node_close(one);
    sluice_node_close(two);
}
