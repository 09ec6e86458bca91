/* SPDX-License-Identifier: MIT */
/* If freeing a block fails, the block still belongs to the program, which may free it again. */
#include <errno.h>
#include <stddef.h>

#include <sluice.h>

int use(struct sluice_pd *pd)
{
    struct sluice_allocator *allocator = sluice_allocator_create(pd, 0, NULL);
    char *block, *grown;
    int error = -1;

    if (allocator == NULL)
        return -1;
    block = (char *)sluice_allocator_alloc(allocator, 64, 0);
    if (block != NULL) {
        block[63] = 1;
        grown = (char *)sluice_allocator_realloc(allocator, block, 128, 0);
        if (grown != NULL)
            block = grown;
        block[63] = 2;
        error = sluice_allocator_free(allocator, block);
        if (error == -EBUSY)
            error = sluice_allocator_free_wait(allocator, block, SLUICE_S(1));
        if (error < 0)
            sluice_allocator_release(allocator, block, NULL, NULL);
    }
    sluice_allocator_destroy(allocator);
    return error;
}

int share(struct sluice_allocator *allocator, struct sluice_remote_mr *remote)
{
    char *block = (char *)sluice_allocator_alloc_shared(allocator, 4096, remote);
    int error;

    if (block == NULL)
        return -1;
    do
        error = sluice_allocator_free(allocator, block);
    while (error == -EBUSY);
    return error;
}
