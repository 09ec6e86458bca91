/* SPDX-License-Identifier: MIT */
/* Requests with plain memory, in each form, and mistakes in some. */
#include <stdlib.h>
#include <sys/mman.h>

#include <sluice/blocks.h>

#include "plain_memory.h"

/*
 * Bytes arrive; the memory is pinned while the request is posted; the second time the cache has it.
 */
TEST(plain_memory_serves_requests)
{
    struct sluice_completion completion;
    struct sluice_sge far;
    struct plain work;

    plain_open_usual(&work);
    struct sluice_channel *near = work.pair.channels[0], *peer = work.pair.channels[1];
    far = memory_sge(&work.far, 0, BYTES);
    struct sluice_request receive = plain_request(&work, SLUICE_OP_RECEIVE, 1, BYTES);
    struct sluice_handle handle = post(near, &receive);
    require_error(plain_forget(&work, 1), -EBUSY, "in use");
    pattern_fill(work.far.bytes, BYTES, 1);
    require_ok(sluice_channel_send(peer, &far, 1, DEADLINE));
    completion = await(near, handle, SLUICE_CLASS_NONE);
    require(completion.user_data == 101 && completion.bytes == BYTES, "%llu bytes",
            (unsigned long long)completion.bytes);
    pattern_check(plain_page(&work, 1), BYTES, 1);
    require_ok(plain_forget(&work, 1));

    require_ok(sluice_channel_post_receive(peer, &far, 1, DEADLINE, NULL));
    pattern_fill(plain_page(&work, 2), BYTES, 2);
    struct sluice_request send = plain_request(&work, SLUICE_OP_SEND, 2, BYTES);
    require_ok(sluice_channel_submit(near, &send, 1, DEADLINE, &completion));
    require(completion.user_data == 102, "%llu", (unsigned long long)completion.user_data);
    require_ok(sluice_channel_flush(peer, DEADLINE));
    pattern_check(work.far.bytes, BYTES, 2);

    pattern_fill(plain_page(&work, 3), BYTES, 3);
    struct sluice_request write = plain_request(&work, SLUICE_OP_WRITE, 3, BYTES);
    require_ok(sluice_channel_submit(near, &write, 1, DEADLINE, NULL));
    pattern_check(work.far.bytes + 3 * BYTES, BYTES, 3);
    struct sluice_request read = plain_request(&work, SLUICE_OP_READ, 4, BYTES);
    pattern_fill(work.far.bytes + 4 * BYTES, BYTES, 4);
    require_ok(sluice_channel_submit(near, &read, 1, DEADLINE, NULL));
    pattern_check(plain_page(&work, 4), BYTES, 4);

    struct sluice_mr_cache_info before = plain_query(&work);
    require(before.regions == 3 && before.used == 0, "%u regions", before.regions);
    for (uint32_t i = 0; i < 100; i++)
        require_ok(sluice_channel_submit(near, &read, 1, DEADLINE, NULL));
    require(plain_query(&work).misses == before.misses &&
                plain_query(&work).hits == before.hits + 100,
            "%llu", (unsigned long long)plain_query(&work).misses);
    plain_close(&work);
}

TEST(plain_memory_takes_old_values)
{
    const uint32_t atomic = SLUICE_ACCESS_REMOTE_ATOMIC;
    struct plain work;

    plain_open_usual(&work);
    if (context_info(work.pair.sides.contexts[0]).atomics == SLUICE_ATOMICS_NONE) {
        plain_close(&work);
        return;
    }
    struct memory words;
    memory_open_at(&words, work.pair.sides.pds[1], 8, ACCESS_ALL | atomic, 0);
    struct sluice_request add = plain_request(&work, SLUICE_OP_FETCH_ADD, 5, 8);
    uint64_t value = 40, old;
    memcpy(words.bytes, &value, 8);
    add.remote = memory_remote(&words, 0, 8);
    add.operand[0] = 2;
    require_ok(sluice_channel_submit(work.pair.channels[0], &add, 1, DEADLINE, NULL));
    memcpy(&old, plain_page(&work, 5), 8);
    memcpy(&value, words.bytes, 8);
    require(old == 40 && value == 42, "%llu, %llu", (unsigned long long)old,
            (unsigned long long)value);
    memory_close(&words);
    plain_close(&work);
}

/* Plain requests beside registered and inline ones, with many elements, of which some are empty. */
TEST(lists_may_be_mixed)
{
    enum { REQUESTS = 6 };
    struct sluice_completion completions[REQUESTS];
    struct sluice_request list[REQUESTS];
    struct sluice_sge sges[4], none[2];
    struct memory own;
    struct plain work;

    plain_open_usual(&work);
    memory_open(&own, work.pair.sides.pds[0], 64);
    memset(own.bytes, 9, 64);
    for (uint32_t i = 0; i < PAGES; i++)
        memset(plain_page(&work, i), (int)i + 1, 64);
    for (uint32_t i = 0; i < REQUESTS; i++)
        list[i] = plain_request(&work, SLUICE_OP_WRITE, i, 64);
    for (uint32_t i = 0; i < 4; i++)
        sges[i] = plain_sge(&work, 8 + 2 * i, i % 2 ? 0 : 64);
    none[0] = none[1] = (struct sluice_sge){.lkey = 7};
    list[0].sges = sges;
    list[0].sge_count = 4;
    list[1].flags = 0;
    list[1].sge = memory_sge(&own, 0, 64);
    list[2].flags |= SLUICE_INLINE;
    list[3].sges = none;
    list[3].sge_count = 2;
    list[4].flags |= SLUICE_FENCE;
    require_ok(sluice_channel_submit(work.pair.channels[0], list, REQUESTS, DEADLINE, completions));
    value_check(work.far.bytes, 64, 9);
    value_check(work.far.bytes + 64, 64, 13);
    value_check(work.far.bytes + BYTES, 64, 9);
    for (uint32_t i = 2; i < REQUESTS; i++)
        value_check(work.far.bytes + (size_t)i * BYTES, i == 3 ? 0 : 64, (uint8_t)(i + 1));
    for (uint32_t i = 0; i < REQUESTS; i++)
        require(completions[i].error == 0 && completions[i].user_data == 100 + i, "%u", i);
    /* Requests 8, 12, 4 and 5: not 2, which is inline, nor those without bytes. */
    require(plain_query(&work).misses == 4, "%llu", (unsigned long long)plain_query(&work).misses);
    memory_close(&own);
    plain_close(&work);
}

/*
 * All blocks are in one region, however many parts they are split into; so are the parts of a long
 * one.
 */
TEST(parts_share_a_region)
{
    const struct sluice_channel_attr attr = {.max_message = BYTES, .send_depth = 3};
    const uint32_t pages[] = {6, 0, 3};
    struct sluice_blocks blocks = {.size = sizeof blocks, .local_length = 8 * BYTES};
    struct plain work;

    plain_open(&work, ACCESS_ALL, NULL, attr);
    blocks.local =
        (struct sluice_layout){SLUICE_LAYOUT_PAGED, COUNT(pages), BYTES, .indices = pages};
    struct sluice_request read = plain_request(&work, SLUICE_OP_READ, 0, 1);
    read.blocks = &blocks;
    read.remote = memory_remote(&work.far, 0, PAGES * BYTES);
    pattern_fill(work.far.bytes, 3 * BYTES, 7);
    require_ok(sluice_channel_submit(work.pair.channels[0], &read, 1, DEADLINE, NULL));
    for (uint32_t i = 0; i < 3; i++)
        require(memcmp(work.bytes + (size_t)pages[i] * BYTES, work.far.bytes + (size_t)i * BYTES,
                       BYTES) == 0,
                "page %u", i);
    require(plain_query(&work).misses == 1 && plain_query(&work).bytes >= 8 * BYTES, "%llu bytes",
            (unsigned long long)plain_query(&work).bytes);
    read.blocks = NULL;
    read.sge.length = PAGES * BYTES - 100;
    pattern_fill(work.far.bytes, PAGES * BYTES, 9);
    require_ok(sluice_channel_submit(work.pair.channels[0], &read, 1, DEADLINE, NULL));
    pattern_check(work.bytes, PAGES * BYTES - 100, 9);
    require(plain_query(&work).misses == 2 && plain_query(&work).used == 0, "%llu",
            (unsigned long long)plain_query(&work).misses);
    plain_close(&work);
}

static void require_nothing_posted(const struct plain *work)
{
    struct sluice_completion completion;

    require_result(sluice_channel_next(work->pair.channels[0], 0, &completion), -ENOENT);
    require(plain_query(work).used == 0, "%u used", plain_query(work).used);
}

/* The text names the request and its element; requests before it are not posted either. */
TEST(mistakes_post_nothing)
{
    const struct sluice_mr_cache_attr limits = {.size = sizeof limits, .max_regions = 2};
    struct sluice_request list[4];
    struct sluice_sge sges[2];
    struct plain work;

    plain_open(&work, ACCESS_ALL, &limits, (struct sluice_channel_attr){0});
    struct sluice_channel *near = work.pair.channels[0];
    for (uint32_t i = 0; i < 4; i++)
        list[i] = plain_request(&work, SLUICE_OP_RECEIVE, 2 * i, 64);
    require_error(sluice_channel_post(near, list, 4, DEADLINE, NULL), -ENOBUFS,
                  "request 2 element 0 2 regions");
    /* Protected and not unmapped, as another thread may map something there. */
    require(mprotect(plain_page(&work, 8), BYTES, PROT_NONE) == 0, "%s", strerror(errno));
    sges[0] = plain_sge(&work, 0, 64);
    sges[1] = plain_sge(&work, 8, 64);
    list[1].sges = sges;
    list[1].sge_count = 2;
    require_error(sluice_channel_post(near, list, 2, DEADLINE, NULL), -EFAULT,
                  "request 1 element 1 not mapped");
    require_error(sluice_channel_submit(near, list, 2, DEADLINE, NULL), -EFAULT, "request 1");
    sges[1].addr = UINT64_MAX - 5;
    require_error(sluice_channel_post(near, list, 2, DEADLINE, NULL), -EINVAL,
                  "request 1 element 1 64 bytes wraps");
    sges[1].addr = 0;
    require_error(sluice_channel_submit(near, list, 2, DEADLINE, NULL), -EINVAL,
                  "request 1 element 1 NULL");
    list[0].flags |= UINT32_C(1) << 30;
    require_error(sluice_channel_post(near, list, 1, DEADLINE, NULL), -EINVAL,
                  "request 0 0x40000000 receive");
    list[0] = plain_request(&work, SLUICE_OP_SEND, 0, 64);
    require_error(sluice_channel_post(work.pair.channels[1], list, 1, DEADLINE, NULL), -EINVAL,
                  "request 0 mr_cache");
    require_result(sluice_channel_post(near, list, 1, 0, NULL), -ETIMEDOUT);
    require_result(sluice_channel_submit(near, list, 1, 0, NULL), -ETIMEDOUT);
    require_nothing_posted(&work);
    require_error(sluice_mr_cache_destroy(work.cache), -EBUSY, "1 channel");
    plain_close(&work);
}

/* Memory that is written to needs the right to write; memory that is read does not. */
TEST(rights_of_the_cache_hold)
{
    struct sluice_channel_attr attr = {.size = sizeof attr};
    struct sluice_request list[2];
    struct plain work;
    uint64_t nothing[16] = {0};

    plain_open(&work, 0, NULL, (struct sluice_channel_attr){0});
    list[0] = plain_request(&work, SLUICE_OP_WRITE, 0, 64);
    list[1] = plain_request(&work, SLUICE_OP_READ, 0, 64);
    require_error(sluice_channel_submit(work.pair.channels[0], list, 2, DEADLINE, NULL), -EINVAL,
                  "request 1 read LOCAL_WRITE");
    list[1] = plain_request(&work, SLUICE_OP_RECEIVE, 0, 64);
    require_error(sluice_channel_post(work.pair.channels[0], list, 2, DEADLINE, NULL), -EINVAL,
                  "request 1 receive LOCAL_WRITE");
    require_nothing_posted(&work);
    memset(work.bytes, 5, 64);
    require_ok(sluice_channel_submit(work.pair.channels[0], list, 1, DEADLINE, NULL));
    value_check(work.far.bytes, 64, 5);

    struct sluice_pd *other = made(sluice_pd_alloc(work.pair.sides.contexts[0]));
    attr.mr_cache = work.cache;
    require_null(sluice_channel_prepare(other, &attr), EINVAL, "protection domain");
    require_null(sluice_multichannel_prepare(other, 2, &attr), EINVAL, "protection domain");
    attr.mr_cache = (struct sluice_mr_cache *)(void *)nothing;
    require_null(sluice_channel_prepare(work.pair.sides.pds[0], &attr), EINVAL, "cache");
    sluice_pd_free(other);
    plain_close(&work);
}

/* Only as many requests are posted as there is room for, and memory of the others is not pinned. */
TEST(unposted_memory_is_not_pinned)
{
    const struct sluice_channel_attr attr = {.send_depth = 4, .receive_depth = 4};
    struct sluice_completion completions[8];
    struct sluice_request list[8];
    struct plain work;

    plain_open(&work, ACCESS_ALL, NULL, attr);
    struct sluice_channel *near = work.pair.channels[0];
    for (uint32_t i = 0; i < 8; i++)
        list[i] = plain_request(&work, SLUICE_OP_RECEIVE, 2 * i, 64);
    require_result(sluice_channel_post(near, list, 8, DEADLINE, NULL), 4);
    require_result(sluice_channel_post(near, list + 4, 1, DEADLINE, NULL), -EAGAIN);
    for (uint32_t i = 0; i < 8; i++)
        require_result(plain_forget(&work, 2 * i), i < 4 ? -EBUSY : 0);
    for (uint32_t i = 0; i < 4; i++) {
        require_ok(sluice_channel_send(work.pair.channels[1], NULL, 0, DEADLINE));
        require_ok(sluice_channel_next(near, DEADLINE, &completions[i]));
        require(completions[i].user_data == 100 + 2 * i, "%llu",
                (unsigned long long)completions[i].user_data);
        require_ok(plain_forget(&work, 2 * i));
    }
    /* Requests that wait for room within a call are posted later in it. */
    for (uint32_t i = 0; i < 8; i++)
        list[i] = plain_request(&work, SLUICE_OP_WRITE, i, 64);
    require_ok(sluice_channel_submit(near, list, 8, DEADLINE, completions));
    for (uint32_t i = 0; i < 8; i++)
        require(completions[i].error == 0 && completions[i].user_data == 100 + i, "%u", i);
    plain_close(&work);
}

/* A scope that posts more than there is room for, and ends with requests in flight. */
TEST(scopes_take_plain_memory)
{
    const struct sluice_channel_attr attr = {.send_depth = 4, .receive_depth = 4};
    struct sluice_completion completion;
    struct sluice_handle handles[12];
    struct sluice_request list[12];
    struct plain work;

    plain_open(&work, ACCESS_ALL, NULL, attr);
    for (uint32_t i = 0; i < 12; i++) {
        list[i] = plain_request(&work, SLUICE_OP_WRITE, i, 64);
        memset(plain_page(&work, i), (int)i + 1, 64);
    }
    struct sluice_scope *scope = made(sluice_channel_scope_begin(work.pair.channels[0], DEADLINE));
    require_result(sluice_scope_post(scope, list, 12, handles), 12);
    require_ok(sluice_scope_wait(scope, &handles[11], DEADLINE, &completion));
    require(completion.user_data == 111, "%llu", (unsigned long long)completion.user_data);
    for (uint32_t i = 0; i < 12; i++)
        value_check(work.far.bytes + (size_t)i * BYTES, 64, (uint8_t)(i + 1));
    list[1] = plain_request(&work, SLUICE_OP_RECEIVE, 2, 64);
    list[0] = plain_request(&work, SLUICE_OP_RECEIVE, 0, 64);
    require_result(sluice_scope_post_gather_receive(scope, list, 2, NULL), 2);
    require_result(plain_forget(&work, 0), -EBUSY);
    list[0].sge.addr = 0;
    require_error(sluice_scope_post(scope, list, 1, NULL), -EINVAL, "request 0 NULL");
    for (uint32_t i = 0; i < 2; i++)
        require_ok(sluice_channel_send(work.pair.channels[1], NULL, 0, DEADLINE));
    require_ok(sluice_scope_end(scope, NULL));
    require_ok(plain_forget(&work, 0));
    plain_close(&work);
}

/* The memory of a prepared list is registered exactly as long as the list exists. */
TEST(prepared_lists_keep_plain_memory)
{
    struct sluice_request list[2];
    struct plain work;

    plain_open_usual(&work);
    list[0] = plain_request(&work, SLUICE_OP_WRITE, 0, 64);
    list[1] = plain_request(&work, SLUICE_OP_READ, 2, 64);
    struct sluice_list *prepared =
        made(sluice_channel_list_prepare(work.pair.channels[0], list, 2));
    for (uint32_t i = 1; i < 4; i++) {
        memset(plain_page(&work, 0), (int)i, 64);
        memset(work.far.bytes + 2 * BYTES, (int)i + 10, 64);
        require_ok(sluice_list_submit(prepared, DEADLINE, NULL));
        value_check(work.far.bytes, 64, (uint8_t)i);
        value_check(plain_page(&work, 2), 64, (uint8_t)(i + 10));
        require_result(plain_forget(&work, 0), -EBUSY);
        require_result(plain_forget(&work, 2), -EBUSY);
    }
    require(plain_query(&work).misses == 2 && plain_query(&work).hits == 0, "%llu",
            (unsigned long long)plain_query(&work).hits);
    require_error(sluice_list_aim(prepared, 0, &list[0].sge, 0), -EINVAL, "another region");
    require_ok(sluice_list_aim(prepared, 0, NULL, 64));
    require_ok(sluice_list_submit(prepared, DEADLINE, NULL));
    value_check(work.far.bytes + 64, 64, 3);
    sluice_list_free(prepared);
    require_ok(plain_forget(&work, 0));
    require_ok(plain_forget(&work, 2));
    list[1].sge.addr = 0;
    require_null(sluice_channel_list_prepare(work.pair.channels[0], list, 2), EINVAL, "request 1");
    plain_close(&work);
}

#define PEERS 4

/* A hub that is connected with itself, and its cache. */
struct hub {
    struct sides sides;
    struct sluice_mr_cache *cache;
    struct sluice_multichannel *loop;
    uint8_t bytes[2 * PEERS][64];
    struct sluice_request sends[PEERS], receives[PEERS];
};

static void hub_open(struct hub *hub)
{
    sides_open(&hub->sides);
    hub->cache = made(sluice_mr_cache_create(hub->sides.pds[0], ACCESS_ALL, NULL));
    const struct sluice_channel_attr attr = {.size = sizeof attr, .mr_cache = hub->cache};
    hub->loop = loop_open(hub->sides.pds[0], PEERS, &attr);
    for (uint32_t i = 0; i < PEERS; i++) {
        struct sluice_request *request = &hub->sends[i];

        memset(hub->bytes[i], (int)i + 1, 64);
        *request = (struct sluice_request){.peer = i, .flags = SLUICE_PLAIN_MEMORY, .sge_count = 1};
        request->sge = (struct sluice_sge){.addr = (uintptr_t)hub->bytes[i], .length = 64};
        hub->receives[i] = *request;
        hub->receives[i].sge.addr = (uintptr_t)hub->bytes[PEERS + i];
    }
}

static void hub_close(struct hub *hub)
{
    require_ok(sluice_mr_cache_forget(hub->cache, hub->bytes, sizeof hub->bytes));
    sluice_multichannel_close(hub->loop);
    require_ok(sluice_mr_cache_destroy(hub->cache));
    sides_close(&hub->sides);
    free(hub);
}

/* With many peers: scatter and gather, a multicast, and a peer that is removed. */
TEST(multichannels_take_plain_memory)
{
    struct sluice_completion completions[2 * PEERS];
    const uint32_t peers[PEERS] = {0, 1, 2, 3};
    struct hub *hub = calloc(1, sizeof *hub);

    require(hub, "no memory%s", "");
    hub_open(hub);
    require_ok(sluice_multichannel_scatter_gather(hub->loop, hub->sends, PEERS, hub->receives,
                                                  PEERS, DEADLINE, completions));
    for (uint32_t i = 0; i < PEERS; i++)
        value_check(hub->bytes[PEERS + i], 64, (uint8_t)((i ^ 1) + 1));
    require_result(
        sluice_multichannel_post_gather_receive(hub->loop, hub->receives, PEERS, DEADLINE, NULL),
        PEERS);
    require_result(sluice_mr_cache_forget(hub->cache, hub->bytes, sizeof hub->bytes), -EBUSY);
    require_ok(sluice_multichannel_multicast_send(hub->loop, hub->sends, peers, PEERS, DEADLINE,
                                                  completions));
    require_ok(sluice_multichannel_flush(hub->loop, DEADLINE));
    for (uint32_t i = 0; i < PEERS; i++)
        value_check(hub->bytes[PEERS + i], 64, 1);

    hub->receives[1].sge.addr = 0;
    require_error(sluice_multichannel_scatter_gather(hub->loop, hub->sends, PEERS, hub->receives,
                                                     PEERS, DEADLINE, completions),
                  -EINVAL, "request 5 element 0");
    hub->sends[0].sge_count = 77;
    require_error(sluice_multichannel_multicast_send(hub->loop, hub->sends, peers, PEERS, DEADLINE,
                                                     completions),
                  -EINVAL, "request 0 77");
    require_result(
        sluice_multichannel_post_gather_receive(hub->loop, hub->receives, 1, DEADLINE, NULL), 1);
    require_ok(sluice_multichannel_peer_remove(hub->loop, 0));
    hub_close(hub);
}
