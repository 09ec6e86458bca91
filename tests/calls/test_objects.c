/* SPDX-License-Identifier: MIT */
/*
 * Devices, contexts, regions, handles of remote memory, texts, the log, and
 * the life of objects: they may be closed in any order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../support/pair.h"
#include "../support/process.h"

TEST(list_of_devices, .group = "objects")
{
    struct sluice_device_info info = {.size = sizeof(info)};
    struct sluice_device_list *list = made(sluice_device_list_get());
    uint32_t count = sluice_device_list_count(list);
    require(count >= 1, "%u", count);
    bool found = false;
    for (uint32_t i = 0; i < count; i++) {
        require_ok(sluice_device_list_info(list, i, &info));
        require(info.name[0] && info.transport[0] && info.description[0], "device %u", i);
        require(info.size == sizeof(info), "%u", info.size);
        found = found || strcmp(info.name, test_device()) == 0;
    }
    require(found, "no %s", test_device());
    /* soft comes last, and can always be used. */
    require(strcmp(info.name, "soft") == 0 && strcmp(info.transport, "soft") == 0, "%s", info.name);
    require_equal(info.active, 1, info.ports, 1, info.level, SLUICE_LEVEL_TCP);
    require_error(sluice_device_list_info(list, count, &info), -ERANGE, "");
    require_error(sluice_device_list_info(list, UINT32_MAX, &info), -ERANGE, "");
    require_error(sluice_device_list_info(list, 0, NULL), -EINVAL, "");
    require_error(sluice_device_list_info(NULL, 0, &info), -EINVAL, "");
    info.size = 8;
    require_error(sluice_device_list_info(list, 0, &info), -EINVAL, "size");
    sluice_device_list_free(list);
    sluice_device_list_free(NULL);
}

TEST(query_of_a_context, .group = "objects")
{
    struct sluice_context *context = open_context();
    struct sluice_context_info info = context_info(context);
    require(strcmp(info.device, test_device()) == 0, "%s", info.device);
    require(strcmp(info.transport, device_is_soft() ? "soft" : "verbs") == 0, "%s", info.transport);
    require(info.level == (device_is_soft() ? SLUICE_LEVEL_TCP : SLUICE_LEVEL_NIC), "%u",
            info.level);
    require(info.max_send_depth >= 128 && info.max_receive_depth >= 128 && info.max_sge >= 4 &&
                info.max_read_depth >= 1 && info.max_message >= 4096,
            "depths %u and %u", info.max_send_depth, info.max_receive_depth);
    struct sluice_context_info wrong = {.size = 4};
    require_error(sluice_context_query(context, &wrong), -EINVAL, "size");
    require_error(sluice_context_query(context, NULL), -EINVAL, "");
    require_error(sluice_context_query(NULL, &info), -EINVAL, "");
    sluice_context_close(context);
}

/* The name may come from the environment; soft is the last resort. */
TEST(device_of_the_environment, .group = "objects")
{
    setenv("SLUICE_DEVICE", "soft", 1);
    struct sluice_context *context = made(sluice_context_open(NULL, NULL));
    require(strcmp(context_info(context).device, "soft") == 0, "%s", context_info(context).device);
    sluice_context_close(context);
    unsetenv("SLUICE_DEVICE");
    context = made(sluice_context_open(NULL, NULL));
    sluice_context_close(context);
}

TEST(null_objects, .group = "objects")
{
    sluice_context_close(NULL);
    sluice_pd_free(NULL);
    require_ok(sluice_mr_deregister(NULL));
    sluice_prepared_channel_free(NULL);
    sluice_channel_close(NULL);
    sluice_prepared_multichannel_free(NULL);
    sluice_multichannel_close(NULL);
    require_null(sluice_pd_alloc(NULL), EINVAL, "");
    require_null(sluice_mr_register(NULL, &errno, 4, 0), EINVAL, "");
    require_null(sluice_mr_alloc(NULL, 4, 0), EINVAL, "");
    require_null(sluice_channel_reset(NULL), EINVAL, "");
    struct sluice_remote_mr remote;
    require_result(sluice_mr_remote(NULL, &remote), -EINVAL);
}

/* Parents may go first: their children keep them. */
TEST(closing_in_any_order)
{
    int fds = count_fds();
    for (int order = 0; order < 4; order++) {
        struct pair pair;
        struct memory memory;
        pair_open(&pair, NULL);
        memory_open(&memory, pair.sides.pds[0], 100);
        struct sides sides = pair.sides;
        if (order % 2 == 0) {
            sluice_context_close(sides.contexts[0]);
            sluice_pd_free(sides.pds[0]);
        } else {
            sluice_pd_free(sides.pds[0]);
            sluice_context_close(sides.contexts[0]);
        }
        struct sluice_sge sge = memory_sge(&memory, 0, 50);
        struct sluice_remote_mr remote = memory_remote(&memory, 50, 50);
        pattern_fill(memory.bytes, 50, 3);
        if (current_wire() == WIRE_SELF) {
            require_ok(sluice_channel_write(pair.channels[0], &sge, 1, &remote, DEADLINE));
            pattern_check(memory.bytes + 50, 50, 3);
        } else {
            struct sluice_handle handle = post_of(pair.channels[0], SLUICE_OP_RECEIVE, &sge);
            require_ok(sluice_channel_send(pair.channels[1], NULL, 0, DEADLINE));
            await(pair.channels[0], handle, SLUICE_CLASS_NONE);
        }
        if (order < 2) {
            memory_close(&memory);
        }
        sluice_channel_close(pair.channels[order / 2]);
        sluice_channel_close(pair.channels[1 - order / 2]);
        if (order >= 2) {
            memory_close(&memory);
        }
        if (current_wire() != WIRE_SELF) {
            sluice_pd_free(sides.pds[1]);
            sluice_context_close(sides.contexts[1]);
        }
    }
    require(settle_fds(fds) == fds, "%d fds, were %d", count_fds(), fds);
}

/* Each object can be made and closed again and again, and leaves nothing behind. */
TEST(nothing_leaks)
{
    int fds = count_fds();
    for (int i = 0; i < 20; i++) {
        struct sides sides;
        struct sluice_endpoint endpoint;
        sides_open(&sides);
        sluice_prepared_channel_free(prepare_channel(sides.pds[0], NULL, &endpoint));
        sluice_prepared_multichannel_free(sluice_multichannel_prepare(sides.pds[1], 7, NULL));
        require_ok(sluice_mr_deregister(sluice_mr_alloc(sides.pds[0], 5000, ACCESS_ALL)));
        sides_close(&sides);
        struct star star;
        star_open(&star, 3, NULL);
        star_works(&star, i % 3);
        star_close(&star);
    }
    require(settle_fds(fds) == fds, "%d fds, were %d", count_fds(), fds);
}

TEST_WITH(sides, regions, (), .group = "objects")
{
    static uint8_t bytes[100];
    struct sluice_pd *pd = sides->pds[0];
    struct sluice_mr *mr = made(sluice_mr_register(pd, bytes + 1, 98, 0));
    require(sluice_mr_addr(mr) == bytes + 1 && sluice_mr_length(mr) == 98, "%zu bytes",
            sluice_mr_length(mr));
    struct sluice_sge sge;
    require_ok(sluice_mr_sge(mr, 10, 20, &sge));
    require_equal(sge.addr, (uint64_t)(uintptr_t)(bytes + 11), sge.length, 20, sge.lkey,
                  sluice_mr_lkey(mr));
    require_ok(sluice_mr_deregister(mr));
    require_null(sluice_mr_register(pd, NULL, 10, 0), EINVAL, "");
    require_null(sluice_mr_register(pd, bytes, 0, 0), EINVAL, "");
    require_null(sluice_mr_alloc(pd, 0, 0), EINVAL, "");
    require_null(sluice_mr_register(pd, bytes, SIZE_MAX, 0), EINVAL, "");
    require_null(sluice_mr_register(pd, bytes, 10, SLUICE_ACCESS_REMOTE_WRITE), EINVAL, "");
    require_null(sluice_mr_register(pd, bytes, 10, UINT32_C(1) << 3), EINVAL, "");
    require_null(sluice_mr_alloc(pd, 10, SLUICE_ACCESS_REMOTE_WRITE), EINVAL, "");
    require_null(sluice_mr_alloc(pd, SIZE_MAX / 2, ACCESS_ALL), ENOMEM, "");
}

TEST(memory_that_cannot_be_registered, .group = "objects")
{
    struct sides sides;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    sides_open(&sides);
    uint8_t *pages =
        mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(pages != MAP_FAILED, "%s", strerror(errno));
    mprotect(pages + page, page, PROT_NONE);
    /* A device pins pages for reading with no regard to PROT_NONE. */
    if (device_is_soft()) {
        require_null(sluice_mr_register(sides.pds[0], pages, 3 * page, 0), EFAULT, "");
        require_null(sluice_mr_register(sides.pds[0], pages + page, 1, 0), EFAULT, "");
    }
    /* No memory can be mapped at this address. */
    void *nowhere = (void *)(uintptr_t)page;
    require_null(sluice_mr_register(sides.pds[0], nowhere, 1, 0), EFAULT, "");
    mprotect(pages, page, PROT_READ);
    require_null(sluice_mr_register(sides.pds[0], pages, page, SLUICE_ACCESS_LOCAL_WRITE), EFAULT,
                 "");
    struct sluice_mr *mr =
        made(sluice_mr_register(sides.pds[0], pages, page, SLUICE_ACCESS_REMOTE_READ));
    require_ok(sluice_mr_deregister(mr));
    munmap(pages, 3 * page);
    sides_close(&sides);
}

TEST(allocated_regions, .group = "objects")
{
    static const size_t lengths[] = {1, 4095, 4096, 4097, 1 << 20};
    struct sides sides;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    sides_open(&sides);
    for (uint32_t access = 0; access < 8; access++) {
        if ((access & 3) == 2) {
            continue; /* remote write without local write */
        }
        for (size_t i = 0; i < COUNT(lengths); i++) {
            struct sluice_mr *mr = made(sluice_mr_alloc(sides.pds[0], lengths[i], access));
            uint8_t *bytes = sluice_mr_addr(mr);
            require((uintptr_t)bytes % page == 0, "%p", (void *)bytes);
            require(sluice_mr_length(mr) == lengths[i], "%zu", sluice_mr_length(mr));
            value_check(bytes, lengths[i], 0);
            memset(bytes, 1, lengths[i]);
            require_ok(sluice_mr_deregister(mr));
        }
    }
    sides_close(&sides);
}

TEST(slices_of_remote_memory, .group = "objects")
{
    struct sluice_remote_mr remote = {.addr = 1000, .length = 100, .rkey = 5};
    struct sluice_remote_mr slice;
    memset(&slice, 0xcc, sizeof(slice));
    require_error(sluice_remote_mr_slice(&remote, 0, 101, &slice), -ERANGE, "");
    require_error(sluice_remote_mr_slice(&remote, 101, 0, &slice), -ERANGE, "");
    require_error(sluice_remote_mr_slice(&remote, 50, 51, &slice), -ERANGE, "");
    require_error(sluice_remote_mr_slice(&remote, UINT64_MAX, 2, &slice), -ERANGE, "");
    require_error(sluice_remote_mr_slice(&remote, 2, UINT64_MAX, &slice), -ERANGE, "");
    value_check(&slice, sizeof(slice), 0xcc);
    require_ok(sluice_remote_mr_slice(&remote, 100, 0, &slice));
    require_ok(sluice_remote_mr_slice(&remote, 10, 20, &slice));
    require_equal(slice.addr, 1010, slice.length, 20, slice.rkey, 5, slice.reserved[0], 0);
    require_ok(sluice_remote_mr_slice(&slice, 5, 15, &slice));
    require(slice.addr == 1015 && slice.length == 15, "%llu", (unsigned long long)slice.addr);
}

TEST(packed_remote_memory, .group = "objects")
{
    struct sluice_remote_mr remote = {
        .addr = UINT64_C(0x123456789abcdef0), .length = UINT64_C(0x1020304050), .rkey = 0xfedcba98};
    struct sluice_remote_mr back, untouched;
    uint8_t bytes[SLUICE_REMOTE_MR_BYTES];
    sluice_remote_mr_pack(&remote, bytes);
    memset(&back, 0xcc, sizeof(back));
    require_ok(sluice_remote_mr_unpack(bytes, &back));
    require_equal(back.addr, remote.addr, back.length, remote.length, back.rkey, remote.rkey,
                  back.reserved[0], 0);
    /* A flipped bit is refused, or the result differs. */
    for (int bit = 0; bit < SLUICE_REMOTE_MR_BYTES * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << (bit % 8));
        memset(&untouched, 0xcc, sizeof(untouched));
        int result = sluice_remote_mr_unpack(bytes, &untouched);
        if (result == 0) {
            /* The version of the writer may differ: a later one may have written the same. */
            require(memcmp(&untouched, &back, sizeof(back)) != 0 || bit / 8 == 4 || bit / 8 == 5,
                    "bit %d", bit);
        } else {
            require_error(result, -EPROTO, "");
            value_check(&untouched, sizeof(untouched), 0xcc);
        }
        bytes[bit / 8] ^= (uint8_t)(1 << (bit % 8));
    }
    /* A later version has written it and added to it; this one can read it, or cannot. */
    bytes[5] += 3;
    bytes[31] = 9;
    require_ok(sluice_remote_mr_unpack(bytes, &untouched));
    require(memcmp(&untouched, &back, sizeof(back)) == 0, "of a later version");
    bytes[7]++;
    require_error(sluice_remote_mr_unpack(bytes, &untouched), -EPROTO,
                  "written by version from version this library knows version too old");
    memset(bytes, 0, sizeof(bytes));
    require_error(sluice_remote_mr_unpack(bytes, &untouched), -EPROTO, "");
    memset(bytes, 0xff, sizeof(bytes));
    require_error(sluice_remote_mr_unpack(bytes, &untouched), -EPROTO, "");
}

/* The output holds nothing that could be taken for a handle. */
TEST(packing_nothing, .group = "objects")
{
    struct sluice_remote_mr remote = {.addr = 1000, .length = 100, .rkey = 5};
    struct sluice_remote_mr back;
    uint8_t bytes[SLUICE_REMOTE_MR_BYTES];
    require_ok(sluice_remote_mr_pack(&remote, bytes));
    require_error(sluice_remote_mr_pack(&remote, NULL), -EINVAL, "bytes must not be NULL");
    require_error(sluice_remote_mr_pack(NULL, NULL), -EINVAL, "");
    require_ok(sluice_remote_mr_unpack(bytes, &back));
    require_error(sluice_remote_mr_pack(NULL, bytes), -EINVAL, "remote must not be NULL");
    value_check(bytes, sizeof(bytes), 0);
    /* A reserved field, which a later version may have set, is not dropped silently. */
    for (int i = 0; i < 3; i++) {
        struct sluice_remote_mr later = remote;
        later.reserved[i] = 7;
        memset(bytes, 0xcc, sizeof(bytes));
        require_error(sluice_remote_mr_pack(&later, bytes), -EINVAL, "remote.reserved");
        value_check(bytes, sizeof(bytes), 0);
        memset(&back, 0xcc, sizeof(back));
        require_error(sluice_remote_mr_slice(&later, 0, 8, &back), -EINVAL, "remote.reserved");
        value_check(&back, sizeof(back), 0xcc);
    }
    require_error(sluice_remote_mr_unpack(bytes, &back), -EPROTO, "");
}

TEST(packed_range_that_wraps, .group = "objects")
{
    struct sluice_remote_mr remote = {.addr = UINT64_MAX - 10, .length = 12};
    struct sluice_remote_mr back;
    uint8_t bytes[SLUICE_REMOTE_MR_BYTES];
    sluice_remote_mr_pack(&remote, bytes);
    require_error(sluice_remote_mr_unpack(bytes, &back), -EPROTO, "");
    remote.length = 10;
    sluice_remote_mr_pack(&remote, bytes);
    require_ok(sluice_remote_mr_unpack(bytes, &back));
}

TEST(version_and_names, .group = "objects")
{
    char version[32];
    snprintf(version, sizeof(version), "%d.%d.%d", SLUICE_VERSION_MAJOR, SLUICE_VERSION_MINOR,
             SLUICE_VERSION_PATCH);
    require(strncmp(sluice_version(), version, strlen(version)) == 0, "%s", sluice_version());
    require(strstr(sluice_version(), "soft"), "%s", sluice_version());
    require(sluice_version_number() ==
                (SLUICE_VERSION_MAJOR << 16 | SLUICE_VERSION_MINOR << 8 | SLUICE_VERSION_PATCH),
            "%x", sluice_version_number());
    for (uint32_t i = 0; i < 80; i++) {
        require(sluice_status_name(i) && sluice_status_name(i)[0], "status %u", i);
        require(sluice_error_class_name(i) && sluice_error_class_name(i)[0], "class %u", i);
    }
    require(strstr(sluice_status_name(SLUICE_STATUS_REM_ACCESS_ERR), "remote access"), "%s",
            sluice_status_name(SLUICE_STATUS_REM_ACCESS_ERR));
    require(strcmp(sluice_error_class_name(SLUICE_CLASS_PEER_LOST), "peer lost") == 0, "%s",
            sluice_error_class_name(SLUICE_CLASS_PEER_LOST));
    require(sluice_status_name(UINT32_MAX) && sluice_error_class_name(UINT32_MAX), "%u",
            UINT32_MAX);
}

struct log_seen {
    uint32_t lines, worst;
};

static void count_line(uint32_t level, const char *line, void *user)
{
    struct log_seen *seen = user;
    seen->lines += line[0] && !strchr(line, '\n');
    seen->worst = level > seen->worst ? level : seen->worst;
}

TEST(log_function, .group = "objects")
{
    struct log_seen seen = {0};
    require_ok(sluice_log_set(SLUICE_LOG_DEBUG, count_line, &seen));
    struct sluice_context *context = made(sluice_context_open(NULL, NULL));
    sluice_context_close(context);
    require(seen.lines >= 1 && seen.worst >= SLUICE_LOG_INFO, "%u lines, level %u", seen.lines,
            seen.worst);
    /* No line above the level is logged, and none at all at level NONE. */
    seen = (struct log_seen){0};
    require_ok(sluice_log_set(SLUICE_LOG_WARN, count_line, &seen));
    sluice_context_close(sluice_context_open(NULL, NULL));
    require(seen.worst <= SLUICE_LOG_WARN, "%u", seen.worst);
    seen = (struct log_seen){0};
    require_ok(sluice_log_set(SLUICE_LOG_NONE, count_line, &seen));
    sluice_context_close(sluice_context_open(NULL, NULL));
    require(seen.lines == 0, "%u", seen.lines);
    require_error(sluice_log_set(5, count_line, &seen), -EINVAL, "level");
    require_ok(sluice_log_set(SLUICE_LOG_WARN, NULL, NULL));
}

/* A call that succeeds leaves the text of the last failure alone. */
TEST(last_error, .group = "objects")
{
    char text[500];
    struct sluice_remote_mr remote = {.addr = 1000, .length = 100};
    require_error(sluice_remote_mr_slice(&remote, 0, 101, &remote), -ERANGE, "101 100");
    snprintf(text, sizeof(text), "%s", sluice_last_error());
    require_ok(sluice_remote_mr_slice(&remote, 0, 100, &remote));
    struct sluice_context *context = open_context();
    require(strcmp(text, sluice_last_error()) == 0, "%s", sluice_last_error());
    sluice_context_close(context);
}

/* Requires that the last text is these words, followed by the first failure. */
static void require_cause(const char *words, const char *cause)
{
    char text[700];
    snprintf(text, sizeof(text), "%s; earlier: %s", words, cause);
    /* Only this much of the cause fits. */
    text[strlen(sluice_last_error())] = '\0';
    require(strcmp(text, sluice_last_error()) == 0 && strlen(text) > strlen(words) + 20,
            "%s, not %s", sluice_last_error(), text);
}

/* A program that checks only its last result gets the first mistake of the chain. */
TEST(first_failure_of_a_chain, .group = "objects")
{
    char cause[320];
    struct sluice_context *context = sluice_context_open("no-such-device", NULL);
    require(!context && errno == ENODEV, "%s", strerror(errno));
    snprintf(cause, sizeof(cause), "%s", sluice_last_error());
    struct sluice_pd *pd = sluice_pd_alloc(context);
    require(!pd && errno == EINVAL, "%s", strerror(errno));
    require_cause("a protection domain needs an open context", cause);
    struct sluice_mr *mr = sluice_mr_alloc(pd, 8, 0);
    require(!mr && errno == EINVAL, "%s", strerror(errno));
    require_cause("a memory region needs a protection domain", cause);
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);
    require(!prepared && errno == EINVAL, "%s", strerror(errno));
    require_cause("a channel needs a protection domain", cause);
    /*
     * A call that makes no object reports the first mistake as well, and so do the calls behind it.
     */
    struct sluice_endpoint remote = {{0}};
    require_result(sluice_prepared_channel_endpoint(prepared, &remote), -EINVAL);
    require_cause("not a prepared channel", cause);
    struct sluice_channel *channel = sluice_prepared_channel_handshake(prepared, &remote);
    require(!channel && errno == EINVAL, "%s", strerror(errno));
    require_cause("not a prepared channel (or its handshake was done before)", cause);
    for (int i = 0; i < 2; i++) {
        require_result(sluice_channel_send(channel, NULL, 0, DEADLINE), -EINVAL);
        require_cause("not a channel", cause);
    }
    require_null(sluice_channel_reset(channel), EINVAL, "not a channel");
    require_cause("not a channel", cause);
    /* A call that fails for a reason of its own does not mention it. */
    require_result(sluice_log_set(99, NULL, NULL), -EINVAL);
    require_result(sluice_channel_send(NULL, NULL, 0, DEADLINE), -EINVAL);
    require(!strstr(sluice_last_error(), "earlier"), "%s", sluice_last_error());
}

/* The same holds for all calls on objects that were not made. */
TEST(first_failure_of_regions_and_nodes, .group = "objects")
{
    char cause[320];
    struct sluice_remote_mr remote;
    struct sluice_sge sge;
    require_null(sluice_context_open("no-such-device", NULL), ENODEV, "no-such-device");
    snprintf(cause, sizeof(cause), "%s", sluice_last_error());
    require_result(sluice_mr_sge(NULL, 0, 1, &sge), -EINVAL);
    require_cause("not a memory region, but NULL", cause);
    require_result(sluice_mr_sge_at(NULL, &sge, 1, &sge), -EINVAL);
    require_cause("not a memory region, but NULL", cause);
    require_result(sluice_mr_remote(NULL, &remote), -EINVAL);
    require_cause("not a memory region, but NULL", cause);
    require_null(sluice_node_pd(NULL), EINVAL, "not a node");
    require_cause("not a node", cause);
    require_null(sluice_node_context(NULL), EINVAL, "not a node");
    require_cause("not a node", cause);
    require_null(sluice_node_exchange(NULL), EINVAL, "not a node");
    require_cause("not a node", cause);
}

/* A wrong object that is not NULL is not explained by an earlier failure. */
TEST_WITH(sides, first_failure_of_no_null, (), .group = "objects")
{
    struct sluice_channel *other = (struct sluice_channel *)(void *)sides->pds[0];
    require(sides->pds[0], "%s", sluice_last_error());
    require_null(sluice_context_open("no-such-device", NULL), ENODEV, "no-such-device");
    require_result(sluice_channel_send(other, NULL, 0, DEADLINE), -EINVAL);
    require(!strstr(sluice_last_error(), "earlier"), "%s", sluice_last_error());
    require_null(sluice_context_open("no-such-device", NULL), ENODEV, "no-such-device");
    require_null(sluice_channel_scope_begin(other, DEADLINE), EINVAL, "not a channel");
    require(!strstr(sluice_last_error(), "earlier"), "%s", sluice_last_error());
}

/* A failure that was corrected since, or that happened in another thread, is not mentioned. */
TEST(failure_before_a_success, .group = "objects")
{
    struct sluice_context *context = sluice_context_open("no-such-device", NULL);
    require(!context, "%s", "it is there");
    context = open_context();
    require_result(sluice_channel_send(NULL, NULL, 0, DEADLINE), -EINVAL);
    require(!strstr(sluice_last_error(), "earlier"), "%s", sluice_last_error());
    require_null(sluice_context_open("no-such-device", NULL), ENODEV, "no-such-device");
    struct sluice_pd *pd = sluice_pd_alloc(context);
    require_null(sluice_pd_alloc(NULL), EINVAL, "open context");
    require(!strstr(sluice_last_error(), "earlier"), "%s", sluice_last_error());
    sluice_pd_free(pd);
    sluice_context_close(context);
}

int main(void)
{
    static const struct tests cases[] = {
        {"objects", WIRE_SELF, 30},
        {"self", WIRE_SELF, 30},
        {"tcp", WIRE_TCP, 30},
    };
    return run_groups("objects", cases, COUNT(cases));
}
