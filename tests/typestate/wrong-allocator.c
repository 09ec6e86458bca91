/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <sluice.h>

#include "wrong.h"

WRONG(destroyed_twice, "-Wuse-after-free", struct sluice_pd *pd)
{
    struct sluice_allocator *allocator = sluice_allocator_create(pd, 0, NULL);
    int result = sluice_allocator_destroy(allocator);
    return result + sluice_allocator_destroy(allocator);
}

WRONG(forgotten_allocator, "-Wanalyzer-malloc-leak", struct sluice_pd *pd)
{
    struct sluice_allocator *allocator = sluice_allocator_create(pd, 0, NULL);
    return allocator != NULL;
}

WRONG(forgotten_block, "-Wanalyzer-malloc-leak", struct sluice_allocator *allocator)
{
    char *block = sluice_allocator_alloc(allocator, 64, 0);
    return block != NULL && *block == 0;
}

WRONG(forgotten_zeroes, "-Wanalyzer-malloc-leak", struct sluice_allocator *allocator)
{
    char *block = sluice_allocator_alloc_zeroed(allocator, 64, 0);
    return block != NULL && *block == 0;
}

WRONG(free, "-Wmismatched-dealloc", struct sluice_allocator *allocator)
{
    void *block = sluice_allocator_alloc(allocator, 64, 0);
    free(block);
}

WRONG(free_shared, "-Wmismatched-dealloc", struct sluice_allocator *allocator,
      struct sluice_remote_mr *remote)
{
    void *block = sluice_allocator_alloc_shared(allocator, 4096, remote);
    free(block);
}

WRONG(given_out_after_destroy, "-Wuse-after-free", struct sluice_pd *pd)
{
    struct sluice_allocator *allocator = sluice_allocator_create(pd, 0, NULL);
    sluice_allocator_destroy(allocator);
    return sluice_allocator_alloc(allocator, 64, 0);
}

WRONG(ignored_alloc, "-Wunused-result", struct sluice_allocator *allocator)
{
    sluice_allocator_alloc(allocator, 64, 0);
}

WRONG(ignored_free_wait, "-Wunused-result", struct sluice_allocator *allocator, void *block)
{
    sluice_allocator_free_wait(allocator, block, SLUICE_S(1));
}

WRONG(ignored_realloc, "-Wunused-result", struct sluice_allocator *allocator, void *block)
{
    sluice_allocator_realloc(allocator, block, 128, 0);
}

WRONG(ignored_sge, "-Wunused-result", struct sluice_allocator *allocator, const void *block,
      struct sluice_sge *sge)
{
    sluice_allocator_sge(allocator, block, 64, sge);
}

WRONG(overrun, "-Warray-bounds", struct sluice_allocator *allocator)
{
    char *block = sluice_allocator_alloc(allocator, 64, 0);
    if (block != NULL)
        memset(block, 1, 65);
    return block;
}

WRONG(overrun_grown, "-Warray-bounds", struct sluice_allocator *allocator, void *block)
{
    char *grown = sluice_allocator_realloc(allocator, block, 128, 0);
    if (grown != NULL)
        memset(grown, 1, 129);
    return grown;
}

WRONG(released_twice, "-Wuse-after-free", struct sluice_allocator *allocator, void *block)
{
    int result = sluice_allocator_release(allocator, block, NULL, NULL);
    return result + sluice_allocator_release(allocator, block, NULL, NULL);
}

WRONG(shared_without_handle, "-Wincompatible-pointer-types", struct sluice_allocator *allocator,
      struct sluice_sge *sge)
{
    return sluice_allocator_alloc_shared(allocator, 4096, sge);
}

WRONG(used_after_release, "-Wuse-after-free", struct sluice_allocator *allocator, const char *block)
{
    sluice_allocator_release(allocator, (void *)block, NULL, NULL);
    return *block;
}
