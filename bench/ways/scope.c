/* SPDX-License-Identifier: MIT */
/* Scopes: an iteration begins one, posts in it, and ends it. */
#include "ways.h"

#define POSTS 8u

struct posts {
    struct sluice_request requests[16], receives[16];
    struct sluice_peer_remote_mr shared[16];
    uint32_t peers[16], count;
};

static void make_posts(struct rank *rank)
{
    struct posts *posts = MAKE(calloc(1, sizeof *posts));

    MUST(sluice_node_share_mr(rank->node, rank->mr, posts->shared, DEADLINE));
    for (uint32_t i = 0; i < rank->ranks; i++) {
        struct sluice_request request = {.peer = i, .sge_count = 1};

        if (i == rank->rank)
            continue;
        posts->peers[posts->count] = i;
        request.sge = place(rank, 4096, rank->size);
        posts->receives[posts->count] = request;
        request.sge = place(rank, 0, rank->size);
        request.remote = remote(rank, i, 0, rank->size);
        posts->requests[posts->count++] = request;
    }
    rank->state = posts;
}

static void free_posts(struct rank *rank)
{
    free(rank->state);
}

static void scope_writes(struct rank *rank, uint64_t count)
{
    const struct sluice_sge sge = place(rank, 0, rank->size);
    struct sluice_scope_report report = {.size = sizeof report};

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        SLUICE_SCOPE(scope, sluice_channel_scope_begin(rank->channel, DEADLINE), &report)
            for (uint32_t k = 0; k < POSTS; k++)
                MUST(sluice_scope_post_write(scope, 0, &sge, 1, &rank->remotes[1], NULL));
}

static void scope_mixed(struct rank *rank, uint64_t count)
{
    const struct sluice_sge sge = place(rank, 0, 8);
    const struct sluice_remote_mr *there = &rank->remotes[1];
    struct sluice_completion done[4];

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++) {
        struct sluice_scope *scope = MAKE(sluice_channel_scope_begin(rank->channel, DEADLINE));

        MUST(sluice_scope_post_read(scope, 0, &sge, 1, there, NULL));
        MUST(sluice_scope_post_fetch_add(scope, 0, &sge, there, 1, NULL));
        MUST(sluice_scope_post_compare_swap(scope, 0, &sge, there, 0, 0, NULL));
        MUST(sluice_scope_poll(scope, done, 4));
        MUST(sluice_scope_end(scope, NULL));
    }
}

static void scope_list(struct rank *rank, uint64_t count)
{
    struct sluice_request requests[POSTS];

    fill_writes(rank, requests, POSTS);
    for (uint64_t i = 0; rank->rank == 0 && i < count; i++) {
        struct sluice_scope *scope = MAKE(sluice_channel_scope_begin(rank->channel, DEADLINE));

        MUST(sluice_scope_post(scope, requests, POSTS, NULL));
        MUST(sluice_scope_end(scope, NULL));
    }
}

static void scope_prepared(struct rank *rank, uint64_t count)
{
    struct sluice_request requests[POSTS];
    struct sluice_list *list;

    fill_writes(rank, requests, POSTS);
    list = MAKE(sluice_channel_list_prepare(rank->channel, requests, POSTS));
    for (uint64_t i = 0; rank->rank == 0 && i < count; i++) {
        struct sluice_scope *scope = MAKE(sluice_channel_scope_begin(rank->channel, DEADLINE));

        MUST(sluice_list_set_length(list, 0, rank->size));
        MUST(sluice_scope_post_list(scope, list, NULL));
        MUST(sluice_scope_end(scope, NULL));
    }
    sluice_list_free(list);
}

/* The same writes as a list, without a scope. */
static void scope_none(struct rank *rank, uint64_t count)
{
    struct sluice_request requests[POSTS];

    fill_writes(rank, requests, POSTS);
    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        MUST(sluice_channel_submit(rank->channel, requests, POSTS, DEADLINE, NULL));
}

static void scope_one_sided(struct rank *rank, uint64_t count)
{
    const struct posts *posts = rank->state;

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++) {
        struct sluice_scope *scope = MAKE(sluice_multichannel_scope_begin(rank->all, DEADLINE));

        MUST(sluice_scope_post_scatter_write(scope, posts->requests, posts->count, NULL));
        MUST(sluice_scope_post_gather_read(scope, posts->requests, posts->count, NULL));
        MUST(sluice_scope_post_multicast_write(scope, posts->requests, posts->shared + 1,
                                               posts->count, NULL));
        MUST(sluice_scope_end(scope, NULL));
    }
}

/* An exchange of all ranks in lockstep. */
static void scope_exchange(struct rank *rank, uint64_t count, bool multicast)
{
    const struct posts *posts = rank->state;
    struct sluice_request message = {.sge_count = 1, .sge = posts->requests[0].sge};
    struct sluice_request sends[16];

    for (uint32_t i = 0; i < posts->count; i++) {
        sends[i] = message;
        sends[i].peer = posts->peers[i];
    }
    for (uint64_t i = 0; i < count; i++) {
        struct sluice_scope *scope = MAKE(sluice_multichannel_scope_begin(rank->all, DEADLINE));

        MUST(sluice_scope_post_gather_receive(scope, posts->receives, posts->count, NULL));
        if (multicast)
            MUST(sluice_scope_post_multicast_send(scope, &message, posts->peers, posts->count,
                                                  NULL));
        else
            MUST(sluice_scope_post_scatter_send(scope, sends, posts->count, NULL));
        MUST(sluice_scope_end(scope, NULL));
    }
}

static void scope_scatter(struct rank *rank, uint64_t count)
{
    scope_exchange(rank, count, false);
}

static void scope_multicast(struct rank *rank, uint64_t count)
{
    scope_exchange(rank, count, true);
}

#define ONE(name, against, calls)                                                         \
    {                                                                                     \
#name, "scope", against, NULL, NULL, calls, CHANNEL, {2 }, {8 }, NULL, name, NULL \
    }
#define ALL(name, against, mpi, calls)                   \
    {                                                    \
#name, "scope", against, NULL, mpi, calls, NODE, \
            {2, 4 }, {8 }, make_posts, name, free_posts  \
    }

const struct way ways_scope[] = {
    ONE(scope_none, "scope_none", "channel_submit"),
    ONE(scope_writes, "scope_none", "channel_scope_begin scope_attach scope_post_write scope_end"),
    ONE(scope_list, "scope_none", "scope_post"),
    ONE(scope_prepared, "scope_none", "scope_post_list list_set_length"),
    ONE(scope_mixed, "scope_mixed",
        "scope_post_read scope_post_fetch_add scope_post_compare_swap scope_poll"),
    ALL(scope_one_sided, "scope_one_sided", NULL,
        "multichannel_scope_begin scope_post_scatter_write scope_post_gather_read "
        "scope_post_multicast_write"),
    ALL(scope_scatter, "exchange_ahead", "exchange",
        "scope_post_scatter_send scope_post_gather_receive"),
    ALL(scope_multicast, "exchange_ahead", "exchange", "scope_post_multicast_send"),
    {0},
};
