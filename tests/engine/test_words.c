/* SPDX-License-Identifier: MIT */
/*
 * Texts of failures: what failed, with which peer, within which time and why; each part once, and
 * complete.
 */
#include <stdio.h>

#include "../support/group.h"
#include "../support/pair.h"

#define SHORT SLUICE_MS(50)

/* Counts occurrences of a word in a text. */
static int count_word(const char *text, const char *word)
{
    int count = 0;
    for (; (text = strstr(text, word)) != NULL; text += strlen(word)) {
        count++;
    }
    return count;
}

static void require_once(const char *word)
{
    require(count_word(sluice_last_error(), word) == 1, "'%s' in '%s'", word, sluice_last_error());
}

/* Requires that the channel's own text is the same as that of the call. */
static void require_same(const struct sluice_channel *channel)
{
    char text[400];
    snprintf(text, sizeof(text), "%s", sluice_last_error());
    struct sluice_error error = channel_error(channel);
    require(strcmp(error.text, text) == 0, "'%s', not '%s'", error.text, text);
}

/* On soft a side knows what the other one waits for; with a device it does not. */
static const char *by_device(const char *soft_self, const char *soft_tcp, const char *verbs)
{
    if (!device_is_soft()) {
        return verbs;
    }
    return current_wire() == WIRE_SELF ? soft_self : soft_tcp;
}

TEST_WITH(pair, send_without_a_receive, (NULL))
{
    pair_works(pair);
    require_error(sluice_channel_send(pair->channels[0], NULL, 0, SHORT), -ETIMEDOUT,
                  "send to peer 0: deadline of 50 ms passed (timeout): the peer");
    check_text(
        __FILE__, __LINE__, "send",
        by_device("posted no receive for it, nor had this side posted one; if both receives before",
                  "heard last ago, posted no receive for it, nor had this side posted one; if both",
                  "was heard before: it posted no receive if both sides were sending"));
    require_once("passed");
    require_once("timeout");
    require_once("posted no receive");
    require_same(pair->channels[0]);
}

/* The sender had posted a receive itself, so nothing is reported as missing there. */
TEST_WITH(pair, send_without_a_receive_of_the_peer, (NULL))
{
    pair_works(pair);
    require_ok(sluice_channel_post_receive(pair->channels[0], NULL, 0, DEADLINE, NULL));
    require_error(sluice_channel_send(pair->channels[0], NULL, 0, SLUICE_US(20500)), -ETIMEDOUT,
                  "send to peer 0: deadline of 20.5 ms passed posted no receive");
    require(!strstr(sluice_last_error(), "both"), "%s", sluice_last_error());
}

/* Several times, as it is random which side of a TCP connection dials. */
static void wait_for_nobody(int turn)
{
    struct sluice_endpoint ours, theirs;
    struct sides sides;
    sides_open(&sides);
    struct sluice_prepared_channel *prepared = prepare_channel(sides.pds[0], NULL, &ours);
    struct sluice_prepared_channel *absent = prepare_channel(sides.pds[1], NULL, &theirs);
    struct sluice_channel *channel = made(sluice_prepared_channel_handshake(prepared, &theirs));
    if (turn % 2 == 0) {
        require_error(sluice_channel_receive(channel, NULL, 0, SHORT, NULL), -ETIMEDOUT,
                      "receive from peer 0: deadline of 50 ms passed (timeout): never heard");
    } else {
        require_error(sluice_channel_send(channel, NULL, 0, SHORT), -ETIMEDOUT,
                      "send to peer 0: deadline of 50 ms passed (timeout): never heard");
    }
    require_same(channel);
    sluice_channel_close(channel);
    sluice_prepared_channel_free(absent);
    sides_close(&sides);
}

TEST(peer_that_was_never_heard)
{
    for (int turn = 0; turn < 8; turn++) {
        wait_for_nobody(turn);
    }
}

TEST_WITH(pair, both_sides_were_sending, (NULL))
{
    pair_works(pair);
    require_ok(sluice_channel_post_send(pair->channels[1], NULL, 0, DEADLINE, NULL));
    require_error(sluice_channel_send(pair->channels[0], NULL, 0, SHORT), -ETIMEDOUT,
                  "send to peer 0: deadline of 50 ms");
    check_text(__FILE__, __LINE__, "send",
               by_device("both sides were sending, and neither scatter_gather",
                         "both sides were sending, and neither scatter_gather",
                         "if both sides were sending, scatter_gather"));
}

TEST_WITH(pair, receive_of_what_is_not_sent, (NULL))
{
    pair_works(pair);
    require_error(sluice_channel_receive(pair->channels[0], NULL, 0, SHORT, NULL), -ETIMEDOUT,
                  "receive from peer 0: deadline of 50 ms passed (timeout): the peer");
    check_text(__FILE__, __LINE__, "receive",
               by_device("peer sent nothing for it", "heard last ago, sent nothing for it",
                         "heard before, but sent nothing for it"));
    require_same(pair->channels[0]);
}

/* A request behind a send that waits is late because of that send. */
TEST_WITH(pair, write_behind_a_send, (NULL))
{
    pair_works(pair);
    struct memory near = side_memory(&pair->sides, 0, 8);
    struct memory far = side_memory(&pair->sides, 1, 8);
    struct sluice_sge sge = memory_sge(&near, 0, 8);
    struct sluice_remote_mr remote = memory_remote(&far, 0, 8);
    require_ok(sluice_channel_post_send(pair->channels[0], NULL, 0, DEADLINE, NULL));
    int result = sluice_channel_write(pair->channels[0], &sge, 1, &remote, SHORT);
    if (device_is_soft()) {
        require_error(result, -ETIMEDOUT,
                      "write to peer 0: deadline of 50 ms no receive for what was sent before it");
    } else {
        require_error(result, -ETIMEDOUT, "write to peer 0: deadline of 50 ms was heard before");
    }
}

TEST_WITH(pair, no_room_until_the_deadline, (ATTR(.send_depth = 1)))
{
    pair_works(pair);
    require_ok(sluice_channel_post_send(pair->channels[0], NULL, 0, DEADLINE, NULL));
    require_error(sluice_channel_send(pair->channels[0], NULL, 0, SHORT), -ETIMEDOUT,
                  "send to peer 0: the queues had no room for it within 50 ms not posted");
    require_once("within");
    require_result(sluice_channel_state(pair->channels[0]), SLUICE_STATE_READY);
}

/* A request that ended because another one was late gives both reasons, in one complete text. */
TEST_WITH(pair, cancelled_by_a_late_one, (NULL))
{
    struct sluice_completion completions[2];
    pair_works(pair);
    require_ok(sluice_channel_post_receive(pair->channels[0], NULL, 0, SHORT, NULL));
    require_error(sluice_channel_send(pair->channels[0], NULL, 0, DEADLINE), -ECANCELED,
                  "send to peer 0: first error of the peer: receive from peer 0: deadline of 50 ms "
                  "passed sent nothing for it: more time");
    require_result(sluice_channel_poll(pair->channels[0], completions, 2), 1);
    require_error(
        sluice_channel_send(pair->channels[0], NULL, 0, DEADLINE), -ENOTCONN,
        "send to peer 0: refused first error of the peer: receive from peer 0: more time");
}

TEST_WITH(star, prepositions, (4, NULL))
{
    struct memory near = side_memory(&star->sides, 0, 8);
    struct memory far = side_memory(&star->sides, 1, 8);
    struct sluice_sge sge = memory_sge(&near, 0, 8);
    struct sluice_remote_mr remote = memory_remote(&far, 0, 8);
    remote.rkey ^= 0x5a5a5a5a;
    require_error(sluice_multichannel_read(star->hub, 0, &sge, 1, &remote, DEADLINE), -EACCES,
                  "read from peer 0: remote access error (access");
    require_error(sluice_multichannel_write(star->hub, 1, &sge, 1, &remote, DEADLINE), -EACCES,
                  "write to peer 1: remote access error (access");
    if (context_info(star->sides.contexts[0]).atomics != SLUICE_ATOMICS_NONE) {
        require_error(sluice_multichannel_fetch_add(star->hub, 2, &sge, &remote, 1, DEADLINE),
                      -EACCES, "fetch-add at peer 2: remote access error (access");
        require_error(sluice_multichannel_compare_swap(star->hub, 3, &sge, &remote, 1, 2, DEADLINE),
                      -EACCES, "compare-swap at peer 3: remote access error (access");
    }
    struct sluice_error error = peer_error(star->hub, 0);
    require(strncmp(error.text, "read from peer 0: remote access error", 37) == 0, "%s",
            error.text);
}

/* On soft, counters of a transport do not appear in the text. */
TEST_WITH(pair, peer_that_closed, (NULL))
{
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    pair_works(pair);
    struct sluice_handle handle = post(pair->channels[0], &receive);
    sluice_channel_close(pair->channels[1]);
    pair->channels[1] = NULL;
    /* A device does not notify a side that only waits. */
    if (device_is_soft()) {
        await(pair->channels[0], handle, SLUICE_CLASS_PEER_LOST);
        struct sluice_error error = channel_error(pair->channels[0]);
        require(strstr(error.text, "retry") == NULL && strstr(error.text, "closed") != NULL &&
                    strstr(error.text, "receive from peer 0: the peer") == error.text &&
                    error.error_class == SLUICE_CLASS_PEER_LOST &&
                    error.status == SLUICE_STATUS_PEER_CLOSED,
                "status %u: %s", error.status, error.text);
    }
}

static void die_or_mourn(struct rank *rank)
{
    struct mesh mesh;
    mesh_open(&mesh, rank, NULL);
    if (rank->index == 1) {
        rank_barrier(rank);
        rank_await_death(rank);
    }
    require_ok(sluice_multichannel_peer_wait_connected(mesh.all, 1, DEADLINE));
    rank_barrier(rank);
    rank_kill(rank, 1);
    require_result(sluice_multichannel_receive(mesh.all, 1, NULL, 0, DEADLINE, NULL), -ECONNRESET);
    check_text(__FILE__, __LINE__, "receive",
               "receive from peer 1: the peer's process ended (peer lost)");
    require_once("peer lost");
    require(!strstr(sluice_last_error(), "retry"), "%s", sluice_last_error());
    mesh_close(&mesh);
}

/* A peer in another process. On a device, a process that ended looks like a silent one. */
TEST(peer_that_was_killed)
{
    if (device_is_soft()) {
        group_run(2, die_or_mourn, NULL, 60);
    }
}

static char logged[400];
static int log_lines;

static void keep_line(uint32_t level, const char *text, void *user)
{
    (void)user;
    /* A device may log lines as well. */
    if (level == SLUICE_LOG_WARN && strstr(text, "a scope without")) {
        snprintf(logged, sizeof(logged), "%s", text);
        log_lines++;
    }
}

static void leave_scope(struct star *star, const struct sluice_request *writes,
                        struct sluice_scope_report *report)
{
    log_lines = 0;
    SLUICE_SCOPE(scope, sluice_multichannel_scope_begin(star->hub, DEADLINE), report) {
        require_result(sluice_scope_post(scope, writes, 3, NULL), 3);
    }
}

TEST_WITH(star, scope_that_drops_failures, (3, NULL))
{
    struct sluice_scope_report report = {.size = sizeof(report)};
    struct sluice_request writes[3];
    struct memory near = side_memory(&star->sides, 0, 8);
    struct memory far = side_memory(&star->sides, 1, 8);
    struct sluice_sge sge = memory_sge(&near, 0, 8);
    for (uint32_t i = 0; i < 3; i++) {
        writes[i] = request_of(SLUICE_OP_WRITE, i, &sge);
        writes[i].remote = memory_remote(&far, 0, 8);
    }
    require_ok(sluice_log_set(SLUICE_LOG_WARN, keep_line, NULL));
    leave_scope(star, writes, NULL);
    require(log_lines == 0, "%s", logged);
    writes[1].remote.rkey ^= 0x5a5a5a5a;
    leave_scope(star, writes, NULL);
    require(log_lines == 1, "%d lines", log_lines);
    require(strstr(logged, "1 of its 3 requests") && strstr(logged, "write to peer 1: remote acc"),
            "%s", logged);
    /* With a report, the failures are in the report and not in the log. */
    leave_scope(star, writes, &report);
    require(log_lines == 0 && report.error == -ENOTCONN && report.failed == 1, "%d, %s",
            report.error, logged);
    /* A line is logged as well if the block does not run. */
    log_lines = 0;
    SLUICE_SCOPE(scope, sluice_multichannel_scope_begin(star->hub, -1), NULL) {
        fail_at(__FILE__, __LINE__, "the block ran");
    }
    require(log_lines == 1 && strstr(logged, "did not begin: deadline -1"), "%s", logged);
    require_ok(sluice_log_set(SLUICE_LOG_WARN, NULL, NULL));
}

/* Soft has no vendor codes, and not every failure of a device has one: 0 means none. */
TEST_WITH(pair, codes_of_vendors, (NULL))
{
    struct memory memory = side_memory(&pair->sides, 0, 8);
    struct sluice_sge sge = memory_sge(&memory, 0, 8);
    struct sluice_remote_mr remote = {.addr = sge.addr, .length = 8, .rkey = UINT32_C(0x123456)};
    require_error(sluice_channel_write(pair->channels[0], &sge, 1, &remote, DEADLINE), -EACCES,
                  "write to peer 0: remote access error (access");
    struct sluice_error error = channel_error(pair->channels[0]);
    require(error.vendor == 0 || !device_is_soft(), "soft has code %#x", error.vendor);
    require((strstr(error.text, "vendor code") != NULL) == (error.vendor != 0), "%s", error.text);
    require_same(pair->channels[0]);
}

static void require_pending(struct sluice_channel *channel, const char *text)
{
    require_result(sluice_channel_flush(channel, 0), -ETIMEDOUT);
    require(strcmp(sluice_last_error(), text) == 0, "%s", sluice_last_error());
}

/* The text counts one request of a kind, and several. */
TEST_WITH(pair, pending_requests_are_counted, (NULL))
{
    struct sluice_completion completion;
    pair_works(pair);
    struct sluice_channel *channel = pair->channels[0];
    require_ok(sluice_channel_post_receive(channel, NULL, 0, DEADLINE, NULL));
    require_pending(channel, "still pending: 1 receive");
    require_ok(sluice_channel_post_send(channel, NULL, 0, DEADLINE, NULL));
    require_pending(channel, "still pending: 1 send, write or read, and 1 receive");
    require_ok(sluice_channel_post_receive(channel, NULL, 0, DEADLINE, NULL));
    require_ok(sluice_channel_post_send(channel, NULL, 0, DEADLINE, NULL));
    require_pending(channel, "still pending: 2 sends, writes and reads, and 2 receives");
    for (int i = 0; i < 2; i++) {
        require_ok(sluice_channel_send(pair->channels[1], NULL, 0, DEADLINE));
        require_ok(sluice_channel_next(channel, DEADLINE, &completion));
    }
    require_pending(channel, "still pending: 2 sends, writes and reads");
}

int main(void)
{
    return run_tests("words", 60);
}
