/* SPDX-License-Identifier: MIT */
/*
 * Resets of a connection: requests in flight end, none of the old connection reaches the new one,
 * and nothing is left behind. Also its final close.
 */
#include "../support/pair.h"
#include "../support/process.h"

/*
 * A reset leaves no fd, no queue pair and no memory region of the device. Each protection domain
 * has a region of its own, for hints of receives.
 */
TEST_WITH(pair, channel_is_reset_many_times, (NULL))
{
    const int cycles = short_run() ? 100 : 1000;
    struct sluice_error none = {.size = sizeof(none)};
    side_memory(&pair->sides, 0, 64);
    pair_works(pair);
    int fds = count_fds();
    int qps = count_objects("qp");
    int mrs = count_objects("mr");
    for (int cycle = 0; cycle < cycles; cycle++) {
        pair_reset(pair);
        if (cycle % 10 == 0) {
            pair_works(pair);
        }
        require_ok(sluice_channel_error(pair->channels[0], &none));
        require(settle_fds(fds) <= fds, "%d fds, were %d, cycle %d", count_fds(), fds, cycle);
    }
    int domains = pair->sides.pds[0] == pair->sides.pds[1] ? 1 : 2;
    require(device_is_soft() || (qps == 2 && mrs == 1 + domains), "%d queue pairs, %d regions", qps,
            mrs);
    require(count_objects("qp") == qps, "%d queue pairs, were %d", count_objects("qp"), qps);
    require(count_objects("mr") == mrs, "%d regions, were %d", count_objects("mr"), mrs);
}

/* A failed channel that was reset has no error and refuses nothing. */
TEST_WITH(pair, failed_channel_is_reset, (NULL))
{
    struct sluice_error none = {.size = sizeof(none)};
    for (int cycle = 0; cycle < 3; cycle++) {
        require_result(sluice_channel_receive(pair->channels[0], NULL, 0, SLUICE_MS(10), NULL),
                       -ETIMEDOUT);
        require_result(sluice_channel_state(pair->channels[0]), SLUICE_STATE_FAILED);
        pair_reset(pair);
        require_ok(sluice_channel_error(pair->channels[0], &none));
        require_result(sluice_channel_state(pair->channels[0]), SLUICE_STATE_READY);
        pair_works(pair);
    }
}

/* A channel that is reset with requests in flight does not touch their buffers afterwards. */
TEST_WITH(pair, reset_with_work_in_flight, (NULL))
{
    struct memory near, far;
    size_t length = (size_t)4 << 20;
    for (int cycle = 0; cycle < 4; cycle++) {
        memory_open(&near, pair->sides.pds[0], length);
        memory_open(&far, pair->sides.pds[1], length);
        struct sluice_sge near_sge = memory_sge(&near, 0, length);
        struct sluice_sge far_sge = memory_sge(&far, 0, length);
        if (cycle % 2 == 0) {
            post_of(pair->channels[0], SLUICE_OP_RECEIVE, &near_sge);
        }
        post_of(pair->channels[1], SLUICE_OP_SEND, &far_sge);
        int64_t start = fair_now();
        pair_reset(pair);
        require_within(start, SLUICE_S(3));
        memset(near.bytes, 0x33, length);
        pair_works(pair);
        value_check(near.bytes, length, 0x33);
        memory_close(&near);
        memory_close(&far);
    }
}

/* Old handles are not valid on the new connection. */
TEST_WITH(star, handles_of_before_a_reset, (2, NULL))
{
    struct sluice_completion completion;
    struct sluice_endpoint ours;
    struct sluice_handle handles[2];
    for (uint32_t i = 0; i < 2; i++) {
        struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, i, NULL);
        require_result(sluice_multichannel_post(star->hub, &receive, 1, DEADLINE, &handles[i]), 1);
    }
    require_ok(sluice_multichannel_peer_reset(star->hub, 1, &ours));
    /* Requests in flight with that peer have ended; those with the other peer have not. */
    require_ok(sluice_multichannel_wait(star->hub, &handles[1], 0, &completion));
    require_class(&completion, SLUICE_CLASS_CANCELLED);
    require_result(sluice_multichannel_wait(star->hub, &handles[0], 0, &completion), -ETIMEDOUT);
    require_ok(sluice_channel_send(star->spokes[0], NULL, 0, DEADLINE));
    require_ok(sluice_multichannel_wait(star->hub, &handles[0], DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
}

TEST_WITH(star, peer_is_reset_many_times, (3, NULL))
{
    for (uint32_t i = 0; i < 3; i++) {
        star_works(star, i);
    }
    int fds = count_fds();
    for (int cycle = 0; cycle < 20; cycle++) {
        if (cycle % 2 == 0) {
            star_break(star, 1);
        }
        star_reset(star, 1);
        for (uint32_t i = 0; i < 3; i++) {
            star_works(star, i);
        }
        require(settle_fds(fds) <= fds, "%d fds, were %d, cycle %d", count_fds(), fds, cycle);
    }
}

/* The close is immediate, whatever is in flight, and no buffer is touched after it. */
TEST(close_with_work_in_flight)
{
    struct memory memories[2];
    struct pair pair;
    size_t length = (size_t)8 << 20;
    /* A receive at rxe gets no notification: it ends at its deadline. */
    int64_t lasts = device_is_soft() ? DEADLINE : SLUICE_S(2);
    for (int first = 0; first < 2; first++) {
        struct sluice_completion completion;
        struct sluice_handle handles[2];
        pair_open(&pair, NULL);
        for (int i = 0; i < 2; i++) {
            memory_open(&memories[i], pair.sides.pds[i], length);
            struct sluice_sge sge = memory_sge(&memories[i], 0, length);
            struct sluice_request request =
                request_of(i == 0 ? SLUICE_OP_RECEIVE : SLUICE_OP_SEND, 0, &sge);
            require_result(sluice_channel_post(pair.channels[i], &request, 1, lasts, &handles[i]),
                           1);
        }
        int64_t start = fair_now();
        sluice_channel_close(pair.channels[first]);
        require_within(start, SLUICE_MS(1500));
        pair.channels[first] = NULL;
        memset(memories[first].bytes, 0x44, length);
        /* The other end is notified, or its request was done already. */
        require_ok(
            sluice_channel_wait(pair.channels[!first], &handles[!first], DEADLINE, &completion));
        require(completion.error_class == SLUICE_CLASS_NONE ||
                    completion.error_class == SLUICE_CLASS_PEER_LOST ||
                    (completion.error_class == SLUICE_CLASS_TIMEOUT && !device_is_soft()),
                "%s", sluice_error_class_name(completion.error_class));
        value_check(memories[first].bytes, length, 0x44);
        memory_close(&memories[0]);
        memory_close(&memories[1]);
        pair_close(&pair);
    }
}

/* After a shutdown new requests are refused, and the peer is notified that it is gone. */
TEST_WITH(pair, shutdown_ends_the_connection, (NULL))
{
    require_ok(sluice_channel_shutdown(pair->channels[0], DEADLINE));
    require_result(sluice_channel_send(pair->channels[0], NULL, 0, DEADLINE), -ENOTCONN);
    if (device_is_soft()) {
        require_result(sluice_channel_receive(pair->channels[1], NULL, 0, DEADLINE, NULL),
                       -ECONNRESET);
    }
    require_ok(sluice_channel_shutdown(pair->channels[0], 0));
}

int main(void)
{
    return run_tests("reset", device_is_soft() ? 60 : 600);
}
