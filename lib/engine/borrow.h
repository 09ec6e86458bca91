/* SPDX-License-Identifier: MIT */
/* Requests of plain memory, which borrow regions of a cache for it while they are posted. */
#ifndef SLU_ENGINE_BORROW_H
#define SLU_ENGINE_BORROW_H

#include "engine/engine.h"

/* Calls of no more than these need no memory of the heap. */
#define SLU_BORROW_REQUESTS 4
#define SLU_BORROW_ELEMENTS 8

/* Copies of the requests of a call, which name regions, and the regions that were got for them. */
struct slu_borrowed {
    struct slu_source source; /* to be posted in place of the one that was given */
    struct sluice_mr_cache *cache;
    struct sluice_request *requests;
    struct sluice_sge *sges;
    struct sluice_mr **mrs;
    uint32_t count; /* of regions, and of elements that name them */
    void *memory;   /* or NULL: they are these */
    struct sluice_request few_requests[SLU_BORROW_REQUESTS];
    struct sluice_sge few_sges[SLU_BORROW_ELEMENTS];
    struct sluice_mr *few_mrs[SLU_BORROW_ELEMENTS];
};

/*
 * Of a list that slu_source_check() has found right but for SLU_NAMES_PLAIN: 0, or why regions
 * cannot be got for all of it, and then none is kept. The copies are right as well, and name no
 * plain memory.
 */
int slu_borrow(const struct slu_engine *engine, const struct slu_source *given,
               struct slu_borrowed *borrowed);
/* The copies were posted, as far as they will be. Returns that result, with its text. */
int slu_give_back(struct slu_borrowed *borrowed, int result);

#endif
