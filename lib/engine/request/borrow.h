/* SPDX-License-Identifier: MIT */
/* Requests of plain memory, which use regions of a cache while they are posted. */
#ifndef SLU_ENGINE_BORROW_H
#define SLU_ENGINE_BORROW_H

#include "engine/request/source.h"

/* Calls within these limits need no heap memory. */
#define SLU_BORROW_REQUESTS 4
#define SLU_BORROW_ELEMENTS 8

/* Copies of the requests of a call that name regions instead of plain memory, and those regions. */
struct slu_borrowed {
    struct slu_source source; /* to be posted instead of the given one */
    struct sluice_mr_cache *cache;
    struct sluice_request *requests;
    struct sluice_sge *sges;
    struct sluice_mr **mrs;
    uint32_t count; /* of the regions, and of the elements that name them */
    void *memory;   /* NULL: the arrays below are used */
    struct sluice_request few_requests[SLU_BORROW_REQUESTS];
    struct sluice_sge few_sges[SLU_BORROW_ELEMENTS];
    struct sluice_mr *few_mrs[SLU_BORROW_ELEMENTS];
};

/*
 * Makes copies of a list for which slu_source_check() has returned SLU_NAMES_PLAIN. The copies pass
 * that check and name no plain memory. Returns 0, or the error if a region cannot be obtained; then
 * no region is kept.
 */
int slu_borrow(const struct slu_engine *engine, const struct slu_source *given,
               struct slu_borrowed *borrowed);
/*
 * Puts the regions back once the copies are posted, as far as they will be. Returns result, and
 * keeps its text.
 */
int slu_give_back(struct slu_borrowed *borrowed, int result);

#endif
