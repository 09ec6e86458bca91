/* SPDX-License-Identifier: MIT */
/*
 * Further multichannels that connect all ranks of a node, and new connections in them. The ranks
 * exchange what they need over the node, in five steps: whether each rank is ready to begin, which
 * pairs of ranks need a connection, the endpoints of these, and then twice whether all have
 * succeeded so far.
 *
 * A rank that fails on its own still takes part in the next agreement, so that all fail together
 * and their barriers keep working. A pair of ranks is reconnected if either side asks for it: the
 * side that is still connected may not have noticed that the other one lost the connection.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "node/node.h"

struct joining {
    struct sluice_node *node;
    int64_t until;
    uint64_t files;                                /* left before other ranks know the endpoints */
    struct sluice_prepared_multichannel *prepared; /* of a new multichannel, or NULL */
    struct sluice_multichannel *multichannel;
    struct sluice_endpoint *ours, *theirs; /* one for each rank, as are all below */
    struct sluice_node_endpoint *reports;
    uint8_t *needs, *their_needs; /* 1: connect to that rank */
};

static int64_t time_left(const struct joining *joining, int error)
{
    return slu_agree_time(joining->until, error);
}

/* Tells the ranks that wait for this one that it will not come. */
static int abandon(struct sluice_node *node)
{
    const struct slu_group group = {
        .node = node, .quitter = node->rank, .culprit = node->rank, .reason = SLU_ABORT_UNKNOWN};

    slu_engine_enter(slu_node_engine(node));
    slu_abort_announce(&group);
    slu_engine_leave(slu_node_engine(node));
    return -ENOMEM;
}

static int allocate(struct joining *joining)
{
    uint32_t ranks = joining->node->ranks;

    joining->ours = calloc(ranks, sizeof *joining->ours);
    joining->theirs = calloc(ranks, sizeof *joining->theirs);
    joining->reports = calloc(ranks, sizeof *joining->reports);
    joining->needs = calloc(ranks, 1);
    joining->their_needs = calloc(ranks, 1);
    if (joining->ours != NULL && joining->theirs != NULL && joining->reports != NULL &&
        joining->needs != NULL && joining->their_needs != NULL)
        return 0;
    slu_fail(ENOMEM, "no memory for the endpoints of %u rank%s", ranks, SLU_S(ranks));
    return abandon(joining->node);
}

static void release(struct joining *joining)
{
    free(joining->their_needs);
    free(joining->needs);
    free(joining->reports);
    free(joining->theirs);
    free(joining->ours);
}

/*
 * Agrees with all ranks on whether one has failed so far. error is the result of this rank. Returns
 * this rank's error if there is one, and otherwise that of another rank.
 */
static int agree(struct joining *joining, int error)
{
    struct sluice_node_endpoint own;
    struct slu_text text;
    int result;

    slu_text_save(&text);
    slu_node_failure_encode_error(error, &own);
    result = sluice_node_allgather(joining->node, &own, joining->reports, sizeof own,
                                   time_left(joining, error));
    if (result == 0 && error == 0)
        result = slu_agree_check_reports(joining->reports, joining->node->ranks,
                                         joining->node->rank, "connect");
    return slu_agree_choose(error, &text, result);
}

static int swap_needs(struct joining *joining)
{
    int error = sluice_node_alltoall(joining->node, joining->needs, joining->their_needs, 1,
                                     time_left(joining, 0));

    for (uint32_t i = 0; i < joining->node->ranks && error == 0; i++)
        joining->needs[i] |= joining->their_needs[i] != 0;
    return error;
}

/*
 * Connections that are reset drain side by side. If one cannot be reset, the peer gets an unusable
 * endpoint and its connection fails.
 */
static int make_endpoints(struct joining *joining)
{
    uint32_t ranks = joining->node->ranks;
    int result = 0;

    if (joining->prepared != NULL)
        return sluice_prepared_multichannel_endpoints(joining->prepared, joining->ours, ranks);
    slu_engine_begin_drain(joining->multichannel->base.engine, joining->needs);
    for (uint32_t i = 0; i < ranks; i++) {
        int error = 0;

        if (joining->needs[i] != 0)
            error = slu_channel_reset(&joining->multichannel->base, i, &joining->ours[i]);
        if (error < 0)
            memset(&joining->ours[i], 0xff, sizeof joining->ours[i]);
        if (result == 0)
            result = error;
    }
    return result;
}

static int shake_hands(struct joining *joining)
{
    struct sluice_prepared_multichannel *prepared = joining->prepared;
    int error = 0;

    if (prepared != NULL) {
        error = slu_files_check(joining->files, joining->node->rank, prepared->base.engine,
                                joining->theirs, joining->node->ranks);
        if (error < 0)
            return error;
        joining->prepared = NULL;
        joining->multichannel =
            sluice_prepared_multichannel_handshake(prepared, joining->theirs, joining->node->ranks);
        return joining->multichannel != NULL ? 0 : -errno;
    }
    for (uint32_t i = 0; i < joining->node->ranks && error == 0; i++)
        if (joining->needs[i] != 0)
            error = slu_channel_connect(&joining->multichannel->base, i, &joining->theirs[i]);
    return error;
}

/*
 * error is the result of the preparation. The steps have the same reasons as in sluice_node_open().
 */
static int join(struct joining *joining, int error)
{
    error = agree(joining, error);
    if (error == 0)
        error = swap_needs(joining);
    if (error < 0)
        return error;
    error = agree(joining, make_endpoints(joining));
    if (error == 0)
        error = sluice_node_alltoall(joining->node, joining->ours, joining->theirs,
                                     sizeof *joining->ours, time_left(joining, 0));
    if (error < 0)
        return error;
    error = shake_hands(joining);
    if (error == 0)
        error = slu_agree_check_peers(joining->multichannel->base.engine);
    error = agree(joining, error);
    if (error < 0)
        return error;
    error = sluice_multichannel_wait_connected(joining->multichannel, time_left(joining, 0));
    /*
     * Without rights to read or write no peer can be queried, but all have done their handshakes.
     */
    return agree(joining, error == -EOPNOTSUPP ? 0 : error);
}

static int check(const struct sluice_node *node, int64_t deadline)
{
    int error = slu_node_check_call(node, deadline);

    return error < 0 ? error : slu_node_check_usable(node, node->ranks, deadline);
}

/* Frees what was made so far, and keeps the text of the failure. */
static void *fail_connect(const struct joining *joining, int error)
{
    struct slu_text text;

    slu_text_save(&text);
    sluice_prepared_multichannel_free(joining->prepared);
    sluice_multichannel_close(joining->multichannel);
    slu_text_restore(&text);
    return slu_none(error);
}

struct sluice_multichannel *sluice_node_multichannel_open(struct sluice_node *node,
                                                          const struct sluice_channel_attr *attr,
                                                          int64_t deadline)
{
    SLU_UNCANCELLED_BLOCK;
    struct joining joining = {.node = node, .until = slu_after(deadline)};
    int error = check(node, deadline);

    if (error == 0 && node->members != NULL)
        error = slu_misuse(EINVAL, "a node with max_ranks has no further multichannels");
    if (error == 0)
        error = allocate(&joining);
    if (error == 0) {
        memset(joining.needs, 1, node->ranks);
        joining.prepared =
            slu_multichannel_prepare(slu_node_engine(node)->pd, node->ranks, 0, attr);
        if (joining.prepared != NULL)
            joining.prepared->base.engine->peer_word = "rank";
        joining.files = slu_files_left();
        error = join(&joining, joining.prepared != NULL ? 0 : -errno);
    }
    release(&joining);
    if (error < 0)
        return fail_connect(&joining, error);
    slu_made();
    return joining.multichannel;
}

static int check_multichannel(const struct sluice_node *node,
                              const struct sluice_multichannel *multichannel)
{
    const struct slu_engine *engine;

    if (!slu_is_multichannel(multichannel))
        return slu_not_a_multichannel(multichannel);
    if (multichannel->base.owned)
        return slu_misuse(EINVAL, "the multichannel belongs to a node: its connections are made "
                                  "new by sluice_node_peer_reset()");
    engine = multichannel->base.engine;
    if (engine->peer_count != node->ranks || engine->present_count != node->ranks)
        return slu_misuse(EINVAL, "the multichannel has %u peers, the node %u rank%s",
                          engine->present_count, node->ranks, SLU_S(node->ranks));
    return 0;
}

/* Marks the connections that this side has lost. Other ranks may have lost more. */
static void find_lost(struct joining *joining)
{
    struct slu_engine *engine = joining->multichannel->base.engine;

    slu_engine_enter(engine);
    for (uint32_t i = 0; i < engine->peer_count; i++) {
        slu_peer_notice_loss(engine, &engine->peers[i]);
        joining->needs[i] = engine->peers[i].state != SLUICE_STATE_READY;
    }
    slu_engine_leave(engine);
}

int sluice_node_multichannel_reconnect(struct sluice_node *node,
                                       struct sluice_multichannel *multichannel, int64_t deadline)
{
    SLU_UNCANCELLED_BLOCK;
    struct joining joining = {
        .node = node, .until = slu_after(deadline), .multichannel = multichannel};
    int error = check(node, deadline);

    if (error == 0)
        error = check_multichannel(node, multichannel);
    if (error == 0)
        error = allocate(&joining);
    if (error == 0) {
        find_lost(&joining);
        error = join(&joining, slu_scope_check(multichannel->base.engine));
    }
    release(&joining);
    return error;
}
