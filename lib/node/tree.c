/* SPDX-License-Identifier: MIT */
/* The tree of a lazy node: all ranks make the same one, from the hosts that their cards name. */
#include "config.h"

#include "node/tree.h"

#include <stdlib.h>
#include <string.h>

struct by_host {
    uint32_t host, rank;
};

static int compare(const void *a, const void *b)
{
    const struct by_host *one = a, *other = b;

    if (one->host != other->host)
        return one->host < other->host ? -1 : 1;
    return one->rank < other->rank ? -1 : one->rank > other->rank;
}

static bool are_equal(const uint32_t *hosts, uint32_t ranks)
{
    for (uint32_t i = 1; i < ranks; i++)
        if (hosts[i] != hosts[0])
            return false;
    return true;
}

/* Replaces the host of each rank by the first rank of that host. */
static void name_hosts(struct by_host *sorted, uint32_t ranks, uint32_t *hosts)
{
    if (are_equal(hosts, ranks)) {
        memset(hosts, 0, ranks * sizeof *hosts);
        return;
    }
    for (uint32_t i = 0; i < ranks; i++)
        sorted[i] = (struct by_host){hosts[i], i};
    qsort(sorted, ranks, sizeof *sorted, compare);
    for (uint32_t i = 0, first = 0; i < ranks; i++) {
        if (sorted[i].host != sorted[first].host)
            first = i;
        hosts[sorted[i].rank] = sorted[first].rank;
    }
}

/* Returns whether the ranks of each host follow each other. */
static bool is_ordered(const uint32_t *hosts, uint32_t ranks)
{
    for (uint32_t i = 1; i < ranks; i++)
        if (hosts[i] < hosts[i - 1])
            return false;
    return true;
}

/* Sorts the ranks by the first one of their host. starts has room for a number more than ranks. */
static int make_order(struct slu_tree *tree, const uint32_t *hosts, uint32_t *starts)
{
    if (is_ordered(hosts, tree->ranks))
        return 0;
    tree->order = malloc(tree->ranks * sizeof *tree->order);
    if (tree->order == NULL)
        return -ENOMEM;
    memset(starts, 0, (tree->ranks + 1) * sizeof *starts);
    for (uint32_t i = 0; i < tree->ranks; i++)
        starts[hosts[i] + 1]++;
    for (uint32_t i = 0; i < tree->ranks; i++)
        starts[i + 1] += starts[i];
    for (uint32_t i = 0; i < tree->ranks; i++)
        tree->order[starts[hosts[i]]++] = i;
    return 0;
}

/* Writes the position at which each host begins, and the end. Returns how many hosts there are. */
static uint32_t find_starts(const struct slu_tree *tree, const uint32_t *hosts, uint32_t *starts)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < tree->ranks; i++)
        if (hosts[slu_tree_rank(tree, i)] == slu_tree_rank(tree, i))
            starts[count++] = i;
    starts[count] = tree->ranks;
    return count;
}

/* A part of a tree: the first of a range has the branches of the rest below it. */
struct part {
    uint32_t first, end;
    uint32_t above;  /* the first of the part that this one is a branch of; SLU_NONE: all */
    uint32_t branch; /* which one */
};

static uint32_t count_branches(const struct part *part)
{
    uint32_t rest = part->end - part->first - 1;

    return rest < SLU_TREE_BRANCHES ? rest : SLU_TREE_BRANCHES;
}

/* Returns where a branch begins: they are equally long, but for one. */
static uint32_t start_of(const struct part *part, uint32_t branch)
{
    uint64_t rest = part->end - part->first - 1;

    return part->first + 1 + (uint32_t)(rest * branch / count_branches(part));
}

static struct part branch_of(const struct part *part, uint32_t branch)
{
    return (struct part){start_of(part, branch), start_of(part, branch + 1), part->first, branch};
}

/* Returns the part that begins with an item of 0 to count - 1. */
static struct part find_part(uint32_t item, uint32_t count)
{
    struct part part = {0, count, SLU_NONE, 0};
    uint32_t branch;

    while (part.first != item) {
        branch = count_branches(&part) - 1;
        while (item < start_of(&part, branch))
            branch--;
        part = branch_of(&part, branch);
    }
    return part;
}

static void add_child(struct slu_tree *tree, uint32_t first, uint32_t end, uint32_t place)
{
    tree->children[tree->child_count++] =
        (struct slu_tree_child){slu_tree_rank(tree, first), first, end, place};
}

/* Places of the children of other hosts follow those of the same one. */
static void set_neighbours(struct slu_tree *tree, const uint32_t *starts, uint32_t host,
                           uint32_t hosts)
{
    uint32_t start = starts[host];
    const struct part own = find_part(tree->position - start, starts[host + 1] - start);
    const struct part leaders = find_part(host, hosts);
    bool leads = own.above == SLU_NONE;
    uint32_t above = SLU_NONE;

    if (!leads)
        above = start + own.above;
    else if (leaders.above != SLU_NONE)
        above = starts[leaders.above];
    tree->parent = above != SLU_NONE ? slu_tree_rank(tree, above) : SLU_NONE;
    tree->place = leads ? SLU_TREE_BRANCHES + leaders.branch : own.branch;
    tree->end = leads ? starts[leaders.end] : start + own.end;
    for (uint32_t i = 0; i < count_branches(&own); i++) {
        const struct part part = branch_of(&own, i);

        add_child(tree, start + part.first, start + part.end, i);
    }
    for (uint32_t i = 0; leads && i < count_branches(&leaders); i++) {
        const struct part part = branch_of(&leaders, i);

        add_child(tree, starts[part.first], starts[part.end], SLU_TREE_BRANCHES + i);
    }
}

/* Finds the position of a rank, and the number of its host. */
static uint32_t find_place(struct slu_tree *tree, uint32_t rank, const uint32_t *starts)
{
    uint32_t host = 0;

    tree->position = 0;
    while (slu_tree_rank(tree, tree->position) != rank)
        tree->position++;
    while (starts[host + 1] <= tree->position)
        host++;
    return host;
}

int slu_tree_make(struct slu_tree *tree, uint32_t rank, uint32_t ranks, uint32_t *hosts)
{
    struct by_host *sorted = malloc(ranks * sizeof *sorted);
    uint32_t *starts = malloc((ranks + 1) * sizeof *starts);
    int error = sorted != NULL && starts != NULL ? 0 : -ENOMEM;
    uint32_t count;

    *tree = (struct slu_tree){.ranks = ranks};
    if (error == 0) {
        name_hosts(sorted, ranks, hosts);
        error = make_order(tree, hosts, starts);
    }
    if (error == 0) {
        count = find_starts(tree, hosts, starts);
        set_neighbours(tree, starts, find_place(tree, rank, starts), count);
    }
    free(sorted);
    free(starts);
    return error == 0 ? 0 : slu_fail(ENOMEM, "no memory for a tree of %u ranks", ranks);
}

int slu_tree_rename(struct slu_tree *tree, const uint32_t *members)
{
    uint32_t *order = malloc(tree->ranks * sizeof *order);

    if (order == NULL)
        return slu_fail(ENOMEM, "no memory for a tree of %u ranks", tree->ranks);
    for (uint32_t i = 0; i < tree->ranks; i++)
        order[i] = members[slu_tree_rank(tree, i)];
    free(tree->order);
    tree->order = order;
    if (tree->parent != SLU_NONE)
        tree->parent = members[tree->parent];
    for (uint32_t i = 0; i < tree->child_count; i++)
        tree->children[i].rank = members[tree->children[i].rank];
    return 0;
}

void slu_tree_free(struct slu_tree *tree)
{
    free(tree->order);
    tree->order = NULL;
}
