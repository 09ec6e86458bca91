/* SPDX-License-Identifier: MIT */
/* Groups of ranks: that of all members of a node, and the positions of ranks. */
#include "config.h"

#include "node/node.h"

uint32_t slu_group_position(const struct slu_group *group, uint32_t rank)
{
    uint32_t first = 0, end = group->count;

    if (group->ranks == NULL)
        return rank;
    while (end - first > 1) {
        uint32_t middle = first + (end - first) / 2;

        if (group->ranks[middle] <= rank)
            first = middle;
        else
            end = middle;
    }
    return first;
}

void slu_group_all(struct slu_group *group)
{
    const struct sluice_node *node = group->node;

    group->ranks = node->members;
    group->count = slu_node_count(node);
    group->self = slu_group_position(group, node->rank);
}
