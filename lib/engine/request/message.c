/* SPDX-License-Identifier: MIT */
/*
 * Messages of blocks. Guarantee: only one thread writes and reads a staging buffer, between the
 * post of a request and its end. Data from a peer is copied only to the blocks.
 */
#include "config.h"

#include "engine/request/message.h"

#include <stdlib.h>
#include <string.h>

#include "memory/mr.h"
#include "memory/pages.h"

/*
 * A request that uses the staging buffer. Positions count up without wrapping at the buffer's size.
 */
struct staged {
    uint64_t id;
    uint64_t at, end;
};

/* The staging buffer of a queue. Bytes between tail and head may be in use. */
struct buffer {
    uint8_t *bytes;
    uint32_t lkey;
    uint64_t size;
    uint64_t head, tail;
    uint64_t planned; /* where head will be once what is planned is posted */
    bool planning;
    uint32_t first, last; /* requests that use the buffer: from first to before last */
    uint32_t mask;
    struct staged *requests;
};

struct slu_staging {
    struct sluice_mr *mr;
    struct buffer buffers[SLU_QUEUES];
    struct staged requests[]; /* of both buffers */
};

/*
 * Describes how to scatter a receive. It is stored in the staging buffer before the bytes of the
 * receive; page indices lie between the two.
 */
struct scatter {
    struct sluice_layout layout; /* of the blocks that are staged */
    uint64_t base;               /* address of the memory that has the blocks */
    uint64_t direct;             /* bytes of the message before the staged ones */
    uint64_t bytes;
};

int slu_staging_create(const struct slu_engine *engine, const struct slu_ring *rings,
                       struct slu_staging **made)
{
    uint64_t size = engine->staging;
    struct slu_staging *staging;
    struct staged *next;

    if (size == 0)
        return 0;
    staging = calloc(1, sizeof *staging +
                            ((size_t)rings[0].size + rings[1].size) * sizeof *staging->requests);
    if (staging == NULL)
        return slu_fail(ENOMEM, "no memory for the staged requests of a peer");
    staging->mr = slu_mr_alloc(engine->pd, 2 * size, SLUICE_ACCESS_LOCAL_WRITE, SLU_ANY_NODE);
    if (staging->mr == NULL) {
        free(staging);
        return -errno;
    }
    next = staging->requests;
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        staging->buffers[queue] =
            (struct buffer){.bytes = (uint8_t *)sluice_mr_addr(staging->mr) + queue * size,
                            .lkey = sluice_mr_lkey(staging->mr),
                            .size = size,
                            .mask = rings[queue].mask,
                            .requests = next};
        next += rings[queue].size;
    }
    *made = staging;
    return 0;
}

void slu_staging_destroy(struct slu_staging *staging)
{
    if (staging == NULL)
        return;
    slu_mr_end(staging->mr);
    free(staging);
}

static inline const struct sluice_layout *layout_of(const struct slu_item *item)
{
    return &item->request->blocks->local;
}

/*
 * Returns the bytes that a receive needs in the staging buffer beside the message, for the blocks
 * of a layout from this one on.
 */
static uint64_t scatter_bytes(const struct sluice_layout *layout, uint32_t block)
{
    uint64_t indices = layout->kind == SLUICE_LAYOUT_PAGED ? layout->count - block : 0;

    return slu_staging_round(sizeof(struct scatter) + indices * sizeof *layout->indices);
}

/*
 * Plans a message. If not all pieces fit as elements, the last element is left for the staged
 * bytes.
 */
void slu_message_begin(struct slu_message *message, const struct slu_engine *engine,
                       const struct slu_item *item, struct sluice_sge *pieces)
{
    struct slu_parts parts;
    struct slu_part part = {0};

    *message = (struct slu_message){0};
    slu_parts_begin(&parts, engine, item, 0);
    if (parts.left > 0)
        slu_parts_next(&parts, pieces, &part);
    if (parts.left > 0) {
        slu_parts_begin(&parts, engine, item, 0);
        parts.most_sges--;
        slu_parts_next(&parts, pieces, &part);
        message->block = parts.local.next - 1;
        message->staged = parts.left;
        message->need = slu_staging_round(parts.left);
        if (item->opcode == SLUICE_OP_RECEIVE)
            message->need += scatter_bytes(layout_of(item), message->block);
    }
    message->sge_count = part.sge_count;
}

uint64_t slu_message_need(const struct slu_engine *engine, const struct slu_item *item)
{
    struct sluice_sge pieces[SLU_MAX_SGE];
    struct slu_message message;

    slu_message_begin(&message, engine, item, pieces);
    return message.need;
}

/*
 * Checks that a message can be staged. The processor copies staged bytes, so it must be able to
 * access them.
 */
int slu_message_check(const struct slu_engine *engine, const struct slu_item *item, uint32_t i)
{
    uint64_t need = slu_message_need(engine, item);

    if (need > 0 && !slu_pd_reaches(engine->pd, item->sges->lkey))
        return slu_fail(E2BIG,
                        "request %u: blocks of a dmabuf are in more pieces than max_sge, %u, and "
                        "no processor can copy them",
                        i, engine->attr.max_sge);
    if (need <= engine->staging)
        return 0;
    return slu_fail(E2BIG,
                    "request %u: a %s of blocks in more pieces than max_sge, %u, needs %llu bytes "
                    "of a staging buffer, sluice_channel_attr.staging is %llu",
                    i, slu_opcode_name(item->opcode), engine->attr.max_sge,
                    (unsigned long long)need, (unsigned long long)engine->staging);
}

/* Frees the space of requests that have ended. */
static void reclaim(struct buffer *buffer, const struct slu_ring *ring)
{
    if (ring->oldest == ring->next)
        buffer->first = buffer->last;
    while (buffer->first != buffer->last) {
        const struct staged *staged = &buffer->requests[buffer->first & buffer->mask];

        if ((int64_t)(staged->id - ring->oldest) >= 0)
            return;
        buffer->tail = staged->end;
        buffer->first++;
    }
    buffer->head = buffer->tail = 0;
}

/*
 * Finds contiguous space of need bytes behind a head, and writes its position to *at. Returns false
 * if there is no room.
 */
static bool find_place(const struct buffer *buffer, uint64_t head, uint64_t need, uint64_t *at)
{
    uint64_t offset = head % buffer->size;

    *at = offset + need <= buffer->size ? head : head + (buffer->size - offset);
    return *at + need - buffer->tail <= buffer->size;
}

static struct buffer *buffer_of(const struct slu_engine *engine, const struct slu_item *item)
{
    const struct slu_peer *peer = &engine->peers[item->peer];
    enum slu_queue queue = slu_item_queue(item);
    struct buffer *buffer = &peer->staging->buffers[queue];

    reclaim(buffer, &peer->rings[queue]);
    return buffer;
}

bool slu_message_has_room(const struct slu_engine *engine, const struct slu_item *item)
{
    uint64_t need = slu_message_need(engine, item);
    const struct buffer *buffer;
    uint64_t at;

    if (need == 0)
        return true;
    buffer = buffer_of(engine, item);
    return find_place(buffer, buffer->head, need, &at);
}

bool slu_message_plan(const struct slu_engine *engine, const struct slu_item *item)
{
    uint64_t need = slu_message_need(engine, item);
    struct buffer *buffer;
    uint64_t at;

    if (need == 0)
        return true;
    buffer = buffer_of(engine, item);
    if (!find_place(buffer, buffer->planning ? buffer->planned : buffer->head, need, &at))
        return false;
    buffer->planning = true;
    buffer->planned = at + need;
    return true;
}

void slu_message_unplan(const struct slu_peer *peer)
{
    for (int queue = 0; peer->staging != NULL && queue < SLU_QUEUES; queue++)
        peer->staging->buffers[queue].planning = false;
}

/* Copies a block. Most columns consist of 8-byte numbers, for which the length is a constant. */
static inline void copy_block(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
    if (bytes == sizeof(uint64_t))
        memcpy(to, from, sizeof(uint64_t));
    else
        memcpy(to, from, bytes);
}

/* Copies the bytes of blocks to contiguous memory, or back. */
static void copy_blocks(const struct sluice_layout *layout, uint64_t base, uint8_t *bytes,
                        uint64_t left, bool gathers)
{
    for (uint32_t block = 0; left > 0; block++) {
        uint64_t length = slu_least(layout->bytes, left);
        uint64_t distance = layout->kind == SLUICE_LAYOUT_PAGED
                                ? layout->indices[block] * layout->bytes
                                : block * layout->stride;
        uint8_t *memory = (uint8_t *)(uintptr_t)(base + distance);

        if (gathers)
            copy_block(bytes, memory, length);
        else
            copy_block(memory, bytes, length);
        bytes += length;
        left -= length;
    }
}

/* Makes the layout of the staged blocks. Returns the address of the memory that they are in. */
static uint64_t cut_layout(const struct slu_item *item, const struct slu_message *message,
                           struct sluice_layout *layout)
{
    *layout = *layout_of(item);
    layout->count -= message->block;
    if (layout->kind == SLUICE_LAYOUT_PAGED) {
        layout->indices += message->block;
        return item->sges->addr;
    }
    return item->sges->addr + message->block * layout->stride;
}

/*
 * Stores the scatter of a receive, with copies of the layout and the indices: the program may free
 * its own before the receive is complete. Returns where the message's bytes go.
 */
static uint8_t *lay_scatter(const struct slu_item *item, const struct slu_message *message,
                            const struct sluice_layout *layout, uint64_t base, uint8_t *place)
{
    struct scatter *scatter = (struct scatter *)(void *)place;

    *scatter = (struct scatter){.layout = *layout,
                                .base = base,
                                .direct = item->bytes - message->staged,
                                .bytes = message->staged};
    if (layout->kind == SLUICE_LAYOUT_PAGED) {
        uint32_t *indices = (uint32_t *)(void *)(scatter + 1);

        memcpy(indices, layout->indices, layout->count * sizeof *indices);
        scatter->layout.indices = indices;
    }
    return place + scatter_bytes(layout, 0);
}

bool slu_message_stage(const struct slu_engine *engine, const struct slu_item *item, uint64_t id,
                       struct slu_message *message, struct sluice_sge *pieces)
{
    struct sluice_layout layout;
    struct buffer *buffer;
    uint64_t at, base;
    uint8_t *place;

    if (message->need == 0)
        return true;
    buffer = buffer_of(engine, item);
    if (!find_place(buffer, buffer->head, message->need, &at))
        return false;
    buffer->head = at + message->need;
    buffer->requests[buffer->last++ & buffer->mask] =
        (struct staged){.id = id, .at = at, .end = buffer->head};
    place = buffer->bytes + at % buffer->size;
    base = cut_layout(item, message, &layout);
    if (item->opcode == SLUICE_OP_RECEIVE)
        place = lay_scatter(item, message, &layout, base, place);
    else
        copy_blocks(&layout, base, place, message->staged, true);
    pieces[message->sge_count++] =
        (struct sluice_sge){(uint64_t)(uintptr_t)place, (uint32_t)message->staged, buffer->lkey};
    return true;
}

static const struct staged *find_staged(const struct buffer *buffer, uint64_t id)
{
    uint32_t at = buffer->first;

    while (at != buffer->last && buffer->requests[at & buffer->mask].id != id)
        at++;
    return at != buffer->last ? &buffer->requests[at & buffer->mask] : NULL;
}

void slu_message_scatter(const struct slu_peer *peer, uint64_t id, uint64_t bytes)
{
    struct buffer *buffer = &peer->staging->buffers[SLU_RECEIVE_QUEUE];
    const struct staged *staged;
    const struct scatter *scatter;
    uint8_t *place;

    reclaim(buffer, &peer->rings[SLU_RECEIVE_QUEUE]);
    staged = find_staged(buffer, id);
    if (staged == NULL)
        return;
    place = buffer->bytes + staged->at % buffer->size;
    scatter = (const struct scatter *)(void *)place;
    if (bytes <= scatter->direct)
        return;
    place += scatter_bytes(&scatter->layout, 0);
    copy_blocks(&scatter->layout, scatter->base, place,
                slu_least(bytes - scatter->direct, scatter->bytes), false);
}
