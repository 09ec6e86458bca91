/* SPDX-License-Identifier: MIT */
/*
 * Memory of other devices on soft, of each exporter at hand: elements and peers address it by its
 * iova, on all wires, and all bytes are where the exporter has them. A device that registers none
 * returns an error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/group.h"
#include "../support/process.h"
#include "dmabuf/exporters.h"

#define PAGE ((size_t)4096)
/* An offset within a page, and not at its end. */
#define SHIFT ((size_t)104)
#define OFFSET (3 * PAGE + SHIFT)
#define LENGTH ((size_t)200 * 1024)
#define WHOLE (64 * PAGE)
#define ACCESS (ACCESS_ALL | SLUICE_ACCESS_REMOTE_ATOMIC)

static const uint64_t iovas[] = {
    SHIFT,                            /* the first page, where there is nothing */
    OFFSET,                           /* its place in the dmabuf */
    UINT64_C(0x7f0000000000) + SHIFT, /* as of a GPU */
    UINT64_MAX - WHOLE + 1 + OFFSET,  /* the last ones that fit */
};

static bool is_device(void)
{
    return !device_is_soft();
}

/* A test, which follows in braces, of each exporter that there is. */
#define TEST_OF_EACH(name, ...)                               \
    static void name##_of(enum exporter exporter);            \
    TEST(name, .unless = is_device, __VA_ARGS__)              \
    {                                                         \
        for (enum exporter one = 0; one < EXPORTERS; one++) { \
            if (exporter_is_there(one)) {                     \
                name##_of(one);                               \
            }                                                 \
        }                                                     \
    }                                                         \
    static void name##_of(enum exporter exporter)

/* Likewise, at each iova. */
#define TEST_OF_EACH_AT(name)                                     \
    static void name##_at(enum exporter exporter, uint64_t iova); \
    TEST(name, .times = COUNT(iovas), .unless = is_device)        \
    {                                                             \
        for (enum exporter one = 0; one < EXPORTERS; one++) {     \
            if (exporter_is_there(one)) {                         \
                name##_at(one, iovas[_i]);                        \
            }                                                     \
        }                                                         \
    }                                                             \
    static void name##_at(enum exporter exporter, uint64_t iova)

/* A dmabuf, a region of a piece of it, and what is to be in the piece. */
struct device {
    struct dmabuf dmabuf;
    struct sluice_mr *mr;
    uint64_t iova;
    uint8_t *bytes; /* of the region, by our own mapping */
};

static void device_open(struct device *device, struct sluice_pd *pd, enum exporter exporter,
                        uint64_t iova)
{
    dmabuf_open(&device->dmabuf, exporter, WHOLE, 1);
    device->mr = sluice_mr_register_dmabuf(pd, device->dmabuf.fd, OFFSET, LENGTH, iova, ACCESS);
    require(device->mr, "%s: %s", exporter_name(exporter), sluice_last_error());
    dmabuf_close_fd(&device->dmabuf);
    device->iova = iova;
    device->bytes = device->dmabuf.bytes + OFFSET;
}

/* Requires that no byte outside of the region has changed. */
static void device_close(struct device *device)
{
    uint8_t *whole = malloc(WHOLE);
    require(whole, "no memory");
    pattern_fill(whole, WHOLE, 1);
    require_ok(sluice_mr_deregister(device->mr));
    dmabuf_begin(&device->dmabuf);
    require(memcmp(device->dmabuf.bytes, whole, OFFSET) == 0, "what is before it has changed");
    require(memcmp(device->bytes + LENGTH, whole + OFFSET + LENGTH, WHOLE - OFFSET - LENGTH) == 0,
            "what is behind it has changed");
    dmabuf_end(&device->dmabuf);
    dmabuf_close(&device->dmabuf);
    free(whole);
}

static void device_fill(struct device *device, size_t offset, size_t length, uint64_t key)
{
    dmabuf_begin(&device->dmabuf);
    pattern_fill(device->bytes + offset, length, key);
    dmabuf_end(&device->dmabuf);
}

static void device_check(struct device *device, size_t offset, size_t length, uint64_t key)
{
    dmabuf_begin(&device->dmabuf);
    pattern_check(device->bytes + offset, length, key);
    dmabuf_end(&device->dmabuf);
}

static struct sluice_sge device_sge(const struct device *device, size_t offset, size_t length)
{
    struct sluice_sge sge;
    require_ok(sluice_mr_sge(device->mr, offset, length, &sge));
    require(sge.addr == device->iova + offset, "an element at %#llx", (unsigned long long)sge.addr);
    return sge;
}

static struct sluice_remote_mr device_remote(const struct device *device, size_t offset,
                                             size_t length)
{
    struct sluice_remote_mr whole, part;
    require_ok(sluice_mr_remote(device->mr, &whole));
    require(whole.addr == device->iova && whole.length == LENGTH, "%llu bytes at %#llx",
            (unsigned long long)whole.length, (unsigned long long)whole.addr);
    require_ok(sluice_remote_mr_slice(&whole, offset, length, &part));
    return part;
}

/* A pair, ordinary memory at its first end, and a dmabuf at each. */
struct rig {
    struct pair pair;
    struct memory host;
    struct device near, far;
};

static void rig_open(struct rig *rig, enum exporter exporter, uint64_t iova)
{
    struct sluice_channel_attr attr = {.size = sizeof(attr),
                                       .access = ACCESS & ~SLUICE_ACCESS_LOCAL_WRITE};
    pair_open(&rig->pair, &attr);
    memory_open_at(&rig->host, rig->pair.sides.pds[0], LENGTH, ACCESS, 8);
    device_open(&rig->near, rig->pair.sides.pds[0], exporter, iova);
    device_open(&rig->far, rig->pair.sides.pds[1], exporter, iova);
}

static void rig_close(struct rig *rig)
{
    device_close(&rig->near);
    device_close(&rig->far);
    memory_close(&rig->host);
    pair_close(&rig->pair);
}

/* Sends from the first end to the second. */
static void send_to(struct rig *rig, const struct sluice_sge *from, uint32_t from_count,
                    const struct sluice_sge *to, uint32_t to_count)
{
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, to);
    receive.sge_count = to_count;
    struct sluice_handle handle = post(rig->pair.channels[1], &receive);
    require_ok(sluice_channel_send(rig->pair.channels[0], from, from_count, DEADLINE));
    await(rig->pair.channels[1], handle, SLUICE_CLASS_NONE);
}

static const size_t sizes[] = {1, 8, 48, 256, 257, 4096, 5001, 40000, LENGTH - 9};

TEST_OF_EACH_AT(what_a_peer_reads_and_writes)
{
    struct rig rig;
    rig_open(&rig, exporter, iova);
    require(sluice_mr_addr(rig.far.mr) == NULL && sluice_mr_length(rig.far.mr) == LENGTH,
            "%zu bytes at %p", sluice_mr_length(rig.far.mr), sluice_mr_addr(rig.far.mr));
    require(sluice_mr_page_size(rig.far.mr) == 0, "a page size");
    /* More than once with a key: a peer then asks for direct access. */
    for (uint32_t i = 0; i < 2 * COUNT(sizes); i++) {
        size_t size = sizes[i % COUNT(sizes)], at = i % 9;
        struct sluice_sge sge = memory_sge(&rig.host, 0, size);
        struct sluice_remote_mr remote = device_remote(&rig.far, at, size);
        pattern_fill(rig.host.bytes, size, 10 + i);
        require_ok(sluice_channel_write(rig.pair.channels[0], &sge, 1, &remote, DEADLINE));
        device_check(&rig.far, at, size, 10 + i);
        device_fill(&rig.far, at, size, 50 + i);
        require_ok(sluice_channel_read(rig.pair.channels[0], &sge, 1, &remote, DEADLINE));
        pattern_check(rig.host.bytes, size, 50 + i);
    }
    rig_close(&rig);
}

TEST_OF_EACH_AT(what_is_sent_and_received)
{
    struct rig rig;
    rig_open(&rig, exporter, iova);
    for (uint32_t i = 0; i < 2 * COUNT(sizes); i++) {
        size_t size = sizes[i % COUNT(sizes)], at = i % 9;
        struct sluice_sge host = memory_sge(&rig.host, 0, size);
        struct sluice_sge near = device_sge(&rig.near, at, size);
        struct sluice_sge far = device_sge(&rig.far, 9 - at, size);
        pattern_fill(rig.host.bytes, size, 10 + i);
        send_to(&rig, &host, 1, &far, 1);
        device_check(&rig.far, 9 - at, size, 10 + i);
        device_fill(&rig.near, at, size, 50 + i);
        send_to(&rig, &near, 1, &far, 1);
        device_check(&rig.far, 9 - at, size, 50 + i);
    }
    rig_close(&rig);
}

/* The dmabuf as local memory of one-sided requests, and both ends at once. */
TEST_OF_EACH_AT(what_is_written_from_it_and_read_to_it)
{
    struct rig rig;
    struct memory far;
    rig_open(&rig, exporter, iova);
    memory_open(&far, rig.pair.sides.pds[1], LENGTH);
    /* Memory that a peer can map, too. */
    struct sluice_mr *mapped = made(sluice_mr_alloc(rig.pair.sides.pds[1], LENGTH, ACCESS_ALL));
    for (uint32_t i = 0; i < 3 * COUNT(sizes); i++) {
        size_t size = sizes[i % COUNT(sizes)], at = i % 9;
        struct sluice_sge sge = device_sge(&rig.near, at, size);
        struct sluice_remote_mr to[3] = {memory_remote(&far, 0, size),
                                         device_remote(&rig.far, at, size)};
        uint8_t *bytes[3] = {far.bytes, rig.far.bytes + at, sluice_mr_addr(mapped)};
        require_ok(sluice_mr_remote(mapped, &to[2]));
        to[2].length = size;
        device_fill(&rig.near, at, size, i);
        require_ok(sluice_channel_write(rig.pair.channels[0], &sge, 1, &to[i % 3], DEADLINE));
        dmabuf_begin(&rig.far.dmabuf);
        pattern_check(bytes[i % 3], size, i);
        pattern_fill(bytes[i % 3], size, 100 + i);
        dmabuf_end(&rig.far.dmabuf);
        require_ok(sluice_channel_read(rig.pair.channels[0], &sge, 1, &to[i % 3], DEADLINE));
        device_check(&rig.near, at, size, 100 + i);
    }
    require_ok(sluice_mr_deregister(mapped));
    memory_close(&far);
    rig_close(&rig);
}

/* Publishes a part by name, with the program's descriptor closed, and nothing around it. */
TEST_OF_EACH_AT(what_is_published_by_name)
{
    struct sluice_buffer_service_attr attr = {.size = sizeof(attr), .address = "127.0.0.1:0"};
    const size_t at = 5001, length = 40000;
    struct sluice_buffer_service *services[2];
    struct sluice_buffer_handle handle;
    struct sides sides;
    struct device device;
    uint8_t *target = malloc(length);
    sides_open(&sides);
    device_open(&device, sides.pds[0], exporter, iova);
    for (int i = 0; i < 2; i++) {
        services[i] = sluice_buffer_service_open(&sides.pds[i], 1, &attr);
        require(target && services[i], "%s", sluice_last_error());
    }
    struct sluice_buffer *buffer = sluice_buffer_publish_mr(
        services[0], device.mr, at, length, SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE);
    require(buffer, "%s: %s", exporter_name(exporter), sluice_last_error());
    require(sluice_buffer_addr(buffer) == NULL, "%p", sluice_buffer_addr(buffer));
    require_ok(sluice_buffer_export(buffer, &handle));
    require_error(sluice_mr_deregister(device.mr), -EBUSY, "published as buffer 1");
    for (uint64_t i = 0; i < 4; i++) {
        device_fill(&device, at, length, 10 + i);
        require_ok(sluice_buffer_read(services[1], &handle, 0, NULL, target, length, DEADLINE));
        pattern_check(target, length, 10 + i);
        pattern_fill(target, length, 50 + i);
        require_ok(sluice_buffer_write(services[1], &handle, 0, NULL, target, length, DEADLINE));
        device_check(&device, at, length, 50 + i);
    }
    sluice_buffer_release(buffer);
    for (int i = 0; i < 2; i++) {
        sluice_buffer_service_close(services[i]);
    }
    device_close(&device);
    sides_close(&sides);
    free(target);
}

/* Pieces of both kinds, and some of no bytes, by one request. */
TEST_OF_EACH(lists_of_both_kinds)
{
    struct rig rig;
    rig_open(&rig, exporter, iovas[2]);
    for (uint32_t i = 0; i < COUNT(sizes); i++) {
        size_t size = sizes[i] / 3;
        struct sluice_sge from[4] = {
            device_sge(&rig.near, 0, size), memory_sge(&rig.host, size, size),
            device_sge(&rig.near, LENGTH, 0), device_sge(&rig.near, LENGTH - 9, 9)};
        struct sluice_sge to[2] = {device_sge(&rig.far, 5, size + 3),
                                   device_sge(&rig.far, 5 + size + 3, size + 6)};
        uint8_t *whole = malloc(2 * size + 9);
        require(whole, "no memory");
        pattern_fill(whole, 2 * size + 9, i);
        dmabuf_begin(&rig.near.dmabuf);
        memcpy(rig.near.bytes, whole, size);
        memcpy(rig.near.bytes + LENGTH - 9, whole + 2 * size, 9);
        dmabuf_end(&rig.near.dmabuf);
        memcpy(rig.host.bytes + size, whole + size, size);
        send_to(&rig, from, 4, to, 2);
        device_check(&rig.far, 5, 2 * size + 9, i);
        device_fill(&rig.far, 5, 2 * size + 9, 70 + i);
        struct sluice_remote_mr remote = device_remote(&rig.far, 5, 2 * size + 9);
        require_ok(sluice_channel_read(rig.pair.channels[0], from, 4, &remote, DEADLINE));
        pattern_fill(whole, 2 * size + 9, 70 + i);
        dmabuf_begin(&rig.near.dmabuf);
        require(memcmp(rig.near.bytes, whole, size) == 0, "the first piece");
        require(memcmp(rig.near.bytes + LENGTH - 9, whole + 2 * size, 9) == 0, "the last piece");
        dmabuf_end(&rig.near.dmabuf);
        require(memcmp(rig.host.bytes + size, whole + size, size) == 0, "the piece between");
        free(whole);
    }
    rig_close(&rig);
}

TEST_OF_EACH(atomic_operations)
{
    struct rig rig;
    uint64_t value, result;
    rig_open(&rig, exporter, iovas[2]);
    struct sluice_sge results[2] = {device_sge(&rig.near, 16, 8), memory_sge(&rig.host, 8, 8)};
    struct sluice_remote_mr remote = device_remote(&rig.far, 24, 8);
    device_fill(&rig.far, 24, 8, 5);
    pattern_fill(&value, sizeof(value), 5);
    for (uint32_t i = 0; i < 8; i++) {
        if (i % 4 < 2) {
            require_ok(sluice_channel_fetch_add(rig.pair.channels[0], &results[i % 2], &remote,
                                                i + 3, DEADLINE));
        } else {
            require_ok(sluice_channel_compare_swap(rig.pair.channels[0], &results[i % 2], &remote,
                                                   value, value + i + 3, DEADLINE));
        }
        dmabuf_begin(&rig.near.dmabuf);
        memcpy(&result, i % 2 == 0 ? rig.near.bytes + 16 : rig.host.bytes + 8, 8);
        dmabuf_end(&rig.near.dmabuf);
        require(result == value, "operation %u: %#llx was there, and not %#llx", i,
                (unsigned long long)result, (unsigned long long)value);
        value += i + 3;
    }
    dmabuf_begin(&rig.far.dmabuf);
    require(memcmp(rig.far.bytes + 24, &value, 8) == 0, "the last value");
    dmabuf_end(&rig.far.dmabuf);
    rig_close(&rig);
}

/* Many at a time, in both directions, so that some are sent together and some in part. */
TEST_OF_EACH(many_at_once)
{
    enum { MESSAGES = 32 };
    size_t size = LENGTH / MESSAGES;
    struct rig rig;
    struct sluice_handle receives[2][MESSAGES], sends[2][MESSAGES];
    rig_open(&rig, exporter, iovas[0]);
    struct device *devices[2] = {&rig.near, &rig.far};
    for (int end = 0; end < 2; end++) {
        struct device other;
        device_open(&other, rig.pair.sides.pds[!end], exporter, iovas[3]);
        for (uint32_t i = 0; i < MESSAGES; i++) {
            struct sluice_sge sge = device_sge(&other, i * size, size);
            struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &sge);
            receives[end][i] = post(rig.pair.channels[!end], &receive);
        }
        device_fill(devices[end], 0, LENGTH, 40);
        for (uint32_t i = 0; i < MESSAGES; i++) {
            struct sluice_sge sge = device_sge(devices[end], i * size, size);
            struct sluice_request send = request_of(SLUICE_OP_SEND, 0, &sge);
            sends[end][i] = post(rig.pair.channels[end], &send);
        }
        for (uint32_t i = 0; i < MESSAGES; i++) {
            await(rig.pair.channels[!end], receives[end][i], SLUICE_CLASS_NONE);
            await(rig.pair.channels[end], sends[end][i], SLUICE_CLASS_NONE);
        }
        device_check(&other, 0, MESSAGES * size, 40);
        device_close(&other);
    }
    rig_close(&rig);
}

/* 16 bytes, some of which are outside: of the element, or of the peer's memory. */
static const struct outside {
    uint32_t opcode;
    bool of_peer;
    int64_t at;     /* from the first byte of the region on */
    bool by_itself; /* from that byte on as this process has mapped it */
    int error;
} outsides[] = {
    {SLUICE_OP_WRITE, true, LENGTH - 15, false, -EACCES},
    {SLUICE_OP_READ, true, -1, false, -EACCES},
    {SLUICE_OP_WRITE, false, LENGTH - 15, false, -EFAULT},
    {SLUICE_OP_READ, false, -1, false, -EFAULT},
    {SLUICE_OP_WRITE, false, 0, true, -EFAULT},
};

static void check_one_outside(struct rig *rig, const struct outside *outside)
{
    struct sluice_sge sge =
        outside->of_peer ? memory_sge(&rig->host, 0, 16) : device_sge(&rig->near, 0, 16);
    struct sluice_request request = request_of(outside->opcode, 0, &sge);
    request.remote = device_remote(&rig->far, 0, 16);
    if (outside->by_itself) {
        sge.addr = (uintptr_t)rig->near.bytes;
    }
    *(outside->of_peer ? &request.remote.addr : &sge.addr) += (uint64_t)outside->at;
    require_result(sluice_channel_submit(rig->pair.channels[0], &request, 1, DEADLINE, NULL),
                   outside->error);
    pair_reset(&rig->pair);
}

/* The request is refused as with any memory. */
TEST_OF_EACH(what_is_outside)
{
    struct rig rig;
    rig_open(&rig, exporter, iovas[1]);
    device_fill(&rig.near, 0, LENGTH, 7);
    device_fill(&rig.far, 0, LENGTH, 8);
    for (size_t i = 0; i < COUNT(outsides); i++) {
        check_one_outside(&rig, &outsides[i]);
    }
    device_check(&rig.near, 0, LENGTH, 7);
    device_check(&rig.far, 0, LENGTH, 8);
    rig_close(&rig);
}

/* Only permitted changes happen: peers can read a region without LOCAL_WRITE. */
TEST_OF_EACH(one_that_is_read_only)
{
    struct pair pair;
    struct dmabuf dmabuf;
    struct memory host;
    struct sluice_remote_mr remote;
    if (exporter == EXPORTER_UDMABUF) {
        return;
    }
    pair_open(&pair, NULL);
    memory_open(&host, pair.sides.pds[0], LENGTH);
    dmabuf_open_read_only(&dmabuf, exporter, WHOLE);
    require_null(sluice_mr_register_dmabuf(pair.sides.pds[1], dmabuf.fd, OFFSET, LENGTH, iovas[2],
                                           ACCESS_ALL),
                 EACCES, "reading and writing LOCAL_WRITE");
    struct sluice_mr *mr = made(sluice_mr_register_dmabuf(
        pair.sides.pds[1], dmabuf.fd, OFFSET, LENGTH, iovas[2], SLUICE_ACCESS_REMOTE_READ));
    require_ok(sluice_mr_remote(mr, &remote));
    struct sluice_sge sge = memory_sge(&host, 0, LENGTH);
    pattern_fill(host.bytes, LENGTH, 77);
    require_ok(sluice_channel_read(pair.channels[0], &sge, 1, &remote, DEADLINE));
    dmabuf_begin(&dmabuf);
    require(memcmp(host.bytes, dmabuf.bytes + OFFSET, LENGTH) == 0, "not what was there");
    dmabuf_end(&dmabuf);
    require_result(sluice_channel_write(pair.channels[0], &sge, 1, &remote, DEADLINE), -EACCES);
    require_ok(sluice_mr_deregister(mr));
    dmabuf_close(&dmabuf);
    memory_close(&host);
    pair_close(&pair);
}

TEST_OF_EACH(posted_work_keeps_it)
{
    struct rig rig;
    rig_open(&rig, exporter, iovas[2]);
    struct sluice_sge far = device_sge(&rig.far, 0, 100);
    struct sluice_sge host = memory_sge(&rig.host, 0, 100);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &far);
    struct sluice_handle handle = post(rig.pair.channels[1], &receive);
    require_error(sluice_mr_deregister(rig.far.mr), -EBUSY, "posted");
    require_ok(sluice_channel_send(rig.pair.channels[0], &host, 1, DEADLINE));
    await(rig.pair.channels[1], handle, SLUICE_CLASS_NONE);
    rig_close(&rig);
}

/* The key of a region that is gone is refused. */
TEST_OF_EACH(key_of_a_region_that_is_gone)
{
    struct rig rig;
    struct device gone;
    rig_open(&rig, exporter, iovas[2]);
    device_open(&gone, rig.pair.sides.pds[1], exporter, iovas[3]);
    struct sluice_sge sge = memory_sge(&rig.host, 0, 5000);
    struct sluice_remote_mr remote = device_remote(&gone, 0, 5000);
    for (int i = 0; i < 4; i++) {
        require_ok(sluice_channel_read(rig.pair.channels[0], &sge, 1, &remote, DEADLINE));
    }
    device_close(&gone);
    require_result(sluice_channel_read(rig.pair.channels[0], &sge, 1, &remote, DEADLINE), -EACCES);
    rig_close(&rig);
}

/* Nothing is left of a region, and a child of fork() has neither its memory nor the device. */
TEST_OF_EACH(nothing_is_left)
{
    struct sides sides;
    struct dmabuf dmabuf;
    sides_open(&sides);
    dmabuf_open(&dmabuf, exporter, WHOLE, 1);
    int fds = count_fds();
    for (int i = 0; i < 100; i++) {
        struct sluice_mr *mr = made(
            sluice_mr_register_dmabuf(sides.pds[0], dmabuf.fd, OFFSET, LENGTH, iovas[0], ACCESS));
        require(count_fds() == fds + 1, "%d descriptors, were %d", count_fds(), fds);
        if (i == 0) {
            fflush(NULL);
            pid_t child = fork();
            if (child == 0) {
                _exit(count_fds() < fds + 1 ? 0 : 1);
            }
            int status = 1;
            require(child > 0 && waitpid(child, &status, 0) == child && status == 0,
                    "a child has the descriptor: %d", status);
        }
        require_ok(sluice_mr_deregister(mr));
    }
    require(count_fds() == fds, "%d descriptors, were %d", count_fds(), fds);
    dmabuf_close(&dmabuf);
    sides_close(&sides);
}

/* The error of rxe and most providers: the text names the device. */
TEST(a_device_that_cannot, .unless = device_is_soft)
{
    struct sides sides;
    struct dmabuf dmabuf;
    sides_open(&sides);
    for (enum exporter exporter = EXPORTER_UDMABUF; exporter < EXPORTERS; exporter++) {
        if (!exporter_is_there(exporter)) {
            continue;
        }
        dmabuf_open(&dmabuf, exporter, WHOLE, 1);
        require_null(
            sluice_mr_register_dmabuf(sides.pds[0], dmabuf.fd, OFFSET, LENGTH, iovas[2], 0),
            EOPNOTSUPP, test_device());
        dmabuf_close(&dmabuf);
    }
    sides_close(&sides);
}

/* Each rank writes to the next one's memory and reads from it, and sends from its own to it. */
static void be_neighbour(struct rank *rank)
{
    enum exporter exporter = *(const enum exporter *)rank->argument;
    uint32_t next = (rank->index + 1) % rank->size, before = (next + 1) % rank->size;
    struct sluice_remote_mr ours[GROUP_MAX], theirs[GROUP_MAX];
    struct device device;
    struct memory host;
    struct mesh mesh;
    mesh_open(&mesh, rank, NULL);
    device_open(&device, mesh.pd, exporter, iovas[2] + rank->index * WHOLE);
    memory_open(&host, mesh.pd, LENGTH);
    for (uint32_t i = 0; i < rank->size; i++) {
        ours[i] = device_remote(&device, 0, LENGTH);
    }
    rank_exchange(rank, ours, theirs, sizeof(ours[0]));
    struct sluice_sge sge = memory_sge(&host, 0, LENGTH);
    for (uint32_t i = 0; i < 4; i++) {
        pattern_fill(host.bytes, LENGTH, pattern_key(rank->index, next, i));
        struct sluice_peer_remote_mr remote = {.peer = next, .remote = theirs[next]};
        require_ok(sluice_multichannel_write(mesh.all, next, &sge, 1, &remote.remote, DEADLINE));
        memset(host.bytes, 0, LENGTH);
        require_ok(sluice_multichannel_read(mesh.all, next, &sge, 1, &remote.remote, DEADLINE));
        pattern_check(host.bytes, LENGTH, pattern_key(rank->index, next, i));
        mesh_barrier(&mesh, rank);
        device_check(&device, 0, LENGTH, pattern_key(before, rank->index, i));
        mesh_barrier(&mesh, rank);
        /* The same by messages, from device to device. */
        struct sluice_sge all = device_sge(&device, 0, LENGTH / 2);
        struct sluice_sge half = device_sge(&device, LENGTH / 2, LENGTH / 2);
        struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, before, &half);
        struct sluice_handle handle = {0};
        struct sluice_completion completion = {0};
        device_fill(&device, 0, LENGTH / 2, 5 + i);
        require_result(sluice_multichannel_post(mesh.all, &receive, 1, DEADLINE, &handle), 1);
        require_ok(sluice_multichannel_send(mesh.all, next, &all, 1, DEADLINE));
        require_ok(sluice_multichannel_wait(mesh.all, &handle, DEADLINE, &completion));
        require_class(&completion, SLUICE_CLASS_NONE);
        device_check(&device, LENGTH / 2, LENGTH / 2, 5 + i);
        mesh_barrier(&mesh, rank);
    }
    mesh_barrier(&mesh, rank);
    memory_close(&host);
    device_close(&device);
    mesh_close(&mesh);
}

TEST_OF_EACH(neighbours, .group = "processes")
{
    group_run(3, be_neighbour, &exporter, 60);
}

int main(void)
{
    return RUN_GROUPS("dmabuf", {"self", WIRE_SELF, 30}, {"tcp", WIRE_TCP, 30},
                      {"shm", WIRE_SHM, 30}, {"processes", WIRE_SHM, 60});
}
