/* SPDX-License-Identifier: MIT */
/*
 * Batches: a list of operations of any kind to any peers, with one deadline and a result for each,
 * that may be submitted again. It streams through queues that are too short for it, slow peers
 * delay no others, operations that are too long are split, and mistakes are refused before anything
 * of the list is done.
 */
#include <pthread.h>
#include <stdlib.h>

#include "../support/fault.h"

#define PEERS 5
#define DEPTH 4
#define EACH 100 /* requests to each peer */
#define ALL (PEERS * EACH)
#define BYTES 300

static const struct sluice_channel_attr shallow = {
    .size = sizeof(shallow), .send_depth = DEPTH, .receive_depth = DEPTH, .read_depth = 2};

/* A multichannel whose peer i is connected with peer i of another one. */
struct side {
    struct sluice_multichannel *all;
    struct memory out, in;
    struct sluice_sge sges[ALL];
    struct sluice_request requests[ALL];
    struct sluice_completion completions[ALL];
    uint32_t count;
    pthread_t thread;
    int64_t deadline;
    int result;
    struct span ended; /* when its submit returned */
};

struct twins {
    struct sides sides;
    struct side near, far;
};

static struct twins *twins_open(const struct sluice_channel_attr *attr, size_t bytes)
{
    struct twins *twins = calloc(1, sizeof(*twins));
    struct sluice_prepared_multichannel *prepared[2];
    struct sluice_endpoint endpoints[2][PEERS];
    require(twins, "%zu", bytes);
    sides_open(&twins->sides);
    for (int i = 0; i < 2; i++) {
        struct side *side = i ? &twins->far : &twins->near;
        prepared[i] = made(sluice_multichannel_prepare(twins->sides.pds[i], PEERS, attr));
        require_ok(sluice_prepared_multichannel_endpoints(prepared[i], endpoints[i], PEERS));
        memory_open(&side->out, twins->sides.pds[i], bytes);
        memory_open(&side->in, twins->sides.pds[i], bytes);
        side->deadline = DEADLINE;
    }
    for (int i = 0; i < 2; i++) {
        struct side *side = i ? &twins->far : &twins->near;
        side->all = made(sluice_prepared_multichannel_handshake(prepared[i], endpoints[!i], PEERS));
    }
    return twins;
}

static void twins_close(struct twins *twins)
{
    struct side *sides[] = {&twins->near, &twins->far};
    for (int i = 0; i < 2; i++) {
        sluice_multichannel_close(sides[i]->all);
        memory_close(&sides[i]->out);
        memory_close(&sides[i]->in);
    }
    sides_close(&twins->sides);
    free(twins);
}

/*
 * Adds a request with the bytes at offset of out or in; if one-sided, with memory of the other
 * side.
 */
static struct sluice_request *add(struct side *side, const struct side *other, uint32_t opcode,
                                  uint32_t peer, size_t offset, size_t bytes)
{
    bool takes = opcode == SLUICE_OP_RECEIVE || opcode == SLUICE_OP_READ;
    uint32_t at = side->count++;
    require(at < ALL, "%u", at);
    side->sges[at] = memory_sge(takes ? &side->in : &side->out, offset, bytes);
    side->requests[at] = request_of(opcode, peer, &side->sges[at]);
    side->requests[at].user_data = 10000 + at;
    if (opcode >= SLUICE_OP_WRITE) {
        side->requests[at].remote = memory_remote(takes ? &other->out : &other->in, offset, bytes);
    }
    return &side->requests[at];
}

static void submit(struct side *side)
{
    memset(side->completions, 0xcc, sizeof(side->completions));
    side->result = sluice_multichannel_submit(side->all, side->requests, side->count,
                                              side->deadline, side->completions);
    side->ended = span_begin();
}

static void *submit_in_thread(void *argument)
{
    submit(argument);
    return NULL;
}

/* Both sides submit their lists at the same time. */
static void submit_both(struct twins *twins)
{
    pthread_create(&twins->far.thread, NULL, submit_in_thread, &twins->far);
    submit(&twins->near);
    pthread_join(twins->far.thread, NULL);
}

static void check_request(const struct side *side, uint32_t i)
{
    const struct sluice_completion *completion = &side->completions[i];
    require_equal(completion->user_data, 10000 + i, completion->peer, side->requests[i].peer,
                  completion->opcode, side->requests[i].opcode);
}

static void check_success(const struct side *side)
{
    require(side->result == 0, "%d", side->result);
    for (uint32_t i = 0; i < side->count; i++) {
        check_request(side, i);
        require_class(&side->completions[i], SLUICE_CLASS_NONE);
        require(side->completions[i].bytes == side->sges[i].length, "result %u: %llu bytes", i,
                (unsigned long long)side->completions[i].bytes);
    }
}

/* Returns the opcode of request i of the near side; the mix differs by peer. */
static uint32_t kind_of(uint32_t i)
{
    static const uint32_t kinds[] = {SLUICE_OP_SEND, SLUICE_OP_READ, SLUICE_OP_RECEIVE,
                                     SLUICE_OP_WRITE};
    return kinds[(i / PEERS + i % PEERS) % COUNT(kinds)];
}

/* Request i uses the bytes i * BYTES; the far side answers messages in their order. */
static void make_mix(struct twins *twins)
{
    for (uint32_t i = 0; i < ALL; i++) {
        uint32_t kind = kind_of(i);
        add(&twins->near, &twins->far, kind, i % PEERS, (size_t)i * BYTES, BYTES);
        if (kind == SLUICE_OP_SEND || kind == SLUICE_OP_RECEIVE) {
            add(&twins->far, &twins->near,
                kind == SLUICE_OP_SEND ? SLUICE_OP_RECEIVE : SLUICE_OP_SEND, i % PEERS,
                (size_t)i * BYTES, BYTES);
        }
    }
}

/* New bytes on both sides, which the next submit exchanges. */
static void fill(struct twins *twins, uint64_t key)
{
    pattern_fill(twins->near.out.bytes, twins->near.out.length, key);
    pattern_fill(twins->far.out.bytes, twins->far.out.length, key + 1);
    memset(twins->near.in.bytes, 0, twins->near.in.length);
    memset(twins->far.in.bytes, 0, twins->far.in.length);
}

static void check_mix(const struct twins *twins)
{
    for (uint32_t i = 0; i < ALL; i++) {
        bool takes = kind_of(i) == SLUICE_OP_RECEIVE || kind_of(i) == SLUICE_OP_READ;
        const struct side *to = takes ? &twins->near : &twins->far;
        const struct side *from = takes ? &twins->far : &twins->near;
        size_t offset = (size_t)i * BYTES;
        require(memcmp(to->in.bytes + offset, from->out.bytes + offset, BYTES) == 0, "request %u",
                i);
        value_check((takes ? &twins->far : &twins->near)->in.bytes + offset, BYTES, 0);
    }
}

TEST(mixed_list_to_five_peers_streams)
{
    struct twins *twins = twins_open(&shallow, (size_t)ALL * BYTES);
    make_mix(twins);
    fill(twins, 1);
    submit_both(twins);
    check_success(&twins->near);
    check_success(&twins->far);
    check_mix(twins);
    twins_close(twins);
}

/* The arrays are only read: they can be reused, on this connection and with or without results. */
TEST(the_same_list_is_submitted_again)
{
    struct twins *twins = twins_open(&shallow, (size_t)ALL * BYTES);
    struct sluice_request *requests = malloc(sizeof(twins->near.requests));
    struct sluice_sge *sges = malloc(sizeof(twins->near.sges));
    require(requests && sges, "%u", ALL);
    make_mix(twins);
    memcpy(requests, twins->near.requests, sizeof(twins->near.requests));
    memcpy(sges, twins->near.sges, sizeof(twins->near.sges));
    for (uint64_t i = 0; i < 4; i++) {
        fill(twins, 10 * i);
        submit_both(twins);
        check_success(&twins->near);
        check_success(&twins->far);
        check_mix(twins);
        require(memcmp(requests, twins->near.requests, sizeof(twins->near.requests)) == 0 &&
                    memcmp(sges, twins->near.sges, sizeof(twins->near.sges)) == 0,
                "the list changed, submit %llu", (unsigned long long)i);
    }
    free(requests);
    free(sges);
    twins_close(twins);
}

/*
 * One peer never takes part; its requests stand first in the list. Those of the others are all done
 * long before the deadline, which only that one misses.
 */
#define HELD_UP 2

static void hold_up(uint32_t opcode)
{
    uint32_t answer = opcode == SLUICE_OP_SEND ? SLUICE_OP_RECEIVE : SLUICE_OP_SEND;
    struct twins *twins = twins_open(&shallow, (size_t)ALL * BYTES);
    struct side *near = &twins->near;
    struct side *far = &twins->far;
    for (uint32_t i = 0; i < EACH; i++) {
        add(near, far, opcode, HELD_UP, (size_t)i * BYTES, BYTES);
    }
    for (uint32_t i = EACH; i < ALL; i++) {
        uint32_t peer = (HELD_UP + 1 + i % (PEERS - 1)) % PEERS;
        add(near, far, opcode, peer, (size_t)i * BYTES, BYTES);
        add(far, near, answer, peer, (size_t)i * BYTES, BYTES);
    }
    fill(twins, 5);
    near->deadline = short_run() ? SLUICE_S(5) : SLUICE_S(2);
    struct span start = span_begin();
    submit_both(twins);
    check_success(far);
    require_took(span_between(start, far->ended), 0, near->deadline / 2);
    require_took(span_between(start, near->ended), near->deadline,
                 near->deadline + SLUICE_MS(1500));
    require(near->result == -ETIMEDOUT, "%d", near->result);
    for (uint32_t i = 0; i < ALL; i++) {
        const struct sluice_completion *completion = &near->completions[i];
        check_request(near, i);
        if (i >= EACH) {
            require_class(completion, SLUICE_CLASS_NONE);
            continue;
        }
        require(completion->error == -ETIMEDOUT &&
                    completion->error_class == SLUICE_CLASS_TIMEOUT &&
                    completion->status == SLUICE_STATUS_DEADLINE,
                "request %u: error %d, status %u", i, completion->error, completion->status);
    }
    for (uint32_t peer = 0; peer < PEERS; peer++) {
        require_result(sluice_multichannel_peer_state(near->all, peer),
                       peer == HELD_UP ? SLUICE_STATE_FAILED : SLUICE_STATE_READY);
    }
    twins_close(twins);
}

TEST(peer_that_never_receives_holds_up_no_other)
{
    hold_up(SLUICE_OP_SEND);
}

TEST(peer_that_never_sends_holds_up_no_other)
{
    hold_up(SLUICE_OP_RECEIVE);
}

/* More parts than the queue is deep, among others, and for all peers at once. */
#define MESSAGE 4096
#define LONG (3 * MESSAGE + 1)

static void split(uint32_t depth)
{
    const struct sluice_channel_attr attr =
        *ATTR(.send_depth = depth, .receive_depth = DEPTH, .max_message = MESSAGE);
    struct twins *twins = twins_open(&attr, (size_t)4 * PEERS * LONG);
    struct side *near = &twins->near;
    struct side *far = &twins->far;
    size_t at = 0;
    for (uint32_t i = 0; i < 4 * PEERS; i++, at += LONG) {
        bool is_long = i / PEERS < 2;
        uint32_t kind = i / PEERS == 0   ? SLUICE_OP_WRITE
                        : i / PEERS == 1 ? SLUICE_OP_READ
                        : i / PEERS == 2 ? SLUICE_OP_SEND
                                         : SLUICE_OP_WRITE;
        struct sluice_request *request =
            add(near, far, kind, i % PEERS, at, is_long ? LONG : MESSAGE);
        if (i / PEERS == 0) {
            /* A write whose arrival is reported once, when all of its bytes are there. */
            request->flags = SLUICE_IMMEDIATE;
            request->immediate = 900 + i;
            add(far, near, SLUICE_OP_RECEIVE, i % PEERS, 0, 0);
        }
        if (kind == SLUICE_OP_SEND) {
            add(far, near, SLUICE_OP_RECEIVE, i % PEERS, at, MESSAGE);
        }
    }
    for (uint64_t round = 0; round < 2; round++) {
        fill(twins, 40 + round);
        submit_both(twins);
        check_success(near);
        require(far->result == 0, "%d", far->result);
        for (uint32_t i = 0; i < PEERS; i++) {
            require_equal(far->completions[i].flags, (SLUICE_IMMEDIATE | SLUICE_WRITTEN),
                          far->completions[i].immediate, 900 + i);
        }
        at = 0;
        for (uint32_t i = 0; i < 4 * PEERS; i++, at += LONG) {
            const struct side *to = i / PEERS == 1 ? near : far;
            const struct side *from = i / PEERS == 1 ? far : near;
            size_t length = i / PEERS < 2 ? LONG : MESSAGE;
            require(memcmp(to->in.bytes + at, from->out.bytes + at, length) == 0, "request %u", i);
            value_check(to->in.bytes + at + length, LONG - length, 0);
        }
    }
    twins_close(twins);
}

TEST(long_reads_and_writes_are_split_in_a_list)
{
    for (uint32_t depth = 1; depth <= 5; depth++) {
        split(depth);
    }
}

/* Ten good requests of all kinds and to all peers, and a bad one at the end. */
TEST(wrong_request_refuses_the_whole_list)
{
    static const uint32_t kinds[] = {SLUICE_OP_SEND, SLUICE_OP_WRITE};
    const struct sluice_channel_attr attr = {.size = sizeof(attr), .max_message = MESSAGE};
    struct twins *twins = twins_open(&attr, (size_t)2 * MESSAGE + 11 * BYTES);
    struct side *near = &twins->near;
    struct side *far = &twins->far;
    struct sluice_completion completion;
    struct sluice_handle handles[PEERS];
    for (uint32_t i = 0; i < 10; i++) {
        add(near, far, kinds[i / PEERS], i % PEERS, (size_t)i * BYTES, BYTES);
    }
    add(near, far, SLUICE_OP_WRITE, 0, (size_t)10 * BYTES, BYTES);
    for (uint32_t i = 0; i < PEERS; i++) {
        add(far, near, SLUICE_OP_RECEIVE, i, (size_t)i * BYTES, BYTES);
    }
    fill(twins, 60);
    require_result(sluice_multichannel_post(far->all, far->requests, PEERS, DEADLINE, handles),
                   PEERS);
    /* The mistakes that there are, are in test_arguments. */
    near->requests[10].remote.length = BYTES - 1;
    submit(near);
    require_error(near->result, -ERANGE, "request 10");
    value_check((const uint8_t *)near->completions, sizeof(near->completions), 0xcc);
    near->requests[10].remote.length = BYTES;
    require_result(sluice_multichannel_submit(near->all, near->requests, 11, -1, NULL), -EINVAL);
    require_result(sluice_multichannel_submit(near->all, NULL, 11, DEADLINE, NULL), -EINVAL);
    /* No message was sent, and no memory written. */
    struct sluice_counters counters = {.size = sizeof(counters)};
    require_ok(sluice_multichannel_counters(near->all, &counters));
    for (size_t i = 0; i < COUNT(counters.requests); i++) {
        require(counters.requests[i] == 0, "%llu of opcode %zu",
                (unsigned long long)counters.requests[i], i);
    }
    let_pass(SLUICE_MS(20));
    require_result(sluice_multichannel_poll(far->all, &completion, 1), 0);
    value_check(far->in.bytes, far->in.length, 0);
    /* The list can be submitted again. */
    submit(near);
    check_success(near);
    for (uint32_t i = 0; i < PEERS; i++) {
        require_ok(sluice_multichannel_wait(far->all, &handles[i], DEADLINE, &completion));
        require_class(&completion, SLUICE_CLASS_NONE);
    }
    require(memcmp(far->in.bytes, near->out.bytes, (size_t)11 * BYTES) == 0, "it is not there%s",
            "");
    twins_close(twins);
}

/* Requests to peers that are not connected, or have failed, are refused; the others are done. */
TEST(requests_to_peers_that_are_gone_are_refused_alone)
{
    struct twins *twins = twins_open(&shallow, (size_t)ALL * BYTES);
    struct side *near = &twins->near;
    struct side *far = &twins->far;
    struct sluice_endpoint endpoint;
    for (uint32_t i = 0; i < ALL; i++) {
        add(near, far, SLUICE_OP_WRITE, i % PEERS, (size_t)i * BYTES, BYTES);
    }
    struct sluice_request bad = near->requests[3];
    bad.remote.rkey ^= 0x5a5a5a5a;
    require_result(sluice_multichannel_submit(near->all, &bad, 1, DEADLINE, NULL), -EACCES);
    require_ok(sluice_multichannel_peer_reset(near->all, 1, &endpoint));
    fill(twins, 70);
    submit(near);
    require(near->result == -ENOTCONN, "%d: %s", near->result, sluice_last_error());
    for (uint32_t i = 0; i < ALL; i++) {
        const struct sluice_completion *completion = &near->completions[i];
        bool gone = i % PEERS == 1 || i % PEERS == 3;
        check_request(near, i);
        require(completion->error == (gone ? -ENOTCONN : 0), "request %u: %d", i,
                completion->error);
        if (gone) {
            value_check(far->in.bytes + (size_t)i * BYTES, BYTES, 0);
        } else {
            require(memcmp(far->in.bytes + (size_t)i * BYTES, near->out.bytes + (size_t)i * BYTES,
                           BYTES) == 0,
                    "request %u", i);
        }
    }
    twins_close(twins);
}

/*
 * The deadline is that of the whole list, however many requests there are and whenever they are
 * posted.
 */
TEST(the_deadline_is_of_the_whole_list)
{
    struct twins *twins = twins_open(&shallow, (size_t)ALL * BYTES);
    struct side *near = &twins->near;
    for (uint32_t i = 0; i < ALL; i++) {
        add(near, &twins->far, SLUICE_OP_SEND, i % PEERS, (size_t)i * BYTES, BYTES);
    }
    near->deadline = SLUICE_MS(200);
    struct span start = span_begin();
    submit(near);
    require_took(span_between(start, near->ended), near->deadline,
                 near->deadline + SLUICE_MS(1500));
    require(near->result == -ETIMEDOUT, "%d", near->result);
    for (uint32_t i = 0; i < ALL; i++) {
        check_request(near, i);
        require(near->completions[i].error == -ETIMEDOUT, "request %u: %d", i,
                near->completions[i].error);
    }
    twins_close(twins);
}

int main(void)
{
    return run_tests("submit", 40);
}
