/* SPDX-License-Identifier: MIT */
/* A memory region as a program has it. */
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
    struct slu_cached *cached;  /* mr_cache.c's, if it is a cache's */
    bool allocated;             /* an allocator's */
    struct slu_release release; /* of one that was given up */
};

/* Whether a domain can have a region of that length with these rights; 0 or a negative errno. */
int slu_mr_check(const struct sluice_pd *pd, size_t length, uint32_t access);
/*
 * As sluice_mr_register() and sluice_mr_alloc(), of what slu_mr_check() has found right, in a
 * domain that is held, and that the program may have given up; of memory of that node, or
 * SLU_ANY_NODE.
 */
struct sluice_mr *slu_mr_register(struct sluice_pd *pd, void *addr, size_t length, uint32_t access);
struct sluice_mr *slu_mr_alloc(struct sluice_pd *pd, size_t length, uint32_t access, int32_t node);
/*
 * Another region of bytes of one, in a domain that is held, of its own context or of another one:
 * with a key of its own, and with rights that the first one has. That one outlasts it. Errors as
 * of sluice_mr_register() and sluice_mr_register_dmabuf().
 */
struct sluice_mr *slu_mr_part(struct sluice_pd *pd, const struct sluice_mr *of, size_t offset,
                              size_t length, uint32_t access);
/* Whether the program may end it, or it is NULL; 0 or a negative errno. */
int slu_mr_may_end(const struct sluice_mr *mr);
/* Ends it; no posted work names it. */
void slu_mr_end(struct sluice_mr *mr);

#endif
