/* SPDX-License-Identifier: MIT */
/*
 * An alltoall in a node with a tree, by the algorithm of Bruck: a rank has a row of values by how
 * many positions further each is to go. In step k it gives those whose distance has bit k to the
 * rank 2^k positions further, and takes as many from the one as far before it. So it is connected
 * to two ranks a step, and each value goes over half as many connections as there are steps.
 *
 * Each rank also gives its parent in the tree a chunk without bytes, as it does in all other calls:
 * so ranks that are in different calls notice that.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "node/flow.h"
#include "node/gather.h"

struct row {
    struct slu_gathering *gathering;
    const struct slu_tree *tree;
    uint8_t *values; /* by distance; those that arrive take the places of those that left */
    uint32_t bit;    /* k */
    struct slu_flow out, in;
    struct slu_flow up, children[SLU_TREE_CHILDREN];
    struct slu_flow *all[3 + SLU_TREE_CHILDREN];
    uint32_t count;
};

static uint32_t rank_at(const struct row *row, uint64_t distance)
{
    return slu_tree_rank(row->tree,
                         (uint32_t)((row->tree->position + distance) % row->tree->ranks));
}

/* Returns how many distances less than the number of ranks have the bit. */
static size_t count_values(const struct row *row)
{
    size_t ranks = row->tree->ranks, step = (size_t)1 << row->bit, rest = ranks % (2 * step);

    return ranks / (2 * step) * step + (rest > step ? rest - step : 0);
}

/* Returns a distance that has the bit, by its number among these. */
static size_t distance_of(const struct row *row, size_t number)
{
    size_t step = (size_t)1 << row->bit;

    return (number / step * 2 + 1) * step + number % step;
}

static void copy_chunk(const struct row *row, const struct slu_flow *flow)
{
    uint8_t *chunk = slu_flow_chunk(&row->gathering->group, flow);
    size_t bytes = row->gathering->bytes, left = slu_flow_next(flow);

    for (size_t at = flow->done; left > 0;) {
        size_t within = at % bytes, part = bytes - within < left ? bytes - within : left;
        uint8_t *value = row->values + distance_of(row, at / bytes) * bytes + within;

        if (flow->outgoing)
            memcpy(chunk, value, part);
        else
            memcpy(value, chunk, part);
        at += part;
        chunk += part;
        left -= part;
    }
}

static uint64_t describe(const struct row *row, const struct slu_flow *flow)
{
    return slu_gather_describe(row->gathering, flow->done / SLU_CHUNK_MOST);
}

static void begin(struct row *row)
{
    const uint32_t window = SLU_WINDOW_STEP + row->bit;
    uint64_t distance = UINT64_C(1) << row->bit;

    row->out = (struct slu_flow){
        .rank = rank_at(row, distance), .outgoing = true, .here = window, .there = window};
    row->in = (struct slu_flow){.rank = rank_at(row, row->tree->ranks - distance), .here = window};
    row->out.bytes = row->in.bytes = count_values(row) * row->gathering->bytes;
}

/* Returns 1 if a chunk was given, 0 if not, or an error. */
static int give(struct row *row, struct slu_flow *flow)
{
    int result = flow->ended ? 0 : slu_flow_poll(&row->gathering->group, flow);

    if (result <= 0)
        return result;
    copy_chunk(row, flow);
    slu_flow_give(&row->gathering->group, flow, describe(row, flow));
    return 1;
}

/* Likewise takes one. */
static int take(struct row *row, struct slu_flow *flow)
{
    struct slu_group *group = &row->gathering->group;
    int result = flow->ended ? 0 : slu_flow_poll(group, flow);
    uint64_t call;

    if (result <= 0)
        return result;
    call = slu_flow_call(group, flow);
    if (call != describe(row, flow))
        return slu_gather_fail_call(row->gathering, flow->rank, call);
    copy_chunk(row, flow);
    slu_flow_take(group, flow);
    return 1;
}

static int meet_neighbours(struct row *row)
{
    int result = row->tree->parent != SLU_NONE ? give(row, &row->up) : 0;

    for (uint32_t i = 0; i < row->tree->child_count && result >= 0; i++)
        result = take(row, &row->children[i]);
    return result;
}

/* Tells whether the rank of a step gives its chunk as a child before. */
static bool is_behind(const struct row *row)
{
    for (uint32_t i = 0; i < row->tree->child_count; i++)
        if (row->children[i].rank == row->in.rank)
            return !row->children[i].ended;
    return false;
}

/* A chunk takes the places of that with the same number, which must have left. */
static int swap(struct row *row)
{
    int given, taken;

    slu_flow_invite(&row->gathering->group, row->in.rank);
    given = give(row, &row->out);
    if (given < 0 || (!row->out.ended && row->out.done <= row->in.done) || is_behind(row))
        return given;
    taken = take(row, &row->in);
    return taken < 0 ? taken : given + taken;
}

static bool is_last(const struct row *row)
{
    return UINT64_C(2) << row->bit >= row->tree->ranks;
}

static bool have_ended(const struct row *row)
{
    for (uint32_t i = 0; i < row->count; i++)
        if (!row->all[i]->ended)
            return false;
    return true;
}

static int step(void *argument)
{
    struct row *row = argument;
    int result = meet_neighbours(row), moved = 1;

    /* The parent may be the rank of a step as well, and takes the chunk of its child first. */
    while (result >= 0 && moved > 0 && (row->tree->parent == SLU_NONE || row->up.ended)) {
        result = moved = swap(row);
        if (moved < 0 || !row->out.ended || !row->in.ended || is_last(row))
            continue;
        row->bit++;
        begin(row);
        moved = 1;
    }
    if (result < 0)
        return result;
    return have_ended(row) ? 1 : 0;
}

/* The value for the rank at a distance. */
static void fill(const struct row *row)
{
    const struct slu_gathering *gathering = row->gathering;

    for (uint32_t i = 0; i < row->tree->ranks; i++)
        memcpy(row->values + i * gathering->bytes,
               gathering->own + rank_at(row, i) * gathering->own_stride, gathering->bytes);
}

/* The value that has come from the rank as far before this one. */
static void empty(const struct row *row)
{
    const struct slu_gathering *gathering = row->gathering;

    for (uint32_t i = 1; i < row->tree->ranks; i++)
        memcpy(gathering->all + rank_at(row, row->tree->ranks - i) * gathering->stride,
               row->values + i * gathering->bytes, gathering->bytes);
}

static void list(struct row *row, struct slu_flow *flow)
{
    row->all[row->count++] = flow;
}

static void begin_all(struct row *row)
{
    const struct slu_tree *tree = row->tree;

    begin(row);
    list(row, &row->in);
    list(row, &row->out);
    if (tree->parent != SLU_NONE) {
        row->up = (struct slu_flow){.rank = tree->parent,
                                    .outgoing = true,
                                    .here = SLU_WINDOW_PARENT,
                                    .there = SLU_WINDOW_CHILD + tree->place};
        list(row, &row->up);
    }
    for (uint32_t i = 0; i < tree->child_count; i++) {
        row->children[i] = (struct slu_flow){.rank = tree->children[i].rank,
                                             .here = SLU_WINDOW_CHILD + tree->children[i].place};
        list(row, &row->children[i]);
    }
}

int slu_gather_steps(struct slu_gathering *gathering)
{
    struct sluice_node *node = gathering->group.node;
    struct row row = {.gathering = gathering, .tree = &node->tree};
    size_t bytes = node->ranks * gathering->bytes;
    int error;

    row.values = malloc(bytes + 1);
    if (row.values == NULL)
        return slu_abort_blame_rank(
            &gathering->group, node->rank, SLU_ABORT_UNKNOWN,
            slu_fail(ENOMEM, "no memory for an alltoall of %zu bytes", bytes));
    if (bytes > 0)
        fill(&row);
    begin_all(&row);
    error = slu_flow_run(&gathering->group, step, &row, row.all, row.count);
    if (error == 0 && bytes > 0)
        empty(&row);
    free(row.values);
    return error;
}
