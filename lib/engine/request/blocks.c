/* SPDX-License-Identifier: MIT */
/*
 * Requests of blocks: the checks before anything is posted. Guarantee: blocks that pass name no
 * byte outside of the SGE's memory or the remote range.
 */
#include "config.h"

#include "engine/request/check.h"
#include "engine/request/parts.h"

/* One side of a request, as it is checked. */
struct looked_at {
    const char *name; /* "local" or "remote" */
    const struct sluice_layout *layout;
    uint64_t length; /* of its memory */
    uint32_t request;
    bool ours;
};

#define LONG(number) ((unsigned long long)(number))

/*
 * A local range is the program's mistake. A remote one may be the peer's, which gave out the
 * length.
 */
#define FAIL_RANGE(side, ...) \
    ((side)->ours ? slu_misuse(ERANGE, __VA_ARGS__) : slu_fail(ERANGE, __VA_ARGS__))

static int check_request(const struct slu_item *item, uint32_t i)
{
    const struct sluice_request *request = item->request;

    if (slu_opcode_is_atomic(item->opcode))
        return slu_misuse(EINVAL,
                          "request %u: a %s has no blocks, only a send, a receive, a write or a "
                          "read",
                          i, slu_opcode_name(item->opcode));
    if ((request->flags & SLUICE_INLINE) != 0)
        return slu_misuse(EINVAL, "request %u: blocks cannot be inline", i);
    if (request->sge_count != 1)
        return slu_misuse(EINVAL,
                          "request %u has %u SGEs: with blocks it has one, the memory that they "
                          "are in",
                          i, request->sge_count);
    return 0;
}

/*
 * Blocks are read where they are: a field that comes after version 1.0 may be read only if the
 * size covers it.
 */
static int check_size(const struct sluice_blocks *blocks, uint32_t i)
{
    const uint8_t *bytes = (const uint8_t *)blocks;

    if (blocks->size < SLU_FIRST_sluice_blocks)
        return slu_misuse(EINVAL, "request %u: blocks.size is %u, must be %zu", i, blocks->size,
                          sizeof *blocks);
    if (blocks->size > SLU_ATTR_MOST)
        return slu_misuse(E2BIG, "request %u: blocks.size is %u, above %u: is it initialised?", i,
                          blocks->size, SLU_ATTR_MOST);
    for (uint32_t at = sizeof *blocks; at < blocks->size; at++)
        if (bytes[at] != 0)
            return slu_fail(E2BIG,
                            "request %u: blocks has %u bytes, this version knows %zu of them, "
                            "and what follows is not all 0",
                            i, blocks->size, sizeof *blocks);
    if (blocks->flags != 0)
        return slu_misuse(EINVAL, "request %u: blocks.flags is %#x, must be 0", i, blocks->flags);
    return 0;
}

/* Checks that a layout has the fields of its kind and no others. */
static int check_layout(const struct looked_at *side)
{
    const struct sluice_layout *layout = side->layout;
    bool contiguous = layout->kind == SLUICE_LAYOUT_CONTIGUOUS;

    if ((layout->reserved[0] | layout->reserved[1]) != 0)
        return slu_misuse(EINVAL, "request %u: blocks.%s.reserved is not 0", side->request,
                          side->name);
    if (layout->kind > SLUICE_LAYOUT_PAGED)
        return slu_misuse(EINVAL, "request %u: blocks.%s.kind is %u, which is none", side->request,
                          side->name, layout->kind);
    if (contiguous && (layout->count | layout->bytes) != 0)
        return slu_misuse(EINVAL,
                          "request %u: blocks.%s is contiguous with count %u and bytes %llu: both "
                          "must be 0",
                          side->request, side->name, layout->count, LONG(layout->bytes));
    if (!contiguous && layout->bytes == 0)
        return slu_misuse(EINVAL, "request %u: blocks.%s has blocks of 0 bytes", side->request,
                          side->name);
    if (layout->kind != SLUICE_LAYOUT_STRIDED && layout->stride != 0)
        return slu_misuse(EINVAL, "request %u: blocks.%s.stride is %llu and it is not strided",
                          side->request, side->name, LONG(layout->stride));
    if (layout->kind != SLUICE_LAYOUT_PAGED && layout->indices != NULL)
        return slu_misuse(EINVAL,
                          "request %u: blocks.%s.indices must be NULL: the layout is "
                          "SLUICE_LAYOUT_%s, only SLUICE_LAYOUT_PAGED has indices",
                          side->request, side->name, contiguous ? "CONTIGUOUS" : "STRIDED");
    if (layout->kind == SLUICE_LAYOUT_PAGED && layout->count > 0 && layout->indices == NULL)
        return slu_misuse(EINVAL, "request %u: blocks.%s.indices must not be NULL for %u pages",
                          side->request, side->name, layout->count);
    return 0;
}

/* Checks strided blocks. The error names the first block that is not within the memory. */
static int check_strided(const struct looked_at *side)
{
    const struct sluice_layout *layout = side->layout;
    uint64_t last = layout->count - 1;
    uint64_t wrong = 0;

    if (layout->bytes <= side->length) {
        uint64_t room = side->length - layout->bytes;

        if (layout->stride == 0 || last <= room / layout->stride)
            return 0;
        wrong = room / layout->stride + 1;
    }
    return FAIL_RANGE(side,
                      "request %u: %s block %llu, of %llu bytes with a stride of %llu, is not "
                      "within the %llu bytes there are",
                      side->request, side->name, LONG(wrong), LONG(layout->bytes),
                      LONG(layout->stride), LONG(side->length));
}

/* Returns the greatest index. The loop has no branch, so that it runs at the speed of memory. */
static uint32_t greatest(const uint32_t *indices, uint32_t count)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < count; i++)
        most = indices[i] > most ? indices[i] : most;
    return most;
}

static int check_paged(const struct looked_at *side)
{
    const struct sluice_layout *layout = side->layout;
    uint64_t pages = side->length / layout->bytes;
    uint32_t wrong = 0;

    if (greatest(layout->indices, layout->count) < pages)
        return 0;
    while (layout->indices[wrong] < pages)
        wrong++;
    return FAIL_RANGE(side,
                      "request %u: %s index %u is %u, the %llu bytes there are have %llu page%s of "
                      "%llu",
                      side->request, side->name, wrong, layout->indices[wrong], LONG(side->length),
                      LONG(pages), SLU_S(pages), LONG(layout->bytes));
}

static int check_memory(const struct looked_at *side, uint64_t bytes)
{
    if (side->layout->kind == SLUICE_LAYOUT_CONTIGUOUS)
        return bytes <= side->length
                   ? 0
                   : FAIL_RANGE(side, "request %u: blocks of %llu bytes, the %s memory has %llu",
                                side->request, LONG(bytes), side->name, LONG(side->length));
    if (side->layout->count == 0)
        return 0;
    return side->layout->kind == SLUICE_LAYOUT_STRIDED ? check_strided(side) : check_paged(side);
}

/* Adds up the bytes of all blocks of a side; a contiguous side has 0. */
static int add_up(const struct looked_at *side, uint64_t *bytes)
{
    if (!__builtin_mul_overflow((uint64_t)side->layout->count, side->layout->bytes, bytes))
        return 0;
    return FAIL_RANGE(side, "request %u: %u %s blocks of %llu bytes are more than 2^64",
                      side->request, side->layout->count, side->name, LONG(side->layout->bytes));
}

static int compare_sides(const struct looked_at *local, const struct looked_at *remote)
{
    bool both = local->layout->kind != SLUICE_LAYOUT_CONTIGUOUS &&
                remote->layout->kind != SLUICE_LAYOUT_CONTIGUOUS;
    uint64_t ours, theirs;
    int error = add_up(local, &ours);

    if (error == 0)
        error = add_up(remote, &theirs);
    if (error == 0 && both && ours != theirs)
        return slu_misuse(EINVAL,
                          "request %u: the local blocks have %llu bytes together, the remote ones "
                          "%llu",
                          local->request, LONG(ours), LONG(theirs));
    return error;
}

static int check_wrap(const struct slu_item *item, uint64_t length, uint32_t i)
{
    if (length == 0 || item->sges->addr + (length - 1) >= item->sges->addr)
        return 0;
    return slu_misuse(ERANGE, "request %u: the local memory of %llu bytes at %#llx wraps", i,
                      LONG(length), LONG(item->sges->addr));
}

/*
 * Checks both sides. A message has no remote one: the peer's own request places the bytes there.
 */
static int check_sides(const struct slu_item *item, const struct sluice_blocks *blocks,
                       uint64_t local_length, uint32_t i)
{
    bool message = slu_item_is_gathered(item);
    const struct looked_at local = {"local", &blocks->local, local_length, i, true};
    const struct looked_at remote = {"remote", &blocks->remote, message ? 0 : item->remote->length,
                                     i, message};
    int error = check_layout(&local);
    uint64_t bytes;

    if (error == 0)
        error = check_layout(&remote);
    if (error == 0 && message && blocks->remote.kind != SLUICE_LAYOUT_CONTIGUOUS)
        return slu_misuse(EINVAL,
                          "request %u: blocks.remote of a %s must be all 0: the peer's own request "
                          "says where its bytes lie",
                          i, slu_opcode_name(item->opcode));
    if (error == 0)
        error = compare_sides(&local, &remote);
    if (error == 0)
        error = check_wrap(item, local_length, i);
    if (error < 0)
        return error;
    bytes = slu_blocks_bytes_within(blocks, local_length);
    error = check_memory(&local, bytes);
    return error == 0 && !message ? check_memory(&remote, bytes) : error;
}

int slu_blocks_check(const struct slu_item *item, uint32_t i)
{
    const struct sluice_blocks *blocks = item->request->blocks;
    int error = check_request(item, i);
    uint64_t length;

    if (error == 0)
        error = check_size(blocks, i);
    if (error < 0)
        return error;
    length = blocks->local_length != 0 ? blocks->local_length : item->sges->length;
    return check_sides(item, blocks, length, i);
}

int slu_blocks_check_action(const struct sluice_blocks *blocks, uint64_t addr,
                            uint64_t local_length, uint64_t remote_length, uint64_t *bytes)
{
    const struct sluice_sge sge = {.addr = addr};
    const struct sluice_remote_mr remote = {.length = remote_length};
    const struct sluice_request request = {.blocks = blocks};
    const struct slu_item item = {
        .request = &request, .sges = &sge, .remote = &remote, .opcode = SLUICE_OP_WRITE};
    int error = check_size(blocks, 0);

    if (error == 0 && blocks->local_length != 0)
        error =
            slu_misuse(EINVAL, "request 0: blocks.local_length is %llu, must be 0: length says it",
                       LONG(blocks->local_length));
    if (error == 0)
        error = check_sides(&item, blocks, local_length, 0);
    if (error == 0)
        *bytes = slu_blocks_bytes_within(blocks, local_length);
    return error;
}
