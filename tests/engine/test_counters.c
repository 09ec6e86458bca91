/* SPDX-License-Identifier: MIT */
/*
 * Counters: each one advances by exactly what it counts, and by nothing else; those of a peer cover
 * that peer alone; all survive resets.
 */
#include <stdlib.h>

#include "counters/fixture.h"

#define OPERATIONS 100
/* Longer reads and writes are split. */
#define MESSAGE 4096
#define DEPTH 4

static uint64_t sum(const uint64_t *values, size_t count)
{
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += values[i];
    }
    return total;
}

TEST_WITH(fixture, counters_start_at_zero, (NULL))
{
    const struct sluice_counters none = {0};
    struct sluice_counters counters = read_channel(fixture->pair.channels[0]);
    require_counters(counters, &none);
    require_equal(counters.discarded, 0, counters.sleeps, 0, counters.wakes, 0);
}

TEST_WITH(star, wrong_arguments, (2, NULL))
{
    struct sluice_counters counters = {.size = offsetof(struct sluice_counters, wakes),
                                       .refused = 5};
    require_error(sluice_channel_counters(NULL, &counters), -EINVAL, "channel");
    require_error(sluice_channel_counters(star->spokes[0], NULL), -EINVAL, "counters NULL");
    require_error(sluice_channel_counters(star->spokes[0], &counters), -EINVAL, "counters size");
    require_error(sluice_multichannel_counters(NULL, &counters), -EINVAL, "multichannel");
    require_error(sluice_multichannel_counters(star->hub, NULL), -EINVAL, "counters NULL");
    require_error(sluice_multichannel_counters(star->hub, &counters), -EINVAL, "counters size");
    require_error(sluice_multichannel_peer_counters(NULL, 0, &counters), -EINVAL, "multichannel");
    require_error(sluice_multichannel_peer_counters(star->hub, 0, &counters), -EINVAL, "size");
    counters.size = sizeof(counters);
    require_error(sluice_multichannel_peer_counters(star->hub, 2, &counters), -EINVAL, "2 0..1");
    require(counters.refused == 5, "%llu", (unsigned long long)counters.refused);
}

/* Each blocking operation advances its own counts and no others. */
TEST_WITH(fixture, blocking_operations, (NULL))
{
    struct sluice_channel *channel = fixture->pair.channels[0];
    struct sluice_sge near = sge_of(fixture, 0, 1000);
    struct sluice_sge far = sge_of(fixture, 1, 2000);
    struct sluice_remote_mr remote = memory_remote(&fixture->memories[1], 0, FIXTURE_BYTES);

    struct sluice_handle handle = post_of(fixture->pair.channels[1], SLUICE_OP_RECEIVE, &far);
    fixture_check(fixture);
    require_ok(sluice_channel_send(channel, &near, 1, DEADLINE));
    expect(&fixture->wanted[0], SLUICE_OP_SEND, 1000);
    await(fixture->pair.channels[1], handle, SLUICE_CLASS_NONE);
    expect(&fixture->wanted[1], SLUICE_OP_RECEIVE, 1000); /* of the message, not of the buffer */
    fixture_check(fixture);
    require_ok(sluice_channel_write(channel, &near, 1, &remote, DEADLINE));
    expect(&fixture->wanted[0], SLUICE_OP_WRITE, 1000);
    fixture_check(fixture);
    near.length = 77;
    require_ok(sluice_channel_read(channel, &near, 1, &remote, DEADLINE));
    expect(&fixture->wanted[0], SLUICE_OP_READ, 77);
    fixture_check(fixture);

    handle = post_of(fixture->pair.channels[1], SLUICE_OP_SEND, &far);
    near.length = 3000;
    require_ok(sluice_channel_receive(channel, &near, 1, DEADLINE, NULL));
    expect(&fixture->wanted[0], SLUICE_OP_RECEIVE, 2000);
    await(fixture->pair.channels[1], handle, SLUICE_CLASS_NONE);
    expect(&fixture->wanted[1], SLUICE_OP_SEND, 2000);
    fixture_check(fixture);
    require_ok(sluice_channel_write(channel, NULL, 0, &remote, DEADLINE));
    expect(&fixture->wanted[0], SLUICE_OP_WRITE, 0);
    fixture_check(fixture);
}

/* Atomic operations count as operations of 8 bytes, where the device has them. */
TEST_WITH(fixture, atomic_operations, (NULL))
{
    if (context_info(fixture->pair.sides.contexts[0]).atomics != SLUICE_ATOMICS_NONE) {
        struct memory word;
        memory_open_at(&word, fixture->pair.sides.pds[1], 8,
                       ACCESS_ALL | SLUICE_ACCESS_REMOTE_ATOMIC, 0);
        struct sluice_sge near = sge_of(fixture, 0, 8);
        struct sluice_remote_mr remote = memory_remote(&word, 0, 8);
        require_ok(
            sluice_channel_fetch_add(fixture->pair.channels[0], &near, &remote, 5, DEADLINE));
        expect(&fixture->wanted[0], SLUICE_OP_FETCH_ADD, 8);
        fixture_check(fixture);
        /* A compare-and-swap that finds another value counts as well. */
        for (uint64_t expected = 5; expected < 7; expected++) {
            require_ok(sluice_channel_compare_swap(fixture->pair.channels[0], &near, &remote,
                                                   expected, 9, DEADLINE));
            expect(&fixture->wanted[0], SLUICE_OP_COMPARE_SWAP, 8);
            fixture_check(fixture);
        }
        memory_close(&word);
    }
}

/* The ways to make a request. */
enum way { BLOCKING, LISTED, POSTED, SCOPED, WAYS };

static void do_write(struct fixture *fixture, enum way way, size_t length)
{
    struct sluice_channel *channel = fixture->pair.channels[0];
    struct sluice_sge sge = sge_of(fixture, 0, length);
    struct sluice_request write = write_of(fixture, &sge);
    struct sluice_scope *scope;
    switch (way) {
    case BLOCKING:
        require_ok(sluice_channel_write(channel, &sge, 1, &write.remote, DEADLINE));
        break;
    case LISTED:
        require_ok(sluice_channel_submit(channel, &write, 1, DEADLINE, NULL));
        break;
    case POSTED:
        await(channel, post(channel, &write), SLUICE_CLASS_NONE);
        break;
    default:
        scope = sluice_channel_scope_begin(channel, DEADLINE);
        require_result(sluice_scope_post(scope, &write, 1, NULL), 1);
        /* Counters may be read in between. */
        read_channel(channel);
        require_ok(sluice_scope_end(scope, NULL));
        break;
    }
    expect(&fixture->wanted[0], SLUICE_OP_WRITE, length);
}

/* Sends a message from one side by this way, to a receive that was posted before. */
static void do_message(struct fixture *fixture, enum way way, int from, size_t length)
{
    struct sluice_channel *channel = fixture->pair.channels[from];
    struct sluice_sge sge = sge_of(fixture, from, length);
    struct sluice_sge whole = sge_of(fixture, !from, FIXTURE_BYTES);
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, &sge);
    struct sluice_handle handle = post_of(fixture->pair.channels[!from], SLUICE_OP_RECEIVE, &whole);
    struct sluice_scope *scope;
    switch (way) {
    case BLOCKING:
        require_ok(sluice_channel_send(channel, &sge, 1, DEADLINE));
        break;
    case LISTED:
        require_ok(sluice_channel_submit(channel, &send, 1, DEADLINE, NULL));
        break;
    case POSTED:
        await(channel, post(channel, &send), SLUICE_CLASS_NONE);
        break;
    default:
        scope = sluice_channel_scope_begin(channel, DEADLINE);
        require_result(sluice_scope_post(scope, &send, 1, NULL), 1);
        require_ok(sluice_scope_end(scope, NULL));
        break;
    }
    await(fixture->pair.channels[!from], handle, SLUICE_CLASS_NONE);
    expect(&fixture->wanted[from], SLUICE_OP_SEND, length);
    expect(&fixture->wanted[!from], SLUICE_OP_RECEIVE, length);
}

/* The sums of 100 random operations are known, whichever calls made them. */
TEST_WITH(fixture, sums_of_random_operations, (ATTR(.max_message = MESSAGE)))
{
    srand(4711);
    for (int i = 0; i < OPERATIONS; i++) {
        enum way way = (enum way)(rand() % WAYS);
        if (rand() % 2) {
            do_write(fixture, way, (size_t)rand() % FIXTURE_BYTES);
        } else {
            do_message(fixture, way, rand() % 2, (size_t)rand() % (MESSAGE + 1));
        }
        fixture_check(fixture);
    }
    struct sluice_counters counters = read_channel(fixture->pair.channels[0]);
    uint64_t done = sum(counters.requests, COUNT(counters.requests));
    require(done == OPERATIONS, "%llu of %d", (unsigned long long)done, OPERATIONS);
    require(counters.bytes[SLUICE_OP_WRITE] > (uint64_t)OPERATIONS / 10 * MESSAGE, "%llu",
            (unsigned long long)counters.bytes[SLUICE_OP_WRITE]);
    require(counters.polls >= OPERATIONS / 2, "%llu polls", (unsigned long long)counters.polls);
}

/* Probes that the library sends on its own are not counted as requests. */
TEST_WITH(fixture, probes_are_not_counted, (NULL))
{
    require_ok(sluice_channel_wait_connected(fixture->pair.channels[0], DEADLINE));
    fixture_check(fixture);
    require_equal(read_channel(fixture->pair.channels[0]).discarded, 0);
}

/* Detached requests are counted when a poll finds their completions. */
TEST_WITH(fixture, detached_work_is_counted, (NULL))
{
    struct sluice_sge sge = sge_of(fixture, 0, 300);
    struct sluice_request write = write_of(fixture, &sge);
    struct sluice_handle handle = post(fixture->pair.channels[0], &write);
    require_ok(sluice_channel_detach(fixture->pair.channels[0], &handle));
    require_ok(sluice_channel_flush(fixture->pair.channels[0], DEADLINE));
    expect(&fixture->wanted[0], SLUICE_OP_WRITE, 300);
    fixture_check(fixture);
}

/* A call that waits counts once, however long and for how many requests. */
TEST_WITH(fixture, full_queues,
          (ATTR(.send_depth = DEPTH, .receive_depth = DEPTH, .max_message = MESSAGE)))
{
    struct sluice_request requests[5 * DEPTH];
    struct sluice_handle handles[DEPTH];
    struct sluice_channel *channel = fixture->pair.channels[0];
    struct sluice_sge sge = sge_of(fixture, 0, 10);
    struct sluice_sge long_sge = sge_of(fixture, 0, FIXTURE_BYTES);
    for (int i = 0; i < 5 * DEPTH; i++) {
        requests[i] = write_of(fixture, &sge);
        expect(&fixture->wanted[0], SLUICE_OP_WRITE, 10);
    }
    require_ok(sluice_channel_submit(channel, requests, 5 * DEPTH, DEADLINE, NULL));
    fixture->wanted[0].queue_full++;
    fixture_check(fixture);
    /* A request that is split into more parts than fit. */
    requests[0].sges = &long_sge;
    require_ok(sluice_channel_submit(channel, requests, 1, DEADLINE, NULL));
    expect(&fixture->wanted[0], SLUICE_OP_WRITE, FIXTURE_BYTES);
    fixture->wanted[0].queue_full++;
    fixture_check(fixture);
    /* In a scope the post waits. */
    struct sluice_scope *scope = sluice_channel_scope_begin(channel, DEADLINE);
    require_result(sluice_scope_post(scope, requests + 1, DEPTH, NULL), DEPTH);
    require_result(sluice_scope_post(scope, requests + 1, DEPTH + 1, NULL), DEPTH + 1);
    require_ok(sluice_scope_end(scope, NULL));
    for (int i = 0; i < 2 * DEPTH + 1; i++) {
        expect(&fixture->wanted[0], SLUICE_OP_WRITE, 10);
    }
    require(read_channel(channel).queue_full > fixture->wanted[0].queue_full, "%llu",
            (unsigned long long)read_channel(channel).queue_full);
    fixture->wanted[0].queue_full = read_channel(channel).queue_full;
    fixture_check(fixture);
    /* A post takes as many as fit, and then none. */
    for (int i = 0; i < 5 * DEPTH; i++) {
        requests[i] = request_of(SLUICE_OP_RECEIVE, 0, &sge);
    }
    require_result(sluice_channel_post(channel, requests, DEPTH - 1, DEADLINE, handles), DEPTH - 1);
    fixture_check(fixture);
    require_result(sluice_channel_post(channel, requests, 2, DEADLINE, handles + DEPTH - 1), 1);
    fixture->wanted[0].queue_full++;
    fixture_check(fixture);
    require_result(sluice_channel_post(channel, requests, 1, DEADLINE, NULL), -EAGAIN);
    require_result(sluice_channel_post_receive(channel, &sge, 1, DEADLINE, NULL), -EAGAIN);
    fixture->wanted[0].queue_full += 2;
    fixture_check(fixture);
    require_result(sluice_channel_shutdown(channel, 0), -ETIMEDOUT);
    fixture->wanted[0].failed[SLUICE_CLASS_CANCELLED] += DEPTH;
    fixture_check(fixture);
}

/* Unread results whose places are needed are dropped; the others are still there. */
TEST_WITH(fixture, forgotten_results, (ATTR(.send_depth = DEPTH)))
{
    struct sluice_completion completions[3 * DEPTH];
    struct sluice_channel *channel = fixture->pair.channels[0];
    struct sluice_sge sge = sge_of(fixture, 0, 10);
    for (uint32_t i = 0; i < 3 * DEPTH; i++) {
        struct sluice_request write = write_of(fixture, &sge);
        post(channel, &write);
        require_ok(sluice_channel_flush(channel, DEADLINE));
        expect(&fixture->wanted[0], SLUICE_OP_WRITE, 10);
        fixture->wanted[0].forgotten = i < DEPTH ? 0 : i + 1 - DEPTH;
        fixture_check(fixture);
    }
    require_result(sluice_channel_poll(channel, completions, 3 * DEPTH), DEPTH);
    fixture_check(fixture);
}

/* Counts survive resets, and resets are counted themselves. */
TEST_WITH(fixture, counters_stay_over_resets, (NULL))
{
    for (int cycle = 0; cycle < 3; cycle++) {
        do_write(fixture, BLOCKING, 1234);
        do_message(fixture, POSTED, 1, 99);
        struct sluice_counters before = read_channel(fixture->pair.channels[0]);
        fail_write(fixture, false);
        pair_reset(&fixture->pair);
        fixture->wanted[0].resets++;
        fixture->wanted[1].resets++;
        fixture_check(fixture);
        require(read_channel(fixture->pair.channels[0]).polls >= before.polls, "%llu",
                (unsigned long long)before.polls);
    }
}

/*
 * A wait in event mode sleeps, a wait in spin mode polls. A wait during which another program had
 * the processor until its end has not slept, so there are several waits.
 */
TEST(sleeps_and_polls)
{
    static const uint32_t modes[] = {SLUICE_WAIT_ADAPTIVE, SLUICE_WAIT_SPIN, SLUICE_WAIT_EVENT};
    for (size_t i = 0; i < COUNT(modes); i++) {
        struct sluice_channel_attr attr = {.size = sizeof(attr), .wait_mode = modes[i]};
        struct sluice_completion completion;
        struct fixture fixture;
        fixture_open(&fixture, &attr);
        struct sluice_channel *channel = fixture.pair.channels[0];
        struct sluice_handle handle = post_of(channel, SLUICE_OP_RECEIVE, NULL);
        struct sluice_counters before = read_channel(channel);
        struct sluice_counters after = before;
        for (int tries = 0; tries < 100 && after.sleeps == before.sleeps; tries++) {
            require_result(sluice_channel_wait(channel, &handle, SLUICE_MS(20), &completion),
                           -ETIMEDOUT);
            after = read_channel(channel);
            if (modes[i] == SLUICE_WAIT_SPIN)
                break;
        }
        uint64_t sleeps = after.sleeps - before.sleeps;
        require(after.polls > before.polls, "%llu polls", (unsigned long long)after.polls);
        require(modes[i] == SLUICE_WAIT_SPIN ? sleeps == 0 : sleeps > 0 && sleeps < 1000,
                "mode %u: %llu sleeps", modes[i], (unsigned long long)sleeps);
        /* Reading counters is not a poll. */
        require_equal(read_channel(channel).polls, after.polls);
        require_result(sluice_channel_poll(channel, &completion, 1), 0);
        require(read_channel(channel).polls > after.polls, "%llu", (unsigned long long)after.polls);
        fixture_close(&fixture);
    }
}

TEST_WITH(fixture, wakes, (NULL))
{
    struct sluice_completion completion;
    struct sluice_channel *channel = fixture->pair.channels[0];
    struct sluice_handle handle = post_of(channel, SLUICE_OP_RECEIVE, NULL);
    for (int i = 0; i < 2; i++) {
        require_ok(sluice_channel_wake(channel));
    }
    require(read_channel(channel).wakes == 0, "a wake was counted before a wait");
    require_result(sluice_channel_wait(channel, &handle, DEADLINE, &completion), -EINTR);
    require_equal(read_channel(channel).wakes, 1);
    require_ok(sluice_channel_wake(channel));
    require_result(sluice_channel_poll(channel, &completion, 1), 0);
    require_equal(read_channel(channel).wakes, 2);
}

/* The counts of a multichannel are the sum of its peers, and those of a peer exclude the others. */
TEST(peers_are_counted_apart)
{
    struct star star;
    struct sluice_counters wanted[3];
    struct sluice_counters all = {0};
    memset(wanted, 0, sizeof(wanted));
    star_open(&star, 3, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t k = 0; k <= i; k++) {
            star_works(&star, i);
            wanted[i].requests[SLUICE_OP_SEND]++;
            wanted[i].requests[SLUICE_OP_RECEIVE]++;
            wanted[i].bytes[SLUICE_OP_SEND] += 1000;
            wanted[i].bytes[SLUICE_OP_RECEIVE] += 1000;
        }
    }
    star_break(&star, 1);
    wanted[1].failed[SLUICE_CLASS_ACCESS]++;
    require_result(sluice_multichannel_send(star.hub, 1, NULL, 0, DEADLINE), -ENOTCONN);
    wanted[1].refused++;
    star_reset(&star, 1);
    wanted[1].resets++;
    for (uint32_t i = 0; i < 3; i++) {
        struct sluice_counters peer = read_peer(star.hub, i);
        require_counters(peer, &wanted[i]);
        require(peer.polls == 0 && peer.sleeps == 0 && peer.wakes == 0 && peer.discarded == 0,
                "peer %u: %llu polls, %llu sleeps", i, (unsigned long long)peer.polls,
                (unsigned long long)peer.sleeps);
        for (uint32_t k = 0; k < COUNT(all.requests); k++) {
            all.requests[k] += wanted[i].requests[k];
            all.bytes[k] += wanted[i].bytes[k];
        }
        for (uint32_t k = 0; k < COUNT(all.failed); k++) {
            all.failed[k] += wanted[i].failed[k];
        }
        all.refused += wanted[i].refused;
        all.resets += wanted[i].resets;
    }
    require_counters(read_all(star.hub), &all);
    require(read_all(star.hub).polls > 0, "%s", "no polls");
    star_close(&star);
}

int main(void)
{
    return run_tests("counters", device_is_soft() ? 60 : 300);
}
