/* SPDX-License-Identifier: MIT */
/*
 * Lazy nodes: opening one with a card a rank, and connecting ranks ahead. All ranks see the same
 * cards, so they judge them alike, and no rank waits for another after the cards were exchanged.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "exchange/exchange.h"
#include "node/connector.h"
#include "node/node.h"

static uint32_t access_of(const struct slu_lazy *lazy, uint32_t peer)
{
    const struct slu_connector *connector =
        slu_container_of(lazy, const struct slu_connector, lazy);
    const uint8_t *wire = connector->cards + (size_t)peer * SLU_CARD_BYTES;
    struct slu_card card = {.access = SLUICE_ACCESS_REMOTE_WRITE};

    /* A rank without a card fails later, because it cannot be dialed. */
    if (slu_card_is_there(wire))
        slu_card_decode(wire, peer, &card);
    return card.access;
}

/* An engine that fails here is destroyed with the multichannel, before the connector. */
int slu_node_create_lazy(struct sluice_node *node, struct sluice_pd *pd,
                         const struct sluice_node_attr *attr)
{
    struct slu_engine *engine;
    int error;

    node->cards = calloc(node->ranks, SLU_CARD_BYTES);
    if (node->cards == NULL)
        return slu_fail(ENOMEM, "no memory for the cards of %u rank%s", node->ranks,
                        SLU_S(node->ranks));
    node->connector = slu_connector_create(node->rank, node->ranks, node->cards);
    if (node->connector == NULL)
        return -errno;
    node->connector->lazy.access = access_of;
    if (attr->max_ranks > 0)
        node->connector->gone = calloc(node->ranks, sizeof *node->connector->gone);
    if (attr->max_ranks > 0 && node->connector->gone == NULL)
        return slu_fail(ENOMEM, "no memory for %u ranks", node->ranks);
    node->multichannel = (void *)slu_channel_create(SLU_MAGIC_MULTICHANNEL, pd, 0,
                                                    SLU_NODE_OWN_REQUESTS, attr->channel);
    if (node->multichannel == NULL)
        return -errno;
    engine = slu_node_engine(node);
    engine->peer_word = "rank";
    error = slu_engine_use_lazy(engine, &node->connector->lazy, node->ranks);
    if (error < 0)
        return error;
    slu_deferred_limit(engine->cq->deferred, attr->max_connections);
    error = slu_node_create_memory(node, pd, engine);
    return error == 0 ? slu_connector_start(node->connector, engine) : error;
}

static int check_room(const struct sluice_exchange *exchange, const struct sluice_node_attr *attr)
{
    if (attr->max_ranks == 0 || attr->max_ranks >= exchange->ranks)
        return 0;
    return slu_misuse(EINVAL, "sluice_node_attr.max_ranks is %u: there are %u ranks",
                      attr->max_ranks, exchange->ranks);
}

static int check_peers(const struct sluice_exchange *exchange, const struct sluice_node_attr *attr)
{
    for (uint32_t i = 0; i < attr->peer_count; i++)
        if (attr->peers[i] >= exchange->ranks)
            return slu_misuse(EINVAL, "sluice_node_attr.peers[%u] is %u: there are ranks 0..%u", i,
                              attr->peers[i], exchange->ranks - 1);
    return 0;
}

/* Compares a card with that of rank 0, so that all ranks find the same difference. */
static int check_card(const struct slu_node_endpoint *card, const struct slu_node_endpoint *first)
{
    if (card->ranks != first->ranks)
        return slu_fail(EPROTO, "rank %u is of a program of %u rank%s, rank 0 of one of %u",
                        card->from, card->ranks, SLU_S(card->ranks), first->ranks);
    if (card->algorithm != first->algorithm)
        return slu_fail(EPROTO,
                        "sluice_node_attr.barrier of rank %u stands for algorithm %u, of rank 0 "
                        "for %u: all ranks must agree",
                        card->from, card->algorithm, first->algorithm);
    return 0;
}

/*
 * Each card is decoded once. No job reads the cards of a connector before it is open, and a node
 * that fails here is freed.
 */
static int take_cards(struct sluice_node *node, uint32_t ranks)
{
    struct slu_node_endpoint endpoint = {0}, first = {0};
    int error = 0;

    slu_engine_enter(slu_node_engine(node));
    for (uint32_t i = 0; i < ranks && error == 0; i++) {
        error = slu_cards_read(node, i, node->cards + (size_t)i * SLU_CARD_BYTES, &endpoint);
        if (error == 0 && i == 0)
            first = endpoint;
        if (error == 0)
            error = check_card(&endpoint, &first);
        if (error == 0)
            slu_node_set_endpoint(node, i, &endpoint);
    }
    if (error == 0)
        slu_cards_open(node);
    slu_engine_leave(slu_node_engine(node));
    return error;
}

/*
 * Exchanges the cards. A rank that has failed gives its reason instead of a card, and its own error
 * goes before what it finds in those of others.
 */
static int exchange_cards(struct sluice_exchange *exchange, struct sluice_node *node, int error,
                          int64_t until)
{
    uint8_t own[SLU_CARD_BYTES];
    uint8_t *made =
        node == NULL || node->cards == NULL ? calloc(exchange->ranks, sizeof own) : NULL;
    uint8_t *cards = made != NULL || node == NULL ? made : node->cards;
    struct slu_text text;
    int result;

    if (error == 0)
        error = slu_cards_make(node, own);
    slu_text_save(&text);
    if (error < 0)
        slu_card_encode_failure(error, own);
    if (cards == NULL) {
        slu_text_restore(&text);
        return slu_exchange_abandon(exchange);
    }
    result = sluice_exchange_allgather(exchange, own, cards, SLU_CARD_BYTES,
                                       slu_agree_time(until, error));
    if (result < 0)
        result = slu_agree_exchanged(result);
    if (result == 0 && error == 0)
        result = take_cards(node, exchange->ranks);
    free(made);
    return slu_agree_choose(error, &text, result);
}

int slu_node_open_lazy(struct sluice_exchange *exchange, struct sluice_pd *pd,
                       const struct sluice_node_attr *attr, int error, int64_t until,
                       struct sluice_node **opened)
{
    struct sluice_node *node = NULL;

    if (error == 0) {
        error = check_room(exchange, attr);
        if (error == 0) {
            node = slu_node_create(exchange->rank,
                                   attr->max_ranks > 0 ? attr->max_ranks : exchange->ranks, attr);
            error = node != NULL ? check_peers(exchange, attr) : -errno;
        }
        if (error == 0)
            error = slu_node_create_lazy(node, pd, attr);
    }
    error = exchange_cards(exchange, node, error, until);
    if (error < 0 && node != NULL) {
        struct slu_text text;

        slu_text_save(&text);
        slu_node_end_lazy(node);
        slu_node_free(node);
        slu_text_restore(&text);
    }
    if (error < 0)
        return error;
    node->magic = SLU_MAGIC_NODE;
    node->multichannel->base.owned = true;
    *opened = node;
    if (attr->peers == NULL)
        return 0;
    return sluice_node_reach(node, attr->peers, attr->peer_count, slu_agree_time(until, 0));
}

/*
 * A rank that was reached before, and has failed since, is connected anew. One that seems to be
 * connected is asked for a sign of life: on a device, this side may not have noticed that the other
 * has ended the connection.
 */
static void begin(struct slu_engine *engine, uint32_t rank)
{
    struct slu_peer *peer = &engine->peers[rank];

    slu_peer_notice_loss(engine, peer);
    if (peer->state == SLUICE_STATE_READY)
        slu_peer_doubt(peer);
    if (peer->state == SLUICE_STATE_FAILED)
        slu_peer_vanish(engine, peer);
    if (slu_peer_takes(engine, peer))
        slu_deferred_want(peer->qp);
}

static int check_ranks(const struct sluice_node *node, const uint32_t *ranks, uint32_t count)
{
    if (ranks == NULL && count != 0 && count != node->ranks)
        return slu_misuse(EINVAL, "a list of %u rank%s is NULL", count, SLU_S(count));
    for (uint32_t i = 0; ranks != NULL && i < count; i++)
        if (ranks[i] >= node->ranks)
            return slu_misuse(EINVAL, "ranks[%u] is %u: there are ranks 0..%u", i, ranks[i],
                              node->ranks - 1);
    return 0;
}

/* Begins once more with a rank that has failed. Returns whether it has. */
static bool begin_again(const struct sluice_node *node, uint32_t rank)
{
    struct slu_engine *engine = slu_node_engine(node);
    bool failed = node->connector != NULL && engine->peers[rank].state == SLUICE_STATE_FAILED;

    if (!failed)
        return false;
    slu_engine_enter(engine);
    begin(engine, rank);
    slu_engine_leave(engine);
    return true;
}

/*
 * Reports a rank that failed during this call, while another one was waited for, or that is gone
 * since before.
 */
static int explain(const struct slu_engine *engine, const struct slu_peer *peer, uint64_t began,
                   int error)
{
    struct sluice_error cause;

    if (error != -ENOTCONN || !slu_peer_error(engine, peer, &cause) || cause.error == -ECANCELED ||
        (peer->failed_in < began && cause.error != -ECONNRESET))
        return error;
    return slu_fail(-cause.error, "%s", cause.text);
}

/*
 * The other side may have ended a connection before this side noticed it: then the wait shows it,
 * and the rank is connected anew. A new connection that fails is an error.
 */
static int await_rank(struct sluice_node *node, uint32_t rank, uint64_t began, int64_t until)
{
    struct slu_engine *engine = slu_node_engine(node);
    struct slu_peer *peer = &engine->peers[rank];
    bool old;
    int error;

    slu_engine_enter(engine);
    old = peer->state == SLUICE_STATE_READY && node->connector != NULL &&
          slu_deferred_real(peer->qp) != NULL;
    slu_engine_leave(engine);
    error = slu_await_connected(engine, peer, slu_agree_time(until, 0));

    if (error < 0 && old && begin_again(node, rank))
        error = slu_await_connected(engine, peer, slu_agree_time(until, 0));
    return explain(engine, peer, began, error);
}

/* All are begun before the first is waited for. Returns the first failure. */
static int reach(struct sluice_node *node, const uint32_t *ranks, uint32_t count, int64_t until)
{
    struct slu_engine *engine = slu_node_engine(node);
    struct slu_text text;
    uint64_t began;
    int result = 0;

    slu_engine_enter(engine);
    began = engine->call_number;
    for (uint32_t i = 0; node->connector != NULL && i < count; i++)
        begin(engine, ranks != NULL ? ranks[i] : i);
    slu_engine_leave(engine);
    for (uint32_t i = 0; i < count; i++) {
        int error = await_rank(node, ranks != NULL ? ranks[i] : i, began, until);

        if (error < 0 && result == 0) {
            result = error;
            slu_text_save(&text);
        }
    }
    if (result < 0)
        slu_text_restore(&text);
    return result;
}

int sluice_node_reach(struct sluice_node *node, const uint32_t *ranks, uint32_t count,
                      int64_t deadline)
{
    SLU_UNCANCELLED_BLOCK;
    int64_t until = slu_after(deadline);
    int error = slu_node_check_call(node, deadline);

    if (error == 0)
        error = check_ranks(node, ranks, count);
    if (error == 0 && node->ended)
        error = slu_fail(ENOTCONN, "the node was shut down");
    if (error == 0)
        error = slu_scope_check(slu_node_engine(node));
    if (error == 0 && deadline == 0)
        error = slu_fail(ETIMEDOUT, "the deadline is 0: no rank was connected");
    if (error < 0)
        return error;
    return reach(node, ranks, ranks == NULL ? node->ranks : count, until);
}
