/* SPDX-License-Identifier: MIT */
/*
 * Hints of receives on a pretend device: sends that their callers wait for come after the receives
 * of their peers, all others do not wait; and whatever a peer writes as its hints, everything
 * completes.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "../support/process.h"
#include "check.h"
#include "endpoint/endpoint.h"

#define ROUNDS 200
#define BYTES 8
/* Where a peer asks for notifications of receives: the word behind their number. */
#define WANTED 8

static struct sluice_endpoint endpoints[2];

/* Channels of one context whose endpoints are known and may be changed before use. */
struct talk {
    struct pair pair;
    struct memory memory;
    struct sluice_sge from, to;
};

static struct slu_endpoint decoded(const struct sluice_endpoint *endpoint)
{
    struct slu_endpoint out;
    require(slu_endpoint_decode(endpoint, &out) == 0, "%s", sluice_last_error());
    return out;
}

/*
 * The words that the peer of channel i writes: its number of receives, and whether it wants to be
 * notified of ours.
 */
static _Atomic uint64_t *words_of(int i)
{
    struct slu_endpoint endpoint = decoded(&endpoints[i]);
    require(endpoint.verbs.hint_addr != 0, "channel %d has no place for hints", i);
    return (_Atomic uint64_t *)(uintptr_t)endpoint.verbs.hint_addr;
}

static void talk_open(struct talk *talk, const struct sluice_channel_attr *attr,
                      void (*change)(struct slu_endpoint *endpoint))
{
    struct sluice_prepared_channel *prepared[2];
    sides_open(&talk->pair.sides);
    for (int i = 0; i < 2; i++) {
        prepared[i] = prepare_channel(talk->pair.sides.pds[i], attr, &endpoints[i]);
    }
    for (int i = 0; i < 2; i++) {
        struct slu_endpoint remote = decoded(&endpoints[!i]);
        struct sluice_endpoint wire;
        if (change) {
            change(&remote);
        }
        slu_endpoint_encode(&remote, &wire);
        talk->pair.channels[i] = made(sluice_prepared_channel_handshake(prepared[i], &wire));
    }
    talk->memory = side_memory(&talk->pair.sides, 0, 64);
    talk->from = memory_sge(&talk->memory, 0, BYTES);
    talk->to = memory_sge(&talk->memory, 32, BYTES);
}

static void talk_close(struct talk *talk)
{
    pair_close(&talk->pair);
}

static struct sluice_handle post_receive(struct talk *talk, int i)
{
    struct sluice_request request = request_of(SLUICE_OP_RECEIVE, 0, &talk->to);
    return post(talk->pair.channels[i], &request);
}

/* Returns how often the device found no receive for a message. */
static uint64_t not_ready(void)
{
    fake_verbs_lock();
    uint64_t count = fake_verbs.not_ready;
    fake_verbs_unlock();
    return count;
}

/* A thread that sends one message per round in its own time. */
struct sender {
    struct talk *talk;
    int channel, rounds;
    atomic_int begun, ended;
    pthread_t thread;
};

static void *send_rounds(void *argument)
{
    struct sender *sender = argument;
    for (int round = 1; round <= sender->rounds; round++) {
        sender->begun = round;
        require_ok(sluice_channel_send(sender->talk->pair.channels[sender->channel],
                                       &sender->talk->from, 1, DEADLINE));
        sender->ended = round;
    }
    return NULL;
}

static void sender_start(struct sender *sender, struct talk *talk, int channel, int rounds)
{
    *sender = (struct sender){.talk = talk, .channel = channel, .rounds = rounds};
    require_ok(pthread_create(&sender->thread, NULL, send_rounds, sender));
}

static void pause_shortly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

static void await_round(const atomic_int *counter, int round)
{
    int64_t start = fair_now();
    while (*counter < round) {
        require(fair_now() - start < DEADLINE, "round %d", round);
        pause_shortly();
    }
}

static void await_request(int i)
{
    int64_t start = fair_now();
    while (words_of(i)[WANTED / 8] == 0) {
        require(fair_now() - start < DEADLINE, "channel %d was not asked", i);
        let_pass(SLUICE_MS(1));
    }
}

static void await_not_ready(uint64_t before)
{
    int64_t start = fair_now();
    while (not_ready() == before) {
        require(fair_now() - start < DEADLINE, "it was not sent");
        let_pass(SLUICE_MS(1));
    }
}

/* Channel 0 sends before channel 1 posts receives, so channel 0 asks to be notified of receives. */
static void make_slow(struct talk *talk)
{
    struct sender sender;
    sender_start(&sender, talk, 0, 1);
    await_round(&sender.begun, 1);
    let_pass(SLUICE_MS(2));
    struct sluice_handle handle = post_receive(talk, 1);
    pthread_join(sender.thread, NULL);
    await(talk->pair.channels[1], handle, SLUICE_CLASS_NONE);
    await_request(1);
}

/* In each round the sender comes first. Most sends wait until they are notified of the receive. */
TEST_WITH(talk, early_sends_wait_for_receives, (NULL, NULL))
{
    struct sender sender;
    int waited = 0;
    sender_start(&sender, talk, 0, ROUNDS);
    for (int round = 1; round <= ROUNDS; round++) {
        uint64_t before = not_ready();
        await_round(&sender.begun, round);
        pause_shortly();
        require(sender.ended < round, "round %d ended before its receive", round);
        struct sluice_handle handle = post_receive(talk, 1);
        await(talk->pair.channels[1], handle, SLUICE_CLASS_NONE);
        await_round(&sender.ended, round);
        waited += not_ready() == before;
    }
    pthread_join(sender.thread, NULL);
    /* On a busy machine receives may come later than a send waits; never all of them. */
    require(waited > 0, "none of %d sends has waited for its receive", ROUNDS);
}

static void await_hint(int i, uint64_t receives)
{
    int64_t start = fair_now();
    while (words_of(i)[0] != receives) {
        require(fair_now() - start < DEADLINE, "channel %d was notified of %llu receives", i,
                (unsigned long long)words_of(i)[0]);
        pause_shortly();
    }
}

/* A round in which the receive is known before the message. */
static void exchange_ahead(struct talk *talk, uint64_t receives)
{
    struct sluice_handle handle = post_receive(talk, 1);
    await_hint(0, receives);
    require_ok(sluice_channel_send(talk->pair.channels[0], &talk->from, 1, DEADLINE));
    await(talk->pair.channels[1], handle, SLUICE_CLASS_NONE);
}

/* A side that never waits for a receive stops asking for hints, until it was slow often enough. */
TEST_WITH(talk, hints_that_are_not_needed_end, (NULL, NULL))
{
    int round = 0;
    make_slow(talk);
    for (; words_of(1)[WANTED / 8] != 0; round++) {
        require(round < ROUNDS, "they were asked for after %d rounds without need", round);
        exchange_ahead(talk, (uint64_t)round + 2);
    }
    for (round = 0; words_of(1)[WANTED / 8] == 0; round++) {
        struct sender sender;
        require(round < ROUNDS, "hints were not requested after %d slow rounds", round);
        sender_start(&sender, talk, 0, 1);
        await_round(&sender.begun, 1);
        let_pass(SLUICE_MS(1));
        struct sluice_handle handle = post_receive(talk, 1);
        pthread_join(sender.thread, NULL);
        await(talk->pair.channels[1], handle, SLUICE_CLASS_NONE);
    }
    require(round > 10, "they were asked for again after %d slow rounds", round);
}

/* A send whose caller does not wait for it is posted at once. */
TEST_WITH(talk, posted_sends_do_not_wait, (NULL, NULL))
{
    struct fake_qp_info info;
    make_slow(talk);
    struct sluice_handle receive = post_receive(talk, 1);
    require_ok(sluice_channel_send(talk->pair.channels[0], &talk->from, 1, DEADLINE));
    await(talk->pair.channels[1], receive, SLUICE_CLASS_NONE);
    require(fake_verbs_qp(0, &info), "no queue pair");
    uint32_t posted = info.posted[FAKE_SEND];
    uint64_t before = not_ready();
    struct sluice_request request = request_of(SLUICE_OP_SEND, 0, &talk->from);
    struct sluice_handle send = post(talk->pair.channels[0], &request);
    require(fake_verbs_qp(0, &info) && info.posted[FAKE_SEND] == posted + 1, "%u posted, were %u",
            info.posted[FAKE_SEND], posted);
    await_not_ready(before);
    receive = post_receive(talk, 1);
    await(talk->pair.channels[0], send, SLUICE_CLASS_NONE);
    await(talk->pair.channels[1], receive, SLUICE_CLASS_NONE);
}

/* A prepared list waits for hints when submitted, and not when posted. */
TEST_WITH(talk, lists_wait_when_they_are_submitted, (NULL, NULL))
{
    make_slow(talk);
    struct sluice_request request = request_of(SLUICE_OP_SEND, 0, &talk->from);
    struct sluice_list *list =
        made(sluice_channel_list_prepare(talk->pair.channels[0], &request, 1));
    for (int round = 0; round < 4; round++) {
        uint64_t before = not_ready();
        struct sluice_handle receive;
        if (round % 2 == 0) {
            receive = post_receive(talk, 1);
            require_ok(sluice_list_submit(list, DEADLINE, NULL));
        } else {
            require_ok(sluice_list_post(list, DEADLINE, NULL));
            await_not_ready(before);
            receive = post_receive(talk, 1);
            await_list(list);
        }
        await(talk->pair.channels[1], receive, SLUICE_CLASS_NONE);
    }
    sluice_list_free(list);
}

/* If a peer lies about its receives, sends still complete, early or late. */
TEST_WITH(talk, lies_do_no_harm, (NULL, NULL))
{
    static const uint64_t lies[] = {0, 1, UINT64_C(1) << 63, UINT64_MAX - 5, UINT64_MAX, 1000000};
    make_slow(talk);
    for (uint32_t i = 0; i < 4 * COUNT(lies); i++) {
        struct sender sender;
        words_of(0)[0] = lies[i % COUNT(lies)];
        words_of(0)[WANTED / 8] = lies[i / 4];
        sender_start(&sender, talk, 0, 1);
        await_round(&sender.begun, 1);
        if (i % 2 == 0) {
            let_pass(SLUICE_MS(1));
        }
        struct sluice_handle handle = post_receive(talk, 1);
        /* This must hold whatever channel 0 was asked for. */
        struct sluice_handle own = post_receive(talk, 0);
        require_ok(sluice_channel_send(talk->pair.channels[1], &talk->from, 1, DEADLINE));
        pthread_join(sender.thread, NULL);
        await(talk->pair.channels[1], handle, SLUICE_CLASS_NONE);
        await(talk->pair.channels[0], own, SLUICE_CLASS_NONE);
    }
}

static void forge_key(struct slu_endpoint *endpoint)
{
    endpoint->verbs.hint_rkey ^= 0x5a5a;
}

/* A hint that the peer refuses fails the channel, with that reason. */
TEST_WITH(talk, a_hint_that_is_refused, (NULL, forge_key))
{
    struct sender sender;
    sender_start(&sender, talk, 0, 1);
    await_round(&sender.begun, 1);
    let_pass(SLUICE_MS(2));
    struct sluice_handle receive = post_receive(talk, 1);
    pthread_join(sender.thread, NULL);
    await(talk->pair.channels[1], receive, SLUICE_CLASS_NONE);
    struct sluice_completion completion;
    receive = post_receive(talk, 0);
    int error = sluice_channel_wait(talk->pair.channels[0], &receive, DEADLINE, &completion);
    require(error == 0 || error == completion.error, "%d, %s", error, sluice_last_error());
    require(completion.error != 0 && completion.status == SLUICE_STATUS_REM_ACCESS_ERR,
            "it ended with %s", sluice_status_name(completion.status));
    struct sluice_error cause = channel_error(talk->pair.channels[0]);
    require(cause.status == SLUICE_STATUS_REM_ACCESS_ERR, "%s", cause.text);
}

static void *wait_connected(void *argument)
{
    require_ok(sluice_channel_wait_connected(argument, DEADLINE));
    return NULL;
}

/* A probe has no place of its own in the queue while a hint is in flight. */
TEST_WITH(talk, a_probe_behind_a_hint, (NULL, NULL))
{
    struct fake_qp_info info;
    struct sender sender;
    pthread_t thread;
    uint32_t qpn = qpn_of(1);
    fake_verbs_hold(qpn);
    sender_start(&sender, talk, 0, 1);
    await_round(&sender.begun, 1);
    let_pass(SLUICE_MS(2));
    struct sluice_handle first = post_receive(talk, 1);
    pthread_join(sender.thread, NULL);
    await_request(1);
    struct sluice_handle second = post_receive(talk, 1);
    await_held(qpn, FAKE_SEND, 1);
    require_ok(pthread_create(&thread, NULL, wait_connected, talk->pair.channels[1]));
    let_pass(SLUICE_MS(20));
    require(fake_verbs_qp(1, &info) && info.posted[FAKE_SEND] == 1, "%u posted",
            info.posted[FAKE_SEND]);
    fake_verbs_release(qpn);
    pthread_join(thread, NULL);
    require_ok(sluice_channel_send(talk->pair.channels[0], &talk->from, 1, DEADLINE));
    await(talk->pair.channels[1], first, SLUICE_CLASS_NONE);
    await(talk->pair.channels[1], second, SLUICE_CLASS_NONE);
}

/* Without the right to write there are no hints. */
TEST_WITH(talk, channels_without_hints, (ATTR(.access = SLUICE_ACCESS_REMOTE_READ), NULL))
{
    require(decoded(&endpoints[0]).verbs.hint_addr == 0, "channel 0 has a place");
    for (int i = 0; i < 2; i++) {
        struct sender sender;
        sender_start(&sender, talk, 0, 1);
        await_round(&sender.begun, 1);
        let_pass(SLUICE_MS(1));
        struct sluice_handle receive = post_receive(talk, 1);
        pthread_join(sender.thread, NULL);
        await(talk->pair.channels[1], receive, SLUICE_CLASS_NONE);
    }
}

/* On a device that registers no more memory, channels still open. */
TEST_WITH(talk, no_region_for_hints,
          (NULL, ON_DEVICE(NULL, fake_verbs_fail(1, FAKE_CALL(FAKE_REG_MR), ENOMEM))))
{
    require(decoded(&endpoints[0]).verbs.hint_addr == 0, "channel 0 has a place");
    struct sluice_handle receive = post_receive(talk, 1);
    require_ok(sluice_channel_send(talk->pair.channels[0], &talk->from, 1, DEADLINE));
    await(talk->pair.channels[1], receive, SLUICE_CLASS_NONE);
}

/* Shared completion entries are only for requests of the program. */
TEST(no_hints_where_entries_are_scarce)
{
    struct sluice_endpoint all[8];
    struct sluice_context *context;
    struct sluice_pd *pd;
    const struct sluice_channel_attr attr = *ATTR(.send_depth = 4, .receive_depth = 4);
    fake_verbs.device[0].max_cqe = 24;
    fake_verbs.device[0].max_cq = 1;
    context = open_context();
    pd = sluice_pd_alloc(context);
    struct sluice_prepared_multichannel *prepared =
        made(sluice_multichannel_prepare(pd, COUNT(all), &attr));
    require_ok(sluice_prepared_multichannel_endpoints(prepared, all, COUNT(all)));
    for (uint32_t i = 0; i < COUNT(all); i++) {
        require(decoded(&all[i]).verbs.hint_addr == 0, "peer %u has a place", i);
    }
    sluice_prepared_multichannel_free(prepared);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

/*
 * A peer that polls its results only after posting all its receives reports the second receive too
 * late. Sends stop waiting for such reports after some rounds.
 */
TEST_WITH(talk, useless_waits_for_hints_end, (NULL, NULL))
{
    int round = 0;
    make_slow(talk);
    for (; words_of(1)[WANTED / 8] != 0; round++) {
        require(round < ROUNDS, "they were asked for after %d rounds in vain", round);
        struct sluice_handle first = post_receive(talk, 1), second = post_receive(talk, 1);
        for (int i = 0; i < 2; i++) {
            require_ok(sluice_channel_send(talk->pair.channels[0], &talk->from, 1, DEADLINE));
        }
        await(talk->pair.channels[1], first, SLUICE_CLASS_NONE);
        await(talk->pair.channels[1], second, SLUICE_CLASS_NONE);
    }
}

/*
 * A hint that the driver refuses ends the queue pair, as the device may execute it later all the
 * same.
 */
TEST_WITH(talk, a_refused_post_of_a_hint, (NULL, NULL), .times = 2)
{
    make_slow(talk);
    let_pass(SLUICE_MS(5));
    struct sluice_completion completion;
    require_result(sluice_channel_poll(talk->pair.channels[1], &completion, 1), 0);
    fake_verbs.refused_runs = _i;
    fake_verbs_refuse(qpn_of(1), FAKE_SEND, 1, 0, ENOMEM);
    struct sluice_handle receive = post_receive(talk, 1);
    int error = sluice_channel_wait(talk->pair.channels[1], &receive, DEADLINE, &completion);
    require(error == 0 || error == completion.error, "%d, %s", error, sluice_last_error());
    require(completion.error != 0, "it ended with %s", sluice_status_name(completion.status));
    struct sluice_error cause = channel_error(talk->pair.channels[1]);
    require(cause.status == SLUICE_STATUS_GENERAL_ERR, "%s: %s", sluice_status_name(cause.status),
            cause.text);
}

/* No two queue pairs have the same place, however many there are and are reset. */
TEST_WITH(sides, places_of_many, ())
{
    static struct sluice_endpoint all[200];
    for (int round = 0; round < 3; round++) {
        struct sluice_prepared_multichannel *prepared =
            made(sluice_multichannel_prepare(sides->pds[0], COUNT(all), NULL));
        require_ok(sluice_prepared_multichannel_endpoints(prepared, all, COUNT(all)));
        for (uint32_t i = 0; i < COUNT(all); i++) {
            for (uint32_t k = 0; k < i; k++) {
                require(decoded(&all[i]).verbs.hint_addr != decoded(&all[k]).verbs.hint_addr,
                        "peers %u and %u have the same place", k, i);
            }
        }
        /* 32 of them fit a page. */
        require(fake_verbs.live.mrs == (COUNT(all) + 31) / 32, "%u regions", fake_verbs.live.mrs);
        sluice_prepared_multichannel_free(prepared);
    }
}

int main(void)
{
    return run_verbs("verbs_hints", WIRE_SELF, 60);
}
