/* SPDX-License-Identifier: MIT */
/* A memory region: the public object. */
#ifndef SLU_MR_H
#define SLU_MR_H

#include <sluice/mr.h>

#include "device/pd.h"
#include "memory/release.h"

struct sluice_mr {
    uint32_t magic;
    struct sluice_pd *pd;
    struct slu_tmr *transport;
    uint32_t access;            /* SLUICE_ACCESS_* */
    struct slu_cached *cached;  /* its entry in a cache; or NULL */
    bool allocated;             /* by an allocator */
    struct slu_release release; /* after sluice_mr_release() */
};

/* Checks the arguments for a region: 0 or a negative errno value. */
int slu_mr_check(const struct sluice_pd *pd, size_t length, uint32_t access);
/*
 * As sluice_mr_register() and sluice_mr_alloc(), without slu_mr_check(). The caller holds the
 * domain, which the program may have freed already. node: a NUMA node, or SLU_ANY_NODE.
 */
struct sluice_mr *slu_mr_register(struct sluice_pd *pd, void *addr, size_t length, uint32_t access);
struct sluice_mr *slu_mr_alloc(struct sluice_pd *pd, size_t length, uint32_t access, int32_t node);
/*
 * Registers a range of a region again, with a key of its own, and with rights that the region has.
 * The region must outlive it. The caller holds the domain, which may be of another context.
 * Errors as of sluice_mr_register() and sluice_mr_register_dmabuf().
 */
struct sluice_mr *slu_mr_part(struct sluice_pd *pd, const struct sluice_mr *of, size_t offset,
                              size_t length, uint32_t access);
/*
 * Makes *mr a region of all memory of this process, whose key peers cannot use; NULL if the
 * transport has none. Returns 0 or -ENOMEM.
 */
int slu_mr_everything(struct sluice_pd *pd, struct sluice_mr **mr);
/* Returns 0 if the program may end the region, or it is NULL; or a negative errno value. */
int slu_mr_may_end(const struct sluice_mr *mr);
/* Fails a call that would end a region in use, as slu_pd_fail_used() does. */
int slu_mr_fail_used(const struct sluice_mr *mr, bool late);
/* Deregisters a region that no request in flight uses. */
void slu_mr_end(struct sluice_mr *mr);

#endif
