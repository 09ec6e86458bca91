/* SPDX-License-Identifier: MIT */
/*
 * Lists that are done in part: requests that were done are reported so, whatever happened to those
 * behind, and the failure is that of the request that failed.
 */
#include <pthread.h>

#include "../support/pair.h"

#define LENGTH 1000
#define MOST 40
#define TAKEN 3
/* Deadline of requests that never find a receive. */
#define SHORT SLUICE_MS(600)

/* A shallow queue, through which a long list is streamed, and short messages. */
static const struct sluice_channel_attr shallow = {
    .size = sizeof(shallow), .send_depth = 8, .receive_depth = 8, .max_message = 4096};

/* The forms in which a list may be given. */
enum form { BLOCKING, POSTED, SCOPED, FORMS };

struct fixture {
    struct pair pair;
    struct memory near, far;
    struct sluice_request requests[MOST];
    struct sluice_completion completions[MOST];
};

static void fixture_open(struct fixture *fixture, const struct sluice_channel_attr *attr)
{
    pair_open(&fixture->pair, attr);
    memory_open(&fixture->near, fixture->pair.sides.pds[0], (size_t)MOST * LENGTH);
    memory_open(&fixture->far, fixture->pair.sides.pds[1], (size_t)MOST * LENGTH);
    pattern_fill(fixture->near.bytes, fixture->near.length, 1);
}

static void fixture_close(struct fixture *fixture)
{
    sluice_channel_close(fixture->pair.channels[0]);
    sluice_channel_close(fixture->pair.channels[1]);
    memory_close(&fixture->near);
    memory_close(&fixture->far);
    sides_close(&fixture->pair.sides);
}

static void ask(struct fixture *fixture, uint32_t i, uint32_t opcode)
{
    fixture->requests[i] =
        REQUEST(.opcode = opcode, .sge = memory_sge(&fixture->near, (size_t)i * LENGTH, LENGTH),
                .sge_count = 1, .user_data = 100 + i);
    if (opcode != SLUICE_OP_SEND) {
        fixture->requests[i].remote = memory_remote(&fixture->far, (size_t)i * LENGTH, LENGTH);
    }
}

static int run_posted(struct fixture *fixture, uint32_t count, int64_t deadline)
{
    struct sluice_handle handles[MOST];
    struct sluice_channel *channel = fixture->pair.channels[0];
    require_result(sluice_channel_post(channel, fixture->requests, count, deadline, handles),
                   count);
    for (uint32_t i = 0; i < count; i++) {
        require_ok(sluice_channel_wait(channel, &handles[i], DEADLINE, &fixture->completions[i]));
    }
    return 0;
}

static int run_scope(struct fixture *fixture, uint32_t count, int64_t deadline)
{
    struct sluice_handle handles[MOST];
    struct sluice_scope *scope = sluice_channel_scope_begin(fixture->pair.channels[0], deadline);
    require(sluice_scope_post(scope, fixture->requests, count, handles) >= 0, "%s",
            sluice_last_error());
    for (uint32_t i = 0; i < count; i++) {
        require_ok(sluice_scope_wait(scope, &handles[i], DEADLINE, &fixture->completions[i]));
    }
    return sluice_scope_end(scope, NULL);
}

/*
 * Returns the result of a blocking call, and 0 for the others, whose requests have their own
 * results.
 */
static int run(struct fixture *fixture, enum form form, uint32_t count, int64_t deadline)
{
    memset(fixture->completions, 0xcc, sizeof(fixture->completions));
    if (form == POSTED) {
        return run_posted(fixture, count, deadline);
    }
    return form == SCOPED ? run_scope(fixture, count, deadline)
                          : sluice_channel_submit(fixture->pair.channels[0], fixture->requests,
                                                  count, deadline, fixture->completions);
}

static void check_done(const struct fixture *fixture, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        require_class(&fixture->completions[i], SLUICE_CLASS_NONE);
        require_equal(fixture->completions[i].user_data, 100 + i, fixture->completions[i].bytes,
                      LENGTH);
    }
}

/* Requires that the request was the first that failed. */
static void check_first_error(const struct fixture *fixture, uint32_t i,
                              enum sluice_error_class error_class)
{
    struct sluice_error error = channel_error(fixture->pair.channels[0]);
    require_class(&fixture->completions[i], error_class);
    require(error.opcode == fixture->requests[i].opcode && error.error_class == error_class,
            "opcode %u, class %s: %s", error.opcode,
            sluice_error_class_name((enum sluice_error_class)error.error_class), error.text);
}

/* Writes, followed by a send for which there is no receive. */
TEST(writes_before_a_send_that_is_not_taken, .times = FORMS)
{
    static const uint32_t writes[] = {1, 5};
    for (size_t round = 0; round < COUNT(writes); round++) {
        struct fixture fixture;
        uint32_t count = writes[round];
        fixture_open(&fixture, NULL);
        for (uint32_t i = 0; i < count; i++) {
            ask(&fixture, i, SLUICE_OP_WRITE);
        }
        ask(&fixture, count, SLUICE_OP_SEND);
        int result = run(&fixture, (enum form)_i, count + 1, SHORT);
        require(_i != BLOCKING || result == -ETIMEDOUT, "%d", result);
        check_done(&fixture, 0, count);
        check_first_error(&fixture, count, SLUICE_CLASS_TIMEOUT);
        require(memcmp(fixture.far.bytes, fixture.near.bytes, (size_t)count * LENGTH) == 0,
                "%u writes", count);
        fixture_close(&fixture);
    }
}

static void post_receives(struct fixture *fixture, struct sluice_handle *handles, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct sluice_request receive = {.opcode = SLUICE_OP_RECEIVE,
                                         .sge =
                                             memory_sge(&fixture->far, (size_t)i * LENGTH, LENGTH),
                                         .sge_count = 1};
        handles[i] = post(fixture->pair.channels[1], &receive);
    }
}

/* As many sends as there are receives, and more. Requests behind a late one are late as well. */
TEST_WITH(fixture, sends_of_which_some_are_taken, (NULL), .times = FORMS)
{
    struct sluice_handle handles[TAKEN];
    post_receives(fixture, handles, TAKEN);
    for (uint32_t i = 0; i < TAKEN + 2; i++) {
        ask(fixture, i, SLUICE_OP_SEND);
    }
    int result = run(fixture, (enum form)_i, TAKEN + 2, SHORT);
    require(_i != BLOCKING || result == -ETIMEDOUT, "%d", result);
    check_done(fixture, 0, TAKEN);
    check_first_error(fixture, TAKEN, SLUICE_CLASS_TIMEOUT);
    require_class(&fixture->completions[TAKEN + 1], SLUICE_CLASS_TIMEOUT);
    for (uint32_t i = 0; i < TAKEN; i++) {
        await(fixture->pair.channels[1], handles[i], SLUICE_CLASS_NONE);
    }
    require(memcmp(fixture->far.bytes, fixture->near.bytes, (size_t)TAKEN * LENGTH) == 0, "%d",
            TAKEN);
}

/* The peer refuses a request in the middle. */
TEST_WITH(fixture, refusal_in_the_middle, (NULL), .times = FORMS)
{
    for (uint32_t i = 0; i < 5; i++) {
        ask(fixture, i, i % 2 ? SLUICE_OP_READ : SLUICE_OP_WRITE);
    }
    fixture->requests[3].remote.rkey ^= 0x5a5a5a5a;
    int result = run(fixture, (enum form)_i, 5, DEADLINE);
    require(_i != BLOCKING || result == -EACCES, "%d", result);
    check_done(fixture, 0, 3);
    check_first_error(fixture, 3, SLUICE_CLASS_ACCESS);
    require_class(&fixture->completions[4], SLUICE_CLASS_CANCELLED);
}

/*
 * Makes a list much longer than the queue; one request is done in parts, and for the third from the
 * end there is no receive.
 */
static void ask_long_list(struct fixture *fixture)
{
    for (uint32_t i = 0; i < MOST; i++) {
        ask(fixture, i, SLUICE_OP_WRITE);
    }
    fixture->requests[7].sge = memory_sge(&fixture->near, 0, 10 * LENGTH);
    fixture->requests[7].remote = memory_remote(&fixture->far, 0, 10 * LENGTH);
    ask(fixture, MOST - 3, SLUICE_OP_SEND);
}

static void check_long_list(const struct fixture *fixture)
{
    size_t done = (size_t)(MOST - 3) * LENGTH;
    require(memcmp(fixture->far.bytes, fixture->near.bytes, done) == 0, "%zu bytes", done);
}

TEST_WITH(fixture, long_list_through_a_short_queue, (&shallow))
{
    ask_long_list(fixture);
    require_result(run(fixture, BLOCKING, MOST, 3 * SHORT), -ETIMEDOUT);
    check_done(fixture, 0, 7);
    require_class(&fixture->completions[7], SLUICE_CLASS_NONE);
    require_equal(fixture->completions[7].bytes, 10 * LENGTH);
    check_done(fixture, 8, MOST - 3);
    check_first_error(fixture, MOST - 3, SLUICE_CLASS_TIMEOUT);
    require_class(&fixture->completions[MOST - 1], SLUICE_CLASS_TIMEOUT);
    check_long_list(fixture);
}

/* A success that was not read may be forgotten, but is no failure. */
TEST_WITH(fixture, long_list_in_a_scope, (&shallow))
{
    struct sluice_completion failures[MOST];
    struct sluice_scope_report report = {
        .size = sizeof(report), .failures = failures, .capacity = MOST};
    ask_long_list(fixture);
    struct sluice_scope *scope = sluice_channel_scope_begin(fixture->pair.channels[0], 3 * SHORT);
    require(sluice_scope_post(scope, fixture->requests, MOST, NULL) >= 0, "%s",
            sluice_last_error());
    require_result(sluice_scope_end(scope, &report), -ETIMEDOUT);
    require_equal(report.failed, 3, report.count, 3, failures[0].user_data, 100 + MOST - 3);
    check_long_list(fixture);
}

/*
 * Takes one message, and ends. Devices complete a receive before they acknowledge the message, and
 * a destroyed queue pair acknowledges nothing: a write and a read of its own give it time for that.
 */
static void *take_one_and_end(void *argument)
{
    struct fixture *fixture = argument;
    struct sluice_sge sge = memory_sge(&fixture->far, 0, LENGTH);
    struct sluice_remote_mr back = memory_remote(&fixture->near, 2 * LENGTH, LENGTH);
    require_ok(sluice_channel_receive(fixture->pair.channels[1], &sge, 1, DEADLINE, NULL));
    require_ok(sluice_channel_write(fixture->pair.channels[1], &sge, 1, &back, DEADLINE));
    sluice_channel_close(fixture->pair.channels[1]);
    fixture->pair.channels[1] = NULL;
    return NULL;
}

TEST_WITH(fixture, peer_that_ends_after_the_first, (NULL), .times = FORMS)
{
    pthread_t thread;
    ask(fixture, 0, SLUICE_OP_SEND);
    ask(fixture, 1, SLUICE_OP_SEND);
    require(pthread_create(&thread, NULL, take_one_and_end, fixture) == 0, "no thread");
    int result = run(fixture, (enum form)_i, 2, DEADLINE);
    require(pthread_join(thread, NULL) == 0, "no thread");
    require(_i != BLOCKING || result == fixture->completions[1].error, "%d", result);
    check_done(fixture, 0, 1);
    check_first_error(fixture, 1, SLUICE_CLASS_PEER_LOST);
}

int main(void)
{
    return run_tests("partly", 60);
}
