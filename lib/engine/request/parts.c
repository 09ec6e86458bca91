/* SPDX-License-Identifier: MIT */
/*
 * Making the parts of items, one after the other. Guarantee: making a part takes time in proportion
 * to its pieces, and so does beginning at any byte. No piece is visited twice.
 */
#include "config.h"

#include "engine/request/parts.h"

/* Enters a block of a side: sets its address and length. */
static inline void enter_block(struct slu_side *side, uint32_t block)
{
    const struct sluice_layout *layout = side->layout;

    side->addr = layout->kind == SLUICE_LAYOUT_PAGED
                     ? side->base + layout->indices[block] * layout->bytes
                     : side->base + block * layout->stride;
    side->left = layout->bytes;
    side->next = block + 1;
}

static inline void enter_sge(struct slu_side *side)
{
    side->addr = side->sges->addr;
    side->left = side->sges->length;
    side->lkey = side->sges->lkey;
    side->sges++;
}

/*
 * Moves past bytes that are used. If the current block or element is used up, enters the next, of
 * which there must be one.
 */
static inline void advance(struct slu_side *side, uint64_t bytes)
{
    side->addr += bytes;
    side->left -= bytes;
    if (side->left > 0)
        return;
    if (side->sges != NULL)
        enter_sge(side);
    else if (side->layout != NULL)
        enter_block(side, side->next);
}

/* Begins a side of contiguous memory, or of blocks in it, at an offset. */
static void begin_side(struct slu_side *side, const struct sluice_layout *layout, uint64_t base,
                       uint64_t bytes, uint64_t offset)
{
    side->sges = NULL;
    side->base = base;
    side->layout = layout != NULL && layout->kind != SLUICE_LAYOUT_CONTIGUOUS ? layout : NULL;
    if (side->layout == NULL) {
        side->addr = base + offset;
        side->left = bytes - offset;
        return;
    }
    enter_block(side, (uint32_t)(offset / layout->bytes));
    side->addr += offset % layout->bytes;
    side->left -= offset % layout->bytes;
}

/* Begins a side of elements at an offset. The list is short enough to walk. */
static void begin_sges(struct slu_side *side, const struct sluice_sge *sges, uint64_t offset)
{
    side->sges = sges;
    side->layout = NULL;
    enter_sge(side);
    while (offset >= side->left) {
        offset -= side->left;
        enter_sge(side);
    }
    side->addr += offset;
    side->left -= offset;
}

void slu_parts_begin(struct slu_parts *parts, const struct slu_engine *engine,
                     const struct slu_item *item, uint64_t offset)
{
    const struct sluice_blocks *blocks = item->request->blocks;
    /* A multicast message has no remote side at all. */
    uint64_t base = item->remote != NULL ? item->remote->addr : 0;

    parts->left = item->bytes - offset;
    /* No attribute limits the length of a receive. */
    parts->most = item->opcode == SLUICE_OP_RECEIVE ? UINT32_MAX : engine->max_plain;
    parts->most_sges =
        item->opcode == SLUICE_OP_READ ? engine->attr.max_read_sge : engine->attr.max_sge;
    if (parts->left == 0)
        return;
    if (blocks == NULL) {
        begin_sges(&parts->local, item->sges, offset);
        begin_side(&parts->remote, NULL, base, item->bytes, offset);
        return;
    }
    begin_side(&parts->local, &blocks->local, item->sges->addr, item->bytes, offset);
    parts->local.lkey = item->sges->lkey;
    begin_side(&parts->remote, &blocks->remote, base, item->bytes, offset);
}

/* Returns whether the next local bytes directly follow the last piece of a part. */
static inline bool goes_on(const struct sluice_sge *last, const struct slu_side *local)
{
    return last->addr + last->length == local->addr && last->lkey == local->lkey;
}

void slu_parts_next(struct slu_parts *parts, struct sluice_sge *pieces, struct slu_part *part)
{
    struct slu_side *local = &parts->local, *remote = &parts->remote;
    uint64_t room = parts->most;
    uint64_t end = remote->addr;
    uint32_t count = 0;

    part->remote_addr = end;
    /*
     * Elements without bytes are skipped. An element that a part uses partly goes on in the next.
     */
    while (parts->left > 0 && room > 0 && remote->addr == end) {
        uint64_t bytes = slu_least(slu_least(local->left, remote->left), room);

        if (count > 0 && goes_on(&pieces[count - 1], local)) {
            pieces[count - 1].length += (uint32_t)bytes;
        } else if (bytes > 0) {
            if (count == parts->most_sges)
                break;
            pieces[count++] = (struct sluice_sge){local->addr, (uint32_t)bytes, local->lkey};
        }
        room -= bytes;
        end += bytes;
        parts->left -= bytes;
        if (parts->left == 0)
            break;
        advance(local, bytes);
        advance(remote, bytes);
    }
    part->bytes = parts->most - room;
    part->sge_count = count;
}

uint32_t slu_parts_count(const struct slu_engine *engine, const struct slu_item *item,
                         uint32_t most)
{
    struct sluice_sge pieces[SLU_MAX_SGE];
    struct slu_parts parts;
    struct slu_part part;
    uint32_t count = 0;

    if (item->request->blocks == NULL || slu_item_is_gathered(item))
        return slu_item_parts(engine, item);
    slu_parts_begin(&parts, engine, item, 0);
    for (; parts.left > 0 && count <= most; count++)
        slu_parts_next(&parts, pieces, &part);
    return count > 0 ? count : 1;
}

/* Counts the blocks of a side. Contiguous memory counts as one. */
static inline uint64_t count_blocks(const struct sluice_layout *layout)
{
    return layout->kind == SLUICE_LAYOUT_CONTIGUOUS ? 1 : layout->count;
}

/*
 * Returns an upper bound of the parts of an item: each part begins at the border of a block, or
 * where the part before it is full.
 */
static uint64_t bound_parts(const struct slu_engine *engine, const struct slu_item *item)
{
    const struct sluice_layout *local = &item->request->blocks->local;
    const struct sluice_layout *remote = &item->request->blocks->remote;
    uint64_t ours = count_blocks(local), theirs = count_blocks(remote);
    uint64_t full = item->bytes / engine->max_plain;
    bool alike = local->bytes == remote->bytes || ours == 1 || theirs == 1;

    return full + (!alike ? ours + theirs : ours > theirs ? ours : theirs);
}

uint32_t slu_parts_need(const struct slu_engine *engine, const struct slu_item *item, uint32_t room)
{
    uint64_t bound;

    if (item->request->blocks == NULL || slu_item_is_gathered(item))
        return slu_item_parts(engine, item);
    bound = bound_parts(engine, item);
    return bound <= room ? (uint32_t)(bound > 0 ? bound : 1) : slu_parts_count(engine, item, room);
}
