/* SPDX-License-Identifier: MIT */
/*
 * Work that all ranks do at the same time. The number of the assembly determines who sends how much
 * to whom; each rank chooses by its own dice the calls that do its part.
 */
#include "soak.h"

#define PLAN_KEYS (UINT64_C(1) << 48)
#define EVERYBODY 0xff
#define UNWRITTEN UINT64_MAX /* offset of what lands elsewhere */

enum style {
    STYLE_ALL = 0,   /* all ranks with all ranks */
    STYLE_RING,      /* each rank sends to the next, more than the queues hold */
    STYLE_OUT,       /* a root to all others */
    STYLE_IN,        /* the same in the opposite direction */
    STYLE_MULTICAST, /* the same to all others */
    STYLE_DUETS,     /* pair by pair, on channels of their own */
    STYLE_WINDOW,
    STYLES
};

static const char *const style_names[STYLES] = {"all to all", "ring",  "scatter", "gather",
                                                "multicast",  "duets", "window"};

static uint64_t plan_length(uint64_t id, uint32_t from, uint32_t to, uint32_t number)
{
    struct rng rng = {mix(key_of(id | PLAN_KEYS, from, to, number))};
    bool large = number == 0 && one_in(&rng, 24);
    uint64_t most = large ? LARGEST : SMALL;
    return random_size(&rng, most < soak.max_message ? most : soak.max_message);
}

static uint64_t plan_key(uint64_t id, uint32_t from, uint32_t to, uint32_t number)
{
    return key_of(id | PLAN_KEYS, from, to, number);
}

/* All messages of an assembly have immediates, or none has. */
static bool has_immediates(uint64_t id)
{
    return mix(id ^ PLAN_KEYS) % 4 == 0;
}

static void add(struct batch *batch, struct flight *flight)
{
    expect(flight && batch->count < BATCH, "no room for a plan: %u flights are free",
           soak.free_count);
    batch->flights[batch->count++] = flight;
}

static void add_receive(struct batch *batch, struct office *office, uint64_t id, uint32_t from,
                        uint32_t number)
{
    uint64_t length = plan_length(id, from, soak.index, number);
    uint64_t room = length + (length <= SMALL ? random_below(&soak.rng, SMALL - length + 1) : 0);
    if (!is_up(from)) {
        return;
    }
    struct flight *flight = make_flight(office, from, FLY_PLAN_IN, SLUICE_OP_RECEIVE, room);
    add(batch, flight);
    flight->planned = length;
    flight->number = number;
    flight->key = plan_key(id, from, soak.index, number);
    flight->immediate = has_immediates(id);
}

static void add_send(struct batch *batch, struct office *office, uint64_t id, uint32_t to,
                     uint32_t number)
{
    uint64_t length = plan_length(id, soak.index, to, number);
    if (!is_up(to)) {
        return;
    }
    struct flight *flight = make_flight(office, to, FLY_PLAN_OUT, SLUICE_OP_SEND, length);
    add(batch, flight);
    flight->number = number;
    flight->key = plan_key(id, soak.index, to, number);
    fill_pattern(flight->bytes, 0, length, flight->key);
    if (has_immediates(id)) {
        flight->request.flags = SLUICE_IMMEDIATE;
        flight->request.immediate = (uint32_t)flight->key;
    }
}

/* Each of these methods posts all requests before it waits for any. */
static void perform_together(struct office *office, struct batch *batch)
{
    static const enum method methods[] = {BY_SUBMIT,      BY_SCATTER_GATHER, BY_SCOPE_LIST,
                                          BY_SCOPE_NAMED, BY_POST,           BY_NAMED};
    enum method method;
    if (batch->count == 0) {
        return;
    }
    do {
        method = methods[random_below(&soak.rng, COUNT(methods))];
    } while (!fits_method(office, batch, method));
    perform(office, batch, method);
}

/* Here the other side does not wait for this one. */
static void perform_alone(struct office *office, struct batch *batch)
{
    enum method method;
    if (batch->count == 0) {
        return;
    }
    do {
        method = (enum method)random_below(&soak.rng, METHODS);
    } while (!fits_method(office, batch, method));
    perform(office, batch, method);
}

static bool is_member(uint32_t mask, uint32_t rank)
{
    return mask >> rank & 1;
}

static void meet_all(uint64_t id, uint32_t mask)
{
    struct office *office = &soak.assembly;
    struct batch receives = {.count = 0};
    struct batch batch = {.count = 0};
    uint32_t each = 1 + (uint32_t)(mix(id) % (BATCH / (2 * soak.size)) % 3);
    for (uint32_t number = 0; number < each; number++) {
        for (uint32_t rank = 0; rank < soak.size; rank++) {
            if (is_member(mask, rank)) {
                add_receive(&receives, office, id, rank, number);
            }
        }
    }
    bool before = receives.count > 0 && one_in(&soak.rng, 3);
    if (before) {
        perform(office, &receives, one_in(&soak.rng, 2) ? BY_POSTED_LIST : BY_POST);
    } else {
        batch = receives;
    }
    for (uint32_t number = 0; number < each; number++) {
        for (uint32_t rank = 0; rank < soak.size; rank++) {
            if (is_member(mask, rank)) {
                add_send(&batch, office, id, rank, number);
            }
        }
    }
    if (before) {
        perform_alone(office, &batch);
    } else {
        perform_together(office, &batch);
    }
}

/* The member after a rank, and the one before. */
static uint32_t next_member(uint32_t mask, uint32_t rank, uint32_t step)
{
    do {
        rank = (rank + step) % soak.size;
    } while (!is_member(mask, rank));
    return rank;
}

static void meet_ring(uint64_t id, uint32_t mask)
{
    struct batch batch = {.count = 0};
    uint32_t next = next_member(mask, soak.index, 1);
    uint32_t last = next_member(mask, soak.index, soak.size - 1);
    for (uint32_t number = 0; number < BATCH / 2; number++) {
        add_send(&batch, &soak.assembly, id, next, number);
        add_receive(&batch, &soak.assembly, id, last, number);
    }
    if (batch.count > 0) {
        perform(&soak.assembly, &batch, one_in(&soak.rng, 2) ? BY_SUBMIT : BY_SCATTER_GATHER);
    }
}

static uint32_t pick_root(uint64_t id, uint32_t mask)
{
    uint32_t rank = (uint32_t)(mix(id + 1) % soak.size);
    return is_member(mask, rank) ? rank : next_member(mask, rank, 1);
}

/* From the root to the others, or from them to the root. */
static void meet_root(uint64_t id, uint32_t mask, bool out)
{
    struct batch batch = {.count = 0};
    uint32_t root = pick_root(id, mask);
    uint32_t each = 1 + (uint32_t)(mix(id) % 3);
    for (uint32_t rank = 0; rank < soak.size; rank++) {
        if (!is_member(mask, rank) || rank == soak.index || (soak.index != root && rank != root)) {
            continue;
        }
        for (uint32_t number = 0; number < each; number++) {
            if ((soak.index == root) == out) {
                add_send(&batch, &soak.assembly, id, rank, number);
            } else {
                add_receive(&batch, &soak.assembly, id, rank, number);
            }
        }
    }
    perform_alone(&soak.assembly, &batch);
}

static void meet_multicast(uint64_t id, uint32_t mask)
{
    struct batch batch = {.count = 0};
    uint32_t root = pick_root(id, mask);
    uint64_t length = plan_length(id, root, EVERYBODY, 1);
    for (uint32_t rank = 0; rank < soak.size; rank++) {
        if (!is_member(mask, rank) || rank == soak.index || !is_up(rank) ||
            (soak.index != root && rank != root)) {
            continue;
        }
        bool out = soak.index == root;
        struct flight *flight = make_flight(&soak.assembly, rank, out ? FLY_PLAN_OUT : FLY_PLAN_IN,
                                            out ? SLUICE_OP_SEND : SLUICE_OP_RECEIVE, length);
        add(&batch, flight);
        flight->key = plan_key(id, root, EVERYBODY, 1);
        if (out) {
            fill_pattern(flight->bytes, 0, length, flight->key);
        }
    }
    if (soak.index == root && batch.count > 0) {
        perform_multicast(&soak.assembly, &batch);
    } else {
        perform_alone(&soak.assembly, &batch);
    }
}

/* Duets. */

static void point_at(struct flight *flight, size_t offset, uint64_t length)
{
    int result = sluice_remote_mr_slice(&soak.peers[flight->peer].common, offset, length,
                                        &flight->request.remote);
    expect(result == 0, "%s", sluice_last_error());
}

/* Operations that need no part of the other side. */
static void add_one_sided(struct batch *batch, struct office *line)
{
    struct peer *peer = &soak.peers[line->rank];
    uint64_t length = random_size(&soak.rng, SMALL);
    struct flight *flight = make_flight(line, line->rank, FLY_BOARD, SLUICE_OP_READ, length);
    add(batch, flight);
    flight->offset = random_below(&soak.rng, BOARD - length + 1);
    flight->key = board_key(line->rank, peer->epoch);
    expect(sluice_remote_mr_slice(&peer->board, flight->offset, length, &flight->request.remote) ==
               0,
           "%s", sluice_last_error());
    flight = make_flight(line, line->rank, FLY_PLAN_OUT, SLUICE_OP_WRITE, 8);
    add(batch, flight);
    point_at(flight, offsetof(struct common, spots) + 8 * soak.index, 8);
    for (int swap = 0; soak.atomics && swap < 2; swap++) {
        flight = make_word_of(line, line->rank, swap, offsetof(struct common, line_sum));
        add(batch, flight);
        flight->expected = peer->line_sum;
        if (swap) {
            flight->request.operand[0] = peer->line_sum + 1; /* a wrong expectation */
            flight->request.operand[1] = 0;
        } else {
            flight->request.operand[0] = 3;
            peer->line_sum += 3;
        }
    }
}

/* A write that takes a receive. */
static void add_immediate(struct batch *batch, struct office *line, bool out)
{
    struct flight *flight = make_flight(line, line->rank, out ? FLY_PLAN_OUT : FLY_PLAN_IN,
                                        out ? SLUICE_OP_WRITE : SLUICE_OP_RECEIVE, 8);
    add(batch, flight);
    if (out) {
        point_at(flight, offsetof(struct common, spots) + 8 * soak.index, 8);
        flight->request.flags = SLUICE_IMMEDIATE;
        flight->request.immediate = soak.index;
    } else {
        flight->offset = UNWRITTEN;
        flight->immediate = true;
        flight->key = line->rank;
    }
}

static void look_at_line(struct office *line)
{
    struct sluice_channel_info info = {.size = sizeof(info)};
    struct sluice_error error = {.size = sizeof(error)};
    struct sluice_counters counters = {.size = sizeof(counters)};
    int state = CALL(channel_state, line->channel);
    int found = CALL(channel_error, line->channel, &error);
    expect(CALL(channel_query, line->channel, &info) == 0, "%s", sluice_last_error());
    expect(CALL(channel_counters, line->channel, &counters) == 0 && counters.forgotten == 0, "%s",
           sluice_last_error());
    expect(CALL(channel_wake, line->channel) == 0, "%s", sluice_last_error());
    if (state == SLUICE_STATE_FAILED || found == 1) {
        suspect(line->rank, "its state", found == 1 ? error.error : 0);
    }
}

static void add_part(struct batch *batch, struct office *line, uint64_t id, uint64_t dice, bool out)
{
    uint32_t each = 1 + (uint32_t)(dice >> 8 & 7);
    for (uint32_t number = 0; number < each; number++) {
        if (out) {
            add_send(batch, line, id, line->rank, number);
        } else {
            add_receive(batch, line, id, line->rank, number);
        }
    }
    if (dice >> 1 & 1) {
        add_immediate(batch, line, out);
    }
    if (out) {
        add_one_sided(batch, line);
    }
}

static void play_duet(uint64_t id, struct office *line)
{
    bool first = soak.index < line->rank;
    uint64_t dice =
        mix(key_of(id, first ? soak.index : line->rank, first ? line->rank : soak.index, 0));
    bool in_turns = dice & 1;
    struct batch batch = {.count = 0};
    if (in_turns) {
        add_part(&batch, line, id, dice, first);
        perform_alone(line, &batch);
        settle(line);
        if (!is_up(line->rank)) {
            return;
        }
        batch.count = 0;
        add_part(&batch, line, id, dice, !first);
        perform_alone(line, &batch);
    } else {
        add_part(&batch, line, id, dice, false);
        add_part(&batch, line, id, dice, true);
        perform_together(line, &batch);
    }
    settle(line);
    look_at_line(line);
}

/* Pairs meet in one order, so that no ranks wait in a circle. */
static void meet_duets(uint64_t id, uint32_t mask)
{
    for (uint32_t one = 0; one < soak.size; one++) {
        for (uint32_t other = one + 1; other < soak.size; other++) {
            if (!is_member(mask, one) || !is_member(mask, other) ||
                (soak.index != one && soak.index != other)) {
                continue;
            }
            struct office *line = &soak.lines[soak.index == one ? other : one];
            if (line->channel && is_up(line->rank)) {
                play_duet(id, line);
            }
        }
    }
}

void assemble(uint64_t id, uint32_t mask)
{
    enum style style = (enum style)(mix(soak.options.seed ^ id) % STYLES);
    set_task("assembly %llu, %s", (unsigned long long)id, style_names[style]);
    switch (style) {
    case STYLE_ALL:
        meet_all(id, mask);
        break;
    case STYLE_RING:
        meet_ring(id, mask);
        break;
    case STYLE_OUT:
    case STYLE_IN:
        meet_root(id, mask, style == STYLE_OUT);
        break;
    case STYLE_MULTICAST:
        meet_multicast(id, mask);
        break;
    case STYLE_DUETS:
        meet_duets(id, mask);
        return;
    default:
        assemble_window(id, mask, pick_root(id, mask));
        break;
    }
    settle(&soak.assembly);
}
