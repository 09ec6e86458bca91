/* SPDX-License-Identifier: MIT */
/*
 * Each status that a device can report for each operation, with its vendor code, and what the
 * program gets; posts that are refused; and completions that come late, out of order among peers,
 * or not at all.
 */
#include "../support/process.h"
#include "check.h"

#define VENDOR 0x51ce00

enum { SEND, RECEIVE, WRITE, READ, OPERATIONS };

static const uint32_t opcodes[OPERATIONS] = {SLUICE_OP_SEND, SLUICE_OP_RECEIVE, SLUICE_OP_WRITE,
                                             SLUICE_OP_READ};

#define ALL_OF(class)              \
    {                              \
        class, class, class, class \
    }

/* Classes of sluice_errors(7); a status that is not named there is an error of the device. */
static enum sluice_error_class expected_class(enum ibv_wc_status status, int operation)
{
    static const struct {
        enum ibv_wc_status status;
        enum sluice_error_class classes[OPERATIONS];
    } table[] = {
        {IBV_WC_LOC_LEN_ERR,
         {SLUICE_CLASS_LOCAL, SLUICE_CLASS_TRUNCATED, SLUICE_CLASS_LOCAL, SLUICE_CLASS_LOCAL}},
        {IBV_WC_LOC_QP_OP_ERR,
         {SLUICE_CLASS_LOCAL, SLUICE_CLASS_TRUNCATED, SLUICE_CLASS_LOCAL, SLUICE_CLASS_LOCAL}},
        {IBV_WC_LOC_PROT_ERR, ALL_OF(SLUICE_CLASS_LOCAL)},
        {IBV_WC_WR_FLUSH_ERR, ALL_OF(SLUICE_CLASS_PEER_LOST)}, /* without a reason before it */
        {IBV_WC_BAD_RESP_ERR, ALL_OF(SLUICE_CLASS_PROTOCOL)},
        {IBV_WC_LOC_ACCESS_ERR, ALL_OF(SLUICE_CLASS_LOCAL)},
        {IBV_WC_REM_INV_REQ_ERR,
         {SLUICE_CLASS_TRUNCATED, SLUICE_CLASS_ACCESS, SLUICE_CLASS_ACCESS, SLUICE_CLASS_ACCESS}},
        {IBV_WC_REM_ACCESS_ERR, ALL_OF(SLUICE_CLASS_ACCESS)},
        {IBV_WC_REM_OP_ERR,
         {SLUICE_CLASS_TRUNCATED, SLUICE_CLASS_ACCESS, SLUICE_CLASS_ACCESS, SLUICE_CLASS_ACCESS}},
        {IBV_WC_RETRY_EXC_ERR, ALL_OF(SLUICE_CLASS_PEER_LOST)},
        {IBV_WC_RNR_RETRY_EXC_ERR, ALL_OF(SLUICE_CLASS_TIMEOUT)},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        if (table[i].status == status) {
            return table[i].classes[operation];
        }
    }
    return SLUICE_CLASS_DEVICE;
}

/* Requires one request of the class and one cancelled by it, and nothing else. */
static void check_counted(const struct sluice_channel *channel, enum sluice_error_class wanted)
{
    struct sluice_counters counters = channel_counters(channel);
    counters.failed[wanted]--;
    counters.failed[SLUICE_CLASS_CANCELLED]--;
    for (uint32_t i = 0; i < COUNT(counters.failed); i++) {
        require(counters.failed[i] == 0, "%lld more of class %s", (long long)counters.failed[i],
                sluice_error_class_name(i));
    }
    for (uint32_t i = 0; i < COUNT(counters.requests); i++) {
        require(counters.requests[i] == 0, "%llu of opcode %u",
                (unsigned long long)counters.requests[i], i);
    }
}

/* Fails the request, with one more of the kind behind it. */
static void one_status(enum ibv_wc_status status, int operation)
{
    enum fake_queue queue = operation == RECEIVE ? FAKE_RECEIVE : FAKE_SEND;
    enum sluice_error_class wanted = expected_class(status, operation);
    bool silent = status == IBV_WC_WR_FLUSH_ERR;
    uint32_t vendor = VENDOR + (uint32_t)status;
    struct pair pair;
    struct sluice_handle handles[2];
    pair_open(&pair, NULL);
    struct memory memory = side_memory(&pair.sides, 0, 200);
    struct sluice_sge sge = memory_sge(&memory, 0, 100);
    struct sluice_request requests[2];
    for (int i = 0; i < 2; i++) {
        requests[i] = request_of(opcodes[operation], 0, &sge);
        if (operation == WRITE || operation == READ) {
            requests[i].remote = memory_remote(&memory, 100, 100);
        }
    }
    fake_verbs_end(qpn_of(0), queue, 1, status, vendor);
    require_result(sluice_channel_post(pair.channels[0], requests, 2, DEADLINE, handles), 2);
    if (operation == RECEIVE) {
        require(sluice_channel_send(pair.channels[1], &sge, 1, DEADLINE) < 0, "status %d", status);
    }
    struct sluice_completion completion = await(pair.channels[0], handles[0], wanted);
    require(completion.status == (silent ? SLUICE_STATUS_RETRY_EXC_ERR : (uint32_t)status) &&
                completion.vendor == vendor && completion.cause == completion.status,
            "status %u, vendor code %#x, cause %u; of %d", completion.status, completion.vendor,
            completion.cause, status);
    struct sluice_error error = channel_error(pair.channels[0]);
    require(error.status == completion.status && error.vendor == vendor &&
                error.error_class == wanted && error.opcode == opcodes[operation],
            "status %u, vendor code %#x, class %u, opcode %u; of %d", error.status, error.vendor,
            error.error_class, error.opcode, status);
    completion = await(pair.channels[0], handles[1], SLUICE_CLASS_CANCELLED);
    require(completion.cause == error.status, "cause %u", completion.cause);
    check_counted(pair.channels[0], wanted);
    pair_close(&pair);
}

TEST(each_status_of_each_operation, .times = OPERATIONS)
{
    for (int status = IBV_WC_SUCCESS + 1; status <= IBV_WC_TM_RNDV_INCOMPLETE; status++) {
        one_status((enum ibv_wc_status)status, _i);
    }
    one_status((enum ibv_wc_status)63, _i);
}

/* A list that takes three doorbells. */
#define LIST 40
#define DOORBELL 16

struct list {
    struct sluice_handle handles[LIST];
    uint32_t ended[LIST]; /* how often */
    struct sluice_completion completions[LIST];
};

/* Takes completions until all have ended, and requires that there are no more. */
static void take_all(struct sluice_channel *channel, struct list *list)
{
    struct sluice_completion taken[7];
    int64_t start = fair_now();
    for (uint32_t count = 0; count < LIST;) {
        int got = sluice_channel_poll(channel, taken, COUNT(taken));
        require(got >= 0 && fair_now() - start < DEADLINE, "%d, %u of %d", got, count, LIST);
        for (int i = 0; i < got; i++, count++) {
            uint64_t index = taken[i].user_data;
            require(index < LIST && list->ended[index]++ == 0, "request %llu",
                    (unsigned long long)index);
            list->completions[index] = taken[i];
        }
    }
    let_pass(SLUICE_MS(20));
    require_result(sluice_channel_poll(channel, taken, COUNT(taken)), 0);
}

/*
 * The doorbell-th post is refused at its k-th request. Requests before it are done or flushed, that
 * request is reported as refused, and the rest is cancelled. Some devices still execute the rest,
 * whose requests may then be reported as done. Each request completes once.
 */
static void one_refusal(int operation, uint32_t doorbell, uint32_t k, bool runs)
{
    struct sluice_channel_attr attr = *ATTR(.send_depth = LIST, .receive_depth = LIST);
    enum fake_queue queue = operation == RECEIVE ? FAKE_RECEIVE : FAKE_SEND;
    uint32_t refused = (doorbell - 1) * DOORBELL + (k ? k - 1 : 0);
    struct sluice_request requests[LIST];
    struct list list = {.ended = {0}};
    struct pair pair;
    fake_verbs.refused_runs = runs;
    pair_open(&pair, &attr);
    struct memory memory = side_memory(&pair.sides, 0, 200);
    struct sluice_sge sge = memory_sge(&memory, 0, 100);
    for (uint32_t i = 0; i < LIST; i++) {
        requests[i] = request_of(opcodes[operation], 0, &sge);
        requests[i].user_data = i;
        if (operation == WRITE || operation == READ) {
            requests[i].remote = memory_remote(&memory, 100, 100);
        }
    }
    fake_verbs_refuse(qpn_of(0), queue, doorbell, k, EXDEV);
    require_result(sluice_channel_post(pair.channels[0], requests, LIST, DEADLINE, list.handles),
                   LIST);
    take_all(pair.channels[0], &list);
    for (uint32_t i = 0; i < LIST; i++) {
        const struct sluice_completion *completion = &list.completions[i];
        bool well = completion->error_class == SLUICE_CLASS_NONE;
        bool cancelled = completion->error_class == SLUICE_CLASS_CANCELLED;
        bool device = completion->error_class == SLUICE_CLASS_DEVICE && completion->error == -EIO;
        require(i == refused ? device : cancelled || (well && (i < refused || runs)),
                "doorbell %u, request %u: request %u is of class %s", doorbell, k, i,
                sluice_error_class_name(completion->error_class));
    }
    struct sluice_error error = channel_error(pair.channels[0]);
    require(error.opcode == opcodes[operation] && strstr(error.text, "refused") &&
                strstr(error.text, strerror(EXDEV)),
            "%s", error.text);
    pair_close(&pair);
}

TEST(posts_that_are_refused, .times = OPERATIONS)
{
    static const uint32_t places[] = {0, 1, 2, 7, DOORBELL};
    for (int runs = 0; runs < 2; runs++) {
        for (uint32_t doorbell = 1; doorbell <= 2; doorbell++) {
            for (size_t i = 0; i < COUNT(places); i++) {
                one_refusal(_i, doorbell, places[i], runs);
            }
        }
    }
}

/* A long list rings few doorbells, and no more completions are requested than fit. */
TEST_WITH(pair, one_doorbell_for_many, (ATTR(.send_depth = LIST)))
{
    struct sluice_request requests[LIST];
    struct list list = {.ended = {0}};
    struct fake_qp_info before, after;
    for (uint32_t i = 0; i < LIST; i++) {
        requests[i] = request_of(SLUICE_OP_WRITE, 0, NULL);
        requests[i].user_data = i;
    }
    require(fake_verbs_qp(0, &before), "no queue pair");
    require_result(sluice_channel_post(pair->channels[0], requests, LIST, DEADLINE, list.handles),
                   LIST);
    require(fake_verbs_qp(0, &after), "no queue pair");
    require_equal(after.doorbells - before.doorbells, (LIST + DOORBELL - 1) / DOORBELL);
    take_all(pair->channels[0], &list);
}

/*
 * The device reports nothing: the drain bound ends the request, and a later completion is
 * discarded.
 */
TEST_WITH(star, completions_that_are_held,
          (3, ON_DEVICE(NULL, fake_verbs.orphans = (enum fake_orphans)_i)), .from = FAKE_LEAVE,
          .times = FAKE_LATE + 1 - FAKE_LEAVE)
{
    struct sluice_completion completion;
    uint32_t qpn = qpn_of(1);
    fake_verbs_hold(qpn);
    struct span start = span_begin();
    require_result(sluice_multichannel_write(star->hub, 1, NULL, 0, &(struct sluice_remote_mr){0},
                                             SLUICE_MS(30)),
                   -ETIMEDOUT);
    struct span took = span_since(start);
    require_took(took, SLUICE_MS(1000), SLUICE_MS(1800));
    require_result(fake_verbs_held(qpn, FAKE_SEND), 0); /* the queue pair is gone */
    star_works(star, 0);
    fake_verbs_release(qpn);
    require_result(sluice_multichannel_poll(star->hub, &completion, 1), 0);
    star_works(star, 2);
    star_reset(star, 1);
    star_works(star, 1);
}

/* A queue pair is reset while the queue holds completions of it, and of others. */
TEST_WITH(star, completions_of_a_queue_pair_that_is_gone,
          (3, ON_DEVICE(NULL, fake_verbs.orphans = (enum fake_orphans)_i, fake_verbs.eager = true)),
          .from = FAKE_LEAVE, .times = FAKE_LATE + 1 - FAKE_LEAVE)
{
    struct sluice_handle handles[3];
    struct sluice_completion completion;
    struct sluice_endpoint ours;
    for (uint32_t i = 0; i < 3; i++) {
        struct sluice_request request = request_of(SLUICE_OP_WRITE, i, NULL);
        require_result(sluice_multichannel_post(star->hub, &request, 1, DEADLINE, &handles[i]), 1);
    }
    require_ok(sluice_multichannel_peer_reset(star->hub, 1, &ours));
    /* The request had been done and is reported so. */
    for (uint32_t i = 0; i < 3; i++) {
        require_ok(sluice_multichannel_wait(star->hub, &handles[i], DEADLINE, &completion));
        require(completion.peer == i, "peer %u", completion.peer);
        require_class(&completion, SLUICE_CLASS_NONE);
    }
    require_result(sluice_multichannel_poll(star->hub, &completion, 1), 0);
    star_works(star, 0);
    star_works(star, 2);
}

/* Peers complete in an order of their own; requests of each in the order of posting. */
TEST_WITH(star, order_among_peers, (3, NULL))
{
    static const uint32_t order[] = {2, 0, 1, 1, 2, 0};
    struct sluice_completion completion;
    uint32_t next[3] = {0, 0, 0};
    for (uint32_t i = 0; i < 3; i++) {
        fake_verbs_hold(qpn_of(i));
        for (uint32_t j = 0; j < 2; j++) {
            struct sluice_request request = request_of(SLUICE_OP_WRITE, i, NULL);
            struct sluice_handle handle;
            request.user_data = j;
            require_result(sluice_multichannel_post(star->hub, &request, 1, DEADLINE, &handle), 1);
        }
        await_held(qpn_of(i), FAKE_SEND, 2);
    }
    for (size_t i = 0; i < COUNT(order); i++) {
        require_result(sluice_multichannel_poll(star->hub, &completion, 1), 0);
        fake_verbs_release_some(qpn_of(order[i]), FAKE_SEND, 1);
        require_result(sluice_multichannel_poll(star->hub, &completion, 1), 1);
        require_equal(completion.peer, order[i], completion.user_data, next[order[i]]++);
    }
    fake_verbs_release(0);
}

/* Without an answer the peer is lost after the time that the attributes give, not before. */
TEST(peer_that_is_lost)
{
    struct sluice_channel_attr attr = {
        .size = sizeof(attr), .ack_timeout = 14, .retry_count = 2}; /* 67 ms, three times */
    struct star star;
    star_open(&star, 3, &attr);
    fake_verbs_cut(qpn_of(1), true);
    struct span start = span_begin();
    require_result(sluice_multichannel_send(star.hub, 1, NULL, 0, DEADLINE), -ECONNRESET);
    struct span took = span_since(start);
    require_took(took, SLUICE_MS(200), SLUICE_MS(600));
    struct sluice_error error = peer_error(star.hub, 1);
    require(error.status == SLUICE_STATUS_RETRY_EXC_ERR && error.vendor == 0x81, "%s", error.text);
    star_works(&star, 0);
    star_works(&star, 2);
    star_close(&star);
}

/*
 * Without a timeout for acknowledgements a lost packet ends nothing, however few retries there are:
 * it is retransmitted with the next one.
 */
TEST_WITH(pair, packet_that_is_lost,
          (ATTR(.ack_timeout = _i == 0 ? 1 : SLUICE_ZERO, .retry_count = SLUICE_ZERO)), .times = 2)
{
    struct sluice_request write = request_of(SLUICE_OP_WRITE, 0, NULL);
    struct sluice_completion completion;
    struct memory near = side_memory(&pair->sides, 0, 10);
    struct memory far = side_memory(&pair->sides, 1, 10);
    memset(near.bytes, 7, 10);
    write.sge_count = 1;
    write.sge = memory_sge(&near, 0, 10);
    write.remote = memory_remote(&far, 0, 10);
    fake_verbs_cut(qpn_of(0), true);
    struct sluice_handle handle = post(pair->channels[0], &write);
    int result = sluice_channel_wait(pair->channels[0], &handle,
                                     _i == 0 ? DEADLINE : SLUICE_MS(200), &completion);
    fake_verbs_cut(qpn_of(0), false);
    if (_i == 0) {
        require_result(result, 0);
        require_class(&completion, SLUICE_CLASS_PEER_LOST);
        require_result(sluice_channel_state(pair->channels[0]), SLUICE_STATE_FAILED);
    } else {
        require_result(result, -ETIMEDOUT);
        require_result(sluice_channel_state(pair->channels[0]), SLUICE_STATE_READY);
        require_result(far.bytes[9], 0);
        require_ok(sluice_channel_write(pair->channels[0], &write.sge, 1, &write.remote, DEADLINE));
        await(pair->channels[0], handle, SLUICE_CLASS_NONE);
        require_result(far.bytes[9], 7);
        pair_works(pair);
    }
}

/*
 * Requests that were flushed without a completion are not reported as done; requests that were done
 * are.
 */
TEST_WITH(pair, flush_that_is_reported_in_part, (ON_DEVICE(NULL, fake_verbs.silent_flush = true)))
{
    struct fake_qp_info info;
    struct sluice_request requests[4];
    struct sluice_completion completions[4];
    struct memory near = side_memory(&pair->sides, 0, 40);
    struct memory far = side_memory(&pair->sides, 1, 40);
    memset(near.bytes, 7, 40);
    for (uint32_t done = 0; done <= 2; done += 2) {
        for (uint32_t i = 0; i < 4; i++) {
            requests[i] = request_of(i < 2 ? SLUICE_OP_WRITE : SLUICE_OP_SEND, 0, NULL);
            requests[i].sge_count = 1;
            requests[i].sge = memory_sge(&near, (size_t)i * 10, 10);
            requests[i].remote = memory_remote(&far, (size_t)i * 10, 10);
        }
        fake_verbs_cut(qpn_of(0), done == 0);
        require_result(
            sluice_channel_submit(pair->channels[0], requests, 4, SLUICE_MS(200), completions),
            -ETIMEDOUT);
        for (uint32_t i = 0; i < 4; i++) {
            require_class(&completions[i], i < done ? SLUICE_CLASS_NONE : SLUICE_CLASS_TIMEOUT);
            value_check(far.bytes + (size_t)i * 10, 10, i < done ? 7 : 0);
        }
        /* Where messages wait, the peer may get one request for hints of receives. */
        uint32_t most = done == 0 ? 4 : 5;
        require(fake_verbs_qp(0, &info) && info.signaled == info.posted[FAKE_SEND] &&
                    info.posted[FAKE_SEND] >= 4 && info.posted[FAKE_SEND] <= most,
                "%u of %u are signalled", info.signaled, info.posted[FAKE_SEND]);
        pair_reset(pair);
    }
}

/* A late receive is waited for, as often as the attributes say. */
TEST(receive_that_is_late)
{
    struct sluice_channel_attr patient = {.size = sizeof(patient), .rnr_timer = 1};
    struct sluice_channel_attr impatient = *ATTR(.rnr_timer = 1, .rnr_retry = 3);
    struct pair pair;
    pair_open(&pair, &patient);
    struct sluice_handle handle = post_of(pair.channels[0], SLUICE_OP_SEND, NULL);
    let_pass(SLUICE_MS(30));
    post_of(pair.channels[1], SLUICE_OP_RECEIVE, NULL);
    await(pair.channels[0], handle, SLUICE_CLASS_NONE);
    pair_close(&pair);
    pair_open(&pair, &impatient);
    handle = post_of(pair.channels[0], SLUICE_OP_SEND, NULL);
    struct sluice_completion completion = await(pair.channels[0], handle, SLUICE_CLASS_TIMEOUT);
    require(completion.status == SLUICE_STATUS_RNR_RETRY_EXC_ERR, "%u", completion.status);
    pair_close(&pair);
}

/* Some providers report immediate data only by the opcode. */
TEST_WITH(pair, immediate_without_flag, (ON_DEVICE(NULL, fake_verbs.flags_without_imm = true)))
{
    struct sluice_handle handle = post_of(pair->channels[1], SLUICE_OP_RECEIVE, NULL);
    require_ok(sluice_channel_write_immediate(pair->channels[0], NULL, 0,
                                              &(struct sluice_remote_mr){0}, 0x01020304, DEADLINE));
    struct sluice_completion completion = await(pair->channels[1], handle, SLUICE_CLASS_NONE);
    require_equal(completion.flags, (SLUICE_IMMEDIATE | SLUICE_WRITTEN), completion.immediate,
                  0x01020304);
}

int main(void)
{
    return run_verbs("verbs_status", WIRE_SELF, 60);
}
