/* SPDX-License-Identifier: MIT */
/* A rank of any number of ranks: each sends a number to all others, and all compute the sum. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <sluice.h>

#define DEADLINE SLUICE_S(60)

static int add_up(struct sluice_node *node, uint64_t *numbers, uint64_t ranks)
{
    uint64_t own = 100 + (uint64_t)sluice_node_rank(node), sum = 0;

    if (sluice_node_allgather(node, &own, numbers, sizeof(own), DEADLINE) != 0)
        return -1;
    for (uint64_t i = 0; i < ranks; i++)
        sum += numbers[i];
    printf("meson adds up: %" PRIu64 " of %" PRIu64 " ranks\n", sum, ranks);
    return sluice_node_shutdown(node, DEADLINE);
}

int main(void)
{
    struct sluice_node *node = sluice_node_open(NULL, NULL, NULL, DEADLINE);
    uint64_t ranks = node == NULL ? 0 : (uint64_t)sluice_node_ranks(node);
    uint64_t *numbers = node == NULL ? NULL : calloc(ranks, sizeof(*numbers));
    int result = numbers == NULL ? -1 : add_up(node, numbers, ranks);

    if (result != 0)
        fprintf(stderr, "sums: %s\n", sluice_last_error());
    free(numbers);
    sluice_node_close(node);
    return result != 0;
}
