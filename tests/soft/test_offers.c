/* SPDX-License-Identifier: MIT */
/* A hostile peer that offers memory: its victim maps only what comes with an offer. */
#include "../support/fault.h"
#include "../support/near.h"

static void offer_early(struct rank *rank)
{
    struct sluice_endpoint endpoints[2];
    struct near_peer peer;

    near_open(&peer);
    endpoints[0] = endpoints[1] = peer.endpoint;
    rank_exchange(rank, endpoints, endpoints, sizeof endpoints[0]);
    rank_barrier(rank);
    require(!near_meet_early(&peer, &endpoints[0]),
            "the victim has mapped a descriptor that came before its offer");
    rank_barrier(rank);
    near_part(&peer);
    near_close(&peer);
}

/* The thread of the library serves the peer. */
static void be_offered(struct rank *rank)
{
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = made(sluice_pd_alloc(context));
    struct sluice_endpoint endpoints[2];
    struct sluice_prepared_channel *prepared = prepare_channel(pd, NULL, &endpoints[0]);
    struct sluice_channel *channel;

    endpoints[1] = endpoints[0];
    rank_exchange(rank, endpoints, endpoints, sizeof endpoints[0]);
    channel = made(sluice_prepared_channel_handshake(prepared, &endpoints[1]));
    rank_barrier(rank);
    rank_barrier(rank);
    sluice_channel_close(channel);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

static void meet(struct rank *rank)
{
    if (rank->index == 0)
        be_offered(rank);
    else
        offer_early(rank);
}

TEST(a_descriptor_before_its_offer_is_not_mapped)
{
    group_run(2, meet, NULL, 60);
}

int main(void)
{
    return RUN_ON_SOFT("offers", {"shm", WIRE_SHM, 100});
}
