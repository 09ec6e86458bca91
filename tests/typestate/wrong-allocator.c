/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <sluice.h>

#ifdef DESTROYED_TWICE /* expect: -Wuse-after-free */
int destroy_twice(struct sluice_pd *pd)
{
    struct sluice_allocator *allocator = sluice_allocator_create(pd, 0, NULL);
    int result = sluice_allocator_destroy(allocator);

    return result + sluice_allocator_destroy(allocator);
}
#endif

#ifdef FORGOTTEN_ALLOCATOR /* expect: -Wanalyzer-malloc-leak */
int make_and_forget(struct sluice_pd *pd)
{
    struct sluice_allocator *allocator = sluice_allocator_create(pd, 0, NULL);

    return allocator != NULL;
}
#endif

#ifdef FORGOTTEN_BLOCK /* expect: -Wanalyzer-malloc-leak */
int take_and_forget(struct sluice_allocator *allocator)
{
    char *block = sluice_allocator_alloc(allocator, 64, 0);

    return block != NULL ? *block : -1;
}
#endif

#ifdef FORGOTTEN_ZEROES /* expect: -Wanalyzer-malloc-leak */
int take_zeroes_and_forget(struct sluice_allocator *allocator)
{
    char *block = sluice_allocator_alloc_zeroed(allocator, 64, 0);

    return block != NULL ? *block : -1;
}
#endif

#ifdef FREE /* expect: -Wmismatched-dealloc */
void free_block(struct sluice_allocator *allocator)
{
    void *block = sluice_allocator_alloc(allocator, 64, 0);

    free(block);
}
#endif

#ifdef FREE_SHARED /* expect: -Wmismatched-dealloc */
void free_shared(struct sluice_allocator *allocator, struct sluice_remote_mr *remote)
{
    void *block = sluice_allocator_alloc_shared(allocator, 4096, remote);

    free(block);
}
#endif

#ifdef GIVEN_OUT_AFTER_DESTROY /* expect: -Wuse-after-free */
void *take_late(struct sluice_pd *pd)
{
    struct sluice_allocator *allocator = sluice_allocator_create(pd, 0, NULL);

    sluice_allocator_destroy(allocator);
    return sluice_allocator_alloc(allocator, 64, 0);
}
#endif

#ifdef IGNORED_ALLOC /* expect: -Wunused-result */
void take_nothing(struct sluice_allocator *allocator)
{
    sluice_allocator_alloc(allocator, 64, 0);
}
#endif

#ifdef IGNORED_FREE_WAIT /* expect: -Wunused-result */
void free_blindly(struct sluice_allocator *allocator, void *block)
{
    sluice_allocator_free_wait(allocator, block, SLUICE_S(1));
}
#endif

#ifdef IGNORED_REALLOC /* expect: -Wunused-result */
void grow_blindly(struct sluice_allocator *allocator, void *block)
{
    sluice_allocator_realloc(allocator, block, 128, 0);
}
#endif

#ifdef IGNORED_SGE /* expect: -Wunused-result */
void name_blindly(struct sluice_allocator *allocator, const void *block, struct sluice_sge *sge)
{
    sluice_allocator_sge(allocator, block, 64, sge);
}
#endif

#ifdef OVERRUN /* expect: -Warray-bounds */
void *fill_too_much(struct sluice_allocator *allocator)
{
    char *block = sluice_allocator_alloc(allocator, 64, 0);

    if (block != NULL)
        memset(block, 1, 65);
    return block;
}
#endif

#ifdef OVERRUN_GROWN /* expect: -Warray-bounds */
void *fill_too_much_again(struct sluice_allocator *allocator, void *block)
{
    char *grown = sluice_allocator_realloc(allocator, block, 128, 0);

    if (grown != NULL)
        memset(grown, 1, 129);
    return grown;
}
#endif

#ifdef RELEASED_TWICE /* expect: -Wuse-after-free */
int release_twice(struct sluice_allocator *allocator, void *block)
{
    int result = sluice_allocator_release(allocator, block, NULL, NULL);

    return result + sluice_allocator_release(allocator, block, NULL, NULL);
}
#endif

#ifdef SHARED_WITHOUT_HANDLE /* expect: -Wincompatible-pointer-types */
void *share_with_nobody(struct sluice_allocator *allocator, struct sluice_sge *sge)
{
    return sluice_allocator_alloc_shared(allocator, 4096, sge);
}
#endif

#ifdef USED_AFTER_RELEASE /* expect: -Wuse-after-free */
int read_late(struct sluice_allocator *allocator, const char *block)
{
    sluice_allocator_release(allocator, (void *)block, NULL, NULL);
    return *block;
}
#endif
