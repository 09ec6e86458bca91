/* SPDX-License-Identifier: MIT */
/*
 * Scopes: posts do not wait for completion, a full queue is waited for, and the end waits for
 * everything and reports failures that were not read.
 */
#include "../support/pair.h"
#include "../support/process.h"

#define COUNT_OF_WRITES 60
#define SLOT 500

/* A pair with short queues, and writes from one side to the other. */
struct fixture {
    struct pair pair;
    struct memory near, far;
    struct sluice_sge sges[COUNT_OF_WRITES];
    struct sluice_request writes[COUNT_OF_WRITES];
    struct sluice_handle handles[COUNT_OF_WRITES];
    struct sluice_completion failures[COUNT_OF_WRITES];
    struct sluice_scope_report report;
};

static void fixture_open(struct fixture *fixture)
{
    struct sluice_channel_attr attr = {.size = sizeof(attr), .send_depth = 5, .receive_depth = 5};
    memset(fixture, 0, sizeof(*fixture));
    pair_open(&fixture->pair, &attr);
    fixture->near = side_memory(&fixture->pair.sides, 0, COUNT_OF_WRITES * SLOT);
    fixture->far = side_memory(&fixture->pair.sides, 1, COUNT_OF_WRITES * SLOT);
    pattern_fill(fixture->near.bytes, fixture->near.length, 1);
    for (uint32_t i = 0; i < COUNT_OF_WRITES; i++) {
        fixture->sges[i] = memory_sge(&fixture->near, (size_t)i * SLOT, SLOT);
        fixture->writes[i] = request_of(SLUICE_OP_WRITE, 0, &fixture->sges[i]);
        fixture->writes[i].remote = memory_remote(&fixture->far, (size_t)i * SLOT, SLOT);
        fixture->writes[i].user_data = i;
    }
    fixture->report.size = sizeof(fixture->report);
    fixture->report.failures = fixture->failures;
    fixture->report.capacity = COUNT_OF_WRITES;
}

static void fixture_close(struct fixture *fixture)
{
    pair_close(&fixture->pair);
}

static struct sluice_scope *begin(struct fixture *fixture, int64_t deadline)
{
    return made(sluice_channel_scope_begin(fixture->pair.channels[0], deadline));
}

static void check_report(const struct sluice_scope_report *report, uint32_t posted, uint32_t failed,
                         uint32_t unseen, uint32_t count)
{
    require_equal(report->posted, posted, report->failed, failed, report->unseen, unseen,
                  report->count, count, report->lost, 0);
}

TEST_WITH(fixture, end_waits_for_all, ())
{
    struct sluice_scope *scope = begin(fixture, DEADLINE);
    require_result(sluice_scope_post(scope, fixture->writes, 5, NULL), 5);
    require_ok(sluice_scope_end(scope, &fixture->report));
    check_report(&fixture->report, 5, 0, 5, 0);
    pattern_check(fixture->far.bytes, (size_t)5 * SLOT, 1);
    value_check(fixture->far.bytes + (size_t)5 * SLOT, fixture->far.length - (size_t)5 * SLOT, 0);
}

TEST_WITH(fixture, empty_scope, ())
{
    require_ok(sluice_scope_end(begin(fixture, DEADLINE), &fixture->report));
    check_report(&fixture->report, 0, 0, 0, 0);
    require_ok(sluice_scope_end(begin(fixture, 0), NULL));
    pair_works(&fixture->pair);
}

/* A full queue is no error, in one list or in many. */
TEST_WITH(fixture, full_queue_is_waited_for, ())
{
    struct sluice_scope *scope = begin(fixture, DEADLINE);
    require_result(sluice_scope_post(scope, fixture->writes, COUNT_OF_WRITES / 2, NULL),
                   COUNT_OF_WRITES / 2);
    for (uint32_t i = COUNT_OF_WRITES / 2; i < COUNT_OF_WRITES; i++) {
        require_result(sluice_scope_post(scope, &fixture->writes[i], 1, &fixture->handles[i]), 1);
    }
    require_ok(sluice_scope_end(scope, &fixture->report));
    require_equal(fixture->report.posted, COUNT_OF_WRITES, fixture->report.failed, 0);
    pattern_check(fixture->far.bytes, fixture->far.length, 1);
}

TEST_WITH(fixture, handles_may_be_waited_for, ())
{
    struct sluice_completion completion;
    struct sluice_scope *scope = begin(fixture, DEADLINE);
    require_result(sluice_scope_post(scope, fixture->writes, 5, fixture->handles), 5);
    for (uint32_t i = 1; i < 5; i += 2) {
        for (int again = 0; again < 2; again++) {
            require_ok(sluice_scope_wait(scope, &fixture->handles[i], DEADLINE, &completion));
            require_class(&completion, SLUICE_CLASS_NONE);
            require(completion.user_data == i && completion.bytes == SLOT, "%u", i);
        }
    }
    require_ok(sluice_scope_end(scope, &fixture->report));
    check_report(&fixture->report, 5, 0, 3, 0);
}

TEST_WITH(fixture, handles_of_another, ())
{
    struct pair other;
    struct sluice_completion completion;
    struct sluice_handle nothing = {0};
    pair_open(&other, NULL);
    struct sluice_handle foreign = post_of(other.channels[0], SLUICE_OP_RECEIVE, NULL);
    struct sluice_scope *scope = begin(fixture, DEADLINE);
    require_error(sluice_scope_wait(scope, &foreign, 0, &completion), -ESTALE, "");
    require_error(sluice_scope_wait(scope, &nothing, 0, &completion), -ESTALE, "");
    require_ok(sluice_scope_end(scope, NULL));
    pair_close(&other);
}

TEST_WITH(fixture, one_scope_at_a_time, ())
{
    struct star star;
    struct sluice_scope *scope = begin(fixture, DEADLINE);
    require_null(sluice_channel_scope_begin(fixture->pair.channels[0], DEADLINE), EBUSY, "scope");
    /* The other end may have a scope of its own. */
    struct sluice_scope *second =
        made(sluice_channel_scope_begin(fixture->pair.channels[1], DEADLINE));
    require_ok(sluice_scope_end(scope, NULL));
    require_ok(sluice_scope_end(begin(fixture, DEADLINE), NULL));
    require_ok(sluice_scope_end(second, NULL));
    star_open(&star, 1, NULL);
    scope = made(sluice_multichannel_scope_begin(star.hub, DEADLINE));
    require_null(sluice_multichannel_scope_begin(star.hub, DEADLINE), EBUSY, "scope");
    require_ok(sluice_scope_end(scope, NULL));
    star_close(&star);
}

/* Requests posted before the scope go on beside it, and do not belong to it. */
TEST_WITH(fixture, posted_work_beside_a_scope, ())
{
    struct sluice_completion completions[3];
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    receive.user_data = 77;
    struct sluice_handle posted = post(fixture->pair.channels[0], &receive);
    struct sluice_scope *scope = begin(fixture, DEADLINE);
    require_result(sluice_scope_post(scope, fixture->writes, 2, fixture->handles), 2);
    require_ok(sluice_channel_send(fixture->pair.channels[1], NULL, 0, DEADLINE));
    require_error(sluice_scope_wait(scope, &posted, 0, completions), -ESTALE, "scope");
    require_ok(sluice_scope_wait(scope, &fixture->handles[0], DEADLINE, &completions[0]));
    require_ok(sluice_scope_wait(scope, &fixture->handles[1], DEADLINE, &completions[1]));
    require_result(sluice_scope_poll(scope, completions, 3), 0);
    require_ok(sluice_scope_end(scope, &fixture->report));
    check_report(&fixture->report, 2, 0, 0, 0);
    struct sluice_completion completion =
        await(fixture->pair.channels[0], posted, SLUICE_CLASS_NONE);
    require(completion.user_data == 77, "%llu", (unsigned long long)completion.user_data);
    require_result(sluice_channel_poll(fixture->pair.channels[0], completions, 3), 0);
}

/* Handles of a scope are invalid for its channel, and for the next scope. */
TEST_WITH(fixture, handles_after_the_end, ())
{
    struct sluice_completion completion;
    struct sluice_scope *scope = begin(fixture, DEADLINE);
    require_result(sluice_scope_post(scope, fixture->writes, 1, fixture->handles), 1);
    require_ok(sluice_scope_wait(scope, &fixture->handles[0], DEADLINE, &completion));
    require_ok(sluice_scope_end(scope, NULL));
    require_error(
        sluice_channel_wait(fixture->pair.channels[0], &fixture->handles[0], 0, &completion),
        -ESTALE, "");
    scope = begin(fixture, DEADLINE);
    require_error(sluice_scope_wait(scope, &fixture->handles[0], 0, &completion), -ESTALE, "scope");
    require_ok(sluice_scope_end(scope, NULL));
}

/*
 * As sluice_channel_poll(), but only for requests of the scope. Polled results are not reported
 * again.
 */
TEST_WITH(fixture, poll_in_a_scope, ())
{
    struct sluice_completion completions[5], again;
    uint32_t got = 0;
    struct sluice_scope *scope = begin(fixture, DEADLINE);
    require_result(sluice_scope_poll(scope, completions, 5), 0);
    require_result(sluice_scope_post(scope, fixture->writes, 4, fixture->handles), 4);
    for (int64_t end = clock_now() + DEADLINE; got < 3 && clock_now() < end;) {
        int result = sluice_scope_poll(scope, completions + got, 3 - got);
        require(result >= 0, "%s", sluice_last_error());
        got += (uint32_t)result;
    }
    require(got == 3, "%u", got);
    for (uint32_t i = 0; i < 3; i++) {
        require_class(&completions[i], SLUICE_CLASS_NONE);
        require(completions[i].user_data == i && completions[i].bytes == SLOT, "%u", i);
        require_ok(sluice_scope_wait(scope, &fixture->handles[i], 0, &again));
        require(memcmp(&again, &completions[i], sizeof(again)) == 0, "the answer changed%s", "");
    }
    require_error(sluice_scope_poll(scope, NULL, 1), -EINVAL, "completions");
    require_ok(sluice_scope_end(scope, &fixture->report));
    check_report(&fixture->report, 4, 0, 1, 0);
}

TEST_WITH(fixture, end_reports_failures, ())
{
    fixture->writes[2].remote.rkey ^= 0x33333333;
    struct sluice_scope *scope = begin(fixture, DEADLINE);
    require_result(sluice_scope_post(scope, fixture->writes, 5, NULL), 5);
    require_result(sluice_scope_end(scope, &fixture->report), -EACCES);
    check_report(&fixture->report, 5, 3, 5, 3);
    require_class(&fixture->failures[0], SLUICE_CLASS_ACCESS);
    require_class(&fixture->failures[1], SLUICE_CLASS_CANCELLED);
    require_class(&fixture->failures[2], SLUICE_CLASS_CANCELLED);
    for (uint32_t i = 0; i < 3; i++) {
        require_equal(fixture->failures[i].user_data, 2 + i, fixture->failures[i].cause,
                      fixture->failures[0].status);
    }
    pattern_check(fixture->far.bytes, (size_t)2 * SLOT, 1);
    value_check(fixture->far.bytes + (size_t)2 * SLOT, (size_t)3 * SLOT, 0);
}

/* A failure that was waited for is not reported again; there may be less room than failures. */
TEST_WITH(fixture, seen_failures_are_not_reported, ())
{
    struct sluice_completion completion;
    fixture->writes[1].remote.rkey ^= 0x33333333;
    struct sluice_scope *scope = begin(fixture, DEADLINE);
    require_result(sluice_scope_post(scope, fixture->writes, 5, fixture->handles), 5);
    require_ok(sluice_scope_wait(scope, &fixture->handles[1], DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_ACCESS);
    fixture->report.capacity = 2;
    memset(fixture->failures, 0xcc, sizeof(fixture->failures));
    require_result(sluice_scope_end(scope, &fixture->report), -ECANCELED);
    check_report(&fixture->report, 5, 3, 4, 2);
    require_equal(fixture->failures[0].user_data, 2, fixture->failures[1].user_data, 3);
    value_check(&fixture->failures[2], sizeof(fixture->failures[2]), 0xcc);
}

TEST_WITH(fixture, all_failures_seen, ())
{
    struct sluice_completion completion;
    fixture->writes[0].remote.rkey ^= 0x33333333;
    struct sluice_scope *scope = begin(fixture, DEADLINE);
    require_result(sluice_scope_post(scope, fixture->writes, 2, fixture->handles), 2);
    for (int i = 0; i < 2; i++) {
        require_ok(sluice_scope_wait(scope, &fixture->handles[i], DEADLINE, &completion));
        require(completion.error != 0, "%d", i);
    }
    require_ok(sluice_scope_end(scope, &fixture->report));
    check_report(&fixture->report, 2, 0, 0, 0);
}

/* The deadline of the scope ends pending requests, and the end does not hang. */
TEST_WITH(fixture, deadline_of_the_scope, ())
{
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct span start = span_begin();
    struct sluice_scope *scope = begin(fixture, SLUICE_MS(60));
    require_result(sluice_scope_post(scope, &receive, 1, NULL), 1);
    require_result(sluice_scope_end(scope, &fixture->report), -ETIMEDOUT);
    struct span took = span_since(start);
    require_took(took, SLUICE_MS(60), SLUICE_MS(1400));
    check_report(&fixture->report, 1, 1, 1, 1);
    require_class(&fixture->failures[0], SLUICE_CLASS_TIMEOUT);
    require_result(sluice_channel_state(fixture->pair.channels[0]), SLUICE_STATE_FAILED);
}

/* A queue that stays full until the deadline: each accepted request still completes once. */
TEST_WITH(fixture, deadline_while_the_queue_is_full, ())
{
    struct sluice_request sends[12];
    for (uint32_t i = 0; i < 12; i++) {
        sends[i] = request_of(SLUICE_OP_SEND, 0, NULL);
        sends[i].user_data = i;
    }
    struct sluice_scope *scope = begin(fixture, SLUICE_MS(60));
    require_result(sluice_scope_post(scope, sends, 12, NULL), 12);
    require_result(sluice_scope_end(scope, &fixture->report), -ETIMEDOUT);
    require_equal(fixture->report.failed, 12, fixture->report.posted, 12);
    uint32_t seen = 0;
    require(fixture->report.count == fixture->report.posted, "%u failures", fixture->report.count);
    for (uint32_t i = 0; i < fixture->report.count; i++) {
        require_class(&fixture->failures[i], SLUICE_CLASS_TIMEOUT);
        seen |= UINT32_C(1) << fixture->failures[i].user_data;
    }
    require(seen == (UINT32_C(1) << fixture->report.posted) - 1, "requests %x", seen);
}

TEST_WITH(fixture, wait_timeout_in_a_scope_is_harmless, ())
{
    struct sluice_completion completion;
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_scope *scope = begin(fixture, DEADLINE);
    require_result(sluice_scope_post(scope, &receive, 1, fixture->handles), 1);
    require_result(sluice_scope_wait(scope, &fixture->handles[0], SLUICE_MS(10), &completion),
                   -ETIMEDOUT);
    require_ok(sluice_channel_send(fixture->pair.channels[1], NULL, 0, DEADLINE));
    require_ok(sluice_scope_wait(scope, &fixture->handles[0], DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
    require_ok(sluice_scope_end(scope, &fixture->report));
    check_report(&fixture->report, 1, 0, 0, 0);
}

TEST_WITH(fixture, report_that_is_wrong, ())
{
    struct sluice_scope *scope = begin(fixture, DEADLINE);
    require_result(sluice_scope_post(scope, fixture->writes, 5, NULL), 5);
    fixture->report.size = 4;
    fixture->report.posted = 99;
    require_error(sluice_scope_end(scope, &fixture->report), -EINVAL, "size 4");
    require(fixture->report.posted == 99, "%u", fixture->report.posted);
    fixture->report.size = sizeof(fixture->report);
    fixture->report.flags = SLUICE_SCOPE_STRICT | 8;
    require_error(sluice_scope_end(begin(fixture, DEADLINE), &fixture->report), -EINVAL,
                  "flags 0x9");
    /* The scope was drained and freed all the same. */
    pattern_check(fixture->far.bytes, (size_t)5 * SLOT, 1);
    require_ok(sluice_scope_end(begin(fixture, DEADLINE), NULL));
}

/* The block's own error comes first, and its text stays; the report has both. */
TEST_WITH(fixture, block_with_an_error_of_its_own, ())
{
    struct sluice_scope *scope = begin(fixture, DEADLINE);
    require_result(sluice_scope_post(scope, fixture->writes, 2, NULL), 2);
    fixture->report.said = -EDOM;
    require_result(sluice_scope_end(scope, &fixture->report), -EDOM);
    require_equal(fixture->report.said, -EDOM, fixture->report.error, -EDOM);
    check_report(&fixture->report, 2, 0, 2, 0);

    /* A count is a success. */
    scope = begin(fixture, DEADLINE);
    fixture->report.said = sluice_scope_post(scope, fixture->writes, 2, NULL);
    require_ok(sluice_scope_end(scope, &fixture->report));
    require(fixture->report.said == 2 && fixture->report.error == 0, "%d", fixture->report.error);
    fixture->writes[0].remote.rkey ^= 0x33333333;
    scope = begin(fixture, DEADLINE);
    fixture->report.said = sluice_scope_post(scope, fixture->writes, 2, NULL);
    require_result(sluice_scope_end(scope, &fixture->report), -EACCES);
    check_report(&fixture->report, 2, 2, 2, 2);
    pair_reset(&fixture->pair);
    scope = begin(fixture, DEADLINE);
    require_result(sluice_scope_post(scope, fixture->writes, 2, NULL), 2);
    struct sluice_sge sge = fixture->sges[1];
    fixture->report.said =
        sluice_scope_post_write(scope, 3, &sge, 1, &fixture->writes[1].remote, NULL);
    require_error(sluice_scope_end(scope, &fixture->report), -EINVAL, "peer 3");
    require_equal(fixture->report.said, -EINVAL, fixture->report.error, -EINVAL);
    check_report(&fixture->report, 2, 2, 2, 2);
    require_class(&fixture->failures[0], SLUICE_CLASS_ACCESS);
    require_class(&fixture->failures[1], SLUICE_CLASS_CANCELLED);
}

/* A strict end requires that each result was read, whether success or failure. */
TEST_WITH(fixture, strict_end, ())
{
    struct sluice_completion completion;
    fixture->report.flags = SLUICE_SCOPE_STRICT;
    require_ok(sluice_scope_end(begin(fixture, DEADLINE), &fixture->report));
    require(fixture->report.error == 0, "%d", fixture->report.error);

    struct sluice_scope *scope = begin(fixture, DEADLINE);
    require_result(sluice_scope_post(scope, fixture->writes, 3, fixture->handles), 3);
    require_ok(sluice_scope_wait(scope, &fixture->handles[1], DEADLINE, &completion));
    require_error(sluice_scope_end(scope, &fixture->report), -EBUSY, "2 of 3");
    require(fixture->report.error == -EBUSY, "%d", fixture->report.error);
    check_report(&fixture->report, 3, 0, 2, 0);
    /* The scope was drained all the same. */
    pattern_check(fixture->far.bytes, (size_t)3 * SLOT, 1);

    scope = begin(fixture, DEADLINE);
    require_result(sluice_scope_post(scope, fixture->writes, 2, fixture->handles), 2);
    for (int i = 0; i < 2; i++) {
        require_ok(sluice_scope_wait(scope, &fixture->handles[i], DEADLINE, &completion));
    }
    require_ok(sluice_scope_end(scope, &fixture->report));

    /* Successes that were dropped for their places count as unread, and cannot be read any more. */
    scope = begin(fixture, DEADLINE);
    require_result(sluice_scope_post(scope, fixture->writes, COUNT_OF_WRITES, NULL),
                   COUNT_OF_WRITES);
    require_result(sluice_scope_end(scope, &fixture->report), -EBUSY);
    check_report(&fixture->report, COUNT_OF_WRITES, 0, COUNT_OF_WRITES, 0);

    /* A wait that finds no result does not count as reading it. */
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    scope = begin(fixture, DEADLINE);
    require_result(sluice_scope_post(scope, &receive, 1, fixture->handles), 1);
    require_result(sluice_scope_wait(scope, &fixture->handles[0], 0, &completion), -ETIMEDOUT);
    require_ok(sluice_channel_send(fixture->pair.channels[1], NULL, 0, DEADLINE));
    require_error(sluice_scope_end(scope, &fixture->report), -EBUSY, "1 of 1");

    /* An unread failure takes precedence. */
    fixture->writes[0].remote.rkey ^= 0x33333333;
    scope = begin(fixture, DEADLINE);
    require_result(sluice_scope_post(scope, fixture->writes, 1, NULL), 1);
    require_result(sluice_scope_end(scope, &fixture->report), -EACCES);
}

/* Receives are cancelled before the write that fails is posted last: it is the first error. */
TEST_WITH(fixture, failures_in_the_order_of_posting, ())
{
    struct sluice_request requests[5];
    for (uint32_t i = 0; i < 5; i++) {
        requests[i] = i % 2 == 0 ? request_of(SLUICE_OP_RECEIVE, 0, NULL) : fixture->writes[i];
        requests[i].user_data = 100 + i;
    }
    requests[1].remote.rkey ^= 0x33333333;
    struct sluice_scope *scope = begin(fixture, DEADLINE);
    require_result(sluice_scope_post(scope, requests, 3, NULL), 3);
    require_result(sluice_scope_post(scope, &requests[3], 1, NULL), 1);
    require_result(sluice_scope_post(scope, &requests[4], 1, NULL), 1);
    require_error(sluice_scope_end(scope, &fixture->report), -EACCES, "write peer 0");
    check_report(&fixture->report, 5, 5, 5, 5);
    for (uint32_t i = 0; i < 5; i++) {
        require_equal(fixture->failures[i].user_data, 100 + i);
        require_class(&fixture->failures[i], i == 1 ? SLUICE_CLASS_ACCESS : SLUICE_CLASS_CANCELLED);
    }
}

/* Of more failures than are kept, the text of the first is still there, though no list has it. */
TEST_WITH(fixture, first_of_many_that_are_lost, ())
{
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_scope *scope = begin(fixture, SLUICE_MS(100));
    for (uint32_t i = 0; i < 160; i++) {
        require_result(sluice_scope_post(scope, &receive, 1, NULL), 1);
    }
    require_error(sluice_scope_end(scope, &fixture->report), -ETIMEDOUT,
                  "receive from peer 0: deadline of 100 ms passed (timeout)");
    require(fixture->report.failed == 160 && fixture->report.lost > 0, "%u failed, %u lost",
            fixture->report.failed, fixture->report.lost);
}

/* The deadline passes while the block computes; requests posted after that are late as well. */
TEST_WITH(fixture, deadline_inside_of_the_block, ())
{
    struct sluice_completion completion;
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_scope *scope = begin(fixture, SLUICE_MS(20));
    require_result(sluice_scope_post(scope, &receive, 1, fixture->handles), 1);
    let_pass(SLUICE_MS(30));
    require_ok(sluice_scope_wait(scope, &fixture->handles[0], DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_TIMEOUT);
    require_result(sluice_scope_post(scope, fixture->writes, 2, fixture->handles), 2);
    require_ok(sluice_scope_wait(scope, &fixture->handles[1], DEADLINE, &completion));
    require(completion.error == -ENOTCONN && completion.user_data == 1, "%d", completion.error);
    require_result(sluice_scope_end(scope, &fixture->report), -ENOTCONN);
    check_report(&fixture->report, 3, 1, 1, 1);
    require(fixture->failures[0].cause == SLUICE_STATUS_DEADLINE, "%u", fixture->failures[0].cause);
}

/* A failed peer among many: its requests are accepted, and end cancelled. */
TEST_WITH(star, scope_of_many_peers, (3, NULL))
{
    struct sluice_request writes[30];
    struct sluice_scope_report report = {.size = sizeof(report)};
    struct sluice_completion failures[30];
    struct memory near = side_memory(&star->sides, 0, 30 * 8);
    struct memory far = side_memory(&star->sides, 1, 30 * 8);
    struct sluice_sge sges[30];
    pattern_fill(near.bytes, near.length, 6);
    star_break(star, 1);
    for (uint32_t i = 0; i < 30; i++) {
        sges[i] = memory_sge(&near, (size_t)i * 8, 8);
        writes[i] = request_of(SLUICE_OP_WRITE, i % 3, &sges[i]);
        writes[i].remote = memory_remote(&far, (size_t)i * 8, 8);
    }
    report.failures = failures;
    report.capacity = 30;
    struct sluice_scope *scope = made(sluice_multichannel_scope_begin(star->hub, DEADLINE));
    require_result(sluice_scope_post(scope, writes, 30, NULL), 30);
    require_result(sluice_scope_end(scope, &report), -ENOTCONN);
    check_report(&report, 30, 10, 30, 10);
    for (uint32_t i = 0; i < 30; i++) {
        if (i % 3 == 1) {
            value_check(far.bytes + (size_t)i * 8, 8, 0);
            require(failures[i / 3].peer == 1, "%u", failures[i / 3].peer);
        } else {
            require(memcmp(far.bytes + (size_t)i * 8, near.bytes + (size_t)i * 8, 8) == 0, "%u", i);
        }
    }
}

int main(void)
{
    return run_tests("scope", 30);
}
