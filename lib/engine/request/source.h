/* SPDX-License-Identifier: MIT */
/* Items of a list: making them from their requests, and the tests of the fast path. */
#ifndef SLU_ENGINE_REQUEST_SOURCE_H
#define SLU_ENGINE_REQUEST_SOURCE_H

#include <sluice/blocks.h>

#include "engine/request/opcode.h"

/* Returns the elements of a valid request: its list, or the element inside it. */
static inline const struct sluice_sge *slu_request_sges(const struct sluice_request *request)
{
    return SLU_LIKELY(request->sges != NULL) ? request->sges : &request->sge;
}

static inline bool slu_sge_is_empty(const struct sluice_sge *sge)
{
    return (sge->addr | sge->length | sge->lkey) == 0;
}

/* Adds up the bytes of a list, which must be valid. */
static inline uint64_t slu_sge_bytes(const struct sluice_sge *sges, uint32_t count)
{
    uint64_t bytes = SLU_LIKELY(count > 0) ? sges[0].length : 0;

    for (uint32_t i = 1; i < count; i++)
        bytes += sges[i].length;
    return bytes;
}

static inline const struct sluice_request *slu_source_request(const struct slu_source *source,
                                                              uint32_t index)
{
    if (source->multicast)
        return source->lists[0];
    return index < source->counts[0] ? &source->lists[0][index]
                                     : &source->lists[1][index - source->counts[0]];
}

static inline uint32_t slu_source_peer(const struct slu_source *source, uint32_t index)
{
    if (SLU_LIKELY(!source->multicast))
        return slu_source_request(source, index)->peer;
    return source->remotes != NULL ? source->remotes[index].peer : source->peers[index];
}

static inline uint32_t slu_source_opcode(const struct slu_source *source, uint32_t index)
{
    uint32_t opcode = source->opcodes[!source->multicast && index >= source->counts[0]];

    return opcode != SLUICE_OP_NONE ? opcode : slu_source_request(source, index)->opcode;
}

static SLU_INLINE void slu_source_item(const struct slu_source *source, uint32_t index,
                                       struct slu_item *item)
{
    item->request = slu_source_request(source, index);
    item->remote = SLU_UNLIKELY(source->remotes != NULL) ? &source->remotes[index].remote
                   : SLU_UNLIKELY(source->multicast)     ? NULL
                                                         : &item->request->remote;
    item->peer = slu_source_peer(source, index);
    item->opcode = slu_source_opcode(source, index);
    item->sges = slu_request_sges(item->request);
    item->bytes = slu_sge_bytes(item->sges, item->request->sge_count);
}

/* Returns the bytes of a request with valid blocks. */
static inline uint64_t slu_blocks_bytes_within(const struct sluice_blocks *blocks,
                                               uint64_t local_length)
{
    const struct sluice_layout *layout =
        blocks->local.kind != SLUICE_LAYOUT_CONTIGUOUS ? &blocks->local : &blocks->remote;

    return layout->kind != SLUICE_LAYOUT_CONTIGUOUS ? layout->count * layout->bytes : local_length;
}

static inline uint64_t slu_blocks_bytes(const struct sluice_request *request)
{
    const struct sluice_blocks *blocks = request->blocks;

    return slu_blocks_bytes_within(blocks, blocks->local_length != 0
                                               ? blocks->local_length
                                               : slu_request_sges(request)->length);
}

/* Does the same for an item that may have blocks. */
static inline void slu_source_any_item(const struct slu_source *source, uint32_t index,
                                       struct slu_item *item)
{
    slu_source_item(source, index, item);
    if (SLU_UNLIKELY(item->request->blocks != NULL))
        item->bytes = slu_blocks_bytes(item->request);
}

static inline bool slu_remote_is_clean(const struct sluice_remote_mr *remote)
{
    return (remote->reserved[0] | remote->reserved[1] | remote->reserved[2]) == 0;
}

/* Returns whether a remote region is valid and has that many bytes; check.c reports errors. */
static inline bool slu_remote_holds(const struct sluice_remote_mr *remote, uint64_t bytes)
{
    return slu_remote_is_clean(remote) && bytes <= remote->length &&
           remote->addr + remote->length >= remote->addr;
}

/* Returns whether a request has elements, and they are valid. */
static inline bool slu_has_elements(const struct slu_engine *engine,
                                    const struct sluice_request *request)
{
    return SLU_LIKELY(request->sges != NULL)
               ? request->sge_count - 1 < engine->plain_sges
               : request->sge_count == 1 && !slu_sge_is_empty(&request->sge);
}

/* Returns whether all fields are 0 that must be, or that only slow-path requests use. */
static inline bool slu_request_is_bare(const struct sluice_request *request)
{
    return (request->reserved | (uintptr_t)request->blocks | request->reserved2[0] |
            request->reserved2[1] | request->operand[0] | request->operand[1]) == 0;
}

/* Returns the bytes of a request of one element; UINT64_MAX if the element is missing. */
static SLU_INLINE uint64_t slu_request_length(const struct sluice_request *request)
{
    if (SLU_LIKELY(request->sges != NULL))
        return request->sges->length;
    return !slu_sge_is_empty(&request->sge) ? request->sge.length : UINT64_MAX;
}

/*
 * Returns whether a request takes the fast path: one element, no flags, short enough for one work
 * request, and valid. given is the opcode that the request has, which is opcode or none.
 */
static SLU_INLINE bool slu_request_is_usual(const struct slu_engine *engine,
                                            const struct sluice_request *request, uint32_t given,
                                            uint32_t opcode)
{
    uint64_t length;

    if (request->opcode != given || request->sge_count != 1 ||
        request->peer >= engine->peer_count ||
        (request->flags | request->reserved | (uintptr_t)request->blocks | request->reserved2[0] |
         request->reserved2[1] | request->operand[0] | request->operand[1]) != 0)
        return false;
    length = slu_request_length(request);
    return length <= engine->max_plain &&
           (opcode < SLUICE_OP_WRITE || slu_remote_holds(&request->remote, length));
}

/* Returns whether a request is valid and needs nothing of the slow path, in one test. */
static SLU_INLINE bool slu_request_is_plain(const struct slu_engine *engine,
                                            const struct sluice_request *request, uint32_t opcode)
{
    uint64_t bytes;

    if (!slu_has_elements(engine, request) || request->peer >= engine->peer_count ||
        opcode - SLUICE_OP_SEND > SLUICE_OP_READ - SLUICE_OP_SEND ||
        (request->opcode != opcode && request->opcode != SLUICE_OP_NONE) ||
        !slu_request_is_bare(request))
        return false;
    bytes = slu_sge_bytes(slu_request_sges(request), request->sge_count);
    if (bytes > engine->max_plain)
        return false;
    if (request->flags != 0 &&
        ((request->flags & (~slu_opcode_flags[opcode] | engine->lacking_flags)) != 0 ||
         ((request->flags & SLUICE_INLINE) != 0 && bytes > engine->attr.max_inline)))
        return false;
    return opcode < SLUICE_OP_WRITE || slu_remote_holds(&request->remote, bytes);
}

/* Returns how many work requests an item needs. */
static inline uint32_t slu_item_parts(const struct slu_engine *engine, const struct slu_item *item)
{
    uint64_t max = engine->attr.max_message;

    if (SLU_LIKELY(item->bytes <= max || item->opcode == SLUICE_OP_RECEIVE))
        return 1;
    return (uint32_t)((item->bytes + max - 1) / max);
}

#endif
