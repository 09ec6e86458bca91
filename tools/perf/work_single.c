/* SPDX-License-Identifier: MIT */
/*
 * One-sided operations on one peer, one at a time. The peer of a read or an atomic
 * operation does nothing; the peer of a write polls its memory, and writes back.
 */
#include <inttypes.h>
#include <sched.h>
#include <string.h>

#include "perf.h"

/*
 * Spins on memory between two polls, which serve a peer that cannot write by itself; between two
 * yields; and between two checks of the peer and the clock.
 */
#define SPINS_A_POLL 16
#define SPINS_A_TURN 512
#define SPINS_A_LOOK 32768

static int do_one(struct team *team, const struct sluice_request *request, struct run *run,
                  const char *what)
{
    uint64_t begin = ticks_now(), taken;

    if (calls_do(team, &calls_any, request, 1, what) != 0)
        return -1;
    taken = ticks_now() - begin;
    histogram_add(run->times, taken);
    run->ticks += taken;
    return 0;
}

/* Writes the memory that the leader reads or swaps, before it begins. */
int watch_follow(struct team *team, struct run *run)
{
    for (uint64_t i = 0; content_matters(team) && i < team->slots && run->size > 0; i++)
        content_write(team, 0, i, run->size);
    *place_word_in(team, 0) = 0;
    return team_meet(team);
}

int read_lat_lead(struct team *team, struct run *run)
{
    if (team_meet(team) != 0)
        return -1;
    for (uint64_t i = 0; i < run->count; i++) {
        uint64_t slot = i % team->slots;
        struct sluice_request read = {.opcode = SLUICE_OP_READ,
                                      .sge_count = 1,
                                      .sge = place_in(team, 0, slot, run->size),
                                      .remote = place_remote_out(team, 0, slot, run->size)};

        if (do_one(team, &read, run, "read") != 0 || content_check(team, run, 0, slot) != 0)
            return -1;
    }
    return 0;
}

/* Always checks the old value, which shows that each operation was done exactly once. */
int cas_lat_lead(struct team *team, struct run *run)
{
    uint64_t *old = place_word_out(team, 0);

    if (team_meet(team) != 0)
        return -1;
    for (uint64_t i = 0; i < run->count; i++) {
        struct sluice_request swap = {.opcode = SLUICE_OP_COMPARE_SWAP,
                                      .sge_count = 1,
                                      .sge = place_word_sge(team, 0),
                                      .remote = place_remote_word(team, 0),
                                      .operand = {i, i + 1}};

        *old = UINT64_MAX;
        if (do_one(team, &swap, run, "compare and swap") != 0)
            return -1;
        if (*old != i)
            return team_complain(team, "cas_lat: the word was %" PRIu64 ", not %" PRIu64, *old, i);
    }
    return 0;
}

/* Writes the message, and then the word; a message of 8 bytes is the word itself. */
static int write_out(struct team *team, const struct run *run, uint64_t number)
{
    struct sluice_request list[2];
    uint32_t count = 0;

    *place_word_out(team, 0) = number + 1;
    if (run->size > sizeof(uint64_t))
        list[count++] =
            (struct sluice_request){.opcode = SLUICE_OP_WRITE,
                                    .flags = calls_flags(team, run->size),
                                    .sge_count = 1,
                                    .sge = place_out(team, 0, number, run->size),
                                    .remote = place_remote_in(team, 0, number, run->size)};
    list[count++] = (struct sluice_request){.opcode = SLUICE_OP_WRITE,
                                            .flags = calls_flags(team, sizeof(uint64_t)),
                                            .sge_count = 1,
                                            .sge = place_word_sge(team, 0),
                                            .remote = place_remote_word(team, 0)};
    return calls_do(team, &calls_any, list, count, "write");
}

static int watch(struct team *team, uint64_t number)
{
    const uint64_t *word = place_word_in(team, 0);
    int64_t begin = 0;

    for (uint32_t spins = 1; sluice_load_acquire64(word) != number + 1; spins++) {
        struct sluice_completion completion;

        if (spins % SPINS_A_POLL != 0)
            continue;
        if (sluice_multichannel_poll(team->channels, &completion, 1) < 0)
            return team_fail(team, "poll");
        if (spins % SPINS_A_TURN == 0 && team->plan.wait_mode != SLUICE_WAIT_SPIN)
            sched_yield();
        if (spins % SPINS_A_LOOK != 0)
            continue;
        if (sluice_multichannel_peer_state(team->channels, 0) != SLUICE_STATE_READY)
            return team_complain(team, "write_lat: the peer is lost");
        if (begin == 0)
            begin = clock_nanoseconds();
        if (clock_nanoseconds() - begin > team->deadline)
            return team_complain(team, "write_lat: nothing was written before the deadline");
    }
    return 0;
}

static int check(const struct team *team, const struct run *run, uint64_t number)
{
    return run->size > sizeof(uint64_t) ? content_check(team, run, 0, number) : 0;
}

int write_lat_lead(struct team *team, struct run *run)
{
    *place_word_in(team, 0) = 0;
    if (team_meet(team) != 0)
        return -1;
    for (uint64_t i = 0; i < run->count; i++) {
        uint64_t begin, taken;

        if (content_matters(team))
            content_write(team, 0, i, run->size);
        begin = ticks_now();
        if (write_out(team, run, i) != 0 || watch(team, i) != 0)
            return -1;
        taken = ticks_now() - begin;
        histogram_add(run->times, taken);
        run->ticks += taken;
        if (check(team, run, i) != 0)
            return -1;
    }
    return 0;
}

int write_lat_follow(struct team *team, struct run *run)
{
    *place_word_in(team, 0) = 0;
    if (team_meet(team) != 0)
        return -1;
    for (uint64_t i = 0; i < run->count; i++) {
        if (watch(team, i) != 0 || check(team, run, i) != 0)
            return -1;
        if (content_matters(team))
            content_write(team, 0, i, run->size);
        if (write_out(team, run, i) != 0)
            return -1;
    }
    return 0;
}
