/* SPDX-License-Identifier: MIT */
/*
 * An allgather along the tree of a node. Values go up: each rank gives its parent those of all
 * positions below it. The root then has all, and each rank gives its children all that they do not
 * have, while it still takes them from its parent. So each value goes to each rank once, and to
 * each further host once.
 */
#include "config.h"

#include <string.h>

#include "node/flow.h"
#include "node/gather.h"

struct spread {
    struct slu_gathering *gathering;
    const struct slu_tree *tree;
    /* Values that go up: from the children, and to the parent; and down likewise. */
    struct slu_flow children[SLU_TREE_CHILDREN], up, down, to_children[SLU_TREE_CHILDREN];
    struct slu_flow *all[2 * SLU_TREE_CHILDREN + 2];
    uint32_t count;
};

/* Returns the place of a byte of a flow among those of all values, in the order of positions. */
static size_t place_of(const struct slu_flow *flow, size_t at)
{
    return flow->from + at + (at >= flow->gap_at ? flow->gap : 0);
}

/* Copies bytes between a chunk and values, in the order of positions. */
static void copy(const struct spread *spread, size_t place, uint8_t *chunk, size_t bytes, bool out)
{
    const struct slu_gathering *gathering = spread->gathering;

    while (bytes > 0) {
        uint32_t rank = slu_tree_rank(spread->tree, (uint32_t)(place / gathering->bytes));
        size_t within = place % gathering->bytes, part = gathering->bytes - within;
        uint8_t *value = gathering->all + rank * gathering->stride + within;

        part = part < bytes ? part : bytes;
        if (out)
            memcpy(chunk, value, part);
        else
            memcpy(value, chunk, part);
        place += part;
        chunk += part;
        bytes -= part;
    }
}

/* A chunk may be in two parts, before and behind the values that the child has. */
static void copy_chunk(const struct spread *spread, const struct slu_flow *flow)
{
    uint8_t *chunk = slu_flow_chunk(&spread->gathering->group, flow);
    size_t bytes = slu_flow_next(flow), before = 0;

    if (flow->done < flow->gap_at)
        before = flow->gap_at - flow->done < bytes ? flow->gap_at - flow->done : bytes;
    copy(spread, place_of(flow, flow->done), chunk, before, flow->outgoing);
    copy(spread, place_of(flow, flow->done + before), chunk + before, bytes - before,
         flow->outgoing);
}

static uint64_t describe(const struct spread *spread, const struct slu_flow *flow)
{
    return slu_gather_describe(spread->gathering, flow->done / SLU_CHUNK_MOST);
}

/* Takes what has come. Returns how many chunks, or an error. */
static int take(struct spread *spread, struct slu_flow *flow)
{
    struct slu_group *group = &spread->gathering->group;
    int taken = 0, result;

    while (!flow->ended && (result = slu_flow_poll(group, flow)) != 0) {
        uint64_t call = result > 0 ? slu_flow_call(group, flow) : 0;

        if (result < 0)
            return result;
        if (call != describe(spread, flow))
            return slu_gather_fail_call(spread->gathering, flow->rank, call);
        copy_chunk(spread, flow);
        slu_flow_take(group, flow);
        taken++;
    }
    return taken;
}

/*
 * Gives what there is: all bytes before the place known, or all if the flows that it comes from
 * have ended.
 */
static int give(struct spread *spread, struct slu_flow *flow, size_t known, bool all)
{
    struct slu_group *group = &spread->gathering->group;
    int given = 0, result = 1;

    while (!flow->ended && result > 0) {
        size_t next = slu_flow_next(flow);

        if (!all &&
            (flow->done + next == flow->bytes || place_of(flow, flow->done + next - 1) >= known))
            break;
        result = slu_flow_poll(group, flow);
        if (result > 0) {
            copy_chunk(spread, flow);
            slu_flow_give(group, flow, describe(spread, flow));
            given++;
        }
    }
    return result < 0 ? result : given;
}

/* Returns up to which place the values of positions from this rank's own on are here. */
static size_t known_above(const struct spread *spread)
{
    size_t known = (size_t)(spread->tree->position + 1) * spread->gathering->bytes;

    for (uint32_t i = 0; i < spread->tree->child_count; i++) {
        known += spread->children[i].done;
        if (!spread->children[i].ended)
            break;
    }
    return known;
}

static bool have_children_ended(const struct spread *spread)
{
    for (uint32_t i = 0; i < spread->tree->child_count; i++)
        if (!spread->children[i].ended)
            return false;
    return true;
}

static int move_up(struct spread *spread)
{
    int moved = 0, result = 0;

    for (uint32_t i = 0; i < spread->tree->child_count && result >= 0; i++) {
        result = take(spread, &spread->children[i]);
        moved += result;
    }
    if (result >= 0 && spread->tree->parent != SLU_NONE) {
        result = give(spread, &spread->up, known_above(spread), have_children_ended(spread));
        moved += result;
    }
    return result < 0 ? result : moved;
}

static int move_down(struct spread *spread)
{
    bool root = spread->tree->parent == SLU_NONE;
    int moved = 0, result = root ? 0 : take(spread, &spread->down);

    for (uint32_t i = 0; i < spread->tree->child_count && result >= 0; i++) {
        moved += result;
        result =
            give(spread, &spread->to_children[i],
                 root ? 0 : place_of(&spread->down, spread->down.done), root || spread->down.ended);
    }
    return result < 0 ? result : moved + result;
}

/* The values above a rank come only when its parent has all, and so those below it. */
static int step(void *argument)
{
    struct spread *spread = argument;
    int moved, result;

    do {
        result = moved = move_up(spread);
        if (result >= 0 && have_children_ended(spread)) {
            result = move_down(spread);
            moved += result;
        }
    } while (result >= 0 && moved > 0);
    if (result < 0)
        return result;
    for (uint32_t i = 0; i < spread->count; i++)
        if (!spread->all[i]->ended)
            return 0;
    return 1;
}

/* Begins a flow of the values of a range of positions, or of all others. */
static void begin(struct spread *spread, struct slu_flow *flow, uint32_t first, uint32_t end,
                  bool others)
{
    size_t bytes = spread->gathering->bytes, range = (end - first) * bytes;

    if (others) {
        flow->bytes = spread->tree->ranks * bytes - range;
        flow->gap_at = first * bytes;
        flow->gap = range;
    } else {
        flow->bytes = range;
        flow->from = first * bytes;
        flow->gap_at = SIZE_MAX;
    }
    spread->all[spread->count++] = flow;
}

static void begin_child(struct spread *spread, uint32_t number)
{
    const struct slu_tree_child *child = &spread->tree->children[number];
    const uint32_t window = SLU_WINDOW_CHILD + child->place;
    struct slu_flow *up = &spread->children[number], *down = &spread->to_children[number];

    *up = (struct slu_flow){.rank = child->rank, .here = window};
    *down = (struct slu_flow){
        .rank = child->rank, .outgoing = true, .here = window, .there = SLU_WINDOW_PARENT};
    begin(spread, up, child->first, child->end, false);
    begin(spread, down, child->first, child->end, true);
}

static void begin_parent(struct spread *spread)
{
    const struct slu_tree *tree = spread->tree;

    spread->up = (struct slu_flow){.rank = tree->parent,
                                   .outgoing = true,
                                   .here = SLU_WINDOW_PARENT,
                                   .there = SLU_WINDOW_CHILD + tree->place};
    spread->down = (struct slu_flow){.rank = tree->parent, .here = SLU_WINDOW_PARENT};
    begin(spread, &spread->up, tree->position, tree->end, false);
    begin(spread, &spread->down, tree->position, tree->end, true);
}

int slu_gather_tree(struct slu_gathering *gathering)
{
    struct spread spread = {.gathering = gathering, .tree = &gathering->group.node->tree};

    for (uint32_t i = 0; i < spread.tree->child_count; i++)
        begin_child(&spread, i);
    if (spread.tree->parent != SLU_NONE)
        begin_parent(&spread);
    return slu_flow_run(&gathering->group, step, &spread, spread.all, spread.count);
}
