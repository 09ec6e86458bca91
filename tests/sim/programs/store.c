/* SPDX-License-Identifier: MIT */
/*
 * Buffers by name in memory of an allocator: batches that are prepared and posted again, regions
 * that end while they are published, and a cache of regions.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs.h"

enum { MOST_RANKS = 16, SLOT = 4000, ACTIONS = 8, BLOCKS = 12, PORT = 7700, PLAIN = 30000 };

struct block {
    uint8_t *bytes; /* NULL: none */
    size_t size;
    uint8_t key;
    bool shared;
};

static struct {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_allocator *allocator;
    struct sluice_mr_cache *cache;
    struct block blocks[BLOCKS];
    uint8_t *plain, *memory, *given; /* of the cache, of actions, and what is published */
    struct sluice_buffer_service *service;
    struct sluice_buffer *buffer;
    struct sluice_buffer_handle handles[MOST_RANKS];
    uint8_t known[MOST_RANKS][SLOT]; /* what this rank wrote to the buffer of each */
    bool unknown[MOST_RANKS];
    uint32_t step;
    uint32_t released; /* regions that have ended */
} store;

/* Bytes from one that has a value to the next: of a long block only some have. */
static size_t pace(const struct block *block)
{
    return 1 + block->size / 2000;
}

static void fill(struct block *block)
{
    block->key = (uint8_t)below(256);
    for (size_t i = 0; i < block->size; i += pace(block)) {
        block->bytes[i] = (uint8_t)(block->key + i * 7);
    }
}

static void check(const struct block *block, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += pace(block)) {
        must(block->bytes[i] == (uint8_t)(block->key + i * 7),
             "step %u: byte %zu of a block of %zu has changed", store.step, i, block->size);
    }
}

static bool make_block(struct block *block)
{
    static const size_t sizes[] = {1, 100, 5000, 70000, 700000};
    size_t size = 1 + below(sizes[below(5)]), align = below(2) ? (size_t)1 << below(13) : 0;
    struct sluice_remote_mr remote;
    uint64_t way = below(4);
    block->shared = way == 0;
    block->bytes = way == 0   ? sluice_allocator_alloc_shared(store.allocator, size, &remote)
                   : way == 1 ? sluice_allocator_alloc_zeroed(store.allocator, size, align)
                   : way == 2 ? sluice_allocator_alloc(store.allocator, size, align)
                              : sluice_allocator_realloc(store.allocator, NULL, size, align);
    if (!well_with(block->bytes != NULL, sim_rank(), "a block")) {
        return false;
    }
    must(way == 0 ? remote.length >= size
                  : (uintptr_t)block->bytes % (align != 0 ? align : 64) == 0,
         "a block is too short, or not aligned");
    for (size_t i = 0; i < size && way < 2; i++) {
        must(block->bytes[i] == 0, "byte %zu of a block of zeros is not 0", i);
    }
    block->size = size;
    fill(block);
    return true;
}

static void end_block(struct block *block)
{
    int result;
    check(block, block->size);
    switch (below(3)) {
    case 0:
        result = sluice_allocator_free(store.allocator, block->bytes);
        break;
    case 1:
        result = sluice_allocator_free_wait(store.allocator, block->bytes, 0);
        break;
    default:
        result = sluice_allocator_release(store.allocator, block->bytes, NULL, NULL);
        break;
    }
    must(result == 0, "free: %d: %s", result, sluice_last_error());
    block->bytes = NULL;
}

/* Blocks of all sizes come and go, and none overlaps another one. */
static bool allocate(void)
{
    struct sluice_allocator_info info = {.size = sizeof info};
    uint64_t count = 0;
    bool well = true;
    for (uint64_t i = below(30); well && i > 0; i--) {
        struct block *block = &store.blocks[below(BLOCKS)];
        struct sluice_sge sge;
        if (block->bytes == NULL) {
            well = make_block(block);
        } else if (below(3) == 0 && !block->shared) {
            size_t size = 1 + below(2 * block->size),
                   kept = size < block->size ? size : block->size;
            void *bytes = sluice_allocator_realloc(store.allocator, block->bytes, size, 0);
            well = well_with(bytes != NULL, sim_rank(), "another size");
            if (well) {
                block->bytes = bytes;
                check(block, kept);
                block->size = size;
                fill(block);
            }
        } else if (below(2)) {
            size_t at = below(block->size);
            must(sluice_allocator_sge(store.allocator, block->bytes + at, block->size - at, &sge) ==
                         0 &&
                     sge.lkey == sluice_mr_lkey(sluice_allocator_mr(store.allocator, block->bytes)),
                 "an element of a block: %s", sluice_last_error());
        } else {
            end_block(block);
        }
    }
    for (uint32_t i = 0; i < BLOCKS; i++) {
        count += store.blocks[i].bytes != NULL;
        if (store.blocks[i].bytes != NULL) {
            check(&store.blocks[i], store.blocks[i].size);
        }
    }
    must(sluice_allocator_query(store.allocator, &info) == 0 && info.blocks == count + 2 &&
             info.released == 0,
         "an allocator counts %lu blocks of %lu", (unsigned long)info.blocks,
         (unsigned long)count + 2);
    must(sluice_allocator_trim(store.allocator) == 0, "trim: %s", sluice_last_error());
    return well;
}

/* Regions of plain memory overlap, and are forgotten once all were put back. */
static bool use_cache(void)
{
    struct sluice_mr_cache_info info = {.size = sizeof info};
    struct sluice_mr *regions[6];
    uint32_t count = 1 + (uint32_t)below(6), made = 0;
    size_t at[6], length[6];
    for (; made < count; made++) {
        struct sluice_sge sge;
        at[made] = below(PLAIN);
        length[made] = 1 + below(PLAIN - at[made]);
        regions[made] = sluice_mr_cache_get(store.cache, store.plain + at[made], length[made]);
        if (!well_with(regions[made] != NULL, sim_rank(), "a region of the cache")) {
            break;
        }
        must(sluice_mr_sge_at(regions[made], store.plain + at[made], length[made], &sge) == 0,
             "a region of the cache is too short: %s", sluice_last_error());
    }
    must(sluice_mr_cache_query(store.cache, &info) == 0 && (made == 0 || info.used > 0),
         "a cache counts %u regions in use", info.used);
    must(made == 0 || sluice_mr_cache_forget(store.cache, store.plain + at[0], length[0]) == -EBUSY,
         "a region is forgotten that is in use");
    for (uint32_t i = 0; i < made; i++) {
        must(sluice_mr_cache_put(store.cache, regions[i]) == 0, "put: %s", sluice_last_error());
    }
    must(sluice_mr_cache_forget(store.cache, store.plain, PLAIN) == 0 &&
             sluice_mr_cache_query(store.cache, &info) == 0 && info.regions == 0,
         "%u regions of a cache are left: %s", info.regions, sluice_last_error());
    return made == count;
}

static void region_ended(void *argument)
{
    (void)argument;
    store.released++;
}

/* A region that is published ends with its buffer, and not before. */
static bool publish_and_end(void)
{
    size_t offset = below(100), length = 1 + below(5000);
    struct sluice_mr *mr = sluice_mr_alloc(store.pd, offset + length,
                                           SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_LOCAL_WRITE);
    struct sluice_buffer *buffer;
    uint32_t before = store.released;
    int result;
    if (!well_with(mr != NULL, sim_rank(), "memory")) {
        return false;
    }
    must(sluice_mr_page_size(mr) == 0, "a simulated host lists the pages of a process");
    buffer = sluice_buffer_publish_mr(store.service, mr, offset, length, SLUICE_ACCESS_REMOTE_READ);
    if (!well_with(buffer != NULL, sim_rank(), "publish a part of a region")) {
        must(sluice_mr_deregister(mr) == 0, "deregister: %s", sluice_last_error());
        return false;
    }
    must(sluice_buffer_addr(buffer) == (char *)sluice_mr_addr(mr) + offset,
         "a buffer is at another address");
    must(sluice_mr_deregister_wait(mr, (int64_t)below(1000000)) == -ETIMEDOUT,
         "a region ends that is published");
    if (below(2)) {
        result = sluice_mr_release(mr, region_ended, NULL);
        must(result == 1 && store.released == before, "a region ends that is published: %d",
             result);
        sluice_buffer_release(buffer);
        must(store.released == before + 1, "a region is left of a released buffer");
    } else {
        sluice_buffer_release(buffer);
        must(sluice_mr_deregister_wait(mr, SLUICE_S(1)) == 0, "deregister: %s",
             sluice_last_error());
    }
    return true;
}

/* Actions on the slots of this rank, no two on the same bytes. */
static uint32_t draw(struct sluice_buffer_action *actions)
{
    uint32_t count = 1 + (uint32_t)below(ACTIONS);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t to = (uint32_t)below(sim_ranks());
        size_t part = SLOT / ACTIONS, length = 1 + below(part);
        actions[i] = (struct sluice_buffer_action){
            .opcode = below(2) == 0 ? SLUICE_OP_READ : SLUICE_OP_WRITE,
            .handle = &store.handles[to],
            .offset = sim_rank() * SLOT + i * part + below(part - length + 1),
            .length = length,
            .addr = store.memory + (size_t)i * SLOT,
            .mr = below(3) == 0 ? NULL : sluice_allocator_mr(store.allocator, store.memory),
            .user_data = (uint64_t)i << 32 | to,
        };
    }
    return count;
}

/* An action has ended: what was read is what this rank wrote. */
static bool take(const struct sluice_buffer_action *action,
                 const struct sluice_completion *completion)
{
    uint32_t to = (uint32_t)action->user_data;
    uint8_t *known = store.known[to] + action->offset % SLOT;
    must(completion->user_data == action->user_data, "a completion is of another action");
    if (!well_with(completion->error == 0, to, "an action")) {
        store.unknown[to] |= action->opcode == SLUICE_OP_WRITE;
        return false;
    }
    if (action->opcode == SLUICE_OP_WRITE) {
        memcpy(known, action->addr, action->length);
    } else {
        must(store.unknown[to] || memcmp(known, action->addr, action->length) == 0,
             "step %u: bytes of the buffer of rank %u are wrong", store.step, to);
    }
    return true;
}

/* Waits for the batch in one of all ways. Returns how many completions were taken. */
static uint32_t await(struct sluice_buffer_batch *batch, const struct sluice_buffer_action *actions,
                      bool *well)
{
    struct sluice_completion completions[ACTIONS];
    uint64_t way = below(4);
    uint32_t taken = 0;
    bool ended = false;
    int result = 0;
    while (way < 3 && result >= 0) {
        if (way == 0) {
            result = sluice_buffer_batch_next(batch, PATIENCE + SLUICE_S(3), completions);
            result = result == 0 ? 1 : result;
            must(result == 1 || result == -ENOENT, "next: %d: %s", result, sluice_last_error());
        } else {
            result = sluice_buffer_batch_poll(batch, completions, 1 + (uint32_t)below(ACTIONS));
            must(result >= 0, "poll: %s", sluice_last_error());
        }
        for (int i = 0; i < result; i++, taken++) {
            *well &= take(&actions[completions[i].user_data >> 32], &completions[i]);
        }
        if (result == 0 && ended) {
            break;
        }
        ended = result == 0 && sluice_buffer_batch_wait(batch, 0) == 0;
        if (result == 0 && way == 1 && !ended) {
            int64_t due = 0;
            struct pollfd pollfd = {.fd = sluice_buffer_batch_fd(batch), .events = POLLIN};
            if (pollfd.fd < 0) {
                way = 0;
            } else if (sluice_buffer_batch_arm(batch, &due) == 0) {
                (void)poll(&pollfd, 1, due < PATIENCE ? (int)(due / 1000000) + 1 : 60000);
            }
        } else if (result == 0 && !ended) {
            sim_pause((int64_t)below(200000));
        }
    }
    result = sluice_buffer_batch_wait(batch, PATIENCE + SLUICE_S(3));
    must(result == 0, "wait: %d: %s", result, sluice_last_error());
    return way < 3 ? taken : 0;
}

/* A batch is prepared once, and posted several times. */
static bool post(void)
{
    struct sluice_buffer_action actions[ACTIONS];
    struct sluice_completion completions[ACTIONS];
    uint32_t count = draw(actions);
    struct sluice_buffer_batch *batch = sluice_buffer_batch_prepare(store.service, actions, count);
    bool well = well_with(batch != NULL, sim_rank(), "prepare a batch");
    for (uint64_t i = 1 + below(4); well && i > 0; i--) {
        int64_t began = sim_own_time();
        uint32_t taken;
        for (size_t at = 0; at < (size_t)ACTIONS * SLOT; at += 13) {
            store.memory[at] = (uint8_t)below(256);
        }
        must(sluice_buffer_batch_post(batch, PATIENCE) == 0, "post: %s", sluice_last_error());
        taken = await(batch, actions, &well);
        in_time(began, PATIENCE, "a batch");
        must(taken == 0 || taken == count, "%u of %u actions were taken", taken, count);
        (void)!sluice_buffer_batch_results(batch, completions);
        for (uint32_t at = 0; at < count; at++) {
            if (taken == 0) {
                well &= take(&actions[at], &completions[at]);
            }
        }
    }
    sluice_buffer_batch_free(batch);
    return well;
}

/* Single calls, and what is known of the connection that they made. */
static bool move(void)
{
    uint32_t to = (uint32_t)below(sim_ranks());
    size_t at = below(SLOT), length = SLOT - at;
    struct sluice_mr *mr = below(2) ? NULL : sluice_allocator_mr(store.allocator, store.memory);
    const struct sluice_buffer_handle *handle = &store.handles[to];
    struct sluice_buffer_info info = {.size = sizeof info};
    struct sluice_channel_info channel = {.size = sizeof channel};
    struct sluice_remote_mr remote;
    must(sluice_buffer_handle_query(handle, &info) == 0 &&
             info.length == (uint64_t)sim_ranks() * SLOT &&
             info.access == (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE),
         "a handle is of another buffer: %s", sluice_last_error());
    for (size_t i = 0; i < length; i++) {
        store.memory[i] = (uint8_t)below(256);
    }
    if (!well_with(sluice_buffer_write(store.service, handle, sim_rank() * SLOT + at, mr,
                                       store.memory, length, PATIENCE) == 0,
                   to, "a write to a buffer")) {
        store.unknown[to] = true;
        return false;
    }
    memcpy(store.known[to] + at, store.memory, length);
    if (!well_with(sluice_buffer_read(store.service, handle, sim_rank() * SLOT, mr, store.memory,
                                      SLOT, PATIENCE) == 0,
                   to, "a read of a buffer")) {
        return false;
    }
    must(store.unknown[to] || memcmp(store.memory, store.known[to], SLOT) == 0,
         "step %u: bytes of the buffer of rank %u are wrong", store.step, to);
    must(sluice_buffer_remote(store.service, handle, NULL, &remote) == 0 &&
             remote.length == info.length,
         "the memory of a buffer: %s", sluice_last_error());
    return well_with(sluice_buffer_connection_query(store.service, handle, &channel) == 0 &&
                         channel.level > 0,
                     to, "the connection of a buffer");
}

/* Checks the devices of the host, and the description of this process. */
static void look_around(void)
{
    struct sluice_device_list *list = sluice_device_list_get();
    struct sluice_launch_info launch = {.size = sizeof launch};
    uint32_t count = list != NULL ? sluice_device_list_count(list) : 0, taken = 0;
    must(list == NULL || count > 0, "there is no device");
    for (uint32_t i = 0; i < count; i++) {
        struct sluice_device_info info = {.size = sizeof info};
        struct sluice_choice_info choice = {.size = sizeof choice};
        struct sluice_port_info port = {.size = sizeof port};
        struct sluice_gid_info gid = {.size = sizeof gid};
        must(sluice_device_list_info(list, i, &info) == 0 &&
                 (sluice_device_list_choice(list, i, NULL, &choice) == 0 || sim_is_troubled()),
             "device %u: %s", i, sluice_last_error());
        taken += choice.verdict == SLUICE_CHOICE_TAKEN;
        must(info.ports == 0 || sluice_device_list_port(list, i, 1, &port) == 0 ||
                 sim_is_troubled(),
             "port: %s", sluice_last_error());
        must(info.gids == 0 || sluice_device_list_gid(list, i, 0, &gid) == 0 || sim_is_troubled(),
             "address: %s", sluice_last_error());
    }
    works(count == 0 || (taken == 1 && sluice_device_list_nearest(list, 0) >= 0),
          "the device that is taken");
    sluice_device_list_free(list);
    works(sluice_launch_query(&launch) == 0 && launch.rank == sim_rank() &&
              launch.ranks == sim_ranks(),
          "launch");
}

static bool begin(void)
{
    uint32_t access =
        SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE;
    struct sluice_allocator_attr attr = {.size = sizeof attr,
                                         .slab_bytes = (uint64_t)(1 + below(4)) << 20};
    struct sluice_mr_cache_attr limits = {.size = sizeof limits, .max_regions = 6};
    struct sluice_buffer_service_attr service = {.size = sizeof service};
    struct sluice_remote_mr remote;
    char address[32];
    look_around();
    store.context = sluice_context_open(NULL, NULL);
    store.pd = works(store.context != NULL, "open") ? sluice_pd_alloc(store.context) : NULL;
    if (store.pd != NULL) {
        store.allocator = sluice_allocator_create(store.pd, access, &attr);
        store.cache = sluice_mr_cache_create(store.pd, SLUICE_ACCESS_LOCAL_WRITE, &limits);
    }
    store.plain = malloc(PLAIN);
    if (!works(store.allocator != NULL && store.cache != NULL && store.plain != NULL, "memory")) {
        return false;
    }
    store.memory = sluice_allocator_alloc(store.allocator, (size_t)ACTIONS * SLOT, 0);
    store.given =
        sluice_allocator_alloc_shared(store.allocator, (size_t)sim_ranks() * SLOT, &remote);
    snprintf(address, sizeof address, ":%u", PORT + sim_rank());
    service.address = address;
    store.service = sluice_buffer_service_open(&store.pd, 1, &service);
    return works(store.memory != NULL && store.given != NULL && store.service != NULL, "service");
}

static bool publish(void)
{
    struct sluice_buffer_handle own;
    memset(&own, 0, sizeof own);
    store.buffer = sluice_buffer_publish_mr(
        store.service, sluice_allocator_mr(store.allocator, store.given), 0,
        (size_t)sim_ranks() * SLOT, SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE);
    if (!all_well(works(store.buffer != NULL, "publish") &&
                  works(sluice_buffer_export(store.buffer, &own) == 0, "handle"))) {
        return false;
    }
    sim_allgather(&own, store.handles, sizeof own);
    return true;
}

static void end(void)
{
    sluice_buffer_release(store.buffer);
    sluice_buffer_service_close(store.service);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        if (store.blocks[i].bytes != NULL) {
            end_block(&store.blocks[i]);
        }
    }
    if (store.allocator != NULL) {
        must(sluice_allocator_free(store.allocator, store.memory) == 0 &&
                 sluice_allocator_free(store.allocator, store.given) == 0 &&
                 sluice_allocator_destroy(store.allocator) == 0,
             "the end of an allocator: %s", sluice_last_error());
    }
    must(sluice_mr_cache_destroy(store.cache) == 0, "cache: %s", sluice_last_error());
    free(store.plain);
    sluice_pd_free(store.pd);
    sluice_context_close(store.context);
}

int run_store(void)
{
    static bool (*const steps[])(void) = {post, post, move, allocate, use_cache, publish_and_end};
    uint64_t most = sim_number("steps", agreed(25));
    bool well = sim_ranks() <= MOST_RANKS && all_well(begin()) && publish();
    for (; well && store.step < most; store.step++) {
        uint64_t step = sim_number("step", agreed(sizeof steps / sizeof *steps));
        sim_note("step %u: kind %lu", store.step, (unsigned long)step);
        well = all_well(steps[step]());
    }
    end();
    return 0;
}
