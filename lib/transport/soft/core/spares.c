/* SPDX-License-Identifier: MIT */
/*
 * Memory of small regions that were deregistered, kept for the next regions of the same size.
 * Guarantee: no peer has a descriptor of it, a mapping of it, or an address by which to read it,
 * since no region of it was ever given or shown to a peer. Peers had only the keys of its regions,
 * and these are refused.
 *
 * The helper frees what no region has needed for one or two seconds. A context without queue pairs
 * has no helper, and keeps it.
 */
#include "transport/soft/core/regions.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "transport/soft/core/seam.h"

#define MOST_BYTES ((size_t)16 * 1024)

void slu_soft_spare_free(const struct soft_spare *spare)
{
    /*
     * Close first: the last reference frees the pages, which takes time, and unmapping does so
     * without a lock.
     */
    if (spare->memfd >= 0)
        slu_fd_close(spare->memfd);
    slu_pages_unmap(&spare->pages);
}

bool slu_soft_may_spare(size_t length, uint32_t access, int32_t node)
{
    return length <= MOST_BYTES && (access & SLUICE_MR_HUGE_PAGES) == 0 && node == SLU_ANY_NODE;
}

static bool is_read_only(uint32_t access)
{
    return (access & SOFT_ACCESS_CHANGES) == 0;
}

/* Removes the first count entries, the oldest. The caller holds the lock. */
static void remove_first(struct soft_spares *spares, uint32_t count)
{
    spares->count -= count;
    memmove(&spares->of[0], &spares->of[count], spares->count * sizeof(spares->of[0]));
}

/* Returns the place of the last entry that fits, or the count. The caller holds the lock. */
static uint32_t find(const struct soft_spares *spares, size_t length, uint32_t access)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (uint32_t i = spares->count; i > 0; i--) {
        const struct soft_spare *spare = &spares->of[i - 1];
        if (spare->pages.mapped - length < page && spare->read_only == is_read_only(access))
            return i - 1;
    }
    return spares->count;
}

/*
 * Takes back what the program may have done to the mapping while it had the memory. False: it is
 * not usable.
 */
static bool restore(const struct slu_pages *pages)
{
    SLU_KEEP_ERRNO;
    return mprotect(pages->map, pages->mapped, PROT_READ | PROT_WRITE) == 0 &&
           madvise(pages->map, pages->mapped, MADV_DONTFORK) == 0;
}

bool slu_soft_spare_take(struct soft_context *context, size_t length, uint32_t access,
                         struct soft_spare *taken)
{
    struct soft_spares *spares = &context->spares;
    pthread_mutex_lock(&spares->lock);
    uint32_t at = find(spares, length, access);
    bool found = at < spares->count;
    if (found) {
        *taken = spares->of[at];
        spares->count--;
        memmove(&spares->of[at], &spares->of[at + 1], (spares->count - at) * sizeof(spares->of[0]));
    }
    if (spares->count < spares->unused)
        spares->unused = spares->count;
    pthread_mutex_unlock(&spares->lock);
    if (found && !restore(&taken->pages)) {
        slu_soft_spare_free(taken);
        return false;
    }
    if (found)
        memset(taken->pages.addr, 0, taken->pages.mapped);
    return found;
}

bool slu_soft_spare_keep(struct soft_context *context, const struct soft_mr *mr)
{
    struct soft_spares *spares = &context->spares;
    bool first = false;
    if (!atomic_load_explicit(&mr->unseen, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&spares->lock);
    bool kept = spares->count < SOFT_MOST_SPARES;
    if (kept) {
        first = !spares->ticking && atomic_load(&context->helped);
        spares->ticking = spares->ticking || first;
        spares->of[spares->count++] = (struct soft_spare){
            .pages = mr->pages, .memfd = mr->memfd, .read_only = is_read_only(mr->access)};
    }
    pthread_mutex_unlock(&spares->lock);
    if (first)
        slu_soft_tidy_begin(context);
    return kept;
}

/* Frees all, or those that were there all the time since the last call. Returns their number. */
static uint32_t free_unused(struct soft_context *context, bool all)
{
    struct soft_spares *spares = &context->spares;
    struct soft_spare old[SOFT_MOST_SPARES];
    pthread_mutex_lock(&spares->lock);
    uint32_t count = all ? spares->count : spares->unused;
    memcpy(old, spares->of, count * sizeof(old[0]));
    remove_first(spares, count);
    spares->unused = spares->count;
    bool ended = spares->ticking && spares->count == 0 && !all;
    spares->ticking = spares->ticking && !ended;
    pthread_mutex_unlock(&spares->lock);
    if (ended)
        slu_soft_tidy_end(context);
    for (uint32_t i = 0; i < count; i++)
        slu_soft_spare_free(&old[i]);
    return count;
}

void slu_soft_spares_tidy(struct soft_context *context)
{
    free_unused(context, false);
}

bool slu_soft_spares_drop(struct soft_context *context)
{
    return free_unused(context, true) > 0;
}
