/* SPDX-License-Identifier: MIT */
/*
 * Allgathers and alltoalls over the node itself. Each rank writes its value into its blocks at all
 * other ranks, in pieces, one a round. The bytes of a piece and the description of the call are
 * written first and the number of the round last, so the number never appears before the bytes.
 *
 * Two slots, used alternately, are enough. A rank begins a round when it has the pieces of all
 * others of the round before; so all have begun that one, and have copied the pieces of the round
 * before it. An allgather writes from the block of the rank for itself, into whose slots no rank
 * writes. An alltoall has another value for each rank and writes from two slots for each rank,
 * which are allocated by the first alltoall. A slot is reused only when all writes from it have
 * ended, even if the round failed.
 *
 * The description that a rank sends must be equal to that of this rank, bit by bit. No number that
 * another rank wrote is used for anything else.
 */
#include "config.h"

#include <endian.h>
#include <string.h>

#include "node/flow.h"
#include "node/gather.h"

/* unpack_all() replaces each packed handle by the handle itself, in the same place. */
_Static_assert(sizeof(struct sluice_peer_remote_mr) >= SLUICE_REMOTE_MR_BYTES,
               "a packed handle fits where the handle goes");

static uint8_t *slot_of(const struct sluice_node *node, uint32_t rank)
{
    uint8_t *blocks = sluice_mr_addr(node->blocks);

    return blocks + (size_t)rank * slu_block_bytes(node) + slu_slot_at(node->round);
}

/* Returns the region that the piece for a rank is written from. */
static const struct sluice_mr *source_region(const struct slu_gathering *gathering)
{
    const struct sluice_node *node = gathering->group.node;

    return gathering->kind == SLU_ALLTOALL ? node->pieces : node->blocks;
}

static uint8_t *source_of(const struct slu_gathering *gathering, uint32_t rank)
{
    const struct sluice_node *node = gathering->group.node;
    uint8_t *pieces;

    if (gathering->kind != SLU_ALLTOALL)
        return slot_of(node, node->rank);
    pieces = sluice_mr_addr(node->pieces);
    return pieces + (2 * (size_t)rank + node->round % 2) * SLU_SLOT_BYTES;
}

/* A wait for earlier writes from the slot of this round. */
struct freeing {
    struct slu_group *group;
    uint32_t busy; /* the first rank whose write is still pending */
};

static bool is_taken(const struct sluice_node *node, uint32_t rank)
{
    return !slu_is_pending(slu_node_engine(node), node->peers[rank].piece_ids[node->round % 2]);
}

static bool is_free(void *argument)
{
    struct freeing *freeing = argument;

    while (freeing->busy < freeing->group->count &&
           is_taken(freeing->group->node, slu_group_rank(freeing->group, freeing->busy)))
        freeing->busy++;
    return freeing->busy == freeing->group->count;
}

static int await_slot(struct slu_group *group)
{
    struct freeing freeing = {.group = group};
    int result = is_free(&freeing) ? 0 : slu_notify_wait(group, is_free, &freeing);

    if (result <= 0)
        return result;
    freeing.busy = slu_group_rank(group, freeing.busy);
    slu_fail(ETIMEDOUT, "rank %u has not taken what it was given by the %s before", freeing.busy,
             slu_group_name(group));
    return slu_abort_blame_rank(group, freeing.busy, SLU_ABORT_QUEUE_FULL, -ETIMEDOUT);
}

static void fill_slot(const struct slu_gathering *gathering, uint32_t rank, size_t at,
                      size_t length)
{
    uint8_t *slot = source_of(gathering, rank);
    uint64_t call = htobe64(slu_gather_describe(gathering, at / SLU_PIECE_BYTES));

    memcpy(slot + SLU_SLOT_CALL_AT, &call, sizeof call);
    if (length > 0)
        memcpy(slot + SLU_SLOT_DATA_AT, gathering->own + rank * gathering->own_stride + at, length);
}

/* The send queue must have room for one request. */
static void write_piece(const struct slu_gathering *gathering, uint32_t rank, size_t length)
{
    const struct sluice_node *node = gathering->group.node;
    const struct slu_place *place = &node->places[rank];
    uint32_t bytes = (uint32_t)(length + SLU_SLOT_DATA_AT - SLU_SLOT_CALL_AT);
    const struct sluice_request request = {
        .opcode = SLUICE_OP_WRITE,
        .peer = rank,
        .sge = {.addr = (uintptr_t)source_of(gathering, rank) + SLU_SLOT_CALL_AT,
                .length = bytes,
                .lkey = sluice_mr_lkey(source_region(gathering))},
        .sge_count = 1,
        .remote = {.addr = place->addr + slu_slot_at(node->round) + SLU_SLOT_CALL_AT,
                   .length = bytes,
                   .rkey = place->rkey}};

    slu_post_detached(slu_node_engine(node), &request);
}

static int give(struct slu_gathering *gathering, uint32_t rank, size_t at, size_t length)
{
    struct slu_group *group = &gathering->group;
    struct sluice_node *node = group->node;
    int error;

    if (gathering->kind == SLU_ALLTOALL)
        fill_slot(gathering, rank, at, length);
    error = slu_notify_await_room(group, rank);
    if (error < 0)
        return error;
    write_piece(gathering, rank, length);
    error = slu_notify_await_room(group, rank);
    if (error < 0)
        return error;
    slu_node_publish_sent(node, rank);
    node->peers[rank].piece_ids[node->round % 2] =
        slu_node_word_write(node, rank, slu_slot_at(node->round), slu_node_word(node, node->round));
    return 0;
}

/* Copies the piece of a rank, which has arrived. */
static int take(struct slu_gathering *gathering, uint32_t rank, size_t at, size_t length)
{
    const uint8_t *slot = slot_of(gathering->group.node, rank);
    uint64_t call;

    memcpy(&call, slot + SLU_SLOT_CALL_AT, sizeof call);
    call = be64toh(call);
    if (call != slu_gather_describe(gathering, at / SLU_PIECE_BYTES))
        return slu_gather_fail_call(gathering, rank, call);
    if (length > 0)
        memcpy(gathering->all + rank * gathering->stride + at, slot + SLU_SLOT_DATA_AT, length);
    return 0;
}

/* Each rank begins with the rank after its own, so that they do not all write to the same one. */
static int run_round(struct slu_gathering *gathering, size_t at, size_t length)
{
    struct slu_group *group = &gathering->group;
    int error;

    group->node->round++;
    slu_node_publish_entry(group);
    error = await_slot(group);
    if (error < 0)
        return error;
    if (gathering->kind != SLU_ALLTOALL)
        fill_slot(gathering, group->node->rank, at, length);
    for (uint32_t i = 1; i < group->count && error == 0; i++)
        error =
            give(gathering, slu_group_rank(group, (group->self + i) % group->count), at, length);
    for (uint32_t i = 1; i < group->count && error == 0; i++) {
        uint32_t rank = slu_group_rank(group, (group->self + i) % group->count);

        error = slu_notify_await_rank(group, rank);
        if (error == 0)
            error = take(gathering, rank, at, length);
    }
    return error;
}

/* A value of no bytes still takes one piece. */
static int run_rounds(struct slu_gathering *gathering)
{
    int error = slu_abort_check_marks(&gathering->group);
    size_t at = 0;

    while (error == 0) {
        size_t left = gathering->bytes - at;

        error = run_round(gathering, at, left < SLU_PIECE_BYTES ? left : SLU_PIECE_BYTES);
        if (left <= SLU_PIECE_BYTES)
            break;
        at += SLU_PIECE_BYTES;
    }
    return error;
}

/* Replaces each packed handle by the handle itself. */
static int unpack_all(struct slu_gathering *gathering)
{
    struct slu_group *group = &gathering->group;
    uint8_t packed[SLUICE_REMOTE_MR_BYTES];
    struct slu_text text;

    for (uint32_t i = 0; i < group->count; i++) {
        uint32_t rank = slu_group_rank(group, i);
        uint8_t *at = gathering->all + rank * gathering->stride;
        struct sluice_peer_remote_mr handle = {.peer = rank};

        memcpy(packed, at, sizeof packed);
        if (sluice_remote_mr_unpack(packed, &handle.remote) < 0) {
            slu_text_save(&text);
            slu_fail(EPROTO, "rank %u shares no valid handle: %s", rank, text.bytes);
            return slu_abort_blame_rank(group, rank, SLU_ABORT_INVALID, -EPROTO);
        }
        memcpy(at, &handle, sizeof handle);
    }
    return 0;
}

/* Allocates the sources of alltoalls, by the first one: most programs have none. */
static int create_pieces(struct slu_gathering *gathering)
{
    struct sluice_node *node = gathering->group.node;

    if (node->by_tree)
        return slu_flow_prepare(&gathering->group);
    if (gathering->kind != SLU_ALLTOALL || node->pieces != NULL || node->ranks == 1)
        return 0;
    node->pieces =
        sluice_mr_alloc(slu_node_engine(node)->pd, (size_t)node->ranks * 2 * SLU_SLOT_BYTES, 0);
    if (node->pieces != NULL)
        return 0;
    return slu_abort_blame_rank(&gathering->group, node->rank, SLU_ABORT_UNKNOWN,
                                slu_listed(-errno));
}

static int run(struct slu_gathering *gathering)
{
    int error = slu_group_enter(&gathering->group);

    if (error < 0)
        return error;
    if (!gathering->group.node->by_tree)
        return run_rounds(gathering);
    error = slu_abort_check_marks(&gathering->group);
    if (error < 0)
        return error;
    gathering->group.node->round++;
    slu_node_publish_entry(&gathering->group);
    return gathering->kind == SLU_ALLTOALL ? slu_gather_steps(gathering)
                                           : slu_gather_tree(gathering);
}

/* A rank that cannot take part still gives up in order, so that the others do not wait for it. */
static int gather(struct slu_gathering *gathering)
{
    struct sluice_node *node = gathering->group.node;
    int error = create_pieces(gathering);

    gathering->group.gathering = true;
    gathering->group.name = gathering->kind == SLU_ALLTOALL ? "alltoall" : "allgather";
    slu_group_all(&gathering->group);
    if (gathering->bytes > 0)
        memmove(gathering->all + node->rank * gathering->stride,
                gathering->own + node->rank * gathering->own_stride, gathering->bytes);
    slu_engine_enter(slu_node_engine(node));
    if (error == 0 && gathering->group.count > 1)
        error = run(gathering);
    if (error == 0 && gathering->kind == SLU_SHARE_MR)
        error = unpack_all(gathering);
    if (error < 0)
        slu_abort_announce(&gathering->group);
    else
        slu_node_publish_state(node, SLU_NODE_OUTSIDE);
    slu_engine_leave(slu_node_engine(node));
    return error;
}

static int check_values(const void *own, const void *all, size_t bytes, size_t most)
{
    if (bytes > most)
        return slu_misuse(EINVAL, "%zu bytes for each rank: must be 0 to %zu", bytes, most);
    if (bytes > 0 && (own == NULL || all == NULL))
        return slu_misuse(EINVAL, "the buffers of %zu bytes for each rank must not be NULL", bytes);
    return 0;
}

/* The group is not filled in yet. */
static int gather_values(struct slu_gathering *gathering, size_t most, int64_t deadline)
{
    const struct sluice_node *node = gathering->group.node;
    int error = slu_node_check_call(node, deadline);

    gathering->stride = gathering->bytes;
    if (error == 0)
        error = check_values(gathering->own, gathering->all, gathering->bytes, most);
    if (error == 0)
        error = slu_node_check_usable(node, node->ranks, deadline);
    return error < 0 ? error : gather(gathering);
}

int sluice_node_allgather(struct sluice_node *node, const void *own, void *all, size_t bytes,
                          int64_t deadline)
{
    struct slu_gathering gathering = {.group = {.node = node, .until = slu_after(deadline)},
                                      .kind = SLU_ALLGATHER,
                                      .own = own,
                                      .all = all,
                                      .bytes = bytes};

    return gather_values(&gathering, SLUICE_NODE_ALLGATHER_BYTES, deadline);
}

int sluice_node_alltoall(struct sluice_node *node, const void *own, void *all, size_t bytes,
                         int64_t deadline)
{
    struct slu_gathering gathering = {.group = {.node = node, .until = slu_after(deadline)},
                                      .kind = SLU_ALLTOALL,
                                      .own = own,
                                      .all = all,
                                      .bytes = bytes,
                                      .own_stride = bytes};

    return gather_values(&gathering, SLUICE_NODE_ALLTOALL_BYTES, deadline);
}

int sluice_node_share_mr(struct sluice_node *node, const struct sluice_mr *mr,
                         struct sluice_peer_remote_mr *remotes, int64_t deadline)
{
    uint8_t packed[SLUICE_REMOTE_MR_BYTES];
    struct sluice_remote_mr remote = {.length = 0};
    struct slu_gathering gathering = {.group = {.node = node, .until = slu_after(deadline)},
                                      .kind = SLU_SHARE_MR,
                                      .own = packed,
                                      .all = (uint8_t *)remotes,
                                      .bytes = sizeof packed,
                                      .stride = sizeof *remotes};
    int error = slu_node_check_call(node, deadline);

    if (error == 0 && remotes == NULL)
        error = slu_misuse(EINVAL, "remotes must not be NULL: it has room for a handle of each "
                                   "rank");
    if (error == 0 && mr != NULL)
        error = sluice_mr_remote(mr, &remote);
    if (error == 0)
        error = slu_node_check_usable(node, node->ranks, deadline);
    if (error < 0)
        return error;
    sluice_remote_mr_pack(&remote, packed);
    return gather(&gathering);
}
