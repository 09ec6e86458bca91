/* SPDX-License-Identifier: MIT */
/* Flows between two ranks: their chunks, their numbers, and the wait for several of them. */
#include "config.h"

#include "node/flow.h"

#include <string.h>

/* Chunks that a sender may be ahead of its receiver. */
#define AHEAD 2

int slu_flow_prepare(struct slu_group *group)
{
    struct sluice_node *node = group->node;

    if (node->stages == NULL)
        node->stages =
            sluice_mr_alloc(slu_node_engine(node)->pd, slu_windows_bytes(node->ranks), 0);
    if (node->stages != NULL)
        return 0;
    return slu_abort_blame_rank(group, node->rank, SLU_ABORT_UNKNOWN, slu_listed(-errno));
}

/* Returns the number of the next chunk. */
static uint32_t number_of(const struct slu_group *group, const struct slu_flow *flow)
{
    const struct slu_rank *peer = &group->node->peers[flow->rank];

    return (flow->outgoing ? peer->given : peer->taken) + 1;
}

static size_t chunk_at(const struct sluice_node *node, uint32_t window, uint32_t number)
{
    return node->generation % 2 * slu_windows_bytes(node->ranks) / 2 +
           ((size_t)window * 2 + number % 2) * SLU_CHUNK_BYTES;
}

static uint8_t *chunk_of(const struct slu_group *group, const struct slu_flow *flow)
{
    const struct sluice_node *node = group->node;
    uint8_t *windows = flow->outgoing
                           ? sluice_mr_addr(node->stages)
                           : (uint8_t *)sluice_mr_addr(node->blocks) + slu_windows_at(node);

    return windows + chunk_at(node, flow->here, number_of(group, flow));
}

uint8_t *slu_flow_chunk(const struct slu_group *group, const struct slu_flow *flow)
{
    return chunk_of(group, flow) + SLU_CHUNK_HEAD;
}

uint64_t slu_flow_call(const struct slu_group *group, const struct slu_flow *flow)
{
    uint64_t call;

    memcpy(&call, chunk_of(group, flow), sizeof call);
    return be64toh(call);
}

/* Tells whether a rank can be given a chunk, or fails if it wrote an invalid word. */
static int has_credit(struct slu_group *group, uint32_t rank)
{
    const struct sluice_node *node = group->node;
    uint32_t given = node->peers[rank].given, taken = 0;
    uint64_t word = slu_node_word_read(node, rank, SLU_TAKEN_AT);

    if (word >> 32 == node->generation)
        taken = (uint32_t)word;
    else if (node->members != NULL && slu_node_word_is_valid(node, word))
        return 0;
    if (!slu_node_word_is_valid(node, word) || given - taken > AHEAD)
        return slu_abort_fail_invalid(group, rank, "number of chunks", word);
    return given - taken < AHEAD;
}

static bool is_last(const struct slu_flow *flow)
{
    return flow->bytes - flow->done <= SLU_CHUNK_MOST;
}

static void go_on(struct slu_group *group, struct slu_flow *flow)
{
    group->chunks++;
    flow->ended = is_last(flow);
    flow->done += slu_flow_next(flow);
}

/* Writes the number of a chunk that was written. The send queue must have room. */
static void write_number(struct slu_group *group, struct slu_flow *flow)
{
    struct sluice_node *node = group->node;
    struct slu_rank *peer = &node->peers[flow->rank];
    uint32_t number = number_of(group, flow);

    peer->given++;
    slu_node_publish_sent(node, flow->rank);
    peer->piece_ids[number % 2] = slu_node_word_write(node, flow->rank, slu_number_at(node, number),
                                                      slu_node_word(node, number));
    flow->written = false;
    go_on(group, flow);
}

/*
 * A chunk is written from its stage, and its number may be read from memory, too. A send queue may
 * have room for one of the two at a time.
 */
static int may_give(struct slu_group *group, struct slu_flow *flow)
{
    struct slu_engine *engine = slu_node_engine(group->node);

    if (!slu_has_room(engine, flow->rank, 1))
        return 0;
    if (flow->written)
        write_number(group, flow);
    if (flow->ended || !slu_has_room(engine, flow->rank, 1) ||
        slu_is_pending(engine,
                       group->node->peers[flow->rank].piece_ids[number_of(group, flow) % 2]))
        return 0;
    return has_credit(group, flow->rank);
}

void slu_flow_invite(const struct slu_group *group, uint32_t rank)
{
    struct sluice_node *node = group->node;
    struct slu_rank *peer = &node->peers[rank];

    if (node->members == NULL || peer->invited || !slu_has_room(slu_node_engine(node), rank, 1))
        return;
    peer->invited = true;
    slu_node_word_write(node, rank, SLU_TAKEN_AT, slu_node_word(node, peer->taken));
}

int slu_flow_poll(struct slu_group *group, struct slu_flow *flow)
{
    int result;

    if (flow->outgoing)
        return may_give(group, flow);
    slu_flow_invite(group, flow->rank);
    result = slu_node_poll(group, flow->rank);
    return result <= 0 ? result : slu_has_room(slu_node_engine(group->node), flow->rank, 1);
}

static void write_chunk(const struct slu_group *group, const struct slu_flow *flow)
{
    const struct sluice_node *node = group->node;
    const struct slu_place *place = &node->places[flow->rank];
    uint64_t windows = place->addr + (uint64_t)(node->ranks - node->rank) * place->block_bytes;
    uint32_t bytes = (uint32_t)(SLU_CHUNK_HEAD + slu_flow_next(flow));
    const struct sluice_request request = {
        .opcode = SLUICE_OP_WRITE,
        .peer = flow->rank,
        .sge = {.addr = (uintptr_t)chunk_of(group, flow),
                .length = bytes,
                .lkey = sluice_mr_lkey(node->stages)},
        .sge_count = 1,
        .remote = {.addr = windows + chunk_at(node, flow->there, number_of(group, flow)),
                   .length = bytes,
                   .rkey = place->rkey}};

    slu_post_detached(slu_node_engine(group->node), &request);
}

void slu_flow_give(struct slu_group *group, struct slu_flow *flow, uint64_t call)
{
    call = htobe64(call);
    memcpy(chunk_of(group, flow), &call, sizeof call);
    write_chunk(group, flow);
    flow->written = true;
    if (slu_has_room(slu_node_engine(group->node), flow->rank, 1))
        write_number(group, flow);
}

void slu_flow_take(struct slu_group *group, struct slu_flow *flow)
{
    struct sluice_node *node = group->node;
    struct slu_rank *peer = &node->peers[flow->rank];

    peer->taken++;
    slu_node_word_write(node, flow->rank, SLU_TAKEN_AT, slu_node_word(node, peer->taken));
    go_on(group, flow);
}

struct running {
    struct slu_waiting waiting; /* first */
    int (*step)(void *argument);
    void *argument;
    struct slu_flow *const *flows;
    uint32_t count;
};

static int step(struct slu_waiting *waiting)
{
    const struct running *running = slu_container_of(waiting, struct running, waiting);

    return running->step(running->argument);
}

/* Tells whether a flow waits: it has not ended, and nothing of it is here that may be taken. */
static bool is_awaited(struct slu_group *group, const struct slu_flow *flow)
{
    return !flow->ended && (flow->outgoing || slu_node_poll(group, flow->rank) == 0);
}

/*
 * What has come from a rank may have to wait for a chunk that another one does not take. So marks
 * are checked once more, unless it completes the call.
 */
static int check_arrived(struct slu_waiting *waiting)
{
    int error = slu_abort_check_marks(waiting->group);
    int result = error < 0 ? step(waiting) : 0;

    return result != 0 ? result : error;
}

/* Connects the ranks that are waited for, and fails if one is lost, or in another call. */
static int check(struct slu_waiting *waiting)
{
    const struct running *running = slu_container_of(waiting, struct running, waiting);
    bool arrived = false;

    for (uint32_t i = 0; i < running->count; i++) {
        const struct slu_flow *flow = running->flows[i];
        int result;

        if (flow->ended)
            continue;
        if (waiting->waited > SLU_CONNECT_TIME)
            slu_notify_connect(waiting->group->node, flow->rank);
        result = flow->outgoing ? slu_notify_check_loss(waiting->group, flow->rank)
                                : slu_notify_check(waiting->group, flow->rank);
        if (result < 0)
            return result;
        arrived |= result > 0;
    }
    return arrived ? check_arrived(waiting) : 0;
}

static int blame_busy(struct slu_group *group, uint32_t rank)
{
    int error = slu_missing_rank_find(group);

    if (error < 0)
        return error;
    slu_fail(ETIMEDOUT,
             "rank %u has not taken what it was given for the %s of %u ranks; it may itself have "
             "waited for another rank%s",
             rank, slu_group_name(group), group->count, slu_abort_reason_own(group->node, rank));
    return slu_abort_blame_rank(group, rank, SLU_ABORT_QUEUE_FULL, -ETIMEDOUT);
}

/*
 * A rank that sends nothing is blamed before one that takes nothing, which may be why it does; but
 * not one whose chunk is here, and waits for a rank that takes nothing.
 */
static int blame(struct slu_waiting *waiting)
{
    const struct running *running = slu_container_of(waiting, struct running, waiting);
    const struct slu_flow *first = NULL;
    int result = step(waiting);

    if (result == 0)
        result = check(waiting);
    if (result != 0)
        return result;
    for (uint32_t i = 0; i < running->count; i++) {
        const struct slu_flow *flow = running->flows[i];

        if (is_awaited(waiting->group, flow) &&
            (first == NULL || (first->outgoing && !flow->outgoing)))
            first = flow;
    }
    for (uint32_t i = 0; i < running->count && first == NULL; i++)
        if (!running->flows[i]->ended)
            first = running->flows[i];
    slu_notify_connect(waiting->group->node, first->rank);
    return first->outgoing ? blame_busy(waiting->group, first->rank)
                           : slu_missing_rank_blame(waiting->group, first->rank);
}

int slu_flow_run(struct slu_group *group, int (*step_of)(void *argument), void *argument,
                 struct slu_flow *const *flows, uint32_t count)
{
    struct running running = {
        .waiting = {.group = group, .poll = step, .check = check, .late = blame},
        .step = step_of,
        .argument = argument,
        .flows = flows,
        .count = count};

    return slu_notify_wait_for(&running.waiting);
}
