/* SPDX-License-Identifier: MIT */
/*
 * Scopes: work is posted without waiting, a full queue is waited for, and the
 * end waits for everything and reports what nobody had seen.
 */
#include "../support/pair.h"
#include "../support/process.h"

#define COUNT_OF_WRITES 60
#define SLOT 500

/* A pair with short queues, and writes from one side to the other. */
struct desk {
    struct pair pair;
    struct memory near;
    struct memory far;
    struct sluice_sge sges[COUNT_OF_WRITES];
    struct sluice_request writes[COUNT_OF_WRITES];
    struct sluice_handle handles[COUNT_OF_WRITES];
    struct sluice_completion failures[COUNT_OF_WRITES];
    struct sluice_scope_report report;
};

static void desk_open(struct desk *desk)
{
    struct sluice_channel_attr attr = {.size = sizeof(attr), .send_depth = 5, .receive_depth = 5};
    memset(desk, 0, sizeof(*desk));
    pair_open(&desk->pair, &attr);
    memory_open(&desk->near, desk->pair.sides.pds[0], COUNT_OF_WRITES * SLOT);
    memory_open(&desk->far, desk->pair.sides.pds[1], COUNT_OF_WRITES * SLOT);
    pattern_fill(desk->near.bytes, desk->near.length, 1);
    for (uint32_t i = 0; i < COUNT_OF_WRITES; i++) {
        desk->sges[i] = memory_sge(&desk->near, (size_t)i * SLOT, SLOT);
        desk->writes[i] = request_of(SLUICE_OP_WRITE, 0, &desk->sges[i]);
        desk->writes[i].remote = memory_remote(&desk->far, (size_t)i * SLOT, SLOT);
        desk->writes[i].user_data = i;
    }
    desk->report.size = sizeof(desk->report);
    desk->report.failures = desk->failures;
    desk->report.capacity = COUNT_OF_WRITES;
}

static void desk_close(struct desk *desk)
{
    memory_close(&desk->near);
    memory_close(&desk->far);
    pair_close(&desk->pair);
}

static struct sluice_scope *begin(struct desk *desk, int64_t deadline)
{
    struct sluice_scope *scope = sluice_channel_scope_begin(desk->pair.channels[0], deadline);
    require(scope, "%s", sluice_last_error());
    return scope;
}

static void check_report(const struct sluice_scope_report *report, uint32_t posted, uint32_t failed,
                         uint32_t unseen, uint32_t count)
{
    require(report->posted == posted && report->failed == failed && report->unseen == unseen &&
                report->count == count && report->lost == 0,
            "posted %u, failed %u, unseen %u, count %u, lost %u; not %u, %u, %u, %u",
            report->posted, report->failed, report->unseen, report->count, report->lost, posted,
            failed, unseen, count);
}

START_TEST(end_waits_for_all)
{
    struct desk desk;
    desk_open(&desk);
    struct sluice_scope *scope = begin(&desk, DEADLINE);
    require_result(sluice_scope_post(scope, desk.writes, 5, NULL), 5);
    require_ok(sluice_scope_end(scope, &desk.report));
    check_report(&desk.report, 5, 0, 5, 0);
    pattern_check(desk.far.bytes, (size_t)5 * SLOT, 1);
    value_check(desk.far.bytes + (size_t)5 * SLOT, desk.far.length - (size_t)5 * SLOT, 0);
    desk_close(&desk);
}
END_TEST

START_TEST(empty_scope)
{
    struct desk desk;
    desk_open(&desk);
    require_ok(sluice_scope_end(begin(&desk, DEADLINE), &desk.report));
    check_report(&desk.report, 0, 0, 0, 0);
    require_ok(sluice_scope_end(begin(&desk, 0), NULL));
    pair_works(&desk.pair);
    desk_close(&desk);
}
END_TEST

/* A full queue is no error, in one list or in many. */
START_TEST(full_queue_is_waited_for)
{
    struct desk desk;
    desk_open(&desk);
    struct sluice_scope *scope = begin(&desk, DEADLINE);
    require_result(sluice_scope_post(scope, desk.writes, COUNT_OF_WRITES / 2, NULL),
                   COUNT_OF_WRITES / 2);
    for (uint32_t i = COUNT_OF_WRITES / 2; i < COUNT_OF_WRITES; i++) {
        require_result(sluice_scope_post(scope, &desk.writes[i], 1, &desk.handles[i]), 1);
    }
    require_ok(sluice_scope_end(scope, &desk.report));
    require(desk.report.posted == COUNT_OF_WRITES && desk.report.failed == 0, "%u",
            desk.report.posted);
    pattern_check(desk.far.bytes, desk.far.length, 1);
    desk_close(&desk);
}
END_TEST

START_TEST(handles_may_be_waited_for)
{
    struct desk desk;
    struct sluice_completion completion;
    desk_open(&desk);
    struct sluice_scope *scope = begin(&desk, DEADLINE);
    require_result(sluice_scope_post(scope, desk.writes, 5, desk.handles), 5);
    for (uint32_t i = 1; i < 5; i += 2) {
        for (int again = 0; again < 2; again++) {
            require_ok(sluice_scope_wait(scope, &desk.handles[i], DEADLINE, &completion));
            require_class(&completion, SLUICE_CLASS_NONE);
            require(completion.user_data == i && completion.bytes == SLOT, "%u", i);
        }
    }
    require_ok(sluice_scope_end(scope, &desk.report));
    check_report(&desk.report, 5, 0, 3, 0);
    desk_close(&desk);
}
END_TEST

START_TEST(handles_of_another)
{
    struct desk desk;
    struct pair other;
    struct sluice_completion completion;
    struct sluice_handle nothing = {0};
    desk_open(&desk);
    pair_open(&other, NULL);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_handle foreign = post(other.channels[0], &receive);
    struct sluice_scope *scope = begin(&desk, DEADLINE);
    require_error(sluice_scope_wait(scope, &foreign, 0, &completion), -ESTALE, "");
    require_error(sluice_scope_wait(scope, &nothing, 0, &completion), -ESTALE, "");
    require_ok(sluice_scope_end(scope, NULL));
    pair_close(&other);
    desk_close(&desk);
}
END_TEST

START_TEST(one_scope_at_a_time)
{
    struct desk desk;
    struct star star;
    desk_open(&desk);
    struct sluice_scope *scope = begin(&desk, DEADLINE);
    require_null(sluice_channel_scope_begin(desk.pair.channels[0], DEADLINE), EBUSY, "scope");
    /* The other end may have its own. */
    struct sluice_scope *second = sluice_channel_scope_begin(desk.pair.channels[1], DEADLINE);
    require(second, "%s", sluice_last_error());
    require_ok(sluice_scope_end(scope, NULL));
    require_ok(sluice_scope_end(begin(&desk, DEADLINE), NULL));
    require_ok(sluice_scope_end(second, NULL));
    star_open(&star, 1, NULL);
    scope = sluice_multichannel_scope_begin(star.hub, DEADLINE);
    require(scope, "%s", sluice_last_error());
    require_null(sluice_multichannel_scope_begin(star.hub, DEADLINE), EBUSY, "scope");
    require_ok(sluice_scope_end(scope, NULL));
    star_close(&star);
    desk_close(&desk);
}
END_TEST

/* What was posted before the scope goes on beside it, and is its own affair. */
START_TEST(unpolled_work_beside_a_scope)
{
    struct desk desk;
    struct sluice_completion completions[3];
    desk_open(&desk);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    receive.user_data = 77;
    struct sluice_handle unpolled = post(desk.pair.channels[0], &receive);
    struct sluice_scope *scope = begin(&desk, DEADLINE);
    require_result(sluice_scope_post(scope, desk.writes, 2, desk.handles), 2);
    require_ok(sluice_channel_send(desk.pair.channels[1], NULL, 0, DEADLINE));
    require_error(sluice_scope_wait(scope, &unpolled, 0, completions), -ESTALE, "scope");
    require_ok(sluice_scope_wait(scope, &desk.handles[0], DEADLINE, &completions[0]));
    require_ok(sluice_scope_wait(scope, &desk.handles[1], DEADLINE, &completions[1]));
    require_result(sluice_scope_poll(scope, completions, 3), 0);
    require_ok(sluice_scope_end(scope, &desk.report));
    check_report(&desk.report, 2, 0, 0, 0);
    struct sluice_completion completion = await(desk.pair.channels[0], unpolled, SLUICE_CLASS_NONE);
    require(completion.user_data == 77, "%llu", (unsigned long long)completion.user_data);
    require_result(sluice_channel_poll(desk.pair.channels[0], completions, 3), 0);
    desk_close(&desk);
}
END_TEST

/* Handles of a scope mean nothing to its channel, nor to the next scope. */
START_TEST(handles_after_the_end)
{
    struct desk desk;
    struct sluice_completion completion;
    desk_open(&desk);
    struct sluice_scope *scope = begin(&desk, DEADLINE);
    require_result(sluice_scope_post(scope, desk.writes, 1, desk.handles), 1);
    require_ok(sluice_scope_wait(scope, &desk.handles[0], DEADLINE, &completion));
    require_ok(sluice_scope_end(scope, NULL));
    require_error(sluice_channel_wait(desk.pair.channels[0], &desk.handles[0], 0, &completion),
                  -ESTALE, "");
    scope = begin(&desk, DEADLINE);
    require_error(sluice_scope_wait(scope, &desk.handles[0], 0, &completion), -ESTALE, "scope");
    require_ok(sluice_scope_end(scope, NULL));
    desk_close(&desk);
}
END_TEST

/* As channel_poll, of the scope's work alone. What was polled is not reported. */
START_TEST(poll_in_a_scope)
{
    struct desk desk;
    struct sluice_completion completions[5];
    struct sluice_completion again;
    uint32_t got = 0;
    desk_open(&desk);
    struct sluice_scope *scope = begin(&desk, DEADLINE);
    require_result(sluice_scope_poll(scope, completions, 5), 0);
    require_result(sluice_scope_post(scope, desk.writes, 4, desk.handles), 4);
    for (int64_t end = clock_now() + DEADLINE; got < 3 && clock_now() < end;) {
        int result = sluice_scope_poll(scope, completions + got, 3 - got);
        require(result >= 0, "%s", sluice_last_error());
        got += (uint32_t)result;
    }
    require(got == 3, "%u", got);
    for (uint32_t i = 0; i < 3; i++) {
        require_class(&completions[i], SLUICE_CLASS_NONE);
        require(completions[i].user_data == i && completions[i].bytes == SLOT, "%u", i);
        require_ok(sluice_scope_wait(scope, &desk.handles[i], 0, &again));
        require(memcmp(&again, &completions[i], sizeof(again)) == 0, "the answer changed%s", "");
    }
    require_error(sluice_scope_poll(scope, NULL, 1), -EINVAL, "completions");
    require_ok(sluice_scope_end(scope, &desk.report));
    check_report(&desk.report, 4, 0, 1, 0);
    desk_close(&desk);
}
END_TEST

START_TEST(end_reports_failures)
{
    struct desk desk;
    desk_open(&desk);
    desk.writes[2].remote.rkey ^= 0x33333333;
    struct sluice_scope *scope = begin(&desk, DEADLINE);
    require_result(sluice_scope_post(scope, desk.writes, 5, NULL), 5);
    require_result(sluice_scope_end(scope, &desk.report), -EACCES);
    check_report(&desk.report, 5, 3, 5, 3);
    require_class(&desk.failures[0], SLUICE_CLASS_ACCESS);
    require_class(&desk.failures[1], SLUICE_CLASS_CANCELLED);
    require_class(&desk.failures[2], SLUICE_CLASS_CANCELLED);
    for (uint32_t i = 0; i < 3; i++) {
        require(desk.failures[i].user_data == 2 + i, "%llu",
                (unsigned long long)desk.failures[i].user_data);
        require(desk.failures[i].cause == desk.failures[0].status, "%u", desk.failures[i].cause);
    }
    pattern_check(desk.far.bytes, (size_t)2 * SLOT, 1);
    value_check(desk.far.bytes + (size_t)2 * SLOT, (size_t)3 * SLOT, 0);
    desk_close(&desk);
}
END_TEST

/* A failure that was waited for is not reported again; there may be less room than failures. */
START_TEST(seen_failures_are_not_reported)
{
    struct desk desk;
    struct sluice_completion completion;
    desk_open(&desk);
    desk.writes[1].remote.rkey ^= 0x33333333;
    struct sluice_scope *scope = begin(&desk, DEADLINE);
    require_result(sluice_scope_post(scope, desk.writes, 5, desk.handles), 5);
    require_ok(sluice_scope_wait(scope, &desk.handles[1], DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_ACCESS);
    desk.report.capacity = 2;
    memset(desk.failures, 0xcc, sizeof(desk.failures));
    require_result(sluice_scope_end(scope, &desk.report), -ECANCELED);
    check_report(&desk.report, 5, 3, 4, 2);
    require(desk.failures[0].user_data == 2 && desk.failures[1].user_data == 3, "%llu",
            (unsigned long long)desk.failures[0].user_data);
    value_check(&desk.failures[2], sizeof(desk.failures[2]), 0xcc);
    desk_close(&desk);
}
END_TEST

START_TEST(all_failures_seen)
{
    struct desk desk;
    struct sluice_completion completion;
    desk_open(&desk);
    desk.writes[0].remote.rkey ^= 0x33333333;
    struct sluice_scope *scope = begin(&desk, DEADLINE);
    require_result(sluice_scope_post(scope, desk.writes, 2, desk.handles), 2);
    for (int i = 0; i < 2; i++) {
        require_ok(sluice_scope_wait(scope, &desk.handles[i], DEADLINE, &completion));
        require(completion.error != 0, "%d", i);
    }
    require_ok(sluice_scope_end(scope, &desk.report));
    check_report(&desk.report, 2, 0, 0, 0);
    desk_close(&desk);
}
END_TEST

/* The deadline of the scope ends what is still waiting, and the end does not hang. */
START_TEST(deadline_of_the_scope)
{
    struct desk desk;
    desk_open(&desk);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct span start = span_begin();
    struct sluice_scope *scope = begin(&desk, SLUICE_MS(60));
    require_result(sluice_scope_post(scope, &receive, 1, NULL), 1);
    require_result(sluice_scope_end(scope, &desk.report), -ETIMEDOUT);
    struct span took = span_since(start);
    require_took(took, SLUICE_MS(60), SLUICE_MS(1400));
    check_report(&desk.report, 1, 1, 1, 1);
    require_class(&desk.failures[0], SLUICE_CLASS_TIMEOUT);
    require_result(sluice_channel_state(desk.pair.channels[0]), SLUICE_STATE_FAILED);
    desk_close(&desk);
}
END_TEST

/* A queue that stays full until the deadline: each accepted request still completes once. */
START_TEST(deadline_while_the_queue_is_full)
{
    struct desk desk;
    desk_open(&desk);
    struct sluice_request sends[12];
    for (uint32_t i = 0; i < 12; i++) {
        sends[i] = request_of(SLUICE_OP_SEND, 0, NULL);
        sends[i].user_data = i;
    }
    struct sluice_scope *scope = begin(&desk, SLUICE_MS(60));
    require_result(sluice_scope_post(scope, sends, 12, NULL), 12);
    require_result(sluice_scope_end(scope, &desk.report), -ETIMEDOUT);
    require(desk.report.failed == 12 && desk.report.posted == 12, "posted %u, failed %u",
            desk.report.posted, desk.report.failed);
    uint32_t seen = 0;
    require(desk.report.count == desk.report.posted, "%u failures", desk.report.count);
    for (uint32_t i = 0; i < desk.report.count; i++) {
        require_class(&desk.failures[i], SLUICE_CLASS_TIMEOUT);
        seen |= UINT32_C(1) << desk.failures[i].user_data;
    }
    require(seen == (UINT32_C(1) << desk.report.posted) - 1, "requests %x", seen);
    desk_close(&desk);
}
END_TEST

START_TEST(wait_timeout_in_a_scope_is_harmless)
{
    struct desk desk;
    struct sluice_completion completion;
    desk_open(&desk);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_scope *scope = begin(&desk, DEADLINE);
    require_result(sluice_scope_post(scope, &receive, 1, desk.handles), 1);
    require_result(sluice_scope_wait(scope, &desk.handles[0], SLUICE_MS(10), &completion),
                   -ETIMEDOUT);
    require_ok(sluice_channel_send(desk.pair.channels[1], NULL, 0, DEADLINE));
    require_ok(sluice_scope_wait(scope, &desk.handles[0], DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
    require_ok(sluice_scope_end(scope, &desk.report));
    check_report(&desk.report, 1, 0, 0, 0);
    desk_close(&desk);
}
END_TEST

START_TEST(report_that_is_wrong)
{
    struct desk desk;
    desk_open(&desk);
    struct sluice_scope *scope = begin(&desk, DEADLINE);
    require_result(sluice_scope_post(scope, desk.writes, 5, NULL), 5);
    desk.report.size = 4;
    desk.report.posted = 99;
    require_error(sluice_scope_end(scope, &desk.report), -EINVAL, "size 4");
    require(desk.report.posted == 99, "%u", desk.report.posted);
    desk.report.size = sizeof(desk.report);
    desk.report.flags = SLUICE_SCOPE_STRICT | 8;
    require_error(sluice_scope_end(begin(&desk, DEADLINE), &desk.report), -EINVAL, "flags 0x9");
    /* It was drained all the same, and freed. */
    pattern_check(desk.far.bytes, (size_t)5 * SLOT, 1);
    require_ok(sluice_scope_end(begin(&desk, DEADLINE), NULL));
    desk_close(&desk);
}
END_TEST

/* What the block says of itself comes first, and its words stay; the report has both. */
START_TEST(block_that_says_something)
{
    struct desk desk;
    desk_open(&desk);
    struct sluice_scope *scope = begin(&desk, DEADLINE);
    require_result(sluice_scope_post(scope, desk.writes, 2, NULL), 2);
    desk.report.said = -EDOM;
    require_result(sluice_scope_end(scope, &desk.report), -EDOM);
    require(desk.report.said == -EDOM && desk.report.error == -EDOM, "%d", desk.report.error);
    check_report(&desk.report, 2, 0, 2, 0);

    /* A count says that all is well. */
    scope = begin(&desk, DEADLINE);
    desk.report.said = sluice_scope_post(scope, desk.writes, 2, NULL);
    require_ok(sluice_scope_end(scope, &desk.report));
    require(desk.report.said == 2 && desk.report.error == 0, "%d", desk.report.error);
    desk.writes[0].remote.rkey ^= 0x33333333;
    scope = begin(&desk, DEADLINE);
    desk.report.said = sluice_scope_post(scope, desk.writes, 2, NULL);
    require_result(sluice_scope_end(scope, &desk.report), -EACCES);
    check_report(&desk.report, 2, 2, 2, 2);
    pair_reset(&desk.pair);
    scope = begin(&desk, DEADLINE);
    require_result(sluice_scope_post(scope, desk.writes, 2, NULL), 2);
    struct sluice_sge sge = desk.sges[1];
    desk.report.said = sluice_scope_post_write(scope, 3, &sge, 1, &desk.writes[1].remote, NULL);
    require_error(sluice_scope_end(scope, &desk.report), -EINVAL, "peer 3");
    require(desk.report.said == -EINVAL && desk.report.error == -EINVAL, "%d", desk.report.error);
    check_report(&desk.report, 2, 2, 2, 2);
    require_class(&desk.failures[0], SLUICE_CLASS_ACCESS);
    require_class(&desk.failures[1], SLUICE_CLASS_CANCELLED);
    desk_close(&desk);
}
END_TEST

/* A strict end wants each request to have been looked at; how it ended is another matter. */
START_TEST(strict_end)
{
    struct desk desk;
    struct sluice_completion completion;
    desk_open(&desk);
    desk.report.flags = SLUICE_SCOPE_STRICT;
    require_ok(sluice_scope_end(begin(&desk, DEADLINE), &desk.report));
    require(desk.report.error == 0, "%d", desk.report.error);

    struct sluice_scope *scope = begin(&desk, DEADLINE);
    require_result(sluice_scope_post(scope, desk.writes, 3, desk.handles), 3);
    require_ok(sluice_scope_wait(scope, &desk.handles[1], DEADLINE, &completion));
    require_error(sluice_scope_end(scope, &desk.report), -EBUSY, "2 of 3");
    require(desk.report.error == -EBUSY, "%d", desk.report.error);
    check_report(&desk.report, 3, 0, 2, 0);
    /* It was drained all the same. */
    pattern_check(desk.far.bytes, (size_t)3 * SLOT, 1);

    scope = begin(&desk, DEADLINE);
    require_result(sluice_scope_post(scope, desk.writes, 2, desk.handles), 2);
    for (int i = 0; i < 2; i++) {
        require_ok(sluice_scope_wait(scope, &desk.handles[i], DEADLINE, &completion));
    }
    require_ok(sluice_scope_end(scope, &desk.report));

    /* Successes whose places were needed were not looked at, and never can be. */
    scope = begin(&desk, DEADLINE);
    require_result(sluice_scope_post(scope, desk.writes, COUNT_OF_WRITES, NULL), COUNT_OF_WRITES);
    require_result(sluice_scope_end(scope, &desk.report), -EBUSY);
    check_report(&desk.report, COUNT_OF_WRITES, 0, COUNT_OF_WRITES, 0);

    /* A failure that nobody looked at says more. */
    desk.writes[0].remote.rkey ^= 0x33333333;
    scope = begin(&desk, DEADLINE);
    require_result(sluice_scope_post(scope, desk.writes, 1, NULL), 1);
    require_result(sluice_scope_end(scope, &desk.report), -EACCES);
    desk_close(&desk);
}
END_TEST

/* Receives are cancelled before the write that fails is posted last: it is the first error. */
START_TEST(failures_in_the_order_of_posting)
{
    struct desk desk;
    desk_open(&desk);
    struct sluice_request requests[5];
    for (uint32_t i = 0; i < 5; i++) {
        requests[i] = i % 2 == 0 ? request_of(SLUICE_OP_RECEIVE, 0, NULL) : desk.writes[i];
        requests[i].user_data = 100 + i;
    }
    requests[1].remote.rkey ^= 0x33333333;
    struct sluice_scope *scope = begin(&desk, DEADLINE);
    require_result(sluice_scope_post(scope, requests, 3, NULL), 3);
    require_result(sluice_scope_post(scope, &requests[3], 1, NULL), 1);
    require_result(sluice_scope_post(scope, &requests[4], 1, NULL), 1);
    require_error(sluice_scope_end(scope, &desk.report), -EACCES, "write peer 0");
    check_report(&desk.report, 5, 5, 5, 5);
    for (uint32_t i = 0; i < 5; i++) {
        require(desk.failures[i].user_data == 100 + i, "failure %u is of request %llu", i,
                (unsigned long long)desk.failures[i].user_data);
        require_class(&desk.failures[i], i == 1 ? SLUICE_CLASS_ACCESS : SLUICE_CLASS_CANCELLED);
    }
    desk_close(&desk);
}
END_TEST

/* The deadline passes while the block computes; what it posts then is late as well. */
START_TEST(deadline_inside_of_the_block)
{
    struct desk desk;
    struct sluice_completion completion;
    desk_open(&desk);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_scope *scope = begin(&desk, SLUICE_MS(20));
    require_result(sluice_scope_post(scope, &receive, 1, desk.handles), 1);
    let_pass(SLUICE_MS(30));
    require_ok(sluice_scope_wait(scope, &desk.handles[0], DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_TIMEOUT);
    require_result(sluice_scope_post(scope, desk.writes, 2, desk.handles), 2);
    require_ok(sluice_scope_wait(scope, &desk.handles[1], DEADLINE, &completion));
    require(completion.error == -ENOTCONN && completion.user_data == 1, "%d", completion.error);
    require_result(sluice_scope_end(scope, &desk.report), -ENOTCONN);
    check_report(&desk.report, 3, 1, 1, 1);
    require(desk.failures[0].cause == SLUICE_STATUS_DEADLINE, "%u", desk.failures[0].cause);
    desk_close(&desk);
}
END_TEST

/* A failed peer among many: its requests are accepted, and end cancelled. */
START_TEST(scope_of_many_peers)
{
    struct star star;
    struct memory near;
    struct memory far;
    struct sluice_request writes[30];
    struct sluice_scope_report report = {.size = sizeof(report)};
    struct sluice_completion failures[30];
    star_open(&star, 3, NULL);
    memory_open(&near, star.sides.pds[0], 30 * 8);
    memory_open(&far, star.sides.pds[1], 30 * 8);
    struct sluice_sge sges[30];
    pattern_fill(near.bytes, near.length, 6);
    star_break(&star, 1);
    for (uint32_t i = 0; i < 30; i++) {
        sges[i] = memory_sge(&near, (size_t)i * 8, 8);
        writes[i] = request_of(SLUICE_OP_WRITE, i % 3, &sges[i]);
        writes[i].remote = memory_remote(&far, (size_t)i * 8, 8);
    }
    report.failures = failures;
    report.capacity = 30;
    struct sluice_scope *scope = sluice_multichannel_scope_begin(star.hub, DEADLINE);
    require(scope, "%s", sluice_last_error());
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
    memory_close(&near);
    memory_close(&far);
    star_close(&star);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, end_waits_for_all);
    tcase_add_test(tcase, empty_scope);
    tcase_add_test(tcase, full_queue_is_waited_for);
    tcase_add_test(tcase, handles_may_be_waited_for);
    tcase_add_test(tcase, handles_of_another);
    tcase_add_test(tcase, one_scope_at_a_time);
    tcase_add_test(tcase, unpolled_work_beside_a_scope);
    tcase_add_test(tcase, handles_after_the_end);
    tcase_add_test(tcase, poll_in_a_scope);
    tcase_add_test(tcase, end_reports_failures);
    tcase_add_test(tcase, seen_failures_are_not_reported);
    tcase_add_test(tcase, all_failures_seen);
    tcase_add_test(tcase, deadline_of_the_scope);
    tcase_add_test(tcase, deadline_while_the_queue_is_full);
    tcase_add_test(tcase, wait_timeout_in_a_scope_is_harmless);
    tcase_add_test(tcase, report_that_is_wrong);
    tcase_add_test(tcase, block_that_says_something);
    tcase_add_test(tcase, strict_end);
    tcase_add_test(tcase, failures_in_the_order_of_posting);
    tcase_add_test(tcase, deadline_inside_of_the_block);
    tcase_add_test(tcase, scope_of_many_peers);
}

int main(void)
{
    return run_on_wires("scope", 30, add_tests);
}
