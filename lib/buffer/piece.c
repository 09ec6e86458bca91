/* SPDX-License-Identifier: MIT */
/*
 * Pieces of actions: requests for the bytes to post next. Guarantee: a piece needs no more of the
 * queue than its share, and begins where the previous one ends, in the order of the bytes. So an
 * action can continue from where it was.
 *
 * A piece of blocks is a request of blocks that are whole on both sides. If blocks are too large
 * for that, or one size is no multiple of the other, each piece is one contiguous stretch.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "buffer/batch.h"
#include "channel/channel.h"

/* Returns the bytes of the smallest unit of whole blocks on both sides; 0: there is none. */
static uint64_t common_unit(const struct sluice_layout *local, const struct sluice_layout *remote)
{
    uint64_t more = local->bytes > remote->bytes ? local->bytes : remote->bytes;
    uint64_t less = local->bytes > remote->bytes ? remote->bytes : local->bytes;

    if (less == 0) /* that side is contiguous */
        return more;
    return more % less == 0 ? more : 0;
}

static size_t index_bytes(const struct sluice_layout *layout)
{
    return layout->kind == SLUICE_LAYOUT_PAGED ? layout->count * sizeof *layout->indices : 0;
}

/* Copies the indices, which belong to the program again after the call. */
static uint32_t *keep_indices(struct sluice_layout *layout, uint32_t *room)
{
    if (layout->kind != SLUICE_LAYOUT_PAGED)
        return room;
    if (layout->count > 0)
        memcpy(room, layout->indices, index_bytes(layout));
    layout->indices = room;
    return room + layout->count;
}

int slu_piece_blocks(struct slu_work *work, const struct sluice_blocks *blocks,
                     uint64_t local_length, uint64_t remote_length)
{
    struct slu_work_blocks *made =
        malloc(sizeof *made + index_bytes(&blocks->local) + index_bytes(&blocks->remote));

    if (made == NULL)
        return slu_fail(ENOMEM, "no memory for the blocks of an action");
    *made = (struct slu_work_blocks){.local = blocks->local,
                                     .remote = blocks->remote,
                                     .local_length = local_length,
                                     .remote_length = remote_length,
                                     .unit = common_unit(&blocks->local, &blocks->remote)};
    keep_indices(&made->remote, keep_indices(&made->local, made->indices));
    work->blocks = made;
    return 0;
}

static uint64_t most_of(const struct slu_work *work)
{
    return slu_least(slu_least(work->length - work->posted, SLU_PIECE_BYTES),
                     work->group->link->max_message);
}

static struct sluice_request request_of(const struct slu_work *work, uint64_t local,
                                        uint64_t remote, uint64_t bytes)
{
    return (struct sluice_request){
        .opcode = work->opcode,
        .sge_count = 1,
        .sge = {work->local + local, (uint32_t)bytes, work->lkey},
        .remote = {.addr = work->remote + remote, .length = bytes, .rkey = work->rkey},
        .user_data = (uintptr_t)work};
}

/* Makes a piece of bytes that are contiguous on both sides. */
static struct sluice_request next_stretch(const struct slu_work *work, struct slu_piece *piece)
{
    const struct sluice_blocks blocks = {.local = work->blocks->local,
                                         .remote = work->blocks->remote};
    const struct sluice_request whole = {.blocks = &blocks};
    const struct sluice_sge local = {.addr = work->local};
    const struct sluice_remote_mr remote = {.addr = work->remote};
    const struct slu_item item = {.request = &whole,
                                  .sges = &local,
                                  .remote = &remote,
                                  .opcode = work->opcode,
                                  .bytes = work->posted + most_of(work)};
    struct slu_parts parts;
    struct slu_part part;
    struct sluice_sge sge;

    slu_parts_begin(&parts, slu_engine_of(work->group->link->channel), &item, work->posted);
    parts.most_sges = 1;
    slu_parts_next(&parts, &sge, &part);
    piece->bytes = part.bytes;
    return request_of(work, sge.addr - work->local, part.remote_addr - work->remote, part.bytes);
}

static uint64_t blocks_in(const struct sluice_layout *layout, uint64_t bytes)
{
    return layout->kind == SLUICE_LAYOUT_CONTIGUOUS ? 0 : bytes / layout->bytes;
}

/* Returns how many work requests a unit needs, at most. */
static uint64_t cost_of(const struct slu_work *work)
{
    const struct slu_work_blocks *blocks = work->blocks;
    uint64_t ours = blocks_in(&blocks->local, blocks->unit);
    uint64_t theirs = blocks_in(&blocks->remote, blocks->unit);

    return (ours > theirs ? ours : theirs) + blocks->unit / work->group->link->max_message;
}

/* Returns how many units the next piece may have; 0: it has to be a stretch. */
static uint64_t units_of(const struct slu_work *work)
{
    const struct slu_link *link = work->group->link;
    uint64_t unit = work->blocks->unit, left = work->length - work->posted;
    uint64_t share = link->depth / link->group_count / SLU_PIECES;

    if (unit == 0 || work->posted % unit != 0)
        return 0;
    share = (share > 0 ? share : 1) / cost_of(work);
    return slu_least(share, slu_least(left, SLU_PIECE_BYTES) / unit);
}

/*
 * Cuts a layout down to some of its blocks. Returns where the memory begins that they count from.
 */
static uint64_t cut(struct sluice_layout *layout, uint64_t offset, uint64_t bytes)
{
    uint64_t first;

    if (layout->kind == SLUICE_LAYOUT_CONTIGUOUS)
        return offset;
    first = offset / layout->bytes;
    layout->count = (uint32_t)(bytes / layout->bytes);
    if (layout->kind == SLUICE_LAYOUT_STRIDED)
        return first * layout->stride;
    layout->indices += first;
    return 0;
}

static struct sluice_request next_units(const struct slu_work *work, uint64_t units,
                                        struct slu_piece *piece)
{
    const struct slu_work_blocks *blocks = work->blocks;
    struct sluice_blocks *of = &piece->blocks;
    struct sluice_request request;
    uint64_t local, remote;

    piece->bytes = units * blocks->unit;
    *of = (struct sluice_blocks){
        .size = sizeof *of, .local = blocks->local, .remote = blocks->remote};
    local = cut(&of->local, work->posted, piece->bytes);
    remote = cut(&of->remote, work->posted, piece->bytes);
    of->local_length = blocks->local_length - local;
    request = request_of(work, local, remote, 0);
    request.remote.length = blocks->remote_length - remote;
    request.blocks = of;
    return request;
}

struct sluice_request slu_piece_next(struct slu_work *work, struct slu_piece *piece)
{
    uint64_t units = work->blocks != NULL ? units_of(work) : 0;
    struct sluice_request request;

    piece->bytes = most_of(work);
    if (work->blocks == NULL)
        request = request_of(work, work->posted, work->posted, piece->bytes);
    else if (units > 0)
        request = next_units(work, units, piece);
    else
        request = next_stretch(work, piece);
    work->posted += piece->bytes;
    work->in_flight++;
    return request;
}
