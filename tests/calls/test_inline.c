/* SPDX-License-Identifier: MIT */
/*
 * Inline requests: the bytes are copied during the post from any memory, registered or not, and the
 * keys of elements are ignored.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "../support/pair.h"

#define LENGTH 48

static const struct sluice_channel_attr attr = {.size = sizeof(attr), .max_inline = 64};

/* The forms in which a request may be given. */
enum form { BLOCKING, POSTED, POSTED_LIST, SCOPED, FORMS };

struct fixture {
    struct pair pair;
    struct memory far;
    uint32_t keys[3]; /* no key, nonsense, and that of a region that is gone */
};

static void fixture_open(struct fixture *fixture)
{
    struct memory gone;
    pair_open(&fixture->pair, &attr);
    fixture->far = side_memory(&fixture->pair.sides, 1, LENGTH);
    memory_open(&gone, fixture->pair.sides.pds[0], LENGTH);
    fixture->keys[0] = 0;
    fixture->keys[1] = 0xdeadbeef;
    fixture->keys[2] = sluice_mr_lkey(gone.mr);
    memory_close(&gone);
}

static void fixture_close(struct fixture *fixture)
{
    pair_close(&fixture->pair);
}

/* Sends the same bytes twice; the second copy is overwritten as soon as the call returns. */
static void run(struct fixture *fixture, enum form form, const struct sluice_request *request)
{
    struct sluice_channel *channel = fixture->pair.channels[0];
    struct sluice_request list[2] = {*request, *request};
    struct sluice_scope *scope;
    switch (form) {
    case BLOCKING:
        require_ok(sluice_channel_submit(channel, list, 2, DEADLINE, NULL));
        break;
    case POSTED:
        require_result(sluice_channel_post(channel, &list[0], 1, DEADLINE, NULL), 1);
        require_result(sluice_channel_post(channel, &list[1], 1, DEADLINE, NULL), 1);
        break;
    case POSTED_LIST:
        require_result(sluice_channel_post(channel, list, 2, DEADLINE, NULL), 2);
        break;
    default:
        scope = sluice_channel_scope_begin(channel, DEADLINE);
        require(sluice_scope_post(scope, list, 2, NULL) >= 0, "%s", sluice_last_error());
        require_ok(sluice_scope_end(scope, NULL));
        break;
    }
}

static void one_of_each(struct fixture *fixture, enum form form, uint32_t opcode, uint32_t lkey)
{
    uint8_t bytes[LENGTH];
    struct sluice_handle handles[2];
    uint64_t key = pattern_key(form, opcode, lkey);
    struct sluice_request request = {
        .opcode = opcode,
        .flags = SLUICE_INLINE,
        .sge_count = 1,
        .sge = {.addr = (uintptr_t)bytes, .length = LENGTH, .lkey = lkey},
        .remote = memory_remote(&fixture->far, 0, LENGTH)};
    pattern_fill(bytes, LENGTH, key);
    memset(fixture->far.bytes, 0, LENGTH);
    for (int i = 0; opcode == SLUICE_OP_SEND && i < 2; i++) {
        struct sluice_request receive = {.opcode = SLUICE_OP_RECEIVE,
                                         .sge_count = 1,
                                         .sge = memory_sge(&fixture->far, 0, LENGTH)};
        handles[i] = post(fixture->pair.channels[1], &receive);
    }
    run(fixture, form, &request);
    memset(bytes, 0xee, LENGTH);
    require_ok(sluice_channel_flush(fixture->pair.channels[0], DEADLINE));
    for (int i = 0; opcode == SLUICE_OP_SEND && i < 2; i++) {
        await(fixture->pair.channels[1], handles[i], SLUICE_CLASS_NONE);
    }
    pattern_check(fixture->far.bytes, LENGTH, key);
}

TEST_WITH(fixture, memory_that_is_not_registered, (), .times = FORMS)
{
    for (size_t i = 0; i < COUNT(fixture->keys); i++) {
        one_of_each(fixture, (enum form)_i, SLUICE_OP_SEND, fixture->keys[i]);
        one_of_each(fixture, (enum form)_i, SLUICE_OP_WRITE, fixture->keys[i]);
    }
}

/* Without the flag the device checks the key. */
TEST_WITH(fixture, the_same_without_the_flag, (), .times = 3)
{
    uint8_t bytes[LENGTH] = {0};
    struct sluice_request request = {
        .opcode = SLUICE_OP_WRITE,
        .sge_count = 1,
        .sge = {.addr = (uintptr_t)bytes, .length = LENGTH, .lkey = fixture->keys[_i]},
        .remote = memory_remote(&fixture->far, 0, LENGTH)};
    struct sluice_completion completion;
    int result =
        sluice_channel_submit(fixture->pair.channels[0], &request, 1, DEADLINE, &completion);
    require(result == completion.error, "%d, not %d", result, completion.error);
    require_class(&completion, SLUICE_CLASS_LOCAL);
}

/* Several elements, of which one has no bytes and an invalid address. */
TEST_WITH(fixture, several_elements, (), .times = FORMS)
{
    uint8_t bytes[LENGTH];
    pattern_fill(bytes, LENGTH, 5);
    struct sluice_sge sges[4] = {
        {.addr = (uintptr_t)bytes, .length = 5, .lkey = 1},
        {.addr = 0, .length = 0, .lkey = 0},
        {.addr = (uintptr_t)bytes + 5, .length = 20, .lkey = UINT32_MAX},
        {.addr = (uintptr_t)bytes + 25, .length = LENGTH - 25, .lkey = 0},
    };
    struct sluice_request request = {.opcode = SLUICE_OP_WRITE,
                                     .flags = SLUICE_INLINE,
                                     .sges = sges,
                                     .sge_count = 4,
                                     .remote = memory_remote(&fixture->far, 0, LENGTH)};
    run(fixture, (enum form)_i, &request);
    memset(bytes, 0xee, LENGTH);
    require_ok(sluice_channel_flush(fixture->pair.channels[0], DEADLINE));
    pattern_check(fixture->far.bytes, LENGTH, 5);
    /* No element at all, and one with an invalid address. */
    request.sges = &sges[1];
    request.sge_count = 1;
    run(fixture, (enum form)_i, &request);
    require_ok(sluice_channel_flush(fixture->pair.channels[0], DEADLINE));
}

/* The region may end, and the memory be unmapped, before the peer takes the message. */
TEST(memory_that_goes_after_the_post)
{
    struct fixture fixture;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    fixture_open(&fixture);
    uint8_t *bytes = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(bytes != MAP_FAILED, "%s", strerror(errno));
    pattern_fill(bytes, LENGTH, 6);
    struct sluice_mr *mr = made(sluice_mr_register(fixture.pair.sides.pds[0], bytes, page, 0));
    struct sluice_request send = {.opcode = SLUICE_OP_SEND, .flags = SLUICE_INLINE, .sge_count = 1};
    require_ok(sluice_mr_sge_at(mr, bytes, LENGTH, &send.sge));
    struct sluice_handle sent = post(fixture.pair.channels[0], &send);
    require_ok(sluice_mr_deregister(mr));
    munmap(bytes, page);
    struct sluice_sge in = memory_sge(&fixture.far, 0, LENGTH);
    require_ok(sluice_channel_receive(fixture.pair.channels[1], &in, 1, DEADLINE, NULL));
    await(fixture.pair.channels[0], sent, SLUICE_CLASS_NONE);
    pattern_check(fixture.far.bytes, LENGTH, 6);
    fixture_close(&fixture);
}

int main(void)
{
    return run_tests("inline", 30);
}
