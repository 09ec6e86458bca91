/* SPDX-License-Identifier: MIT */
#include "lazy.h"

#define BOARD 4096

const struct sluice_node_attr lazy = {.size = sizeof(lazy), .connect = SLUICE_NODE_CONNECT_LAZY};

/* An exchange among the threads of a test. */
static struct {
    struct ranks *ranks;
    const struct sluice_node_attr *attr;
    uint8_t bytes[RANKS_MAX][BOARD];
} board;

static int board_gather(void *argument, const void *own, void *all, size_t bytes, int64_t deadline)
{
    uint32_t rank = *(uint32_t *)argument;
    (void)deadline;
    require(bytes <= BOARD, "%zu bytes", bytes);
    memcpy(board.bytes[rank], own, bytes);
    ranks_meet(board.ranks);
    for (uint32_t i = 0; i < board.ranks->count; i++) {
        memcpy((uint8_t *)all + i * bytes, board.bytes[i], bytes);
    }
    ranks_meet(board.ranks);
    return 0;
}

static void open_rank(struct ranks *ranks, uint32_t rank)
{
    const struct sluice_exchange_provider provider = {.size = sizeof(provider),
                                                      .allgather = board_gather};
    struct sluice_exchange *exchange =
        made(sluice_exchange_wrap(&provider, &rank, rank, ranks->count));
    ranks->nodes[rank] = sluice_node_open(ranks->pds[rank], exchange, board.attr, LONG);
    require(ranks->nodes[rank], "rank %u: %s", rank, sluice_last_error());
    sluice_exchange_close(exchange);
}

void lazy_try(uint32_t count, const struct sluice_node_attr *attr,
              void (*function)(struct ranks *ranks, uint32_t rank))
{
    static struct ranks ranks;
    memset(&ranks, 0, sizeof(ranks));
    ranks.count = count;
    require(pthread_barrier_init(&ranks.meeting, NULL, count) == 0, "%u ranks", count);
    for (uint32_t i = 0; i < count; i++) {
        bool own = i == 0 || current_wire() == WIRE_TCP;
        ranks.contexts[i] = own ? open_context() : ranks.contexts[0];
        ranks.pds[i] = made(sluice_pd_alloc(ranks.contexts[i]));
    }
    board.ranks = &ranks;
    board.attr = attr;
    ranks_run(&ranks, open_rank);
    ranks_run(&ranks, function);
    ranks_close(&ranks);
}

int state_of(const struct ranks *ranks, uint32_t rank, uint32_t peer)
{
    return sluice_multichannel_peer_state(sluice_node_multichannel(ranks->nodes[rank]), peer);
}
