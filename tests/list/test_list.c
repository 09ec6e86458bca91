/* SPDX-License-Identifier: MIT */
/* Prepared lists: posted repeatedly, they do what the same requests do. */
#include <sluice/list.h>

#include "../support/pair.h"
#include "../support/process.h"

enum { PEERS = 4, DEPTH = 16, BLOCK = 64, ROUNDS = 40 };
enum kind { SENT, RECEIVED, WRITTEN, READ, KINDS };
#define NEVER_TAKEN 120

/*
 * A hub with a list of all kinds for each peer. The memory near has a block for each kind and peer;
 * in far, each spoke has as many, with the same numbers.
 */
struct fixture {
    struct star star;
    struct memory near, far;
    struct sluice_sge sges[KINDS * PEERS];
    struct sluice_request requests[KINDS * PEERS];
    struct sluice_completion completions[KINDS * PEERS];
    struct sluice_list *list;
};

static size_t offset_of(enum kind kind, uint32_t peer)
{
    return ((size_t)kind * PEERS + peer) * BLOCK;
}

static void ask(struct fixture *fixture, uint32_t at, enum kind kind, uint32_t peer)
{
    static const uint32_t opcodes[] = {SLUICE_OP_SEND, SLUICE_OP_RECEIVE, SLUICE_OP_WRITE,
                                       SLUICE_OP_READ};
    fixture->sges[at] = memory_sge(&fixture->near, offset_of(kind, peer), BLOCK);
    fixture->requests[at] = request_of(opcodes[kind], peer, &fixture->sges[at]);
    fixture->requests[at].user_data = 1000 + at;
    if (kind >= WRITTEN) {
        fixture->requests[at].remote = memory_remote(&fixture->far, offset_of(kind, peer), BLOCK);
    }
}

static struct sluice_list *prepare(struct fixture *fixture, uint32_t count)
{
    return made(sluice_multichannel_list_prepare(fixture->star.hub, fixture->requests, count));
}

static void fixture_open(struct fixture *fixture)
{
    const struct sluice_channel_attr attr =
        *ATTR(.flags = SLUICE_CHANNEL_HISTOGRAMS, .send_depth = DEPTH, .receive_depth = DEPTH);
    memset(fixture, 0, sizeof(*fixture));
    star_open(&fixture->star, PEERS, &attr);
    memory_open(&fixture->near, fixture->star.sides.pds[0], KINDS * PEERS * BLOCK);
    fixture->far = side_memory(&fixture->star.sides, 1, KINDS * PEERS * BLOCK);
    /* Each peer has another order, so that receives and sends are mixed. */
    for (uint32_t i = 0; i < KINDS * PEERS; i++) {
        ask(fixture, i, (enum kind)((i + i / KINDS) % KINDS), i / KINDS);
    }
    fixture->list = prepare(fixture, KINDS * PEERS);
    /* The arguments are not read any more. */
    memset(fixture->sges, 0xff, sizeof(fixture->sges));
}

static void fixture_close(struct fixture *fixture)
{
    sluice_list_free(fixture->list);
    /* Closed before their memory, which failed requests may still name. */
    if (fixture->star.hub) {
        multichannel_is_timed(fixture->star.hub);
    }
    sluice_multichannel_close(fixture->star.hub);
    fixture->star.hub = NULL;
    for (uint32_t i = 0; i < PEERS; i++) {
        sluice_channel_close(fixture->star.spokes[i]);
        fixture->star.spokes[i] = NULL;
    }
    memory_close(&fixture->near);
    star_close(&fixture->star);
}

static struct sluice_handle far_post(struct fixture *fixture, uint32_t peer, uint32_t opcode,
                                     enum kind kind)
{
    struct sluice_sge sge = memory_sge(&fixture->far, offset_of(kind, peer), BLOCK);
    return post_of(fixture->star.spokes[peer], opcode, &sge);
}

/* Spokes receive what the hub sends, and send what it receives. */
static void spokes_take_part(struct fixture *fixture, struct sluice_handle handles[PEERS][2])
{
    for (uint32_t i = 0; i < PEERS; i++) {
        handles[i][0] = far_post(fixture, i, SLUICE_OP_RECEIVE, SENT);
        handles[i][1] = far_post(fixture, i, SLUICE_OP_SEND, RECEIVED);
    }
}

static void spokes_are_done(struct fixture *fixture, struct sluice_handle handles[PEERS][2])
{
    for (uint32_t i = 0; i < PEERS; i++) {
        await(fixture->star.spokes[i], handles[i][0], SLUICE_CLASS_NONE);
        await(fixture->star.spokes[i], handles[i][1], SLUICE_CLASS_NONE);
    }
}

static struct memory *source_of(struct fixture *fixture, enum kind kind)
{
    return kind == SENT || kind == WRITTEN ? &fixture->near : &fixture->far;
}

static void fill(struct fixture *fixture, uint32_t round)
{
    for (uint32_t i = 0; i < KINDS * PEERS; i++) {
        enum kind kind = (enum kind)(i / PEERS);
        struct memory *to = kind == SENT || kind == WRITTEN ? &fixture->far : &fixture->near;
        pattern_fill(source_of(fixture, kind)->bytes + (size_t)i * BLOCK, BLOCK,
                     pattern_key(round, i, kind));
        memset(to->bytes + (size_t)i * BLOCK, 0, BLOCK);
    }
}

static void check(struct fixture *fixture, uint32_t round)
{
    for (uint32_t i = 0; i < KINDS * PEERS; i++) {
        pattern_check(fixture->near.bytes + (size_t)i * BLOCK, BLOCK,
                      pattern_key(round, i, i / PEERS));
        pattern_check(fixture->far.bytes + (size_t)i * BLOCK, BLOCK,
                      pattern_key(round, i, i / PEERS));
    }
}

static void check_completions(const struct fixture *fixture)
{
    for (uint32_t i = 0; i < KINDS * PEERS; i++) {
        const struct sluice_completion *completion = &fixture->completions[i];
        require_equal(completion->user_data, 1000 + i, completion->peer, i / KINDS,
                      completion->opcode, fixture->requests[i].opcode, completion->bytes, BLOCK,
                      completion->error, 0);
    }
}

/* More often than the queues are deep, by both calls, with results and without. */
TEST_WITH(fixture, posted_again_and_again, ())
{
    struct sluice_handle handles[PEERS][2];
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct sluice_completion *completions = round % 2 == 0 ? fixture->completions : NULL;
        fill(fixture, round);
        memset(fixture->completions, 0xff, sizeof(fixture->completions));
        spokes_take_part(fixture, handles);
        if (round % 4 < 2) {
            require_ok(sluice_list_submit(fixture->list, DEADLINE, completions));
        } else {
            require_ok(sluice_list_post(fixture->list, DEADLINE, completions));
            await_list(fixture->list);
        }
        spokes_are_done(fixture, handles);
        check(fixture, round);
        if (completions) {
            check_completions(fixture);
        }
    }
    struct sluice_counters counters = {.size = sizeof(counters)};
    require_ok(sluice_multichannel_counters(fixture->star.hub, &counters));
    require_equal(counters.requests[SLUICE_OP_SEND], ROUNDS * PEERS, counters.bytes[SLUICE_OP_READ],
                  ROUNDS * PEERS * BLOCK);
}

/* A list of one channel, with several requests to its peer, which share a doorbell. */
TEST_WITH(pair, of_a_channel, (NULL))
{
    enum { MESSAGES = 5 };
    struct sluice_sge sges[MESSAGES];
    struct sluice_request requests[MESSAGES];
    struct sluice_completion completions[MESSAGES];
    struct memory memory = side_memory(&pair->sides, 0, 1024);
    struct memory far = side_memory(&pair->sides, 1, 1024);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        sges[i] = memory_sge(&memory, 0, (size_t)8 * i);
        requests[i] = request_of(SLUICE_OP_SEND, 0, &sges[i]);
        requests[i].flags = i == 4 ? SLUICE_IMMEDIATE : 0;
        requests[i].immediate = i == 4 ? 77 : 0;
    }
    requests[0].sges = NULL;
    requests[0].sge_count = 0;
    struct sluice_list *list =
        made(sluice_channel_list_prepare(pair->channels[0], requests, MESSAGES));
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct sluice_handle handles[MESSAGES];
        for (uint32_t i = 0; i < MESSAGES; i++) {
            struct sluice_sge sge = memory_sge(&far, 0, 1024);
            handles[i] = post_of(pair->channels[1], SLUICE_OP_RECEIVE, &sge);
        }
        require_ok(sluice_list_submit(list, DEADLINE, completions));
        for (uint32_t i = 0; i < MESSAGES; i++) {
            struct sluice_completion completion =
                await(pair->channels[1], handles[i], SLUICE_CLASS_NONE);
            require(completion.bytes == 8 * i && completions[i].bytes == 8 * i &&
                        completion.immediate == (i == 4 ? 77 : 0),
                    "message %u: %llu bytes, immediate %u", i, (unsigned long long)completion.bytes,
                    completion.immediate);
        }
    }
    sluice_list_free(list);
}

/*
 * Fills the queue with sends that the hub has not polled, so that further posts to the peer wait.
 */
static void fill_queue(struct fixture *fixture, uint32_t peer)
{
    struct sluice_sge sge = memory_sge(&fixture->near, offset_of(SENT, peer), BLOCK);
    for (uint32_t i = 0; i < DEPTH; i++) {
        require_ok(sluice_multichannel_post_send(fixture->star.hub, peer, &sge, 1, DEADLINE, NULL));
        far_post(fixture, peer, SLUICE_OP_RECEIVE, SENT);
    }
    require_ok(sluice_channel_flush(fixture->star.spokes[peer], DEADLINE));
}

/* Aims a write at other bytes of both sides each time; it may have to wait. */
static void aim_at_other_bytes(bool full)
{
    struct fixture fixture;
    fixture_open(&fixture);
    size_t all = (size_t)KINDS * PEERS * BLOCK;
    struct sluice_sge sge = memory_sge(&fixture.near, 0, BLOCK);
    struct sluice_request request = request_of(SLUICE_OP_WRITE, 1, &sge);
    request.remote = memory_remote(&fixture.far, 0, all);
    struct sluice_list *list =
        made(sluice_multichannel_list_prepare(fixture.star.hub, &request, 1));
    for (size_t i = 0; i < KINDS * PEERS; i++) {
        size_t to = (i * 7 + 3) % (KINDS * PEERS);
        struct sluice_sge from = memory_sge(&fixture.near, i * BLOCK, BLOCK);
        pattern_fill(fixture.near.bytes + i * BLOCK, BLOCK, pattern_key(0, (uint32_t)i, 5));
        require_ok(sluice_list_aim(list, 0, &from, to * BLOCK));
        if (full) {
            fill_queue(&fixture, 1);
        }
        require_ok(sluice_list_submit(list, DEADLINE, NULL));
        pattern_check(fixture.far.bytes + to * BLOCK, BLOCK, pattern_key(0, (uint32_t)i, 5));
    }
    require_ok(sluice_list_aim(list, 0, NULL, 0));
    require_error(sluice_list_aim(list, 1, NULL, 0), -EINVAL, "no request 1");
    require_error(sluice_list_aim(list, 0, NULL, all - BLOCK + 1), -ERANGE, "remote range");
    require_error(sluice_list_aim(list, 0, NULL, UINT64_MAX), -ERANGE, "remote range");
    struct sluice_sge wrong = memory_sge(&fixture.near, 0, BLOCK - 1);
    require_error(sluice_list_aim(list, 0, &wrong, 0), -EINVAL, "64 bytes element 63");
    wrong = sge;
    wrong.lkey++;
    require_error(sluice_list_aim(list, 0, &wrong, 0), -EINVAL, "another region");
    for (uint32_t i = 0; i < KINDS * PEERS; i++) {
        if (fixture.requests[i].opcode == SLUICE_OP_SEND) {
            require_error(sluice_list_aim(fixture.list, i, NULL, 8), -EINVAL, "send remote offset");
        }
    }
    sluice_list_free(list);
    fixture_close(&fixture);
}

TEST(aimed_at_other_bytes)
{
    aim_at_other_bytes(false);
}

TEST(aimed_at_other_bytes_and_no_room)
{
    aim_at_other_bytes(true);
}

/* Both words of an atomic operation must stay aligned. */
TEST(aimed_at_words)
{
    struct fixture fixture;
    fixture_open(&fixture);
    struct sluice_sge sge = memory_sge(&fixture.near, 0, 8);
    struct sluice_request request = request_of(SLUICE_OP_FETCH_ADD, 1, &sge);
    request.remote = memory_remote(&fixture.far, 0, BLOCK);
    request.operand[0] = 3;
    struct sluice_list *list = sluice_multichannel_list_prepare(fixture.star.hub, &request, 1);
    if (!list) {
        require(errno == EOPNOTSUPP, "%s", sluice_last_error());
        fixture_close(&fixture);
        return;
    }
    sluice_list_free(list);
    struct memory memory;
    memory_open_at(&memory, fixture.star.sides.pds[1], BLOCK,
                   ACCESS_ALL | SLUICE_ACCESS_REMOTE_ATOMIC, 0);
    request.remote = memory_remote(&memory, 0, BLOCK);
    list = made(sluice_multichannel_list_prepare(fixture.star.hub, &request, 1));
    uint64_t *words = (void *)memory.bytes;
    memset(words, 0, BLOCK);
    sge.addr += 4;
    require_error(sluice_list_aim(list, 0, &sge, 0), -EINVAL, "multiple of 8");
    require_error(sluice_list_aim(list, 0, NULL, 12), -EINVAL, "remote offset multiple of 8");
    sge.addr += 4;
    for (uint32_t i = 0; i < 4; i++) {
        require_ok(sluice_list_aim(list, 0, &sge, i % 2 * 16));
        require_ok(sluice_list_submit(list, DEADLINE, NULL));
    }
    require_equal(words[0], 6, words[1], 0, words[2], 6);
    sluice_list_free(list);
    memory_close(&memory);
    fixture_close(&fixture);
}

/* A list is busy until it has ended; no other call takes its results. */
TEST_WITH(fixture, busy_until_it_has_ended, ())
{
    struct sluice_handle handles[PEERS][2];
    struct sluice_completion completion;
    require_error(sluice_list_wait(fixture->list, 0), -ENOENT, "not posted");
    require_error(sluice_list_result(fixture->list), -ENOENT, "not posted");
    require_ok(sluice_list_post(fixture->list, DEADLINE, fixture->completions));
    require_error(sluice_list_post(fixture->list, DEADLINE, NULL), -EBUSY, "in flight");
    require_error(sluice_list_submit(fixture->list, DEADLINE, NULL), -EBUSY, "in flight");
    require_error(sluice_list_wait(fixture->list, 0), -ETIMEDOUT, "still in flight peer");
    require_error(sluice_list_result(fixture->list), -EBUSY, "in flight");
    require_error(sluice_list_wait(fixture->list, -1), -EINVAL, "negative");
    require_error(sluice_multichannel_next(fixture->star.hub, DEADLINE, &completion), -ENOENT,
                  "nothing");
    require_result(sluice_multichannel_flush(fixture->star.hub, 0), -ETIMEDOUT);
    sluice_multichannel_wake(fixture->star.hub);
    require_error(sluice_list_wait(fixture->list, DEADLINE), -EINTR, "wake");
    fill(fixture, 3);
    spokes_take_part(fixture, handles);
    require_ok(sluice_multichannel_flush(fixture->star.hub, DEADLINE));
    require_result(sluice_multichannel_poll(fixture->star.hub, &completion, 1), 0);
    require_ok(sluice_list_result(fixture->list));
    require_ok(sluice_list_wait(fixture->list, 0));
    check_completions(fixture);
    spokes_are_done(fixture, handles);
}

/* An event loop may sleep, once it has polled what came before. */
static void loop_may_sleep(struct sluice_multichannel *hub)
{
    struct sluice_completion completion;
    int64_t until = clock_now() + DEADLINE;
    while (sluice_multichannel_arm(hub, NULL) == 1) {
        require(clock_now() < until, "%s", "the loop never sleeps");
        require_result(sluice_multichannel_poll(hub, &completion, 1), 0);
    }
}

/*
 * The end and the result of a post can be asked for any number of times, until the list is posted
 * or submitted again; a list that has ended can be posted before either was asked for.
 */
TEST_WITH(fixture, end_and_result_stay, (), .times = 2)
{
    struct sluice_handle handles[PEERS][2];
    for (uint32_t round = 0; round < 2; round++) {
        fill(fixture, round);
        spokes_take_part(fixture, handles);
        require_ok(sluice_list_post(fixture->list, DEADLINE, fixture->completions));
        require_ok(sluice_multichannel_flush(fixture->star.hub, DEADLINE));
        spokes_are_done(fixture, handles);
        check(fixture, round);
        check_completions(fixture);
    }
    require_result(sluice_multichannel_arm(fixture->star.hub, NULL), 1);
    require_ok(_i == 0 ? sluice_list_wait(fixture->list, 0) : sluice_list_result(fixture->list));
    loop_may_sleep(fixture->star.hub);
    await_list(fixture->list);
    spokes_take_part(fixture, handles);
    require_ok(sluice_list_submit(fixture->list, DEADLINE, NULL));
    spokes_are_done(fixture, handles);
    require_error(sluice_list_wait(fixture->list, 0), -ENOENT, "not posted");
    require_error(sluice_list_result(fixture->list), -ENOENT, "not posted");
}

/*
 * Its memory cannot be deregistered while the list exists, nor while requests of a freed list are
 * in flight.
 */
TEST_WITH(fixture, pins_its_memory, ())
{
    struct sluice_handle handles[PEERS][2];
    require_error(sluice_mr_deregister(fixture->near.mr), -EBUSY,
                  "named by a prepared list: destroy the list first");
    require_ok(sluice_list_post(fixture->list, DEADLINE, fixture->completions));
    sluice_list_free(fixture->list);
    fixture->list = NULL;
    memset(fixture->completions, 0x5a, sizeof(fixture->completions));
    require_error(sluice_mr_deregister(fixture->near.mr), -EBUSY,
                  "used by posted work: wait for it first");
    spokes_take_part(fixture, handles);
    require_ok(sluice_multichannel_flush(fixture->star.hub, DEADLINE));
    spokes_are_done(fixture, handles);
    value_check(fixture->completions, sizeof(fixture->completions), 0x5a);
}

/* A peer that was reset or removed, and a channel that was closed. */
TEST_WITH(fixture, stale_when_a_peer_is_another, ())
{
    struct sluice_handle handles[PEERS][2];
    star_reset(&fixture->star, 2);
    require_error(sluice_list_submit(fixture->list, DEADLINE, NULL), -ESTALE, "peer 2 was reset");
    require_error(sluice_list_post(fixture->list, DEADLINE, NULL), -ESTALE, "peer 2 was reset");
    sluice_list_free(fixture->list);
    for (uint32_t i = 0; i < KINDS * PEERS; i++) {
        ask(fixture, i, (enum kind)((i + i / KINDS) % KINDS), i / KINDS);
    }
    fixture->list = prepare(fixture, KINDS * PEERS);
    fill(fixture, 9);
    spokes_take_part(fixture, handles);
    require_ok(sluice_list_submit(fixture->list, DEADLINE, NULL));
    spokes_are_done(fixture, handles);
    check(fixture, 9);
    require_ok(sluice_multichannel_peer_remove(fixture->star.hub, 3));
    require_error(sluice_list_submit(fixture->list, DEADLINE, NULL), -ESTALE, "peer 3");
    sluice_multichannel_close(fixture->star.hub);
    fixture->star.hub = NULL;
    require_error(sluice_list_submit(fixture->list, DEADLINE, NULL), -ESTALE, "closed");
    require_error(sluice_list_post(fixture->list, DEADLINE, NULL), -ESTALE, "closed");
    require_error(sluice_list_wait(fixture->list, 0), -ESTALE, "closed");
    require_error(sluice_list_result(fixture->list), -ESTALE, "closed");
    require_error(sluice_list_aim(fixture->list, 0, NULL, 0), -ESTALE, "closed");
}

/* A failed peer fails only its own requests. */
TEST_WITH(fixture, a_broken_peer_fails_alone, ())
{
    star_break(&fixture->star, 1);
    for (uint32_t i = 0; i < PEERS; i++) {
        if (i != 1) {
            far_post(fixture, i, SLUICE_OP_RECEIVE, SENT);
            far_post(fixture, i, SLUICE_OP_SEND, RECEIVED);
        }
    }
    require_result(sluice_list_submit(fixture->list, DEADLINE, fixture->completions), -ENOTCONN);
    for (uint32_t i = 0; i < KINDS * PEERS; i++) {
        require(fixture->completions[i].error == (i / KINDS == 1 ? -ENOTCONN : 0),
                "request %u: error %d", i, fixture->completions[i].error);
    }
    require_error(sluice_list_post(fixture->list, DEADLINE, NULL), -ENOTCONN, "peer 1");
}

/* Only the peer that does not take part is late. */
TEST_WITH(fixture, late_by_the_deadline, ())
{
    require_error(sluice_list_post(fixture->list, 0, NULL), -ETIMEDOUT, "nothing was posted");
    require_error(sluice_list_post(fixture->list, -1, NULL), -EINVAL, "negative");
    for (uint32_t i = 1; i < PEERS; i++) {
        far_post(fixture, i, SLUICE_OP_RECEIVE, SENT);
        far_post(fixture, i, SLUICE_OP_SEND, RECEIVED);
    }
    require_ok(sluice_list_post(fixture->list, SLUICE_MS(NEVER_TAKEN), fixture->completions));
    require_ok(sluice_list_wait(fixture->list, DEADLINE));
    require_error(sluice_list_result(fixture->list), -ETIMEDOUT, "send to peer 0 deadline passed");
    for (uint32_t i = 0; i < KINDS * PEERS; i++) {
        int error = fixture->completions[i].error;
        bool two_sided = fixture->requests[i].opcode == SLUICE_OP_SEND ||
                         fixture->requests[i].opcode == SLUICE_OP_RECEIVE;
        require(i / KINDS == 0 ? !two_sided || error == -ETIMEDOUT : error == 0,
                "request %u: error %d", i, error);
    }
    require_ok(sluice_list_wait(fixture->list, 0));
    require_error(sluice_list_result(fixture->list), -ETIMEDOUT, "peer 0");
}

/* A post takes all requests or none; a submit waits for room. */
TEST_WITH(fixture, needs_room_for_all, ())
{
    struct sluice_handle handles[DEPTH];
    struct sluice_sge sge = memory_sge(&fixture->near, 0, BLOCK);
    for (uint32_t i = 0; i < DEPTH; i++) {
        require_ok(
            sluice_multichannel_post_send(fixture->star.hub, 2, &sge, 1, DEADLINE, &handles[i]));
    }
    require_error(sluice_list_post(fixture->list, DEADLINE, NULL), -EAGAIN, "peer 2");
    for (uint32_t i = 0; i < DEPTH; i++) {
        far_post(fixture, 2, SLUICE_OP_RECEIVE, SENT);
    }
    require_ok(sluice_multichannel_flush(fixture->star.hub, DEADLINE));
    struct sluice_handle ends[PEERS][2];
    require_ok(sluice_channel_flush(fixture->star.spokes[2], DEADLINE));
    fill_queue(fixture, 2);
    fill(fixture, 1);
    spokes_take_part(fixture, ends);
    require_ok(sluice_list_submit(fixture->list, DEADLINE, NULL));
    spokes_are_done(fixture, ends);
    check(fixture, 1);
}

/* While a scope is open, the list cannot be posted outside of it. */
TEST_WITH(fixture, busy_in_a_scope, ())
{
    struct sluice_scope *scope = sluice_multichannel_scope_begin(fixture->star.hub, DEADLINE);
    require_error(sluice_list_post(fixture->list, DEADLINE, NULL), -EBUSY, "scope");
    require_error(sluice_list_submit(fixture->list, DEADLINE, NULL), -EBUSY, "scope");
    require_error(sluice_list_wait(fixture->list, 0), -EBUSY, "scope");
    require_ok(sluice_scope_end(scope, NULL));
}

/* Lists that cannot be prepared, each with the text of its mistake. */
TEST_WITH(fixture, wrong_lists, ())
{
    struct sluice_request requests[DEPTH + 1];
    int any = 0;
    struct sluice_sge sge = memory_sge(&fixture->near, 0, BLOCK);
    require_null(sluice_multichannel_list_prepare(NULL, requests, 1), EINVAL, "not a multichannel");
    require_null(sluice_channel_list_prepare(NULL, requests, 1), EINVAL, "not a channel");
    require_null(sluice_multichannel_list_prepare(fixture->star.hub, requests, 0), EINVAL,
                 "at least one");
    require_null(sluice_multichannel_list_prepare(fixture->star.hub, NULL, 1), EINVAL, "NULL");
    requests[0] = request_of(SLUICE_OP_SEND, PEERS, &sge);
    require_null(sluice_multichannel_list_prepare(fixture->star.hub, requests, 1), EINVAL,
                 "peer 4");
    for (uint32_t i = 0; i <= DEPTH; i++) {
        requests[i] = request_of(SLUICE_OP_SEND, 0, &sge);
    }
    require_null(sluice_multichannel_list_prepare(fixture->star.hub, requests, DEPTH + 1), E2BIG,
                 "peer 0");
    require_error(sluice_list_submit(NULL, DEADLINE, NULL), -EINVAL, "not a list");
    require_error(sluice_list_post((struct sluice_list *)&any, DEADLINE, NULL), -EINVAL,
                  "not a list");
    require_error(sluice_list_wait(NULL, 0), -EINVAL, "not a list");
    require_error(sluice_list_result(NULL), -EINVAL, "not a list");
    require_error(sluice_list_aim(NULL, 0, NULL, 0), -EINVAL, "not a list");
    sluice_list_free(NULL);
}

int main(void)
{
    return run_tests("list", device_is_soft() ? 30 : 300);
}
