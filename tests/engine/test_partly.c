/* SPDX-License-Identifier: MIT */
/*
 * Lists that are done in part: what was done is said to be done, whatever became
 * of the requests behind it, and the failure is that of the request that failed.
 */
#include <pthread.h>

#include "../support/pair.h"

#define LENGTH 1000
#define MOST 40
#define TAKEN 3
/* For what never finds a receive. */
#define SHORT SLUICE_MS(600)

/* A shallow queue, through which a long list is streamed; and messages are short. */
static const struct sluice_channel_attr shallow = {
    .size = sizeof(shallow), .send_depth = 8, .receive_depth = 8, .max_message = 4096};

/* The forms in which a list may be given. */
enum form { BLOCKING, UNPOLLED, SCOPED, FORMS };

struct desk {
    struct pair pair;
    struct memory near;
    struct memory far;
    struct sluice_request requests[MOST];
    struct sluice_completion completions[MOST];
};

static void desk_open(struct desk *desk, const struct sluice_channel_attr *attr)
{
    pair_open(&desk->pair, attr);
    memory_open(&desk->near, desk->pair.sides.pds[0], (size_t)MOST * LENGTH);
    memory_open(&desk->far, desk->pair.sides.pds[1], (size_t)MOST * LENGTH);
    pattern_fill(desk->near.bytes, desk->near.length, 1);
}

static void desk_close(struct desk *desk)
{
    sluice_channel_close(desk->pair.channels[0]);
    sluice_channel_close(desk->pair.channels[1]);
    memory_close(&desk->near);
    memory_close(&desk->far);
    sides_close(&desk->pair.sides);
}

static void ask(struct desk *desk, uint32_t i, uint32_t opcode)
{
    desk->requests[i] = (struct sluice_request){
        .opcode = opcode,
        .sge = memory_sge(&desk->near, (size_t)i * LENGTH, LENGTH),
        .sge_count = 1,
        .user_data = 100 + i,
    };
    if (opcode != SLUICE_OP_SEND) {
        desk->requests[i].remote = memory_remote(&desk->far, (size_t)i * LENGTH, LENGTH);
    }
}

static int run_unpolled(struct desk *desk, uint32_t count, int64_t deadline)
{
    struct sluice_handle handles[MOST];
    struct sluice_channel *channel = desk->pair.channels[0];
    require_result(sluice_channel_post(channel, desk->requests, count, deadline, handles), count);
    for (uint32_t i = 0; i < count; i++) {
        require_ok(sluice_channel_wait(channel, &handles[i], DEADLINE, &desk->completions[i]));
    }
    return 0;
}

static int run_scope(struct desk *desk, uint32_t count, int64_t deadline)
{
    struct sluice_handle handles[MOST];
    struct sluice_scope *scope = sluice_channel_scope_begin(desk->pair.channels[0], deadline);
    require(sluice_scope_post(scope, desk->requests, count, handles) >= 0, "%s",
            sluice_last_error());
    for (uint32_t i = 0; i < count; i++) {
        require_ok(sluice_scope_wait(scope, &handles[i], DEADLINE, &desk->completions[i]));
    }
    return sluice_scope_end(scope, NULL);
}

/* Returns what a blocking call does; 0 of the others, whose requests tell for themselves. */
static int run(struct desk *desk, enum form form, uint32_t count, int64_t deadline)
{
    memset(desk->completions, 0xcc, sizeof(desk->completions));
    if (form == UNPOLLED) {
        return run_unpolled(desk, count, deadline);
    }
    return form == SCOPED ? run_scope(desk, count, deadline)
                          : sluice_channel_submit(desk->pair.channels[0], desk->requests, count,
                                                  deadline, desk->completions);
}

static void check_done(const struct desk *desk, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        require_class(&desk->completions[i], SLUICE_CLASS_NONE);
        require(desk->completions[i].user_data == 100 + i && desk->completions[i].bytes == LENGTH,
                "completion %u is of %llu, %llu bytes", i,
                (unsigned long long)desk->completions[i].user_data,
                (unsigned long long)desk->completions[i].bytes);
    }
}

/* The request was the first that failed. */
static void check_first_error(const struct desk *desk, uint32_t i,
                              enum sluice_error_class error_class)
{
    struct sluice_error error = channel_error(desk->pair.channels[0]);
    require_class(&desk->completions[i], error_class);
    require(error.opcode == desk->requests[i].opcode && error.error_class == error_class,
            "opcode %u, class %s: %s", error.opcode,
            sluice_error_class_name((enum sluice_error_class)error.error_class), error.text);
}

/* Writes, and then a send for which there is no receive. */
START_TEST(writes_before_a_send_that_is_not_taken)
{
    static const uint32_t writes[] = {1, 5};
    for (size_t round = 0; round < COUNT(writes); round++) {
        struct desk desk;
        uint32_t count = writes[round];
        desk_open(&desk, NULL);
        for (uint32_t i = 0; i < count; i++) {
            ask(&desk, i, SLUICE_OP_WRITE);
        }
        ask(&desk, count, SLUICE_OP_SEND);
        int result = run(&desk, (enum form)_i, count + 1, SHORT);
        require(_i != BLOCKING || result == -ETIMEDOUT, "%d", result);
        check_done(&desk, 0, count);
        check_first_error(&desk, count, SLUICE_CLASS_TIMEOUT);
        require(memcmp(desk.far.bytes, desk.near.bytes, (size_t)count * LENGTH) == 0, "%u writes",
                count);
        desk_close(&desk);
    }
}
END_TEST

static void post_receives(struct desk *desk, struct sluice_handle *handles, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct sluice_request receive = {.opcode = SLUICE_OP_RECEIVE,
                                         .sge = memory_sge(&desk->far, (size_t)i * LENGTH, LENGTH),
                                         .sge_count = 1};
        handles[i] = post(desk->pair.channels[1], &receive);
    }
}

/* As many sends as there are receives, and more. What follows in time is late as well. */
START_TEST(sends_of_which_some_are_taken)
{
    struct desk desk;
    struct sluice_handle handles[TAKEN];
    desk_open(&desk, NULL);
    post_receives(&desk, handles, TAKEN);
    for (uint32_t i = 0; i < TAKEN + 2; i++) {
        ask(&desk, i, SLUICE_OP_SEND);
    }
    int result = run(&desk, (enum form)_i, TAKEN + 2, SHORT);
    require(_i != BLOCKING || result == -ETIMEDOUT, "%d", result);
    check_done(&desk, 0, TAKEN);
    check_first_error(&desk, TAKEN, SLUICE_CLASS_TIMEOUT);
    require_class(&desk.completions[TAKEN + 1], SLUICE_CLASS_TIMEOUT);
    for (uint32_t i = 0; i < TAKEN; i++) {
        await(desk.pair.channels[1], handles[i], SLUICE_CLASS_NONE);
    }
    require(memcmp(desk.far.bytes, desk.near.bytes, (size_t)TAKEN * LENGTH) == 0, "%d", TAKEN);
    desk_close(&desk);
}
END_TEST

/* The one in the middle is refused by the peer. */
START_TEST(refusal_in_the_middle)
{
    struct desk desk;
    desk_open(&desk, NULL);
    for (uint32_t i = 0; i < 5; i++) {
        ask(&desk, i, i % 2 ? SLUICE_OP_READ : SLUICE_OP_WRITE);
    }
    desk.requests[3].remote.rkey ^= 0x5a5a5a5a;
    int result = run(&desk, (enum form)_i, 5, DEADLINE);
    require(_i != BLOCKING || result == -EACCES, "%d", result);
    check_done(&desk, 0, 3);
    check_first_error(&desk, 3, SLUICE_CLASS_ACCESS);
    require_class(&desk.completions[4], SLUICE_CLASS_CANCELLED);
    desk_close(&desk);
}
END_TEST

/* Much longer than the queue is deep; one is done in parts, and the last but two is not taken. */
static void ask_long_list(struct desk *desk)
{
    for (uint32_t i = 0; i < MOST; i++) {
        ask(desk, i, SLUICE_OP_WRITE);
    }
    desk->requests[7].sge = memory_sge(&desk->near, 0, 10 * LENGTH);
    desk->requests[7].remote = memory_remote(&desk->far, 0, 10 * LENGTH);
    ask(desk, MOST - 3, SLUICE_OP_SEND);
}

static void check_long_list(const struct desk *desk)
{
    size_t done = (size_t)(MOST - 3) * LENGTH;
    require(memcmp(desk->far.bytes, desk->near.bytes, done) == 0, "%zu bytes", done);
}

START_TEST(long_list_through_a_short_queue)
{
    struct desk desk;
    desk_open(&desk, &shallow);
    ask_long_list(&desk);
    require_result(run(&desk, BLOCKING, MOST, 3 * SHORT), -ETIMEDOUT);
    check_done(&desk, 0, 7);
    require_class(&desk.completions[7], SLUICE_CLASS_NONE);
    require(desk.completions[7].bytes == 10 * LENGTH, "%llu bytes",
            (unsigned long long)desk.completions[7].bytes);
    check_done(&desk, 8, MOST - 3);
    check_first_error(&desk, MOST - 3, SLUICE_CLASS_TIMEOUT);
    require_class(&desk.completions[MOST - 1], SLUICE_CLASS_TIMEOUT);
    check_long_list(&desk);
    desk_close(&desk);
}
END_TEST

/* What was done and not looked at may be forgotten, but is no failure. */
START_TEST(long_list_in_a_scope)
{
    struct desk desk;
    struct sluice_completion failures[MOST];
    struct sluice_scope_report report = {
        .size = sizeof(report), .failures = failures, .capacity = MOST};
    desk_open(&desk, &shallow);
    ask_long_list(&desk);
    struct sluice_scope *scope = sluice_channel_scope_begin(desk.pair.channels[0], 3 * SHORT);
    require(sluice_scope_post(scope, desk.requests, MOST, NULL) >= 0, "%s", sluice_last_error());
    require_result(sluice_scope_end(scope, &report), -ETIMEDOUT);
    require(report.failed == 3 && report.count == 3 && failures[0].user_data == 100 + MOST - 3,
            "%u failed, the first was %llu", report.failed,
            (unsigned long long)failures[0].user_data);
    check_long_list(&desk);
    desk_close(&desk);
}
END_TEST

/* Takes one message, and ends. */
static void *take_one_and_end(void *argument)
{
    struct desk *desk = argument;
    struct sluice_sge sge = memory_sge(&desk->far, 0, LENGTH);
    require_ok(sluice_channel_receive(desk->pair.channels[1], &sge, 1, DEADLINE, NULL));
    sluice_channel_close(desk->pair.channels[1]);
    desk->pair.channels[1] = NULL;
    return NULL;
}

START_TEST(peer_that_ends_after_the_first)
{
    struct desk desk;
    pthread_t thread;
    desk_open(&desk, NULL);
    ask(&desk, 0, SLUICE_OP_SEND);
    ask(&desk, 1, SLUICE_OP_SEND);
    require(pthread_create(&thread, NULL, take_one_and_end, &desk) == 0, "no thread");
    int result = run(&desk, (enum form)_i, 2, DEADLINE);
    require(pthread_join(thread, NULL) == 0, "no thread");
    require(_i != BLOCKING || result == desk.completions[1].error, "%d", result);
    check_done(&desk, 0, 1);
    check_first_error(&desk, 1, SLUICE_CLASS_PEER_LOST);
    desk_close(&desk);
}
END_TEST

static void add(TCase *tcase)
{
    tcase_add_loop_test(tcase, writes_before_a_send_that_is_not_taken, 0, FORMS);
    tcase_add_loop_test(tcase, sends_of_which_some_are_taken, 0, FORMS);
    tcase_add_loop_test(tcase, refusal_in_the_middle, 0, FORMS);
    tcase_add_test(tcase, long_list_through_a_short_queue);
    tcase_add_test(tcase, long_list_in_a_scope);
    tcase_add_loop_test(tcase, peer_that_ends_after_the_first, 0, FORMS);
}

int main(void)
{
    return run_on_wires("partly", 60, add);
}
