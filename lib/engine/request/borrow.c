/* SPDX-License-Identifier: MIT */
/*
 * Requests of plain memory. The engine gets a region from the channel's cache for each of their
 * elements, and posts copies that name the regions. Once a call has posted all that it will, it
 * puts the regions back. Pending requests and prepared lists pin the memory that they name, no
 * matter what else holds the region, so nothing has to be done when a request ends.
 *
 * Guarantee: memory is registered from before the request that names it is posted until that
 * request is complete, however it ends.
 */
#include "config.h"

#include "engine/request/borrow.h"

#include <stdlib.h>

#include "engine/request/check.h"
#include "memory/mr_cache.h"

/* Returns the bytes of an element, or of all the memory that its blocks are in. */
static uint64_t element_length(const struct sluice_request *request, const struct sluice_sge *sge)
{
    const struct sluice_blocks *blocks = request->blocks;

    return blocks != NULL && blocks->local_length != 0 ? blocks->local_length : sge->length;
}

static int check_element(const struct slu_engine *engine, const struct sluice_request *request,
                         const struct sluice_sge *sge, uint32_t i, uint32_t k)
{
    uint64_t length = element_length(request, sge);

    if (length == 0)
        return 0;
    if (sge->addr == 0)
        return slu_misuse(EINVAL, "request %u, element %u: plain memory of %llu byte%s at NULL", i,
                          k, (unsigned long long)length, SLU_S(length));
    if (slu_mr_cache_wraps(engine->cache, sge->addr, length))
        return slu_misuse(EINVAL,
                          "request %u, element %u: plain memory of %llu byte%s at %#llx wraps the "
                          "address space",
                          i, k, (unsigned long long)length, SLU_S(length),
                          (unsigned long long)sge->addr);
    return 0;
}

int slu_borrow_check(const struct slu_engine *engine, const struct slu_item *item, uint32_t i)
{
    const struct sluice_request *request = item->request;
    bool lands = item->opcode != SLUICE_OP_SEND && item->opcode != SLUICE_OP_WRITE;
    int error = 0;

    if (engine->cache == NULL)
        return slu_misuse(EINVAL,
                          "request %u names plain memory, and its channel has no cache to register "
                          "it: sluice_channel_attr.mr_cache is NULL",
                          i);
    if (lands && !slu_mr_cache_is_writable(engine->cache))
        return slu_misuse(EINVAL,
                          "request %u is a %s into plain memory, and regions of the channel's "
                          "cache lack access LOCAL_WRITE",
                          i, slu_opcode_name(item->opcode));
    if ((request->flags & SLUICE_INLINE) != 0)
        return 0;
    for (uint32_t k = 0; k < request->sge_count && error == 0; k++)
        error = check_element(engine, request, &item->sges[k], i, k);
    return error;
}

static bool is_plain(const struct sluice_request *request)
{
    return (request->flags & SLUICE_PLAIN_MEMORY) != 0;
}

/* Counts the requests of a source. A multicast has one, for any number of peers. */
static uint32_t count_requests(const struct slu_source *source)
{
    return source->multicast ? 1 : source->count;
}

static bool make_room(struct slu_borrowed *borrowed, size_t requests, size_t elements)
{
    if (requests <= SLU_BORROW_REQUESTS && elements <= SLU_BORROW_ELEMENTS) {
        borrowed->requests = borrowed->few_requests;
        borrowed->sges = borrowed->few_sges;
        borrowed->mrs = borrowed->few_mrs;
        return true;
    }
    borrowed->memory = malloc(requests * sizeof *borrowed->requests +
                              elements * (sizeof *borrowed->sges + sizeof(struct sluice_mr *)));
    if (borrowed->memory == NULL)
        return false;
    borrowed->requests = borrowed->memory;
    borrowed->sges = (struct sluice_sge *)(borrowed->requests + requests);
    borrowed->mrs = (struct sluice_mr **)(borrowed->sges + elements);
    return true;
}

static int copy_requests(struct slu_borrowed *borrowed, const struct slu_source *given)
{
    uint32_t count = count_requests(given);
    size_t elements = 0;

    for (uint32_t i = 0; i < count; i++)
        if (is_plain(slu_source_request(given, i)))
            elements += slu_source_request(given, i)->sge_count;
    if (!make_room(borrowed, count, elements))
        return slu_fail(ENOMEM, "no memory for %u request%s of plain memory", count, SLU_S(count));
    for (uint32_t i = 0; i < count; i++)
        borrowed->requests[i] = *slu_source_request(given, i);
    borrowed->source = *given;
    borrowed->source.lists[0] = borrowed->requests;
    if (!given->multicast)
        borrowed->source.lists[1] = borrowed->requests + given->counts[0];
    return 0;
}

/* Prefixes the cache's error with the request and the element that it is about. */
static int fail_element(uint32_t i, uint32_t k)
{
    struct slu_text text;
    int err = errno;

    slu_text_save(&text);
    return slu_fail(err, "request %u, element %u: %s", i, k, text.bytes);
}

/*
 * Gets a region for an element. An element without bytes needs none, and must not get one that
 * happens to be in the cache at its address.
 */
static int borrow_element(struct slu_borrowed *borrowed, const struct sluice_request *request,
                          const struct sluice_sge *given, uint32_t i, uint32_t k)
{
    uint64_t length = element_length(request, given);
    struct sluice_mr *mr;

    if (length == 0)
        return 0;
    mr = sluice_mr_cache_get(borrowed->cache, (const void *)(uintptr_t)given->addr, length);
    if (mr == NULL)
        return fail_element(i, k);
    borrowed->mrs[borrowed->count] = mr;
    borrowed->sges[borrowed->count] = *given;
    borrowed->sges[borrowed->count].lkey = sluice_mr_lkey(mr);
    borrowed->count++;
    return 0;
}

/*
 * Turns a request of plain memory into a plain one. Inline data is copied when it is posted, so it
 * needs no region.
 */
static int borrow_request(struct slu_borrowed *borrowed, uint32_t i)
{
    struct sluice_request *request = &borrowed->requests[i];
    const struct sluice_sge *given = slu_request_sges(request);
    uint32_t first = borrowed->count;
    int error = 0;

    request->flags &= ~SLUICE_PLAIN_MEMORY;
    if ((request->flags & SLUICE_INLINE) != 0)
        return 0;
    for (uint32_t k = 0; k < request->sge_count && error == 0; k++)
        error = borrow_element(borrowed, request, &given[k], i, k);
    request->sge_count = borrowed->count - first;
    request->sges = request->sge_count > 0 ? &borrowed->sges[first] : NULL;
    request->sge = (struct sluice_sge){0};
    return error;
}

int slu_borrow(const struct slu_engine *engine, const struct slu_source *given,
               struct slu_borrowed *borrowed)
{
    int error;

    borrowed->cache = engine->cache;
    borrowed->memory = NULL;
    borrowed->count = 0;
    error = copy_requests(borrowed, given);
    for (uint32_t i = 0; i < count_requests(given) && error == 0; i++)
        if (is_plain(&borrowed->requests[i]))
            error = borrow_request(borrowed, i);
    return error == 0 ? 0 : slu_give_back(borrowed, error);
}

int slu_give_back(struct slu_borrowed *borrowed, int result)
{
    struct slu_text text;

    if (result < 0)
        slu_text_save(&text);
    for (uint32_t i = 0; i < borrowed->count; i++)
        sluice_mr_cache_put(borrowed->cache, borrowed->mrs[i]);
    free(borrowed->memory);
    if (result < 0)
        slu_text_restore(&text);
    return result;
}
