/* SPDX-License-Identifier: MIT */
/*
 * Completions that are never polled: very many unpolled operations whose results are never asked
 * for. All are done, each counts once, successes are dropped when their places are needed, and
 * memory does not grow.
 */
#include "../support/fault.h"

#define DEPTH 64
#define BYTES 24

static const struct sluice_channel_attr shallow = {
    .size = sizeof(shallow), .send_depth = DEPTH, .receive_depth = DEPTH};

static uint32_t operations(void)
{
    /* A device that is emulated is slow. */
    return device_is_soft() && !SANITIZED && !short_run() ? 100000 : 10000;
}

/* Both ends of peer 0 work and never poll. The near one writes and sends, the far one receives. */
struct work {
    struct star star;
    struct memory near, far;
    uint64_t posted[2]; /* requests by the hub, by the spoke */
};

static void work_open(struct work *work)
{
    memset(work, 0, sizeof(*work));
    star_open(&work->star, 2, &shallow);
    memory_open(&work->near, work->star.sides.pds[0], (size_t)2 * DEPTH * BYTES);
    memory_open(&work->far, work->star.sides.pds[1], (size_t)2 * DEPTH * BYTES);
}

static void work_close(struct work *work)
{
    memory_close(&work->near);
    memory_close(&work->far);
    star_close(&work->star);
}

/* Posts until the request is accepted, as such a program would. */
static void post_near(struct work *work, struct sluice_request *request)
{
    int64_t end = clock_now() + DEADLINE;
    int result;
    request->user_data = ++work->posted[0];
    do {
        result = sluice_multichannel_post(work->star.hub, request, 1, DEADLINE, NULL);
        require(result == 1 || result == -EAGAIN, "%d: %s", result, sluice_last_error());
        require(clock_now() < end, "no room for request %llu",
                (unsigned long long)request->user_data);
    } while (result != 1);
}

static void post_far(struct work *work, struct sluice_request *request)
{
    int64_t end = clock_now() + DEADLINE;
    int result;
    request->user_data = ++work->posted[1];
    do {
        result = sluice_channel_post(work->star.spokes[0], request, 1, DEADLINE, NULL);
        require(result == 1 || result == -EAGAIN, "%d: %s", result, sluice_last_error());
        require(clock_now() < end, "no room for request %llu",
                (unsigned long long)request->user_data);
    } while (result != 1);
}

/* Does one write and one message, each with the next place in turn. */
static void do_round(struct work *work, uint64_t round)
{
    size_t at = (size_t)(round % DEPTH) * BYTES;
    struct sluice_sge sges[2] = {memory_sge(&work->near, at, BYTES),
                                 memory_sge(&work->far, at, BYTES)};
    struct sluice_request write = request_of(SLUICE_OP_WRITE, 0, &sges[0]);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &sges[1]);
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, &sges[0]);
    write.remote = memory_remote(&work->far, DEPTH * BYTES + at, BYTES);
    /* The place may still be in flight from the last time: it has the same bytes. */
    post_near(work, &write);
    post_far(work, &receive);
    post_near(work, &send);
}

/* Remaining results come in order, each once, and end with the newest. */
static void take_rest(struct work *work, int side, uint64_t *taken)
{
    struct sluice_completion completions[16];
    uint64_t last[2] = {0, 0}; /* of sends and writes, which share a queue, and of receives */
    int64_t end = clock_now() + DEADLINE;
    uint64_t newest = 0;
    *taken = 0;
    while (newest != work->posted[side]) {
        int got = side == 0 ? sluice_multichannel_poll(work->star.hub, completions, 16)
                            : sluice_channel_poll(work->star.spokes[0], completions, 16);
        require(got >= 0 && clock_now() < end, "%d, after %llu of %llu", got,
                (unsigned long long)newest, (unsigned long long)work->posted[side]);
        for (int i = 0; i < got; i++) {
            uint64_t *of_queue = &last[completions[i].opcode == SLUICE_OP_RECEIVE];
            require_class(&completions[i], SLUICE_CLASS_NONE);
            require(completions[i].user_data > *of_queue, "%llu after %llu",
                    (unsigned long long)completions[i].user_data, (unsigned long long)*of_queue);
            newest = *of_queue = completions[i].user_data;
        }
        *taken += (uint64_t)got;
    }
}

/* Each request was done once, and its result was either taken or dropped. */
static void check_counts(const struct work *work, int side, uint64_t taken)
{
    struct sluice_counters counters = {.size = sizeof(counters)};
    uint64_t done = 0;
    require_ok(side == 0 ? sluice_multichannel_peer_counters(work->star.hub, 0, &counters)
                         : sluice_channel_counters(work->star.spokes[0], &counters));
    for (size_t i = 0; i < COUNT(counters.requests); i++) {
        done += counters.requests[i];
    }
    for (size_t i = 0; i < COUNT(counters.failed); i++) {
        require(counters.failed[i] == 0, "%llu of class %zu",
                (unsigned long long)counters.failed[i], i);
    }
    require(done == work->posted[side] && counters.forgotten + taken == done,
            "side %d: %llu posted, %llu done, %llu forgotten, %llu taken", side,
            (unsigned long long)work->posted[side], (unsigned long long)done,
            (unsigned long long)counters.forgotten, (unsigned long long)taken);
}

TEST(completions_that_are_never_polled)
{
    struct work work;
    struct census census = {0};
    uint64_t taken[2];
    uint32_t rounds = operations() / 3;
    work_open(&work);
    pattern_fill(work.near.bytes, work.near.length, 31);
    for (uint32_t round = 0; round < rounds; round++) {
        do_round(&work, round);
        if (round == rounds / 10) {
            star_works(&work.star, 1);
            census = census_take();
        }
    }
    census_check(&census);
    star_pass(&work.star, 1);
    for (int side = 0; side < 2; side++) {
        take_rest(&work, side, &taken[side]);
        require(taken[side] > 0 && taken[side] <= 4 * DEPTH, "%llu taken",
                (unsigned long long)taken[side]);
        check_counts(&work, side, taken[side]);
    }
    /* All of it arrived. */
    require(memcmp(work.far.bytes, work.near.bytes, DEPTH * BYTES) == 0, "messages%s", "");
    require(memcmp(work.far.bytes + DEPTH * BYTES, work.near.bytes, DEPTH * BYTES) == 0, "writes%s",
            "");
    star_pass(&work.star, 0);
    work_close(&work);
}

/* Failures are kept for longer than successes, but not all and not for ever. */
TEST(failures_that_are_never_polled)
{
    struct sluice_completion completions[4 * DEPTH];
    struct sluice_request receives[DEPTH];
    struct census census = {0};
    struct star star;
    uint64_t newest = 0;
    star_open(&star, 2, &shallow);
    for (uint64_t round = 0; round < 12; round++) {
        for (uint32_t i = 0; i < DEPTH; i++) {
            receives[i] = request_of(SLUICE_OP_RECEIVE, 0, NULL);
            receives[i].user_data = round * DEPTH + i + 1;
        }
        require_result(sluice_multichannel_post(star.hub, receives, DEPTH, DEADLINE, NULL), DEPTH);
        star_works(&star, 1);
        star_reset(&star, 0);
        if (round == 3) {
            let_pass(SLUICE_MS(50));
            census = census_take();
        }
    }
    census_check(&census);
    star_pass(&star, 1);
    int got = sluice_multichannel_poll(star.hub, completions, COUNT(completions));
    require(got >= 64 && got < 4 * DEPTH, "%d", got);
    for (int i = 0; i < got; i++) {
        require_class(&completions[i], SLUICE_CLASS_CANCELLED);
        require(completions[i].user_data > newest, "%llu after %llu",
                (unsigned long long)completions[i].user_data, (unsigned long long)newest);
        newest = completions[i].user_data;
    }
    require(newest == 12 * DEPTH, "%llu", (unsigned long long)newest);
    require_result(sluice_multichannel_poll(star.hub, completions, 1), 0);
    star_pass(&star, 0);
    star_close(&star);
}

int main(void)
{
    return run_tests("fault_unpolled", 100);
}
