/* SPDX-License-Identifier: MIT */
/*
 * Prepared lists that are aimed and posted again, arrivals that are counted, blocks, stripes, and
 * plain memory of a cache.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "programs.h"

enum { MOST_RANKS = 16, PLACE = 4096, LARGE = 60000, TAGS = 3 };
enum { OUT = 0, IN = MOST_RANKS * PLACE, WINDOW = 2 * IN, BIG = 3 * IN, ALL = BIG + 2 * LARGE };
/* Tags of arrivals. */
enum { LISTS, BLOCKS, EMPTY };

static struct {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_mr *mr;
    struct sluice_mr_cache *cache;
    uint8_t *memory, *plain;
    struct sluice_multichannel *counting, *messages;
    struct sluice_multichannel *pooled; /* all peers share its receives; NULL: on a device */
    struct sluice_channel *channels[2]; /* to the next rank, from the one before */
    struct sluice_list *lists[2];       /* of writes to all, and of messages with all */
    struct sluice_list *single;         /* of the channel to the next rank */
    struct sluice_remote_mr remotes[MOST_RANKS];
    uint64_t expected[TAGS], single_expected;
    uint32_t step;
} batch;

static uint8_t value(uint32_t from, uint32_t to, uint32_t at)
{
    return (uint8_t)(from * 43 + to * 19 + batch.step * 11 + at * 5 + (at >> 8));
}

static void fill(size_t place, uint32_t bytes, uint32_t to)
{
    for (uint32_t i = 0; i < bytes; i++) {
        batch.memory[place + i] = value(sim_rank(), to, i);
    }
}

static void check(size_t place, uint32_t bytes, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < bytes; i++) {
        must(batch.memory[place + i] == value(from, to, i),
             "step %u: byte %u of %u from rank %u is wrong", batch.step, i, bytes, from);
    }
}

static struct sluice_sge element(size_t place, uint32_t bytes)
{
    struct sluice_sge sge;
    must(sluice_mr_sge(batch.mr, place, bytes, &sge) == 0, "element: %s", sluice_last_error());
    return sge;
}

/* The place of this rank in the window of another one. */
static struct sluice_remote_mr window(uint32_t rank)
{
    struct sluice_remote_mr slice;
    must(sluice_remote_mr_slice(&batch.remotes[rank], WINDOW + sim_rank() * PLACE, PLACE, &slice) ==
             0,
         "slice: %s", sluice_last_error());
    return slice;
}

static struct sluice_request write_to(uint32_t rank, uint32_t tag)
{
    return (struct sluice_request){.opcode = SLUICE_OP_WRITE,
                                   .peer = rank,
                                   .flags = SLUICE_IMMEDIATE,
                                   .immediate = tag,
                                   .sge_count = 1,
                                   .sge = element(OUT + (size_t)rank * PLACE, PLACE),
                                   .remote = window(rank)};
}

static bool prepare_lists(void)
{
    struct sluice_request requests[2 * MOST_RANKS];
    uint32_t ranks = sim_ranks();
    for (uint32_t i = 0; i < ranks; i++) {
        requests[i] = write_to(i, LISTS);
    }
    batch.lists[0] = sluice_multichannel_list_prepare(batch.counting, requests, ranks);
    requests[0] = write_to(next_rank(), LISTS);
    requests[0].peer = 0;
    batch.single = sluice_channel_list_prepare(batch.channels[0], requests, 1);
    for (uint32_t i = 0; i < ranks; i++) {
        requests[i] = (struct sluice_request){.opcode = SLUICE_OP_SEND,
                                              .peer = i,
                                              .sge_count = 1,
                                              .sge = element(OUT + (size_t)i * PLACE, PLACE)};
        requests[ranks + i] = requests[i];
        requests[ranks + i].opcode = SLUICE_OP_RECEIVE;
        requests[ranks + i].sge = element(IN + (size_t)i * PLACE, PLACE);
    }
    batch.lists[1] = sluice_multichannel_list_prepare(batch.messages, requests, 2 * ranks);
    return works(batch.lists[0] != NULL && batch.lists[1] != NULL && batch.single != NULL,
                 "prepare a list");
}

/* Posts a list in one of all ways, and waits for it. */
static int post(struct sluice_list *list, struct sluice_multichannel *all)
{
    struct sluice_completion completions[2 * MOST_RANKS];
    struct sluice_scope *scope;
    int result = 0, ended;
    uint64_t way = below(3);
    if (way == 2) {
        scope = all != NULL ? sluice_multichannel_scope_begin(all, PATIENCE)
                            : sluice_channel_scope_begin(batch.channels[0], PATIENCE);
        must(scope != NULL, "scope: %s", sluice_last_error());
        result = sluice_scope_post_list(scope, list, NULL);
        ended = sluice_scope_end(scope, NULL);
        return result > 0 ? ended : result;
    }
    if (way == 0) {
        result = sluice_list_post(list, PATIENCE, completions);
        if (result == 0) {
            do {
                result = sluice_list_wait(list, SLUICE_MS(below(200)));
            } while (result == -ETIMEDOUT);
            return result == 0 ? sluice_list_result(list) : result;
        }
    }
    return result == -EAGAIN || way == 1 ? sluice_list_submit(list, PATIENCE, completions) : result;
}

/* Waits until all ranks have done something that counts with a tag. */
static bool await_arrivals(uint32_t tag, uint32_t from)
{
    uint64_t count = 0;
    int64_t began = sim_own_time();
    batch.expected[tag] += from;
    if (!well_with(sluice_multichannel_wait_arrivals(batch.counting, tag, batch.expected[tag],
                                                     PATIENCE) == 0,
                   ANYBODY, "wait for arrivals")) {
        return false;
    }
    in_time(began, PATIENCE, "arrivals");
    must(sluice_multichannel_arrivals(batch.counting, tag, &count) == 0 &&
             count == batch.expected[tag],
         "step %u: %lu arrivals of tag %u instead of %lu", batch.step, (unsigned long)count, tag,
         (unsigned long)batch.expected[tag]);
    return true;
}

/* The list of writes goes from another place to another one, with fewer bytes, or as it was. */
static bool post_writes(void)
{
    uint32_t bytes = 1 + (uint32_t)agreed(PLACE / 2), offset = (uint32_t)agreed(PLACE / 2);
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        struct sluice_sge sge = element(OUT + (size_t)i * PLACE + offset, bytes);
        fill(OUT + (size_t)i * PLACE + offset, bytes, i);
        must(sluice_list_set_length(batch.lists[0], i, 0) == 0 &&
                 sluice_list_aim(batch.lists[0], i, &sge, offset) == 0 &&
                 sluice_list_set_length(batch.lists[0], i, bytes) == 0,
             "aim: %s", sluice_last_error());
    }
    if (!well_with(post(batch.lists[0], batch.counting) == 0, ANYBODY, "a list of writes") ||
        !await_arrivals(LISTS, sim_ranks())) {
        return false;
    }
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        check(WINDOW + (size_t)i * PLACE + offset, bytes, i, sim_rank());
    }
    return true;
}

static bool post_messages(void)
{
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        fill(OUT + (size_t)i * PLACE, PLACE, i);
    }
    if (!well_with(post(batch.lists[1], batch.messages) == 0, ANYBODY, "a list of messages")) {
        return false;
    }
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        check(IN + (size_t)i * PLACE, PLACE, i, sim_rank());
    }
    return true;
}

/* The list of one write on a channel, whose other end counts. */
static bool post_single(void)
{
    uint64_t count = 0;
    fill(OUT + (size_t)next_rank() * PLACE, PLACE, next_rank());
    bool well = well_with(post(batch.single, NULL) == 0, next_rank(), "a list of a channel");
    batch.single_expected++;
    well &= well_with(sluice_channel_wait_arrivals(batch.channels[1], LISTS, batch.single_expected,
                                                   PATIENCE) == 0,
                      rank_before(), "wait for arrivals");
    if (well) {
        must(sluice_channel_arrivals(batch.channels[1], LISTS, &count) == 0 &&
                 count == batch.single_expected,
             "a channel counts %lu arrivals", (unsigned long)count);
        check(WINDOW + (size_t)rank_before() * PLACE, PLACE, rank_before(), sim_rank());
    }
    return well;
}

/* Messages of no bytes count as well. */
static bool send_empty(void)
{
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        if (!well_with(sluice_multichannel_send_immediate(batch.counting, i, NULL, 0, EMPTY,
                                                          PATIENCE) == 0,
                       i, "an empty message")) {
            return false;
        }
    }
    return await_arrivals(EMPTY, sim_ranks());
}

/* Blocks of the same bytes in total at both sides, in other places. */
static struct sluice_blocks draw_blocks(uint32_t count, uint32_t bytes, const uint32_t *indices)
{
    struct sluice_blocks blocks = {.size = sizeof blocks};
    struct sluice_layout strided = {.kind = SLUICE_LAYOUT_STRIDED,
                                    .count = count,
                                    .bytes = bytes,
                                    .stride = bytes + agreed(PLACE / count - bytes + 1)};
    struct sluice_layout paged = {
        .kind = SLUICE_LAYOUT_PAGED, .count = count, .bytes = bytes, .indices = indices};
    struct sluice_layout layouts[3] = {strided, paged, {.kind = SLUICE_LAYOUT_CONTIGUOUS}};
    blocks.local = layouts[agreed(2)];
    blocks.remote = layouts[agreed(2)];
    return blocks;
}

/* Where byte i of all blocks of a layout is. */
static size_t place_of(const struct sluice_layout *layout, uint32_t i)
{
    uint32_t block = (uint32_t)(i / layout->bytes);
    return (size_t)(layout->kind == SLUICE_LAYOUT_PAGED ? layout->indices[block] * layout->bytes
                                                        : block * layout->stride) +
           i % layout->bytes;
}

/* Writes blocks to all windows, or sends and receives them in other blocks. */
static bool move_blocks(void)
{
    uint32_t indices[8], count = 1 + (uint32_t)agreed(8), ranks = sim_ranks();
    uint32_t bytes = 1 + (uint32_t)agreed(PLACE / 8 - 1);
    struct sluice_blocks blocks, here = {.size = sizeof here};
    struct sluice_request requests[2 * MOST_RANKS];
    bool writes = agreed(2) == 0, well;
    for (uint32_t i = 0; i < count; i++) {
        indices[i] = (i * 3 + 1) % 8; /* no page twice */
    }
    blocks = draw_blocks(count, bytes, indices);
    here.local = blocks.remote;
    for (uint32_t i = 0; i < ranks; i++) {
        requests[i] = write_to(i, BLOCKS);
        requests[i].blocks = &blocks;
        for (uint32_t at = 0; at < count * bytes; at++) {
            batch.memory[OUT + i * PLACE + place_of(&blocks.local, at)] = value(sim_rank(), i, at);
        }
        if (!writes) {
            requests[i].opcode = SLUICE_OP_SEND;
            requests[i].flags = requests[i].immediate = 0;
            memset(&requests[i].remote, 0, sizeof requests[i].remote);
            requests[ranks + i] = requests[i];
            requests[ranks + i].opcode = SLUICE_OP_RECEIVE;
            requests[ranks + i].sge = element(IN + (size_t)i * PLACE, PLACE);
            requests[ranks + i].blocks = &here;
        }
    }
    if (!writes) {
        memset(&blocks.remote, 0, sizeof blocks.remote);
    }
    well = well_with(sluice_multichannel_submit(writes ? batch.counting : batch.messages, requests,
                                                writes ? ranks : 2 * ranks, PATIENCE, NULL) == 0,
                     ANYBODY, "blocks");
    well = well && (!writes || await_arrivals(BLOCKS, ranks));
    blocks.remote = here.local;
    for (uint32_t i = 0; well && i < ranks; i++) {
        for (uint32_t at = 0; at < count * bytes; at++) {
            size_t place = (writes ? WINDOW : IN) + i * PLACE + place_of(&blocks.remote, at);
            must(batch.memory[place] == value(i, sim_rank(), at),
                 "step %u: byte %u of the blocks of rank %u is wrong", batch.step, at, i);
        }
    }
    return well;
}

/* A large write, which goes over several queue pairs, and back; from plain memory or a region. */
static bool move_large(void)
{
    uint32_t next = next_rank(), bytes = 1 + (uint32_t)below(LARGE);
    bool plain = below(2) == 0, well;
    struct sluice_request request = {.opcode = SLUICE_OP_WRITE,
                                     .peer = next,
                                     .flags = plain ? SLUICE_PLAIN_MEMORY : 0,
                                     .sge_count = 1,
                                     .sge = element(BIG, bytes)};
    must(sluice_remote_mr_slice(&batch.remotes[next], BIG + LARGE, bytes, &request.remote) == 0,
         "slice: %s", sluice_last_error());
    fill(BIG, bytes, next);
    if (plain) {
        memcpy(batch.plain, batch.memory + BIG, bytes);
        request.sge = (struct sluice_sge){(uintptr_t)batch.plain, bytes, 0};
    }
    well = well_with(sluice_multichannel_submit(batch.messages, &request, 1, PATIENCE, NULL) == 0,
                     next, "a large write");
    memset(batch.memory + BIG, 0, bytes);
    memset(batch.plain, 0, bytes);
    request.opcode = SLUICE_OP_READ;
    well = well &&
           well_with(sluice_multichannel_submit(batch.messages, &request, 1, PATIENCE, NULL) == 0,
                     next, "a large read");
    if (well && plain) {
        memcpy(batch.memory + BIG, batch.plain, bytes);
    }
    if (well) {
        check(BIG, bytes, sim_rank(), next);
    }
    return well;
}

/* Receives of all peers together: a message of each takes one, whichever it is. */
static bool share_receives(void)
{
    struct sluice_request requests[MOST_RANKS];
    struct sluice_completion completion;
    uint32_t ranks = sim_ranks();
    bool came[MOST_RANKS] = {false}, well = true;
    int room;
    if (batch.pooled == NULL) {
        return true;
    }
    room = sluice_multichannel_receive_any_room(batch.pooled);
    must(room == 2 * MOST_RANKS, "an empty pool has room for %d receives", room);
    for (uint32_t i = 0; i < ranks; i++) {
        requests[i] = (struct sluice_request){
            .sge_count = 1, .sge = element(IN + (size_t)i * PLACE, PLACE), .user_data = i};
        fill(OUT + (size_t)i * PLACE, PLACE, i);
    }
    must(sluice_multichannel_post_receive_any(batch.pooled, requests, ranks, NULL) == (int)ranks,
         "receives of a pool: %s", sluice_last_error());
    for (uint32_t i = 0; i < ranks; i++) {
        struct sluice_sge sge = element(OUT + (size_t)i * PLACE, PLACE);
        well &= well_with(sluice_multichannel_send(batch.pooled, i, &sge, 1, PATIENCE) == 0, i,
                          "a send to a pool");
    }
    for (uint32_t i = 0; well && i < ranks; i++) {
        well = well_with(sluice_multichannel_next(batch.pooled, PATIENCE, &completion) == 0 &&
                             completion.error == 0,
                         ANYBODY, "a receive of a pool");
        if (well) {
            must(completion.opcode == SLUICE_OP_RECEIVE && !came[completion.peer],
                 "a message of rank %u comes twice", completion.peer);
            came[completion.peer] = true;
            check(IN + (size_t)completion.user_data * PLACE, PLACE, completion.peer, sim_rank());
        }
    }
    return well;
}

/* One receive that waits for a message of any rank, which is of the one before. */
static bool receive_any(void)
{
    struct sluice_sge out = element(OUT, PLACE), in = element(IN, PLACE);
    struct sluice_completion completion;
    struct sluice_handle handle;
    bool well;
    int result;
    if (batch.pooled == NULL) {
        return true;
    }
    fill(OUT, PLACE, next_rank());
    result = sluice_multichannel_post_send(batch.pooled, next_rank(), &out, 1, PATIENCE, &handle);
    well = well_with(result == 0, next_rank(), "a send to a pool");
    result = sluice_multichannel_receive_any(batch.pooled, &in, 1, PATIENCE, &completion);
    if (well_with(result == 0, ANYBODY, "a receive of any")) {
        must(completion.peer == rank_before(), "a message comes from rank %u", completion.peer);
        check(IN, PLACE, rank_before(), sim_rank());
    } else {
        well = false;
    }
    if (well) {
        must(sluice_multichannel_wait(batch.pooled, &handle, PATIENCE + SLUICE_S(3), &completion) ==
                 0,
             "wait: %s", sluice_last_error());
        well = well_with(completion.error == 0, next_rank(), "a send to a pool");
    }
    return well;
}

static struct sluice_multichannel *connect_all(uint32_t tags, uint32_t pool)
{
    struct sluice_channel_attr attr = {.size = sizeof attr,
                                       .receive_pool = pool,
                                       .receive_pool_low = pool == 0 ? 0 : pool - 1,
                                       .arrival_tags = tags,
                                       .queue_pairs = 1 + (uint32_t)below(3),
                                       .stripe_least = 1 + (uint32_t)below(20000),
                                       .staging = tags == 0 ? 16384 : 0,
                                       .mr_cache = tags == 0 ? batch.cache : NULL};
    struct sluice_endpoint own[MOST_RANKS], theirs[MOST_RANKS];
    static struct sluice_endpoint all[MOST_RANKS][MOST_RANKS];
    struct sluice_prepared_multichannel *prepared =
        sluice_multichannel_prepare(batch.pd, sim_ranks(), &attr);
    bool well = works(prepared != NULL, "prepare");
    memset(own, 0, sizeof own);
    if (well) {
        must(sluice_prepared_multichannel_endpoints(prepared, own, sim_ranks()) == 0, "endpoints");
    }
    sim_allgather(own, all, sizeof own);
    if (!all_well(well)) {
        sluice_prepared_multichannel_free(prepared);
        return NULL;
    }
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        theirs[i] = all[i][sim_rank()];
    }
    return sluice_prepared_multichannel_handshake(prepared, theirs, sim_ranks());
}

static bool connect_ring(void)
{
    struct sluice_channel_attr attr = {.size = sizeof attr, .arrival_tags = 1};
    struct sluice_prepared_channel *prepared[2];
    struct sluice_endpoint own[2], all[MOST_RANKS][2];
    bool well = true;
    memset(own, 0, sizeof own);
    for (uint32_t i = 0; i < 2; i++) {
        prepared[i] = sluice_channel_prepare(batch.pd, &attr);
        well = well && works(prepared[i] != NULL, "prepare") &&
               sluice_prepared_channel_endpoint(prepared[i], &own[i]) == 0;
    }
    sim_allgather(own, all, sizeof own);
    if (!all_well(well)) {
        sluice_prepared_channel_free(prepared[0]);
        sluice_prepared_channel_free(prepared[1]);
        return false;
    }
    batch.channels[0] = sluice_prepared_channel_handshake(prepared[0], &all[next_rank()][1]);
    batch.channels[1] = sluice_prepared_channel_handshake(prepared[1], &all[rank_before()][0]);
    return works(batch.channels[0] != NULL && batch.channels[1] != NULL, "handshake");
}

static bool begin(void)
{
    uint32_t access =
        SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE;
    struct sluice_context_info limits = {.size = sizeof limits};
    struct sluice_remote_mr own = {.addr = 0};
    bool well;
    batch.context = sluice_context_open(NULL, NULL);
    batch.pd = works(batch.context != NULL, "open") ? sluice_pd_alloc(batch.context) : NULL;
    if (batch.pd != NULL) {
        must(sluice_context_query(batch.context, &limits) == 0, "query");
        batch.mr = sluice_mr_alloc(batch.pd, ALL, access);
        batch.cache = sluice_mr_cache_create(batch.pd, SLUICE_ACCESS_LOCAL_WRITE, NULL);
    }
    batch.plain = malloc(LARGE);
    well = works(batch.mr != NULL && batch.cache != NULL && batch.plain != NULL, "memory");
    if (well) {
        batch.memory = sluice_mr_addr(batch.mr);
        sluice_mr_remote(batch.mr, &own);
    }
    sim_allgather(&own, batch.remotes, sizeof own);
    if (!all_well(well)) {
        return false;
    }
    batch.counting = connect_all(TAGS, 0);
    if (!all_well(works(batch.counting != NULL, "connect"))) {
        return false;
    }
    batch.messages = connect_all(0, 0);
    if (!all_well(works(batch.messages != NULL, "connect"))) {
        return false;
    }
    /* A rank whose device has died already uses memory and TCP instead. */
    if (all_well(strcmp(limits.transport, "soft") == 0)) {
        batch.pooled = connect_all(0, 2 * MOST_RANKS);
        if (!all_well(works(batch.pooled != NULL, "connect"))) {
            return false;
        }
    }
    return all_well(connect_ring()) && prepare_lists();
}

int run_batch(void)
{
    static bool (*const steps[])(void) = {post_writes, post_writes,    post_messages,
                                          post_single, send_empty,     move_blocks,
                                          move_large,  share_receives, receive_any};
    uint64_t most = sim_number("steps", agreed(25));
    bool well = sim_ranks() <= MOST_RANKS && all_well(begin());
    for (; well && batch.step < most; batch.step++) {
        uint64_t step = sim_number("step", agreed(sizeof steps / sizeof *steps));
        sim_note("step %u: kind %lu", batch.step, (unsigned long)step);
        well = all_well(steps[step]());
    }
    sluice_list_free(batch.lists[0]);
    sluice_list_free(batch.lists[1]);
    sluice_list_free(batch.single);
    sluice_multichannel_close(batch.counting);
    sluice_multichannel_close(batch.messages);
    sluice_multichannel_close(batch.pooled);
    sluice_channel_close(batch.channels[0]);
    sluice_channel_close(batch.channels[1]);
    must(sluice_mr_cache_destroy(batch.cache) == 0, "cache: %s", sluice_last_error());
    must(batch.mr == NULL || sluice_mr_deregister(batch.mr) == 0, "deregister: %s",
         sluice_last_error());
    free(batch.plain);
    sluice_pd_free(batch.pd);
    sluice_context_close(batch.context);
    return 0;
}
