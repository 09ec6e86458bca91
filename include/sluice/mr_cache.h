/* SPDX-License-Identifier: MIT */
/*
 * A cache of registrations: memory of the program's own is registered when it is first used,
 * and stays so for the next time. Registering takes microseconds to milliseconds on a device,
 * finding what was registered some tens of nanoseconds.
 *
 * The library hooks neither malloc(3) nor munmap(2). Before memory that was in a cache is
 * unmapped, or mapped anew, the program forgets it: sluice_mr_cache_forget(). Else a device
 * goes on with the pages that were there, which are not those that the program sees.
 *
 * A program gets regions itself, or leaves that to requests with SLUICE_PLAIN_MEMORY
 * (sluice/request.h) of channels that have the cache in their attributes.
 *
 * Any thread may call these, several at once, but for the end of the cache.
 */
#ifndef SLUICE_MR_CACHE_H
#define SLUICE_MR_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/macros.h>
#include <sluice/mr.h>
#include <sluice/pd.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_mr_cache;

/* Zero: the default. */
struct sluice_mr_cache_attr {
    uint32_t size;        /* sizeof(struct sluice_mr_cache_attr); at least that of 0.1 */
    uint32_t max_regions; /* registered at a time; 1..1048576, default 1024 */
    uint64_t max_bytes;   /* of these together; default 0: no limit */
};

/* Numbers since the cache was made, and what it has now. */
struct sluice_mr_cache_info {
    uint32_t size;      /* set to sizeof(struct sluice_mr_cache_info) by the caller */
    uint32_t regions;   /* registered now */
    uint32_t used;      /* of these, got and not put back; requests of SLUICE_PLAIN_MEMORY get
                           theirs for the time of the call that posts them */
    uint32_t retired;   /* likewise, that no get finds any more */
    uint64_t bytes;     /* of the regions, whole pages */
    uint64_t hits;      /* gets that found a region */
    uint64_t misses;    /* gets that registered one, or failed to */
    uint64_t evictions; /* regions that went because of a limit */
};

SLUICE_REDECLARE_BEGIN
/*
 * Ends a cache and deregisters all it has; NULL is allowed. -EBUSY: a channel has it as its
 * mr_cache, a region was not put back, or posted work names one; the cache stays as it is, but
 * for regions that nobody uses.
 */
SLUICE_EXPORT int sluice_mr_cache_destroy(struct sluice_mr_cache *cache);

/*
 * Makes a cache of regions of a protection domain, which all have these rights, as
 * sluice_mr_register() takes them. attr is NULL or zeroes for the defaults. NULL and errno on
 * failure: EINVAL (no domain, rights, a limit out of range, a size), E2BIG (size),
 * EOPNOTSUPP (the device has no atomic operations), ENOMEM.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_mr_cache_destroy)
struct sluice_mr_cache *sluice_mr_cache_create(struct sluice_pd *pd, uint32_t access,
                                               const struct sluice_mr_cache_attr *attr);
SLUICE_REDECLARE_END

/*
 * A region that has these bytes, at least 1: one that is there, or a new one of whole
 * pages, which takes the place of those that it overlaps. Name them by sluice_mr_sge_at().
 * The region is the cache's: put it back, as often as it was got, and do not deregister it.
 * A new one makes room, if it must, by deregistering those that nobody has got for the
 * longest time.
 *
 * NULL and errno on failure: EINVAL (not a cache, NULL, length 0, a range that wraps), EFAULT
 * (not mapped, or read-only and LOCAL_WRITE asked), ENOBUFS (the limit, and all others are
 * in use; or the range alone is above max_bytes), ENOMEM as sluice_mr_register().
 */
SLUICE_EXPORT SLUICE_NODISCARD struct sluice_mr *
sluice_mr_cache_get(struct sluice_mr_cache *cache, const void *addr, size_t length);

/*
 * Puts a region back once its work is complete. The next get may have it; it goes when there is
 * no room, or it is forgotten. -EINVAL: the cache has not given it out.
 */
SLUICE_EXPORT int sluice_mr_cache_put(struct sluice_mr_cache *cache, struct sluice_mr *mr);

/*
 * Deregisters all regions that have any of these bytes; to be called before they are unmapped.
 * -EBUSY: one of them was not put back, or posted work names it; it stays, and so may others.
 * -EINVAL: not a cache, NULL, length 0, a range that wraps.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_mr_cache_forget(struct sluice_mr_cache *cache,
                                                          const void *addr, size_t length);

/* -EINVAL: not a cache, NULL or too small a size. -E2BIG: a size above 4096. */
SLUICE_EXPORT int sluice_mr_cache_query(struct sluice_mr_cache *cache,
                                        struct sluice_mr_cache_info *info);

#ifdef __cplusplus
}
#endif

#endif
