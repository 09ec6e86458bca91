/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "fuzz_state.h"

/* Bytes of a block at most. */
#define BLOCK 1400

static void lay_blocks(struct sluice_layout *layout, uint32_t *indices, uint32_t count,
                       uint32_t bytes)
{
    layout->kind = fake_random(2) ? SLUICE_LAYOUT_STRIDED : SLUICE_LAYOUT_PAGED;
    layout->count = count;
    layout->bytes = bytes;
    if (layout->kind == SLUICE_LAYOUT_STRIDED) {
        layout->stride = fake_random(2) ? bytes : bytes + fake_random(BLOCK);
        return;
    }
    /* Some are adjacent, and some are there twice. */
    for (uint32_t i = 0; i < count; i++) {
        indices[i] = i > 0 && fake_random(2) && indices[i - 1] + 2 < SPAN / bytes
                         ? indices[i - 1] + 1
                         : fake_random(SPAN / bytes);
    }
    layout->indices = count > 0 ? indices : NULL;
}

uint64_t fuzz_make_blocks(struct sluice_request *request, uint32_t i)
{
    struct sluice_blocks *blocks = &fuzz.blocks[i];
    uint32_t count = fake_random(BLOCKS / 2);
    uint32_t bytes = 1 + fake_random(BLOCK);
    uint32_t sides = fake_random(4);
    *blocks = (struct sluice_blocks){.size = sizeof(*blocks)};
    if (sides & 1) {
        lay_blocks(&blocks->local, fuzz.indices[i][0], 2 * count, bytes);
    }
    if (sides & 2) {
        lay_blocks(&blocks->remote, fuzz.indices[i][1], count, 2 * bytes);
    }
    request->blocks = blocks;
    request->sge_count = 1;
    fuzz.sges[i][0].length = sides == 0 ? 2 * count * bytes : SPAN;
    return UINT64_C(2) * count * bytes;
}

/* Staged blocks are copied from here and to here. */
static uint8_t memory[SPAN];

uint64_t fuzz_make_message(struct sluice_request *request, uint32_t i)
{
    struct sluice_blocks *blocks = &fuzz.blocks[i];
    uint32_t count = fake_random(BLOCKS);
    uint32_t bytes = 1 + fake_random(RIG_MESSAGE / BLOCKS);
    *blocks = (struct sluice_blocks){.size = sizeof(*blocks)};
    lay_blocks(&blocks->local, fuzz.indices[i][0], count, bytes);
    request->blocks = blocks;
    request->sge_count = 1;
    fuzz.sges[i][0].addr = (uintptr_t)memory;
    fuzz.sges[i][0].length = SPAN;
    return (uint64_t)count * bytes;
}
