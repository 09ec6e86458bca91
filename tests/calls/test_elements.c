/* SPDX-License-Identifier: MIT */
/*
 * Requests with their only element inside, without a list: what may be asked for so, and that a
 * missing element is reported. That each call for lists takes them is in test_forms.
 */
#include "../support/pair.h"

#define PEERS 4
#define PIECE 512
#define MESSAGE 4096
#define LONG (3 * MESSAGE - 100)

static const struct sluice_channel_attr attr = {
    .size = sizeof(attr), .max_message = MESSAGE, .max_inline = 64};

/* Near memory is the hub's, far memory that of its peers; piece i is with peer i. */
struct fixture {
    struct star star;
    struct memory near, far;
    bool atomics;
};

static void fixture_open(struct fixture *fixture)
{
    uint32_t access = ACCESS_ALL;
    star_open(&fixture->star, PEERS, &attr);
    fixture->atomics = context_info(fixture->star.sides.contexts[1]).atomics != SLUICE_ATOMICS_NONE;
    if (fixture->atomics) {
        access |= SLUICE_ACCESS_REMOTE_ATOMIC;
    }
    fixture->near = side_memory(&fixture->star.sides, 0, LONG);
    memory_open_at(&fixture->far, fixture->star.sides.pds[1], LONG, access, 0);
}

static void fixture_close(struct fixture *fixture)
{
    memory_close(&fixture->far);
    star_close(&fixture->star);
}

/* Makes a request with its element inside. */
static struct sluice_request own(uint32_t opcode, uint32_t peer, struct sluice_sge sge)
{
    return (struct sluice_request){
        .opcode = opcode, .peer = peer, .sge_count = 1, .sge = sge, .user_data = 7000 + peer};
}

static struct sluice_request near_piece(const struct fixture *fixture, uint32_t opcode,
                                        uint32_t peer)
{
    struct sluice_request request =
        own(opcode, peer, memory_sge(&fixture->near, peer * PIECE, PIECE));
    request.remote = memory_remote(&fixture->far, peer * PIECE, PIECE);
    return request;
}

static void ask_all(const struct fixture *fixture, uint32_t opcode, struct sluice_request *requests)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        requests[i] = near_piece(fixture, opcode, i);
    }
}

/* Piece i of a memory gets the pattern of peer i; the other memory is empty. */
static void fill(struct memory *full, struct memory *empty, uint32_t operation)
{
    memset(empty->bytes, 0, empty->length);
    for (uint32_t i = 0; i < PEERS; i++) {
        pattern_fill(full->bytes + i * PIECE, PIECE, pattern_key(0, i, operation));
    }
}

static void check(const struct memory *memory, uint32_t operation)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        pattern_check(memory->bytes + i * PIECE, PIECE, pattern_key(0, i, operation));
    }
}

/* Each spoke posts its side with an element of its own. */
static void post_far(struct fixture *fixture, uint32_t opcode, struct sluice_handle *handles)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        struct sluice_request request = own(opcode, 0, memory_sge(&fixture->far, i * PIECE, PIECE));
        handles[i] = post(fixture->star.spokes[i], &request);
    }
}

TEST_WITH(fixture, sends_and_receives_together, ())
{
    struct sluice_request receives[PEERS], sends[PEERS];
    struct sluice_handle handles[PEERS];
    fill(&fixture->far, &fixture->near, 5);
    post_far(fixture, SLUICE_OP_RECEIVE, handles);
    ask_all(fixture, SLUICE_OP_SEND, sends);
    ask_all(fixture, SLUICE_OP_RECEIVE, receives);
    for (uint32_t i = 0; i < PEERS; i++) {
        struct sluice_request answer =
            own(SLUICE_OP_SEND, 0, memory_sge(&fixture->far, i * PIECE, PIECE));
        sends[i].sge = (struct sluice_sge){0};
        sends[i].sge_count = 0;
        post(fixture->star.spokes[i], &answer);
    }
    require_ok(sluice_multichannel_scatter_gather(fixture->star.hub, sends, PEERS, receives, PEERS,
                                                  DEADLINE, NULL));
    check(&fixture->near, 5);
    for (uint32_t i = 0; i < PEERS; i++) {
        require_ok(sluice_channel_flush(fixture->star.spokes[i], DEADLINE));
    }
}

/* A write and a read that are longer than a message are done in parts. */
TEST_WITH(fixture, in_parts, ())
{
    struct sluice_handle handle;
    struct sluice_multichannel *hub = fixture->star.hub;
    struct sluice_request request = own(SLUICE_OP_WRITE, 1, memory_sge(&fixture->near, 0, LONG));
    request.remote = memory_remote(&fixture->far, 0, LONG);

    pattern_fill(fixture->near.bytes, LONG, 11);
    require_ok(sluice_multichannel_submit(hub, &request, 1, DEADLINE, NULL));
    pattern_check(fixture->far.bytes, LONG, 11);
    pattern_fill(fixture->far.bytes, LONG, 12);
    request.opcode = SLUICE_OP_READ;
    require_result(sluice_multichannel_post(hub, &request, 1, DEADLINE, &handle), 1);
    require_ok(sluice_multichannel_flush(hub, DEADLINE));
    pattern_check(fixture->near.bytes, LONG, 12);
    pattern_fill(fixture->near.bytes, LONG, 13);
    request.opcode = SLUICE_OP_WRITE;
    struct sluice_scope *scope = sluice_multichannel_scope_begin(hub, DEADLINE);
    require(sluice_scope_post(scope, &request, 1, NULL) >= 0, "%s", sluice_last_error());
    require_ok(sluice_scope_end(scope, NULL));
    pattern_check(fixture->far.bytes, LONG, 13);
}

TEST(atomic_operations)
{
    struct fixture fixture;
    uint64_t *word, *old;
    fixture_open(&fixture);
    struct sluice_request request = own(SLUICE_OP_FETCH_ADD, 1, memory_sge(&fixture.near, 8, 8));
    request.remote = memory_remote(&fixture.far, 16, 8);
    request.operand[0] = 5;
    word = (uint64_t *)(void *)(fixture.far.bytes + 16);
    old = (uint64_t *)(void *)(fixture.near.bytes + 8);
    *word = 100;
    if (!fixture.atomics) {
        require_error(sluice_multichannel_submit(fixture.star.hub, &request, 1, DEADLINE, NULL),
                      -EOPNOTSUPP, "");
        fixture_close(&fixture);
        return;
    }
    require_ok(sluice_multichannel_submit(fixture.star.hub, &request, 1, DEADLINE, NULL));
    require(*word == 105 && *old == 100, "%llu", (unsigned long long)*word);
    require_result(sluice_multichannel_post(fixture.star.hub, &request, 1, DEADLINE, NULL), 1);
    require_ok(sluice_multichannel_flush(fixture.star.hub, DEADLINE));
    require(*word == 110 && *old == 105, "%llu", (unsigned long long)*word);
    request.sge.length = 4;
    require_error(sluice_multichannel_submit(fixture.star.hub, &request, 1, DEADLINE, NULL),
                  -EINVAL, "8 4");
    request.sge.length = 8;
    request.sge.addr += 4;
    require_error(sluice_multichannel_post(fixture.star.hub, &request, 1, DEADLINE, NULL), -EINVAL,
                  "multiple of 8");
    fixture_close(&fixture);
}

TEST_WITH(fixture, inline_message, ())
{
    struct sluice_request request = own(SLUICE_OP_WRITE, 2, memory_sge(&fixture->near, 0, 64));
    request.flags = SLUICE_INLINE;
    request.remote = memory_remote(&fixture->far, 0, 64);
    pattern_fill(fixture->near.bytes, 64, 14);
    require_result(sluice_multichannel_post(fixture->star.hub, &request, 1, DEADLINE, NULL), 1);
    memset(fixture->near.bytes, 0, 64);
    require_ok(sluice_multichannel_flush(fixture->star.hub, DEADLINE));
    pattern_check(fixture->far.bytes, 64, 14);
    request.sge.length = 65;
    request.remote.length = 65;
    require_error(sluice_multichannel_submit(fixture->star.hub, &request, 1, DEADLINE, NULL),
                  -E2BIG, "65 64");
}

/* A posted request holds the region of its element, wherever the element was. */
TEST_WITH(fixture, posted_element_holds_its_region, ())
{
    struct sluice_request requests[2] = {
        own(SLUICE_OP_RECEIVE, 0, memory_sge(&fixture->far, 0, PIECE)),
        own(SLUICE_OP_RECEIVE, 0, memory_sge(&fixture->far, PIECE, PIECE))};
    for (uint32_t count = 1; count <= 2; count++) {
        require_result(
            sluice_channel_post(fixture->star.spokes[0], requests, count, DEADLINE, NULL), count);
        require_error(sluice_mr_deregister(fixture->far.mr), -EBUSY, "posted");
        for (uint32_t i = 0; i < count; i++) {
            require_ok(sluice_multichannel_send(fixture->star.hub, 0, NULL, 0, DEADLINE));
        }
        require_ok(sluice_channel_flush(fixture->star.spokes[0], DEADLINE));
    }
}

/* If there is a list, the request's own element is ignored. */
TEST_WITH(fixture, list_goes_before_element, ())
{
    struct sluice_sge sges[2] = {memory_sge(&fixture->near, 0, 100),
                                 memory_sge(&fixture->near, 100, 28)};
    struct sluice_request request = own(
        SLUICE_OP_WRITE, 0, (struct sluice_sge){.addr = 1, .length = UINT32_MAX, .lkey = 12345});
    request.remote = memory_remote(&fixture->far, 0, 128);
    request.sges = sges;
    for (uint32_t count = 1; count <= 2; count++) {
        pattern_fill(fixture->near.bytes, 128, 15 + count);
        request.sge_count = count;
        require_ok(sluice_multichannel_submit(fixture->star.hub, &request, 1, DEADLINE, NULL));
        require_result(sluice_multichannel_post(fixture->star.hub, &request, 1, DEADLINE, NULL), 1);
        require_ok(sluice_multichannel_flush(fixture->star.hub, DEADLINE));
        pattern_check(fixture->far.bytes, count == 1 ? 96 : 128, 15 + count);
    }
}

/* Requires that all calls that take requests refuse this one with these words. */
static void refused(struct fixture *fixture, const struct sluice_request *request,
                    const char *words)
{
    struct sluice_multichannel *hub = fixture->star.hub;
    struct sluice_request send = *request;
    struct sluice_request list[2] = {near_piece(fixture, SLUICE_OP_WRITE, 0), *request};
    const uint32_t peers[1] = {0};
    send.opcode = SLUICE_OP_SEND;

    require_error(sluice_multichannel_submit(hub, request, 1, DEADLINE, NULL), -EINVAL, words);
    require_error(sluice_multichannel_submit(hub, list, 2, DEADLINE, NULL), -EINVAL, words);
    require_error(sluice_multichannel_post(hub, request, 1, DEADLINE, NULL), -EINVAL, words);
    require_error(sluice_multichannel_post(hub, list, 2, DEADLINE, NULL), -EINVAL, words);
    require_error(sluice_multichannel_scatter_write(hub, list, 2, DEADLINE, NULL), -EINVAL, words);
    require_error(sluice_multichannel_multicast_send(hub, &send, peers, 1, DEADLINE, NULL), -EINVAL,
                  words);
    struct sluice_scope *scope = sluice_multichannel_scope_begin(hub, DEADLINE);
    require_error(sluice_scope_post(scope, request, 1, NULL), -EINVAL, words);
    require_ok(sluice_scope_end(scope, NULL));
    value_check(fixture->far.bytes, fixture->far.length, 0);
}

TEST_WITH(fixture, forgotten_elements, ())
{
    struct sluice_sge sge;
    memset(fixture->near.bytes, 1, fixture->near.length);
    struct sluice_request request = near_piece(fixture, SLUICE_OP_WRITE, 0);
    sge = request.sge;
    request.sge = (struct sluice_sge){0};
    refused(fixture, &request, "sge zeros forgotten");
    request.sge_count = 2;
    request.sge = sge;
    refused(fixture, &request, "2 NULL");
    request.sge_count = 0;
    request.sges = &sge;
    refused(fixture, &request, "sge_count 0");
    /* An element without a count is not a message of no bytes, whichever field is set. */
    request.sges = NULL;
    request.sge = sge;
    refused(fixture, &request, "element sge_count 0 1 forgotten");
    request.sge = (struct sluice_sge){.lkey = sge.lkey};
    refused(fixture, &request, "element sge_count 0 1 forgotten");
    request.sge = (struct sluice_sge){0};
    require_ok(sluice_multichannel_submit(fixture->star.hub, &request, 1, DEADLINE, NULL));
    require_result(sluice_multichannel_post(fixture->star.hub, &request, 1, DEADLINE, NULL), 1);
    require_ok(sluice_multichannel_flush(fixture->star.hub, DEADLINE));
    /* Address 0, no bytes, or a missing key is not an error where a request allows it. */
    request = near_piece(fixture, SLUICE_OP_WRITE, 0);
    request.sge.length = 0;
    request.sge.lkey = 0;
    require_ok(sluice_multichannel_submit(fixture->star.hub, &request, 1, DEADLINE, NULL));
    value_check(fixture->far.bytes, fixture->far.length, 0);
}

/* A call that takes a list and its length ignores the list if the length is 0. */
TEST_WITH(fixture, calls_with_lists, ())
{
    struct sluice_handle handles[3];
    struct sluice_sge sge = {.addr = 1, .length = UINT32_MAX, .lkey = 12345};
    struct sluice_multichannel *hub = fixture->star.hub;
    struct sluice_remote_mr remote = memory_remote(&fixture->far, 0, PIECE);
    for (int i = 0; i < 3; i++) {
        require_ok(
            sluice_channel_post_receive(fixture->star.spokes[0], &sge, 0, DEADLINE, &handles[i]));
    }
    require_ok(sluice_multichannel_send(hub, 0, &sge, 0, DEADLINE));
    require_ok(sluice_multichannel_post_send(hub, 0, &sge, 0, DEADLINE, NULL));
    require_ok(sluice_multichannel_write(hub, 0, &sge, 0, &remote, DEADLINE));
    require_ok(sluice_multichannel_flush(hub, DEADLINE));
    struct sluice_scope *scope = sluice_multichannel_scope_begin(hub, DEADLINE);
    require(sluice_scope_post_send(scope, 0, &sge, 0, NULL) >= 0, "%s", sluice_last_error());
    require_error(sluice_scope_post_send(scope, 0, NULL, 1, NULL), -EINVAL, "NULL");
    require_ok(sluice_scope_end(scope, NULL));
    for (int i = 0; i < 3; i++) {
        await(fixture->star.spokes[0], handles[i], SLUICE_CLASS_NONE);
    }
    require_error(sluice_multichannel_send(hub, 0, NULL, 1, DEADLINE), -EINVAL,
                  "sges must not be NULL sge_count 1");
    require_error(sluice_multichannel_post_send(hub, 0, NULL, 1, DEADLINE, NULL), -EINVAL,
                  "sges must not be NULL sge_count 1");
}

int main(void)
{
    return run_tests("elements", 30);
}
