/* SPDX-License-Identifier: MIT */
/* What a device can do, by what it reports; and what holds where it reports nothing. */
#include "verbs/check.h"

static uint32_t lines; /* of the log, of limits that are not said */

static void count_line(uint32_t level, const char *message, void *user)
{
    (void)user;
    if (strstr(message, "does not say")) {
        require(level == SLUICE_LOG_INFO && strstr(message, "fake0"), "level %u: %s", level,
                message);
        lines++;
    }
}

/* Bytes by all operations, with as many elements as the attributes allow. */
static void all_operations(struct pair *pair, uint32_t sges)
{
    struct memory ours, theirs;
    struct sluice_sge list[32];
    struct sluice_remote_mr remote;
    memory_open(&ours, pair->sides.pds[0], 4096);
    memory_open(&theirs, pair->sides.pds[1], 4096);
    for (uint32_t i = 0; i < sges; i++) {
        list[i] = memory_sge(&ours, (size_t)i * 8, 8);
    }
    require_ok(sluice_mr_remote(theirs.mr, &remote));
    require_ok(sluice_channel_write(pair->channels[0], list, sges, &remote, DEADLINE));
    require_ok(sluice_channel_read(pair->channels[0], list, 1, &remote, DEADLINE));
    pair_works(pair);
    memory_close(&ours);
    memory_close(&theirs);
}

static struct sluice_context_info info_of(const struct pair *pair)
{
    return context_info(pair->sides.contexts[0]);
}

/* A device that does not say one of its limits, or any: all works, and the log has it once. */
START_TEST(limit_that_is_not_said)
{
    bool all = _i == FAKE_LIMITS;
    struct pair pair;
    lines = 0;
    require_ok(sluice_log_set(SLUICE_LOG_INFO, count_line, NULL));
    fake_verbs.silent = all ? FAKE_ALL_LIMITS : FAKE_SILENT(_i);
    pair_open(&pair, NULL);
    all_operations(&pair, info_of(&pair).max_sge < 4 ? info_of(&pair).max_sge : 4);
    /* Of the shorter lists of reads, and of many queues, little depends. */
    uint32_t wanted = all ? FAKE_LIMITS - 2 : _i != FAKE_MAX_SGE_RD && _i != FAKE_MAX_CQ;
    require(lines == wanted, "%u lines", lines);
    pair_reset(&pair);
    all_operations(&pair, 1);
    require(lines == wanted, "%u lines after a reset", lines);
    pair_close(&pair);
    check_nothing_left();
}
END_TEST

/* The limits that then hold, beside those that are said. */
START_TEST(limits_that_are_taken)
{
    struct pair pair;
    struct sluice_channel_attr attr = {.size = sizeof(attr), .max_message = (1 << 30) + 1};
    fake_verbs.silent = FAKE_ALL_LIMITS & ~FAKE_SILENT(FAKE_MAX_QP_INIT_RD_ATOM);
    pair_open(&pair, NULL);
    struct sluice_context_info info = info_of(&pair);
    require(info.max_message == 1 << 30, "max_message is %llu",
            (unsigned long long)info.max_message);
    require(info.active_mtu == 256 && info.max_sge == 1 && info.max_read_depth == 1,
            "MTU %u, max_sge %u, max_read_depth %u", info.active_mtu, info.max_sge,
            info.max_read_depth);
    require(info.max_send_depth == 255 && info.max_receive_depth == 256, "depths of %u and %u",
            info.max_send_depth, info.max_receive_depth);
    require_null(sluice_channel_prepare(pair.sides.pds[0], &attr), EINVAL,
                 "max_message 1073741824");
    pair_close(&pair);
    check_nothing_left();
}
END_TEST

/* The limits that a device says are its own, and nothing is logged. */
START_TEST(limits_that_are_said)
{
    struct pair pair;
    lines = 0;
    require_ok(sluice_log_set(SLUICE_LOG_INFO, count_line, NULL));
    pair_open(&pair, NULL);
    struct sluice_context_info info = info_of(&pair);
    require(lines == 0, "%u lines", lines);
    require(info.max_message == 8 << 20 && info.active_mtu == 1024 && info.max_sge == 32 &&
                info.max_read_depth == 128 && info.max_send_depth == 16383,
            "max_message %llu, MTU %u, max_sge %u, max_read_depth %u, max_send_depth %u",
            (unsigned long long)info.max_message, info.active_mtu, info.max_sge,
            info.max_read_depth, info.max_send_depth);
    pair_close(&pair);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, limit_that_is_not_said, 0, FAKE_LIMITS + 1);
    tcase_add_test(tcase, limits_that_are_taken);
    tcase_add_test(tcase, limits_that_are_said);
}

int main(void)
{
    static const struct cases cases[] = {{"limits", WIRE_SELF, 30, add_tests}};
    return run_verbs("verbs_limits", cases, COUNT(cases));
}
