/* SPDX-License-Identifier: MIT */
/*
 * A cache of registrations: memory of the program is registered when it is first used, and stays
 * registered for the next use. Registering takes microseconds to milliseconds on a device, finding
 * a registered region some tens of nanoseconds.
 *
 * The library hooks neither malloc(3) nor munmap(2). Before memory that was in a cache is unmapped,
 * or mapped anew, the program must call sluice_mr_cache_forget(). Otherwise a device goes on using
 * the old pages, which are not those that the program accesses.
 *
 * A program gets regions itself, or posts requests with SLUICE_PLAIN_MEMORY (sluice/request.h) on
 * channels that have the cache in their attributes.
 *
 * Any thread may call these, several at once, but the cache must not be in use when it is
 * destroyed.
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
    uint32_t size;        /* set to sizeof(struct sluice_mr_cache_attr) */
    uint32_t max_regions; /* regions registered at a time; 1..1048576, default 1024 */
    uint64_t max_bytes;   /* bytes of these together; default 0: no limit */
};

/* State of a cache now, and counts since it was made. */
struct sluice_mr_cache_info {
    uint32_t size;      /* set to sizeof(struct sluice_mr_cache_info) by the caller */
    uint32_t regions;   /* registered now */
    uint32_t used;      /* of these, got and not put back; requests with SLUICE_PLAIN_MEMORY hold
                           theirs during the call that posts them */
    uint32_t retired;   /* of these, regions that no get finds any more */
    uint64_t bytes;     /* of the regions, in whole pages */
    uint64_t hits;      /* gets that found a region */
    uint64_t misses;    /* gets that registered one, or failed to */
    uint64_t evictions; /* regions deregistered because of a limit */
};

SLUICE_REDECLARE_BEGIN
/*
 * Destroys a cache and deregisters all its regions; NULL is allowed. -EBUSY: a channel has it as
 * its mr_cache, a region was not put back, or posted work names one; the cache then stays, but
 * loses its unused regions.
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
 * Returns a region that has these bytes, at least 1: one of the cache, or a new one of whole pages,
 * which replaces those that it overlaps. Name the bytes by sluice_mr_sge_at(). The region belongs
 * to the cache: put it back, once for each get, and do not deregister it. If a new region exceeds a
 * limit, the regions whose last get is longest ago are deregistered.
 *
 * NULL and errno on failure: EINVAL (not a cache, NULL, length 0, a range that wraps), EFAULT (not
 * mapped, or read-only and LOCAL_WRITE requested), ENOBUFS (the limit is reached, and all other
 * regions are in use; or the range alone is above max_bytes), ENOMEM as sluice_mr_register().
 */
SLUICE_EXPORT SLUICE_NODISCARD struct sluice_mr *
sluice_mr_cache_get(struct sluice_mr_cache *cache, const void *addr, size_t length);

/*
 * Puts a region back once its work is complete. The next get may return it again; it is
 * deregistered when there is no room, or when it is forgotten. -EINVAL: the cache has not handed it
 * out.
 */
SLUICE_EXPORT int sluice_mr_cache_put(struct sluice_mr_cache *cache, struct sluice_mr *mr);

/*
 * Deregisters all regions that have any of these bytes; call it before the bytes are unmapped.
 * -EBUSY: one of the regions was not put back, or posted work names it; that region stays, and so
 * may others. -EINVAL: not a cache, NULL, length 0, a range that wraps.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_mr_cache_forget(struct sluice_mr_cache *cache,
                                                          const void *addr, size_t length);

/*
 * Describes a cache; set info->size first. -EINVAL: not a cache, NULL or too small a size. -E2BIG:
 * a size above 4096.
 */
SLUICE_EXPORT int sluice_mr_cache_query(struct sluice_mr_cache *cache,
                                        struct sluice_mr_cache_info *info);

#ifdef __cplusplus
}
#endif

#endif
