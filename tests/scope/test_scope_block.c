/* SPDX-License-Identifier: MIT */
/*
 * The block of a scope: it runs once, and however it is left, none of its requests is in flight
 * afterwards, and the report has the result.
 */
#include "../support/pair.h"
#include "../support/process.h"

#define SLOT 1000
#define SLOTS 8

/* Writes from one side to the other: the bytes that arrived show whether a scope was drained. */
struct fixture {
    struct pair pair;
    struct memory near, far;
    struct sluice_sge sges[SLOTS];
    struct sluice_remote_mr remotes[SLOTS];
    struct sluice_completion failures[SLOTS];
    struct sluice_scope_report report;
};

static void fixture_open(struct fixture *fixture)
{
    struct sluice_channel_attr attr = {.size = sizeof(attr), .send_depth = 3, .receive_depth = 3};
    memset(fixture, 0, sizeof(*fixture));
    pair_open(&fixture->pair, &attr);
    fixture->near = side_memory(&fixture->pair.sides, 0, SLOTS * SLOT);
    fixture->far = side_memory(&fixture->pair.sides, 1, SLOTS * SLOT);
    pattern_fill(fixture->near.bytes, fixture->near.length, 1);
    for (uint32_t i = 0; i < SLOTS; i++) {
        fixture->sges[i] = memory_sge(&fixture->near, (size_t)i * SLOT, SLOT);
        fixture->remotes[i] = memory_remote(&fixture->far, (size_t)i * SLOT, SLOT);
    }
    fixture->report.size = sizeof(fixture->report);
    fixture->report.failures = fixture->failures;
    fixture->report.capacity = SLOTS;
}

static void fixture_close(struct fixture *fixture)
{
    pair_close(&fixture->pair);
}

static struct sluice_scope *begin(struct fixture *fixture)
{
    return sluice_channel_scope_begin(fixture->pair.channels[0], DEADLINE);
}

static void write_slots(struct fixture *fixture, struct sluice_scope *scope, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        require_ok(
            sluice_scope_post_write(scope, 0, &fixture->sges[i], 1, &fixture->remotes[i], NULL));
    }
}

/*
 * Requires that the scope of this many writes has ended, all data have arrived, and the channel is
 * free again.
 */
static void check_drained(struct fixture *fixture, uint32_t posted)
{
    require_equal(fixture->report.posted, posted, fixture->report.error, 0, fixture->report.failed,
                  0, fixture->report.unseen, posted);
    pattern_check(fixture->far.bytes, (size_t)posted * SLOT, 1);
    memset(fixture->far.bytes, 0, fixture->far.length);
    pair_works(&fixture->pair);
}

TEST_WITH(fixture, left_by_its_end, ())
{
    int runs = 0;
    SLUICE_SCOPE(scope, begin(fixture), &fixture->report) {
        write_slots(fixture, scope, SLOTS);
        runs++;
    }
    require(runs == 1, "%d", runs);
    check_drained(fixture, SLOTS);
}

/* Both statements leave the scope, and not the loop around it. */
TEST_WITH(fixture, left_by_break_and_continue, ())
{
    int after = 0;
    for (uint32_t i = 1; i <= 4; i++) {
        SLUICE_SCOPE(scope, begin(fixture), &fixture->report) {
            write_slots(fixture, scope, i);
            if (i % 2 == 0) {
                break;
            }
            if (i < 4) {
                continue;
            }
            fail_at(__FILE__, __LINE__, "the block went on");
        }
        check_drained(fixture, i);
        after++;
    }
    require(after == 4, "%d", after);
}

static int return_from_block(struct fixture *fixture)
{
    SLUICE_SCOPE(scope, begin(fixture), &fixture->report) {
        write_slots(fixture, scope, 5);
        return 42;
    }
    return -1;
}

TEST_WITH(fixture, left_by_return, ())
{
    require_result(return_from_block(fixture), 42);
    check_drained(fixture, 5);
}

TEST_WITH(fixture, left_by_goto, ())
{
    int tries = 0;
again:
    SLUICE_SCOPE(scope, begin(fixture), &fixture->report) {
        write_slots(fixture, scope, 4);
        if (++tries < 3) {
            goto again;
        }
        goto out;
    }
    fail_at(__FILE__, __LINE__, "the block was left by its end");
out:
    require(tries == 3, "%d", tries);
    check_drained(fixture, 4);
}

/* The inner scope is of another channel; leaving the function leaves both, the inner one first. */
static int leave_two(struct fixture *fixture, struct fixture *other, int way)
{
    SLUICE_SCOPE(outer, begin(fixture), &fixture->report) {
        write_slots(fixture, outer, 3);
        SLUICE_SCOPE(inner, begin(other), &other->report) {
            write_slots(other, inner, 6);
            if (way == 0) {
                return 1;
            }
            if (way == 1) {
                goto out;
            }
            if (way == 2) {
                break;
            }
        }
        require_equal(other->report.posted, 6, fixture->report.posted, 0);
        pattern_check(other->far.bytes, (size_t)6 * SLOT, 1);
    }
    return 2;
out:
    return 3;
}

TEST_WITH(fixture, nested_scopes, ())
{
    static const int results[] = {1, 3, 2, 2};
    struct fixture other;
    fixture_open(&other);
    for (int way = 0; way < 4; way++) {
        fixture->report.posted = other.report.posted = 0;
        require_result(leave_two(fixture, &other, way), results[way]);
        check_drained(fixture, 3);
        check_drained(&other, 6);
    }
    fixture_close(&other);
}

/* A scope inside of one of the same channel does not begin, and the block of it does not run. */
TEST_WITH(fixture, nested_scopes_of_one_channel, ())
{
    struct sluice_scope_report inner_report = {.size = sizeof(inner_report), .posted = 9};
    SLUICE_SCOPE(outer, begin(fixture), &fixture->report) {
        write_slots(fixture, outer, 1);
        SLUICE_SCOPE(inner, begin(fixture), &inner_report) {
            fail_at(__FILE__, __LINE__, "the block runs, with %p", (void *)inner);
        }
        require_equal(inner_report.error, -EBUSY, inner_report.posted, 0);
        write_slots(fixture, outer, 2);
    }
    require(fixture->report.posted == 3 && fixture->report.error == 0, "%d", fixture->report.error);
}

TEST_WITH(fixture, begin_that_fails, ())
{
    memset(fixture->failures, 0xcc, sizeof(fixture->failures));
    fixture->report.posted = fixture->report.unseen = fixture->report.count = 7;
    fixture->report.said = -ENOENT;
    SLUICE_SCOPE(scope, sluice_channel_scope_begin(fixture->pair.channels[0], -1),
                 &fixture->report) {
        fail_at(__FILE__, __LINE__, "the block runs, with %p", (void *)scope);
    }
    require_equal(fixture->report.error, -EINVAL, fixture->report.posted, 0, fixture->report.unseen,
                  0, fixture->report.count, 0, fixture->report.said, -ENOENT);
    value_check(fixture->failures, sizeof(fixture->failures), 0xcc);
    SLUICE_SCOPE(scope, sluice_channel_scope_begin(NULL, DEADLINE), NULL) {
        fail_at(__FILE__, __LINE__, "the block runs, with %p", (void *)scope);
    }
    /* An errno of 0 is still reported as an error. */
    errno = 0;
    fixture->report.error = 0;
    SLUICE_SCOPE(scope, NULL, &fixture->report) {
        fail_at(__FILE__, __LINE__, "the block runs, with %p", (void *)scope);
    }
    require(fixture->report.error == -EINVAL, "%d", fixture->report.error);
}

/* A wrong report is refused before anything is posted, and the scope is not left open. */
TEST_WITH(fixture, report_that_is_wrong, ())
{
    struct sluice_scope_report wrong[] = {{.size = 0}, {.size = sizeof(wrong[0]), .flags = 2}};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        wrong[i].posted = 7;
        SLUICE_SCOPE(scope, begin(fixture), &wrong[i]) {
            fail_at(__FILE__, __LINE__, "the block runs, with %p", (void *)scope);
        }
        require(wrong[i].error == -EINVAL && wrong[i].posted == 7, "%d", wrong[i].error);
        require(strstr(sluice_last_error(), i == 0 ? "size 0" : "flags is 0x2"), "%s",
                sluice_last_error());
    }
    SLUICE_SCOPE(scope, begin(fixture), NULL) {
        write_slots(fixture, scope, 1);
    }
    pattern_check(fixture->far.bytes, SLOT, 1);
}

/* A program of a later version: its additional fields must be zero, and are. */
TEST_WITH(fixture, report_of_a_later_version, ())
{
    struct {
        struct sluice_scope_report report;
        uint64_t more, guard;
    } later = {.report = {.size = sizeof(later.report) + sizeof(later.more)}, .guard = 7};
    for (uint64_t more = 0; more < 2; more++) {
        struct sluice_scope *scope = begin(fixture);
        later.more = more;
        later.report.posted = 99;
        write_slots(fixture, scope, 5);
        require_result(sluice_scope_end(scope, &later.report), more == 0 ? 0 : -E2BIG);
        require(later.report.posted == (more == 0 ? 5 : 99), "%u", later.report.posted);
        require(later.more == more && later.guard == 7, "written behind%s", "");
    }
}

TEST_WITH(fixture, error_of_the_block, ())
{
    fixture->remotes[1].rkey ^= 0x33333333;
    SLUICE_SCOPE(scope, begin(fixture), &fixture->report) {
        write_slots(fixture, scope, 3);
        fixture->report.said = -EXDEV;
    }
    require_equal(fixture->report.error, -EXDEV, fixture->report.said, -EXDEV,
                  fixture->report.failed, 2, fixture->report.count, 2);
    require_class(&fixture->failures[0], SLUICE_CLASS_ACCESS);
    require_class(&fixture->failures[1], SLUICE_CLASS_CANCELLED);
}

/* A scope ended by hand fills the report; leaving the block then has nothing to end. */
TEST_WITH(fixture, ended_by_hand, ())
{
    struct sluice_scope_report own = {.size = sizeof(own)};
    struct sluice_scope *scope = sluice_scope_attach(begin(fixture), &fixture->report);
    write_slots(fixture, scope, 2);
    require_ok(sluice_scope_end(scope, &own));
    require(own.posted == 2 && fixture->report.posted == 0, "%u", fixture->report.posted);
    scope = sluice_scope_attach(begin(fixture), &fixture->report);
    write_slots(fixture, scope, 1);
    require_ok(sluice_scope_end(scope, NULL));
    require_equal(fixture->report.posted, 1, fixture->report.unseen, 1);
    /* The report of the scope before must not stay. */
    fixture->report.posted = 99;
    require_ok(sluice_scope_end(begin(fixture), NULL));
    require(fixture->report.posted == 99, "%u", fixture->report.posted);
}

/* The deadline passes while the block computes. */
TEST_WITH(fixture, deadline_passes_inside, ())
{
    int64_t start = fair_now();
    SLUICE_SCOPE(scope, sluice_channel_scope_begin(fixture->pair.channels[0], SLUICE_MS(20)),
                 &fixture->report) {
        require_ok(sluice_scope_post_receive(scope, 0, NULL, 0, NULL));
        let_pass(SLUICE_MS(40));
        continue;
    }
    require_within(start, SLUICE_MS(1500));
    require_equal(fixture->report.error, -ETIMEDOUT, fixture->report.count, 1);
    require_class(&fixture->failures[0], SLUICE_CLASS_TIMEOUT);
}

/*
 * Closing a channel ends its scope; what remains of the scope must still be ended, and returns that
 * error.
 */
TEST_WITH(fixture, closed_inside, ())
{
    struct sluice_completion completion;
    struct sluice_handle handle;
    SLUICE_SCOPE(scope, begin(fixture), &fixture->report) {
        write_slots(fixture, scope, 2);
        require_ok(sluice_scope_post_receive(scope, 0, NULL, 0, &handle));
        sluice_channel_close(fixture->pair.channels[0]);
        fixture->pair.channels[0] = NULL;
        require_error(sluice_scope_post_receive(scope, 0, NULL, 0, NULL), -EINVAL, "closed");
        require_error(sluice_scope_wait(scope, &handle, 0, &completion), -EINVAL, "closed");
        require_error(sluice_scope_poll(scope, &completion, 1), -EINVAL, "closed");
    }
    require(fixture->report.error == -ECANCELED && fixture->report.posted == 3 &&
                fixture->report.unseen == 3 && fixture->report.failed >= 1 &&
                fixture->report.count == 0,
            "error %d, posted %u, unseen %u, failed %u", fixture->report.error,
            fixture->report.posted, fixture->report.unseen, fixture->report.failed);
    require(strstr(sluice_last_error(), "closed or reset before the end of its scope"), "%s",
            sluice_last_error());
}

/* Hidden from the compiler, as a block must not be written like this. */
static int end_early(struct sluice_scope *scope)
{
    struct sluice_scope *volatile early = scope;
    return sluice_scope_end(early, NULL);
}

/* A scope that was begun after it does not belong to the block, which does not end it. */
TEST_WITH(fixture, ended_inside_and_another_begun, ())
{
    struct sluice_scope *second = NULL;
    struct sluice_scope_report own = {.size = sizeof(own)};
    SLUICE_SCOPE(scope, begin(fixture), &fixture->report) {
        write_slots(fixture, scope, 2);
        require_ok(end_early(scope));
        require(fixture->report.posted == 2, "%u", fixture->report.posted);
        second = made(begin(fixture));
        write_slots(fixture, second, 1);
    }
    require(strstr(sluice_last_error(), "scope has ended"), "%s", sluice_last_error());
    require_error(sluice_channel_send(fixture->pair.channels[0], NULL, 0, 0), -EBUSY, "scope");
    write_slots(fixture, second, 3);
    require_ok(sluice_scope_end(second, &own));
    require(own.posted == 4, "%u", own.posted);
    check_drained(fixture, 2);
}

/* Returns 1 if its block ran. */
static int end_and_close(struct fixture *fixture)
{
    SLUICE_SCOPE(scope, begin(fixture), &fixture->report) {
        write_slots(fixture, scope, 3);
        require_ok(end_early(scope));
        sluice_channel_close(fixture->pair.channels[0]);
        fixture->pair.channels[0] = NULL;
        return 1;
    }
    return 0;
}

/* The channel is not used any more when the block is left. */
TEST_WITH(fixture, ended_and_closed_inside, ())
{
    require_result(end_and_close(fixture), 1);
    require(strstr(sluice_last_error(), "scope has ended"), "%s", sluice_last_error());
    require_equal(fixture->report.posted, 3, fixture->report.error, 0);
    pattern_check(fixture->far.bytes, (size_t)3 * SLOT, 1);
}

/* The other way round, after which only the scope knows that the channel was closed. */
TEST_WITH(fixture, closed_and_ended_inside, ())
{
    SLUICE_SCOPE(scope, begin(fixture), &fixture->report) {
        require_ok(sluice_scope_post_receive(scope, 0, NULL, 0, NULL));
        sluice_channel_close(fixture->pair.channels[0]);
        sluice_channel_close(fixture->pair.channels[1]);
        require_error(end_early(scope), -ECANCELED, "closed");
        pair_connect(&fixture->pair, NULL);
    }
    require_equal(fixture->report.error, -ECANCELED, fixture->report.failed, 1);
    require(strstr(sluice_last_error(), "scope has ended"), "%s", sluice_last_error());
    pair_works(&fixture->pair);
}

/* All requests were complete when it was closed, so there is no failure. */
TEST_WITH(fixture, closed_when_all_was_done, ())
{
    struct sluice_completion completion;
    struct sluice_handle handle;
    struct sluice_scope *scope = begin(fixture);
    require_ok(
        sluice_scope_post_write(scope, 0, &fixture->sges[0], 1, &fixture->remotes[0], &handle));
    require_ok(sluice_scope_wait(scope, &handle, DEADLINE, &completion));
    sluice_channel_close(fixture->pair.channels[0]);
    fixture->pair.channels[0] = NULL;
    require_ok(sluice_scope_end(scope, &fixture->report));
    require_equal(fixture->report.posted, 1, fixture->report.unseen, 0);
}

/* A multichannel refuses the reset of a peer; the reset of a channel always consumes it. */
TEST_WITH(fixture, reset_inside, ())
{
    struct star star;
    struct sluice_endpoint endpoint;
    star_open(&star, 2, NULL);
    SLUICE_SCOPE(scope, sluice_multichannel_scope_begin(star.hub, DEADLINE), &fixture->report) {
        require_ok(sluice_scope_post_receive(scope, 1, NULL, 0, NULL));
        require_error(sluice_multichannel_peer_reset(star.hub, 0, &endpoint), -EBUSY, "scope");
        sluice_multichannel_close(star.hub);
        star.hub = NULL;
    }
    require_equal(fixture->report.error, -ECANCELED, fixture->report.failed, 1);
    star_close(&star);

    SLUICE_SCOPE(scope, begin(fixture), &fixture->report) {
        require_ok(sluice_scope_post_receive(scope, 0, NULL, 0, NULL));
        struct sluice_channel *channel = fixture->pair.channels[0];
        fixture->pair.channels[0] = NULL;
        require_null(sluice_channel_reset(channel), EBUSY, "scope");
    }
    require_equal(fixture->report.error, -ECANCELED, fixture->report.failed, 1);
}

int main(void)
{
    return run_tests("scope_block", 30);
}
