/* SPDX-License-Identifier: MIT */
/*
 * The allocator: properties of its blocks, requests with them, blocks of posted requests that are
 * not freed, and access of peers to shared blocks only.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "allocator.h"

static const size_t sizes[] = {1,     63,     64,     65,     200,     512,    513,
                               1000,  1024,   1025,   4096,   5000,    8192,   8193,
                               10000, 16384,  30000,  32768,  40960,   65535,  65536,
                               65537, 200000, 524288, 600000, 1048577, 5000000};

/* Blocks of the same and of other sizes do not overlap. */
TEST(blocks_are_apart)
{
    enum { EACH = 9 };
    const struct sluice_allocator_attr attr = {.size = sizeof attr, .slab_bytes = SLAB};
    uint8_t *blocks[COUNT(sizes)][EACH];
    uint64_t bytes = 0;
    struct work work;

    work_open(&work, &attr);
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (uint32_t k = 0; k < EACH; k++) {
            blocks[i][k] = alloc(&work, sizes[i], k % 2 ? (size_t)1 << (2 * k - 2) : 0);
            memset(blocks[i][k], (int)(i * EACH + k), sizes[i]);
            bytes += sizes[i];
        }
    require(query(&work).blocks == COUNT(sizes) * EACH && query(&work).block_bytes >= bytes &&
                query(&work).registered_bytes >= query(&work).block_bytes,
            "%llu blocks, %llu bytes", (unsigned long long)query(&work).blocks,
            (unsigned long long)query(&work).block_bytes);
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (uint32_t k = 0; k < EACH; k++) {
            value_check(blocks[i][k], sizes[i], (uint8_t)(i * EACH + k));
            free_block(&work, blocks[i][k]);
        }
    require(query(&work).blocks == 0 && query(&work).block_bytes == 0 && query(&work).regions == 0,
            "%llu blocks", (unsigned long long)query(&work).blocks);
    require_ok(sluice_allocator_trim(work.allocator));
    require(query(&work).slabs == 0 && query(&work).registered_bytes == 0, "%u slabs",
            query(&work).slabs);
    work_close(&work);
}

TEST(blocks_are_zeroed)
{
    struct work work;

    work_open(&work, NULL);
    for (uint32_t round = 0; round < 2; round++)
        for (size_t i = 0; i < COUNT(sizes); i++) {
            uint8_t *block = sluice_allocator_alloc_zeroed(work.allocator, sizes[i], 0);

            require(block, "%s", sluice_last_error());
            value_check(block, sizes[i], 0);
            memset(block, 0xff, sizes[i]);
            free_block(&work, block);
        }
    work_close(&work);
}

/* Once there are slabs, allocating a block registers no memory. */
TEST(steady_state_registers_nothing)
{
    struct work work;
    uint64_t before = 0;

    work_open(&work, NULL);
    for (uint32_t round = 0; round < 4; round++) {
        for (size_t size = 64; size <= 65536; size += size / 3 + 1) {
            void *blocks[5];

            for (size_t i = 0; i < COUNT(blocks); i++)
                blocks[i] = alloc(&work, size, 0);
            for (size_t i = 0; i < COUNT(blocks); i++)
                free_block(&work, blocks[i]);
        }
        if (round == 0)
            before = query(&work).registrations;
    }
    require(before > 0 && query(&work).registrations == before, "%llu, then %llu",
            (unsigned long long)before, (unsigned long long)query(&work).registrations);
    work_close(&work);
}

/* Messages from and to blocks, and reads and writes of shared ones. */
TEST(blocks_serve_requests)
{
    struct sluice_remote_mr remote, slice;
    struct sluice_sge near, far;
    struct work work;

    work_open(&work, NULL);
    struct sluice_allocator *other =
        made(sluice_allocator_create(work.pair.sides.pds[1], ACCESS_ALL, NULL));
    for (size_t size = 8; size <= 300000; size *= 5) {
        uint8_t *block = alloc(&work, size, 0);
        uint8_t *shared = alloc_shared(&work, size, &remote);
        uint8_t *theirs = sluice_allocator_alloc(other, size, 0);

        require(theirs && remote.length == size, "%s", sluice_last_error());
        require_ok(sluice_allocator_sge(other, theirs, size, &far));
        near = sge_of(&work, block, size);
        pattern_fill(theirs, size, size);
        post_receive(&work, &near, 1);
        require_result(sluice_allocator_free(work.allocator, block), -EBUSY);
        require_ok(sluice_channel_send(work.pair.channels[1], &far, 1, DEADLINE));
        require_ok(sluice_channel_flush(work.pair.channels[0], DEADLINE));
        pattern_check(block, size, size);

        pattern_fill(theirs, size, size + 1);
        require_ok(sluice_channel_write(work.pair.channels[1], &far, 1, &remote, DEADLINE));
        pattern_check(shared, size, size + 1);
        memset(shared, 7, size);
        require_ok(sluice_remote_mr_slice(&remote, size / 2, size / 4, &slice));
        require_ok(sluice_allocator_sge(other, theirs + 1, size / 4, &far));
        require_ok(sluice_channel_read(work.pair.channels[1], &far, 1, &slice, DEADLINE));
        value_check(theirs + 1, size / 4, 7);
        free_block(&work, block);
        free_block(&work, shared);
        require_ok(sluice_allocator_free(other, theirs));
    }
    require_ok(sluice_allocator_destroy(other));
    work_close(&work);
}

/* Exactly those blocks of a slab are in use that posted requests name. */
TEST(named_blocks_are_not_free)
{
    enum { BLOCKS = 24 };
    struct sluice_sge sges[BLOCKS];
    uint8_t *blocks[BLOCKS];
    struct work work;

    work_open(&work, NULL);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        blocks[i] = alloc(&work, i < 20 ? 100 : 100000, 0);
        sges[i] = sge_of(&work, blocks[i] + 50, 50);
    }
    for (uint32_t i = 0; i < BLOCKS; i += 2)
        post_receive(&work, &sges[i], 1);
    for (uint32_t i = 0; i < BLOCKS; i++)
        require_result(sluice_allocator_free(work.allocator, blocks[i]), i % 2 == 0 ? -EBUSY : 0);
    require_error(sluice_allocator_free(work.allocator, blocks[0]), -EBUSY, "used by posted work");
    require_result(sluice_allocator_destroy(work.allocator), -EBUSY);
    for (uint32_t i = 0; i < BLOCKS; i += 2) {
        complete_receive(&work);
        free_block(&work, blocks[i]);
    }
    /* Elements behind the count of the request do not matter, nor do their earlier values. */
    for (uint32_t i = 0; i < 4; i++) {
        blocks[i] = alloc(&work, 64, 0);
        sges[i] = sge_of(&work, blocks[i], 64);
    }
    post_receive(&work, sges, 3);
    for (uint32_t i = 0; i < 4; i++)
        require_result(sluice_allocator_free(work.allocator, blocks[i]), i < 3 ? -EBUSY : 0);
    complete_receive(&work);
    for (uint32_t i = 0; i < 3; i++)
        free_block(&work, blocks[i]);
    work_close(&work);
}

/* Blocks named by a prepared list stay in use until the list ends, wherever it was aimed. */
TEST(prepared_lists_name_blocks)
{
    uint8_t *blocks[3];
    struct sluice_sge sges[3];
    struct sluice_list *list;
    struct work work;

    work_open(&work, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        blocks[i] = alloc(&work, 64, 0);
        sges[i] = sge_of(&work, blocks[i], 64);
    }
    const struct sluice_request request = {
        .opcode = SLUICE_OP_RECEIVE, .sge_count = 1, .sge = sges[0]};
    list = made(sluice_channel_list_prepare(work.pair.channels[0], &request, 1));
    free_block(&work, blocks[2]);
    require_result(sluice_allocator_free(work.allocator, blocks[0]), -EBUSY);
    require_ok(sluice_list_aim(list, 0, &sges[1], 0));
    free_block(&work, blocks[0]);
    require_result(sluice_allocator_free(work.allocator, blocks[1]), -EBUSY);
    sluice_list_free(list);
    free_block(&work, blocks[1]);
    work_close(&work);
}

/*
 * A request in flight keeps the block that it was posted with, even if its list was aimed elsewhere
 * or freed.
 */
static void aim_in_flight(bool freed)
{
    uint8_t *blocks[3];
    struct sluice_sge sges[3];
    struct work work;

    work_open(&work, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        blocks[i] = alloc(&work, 64, 0);
        sges[i] = sge_of(&work, blocks[i], 64);
    }
    const struct sluice_request request = {
        .opcode = SLUICE_OP_RECEIVE, .sge_count = 1, .sge = sges[0]};
    struct sluice_list *list =
        made(sluice_channel_list_prepare(work.pair.channels[0], &request, 1));
    require_ok(sluice_list_post(list, DEADLINE, NULL));
    require_ok(sluice_list_aim(list, 0, &sges[1], 0));
    require_ok(sluice_list_aim(list, 0, &sges[2], 0));
    free_block(&work, blocks[1]);
    require_result(sluice_allocator_free(work.allocator, blocks[0]), -EBUSY);
    require_result(sluice_allocator_free(work.allocator, blocks[2]), -EBUSY);
    if (freed) {
        sluice_list_free(list);
        free_block(&work, blocks[2]);
        require_result(sluice_allocator_free(work.allocator, blocks[0]), -EBUSY);
    }
    require_ok(sluice_channel_send(work.pair.channels[1], NULL, 0, DEADLINE));
    if (freed) {
        require_ok(sluice_channel_flush(work.pair.channels[0], DEADLINE));
    } else {
        await_list(list);
        sluice_list_free(list);
        free_block(&work, blocks[2]);
    }
    free_block(&work, blocks[0]);
    work_close(&work);
}

TEST(list_aimed_in_flight)
{
    aim_in_flight(false);
}

TEST(list_aimed_in_flight_and_freed)
{
    aim_in_flight(true);
}

struct told {
    atomic_uint count;
};

static void tell(void *argument)
{
    struct told *told = argument;

    atomic_fetch_add(&told->count, 1);
}

/* A released block is free once its requests are done, whether in a slab or alone. */
TEST(released_blocks_end_behind_their_work)
{
    static const size_t lengths[] = {64, 3000, 70000, 4000000, 0};
    struct sluice_completion completion;
    struct sluice_remote_mr remote;
    struct told told = {0};
    struct work work;

    work_open(&work, NULL);
    for (uint32_t i = 0; i < COUNT(lengths); i++) {
        uint8_t *volatile block = /* hides the size from the compiler */
            lengths[i] ? alloc(&work, lengths[i], 0) : alloc_shared(&work, 64, &remote);
        struct sluice_sge sge = sge_of(&work, block, 64);

        post_receive(&work, &sge, 1);
        require_result(sluice_allocator_release(work.allocator, block, tell, &told), 1);
        require_result(sluice_allocator_release(work.allocator, block, tell, &told), -EINVAL);
        require_result(sluice_allocator_free(work.allocator, block), -EINVAL);
        require_result(sluice_allocator_sge(work.allocator, block, 1, &sge), -EINVAL);
        require(query(&work).released == 1 && told.count == i, "%u", query(&work).released);
        require(query(&work).blocks == 0 && query(&work).block_bytes == 0, "%llu blocks",
                (unsigned long long)query(&work).blocks);
        require_error(sluice_allocator_destroy(work.allocator), -EBUSY,
                      "0 blocks of the allocator must be freed first; 1 more are released");
        complete_receive(&work);
        while (atomic_load(&told.count) == i)
            require_result(sluice_channel_poll(work.pair.channels[0], &completion, 1), 0);
        require(query(&work).released == 0 && query(&work).blocks == 0 &&
                    query(&work).block_bytes == 0,
                "%u", query(&work).released);
    }
    require_result(sluice_allocator_release(work.allocator, alloc(&work, 9, 0), tell, &told), 0);
    require_result(told.count, COUNT(lengths) + 1);
    require_result(sluice_allocator_release(work.allocator, alloc(&work, 9, 0), NULL, NULL), 0);
    work_close(&work);
}

/* A key of its own, which gives access to that block only and ends with it. */
TEST(peers_reach_only_shared_blocks)
{
    struct sluice_remote_mr one, two, beyond;
    uint8_t local[64] = {1};
    struct sluice_sge sge;
    struct work work;

    work_open(&work, NULL);
    struct sluice_mr *mr =
        made(sluice_mr_register(work.pair.sides.pds[1], local, sizeof local, ACCESS_ALL));
    require_ok(sluice_mr_sge(mr, 0, sizeof local, &sge));
    uint8_t *first = alloc_shared(&work, 64, &one);
    uint8_t *second = alloc_shared(&work, 64, &two);
    uint8_t *other = alloc(&work, 64, 0);
    require(one.rkey != two.rkey, "one key%s", "");
    require_ok(sluice_channel_write(work.pair.channels[1], &sge, 1, &one, DEADLINE));
    value_check(second, 64, 0);

    /*
     * A key with the address of another block, and with that of a block without a key of its own.
     */
    for (uint32_t i = 0; i < 2; i++) {
        beyond = one;
        beyond.addr = i == 0 ? two.addr : (uintptr_t)other;
        require_result(sluice_channel_write(work.pair.channels[1], &sge, 1, &beyond, DEADLINE),
                       -EACCES);
        pair_reset(&work.pair);
    }
    /* The key by which the program names a block of a slab is not valid for peers. */
    beyond = (struct sluice_remote_mr){
        .addr = (uintptr_t)other, .length = 64, .rkey = sge_of(&work, other, 64).lkey};
    require_result(sluice_channel_write(work.pair.channels[1], &sge, 1, &beyond, DEADLINE),
                   -EACCES);
    pair_reset(&work.pair);
    free_block(&work, first);
    require_result(sluice_channel_write(work.pair.channels[1], &sge, 1, &one, DEADLINE), -EACCES);
    pair_reset(&work.pair);
    free_block(&work, second);
    free_block(&work, other);
    require_ok(sluice_mr_deregister(mr));
    work_close(&work);
}

TEST(realloc_keeps_bytes)
{
    struct sluice_remote_mr remote;
    struct sluice_sge sge;
    struct work work;
    size_t length = 0;

    work_open(&work, NULL);
    uint8_t *block = NULL;
    for (size_t i = 0; i < 2 * COUNT(sizes); i++) {
        size_t size = sizes[i < COUNT(sizes) ? i : 2 * COUNT(sizes) - 1 - i];

        block = sluice_allocator_realloc(work.allocator, block, size, i % 3 ? 0 : 4096);
        require(block && (i % 3 || (uintptr_t)block % 4096 == 0), "%s", sluice_last_error());
        pattern_check(block, size < length ? size : length, 5);
        pattern_fill(block, size, 5);
        length = size;
    }
    require(sluice_allocator_realloc(work.allocator, block, 60, 0) == block, "it moved%s", "");
    sge = sge_of(&work, block, 64);
    post_receive(&work, &sge, 1);
    require_null(sluice_allocator_realloc(work.allocator, block, 1000, 0), EBUSY, "used");
    require(query(&work).blocks == 1, "%llu blocks", (unsigned long long)query(&work).blocks);
    complete_receive(&work);
    require_null(sluice_allocator_realloc(work.allocator, block + 1, 1000, 0), EINVAL, "within");
    require_null(sluice_allocator_realloc(work.allocator, block, 0, 0), EINVAL, "1 byte");
    require_null(sluice_allocator_realloc(work.allocator, &work, 9, 0), EINVAL, "no block");
    free_block(&work, block);
    require_null(sluice_allocator_realloc(work.allocator, block, 1000, 0), EINVAL, "free");
    block = alloc_shared(&work, 100, &remote);
    require_null(sluice_allocator_realloc(work.allocator, block, 9, 0), EINVAL, "shared");
    free_block(&work, block);
    work_close(&work);
}

/* Freeing a pointer that is not a block changes nothing. */
TEST(wrong_arguments_are_refused)
{
    volatile size_t most = SIZE_MAX; /* the compiler warns about a constant here */
    struct sluice_allocator_info info = {.size = 8};
    struct sluice_remote_mr remote;
    struct sluice_sge sge = {.length = 77};
    struct work work;

    work_open(&work, NULL);
    uint8_t *block = alloc(&work, 100, 0);
    uint8_t *big = alloc(&work, 100000, 0);
    uint8_t *huge = alloc(&work, 10000000, 0);
    uint8_t *volatile within = huge + 1;
    uint8_t *freed = alloc(&work, 100, 0);
    uint8_t *freed_big = alloc(&work, 70000, 0);
    free_block(&work, freed);
    free_block(&work, freed_big);
    free_block(&work, NULL);
    require_error(sluice_allocator_free(work.allocator, freed), -EINVAL, "twice");
    require_result(sluice_allocator_free(work.allocator, freed_big), -EINVAL);
    require_error(sluice_allocator_free(work.allocator, block + 64), -EINVAL, "within");
    require_error(sluice_allocator_free(work.allocator, big + 65536), -EINVAL, "within");
    require_error(sluice_allocator_free(work.allocator, huge + 4096), -EINVAL, "within");
    require_error(sluice_allocator_free(work.allocator, &work), -EINVAL, "no block");
    require_result(sluice_allocator_free(work.allocator, (void *)(uintptr_t)64), -EINVAL);
    require_result(sluice_allocator_free(work.allocator, (void *)UINTPTR_MAX), -EINVAL);
    require_result(sluice_allocator_free(NULL, block), -EINVAL);
    require_result(sluice_allocator_free((void *)block, block), -EINVAL);
    require_result(sluice_allocator_release(work.allocator, NULL, NULL, NULL), -EINVAL);
    require_result(sluice_allocator_release(work.allocator, within, NULL, NULL), -EINVAL);
    require_error(sluice_allocator_sge(work.allocator, block, 129, &sge), -ERANGE, "128");
    require_error(sluice_allocator_sge(work.allocator, huge + 9999999, 2, &sge), -ERANGE, "has 1");
    require_error(sluice_allocator_sge(work.allocator, huge + 10000000, 0, &sge), -EINVAL, "block");
    require_result(sluice_allocator_sge(work.allocator, freed, 1, &sge), -EINVAL);
    require_result(sluice_allocator_sge(work.allocator, block, 1, NULL), -EINVAL);
    require_result(sluice_allocator_sge(NULL, block, 1, &sge), -EINVAL);
    require(sge.length == 77, "it was written%s", "");
    sge = sge_of(&work, big + 99999, 1);
    require_null(sluice_allocator_alloc(NULL, 1, 0), EINVAL, "NULL");
    require_null(sluice_allocator_alloc(work.allocator, 0, 0), EINVAL, "1 byte");
    require_null(sluice_allocator_alloc(work.allocator, 1, 3), EINVAL, "align is 3");
    require_null(sluice_allocator_alloc(work.allocator, 1, 131072), EINVAL, "align");
    require_null(sluice_allocator_alloc(work.allocator, most, 0), ENOMEM, "no memory");
    require_null(sluice_allocator_alloc_zeroed(work.allocator, 0, 0), EINVAL, "1 byte");
    require_null(sluice_allocator_alloc_shared(work.allocator, 1, NULL), EINVAL, "remote");
    require_null(sluice_allocator_alloc_shared(work.allocator, 0, &remote), EINVAL, "1 byte");
    require_result(sluice_allocator_query(work.allocator, &info), -EINVAL);
    require_result(sluice_allocator_query(work.allocator, NULL), -EINVAL);
    require_result(sluice_allocator_trim(NULL), -EINVAL);
    require_ok(sluice_allocator_destroy(NULL));
    require_error(sluice_allocator_destroy(work.allocator), -EBUSY, "3 blocks");
    require(query(&work).blocks == 3, "%llu", (unsigned long long)query(&work).blocks);
    free_block(&work, block);
    free_block(&work, big);
    free_block(&work, huge);
    work_close(&work);
}

TEST(attributes_are_checked)
{
    const struct {
        struct sluice_allocator_attr attr;
        const char *words;
    } wrong[] = {
        {{.size = 8}, "size"},
        {{.size = sizeof wrong[0].attr, .flags = 4}, "flags"},
        {{.size = sizeof wrong[0].attr, .numa_node = 1}, "numa_node"},
        {{.size = sizeof wrong[0].attr, .numa_node = 1024, .flags = 2}, "numa_node is 1024"},
        {{.size = sizeof wrong[0].attr, .thread_blocks = 1}, "thread_blocks"},
        {{.size = sizeof wrong[0].attr, .thread_blocks = 1025}, "thread_blocks"},
        {{.size = sizeof wrong[0].attr, .slab_bytes = SLAB - 1}, "slab_bytes"},
        {{.size = sizeof wrong[0].attr, .slab_bytes = (UINT64_C(1) << 30) + 1}, "slab_bytes"},
    };
    struct sluice_remote_mr remote;
    struct sides sides;

    sides_open(&sides);
    for (size_t i = 0; i < COUNT(wrong); i++)
        require_null(sluice_allocator_create(sides.pds[0], 0, &wrong[i].attr), EINVAL,
                     wrong[i].words);
    require_null(sluice_allocator_create(NULL, 0, NULL), EINVAL, "domain");
    require_null(sluice_allocator_create(sides.pds[0], 1u << 20, NULL), EINVAL, "access");
    struct sluice_allocator *local =
        made(sluice_allocator_create(sides.pds[0], SLUICE_ACCESS_LOCAL_WRITE, NULL));
    require_null(sluice_allocator_alloc_shared(local, 1, &remote), EINVAL, "remote rights");
    require_ok(sluice_allocator_destroy(local));
    sides_close(&sides);
}

/* The limit counts registered memory; unused slabs are released before it is reached. */
TEST(limits_hold)
{
    const struct sluice_allocator_attr attr = {
        .size = sizeof attr, .slab_bytes = SLAB, .max_bytes = 2 * SLAB};
    struct sluice_remote_mr remote;
    void *blocks[64];
    uint32_t count = 0;
    struct work work;

    work_open(&work, &attr);
    while ((blocks[count] = sluice_allocator_alloc(work.allocator, 65536, 0)) != NULL)
        count++;
    require(errno == ENOBUFS && count >= 14 && count <= 32, "%u blocks, %s", count,
            strerror(errno));
    require_null(sluice_allocator_alloc_shared(work.allocator, 1, &remote), ENOBUFS, "max_bytes");
    require_null(sluice_allocator_alloc(work.allocator, 3 * SLAB, 0), ENOBUFS, "max_bytes");
    while (count > 0)
        free_block(&work, blocks[--count]);
    require(query(&work).slabs == 2, "%u slabs", query(&work).slabs);
    require_ok(sluice_allocator_trim(work.allocator));
    require(query(&work).slabs == 0, "%u slabs", query(&work).slabs);
    void *block = alloc(&work, 64, 0);
    free_block(&work, block);
    free_block(&work, alloc_shared(&work, SLAB, &remote));
    require_ok(sluice_allocator_trim(work.allocator));
    free_block(&work, alloc(&work, 2 * SLAB, 0));
    require(query(&work).registered_bytes == 0, "%llu",
            (unsigned long long)query(&work).registered_bytes);
    work_close(&work);
}

/* The pages are on that node; the machine may have only one. */
TEST(memory_is_of_its_node)
{
    struct sluice_allocator_attr attr = {.size = sizeof attr, .flags = SLUICE_ALLOCATOR_NUMA_NODE};
    struct sides sides;
    int node = -1;

    sides_open(&sides);
    struct sluice_allocator *allocator = sluice_allocator_create(sides.pds[0], ACCESS_ALL, &attr);
    if (allocator == NULL && errno == EOPNOTSUPP) {
        sides_close(&sides);
        return; /* a kernel that lacks the call or refuses it */
    }
    require(allocator, "%s", sluice_last_error());
    uint8_t *block = sluice_allocator_alloc_zeroed(allocator, 4096, 4096);
    require(block, "%s", sluice_last_error());
    long got = syscall(SYS_get_mempolicy, &node, NULL, 0UL, block, 3UL);
    require(got == 0 && node == 0, "%ld, node %d", got, node);
    require_ok(sluice_allocator_free(allocator, block));
    require_ok(sluice_allocator_destroy(allocator));
    attr.numa_node = 1023;
    require_null(sluice_allocator_create(sides.pds[0], ACCESS_ALL, &attr), EINVAL,
                 "numa_node is 1023");
    attr =
        (struct sluice_allocator_attr){.size = sizeof attr, .flags = SLUICE_ALLOCATOR_HUGE_PAGES};
    allocator = made(sluice_allocator_create(sides.pds[0], ACCESS_ALL, &attr));
    block = made(sluice_allocator_alloc_zeroed(allocator, 4096, 0));
    require_ok(sluice_allocator_free(allocator, block));
    require_ok(sluice_allocator_destroy(allocator));
    sides_close(&sides);
}

int main(void)
{
    return run_tests("allocator", 20);
}
