/* SPDX-License-Identifier: MIT */
/*
 * Barriers: three algorithms by which all ranks of a group learn that all have come. Each pair of
 * ranks counts its own notifications, so any group can use any algorithm at any time. Wrong
 * arguments are found before anything is sent. A failure breaks the barriers of the node until they
 * are reset.
 */
#include "config.h"

#include <string.h>

#include "base/bytes.h"
#include "node/node.h"

/* Notifications go up a binary tree, and down again. */
static int run_tree(struct slu_group *group)
{
    uint32_t parent = (group->self - 1) / 2;
    uint64_t first = 2 * (uint64_t)group->self + 1;
    uint64_t end = first + 2 < group->count ? first + 2 : group->count;
    int error = 0;

    for (uint64_t child = first; child < end && error == 0; child++)
        error = slu_notify_await(group, (uint32_t)child);
    if (error == 0 && group->self != 0)
        error = slu_notify(group, parent);
    if (error == 0 && group->self != 0)
        error = slu_notify_await(group, parent);
    for (uint64_t child = first; child < end && error == 0; child++)
        error = slu_notify(group, (uint32_t)child);
    return error;
}

/* The same along the tree of the node, in which most neighbours are on one host. */
static int run_node_tree(struct slu_group *group)
{
    const struct slu_tree *tree = &group->node->tree;
    bool root = tree->parent == SLU_NONE;
    uint32_t parent = root ? 0 : slu_group_position(group, tree->parent);
    int error = 0;

    for (uint32_t i = 0; i < tree->child_count && error == 0; i++)
        error = slu_notify_await(group, slu_group_position(group, tree->children[i].rank));
    if (error == 0 && !root)
        error = slu_notify(group, parent);
    if (error == 0 && !root)
        error = slu_notify_await(group, parent);
    for (uint32_t i = 0; i < tree->child_count && error == 0; i++)
        error = slu_notify(group, slu_group_position(group, tree->children[i].rank));
    return error;
}

static int run_central(struct slu_group *group)
{
    int error = 0;

    if (group->self != 0) {
        error = slu_notify(group, 0);
        return error == 0 ? slu_notify_await(group, 0) : error;
    }
    for (uint32_t i = 1; i < group->count && error == 0; i++)
        error = slu_notify_await(group, i);
    for (uint32_t i = 1; i < group->count && error == 0; i++)
        error = slu_notify(group, i);
    return error;
}

/* After the round of distance d, each rank knows that the 2 d - 1 ranks before it have come. */
static int run_dissemination(struct slu_group *group)
{
    int error = 0;

    for (uint32_t distance = 1; distance < group->count && error == 0; distance *= 2) {
        error = slu_notify(group, (group->self + distance) % group->count);
        if (error == 0)
            error = slu_notify_await(group, (group->self + group->count - distance) % group->count);
    }
    return error;
}

/*
 * With few ranks, dissemination is quickest: all ranks do the same at the same time. Up to
 * CENTRAL_RANKS a central barrier is as quick as a tree, because the first rank's writes take less
 * time than the steps of the tree; and where ranks outnumber processors it is at least twice as
 * quick, because each rank has to run only once. All ranks must choose the same algorithm, so the
 * choice depends only on what all know.
 */
#define CENTRAL_RANKS 64

/* In a lazy node, a rank of a tree connects to few others, the first of a central one to all. */
static uint32_t choose_algorithm(const struct sluice_node *node, uint32_t ranks)
{
    if (ranks <= SLU_FEW_RANKS)
        return SLUICE_BARRIER_DISSEMINATION;
    return ranks <= CENTRAL_RANKS && node->connector == NULL ? SLUICE_BARRIER_CENTRAL
                                                             : SLUICE_BARRIER_TREE;
}

/* Makes a tag that all ranks of a barrier have in common and that other barriers rarely have. */
static uint16_t make_tag(const struct slu_group *group, uint32_t algorithm)
{
    uint32_t hash = SLU_HASH_BASIS ^ (algorithm << 1 | group->ending);

    for (uint32_t i = 0; i < group->count; i++)
        hash = slu_hash(hash, slu_group_rank(group, i));
    return (uint16_t)(hash >> 16 ^ hash);
}

/* In a lazy node, a central barrier of many ranks is a tree as well. */
static int run(struct slu_group *group, uint32_t algorithm)
{
    const struct sluice_node *node = group->node;
    bool central = algorithm == SLUICE_BARRIER_CENTRAL;

    if (algorithm == SLUICE_BARRIER_DISSEMINATION)
        return run_dissemination(group);
    if (central && (node->connector == NULL || group->count <= CENTRAL_RANKS))
        return run_central(group);
    return node->by_tree && group->count == slu_node_count(node) ? run_node_tree(group)
                                                                 : run_tree(group);
}

/*
 * Marks are checked first, and count even if the rank has already notified this one: a rank that
 * gave up before this rank came has not left this barrier, because no rank leaves a barrier that
 * another one has not entered; and it will not complete it.
 */
int slu_barrier_run(struct slu_group *group, uint32_t algorithm)
{
    int error = slu_group_enter(group);

    if (error == 0)
        error = slu_abort_check_marks(group);
    if (error < 0)
        return error;
    if (algorithm == SLUICE_BARRIER_DEFAULT)
        algorithm = group->node->algorithm;
    if (algorithm == SLUICE_BARRIER_DEFAULT)
        algorithm = choose_algorithm(group->node, group->count);
    group->tag = make_tag(group, algorithm);
    slu_node_publish_entry(group);
    return run(group, algorithm);
}

/* Also sets the position of this rank in the group. */
static int check_ranks(struct slu_group *group)
{
    const struct sluice_node *node = group->node;
    bool found = false;

    if (group->count == 0)
        return slu_misuse(EINVAL, "a barrier of no ranks");
    for (uint32_t i = 0; i < group->count; i++) {
        uint32_t rank = group->ranks[i];

        if (rank >= node->ranks)
            return slu_misuse(EINVAL, "ranks[%u] is %u: there are ranks 0..%u", i, rank,
                              node->ranks - 1);
        if (node->members != NULL && rank != node->rank && !slu_cards_has(node, rank))
            return slu_misuse(EINVAL, "ranks[%u] is %u, which is no member in generation %u", i,
                              rank, node->generation);
        if (i > 0 && rank <= group->ranks[i - 1])
            return slu_misuse(EINVAL, "ranks[%u] is %u after %u: they must be strictly ascending",
                              i, rank, group->ranks[i - 1]);
        if (rank == node->rank) {
            group->self = i;
            found = true;
        }
    }
    if (!found)
        return slu_misuse(EINVAL, "the group of %u rank%s is without this one, rank %u",
                          group->count, SLU_S(group->count), node->rank);
    return 0;
}

static int check_group(struct slu_group *group)
{
    if (group->ranks != NULL)
        return check_ranks(group);
    if (group->count != 0 && group->count != group->node->ranks)
        return slu_misuse(EINVAL, "a list of %u rank%s is NULL", group->count, SLU_S(group->count));
    slu_group_all(group);
    return 0;
}

int sluice_node_barrier(struct sluice_node *node, const uint32_t *ranks, uint32_t count,
                        uint32_t algorithm, int64_t deadline)
{
    struct slu_group group = {.node = node, .ranks = ranks, .count = count};
    struct slu_engine *engine;
    int error = slu_node_check_call(node, deadline);

    if (error == 0 && algorithm > SLUICE_BARRIER_DISSEMINATION)
        error = slu_misuse(EINVAL, "algorithm %u of a barrier: must be in 0..%d", algorithm,
                           SLUICE_BARRIER_DISSEMINATION);
    if (error == 0)
        error = check_group(&group);
    if (error == 0)
        error = slu_node_check_usable(node, group.count, deadline);
    if (error < 0 || group.count == 1)
        return error;
    group.until = slu_after(deadline);
    engine = slu_node_engine(node);
    slu_engine_enter(engine);
    error = slu_barrier_run(&group, algorithm);
    if (error < 0)
        slu_abort_announce(&group);
    else
        slu_node_publish_state(node, SLU_NODE_OUTSIDE);
    slu_engine_leave(engine);
    return error;
}

int sluice_node_barrier_reset(struct sluice_node *node)
{
    if (!slu_is_node(node))
        return slu_not_a_node(node);
    if (node->ended)
        return slu_fail(ENOTCONN, "the node was shut down");
    for (uint32_t i = 0; i < node->ranks; i++) {
        struct slu_rank *peer = &node->peers[i];

        /* Most ranks of a lazy node were not used: a write would touch their memory. */
        if (peer->notified != 0 || peer->expected != 0 || peer->given != 0 || peer->taken != 0)
            peer->notified = peer->expected = peer->given = peer->taken = 0;
        if (peer->seen || peer->invited || peer->abort_id != 0) {
            peer->seen = peer->invited = false;
            peer->abort_id = 0;
        }
    }
    slu_tree_free(&node->tree);
    node->tree_made = false;
    node->round = 0;
    node->calls = 0;
    node->last = (struct slu_tally){.count = 0};
    memset(node->tallies, 0, sizeof node->tallies);
    node->generation++;
    node->reset_at = slu_now();
    slu_node_publish_state(node, SLU_NODE_OUTSIDE);
    node->broken = false;
    return 0;
}
