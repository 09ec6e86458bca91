/* SPDX-License-Identifier: MIT */
/*
 * Histograms: a request that succeeds is counted once, with the time from its post to its
 * completion, and nothing else is counted. The tests of the calls prove that all calls are timed:
 * pairs and stars with histograms compare them with the counters.
 */
#include <math.h>
#include <stdlib.h>

#include "../support/pair.h"
#include "../support/process.h"
#include "../support/ranks.h"

#define BYTES 65536
#define MESSAGE 4096
#define PAUSE SLUICE_MS(20)

struct fixture {
    struct pair pair;
    struct memory memories[2];
};

static const struct sluice_channel_attr timed = {
    .size = sizeof(timed), .flags = SLUICE_CHANNEL_HISTOGRAMS, .max_message = MESSAGE};

static void fixture_open(struct fixture *fixture, const struct sluice_channel_attr *attr)
{
    memset(fixture, 0, sizeof(*fixture));
    pair_open(&fixture->pair, attr);
    for (int i = 0; i < 2; i++) {
        memory_open(&fixture->memories[i], fixture->pair.sides.pds[i], BYTES);
    }
}

static void fixture_close(struct fixture *fixture)
{
    memory_close(&fixture->memories[0]);
    memory_close(&fixture->memories[1]);
    pair_close(&fixture->pair);
}

static struct sluice_histogram read_channel(const struct sluice_channel *channel, uint32_t opcode)
{
    struct sluice_histogram histogram = {.size = sizeof(histogram)};
    memset(&histogram.reserved, 0xcc, sizeof(histogram) - sizeof(histogram.size));
    require_ok(sluice_channel_histogram(channel, opcode, &histogram));
    require_equal(histogram.size, sizeof(histogram), histogram.reserved, 0);
    return histogram;
}

/* Requires exactly one entry, whose time is between these bounds. */
static void check_one(const struct sluice_histogram *histogram, int64_t least, int64_t most)
{
    int64_t time = (int64_t)histogram->sum;
    require_equal(histogram->count, 1, histogram->min, histogram->sum, histogram->max,
                  histogram->sum);
    require(least <= time && time <= most, "%lld ns, not %lld to %lld", (long long)time,
            (long long)least, (long long)most);
    require_result(sluice_histogram_percentile(histogram, 50), time);
    require_result(sluice_histogram_mean(histogram), time);
}

static void check_none(const struct sluice_histogram *histogram)
{
    static const uint64_t none[SLUICE_HISTOGRAM_BUCKETS];
    require((histogram->count | histogram->sum | histogram->min | histogram->max) == 0,
            "%llu counted", (unsigned long long)histogram->count);
    require(memcmp(histogram->buckets, none, sizeof(none)) == 0, "a bucket is not empty");
    require_result(sluice_histogram_percentile(histogram, 99), 0);
    require_result(sluice_histogram_mean(histogram), 0);
}

static void write_some(struct fixture *fixture, size_t length)
{
    struct sluice_sge sge = memory_sge(&fixture->memories[0], 0, length);
    struct sluice_remote_mr remote = memory_remote(&fixture->memories[1], 0, length);
    require_ok(sluice_channel_write(fixture->pair.channels[0], &sge, 1, &remote, DEADLINE));
}

/* A receive waits for its message from its post on; the send, posted later, took less time. */
TEST(from_the_post_to_the_completion)
{
    struct fixture fixture;
    struct sluice_channel **channels = fixture.pair.channels;
    fixture_open(&fixture, &timed);
    struct sluice_sge near = memory_sge(&fixture.memories[0], 0, 100);
    struct sluice_sge far = memory_sge(&fixture.memories[1], 0, 100);
    int64_t begin = clock_now();
    struct sluice_handle handle = post_of(channels[1], SLUICE_OP_RECEIVE, &far);
    int64_t posted = clock_now();
    while (clock_now() < posted + PAUSE) {
    }
    int64_t sent = clock_now();
    require_ok(sluice_channel_send(channels[0], &near, 1, DEADLINE));
    int64_t end_of_send = clock_now();
    await(channels[1], handle, SLUICE_CLASS_NONE);
    int64_t end = clock_now();
    struct sluice_histogram sends = read_channel(channels[0], SLUICE_OP_SEND);
    struct sluice_histogram receives = read_channel(channels[1], SLUICE_OP_RECEIVE);
    check_one(&sends, 0, end_of_send - sent);
    check_one(&receives, sent - posted, end - begin);
    for (uint32_t i = SLUICE_OP_SEND; i < OPCODES; i++) {
        struct sluice_histogram other = read_channel(channels[i != SLUICE_OP_SEND], i);
        if (i > SLUICE_OP_RECEIVE) {
            check_none(&other);
        }
    }
    fixture_close(&fixture);
}

/* A request that is done but not polled has not ended. */
TEST(posted_request_has_not_ended)
{
    struct fixture fixture;
    fixture_open(&fixture, &timed);
    struct sluice_channel *channel = fixture.pair.channels[0];
    struct sluice_sge sge = memory_sge(&fixture.memories[0], 0, 8);
    struct sluice_request write = request_of(SLUICE_OP_WRITE, 0, &sge);
    struct sluice_histogram histogram;
    write.remote = memory_remote(&fixture.memories[1], 0, 8);
    int64_t begin = clock_now();
    struct sluice_handle handle = post(channel, &write);
    int64_t posted = clock_now();
    histogram = read_channel(channel, SLUICE_OP_WRITE);
    check_none(&histogram);
    while (clock_now() < posted + PAUSE) {
    }
    int64_t polled = clock_now();
    await(channel, handle, SLUICE_CLASS_NONE);
    histogram = read_channel(channel, SLUICE_OP_WRITE);
    check_one(&histogram, polled - posted, clock_now() - begin);
    /* Clearing it does not change requests in flight. */
    begin = clock_now();
    handle = post(channel, &write);
    posted = clock_now();
    require_ok(sluice_channel_histogram_reset(channel));
    histogram = read_channel(channel, SLUICE_OP_WRITE);
    check_none(&histogram);
    while (clock_now() < posted + PAUSE) {
    }
    polled = clock_now();
    await(channel, handle, SLUICE_CLASS_NONE);
    histogram = read_channel(channel, SLUICE_OP_WRITE);
    check_one(&histogram, polled - posted, clock_now() - begin);
    memory_close(&fixture.memories[0]);
    memory_close(&fixture.memories[1]);
    sluice_channel_close(fixture.pair.channels[0]);
    sluice_channel_close(fixture.pair.channels[1]);
    sides_close(&fixture.pair.sides);
}

/*
 * A split request counts once, a failed request does not count, and a reset of the channel changes
 * nothing.
 */
TEST_WITH(fixture, splits_failures_and_resets, (&timed))
{
    struct sluice_histogram histogram;
    write_some(fixture, BYTES);
    write_some(fixture, 10);
    histogram = read_channel(fixture->pair.channels[0], SLUICE_OP_WRITE);
    require(histogram.count == 2, "%llu", (unsigned long long)histogram.count);
    struct sluice_sge sge = memory_sge(&fixture->memories[0], 0, 100);
    struct sluice_remote_mr remote = memory_remote(&fixture->memories[1], 0, 100);
    remote.rkey ^= 0x5a5a5a5a;
    require_result(sluice_channel_write(fixture->pair.channels[0], &sge, 1, &remote, DEADLINE),
                   -EACCES);
    pair_reset(&fixture->pair);
    write_some(fixture, BYTES);
    histogram = read_channel(fixture->pair.channels[0], SLUICE_OP_WRITE);
    require(histogram.count == 3, "%llu", (unsigned long long)histogram.count);
}

static uint64_t count_of_peer(const struct star *star, uint32_t peer, uint32_t opcode)
{
    struct sluice_histogram histogram = {.size = sizeof(histogram)};
    require_ok(sluice_multichannel_peer_histogram(star->hub, peer, opcode, &histogram));
    return histogram.count;
}

static uint64_t count_of_all(const struct star *star, uint32_t opcode)
{
    struct sluice_histogram histogram = {.size = sizeof(histogram)};
    require_ok(sluice_multichannel_histogram(star->hub, opcode, &histogram));
    return histogram.count;
}

/* Each peer has its own histogram; the sum of all includes that of a removed peer. */
TEST_WITH(star, peers, (3, &timed))
{
    struct sluice_endpoint endpoint;
    star_works(star, 0);
    star_works(star, 2);
    star_works(star, 2);
    for (uint32_t opcode = SLUICE_OP_SEND; opcode <= SLUICE_OP_RECEIVE; opcode++) {
        require_result((int)count_of_peer(star, 0, opcode), 1);
        require_result((int)count_of_peer(star, 1, opcode), 0);
        require_result((int)count_of_peer(star, 2, opcode), 2);
        require_result((int)count_of_all(star, opcode), 3);
    }
    require_ok(sluice_multichannel_peer_remove(star->hub, 2));
    require_result((int)count_of_peer(star, 2, SLUICE_OP_SEND), 2);
    require_result(sluice_multichannel_peer_add(star->hub, &endpoint), 2);
    require_result((int)count_of_peer(star, 2, SLUICE_OP_SEND), 0);
    require_result((int)count_of_all(star, SLUICE_OP_SEND), 3);
    require_result(sluice_multichannel_peer_add(star->hub, &endpoint), 3);
    require_result((int)count_of_peer(star, 3, SLUICE_OP_SEND), 0);
    star_works(star, 0);
    require_result((int)count_of_all(star, SLUICE_OP_SEND), 4);
    multichannel_is_timed(star->hub);
    require_ok(sluice_multichannel_histogram_reset(star->hub));
    require_result((int)count_of_peer(star, 0, SLUICE_OP_SEND), 0);
    require_result((int)count_of_all(star, SLUICE_OP_SEND), 0);
    sluice_multichannel_close(star->hub);
    star->hub = NULL;
}

static void rank_works(struct ranks *ranks, uint32_t rank)
{
    node_works(ranks->nodes[rank], ranks->pds[rank]);
    multichannel_is_timed(sluice_node_multichannel(ranks->nodes[rank]));
}

/*
 * The connections of a node have histograms by the attributes passed to it; its barriers have them
 * as well.
 */
TEST(nodes)
{
    const struct sluice_node_attr attr = {.size = sizeof(attr), .channel = &timed};
    ranks_try(3, &attr, rank_works);
}

TEST(arguments)
{
    struct fixture fixture;
    struct sluice_histogram histogram = {.size = sizeof(histogram)};
    fixture_open(&fixture, &timed);
    struct sluice_channel *channel = fixture.pair.channels[0];
    require_error(sluice_channel_histogram(NULL, 1, &histogram), -EINVAL, "not a channel");
    require_error(sluice_multichannel_histogram(NULL, 1, &histogram), -EINVAL, "not a multi");
    require_error(sluice_multichannel_peer_histogram(NULL, 0, 1, &histogram), -EINVAL, "multi");
    require_error(sluice_channel_histogram_reset(NULL), -EINVAL, "not a channel");
    require_error(sluice_multichannel_histogram_reset(NULL), -EINVAL, "not a multichannel");
    require_error(sluice_channel_histogram(channel, 1, NULL), -EINVAL, "sluice_histogram NULL");
    require_error(sluice_channel_histogram(channel, SLUICE_OP_NONE, &histogram), -EINVAL,
                  "opcode 0");
    require_error(sluice_channel_histogram(channel, OPCODES, &histogram), -EINVAL, "opcode 7");
    require_error(sluice_channel_histogram(channel, UINT32_MAX, &histogram), -EINVAL, "opcode");
    histogram.size = sizeof(histogram) - 1;
    require_error(sluice_channel_histogram(channel, 1, &histogram), -EINVAL,
                  "sluice_histogram.size");
    histogram.size = 65537;
    require_error(sluice_channel_histogram(channel, 1, &histogram), -E2BIG, "65537 65536");
    fixture_close(&fixture);

    fixture_open(&fixture, NULL);
    channel = fixture.pair.channels[0];
    histogram.size = sizeof(histogram);
    histogram.count = 12;
    require_error(sluice_channel_histogram(channel, 1, &histogram), -EOPNOTSUPP,
                  "SLUICE_CHANNEL_HISTOGRAMS");
    require_error(sluice_channel_histogram_reset(channel), -EOPNOTSUPP, "HISTOGRAMS");
    require(histogram.count == 12, "%llu", (unsigned long long)histogram.count);
    fixture_close(&fixture);
}

TEST_WITH(star, peer_that_does_not_exist, (2, NULL))
{
    struct sluice_histogram histogram = {.size = sizeof(histogram)};
    require_error(sluice_multichannel_peer_histogram(star->hub, 2, 1, &histogram), -EINVAL,
                  "peer 2 0..1");
    require_error(sluice_multichannel_peer_histogram(star->hub, 1, 1, &histogram), -EOPNOTSUPP,
                  "SLUICE_CHANNEL_HISTOGRAMS");
    require_error(sluice_multichannel_histogram_reset(star->hub), -EOPNOTSUPP, "HISTOGRAMS");
}

/* A program of a later version has fields that are unknown to this library: they are set to 0. */
TEST_WITH(fixture, later_version, (&timed))
{
    struct {
        struct sluice_histogram known;
        uint64_t unknown;
    } later = {{.size = sizeof(later)}, 77};
    write_some(fixture, 8);
    require_ok(sluice_channel_histogram(fixture->pair.channels[0], SLUICE_OP_WRITE, &later.known));
    require_equal(later.known.count, 1, later.known.size, sizeof(later), later.unknown, 0);
}

/* Computes the bucket of a time in another way than the library. */
static uint32_t bucket_of(int64_t time)
{
    uint32_t bucket = 0;
    while (bucket + 1 < SLUICE_HISTOGRAM_BUCKETS && sluice_histogram_bound(bucket + 1) <= time) {
        bucket++;
    }
    return bucket;
}

static void add(struct sluice_histogram *histogram, int64_t time)
{
    histogram->buckets[bucket_of(time)]++;
    histogram->min =
        histogram->count == 0 || (uint64_t)time < histogram->min ? (uint64_t)time : histogram->min;
    histogram->max = (uint64_t)time > histogram->max ? (uint64_t)time : histogram->max;
    histogram->count++;
    histogram->sum += (uint64_t)time;
}

TEST(buckets_have_bounds, .group = "numbers")
{
    int64_t begin = 0;
    for (uint32_t i = 0; i < SLUICE_HISTOGRAM_BUCKETS; i++) {
        int64_t end = sluice_histogram_bound(i + 1);
        require_result(sluice_histogram_bound(i), begin);
        require(i < 64 ? end == begin + 1 : end > begin && (end - begin) * 32 <= begin,
                "bucket %u: %lld to %lld", i, (long long)begin, (long long)end);
        begin = end;
    }
    require_result(begin, INT64_C(1) << 40);
    require_error((int)sluice_histogram_bound(SLUICE_HISTOGRAM_BUCKETS + 1), -EINVAL, "1153");
}

/* Records the times of 1 to n steps, so that the share below each time is known. */
static void check_percentiles(int64_t step)
{
    struct sluice_histogram histogram = {.size = sizeof(histogram)};
    for (int64_t i = 1; i <= 1000; i++) {
        add(&histogram, i * step);
    }
    for (int percent = 1; percent < 100; percent++) {
        int64_t exact = percent * 10 * step;
        int64_t got = sluice_histogram_percentile(&histogram, percent);
        require(llabs(got - exact) <= exact / 64 + step, "%d %% of steps of %lld: %lld", percent,
                (long long)step, (long long)got);
    }
    require_result(sluice_histogram_percentile(&histogram, 0), step);
    require_result(sluice_histogram_percentile(&histogram, 100), 1000 * step);
    require_result(sluice_histogram_mean(&histogram), (1001 * step + 1) / 2);
}

TEST(percentiles, .group = "numbers")
{
    struct sluice_histogram histogram = {.size = sizeof(histogram)};
    check_percentiles(1);
    check_percentiles(37);
    check_percentiles(1000);
    check_percentiles(1000000);
    require_error((int)sluice_histogram_percentile(&histogram, -0.1), -EINVAL, "-0.1 0..100");
    require_error((int)sluice_histogram_percentile(&histogram, 100.5), -EINVAL, "100.5");
    require_error((int)sluice_histogram_percentile(&histogram, NAN), -EINVAL, "nan");
    require_error((int)sluice_histogram_percentile(NULL, 50), -EINVAL, "NULL");
    require_error((int)sluice_histogram_mean(NULL), -EINVAL, "NULL");
    require_error(sluice_histogram_merge(NULL, &histogram), -EINVAL, "NULL");
    require_error(sluice_histogram_merge(&histogram, NULL), -EINVAL, "NULL");
    histogram.size = 0;
    require_error((int)sluice_histogram_percentile(&histogram, 50), -EINVAL, "size 0");
    require_error((int)sluice_histogram_mean(&histogram), -EINVAL, "size 0");
}

/* Times longer than any bucket are in the last one, and their length is known. */
TEST(very_long_times, .group = "numbers")
{
    struct sluice_histogram histogram = {.size = sizeof(histogram)};
    add(&histogram, 5);
    add(&histogram, SLUICE_S(3600));
    require(histogram.buckets[SLUICE_HISTOGRAM_BUCKETS - 1] == 1, "not in the last bucket");
    require_result(sluice_histogram_percentile(&histogram, 50), 5);
    require_result(sluice_histogram_percentile(&histogram, 99), SLUICE_S(3600));
}

TEST(merging, .group = "numbers")
{
    struct sluice_histogram one = {.size = sizeof(one)};
    struct sluice_histogram other = {.size = sizeof(other)};
    struct sluice_histogram both = {.size = sizeof(both)};
    for (int64_t i = 100; i < 200; i++) {
        add(i % 3 == 0 ? &one : &other, i * i);
        add(&both, i * i);
    }
    require_ok(sluice_histogram_merge(&one, &other));
    require(memcmp(&one, &both, sizeof(one)) == 0, "not as if one had counted all");
    struct sluice_histogram none = {.size = sizeof(none)};
    require_ok(sluice_histogram_merge(&one, &none));
    require(memcmp(&one, &both, sizeof(one)) == 0, "an empty one changed it");
    require_ok(sluice_histogram_merge(&none, &one));
    require(memcmp(&none, &both, sizeof(one)) == 0, "not that which was added to an empty one");
}

int main(void)
{
    static const struct tests groups[] = {
        {"self", WIRE_SELF, 20},
        {"tcp", WIRE_TCP, 20},
        {"shm", WIRE_SHM, 20},
        {"numbers", WIRE_SELF, 10},
    };
    return run_groups("histograms", groups, COUNT(groups));
}
