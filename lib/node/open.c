/* SPDX-License-Identifier: MIT */
/*
 * Opens a node over an exchange, by all ranks together and within one deadline. A rank that fails
 * on its own still takes part, and sends its reason, so that all fail at once. Only a rank whose
 * exchange fails leaves at once, because the others then leave, too.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "exchange/exchange.h"
#include "node/node.h"

struct opening {
    struct sluice_exchange *exchange;
    struct sluice_pd *pd;
    struct slu_belongings own; /* which of these were opened here */
    uint32_t rank, ranks;
    int64_t until;
    struct sluice_node_endpoint *ours, *theirs; /* one for each rank */
};

static int64_t time_left(const struct opening *opening, int error)
{
    return slu_agree_time(opening->until, error);
}

static int find_failure(const struct opening *opening)
{
    return slu_agree_check_reports(opening->theirs, opening->ranks, opening->rank, "open its node");
}

/* error is the result of the preparation; prepared is NULL if that failed. */
static int exchange_endpoints(const struct opening *opening,
                              const struct sluice_prepared_node *prepared, int error)
{
    struct slu_text text;
    int result;

    if (error == 0)
        error = sluice_prepared_node_endpoints(prepared, opening->ours, opening->ranks);
    slu_text_save(&text);
    if (error < 0)
        for (uint32_t i = 0; i < opening->ranks; i++)
            slu_node_failure_encode_error(error, &opening->ours[i]);
    result = sluice_exchange_alltoall(opening->exchange, opening->ours, opening->theirs,
                                      sizeof *opening->ours, time_left(opening, error));
    if (result == 0)
        result = find_failure(opening);
    else
        result = slu_agree_exchanged(result);
    return slu_agree_choose(error, &text, result);
}

/* Exchanges the reasons, once all know that a rank has failed. */
static int exchange_reasons(const struct opening *opening, int error)
{
    int result;

    slu_node_failure_encode_error(error, opening->ours);
    result = sluice_exchange_allgather(opening->exchange, opening->ours, opening->theirs,
                                       sizeof *opening->ours, time_left(opening, -ETIMEDOUT));
    if (result == 0)
        result = find_failure(opening);
    return result < 0 ? result
                      : slu_fail(EPROTO, "a rank could not open its node, and gave no reason");
}

/*
 * Agrees with all ranks on whether one has failed so far. error is the result of this rank. Returns
 * the error of any rank, its own first.
 */
static int agree(const struct opening *opening, int error)
{
    uint8_t failed = error < 0;
    uint8_t *all = opening->theirs->bytes;
    struct slu_text text;
    int result;

    slu_text_save(&text);
    result = sluice_exchange_allgather(opening->exchange, &failed, all, sizeof failed,
                                       time_left(opening, error));
    for (uint32_t i = 0; i < opening->ranks && result == 0 && failed == 0; i++)
        failed = all[i];
    if (result == 0 && failed != 0) {
        slu_text_restore(&text);
        result = exchange_reasons(opening, error);
    }
    return slu_agree_choose(error, &text, result);
}

/*
 * On RDMA devices, a message that reaches a rank before its handshake is late by a retransmission,
 * up to a second, and so would be a query. So all ranks first agree that they have come this far.
 * Then each queries all others, which proves that every connection works. No rank leaves before all
 * have their answers, since its connections would look lost to those that still wait.
 */
static int await_ranks(const struct opening *opening, struct sluice_node *node)
{
    int64_t until;
    int error;

    do {
        until = slu_sleep_until(opening->until);
        error = sluice_multichannel_wait_connected(node->multichannel, slu_agree_time(until, 0));
    } while (error == -ETIMEDOUT && !slu_is_late(opening->until));
    return agree(opening, error);
}

/* Consumes the prepared node, which is NULL if error is not 0. */
static int join(const struct opening *opening, struct sluice_prepared_node *prepared, int error,
                struct sluice_node **node)
{
    error = exchange_endpoints(opening, prepared, error);
    if (error < 0) {
        sluice_prepared_node_free(prepared);
        return error;
    }
    *node = sluice_prepared_node_handshake(prepared, opening->theirs, opening->ranks);
    error = agree(opening, *node != NULL ? slu_agree_check_peers(slu_node_engine(*node)) : -errno);
    return error == 0 ? await_ranks(opening, *node) : error;
}

/* Without memory for the endpoints, the rank cannot take part, and only reports that. */
static int open_together(struct opening *opening, struct sluice_prepared_node *prepared, int error,
                         struct sluice_node **node)
{
    opening->ours = calloc(opening->ranks, sizeof *opening->ours);
    opening->theirs = calloc(opening->ranks, sizeof *opening->theirs);
    if (opening->ours != NULL && opening->theirs != NULL) {
        error = join(opening, prepared, error, node);
    } else {
        sluice_prepared_node_free(prepared);
        slu_fail(ENOMEM, "no memory for the endpoints of %u rank%s", opening->ranks,
                 SLU_S(opening->ranks));
        error = slu_exchange_abandon(opening->exchange);
    }
    free(opening->theirs);
    free(opening->ours);
    return error;
}

/* Finds out which rank this is. device is the one of the host file, or empty. */
static int find_rank(struct opening *opening, int64_t deadline, char device[64])
{
    struct sluice_exchange_info info = {.size = sizeof info};
    int error = 0;

    if (opening->exchange != NULL)
        error = sluice_exchange_query(opening->exchange, &info);
    if (error == 0 && deadline == 0)
        error = slu_fail(ETIMEDOUT, "the deadline is 0: nothing was sent to other ranks");
    if (error == 0 && opening->exchange == NULL) {
        opening->own.exchange = sluice_exchange_open(NULL, deadline);
        opening->exchange = opening->own.exchange;
        error =
            opening->exchange != NULL ? sluice_exchange_query(opening->exchange, &info) : -errno;
    }
    if (error < 0)
        return error;
    opening->rank = info.rank;
    opening->ranks = info.ranks;
    memcpy(device, info.device, sizeof info.device);
    return 0;
}

static int open_device(struct opening *opening, const char *device)
{
    opening->own.context = sluice_context_open(device[0] != '\0' ? device : NULL, NULL);
    if (opening->own.context == NULL)
        return -errno;
    opening->own.pd = sluice_pd_alloc(opening->own.context);
    if (opening->own.pd == NULL)
        return -errno;
    opening->pd = opening->own.pd;
    return 0;
}

/* Any failure to open a device is reported to the other ranks, as all later failures are. */
static int open_here(struct opening *opening, const struct sluice_node_attr *attr,
                     const char *device, struct sluice_node **node)
{
    struct sluice_prepared_node *prepared = NULL;
    struct sluice_node_attr known = {0};
    struct slu_text text;
    int valid = slu_node_read_attr(attr, &known), error = 0;

    slu_text_save(&text);
    if (opening->pd == NULL)
        error = open_device(opening, device);
    if (error == 0 && valid < 0) {
        slu_text_restore(&text);
        error = valid;
    }
    /* Even if another attribute is wrong: the other ranks exchange cards, one of which says so. */
    if (known.connect == SLUICE_NODE_CONNECT_LAZY) {
        slu_log_set_rank(opening->rank);
        return slu_node_open_lazy(opening->exchange, opening->pd, &known, error, opening->until,
                                  node);
    }
    if (error == 0) {
        prepared = sluice_node_prepare(opening->pd, opening->rank, opening->ranks, attr);
        error = prepared != NULL ? 0 : -errno;
    }
    return open_together(opening, prepared, error, node);
}

static int open_with_all(struct opening *opening, const struct sluice_node_attr *attr,
                         int64_t deadline, struct sluice_node **node)
{
    char device[64];
    int error = find_rank(opening, deadline, device);

    if (error < 0)
        return error;
    opening->exchange->whole = deadline;
    error = open_here(opening, attr, device, node);
    opening->exchange->whole = 0;
    return error;
}

/* Closes without a farewell, since no other rank has had a barrier with this node. */
static void give_up(struct opening *opening, struct sluice_node *node)
{
    struct slu_text text;

    slu_text_save(&text);
    if (node != NULL)
        node->ended = true;
    sluice_node_close(node);
    slu_belongings_close(&opening->own);
    slu_text_restore(&text);
}

/* NULL may be intended, or come from an earlier failure that the program did not check. */
static void warn_of_none(const struct opening *opening)
{
    const char *first = slu_first_failure();
    bool no_exchange = opening->exchange == NULL, no_pd = opening->pd == NULL;

    if (first == NULL || (!no_exchange && !no_pd))
        return;
    slu_log(SLUICE_LOG_WARN,
            "sluice_node_open() was given NULL for %s%s%s, and opens its own; earlier: %s",
            no_exchange ? "the exchange" : "", no_exchange && no_pd ? " and " : "",
            no_pd ? "the protection domain" : "", first);
}

struct sluice_node *sluice_node_open(struct sluice_pd *pd, struct sluice_exchange *exchange,
                                     const struct sluice_node_attr *attr, int64_t deadline)
{
    SLU_UNCANCELLED_BLOCK;
    struct opening opening = {.exchange = exchange, .pd = pd, .until = slu_after(deadline)};
    struct sluice_node *node = NULL;
    int error;

    if (deadline < 0)
        return slu_misuse_null(EINVAL, "deadline %lld is negative", (long long)deadline);
    warn_of_none(&opening);
    error = open_with_all(&opening, attr, deadline, &node);
    if (error < 0) {
        give_up(&opening, node);
        return slu_none(error);
    }
    node->own = opening.own;
    slu_belongings_own(&node->own, true);
    slu_made();
    return node;
}
