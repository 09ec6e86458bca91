/* SPDX-License-Identifier: MIT */
/* The limits that a device reports, and the defaults where it reports none. */
#include <stdio.h>

#include "check.h"

static uint32_t lines; /* log lines about unreported limits */

static void count_line(uint32_t level, const char *message, void *user)
{
    (void)user;
    if (strstr(message, "does not say")) {
        require(level == SLUICE_LOG_INFO && strstr(message, "fake0"), "level %u: %s", level,
                message);
        lines++;
    }
}

/* Memory for operations on lists of elements. */
struct lists {
    struct memory ours, theirs;
    struct sluice_sge sges[32];
    struct sluice_remote_mr remote;
};

static void lists_open(struct lists *lists, const struct pair *pair)
{
    memory_open(&lists->ours, pair->sides.pds[0], 4096);
    memory_open(&lists->theirs, pair->sides.pds[1], 4096);
    for (uint32_t i = 0; i < 32; i++) {
        lists->sges[i] = memory_sge(&lists->ours, (size_t)i * 8, 8);
    }
    lists->remote = memory_remote(&lists->theirs, 0, 4096);
}

static void lists_close(struct lists *lists)
{
    memory_close(&lists->ours);
    memory_close(&lists->theirs);
}

static struct sluice_request read_of(const struct lists *lists, uint32_t sges)
{
    return (struct sluice_request){
        .opcode = SLUICE_OP_READ, .sges = lists->sges, .sge_count = sges, .remote = lists->remote};
}

/* Moves bytes by each operation, with this many elements. */
static void all_operations(struct pair *pair, uint32_t sges)
{
    struct lists lists;
    lists_open(&lists, pair);
    require_ok(sluice_channel_write(pair->channels[0], lists.sges, sges, &lists.remote, DEADLINE));
    require_ok(sluice_channel_read(pair->channels[0], lists.sges, sges, &lists.remote, DEADLINE));
    pair_works(pair);
    lists_close(&lists);
}

static struct sluice_context_info info_of(const struct pair *pair)
{
    return context_info(pair->sides.contexts[0]);
}

/* A device that does not report one of its limits, or any: all works, and it is logged once. */
TEST(limit_that_is_not_said, .times = FAKE_LIMITS + 1)
{
    bool all = _i == FAKE_LIMITS;
    struct pair pair;
    lines = 0;
    require_ok(sluice_log_set(SLUICE_LOG_INFO, count_line, NULL));
    fake_verbs.silent = all ? FAKE_ALL_LIMITS : FAKE_SILENT(_i);
    pair_open(&pair, NULL);
    all_operations(&pair, info_of(&pair).max_sge < 4 ? info_of(&pair).max_sge : 4);
    /* No line is logged for these two: shorter lists of reads and fewer queues change little. */
    uint32_t wanted = all ? FAKE_LIMITS - 2 : _i != FAKE_MAX_SGE_RD && _i != FAKE_MAX_CQ;
    require(lines == wanted, "%u lines", lines);
    pair_reset(&pair);
    all_operations(&pair, 1);
    require(lines == wanted, "%u lines after a reset", lines);
    pair_close(&pair);
}

/* The assumed limits, beside the reported ones. */
TEST_WITH(pair, limits_that_are_taken,
          (ON_DEVICE(NULL,
                     fake_verbs.silent = FAKE_ALL_LIMITS & ~FAKE_SILENT(FAKE_MAX_QP_INIT_RD_ATOM))))
{
    struct sluice_channel_attr attr = {.size = sizeof(attr), .max_message = (1 << 30) + 1};
    struct sluice_context_info info = info_of(pair);
    require_equal(info.max_message, 1 << 30, info.active_mtu, 256, info.max_sge, 1,
                  info.max_read_depth, 1);
    require_equal(info.max_send_depth, 255, info.max_receive_depth, 256);
    require_null(sluice_channel_prepare(pair->sides.pds[0], &attr), EINVAL,
                 "max_message 1073741824");
}

/* Reported limits are used, and nothing is logged. */
TEST(limits_that_are_said)
{
    struct pair pair;
    lines = 0;
    require_ok(sluice_log_set(SLUICE_LOG_INFO, count_line, NULL));
    pair_open(&pair, NULL);
    struct sluice_context_info info = info_of(&pair);
    require(lines == 0, "%u lines", lines);
    require_equal(info.max_message, 8 << 20, info.active_mtu, 1024, info.max_sge, 32,
                  info.max_read_depth, 128, info.max_send_depth, 16383);
    pair_close(&pair);
}

/* Each call that reads refuses one element more than the limit, before anything is posted. */
static void refuse_reads(struct pair *pair, const struct lists *lists, uint32_t sges,
                         const char *words)
{
    struct sluice_channel *channel = pair->channels[0];
    struct sluice_request requests[2] = {read_of(lists, 1), read_of(lists, sges)};
    struct sluice_completion completions[2];
    struct sluice_handle handles[2];
    struct fake_qp_info before, after;
    require(fake_verbs_qp(0, &before), "no queue pair");
    require_error(sluice_channel_read(channel, lists->sges, sges, &lists->remote, DEADLINE),
                  -EINVAL, words);
    require_error(
        sluice_channel_post_read(channel, lists->sges, sges, &lists->remote, DEADLINE, handles),
        -EINVAL, words);
    require_error(sluice_channel_submit(channel, requests, 2, DEADLINE, completions), -EINVAL,
                  words);
    require_error(sluice_channel_post(channel, requests, 2, DEADLINE, handles), -EINVAL, words);
    require_error(sluice_channel_post(channel, &requests[1], 1, DEADLINE, handles), -EINVAL, words);
    require(fake_verbs_qp(0, &after) && after.posted[FAKE_SEND] == before.posted[FAKE_SEND],
            "something was posted");
}

/* Devices that take fewer elements of a read: some, all as with iWARP, and no fewer. */
TEST(reads_of_fewer_elements, .times = 4)
{
    static const int limits[] = {1, 5, 32, 40};
    struct sluice_channel_attr attr = {.size = sizeof(attr), .max_sge = 32};
    uint32_t limit = (uint32_t)(limits[_i] < 32 ? limits[_i] : 32);
    char words[40];
    struct pair pair;
    struct lists lists;
    fake_verbs.device[0].max_sge_rd = limits[_i];
    pair_open(&pair, &attr);
    lists_open(&lists, &pair);
    require(info_of(&pair).max_sge == 32 && info_of(&pair).max_read_sge == limit, "%u and %u",
            info_of(&pair).max_sge, info_of(&pair).max_read_sge);
    struct sluice_request read = read_of(&lists, limit);
    require_ok(sluice_channel_read(pair.channels[0], lists.sges, limit, &lists.remote, DEADLINE));
    require_ok(sluice_channel_submit(pair.channels[0], &read, 1, DEADLINE, NULL));
    require_ok(sluice_channel_write(pair.channels[0], lists.sges, 32, &lists.remote, DEADLINE));
    post(pair.channels[1], &(struct sluice_request){
                               .opcode = SLUICE_OP_RECEIVE, .sges = lists.sges, .sge_count = 32});
    require_ok(sluice_channel_send(pair.channels[0], lists.sges, 32, DEADLINE));
    snprintf(words, sizeof(words), limit < 32 ? "max_read_sge fake0 %u" : "max_sge is 32", limit);
    if (limit < 32) {
        refuse_reads(&pair, &lists, limit + 1, words);
        refuse_reads(&pair, &lists, 32, words);
    }
    refuse_reads(&pair, &lists, 33, "max_sge is 32");
    pair_works(&pair);
    lists_close(&lists);
    pair_close(&pair);
}

/* The attribute may allow less than the device. */
TEST_WITH(pair, reads_of_fewer_elements_by_attribute,
          (ON_DEVICE(ATTR(.max_sge = 2), fake_verbs.device[0].max_sge_rd = 5)))
{
    struct lists lists;
    lists_open(&lists, pair);
    require_ok(sluice_channel_read(pair->channels[0], lists.sges, 2, &lists.remote, DEADLINE));
    refuse_reads(pair, &lists, 3, "max_sge is 2");
    lists_close(&lists);
}

int main(void)
{
    return run_verbs("verbs_limits", WIRE_SELF, 30);
}
